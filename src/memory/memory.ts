/**
 * Memory: the policy. What is remembered from one conversation to the next, over any store.
 *
 * - It makes ids, reads the clock, embeds and ranks; the store keeps and finds.
 * - What is remembered is data: it is shown in one message that says so, never in the system prompt, and never recorded.
 */
import { assertOptions } from '../core/assert.ts';
import { isRecord } from '../core/json.ts';
import { assertOwners } from './check-entry.ts';
import type { EmbedOptions } from './embedder.ts';
import { type MemoryOptions, toMemorySettings } from './memory-options.ts';
import { MemorySearcher, type MemorySearch } from './memory-search.ts';
import { createMemorySession, type MemorySession } from './memory-session.ts';
import type { MemoryEntry, MemoryExport, MemoryFilter, MemoryImportCounts, MemoryOwner, MemoryStore } from './memory-store.ts';
import { type NewMemory, toNewEntry } from './new-memory.ts';
import type { RankedMemory } from './rank.ts';

/** Options of {@link Memory.openSession}. */
export interface MemorySessionOptions {
  /** The conversation: its own memory is recalled too. */
  readonly sessionId: string;
  /** Whose memory it recalls and adds to. What is extracted goes to the first, unless the model names another's scope. */
  readonly owners?: readonly MemoryOwner[] | undefined;
}

/** What is remembered. Made by {@link createMemory}. */
export interface Memory {
  /** Keeps the entries: to list, pin, change or read them. */
  readonly store: MemoryStore;
  /**
   * Remembers.
   *
   * @returns The entries, with their ids. Rejects with a `MemoryError` if the store fails; an embedder that fails is told to
   * `notify`, and its vectors are made later.
   */
  add(memories: NewMemory | readonly NewMemory[], options?: EmbedOptions): Promise<readonly MemoryEntry[]>;
  /** The entries that fit a question best, ranked as for a block. Rejects with a `MemoryError` if the store fails. */
  find(search: MemorySearch): Promise<readonly RankedMemory[]>;
  /** Forgets for good, as {@link MemoryStore.forget}. @returns How many were forgotten. */
  forget(filter: MemoryFilter): Promise<number>;
  /** As {@link MemoryStore.export}. */
  export(filter?: MemoryFilter): Promise<MemoryExport>;
  /** As {@link MemoryStore.import}; what came is found by its meaning too. */
  import(data: unknown): Promise<MemoryImportCounts>;
  /** What one conversation recalls and learns. A resumed conversation opens a new one, and so recalls anew. */
  openSession(options: MemorySessionOptions): MemorySession;
  /** Closes the store. */
  close(): Promise<void>;
}

const SESSION: Readonly<Record<keyof MemorySessionOptions, true>> = { sessionId: true, owners: true };
const SESSION_ARGUMENT = {
  taker: 'openSession',
  example: "memory.openSession({ sessionId: 'session_1', owners: [{ scope: 'user', scopeId: 'ada' }] })",
};

/**
 * Makes a memory.
 *
 * @throws TypeError for an option that is missing, does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const memory = createMemory({ store: fileMemoryStore('.turnloop/memory'), embedder: hashEmbedder() });
 * await memory.add({ scope: 'user', scopeId: 'ada', text: 'Ada prefers answers in German.' });
 * const session = memory.openSession({ sessionId: 'session_1', owners: [{ scope: 'user', scopeId: 'ada' }] });
 * const block = await session.recall(input);
 * const buildMessages = () => [...(block ? [block] : []), ...transcript.buildMessages()];
 * await runTurn({ llm, input: [userMessage(input)], buildMessages, dispatchEvent, tools: [...session.tools] });
 * ```
 */
export function createMemory(options: MemoryOptions): Memory {
  const settings = toMemorySettings(options);
  const { store, runtime } = settings;
  const searcher = new MemorySearcher(settings);

  async function add(memories: NewMemory | readonly NewMemory[], { signal }: EmbedOptions = {}): Promise<readonly MemoryEntry[]> {
    const list: readonly NewMemory[] = isRecord(memories) ? [memories as NewMemory] : (memories as readonly NewMemory[]);
    const entries = list.map((memory) => toNewEntry(memory, runtime));
    const vectors = await searcher.vectorsOf(
      entries.map(({ text }) => text),
      signal,
    );
    if (vectors === undefined) searcher.expectMissing();
    await store.add(entries.map((entry, index) => ({ entry, vector: vectors?.[index] })));
    return entries;
  }

  return {
    store,
    add,
    async find(search) {
      const { limit = settings.maxEntries } = search;
      return searcher.rank(await searcher.find({ ...search, limit })).slice(0, limit);
    },
    forget: (filter) => store.forget(filter),
    export: (filter) => store.export(filter),
    async import(data) {
      const counts = await store.import(data);
      searcher.expectMissing();
      return counts;
    },
    openSession(session) {
      assertOptions(session, SESSION, SESSION_ARGUMENT);
      const { sessionId, owners = [] } = session;
      if (typeof sessionId !== 'string' || sessionId === '') {
        throw new TypeError(`openSession needs a \`sessionId\`, a text that is not empty. For example: ${SESSION_ARGUMENT.example}.`);
      }
      assertOwners(owners, SESSION_ARGUMENT.taker);
      return createMemorySession({
        settings,
        searcher,
        sessionId,
        owners: [...owners, { scope: 'session', scopeId: sessionId }],
        add: (entries, signal) => add(entries, { signal }),
      });
    },
    close: () => store.close(),
  };
}
