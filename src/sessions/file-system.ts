/**
 * File system: all that a session store asks of a disk, so that tests can give it one that fails.
 *
 * - Only here are files of the operating system touched.
 * - No symbolic link is ever followed at the end of a path.
 * - Failures are those of Node: errors with a `code`, such as `ENOSPC`.
 */
import { constants, lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { isRecord } from '../core/json.ts';

/** An open file. */
export interface OpenFile {
  /** What it is now. */
  look(): Promise<FileInfo>;
  /** Bytes from an offset on; fewer than asked for only at the end of the file. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** Writes all bytes at an offset; if it fails, some of them may have been written. */
  write(offset: number, bytes: Uint8Array): Promise<void>;
  /** Cuts it off. */
  truncate(length: number): Promise<void>;
  /** Waits until all written bytes survive a loss of power. */
  flush(): Promise<void>;
  /** Closes it. */
  close(): Promise<void>;
}

/** What is at a path. */
export interface FileInfo {
  /** A regular file, a folder, or anything else, such as a symbolic link. */
  readonly kind: 'file' | 'folder' | 'other';
  /** Bytes of a file. */
  readonly size: number;
  /** When it was last written, in milliseconds since the epoch. */
  readonly modifiedAt: number;
}

/** A name in a folder. */
export interface FolderEntry {
  /** The name. */
  readonly name: string;
  /** What has it. */
  readonly kind: FileInfo['kind'];
}

/** A disk. */
export interface FileSystem {
  /** Opens a file: one that is there to `read` or to `change`, or a `new` one, which must not be there. */
  open(path: string, use: 'read' | 'change' | 'new'): Promise<OpenFile>;
  /** What is at the path; undefined if nothing is. */
  look(path: string): Promise<FileInfo | undefined>;
  /** What is in a folder, in any order. */
  list(folder: string): Promise<readonly FolderEntry[]>;
  /** Makes a folder and those above it, where they are missing. */
  makeFolder(path: string): Promise<void>;
  /** Gives a file or folder another name, at once. A file that has the name is replaced. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file, or a folder with all in it; nothing happens if it is not there. */
  remove(path: string): Promise<void>;
  /** Waits until the names in a folder survive a loss of power, where the system can. */
  flushFolder(path: string): Promise<void>;
}

const FLAGS = {
  read: constants.O_RDONLY,
  change: constants.O_RDWR,
  new: constants.O_RDWR | constants.O_CREAT | constants.O_EXCL,
};
/** Windows has neither: links are made by administrators there, and no pipe has a place in a folder. */
const CAREFULLY = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
/** Sessions are their owner's to read. */
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

/** The disk of the process. */
export const nodeFileSystem: FileSystem = {
  open: async (path, use) => openFile(await open(path, FLAGS[use] | CAREFULLY, FILE_MODE)),
  look: async (path) => {
    try {
      return infoOf(await lstat(path));
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  },
  list: async (folder) => (await readdir(folder, { withFileTypes: true })).map((entry) => ({ name: entry.name, kind: kindOf(entry) })),
  makeFolder: async (path) => {
    await mkdir(path, { recursive: true, mode: FOLDER_MODE });
  },
  rename,
  remove: (path) => rm(path, { recursive: true, force: true }),
  flushFolder: async (path) => {
    // Windows opens no folders, and keeps names by itself.
    const handle = await open(path, constants.O_RDONLY).catch(() => undefined);
    try {
      await handle?.sync();
    } finally {
      await handle?.close();
    }
  },
};

type NodeFile = Awaited<ReturnType<typeof open>>;

function openFile(handle: NodeFile): OpenFile {
  return {
    look: async () => infoOf(await handle.stat()),
    read: async (offset, length) => {
      const bytes = new Uint8Array(length);
      let done = 0;
      while (done < length) {
        const { bytesRead } = await handle.read(bytes, done, length - done, offset + done);
        if (bytesRead === 0) break;
        done += bytesRead;
      }
      return bytes.subarray(0, done);
    },
    write: async (offset, bytes) => {
      // A disk that fills up takes a part first, and fails the next time.
      for (let done = 0; done < bytes.length; ) {
        done += (await handle.write(bytes, done, bytes.length - done, offset + done)).bytesWritten;
      }
    },
    truncate: (length) => handle.truncate(length),
    flush: () => handle.datasync(),
    close: () => handle.close(),
  };
}

interface NodeEntry {
  isFile(): boolean;
  isDirectory(): boolean;
}

function infoOf(stats: NodeEntry & { readonly size: number; readonly mtimeMs: number }): FileInfo {
  return { kind: kindOf(stats), size: stats.size, modifiedAt: Math.floor(stats.mtimeMs) };
}

function kindOf(entry: NodeEntry): FileInfo['kind'] {
  return entry.isFile() ? 'file' : entry.isDirectory() ? 'folder' : 'other';
}

/** True for the error of a path that leads to nothing. */
export function isMissing(error: unknown): boolean {
  return isRecord(error) && (error['code'] === 'ENOENT' || error['code'] === 'ENOTDIR');
}
