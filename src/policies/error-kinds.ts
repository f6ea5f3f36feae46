/** Error kinds: those that may pass, and whether what a host names as kinds are some. */
import type { LLMErrorKind } from '../core/errors.ts';

/** Every kind, and whether it passes by itself: then the same request may succeed later, or with another provider. */
const KINDS: Readonly<Record<LLMErrorKind, boolean>> = {
  rate_limit: true,
  overloaded: true,
  server: true,
  network: true,
  timeout: true,
  malformed_response: true,
  auth: false,
  permission: false,
  not_found: false,
  quota: false,
  invalid_request: false,
  invalid_history: false,
  context_overflow: false,
  request_too_large: false,
  media_rejected: false,
  content_filter: false,
  refused: false,
  aborted: false,
  unknown: false,
};

/** Kinds of failures that pass by themselves. */
export const PASSING_KINDS: readonly LLMErrorKind[] = (Object.keys(KINDS) as LLMErrorKind[]).filter((kind) => KINDS[kind]);

/** What takes kinds. */
interface KindsArgument {
  /** The option, such as `withFallback: \`on\``. */
  readonly taker: string;
  /** A correct call. */
  readonly example: string;
}

/** @throws TypeError if it is not a list of kinds. */
export function assertKinds(value: unknown, { taker, example }: KindsArgument): void {
  if (!Array.isArray(value)) throw new TypeError(`${taker} must be a list of kinds of errors. For example: ${example}.`);
  const index = value.findIndex((kind) => typeof kind !== 'string' || !Object.hasOwn(KINDS, kind));
  if (index === -1) return;
  const wrong: unknown = value[index];
  const shown = typeof wrong === 'string' ? `"${wrong}"` : `a value of type ${typeof wrong}`;
  throw new TypeError(`${taker} has ${shown}, which is no kind of error; there are ${Object.keys(KINDS).join(', ')}. For example: ${example}.`);
}
