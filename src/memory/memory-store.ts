/**
 * Memory store: what is remembered, and the interface of whatever keeps it. Types, the error, and no logic.
 *
 * - A store holds data and answers questions about it. It makes no ids, reads no clock, embeds nothing and ranks nothing:
 *   `createMemory` does, so that one ranking holds for every store.
 * - Ids, owners and texts are data of users and models: never a file name, a key of a plain object, or SQL text.
 * - What a store hands out is immutable and plain JSON, vectors apart. Vectors are an index over the entries: they are neither
 *   listed nor exported, and can be made again.
 */
import { TurnloopError } from '../core/errors.ts';

/** What sort of thing an entry is: a lasting `fact`, an `experience` (what was tried and how it went), or `working` notes of the moment. */
export type MemoryKind = 'fact' | 'experience' | 'working';

/** What an entry is about, and so who may recall it. */
export type MemoryScope = 'user' | 'agent' | 'project' | 'session';

/** Whose memory an entry is. */
export interface MemoryOwner {
  /** What sort of owner. */
  readonly scope: MemoryScope;
  /** Which one: the id of a user, an agent, a project or a session. Any text but the empty one. */
  readonly scopeId: string;
}

/** Where an entry was learned. */
export interface MemorySource {
  /** The session. */
  readonly sessionId: string;
  /** The turn; absent if it was added outside of one. */
  readonly turnId?: string | undefined;
}

/** One thing that is remembered. Plain JSON. */
export interface MemoryEntry extends MemoryOwner {
  /** Unique in the store. */
  readonly id: string;
  /** What sort of thing it is. */
  readonly kind: MemoryKind;
  /** What is remembered: any text but a blank one. */
  readonly text: string;
  /** How much it matters, from 0 to 1. */
  readonly importance: number;
  /** Recalled whatever is asked. Left out if false. */
  readonly pinned?: boolean | undefined;
  /** When it was learned, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** When it was last recalled, in milliseconds since the epoch. Left out until then. */
  readonly lastUsedAt?: number | undefined;
  /** How many times it was recalled. Left out until then. */
  readonly uses?: number | undefined;
  /** Where it was learned, if that is known. */
  readonly source?: MemorySource | undefined;
}

/** A text as a point in the space of an embedder. */
export interface MemoryVector {
  /** Name of the embedder: vectors of different embedders are never compared. */
  readonly embedder: string;
  /** Of length 1, so that a dot product is the cosine. Never changed once it was handed over. */
  readonly values: Float32Array;
}

/** An entry on its way into a store. */
export interface MemoryAddition {
  /** The entry. */
  readonly entry: MemoryEntry;
  /** Its vector, where there is an embedder. */
  readonly vector?: MemoryVector | undefined;
}

/** Which entries are meant. Each member narrows the choice further; none means all entries. */
export interface MemoryFilter {
  /** With one of these ids. */
  readonly ids?: readonly string[] | undefined;
  /** Of one of these owners; an empty list means no entry at all. */
  readonly owners?: readonly MemoryOwner[] | undefined;
  /** Of one of these kinds. */
  readonly kinds?: readonly MemoryKind[] | undefined;
  /** Created at this time or later, in milliseconds since the epoch. */
  readonly createdFrom?: number | undefined;
  /** Created before this time, in milliseconds since the epoch. */
  readonly createdBefore?: number | undefined;
  /** Pinned, or not pinned. */
  readonly pinned?: boolean | undefined;
}

/** What {@link MemoryStore.list} is asked. */
export interface MemoryListing extends MemoryFilter {
  /** Without a vector of the embedder of this name: what is still to be embedded. */
  readonly lacksVectorOf?: string | undefined;
  /** Most entries of the answer. @defaultValue no limit */
  readonly limit?: number | undefined;
}

/** What {@link MemoryStore.find} is asked: words, a vector or both. */
export interface MemoryQuery extends MemoryFilter {
  /** Words in any language; an entry with any of them is found. @defaultValue empty: no search by words */
  readonly text?: string | undefined;
  /** The same question as a vector. @defaultValue no search by vector */
  readonly vector?: MemoryVector | undefined;
  /** Most entries of each of the two searches. */
  readonly limit: number;
}

/** An entry that was found, and what speaks for it. */
export interface FoundMemory {
  /** The entry. */
  readonly entry: MemoryEntry;
  /**
   * How well its words fit: 0 if none does, else above 0, and higher is better. Any scale: figures of one answer are compared
   * with each other, and with nothing else.
   */
  readonly textScore: number;
  /** Cosine of its vector and that of the question; absent where either has none, or another embedder made it. */
  readonly similarity?: number | undefined;
}

