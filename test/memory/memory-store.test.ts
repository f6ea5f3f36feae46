/** What every store promises: ours in the process and ours in a folder. What only the folder has is in `file-store.test.ts`. */
import { beforeEach, describe, expect, it } from 'vitest';
import { type MemoryError, type MemoryStore } from 'turnloop/memory';
import { ADA, addAll, BOB, entryOf, STORES } from './support.ts';

const ids = (entries: readonly { readonly id: string }[]): readonly string[] => entries.map(({ id }) => id);
const unit = (...values: number[]): Float32Array => {
  const length = Math.hypot(...values);
  return Float32Array.from(values, (value) => value / length);
};

describe.each(STORES)('a memory store (%s)', (_name, create) => {
  let store: MemoryStore;
  beforeEach(async () => {
    store = await create();
  });
  const found = async (text: string): Promise<readonly string[]> => (await store.find({ text, limit: 10 })).map(({ entry }) => entry.id);

  it('E3 gives back what was added, every member of it', async () => {
    const entry = entryOf({ id: 'a', kind: 'experience', scope: 'project', scopeId: '../x', pinned: true, uses: 2, lastUsedAt: 7, source: { sessionId: 's', turnId: 't' } });

    expect(await store.add([{ entry }])).toBe(1);
    expect(await store.get('a')).toStrictEqual(entry);
    expect(await store.get('b')).toBeUndefined();
  });

  it('E3 leaves out an entry whose id is there', async () => {
    await addAll(store, [entryOf({ id: 'a', text: 'first' })]);

    expect(await store.add([{ entry: entryOf({ id: 'a', text: 'second' }) }, { entry: entryOf({ id: 'b' }) }, { entry: entryOf({ id: 'b' }) }])).toBe(1);
    expect((await store.get('a'))?.text).toBe('first');
  });

  it('E3 keeps what it was given, whatever becomes of the object afterwards', async () => {
    const entry = { ...entryOf({ id: 'a' }), source: { sessionId: 's' } };
    const adding = store.add([{ entry }]);
    entry.text = 'other';
    entry.source.sessionId = 'other';
    await adding;

    expect(await store.get('a')).toStrictEqual(entryOf({ id: 'a', source: { sessionId: 's' } }));
  });

  it('E3 lists the newest first, by owner, kind, time, pin and id', async () => {
    await addAll(store, [
      entryOf({ id: 'b', createdAt: 5 }),
      entryOf({ id: 'a', createdAt: 5 }),
      entryOf({ id: 'c', createdAt: 9, kind: 'working' }),
      entryOf({ id: 'd', createdAt: 1, ...BOB }),
      entryOf({ id: 'e', createdAt: 2, scope: 'session', scopeId: 'ada', pinned: true }),
    ]);

    expect(ids(await store.list())).toStrictEqual(['c', 'a', 'b', 'e', 'd']);
    expect(ids(await store.list({ limit: 2 }))).toStrictEqual(['c', 'a']);
    expect(ids(await store.list({ owners: [ADA] }))).toStrictEqual(['c', 'a', 'b']);
    expect(ids(await store.list({ owners: [BOB, { scope: 'session', scopeId: 'ada' }] }))).toStrictEqual(['e', 'd']);
    expect(ids(await store.list({ owners: [] }))).toStrictEqual([]);
    expect(ids(await store.list({ kinds: ['working'] }))).toStrictEqual(['c']);
    expect(ids(await store.list({ createdFrom: 2, createdBefore: 9 }))).toStrictEqual(['a', 'b', 'e']);
    expect(ids(await store.list({ pinned: true }))).toStrictEqual(['e']);
    expect(ids(await store.list({ pinned: false, owners: [BOB] }))).toStrictEqual(['d']);
    expect(ids(await store.list({ ids: ['a', 'd', 'x'] }))).toStrictEqual(['a', 'd']);
  });

  it('E3 forgets by id, by owner and by filter, and says how many', async () => {
    await addAll(store, [entryOf({ id: 'a' }), entryOf({ id: 'b', kind: 'working' }), entryOf({ id: 'c', ...BOB }), entryOf({ id: 'd', ...BOB })]);

    expect(await store.forget({ ids: ['a', 'x'] })).toBe(1);
    expect(await store.forget({ kinds: ['working'] })).toBe(1);
    expect(await store.forget({ owners: [BOB], ids: ['c'] })).toBe(1);
    expect(ids(await store.list())).toStrictEqual(['d']);
    expect(await found('Note')).toStrictEqual(['d']);
    expect(await store.forget({ createdFrom: 0 })).toBe(1);
    expect(await found('Note')).toStrictEqual([]);
  });

  it('E3 does not forget all because a filter says nothing', async () => {
    await addAll(store, [entryOf({ id: 'a' })]);

    await expect(store.forget({})).rejects.toThrow(TypeError);
    await expect(store.forget({ ids: undefined })).rejects.toThrow('{ createdFrom: 0 } means all entries');
    expect(await store.list()).toHaveLength(1);
  });

  it('E4 finds by words: those that have more of them, and rarer ones, first', async () => {
    await addAll(store, [
      entryOf({ id: 'tea', text: 'Ada drinks green tea.' }),
      entryOf({ id: 'cup', text: 'Ada drinks from a cup.' }),
      entryOf({ id: 'code', text: 'The build runs on Linux.' }),
    ]);

    expect(await found('What tea does she drink?')).toStrictEqual(['tea', 'cup']);
    expect(await found('   ')).toStrictEqual([]);
    expect(await found('what is the')).toStrictEqual([]);
    expect(await found('zebra')).toStrictEqual([]);
  });

  it.each([
    ['deployments', 'We deploy on Fridays.'],
    ['deploying', 'The deployed version is 4.'],
    ['allergic', 'Peanut allergy since childhood.'],
    ['RUNTURN', 'The entry is runTurn.'],
    ['run turn', 'See src/core/run-turn.ts for it.'],
    ['run_turn', 'See src/core/run-turn.ts for it.'],
    ['email', 'Her e-mail goes to a list.'],
    ['cafe', 'Meets at the Café Einstein.'],
    ['ＡＢＣ', 'The abc list is long.'],
    ['authentification', 'Uses authentication by key.'],
    ['喝什么茶', '用户喜欢喝绿茶。'],
    ['数据库', '项目用的数据库是SQLite。'],
    ['ひらがな', 'ひらがなで書いてください。'],
    ['서울에서', '그는 서울에 산다.'],
    ['กาแฟ', 'เธอชอบดื่มกาแฟดำ'],
    ['Берлине', 'Живёт в Берлин.'],
  ])('E4 finds by another form of the word: %s', async (question, text) => {
    await addAll(store, [entryOf({ id: 'other', text: 'Something else altogether, 完全不同。' }), entryOf({ id: 'it', text })]);

    expect((await found(question))[0]).toBe('it');
  });

  it('E4 finds within owners, kinds and times only', async () => {
    await addAll(store, [
      entryOf({ id: 'a', text: 'tea', createdAt: 1 }),
      entryOf({ id: 'b', text: 'tea', ...BOB, createdAt: 2 }),
      entryOf({ id: 'c', text: 'tea', kind: 'working', createdAt: 3 }),
    ]);
    const within = async (filter: object): Promise<readonly string[]> => (await store.find({ text: 'tea', limit: 10, ...filter })).map(({ entry }) => entry.id);

    expect(await within({ owners: [ADA] })).toStrictEqual(['a', 'c']);
    expect(await within({ owners: [ADA], kinds: ['fact'] })).toStrictEqual(['a']);
    expect(await within({ createdFrom: 2 })).toStrictEqual(['b', 'c']);
    expect(await within({ limit: 1 })).toStrictEqual(['a']);
  });

  it('E4 finds by vector, and tells both figures; vectors of another embedder are not compared', async () => {
    const vector = (...values: number[]): { readonly embedder: string; readonly values: Float32Array } => ({ embedder: 'e', values: unit(...values) });
    await store.add([
      { entry: entryOf({ id: 'near', text: 'apple' }), vector: vector(1, 0.1) },
      { entry: entryOf({ id: 'far', text: 'pear' }), vector: vector(-1, 1) },
      { entry: entryOf({ id: 'foreign', text: 'apple tree' }), vector: { embedder: 'f', values: unit(1, 0) } },
    ]);

    const all = await store.find({ text: 'apple', vector: vector(1, 0), limit: 10 });
    const byVector = await store.find({ vector: vector(1, 0), limit: 1 });

    expect(all.map(({ entry }) => entry.id)).toStrictEqual(['near', 'foreign', 'far']);
    expect(all.map(({ similarity }) => similarity?.toFixed(3))).toStrictEqual(['0.995', undefined, '-0.707']);
    expect(all.map(({ textScore }) => textScore > 0)).toStrictEqual([true, true, false]);
    expect(byVector.map(({ entry }) => entry.id)).toStrictEqual(['near']);
    expect(ids(await store.list({ lacksVectorOf: 'e' }))).toStrictEqual(['foreign']);
  });

  it('E4 changes an entry: its text is found anew, its uses are counted, its pin comes and goes', async () => {
    await addAll(store, [entryOf({ id: 'a', text: 'rides a zebra' })]);

    expect(await store.update([{ id: 'a', text: 'plays the violin', importance: 1, kind: 'experience', pinned: true }, { id: 'x', pinned: true }])).toBe(1);
    await store.update([{ id: 'a', usedAt: 9 }, { id: 'a', usedAt: 8 }]);

    expect(await store.get('a')).toStrictEqual(entryOf({ id: 'a', text: 'plays the violin', importance: 1, kind: 'experience', pinned: true, uses: 2, lastUsedAt: 9 }));
    expect(await found('zebra')).toStrictEqual([]);
    expect(await found('violin')).toStrictEqual(['a']);
    await store.update([{ id: 'a', pinned: false }]);
    expect(await store.list({ pinned: true })).toStrictEqual([]);
  });

  it('E4 takes the vector of a text that changed away, unless a new one comes with it', async () => {
    const vector = { embedder: 'e', values: unit(1, 0) };
    await store.add([{ entry: entryOf({ id: 'a' }), vector }, { entry: entryOf({ id: 'b' }), vector }, { entry: entryOf({ id: 'c' }), vector }]);

    await store.update([{ id: 'a', text: 'new' }, { id: 'b', text: 'new', vector }, { id: 'c', usedAt: 1 }]);

    expect(ids(await store.list({ lacksVectorOf: 'e' }))).toStrictEqual(['a']);
  });

  it('E3 exports and imports: duplicates are skipped, what is no entry is counted', async () => {
    await addAll(store, [entryOf({ id: 'a', createdAt: 2, text: 'one' }), entryOf({ id: 'b', createdAt: 1 }), entryOf({ id: 'c', ...BOB })]);

    const data = JSON.parse(JSON.stringify(await store.export({ owners: [ADA] }))) as { readonly entries: readonly object[] };
    const more = [...data.entries, entryOf({ id: 'new', text: 'one' }), entryOf({ id: 'new2' }), { id: 'bad' }, 7];

    expect(data).toStrictEqual({ format: 'turnloop.memory', version: 1, entries: [entryOf({ id: 'b', createdAt: 1 }), entryOf({ id: 'a', createdAt: 2, text: 'one' })] });
    expect(await store.import(data)).toStrictEqual({ added: 0, skipped: 2, invalid: 0 });
    expect(await store.import({ ...data, entries: more })).toStrictEqual({ added: 1, skipped: 3, invalid: 2 });
    expect(await store.list()).toHaveLength(4);
  });

  it.each([
    ['something else', [1, 2], 'invalid_export'],
    ['nothing', null, 'invalid_export'],
    ['other JSON', { format: 'other', version: 1, entries: [] }, 'invalid_export'],
    ['a newer version', { format: 'turnloop.memory', version: 2, entries: [] }, 'unsupported_version'],
  ])('E3 refuses to import %s', async (_what, data, code) => {
    const error = await store.import(data).catch((thrown: unknown) => thrown as MemoryError);

    expect(error).toMatchObject({ name: 'MemoryError', code, isTurnloopError: true, message: expect.stringContaining('Nothing was imported') });
  });

  it('takes ids, owners and texts as data, whatever they are', async () => {
    const odd = ['__proto__', '../../etc/passwd', "'; DROP TABLE memories; --", '\ud800', '\n\r\u2028\0'];
    await addAll(store, odd.map((id) => entryOf({ id, scopeId: id, text: `tea ${id}` })));

    for (const id of odd) {
      expect((await store.get(id))?.text).toBe(`tea ${id}`);
      expect(ids(await store.list({ owners: [{ scope: 'user', scopeId: id }] }))).toStrictEqual([id]);
    }
    expect(await found('tea')).toHaveLength(odd.length);
  });

  it('answers calls in the order in which they were made, without waiting between them', async () => {
    const answers = await Promise.all([
      store.add([{ entry: entryOf({ id: 'a' }) }]),
      store.list(),
      store.update([{ id: 'a', text: 'other' }]),
      store.get('a'),
      store.forget({ ids: ['a'] }),
      store.list(),
    ]);

    expect(answers).toStrictEqual([1, [entryOf({ id: 'a' })], 1, entryOf({ id: 'a', text: 'other' }), 1, []]);
  });

  it('refuses every call but close once it is closed', async () => {
    await store.close();
    await store.close();

    await expect(store.list()).rejects.toMatchObject({ code: 'store_closed' });
    await expect(store.add([{ entry: entryOf({ id: 'a' }) }])).rejects.toMatchObject({ code: 'store_closed' });
  });

  it.each([
    ['an entry without text', () => store.add([{ entry: entryOf({ id: 'a', text: ' ' }) }]), '`text` cannot be " "'],
    ['an importance of 2', () => store.add([{ entry: entryOf({ id: 'a', importance: 2 }) }]), '`importance` cannot be 2'],
    ['an unknown kind', () => store.add([{ entry: entryOf({ id: 'a', kind: 'rumour' as never }) }]), '`kind` cannot be "rumour"'],
    ['a filter with a slip of the pen', () => store.list({ owner: ADA } as never), 'a filter has no `owner`'],
    ['owners that are none', () => store.list({ owners: ['ada'] as never }), '`owners` cannot be this list'],
    ['a question without a limit', () => store.find({ text: 'a' } as never), '`limit` cannot be undefined'],
    ['a change of nothing', () => store.update([{} as never]), '`id` cannot be undefined'],
  ])('refuses %s, and names what is wrong', async (_what, call, message) => {
    await expect(call()).rejects.toThrow(TypeError);
    await expect(call()).rejects.toThrow(message);
  });
});
