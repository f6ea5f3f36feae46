/** Stop reasons: our normalised words for why a step or a turn ended. */

/**
 * Why a model's reply ended. A diagnostic: whether a step continues is decided by the presence of tool calls.
 *
 * - `end_turn` the model was done; `tool_use` it asked for tools; `stop_sequence` a stop sequence came up
 * - `max_tokens` the output limit cut it; `filtered` a content filter or a refusal did
 * - `paused` the provider wants the reply sent back to go on with it
 * - `unknown` the provider gave no reason, or one we do not know: `rawStopReason` has its word
 */
export type StepStopReason =
  | 'end_turn'
  | 'tool_use'
  | 'max_tokens'
  | 'stop_sequence'
  | 'filtered'
  | 'paused'
  | 'unknown';

/** All step stop reasons. */
export const STEP_STOP_REASONS: readonly StepStopReason[] = [
  'end_turn',
  'tool_use',
  'max_tokens',
  'stop_sequence',
  'filtered',
  'paused',
  'unknown',
];

/** True for a step stop reason, whatever an adapter without types gave. */
export function isStepStopReason(value: unknown): value is StepStopReason {
  return STEP_STOP_REASONS.some((reason) => reason === value);
}

/**
 * Why a turn ended: a step's reason, or one that only a turn can have. Each is an ordinary result.
 *
 * - `max_steps`, `max_budget`, `deadline` a limit was reached
 * - `circuit_breaker` a policy stopped asking a provider that keeps failing
 * - `context_overflow` the conversation does not fit the model's window, and no recovery helped
 * - `aborted` the signal or `control.abort()`; `stopped` a hook, tool or `control.stop()`
 * - `suspended` tool calls wait for a decision; resume the turn with it
 * - `fatal_error` a request, a hook or the recorder failed for good; see `TurnResult.error`
 */
export type TurnStopReason =
  | Exclude<StepStopReason, 'tool_use'>
  | 'max_steps'
  | 'max_budget'
  | 'deadline'
  | 'circuit_breaker'
  | 'context_overflow'
  | 'aborted'
  | 'stopped'
  | 'suspended'
  | 'fatal_error';

const TURN_ONLY: ReadonlySet<unknown> = new Set<TurnStopReason>([
  'max_steps',
  'max_budget',
  'deadline',
  'circuit_breaker',
  'context_overflow',
  'aborted',
  'stopped',
  'suspended',
  'fatal_error',
]);

/** True for a turn stop reason, whatever a condition without types gave. */
export function isTurnStopReason(value: unknown): value is TurnStopReason {
  return TURN_ONLY.has(value) || (isStepStopReason(value) && value !== 'tool_use');
}

/**
 * True if a reply that ended so is whole, so that its tool calls may run. A reply that was cut off, filtered or
 * paused may hold half of what the model meant.
 */
export function isCompleteReply(stopReason: StepStopReason): boolean {
  return stopReason === 'end_turn' || stopReason === 'tool_use' || stopReason === 'stop_sequence';
}
