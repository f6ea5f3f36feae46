/**
 * Loop guard texts: what a model is told that repeats itself.
 *
 * - A reminder is one line. It is known again only as the very text that was due at its place: what a tool gives may look
 *   like a reminder, and is a result all the same.
 * - Nothing is said of results that are not known yet.
 */
import type { RecordedToolResult } from '../core/events.ts';
import type { ToolResultPart } from '../core/message.ts';
import type { Repeat } from './repeat-counter.ts';

const MARK = '[loop guard]';

/** What a level has to say: 1 for the first reminder, 3 for the last. */
export type ReminderLevel = 1 | 2 | 3;

/** All levels, in order. */
export const REMINDER_LEVELS: readonly ReminderLevel[] = [1, 2, 3];

/** The reminder of a level. */
export function reminderText(level: ReminderLevel, repeat: Repeat, stopAt: number): string {
  const what = `You have ${whatWasDone(repeat)}.`;
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

function whatWasDone({ period, count, isExact }: Repeat): string {
  if (!isExact) return `called a tool that does not exist again and again, and this call failed as the one before did: ${count} times so far`;
  if (period === 1) return `made this same call ${count} times in a row`;
  return `gone round the same ${period} calls ${count} times, and this one gave again what it gave before`;
}

/** What the call is told that is one too many. */
export function refusalText({ period, count }: Repeat): string {
  const what =
    period === 1
      ? `this same call was made ${count - 1} times in a row before.`
      : `it would make ${count} rounds of the same ${period} calls, which gave the same results each time.`;
  return `${MARK} Refused and not run: ${what} The turn ends here.`;
}

/** Why the turn ends, for the host. */
export function stopText(tool: string, { period, count, isExact }: Repeat): string {
  const name = JSON.stringify(tool);
  if (!isExact) return `The model called ${name}, which does not exist, ${count} times in a row.`;
  return period === 1
    ? `The model made the same call of ${name} ${count} times in a row.`
    : `The model went round the same ${period} calls ${count} times, with the same results each time; the last was of ${name}.`;
}

/** A result with a reminder behind what the model sees of it. */
export function withReminder(result: RecordedToolResult, text: string): RecordedToolResult {
  const { note = '' } = result;
  return { ...result, note: note === '' ? text : `${note}\n${text}` };
}

/** What a model sees of a result, without the reminder behind it, if it is one of these. */
export function withoutReminder(shown: readonly ToolResultPart[], reminders: readonly string[]): readonly ToolResultPart[] {
  const last = shown.at(-1);
  if (last?.type !== 'text') return shown;
  const others = shown.slice(0, -1);
  if (reminders.includes(last.text)) return others;
  const reminder = reminders.find((text) => last.text.endsWith(`\n${text}`));
  return reminder === undefined ? shown : [...others, { ...last, text: last.text.slice(0, -(reminder.length + 1)) }];
}
