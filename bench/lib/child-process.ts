/** Child process: builds the program of the measured processes, and runs it. */
import { fork } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Measurement, Numbers } from './bench-case.ts';

const PATIENCE_MS = 120_000;
/** Below the modules, so that what is not built in is found. */
const BUILDS = fileURLToPath(new URL('../../node_modules/.cache/turnloop', import.meta.url));
/** What reads files beside its own code. */
const OUTSIDE = ['@lat.md/*'];

/** The built program. */
export interface MeasuredProgram {
  /** Makes a measurement in a process of its own. @throws Error if it fails or takes too long. */
  run(caseName: string, measurement: Measurement): Promise<Numbers>;
  /** Deletes it. */
  remove(): Promise<void>;
}

/** Builds the library and the bench into one file, with the compiler and the target of the package. */
export async function buildMeasuredProgram(): Promise<MeasuredProgram> {
  await mkdir(BUILDS, { recursive: true });
  const directory = await mkdtemp(join(BUILDS, 'bench-'));
  const file = join(directory, 'measured.mjs');
  await build({
    entryPoints: [fileURLToPath(new URL('./measured-process.ts', import.meta.url))],
    outfile: file,
    bundle: true,
    external: OUTSIDE,
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    logLevel: 'warning',
  });
  return {
    run: (caseName, measurement) => runChild(file, caseName, measurement),
    remove: () => rm(directory, { recursive: true }),
  };
}

function runChild(file: string, caseName: string, { name, nodeFlags = [], patienceMs = PATIENCE_MS }: Measurement): Promise<Numbers> {
  const child = fork(file, [caseName, name], {
    execArgv: [...nodeFlags],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production' },
  });
  return new Promise((resolve, reject) => {
    let numbers: Numbers | undefined;
    let errors = '';
    const timer = setTimeout(() => {
      errors += `\nIt took longer than ${patienceMs / 1000} s.`;
      child.kill('SIGKILL');
    }, patienceMs);
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    child.on('message', (message) => {
      numbers = message as Numbers;
    });
    child.on('error', reject);
    child.on('close', () => {
      clearTimeout(timer);
      if (numbers === undefined) reject(new Error(`${caseName}: the measurement "${name}" failed.\n${errors.trim()}`));
      else resolve(numbers);
    });
  });
}
