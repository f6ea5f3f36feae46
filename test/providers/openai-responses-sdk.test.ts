/**
 * OpenAI's own SDK as a judge: it reads the same recorded answers, and its types say what a request may be.
 */
import fc from 'fast-check';
import OpenAI, { APIError } from 'openai';
import { describe, expect, it } from 'vitest';
import { assistantMessage, type LLMResponse, type Message, toolMessage, userMessage } from 'turnloop';
import { conversations } from '../support/conversations.ts';
import { CHECK_BODIES_MS, checkBodies } from '../support/sdk-types.ts';
import { CHUNKINGS, cut, loadStreamCases, type StreamCase } from '../support/stream-cases.ts';
import { errorOf, fakeServer, request } from './fake-server.ts';
import { called, type Item, itemEvents, MODEL, named, OK, reasoning, responseOf, responsesOn, said, SOURCE, stored } from './openai-responses-support.ts';
import { rememberingServer } from './remembering-server.ts';

const cases = loadStreamCases('test/fixtures/streams/responses');

/** What an answer says, whoever read it. */
interface Reading {
  readonly id: string | undefined;
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly (readonly [id: string, name: string, input: string])[];
  readonly secrets: readonly string[];
  readonly others: readonly unknown[];
  readonly status: string | undefined;
  readonly tokens: readonly number[];
}

function answerWith({ bytes, status, headers }: StreamCase, chunking: (typeof CHUNKINGS)[number] = 'whole'): typeof globalThis.fetch {
  return () => {
    const pieces = [...cut(bytes, chunking)];
    const body = new ReadableStream({
      pull(controller) {
        const piece = pieces.shift();
        if (piece === undefined) controller.close();
        else controller.enqueue(piece);
      },
    });
    return Promise.resolve(new Response(body, { status, headers }));
  };
}

async function readBySdk(streamCase: StreamCase): Promise<Reading> {
  // Without retries of its own: a refusal is a refusal.
  const client = new OpenAI({ apiKey: 'sk-test', baseURL: 'https://api.example.com/v1', maxRetries: 0, fetch: answerWith(streamCase) });
  const params = { model: streamCase.model, input: 'Hello' };
  if (!streamCase.isStreamed) return toReading(await client.responses.create(params));
  let last: OpenAI.Responses.Response | undefined;
  // Thinking is encrypted anew in each event; that of its item's own end is the one to keep, as OpenAI says.
  const ended = new Map<number, OpenAI.Responses.ResponseOutputItem>();
  for await (const event of await client.responses.create({ ...params, stream: true })) {
    if (event.type === 'response.output_item.done') ended.set(event.output_index, event.item);
    if (event.type === 'response.completed' || event.type === 'response.incomplete') last = event.response;
  }
  return toReading({ ...last!, output: last!.output.map((item, at) => ended.get(at) ?? item) });
}

function toReading({ id, output, status, usage }: OpenAI.Responses.Response): Reading {
  const messages = output.filter((item) => item.type === 'message').flatMap(({ content }) => content);
  const thoughts = output.filter((item) => item.type === 'reasoning');
  const summaries = thoughts.flatMap(({ summary }) => summary.map(({ text }) => text));
  const raw = thoughts.flatMap(({ content = [] }) => content.map(({ text }) => text));
  const { input_tokens: input = 0, output_tokens: outputTokens = 0, input_tokens_details: cached, output_tokens_details: thought } = usage ?? {};
  return {
    id,
    text: messages.map((part) => (part.type === 'output_text' ? part.text : part.refusal)).join(''),
    thinking: (summaries.length > 0 ? summaries : raw).join(''),
    calls: output.flatMap((item) => (item.type === 'function_call' ? [[item.call_id, item.name, item.arguments] as const] : [])),
    secrets: thoughts.flatMap(({ encrypted_content: secret }) => secret ?? []),
    others: output.filter(({ type }) => !['message', 'reasoning', 'function_call'].includes(type)),
    status,
    tokens: [input, cached?.cached_tokens ?? 0, outputTokens, thought?.reasoning_tokens ?? 0],
  };
}

function ourReading({ responseId, content, rawStopReason, usage }: LLMResponse): Reading {
  const texts = (type: 'text' | 'thinking'): string => content.map((part) => (part.type === type ? part.text : '')).join('');
  return {
    id: responseId,
    text: texts('text'),
    thinking: texts('thinking'),
    calls: content.flatMap((part) => (part.type === 'tool_call' ? [[part.providerId ?? '', part.name, part.inputText] as const] : [])),
    secrets: content.flatMap((part) => (part.type === 'thinking' ? (part.redactedData ?? []) : [])),
    others: content.flatMap((part) => (part.type === 'provider' ? [part.data] : [])),
    status: rawStopReason,
    tokens: [usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens, usage.cacheReadTokens, usage.outputTokens, usage.thinkingTokens],
  };
}

