/**
 * Snapshot file: written whole beside the old one, whose name it then takes; read only if it fits the log.
 *
 * - It says up to which byte of the log it goes, and has a hash of the line before it: one of another log, or of a log that
 *   has lost its end, does not fit, and is dropped. The log says all that it said.
 * - Whoever takes a session removes what the former owner was writing, so that no late snapshot takes the place of a newer.
 * - A dropped one stays where it is until the next takes its name.
 */
import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { isTurnloopError, messageOf } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import { SNAPSHOT_FILE, temporaryName } from './file-names.ts';
import type { FileLines } from './file-lines.ts';
import type { FileSystem } from './file-system.ts';
import { checkSnapshot } from './session-codec.ts';
import type { SessionSnapshot } from './session-store.ts';

/** The folder and the log that a snapshot belongs to. */
export interface SnapshotPlace {
  /** The disk. */
  readonly files: FileSystem;
  /** The folder. */
  readonly folder: string;
  /** The log in it. */
  readonly lines: FileLines;
}

/** A snapshot, and where in the log the events behind it begin; or why it cannot be used; or nothing if there is none. */
export interface FoundSnapshot {
  /** The snapshot. */
  readonly snapshot?: SessionSnapshot;
  /** Offset of the first event behind it. */
  readonly from?: number;
  /** Why it cannot be used. */
  readonly dropped?: string;
}

/**
 * Reads the snapshot of a session.
 *
 * @throws SessionError `unsupported_version`.
 */
export async function readSnapshot(place: SnapshotPlace, sessionId: string): Promise<FoundSnapshot> {
  const path = join(place.folder, SNAPSHOT_FILE);
  const info = await place.files.look(path);
  if (info === undefined) return {};
  if (info.kind !== 'file') return { dropped: `${path} is not a file` };
  const bytes = await readWhole(place.files, path);
  try {
    const value = parse(bytes);
    const snapshot = checkSnapshot(value, sessionId);
    return { snapshot, from: await coveredSize(place.lines, isRecord(value) ? value['log'] : undefined) };
  } catch (error) {
    if (isTurnloopError(error)) throw error;
    return { dropped: `${path} cannot be used: ${messageOf(error)}` };
  }
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    throw new Error('it is not JSON');
  }
}

/** How many bytes of the log a snapshot covers. */
async function coveredSize(lines: FileLines, covered: unknown): Promise<number> {
  if (!isRecord(covered)) throw new Error('it does not say what it covers');
  const { size, lastLineAt, hash } = covered;
  if (!isOffset(size) || !isOffset(lastLineAt) || lastLineAt >= size) throw new Error('it does not say what it covers');
  if (size > lines.size) throw new Error('it covers more than the log has');
  if ((await hashOf(lines, lastLineAt, size)) !== hash) throw new Error('the log is not the one that it covers');
  return size;
}

function isOffset(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Of a line with its line break. */
async function hashOf(lines: FileLines, from: number, to: number): Promise<string> {
  return createHash('sha256').update(await lines.read(from, to)).digest('hex');
}

/**
 * Writes a snapshot of all that the log has.
 *
 * @param confirm - Asked just before it takes the place of the one before.
 */
export async function writeSnapshot(place: SnapshotPlace, snapshot: SessionSnapshot, confirm: () => Promise<void>): Promise<void> {
  const { files, folder, lines } = place;
  const { size, lastLineAt } = lines;
  const log = { size, lastLineAt, hash: await hashOf(lines, lastLineAt, size) };
  const bytes = Buffer.from(JSON.stringify({ ...snapshot, log }));
  // What it covers is on the disk before it is.
  await lines.flush();
  const temporary = join(folder, temporaryName());
  try {
    await writeWhole(files, temporary, bytes);
    await confirm();
    await files.rename(temporary, join(folder, SNAPSHOT_FILE));
  } catch (error) {
    // If this fails too, the next to open the session removes it.
    await files.remove(temporary).catch(() => undefined);
    throw error;
  }
}

async function readWhole(files: FileSystem, path: string): Promise<Uint8Array> {
  const file = await files.open(path, 'read');
  try {
    return await file.read(0, (await file.look()).size);
  } finally {
    await file.close();
  }
}

async function writeWhole(files: FileSystem, path: string, bytes: Uint8Array): Promise<void> {
  const file = await files.open(path, 'new');
  try {
    await file.write(0, bytes);
    await file.flush();
  } finally {
    await file.close();
  }
}
