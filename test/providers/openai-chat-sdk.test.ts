/** OpenAI's own SDK as a judge: it reads the same recorded answers, and its types say what a request may be. */
import fc from 'fast-check';
import OpenAI, { APIError } from 'openai';
import { describe, expect, it } from 'vitest';
import type { LLMResponse } from 'turnloop';
import { conversations } from '../support/conversations.ts';
import { CHECK_BODIES_MS, checkBodies } from '../support/sdk-types.ts';
import { loadStreamCases, type StreamCase } from '../support/stream-cases.ts';
import { chatOn, delta, errorOf, events, fakeServer, finish, request } from './fake-server.ts';

const cases = loadStreamCases('test/fixtures/streams/chat-completions');
const OK = { body: events([delta({ content: 'ok' }), finish('stop')]) };

/** What an answer says, whoever read it. */
interface Reading {
  readonly text: string;
  readonly calls: readonly (readonly [id: string, name: string, input: string])[];
  readonly reason: string | undefined;
}

function answerWith({ bytes, status, headers }: StreamCase): typeof globalThis.fetch {
  return () => Promise.resolve(new Response(new Uint8Array(bytes), { status, headers }));
}

async function readBySdk(streamCase: StreamCase): Promise<Reading> {
  const client = new OpenAI({ apiKey: 'sk-test', baseURL: 'https://api.example.com/v1', maxRetries: 0, fetch: answerWith(streamCase) });
  const params = { model: streamCase.model, messages: [{ role: 'user' as const, content: 'Hello' }] };
  if (!streamCase.isStreamed) {
    // Azure may leave the message out.
    const [choice] = (await client.chat.completions.create(params)).choices;
    const { message, finish_reason: reason } = choice as Partial<OpenAI.Chat.Completions.ChatCompletion.Choice>;
    const calls = (message?.tool_calls ?? []).flatMap((call) => (call.type === 'function' ? [[call.id, call.function.name, call.function.arguments] as const] : []));
    return { text: message?.refusal ?? message?.content ?? '', calls, reason };
  }
  let text = '';
  let reason: string | undefined;
  const calls = new Map<number, [id: string, name: string, input: string]>();
  for await (const { choices } of await client.chat.completions.create({ ...params, stream: true })) {
    const choice = choices.find(({ index }) => index === 0);
    if (choice === undefined) continue;
    text += choice.delta.content ?? '';
    text += choice.delta.refusal ?? '';
    reason = choice.finish_reason ?? reason;
    for (const { index, id, function: called } of choice.delta.tool_calls ?? []) {
      const call = calls.get(index) ?? ['', '', ''];
      calls.set(index, [call[0] || (id ?? ''), call[1] || (called?.name ?? ''), call[2] + (called?.arguments ?? '')]);
    }
  }
  return { text, calls: [...calls.values()], reason };
}

function ourReading({ content, rawStopReason }: LLMResponse): Reading {
  return {
    text: content.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    calls: content.flatMap((part) => (part.type === 'tool_call' ? [[part.providerId ?? '', part.name, part.inputText] as const] : [])),
    reason: rawStopReason,
  };
}

describe('recorded answers of OpenAI and Azure', () => {
  const own = cases.filter(({ name }) => /\/?(openai|azure)-/.test(name));
  // The SDK has no word for the calls of 2023.
  const whole = own.filter(({ name, expected }) => expected.outcome === 'complete' && !name.endsWith('openai-legacy-function'));
  const refused = own.filter(({ expected, status }) => expected.outcome === 'error' && status >= 400);

  it.each(whole.map((streamCase) => [streamCase.name, streamCase] as const))('reads %s as the SDK does', async (_name, streamCase) => {
    const response = await chatOn({ fetch: answerWith(streamCase) }, { stream: streamCase.isStreamed }).chat(request());

    expect(ourReading(response)).toStrictEqual(await readBySdk(streamCase));
  });

  it.each(refused.map((streamCase) => [streamCase.name, streamCase] as const))('fails with %s as the SDK does', async (_name, streamCase) => {
    const error = await errorOf(chatOn({ fetch: answerWith(streamCase) }).chat(request()));
    const theirs: unknown = await readBySdk(streamCase).catch((thrown: unknown) => thrown);

    expect(theirs).toBeInstanceOf(APIError);
    expect(error.status).toBe((theirs as APIError).status);
  });

  it('has all of them', () => {
    expect(whole.length).toBeGreaterThan(8);
    expect(refused.length).toBeGreaterThan(3);
  });
});

describe('requests', () => {
  const IMPORT = 'import type OpenAI from "openai";';
  // Thinking has fields of its own at other servers.
  const TYPE =
    'Omit<OpenAI.Chat.Completions.ChatCompletionCreateParams, "messages"> & { messages: (OpenAI.Chat.Completions.ChatCompletionMessageParam & { reasoning?: string; reasoning_content?: string; reasoning_details?: unknown[] })[] }';
  const tools = [{ name: 'a.b', description: 'd', inputSchema: { type: 'object', properties: { a: { anyOf: [{ type: 'string' }, { type: 'null' }] } } } }];

  it('are what the SDK says a request is, whatever the history and the options', async () => {
    const target = { provider: 'openai', modelId: 'test-model', thinkingData: [{ model: 'test-model', field: 'reasoning' }], callData: [] };
    const fake = fakeServer(OK);
    for (const [at, messages] of fc.sample(conversations(target), { numRuns: 150, seed: 7 }).entries()) {
      const options = [{}, { thinkingEffort: 'high', temperature: 1 }, { stream: false, maxTokensField: 'max_completion_tokens' as const }][at % 3];
      const more = [{}, { tools, toolChoice: { name: 'a.b' }, systemPrompt: 's' }, { maxOutputTokens: 1, responseSchema: { type: 'object', properties: {} } }][at % 3];
      await chatOn(fake, options).chat(request(messages, more));
    }

    expect(checkBodies(IMPORT, TYPE, fake.sent.map(({ body }) => body))).toStrictEqual([]);
  }, CHECK_BODIES_MS);

  it('are checked: a wrong field is seen', () => {
    const bodies = [{ model: 'm', messages: [] }, { model: 'm', messages: [], input: 1 }, { model: 'm', messages: [{ role: 'tool', content: 'x' }] }];

    expect(checkBodies(IMPORT, TYPE, bodies).map((each) => each.slice(0, 6))).toStrictEqual(['body 1', 'body 2']);
  }, CHECK_BODIES_MS);
});
