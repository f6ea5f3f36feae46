/** The bench, from outside: its smallest case once, for the shape of what it prints. No figure is asserted. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ROOT } from '../../scripts/doors.js';

const TIMEOUT_MS = 60_000;

async function bench(...words: readonly string[]): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  try {
    const { stdout, stderr } = await promisify(execFile)('npx', ['tsx', 'bench/run.ts', ...words], { cwd: ROOT });
    return { code: 0, stdout, stderr };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

test('bench --json prints one line of JSON for each metric and nothing else', { timeout: TIMEOUT_MS }, async () => {
  const { code, stdout } = await bench('long-turn', '--json', '--repetitions', '1');
  expect(code).toBe(0);
  const lines = stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines).toEqual([
    { case: 'long-turn', metric: 'us-per-step-end', value: expect.any(Number), unit: 'us' },
    { case: 'long-turn', metric: 'ratio-end-start', value: expect.any(Number), unit: 'x' },
  ]);
});

test('bench names its cases when it is asked for another', { timeout: TIMEOUT_MS }, async () => {
  const { code, stdout, stderr } = await bench('no-such-case');
  expect(code).toBe(2);
  expect(stdout).toBe('');
  expect(stderr).toContain('There is no case "no-such-case".');
  expect(stderr).toContain('long-turn');
});
