/** Disk: the few things that the file store does with files, each whole or not at all. */
import { type FileHandle, mkdir, open, rename } from 'node:fs/promises';
import path from 'node:path';
import { isRecord } from '../core/json.ts';

/** Memory is nobody else's business. */
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

/** Whether an error is the one of the file system with this code. */
export function isFileError(error: unknown, code: string): boolean {
  return isRecord(error) && error['code'] === code;
}

/** Makes a folder, and those it stands in. */
export async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
}

/** Opens a file, and closes it whatever happens; undefined if there is none. */
export async function withFile<Result>(file: string, flags: 'r' | 'r+', use: (handle: FileHandle) => Promise<Result>): Promise<Result | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(file, flags);
  } catch (error) {
    if (isFileError(error, 'ENOENT')) return undefined;
    throw error;
  }
  try {
    return await use(handle);
  } finally {
    await handle.close();
  }
}

/** The bytes of a file from one place to another. */
export async function readBytes(handle: FileHandle, from: number, to: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(Math.max(0, to - from));
  let length = 0;
  while (length < bytes.length) {
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length, from + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.subarray(0, length);
}

/**
 * Adds to a file that is `size` bytes long, and flushes it. If that fails the file is cut back to what it was.
 *
 * @throws whatever the file system throws.
 */
export async function appendDurably(file: string, size: number, text: string): Promise<void> {
  const handle = await open(file, 'a', FILE_MODE);
  try {
    await handle.appendFile(text, 'utf8');
    await handle.datasync();
  } catch (error) {
    // If this fails too the next writer cuts off what is not whole.
    await handle.truncate(size).catch(() => undefined);
    throw error;
  } finally {
    await handle.close();
  }
  if (size === 0) await syncFolder(path.dirname(file));
}

/**
 * Puts a file in the place of another: whoever looks sees the old one or the new one, whole.
 *
 * @param isAllowed - Asked when the new one is ready.
 * @returns Whether it was allowed.
 */
export async function replaceDurably(file: string, chunks: Iterable<string>, isAllowed: () => Promise<boolean>): Promise<boolean> {
  const ready = `${file}.tmp`;
  const handle = await open(ready, 'w', FILE_MODE);
  try {
    for (const chunk of chunks) await handle.appendFile(chunk, 'utf8');
    await handle.sync();
  } finally {
    await handle.close();
  }
  if (!(await isAllowed())) return false;
  await rename(ready, file);
  await syncFolder(path.dirname(file));
  return true;
}

/** Makes what was created or renamed in a folder last. Not every platform can; there it lasts as its files do. */
async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch {
    // See above.
  }
}
