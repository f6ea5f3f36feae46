/** Chat Completions requests: histories, tools and settings as they go over the wire. Black-box. */
import { describe, expect, it } from 'vitest';
import {
  assistantMessage,
  type AssistantPart,
  type JsonSchema,
  type LLMRequest,
  type Message,
  type ToolCallPart,
  type ToolDefinition,
  toolMessage,
  userMessage,
} from 'turnloop';
import type { OpenAIChatOptions } from 'turnloop/providers/openai-chat';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { checkChatRequest } from '../support/chat-rules.ts';
import { callDelta, chatOn, delta, errorOf, events, fakeServer, finish, request, type SentBody, type SentRequest } from './fake-server.ts';

const OK = { body: events([delta({ content: 'ok' }), finish('stop')]) };
const SOURCE = { provider: 'openai', modelId: 'test-model' };

async function send(messages: readonly Message[], more: Partial<LLMRequest> = {}, options: Partial<OpenAIChatOptions> = {}): Promise<SentRequest> {
  const fake = fakeServer(OK);
  await chatOn(fake, options).chat(request(messages, more));
  return fake.sent[0]!;
}

async function sendBody(...args: Parameters<typeof send>): Promise<SentBody> {
  return (await send(...args)).body;
}

function call(id: string, more: Partial<ToolCallPart> = {}): ToolCallPart {
  return { type: 'tool_call', id, name: 'f', inputText: '{}', ...more };
}

function exchange(...calls: readonly ToolCallPart[]): Message[] {
  return [assistantMessage(calls), ...calls.map(({ id, name }) => toolMessage(`result of ${id}`, { toolCallId: id, name }))];
}

function tool(name: string, inputSchema: JsonSchema = { type: 'object', properties: {} }): ToolDefinition {
  return { name, description: `Does ${name}.`, inputSchema };
}

