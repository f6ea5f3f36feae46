/**
 * Google's own SDK as a judge: it reads the same answers over HTTP, in every chunking, and it sends the same requests.
 */
import { createPartFromFunctionResponse, type GenerateContentParameters, type GenerateContentResponse, GoogleGenAI, type Part } from '@google/genai';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assistantMessage, type JsonSchema, type LLMRequest, type LLMResponse, toolMessage, userMessage } from 'turnloop';
import { google, type GoogleOptions } from 'turnloop/providers/google';
import { conversations } from '../support/conversations.ts';
import { answer, answerEvents, type ReplayServer, startReplayServer } from '../support/replay-server.ts';
import { CHECK_BODIES_MS, checkBodies } from '../support/sdk-types.ts';
import { CHUNKINGS, checkStreamCase, cut, loadStreamCases, type StreamCase } from '../support/stream-cases.ts';
import { errorOf, fakeServer, request } from './fake-server.ts';
import { chunk, geminiOn, OK } from './google-support.ts';

const cases = loadStreamCases('test/fixtures/streams-google');
let server: ReplayServer;
let origin: string;

beforeAll(async () => {
  server = await startReplayServer();
  origin = new URL(server.baseUrl).origin;
});

afterAll(() => server.close());

function sdk(): GoogleGenAI {
  // Without retries of its own: a refusal is a refusal.
  return new GoogleGenAI({ apiKey: 'key-test', httpOptions: { baseUrl: origin, apiVersion: 'v1beta', retryOptions: { attempts: 1 } } });
}

function ours(options: Partial<GoogleOptions> = {}): ReturnType<typeof google> {
  return google({ model: 'gemini-2.5-flash', apiKey: 'key-test', baseUrl: `${origin}/v1beta`, ...options });
}

/** What an answer says, whoever read it. */
interface Reading {
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly (readonly [id: string, name: string, args: unknown])[];
  /** In order, with what they stand on. */
  readonly signatures: readonly (readonly [string, string])[];
  readonly media: readonly string[];
  readonly finishReason: string;
  readonly tokens: readonly number[];
}

async function readBySdk({ model, isStreamed }: StreamCase): Promise<Reading> {
  const params = { model, contents: 'Hello' };
  const responses: GenerateContentResponse[] = [];
  if (isStreamed) for await (const response of await sdk().models.generateContentStream(params)) responses.push(response);
  else responses.push(await sdk().models.generateContent(params));
  const parts = responses.flatMap((response) => response.candidates?.[0]?.content?.parts ?? []);
  const usage = responses.findLast(({ usageMetadata }) => usageMetadata !== undefined)?.usageMetadata;
  const texts = (isThought: boolean): string => parts.map(({ text, thought }) => ((thought ?? false) === isThought ? (text ?? '') : '')).join('');
  return {
    text: texts(false),
    thinking: texts(true),
    calls: parts.flatMap(({ functionCall: call }) => (call?.name === undefined ? [] : [[call.id ?? '', call.name, call.args ?? {}] as const])),
    signatures: parts.flatMap((part) => (part.thoughtSignature === undefined ? [] : [[kindOf(part), part.thoughtSignature] as const])),
    media: parts.flatMap(({ inlineData }) => inlineData?.data ?? []),
    finishReason: responses.findLast(({ candidates }) => candidates?.[0]?.finishReason !== undefined)?.candidates?.[0]?.finishReason ?? '',
    tokens: [
      (usage?.promptTokenCount ?? 0) + (usage?.toolUsePromptTokenCount ?? 0),
      usage?.cachedContentTokenCount ?? 0,
      (usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0),
      usage?.thoughtsTokenCount ?? 0,
    ],
  };
}

function kindOf(part: Part): string {
  if (part.functionCall !== undefined) return 'call';
  return part.text === undefined ? 'provider' : 'text';
}

function toReading({ content, rawStopReason, usage }: LLMResponse): Reading {
  const texts = (type: 'text' | 'thinking'): string => content.map((part) => (part.type === type ? part.text : '')).join('');
  return {
    text: texts('text'),
    thinking: texts('thinking'),
    calls: content.flatMap((part) => (part.type === 'tool_call' ? [[part.providerId ?? '', part.name, JSON.parse(part.inputText)] as const] : [])),
    signatures: content.flatMap((part) => {
      const holder = part.type === 'provider' ? part.data : part.type === 'media' ? undefined : part.providerData;
      const signature = (holder as { thoughtSignature?: string } | undefined)?.thoughtSignature;
      return signature === undefined ? [] : [[part.type === 'tool_call' ? 'call' : part.type, signature] as const];
    }),
    media: content.flatMap((part) => (part.type === 'media' ? (part.data ?? []) : [])),
    finishReason: rawStopReason ?? '',
    tokens: [usage.inputTokens + usage.cacheReadTokens, usage.cacheReadTokens, usage.outputTokens, usage.thinkingTokens],
  };
}

