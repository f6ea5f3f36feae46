/** The commands as people give them, each in a process of its own: what was asked before one ended is decided in another. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

/** The program on a folder of its own. */
function program(): { run: (...args: readonly string[]) => string; done: () => string } {
  const folder = mkdtempSync(join(tmpdir(), 'approvals-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'done.txt');
  return {
    run: (...args) => execFileSync(process.execPath, ['--import', 'tsx', MAIN, '--dir', folder, ...args], { encoding: 'utf8', stdio: 'pipe' }),
    done: () => (existsSync(file) ? readFileSync(file, 'utf8') : ''),
  };
}

/** Ids of the calls that wait, by what they would do. */
function pendingIn(output: string): Readonly<Record<string, string>> {
  const lines = output.trim().split('\n').slice(1);
  return Object.fromEntries(lines.map((line): [string, string] => [line.slice(line.indexOf(': ') + 2), line.slice(0, line.indexOf(': '))]));
}

it('asks, ends, and goes on in other processes, with a decision about its own call and one about a call of its sub-agent', () => {
  const { run, done } = program();

  const asked = run('start');
  const pending = pendingIn(asked);
  expect(Object.keys(pending)).toStrictEqual(['delete_file old.log, by a sub-agent', 'send_mail the team']);
  expect(done()).toBe('');

  const half = run('decide', pending['delete_file old.log, by a sub-agent'] ?? '', 'allow');
  expect(pendingIn(half)).toStrictEqual({ 'send_mail the team': pending['send_mail the team'] });
  expect(done()).toBe('delete_file old.log\n');

  expect(run('decide', pending['send_mail the team'] ?? '', 'allow')).toBe('end_turn\ndelete_file is done; send_mail is done\n');
  expect(done()).toBe('delete_file old.log\nsend_mail the team\n');
});

it('runs a call with the arguments of whoever decided, and tells the model why another was denied', () => {
  const { run, done } = program();

  const pending = pendingIn(run('start'));
  run('decide', pending['send_mail the team'] ?? '', 'deny', 'Not on Fridays.');
  const answer = run('decide', pending['delete_file old.log, by a sub-agent'] ?? '', 'edit', '{"path":"older.log"}');

  expect(answer).toMatch(/^end_turn\ndelete_file is done; [^;]*Not on Fridays\./);
  expect(done()).toBe('delete_file older.log\n');
});

it('denies a call of a sub-agent: the sub-agent is told, and answers', () => {
  const { run, done } = program();

  const pending = pendingIn(run('start'));
  run('decide', pending['delete_file old.log, by a sub-agent'] ?? '', 'deny', 'It is needed.');
  const answer = run('decide', pending['send_mail the team'] ?? '', 'allow');

  expect(answer).toContain('It is needed.');
  expect(done()).toBe('send_mail the team\n');
});

it('changes nothing before the plan is confirmed, also over the end of the process', () => {
  const { run, done } = program();

  expect(run('plan')).toBe('end_turn\nMy plan: I delete old.log.\n');
  expect(done()).toBe('');
  expect(run('confirm')).toBe('end_turn\ndelete_file is done\n');
  expect(done()).toBe('delete_file old.log\n');
});

it('says what to do where nothing waits', () => {
  const { run } = program();

  expect(() => run('decide', 'call_1', 'allow')).toThrow('There is no session yet');
  expect(() => run()).toThrow('Say start, decide, plan or confirm');
});
