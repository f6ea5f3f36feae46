/** What only the store in the process has: copies that nobody can change, and that cost little. */
import { describe, expect, it } from 'vitest';
import { inProcessSessionStore, type SessionEvent } from 'turnloop/sessions';
import { virtualRuntime } from 'turnloop/testing';
import { snapshotOf } from './support/samples.ts';

const ID = 'session_1';
const removed = (number: number): SessionEvent => ({ type: 'input.removed', at: number, messageId: `message_${number}` });
const odd = (data: unknown): SessionEvent => ({ type: 'odd', data }) as never;

describe('the store in the process', () => {
  it('gives out what nobody can change', async () => {
    const store = inProcessSessionStore();
    const log = await store.create({ sessionId: ID, createdAt: 0, metadata: { tags: ['a'] } });
    await log.append([odd({ list: [{ deep: 1 }] })]);
    const { header, events } = await store.read(ID);
    const [event] = events as unknown as readonly { data: { list: { deep: number }[] } }[];

    expect(() => (event!.data.list[0]!.deep = 2)).toThrow(TypeError);
    expect(() => event!.data.list.push({ deep: 3 })).toThrow(TypeError);
    expect(() => (header.metadata!['tags'] as string[]).push('b')).toThrow(TypeError);
  });

  it('does not freeze what belongs to who appends it', async () => {
    const event = odd({ list: [1] });
    await (await inProcessSessionStore().create({ sessionId: ID, createdAt: 0 })).append([event]);

    expect(Object.isFrozen(event)).toBe(false);
  });

  it('keeps what JSON would keep, as the stores do that write it', async () => {
    const data = { none: undefined, date: new Date(0), list: [undefined, Number.NaN], map: new Map([[1, 2]]), skip: () => 1, bare: Object.assign(Object.create(null) as object, { a: 1 }) };
    const store = inProcessSessionStore();
    await (await store.create({ sessionId: ID, createdAt: 0 })).append([odd(data)]);

    expect((await store.read(ID)).events).toStrictEqual([{ type: 'odd', data: JSON.parse(JSON.stringify(data)) as unknown }]);
  });

  it.each<[string, unknown, RegExp]>([
    ['a number that JSON has none of', 1n, /BigInt/],
    ['a value that is nested too deep', Array.from({ length: 100_000 }).reduce<unknown>((inner) => [inner], 0), /holds itself, or is nested too deep/],
  ])('refuses %s', async (_what, data, message) => {
    const store = inProcessSessionStore();
    const log = await store.create({ sessionId: ID, createdAt: 0 });
    const failure = await log.append([removed(1), odd(data)]).catch((error: unknown) => error);

    expect(failure).toBeInstanceOf(TypeError);
    expect(String(failure)).toMatch(message);
    expect((await store.read(ID)).events).toStrictEqual([]);
  });

  it.each<[unknown, RegExp]>([
    ['now', /append takes a list of events/],
    [[{ at: 1 }], /append takes events, which have a `type`/],
  ])('refuses to append %j', async (events, message) => {
    const log = await inProcessSessionStore().create({ sessionId: ID, createdAt: 0 });

    await expect(log.append(events as never)).rejects.toThrow(message);
  });

  it('refuses options that there are not', () => {
    expect(() => inProcessSessionStore({ folder: 'x' } as never)).toThrow(/no option `folder`; it takes runtime/);
  });

  it('lists the last written first, by the clock of the runtime', async () => {
    const runtime = virtualRuntime({ start: 7_000 });
    const store = inProcessSessionStore({ runtime });
    const log = await store.create({ sessionId: ID, createdAt: 5 });
    await store.create({ sessionId: 'session_2', createdAt: 6 });
    await runtime.advance(1_000);
    await log.append([removed(1)]);
    await runtime.advance(1_000);
    // Nothing happens to a session by it.
    await log.saveSnapshot(snapshotOf(ID, 1));

    expect((await store.list()).map(({ sessionId, updatedAt }) => [sessionId, updatedAt])).toStrictEqual([
      [ID, 8_000],
      ['session_2', 7_000],
    ]);
  });
});
