/**
 * File store: an append-only log in a folder, and an index over it in memory. The embedded default: no dependency.
 *
 * - The file has a fixed name: no id and no owner ever becomes a path.
 * - What was acknowledged is on the disk. A line that was cut off, by a crash or a full disk, was never acknowledged: the next
 *   write takes it off. A broken line before the end is an error, and nothing is changed.
 * - Several processes may use a folder: one writes at a time, and each sees what the others wrote before it answers.
 * - A log that is mostly history is written anew, beside the old one and then in its place.
 */
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { FileHandle } from 'node:fs/promises';
import { assertOptions } from '../core/assert.ts';
import { messageOf } from '../core/errors.ts';
import { type Runtime, systemRuntime } from '../core/runtime.ts';
import { appendDurably, isFileError, makeFolder, readBytes, replaceDurably, withFile } from './disk.ts';
import { type HeldLock, takeLock } from './file-lock.ts';
import { indexedStore, type MemoryJournal } from './indexed-store.ts';
import { MemoryIndex, type MemoryOperation } from './memory-index.ts';
import { headerLine, logOf, operationsLine, readHeader, readOperations } from './memory-log.ts';
import { MemoryError, type MemoryStore } from './memory-store.ts';

const LOG_NAME = 'memory.jsonl';
const LOCK_NAME = 'memory.lock';
/** A log is compacted when it has this many operations, and twice as many as entries: rarely, and when it pays. */
const COMPACT_FROM = 1_000;
const COMPACT_SHARE = 2;
const NEWLINE = 0x0a;

const ARGUMENT = { taker: 'fileMemoryStore', example: "fileMemoryStore('.turnloop/memory')" };
const OPTIONS: Readonly<Record<keyof FileMemoryStoreOptions, true>> = { runtime: true };

/** Options of {@link fileMemoryStore}. */
export interface FileMemoryStoreOptions {
  /** Clock and timers of the wait for another writer. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
}

/**
 * Makes a store that keeps entries in a folder: an append-only log, flushed with every write, and all of it in memory to
 * search. Good for tens of thousands of entries.
 *
 * Nothing is read or made until the first call. Several processes, and several stores of one process, may share a folder:
 * each write waits at most 5 seconds for another one, and fails with `store_locked` then.
 *
 * @param folder - Made if there is none, readable for its owner alone. It holds `memory.jsonl`.
 * @returns A store whose calls fail with `store_broken`, naming file and line, while the log cannot be read; with
 * `unsupported_version` for the log of a newer version; with `store_failed` when the disk fails.
 *
 * @example
 * ```ts
 * const memory = createMemory({ store: fileMemoryStore('.turnloop/memory') });
 * ```
 */
export function fileMemoryStore(folder: string, options: FileMemoryStoreOptions = {}): MemoryStore {
  const given: unknown = folder;
  if (typeof given !== 'string' || given === '') {
    throw new TypeError(`fileMemoryStore needs the path of a folder, not ${given === '' ? 'an empty text' : typeof given}. For example: ${ARGUMENT.example}.`);
  }
  assertOptions(options, OPTIONS, ARGUMENT);
  return indexedStore(new FileJournal(path.resolve(folder), options.runtime ?? systemRuntime));
}

class FileJournal implements MemoryJournal {
  readonly #folder: string;
  readonly #file: string;
  readonly #runtime: Runtime;
  #index = new MemoryIndex();
  /** 0 while there is no log. */
  #generation = 0;
  /** How much of the log is in the index, in bytes, lines and operations. */
  #offset = 0;
  #lines = 0;
  #operations = 0;
  /** What the log looked like when it was last read to its end. */
  #seen = '';

  constructor(folder: string, runtime: Runtime) {
    this.#folder = folder;
    this.#file = path.join(folder, LOG_NAME);
    this.#runtime = runtime;
  }

  async read(): Promise<MemoryIndex> {
    await this.#guard('read', () => this.#catchUp(false));
    return this.#index;
  }

