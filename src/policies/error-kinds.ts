/** Error kinds: those that may pass, and whether what a host names as kinds are some. */
import { LLM_ERROR_KINDS, type LLMErrorKind } from '../core/errors.ts';

/** Kinds of failures that pass by themselves. */
export const PASSING_KINDS: readonly LLMErrorKind[] = (Object.keys(LLM_ERROR_KINDS) as LLMErrorKind[]).filter((kind) => LLM_ERROR_KINDS[kind]);

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
  const index = value.findIndex((kind) => typeof kind !== 'string' || !Object.hasOwn(LLM_ERROR_KINDS, kind));
  if (index === -1) return;
  const wrong: unknown = value[index];
  const shown = typeof wrong === 'string' ? `"${wrong}"` : `a value of type ${typeof wrong}`;
  throw new TypeError(`${taker} has ${shown}, which is no kind of error; there are ${Object.keys(LLM_ERROR_KINDS).join(', ')}. For example: ${example}.`);
}
