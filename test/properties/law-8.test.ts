/**
 * Law 8, determinism: same runtime, model and tools give a byte-identical transcript. All time, ids and randomness come
 * from the runtime. Black box.
 */
import { describe, expect } from 'vitest';
import { law } from './law.ts';
import { play } from './play.ts';
import { scenarios } from './scenario.ts';

describe('law-8 determinism', () => {
  law('law-8: the same scenario gives the same bytes, in the record, live and in every request', scenarios(), async (scenario) => {
    const first = await play(scenario);
    const second = await play(scenario);

    expect(JSON.stringify(second.transcript.events)).toBe(JSON.stringify(first.transcript.events));
    expect(JSON.stringify(second.dispatched)).toBe(JSON.stringify(first.dispatched));
    expect(second.requests.map(({ json }) => json)).toStrictEqual(first.requests.map(({ json }) => json));
    expect(JSON.stringify(second.result)).toBe(JSON.stringify(first.result));
  });

  law('law-8: no time, id or random number comes from anywhere but the runtime', scenarios(), async (scenario) => {
    const watch = watchGlobals();
    try {
      await play(scenario);
    } finally {
      watch.stop();
    }

    expect(watch.uses).toStrictEqual([]);
  });
});

/** Notes each use of the platform's clock, timers and randomness from the loop's own files. */
function watchGlobals(): { readonly uses: readonly string[]; stop(): void } {
  const uses: string[] = [];
  const restore: (() => void)[] = [];
  const watch = (owner: object, name: string): void => {
    const original: unknown = Reflect.get(owner, name);
    Reflect.set(owner, name, (...given: unknown[]): unknown => {
      if (/\/src\/core\//.test(new Error('who').stack ?? '')) uses.push(name);
      return Reflect.apply(original as () => unknown, owner, given) as unknown;
    });
    restore.push(() => Reflect.set(owner, name, original));
  };
  watch(Date, 'now');
  watch(Math, 'random');
  watch(globalThis, 'setTimeout');
  watch(globalThis, 'setInterval');
  watch(crypto, 'randomUUID');
  watch(crypto, 'getRandomValues');
  return {
    uses,
    stop: () => {
      restore.forEach((undo) => {
        undo();
      });
    },
  };
}
