/** Laws of memory over generated entries: nothing is lost on its way, and equal questions have equal answers. */
import { readFile, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { textOf } from 'turnloop';
import {
  createMemory,
  fileMemoryStore,
  hashEmbedder,
  inProcessMemoryStore,
  type MemoryChange,
  type MemoryEntry,
  type MemoryFilter,
  type MemoryStore,
  rankMemories,
} from 'turnloop/memory';
import { virtualRuntime } from 'turnloop/testing';
import { law } from '../properties/law.ts';
import { addAll, temporaryFolder } from './support.ts';

const WORDS = ['tea', 'teas', 'train', 'Berlin', '喜欢', '咖啡', 'fooBar', '</memory>', '\n', '\ud800', '\u0000', '__proto__', '42', 'é', '👩‍👩‍👧', ' '];
const texts = fc
  .array(fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...WORDS) }, fc.string({ unit: 'binary', maxLength: 8 })), { minLength: 1, maxLength: 8 })
  .map((words) => words.join(' '))
  .filter((text) => text.trim() !== '');
const idTexts = fc.constantFrom('a', 'b', 'c', 'd', '__proto__', '../x');
const owners = fc.record({ scope: fc.constantFrom('user', 'agent', 'project', 'session'), scopeId: fc.constantFrom('ada', 'bob') } as const);
const shares = fc.constantFrom(0, 0.25, 0.5, 1);
const times = fc.nat(5);
const kinds = fc.constantFrom('fact', 'experience', 'working');

function entriesWith(ids: fc.Arbitrary<string>): fc.Arbitrary<MemoryEntry> {
  return fc
    .record(
      { id: ids, kind: kinds, owner: owners, text: texts, importance: shares, createdAt: times, pinned: fc.constant(true), uses: fc.integer({ min: 1, max: 9 }), lastUsedAt: times },
      { requiredKeys: ['id', 'kind', 'owner', 'text', 'importance', 'createdAt'] },
    )
    .map(({ owner, ...entry }) => ({ ...owner, ...entry }));
}
const entryLists = fc.uniqueArray(entriesWith(fc.uuid()), { maxLength: 20, selector: ({ id }) => id });

type Call =
  | { readonly do: 'add'; readonly entries: readonly MemoryEntry[] }
  | { readonly do: 'update'; readonly changes: readonly MemoryChange[] }
  | { readonly do: 'forget'; readonly filter: MemoryFilter }
  | { readonly do: 'restart' }
  | { readonly do: 'tear'; readonly bytes: number };

const filters: fc.Arbitrary<MemoryFilter> = fc
  .record({ ids: fc.array(idTexts, { maxLength: 3 }), owners: fc.array(owners, { maxLength: 2 }), kinds: fc.array(kinds, { maxLength: 2 }), createdBefore: times, pinned: fc.boolean() }, { requiredKeys: [] })
  .filter((filter) => Object.keys(filter).length > 0);
const changes: fc.Arbitrary<MemoryChange> = fc.record({ id: idTexts, text: texts, kind: kinds, importance: shares, pinned: fc.boolean(), usedAt: times }, { requiredKeys: ['id'] });
const calls: fc.Arbitrary<Call> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('add'), entries: fc.array(entriesWith(idTexts), { maxLength: 3 }) } as const) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('update'), changes: fc.array(changes, { maxLength: 3 }) } as const) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forget'), filter: filters } as const) },
  { weight: 1, arbitrary: fc.constant({ do: 'restart' } as const) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('tear'), bytes: fc.integer({ min: 1, max: 200 }) } as const) },
);

function change(store: MemoryStore, call: Exclude<Call, { readonly do: 'restart' | 'tear' }>): Promise<number> {
  if (call.do === 'add') return store.add(call.entries.map((entry) => ({ entry })));
  return call.do === 'update' ? store.update(call.changes) : store.forget(call.filter);
}

/** Half of a line at the end of the log, as a process leaves it that dies while it writes. */
async function tear(file: string, bytes: number): Promise<void> {
  const log = await readFile(file, 'utf8').catch(() => undefined);
  const line = log?.split('\n').at(-2);
  if (log === undefined || line === undefined) return;
  await writeFile(file, log + line.slice(0, bytes));
  // Also where the cut is inside of a character.
  if (bytes % 2 === 0) await truncate(file, Buffer.byteLength(log) + Math.min(bytes, Buffer.byteLength(line)) - 1);
}

