/**
 * Builds and packs the package once for all package tests, and installs it, offline, into an empty folder.
 * A failure is handed to the tests instead of thrown, so that it fails them and not the whole run.
 */

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { ROOT } from '../../scripts/doors.js';

export interface Packed {
  readonly error?: string;
  /** The packed package. */
  readonly tarball: string;
  /** A folder with nothing but the installed package. */
  readonly consumer: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    packed: Packed;
  }
}

const run = promisify(execFile);

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'turnloop-package-'));
  const tarball = join(folder, 'turnloop.tgz');
  const consumer = folder;

  try {
    await run('npm', ['run', '--silent', 'build'], { cwd: ROOT });
    const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { cwd: ROOT });
    const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
    await writeFile(join(folder, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }');
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${filename}`], { cwd: consumer });
    project.provide('packed', { tarball: join(folder, filename), consumer });
  } catch (error) {
    const { message, stdout, stderr } = error as { message: string; stdout?: string; stderr?: string };
    project.provide('packed', { error: [message, stdout, stderr].join('\n'), tarball, consumer });
  }

  return () => rm(folder, { recursive: true, force: true });
}
