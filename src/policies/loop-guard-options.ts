/**
 * Loop guard options: when to remind and to stop, and what is let through.
 *
 * - Options that contradict each other are refused: a reminder behind the end would never be read.
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import { messageOf } from '../core/errors.ts';
import { isThenable } from '../core/event-dispatcher.ts';
import type { HookContext } from '../core/hooks.ts';
import type { JsonValue } from '../core/json.ts';
import { REMINDER_LEVELS, type ReminderLevel } from './loop-guard-texts.ts';

/** Name of the hook, in `stoppedBy` and before each notice. */
export const LOOP_GUARD = 'loopGuard';

/** Twice is a second look, three times a habit; then a little more patience with each reminder that does not help. */
const DEFAULT_REMIND_AT: readonly number[] = [3, 5, 8];
/** Three reminders and four more calls: whoever has not heard by then will not. */
const DEFAULT_STOP_AT = 12;
/** Read, change, check: longer rounds are mostly work. */
const DEFAULT_MAX_CYCLE = 3;
/** Each call costs a comparison for each length. */
const MOST_MAX_CYCLE = 20;

const ARGUMENT = { taker: LOOP_GUARD, example: "hooks: [loopGuard({ ignore: ['get_status'] })]" };
const OPTIONS: Readonly<Record<keyof LoopGuardOptions, true>> = { remindAt: true, stopAt: true, maxCycle: true, ignore: true };

/** A call, as `ignore` sees it. */
export interface LoopGuardCall {
  /** Name of the tool. */
  readonly name: string;
  /** The arguments as the model wrote them; undefined where they are no JSON. */
  readonly input: JsonValue | undefined;
}

/** Options of {@link loopGuard}. */
export interface LoopGuardOptions {
  /**
   * At how many equal calls the model is reminded: at most three whole numbers of at least 2, rising, below `stopAt`. Each
   * reminder stands on every result until the next takes its place; the last says that this is a dead end.
   *
   * @defaultValue `[3, 5, 8]`, those of them that are below `stopAt`
   */
  readonly remindAt?: readonly number[] | undefined;
  /**
   * The equal call that is refused and ends the turn, a whole number of at least 2: the tool runs once less than that, but
   * for a cycle that is complete only with results of the same step, where it runs that often. `Infinity` only reminds.
   *
   * @defaultValue 12: three reminders, and four more calls to heed them
   */
  readonly stopAt?: number | undefined;
  /**
   * Most calls in a cycle that counts as a repeat, a whole number from 1 to 20; 1 looks only for the same call in a row.
   *
   * @defaultValue 3: read, change, check
   */
  readonly maxCycle?: number | undefined;
  /**
   * Calls that may repeat, such as those that poll: names of tools, or a function that says so of a call. To the guard they
   * are not there: they run as often as they are made, also within a step, neither count nor break a count. A function that
   * throws, or gives anything but true or false, opts nothing out, which a notice tells.
   *
   * @defaultValue none
   */
  readonly ignore?: readonly string[] | ((call: LoopGuardCall) => boolean) | undefined;
}

/** The options, checked. */
export interface ResolvedLoopGuard {
  /** The equal call that is refused. */
  readonly stopAt: number;
  /** Most calls in a cycle. */
  readonly maxCycle: number;
  /** The reminder that stands at a count. */
  readonly levelOf: (count: number) => ReminderLevel | undefined;
  /** Whether a call may repeat. */
  readonly isIgnored: (context: HookContext, call: LoopGuardCall) => boolean;
}

/** Checks the options and fills in the defaults. @throws TypeError naming what is wrong. */
export function resolveLoopGuard(options: LoopGuardOptions): ResolvedLoopGuard {
  assertOptions(options, OPTIONS, ARGUMENT);
  const ranges = { stopAt: { least: 2, whole: true, orInfinity: true }, maxCycle: { least: 1, most: MOST_MAX_CYCLE, whole: true } };
  assertNumbers(options, ranges, ARGUMENT);
  const { stopAt = DEFAULT_STOP_AT, maxCycle = DEFAULT_MAX_CYCLE } = options;
  const remindAt = options.remindAt ?? DEFAULT_REMIND_AT.filter((count) => count < stopAt);
  assertRemindAt(remindAt, stopAt);
  // A dead end is announced by the last reminder, however few there are.
  const levels = remindAt.length === 0 ? [] : [...REMINDER_LEVELS.slice(0, remindAt.length - 1), 3 as const];
  const levelOf = (count: number): ReminderLevel | undefined =>
    count >= stopAt ? undefined : levels[remindAt.findLastIndex((at) => at <= count)];
  return { stopAt, maxCycle, levelOf, isIgnored: ignoreRule(options.ignore) };
}

function assertRemindAt(remindAt: unknown, stopAt: number): void {
  const isList = Array.isArray(remindAt) && remindAt.length <= REMINDER_LEVELS.length;
  const numbers: readonly unknown[] = isList ? remindAt : [Number.NaN];
  const isRising = numbers.every((at, index) => {
    const before = numbers[index - 1] ?? 1;
    return typeof at === 'number' && Number.isSafeInteger(at) && typeof before === 'number' && at > before;
  });
  if (!isRising) {
    const given = Array.isArray(remindAt) ? `[${remindAt.map(String).join(', ')}]` : typeof remindAt;
    throw new TypeError(
      `${LOOP_GUARD}: \`remindAt\` must be at most three whole numbers of at least 2, each larger than the one before, not ${given}. ` +
        'For example: loopGuard({ remindAt: [3, 5, 8] }).',
    );
  }
  const last = numbers.at(-1);
  if (typeof last !== 'number' || last < stopAt) return;
  throw new TypeError(
    `${LOOP_GUARD}: \`remindAt\` reminds at ${last}, but the turn ends at ${stopAt} (\`stopAt\`), so nobody would read it. ` +
      `For example: loopGuard({ remindAt: [3, 5, 8], stopAt: ${Math.max(DEFAULT_STOP_AT, last + 1)} }).`,
  );
}

function ignoreRule(ignore: LoopGuardOptions['ignore'] = []): (context: HookContext, call: LoopGuardCall) => boolean {
  if (typeof ignore === 'function') {
    return (context, call) => {
      try {
        const answer: unknown = ignore(call);
        if (typeof answer === 'boolean') return answer;
        if (isThenable(answer)) answer.then(undefined, () => undefined);
        throw new TypeError(`\`ignore\` must give true or false at once, not ${isThenable(answer) ? 'a promise' : typeof answer}`);
      } catch (error) {
        context.notify({ name: `${LOOP_GUARD}.ignoreFailed`, data: { tool: call.name, message: messageOf(error) } });
        return false;
      }
    };
  }
  if (!Array.isArray(ignore) || !ignore.every((name) => typeof name === 'string')) {
    throw new TypeError(`${LOOP_GUARD}: \`ignore\` must be a list of tool names or a function. For example: loopGuard({ ignore: ['get_status'] }).`);
  }
  const names: ReadonlySet<string> = new Set(ignore);
  return (_context, { name }) => names.has(name);
}
