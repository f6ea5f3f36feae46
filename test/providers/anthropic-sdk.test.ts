/**
 * The official SDK beside the adapter: requests have its types, and recorded answers read alike. The SDK gets the same
 * bytes by its `fetch` option.
 */
import Anthropic from '@anthropic-ai/sdk';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isLLMError, type JsonSchema, type LLMRequest, type LLMResponse, type Message, userMessage } from 'turnloop';
import type { AnthropicOptions } from 'turnloop/providers/anthropic';
import { conversations } from '../support/conversations.ts';
import { CHECK_BODIES_MS, checkBodies } from '../support/sdk-types.ts';
import { loadStreamCases, type StreamCase } from '../support/stream-cases.ts';
import { MODEL, messagesOn, send, SOURCE, tool } from './anthropic-support.ts';
import { fakeServer, request } from './fake-server.ts';

const SCHEMA: JsonSchema = { type: 'object', properties: { a: { anyOf: [{ type: 'string' }, { type: 'null' }] } }, required: ['a'] };

/** Requests with every setting there is, but for the temperature: the API takes it for older models, the SDK no longer knows it. */
const SETTINGS: readonly (readonly [Partial<LLMRequest>, Partial<AnthropicOptions>])[] = [
  [{}, {}],
  [{ tools: [tool('f'), tool('a.b', SCHEMA)], toolChoice: 'auto', systemPrompt: 's' }, { promptCache: '1h' }],
  [{ tools: [tool('f')], toolChoice: 'none' }, { parallelTools: false, eagerInput: true, stream: false }],
  [{ tools: [tool('f')], toolChoice: 'required' }, { parallelTools: false, thinkingEffort: 'max', thinkingDisplay: 'summarized' }],
  [{ tools: [tool('f')], toolChoice: { name: 'f' } }, { parallelTools: false, model: 'claude-opus-4-5' }],
  [{ responseSchema: SCHEMA, maxOutputTokens: 3000 }, { model: 'claude-sonnet-4-5', thinkingBudget: 2000, thinkingDisplay: 'omitted' }],
  [{ responseSchema: SCHEMA }, { thinkingEffort: 'xhigh' }],
  [{}, { thinkingMode: 'off', model: 'claude-sonnet-5-5' }],
  [{}, { thinkingMode: 'off', model: 'claude-opus-5' }],
  [{ tools: [tool('bash')] }, { serverTools: [{ type: 'web_search_20250305', name: 'web_search' }, { type: 'bash_20250124', name: 'bash' }] }],
  [{}, { body: { metadata: { user_id: 'u' }, service_tier: 'auto', stop_sequences: ['x'], cache_control: { type: 'ephemeral', ttl: '1h' } } }],
];

const SEARCH = [
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
  { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ type: 'web_search_result', url: 'https://h.example', title: 't', encrypted_content: 'E', page_age: null }] },
];
const REMOTE = [
  { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'ask', server_name: 's', input: {} },
  { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', is_error: false, content: [{ type: 'text', text: 'r' }] },
];

function histories(providerRuns: Parameters<typeof conversations>[0]['providerRuns']): readonly (readonly Message[])[] {
  const target = {
    provider: SOURCE.provider,
    modelId: MODEL,
    thinkingData: [{ model: MODEL }],
    textData: [{ model: MODEL, extra: { citations: [{ type: 'char_location', cited_text: 'c', document_index: 0, document_title: null, start_char_index: 0, end_char_index: 1, file_id: null }] } }],
    callData: [{ model: MODEL, extra: { caller: { type: 'direct' } } }],
    ...(providerRuns !== undefined && { providerRuns }),
  };
  return fc.sample(conversations(target), { numRuns: 30, seed: 7 });
}

async function bodies(messages: readonly (readonly Message[])[]): Promise<readonly unknown[]> {
  const sent: unknown[] = [];
  for (const [at, history] of messages.entries()) sent.push((await send(history, ...SETTINGS[at % SETTINGS.length]!)).body);
  return sent;
}

describe('requests have the types of the official SDK', { timeout: CHECK_BODIES_MS }, () => {
  const GENERAL = 'import type { MessageCreateParams } from \'@anthropic-ai/sdk/resources/messages/messages\';';
  const BETA = 'import type { MessageCreateParams } from \'@anthropic-ai/sdk/resources/beta/messages/messages\';';

  it('B3: whatever the history and the settings', async () => {
    const plain = await bodies([...SETTINGS.map(() => [userMessage('x')]), ...histories([SEARCH])]);

    expect(checkBodies(GENERAL, 'MessageCreateParams', plain)).toStrictEqual([]);
  });

  it('B15: with what only its beta has', async () => {
    expect(checkBodies(BETA, 'MessageCreateParams', await bodies(histories([REMOTE, [{ type: 'compaction', content: 'sum' }]])))).toStrictEqual([]);
  });

  it('and a wrong one is seen', () => {
    const good = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'x' }] };
    const found = checkBodies(GENERAL, 'MessageCreateParams', [good, { ...good, max_token: 1 }, { ...good, tool_choice: { type: 'maybe' } }]);

    expect(found.map((each) => each.slice(0, 6))).toStrictEqual(['body 1', 'body 2']);
  });
});

