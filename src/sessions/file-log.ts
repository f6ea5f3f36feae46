/**
 * File log: a session, or a sub-agent of one, in its folder.
 *
 * - One thing is written at a time, in the order of the calls. Appends that wait together are one write; if it fails, all
 *   of them fail, and the file is as it was.
 * - Nothing counts as written before it was made sure that the session was still held after the write.
 * - A snapshot covers what was appended before it was saved; no line behind it refers to one before it.
 * - Sub-agents live in folders below, under the one lock of their session.
 */
import { join } from 'node:path';
import { messageOf } from '../core/errors.ts';
import { shownId, brokenLog, storeFailed } from './store-errors.ts';
import { createFolder, type FileSettings, type OpenedFolder, openFolder } from './file-folder.ts';
import type { FileLines } from './file-lines.ts';
import type { FileLock } from './file-lock.ts';
import { AGENTS_FOLDER, fileNameOf } from './file-names.ts';
import { isMissing } from './file-system.ts';
import { type FoundSnapshot, readSnapshot, writeSnapshot } from './file-snapshot.ts';
import { assertEventList, assertSessionId, checkSnapshot, EventDecoder, EventEncoder } from './session-codec.ts';
import { SESSION_VERSION, SessionError, type SessionContent, type SessionEvent, type SessionHeader, type SessionLog, type SessionRepair, type SessionSnapshot } from './session-store.ts';

/** What a log is made of. */
export interface FileLogParts {
  /** What all files of the store have in common. */
  readonly settings: FileSettings;
  /** Its folder. */
  readonly folder: string;
  /** What is open there. */
  readonly opened: OpenedFolder;
  /** The lock of the session. */
  readonly lock: FileLock;
  /** Called once it was closed. */
  readonly onClosed: () => Promise<void>;
}

/** Something to be written. */
interface Job {
  readonly content: readonly SessionEvent[] | SessionSnapshot;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The log of a session in a folder. */
export class FileLog implements SessionLog {
  readonly header: SessionHeader;
  readonly #parts: FileLogParts;
  readonly #lines: FileLines;
  readonly #encoder = new EventEncoder();
  readonly #children = new Map<string, Promise<FileLog>>();
  /** Events of the log; undefined while that is not known. */
  #count: number | undefined;
  #jobs: Job[] = [];
  #writing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: FileLogParts) {
    this.#parts = parts;
    this.header = parts.opened.header;
    this.#lines = parts.opened.lines;
  }

