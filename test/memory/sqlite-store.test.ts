/** What only the memory store in SQLite has: other processes, other libraries, and rows that nobody can read. */
import path from 'node:path';
import { createClient } from '@libsql/client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMemory, hashEmbedder, inProcessMemoryStore, type MemoryEntry, type MemoryStore } from 'turnloop/memory';
import { sqliteMemoryStore, type SyncMemoryClient } from 'turnloop/memory/sqlite';
import { virtualRuntime } from 'turnloop/testing';
import { law } from '../properties/law.ts';
import { readFacts, readQuestions, recallOf } from './recall-measure.ts';
import { addAll, BOB, entryOf, temporaryFolder } from './support.ts';

const inMemory = (): MemoryStore => sqliteMemoryStore({ client: createClient({ url: ':memory:' }) });

async function fileUrl(): Promise<string> {
  return `file:${path.join(await temporaryFolder(), 'memory.db')}`;
}

/** The library of the platform, where there is one that takes functions. */
interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => SyncMemoryClient & { close(): void };
}
const { getBuiltinModule } = process as { readonly getBuiltinModule?: (name: string) => unknown };
const nodeSqlite = getBuiltinModule?.('node:sqlite') as NodeSqlite | undefined;
const takesFunctions = nodeSqlite !== undefined && 'function' in nodeSqlite.DatabaseSync.prototype;