interface Reading {
  readonly text: string;
  readonly thinking: readonly unknown[];
  readonly calls: readonly unknown[];
  readonly stop: unknown;
  readonly usage: readonly unknown[];
}

/** Cases that the SDK cannot read, or reads in another way on purpose. */
const NOT_BY_THE_SDK: ReadonlySet<string> = new Set([
  // Throws for a second start of the message, and gives nothing without a first.
  'anthropic/anthropic-duplicate-message-start',
  'anthropic/minimax-no-message-start',
]);

const cases = loadStreamCases('test/fixtures/streams').filter(({ protocol, status, expected, name }) => protocol === 'anthropic' && status === 200 && expected.outcome !== 'error' && !NOT_BY_THE_SDK.has(name));

async function readBySdk(streamCase: StreamCase): Promise<Reading> {
  const fetch = async (): Promise<Response> => new Response(streamCase.bytes as Uint8Array<ArrayBuffer>, { headers: { ...streamCase.headers } });
  const client = new Anthropic({ apiKey: 'k', baseURL: 'https://api.example.com', fetch, maxRetries: 0 });
  const params: Anthropic.MessageCreateParamsNonStreaming = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'Hello' }] };
  const message = streamCase.isStreamed ? await client.messages.stream(params).finalMessage() : await client.messages.create(params);
  const { content, usage } = message;
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    thinking: content.flatMap((block): readonly unknown[] => (block.type === 'thinking' ? [[block.thinking, block.signature]] : block.type === 'redacted_thinking' ? [block.data] : [])),
    calls: content.flatMap((block) => (block.type === 'tool_use' ? [[block.id, block.name, message.stop_reason === 'max_tokens' ? undefined : block.input]] : [])),
    stop: message.stop_reason,
    usage: [usage.input_tokens, usage.cache_read_input_tokens ?? 0, usage.cache_creation_input_tokens ?? 0, usage.output_tokens],
  };
}

async function readByUs({ bytes, headers, isStreamed }: StreamCase): Promise<Reading> {
  const { content, rawStopReason, usage } = await messagesOn(fakeServer({ body: bytes, headers: { ...headers } }), { stream: isStreamed }).chat(request());
  return {
    text: content.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    thinking: content.flatMap((part) => (part.type === 'thinking' ? thought(part) : [])),
    calls: content.flatMap((part) => (part.type === 'tool_call' ? [[part.providerId, part.name, rawStopReason === 'max_tokens' ? undefined : inputOf(part)]] : [])),
    stop: rawStopReason,
    usage: [usage.inputTokens, usage.cacheReadTokens, usage.cacheWriteTokens, usage.outputTokens],
  };
}

function thought({ text, signature = '', redactedData }: Extract<LLMResponse['content'][number], { type: 'thinking' }>): readonly unknown[] {
  return redactedData === undefined ? [[text, signature]] : [redactedData];
}

function inputOf({ inputText }: Extract<LLMResponse['content'][number], { type: 'tool_call' }>): unknown {
  return inputText === '' ? {} : JSON.parse(inputText);
}

describe('recorded answers read as the official SDK reads them', () => {
  it.each(cases.map((streamCase) => [streamCase.name, streamCase] as const))('%s', async (_name, streamCase) => {
    expect(await readByUs(streamCase)).toStrictEqual(await readBySdk(streamCase));
  });

  it('fail where the SDK fails', async () => {
    const broken = loadStreamCases('test/fixtures/streams').filter(({ protocol, status }) => protocol === 'anthropic' && status !== 200);
    for (const { bytes, status, headers } of broken) {
      const fetch = async (): Promise<Response> => new Response(bytes as Uint8Array<ArrayBuffer>, { status, headers: { ...headers } });
      const client = new Anthropic({ apiKey: 'k', baseURL: 'https://api.example.com', fetch, maxRetries: 0 });
      const theirs: unknown = await client.messages.create({ model: 'm', max_tokens: 1, messages: [] }).catch((error: unknown) => error);
      const ours: unknown = await messagesOn(fakeServer({ body: bytes, status, headers: { ...headers } })).chat(request()).catch((error: unknown) => error);

      expect(isLLMError(ours) && theirs instanceof Anthropic.APIError && ours.status === theirs.status).toBe(true);
    }
    expect(broken.length).toBeGreaterThan(4);
  });
});
