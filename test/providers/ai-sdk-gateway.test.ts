/** AI SDK end to end: a real provider of the SDK, its AI Gateway, over HTTP to a server of ours, in whole turns. */
import type { ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import { createGateway, type LanguageModel, simulateReadableStream, wrapLanguageModel } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { afterEach, describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, defineTool, type LoopEvent, runTurn, type TurnResult, userMessage } from 'turnloop';
import { withRetry } from 'turnloop/policies';
import { aiSdk, type AiSdkModel } from 'turnloop/providers/ai-sdk';
import { type ReplayServer, startReplayServer } from '../support/replay-server.ts';
import { call, finish, type StreamPart, text } from './ai-sdk-models.ts';
import { checkPrompt } from './ai-sdk-rules.ts';
import { errorOf, request } from './fake-server.ts';

const KEY = 'vck_KEY-SECRET123';

interface Body {
  readonly prompt: readonly { readonly role: string; readonly content: unknown }[];
  readonly tools?: unknown;
}

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly parts?: readonly StreamPart[];
  /** What becomes of the connection after the parts. @defaultValue it ends */
  readonly end?: 'break' | 'hang';
}

interface Gateway {
  readonly model: (id: string) => AiSdkModel;
  readonly requests: ReplayServer['requests'];
  /** What was asked, by number. */
  readonly body: (at: number) => Body;
}

const servers: ReplayServer[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

/** A gateway that answers each request with the next answer. */
async function startGateway(...answers: readonly Answer[]): Promise<Gateway> {
  const server = await startReplayServer((response) => write(response, answers[server.requests.length - 1] ?? {}));
  servers.push(server);
  const { requests } = server;
  return { model: createGateway({ baseURL: server.baseUrl, apiKey: KEY }), requests, body: (at) => JSON.parse(requests[at]!.body) as Body };
}

function write(response: ServerResponse, { status = 200, headers, body, parts = [], end }: Answer): void {
  response.writeHead(status, { 'content-type': body === undefined ? 'text/event-stream' : 'application/json', ...headers });
  for (const part of parts) response.write(`data: ${JSON.stringify(part)}\n\n`);
  if (end === 'break') response.write(': \n\n', () => response.destroy());
  else if (end !== 'hang') response.end(body ?? 'data: [DONE]\n\n');
}

const readTool = defineTool({
  name: 'read_file',
  description: 'Reads a file.',
  input: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  readOnly: true,
  execute: () => [{ type: 'text', text: 'a picture:' }, { type: 'media', mediaType: 'image/png', data: 'AAAA' }],
});

interface Played {
  readonly result: TurnResult;
  readonly live: readonly LoopEvent[];
  readonly transcript: ReturnType<typeof createTranscript>;
}

async function play(model: AiSdkModel, options: Parameters<typeof aiSdk>[1] = {}): Promise<Played> {
  const transcript = createTranscript();
  const live: LoopEvent[] = [];
  const result = await runTurn({
    llm: aiSdk(model, options),
    tools: [readTool],
    input: [userMessage('What is in a.txt?')],
    buildMessages: transcript.buildMessages,
    dispatchEvent: createEventDispatcher({ record: transcript.record, emit: (event) => live.push(event) }),
  });
  return { result, live, transcript };
}

const STEPS: readonly Answer[] = [
  {
    parts: [
      { type: 'stream-start', warnings: [] },
      { type: 'response-metadata', id: 'msg_1', timestamp: '2026-01-01T00:00:00.000Z', modelId: 'claude-sonnet-4-5-20250929' },
      { type: 'reasoning-start', id: '0' },
      { type: 'reasoning-delta', id: '0', delta: 'Let me look.' },
      { type: 'reasoning-delta', id: '0', delta: '', providerMetadata: { anthropic: { signature: 'SIGNED' } } },
      { type: 'reasoning-end', id: '0' },
      ...call('read_file', ['{"path":', '"a.txt"}']),
      finish('tool-calls', 'tool_use'),
    ],
  },
  { parts: [...text('It is '), ...text('a picture.', '1'), finish('stop', 'end_turn')] },
];

describe('a turn over the gateway', () => {
  it('streams, runs the tool, and sends all of it back as it came', async () => {
    const { model, requests, body } = await startGateway(...STEPS);
    const { result, live, transcript } = await play(model('anthropic/claude-sonnet-4.5'), { systemPrompt: 'Be brief.' });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'It is a picture.', usage: { inputTokens: 14, outputTokens: 10 } });
    expect(live.flatMap((event) => (event.type === 'text.delta' ? [event.text] : []))).toStrictEqual(['It is ', 'a picture.']);
    expect(live.flatMap((event) => (event.type === 'tool.call.delta' ? [event.inputText] : [])).join('')).toBe('{"path":"a.txt"}');
    expect(requests[0]?.headers).toMatchObject({ authorization: `Bearer ${KEY}`, 'ai-language-model-specification-version': '3' });
    expect(body(1).prompt).toStrictEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'What is in a.txt?' }] },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Let me look.', providerOptions: { anthropic: { signature: 'SIGNED' } } },
          { type: 'tool-call', toolCallId: 'id_read_file', toolName: 'read_file', input: { path: 'a.txt' } },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'id_read_file',
            toolName: 'read_file',
            output: { type: 'content', value: [{ type: 'text', text: 'a picture:' }, { type: 'image-data', mediaType: 'image/png', data: 'AAAA' }] },
          },
        ],
      },
    ]);
    expect(body(1).prompt.slice(0, 2)).toStrictEqual(body(0).prompt);
    expect(body(1).tools).toStrictEqual(body(0).tools);
    expect(JSON.stringify(transcript.events)).not.toContain('SECRET123');
  });

  it('XC2: goes on with another model, which gets no thinking of the first', async () => {
    const { model, body } = await startGateway(...STEPS, { parts: [...text('Yes.'), finish()] });
    const { transcript } = await play(model('anthropic/claude-sonnet-4.5'));
    const messages = [...transcript.buildMessages(), userMessage('Sure?')];
    await aiSdk(model('openai/gpt-5')).chat(request(messages));

    expect(checkPrompt(body(2).prompt, 'v3')).toStrictEqual([]);
    expect(JSON.stringify(body(2).prompt)).not.toMatch(/SIGNED|Let me look/);
  });

  it('makes a cut request again, with nothing of the cut one left', async () => {
    const { model } = await startGateway({ parts: text('It is a '), end: 'break' }, { parts: [...text('Nothing.'), finish()] });
    const transcript = createTranscript();
    const live: LoopEvent[] = [];
    const result = await runTurn({
      llm: withRetry(aiSdk(model('openai/gpt-5')), { baseDelayMs: 1 }),
      input: [userMessage('hi')],
      buildMessages: transcript.buildMessages,
      dispatchEvent: createEventDispatcher({ record: transcript.record, emit: (event) => live.push(event) }),
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'Nothing.' });
    expect(live.filter(({ type }) => type === 'step.retrying')).toMatchObject([{ error: { kind: 'network' } }]);
  });

  it('is aborted in the middle: the connection is let go of and what was said is kept', async () => {
    const { model, requests } = await startGateway({ parts: text('It is a '), end: 'hang' });
    const controller = new AbortController();
    const transcript = createTranscript();
    const result = await runTurn({
      llm: aiSdk(model('openai/gpt-5')),
      input: [userMessage('hi')],
      signal: controller.signal,
      buildMessages: transcript.buildMessages,
      dispatchEvent: createEventDispatcher({
        record: transcript.record,
        emit: (event) => {
          if (event.type === 'text.delta') controller.abort();
        },
      }),
    });
    await requests[0]?.closed;

    expect(result).toMatchObject({ stopReason: 'aborted' });
    expect(transcript.buildMessages().at(-1)).toMatchObject({ role: 'assistant', status: 'interrupted', content: [{ type: 'text', text: 'It is a ' }] });
  });
});

