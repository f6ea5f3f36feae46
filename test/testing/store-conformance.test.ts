/**
 * The conformance kit of session stores: a good store passes each case, each fault is found by the cases that are about it,
 * and each case finds some fault. The stores of the package run it in tests of their own.
 */
import { describe, expect, it } from 'vitest';
import { inProcessSessionStore } from 'turnloop/sessions';
import { type CreateStore, storeConformance, type StoreConformanceCase, type StoreConformanceCaseId, type StoreConformanceOptions } from 'turnloop/testing/conformance';
import { storeFaults } from './store-conformance-faults.ts';
import { goodStore } from './store-conformance-good.ts';

const plain: CreateStore = () => ({ store: inProcessSessionStore() });

function find(id: StoreConformanceCaseId, createStore: CreateStore, options: StoreConformanceOptions = {}): StoreConformanceCase {
  return storeConformance(createStore, options).find((each) => each.id === id)!;
}

/** What a case says that fails; undefined for one that passes. */
async function failureOf({ run }: StoreConformanceCase): Promise<string | undefined> {
  return run().then(
    () => undefined,
    (failure: unknown) => String(failure),
  );
}

describe.concurrent('a good store', () => {
  for (const { name, run } of storeConformance(goodStore)) it(name, run);
});

describe.concurrent('F6: a store is found out that', () => {
  const faults = Object.entries(storeFaults);

  it.each(faults)('%s', async (_name, { caughtBy, saying, make }) => {
    const found = await Promise.all(caughtBy.map(async (id) => [id, await failureOf(find(id, make))] as const));

    expect(found.filter(([, failure]) => failure === undefined)).toStrictEqual([]);
    expect(found[0]![1]).toMatch(saying);
  });

  it('does anything wrong that a case is about', () => {
    const found = new Set(faults.flatMap(([, { caughtBy }]) => caughtBy));

    expect(storeConformance(plain).flatMap(({ id }) => (found.has(id) ? [] : [id]))).toStrictEqual([]);
  });
});

describe('the list of cases', () => {
  it('has each id once, names that start with it, and the group that the id begins with', () => {
    const cases = storeConformance(plain);

    expect(new Set(cases.map(({ id }) => id)).size).toBe(cases.length);
    expect(cases.filter(({ id, group, name }) => !name.startsWith(`${id}: `) || !id.startsWith(`${group}.`))).toStrictEqual([]);
    expect(cases.filter(({ skipped }) => skipped !== undefined)).toStrictEqual([]);
  });

  it('keeps what is skipped, by id or by group, and says why', async () => {
    const never: CreateStore = () => {
      throw new Error('asked for a store');
    };
    const skipped = storeConformance(never, { skip: { lost: 'one process', 'list.order': 'no clock' } }).filter((each) => each.skipped !== undefined);

    expect(skipped.map(({ id }) => id)).toStrictEqual(['list.order', 'lost.taken', 'lost.refused', 'lost.close']);
    expect(skipped[0]!.name).toMatch(/^list\.order: .* \(skipped: no clock\)$/);
    expect(await Promise.all(skipped.map(failureOf))).toStrictEqual([undefined, undefined, undefined, undefined]);
  });

  it.each<[unknown, unknown, RegExp]>([
    [undefined, {}, /takes a function that makes a store.*storeConformance\(\(\) =>/],
    [plain, { skip: { 'list.ordre': 'a slip' } }, /no case or group `list\.ordre` to skip\. It has .*list\.order/],
    [plain, { skip: { constructor: 'a slip' } }, /no case or group `constructor`/],
    [plain, { skip: { lost: '' } }, /no reason for `lost`.*skip: \{/],
    [plain, { settleWithinMs: 0 }, /`settleWithinMs` is 0/],
    [plain, { skips: {} }, /has no option `?skips/],
  ])('refuses %j with %j', (createStore, options, message) => {
    expect(() => storeConformance(createStore as CreateStore, options as StoreConformanceOptions)).toThrow(TypeError);
    expect(() => storeConformance(createStore as CreateStore, options as StoreConformanceOptions)).toThrow(message);
  });
});

describe('a case', () => {
  it.each<[StoreConformanceCaseId, RegExp]>([
    ['reopen.content', /needs `reopen\(\)` of what createStore gives: offer it, or skip the case with a reason/],
    ['lost.taken', /needs `abandon\(\)`/],
    ['failure.whole', /needs `breakWrites\(\)`/],
    ['outside.untouched', /needs `outside\(\)`/],
  ])('%s does not pass unlooked at', async (id, message) => {
    expect(await failureOf(find(id, plain))).toMatch(message);
  });

  it('closes the logs that it opened and lets the storage go, whether it passes or fails', async () => {
    for (const [id, passes] of [['append.order', true], ['lost.taken', false]] as const) {
      const store = inProcessSessionStore();
      let closed = 0;
      const failure = await failureOf(find(id, () => ({ store, close: () => void (closed += 1) })));

      expect(failure === undefined).toBe(passes);
      expect(closed).toBe(1);
      for (const { sessionId } of await store.list()) expect(await store.delete(sessionId)).toBe(true);
    }
  });

  it('does not wait for a store that hangs', async () => {
    const hanging: CreateStore = () => ({ store: { ...inProcessSessionStore(), read: () => new Promise(() => {}) } });

    expect(await failureOf(find('read.missing', hanging, { settleWithinMs: 50 }))).toMatch(/did not end within 50 ms.*never settled/);
  });
});
