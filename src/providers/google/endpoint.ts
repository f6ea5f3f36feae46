/**
 * Endpoint: where a model stands behind an address.
 *
 * Google's own API has models under `models/`; Vertex AI has them under a publisher, behind a project or without one.
 */

/** What a path is made of. */
export interface EndpointParts {
  /** The model as the host names it: bare, or as a path. */
  readonly model: unknown;
  /** Address up to the model. */
  readonly baseUrl: string;
  /** What the model is to do. */
  readonly method: string;
}

const VERTEX_HOST = /(?:^|[.-])aiplatform\.googleapis\.com$/;

/** Path of the endpoint behind the address. */
export function endpointPath({ model, baseUrl, method }: EndpointParts): string {
  if (typeof model !== 'string' || !URL.canParse(baseUrl)) return '';
  const { hostname, pathname } = new URL(baseUrl);
  const resource = model.includes('/') ? model.replace(/^\/+/, '') : `models/${model}`;
  const hasPublisher = /\/publishers\/[^/]+\/*$/.test(pathname);
  if (hasPublisher) return `/${resource.replace(/^publishers\/[^/]+\//, '')}:${method}`;
  const isBare = resource.startsWith('models/');
  return `/${isBare && VERTEX_HOST.test(hostname) ? 'publishers/google/' : ''}${resource}:${method}`;
}

/** Whether an address names a project: Vertex AI wants an access token there. */
export function isProjectUrl({ pathname }: URL): boolean {
  return pathname.includes('/projects/');
}
