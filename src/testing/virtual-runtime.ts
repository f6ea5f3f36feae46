/**
 * Virtual runtime: a clock that moves only when told, timers that fire in order of time, ids that count, randomness
 * from a seed. Nothing ever waits for real.
 *
 * A timer fires only when nothing else can run: before each one, everything that promises have put in line is done.
 * One hop through the event loop is what guarantees that, since a task begins only after all microtasks; a number of
 * awaits would only guess. What comes from outside (files, sockets) is not seen, and not waited for.
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import { isThenable } from '../core/event-dispatcher.ts';
import type { IdKind, Runtime } from '../core/runtime.ts';
import { seededRandom } from './seeded-random.ts';
import { nextTask } from './next-task.ts';

/** Options of {@link virtualRuntime}. */
export interface VirtualRuntimeOptions {
  /** What the clock shows at first, in milliseconds since the epoch. @defaultValue 0 */
  readonly start?: number | undefined;
  /** Seed of the randomness. @defaultValue 1 */
  readonly seed?: number | undefined;
  /**
   * Stands in each id before its number: `call_b1`. For the runtime of a second process that goes on with the transcript
   * of a first. @defaultValue empty: `call_1`
   */
  readonly idPrefix?: string | undefined;
}

/** A runtime under a test's control. Made by {@link virtualRuntime}. */
export interface VirtualRuntime extends Runtime {
  /** How many timers wait. */
  readonly pendingTimers: number;
  /** When the next timer is due, on this clock; undefined if none waits. */
  readonly nextTimerAt: number | undefined;
  /**
   * Moves the clock on and fires what comes due, in order of time. Rejects with what a timer's callback throws.
   *
   * @throws TypeError for what is no time; `runUntilIdle` goes as far as there are timers.
   * @throws Error if timers keep coming for 100,000 rounds.
   */
  advance(ms: number): Promise<void>;
  /** Lets everything run that does not wait for the clock. */
  flush(): Promise<void>;
  /**
   * Moves the clock from timer to timer until none is left.
   *
   * @throws Error if timers keep coming for 100,000 rounds.
   */
  runUntilIdle(): Promise<void>;
  /**
   * Moves the clock from timer to timer until the promise settles, and gives what it gives.
   *
   * @throws Error if it cannot settle: nothing can run, and no timer waits.
   */
  settle<Value>(promise: PromiseLike<Value>): Promise<Value>;
}

/** Rounds without any timer until a promise counts as stuck: some platform features take a few tasks to answer. */
const STUCK_AFTER = 100;

const STUCK =
  'settle: the promise cannot settle: nothing can run, and no timer waits. If it is a turn, look for a tool, a hook or a model ' +
  'that hangs: a gatedTool that nobody finished, hangingTool() or hanging() without an abort, a promise that nobody resolves. ' +
  'Finish it, abort the turn, or give it a deadlineMs. What waits for a file or a socket has to be awaited outside of the ' +
  'virtual clock, or done without in the test: inProcessSessionStore() instead of files, a scripted model instead of a server.';

/** Timers fired by one `runUntilIdle` or `advance` until they count as endless. */
const ENDLESS_AFTER = 100_000;
/** The same for `settle`, in which hours may pass. */
const NEVER_SETTLES_AFTER = 1_000_000;

const EXAMPLE = 'virtualRuntime({ start: 1_000, seed: 2 })';
const OPTIONS: Readonly<Record<keyof VirtualRuntimeOptions, true>> = { start: true, seed: true, idPrefix: true };

/**
 * Makes a runtime under a test's control.
 *
 * @throws TypeError for options that do not exist or are no numbers.
 */
