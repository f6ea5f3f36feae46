/** What only Quill has, and what only a gateway in front of it does: the rest is the conformance kit's. */
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { afterEach, expect, it } from 'vitest';
import { assistantMessage, toolMessage, userMessage, type LLM, type LLMRequest } from 'turnloop';
import { llmRequest } from 'turnloop/testing';
import { quillLLM } from '../index.ts';
import type { QuillEvent } from '../protocol.ts';
import { startQuillServer, type QuillServer } from '../server.ts';

const COST = { read: 1, recalled: 0, stored: 0, written: 1, mused: 0 };
const FINE: readonly QuillEvent[] = [{ event: 'say', text: 'Fine.' }, { event: 'bye', why: 'done', cost: COST }];

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Answers every request with these lines. */
async function serve(events: readonly QuillEvent[] = FINE): Promise<{ server: QuillServer; llm: LLM }> {
  const server = await startQuillServer(async ({ send, end }) => {
    for (const event of events) await send(event);
    end();
  });
  closers.push(() => server.close());
  return { server, llm: quillLLM({ url: server.url, apiKey: 'key-SECRET' }) };
}

/** A server that is not Quill's: it gives one answer whatever it is asked. */
async function serveRaw(status: number, body: string, headers: Record<string, string> = {}): Promise<LLM> {
  const server = createServer((_request, response) => response.writeHead(status, headers).end(body));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => server.close());
  return quillLLM({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/?key=QUERY-SECRET`, apiKey: 'key-SECRET' });
}

async function sent(parts: Partial<LLMRequest>): Promise<unknown> {
  const { server, llm } = await serve();
  await llm.chat(llmRequest(parts));
  return server.exchanges[0]!.request;
}

it('sends the key in its header', async () => {
  const { server, llm } = await serve();
  await llm.chat(llmRequest());

  expect(server.exchanges[0]).toMatchObject({ key: 'key-SECRET' });
});

it("sends the server's note on a call back to it, and to nobody else", async () => {
  const { server, llm } = await serve([
    { event: 'hello', answer: 'a1', model: 'quill-1-0429' },
    { event: 'ask', slot: 0, ref: 'q1', tool: 'look', mark: 'NOTE' },
    { event: 'bye', why: 'asked', cost: COST },
  ]);
  const { content } = await llm.chat(llmRequest());
  const calls = content.map((part) => ({ ...part, id: 'call_1' })) as never;
  for (const provider of ['quill', 'another']) {
    const reply = assistantMessage(calls, { id: 's1', source: { provider, modelId: 'm' } });
    const result = toolMessage('Seen.', { toolCallId: 'call_1', name: 'look' });
    await llm.chat(llmRequest({ messages: [userMessage('Look.', { id: 'm1' }), reply, result] }));
  }

  expect(content).toStrictEqual([{ type: 'tool_call', name: 'look', inputText: '', providerId: 'q1', providerData: 'NOTE' }]);
  expect(server.exchanges.map(({ body }) => body.includes('"mark":"NOTE"'))).toStrictEqual([false, true, false]);
});

it('sends pictures, and a note for what is none', async () => {
  const message = userMessage([
    { type: 'media', mediaType: 'image/png', data: 'AAEC' },
    { type: 'media', mediaType: 'image/png', url: 'https://example.com/a.png' },
    { type: 'text', text: ' ' },
  ]);

  expect(await sent({ messages: [message] })).toMatchObject({
    talk: [{ who: 'person', parts: [{ picture: 'AAEC', type: 'image/png' }, { say: '[image/png left out: this model cannot be sent it]' }] }],
  });
});

it.each([
  ['auto', undefined],
  ['none', 'nothing'],
  ['required', 'something'],
  [{ name: 'look' }, 'look'],
] as const)('sends the tool choice %j as %j, and limits and schemas behind the talk', async (toolChoice, must) => {
  const request = await sent({ toolChoice, maxOutputTokens: 5, responseSchema: { type: 'object' } });

  expect(request).toMatchObject({ limit: 5, form: { type: 'object' }, ...(must !== undefined && { must }) });
  expect(Object.keys(request as object).slice(0, 4)).toStrictEqual(['model', 'brief', 'tools', 'talk']);
});

it.each([
  [502, '<html>Bad gateway</html>', { kind: 'server', status: 502, retryable: true, message: 'quill: <html>Bad gateway</html>' }],
  [429, '{"error":"slow"}', { kind: 'rate_limit', status: 429 }],
  [403, 'null', { kind: 'invalid_request', status: 403 }],
  [200, '<html>\nWelcome, key-SECRET\n', { kind: 'malformed_response', message: "The answer is not Quill's: <html>" }],
  [200, '', { kind: 'network' }],
  [307, '', { kind: 'network' }],
])('says what a gateway that answers %d with %j did', async (status, body, expected) => {
  const llm = await serveRaw(status, body, { location: 'https://example.com/' });
  const error: unknown = await llm.chat(llmRequest()).catch((thrown: unknown) => thrown);

  expect(error).toMatchObject(expected);
  expect(`${inspect(error)}${JSON.stringify(error)}`).not.toContain('SECRET');
});

it('passes over lines that it does not know, and ends that it does not', async () => {
  const { llm } = await serve([{ event: 'horoscope' } as never, { event: 'say', text: 'Fine.' }, { event: 'bye', why: 'constructor', cost: COST }]);

  const { content, stopReason, rawStopReason } = await llm.chat(llmRequest());

  expect({ content, stopReason, rawStopReason }).toStrictEqual({
    content: [{ type: 'text', text: 'Fine.' }],
    stopReason: 'unknown',
    rawStopReason: 'constructor',
  });
});

it('runs a turn with a tool', () => {
  const main = fileURLToPath(new URL('../main.ts', import.meta.url));
  const root = fileURLToPath(new URL('../../../', import.meta.url));
  const printed = execFileSync(process.execPath, ['--import', 'tsx', main], { cwd: root, encoding: 'utf8' });

  expect(printed).toBe('[weather] {"city":"Oslo"}\n18 °C in Oslo, I hear.\nend_turn after 2 steps, 160 of 240 tokens from the cache\n');
});
