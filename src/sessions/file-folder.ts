/**
 * Session folder: made whole or not at all, and opened only if it is what it has to be.
 *
 * - A folder gets its name once its log is in it: there is no session without a header.
 * - A folder that is being made or deleted has a name that no session can have.
 */
import { Buffer } from 'node:buffer';
import { join } from 'node:path';
import type { Runtime } from '../core/runtime.ts';
import { brokenLog, shownId } from './store-errors.ts';
import { FileLines } from './file-lines.ts';
import { type FileLock, makeLock } from './file-lock.ts';
import { AGENTS_FOLDER, deletedName, isDeletedName, isTemporaryName, isUnfinishedName, LOG_FILE, unfinishedName } from './file-names.ts';
import type { FileSystem } from './file-system.ts';
import type { OpenFiles } from './open-files.ts';
import { decodeHeader, encodeHeader, EventEncoder } from './session-codec.ts';
import { SessionError, type SessionEvent, type SessionHeader, type SessionRepair } from './session-store.ts';

/** Longest header: a list of sessions reads that of each. */
export const MAX_HEADER_BYTES: number = 1024 * 1024;

/** What all of a store's files have in common. */
export interface FileSettings {
  /** The disk. */
  readonly files: OpenFiles;
  /** The clock. */
  readonly runtime: Runtime;
  /** What an event survives once it was appended. */
  readonly flush: 'process' | 'power';
}

/** A folder to be made. */
export interface NewFolder {
  /** The folder that it is made in. */
  readonly parent: string;
  /** Its name. */
  readonly name: string;
  /** What the log begins with. */
  readonly header: SessionHeader;
  /** Its first events. */
  readonly events: readonly SessionEvent[];
  /** Name of its lock, which is held from the start; absent for a sub-agent, which has none. */
  readonly lockName?: string;
}

/**
 * Makes the folder of a session with its log and its lock.
 *
 * @returns False if there is such a folder already.
 */
export async function createFolder(settings: FileSettings, folder: NewFolder): Promise<boolean> {
  const { files, flush } = settings;
  const bytes = firstLines(folder);
  const path = join(folder.parent, folder.name);
  const unfinished = join(folder.parent, unfinishedName());
  await files.makeFolder(unfinished);
  try {
    if (folder.lockName !== undefined) await makeLock(files, join(unfinished, folder.lockName));
    const log = await files.open(join(unfinished, LOG_FILE), 'new');
    try {
      await log.write(0, bytes);
      if (flush === 'power') await log.flush();
    } finally {
      await log.close();
    }
    if (flush === 'power') await files.flushFolder(unfinished);
    const isMade = await putInPlace(files, unfinished, path);
    if (isMade && flush === 'power') await files.flushFolder(folder.parent);
    return isMade;
  } finally {
    // Nothing is there once it is in place.
    await files.remove(unfinished).catch(() => undefined);
  }
}

function firstLines({ header, events }: NewFolder): Uint8Array {
  const headerLine = encodeHeader(header);
  if (Buffer.byteLength(headerLine) >= MAX_HEADER_BYTES) {
    throw new TypeError(`create: the metadata of a session is at most ${MAX_HEADER_BYTES} bytes of JSON, since every list of sessions reads it.`);
  }
  const encoder = new EventEncoder();
  return Buffer.from([headerLine, ...events.map((event) => encoder.encode(event)), ''].join('\n'));
}

async function putInPlace(files: FileSystem, unfinished: string, path: string): Promise<boolean> {
  if ((await files.look(path)) !== undefined) return false;
  try {
    await files.rename(unfinished, path);
    return true;
  } catch (error) {
    // Somebody else was first.
    if ((await files.look(path)) !== undefined) return false;
    throw error;
  }
}

/** A folder that is open for writing. */
export interface OpenedFolder {
  /** What the log begins with. */
  readonly header: SessionHeader;
  /** The log. */
  readonly lines: FileLines;
  /** What had to be repaired. */
  readonly repairs: readonly SessionRepair[];
}

/**
 * Opens the log of a folder for writing, and removes what dead writers left.
 *
 * @param held - The id that it has to be of, and the lock that it is held by.
 */
