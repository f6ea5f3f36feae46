/** The adapter of custom-llm.ts against a real server that speaks its protocol. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, defineTool, type LoopEvent, runTurn, type TurnResult, userCancel } from 'turnloop';
import { withRetry } from 'turnloop/policies';
import { checkTranscript, llmRequest } from 'turnloop/testing';
import { linesLLM } from './custom-llm.ts';

interface Asked {
  readonly systemPrompt: string;
  readonly messages: readonly unknown[];
}

type Handler = (response: ServerResponse, request: IncomingMessage) => void;

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** Answers the n-th request with the n-th handler, and keeps what was asked. */
async function serve(handlers: readonly Handler[]): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      asked.push(JSON.parse(Buffer.concat(chunks).toString()) as Asked);
      handlers[asked.length - 1]?.(response, request);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, asked };
}

/** Sends lines in pieces of so many bytes, which cut lines and characters. */
function lines(values: readonly object[], { size = Infinity } = {}): Handler {
  const bytes = Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(''));
  return (response) => {
    void (async () => {
      for (let at = 0; at < bytes.length; at += size) {
        response.write(bytes.subarray(at, at + size));
        await new Promise((resolve) => setImmediate(resolve));
      }
      response.end();
    })();
  };
}

const weather = defineTool({
  name: 'weather',
  description: 'Weather of a city.',
  readOnly: true,
  input: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: ({ city }) => `18 °C in ${String(city)}`,
});

async function run(llm: ReturnType<typeof linesLLM>, options: { signal?: AbortSignal; emit?: (event: LoopEvent) => void } = {}) {
  const transcript = createTranscript();
  const events: LoopEvent[] = [];
  const result: TurnResult = await runTurn({
    llm,
    tools: [weather],
    input: 'Weather in Tromsø?',
    signal: options.signal,
    buildMessages: transcript.buildMessages,
    dispatchEvent: createEventDispatcher({
      record: transcript.record,
      emit: (event) => {
        events.push(event);
        options.emit?.(event);
      },
    }),
  });
  expect(checkTranscript(transcript.events, { complete: true, result })).toStrictEqual([]);
  return { result, events };
}

it.each([1, 7, Infinity])('runs a turn with calls, in pieces of %s bytes', async (size) => {
  const { url, asked } = await serve([
    lines(
      [
        { text: 'I ' },
        { text: 'løøk.' },
        { call: 0, name: 'weather', input: '{"city":' },
        { call: 0, input: '"Tromsø"}' },
        { call: 1, name: 'weather', input: '{"city":' },
        { end: 'done', tokens: [10, 4] },
      ],
      { size },
    ),
    lines([{ text: 'Mild.' }, { end: 'limit', tokens: [20, 2] }], { size }),
  ]);

  const { result, events } = await run(linesLLM(url, 'Be brief.'));

  expect(result).toMatchObject({ stopReason: 'max_tokens', steps: 2, text: 'Mild.', usage: { inputTokens: 30, outputTokens: 6 } });
  expect(events.flatMap((event) => (event.type === 'text.delta' ? event.text : []))).toStrictEqual(['I ', 'løøk.', 'Mild.']);
  expect(events.flatMap((event) => (event.type === 'tool.call.delta' ? event.inputText : []))).toStrictEqual(['{"city":', '"Tromsø"}', '{"city":']);
  const [first, second] = events.flatMap((event) => (event.type === 'tool.call' ? event.toolCallId : []));
  expect(asked[1]).toMatchObject({
    systemPrompt: 'Be brief.',
    messages: [
      { role: 'user', text: 'Weather in Tromsø?' },
      {
        role: 'assistant',
        text: 'I løøk.',
        calls: [
          { id: first, name: 'weather', input: '{"city":"Tromsø"}' },
          { id: second, name: 'weather', input: '{}' },
        ],
      },
      { role: 'tool', call: first, text: '18 °C in Tromsø' },
      { role: 'tool', call: second, text: expect.stringContaining('not valid JSON') as string },
    ],
  });
});

it.each<[string, Handler, object]>([
  ['a limit of requests', (response) => response.writeHead(429).end('Slow down.'), { kind: 'rate_limit', status: 429, retryable: true, message: 'Slow down.' }],
  ['a bad request', (response) => response.writeHead(400).end('No.'), { kind: 'invalid_request', retryable: false }],
  ['a server that failed', (response) => response.writeHead(503).end(), { kind: 'server', status: 503 }],
  ['an error in the stream', lines([{ text: 'a' }, { error: 'Out of memory.' }]), { kind: 'server', message: 'Out of memory.' }],
  ['an answer that is not lines of JSON', (response) => response.end('<html>\n'), { kind: 'malformed_response' }],
  ['an answer without an end', lines([{ text: 'a' }]), { kind: 'network' }],
  ['no answer', (response) => response.destroy(), { kind: 'network', retryable: true }],
])('tells %s by its kind', async (_name, handler, expected) => {
  const { url } = await serve([handler]);

  await expect(linesLLM(url).chat(llmRequest())).rejects.toMatchObject(expected);
});

it('takes back what a broken answer streamed, and asks again', async () => {
  const { url } = await serve([lines([{ text: 'Hal' }]), lines([{ text: 'Hello.' }, { end: 'done', tokens: [3, 2] }])]);

  const { result, events } = await run(withRetry(linesLLM(url), { baseDelayMs: 1 }));

  expect(result).toMatchObject({ stopReason: 'end_turn', text: 'Hello.' });
  const shown = events.flatMap((event) => (event.type === 'text.delta' || event.type === 'step.retrying' ? event.type : []));
  expect(shown).toStrictEqual(['text.delta', 'step.retrying', 'text.delta']);
});

it('closes the connection when the turn is aborted', async () => {
  let onClosed = (): void => {};
  const closed = new Promise<void>((resolve) => (onClosed = resolve));
  const { url } = await serve([
    (response) => {
      response.on('close', onClosed);
      response.write('{"text":"Well"}\n');
    },
  ]);
  const controller = new AbortController();

  const { result } = await run(linesLLM(url), {
    signal: controller.signal,
    emit: (event) => {
      if (event.type === 'text.delta') controller.abort(userCancel());
    },
  });
  await closed;

  expect(result).toMatchObject({ stopReason: 'aborted', text: 'Well' });
});
