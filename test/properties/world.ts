/**
 * World: the time that a played scenario happens in, and the record of what its fakes saw and did.
 *
 * Fakes wait by the world's own clock; the loop gets the same clock through `loopRuntime`, which counts its timers. So
 * what the loop leaves behind is told from what a fake, which may be as bad as it likes, still waits for.
 */
import type { Runtime, ToolAccess, Usage } from 'turnloop';
import { virtualRuntime, type VirtualRuntime } from 'turnloop/testing';
import type { CallInput, Pace } from './scenario.ts';

/** One run of a tool. */
export interface ToolRunLog {
  readonly toolCallId: string;
  readonly name: string;
  readonly idempotencyKey: string;
  readonly input: CallInput;
  /** What it touched. */
  readonly accesses: readonly ToolAccess[];
  readonly resumed: boolean;
  /** Position in the order of all starts and ends. */
  readonly start: number;
  end: number | undefined;
  /** Virtual time of start and end. */
  readonly startedAt: number;
  endedAt: number | undefined;
}

/** Tokens that a fake told the loop of. */
export interface ToldUsage {
  readonly usage: Usage;
  readonly at: number;
  /** False if the loop may be right not to count it. */
  readonly certain: boolean;
}

/** The time and the record of one played turn. */
export class World {
  readonly runtime: VirtualRuntime;
  /** The clock that the loop is given. */
  readonly loopRuntime: Runtime;
  readonly runs: ToolRunLog[] = [];
  readonly told: ToldUsage[] = [];
  /** Ids of the calls that a `finalizeToolResult` hook was asked about, in order. */
  readonly finalized: string[] = [];
  #loopTimers = 0;
  #order = 0;
  readonly #late: ((index: number) => void)[] = [];

  constructor(options: { readonly idPrefix?: string; readonly start?: number } = {}) {
    this.runtime = virtualRuntime(options);
    const { runtime } = this;
    this.loopRuntime = {
      now: () => runtime.now(),
      createId: (kind) => runtime.createId(kind),
      random: () => runtime.random(),
      setTimer: (delayMs, callback) => this.#setLoopTimer(delayMs, callback),
    };
  }

  /** Timers of the loop that neither fired nor were cancelled. */
  get loopTimers(): number {
    return this.#loopTimers;
  }

  #setLoopTimer(delayMs: number, callback: () => void): () => void {
    if (delayMs === Infinity) return () => undefined;
    let isOpen = true;
    const close = (): void => {
      if (isOpen) this.#loopTimers -= 1;
      isOpen = false;
    };
    this.#loopTimers += 1;
    const cancel = this.runtime.setTimer(delayMs, () => {
      close();
      callback();
    });
    return () => {
      close();
      cancel();
    };
  }

  /** A number that grows with each start and end of anything. */
  tick(): number {
    this.#order += 1;
    return this.#order;
  }

  /** Gives what `work` gives, after what `pace` says; `work` may throw. */
  take<Value>(pace: Pace, signal: AbortSignal | undefined, work: () => Value | Promise<Value>): Value | Promise<Value> {
    if (pace === 'sync') return work();
    if (pace === 'deaf') return this.late<Value>();
    return this.sleep(pace === 'hangs' ? Infinity : pace, signal).then(work);
  }

  /** Waits so many virtual milliseconds; rejects when the signal aborts. */
  sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        cancel();
        reject(signal?.reason as Error);
      };
      const cancel = this.runtime.setTimer(ms, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** A promise that settles only in {@link releaseLate}. */
  late<Value>(): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#late.push((index) => {
        // Garbage on purpose: whoever still listens must not care.
        if (index % 2 === 0) resolve('late' as Value);
        else reject(new Error('late'));
      });
    });
  }

  /** Lets the clock run out, then lets everything that hung end, some well and some badly, and the clock run out again. */
  async releaseLate(): Promise<void> {
    await this.runtime.runUntilIdle();
    for (let index = 0; this.#late.length > 0 || index === 0; index += 1) {
      const late = this.#late.splice(0);
      late.forEach((settle, position) => {
        settle(position);
      });
      await this.runtime.runUntilIdle();
    }
  }
}
