/**
 * Waiting in real time: a fake server is outside the process's promises, and no virtual clock moves it.
 *
 * Time counts in slices, so that a process that stood still for a while has not used its limit up.
 */
import { systemRuntime, type Runtime } from '../../core/runtime.ts';

const SLICES = 20;

/** Waits, in slices. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => startLimit(ms, resolve));
}

/** Calls back when the time is up. @returns Cancels it. */
export function startLimit(limitMs: number, onTime: () => void): () => void {
  let left = SLICES;
  const onSlice = (): void => {
    left -= 1;
    if (left <= 0) onTime();
    else timer = setTimeout(onSlice, limitMs / SLICES);
  };
  let timer = setTimeout(onSlice, limitMs / SLICES);
  return () => clearTimeout(timer);
}

/** A promise that somebody else resolves. */
export interface Gate {
  /** Resolves when the gate opens. */
  readonly opened: Promise<void>;
  /** Opens it; again does nothing. */
  open(this: void): void;
}

/** Makes a gate, closed. */
export function createGate(): Gate {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** The runtime of the process, with a count of the timers that wait. */
export function countingRuntime(): { readonly runtime: Runtime; readonly pendingTimers: () => number } {
  const pending = new Set<object>();
  const runtime: Runtime = {
    ...systemRuntime,
    setTimer(delayMs, callback) {
      const timer = {};
      pending.add(timer);
      const cancel = systemRuntime.setTimer(delayMs, () => {
        pending.delete(timer);
        callback();
      });
      return () => {
        pending.delete(timer);
        cancel();
      };
    },
  };
  return { runtime, pendingTimers: () => pending.size };
}
