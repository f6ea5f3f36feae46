/** Timing: how much processor time something takes once the engine knows it, and checks that it was done at all. */

/** Processor time to warm up for, and to measure for. */
export interface Budget {
  readonly warmMs: number;
  readonly measureMs: number;
}

const LEAST_RUNS = 3;

/** Milliseconds of processor time that this process has used so far, those of its collector and compiler included. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Processor time of one run, in milliseconds: the mean over all runs, collections included. */
export async function cpuMsPerRun(work: () => unknown, { warmMs, measureMs }: Budget): Promise<number> {
  for (const end = cpuMs() + warmMs; cpuMs() < end; ) await work();
  const start = cpuMs();
  let runs = 0;
  for (; cpuMs() < start + measureMs || runs < LEAST_RUNS; runs += 1) await work();
  return (cpuMs() - start) / runs;
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