describe('recorded answers', () => {
  const whole = cases.filter(({ expected }) => expected.outcome === 'complete' || expected.outcome === 'lenient');

  it.each(whole.map((streamCase) => [streamCase.name, streamCase] as const))('reads %s as the SDK does', async (_name, streamCase) => {
    for (const chunking of CHUNKINGS) {
      const llm = responsesOn({ fetch: answerWith(streamCase, chunking) }, { stream: streamCase.isStreamed });

      expect(ourReading(await llm.chat(request()))).toStrictEqual(await readBySdk(streamCase));
    }
  });

  const refused = cases.filter(({ expected }) => expected.outcome === 'error');

  it.each(refused.map((streamCase) => [streamCase.name, streamCase] as const))('fails with %s as the SDK does', async (_name, streamCase) => {
    const error = await errorOf(responsesOn({ fetch: answerWith(streamCase) }).chat(request()));
    const theirs: unknown = await readBySdk(streamCase).catch((thrown: unknown) => thrown);

    expect(theirs).toBeInstanceOf(APIError);
    expect([error.status, error.code]).toStrictEqual([(theirs as APIError).status, (theirs as APIError).code ?? error.kind]);
  });

  it('has all of them', () => {
    expect([whole.length, refused.length]).toStrictEqual([23, 5]);
  });
});

describe('requests', () => {
  const IMPORT = 'import type OpenAI from "openai";';
  const TYPE = 'OpenAI.Responses.ResponseCreateParams';
  const tools = [{ name: 'a.b', description: 'd', inputSchema: { type: 'object', properties: { a: { anyOf: [{ type: 'string' }, { type: 'null' }] } } } }];

  /** The SDK wants an id of reasoning; servers do not, and where the rest of a reply is gone it would harm. */
  function withIds(body: Item): Item {
    const input = body['input'] as readonly Item[];
    return { ...body, input: input.map((item) => (item['type'] === 'reasoning' ? { id: 'rs_0', ...item } : item)) };
  }

  it('are what the SDK says a request is, whatever the history and the options', async () => {
    const search = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } };
    const target = { ...SOURCE, thinkingData: [{ model: MODEL, type: 'reasoning', id: 'rs_1' }], textData: [{ id: 'msg_1', phase: 'commentary' }], callData: [{ model: MODEL, type: 'function_call', id: 'fc_1' }, { model: MODEL, type: 'custom_tool_call', id: 'ctc_1' }], providerRuns: [[search]] };
    const fake = fakeServer(OK);
    for (const [at, messages] of fc.sample(conversations(target), { numRuns: 150, seed: 7 }).entries()) {
      const options = [{}, { state: 'incremental' as const }, { stream: false, thinkingEffort: 'high', thinkingSummary: 'detailed' as const, temperature: 1, serverTools: [{ type: 'web_search' }] }][at % 3];
      const more = [{}, { tools, toolChoice: { name: 'a.b' }, systemPrompt: 's' }, { maxOutputTokens: 1, responseSchema: { type: 'object', properties: {} } }][at % 3];
      await responsesOn(fake, options).chat(request(messages, more));
    }

    expect(checkBodies(IMPORT, TYPE, fake.sent.map(({ body }) => withIds(body)))).toStrictEqual([]);
  }, CHECK_BODIES_MS);

  it('are, without any exception, of a conversation as it goes', async () => {
    const items = (number: number): readonly Item[] => [reasoning(number, { summary: [{ type: 'summary_text', text: 's' }] }), said(number, 'I look.', { phase: 'commentary' }), called(number)];
    const bodies: Item[] = [];
    for (const state of ['stateless', 'incremental'] as const) {
      const server = rememberingServer(items);
      const llm = responsesOn(server, { state });
      let history: readonly Message[] = [userMessage('x')];
      for (let number = 1; number <= 3; number += 1) {
        history = [...history, stored(await llm.chat(request(history))), toolMessage([{ type: 'media', mediaType: 'image/png', data: 'AAAA' }], { toolCallId: `own_resp_${number}_2`, name: 'f' })];
      }
      bodies.push(...server.heard.map(({ body }) => body));
    }

    expect(checkBodies(IMPORT, TYPE, bodies)).toStrictEqual([]);
  }, CHECK_BODIES_MS);

  it('are checked: a wrong field is seen', () => {
    expect(checkBodies(IMPORT, TYPE, [{ model: 'm', input: [] }, { model: 'm', input: [], max_tokens: 1 }, { model: 'm', input: [{ role: 'tool' }] }]).map((each) => each.slice(0, 6))).toStrictEqual(['body 1', 'body 2']);
  }, CHECK_BODIES_MS);
});

it('takes every event that the SDK has a name for', async () => {
  // The names, as the SDK's types have them.
  const { readFileSync } = await import('node:fs');
  const types = readFileSync('node_modules/openai/resources/responses/responses.d.ts', 'utf8');
  const names = new Set([...types.matchAll(/^ {4}type: '((?:response\.|error)[a-z_.]*)';$/gm)].map(([, name]) => name!));
  const known = /^(error|response\.(created|queued|in_progress|completed|incomplete|failed|output_item\.(added|done)|output_text\..*|refusal\..*|reasoning_(summary_)?text\..*|function_call_arguments\..*|custom_tool_call_input\..*))$/;
  const others = [...names].filter((name) => !known.test(name));
  const body = named([{ type: 'response.created', response: { id: 'r' } }, ...others.map((type) => ({ type, output_index: 9, item_id: 'x', delta: 'd', code: 'c', part: {} })), ...itemEvents([said(1, 'x')]), { type: 'response.completed', response: responseOf([said(1, 'x')]) }]);

  expect(names.size).toBeGreaterThan(50);
  expect((await responsesOn(fakeServer({ body })).chat(request([userMessage('x'), assistantMessage('y'), userMessage('z')]))).content).toStrictEqual([{ type: 'text', text: 'x' }]);
});