describe.each(CHUNKINGS)('answers, %s', (chunking) => {
  it.each(cases.map((streamCase) => [streamCase.name, streamCase] as const))('reads %s as it is to be read', async (_name, streamCase) => {
    expect(await checkStreamCase(streamCase, chunking, server)).toStrictEqual([]);
  });

  // The SDK takes a list for one response, and leaves arguments in pieces to its caller.
  const judged = cases.filter(({ expected, name }) => expected.outcome === 'complete' && name !== 'list-of-responses' && name !== 'arguments-in-pieces');
  it.each(judged.map((streamCase) => [streamCase.name, streamCase] as const))('reads %s as the SDK does', async (_name, streamCase) => {
    server.respond(answer(cut(streamCase.bytes, chunking), 200, { ...streamCase.headers }));
    const response = await ours({ model: streamCase.model, stream: streamCase.isStreamed }).chat(request());

    expect(toReading(response)).toStrictEqual(await readBySdk(streamCase));
  });

  const refused = cases.filter(({ expected, status }) => expected.outcome === 'error' && status >= 400);
  it.each(refused.map((streamCase) => [streamCase.name, streamCase] as const))('fails with %s as the SDK does', async (_name, streamCase) => {
    server.respond(answer(cut(streamCase.bytes, chunking), streamCase.status, { ...streamCase.headers }));
    const error = await errorOf(ours().chat(request()));

    await expect(readBySdk(streamCase)).rejects.toMatchObject({ status: error.status });
  });
});

it('has every answer', () => {
  expect(cases).toHaveLength(29);
});

describe('requests', () => {
  const image = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } };
  const schema = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } }, required: ['city'] };
  const source = { provider: 'google', modelId: 'gemini-3-flash-preview' };
  const signed = (thoughtSignature: string): object => ({ providerData: { model: 'gemini-3-flash-preview', thoughtSignature } });

  const same: readonly (readonly [string, Partial<GoogleOptions>, Partial<LLMRequest>, Omit<GenerateContentParameters, 'model'>])[] = [
    ['a word', {}, {}, { contents: 'Hello' }],
    [
      'settings',
      { temperature: 0.5, thinkingEffort: 'high', body: { safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }], generationConfig: { topK: 5, stopSequences: ['END'] } } },
      { systemPrompt: 'Be brief.', maxOutputTokens: 100 },
      {
        contents: 'Hello',
        config: {
          systemInstruction: 'Be brief.',
          temperature: 0.5,
          maxOutputTokens: 100,
          topK: 5,
          stopSequences: ['END'],
          thinkingConfig: { thinkingBudget: 24_576, includeThoughts: true },
          safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }] as never,
        },
      },
    ],
    [
      'tools and a choice',
      { serverTools: [{ googleSearch: {} }] },
      { tools: [{ name: 'get_weather', description: 'Weather.', inputSchema: schema }], toolChoice: { name: 'get_weather' } },
      {
        contents: 'Hello',
        config: {
          tools: [{ functionDeclarations: [{ name: 'get_weather', description: 'Weather.', parametersJsonSchema: schema }] }, { googleSearch: {} }],
          toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['get_weather'] } } as never,
        },
      },
    ],
    [
      'an answer of a schema',
      {},
      { responseSchema: schema },
      { contents: 'Hello', config: { responseMimeType: 'application/json', responseJsonSchema: schema } },
    ],
    [
      'a history',
      { model: 'gemini-3-flash-preview', thinkingEffort: 'low' },
      {
        messages: [
          userMessage([{ type: 'text', text: 'What is it?' }, { type: 'media', mediaType: 'image/png', data: 'iVBORw0KGgo=' }, { type: 'media', mediaType: 'application/pdf', url: 'https://h.example/d.pdf' }]),
          assistantMessage(
            [
              { type: 'thinking', text: 'Hm.', providerData: { model: 'gemini-3-flash-preview' } },
              { type: 'text', text: 'I look.' },
              { type: 'tool_call', id: 'c1', name: 'look', inputText: '{"at":[1,{"x":null}]}', ...signed('QQ==') },
              { type: 'tool_call', id: 'c2', name: 'look', inputText: '' },
              { type: 'text', text: '', ...signed('Qg==') },
            ],
            { source },
          ),
          toolMessage('a cat', { toolCallId: 'c1', name: 'look' }),
          toolMessage('no such thing', { toolCallId: 'c2', name: 'look', isError: true }),
          userMessage('So?'),
        ],
      },
      {
        contents: [
          { role: 'user', parts: [{ text: 'What is it?' }, image, { fileData: { mimeType: 'application/pdf', fileUri: 'https://h.example/d.pdf' } }] },
          {
            role: 'model',
            parts: [
              { text: 'Hm.', thought: true },
              { text: 'I look.' },
              { functionCall: { name: 'look', args: { at: [1, { x: null }] } }, thoughtSignature: 'QQ==' },
              { functionCall: { name: 'look', args: {} } },
              { text: '', thoughtSignature: 'Qg==' },
            ],
          },
          {
            role: 'user',
            parts: [
              createPartFromFunctionResponse('', 'look', { output: 'a cat' }),
              createPartFromFunctionResponse('', 'look', { error: 'no such thing' }),
              { text: 'So?' },
            ],
          },
        ],
        config: { thinkingConfig: { thinkingLevel: 'LOW' as never, includeThoughts: true } },
      },
    ],
  ];

  it.each(same)('of %s are what the SDK sends', async (_name, options, more, params) => {
    server.respond(answerEvents([chunk([{ text: 'ok' }], 'STOP')], ''));
    const model = options.model ?? 'gemini-2.5-flash';
    await ours(options).chat(request(more.messages ?? [userMessage('Hello')], more));
    const mine = server.requests.at(-1)!;
    for await (const _response of await sdk().models.generateContentStream({ model, ...params }));
    const theirs = server.requests.at(-1)!;

    expect(mine).not.toBe(theirs);
    expect(mine.url).toBe(theirs.url);
    expect(mine.headers['x-goog-api-key']).toBe(theirs.headers['x-goog-api-key']);
    expect(mine.headers['content-type']).toBe(theirs.headers['content-type']);
    expect(toEssence(mine.body)).toStrictEqual(toEssence(theirs.body));
  });

  /** The SDK says that the system prompt is the user's, and sends settings and ids that are empty. */
  function toEssence(text: string): object {
    const body = JSON.parse(text.replaceAll('"id":"",', '')) as { systemInstruction?: object; generationConfig?: object };
    const { systemInstruction: system, generationConfig: config, ...rest } = body;
    return {
      ...rest,
      ...(system !== undefined && { systemInstruction: { ...system, role: undefined } }),
      ...(config !== undefined && Object.keys(config).length > 0 && { generationConfig: config }),
    };
  }
});

