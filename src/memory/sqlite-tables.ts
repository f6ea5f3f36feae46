/**
 * SQLite tables: where entries stand in a database, and each question that is asked of them.
 *
 * - Ids and owners stand there as the hexadecimal digits of their code units, which no library changes and which sort as the
 *   texts do; whatever else is text, as JSON.
 * - An entry, its words and its vector change in one transaction. A change is made by the database, so that two processes
 *   that change one entry at once both do.
 */
import type { JsonValue } from '../core/json.ts';
import { toEntry } from './check-entry.ts';
import { type MemoryAddition, type MemoryChange, type MemoryEntry, MemoryError, type MemoryFilter, type MemoryListing, type MemoryOwner, type MemoryVector } from './memory-store.ts';
import type { SqlRow, SqlStatement, SqlValue } from '../sqlite/sql-database.ts';
import { indexedWords, WORD_TABLES } from './sqlite-words.ts';

/** Makes what is not there yet. */
export const TABLES: readonly SqlStatement[] = [
  `CREATE TABLE IF NOT EXISTS turnloop_memories (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    scope TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    length REAL NOT NULL,
    importance REAL NOT NULL,
    pinned INTEGER NOT NULL,
    created_at REAL NOT NULL,
    last_used_at REAL,
    uses INTEGER NOT NULL,
    source TEXT,
    embedder TEXT,
    vector BLOB
  )`,
  'CREATE INDEX IF NOT EXISTS turnloop_memory_owners ON turnloop_memories (owner, created_at)',
  // With each question it is asked how long all texts are.
  'CREATE INDEX IF NOT EXISTS turnloop_memory_lengths ON turnloop_memories (length)',
  ...WORD_TABLES,
].map((sql) => ({ sql, args: [] }));

const COLUMNS = 'm.id, m.scope, m.scope_id, m.kind, m.text, m.importance, m.pinned, m.created_at, m.last_used_at, m.uses, m.source';
const ORDER = 'ORDER BY m.created_at DESC, m.key';
/** More than there ever are. */
const NO_LIMIT = -1;

/** SQL with its arguments, to be put into other SQL. */
export interface Piece {
  readonly sql: string;
  readonly args: readonly SqlValue[];
}

/** Adds an entry that is not there; the first of the statements changes a row then. */
export function addEntry({ entry, vector }: MemoryAddition): readonly SqlStatement[] {
  const key = keyOf(entry.id);
  const row: Readonly<Record<string, SqlValue>> = {
    ...{ key, owner: ownerOf(entry), id: toText(entry.id), scope: entry.scope, scope_id: toText(entry.scopeId), kind: entry.kind },
    ...{ text: toText(entry.text), length: indexedWords(entry.text).length, importance: entry.importance, pinned: Number(entry.pinned ?? false), created_at: entry.createdAt },
    ...{ last_used_at: entry.lastUsedAt ?? null, uses: entry.uses ?? 0, source: entry.source === undefined ? null : JSON.stringify(entry.source) },
    ...vectorColumns(vector),
  };
  const names = Object.keys(row);
  return [
    {
      sql: `INSERT INTO turnloop_memories (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')}) ON CONFLICT (key) DO NOTHING`,
      args: Object.values(row),
    },
    insertWords(key, entry.text),
  ];
}

