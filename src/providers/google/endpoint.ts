/**
 * Endpoint: where a model stands behind an address.
 *
 * Google's own API has models under `models/`; Vertex AI has them under a publisher, behind a project or without one. It
 * is known by its host, or by the project in the address where that leads to a proxy.
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

/** Of one region, of several, or of all. */
const VERTEX_HOST = /(?:^|[.-])aiplatform\.(?:[a-z0-9-]+\.rep\.)?googleapis\.com$/;
const PROJECT = /\/projects\/[^/]+\/locations\/[^/]+(?:\/|$)/;

/** Path of the endpoint behind the address. */
export function endpointPath({ model, baseUrl, method }: EndpointParts): string {
  if (typeof model !== 'string' || !URL.canParse(baseUrl)) return '';
  const url = new URL(baseUrl);
  const resource = model.includes('/') ? model.replace(/^\/+/, '') : `models/${model}`;
  const hasPublisher = /\/publishers\/[^/]+\/*$/.test(url.pathname);
  if (hasPublisher) return `/${resource.replace(/^publishers\/[^/]+\//, '')}:${method}`;
  const isVertex = VERTEX_HOST.test(url.hostname) || isProjectUrl(url);
  return `/${isVertex && resource.startsWith('models/') ? 'publishers/google/' : ''}${resource}:${method}`;
}

/** Whether an address names a project: Vertex AI wants an access token there. */
export function isProjectUrl({ pathname }: URL): boolean {
  return PROJECT.test(pathname);
}
