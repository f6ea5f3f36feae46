/**
 * Memory store in SQLite, with full text (FTS5) and vectors. The host opens the database, with `@libsql/client`,
 * `node:sqlite` or better-sqlite3: none of them is imported here.
 *
 * @module
 */
import { assertOptions } from '../core/assert.ts';
import { messageOf } from '../core/errors.ts';
import { toChange } from './check-entry.ts';
import { assertForget, assertListing, assertQuery, toAddition } from './indexed-store.ts';
import { type FoundMemory, type MemoryEntry, MemoryError, type MemoryQuery, type MemoryStore } from './memory-store.ts';
import { newMemories, readMemoryExport, toMemoryExport } from './memory-transfer.ts';
import { isSqlClient, sqlDatabase, type LibsqlClient, type SqlDatabase, type SqlRow, type SqlStatement, type SyncSqlClient } from '../sqlite/sql-database.ts';
import { addEntry, changeEntry, entryOf, findEntries, forgetEntries, listEntries, SELECT_TOTALS, TABLES, type Piece, type Question } from './sqlite-tables.ts';
import { askedTerms, selectScores, selectVocabulary } from './sqlite-words.ts';

export type { LibsqlChange, LibsqlClient, LibsqlResult, SqlRow, SqlStatement, SqlValue, SyncSqlChange, SyncSqlClient, SyncSqlStatement } from '../sqlite/sql-database.ts';

/** A database opened with `new DatabaseSync` of `node:sqlite` (Node 22.13 or later), or `new Database` of better-sqlite3. */
export interface SyncMemoryClient extends SyncSqlClient {
  /** Adds a function to SQL: vectors are compared by one. */
  function(name: string, definition: (left: unknown, right: unknown) => number | null): unknown;
}

/** Options of {@link sqliteMemoryStore}. */
export interface SqliteMemoryStoreOptions {
  /**
   * The opened database: `createClient` of `@libsql/client`, `new DatabaseSync` of `node:sqlite`, or `new Database` of
   * better-sqlite3. The store makes its tables in it, whose names begin with `turnloop_memor`, and never closes it.
   */
  readonly client: LibsqlClient | SyncMemoryClient;
}

const TAKER = { taker: 'sqliteMemoryStore', example: "sqliteMemoryStore({ client: createClient({ url: 'file:memory.db' }) })" };
/** Compares vectors where the database does not. */
const COSINE_FUNCTION = 'turnloop_cosine';

/**
 * Makes a store that keeps entries in a SQLite database, which several processes may use. While another of them writes, this
 * one waits, for up to 5 seconds (`PRAGMA busy_timeout`).
 *
 * @throws TypeError for what is not an opened database.
 * @example
 * ```ts
 * const client = createClient({ url: 'file:memory.db' });
 * const memory = createMemory({ store: sqliteMemoryStore({ client }) });
 * ```
 */
export function sqliteMemoryStore(options: SqliteMemoryStoreOptions): MemoryStore {
  assertOptions(options, { client: true }, TAKER);
  const { client } = options;
  if (!isSqlClient(client)) throw new TypeError(`sqliteMemoryStore: \`client\` is not an opened SQLite database. For example: ${TAKER.example}.`);
  const cosine = cosineOf(client);
  const database = openDatabase(sqlDatabase(client));

  async function scoresOf(text: string): Promise<Piece | undefined> {
    if (text === '') return undefined;
    const vocabulary = await database.read(selectVocabulary(text));
    const [row] = await database.read(SELECT_TOTALS);
    const totals = { entries: Number(row?.['entries']), length: Number(row?.['total']) };
    const asked = askedTerms(text, vocabulary, totals);
    return asked.length === 0 ? undefined : selectScores(asked, totals);
  }

  async function find({ text = '', vector, limit, ...filter }: MemoryQuery): Promise<readonly FoundMemory[]> {
    const scores = await scoresOf(text);
    const question: Question = { filter, scores, vector: vector && { vector, cosine }, limit };
    const byWords = scores === undefined ? [] : await database.read(findEntries('score', question));
    const byVector = vector === undefined ? [] : await database.read(findEntries('similarity', question));
    const found = new Map([...byWords, ...byVector].map((row) => [String(row['id']), foundOf(row)]));
    return [...found.values()].sort(byScore);
  }

  const add: MemoryStore['add'] = async (additions) => {
    const statements = additions.map(addEntry);
    return countOf(await database.write(statements.flat()), statements);
  };
  const list = async (listing: Parameters<typeof listEntries>[0]): Promise<readonly MemoryEntry[]> => (await database.read(listEntries(listing))).map(entryOf);
  const inTurn = inOrder();

  return {
    async add(additions) {
      const copies = additions.map(toAddition);
      return inTurn(() => add(copies));
    },
    async find(query) {
      assertQuery(query);
      return inTurn(() => find(query));
    },
    async get(id) {
      return inTurn(async () => (await list({ ids: [id] }))[0]);
    },
    async list(listing = {}) {
      assertListing(listing);
      return inTurn(() => list(listing));
    },
    async update(changes) {
      const statements = changes.map(toChange).map(changeEntry);
      return inTurn(async () => countOf(await database.write(statements.flat()), statements));
    },
    async forget(filter) {
      assertForget(filter);
      return inTurn(async () => (await database.write(forgetEntries(filter))).at(-1) ?? 0);
    },
    async export(filter = {}) {
      assertListing(filter);
      return toMemoryExport(await inTurn(() => list(filter)));
    },
    async import(data) {
      const { entries, invalid } = readMemoryExport(data);
      const added = await inTurn(async () => add(newMemories(entries, await list({})).map((entry) => ({ entry }))));
      return { added, skipped: entries.length - added, invalid };
    },
    close: () => inTurn.close(),
  };
}

