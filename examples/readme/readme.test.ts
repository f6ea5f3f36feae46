/** The README's programs are these files, word for word, and they run. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const folder = new URL('./', import.meta.url);
const root = new URL('../../', folder);
const readme = readFileSync(new URL('README.md', root), 'utf8');
const tests = ['readme.test.ts', 'custom-llm.test.ts', 'chat-loop.test.ts'];
const programs = readdirSync(folder).filter((name) => !tests.includes(name));

it.each(programs)('shows %s word for word', (name) => {
  const code = readFileSync(new URL(name, folder), 'utf8').trimEnd();

  expect(readme).toContain(`<!-- examples/readme/${name} -->\n\`\`\`ts\n${code}\n\`\`\``);
});

it.each([
  ['quickstart.ts', '[weather]\nTake no umbrella.\nend_turn after 2 steps\n'],
  ['resume.ts', `suspended [ 'echo {"text":"hello"}' ]\nend_turn It said hello.\n`],
])('runs %s', (name, output) => {
  const printed = execFileSync(process.execPath, ['--import', 'tsx', fileURLToPath(new URL(name, folder))], {
    cwd: fileURLToPath(root),
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

/** Runs a program to its end. Not synchronously: a server in this process has to answer it. */
async function run(name: string, env: NodeJS.ProcessEnv): Promise<{ code: unknown; printed: string }> {
  const child = spawn(process.execPath, ['--import', 'tsx', fileURLToPath(new URL(name, folder))], { cwd: fileURLToPath(root), env });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const [code] = (await once(child, 'close')) as [unknown];
  return { code, printed: Buffer.concat(chunks).toString() };
}
