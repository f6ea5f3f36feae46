/**
 * File session store: sessions in a folder, each in one of its own.
 *
 * `<name>/log.jsonl` has the header and one event a line, `<name>/snapshot.json` the newest snapshot, `<name>/lock.…` says
 * who writes, `<name>/agents/<name>/` has the same for a sub-agent, without a lock.
 *
 * - The name of a session's folder is made of its id, and is never a way out of the folder (`file-names.ts`).
 * - One writer for a session, whatever dies when (`file-lock.ts`).
 * - Nothing that cannot be read is changed or deleted, but for a last line that was never confirmed.
 */
import { join, resolve } from 'node:path';
import { assertOptions } from '../core/assert.ts';
import { type Runtime, systemRuntime } from '../core/runtime.ts';
import { shownId, storeFailed } from './store-errors.ts';
import { assertFolder, createFolder, deleteFolder, type FileSettings, MAX_HEADER_BYTES, openFolder, openLog, removeLeftOvers } from './file-folder.ts';
import { firstLine } from './file-lines.ts';
import { FileLock, heldName, takeLock } from './file-lock.ts';
import { FileLog, readEvents } from './file-log.ts';
import { fileNameOf, isFileName, LOG_FILE } from './file-names.ts';
import { type FileSystem, type FolderEntry, isMissing } from './file-system.ts';
import { nodeFileSystem } from './node-file-system.ts';
import { OpenFiles } from './open-files.ts';
import { replaceLogs } from './file-takeover.ts';
import { assertEventList, assertSessionId, decodeHeader, headerOf } from './session-codec.ts';
import { type NewSession, SessionError, type SessionLog, type SessionStore, type SessionSummary, type StoredSession } from './session-store.ts';

/** Headers read at once by a list. */
const READ_TOGETHER = 32;

/** How long ago the making of a folder began, in milliseconds, that nobody is making any more. */
const LEFT_OVER_AGE_MS = 60 * 60 * 1000;

const ARGUMENT = { taker: 'fileSessionStore', example: "fileSessionStore('./sessions')" };
const OPTIONS: Readonly<Record<keyof FileSessionStoreOptions, true>> = { flush: true, runtime: true, files: true };

/** Options of {@link fileSessionStore}. */
export interface FileSessionStoreOptions {
  /**
   * What an event survives once it was appended: the death of the `process`, or also a loss of `power`, for which each
   * append waits for the disk. @defaultValue `'process'`: waiting costs milliseconds for each event
   */
  readonly flush?: 'process' | 'power' | undefined;
  /** Tells since when a session is held, and when a sub-agent's log was made. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
  /** The disk, for tests with one that fails. @defaultValue that of the process */
  readonly files?: FileSystem | undefined;
}

/**
 * Makes a store that keeps sessions in a folder, which is made with the first session. Any number of processes may use it:
 * a session is held by one of them, until that closes it or dies. A process on another host, or in another container,
 * counts as dead once it has not been heard of for a minute.
 *
 * @throws TypeError without a folder, and for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const agent = createAgent({ llm, sessions: fileSessionStore('./sessions') });
 * ```
 */
export function fileSessionStore(folder: string, options: FileSessionStoreOptions = {}): SessionStore {
  if (typeof folder !== 'string' || folder === '') throw new TypeError(`fileSessionStore needs the path of a folder. For example: ${ARGUMENT.example}.`);
  assertOptions(options, OPTIONS, ARGUMENT);
  const { flush = 'process', runtime = systemRuntime, files = nodeFileSystem } = options;
  assertFlush(flush);
  // The process may go elsewhere later.
  return new FileSessionStore(resolve(folder), { flush, runtime, files: new OpenFiles(files) });
}

function assertFlush(flush: unknown): void {
  if (flush === 'process' || flush === 'power') return;
  throw new TypeError("fileSessionStore: `flush` must be 'process' or 'power'. For example: fileSessionStore('./sessions', { flush: 'power' }).");
}

class FileSessionStore implements SessionStore {
  readonly #root: string;
  readonly #settings: FileSettings;
  #hasTidied = false;

  constructor(root: string, settings: FileSettings) {
    this.#root = root;
    this.#settings = settings;
  }

  async create(session: NewSession): Promise<SessionLog> {
    const header = headerOf(session);
    const { sessionId } = header;
    const { files, runtime } = this.#settings;
    const name = fileNameOf(sessionId);
    const lockName = heldName(runtime.now());
    const { events = [] } = session;
    assertEventList(events, 'create');
    return this.#try(`Session ${shownId(sessionId)} could not be made.`, async () => {
      await this.#tidy();
      const isMade = await createFolder(this.#settings, { parent: this.#root, name, header, events, lockName });
      if (!isMade) throw new SessionError('session_exists', `There is a session ${shownId(sessionId)} already; it is as it was.`);
      const lock = new FileLock({ files, folder: join(this.#root, name), sessionId }, lockName);
      return this.#openHeld(sessionId, lock, async () => {
        await deleteFolder(files, this.#root, name);
      });
    });
  }

  async open(sessionId: string): Promise<SessionLog> {
    assertSessionId(sessionId);
    return this.#tryWith(sessionId, `Session ${shownId(sessionId)} could not be opened; nothing of it was changed.`, async () => {
      // Before anything is touched: it may be that of a newer release, or none.
      const { lines } = await openLog(this.#settings.files, this.#folderOf(sessionId), { id: sessionId });
      await lines.close();
      return this.#openHeld(sessionId, await this.#takeLock(sessionId));
    });
  }

