/**
 * Runtime: the clock, timers, ids and randomness. The only sources of non-determinism in the loop: with the same
 * runtime, model and tools a transcript is byte-identical.
 */

/** What an id is for; its first word. */
export type IdKind = 'turn' | 'step' | 'message' | 'call' | 'session';

/** Where the loop gets time, ids and randomness from. */
export interface Runtime {
  /** Milliseconds since the epoch; whole. */
  now(): number;
  /**
   * Calls back once after at least `delayMs` milliseconds; never for `Infinity`.
   *
   * @returns Cancels the timer; calling it again, or after the timer fired, does nothing.
   */
  setTimer(delayMs: number, callback: () => void): () => void;
  /** A new id: letters, digits, `_` and `-` only, at most 40 characters, never given twice. */
  createId(kind: IdKind): string;
  /** A number of at least 0 and below 1. */
  random(): number;
}

/** Longest delay that timers of JavaScript take; a larger one would fire at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** The runtime of the process: system clock and timers, ids that are unique across processes. */
export const systemRuntime: Runtime = createSystemRuntime();

function createSystemRuntime(): Runtime {
  let seed = '';
  let count = 0;
  return {
    now: () => Date.now(),
    setTimer,
    createId: (kind) => {
      // Made on first use: some edge runtimes refuse randomness while a module loads.
      if (seed === '') seed = randomSeed();
      count += 1;
      return `${kind}_${seed}${count.toString(36)}`;
    },
    random: () => Math.random(),
  };
}

function setTimer(delayMs: number, callback: () => void): () => void {
  if (delayMs === Infinity) return () => undefined;
  const part = Math.min(Math.max(0, delayMs), MAX_TIMER_MS);
  let timer = setTimeout(onTime, part);
  let left = delayMs - part;
  function onTime(): void {
    if (left <= 0) {
      callback();
      return;
    }
    const next = Math.min(left, MAX_TIMER_MS);
    left -= next;
    timer = setTimeout(onTime, next);
  }
  return () => {
    clearTimeout(timer);
  };
}

function randomSeed(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => (byte % 36).toString(36)).join('');
}

/**
 * Waits.
 *
 * @param delayMs - Milliseconds; `Infinity` waits for the signal alone.
 * @param options - The clock, and a signal that ends the wait: the promise then rejects with `signal.reason`.
 */
export function sleep(
  delayMs: number,
  options: { readonly runtime: Runtime; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const { runtime, signal } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error);
      return;
    }
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason as Error);
    };
    const cancel = runtime.setTimer(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
