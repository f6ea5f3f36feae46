/** Reaches the package that build-and-pack.ts installed. */

import { execFile } from 'node:child_process';
import { mkdir, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { PEERS, ROOT } from '../../scripts/doors.js';
import type { Packed } from './build-and-pack.ts';

const run = promisify(execFile);

export function packed(): Packed {
  const found = inject('packed');
  if (found.error !== undefined) throw new Error(`The package could not be built, packed and installed: ${found.error}`);
  return found;
}

/** Leaves the consumer with the named peers and no other; they come from this repository's own node_modules. */
export async function installPeers(peers: readonly string[]): Promise<void> {
  const folder = join(packed().consumer, 'node_modules');
  for (const peer of PEERS) await rm(join(folder, peer), { force: true });
  for (const peer of peers) {
    await mkdir(dirname(join(folder, peer)), { recursive: true });
    await symlink(join(ROOT, 'node_modules', peer), join(folder, peer), 'dir');
  }
}

export interface Outcome {
  readonly code: number;
  readonly output: string;
}

/** Runs a program in the consumer's folder. */
export async function runInConsumer(file: string, args: readonly string[]): Promise<Outcome> {
  try {
    const { stdout, stderr } = await run(file, args, { cwd: packed().consumer });
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, output: stdout + stderr };
  }
}

/** Runs a module's text under Node in the consumer's folder. */
export function runModule(text: string): Promise<Outcome> {
  return runInConsumer(process.execPath, ['--input-type=module', '--eval', text]);
}
