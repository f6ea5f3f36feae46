/** The contract of every test-like script, shown on the runner of `npm test`. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../../scripts/doors.js';
import { formatCounts } from '../../scripts/count-reporter.js';

const run = promisify(execFile);

/** Runs the runner where it finds no test. */
async function runNothing(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<{ code: number; stdout: string }> {
  const runner = [join(ROOT, 'scripts/test.js'), '--project', 'unit', 'no-such-test', ...args];
  // The run this test is part of may have a report of its own.
  return run(process.execPath, runner, { cwd: ROOT, env: { ...process.env, TEST_REPORT: undefined, ...env } }).then(
    ({ stdout }) => ({ code: 0, stdout }),
    (error: unknown) => error as { code: number; stdout: string },
  );
}

describe('the test runner', () => {
  it('ends with the counts and fails when no test ran', async () => {
    const { code, stdout } = await runNothing([]);

    expect(stdout.trimEnd().split('\n').at(-1)).toBe('0 passed, 0 failed');
    expect(code).toBe(1);
  });

  it('prints nothing but JSON lines when asked to', async () => {
    const { stdout } = await runNothing(['--json']);

    expect(stdout).toBe('{"passed":0,"failed":0,"skipped":0}\n');
  });

  it('writes the same lines to the file that TEST_REPORT names', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'turnloop-report-'));
    const report = join(folder, 'report.jsonl');

    await runNothing([], { TEST_REPORT: report });

    expect(readFileSync(report, 'utf8')).toBe('{"passed":0,"failed":0,"skipped":0}\n');
    rmSync(folder, { recursive: true });
  });

  it('names skipped tests only when there are some', () => {
    expect(formatCounts({ passed: 2, failed: 1, skipped: 0 })).toBe('2 passed, 1 failed');
    expect(formatCounts({ passed: 2, failed: 0, skipped: 3 })).toBe('2 passed, 0 failed, 3 skipped');
  });
});
