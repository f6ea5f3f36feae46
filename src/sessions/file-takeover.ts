/**
 * Takeover: makes sure that an owner who was taken for dead writes nothing more, before anybody writes in its place.
 *
 * Every log of the session gets a copy in its stead. The former owner, if it lives after all, still has the old file open:
 * what it writes there is nobody's, and it asks after its lock before it says that anything was written.
 */
import { join } from 'node:path';
import { AGENTS_FOLDER, LOG_FILE, temporaryName } from './file-names.ts';
import type { FileSystem, OpenFile } from './file-system.ts';

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

/** Piece by piece: nobody has two files open at once (`open-files.ts`). */
async function copyFile(files: FileSystem, from: string, to: string): Promise<void> {
  await withFile(files, { path: to, use: 'new' }, () => Promise.resolve());
  for (let at = 0; ; ) {
    const piece = await withFile(files, { path: from, use: 'read' }, (source) => source.read(at, PIECE_BYTES));
    await withFile(files, { path: to, use: 'change' }, async (target) => {
      await target.write(at, piece);
      // Else a loss of power could leave the name with nothing behind it.
      if (piece.length < PIECE_BYTES) await target.flush();
    });
    if (piece.length < PIECE_BYTES) return;
    at += piece.length;
  }
}

interface FileUse {
  readonly path: string;
  readonly use: 'read' | 'change' | 'new';
}

async function withFile<Value>(files: FileSystem, { path, use }: FileUse, action: (file: OpenFile) => Promise<Value>): Promise<Value> {
  const file = await files.open(path, use);
  try {
    return await action(file);
  } finally {
    await file.close();
  }
}