  write(plan: (index: MemoryIndex) => readonly MemoryOperation[]): Promise<number> {
    return this.#guard('written', async () => {
      await makeFolder(this.#folder);
      const lock = await takeLock(path.join(this.#folder, LOCK_NAME), this.#runtime);
      try {
        await this.#catchUp(true);
        const operations = plan(this.#index);
        if (operations.length > 0) await this.#append(operations, lock);
        return operations.length;
      } finally {
        await lock.release();
      }
    });
  }

  async close(): Promise<void> {
    // Nothing is held between calls; the index goes with the store.
    this.#reset();
  }

  async #append(operations: readonly MemoryOperation[], lock: HeldLock): Promise<void> {
    if (!(await lock.isHeld())) throw this.#lost();
    const isNew = this.#generation === 0;
    const text = (isNew ? headerLine(1) : '') + operationsLine(operations);
    await appendDurably(this.#file, this.#offset, text);
    if (isNew) this.#generation = 1;
    this.#lines += isNew ? 2 : 1;
    this.#offset += Buffer.byteLength(text);
    this.#apply(operations);
    this.#seen = await lookOf(this.#file);
    if (this.#operations > COMPACT_FROM && this.#operations > COMPACT_SHARE * this.#index.size) await this.#compact(lock);
  }

  /** What was asked for is kept already, so a failure here is none: the log stays as it is, and the next write tries again. */
  async #compact(lock: HeldLock): Promise<void> {
    try {
      const generation = this.#generation + 1;
      if (!(await replaceDurably(this.#file, logOf(generation, this.#index.contents()), () => lock.isHeld()))) return;
      // Read anew from the start the next time: rare, and there is one way to come to know a log.
      this.#reset();
    } catch {
      // See above.
    }
  }

  /** Reads what was written since. @param isWriter - Whether a torn end may be taken off: nobody else is writing it. */
  async #catchUp(isWriter: boolean): Promise<void> {
    const look = await lookOf(this.#file);
    if (look === this.#seen && look !== '') return;
    const found = await withFile(this.#file, isWriter ? 'r+' : 'r', (handle) => this.#readFrom(handle, isWriter));
    if (found === undefined) this.#reset();
    // As it looked before: whatever was written while it was read differs from that.
    else if (found) this.#seen = look;
  }

  /** @returns Whether the log was read to its end. */
  async #readFrom(handle: FileHandle, isWriter: boolean): Promise<boolean> {
    const { size } = await handle.stat();
    const start = await readBytes(handle, 0, Math.min(size, headerLine(Number.MAX_SAFE_INTEGER).length));
    const headerEnd = start.indexOf(NEWLINE);
    const isTorn = headerEnd === -1 && headerLine(1).startsWith(start.toString('latin1'));
    const generation = isTorn ? 0 : readHeader(start.toString('utf8', 0, Math.max(0, headerEnd)), this.#file);
    if (generation !== this.#generation || size < this.#offset) {
      this.#reset();
      this.#generation = generation;
      this.#offset = headerEnd + 1;
      this.#lines = generation === 0 ? 0 : 1;
    }
    if (generation !== 0) this.#readLines(await readBytes(handle, this.#offset, size));
    if (this.#offset === size) return true;
    if (isWriter) await handle.truncate(this.#offset);
    return false;
  }

  #readLines(bytes: Buffer): void {
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      const operations = readOperations(bytes.toString('utf8', start, end));
      if (operations === undefined) {
        throw new MemoryError(
          'store_broken',
          `Line ${this.#lines + 1} of ${this.#file} cannot be read. The ${this.#lines} lines before it are whole (${this.#index.size} entries), ` +
            'the file was left as it is, and nothing is written to it until that line is repaired or taken out.',
        );
      }
      this.#apply(operations);
      this.#lines += 1;
      this.#offset += end + 1 - start;
      start = end + 1;
    }
  }

  #apply(operations: readonly MemoryOperation[]): void {
    for (const operation of operations) this.#index.apply(operation);
    this.#operations += operations.length;
  }

  #reset(): void {
    this.#index = new MemoryIndex();
    this.#generation = 0;
    this.#offset = 0;
    this.#lines = 0;
    this.#operations = 0;
    this.#seen = '';
  }

  #lost(): MemoryError {
    return new MemoryError('store_locked', `Another writer took ${this.#file} over, as this one had held it for too long. Nothing was written; what was there is as it was.`);
  }

  async #guard<Result>(what: 'read' | 'written', call: () => Promise<Result>): Promise<Result> {
    try {
      return await call();
    } catch (error) {
      if (error instanceof MemoryError) throw error;
      throw new MemoryError('store_failed', `${this.#file} could not be ${what}: ${messageOf(error)}. What was acknowledged before is in that file as it was.`, { cause: error });
    }
  }
}

/** Differs whenever somebody wrote to a file; empty if there is none. */
async function lookOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs } = await stat(file, { bigint: true });
    return [dev, ino, size, mtimeNs].join(' ');
  } catch (error) {
    if (isFileError(error, 'ENOENT')) return '';
    throw error;
  }
}
