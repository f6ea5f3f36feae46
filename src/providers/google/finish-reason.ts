/** Finish reason: Gemini's words for why a reply ended, in ours. They count whatever their case. */
import type { StepStopReason } from '../../core/stop-reason.ts';

/** A `Map`, since the words are a server's: `constructor` is just another unknown one. */
const STOP_REASONS: ReadonlyMap<string, StepStopReason> = new Map<string, StepStopReason>([
  ['STOP', 'end_turn'],
  ['FUNCTION_CALL', 'tool_use'],
  ['MAX_TOKENS', 'max_tokens'],
  // The limit of one request; going on takes a token that only Vertex AI gives.
  ['CONTINUATION', 'max_tokens'],
  ['SAFETY', 'filtered'],
  ['RECITATION', 'filtered'],
  ['LANGUAGE', 'filtered'],
  ['BLOCKLIST', 'filtered'],
  ['PROHIBITED_CONTENT', 'filtered'],
  ['SPII', 'filtered'],
  ['MODEL_ARMOR', 'filtered'],
  ['IMAGE_SAFETY', 'filtered'],
  ['IMAGE_PROHIBITED_CONTENT', 'filtered'],
  ['IMAGE_RECITATION', 'filtered'],
]);

/** Words that say that the reply failed: what there is of it may be the rest of a broken call. */
const FAILURES: ReadonlySet<string> = new Set(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'MALFORMED_RESPONSE', 'MISSING_THOUGHT_SIGNATURE']);

/** Our word. Without one of the server's, a whole answer has ended as it seems. */
export function toStopReason(finishReason: string | undefined, hasCalls: boolean): StepStopReason {
  if (finishReason === undefined) return hasCalls ? 'tool_use' : 'end_turn';
  const reason = STOP_REASONS.get(finishReason.toUpperCase()) ?? 'unknown';
  return reason === 'end_turn' && hasCalls ? 'tool_use' : reason;
}

/** Whether a word only says that there is none. */
export function isUnspecified(finishReason: string): boolean {
  return finishReason.toUpperCase() === 'FINISH_REASON_UNSPECIFIED';
}

/** The word by which a failed reply is known; undefined for a reply that ended. */
export function failureOf(finishReason: string | undefined): string | undefined {
  const word = finishReason?.toUpperCase();
  return word !== undefined && FAILURES.has(word) ? word : undefined;
}