export function virtualRuntime(options: VirtualRuntimeOptions = {}): VirtualRuntime {
  assertOptions(options, OPTIONS, { taker: 'virtualRuntime', example: EXAMPLE });
  assertNumbers(options, { start: { least: -Number.MAX_VALUE }, seed: { least: -Number.MAX_VALUE } }, { taker: 'virtualRuntime', example: EXAMPLE });
  const { start = 0, seed = 1, idPrefix = '' } = options;
  if (typeof idPrefix !== 'string') throw new TypeError(`virtualRuntime: \`idPrefix\` must be a text, not ${typeof idPrefix}. For example: virtualRuntime({ idPrefix: 'b_' }).`);
  const timers = new TimerQueue();
  const counts = new Map<IdKind, number>();
  const random = seededRandom(seed);
  let now = start;

  const fireNext = (): void => {
    const timer = timers.shift();
    if (timer === undefined) return;
    now = Math.max(now, timer.at);
    timer.callback();
  };

  return {
    now: () => now,
    setTimer: (delayMs, callback) => {
      if (delayMs === Infinity) return () => undefined;
      return timers.add(now + (delayMs > 0 ? delayMs : 0), callback);
    },
    createId: (kind) => {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      return `${kind}_${idPrefix}${count}`;
    },
    random,
    get pendingTimers() {
      return timers.size;
    },
    get nextTimerAt() {
      return timers.nextAt;
    },
    async advance(ms) {
      const given: number | undefined = ms;
      assertNumbers({ ms: given ?? Number.NaN }, { ms: { least: 0 } }, { taker: 'advance', example: 'runtime.advance(1_000)' });
      const end = now + ms;
      await nextTask();
      for (let round = 0; (timers.nextAt ?? Infinity) <= end; round += 1) {
        if (round === ENDLESS_AFTER) throw new Error(`advance: timers keep coming after ${ENDLESS_AFTER} of them.`);
        fireNext();
        await nextTask();
      }
      now = Math.max(now, end);
    },
    flush: nextTask,
    async runUntilIdle() {
      await nextTask();
      for (let round = 0; timers.size > 0; round += 1) {
        if (round === ENDLESS_AFTER) throw new Error(`runUntilIdle: timers keep coming after ${ENDLESS_AFTER} of them.`);
        fireNext();
        await nextTask();
      }
    },
    async settle(promise) {
      const given: unknown = promise;
      if (!isThenable(given)) throw new TypeError('settle takes a promise, such as that of a turn. For example: runtime.settle(turn.result).');
      const progress = { isSettled: false };
      const onSettled = (): void => {
        progress.isSettled = true;
      };
      promise.then(onSettled, onSettled);
      await nextTask();
      let fired = 0;
      for (let idle = 0; !progress.isSettled; idle += 1) {
        if (idle === STUCK_AFTER) throw new Error(STUCK);
        if (fired === NEVER_SETTLES_AFTER) throw new Error(`settle: timers keep coming after ${NEVER_SETTLES_AFTER} of them, and the promise does not settle.`);
        if (timers.size > 0) {
          idle = 0;
          fired += 1;
          fireNext();
        }
        await nextTask();
      }
      return promise;
    },
  };
}

interface Timer {
  readonly at: number;
  /** Which of the queue's timers it is: those due at the same time fire in the order in which they were set. */
  readonly number: number;
  readonly callback: () => void;
}

/** Timers in the order in which they fire. */
class TimerQueue {
  readonly #timers: Timer[] = [];
  #count = 0;

  get size(): number {
    return this.#timers.length;
  }

  get nextAt(): number | undefined {
    return this.#timers[0]?.at;
  }

  /** @returns Takes the timer out again. */
  add(at: number, callback: () => void): () => void {
    this.#count += 1;
    const timer: Timer = { at, number: this.#count, callback };
    this.#timers.splice(this.#placeOf(timer), 0, timer);
    return () => {
      const place = this.#placeOf(timer);
      if (this.#timers[place] === timer) this.#timers.splice(place, 1);
    };
  }

  shift(): Timer | undefined {
    return this.#timers.shift();
  }

  /** Where a timer stands, or belongs. */
  #placeOf(timer: Timer): number {
    let low = 0;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#timers[middle];
      if (other !== undefined && isBefore(other, timer)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function isBefore(left: Timer, right: Timer): boolean {
  return left.at < right.at || (left.at === right.at && left.number < right.number);
}