/** Changes an entry; the first of the statements changes a row if it is there. */
export function changeEntry({ id, text, vector, kind, importance, pinned, usedAt }: MemoryChange): readonly SqlStatement[] {
  const key = keyOf(id);
  const usedAtOrNone = usedAt ?? null;
  const losesVector = text !== undefined || vector !== undefined;
  const columns = vectorColumns(vector);
  const change = {
    sql: `UPDATE turnloop_memories SET text = coalesce(?, text), length = coalesce(?, length), kind = coalesce(?, kind), importance = coalesce(?, importance), pinned = coalesce(?, pinned),
      uses = uses + ?, last_used_at = coalesce(max(coalesce(last_used_at, ?), ?), last_used_at)${losesVector ? ', embedder = ?, vector = ?' : ''} WHERE key = ?`,
    args: [
      ...(text === undefined ? [null, null] : [toText(text), indexedWords(text).length]),
      ...[kind ?? null, importance ?? null, pinned === undefined ? null : Number(pinned)],
      ...[Number(usedAt !== undefined), usedAtOrNone, usedAtOrNone],
      ...(losesVector ? [columns.embedder, columns.vector] : []),
      key,
    ],
  };
  if (text === undefined) return [change];
  const forget = { sql: 'DELETE FROM turnloop_memory_words WHERE rowid = (SELECT number FROM turnloop_memories WHERE key = ?)', args: [key] };
  return [change, forget, insertWords(key, text)];
}

/** Puts the words of an entry into the index that has none there. */
function insertWords(key: string, text: string): SqlStatement {
  return {
    sql: `INSERT INTO turnloop_memory_words (rowid, words) SELECT number, ? FROM turnloop_memories
      WHERE key = ? AND NOT EXISTS (SELECT 1 FROM turnloop_memory_words WHERE rowid = number)`,
    args: [indexedWords(text).tokens, key],
  };
}

/** Forgets entries; the last of the statements changes as many rows. */
export function forgetEntries(filter: MemoryFilter): readonly SqlStatement[] {
  const { sql, args } = where(filter);
  return [
    { sql: `DELETE FROM turnloop_memory_words WHERE rowid IN (SELECT m.number FROM turnloop_memories AS m WHERE ${sql})`, args: [...args] },
    { sql: `DELETE FROM turnloop_memories WHERE number IN (SELECT m.number FROM turnloop_memories AS m WHERE ${sql})`, args: [...args] },
  ];
}

/** Entries, newest first. */
export function listEntries(listing: MemoryListing): SqlStatement {
  const { lacksVectorOf, limit } = listing;
  const { sql, args } = where(listing);
  const lacking = lacksVectorOf === undefined ? { sql: '', args: [] } : { sql: 'AND (m.embedder IS NULL OR m.embedder <> ?)', args: [toText(lacksVectorOf)] };
  return {
    sql: `SELECT ${COLUMNS} FROM turnloop_memories AS m WHERE ${sql} ${lacking.sql} ${ORDER} LIMIT ?`,
    args: [...args, ...lacking.args, limitOf(limit)],
  };
}

/** What all entries come to: one row. Rows of libsql have a `length` of their own. */
export const SELECT_TOTALS: SqlStatement = { sql: 'SELECT count(*) AS entries, total(length) AS total FROM turnloop_memories', args: [] };

/** A vector, and the SQL that compares it. */
export interface VectorQuestion {
  /** The vector. */
  readonly vector: MemoryVector;
  /** The cosine of the column `m.vector` and one `?`. */
  readonly cosine: string;
}

/** What {@link findEntries} is asked. */
export interface Question {
  readonly filter: MemoryFilter;
  /** The `number` and `score` of what is found by words; absent if nothing is asked by words. */
  readonly scores?: Piece | undefined;
  readonly vector?: VectorQuestion | undefined;
  readonly limit: number;
}

/** The best entries by words (`score`) or by vector (`similarity`), each row with both figures. */
export function findEntries(by: 'score' | 'similarity', { filter, scores = NO_SCORES, vector, limit }: Question): SqlStatement {
  const similarity = similarityOf(vector);
  const { sql, args } = where(filter);
  return {
    sql: `SELECT ${COLUMNS}, coalesce(hit.score, 0) AS score, ${similarity.sql} AS similarity
      FROM turnloop_memories AS m ${by === 'score' ? '' : 'LEFT'} JOIN (${scores.sql}) AS hit ON hit.number = m.number
      WHERE ${sql} AND ${by} IS NOT NULL ORDER BY ${by} DESC, m.key LIMIT ?`,
    args: [...similarity.args, ...scores.args, ...args, limitOf(limit)],
  };
}

