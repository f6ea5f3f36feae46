/**
 * Repeat counter: how often a sequence of calls has come round to the same call.
 *
 * - A cycle of one call is the same call again, whatever it gave. A longer cycle has to give the same results too: calls
 *   that take turns and learn something new each time are work.
 * - Calls of a tool that does not exist are alike whatever their arguments, as long as they fail alike.
 * - What a call of the past gave and is not known is not taken for the same.
 * - It keeps as many calls as the longest cycle has, and a number for each length: the past is never walked again.
 */
import type { ToolResultPart } from '../core/message.ts';

/** What a call gave, as a model sees it. */
export interface CallOutcome {
  readonly content: readonly ToolResultPart[];
  readonly isError: boolean;
}

/** What a call gave that was refused for being a repeat: it would have given the same. */
export const REFUSED: CallOutcome = { content: [], isError: true };

/** A call of the sequence. */
export interface CountedCall {
  /** Says which call it is. */
  readonly key: string;
  /** The name it called, if there is no such tool. */
  readonly missingTool: string | undefined;
  /** What is recorded of what it gave; undefined while that is not known. */
  outcome: CallOutcome | undefined;
  /** The same before hooks had changed it; undefined if nobody looked. */
  seen: CallOutcome | undefined;
}

/** A cycle that a call goes on with. */
export interface Repeat {
  /** Calls in the cycle. */
  readonly period: number;
  /** How often this call was made in it, this time included: at least 2. */
  readonly count: number;
  /** The same call, one round before. */
  readonly before: CountedCall;
  /** False if the two only are calls of a tool that does not exist. */
  readonly isExact: boolean;
}

/** Counts the repeats in a sequence of calls, one call after the other. */
export class RepeatCounter {
  readonly #maxCycle: number;
  /** The last calls, newest first. */
  #last: readonly CountedCall[] = [];
  /** For each period from 1 on, how many calls in a row are the same as the one so many before them. */
  #runs: readonly number[];
  /** The same when it was forked. */
  #known: readonly number[];
  /** Calls since then that have yet to give something. */
  #expected = 0;

  constructor(maxCycle: number) {
    this.#maxCycle = maxCycle;
    this.#runs = Array.from({ length: maxCycle }, () => 0);
    this.#known = this.#runs;
  }

  /** A counter that goes on from here by itself. */
  fork(): RepeatCounter {
    const fork = new RepeatCounter(this.#maxCycle);
    fork.#last = this.#last;
    fork.#runs = this.#runs;
    fork.#known = this.#runs;
    return fork;
  }

  /** Takes the next call. @returns The cycles it goes on with, shortest first. */
  push(call: CountedCall): readonly Repeat[] {
    return this.#take(call, repeats);
  }

  /**
   * Takes a call that has yet to give something. @returns The cycles it goes on with if that is what it gave before. Behind
   * other such calls only whole rounds before them count: what those give may be something new.
   */
  expect(call: CountedCall): readonly Repeat[] {
    const found = this.#take(call, mayRepeat);
    this.#expected += 1;
    return found;
  }

  #take(call: CountedCall, isRepeat: typeof repeats): readonly Repeat[] {
    const found: Repeat[] = [];
    this.#runs = this.#runs.map((run, index) => {
      const before = this.#last[index];
      const period = index + 1;
      if (before === undefined || !isRepeat(period, before, call)) return 0;
      found.push({ period, count: this.#countOf(period, run), before, isExact: before.key === call.key });
      return run + 1;
    });
    this.#last = [call, ...this.#last].slice(0, this.#maxCycle);
    return found;
  }

  #countOf(period: number, run: number): number {
    if (this.#expected === 0) return 1 + Math.ceil((run + 1) / period);
    const known = this.#known[period - 1] ?? 0;
    return run === known + this.#expected ? 2 + Math.floor(known / period) : 2;
  }
}

/** The cycle that has come round most often; the shortest of several. */
export function mostRepeated(found: readonly Repeat[]): Repeat | undefined {
  let most: Repeat | undefined;
  for (const repeat of found) if (most === undefined || repeat.count > most.count) most = repeat;
  return most;
}

/** Whether a call repeats the one a round before. */
export function repeats(period: number, before: CountedCall, call: CountedCall): boolean {
  if (before.key !== call.key) return failAlike(before, call);
  return period === 1 || call.outcome === REFUSED || isSameOutcome(before.outcome, call.outcome);
}

/** Whether two calls failed alike, of a tool that does not exist. */
export function failAlike(before: CountedCall, call: CountedCall): boolean {
  const isSameName = call.missingTool !== undefined && before.missingTool === call.missingTool;
  return isSameName && call.outcome?.isError === true && isSameOutcome(before.outcome, call.outcome);
}

function mayRepeat(period: number, before: CountedCall, call: CountedCall): boolean {
  return repeats(period, before, { ...call, outcome: before.outcome });
}

function isSameOutcome(left: CallOutcome | undefined, right: CallOutcome | undefined): boolean {
  if (left === undefined || right === undefined || left.isError !== right.isError) return false;
  if (left.content.length !== right.content.length) return false;
  return left.content.every((part, index) => {
    const other = right.content[index];
    if (part.type === 'text') return other?.type === 'text' && part.text === other.text;
    return other?.type === 'media' && part.mediaType === other.mediaType && part.data === other.data && part.url === other.url;
  });
}
