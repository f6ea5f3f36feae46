/** Finish reason: the servers' words for why a reply ended, in ours. */
import type { LLMErrorKind } from '../../core/errors.ts';
import type { StepStopReason } from '../../core/stop-reason.ts';

/** A `Map`, since the words are a server's: `constructor` is just another unknown one. */
const STOP_REASONS: ReadonlyMap<string, StepStopReason> = new Map<string, StepStopReason>([
  ['stop', 'end_turn'],
  ['end_turn', 'end_turn'],
  ['eos', 'end_turn'],
  ['eos_token', 'end_turn'],
  ['done', 'end_turn'],
  ['complete', 'end_turn'],
  ['completed', 'end_turn'],
  ['tool_calls', 'tool_use'],
  ['tool_use', 'tool_use'],
  ['function_call', 'tool_use'],
  ['stop_sequence', 'stop_sequence'],
  ['length', 'max_tokens'],
  ['max_tokens', 'max_tokens'],
  ['model_length', 'max_tokens'],
  ['max_output_tokens', 'max_tokens'],
  ['model_context_window_exceeded', 'max_tokens'],
  ['content_filter', 'filtered'],
  ['content_filtered', 'filtered'],
  ['refusal', 'filtered'],
  ['safety', 'filtered'],
  ['sensitive', 'filtered'],
  ['recitation', 'filtered'],
  ['pause_turn', 'paused'],
]);

/** Words that say that the reply failed: OpenRouter · Z.ai · DeepSeek · vLLM. */
const FAILURES: ReadonlyMap<string, LLMErrorKind> = new Map<string, LLMErrorKind>([
  ['error', 'server'],
  ['network_error', 'network'],
  ['insufficient_system_resource', 'overloaded'],
  ['abort', 'server'],
]);

/** What a finish reason says about a reply. */
export interface FinishedReply {
  /** The server's word; undefined if it gave none. */
  readonly finishReason: string | undefined;
  readonly hasCalls: boolean;
  /** Whether the model refused in the field that is there for it; the finish reason is then `stop` all the same. */
  readonly isRefused: boolean;
}

/** Our word. Without one of the server's, an answer with its end mark has ended as it seems. */
export function toStopReason({ finishReason, hasCalls, isRefused }: FinishedReply): StepStopReason {
  if (isRefused) return 'filtered';
  if (finishReason === undefined) return hasCalls ? 'tool_use' : 'end_turn';
  const reason = STOP_REASONS.get(finishReason.toLowerCase()) ?? 'unknown';
  return reason === 'end_turn' && hasCalls ? 'tool_use' : reason;
}

/** The kind of failure that a finish reason stands for; undefined for a reply that ended. */
export function failureOf(finishReason: string | undefined): LLMErrorKind | undefined {
  return finishReason === undefined ? undefined : FAILURES.get(finishReason.toLowerCase());
}
