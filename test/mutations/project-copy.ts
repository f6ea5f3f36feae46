/** Project copy: the project in a folder of its own, where faults can be planted in `src` and tests be run. */
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../../scripts/doors.js';

/** What tests need beside `node_modules`. */
const NEEDED = ['package.json', 'tsconfig.json', 'vitest.config.ts', 'scripts', 'src', 'test', 'examples', 'README.md'];

/** A copy of the project. */
export interface ProjectCopy {
  /** Plants a fault. @returns Why it could not be, if it could not. */
  apply(patch: string): string | undefined;
  /** Takes every fault out again. */
  restore(): void;
  /** Names of the tests of some files that fail. */
  failingTests(files: readonly string[]): Promise<readonly string[]>;
  /** Deletes the copy. */
  remove(): void;
}

/** Copies the project into a temporary folder, with its `node_modules` linked. */
export function copyProject(): ProjectCopy {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'turnloop-mutations-')));
  for (const path of NEEDED) cpSync(`${ROOT}/${path}`, `${folder}/${path}`, { recursive: true });
  symlinkSync(realpathSync(`${ROOT}/node_modules`), `${folder}/node_modules`, 'dir');
  // What faults are taken out by; the project itself may change meanwhile.
  cpSync(`${folder}/src`, `${folder}/untouched`, { recursive: true });
  return {
    apply: (patch) => applyPatch(folder, patch),
    restore: () => {
      rmSync(`${folder}/src`, { recursive: true });
      cpSync(`${folder}/untouched`, `${folder}/src`, { recursive: true });
    },
    failingTests: (files) => failingTests(folder, files),
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Lines may have moved since the patch was written; what stands around the fault may not. */
function applyPatch(folder: string, patch: string): string | undefined {
  const { status, stderr } = spawnSync('git', ['apply', '--recount', '-C1', '-'], { cwd: folder, input: patch, encoding: 'utf8' });
  return status === 0 ? undefined : stderr.trim();
}

interface JsonReport {
  readonly numTotalTests: number;
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

async function failingTests(folder: string, files: readonly string[]): Promise<readonly string[]> {
  const report = `${folder}/report.json`;
  rmSync(report, { force: true });
  const given = ['run', '--project', 'properties', '--project', 'unit', ...files, '--reporter=json', `--outputFile=${report}`];
  // A counter-example is enough here; making it small takes most of the time.
  const env = { ...process.env, TURNLOOP_SHRINK: '0' };
  const output = await outputOf(spawn(`${folder}/node_modules/.bin/vitest`, given, { cwd: folder, env }));
  const { numTotalTests, testResults } = readReport(report, output);
  if (numTotalTests === 0) return [`${files.join(' ')} cannot be run: ${testResults.map(({ message }) => message).join('; ')}`];
  return testResults.flatMap(({ assertionResults }) => assertionResults.flatMap(({ title, status }) => (status === 'failed' ? [title] : [])));
}

function readReport(path: string, output: string): JsonReport {
  try {
    // Vitest's own format.
    return JSON.parse(readFileSync(path, 'utf8')) as JsonReport;
  } catch (error) {
    throw new Error(`vitest gave no report. It said:\n${output}`, { cause: error });
  }
}

function outputOf(child: ReturnType<typeof spawn>): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    const keep = (chunk: Buffer): void => {
      output += chunk.toString();
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    child.on('error', reject);
    child.on('close', () => {
      resolve(output);
    });
  });
}
