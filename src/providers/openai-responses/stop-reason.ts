/** Stop reason: the servers' words for why a response ended, in ours. */
import type { StepStopReason } from '../../core/stop-reason.ts';

/** Why a response is incomplete. A `Map`, since the words are a server's. */
const INCOMPLETE: ReadonlyMap<string, StepStopReason> = new Map<string, StepStopReason>([
  ['max_output_tokens', 'max_tokens'],
  ['max_tokens', 'max_tokens'],
  ['content_filter', 'filtered'],
]);

/** What is known of a response that ended. */
export interface EndedResponse {
  /** Why it is incomplete; undefined for one that is complete. */
  readonly incompleteReason: string | undefined;
  readonly hasCalls: boolean;
  /** Whether the model refused in the part that is there for it; the response is then complete all the same. */
  readonly isRefused: boolean;
}

/** Our word. */
export function toStopReason({ incompleteReason, hasCalls, isRefused }: EndedResponse): StepStopReason {
  if (isRefused) return 'filtered';
  if (incompleteReason !== undefined) return INCOMPLETE.get(incompleteReason) ?? 'unknown';
  return hasCalls ? 'tool_use' : 'end_turn';
}
