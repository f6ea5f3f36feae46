/** The README's programs are these files, word for word, and they run. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOfStream } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { simulate } from 'turnloop/testing/simulation';
import { expect, it, onTestFinished } from 'vitest';

const folder = new URL('./', import.meta.url);
const root = new URL('../../', folder);
const readme = readFileSync(new URL('README.md', root), 'utf8');
const tests = ['readme.test.ts', 'custom-llm.test.ts', 'chat-loop.test.ts'];
const programs = readdirSync(folder).filter((name) => !tests.includes(name));

const TSX = import.meta.resolve('tsx');
/** Programs run in a folder of their own, and find the library all the same. */
const ENV = { ...process.env, TSX_TSCONFIG_PATH: fileURLToPath(new URL('tsconfig.json', root)) };

/** A folder that goes away after the test. */
function makeFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'readme-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

it.each(programs)('shows %s word for word', (name) => {
  const code = readFileSync(new URL(name, folder), 'utf8').trimEnd();

  const language = name.endsWith('.mjs') ? 'js' : 'ts';
  expect(readme).toContain(`<!-- examples/readme/${name} -->\n\`\`\`${language}\n${code}\n\`\`\``);
});

it.each([
  ['quickstart.ts', '[weather]\nTake no umbrella.\nend_turn after 2 steps\n'],
  ['sessions.ts', "[ 'end_turn', 'end_turn' ]\n1 5 7\na fork 4\nCounting 3\n"],
  ['approvals.ts', `suspended [ 'echo {"text":"hello"} It is loud.' ]\nend_turn It said hello.\n`],
  ['desk.ts', '7.00\nbilling\nstopped noKeys It holds a key.\n'],
  ['run-turn.ts', '[weather]\nTake no umbrella.\nend_turn after 2 steps\n'],
  ['resume.ts', `suspended [ 'echo {"text":"hello"}' ]\nend_turn It said hello.\n`],
])('runs %s', (name, output) => {
  const printed = execFileSync(process.execPath, ['--import', TSX, fileURLToPath(new URL(name, folder))], {
    cwd: makeFolder(),
    env: ENV,
    encoding: 'utf8',
  });

  expect(printed).toBe(output);
});

it.each([
  ['the text', 200, { choices: [{ message: { content: 'Hello.' }, finish_reason: 'stop' }] }, 0, 'end_turn Hello.'],
  ['what failed', 401, { error: { message: 'No such key.' } }, 1, 'fatal_error'],
])('real-model.ts prints %s and exits by it', async (_name, status, body, exitCode, output) => {
  const server = createServer((_request, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const env = { ...process.env, OPENAI_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, OPENAI_API_KEY: '' };

  const { code, printed } = await run('real-model.ts', env);
  server.close();

  expect(printed).toMatch(new RegExp(`^${output}`));
  expect(printed.trim()).not.toBe('fatal_error');
  expect(code).toBe(exitCode);
});

it('cassette.ts records its first run, and needs no server in the second', async () => {
  const cwd = makeFolder();
  const reply = { choices: [{ message: { content: 'Hello.' }, finish_reason: 'stop' }] };
  const server = createServer((_request, response) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const env = { ...ENV, OPENAI_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };

  const first = await run('cassette.ts', { ...env, OPENAI_API_KEY: 'sk-SECRET-123456' }, { cwd });
  const recorded = readFileSync(join(cwd, 'test/cassettes/hello.json'), 'utf8');
  server.close();
  const second = await run('cassette.ts', { ...env, OPENAI_API_KEY: '' }, { cwd });

  expect([first.code, second.code]).toStrictEqual([0, 0]);
  expect(recorded).toContain('Say hello.');
  expect(recorded).not.toContain('SECRET');
});

it('long-session.ts runs its turns on one budget', async () => {
  const reply = { choices: [{ message: { content: 'Hello.' }, finish_reason: 'stop' }], usage: { prompt_tokens: 20, completion_tokens: 3 } };
  const server = createServer((_request, response) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const env = { ...process.env, OPENAI_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, OPENAI_API_KEY: '' };

  const { code, printed } = await run('long-session.ts', env);
  server.close();

  expect(code).toBe(0);
  expect(printed.match(/end_turn Hello\./g)).toHaveLength(2);
  expect(printed).toContain('remainingTokens: 4999954');
});

it('notes.ts has under 40 lines, goes on where it was killed without doing anything twice, and remembers', async () => {
  const code = readFileSync(new URL('notes.ts', folder), 'utf8');
  expect(code.trimEnd().split('\n').length).toBeLessThan(40);
  const cwd = makeFolder();
  const asked: ChatRequest[] = [];
  let onAsked: (() => void) | undefined;
  const server = createServer((request, response) => {
    void textOfStream(request).then((body) => {
      const chat = JSON.parse(body) as ChatRequest;
      if (chat.tools !== undefined) asked.push(chat);
      const message = answerTo(chat);
      onAsked?.();
      // Whoever waits for the kill hears nothing.
      if (onAsked === undefined || message.tool_calls !== undefined) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices: [{ message, finish_reason: 'stop' }] }));
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const env = { ...ENV, OPENAI_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, OPENAI_API_KEY: '' };

  const killed = spawn(process.execPath, ['--import', TSX, fileURLToPath(new URL('notes.ts', folder)), 'Note: milk'], { cwd, env });
  await new Promise<void>((resolve) => {
    onAsked = () => {
      if (asked.length === 2) resolve(); // The note is made, and the model is to say so.
    };
  });
  killed.kill('SIGKILL');
  await once(killed, 'close');
  onAsked = undefined;
  const second = await run('notes.ts', env, { cwd, args: ['What did I note?'] });

  expect(second).toStrictEqual({ code: 0, printed: 'Well.\nend_turn \n' });
  expect(JSON.stringify(asked.at(-1)?.messages)).toMatch(/Note: milk.*Well\..*What did I note\?/);
  expect(readFileSync(join(cwd, 'notes.txt'), 'utf8')).toBe('milk\n');
  await run('notes.ts', env, { cwd, args: ['Where do I buy it?'] });
  expect(JSON.stringify(asked.at(-1)?.messages[1])).toContain('Buys at the corner.');
});

interface ChatRequest {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly tools?: readonly unknown[];
}

/** Makes a note when told to, and always finds the same thing worth remembering. */
function answerTo({ messages, tools }: ChatRequest): { content: string | null; tool_calls?: readonly unknown[] } {
  if (tools === undefined) return { content: JSON.stringify({ entries: [{ text: 'Buys at the corner.', kind: 'fact', scope: 'agent', importance: 1 }] }) };
  const last = messages.at(-1);
  if (last?.role === 'user' && JSON.stringify(last.content).includes('Note: ')) {
    return { content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'add_note', arguments: '{"text":"milk"}' } }] };
  }
  return { content: 'Well.' };
}

/** Runs a program to its end. Not synchronously: a server in this process has to answer it. */
async function run(name: string, env: NodeJS.ProcessEnv, { cwd = fileURLToPath(root), args = [] as readonly string[] } = {}): Promise<{ code: unknown; printed: string }> {
  const child = spawn(process.execPath, ['--import', TSX, fileURLToPath(new URL(name, folder)), ...args], { cwd, env });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const [code] = (await once(child, 'close')) as [unknown];
  return { code, printed: Buffer.concat(chunks).toString() };
}

it('simulation.mjs survives what can go wrong', async () => {
  const { refund } = (await import('./simulation.mjs'));
  expect(await simulate(refund, { seeds: 200 })).toMatchObject({ runs: 200 });
});
