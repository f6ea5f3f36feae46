/** Processes: builds the child of the kill test once, and runs it to its end or to its death. */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { ChildTask } from './child.ts';

/** Longest that a child may take: it needs two seconds. */
const PATIENCE_MS = 90_000;

/** The built child, and a folder for what it works on. */
export interface ChildProgram {
  /** A new folder for a session and its world. */
  newFolder(): string;
  /** Runs it. Resolves to true if it came to its end, to false if it was killed. @throws Error if it failed. */
  run(task: ChildTask): Promise<boolean>;
  /** Removes all of it. */
  remove(): void;
}

/** Builds the child into one file: it starts in a tenth of the time that a loader takes. */
export async function buildChild(): Promise<ChildProgram> {
  const folder = mkdtempSync(join(tmpdir(), 'turnloop-kill-'));
  const file = join(folder, 'child.mjs');
  await build({
    entryPoints: [fileURLToPath(new URL('child.ts', import.meta.url))],
    outfile: file,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    logLevel: 'warning',
  });
  return {
    newFolder: () => mkdtempSync(join(folder, 'session-')),
    run: (task) => runChild(file, task),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function runChild(file: string, task: ChildTask): Promise<boolean> {
  const child = fork(file, [JSON.stringify(task)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const { death } = task;
  const delayMs = death?.kind === 'instant' ? death.delayMs : 0;
  return new Promise((resolve, reject) => {
    let errors = '';
    const timer = setTimeout(() => {
      errors += `\nIt took longer than ${PATIENCE_MS / 1000} s.`;
      child.kill('SIGKILL');
    }, PATIENCE_MS);
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text));
    child.on('message', () => setTimeout(() => child.kill('SIGKILL'), delayMs));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      const isFine = errors === '' && (code === 0 || (signal === 'SIGKILL' && death !== undefined));
      if (isFine) resolve(code === 0);
      else reject(new Error(`${JSON.stringify(task)} ended with ${String(code ?? signal)}.\n${errors.trim()}`));
    });
  });
}
