/**
 * Lock of a session folder: one empty file, whose name says who holds the session, and which changes hands by getting
 * another name.
 *
 * Why no two writers ever hold a session:
 *
 * 1. The file is made with the folder, and never again: there is exactly one, under exactly one name at a time.
 * 2. Whoever wants it renames it from the name that it judged (free, or that of a dead owner) to a name that is new with
 *    every attempt. Of any number who judged the same name, the system lets one rename it: for the others it is gone. However
 *    slow they are, the name that they judged never comes back, but for those of a free and of an abandoned lock, which
 *    anybody may take.
 * 3. A holder knows that it was one at a time when the file still had its name after that time. So a log asks after it
 *    wrote, and before it says that it did.
 * 4. An owner that was taken for dead may still be writing. So whoever takes over from it copies the log first, and goes
 *    on in the copy (`file-takeover.ts`): what the former owner still writes goes nowhere, and it is told by 3. A takeover
 *    that failed on the way leaves a lock that is to be taken over, never a free one.
 */
import { createHash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { shownId, storeFailed } from './store-errors.ts';
import { fileNameOf, idOfFileName, temporaryName } from './file-names.ts';
import { type FileSystem, isMissing } from './file-system.ts';
import { describeOwner, HEARTBEAT_MS, isAlive, type LockOwner, ownerText } from './lock-owner.ts';
import { SessionError } from './session-store.ts';

const PREFIX = 'lock.';
const FREE = 'lock.free';
/** Given up by who had not yet made sure that the owner before writes no more. */
const ABANDONED = 'lock.abandoned';
/** Since when, a mark of this hold alone, pid, start, place, host. */
const HELD = /^lock\.(\d+)\.([0-9a-f-]{36})\.(\d+)\.([\w-]*)\.([0-9a-f]{16})\.(.+)$/;
/** Longest host name in a lock: it is for people. */
const MAX_HOST_LENGTH = 60;
/** How often a lock may slip away to others before somebody who wants it gives up. */
const ATTEMPTS = 100;

/** The folder whose lock is wanted. */
export interface LockedFolder {
  /** The disk. */
  readonly files: FileSystem;
  /** The folder. */
  readonly folder: string;
  /** The session, for messages. */
  readonly sessionId: string;
}

/** A lock that is held. */
export class FileLock {
  /** What had to be taken over, in words; undefined if the lock was free. */
  readonly takenFrom: string | undefined;
  readonly #at: LockedFolder;
  readonly #name: string;
  readonly #heart: ReturnType<typeof setInterval>;

  constructor(at: LockedFolder, name: string, takenFrom?: string) {
    this.#at = at;
    this.#name = name;
    this.takenFrom = takenFrom;
    // Not by a runtime: others look at the file's time, whatever time it is here. An open session keeps no process alive.
    this.#heart = setInterval(() => void this.#beat(), HEARTBEAT_MS);
    this.#heart.unref();
  }

  /** @throws SessionError `session_lost` if it is not held any more. */
  async assertHeld(): Promise<void> {
    const { files, folder, sessionId } = this.#at;
    if ((await files.look(join(folder, this.#name))) !== undefined) return;
    throw new SessionError(
      'session_lost',
      `Session ${shownId(sessionId)} is no longer held here: another writer has taken or deleted it. What it did not confirm may not be kept; open it again.`,
    );
  }

  /**
   * Lets go of it; nothing happens if it was lost.
   *
   * @param as - `abandoned` if the owner before may still be writing to files that the next would use.
   */
  async release(as: 'free' | 'abandoned' = 'free'): Promise<void> {
    clearInterval(this.#heart);
    const { files, folder, sessionId } = this.#at;
    try {
      await files.rename(join(folder, this.#name), join(folder, as === 'free' ? FREE : ABANDONED));
    } catch (error) {
      if (isMissing(error)) return;
      throw storeFailed(`Session ${shownId(sessionId)} could not be let go of, and stays locked until this process ends.`, error);
    }
  }

  async #beat(): Promise<void> {
    try {
      await touch(this.#at.files, join(this.#at.folder, this.#name));
    } catch {
      // Lost, or the disk fails: the next write says so.
    }
  }
}

/** Makes the lock of a folder that nobody else knows of yet. */
export async function makeLock(files: FileSystem, path: string): Promise<void> {
  await writeByte(files, path, 'new');
}

/**
 * Takes the lock of a folder.
 *
 * @param at - The time, in milliseconds since the epoch.
 * @throws SessionError `session_locked`, `store_failed`.
 */
export async function takeLock(where: LockedFolder, at: number): Promise<FileLock> {
  const { files, folder, sessionId } = where;
  let isThere = false;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const locks = (await files.list(folder)).filter((entry) => entry.name.startsWith(PREFIX));
    for (const { name, kind } of locks) {
      isThere = true;
      if (kind !== 'file') throw new Error(`${join(folder, name)} is not a file`);
      const takenFrom = name === FREE ? undefined : await judge(where, name);
      const held = heldName(at);
      if (await renamed(files, join(folder, name), join(folder, held))) return new FileLock(where, held, takenFrom);
    }
  }
  if (isThere) throw new SessionError('session_locked', `Session ${shownId(sessionId)} is being opened by others.`);
  throw new Error(`${folder} has no lock. If nobody writes to it, put an empty file ${FREE} there`);
}

/** Whether a name was changed here, rather than by somebody else. */
async function renamed(files: FileSystem, from: string, to: string): Promise<boolean> {
  // A new owner has not just been silent for a minute. That is only for others to see: the name is what counts.
  await touch(files, from).catch(() => undefined);
  try {
    await files.rename(from, to);
    return true;
  } catch (error) {
    if (!isMissing(error)) throw error;
    // A network may ask twice and tell of the second time, when the name is gone.
    return (await files.look(to)) !== undefined;
  }
}

/**
 * What is taken over from a dead owner, in words.
 *
 * @throws SessionError `session_locked` if it lives.
 */
async function judge(where: LockedFolder, name: string): Promise<string> {
  if (name === ABANDONED) return 'whoever took it over before could not do so to the end';
  const { owner, since } = readName(name);
  // Most owners can be judged without a look at the clock of the disk.
  const isDead = !isAlive(owner, 0) || (!isAlive(owner, Infinity) && !isAlive(owner, await heartbeatAge(where, name)));
  const who = `${ownerText(owner)}, since ${since}`;
  if (isDead) return `${who}, which is dead`;
  throw new SessionError(
    'session_locked',
    `Session ${shownId(where.sessionId)} is held by ${who}. Close it there, or end that process, to open it here.`,
  );
}

/** How long ago a lock was touched, by the clock that touched it: that of the disk. */
async function heartbeatAge({ files, folder }: LockedFolder, name: string): Promise<number> {
  const probe = join(folder, temporaryName());
  try {
    await (await files.open(probe, 'new')).close();
    const [now, touched] = [await files.look(probe), await files.look(join(folder, name))];
    // Tidied away: by an owner who lives.
    if (now === undefined) return 0;
    // Taken by somebody else: renaming it will tell.
    return touched === undefined ? Infinity : now.modifiedAt - touched.modifiedAt;
  } finally {
    await files.remove(probe);
  }
}

/** One byte, written over itself: no disk is too full for it. */
const BEAT = new Uint8Array([0x2e]);

async function touch(files: FileSystem, path: string): Promise<void> {
  await writeByte(files, path, 'change');
}

async function writeByte(files: FileSystem, path: string, use: 'change' | 'new'): Promise<void> {
  const file = await files.open(path, use);
  try {
    await file.write(0, BEAT);
  } finally {
    await file.close();
  }
}

/** A new name for a lock that this process holds since then, in milliseconds since the epoch. */
export function heldName(at: number): string {
  const { host, pid, started, place } = describeOwner();
  return `${PREFIX}${at}.${randomUUID()}.${pid}.${started}.${placeMark(place)}.${fileNameOf(host.slice(0, MAX_HOST_LENGTH))}`;
}

/** Who holds a lock by its name. One of another release is somebody who cannot be looked at. */
function readName(name: string): { readonly owner: LockOwner; readonly since: string } {
  const [, at, , pid, started, mark, host] = HELD.exec(name) ?? [];
  if (at === undefined || pid === undefined || started === undefined || mark === undefined || host === undefined) {
    return { owner: { host: 'a host that the lock does not tell', place: name, pid: 0, started: '' }, since: 'a time that it does not tell' };
  }
  const here = describeOwner();
  const place = mark === placeMark(here.place) ? here.place : mark;
  return { owner: { host: idOfFileName(host), place, pid: Number(pid), started }, since: timeText(Number(at)) };
}

function timeText(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString();
}

function placeMark(place: string): string {
  return createHash('sha256').update(place).digest('hex').slice(0, 16);
}
