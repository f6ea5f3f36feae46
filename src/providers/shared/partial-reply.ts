/** Partial reply: the error of a request that failed, with what had arrived of its reply. */
import { LLMError, type PartialReplyPart } from '../../core/errors.ts';
import type { Usage } from '../../core/usage.ts';

/** A reply as far as it came. */
export interface PartialReply {
  /** What may be kept of it. */
  partial(): readonly PartialReplyPart[];
  /** Tokens as far as the server told; undefined if it did not. */
  readonly usage: Usage | undefined;
}

/** The error, with the reply's parts and tokens where it has none of its own. */
export function withReply(error: LLMError, reply: PartialReply | undefined): LLMError {
  const partial = reply?.partial() ?? [];
  const usage = reply?.usage;
  if (partial.length === 0 && usage === undefined) return error;
  const { kind, message, retryable, stopReason, status, code, retryAfterMs, requestId } = error;
  return new LLMError({
    kind,
    message,
    retryable,
    stopReason,
    status,
    code,
    retryAfterMs,
    requestId,
    usage: error.usage ?? usage,
    partial: error.partial ?? (partial.length === 0 ? undefined : partial),
  });
}
