/**
 * File system: all that a session store asks of a disk, so that tests can give it one that fails.
 *
 * - No symbolic link is ever followed at the end of a path.
 * - Failures are those of Node: errors with a `code`, such as `ENOSPC`.
 */
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

/** True for the error of a path that leads to nothing. */
export function isMissing(error: unknown): boolean {
  return isRecord(error) && (error['code'] === 'ENOENT' || error['code'] === 'ENOTDIR');
}
