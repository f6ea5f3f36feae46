/**
 * Loop guard texts: what a model is told that repeats itself, and how the guard knows its own words again.
 *
 * - Each text is one line behind one mark, so that it can be taken off a result: results are compared without it.
 */
import type { RecordedToolResult } from '../core/events.ts';
import type { ToolResultPart } from '../core/message.ts';
import { renderToolResult } from '../core/projection.ts';
import type { Repeat } from './repeat-counter.ts';

const MARK = '[loop guard]';
const REMINDER = /(?:^|\n)\[loop guard\] [^\n]*$/;

/** What a level has to say: 1 for the first reminder, 3 for the last. */
export type ReminderLevel = 1 | 2 | 3;

/** All levels, in order. */
export const REMINDER_LEVELS: readonly ReminderLevel[] = [1, 2, 3];

/** The reminder of a level. */
export function reminderText(level: ReminderLevel, { period, count }: Repeat, stopAt: number): string {
  const what =
    period === 1
      ? `You have made this same call ${count} times in a row.`
      : `You have gone round the same ${period} calls ${count} times, with the same results each time.`;
  switch (level) {
    case 1:
      return `${MARK} ${what} Use what you have learnt from it, or do something else.`;
    case 2:
      return `${MARK} ${what} It will tell you nothing new. Change the arguments, use another tool, or say what keeps you from going on.`;
    case 3: {
      const end = stopAt === Infinity ? '' : ` At ${stopAt} times the call is refused and the turn ends.`;
      return `${MARK} ${what} This is a dead end.${end} Do not make this call again: answer with what you have, and say what is missing.`;
    }
    default:
      level satisfies never;
      return `${MARK} ${what}`;
  }
}

/** What the call is told that is one too many. */
export function refusalText({ period, count }: Repeat): string {
  const what =
    period === 1
      ? `this same call was made ${count - 1} times in a row before.`
      : `it would make ${count} rounds of the same ${period} calls, with the same results each time.`;
  return `${MARK} Refused and not run: ${what} The turn ends here.`;
}

/** Why the turn ends, for the host. */
export function stopText(tool: string, { period, count }: Repeat): string {
  return period === 1
    ? `The model made the same call of ${JSON.stringify(tool)} ${count} times in a row.`
    : `The model went round the same ${period} calls ${count} times, with the same results each time; the last was of ${JSON.stringify(tool)}.`;
}

/** A result with a reminder behind what the model sees of it. */
export function withReminder(result: RecordedToolResult, text: string): RecordedToolResult {
  const { note = '' } = result;
  return { ...result, note: note === '' ? text : `${note}\n${text}` };
}

/** What a result gave, to be compared with others; undefined if the guard itself kept the call from running. */
export function contentOf(result: RecordedToolResult): readonly ToolResultPart[] | undefined {
  return shownContent(renderToolResult(result));
}

/** {@link contentOf} for a result as it stands in a history. */
export function shownContent(shown: readonly ToolResultPart[]): readonly ToolResultPart[] | undefined {
  const last = shown.at(-1);
  // A refusal stands behind the line that calls it an error: all of it is one part.
  if (last?.type !== 'text' || !last.text.includes(MARK)) return shown;
  if (last.text.includes(`${MARK} Refused`)) return undefined;
  const text = last.text.replace(REMINDER, '');
  const others = shown.slice(0, -1);
  return text === '' ? others : [...others, { ...last, text }];
}