export async function openFolder({ files }: FileSettings, folder: string, held: { readonly id: string; readonly lock: FileLock }): Promise<OpenedFolder> {
  const { header, lines } = await openLog(files, folder, held);
  try {
    const { tornBytes } = lines;
    await lines.cut();
    await tidy(files, folder);
    return { header, lines, repairs: tornBytes === 0 ? [] : [tornLine(lines, tornBytes)] };
  } catch (error) {
    await lines.close();
    throw error;
  }
}

async function tidy(files: FileSystem, folder: string): Promise<void> {
  for (const { name, kind } of await files.list(folder)) {
    if (isTemporaryName(name)) await files.remove(join(folder, name));
    if (name === AGENTS_FOLDER && kind === 'folder') await removeLeftOvers(files, join(folder, name), 0);
  }
}

function tornLine({ path }: FileLines, bytes: number): SessionRepair {
  return { kind: 'torn_line', message: `${path} ended in the middle of an event: its ${bytes} bytes were cut off. No append had confirmed it.` };
}

/** What is asked of a log that is opened. */
export interface LogUse {
  /** The id that it has to be of. */
  readonly id: string;
  /** The lock under which it will be written; absent for one that is only read. */
  readonly lock?: FileLock;
}

/**
 * Opens the log of a folder, and reads its header.
 *
 * @throws SessionError `session_not_found`, `broken_log`, `unsupported_version`.
 */
export async function openLog(files: OpenFiles, folder: string, { id, lock }: LogUse): Promise<Omit<OpenedFolder, 'repairs'>> {
  await assertFolder(files, folder, id);
  const path = join(folder, LOG_FILE);
  if ((await files.look(path)) === undefined) throw brokenLog({ path, line: 1, at: 0 }, new Error('there is no such file'));
  const file = lock === undefined ? await files.open(path, 'read') : files.keep(path, () => lock.assertHeld());
  const lines = await FileLines.of(file, path);
  try {
    return { header: await readHeader(lines, id), lines };
  } catch (error) {
    await lines.close();
    throw error;
  }
}

async function readHeader(lines: FileLines, id: string): Promise<SessionHeader> {
  const line = await lines.firstLine(MAX_HEADER_BYTES);
  try {
    if (line === undefined) throw new Error('there is no whole line');
    const header = decodeHeader(line);
    if (header.sessionId !== id) throw new Error(`it is of session ${shownId(header.sessionId)}`);
    return header;
  } catch (error) {
    throw brokenLog({ path: lines.path, line: 1, at: 0 }, error);
  }
}

/**
 * A folder is there, and is one: nothing is followed to somewhere else.
 *
 * @throws SessionError `session_not_found`.
 */
export async function assertFolder(files: FileSystem, folder: string, id: string): Promise<void> {
  const info = await files.look(folder);
  if (info === undefined) throw new SessionError('session_not_found', `There is no session ${shownId(id)}: there is no ${folder}.`);
  if (info.kind !== 'folder') throw new Error(`${folder} is not a folder`);
}

/** Deletes a folder at once; what is in it goes after. */
export async function deleteFolder(files: FileSystem, parent: string, name: string): Promise<void> {
  const deleted = join(parent, deletedName());
  await files.rename(join(parent, name), deleted);
  // What stays of it has no name of a session, and is removed with what others left.
  await files.remove(deleted).catch(() => undefined);
}

/**
 * Removes what is left of folders that were being made or deleted by processes which died.
 *
 * @param leastAgeMs - How long ago the making of one began at least, in milliseconds.
 */
export async function removeLeftOvers(files: FileSystem, parent: string, leastAgeMs: number): Promise<void> {
  const names = (await files.list(parent)).filter(({ kind }) => kind === 'folder').map(({ name }) => name);
  for (const name of names.filter(isDeletedName)) await files.remove(join(parent, name));
  for (const name of names.filter(isUnfinishedName)) {
    const info = await files.look(join(parent, name));
    // The clock of the system, as that of the disk is. By another name first: who still makes it cannot put half of it in place.
    if (info !== undefined && Date.now() - info.modifiedAt >= leastAgeMs) await deleteFolder(files, parent, name);
  }
}
