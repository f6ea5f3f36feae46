/** Final answer: a turn that reached a limit may say what it knows, in one more step without tools. */
import { assertOptions } from '../core/assert.ts';
import type { Hook, StopDecision } from '../core/hooks.ts';
import { userMessage } from '../core/message.ts';

const DEFAULT_MESSAGE =
  'The limit of this turn is reached: no tool can be called any more. Answer now with what you know, and say what is ' +
  'missing or was not done.';
const DEFAULT_ON: readonly LimitStopReason[] = ['max_steps'];
/** Every stop reason after which the loop asks whether to go on. */
const REASONS: Readonly<Record<LimitStopReason, true>> = {
  end_turn: true,
  max_tokens: true,
  stop_sequence: true,
  filtered: true,
  paused: true,
  unknown: true,
  max_steps: true,
  max_budget: true,
  deadline: true,
  circuit_breaker: true,
  context_overflow: true,
  aborted: true,
  stopped: true,
};

const ARGUMENT = { taker: 'finalAnswer', example: "hooks: [finalAnswer({ on: ['max_steps', 'max_budget'] })]" };
const OPTIONS: Readonly<Record<keyof FinalAnswerOptions, true>> = { message: true, on: true };

/** A stop reason that a stop condition may give, and after which a turn may go on: after `fatal_error` none does. */
export type LimitStopReason = Exclude<StopDecision['stopReason'], 'fatal_error'>;

/** Options of {@link finalAnswer}. */
export interface FinalAnswerOptions {
  /** What the model is told. @defaultValue that the limit is reached, and to answer without tools and say what is missing */
  readonly message?: string | undefined;
  /**
   * The stop reasons of the conditions whose turns get an answer.
   *
   * Add `max_budget` only if there is money left when it is reached: the answer is a request like the others, and one
   * that `withBudget` refuses ends the turn without it. `maxBudget` with a lower limit than the budget's leaves some.
   *
   * @defaultValue `['max_steps']`: a budget that is spent is not to be spent further, and a condition of your own that
   * ends a turn `stopped` has its reasons
   */
  readonly on?: readonly LimitStopReason[] | undefined;
}

/**
 * Hook that gives a turn one last step when a stop condition ends it: the model is told so, may call no tool, and
 * answers with what it has. The turn still ends with the limit's stop reason, and `text` is the answer.
 *
 * Once per turn, also over a resume: the loop sees to that, and closes calls that a model makes all the same. The tools
 * stay in the request, so that the provider's cache of it holds. One hook serves many turns at once.
 *
 * @param options - What is said, and after which limits.
 * @throws TypeError for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, stopWhen: [maxSteps(25)], hooks: [finalAnswer()] });
 * ```
 */
export function finalAnswer(options: FinalAnswerOptions = {}): Hook {
  assertOptions(options, OPTIONS, ARGUMENT);
  const { message = DEFAULT_MESSAGE, on = DEFAULT_ON } = options;
  if (typeof message !== 'string' || message.trim() === '') {
    throw new TypeError("finalAnswer: `message` must be a text. For example: finalAnswer({ message: 'Answer now, without tools.' }).");
  }
  const isListOfReasons = Array.isArray(on) && on.length > 0 && on.every((reason) => typeof reason === 'string' && Object.hasOwn(REASONS, reason));
  if (!isListOfReasons) {
    throw new TypeError(`finalAnswer: \`on\` must be a list of stop reasons that a condition can give and that a turn can go on after, as after 'fatal_error' it cannot. For example: ${ARGUMENT.example}.`);
  }
  const reasons = new Set<string>(on);
  return {
    name: 'finalAnswer',
    shouldContinueAfterStop: (_context, { stopReason, limit }) =>
      limit && reasons.has(stopReason) ? userMessage(message, { origin: 'reminder' }) : undefined,
  };
}
