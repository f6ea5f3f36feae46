/** Time limit: work that is given up after a while, whether or not it listens to its signal. */
import type { Runtime } from '../core/runtime.ts';

/** When work is given up. */
export interface TimeLimit {
  /** After how many milliseconds. */
  readonly ms: number;
  /** Clock and timers. */
  readonly runtime: Runtime;
  /** Why, when the time is over. */
  readonly reason: () => Error;
  /** Gives it up sooner. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Does some work under a signal that aborts when the time is over, or with the signal given.
 *
 * @returns What the work gives. Rejects with `reason()` or `signal.reason` as soon as it is given up; what the work does then
 * is nobody's business any more.
 */
export async function withinTime<Result>(limit: TimeLimit, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const { ms, runtime, reason, signal } = limit;
  signal?.throwIfAborted();
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  const cancel = runtime.setTimer(ms, () => controller.abort(reason()));
  try {
    const givenUp = new Promise<never>((_resolve, reject) => {
      controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true });
    });
    return await Promise.race([work(controller.signal), givenUp]);
  } finally {
    cancel();
    signal?.removeEventListener('abort', onAbort);
  }
}
