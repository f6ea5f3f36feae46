/**
 * Loop guard step: what the calls of one step are to the guard, from when they are asked for until they are counted.
 *
 * - Equal calls of a step are one. Calls of a tool that does not exist are one if they failed alike, which is known at the end.
 * - A call is refused only for what is known: its own count, and no result of this step that is still to come.
 * - Results are compared as they are recorded, in this process as in one that goes on with the turn.
 */
import type { RecordedToolResult } from '../core/events.ts';
import type { ToolMessage } from '../core/message.ts';
import { renderToolResult } from '../core/projection.ts';
import { refusalText, reminderText, withoutReminder } from './loop-guard-texts.ts';
import type { ResolvedLoopGuard } from './loop-guard-options.ts';
import { failAlike, mostRepeated, REFUSED, repeats, type CallOutcome, type CountedCall, type Repeat, type RepeatCounter } from './repeat-counter.ts';

/** A call of a step; equal ones share it. */
export interface StepCall {
  /** Id of the first of the equal calls. */
  readonly toolCallId: string;
  readonly call: CountedCall;
  /** The cycles that it goes on with, if it and those before it in the step give what they gave before. */
  readonly found: readonly Repeat[];
  /** The call before it in the step. */
  readonly previous: StepCall | undefined;
  /** The first call of the step that calls the same tool, which does not exist. */
  readonly alike: StepCall | undefined;
  /** What the model was told behind the result. */
  reminder: string | undefined;
}

/** A call that is to be put into a step. */
export interface NextCall {
  readonly toolCallId: string;
  readonly key: string;
  readonly missingTool: string | undefined;
}

/** Puts the calls of a step together, in provider order; the counter is one of its own. */
export class StepBuilder {
  readonly #counter: RepeatCounter;
  readonly #byKey = new Map<string, StepCall>();
  readonly #byMissingTool = new Map<string, StepCall>();
  #previous: StepCall | undefined;

  constructor(counter: RepeatCounter) {
    this.#counter = counter;
  }

  add({ toolCallId, key, missingTool }: NextCall): StepCall {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const alike = missingTool === undefined ? undefined : this.#byMissingTool.get(missingTool);
    const call: CountedCall = { key, missingTool, outcome: undefined, seen: undefined };
    const found = alike?.found.map((repeat) => ({ ...repeat, isExact: repeat.before.key === key })) ?? this.#counter.expect(call);
    const added: StepCall = { toolCallId, call, found, previous: this.#previous, alike, reminder: undefined };
    this.#byKey.set(key, added);
    if (missingTool !== undefined && alike === undefined) this.#byMissingTool.set(missingTool, added);
    this.#previous = added;
    return added;
  }
}

/** The cycle for which a call is to be refused. */
export function refusalOf({ found, previous, alike }: StepCall, stopAt: number): Repeat | undefined {
  // What is behind a call that is still to run may turn out to be no cycle. Behind a refused one the turn ends anyway.
  if (alike !== undefined || (previous !== undefined && previous.call.outcome !== REFUSED)) return undefined;
  const repeat = mostRepeated(found.filter(({ isExact }) => isExact));
  return repeat === undefined || repeat.count < stopAt ? undefined : repeat;
}

/** The cycle that a call goes on with which gave this. */
export function repeatOf({ found, call }: StepCall, seen: CallOutcome): Repeat | undefined {
  const asSeen = (one: CountedCall): CountedCall => ({ ...one, outcome: one.seen ?? one.outcome });
  return mostRepeated(found.filter(({ period, before }) => repeats(period, asSeen(before), { ...call, outcome: seen })));
}

/** Counts a call whose result is there. @returns The cycles it goes on with. */
export function count({ call, alike }: StepCall, counter: RepeatCounter): readonly Repeat[] {
  if (alike !== undefined && failAlike(alike.call, call)) return [];
  return counter.push(call);
}

/** What a result gives, as a hook sees it. */
export function outcomeOf(result: RecordedToolResult): CallOutcome {
  return { content: renderToolResult(result), isError: result.isError === true };
}

/** What is recorded of what a call gave. */
export function recordedOutcome(result: RecordedToolResult, planned: StepCall, guard: ResolvedLoopGuard): CallOutcome {
  const outcome = outcomeOf(result);
  if (planned.call.seen !== undefined) return outcomeWithout(outcome, planned.reminder === undefined ? [] : [planned.reminder]);
  // It was finished before this process looked: by the same counts, the guard had said the same.
  const refusal = refusalOf(planned, guard.stopAt);
  const [only] = result.content;
  const isRefusal = refusal !== undefined && result.isError === true && only?.type === 'text' && only.text === refusalText(refusal);
  return isRefusal ? REFUSED : outcomeWithout(outcome, remindersOf(planned, guard));
}

/** {@link recordedOutcome} for a result in a history. */
export function pastOutcome({ content, isError = false }: ToolMessage, planned: StepCall, guard: ResolvedLoopGuard): CallOutcome {
  return outcomeWithout({ content, isError }, remindersOf(planned, guard));
}

function outcomeWithout({ content, isError }: CallOutcome, reminders: readonly string[]): CallOutcome {
  return { content: withoutReminder(content, reminders), isError };
}

/** What the model may have been told behind the result of a call. */
function remindersOf({ found }: StepCall, { levelOf, stopAt }: ResolvedLoopGuard): readonly string[] {
  return found.flatMap((repeat) => {
    const level = levelOf(repeat.count);
    return level === undefined ? [] : [reminderText(level, repeat, stopAt)];
  });
}
