/**
 * The program as people start it, in a process of its own: what it prints where, how it ends, and what Ctrl-C does.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOfStream } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { textOf, type LoopEvent } from 'turnloop';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeFolder, makeSample, waitUntil } from './test-support.ts';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));
const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));

/** What of a request the server looks at. */
interface RequestBody {
  readonly model: string;
  readonly messages: readonly { readonly role: string }[];
}

interface Run {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  readonly output: { stdout: string; stderr: string };
  readonly exitCode: Promise<number | null>;
}

function start(args: readonly string[], { input = '', env = {} }: { input?: string; env?: Readonly<Record<string, string>> } = {}): Run {
  const { OPENAI_API_KEY: _key, OPENAI_BASE_URL: _url, OPENAI_MODEL: _model, ...rest } = process.env;
  const child = spawn(process.execPath, ['--import', 'tsx', MAIN, ...args], { cwd: REPOSITORY, env: { ...rest, ...env } });
  onTestFinished(() => void child.kill('SIGKILL'));
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  child.stdin.end(input);
  return { child, output, exitCode: new Promise((resolve) => child.on('close', resolve)) };
}

/** The text of a run without what differs from run to run. */
function steady(text: string): string {
  return text.replace(/\d+(\.\d+)? m?s$/gm, 'TIME').replace(/\d+ tokens in( \(\d+ cached\))?, \d+ out/g, 'TOKENS');
}