describe('a request', () => {
  it('has address, key, settings, tools and messages', async () => {
    const history = [userMessage('go'), assistantMessage([{ type: 'text', text: 'I look.' }, call('c1', { providerId: 'p1', inputText: '{"a": 1}' })]), toolMessage('42', { toolCallId: 'c1', name: 'f' })];
    const { url, headers, text } = await send(
      history,
      { systemPrompt: 'Be brief.', tools: [tool('f')], toolChoice: 'none', maxOutputTokens: 100 },
      { temperature: 0, thinkingEffort: 'low', headers: { 'x-team': 'a' }, body: { seed: 7, stream_options: undefined }, baseUrl: 'https://api.example.com/v1/?api-version=2' },
    );

    expect(url).toBe('https://api.example.com/v1/chat/completions?api-version=2');
    expect(headers.get('authorization')).toBe('Bearer sk-test');
    expect(headers.get('x-team')).toBe('a');
    expect(text).toBe(
      '{"model":"test-model","stream":true,"temperature":0,"reasoning_effort":"low","seed":7,' +
        '"tools":[{"type":"function","function":{"name":"f","description":"Does f.","parameters":{"type":"object","properties":{}}}}],' +
        '"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"go"},' +
        '{"role":"assistant","content":"I look.","tool_calls":[{"id":"p1","type":"function","function":{"name":"f","arguments":"{\\"a\\": 1}"}}]},' +
        '{"role":"tool","tool_call_id":"p1","content":"42"}],"tool_choice":"none","max_tokens":100}',
    );
  });

  it('asks for usage in a stream, and for no stream when told', async () => {
    expect((await send([userMessage('x')])).body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
    const plain = await send([userMessage('x')], {}, { stream: false });
    expect(plain.body).toStrictEqual({ model: 'test-model', stream: false, messages: [{ role: 'user', content: 'x' }] });
    expect(plain.headers.get('accept')).toBe('application/json');
  });

  it.each([
    ['gpt-4.1-mini', 'max_tokens'],
    ['o3-mini', 'max_completion_tokens'],
    ['gpt-5', 'max_completion_tokens'],
    ['openai/gpt-5-mini', 'max_completion_tokens'],
    ['GPT-5', 'max_completion_tokens'],
    ['gpt-10', 'max_completion_tokens'],
    ['ft:gpt-5-mini:org::id', 'max_completion_tokens'],
    ['ft:o4-mini-2025-04-16:org::id', 'max_completion_tokens'],
    ['openai.gpt-5', 'max_completion_tokens'],
    ['azure.o3', 'max_completion_tokens'],
    ['codex-mini-latest', 'max_completion_tokens'],
    ['ft:gpt-4.1-mini:org::id', 'max_tokens'],
    ['gpt-35-turbo', 'max_tokens'],
    ['gpt-oss-120b', 'max_tokens'],
    ['olmo3', 'max_tokens'],
    ['o1js/llama', 'max_tokens'],
    ['deepseek-chat', 'max_tokens'],
  ])('OC5: limits %s by %s, at most 128k', async (model, field) => {
    expect((await send([userMessage('x')], { maxOutputTokens: 999_999 }, { model })).body[field]).toBe(128_000);
  });

  it('OC4: sends efforts word for word', async () => {
    expect((await send([userMessage('x')], {}, { thinkingEffort: 'ultra-max' })).body['reasoning_effort']).toBe('ultra-max');
    expect((await send([userMessage('x')])).body).not.toHaveProperty('reasoning_effort');
  });

  it('BR-047: asks for an answer in strict mode if its schema follows the rules of that as it is', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };
    const { body } = await send([userMessage('x')], { responseSchema: schema });

    expect(body['response_format']).toStrictEqual({ type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } });
  });

  it('asks for structured output and for a named tool', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } };
    const { body } = await send([userMessage('x')], { responseSchema: schema, tools: [tool('a.b')], toolChoice: { name: 'a.b' } });
    const [wire] = body['tools'] as [{ function: { name: string } }];

    expect(body['response_format']).toStrictEqual({ type: 'json_schema', json_schema: { name: 'answer', schema } });
    expect(body['tool_choice']).toStrictEqual({ type: 'function', function: { name: wire.function.name } });
  });

  it('TD15: asks a key function at each request, and sends no key when there is none', async () => {
    let count = 0;
    const fake = fakeServer(OK);
    const llm = chatOn(fake, { apiKey: async () => `key-${(count += 1)}\n` });
    await llm.chat(request());
    await llm.chat(request());

    expect(fake.sent.map(({ headers }) => headers.get('authorization'))).toStrictEqual(['Bearer key-1', 'Bearer key-2']);
    expect((await send([userMessage('x')], {}, { apiKey: undefined })).headers.has('authorization')).toBe(false);
  });

  it('TD16: reports a key function that fails, without what it threw', async () => {
    const apiKey = (): never => {
      throw new Error('vault token hvs.SECRET refused');
    };
    const error = await errorOf(chatOn(fakeServer(OK), { apiKey }).chat(request()));

    expect(error).toMatchObject({ kind: 'auth', code: 'api_key_failed', retryable: false });
    expect(error.message).not.toContain('SECRET');
  });

  it.each([
    ['max_tokens', 5, { maxOutputTokens: 100 }],
    ['tool_choice', 'none', { tools: [tool('f')], toolChoice: 'required' }],
    ['response_format', { type: 'json_object' }, { responseSchema: { type: 'object' } }],
    ['tools', [], { tools: [tool('f')] }],
  ] as const)('replaces and removes %s for the host', async (field, value, more) => {
    const replaced = await send([userMessage('x')], more, { body: { [field]: value } });
    const removed = await send([userMessage('x')], more, { body: { [field]: undefined } });

    expect(replaced.body[field]).toStrictEqual(value);
    expect(replaced.text.split(`"${field}":`)).toHaveLength(2);
    expect(removed.body).not.toHaveProperty(field);
  });

  it.each([
    [{}, /needs `model`.*openAIChat\(\{ model/],
    [{ model: '' }, /needs `model`/],
    [{ model: 'm', baseUrl: 'localhost:8080' }, /`baseUrl`/],
    [{ model: 'm', baseUrl: 'https://user:pass@h/v1' }, /`baseUrl`/],
    [undefined, /needs `model`.*openAIChat\(\{ model/],
    ['gpt-5-mini', /needs `model`.*openAIChat\(\{ model/],
    [{ model: 'm', baseURL: 'http://h/v1' }, /no option `baseURL`\. Did you mean `baseUrl`\? It takes model, apiKey, .*openAIChat\(\{ model/],
    [{ modelId: 'm' }, /no option `modelId`\. It takes model, /],
    [{ model: 'm', timeouts: { connectMS: 1 } }, /no option `timeouts\.connectMS`\. Did you mean `timeouts\.connectMs`\? It takes timeouts\.connectMs, /],
    [{ model: 'm', apiKey: 7 }, /`apiKey` must be a text or a function.*openAIChat\(\{ model/],
    [{ model: 'm', systemPrompt: ['Be brief.'] }, /`systemPrompt` must be a text.*systemPrompt: 'Be brief\.'/],
    [{ model: 'm', headers: 'x-title: a' }, /`headers` must be a plain object of texts.*headers: \{ 'x-title'/],
    [{ model: 'm', headers: new Headers({ 'x-title': 'a' }) }, /`headers` must be a plain object of texts/],
    [{ model: 'm', headers: { 'x-title': undefined } }, /header `x-title` must be a text/],
    [{ model: 'm', timeouts: 1000 }, /`timeouts` must be a plain object.*timeouts: \{ firstTokenMs/],
    [{ model: 'm', timeouts: { firstTokenMs: Number.NaN } }, /`timeouts\.firstTokenMs` must be a number of milliseconds above 0, or Infinity/],
    [{ model: 'm', timeouts: { connectMs: -5 } }, /`timeouts\.connectMs`/],
    [{ model: 'm', timeouts: { betweenTokensMs: '60' } }, /`timeouts\.betweenTokensMs`/],
    [{ model: 'm', thinkingHistory: 'none' }, /`thinkingHistory` must be one of 'keep', 'drop', 'fill'/],
    [{ model: 'm', thinkingField: 'thinking' }, /`thinkingField` must be one of 'reasoning_content'/],
    [{ model: 'm', thinkingEffort: '' }, /`thinkingEffort` must be a text that is not empty/],
    [{ model: 'm', dialect: 'Mistral' }, /`dialect` must be one of 'common', 'mistral', 'kimi'/],
    [{ model: 'm', maxTokensField: 'x' }, /`maxTokensField` must be one of/],
    [{ model: 'm', maxOutputTokens: Number.NaN }, /`maxOutputTokens` must be a number of tokens, such as 8192/],
    [{ model: 'm', maxOutputTokens: '5' }, /`maxOutputTokens`/],
    [{ model: 'm', maxOutputTokens: null }, /`maxOutputTokens`/],
    [{ model: 'm', temperature: Number.NaN }, /`temperature` must be a number from 0/],
    [{ model: 'm', stream: 'no' }, /`stream` must be true or false/],
    [{ model: 'm', provider: '' }, /`provider` must be a text that is not empty/],
    [{ model: 'm', baseUrl: 7 }, /`baseUrl` must be a text/],
    [{ model: 'm', fetch: 'x' }, /`fetch` must be a function/],
    [{ model: 'm', serverTools: { type: 'x' } }, /`serverTools` must be a list of plain objects/],
    [{ model: 'm', serverTools: ['web_search'] }, /`serverTools`/],
    [{ model: 'm', errorPatterns: [{ pattern: 'overloaded', kind: 'overloaded' }] }, /`errorPatterns` must be a list such as \[\{ pattern: \/my words\/i/],
    [{ model: 'm', capabilities: 128_000 }, /`capabilities` must be a plain object/],
    [{ model: 'm', capabilities: { contextwindow: 1 } }, /no option `capabilities\.contextwindow`\. Did you mean `capabilities\.contextWindow`/],
    [{ model: 'm', capabilities: { maxOutputTokens: 0 } }, /`capabilities\.maxOutputTokens` must be a number above 0/],
    [{ model: 'm', capabilities: { mediaTypes: 'image/png' } }, /`capabilities\.mediaTypes` must be a list of MIME types/],
    [{ model: 'm', capabilities: { mediaTypes: ['image/*'] } }, /`capabilities\.mediaTypes`.*beginnings of them such as 'image\/'/],
    [{ model: 'm', body: 'abc' }, /`body` must be a plain object/],
    [{ model: 'm', body: { messages: [] } }, /`body\.messages` is written from the request\. Give the messages of the request instead/],
  ])('refuses options %j', (options, message) => {
    expect(() => openAIChat(options as OpenAIChatOptions)).toThrow(TypeError);
    expect(() => openAIChat(options as OpenAIChatOptions)).toThrow(message);
  });
});

describe('messages', () => {
  it('OC1: sends null content with calls alone and with thinking alone', async () => {
    const thinking: AssistantPart = { type: 'thinking', text: 'hm', providerData: { model: 'test-model', field: 'reasoning_content' } };
    const { body } = await send([userMessage('a'), ...exchange(call('c1')), assistantMessage([thinking], { source: SOURCE })]);

    expect(body.messages[1]).toMatchObject({ content: null, tool_calls: [{ id: 'c1' }] });
    expect(body.messages[3]).toStrictEqual({ role: 'assistant', content: null, reasoning_content: 'hm' });
  });

  it('BR-053: sends no empty text, and no message that says nothing', async () => {
    const { body } = await send([
      userMessage('a'),
      assistantMessage([]),
      userMessage('  \n'),
      assistantMessage([{ type: 'text', text: '' }, call('c1')]),
      toolMessage('', { toolCallId: 'c1', name: 'f' }),
      assistantMessage([{ type: 'thinking', text: 'unsigned, of another model' }], { source: { provider: 'other', modelId: 'x' } }),
      userMessage([{ type: 'text', text: ' ' }, { type: 'text', text: 'b' }]),
    ]);

    expect(checkChatRequest(body)).toStrictEqual([]);
    expect(body.messages.map(({ role, content }) => [role, content])).toStrictEqual([
      ['user', 'a'],
      ['assistant', null],
      ['tool', '(no output)'],
      ['user', 'b'],
    ]);
  });

  it('BR-092, BR-019: sends arguments that are no object as {}', async () => {
    const texts = ['{"a":', '', '[1]', 'null', '"x"', '{"a":1,, }', ' {"ok": true} '];
    const { body } = await send([userMessage('a'), ...exchange(...texts.map((inputText, at) => call(`c${at}`, { inputText })))]);
    const calls = body.messages[1]!['tool_calls'] as { function: { arguments: string } }[];

    expect(calls.map((each) => each.function.arguments)).toStrictEqual(['{}', '{}', '{}', '{}', '{}', '{}', ' {"ok": true} ']);
  });

  it('BR-025, BR-089, B13: cleans lone surrogates and control characters, and nothing else', async () => {
    const text = 'ok\u0000\u001b[31mred\u0007\ufffe a\ud83d \t\r\n 😀 \u00a0é漢';
    const { body, text: json } = await send([userMessage(text), ...exchange(call('c1', { inputText: '{"a":"\ud83d"}' }))], { systemPrompt: `s${text}` });

    expect(json).not.toMatch(/\p{Cs}/u);
    expect(checkChatRequest(body)).toStrictEqual([]);
    expect(body.messages[1]!['content']).toBe('ok[31mred\ufffd a\ufffd \t\r\n 😀 \u00a0é漢');
  });

  it('BR-058, BR-110, OC2: sends a result\'s image in one user message after the run of results', async () => {
    const image = { type: 'media', mediaType: 'image/png', data: 'iVBORw0KGgo=' } as const;
    const calls = [call('a', { name: 'shot' }), call('b')];
    const { body } = await send([
      userMessage('go'),
      assistantMessage(calls),
      toolMessage([{ type: 'text', text: 'shot' }, image], { toolCallId: 'a', name: 'shot' }),
      toolMessage([image, { type: 'media', mediaType: 'audio/wav', data: 'AA' }], { toolCallId: 'b', name: 'f' }),
      userMessage('also X', { origin: 'steering' }),
    ]);
    const wireImage = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };

    expect(checkChatRequest(body)).toStrictEqual([]);
    expect(body.messages.slice(2)).toStrictEqual([
      { role: 'tool', tool_call_id: 'a', content: 'shot' },
      { role: 'tool', tool_call_id: 'b', content: '[audio/wav left out: this model cannot be sent it]' },
      { role: 'user', content: [{ type: 'text', text: 'Output of the tool shot:' }, wireImage, { type: 'text', text: 'Output of the tool f:' }, wireImage] },
      { role: 'user', content: 'also X' },
    ]);
  });

  it('BR-058, AD3: sends a note to a model that takes no such media, and changes no message', async () => {
    const image = { type: 'media', mediaType: 'image/png', data: 'SECRETDATA' } as const;
    const messages = [userMessage([{ type: 'text', text: 'look' }, image]), assistantMessage([call('a')]), toolMessage([image], { toolCallId: 'a', name: 'f' })];
    const before = JSON.stringify(messages);
    const { body, text } = await send(messages, {}, { capabilities: { mediaTypes: [] } });

    expect(text).not.toContain('SECRETDATA');
    expect(body.messages[0]!['content']).toBe('look\n\n[image/png left out: this model cannot be sent it]');
    expect(body.messages[2]!['content']).toBe('[image/png left out: this model cannot be sent it]');
    expect(JSON.stringify(messages)).toBe(before);
  });

  it('B9: sends images, audio and files to a model that takes them', async () => {
    const { body } = await send(
      [
        userMessage([
          { type: 'media', mediaType: 'image/png', url: 'https://h/x.png' },
          { type: 'media', mediaType: 'audio/mpeg', data: 'AA' },
          { type: 'media', mediaType: 'application/pdf', data: 'BB' },
          { type: 'media', mediaType: 'video/mp4', data: 'CC' },
        ]),
      ],
      {},
      { capabilities: { mediaTypes: ['image/', 'audio/mpeg', 'application/pdf', 'video/'] } },
    );

    expect(body.messages[0]!['content']).toStrictEqual([
      { type: 'image_url', image_url: { url: 'https://h/x.png' } },
      { type: 'input_audio', input_audio: { data: 'AA', format: 'mp3' } },
      { type: 'file', file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,BB' } },
      { type: 'text', text: '[video/mp4 left out: this model cannot be sent it]' },
    ]);
  });

  it('takes media types whatever their case, and sends them in lower case', async () => {
    const parts = [
      { type: 'media', mediaType: 'IMAGE/PNG', data: 'AA' },
      { type: 'media', mediaType: 'Audio/MPEG', data: 'BB' },
      { type: 'media', mediaType: 'Application/PDF', data: 'CC' },
    ] as const;
    const messages = [userMessage(parts), assistantMessage([call('a')]), toolMessage([parts[1]], { toolCallId: 'a', name: 'f' })];
    for (const mediaTypes of [undefined, ['image/png', 'AUDIO/', 'application/pdf']]) {
      const { body } = await send(messages, {}, { capabilities: { mediaTypes } });

      expect(body.messages[0]!['content']).toStrictEqual([
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
        { type: 'input_audio', input_audio: { data: 'BB', format: 'mp3' } },
        { type: 'file', file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,CC' } },
      ]);
      expect(body.messages[2]!['content']).toContain('left out');
    }
  });
});

describe('ids', () => {
  function idsOf({ body }: SentRequest): { calls: string[]; results: unknown[] } {
    const calls = body.messages.flatMap(({ tool_calls: list }) => ((list ?? []) as { id: string }[]).map(({ id }) => id));
    return { calls, results: body.messages.filter(({ role }) => role === 'tool').map((message) => message['tool_call_id']) };
  }

  it('BR-046: are legal, distinct and the same for call and result, on every request', async () => {
    const odd = ['functions.todo:0', `call_A|fc_${'f'.repeat(400)}`, 'a/b', '', 'a b', '漢'];
    const messages = [userMessage('a'), ...exchange(...odd.map((providerId, at) => call(`call ${at}`, { providerId })))];
    const before = JSON.stringify(messages);
    const [first, second] = [await send(messages), await send(messages)];
    const { calls, results } = idsOf(first);

    for (const id of calls) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,40}$/);
    expect(new Set(calls).size).toBe(odd.length);
    expect(results).toStrictEqual(calls);
    expect(second.text).toBe(first.text);
    expect(JSON.stringify(messages)).toBe(before);
  });

  it('GG3: keep the provider\'s where it is legal and free, else our own', async () => {
    const { calls, results } = idsOf(
      await send([userMessage('a'), ...exchange(call('own_1', { providerId: 'call_0' })), ...exchange(call('own_2', { providerId: 'call_0' })), ...exchange(call('own_3'))]),
    );

    expect(calls).toStrictEqual(['call_0', 'own_2', 'own_3']);
    expect(results).toStrictEqual(calls);
  });

  it.each([
    ['the option', { dialect: 'mistral' }],
    ['the address', { baseUrl: 'https://api.mistral.ai/v1' }],
  ] as const)('BR-103: have nine characters for Mistral, by %s', async (_by, options) => {
    const { calls, results } = idsOf(
      await send([userMessage('a'), ...exchange(call('x1', { providerId: 'call_0fypS1hVX' }), call('x2', { providerId: 'call_0fypS1hVY' }), call('x3', { providerId: 'EscTeQY62' }))], {}, options),
    );

    for (const id of calls) expect(id).toMatch(/^[A-Za-z0-9]{9}$/);
    expect(calls[2]).toBe('EscTeQY62');
    expect(new Set(calls).size).toBe(3);
    expect(results).toStrictEqual(calls);
  });
});

describe('thinking and signatures', () => {
  async function roundTrip(chunks: readonly unknown[], options: Partial<OpenAIChatOptions> = {}, source = SOURCE): Promise<Record<string, unknown>> {
    const fake = fakeServer({ body: events([...chunks, callDelta({ index: 0, id: 'c1', function: { name: 'f', arguments: '{}' } }), finish('tool_calls')]) }, OK);
    const llm = chatOn(fake, options);
    const { content } = await llm.chat(request());
    const parts = content.map((part): AssistantPart => (part.type === 'tool_call' ? { ...part, id: 'own' } : part));
    // As after a save and a load.
    const stored = JSON.parse(JSON.stringify(assistantMessage(parts, { source }))) as Message;
    await llm.chat(request([userMessage('Hello'), stored, toolMessage('r', { toolCallId: 'own', name: 'f' })]));
    const message = fake.sent[1]!.body.messages[1]!;
    expect(checkChatRequest(fake.sent[1]!.body)).toStrictEqual([]);
    return message;
  }

  it.each([
    ['reasoning_content', { reasoning_content: 'why' }, { reasoning_content: 'why' }],
    ['reasoning', { reasoning: 'why' }, { reasoning: 'why' }],
    [
      'reasoning_details',
      { reasoning: 'why', reasoning_details: [{ type: 'reasoning.text', text: 'why', signature: 'S', index: 0 }] },
      { reasoning_details: [{ type: 'reasoning.text', text: 'why', signature: 'S', index: 0 }] },
    ],
    ['encrypted', { reasoning_details: [{ type: 'reasoning.encrypted', data: 'E', id: 'r1' }] }, { reasoning_details: [{ type: 'reasoning.encrypted', data: 'E', id: 'r1' }] }],
    ['typed content', { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'why' }] }] }, { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'why' }] }] }],
    ['extra content', { extra_content: { google: { thought_signature: 'S' } } }, { extra_content: { google: { thought_signature: 'S' } } }],
  ])('OC3, BR-073: goes back as it came: %s', async (_name, received, expected) => {
    const { role: _role, tool_calls: _calls, ...sent } = await roundTrip([delta(received)]);

    expect(sent).toStrictEqual({ content: null, ...expected });
  });

  it('OC3: sends thinking text back beside the details of another part', async () => {
    const details = [{ type: 'reasoning.text', text: 'deep', signature: 'S', index: 0 }];
    const parts: AssistantPart[] = [
      { type: 'thinking', text: 'plain', providerData: { model: 'test-model', field: 'reasoning' } },
      { type: 'text', text: 'x' },
      { type: 'thinking', text: 'deep', providerData: { model: 'test-model', field: 'reasoning', details } },
    ];
    const { body } = await send([userMessage('a'), assistantMessage(parts, { source: SOURCE }), userMessage('b')]);

    expect(body.messages[1]).toStrictEqual({ role: 'assistant', content: 'x', reasoning: 'plain', reasoning_details: details });
  });

  it('BR-037: sends what Gemini attached to a call back with it, and not to others', async () => {
    const extra = { google: { thought_signature: 'SIG==' } };
    const chunks = [callDelta({ index: 0, id: 'c1', function: { name: 'f', arguments: '' }, extra_content: extra })];

    expect(await roundTrip(chunks)).toMatchObject({ tool_calls: [{ id: 'c1', extra_content: extra }] });
    expect(JSON.stringify(await roundTrip(chunks, {}, { provider: 'other', modelId: 'test-model' }))).not.toContain('SIG');
  });

  it('goes back to nobody else, and nowhere when told so', async () => {
    expect(await roundTrip([delta({ reasoning: 'why' })], {}, { provider: 'other', modelId: 'test-model' })).not.toHaveProperty('reasoning');
    expect(await roundTrip([delta({ reasoning: 'why' })], { thinkingHistory: 'drop' })).not.toHaveProperty('reasoning');
    const other = assistantMessage([{ type: 'thinking', text: 't', providerData: { model: 'other-model', field: 'reasoning' } }, call('c')], { source: SOURCE });
    expect((await send([userMessage('x'), other, toolMessage('r', { toolCallId: 'c', name: 'f' })])).text).not.toContain('reasoning');
  });

  it('OC3: uses the field that the server answered with for thinking that knows none, unless told otherwise', async () => {
    const bare = [userMessage('x'), assistantMessage([{ type: 'thinking', text: 'hm' }, call('c')], { source: SOURCE }), toolMessage('r', { toolCallId: 'c', name: 'f' })];
    const fake = fakeServer({ body: events([delta({ reasoning: 'a' }), delta({ content: 'x' }), finish('stop')]) });
    const llm = chatOn(fake);
    await llm.chat(request());
    await llm.chat(request(bare));

    expect(fake.sent[1]!.body.messages[1]).toMatchObject({ reasoning: 'hm' });
    expect((await send(bare)).body.messages[1]).not.toHaveProperty('reasoning');
    expect((await send(bare, {}, { thinkingField: 'reasoning_content' })).body.messages[1]).toMatchObject({ reasoning_content: 'hm' });
  });

  it('BR-088: stays in a running tool loop and in later turns, byte for byte', async () => {
    const step = (text: string, id: string): Message[] => [
      assistantMessage([{ type: 'thinking', text, providerData: { model: 'test-model', field: 'reasoning_content' } }, call(id)], { source: SOURCE }),
      toolMessage('r', { toolCallId: id, name: 'f' }),
    ];
    const loop = [userMessage('go'), ...step('r1', 'c1'), ...step('r2', 'c2')];
    const fake = fakeServer(OK);
    const llm = chatOn(fake);
    await llm.chat(request(loop));
    await llm.chat(request([...loop, assistantMessage('done'), userMessage('next')]));

    expect(fake.sent[0]!.body.messages.map((message) => message['reasoning_content'])).toStrictEqual([undefined, 'r1', undefined, 'r2', undefined]);
    expect(fake.sent[1]!.text.startsWith(fake.sent[0]!.text.slice(0, -2))).toBe(true);
  });

  it('XC2: leaves out what another provider signed', async () => {
    const foreign = assistantMessage(
      [{ type: 'thinking', text: 't', signature: 'SIG' }, { type: 'provider', provider: 'anthropic', data: { type: 'x' } }, { type: 'text', text: 'hi' }, call('toolu_1')],
      { source: { provider: 'anthropic', modelId: 'claude' } },
    );
    const { body, text } = await send([userMessage('a'), foreign, toolMessage('r', { toolCallId: 'toolu_1', name: 'f' })]);

    expect(checkChatRequest(body)).toStrictEqual([]);
    expect(text).not.toMatch(/SIG|anthropic/);
  });
});

describe('tools', () => {
  it('B10: gives names that servers refuse a legal form, and the loop its own back', async () => {
    const names = ['a.b', 'a/b', 'ok_name', `x${'y'.repeat(80)}`, '日本', 'toString'];
    const tools = names.map((name) => tool(name));
    const wireNames: string[] = [];
    const fake = fakeServer(OK);
    await chatOn(fake).chat(request(undefined, { tools }));
    for (const { function: each } of fake.sent[0]!.body['tools'] as { function: { name: string } }[]) wireNames.push(each.name);
    const calls = wireNames.map((name, index) => callDelta({ index, id: `c${index}`, function: { name, arguments: '{}' } }));

    const deltas: unknown[] = [];
    const { content } = await chatOn(fakeServer({ body: events([...calls, finish('tool_calls')]) })).chat(
      request(undefined, { tools, onDelta: (each) => deltas.push(each) }),
    );

    expect(checkChatRequest(fake.sent[0]!.body)).toStrictEqual([]);
    expect(content.map((part) => part.type === 'tool_call' && part.name)).toStrictEqual(names);
    expect(deltas.map((each) => (each as { name: string }).name)).toStrictEqual(names);
    const history = [userMessage('x'), ...exchange(call('c', { name: 'a.b' }))];
    expect((await send(history)).body.messages[1]).toMatchObject({ tool_calls: [{ function: { name: wireNames[0] } }] });
  });

  it('gives each tool a wire name of its own, also one that is named like the hashed form of another', async () => {
    const wireNamesOf = async (...names: readonly string[]): Promise<string[]> => {
      const { body } = await send([userMessage('x')], { tools: names.map((name) => tool(name)) });
      return (body['tools'] as { function: { name: string } }[]).map((each) => each.function.name);
    };
    const [hashed = ''] = await wireNamesOf('a.b');
    const [again = ''] = await wireNamesOf(hashed);

    for (const names of [['a.b', hashed, again], [again, hashed, 'a.b']]) {
      const wireNames = await wireNamesOf(...names);
      const calls = wireNames.map((name, index) => callDelta({ index, id: `c${index}`, function: { name, arguments: '{}' } }));
      const fake = fakeServer({ body: events([...calls, finish('tool_calls')]) });
      const { content } = await chatOn(fake).chat(request(undefined, { tools: names.map((name) => tool(name)) }));

      expect(new Set(wireNames).size).toBe(names.length);
      expect(content.map((part) => part.type === 'tool_call' && part.name)).toStrictEqual(names);
      const history = await send([userMessage('x'), ...exchange(...names.map((name, at) => call(`c${at}`, { name })))]);
      expect((history.body.messages[1]!['tool_calls'] as { function: { name: string } }[]).map((each) => each.function.name)).toStrictEqual(wireNames);
    }
    expect(await wireNamesOf('get_calendar', 'mcp__server__projects')).toStrictEqual(['get_calendar', 'mcp__server__projects']);
  });

  it.each([
    [
      { type: 'object', properties: { route: { type: 'string' }, file: { type: 'string' } }, anyOf: [{ required: ['route'] }, { required: ['file'] }] },
      { type: 'object', properties: { route: { type: 'string' }, file: { type: 'string' } } },
    ],
    [
      { anyOf: [{ type: 'object', properties: { content: { type: 'string' } }, required: ['content'] }, { type: 'object', properties: { url: { anyOf: [{ type: 'string' }] } }, required: ['url'] }] },
      { type: 'object', properties: { content: { type: 'string' }, url: { anyOf: [{ type: 'string' }] } } },
    ],
    [
      { $ref: '#/$defs/In', $defs: { In: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] } } },
      { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
    ],
    [{ allOf: [{ properties: { a: {} }, required: ['a'] }, { properties: { b: {} } }] }, { type: 'object', properties: { a: {}, b: {} }, required: ['a'] }],
    [{}, { type: 'object', properties: {} }],
    [{ $ref: '#', type: 'object', properties: { a: {} } }, { type: 'object', properties: { a: {} } }],
  ] as readonly [JsonSchema, JsonSchema][])('BR-031: reduces a root that servers refuse: %j', async (schema, expected) => {
    const before = JSON.stringify(schema);
    const { body } = await send([userMessage('x')], { tools: [tool('f', schema)] });

    expect((body['tools'] as { function: { parameters: unknown } }[])[0]!.function.parameters).toStrictEqual(expected);
    expect(JSON.stringify(schema)).toBe(before);
  });

  it('BR-047: leaves other schemas as they are, and asks for nothing strict', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' }, c: { type: 'object', properties: { d: { type: 'string' } } } }, required: ['a'] };
    const { text } = await send([userMessage('x')], { tools: [tool('f', schema)] });

    expect(text).toContain(`"parameters":${JSON.stringify(schema)}}`);
    expect(text).not.toContain('strict');
  });
});

describe('dialects', () => {
  const image = { type: 'media', mediaType: 'image/png', data: 'AAAA' } as const;
  const roles = (body: SentBody): unknown[] => body.messages.map(({ role }) => role);

  it('mistral: an assistant stands between a tool\'s message and a user\'s', async () => {
    const history = [userMessage('a'), ...exchange(call('c1')), userMessage('steering'), ...exchange(call('c2'))];
    const body = await sendBody([...history, userMessage('note', { transient: true })], {}, { dialect: 'mistral' });

    expect(roles(body)).toStrictEqual(['user', 'assistant', 'tool', 'assistant', 'user', 'assistant', 'tool', 'assistant', 'user']);
    expect(roles(await sendBody([...history, userMessage('note', { transient: true })]))).toStrictEqual(['user', 'assistant', 'tool', 'user', 'assistant', 'tool', 'user']);
  });

  it('mistral: also where what follows is a tool\'s image', async () => {
    const result = toolMessage([image], { toolCallId: 'c1', name: 'f' });
    const body = await sendBody([userMessage('a'), assistantMessage([call('c1')]), result], {}, { dialect: 'mistral' });

    expect(roles(body)).toStrictEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
  });

  it('KM3: kimi: a tool named $… is the server\'s, in the list and in the history; elsewhere it gets a legal name', async () => {
        const history = [userMessage('a'), ...exchange({ ...call('c1'), name: '$web_search' })];
    const kimi = await sendBody(history, { tools: [tool('$web_search')] }, { baseUrl: 'https://api.moonshot.ai/v1' });
    const common = await sendBody(history, { tools: [tool('$web_search')] });

    expect(kimi['tools']).toStrictEqual([{ type: 'builtin_function', function: { name: '$web_search' } }]);
    expect(kimi.messages[1]).toMatchObject({ tool_calls: [{ function: { name: '$web_search' } }] });
    expect(JSON.stringify(common)).not.toContain('"$web_search"');
  });

  it('B15: tools that the server runs follow the host\'s, as they are', async () => {
    const serverTools = [{ type: 'web_search', web_search: { enable: true } }];

    expect((await sendBody([userMessage('a')], {}, { serverTools }))['tools']).toStrictEqual(serverTools);
  });

  it('KM1: settings of thinking go into the top of the body, field by field', async () => {
    const body = await sendBody([userMessage('a')], {}, { thinkingEffort: 'high', body: { thinking: { type: 'enabled' }, reasoning_effort: undefined } });

    expect(body).toMatchObject({ thinking: { type: 'enabled' } });
    expect(body).not.toHaveProperty('reasoning_effort');
  });

  it('KM1: every reply has its field of thinking where the server asks for it, and nowhere else', async () => {
    const history = [userMessage('a'), assistantMessage([{ type: 'text', text: 'b' }]), userMessage('c'), ...exchange(call('c1'))];
    const filled = await sendBody(history, {}, { thinkingHistory: 'fill' });

    expect(filled.messages.map((message) => message['reasoning_content'])).toStrictEqual([undefined, '', undefined, '', undefined]);
    expect(JSON.stringify(await sendBody(history))).not.toContain('reasoning');
    const asReasoning = await sendBody(history, {}, { thinkingHistory: 'fill', thinkingField: 'reasoning' });
    expect(asReasoning.messages[1]).toMatchObject({ reasoning: '' });
  });

  it('KM2: a reply with calls and no text has no empty content', async () => {
    expect((await sendBody([userMessage('a'), ...exchange(call('c1'))])).messages[1]).toMatchObject({ content: null });
  });
});

describe('the tools of a request', () => {
  it('GN12: are those that the request offers, and no others', async () => {
    expect((await sendBody([userMessage('a')], { tools: [tool('f')] }))['tools']).toHaveLength(1);
    expect(await sendBody([userMessage('a')])).not.toHaveProperty('tools');
  });

  it('AD4: are written once for each list, and a request that was aborted before sends nothing', async () => {
    let reads = 0;
    const tools: ToolDefinition[] = [
      {
        ...tool('f'),
        get inputSchema() {
          reads += 1;
          return { type: 'object', properties: {} };
        },
      },
    ];
    const server = fakeServer(OK);
    const llm = chatOn(server);
    await llm.chat(request([userMessage('a')], { tools }));
    await llm.chat(request([userMessage('b')], { tools }));
    await expect(llm.chat(request([userMessage('c')], { tools, signal: AbortSignal.abort() }))).rejects.toMatchObject({ kind: 'aborted' });

    expect(reads).toBe(1);
    expect(server.sent).toHaveLength(2);
  });
});