/** What is to change in an entry; a member that is left out, or undefined, leaves that as it is. */
export interface MemoryChange {
  /** Which entry. */
  readonly id: string;
  /** A new text. The entry loses its vector, unless a new one comes with it. */
  readonly text?: string | undefined;
  /** Its new vector. */
  readonly vector?: MemoryVector | undefined;
  /** What it turned out to be. */
  readonly kind?: MemoryKind | undefined;
  /** From 0 to 1. */
  readonly importance?: number | undefined;
  /** Pins it, or lets it go. */
  readonly pinned?: boolean | undefined;
  /** It was recalled at this time: `uses` grows by one, `lastUsedAt` becomes the later of the two. */
  readonly usedAt?: number | undefined;
}

/** Entries outside of a store, as JSON. */
export interface MemoryExport {
  /** Tells it from other JSON. */
  readonly format: 'turnloop.memory';
  /** Version of the format. */
  readonly version: 1;
  /** The entries, oldest first. */
  readonly entries: readonly MemoryEntry[];
}

/** What became of the entries of an import. */
export interface MemoryImportCounts {
  /** New ones. */
  readonly added: number;
  /** Duplicates: their id is in the store or came before, or the store had the same text of the same kind and owner before. */
  readonly skipped: number;
  /** What is no entry. */
  readonly invalid: number;
}

/**
 * Keeps entries. `inProcessMemoryStore`, `fileMemoryStore` and `sqliteMemoryStore` are ours.
 *
 * Everything rejects with a {@link MemoryError} when the store fails, and with a `TypeError` on misuse. What a call wrote is
 * durable once its promise has resolved; a call that was rejected changed nothing. Calls may overlap: they take effect in the
 * order in which they were made.
 */
export interface MemoryStore {
  /**
   * Adds entries; those whose id is in the store already, or came before in the list, are left out.
   *
   * @returns How many were added.
   */
  add(additions: readonly MemoryAddition[]): Promise<number>;
  /**
   * The best `limit` entries by words and the best `limit` by vector, each entry once, with both figures. Order: `textScore`
   * falling, then `similarity` falling, then id.
   *
   * A text without a word, or of words that no entry has, finds nothing by words.
   */
  find(query: MemoryQuery): Promise<readonly FoundMemory[]>;
  /** The entry with this id. */
  get(id: string): Promise<MemoryEntry | undefined>;
  /** The entries that are meant, newest first; of the same time, by id in the order of its UTF-16 code units. */
  list(listing?: MemoryListing): Promise<readonly MemoryEntry[]>;
  /**
   * Changes entries, in the order of the list; ids that are unknown are left out.
   *
   * @returns How many changes were made.
   */
  update(changes: readonly MemoryChange[]): Promise<number>;
  /**
   * Forgets entries for good.
   *
   * @param filter - With at least one member, so that nobody forgets all by mistake; `{ createdFrom: 0 }` means all.
   * @returns How many were forgotten.
   */
  forget(filter: MemoryFilter): Promise<number>;
  /** The entries that are meant, as JSON, without vectors. @defaultValue all entries */
  export(filter?: MemoryFilter): Promise<MemoryExport>;
  /**
   * Adds what {@link MemoryStore.export} gave, ids, times and counters included. All or nothing, apart from what is skipped.
   *
   * @param data - Whatever was read: it is checked here.
   * @throws MemoryError `invalid_export` for what is no export, `unsupported_version` for a newer one.
   */
  import(data: unknown): Promise<MemoryImportCounts>;
  /** Lets go of files and connections, once the calls made before have settled. A closed store refuses every call but this one. */
  close(): Promise<void>;
}

/**
 * What failed: `store_broken` what was kept cannot be read; `store_locked` somebody else writes to it; `store_failed` the disk or
 * the database failed; `store_closed`; `invalid_export`; `unsupported_version` written by a newer version; `embedder_failed`;
 * `extraction_failed`.
 */
export type MemoryErrorCode =
  | 'store_broken'
  | 'store_locked'
  | 'store_failed'
  | 'store_closed'
  | 'invalid_export'
  | 'unsupported_version'
  | 'embedder_failed'
  | 'extraction_failed';

/** A failure of memory. Its message says what was kept, and where. */
export class MemoryError extends TurnloopError {
  override readonly name: string = 'MemoryError';
  // Narrower than in the base: every code there is.
  declare readonly code: MemoryErrorCode;

  constructor(code: MemoryErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(code, message, options);
  }
}