/** How vectors are compared: by the database where it can, else by a function that it is given. */
function cosineOf(client: LibsqlClient | SyncMemoryClient): string {
  if ('execute' in client) return '1 - vector_distance_cos(m.vector, ?)';
  if (typeof client.function !== 'function') {
    throw new TypeError(`sqliteMemoryStore: \`client\` takes no functions, which compare vectors: use Node 22.13 or later, better-sqlite3, or ${TAKER.example}.`);
  }
  client.function(COSINE_FUNCTION, (left, right) => (left instanceof Uint8Array && right instanceof Uint8Array ? dot(toFloats(left), toFloats(right)) : null));
  return `${COSINE_FUNCTION}(m.vector, ?)`;
}

function dot(left: Float32Array, right: Float32Array): number {
  let sum = 0;
  for (const [index, value] of left.entries()) sum += value * (right[index] ?? 0);
  return sum;
}

/** Floats begin at multiples of four, which bytes from a database need not. */
function toFloats(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.slice().buffer);
}

/** The database with its tables, whose failures are told as those of a memory store. */
function openDatabase(database: SqlDatabase): SqlDatabase {
  let tables: Promise<unknown> | undefined;
  const use = async <Value>(work: () => Promise<Value>): Promise<Value> => {
    try {
      await (tables ??= database.write(TABLES).catch((error: unknown) => {
        tables = undefined;
        throw error;
      }));
      return await work();
    } catch (error) {
      throw new MemoryError('store_failed', `The database failed, and memory is as it was: ${messageOf(error)}`, { cause: error });
    }
  };
  return {
    read: (statement: SqlStatement) => use(() => database.read(statement)),
    write: (statements) => use(async () => (statements.length === 0 ? [] : database.write(statements))),
  };
}

/** Does things one after the other, until it is closed. */
function inOrder(): { <Value>(work: () => Promise<Value>): Promise<Value>; close(): Promise<void> } {
  let last: Promise<unknown> = Promise.resolve();
  let isClosed = false;
  const inTurn = async <Value>(work: () => Promise<Value>): Promise<Value> => {
    if (isClosed) throw new MemoryError('store_closed', 'The memory store is closed: it was asked after close(). What it keeps is as it was.');
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  };
  const close = async (): Promise<void> => {
    isClosed = true;
    await last;
  };
  return Object.assign(inTurn, { close });
}

/** Sums what the first statement of each group changed. */
function countOf(changes: readonly number[], groups: readonly (readonly SqlStatement[])[]): number {
  let at = 0;
  let count = 0;
  for (const group of groups) {
    count += changes[at] ?? 0;
    at += group.length;
  }
  return count;
}

function foundOf(row: SqlRow): FoundMemory {
  const { similarity } = row;
  return { entry: entryOf(row), textScore: Number(row['score']), ...(typeof similarity === 'number' && { similarity }) };
}

/** Below any cosine. */
const NO_SIMILARITY = -2;

/** Of equal figures, by id. */
function byScore(a: FoundMemory, b: FoundMemory): number {
  return b.textScore - a.textScore || (b.similarity ?? NO_SIMILARITY) - (a.similarity ?? NO_SIMILARITY) || (a.entry.id < b.entry.id ? -1 : 1);
}
