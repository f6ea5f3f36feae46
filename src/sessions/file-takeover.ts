/**
 * Takeover: makes sure that an owner who was taken for dead writes nothing more, before anybody writes in its place.
 *
 * Every log of the session gets a copy in its stead. The former owner, if it lives after all, still has the old file open:
 * what it writes there is nobody's, and it asks after its lock before it says that anything was written.
 */
import { join } from 'node:path';
import { AGENTS_FOLDER, LOG_FILE, temporaryName } from './file-names.ts';
import type { FileSystem } from './file-system.ts';

/** Bytes copied at once. */
const PIECE_BYTES = 4 * 1024 * 1024;

/** Puts copies in place of the logs of a session and of its sub-agents. */
export async function replaceLogs(files: FileSystem, folder: string): Promise<void> {
  const entries = await files.list(folder);
  if (entries.some(({ name, kind }) => name === LOG_FILE && kind === 'file')) await replaceByCopy(files, folder);
  if (!entries.some(({ name, kind }) => name === AGENTS_FOLDER && kind === 'folder')) return;
  const agents = join(folder, AGENTS_FOLDER);
  for (const { name, kind } of await files.list(agents)) {
    if (kind === 'folder') await replaceLogs(files, join(agents, name));
  }
}

async function replaceByCopy(files: FileSystem, folder: string): Promise<void> {
  const log = join(folder, LOG_FILE);
  const copy = join(folder, temporaryName());
  try {
    await copyFile(files, log, copy);
    await files.rename(copy, log);
  } catch (error) {
    await files.remove(copy).catch(() => undefined);
    throw error;
  }
}

async function copyFile(files: FileSystem, from: string, to: string): Promise<void> {
  const source = await files.open(from, 'read');
  try {
    const target = await files.open(to, 'new');
    try {
      for (let at = 0; ; ) {
        const piece = await source.read(at, PIECE_BYTES);
        if (piece.length === 0) break;
        await target.write(at, piece);
        at += piece.length;
      }
      // Else a loss of power could leave the name with nothing behind it.
      await target.flush();
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}