describe('memory', () => {
  law('E3 E8 a file store has what an in-process store has, over restarts and torn ends', fc.array(calls, { maxLength: 12 }), async (script) => {
    const folder = await temporaryFolder();
    const model = inProcessMemoryStore();
    let store = fileMemoryStore(folder);
    for (const call of script) {
      if (call.do === 'restart') store = fileMemoryStore(folder);
      else if (call.do === 'tear') await tear(path.join(folder, 'memory.jsonl'), call.bytes);
      else expect(await change(store, call)).toBe(await change(model, call));
    }
    for (const one of [store, fileMemoryStore(folder)]) {
      expect(await one.list()).toStrictEqual(await model.list());
      expect(await one.find({ text: 'teas fooBar 喜欢', limit: 5 })).toStrictEqual(await model.find({ text: 'teas fooBar 喜欢', limit: 5 }));
    }
  }, { numRuns: 150 });

  law('E3 an import of an export is what was exported, also through JSON', entryLists, async (entries) => {
    const [from, to] = [inProcessMemoryStore(), inProcessMemoryStore()];
    await addAll(from, entries);
    const data = JSON.parse(JSON.stringify(await from.export())) as unknown;

    expect(await to.import(data)).toStrictEqual({ added: entries.length, skipped: 0, invalid: 0 });
    expect(await to.export()).toStrictEqual(data);
    expect(await to.list()).toStrictEqual(await from.list());
    expect(await to.import(data)).toStrictEqual({ added: 0, skipped: entries.length, invalid: 0 });
  });

  law('E3 an import takes any JSON without failing in another way, and adds no more than there is', fc.jsonValue(), async (value) => {
    const store = inProcessMemoryStore();
    await expect(store.import(value)).rejects.toMatchObject({ code: 'invalid_export' });
    const counts = await store.import({ format: 'turnloop.memory', version: 1, entries: [value, value] });

    expect(counts).toStrictEqual({ added: 0, skipped: 0, invalid: 2 });
  });

  law('E4 the order of what is found, and its ranking, does not depend on the order in which it was added', fc.tuple(entryLists, texts), async ([entries, text]) => {
    const answer = async (list: readonly MemoryEntry[]): Promise<readonly object[]> => {
      const memory = createMemory({ store: inProcessMemoryStore(), embedder: hashEmbedder(), runtime: virtualRuntime() });
      await addAll(memory.store, list);
      return memory.find({ text, limit: 5 });
    };

    expect(await answer([...entries].reverse())).toStrictEqual(await answer(entries));
  }, { numRuns: 300 });

  law('E4 pinned entries come first, and nothing is lost in a ranking', entryLists, (entries) => {
    const ranked = rankMemories(entries.map((entry) => ({ entry, textScore: entry.text.length })), { now: 10 });

    expect(ranked.map(({ entry }) => entry.id).sort()).toStrictEqual(entries.map(({ id }) => id).sort());
    const firstUnpinned = ranked.findIndex(({ entry }) => entry.pinned !== true);
    expect(firstUnpinned === -1 || ranked.slice(firstUnpinned).every(({ entry }) => entry.pinned !== true)).toBe(true);
  });

  law('E4 an entry is found by its own text, whatever that is, if it has a word', fc.tuple(entryLists, texts), async ([entries, text]) => {
    const store = inProcessMemoryStore();
    const entry: MemoryEntry = { id: 'it', kind: 'fact', scope: 'user', scopeId: 'ada', text: `${text} zebra`, importance: 0, createdAt: 0 };
    await addAll(store, [...entries, entry]);

    expect((await store.find({ text: entry.text, limit: 3 })).map((found) => found.entry.id)).toContain('it');
    await store.forget({ ids: ['it'] });
    expect(await store.find({ text: 'zebra', limit: 3 })).toStrictEqual([]);
  });

  law('E2 E4 E7 a block holds its budget, one line an entry, and nothing that poses as something else', fc.tuple(entryLists, texts), async ([entries, text]) => {
    const estimate = (content: string): number => content.length;
    const memory = createMemory({ store: inProcessMemoryStore(), runtime: virtualRuntime(), maxEntries: 4, maxTokens: 500, estimate });
    await addAll(memory.store, entries.map((entry) => ({ ...entry, scope: 'user', scopeId: 'ada' })));
    const session = memory.openSession({ sessionId: 's', owners: [{ scope: 'user', scopeId: 'ada' }] });
    const block = textOf(await session.recall(text));
    if (block === '') return;

    const lines = block.split('\n');
    expect(block.length).toBeLessThanOrEqual(500 + lines.length);
    expect(lines.length - 3).toBeLessThanOrEqual(4);
    expect(lines[0]).toBe('<memory>');
    expect(lines.at(-1)).toBe('</memory>');
    for (const line of lines.slice(2, -1)) expect(line).toMatch(/^- user(?: \w+)?, 1970-01: /);
    expect(block.slice(8, -9)).not.toMatch(/<\s*[/|!?]|<\s*\p{L}|(?!\n)\p{Cc}|\p{Cs}/u);
  });
});
