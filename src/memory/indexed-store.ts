/**
 * Indexed store: a memory store over an index in memory and whatever keeps its operations.
 *
 * - Calls take effect in the order in which they were made, one after the other.
 * - What was asked for is checked before anything happens; entries are copied on their way in, so that nobody can change
 *   them later.
 */
import { assertEntry, assertFilter, assertVector, toChange, toEntry } from './check-entry.ts';
import type { MemoryIndex, MemoryOperation } from './memory-index.ts';
import { type MemoryAddition, MemoryError, type MemoryFilter, type MemoryListing, type MemoryQuery, type MemoryStore } from './memory-store.ts';
import { newMemories, readMemoryExport, toMemoryExport } from './memory-transfer.ts';

/** Keeps the operations of an index. */
export interface MemoryJournal {
  /** The index as it is now. */
  read(): Promise<MemoryIndex>;
  /**
   * Keeps the operations that `plan` gives for the index as it is now, and then applies them: all of them or none.
   *
   * @returns How many there were.
   */
  write(plan: (index: MemoryIndex) => readonly MemoryOperation[]): Promise<number>;
  /** Lets go of what it holds. */
  close(): Promise<void>;
}

/** Makes a store. */
export function indexedStore(journal: MemoryJournal): MemoryStore {
  let last: Promise<unknown> = Promise.resolve();
  let isClosed = false;

  function inTurn<Result>(call: () => Promise<Result>): Promise<Result> {
    if (isClosed) return Promise.reject(new MemoryError('store_closed', 'The memory store is closed: it was asked after close(). What it keeps is as it was.'));
    const result = last.then(call);
    last = result.catch(() => undefined);
    return result;
  }
  const read = <Result>(ask: (index: MemoryIndex) => Result): Promise<Result> => inTurn(async () => ask(await journal.read()));
  const write = (plan: (index: MemoryIndex) => readonly MemoryOperation[]): Promise<number> => inTurn(() => journal.write(plan));

  return {
    async add(additions) {
      const copies = additions.map(toAddition);
      return write((index) => index.toAdd(copies));
    },
    async find(query) {
      assertQuery(query);
      return read((index) => index.find(query));
    },
    async get(id) {
      return read((index) => index.get(id));
    },
    async list(listing = {}) {
      assertListing(listing);
      return read((index) => index.list(listing));
    },
    async update(changes) {
      const checked = changes.map(toChange);
      return write((index) => index.toChange(checked));
    },
    async forget(filter) {
      assertForget(filter);
      return write((index) => index.toForget(filter));
    },
    async export(filter = {}) {
      assertFilter(filter);
      return toMemoryExport(await read((index) => index.list(filter)));
    },
    async import(data) {
      const { entries, invalid } = readMemoryExport(data);
      const added = await write((index) => index.toAdd(newMemories(entries, index.list({})).map((entry) => ({ entry }))));
      return { added, skipped: entries.length - added, invalid };
    },
    async close() {
      if (isClosed) return;
      const closed = inTurn(() => journal.close());
      isClosed = true;
      await closed;
    },
  };
}

const isLimit = (value: unknown): boolean => value === undefined || (typeof value === 'number' && value >= 0);
const isTextOrNone = (value: unknown): boolean => value === undefined || typeof value === 'string';
const LISTING: Readonly<Record<Exclude<keyof MemoryListing, keyof MemoryFilter>, (value: unknown) => boolean>> = {
  lacksVectorOf: isTextOrNone,
  limit: isLimit,
};
const QUERY: Readonly<Record<Exclude<keyof MemoryQuery, keyof MemoryFilter>, (value: unknown) => boolean>> = {
  text: isTextOrNone,
  vector: () => true,
  limit: (value) => value !== undefined && isLimit(value),
};

/** @throws TypeError for what is no listing. */
export function assertListing(listing: MemoryListing): void {
  assertFilter(listing, LISTING);
}

/** @throws TypeError for what is no question. */
export function assertQuery(query: MemoryQuery): void {
  assertFilter(query, QUERY);
  assertVector(query.vector);
}

/** @throws TypeError for a filter that means all entries by saying nothing. */
export function assertForget(filter: MemoryFilter): void {
  assertFilter(filter);
  if (Object.values(filter).some((member) => member !== undefined)) return;
  throw new TypeError('memory: forget needs a filter that says something, such as { ids: [id] }; { createdFrom: 0 } means all entries.');
}

/** An addition that nobody can change any more. @throws TypeError for what is none. */
export function toAddition(addition: MemoryAddition): MemoryAddition {
  assertEntry(addition.entry);
  assertVector(addition.vector);
  return { entry: toEntry(addition.entry) ?? addition.entry, vector: addition.vector };
}

