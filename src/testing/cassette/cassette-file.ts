/** Cassette file: reads it whole, and puts a new one in its place whole. */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import { systemRuntime } from '../../core/runtime.ts';
import { CassetteError } from './errors.ts';

/** The text of a file; undefined if there is none. */
export async function readCassetteFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    if (isRecord(cause) && cause['code'] === 'ENOENT') return undefined;
    throw new CassetteError('cassette_unreadable', `The cassette ${path} cannot be read: ${messageOf(cause)}`, cause);
  }
}

/** Whoever looks sees the old file or the new one. */
export async function writeCassetteFile(path: string, text: string): Promise<void> {
  const ready = `${path}.${systemRuntime.createId('session')}.tmp`;
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(ready, text, { flag: 'wx' });
    await rename(ready, path);
  } catch (cause) {
    await rm(ready, { force: true }).catch(() => undefined);
    throw new CassetteError('cassette_unwritable', `The cassette ${path} cannot be written, so what was recorded is lost: ${messageOf(cause)}`, cause);
  }
}