describe('a memory store in SQLite', () => {
  it('E4 E8 recalls as much as the other stores', async () => {
    const [facts, questions] = [await readFacts(), await readQuestions()];
    const memory = createMemory({ store: inMemory(), embedder: hashEmbedder(), runtime: virtualRuntime({ start: 1_790_000_000_000 }) });
    await addAll(memory.store, facts);
    const recall = await recallOf(async (question) => (await memory.find({ text: question, limit: 15 })).map(({ entry }) => entry.id), questions);

    expect(recall).toBeGreaterThanOrEqual(0.8);
  });

  const WORDS = ['tea', 'teas', 'green', 'train', 'Berlin', 'wife', 'husband', '喜欢', '咖啡', '茶', 'fooBar', 'authentication', 'authentification', '42', 'é', 'zebra', '\u0000'];
  const texts = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 8 }).map((words) => `. ${words.join(' ')}`);
  const vectors = fc.tuple(fc.integer({ min: -9, max: 9 }), fc.integer({ min: 1, max: 9 })).map(([x, y]) => Float32Array.from([x / Math.hypot(x, y), y / Math.hypot(x, y)]));
  const additions = fc.array(fc.record({ text: texts, values: vectors, embedder: fc.constantFrom('e', 'f', undefined) }), { maxLength: 12 });

  law('E8 scores as the store in the process does, by words and by vector', fc.tuple(additions, texts, vectors), async ([list, text, values]) => {
    const [store, model] = [inMemory(), inProcessMemoryStore()];
    for (const [index, { embedder, ...each }] of list.entries()) {
      const addition = { entry: entryOf({ id: String(index), text: each.text }), vector: embedder === undefined ? undefined : { embedder, values: each.values } };
      expect(await store.add([addition])).toBe(await model.add([addition]));
    }
    const question = { text, vector: { embedder: 'e', values }, limit: 20 };
    const rounded = async (from: MemoryStore): Promise<readonly unknown[]> =>
      (await from.find(question)).map(({ entry, textScore, similarity }) => `${entry.id} ${textScore.toFixed(6)} ${similarity?.toFixed(4)}`).sort();

    expect(await rounded(store)).toStrictEqual(await rounded(model));
  }, { numRuns: 60 });

  it('E8 keeps what it was told beyond its process, and sees what others write', async () => {
    const url = await fileUrl();
    const [one, other] = [sqliteMemoryStore({ client: createClient({ url }) }), sqliteMemoryStore({ client: createClient({ url }) })];
    await addAll(one, [entryOf({ id: 'a', text: 'Ada drinks tea.' })]);
    await other.update([{ id: 'a', pinned: true }]);

    expect(await one.get('a')).toStrictEqual(entryOf({ id: 'a', text: 'Ada drinks tea.', pinned: true }));
    expect((await other.find({ text: 'tea', limit: 1 })).map(({ entry }) => entry.id)).toStrictEqual(['a']);
  });

  it('E8 loses no change of an entry that two stores change at once', async () => {
    const url = await fileUrl();
    const stores = Array.from({ length: 3 }, () => sqliteMemoryStore({ client: createClient({ url }) }));
    await addAll(stores[0]!, [entryOf({ id: 'a' })]);
    await Promise.all(stores.flatMap((store) => Array.from({ length: 5 }, (_, at) => store.update([{ id: 'a', usedAt: at }]))));

    expect(await stores[0]!.get('a')).toMatchObject({ uses: 15, lastUsedAt: 4 });
  });

  it('adds and changes all or nothing', async () => {
    const client = createClient({ url: ':memory:' });
    const store = sqliteMemoryStore({ client });
    await addAll(store, [entryOf({ id: 'a', text: 'one' })]);
    await client.execute("CREATE TRIGGER refuse BEFORE INSERT ON turnloop_memories WHEN new.kind = 'working' BEGIN SELECT RAISE(ABORT, 'no working notes'); END");
    const failure: unknown = await addAll(store, [entryOf({ id: 'b' }), entryOf({ id: 'c', kind: 'working' })]).catch((error: unknown) => error);

    expect(failure).toMatchObject({ name: 'MemoryError', code: 'store_failed', message: expect.stringMatching(/memory is as it was: .*no working notes/) });
    expect((await store.list()).map(({ id }) => id)).toStrictEqual(['a']);
    expect(await store.find({ text: 'Note b', limit: 5 })).toStrictEqual([]);
  });

  it('tells which row is no entry, and leaves it', async () => {
    const client = createClient({ url: ':memory:' });
    const store = sqliteMemoryStore({ client });
    await addAll(store, [entryOf({ id: 'a' }), entryOf({ id: 'b', ...BOB })]);
    await client.execute("UPDATE turnloop_memories SET kind = 'rumour' WHERE id = '\"a\"'");

    await expect(store.list()).rejects.toMatchObject({ code: 'store_broken', message: expect.stringMatching(/cannot be read: "a"\. Nothing was changed/) });
    expect(await store.list({ owners: [BOB] })).toHaveLength(1);
  });

  it('leaves the database open when it is closed', async () => {
    const client = createClient({ url: ':memory:' });
    const store = sqliteMemoryStore({ client });
    await addAll(store, [entryOf({ id: 'a' })]);
    await store.close();

    expect(await sqliteMemoryStore({ client }).list()).toHaveLength(1);
  });

  it('finds nothing by vectors of another length, whatever the name of their embedder', async () => {
    const store = inMemory();
    await store.add([{ entry: entryOf({ id: 'a' }), vector: { embedder: 'e', values: Float32Array.from([1, 0, 0]) } }]);

    expect(await store.find({ vector: { embedder: 'e', values: Float32Array.from([1, 0]) }, limit: 5 })).toStrictEqual([]);
  });

  it('takes a question of thousands of words', async () => {
    const store = inMemory();
    await addAll(store, [entryOf({ id: 'a', text: 'zebra' })]);
    const text = Array.from({ length: 3_000 }, (_, index) => `word${index}x`).join(' ');

    expect(await store.find({ text: `${text} zebra`, limit: 5 })).toHaveLength(1);
  });

  it.each<[unknown, RegExp]>([
    [{}, /`client` is not an opened SQLite database.*createClient/],
    [{ client: { exec: () => {}, prepare: () => {} } }, /takes no functions, which compare vectors: use Node 22\.13/],
    [{ client: createClient({ url: ':memory:' }), path: 'x' }, /no option `path`; it takes client/],
  ])('asks for an opened database where %j is given', (options, message) => {
    expect(() => sqliteMemoryStore(options as never)).toThrow(message);
    expect(() => sqliteMemoryStore(options as never)).toThrow(TypeError);
  });

  it.runIf(takesFunctions)('E8 does the same with the library of Node', async () => {
    const facts: readonly MemoryEntry[] = (await readFacts()).slice(0, 100);
    const [store, model] = [sqliteMemoryStore({ client: new nodeSqlite!.DatabaseSync(':memory:') }), inProcessMemoryStore()];
    const vector = (index: number): { embedder: string; values: Float32Array } => ({ embedder: 'e', values: Float32Array.from([Math.cos(index), Math.sin(index)]) });
    for (const one of [store, model]) await one.add(facts.map((entry, index) => ({ entry, vector: vector(index) })));
    const question = { text: 'dentist 过敏', vector: vector(0.5), limit: 10 };
    const ids = async (from: MemoryStore): Promise<readonly string[]> => (await from.find(question)).map(({ entry }) => entry.id);

    expect(await ids(store)).toStrictEqual(await ids(model));
  });
});