  async load(): Promise<SessionContent> {
    this.#assertOpen();
    try {
      const found = await readSnapshot(this.#place, this.header.sessionId);
      const events = await readEvents(this.#lines, found);
      this.#count = (found.snapshot?.events ?? 0) + events.length;
      const dropped = found.dropped === undefined ? [] : [snapshotDropped(found.dropped)];
      return { ...(found.snapshot !== undefined && { snapshot: found.snapshot }), events, repairs: [...this.#parts.opened.repairs, ...dropped] };
    } catch (error) {
      throw storeFailed(`Session ${this.#name} could not be read; nothing was changed.`, error);
    }
  }

  async append(events: readonly SessionEvent[]): Promise<void> {
    assertEventList(events, 'append');
    await this.#write([...events]);
  }

  async saveSnapshot(snapshot: SessionSnapshot): Promise<void> {
    this.#assertOpen();
    assertSnapshot(snapshot, this.header.sessionId);
    await this.#write(snapshot);
  }

  async child(id: string): Promise<SessionLog> {
    this.#assertOpen();
    assertSessionId(id);
    if (this.#children.has(id)) throw new SessionError('session_locked', `Sub-agent ${shownId(id)} of session ${this.#name} is open already: close it first.`);
    const opening = this.#openChild(id);
    this.#children.set(id, opening);
    try {
      return await opening;
    } catch (error) {
      this.#children.delete(id);
      throw storeFailed(`Sub-agent ${shownId(id)} of session ${this.#name} could not be opened; what was written of it is kept.`, error);
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  get #name(): string {
    return shownId(this.header.sessionId);
  }

  get #place(): { readonly files: FileSettings['files']; readonly folder: string; readonly lines: FileLines } {
    return { files: this.#parts.settings.files, folder: this.#parts.folder, lines: this.#lines };
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new SessionError('session_closed', `Session ${this.#name} was closed here; what was written to it is kept.`);
  }

  #write(content: Job['content']): Promise<void> {
    this.#assertOpen();
    return new Promise((resolve, reject) => {
      this.#jobs.push({ content, resolve, reject });
      this.#writing ??= this.#writeJobs();
    });
  }

  async #writeJobs(): Promise<void> {
    while (this.#jobs.length > 0) {
      const appends = this.#jobs.findIndex(({ content }) => !isEvents(content));
      const together = this.#jobs.splice(0, appends === -1 ? this.#jobs.length : Math.max(1, appends));
      await this.#writeTogether(together);
    }
    this.#writing = undefined;
  }

  /** One snapshot, or any number of appends. */
  async #writeTogether(jobs: readonly Job[]): Promise<void> {
    const lines: string[] = [];
    const written: Job[] = [];
    for (const job of jobs) {
      try {
        if (isEvents(job.content)) for (const line of job.content.map((event) => this.#encoder.encode(event))) lines.push(line);
        else await this.#writeSnapshot(job.content);
        written.push(job);
      } catch (error) {
        this.#encoder.forget();
        job.reject(error);
      }
    }
    try {
      if (lines.length > 0) await this.#addLines(lines);
      for (const { resolve } of written) resolve();
    } catch (error) {
      this.#encoder.forget();
      for (const { reject } of written) reject(error);
    }
  }

  async #addLines(lines: readonly string[]): Promise<void> {
    const { settings, lock } = this.#parts;
    try {
      await this.#lines.add(lines, async () => {
        if (settings.flush === 'power') await this.#lines.flush();
        await lock.assertHeld();
      });
      if (this.#count !== undefined) this.#count += lines.length;
    } catch (error) {
      throw storeFailed(`${lines.length} events of session ${this.#name} could not be written. Its log is as it was before.`, error);
    }
  }

  async #writeSnapshot(snapshot: SessionSnapshot): Promise<void> {
    const { settings, lock } = this.#parts;
    this.#encoder.forget();
    try {
      await lock.assertHeld();
      await this.#assertCovers(snapshot);
      await writeSnapshot(this.#place, snapshot, () => lock.assertHeld());
      if (settings.flush === 'power') await settings.files.flushFolder(this.#parts.folder);
    } catch (error) {
      if (error instanceof TypeError) throw error;
      // Tidied away by who took the session.
      if (isMissing(error)) await lock.assertHeld();
      throw storeFailed(`The snapshot of session ${this.#name} could not be written. The one before is kept, and so is the log.`, error);
    }
  }

  /** A snapshot of fewer events would lose those that it does not have. */
  async #assertCovers({ events }: SessionSnapshot): Promise<void> {
    this.#count ??= await countEvents(this.#lines);
    if (events === this.#count) return;
    throw new TypeError(`saveSnapshot: the snapshot covers ${events} events, and the log has ${this.#count}. Take it again, behind the last append.`);
  }

  async #openChild(id: string): Promise<FileLog> {
    const { settings, folder, lock } = this.#parts;
    await lock.assertHeld();
    const parent = join(folder, AGENTS_FOLDER);
    const name = fileNameOf(id);
    const isLink = (await settings.files.look(parent))?.kind === 'other';
    if (isLink) throw new Error(`${parent} is not a folder`);
    const path = join(parent, name);
    if ((await settings.files.look(path)) === undefined) {
      const header = { version: SESSION_VERSION, sessionId: id, createdAt: settings.runtime.now() };
      await createFolder(settings, { parent, name, header, events: [] });
    }
    const opened = await openFolder(settings, path, { id, lock });
    const onClosed = async (): Promise<void> => void this.#children.delete(id);
    return new FileLog({ settings, folder: path, opened, lock, onClosed });
  }

  async #close(): Promise<void> {
    const children = await Promise.allSettled(this.#children.values());
    for (const child of children) if (child.status === 'fulfilled') await child.value.close();
    await this.#writing;
    try {
      await this.#lines.close();
    } finally {
      await this.#parts.onClosed();
    }
  }
}

function isEvents(content: Job['content']): content is readonly SessionEvent[] {
  return Array.isArray(content);
}

function assertSnapshot(snapshot: unknown, sessionId: string): void {
  try {
    checkSnapshot(snapshot, sessionId);
  } catch (error) {
    if (error instanceof SessionError) throw error;
    throw new TypeError(`saveSnapshot takes a snapshot of session ${shownId(sessionId)}: ${messageOf(error)}.`, { cause: error });
  }
}

async function countEvents(lines: FileLines): Promise<number> {
  let count = 0;
  await lines.each(0, ({ at }) => {
    if (at > 0) count += 1;
  });
  return count;
}

function snapshotDropped(reason: string): SessionRepair {
  return { kind: 'snapshot_dropped', message: `${reason}. The whole log was read instead.` };
}

/**
 * Reads the events of a log, behind a snapshot where one was found.
 *
 * @throws SessionError `broken_log`.
 */
export async function readEvents(lines: FileLines, found: FoundSnapshot = {}): Promise<SessionEvent[]> {
  const decoder = new EventDecoder();
  const events: SessionEvent[] = [];
  // The header is line 1.
  const firstLine = 2 + (found.snapshot?.events ?? 0);
  await lines.each(found.from ?? 0, ({ text, at }) => {
    if (at === 0) return;
    try {
      events.push(decoder.decode(text));
    } catch (error) {
      throw brokenLog({ path: lines.path, line: firstLine + events.length, at }, error);
    }
  });
  return events;
}
