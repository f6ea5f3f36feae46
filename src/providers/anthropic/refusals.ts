/**
 * Refusals: failures that the same request, said in another way, does not have.
 *
 * Recognised by what servers write, seen at Anthropic and Google Cloud.
 */
import type { LLMError } from '../../core/errors.ts';

const THINKING_BOUND = /bound to a different conversation/i;
/** Thinking that is not as the server gave it, where it gave it, or with what it gave it for. */
const THINKING_REFUSED = [
  THINKING_BOUND,
  /`?signature`?.{0,20}`?thinking`?.{0,20}block/i,
  /`?thinking`?.{0,40}blocks?\b.{0,60}(?:cannot|can't|must not) be (?:modified|changed|edited)/i,
  /expected `?thinking`?.{0,40}\bfound\b/i,
  /must start with a `?thinking`? block/i,
];

/** The server does not take back the thinking of the history as it is. */
export function isThinkingRefused(error: LLMError): boolean {
  return isRefusal(error) && THINKING_REFUSED.some((pattern) => pattern.test(error.message));
}

/** The server does not take back thinking since what was said before it has changed. */
export function isThinkingBound(error: LLMError): boolean {
  return isRefusal(error) && THINKING_BOUND.test(error.message);
}

/** The server knows no way to be told what to do with thinking of another conversation. */
export function isBindingRefused(error: LLMError): boolean {
  return isRefusal(error) && !isThinkingRefused(error) && /thinking-binding-controls|block_binding/i.test(error.message);
}

function isRefusal({ status }: LLMError): boolean {
  // In a stream it comes without a status.
  return status === undefined || (status >= 400 && status < 500);
}
