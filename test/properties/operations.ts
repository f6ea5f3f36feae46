/**
 * Operations: what a piece of work costs, counted and never timed, so that a slow machine changes nothing.
 *
 * - `countExecutions` counts how often each function and each block of `src/core` was executed (V8's precise coverage).
 * - `countCalls` counts calls of platform functions that do work without executing any of our code.
 * - `countReads` counts reads of properties of a value and of all that hangs off it.
 */
import { Session } from 'node:inspector';
import { isRecord } from './plain.ts';

interface CoverageResult {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly { readonly ranges: readonly { readonly count: number }[] }[];
  }[];
}

let session: Session | undefined;

function post(method: string, parameters: object = {}): Promise<unknown> {
  session ??= connect();
  return new Promise((resolve, reject) => {
    session?.post(method, parameters, (error, result) => {
      if (error === null) resolve(result);
      else reject(new Error(error.message));
    });
  });
}

function connect(): Session {
  const made = new Session();
  made.connect();
  return made;
}

/** V8 now and then loses counts of a function, and never makes any up: the highest of so many counts is the true one. */
const TRIES = 4;

/** How often code of `src/core` is executed while `work` runs: calls of functions, and runs of each block in them. */
export async function countExecutions(work: () => unknown): Promise<number> {
  let most = 0;
  for (let index = 0; index < TRIES; index += 1) {
    await startCounting();
    await work();
    most = Math.max(most, await takeExecutions());
  }
  return most;
}

/** Begins to count executions, from zero. */
export async function startCounting(): Promise<void> {
  await post('Profiler.enable');
  await post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  await post('Profiler.takePreciseCoverage');
}

/** Executions since counting began. */
export async function takeExecutions(): Promise<number> {
  const { result } = (await post('Profiler.takePreciseCoverage')) as CoverageResult;
  let count = 0;
  for (const { url, functions } of result) {
    if (!url.includes('/src/core/')) continue;
    for (const { ranges } of functions) for (const range of ranges) count += range.count;
  }
  return count;
}

/** How often each platform function was called. */
export interface CallCounts {
  parse: number;
  stringify: number;
  clone: number;
}

/** Counts calls of what parses, serialises and clones, until `stop`. Nothing else of the process may run meanwhile. */
export function countCalls(): { readonly counts: CallCounts; stop(): void } {
  const counts: CallCounts = { parse: 0, stringify: 0, clone: 0 };
  const { parse, stringify } = JSON;
  const { structuredClone: clone } = globalThis;
  JSON.parse = (...given: Parameters<typeof parse>): unknown => {
    counts.parse += 1;
    return parse(...given);
  };
  JSON.stringify = ((...given: Parameters<typeof stringify>): string => {
    counts.stringify += 1;
    return stringify(...given);
  }) as typeof stringify;
  globalThis.structuredClone = ((...given: Parameters<typeof clone>): unknown => {
    counts.clone += 1;
    return clone(...given);
  }) as typeof clone;
  return {
    counts,
    stop: () => {
      JSON.parse = parse;
      JSON.stringify = stringify;
      globalThis.structuredClone = clone;
    },
  };
}

/** Hands out values that count what is read of them. */
export class ReadCounter {
  reads = 0;
  readonly #proxies = new WeakMap<object, object>();

  /** The same value, but every read of a property of it, or of anything below it, is counted. */
  watch<Value>(value: Value): Value {
    if (!isRecord(value) && !Array.isArray(value)) return value;
    const known = this.#proxies.get(value);
    // A proxy of a value has the value's type.
    if (known !== undefined) return known as Value;
    const proxy: object = new Proxy(value as object, {
      get: (target, key, receiver) => {
        this.reads += 1;
        return this.watch(Reflect.get(target, key, receiver) as unknown);
      },
      ownKeys: (target) => {
        this.reads += 1;
        return Reflect.ownKeys(target);
      },
    });
    this.#proxies.set(value, proxy);
    // What is watched already is not watched twice.
    this.#proxies.set(proxy, proxy);
    return proxy as Value;
  }
}