const NO_SCORES: Piece = { sql: 'SELECT NULL AS number, NULL AS score', args: [] };

function similarityOf(question: VectorQuestion | undefined): Piece {
  if (question === undefined) return { sql: 'NULL', args: [] };
  const { embedder, vector } = vectorColumns(question.vector);
  // Vectors of another length are of another embedder, whatever it calls itself.
  return { sql: `CASE WHEN m.embedder = ? AND length(m.vector) = length(?) THEN ${question.cosine} END`, args: [embedder, vector, vector] };
}

/** Reads an entry. @throws MemoryError `store_broken` if it is none. */
export function entryOf(row: SqlRow): MemoryEntry {
  const entry = toEntry({
    ...{ id: fromText(row['id']), kind: row['kind'], scope: row['scope'], scopeId: fromText(row['scope_id']), text: fromText(row['text']) },
    ...{ importance: row['importance'], pinned: Boolean(row['pinned']), createdAt: row['created_at'] },
    ...{ lastUsedAt: row['last_used_at'] ?? undefined, uses: Number(row['uses']), source: fromText(row['source']) },
  });
  if (entry !== undefined) return entry;
  const id = typeof row['id'] === 'string' ? row['id'].slice(0, 80) : 'without an id';
  throw new MemoryError('store_broken', `The database has an entry that cannot be read: ${id}. Nothing was changed: mend or delete it in turnloop_memories.`);
}

/** Which rows a filter means. */
function where(filter: MemoryFilter): Piece {
  const { ids, owners, kinds, createdFrom, createdBefore, pinned } = filter;
  const pieces: Piece[] = [
    isIn('m.key', ids?.map(keyOf)),
    isIn('m.owner', owners?.map(ownerOf)),
    isIn('m.kind', kinds),
    compared('m.created_at >=', createdFrom),
    compared('m.created_at <', createdBefore),
    compared('m.pinned =', pinned === undefined ? undefined : Number(pinned)),
  ].flat();
  return { sql: ['1', ...pieces.map(({ sql }) => sql)].join(' AND '), args: pieces.flatMap(({ args }) => args) };
}

function isIn(column: string, values: readonly string[] | undefined): readonly Piece[] {
  return values === undefined ? [] : [{ sql: `${column} IN (SELECT value FROM json_each(?))`, args: [JSON.stringify(values)] }];
}

function compared(comparison: string, value: number | undefined): readonly Piece[] {
  return value === undefined ? [] : [{ sql: `${comparison} ?`, args: [value] }];
}

function vectorColumns(vector: MemoryVector | undefined): { readonly embedder: string | null; readonly vector: Uint8Array | null } {
  if (vector === undefined) return { embedder: null, vector: null };
  const { buffer, byteOffset, byteLength } = vector.values;
  return { embedder: toText(vector.embedder), vector: new Uint8Array(buffer, byteOffset, byteLength) };
}

function limitOf(limit: number | undefined): number {
  return limit === undefined || limit === Infinity ? NO_LIMIT : Math.ceil(limit);
}

/** Code units of a text in hexadecimal digits: four each. */
function keyOf(text: string): string {
  let key = '';
  for (let index = 0; index < text.length; index += 1) key += text.charCodeAt(index).toString(16).padStart(4, '0');
  return key;
}

function ownerOf({ scope, scopeId }: MemoryOwner): string {
  return `${scope}:${keyOf(scopeId)}`;
}

/** A text that no library changes: some cut texts at a NUL. */
function toText(text: string): string {
  return JSON.stringify(text);
}

function fromText(json: unknown): JsonValue | undefined {
  if (typeof json !== 'string') return undefined;
  try {
    // What JSON.parse gives is JSON.
    return JSON.parse(json) as JsonValue;
  } catch {
    return undefined;
  }
}