describe('a failure of the gateway', () => {
  const views = (value: unknown): string => [String(value), (value as Error).stack, JSON.stringify(value), inspect(value, { depth: 12, showHidden: true })].join('\n');
  const failure = (message: string, type: string): string => JSON.stringify({ error: { message, type } });

  it.each<[string, Answer, object]>([
    ['401', { status: 401, body: failure(`the key ${KEY} is wrong`, 'authentication_error') }, { kind: 'auth', status: 401 }],
    ['429', { status: 429, headers: { 'retry-after': '7' }, body: failure('slow down', 'rate_limit_exceeded') }, { kind: 'rate_limit', status: 429, retryAfterMs: 7000, retryable: true }],
    ['404', { status: 404, body: failure('no such model', 'model_not_found') }, { kind: 'not_found', status: 404 }],
    ['400', { status: 400, body: failure(`prompt is too long: 9 > 8 (authorization: Bearer ${KEY})`, 'invalid_request_error') }, { kind: 'context_overflow', status: 400 }],
    ['500', { status: 500, body: `<html>${KEY}</html>` }, { kind: 'server', status: 500, retryable: true }],
    ['a success that is none', { body: failure('busy', 'overloaded_error') }, {}],
    ['an error in the stream', { parts: [...text('a'), { type: 'error', error: { type: 'overloaded_error', message: `busy ${KEY}` } }] }, { kind: 'overloaded', partial: [{ text: 'a' }] }],
    ['a cut', { parts: text('a') }, { kind: 'network', code: 'stream_incomplete', partial: [{ text: 'a' }] }],
    ['a broken connection', { parts: text('a'), end: 'break' }, { kind: 'network', retryable: true, partial: [{ text: 'a' }] }],
  ])('BR-049, B6: of %s is known for what it is and shows no secret', async (_name, answer, expected) => {
    const { model } = await startGateway(answer);
    const error = await errorOf(aiSdk(model('openai/gpt-5'), { headers: { 'x-api-key': 'HEADER-SECRET123' } }).chat(request()));

    expect(error).toMatchObject({ name: 'LLMError', ...expected });
    expect(error.cause).toBeUndefined();
    expect(views(error)).not.toContain('SECRET123');
  });

  it('of nobody there is a network failure', async () => {
    const { model } = await startGateway();
    const gone = model('openai/gpt-5');
    await servers.splice(0)[0]?.close();

    expect(await errorOf(aiSdk(gone).chat(request()))).toMatchObject({ kind: 'network', code: 'ECONNREFUSED', retryable: true });
  });
});

describe('models that the SDK makes of models', () => {
  it('are taken as well', async () => {
    const inner = new MockLanguageModelV3({
      doStream: async () => ({ stream: simulateReadableStream({ chunks: [...text('ok'), finish()] as never, initialDelayInMs: null, chunkDelayInMs: null }) }),
    });
    const model: LanguageModel = wrapLanguageModel({ model: inner, middleware: { specificationVersion: 'v3' } });

    expect(await aiSdk(model).chat(request())).toMatchObject({ content: [{ type: 'text', text: 'ok' }] });
    expect(aiSdk(model)).toMatchObject({ provider: 'mock-provider', modelId: 'mock-model-id' });
  });
});