// Last: it computes for seconds, and open connections expire meanwhile.
/** Enums of the SDK are words on the wire. */
const WIRE_TYPES = [
  'import type { Content, GenerationConfig, SafetySetting, Tool, ToolConfig } from \'@google/genai\';',
  'type Wire<T> = T extends string ? `${T}` : T extends readonly (infer Item)[] ? readonly Wire<Item>[] : T extends object ? { [Name in keyof T]: Wire<T[Name]> } : T;',
  'type Body = { contents: Content[]; systemInstruction?: Content; tools?: Tool[]; toolConfig?: ToolConfig; generationConfig?: GenerationConfig; safetySettings?: SafetySetting[] };',
].join(' ');

describe('requests have the types of the SDK', { timeout: CHECK_BODIES_MS }, () => {
  const model = 'gemini-3-flash-preview';
  const signed = { model, thoughtSignature: 'U0lHTkVE' };
  const target = {
    provider: 'google',
    modelId: model,
    thinkingData: [{ model }, signed],
    textData: [signed],
    callData: [signed],
    providerRuns: [[{ executableCode: { language: 'PYTHON', code: 'print(1)' } }, { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } }]],
  };
  const schema: JsonSchema = { type: 'object', properties: { a: { anyOf: [{ type: 'string' }, { type: 'null' }] }, list: { type: 'array', items: { type: 'integer', minimum: 1 } } }, required: ['a'] };
  const tools = [{ name: 'a.b', description: 'd', inputSchema: schema }, { name: 'none', description: 'd', inputSchema: { type: 'object', properties: {} } }];
  const settings: readonly (readonly [Partial<LLMRequest>, Partial<GoogleOptions>])[] = [
    [{}, { sendCallIds: true }],
    [{ tools, toolChoice: 'auto', systemPrompt: 's' }, { temperature: 0.5, maxOutputTokens: 5, serverTools: [{ googleSearch: {} }] }],
    [{ tools, toolChoice: 'none' }, { schemaFormat: 'openapi', thinkingEffort: 'off' }],
    [{ tools, toolChoice: 'required', responseSchema: schema }, { thinkingEffort: 'high' }],
    [{ tools, toolChoice: { name: 'a.b' }, responseSchema: schema }, { schemaFormat: 'openapi', model: 'gemini-2.5-flash', thinkingBudget: 7 }],
  ];

  it('B14: whatever the history and the settings', async () => {
    const fake = fakeServer(OK);
    for (const [at, messages] of fc.sample(conversations(target), { numRuns: 40, seed: 7 }).entries()) {
      const [more, options] = settings[at % settings.length]!;
      await geminiOn(fake, { model, ...options }).chat(request(messages, more));
    }

    expect(checkBodies(WIRE_TYPES, 'Wire<Body>', fake.sent.map(({ body }) => body))).toStrictEqual([]);
  });

  it('and a wrong one is seen', () => {
    const good = { contents: [{ role: 'user', parts: [{ text: 'x' }] }] };
    const wrong = [{ ...good, content: [] }, { contents: [{ role: 'user', parts: [{ texts: 'x' }] }] }, { ...good, toolConfig: { functionCallingConfig: { mode: 'MAYBE' } } }];
    const found = checkBodies(WIRE_TYPES, 'Wire<Body>', [good, ...wrong]);

    expect(new Set(found.map((each) => each.slice(0, 6)))).toStrictEqual(new Set(['body 1', 'body 2', 'body 3']));
  });
});