  async read(sessionId: string): Promise<StoredSession> {
    assertSessionId(sessionId);
    return this.#tryWith(sessionId, `Session ${shownId(sessionId)} could not be read.`, async () => {
      const { header, lines } = await openLog(this.#settings.files, this.#folderOf(sessionId), { id: sessionId });
      try {
        return { header, events: await readEvents(lines) };
      } finally {
        await lines.close();
      }
    });
  }

  async list(): Promise<readonly SessionSummary[]> {
    return this.#try(`The sessions in ${this.#root} could not be listed.`, async () => {
      const entries = await this.#entries();
      const names = entries.filter(({ name, kind }) => kind === 'folder' && isFileName(name)).map(({ name }) => name);
      const found: SessionSummary[] = [];
      for (let start = 0; start < names.length; start += READ_TOGETHER) {
        const some = await Promise.all(names.slice(start, start + READ_TOGETHER).map((name) => this.#summarize(name)));
        for (const summary of some) if (summary !== undefined) found.push(summary);
      }
      return found.sort((left, right) => right.updatedAt - left.updatedAt);
    });
  }

  async delete(sessionId: string): Promise<boolean> {
    assertSessionId(sessionId);
    const { files } = this.#settings;
    return this.#try(`Session ${shownId(sessionId)} could not be deleted, and is kept.`, async () => {
      const info = await files.look(this.#folderOf(sessionId));
      if (info === undefined) return false;
      if (info.kind !== 'folder') throw new Error(`${this.#folderOf(sessionId)} is not a folder`);
      const lock = await takeLock({ files, folder: this.#folderOf(sessionId), sessionId }, this.#settings.runtime.now());
      try {
        await deleteFolder(files, this.#root, fileNameOf(sessionId));
        return true;
      } finally {
        // If it is still there, so may be the owner that it was taken from.
        await lock.release(lock.takenFrom === undefined ? 'free' : 'abandoned');
      }
    });
  }

  /** What is in the folder, which is made with the first session. */
  async #entries(): Promise<readonly FolderEntry[]> {
    const info = await this.#settings.files.look(this.#root);
    if (info !== undefined && info.kind === 'file') throw new Error(`${this.#root} is not a folder`);
    return orNone(this.#settings.files.list(this.#root));
  }

  #folderOf(sessionId: string): string {
    return join(this.#root, fileNameOf(sessionId));
  }

  /** Takes the lock, and makes sure that whoever had it writes no more. */
  async #takeLock(sessionId: string): Promise<FileLock> {
    const { files, runtime } = this.#settings;
    const folder = this.#folderOf(sessionId);
    const lock = await takeLock({ files, folder, sessionId }, runtime.now());
    try {
      if (lock.takenFrom !== undefined) await replaceLogs(files, folder);
      return lock;
    } catch (error) {
      await lock.release('abandoned');
      throw error;
    }
  }

  /** @param undo - Called if it cannot be opened, while it is still held. */
  async #openHeld(sessionId: string, lock: FileLock, undo?: () => Promise<void>): Promise<SessionLog> {
    const folder = this.#folderOf(sessionId);
    try {
      const opened = await openFolder(this.#settings, folder, { id: sessionId, lock });
      const repairs = lock.takenFrom === undefined ? opened.repairs : [lockTaken(lock.takenFrom), ...opened.repairs];
      return new FileLog({ settings: this.#settings, folder, opened: { ...opened, repairs }, lock, onClosed: () => lock.release() });
    } catch (error) {
      await undo?.().catch(() => undefined);
      await lock.release();
      throw error;
    }
  }

  async #summarize(name: string): Promise<SessionSummary | undefined> {
    try {
      const file = await this.#settings.files.open(join(this.#root, name, LOG_FILE), 'read');
      try {
        const { size, modifiedAt } = await file.look();
        const line = await firstLine(file, Math.min(size, MAX_HEADER_BYTES));
        const header = decodeHeader(line ?? '');
        // A copy of a session under another name is not a session.
        return fileNameOf(header.sessionId) === name ? { ...header, updatedAt: modifiedAt } : undefined;
      } finally {
        await file.close();
      }
    } catch {
      return undefined;
    }
  }

  /** Removes what others left who died while they made or deleted a session: once, before the first session is made here. */
  async #tidy(): Promise<void> {
    if (this.#hasTidied) return;
    this.#hasTidied = true;
    await removeLeftOvers(this.#settings.files, this.#root, LEFT_OVER_AGE_MS).catch(() => undefined);
  }

  /** Tries something with a session that may be deleted meanwhile. */
  #tryWith<Value>(sessionId: string, failure: string, action: () => Promise<Value>): Promise<Value> {
    return this.#try(failure, async () => {
      try {
        return await action();
      } catch (error) {
        if (isMissing(error)) await assertFolder(this.#settings.files, this.#folderOf(sessionId), sessionId);
        throw error;
      }
    });
  }

  async #try<Value>(failure: string, action: () => Promise<Value>): Promise<Value> {
    try {
      return await action();
    } catch (error) {
      if (error instanceof TypeError) throw error;
      throw storeFailed(failure, error);
    }
  }
}

function lockTaken(from: string): { readonly kind: 'lock_taken'; readonly message: string } {
  return { kind: 'lock_taken', message: `The session was held by ${from}; it was taken over.` };
}

async function orNone<Item>(list: Promise<readonly Item[]>): Promise<readonly Item[]> {
  try {
    return await list;
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