describe('main', () => {
  it('does one thing and shows it', async () => {
    const { output, exitCode } = start(['--dir', makeSample(), 'read README.md']);

    expect(await exitCode).toBe(0);
    expect(steady(output.stdout)).toBe(`> read README.md
→ read README.md
✓ read README.md · # turn-demo · + 6 lines · TIME
README.md begins: # turn-demo
end_turn · 2 steps · TOKENS · TIME

`);
    expect(output.stderr).toMatch(/^Model: tiny-coder .*\nSession: session_\w+\n$/);
  });

  it('prints nothing but events with --json', async () => {
    const { output, exitCode } = start(['--json', '--dir', makeSample(), 'read README.md and package.json']);

    expect(await exitCode).toBe(0);
    const lines = output.stdout.split('\n');
    expect(lines.pop()).toBe('');
    // Parsing is the check: each line is an event.
    const types = lines.map((line) => (JSON.parse(line) as LoopEvent).type);
    // Deltas are many, and which of two files is read first is chance.
    expect(types.filter((type) => !type.endsWith('.delta') && type !== 'tool.finished')).toStrictEqual([
      'turn.begin',
      'message',
      'step.begin',
      'usage',
      'tool.call',
      'tool.call',
      'tool.result',
      'tool.result',
      'step.end',
      'step.begin',
      'usage',
      'content.part',
      'step.end',
      'turn.end',
    ]);
  });

  it('works on this repository', async () => {
    const { output, exitCode } = start(['list the files']);

    expect(await exitCode).toBe(0);
    expect(output.stdout).toContain('✓ list . ·');
  });

  it('runs the demo in a copy when nothing is asked', async () => {
    const { output, exitCode } = start([]);

    expect(await exitCode).toBe(0);
    expect(output.stdout).toContain('→ read README.md\n→ read package.json\n');
    expect(output.stdout).toContain('  │ - 1.2.0\n  │ + 1.3.0\n');
    expect(output.stdout).toContain('✗ read missing.txt');
    expect(output.stderr).toContain('copy of a sample workspace');
  });

  it('holds a conversation with --chat', async () => {
    const input = 'read docs/guide.md\n\nreplace Guide by Manual in docs/guide.md\nshow me the file\n';
    const { output, exitCode } = start(['--chat', '--dir', makeSample()], { input });

    expect(await exitCode).toBe(0);
    expect(output.stdout).toContain('docs/guide.md begins: # Manual');
  });

  it('goes on with the last conversation, and with a turn that a kill cut off', async () => {
    const dir = makeSample();
    expect(await start(['--dir', dir, 'read docs/guide.md']).exitCode).toBe(0);

    const second = start(['--dir', dir, '--resume', 'replace Guide by Manual in docs/guide.md']);
    expect(await second.exitCode).toBe(0);
    const killed = start(['--json', '--dir', dir, '--resume', 'run sleep 30']);
    // Only a call that is recorded as started is not run again.
    await waitUntil(() => killed.output.stdout.includes('"type":"tool.start"'));
    killed.child.kill('SIGKILL');
    await killed.exitCode;
    const last = start(['--json', '--dir', dir, '--resume', 'read docs/guide.md']);

    expect(second.output.stdout).toContain('Replaced Guide by Manual in docs/guide.md.');
    await last.exitCode; // The tiny model was never taught what to say about that.
    const events = last.output.stdout.trim().split('\n').map((line) => JSON.parse(line) as LoopEvent);
    // First the turn that was cut off: nobody knows what came of its command, and it is not run again.
    const resumed = events.slice(0, events.findIndex(({ type }) => type === 'turn.begin'));
    expect(resumed[0]?.type).toBe('turn.resume');
    expect(resumed.flatMap((event) => (event.type === 'tool.result' ? textOf(event.result.content) : []))).toStrictEqual([expect.stringContaining('process stopped')]);
    expect(resumed.map(({ type }) => type)).not.toContain('tool.start');
    expect(resumed.at(-1)?.type).toBe('turn.end');
    expect(events.filter(({ type }) => type === 'turn.end')).toHaveLength(2);
    const list = start(['--dir', dir, '--list']);
    expect(await list.exitCode).toBe(0);
    expect(list.output.stdout).toMatch(/^session_\w+ +[-\d]+ [:\d]+ +read docs\/guide.md\n$/);
  });

  it('stops cleanly on Ctrl-C, with the command that ran', async () => {
    const { child, output, exitCode } = start(['--dir', makeSample(), 'run sleep 30']);

    await waitUntil(() => output.stdout.includes('→ run sleep 30'));
    child.kill('SIGINT');

    expect(await exitCode).toBe(130);
    expect(output.stderr).toContain('Stopping. Ctrl-C again quits at once.');
    expect(output.stdout).toMatch(/✗ run sleep 30 .*\n(.*\n)?aborted · 1 step/);
  });

  it('says what is wrong with the command line or the folder', async () => {
    const [flag, folder] = [start(['--jsno']), start(['--dir', '/nonexistent', 'read a'])];

    expect([await flag.exitCode, await folder.exitCode]).toStrictEqual([1, 1]);
    expect(flag.output.stderr).toContain("Unknown option '--jsno'");
    expect(folder.output.stderr).toContain('/nonexistent');
    expect(flag.output.stdout + folder.output.stdout).toBe('');
  });

  it('asks a server when there is a key, and exits 1 when that fails', async () => {
    const bodies: RequestBody[] = [];
    const server = createServer((request, response) => {
      void textOfStream(request).then((body) => {
        bodies.push(JSON.parse(body) as RequestBody);
        if (request.headers.authorization !== 'Bearer right') {
          response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"message":"Wrong key."}}');
          return;
        }
        const chunk = { id: 'r', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta: { content: 'Hello.' }, finish_reason: 'stop' }] };
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
      });
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await waitUntil(() => server.listening);
    const env = { OPENAI_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, OPENAI_MODEL: 'm' };
    const args = ['--dir', makeFolder(), 'hi'];

    const right = start(args, { env: { ...env, OPENAI_API_KEY: 'right' } });
    expect(await right.exitCode).toBe(0);
    const wrong = start(args, { env: { ...env, OPENAI_API_KEY: 'wrong' } });
    expect(await wrong.exitCode).toBe(1);

    expect(bodies.map((body) => [body.model, body.messages.map((message) => message.role)])).toStrictEqual([
      ['m', ['system', 'user']],
      ['m', ['system', 'user']], // What of the turn is worth remembering.
      ['m', ['system', 'user']],
    ]);
    expect(right.output.stdout).toContain('\nHello.\nend_turn');
    expect(wrong.output.stdout).toMatch(/✗ auth: .*\nfatal_error/);
    expect(wrong.output.stdout + wrong.output.stderr).not.toContain('Bearer');
  });
});
