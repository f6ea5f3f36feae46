/** Allocation: how many bytes some work allocates, counted in a process that has room enough not to collect. */
import { PerformanceObserver } from 'node:perf_hooks';
import { collectGarbage, delay, expectEqual } from './timing.ts';

/** Flags of a process for {@link allocatedBytes}. */
export const ROOMY_FLAGS: readonly string[] = ['--expose-gc', '--min-semi-space-size=256', '--max-semi-space-size=256'];

/** Bytes that the work allocates. Warm it up first. @throws Error if anything was collected meanwhile. */
export async function allocatedBytes(work: () => Promise<void>): Promise<number> {
  let collections = 0;
  const observer = new PerformanceObserver((list) => {
    collections += list.getEntries().length;
  });
  observer.observe({ entryTypes: ['gc'] });
  collectGarbage();
  // Entries about collections come with the next turn of the event loop.
  await delay(20);
  collections = 0;
  const before = process.memoryUsage().heapUsed;
  await work();
  const bytes = process.memoryUsage().heapUsed - before;
  await delay(20);
  observer.disconnect();
  expectEqual('collections while allocations were counted', collections, 0);
  return bytes;
}
