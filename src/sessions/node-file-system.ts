/** Node file system: the disk of the process. Only here are files of the operating system touched. */
import { constants, lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { type FileInfo, type FileSystem, isMissing, type OpenFile } from './file-system.ts';

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
