/** Timing: how long something takes once the engine knows it, and checks that it was done at all. */
import { median } from './statistics.ts';

/** How long to warm up, and how long to measure. */
export interface Budget {
  readonly warmMs: number;
  readonly measureMs: number;
}

const LEAST_SAMPLES = 5;

/**
 * Median time of one call, in milliseconds.
 *
 * Samples that are compared with each other should take about as long as each other: on a busy machine a longer one is
 * more likely to be interrupted.
 */
export async function medianMs(work: () => unknown, { warmMs, measureMs }: Budget): Promise<number> {
  for (const end = performance.now() + warmMs; performance.now() < end; ) await work();
  const samples: number[] = [];
  for (const end = performance.now() + measureMs; performance.now() < end || samples.length < LEAST_SAMPLES; ) {
    const start = performance.now();
    await work();
    samples.push(performance.now() - start);
  }
  return median(samples);
}

/** Makes a function that does the work several times, one after the other. */
export function repeat(times: number, work: () => Promise<unknown>): () => Promise<void> {
  return async () => {
    for (let count = 0; count < times; count += 1) await work();
  };
}

/** A measured process that did something else than it was to measure has no figure. */
export function expectEqual(what: string, actual: unknown, expected: unknown): void {
  if (actual !== expected) throw new Error(`${what}: ${String(actual)}, not ${String(expected)}`);
}

/** Collects garbage, in a process that was started with `--expose-gc`. */
export function collectGarbage(): void {
  if (globalThis.gc === undefined) throw new Error('This measurement needs --expose-gc.');
  globalThis.gc();
}

/** Waits. */
export function delay(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}
