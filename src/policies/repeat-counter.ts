/**
 * Repeat counter: how often a sequence of calls has come round to the same call.
 *
 * - A cycle of one call is the same call again, whatever it gave. A longer cycle has to give the same results too: calls
 *   that take turns and learn something new each time are work.
 * - It keeps as many calls as the longest cycle has, and a number for each length: the past is never walked again.
 */
import type { ToolResultPart } from '../core/message.ts';

/** A call of the sequence. */
export interface CountedCall {
  /** Says which call it is. */
  readonly key: string;
  /** What it gave; undefined while that is not known: then it is taken to have given the same. */
  content: readonly ToolResultPart[] | undefined;
}

/** A cycle that a call goes on with. */
export interface Repeat {
  /** Calls in the cycle. */
  readonly period: number;
  /** How often this call was made in it, this time included: at least 2. */
  readonly count: number;
  /** The same call, one round before. */
  readonly before: CountedCall;
}

/** Counts the repeats in a sequence of calls, one call after the other. */
export class RepeatCounter {
  readonly #maxCycle: number;
  /** The last calls, newest first. */
  #last: readonly CountedCall[] = [];
  /** For each period from 1 on, how many calls in a row are the same as the one so many before them. */
  #runs: readonly number[];

  constructor(maxCycle: number) {
    this.#maxCycle = maxCycle;
    this.#runs = Array.from({ length: maxCycle }, () => 0);
  }

  /** A counter that goes on from here by itself. */
  fork(): RepeatCounter {
    const fork = new RepeatCounter(this.#maxCycle);
    fork.#last = this.#last;
    fork.#runs = this.#runs;
    return fork;
  }

  /** Takes the next call. @returns The cycles it goes on with, shortest first. */
  push(call: CountedCall): readonly Repeat[] {
    const repeats: Repeat[] = [];
    this.#runs = this.#runs.map((run, index) => {
      const before = this.#last[index];
      const period = index + 1;
      if (before === undefined || before.key !== call.key || !mayRepeat(period, before.content, call.content)) return 0;
      repeats.push({ period, count: 1 + Math.ceil((run + 1) / period), before });
      return run + 1;
    });
    this.#last = [call, ...this.#last].slice(0, this.#maxCycle);
    return repeats;
  }
}

/** The cycle that has come round most often; the shortest of several. */
export function mostRepeated(repeats: readonly Repeat[]): Repeat | undefined {
  let most: Repeat | undefined;
  for (const repeat of repeats) if (most === undefined || repeat.count > most.count) most = repeat;
  return most;
}

/** Whether what two calls gave leaves the one to be a repeat of the other. */
export function mayRepeat(
  period: number,
  before: readonly ToolResultPart[] | undefined,
  content: readonly ToolResultPart[] | undefined,
): boolean {
  return period === 1 || before === undefined || content === undefined || isSameContent(before, content);
}

function isSameContent(left: readonly ToolResultPart[], right: readonly ToolResultPart[]): boolean {
  if (left === right) return true;
  if (left.length !== right.length) return false;
  return left.every((part, index) => {
    const other = right[index];
    if (part.type === 'text') return other?.type === 'text' && part.text === other.text;
    return other?.type === 'media' && part.mediaType === other.mediaType && part.data === other.data && part.url === other.url;
  });
}
