/**
 * File lock: one writer at a time, across processes. Held for a write, never for the life of a process, so that several
 * may share a folder.
 *
 * - Who holds it is a file of its own, made only where there is none. Whoever died with it is found by its pid, or by how long
 *   it has had it: no write takes that long.
 * - A lock that was taken from somebody who lived after all is noticed before anything is written (`isHeld`).
 */
import { link, readFile, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { isRecord } from '../core/json.ts';
import { type Runtime, sleep } from '../core/runtime.ts';
import { MemoryError } from './memory-store.ts';
import { isFileError } from './disk.ts';

/** How long to wait for another writer: many times what a write takes. */
const WAIT_MS = 5_000;
const POLL_MS = 20;
/** Whoever has had it this long is gone, or hangs. */
const STALE_MS = 30_000;
/** Whoever made it and has not written into it for this long died in between. */
const UNWRITTEN_MS = 1_000;

/** A lock that is held. */
export interface HeldLock {
  /** Whether it is still ours. */
  isHeld(): Promise<boolean>;
  /** Gives it back; nothing if it was taken. */
  release(): Promise<void>;
}

/**
 * Takes the lock, as soon as it is free.
 *
 * @param path - The file that stands for it.
 * @throws MemoryError `store_locked` if it does not become free in 5 seconds.
 */
export async function takeLock(path: string, runtime: Runtime): Promise<HeldLock> {
  const name = runtime.createId('session');
  const content = JSON.stringify({ pid: process.pid, host: hostname(), name });
  const isHeld = async (): Promise<boolean> => (await contentOf(path)) === content;
  for (let waited = 0; ; waited += POLL_MS) {
    if (await create(path, content)) {
      return {
        isHeld,
        release: async () => {
          if (await isHeld()) await unlink(path).catch(() => undefined);
        },
      };
    }
    const owner = await contentOf(path);
    if (owner === undefined) continue;
    if (await isDead(path, owner, runtime)) await takeAway(path, owner, `${path}.${name}`);
    else if (waited >= WAIT_MS) {
      throw new MemoryError('store_locked', `Another writer (${owner}) has held ${path} for more than ${WAIT_MS / 1_000} seconds. Nothing was written; what was there is as it was.`);
    } else await sleep(POLL_MS, { runtime });
  }
}

async function create(path: string, content: string): Promise<boolean> {
  try {
    await writeFile(path, content, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (isFileError(error, 'EEXIST')) return false;
    throw error;
  }
}

async function contentOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isFileError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function isDead(path: string, content: string, runtime: Runtime): Promise<boolean> {
  const owner = ownerOf(content);
  if (owner !== undefined && owner.host === hostname() && !isRunning(owner.pid)) return true;
  try {
    return runtime.now() - (await stat(path)).mtimeMs > (owner === undefined ? UNWRITTEN_MS : STALE_MS);
  } catch {
    // It was given back in the meantime.
    return false;
  }
}

function ownerOf(content: string): { readonly pid: number; readonly host: string } | undefined {
  try {
    const owner: unknown = JSON.parse(content);
    if (!isRecord(owner) || typeof owner['pid'] !== 'number' || typeof owner['host'] !== 'string') return undefined;
    return { pid: owner['pid'], host: owner['host'] };
  } catch {
    // Its owner has not yet written it, or died while it did.
    return undefined;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Somebody else's process may not be signalled, but is there.
    return isFileError(error, 'EPERM');
  }
}

/** Takes the lock of a dead owner out of the way. What was taken by mistake, since somebody was faster, is put back. */
async function takeAway(path: string, content: string, aside: string): Promise<void> {
  try {
    await rename(path, aside);
    if ((await contentOf(aside)) !== content) await link(aside, path);
    await unlink(aside);
  } catch (error) {
    if (!isFileError(error, 'ENOENT') && !isFileError(error, 'EEXIST')) throw error;
  }
}
