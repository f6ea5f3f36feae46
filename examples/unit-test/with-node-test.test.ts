/** The tests for Node's own runner, run by it. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const TESTS = fileURLToPath(new URL('with-node-test.ts', import.meta.url));

it('pass in a process of their own', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', '--test', '--test-reporter=tap', TESTS]);

  expect(stdout).toMatch(/^# pass 5$/m);
  expect(stdout).toMatch(/^# fail 0$/m);
});
