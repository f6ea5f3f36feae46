/** Stop reason: the protocol's words for why a reply ended, and those of servers compatible with it, in ours. */
import type { StepStopReason } from '../../core/stop-reason.ts';

/** A `Map`, since the words are a server's: `constructor` is just another unknown one. */
const STOP_REASONS: ReadonlyMap<string, StepStopReason> = new Map<string, StepStopReason>([
  ['end_turn', 'end_turn'],
  ['tool_use', 'tool_use'],
  ['stop_sequence', 'stop_sequence'],
  ['max_tokens', 'max_tokens'],
  ['model_context_window_exceeded', 'max_tokens'],
  ['refusal', 'filtered'],
  ['pause_turn', 'paused'],
  // The history was summed up, and the reply is still to come.
  ['compaction', 'paused'],
  // Servers that translate from Chat Completions.
  ['stop', 'end_turn'],
  ['tool_calls', 'tool_use'],
  ['length', 'max_tokens'],
  ['content_filter', 'filtered'],
  ['sensitive', 'filtered'],
]);

/** Our word. @param stopReason - The server's; without one an answer with its end mark has ended as it seems. */
export function toStopReason(stopReason: string | undefined, hasCalls: boolean): StepStopReason {
  if (stopReason === undefined) return hasCalls ? 'tool_use' : 'end_turn';
  const reason = STOP_REASONS.get(stopReason.toLowerCase()) ?? 'unknown';
  return reason === 'end_turn' && hasCalls ? 'tool_use' : reason;
}
