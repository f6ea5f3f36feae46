/** A disk that fails where a test says so, and folders to try stores in. */
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FileSystem, nodeFileSystem, type OpenFile } from 'turnloop/sessions';

/** What a disk can be told to fail at. */
export type DiskCall = keyof FileSystem | 'file.read' | 'file.write' | 'file.truncate' | 'file.flush';

/** A call that a disk is asked whether it is to fail at. */
export interface AskedCall {
  readonly call: DiskCall;
  readonly path: string;
  /** Bytes of a write. */
  readonly bytes: number;
}

/** What becomes of a call: it fails, a write perhaps behind some bytes; undefined for a call that is made. */
export type Fault = { readonly code: string; readonly afterBytes?: number } | undefined;

/** A disk of the process that asks, before each call, whether it is to fail. */
export function faultyDisk(faultAt: (asked: AskedCall) => Fault | Promise<Fault>): FileSystem {
  async function check(call: DiskCall, path: string, bytes = 0): Promise<number> {
    const fault = await faultAt({ call, path, bytes });
    if (fault === undefined) return bytes;
    if (fault.afterBytes === undefined) throw diskError(fault.code);
    return fault.afterBytes;
  }

  function faultyFile(file: OpenFile, path: string): OpenFile {
    return {
      look: () => file.look(),
      close: () => file.close(),
      read: async (offset, length) => {
        await check('file.read', path);
        return file.read(offset, length);
      },
      write: async (offset, bytes) => {
        const taken = await check('file.write', path, bytes.length);
        await file.write(offset, bytes.subarray(0, taken));
        if (taken < bytes.length) throw diskError('ENOSPC');
      },
      truncate: async (length) => {
        await check('file.truncate', path);
        await file.truncate(length);
      },
      flush: async () => {
        await check('file.flush', path);
        await file.flush();
      },
    };
  }

  return {
    open: async (path, use) => {
      await check('open', path);
      return faultyFile(await nodeFileSystem.open(path, use), path);
    },
    look: async (path) => {
      await check('look', path);
      return nodeFileSystem.look(path);
    },
    list: async (folder) => {
      await check('list', folder);
      return nodeFileSystem.list(folder);
    },
    makeFolder: async (path) => {
      await check('makeFolder', path);
      await nodeFileSystem.makeFolder(path);
    },
    rename: async (from, to) => {
      await check('rename', to);
      await nodeFileSystem.rename(from, to);
    },
    remove: async (path) => {
      await check('remove', path);
      await nodeFileSystem.remove(path);
    },
    flushFolder: async (path) => {
      await check('flushFolder', path);
      await nodeFileSystem.flushFolder(path);
    },
  };
}

/** As Node says that a disk failed. */
function diskError(code: string): Error {
  return Object.assign(new Error(`${code}: the disk fails`), { code });
}

/** A new folder, with one in it for a store. */
export function storeFolder(): { readonly above: string; readonly folder: string; readonly remove: () => void } {
  const above = mkdtempSync(join(tmpdir(), 'turnloop-sessions-'));
  const folder = join(above, 'store');
  mkdirSync(folder);
  return { above, folder, remove: () => rmSync(above, { recursive: true, force: true }) };
}

/** More than any process id. */
const NO_PID = 2 ** 30;

/** The name of the lock of a session's folder. */
export function lockOf(sessionFolder: string): string {
  const [lock = 'none', ...others] = readdirSync(sessionFolder).filter((name) => name.startsWith('lock.'));
  if (others.length > 0) throw new Error(`more than one lock: ${[lock, ...others].join(', ')}`);
  return lock;
}

/** Makes it look as if the owner of a session had died, which goes on all the same. */
export function abandon(sessionFolder: string): void {
  const lock = lockOf(sessionFolder);
  const fields = lock.split('.');
  renameSync(join(sessionFolder, lock), join(sessionFolder, fields.with(3, String(NO_PID)).join('.')));
}
