/**
 * Sub-agent result: what the caller's model is told of a sub-agent that ended.
 *
 * - Never empty, and never more than the cap and a sentence or two.
 * - An answer that is whole is told as it is; what is known not to be whole says so, and why.
 */
import { truncateText } from '../context/truncate-text.ts';
import { isUserCancel, summarizeError, type ErrorSummary } from '../core/errors.ts';
import type { TurnEndEvent } from '../core/events.ts';
import type { TurnStopReason } from '../core/stop-reason.ts';
import type { ToolResult } from '../core/tool.ts';
import type { TurnResult } from '../core/turn-options.ts';

/** How a sub-agent ended. */
export interface SubAgentEnd {
  /** Why. */
  readonly stopReason: TurnStopReason;
  /** Text of its last reply. */
  readonly text: string;
  /** What failed. */
  readonly error?: ErrorSummary | undefined;
  /** Why, in words, where somebody said. */
  readonly stopMessage?: string | undefined;
}

/** The end of one that has just run. */
export function endOfTurn({ stopReason, text, error, stopMessage }: TurnResult): SubAgentEnd {
  return { stopReason, text, error: error && summarizeError(error), stopMessage };
}

/** The end of one that had ended before, by its record. */
export function endOfRecord({ stopReason, error, stopMessage }: TurnEndEvent, text: string): SubAgentEnd {
  return { stopReason, text, error, stopMessage };
}

/** Share of the cap that goes to the beginning: what an answer is about stands there. */
const HEAD_SHARE = 0.6;

const NO_ANSWER = 'The sub-agent ended without an answer: what it did may have had effects, but it said nothing about it.';

/** What becomes of the text, by why the sub-agent ended. */
type Verdict = 'whole' | 'unfinished' | 'failed';

/** A reply that was cut off is no answer, whatever it says so far: the caller would take it for one. */
const VERDICTS: Readonly<Record<TurnStopReason, Verdict>> = {
  end_turn: 'whole',
  stop_sequence: 'whole',
  max_steps: 'unfinished',
  max_budget: 'unfinished',
  deadline: 'unfinished',
  stopped: 'unfinished',
  unknown: 'unfinished',
  max_tokens: 'failed',
  filtered: 'failed',
  paused: 'failed',
  circuit_breaker: 'failed',
  context_overflow: 'failed',
  aborted: 'failed',
  suspended: 'failed',
  fatal_error: 'failed',
};

/** In words, where the stop reason has no message of its own. */
const REASONS: Partial<Readonly<Record<TurnStopReason, string>>> = {
  max_tokens: 'its reply reached the output limit of the model and was cut off',
  deadline: 'its time limit was reached',
  filtered: "the provider's filter held its reply back",
  unknown: 'its model did not say why it ended',
};

/**
 * The result of the call.
 *
 * @param maxCharacters - Most characters of the sub-agent's text.
 */
export function subAgentResult(end: SubAgentEnd, maxCharacters: number): ToolResult {
  const headCharacters = Math.floor(maxCharacters * HEAD_SHARE);
  const text = truncateText(end.text, { maxCharacters, headCharacters, tailCharacters: maxCharacters - headCharacters });
  const truncated = text.length < end.text.length;
  const verdict = VERDICTS[end.stopReason];
  const isBlank = text.trim() === '';
  if (verdict === 'whole') return isBlank ? { content: NO_ANSWER } : { content: text, truncated };
  const why = reasonOf(end);
  if (verdict === 'unfinished' && !isBlank) {
    return { content: text, truncated, note: `The sub-agent stopped before it was done (${why}): the text above is only what it had.` };
  }
  const had = isBlank ? ' It left no text.' : `\nWhat it had written, which is not its answer:\n${text}`;
  return { content: `The sub-agent did not finish (${why}).${had}`, truncated, isError: true };
}

function reasonOf({ stopReason, error, stopMessage }: SubAgentEnd): string {
  const kind = error === undefined ? '' : `, ${error.kind}`;
  const words = error?.message ?? stopMessage ?? REASONS[stopReason];
  return `${stopReason}${kind}${words === undefined ? '' : `: ${words.replace(/\.$/, '')}`}`;
}

/** The result of a call that ended while it waited for a place. */
export function notStarted(reason: unknown): ToolResult {
  const content = isUserCancel(reason)
    ? 'The user cancelled before this sub-agent started: it was not run. That was on purpose: do not repeat it unless the user asks.'
    : 'The sub-agent was not started: the call was stopped while it waited for others to end.';
  return { content, isError: true };
}
