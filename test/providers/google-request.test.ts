/** Gemini requests: addresses, histories, tools and settings as they go over the wire. Black-box. */
import { describe, expect, it } from 'vitest';
import {
  assistantMessage,
  type AssistantPart,
  type JsonSchema,
  type LLMRequest,
  type MediaPart,
  type Message,
  type ToolCallPart,
  type ToolDefinition,
  toolMessage,
  userMessage,
} from 'turnloop';
import { google, type GoogleOptions } from 'turnloop/providers/google';
import { checkGenerateContentRequest } from '../support/gemini-rules.ts';
import { errorOf, fakeServer, request, type SentRequest } from './fake-server.ts';
import { bodyOf, geminiOn, type GeminiBody, OK, type WirePart } from './google-support.ts';

const SOURCE = { provider: 'google', modelId: 'gemini-2.5-flash' };
const IMAGE = { type: 'media', mediaType: 'image/png', data: 'iVBORw0KGgo=' } as const;
const WIRE_IMAGE = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } };

async function send(messages: readonly Message[], more: Partial<LLMRequest> = {}, options: Partial<GoogleOptions> = {}): Promise<SentRequest> {
  const fake = fakeServer(OK);
  await geminiOn(fake, options).chat(request(messages, more));
  return fake.sent[0]!;
}

async function bodyFor(messages: readonly Message[], more: Partial<LLMRequest> = {}, options: Partial<GoogleOptions> = {}): Promise<GeminiBody> {
  return bodyOf(await send(messages, more, options));
}

async function contentsOf(messages: readonly Message[], options: Partial<GoogleOptions> = {}): Promise<readonly (readonly [string, readonly WirePart[]])[]> {
  const body = await bodyFor(messages, {}, options);
  expect(checkGenerateContentRequest(body, { generation: /gemini-3/.test(options.model ?? '') ? 3 : 2 })).toStrictEqual([]);
  return body.contents.map(({ role, parts }) => [role, parts]);
}

function call(id: string, more: Partial<ToolCallPart> = {}): ToolCallPart {
  return { type: 'tool_call', id, name: 'f', inputText: '{}', ...more };
}

function result(id: string, text = `result of ${id}`, name = 'f'): Message {
  return toolMessage(text, { toolCallId: id, name });
}

function tool(name: string, inputSchema: JsonSchema = { type: 'object', properties: {} }): ToolDefinition {
  return { name, description: `Does ${name}.`, inputSchema };
}

describe('a request', () => {
  it('has address, key, settings, system prompt, tools and contents', async () => {
    const history = [userMessage('go'), assistantMessage([{ type: 'text', text: 'I look.' }, call('c1', { inputText: '{"a": 1}' })]), result('c1', '42')];
    const { url, headers, text } = await send(
      history,
      { systemPrompt: 'Be brief.', tools: [tool('f', { type: 'object', properties: { a: { type: 'number' } } })], toolChoice: 'none', maxOutputTokens: 100 },
      { temperature: 0, headers: { 'x-team': 'a' }, body: { safetySettings: [], generationConfig: { topK: 5 } } },
    );

    expect(url).toBe('https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse');
    expect(headers.get('x-goog-api-key')).toBe('key-test');
    expect(headers.has('authorization')).toBe(false);
    expect(headers.get('x-team')).toBe('a');
    expect(text).toBe(
      '{"safetySettings":[],"systemInstruction":{"parts":[{"text":"Be brief."}]},' +
        '"tools":[{"functionDeclarations":[{"name":"f","description":"Does f.","parametersJsonSchema":{"type":"object","properties":{"a":{"type":"number"}}}}]}],' +
        '"contents":[{"role":"user","parts":[{"text":"go"}]},' +
        '{"role":"model","parts":[{"text":"I look."},{"functionCall":{"name":"f","args":{"a": 1}}}]},' +
        '{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"42"}}}]}],' +
        '"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},"generationConfig":{"temperature":0,"maxOutputTokens":100,"topK":5}}',
    );
  });

  it('says no more than it has to', async () => {
    const { url, text, headers } = await send([userMessage('x')], {}, { stream: false, apiKey: undefined });

    expect(url).toBe('https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent');
    expect(text).toBe('{"contents":[{"role":"user","parts":[{"text":"x"}]}]}');
    expect(headers.has('x-goog-api-key')).toBe(false);
    expect(headers.get('accept')).toBe('application/json');
  });

  it.each([
    ['gemini-2.5-pro', undefined, 'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro'],
    ['models/gemini-2.5-pro', undefined, 'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro'],
    ['tunedModels/mine', undefined, 'https://generativelanguage.googleapis.com/v1beta/tunedModels/mine'],
    ['gemini-2.5-pro', 'https://proxy.example.com/g/v1beta/', 'https://proxy.example.com/g/v1beta/models/gemini-2.5-pro'],
    ['gemini-2.5-pro', 'https://us-aiplatform.googleapis.com/v1/projects/p/locations/us', 'https://us-aiplatform.googleapis.com/v1/projects/p/locations/us/publishers/google/models/gemini-2.5-pro'],
    ['publishers/google/models/x', 'https://us-aiplatform.googleapis.com/v1/projects/p/locations/us', 'https://us-aiplatform.googleapis.com/v1/projects/p/locations/us/publishers/google/models/x'],
    ['gemini-2.5-pro', 'https://aiplatform.googleapis.com/v1/projects/p/locations/us/publishers/google', 'https://aiplatform.googleapis.com/v1/projects/p/locations/us/publishers/google/models/gemini-2.5-pro'],
    ['publishers/google/models/x', 'https://aiplatform.googleapis.com/v1/projects/p/locations/us/publishers/google/', 'https://aiplatform.googleapis.com/v1/projects/p/locations/us/publishers/google/models/x'],
    ['projects/p/locations/us/endpoints/7', 'https://us-aiplatform.googleapis.com/v1', 'https://us-aiplatform.googleapis.com/v1/projects/p/locations/us/endpoints/7'],
    ['gemini-2.5-pro', 'https://aiplatform.googleapis.com/v1', 'https://aiplatform.googleapis.com/v1/publishers/google/models/gemini-2.5-pro'],
    ['models/gemini-2.5-pro', 'https://aiplatform.us.rep.googleapis.com/v1', 'https://aiplatform.us.rep.googleapis.com/v1/publishers/google/models/gemini-2.5-pro'],
    ['gemini-2.5-pro', 'https://aiplatform.us.rep.googleapis.com/v1/projects/p/locations/us', 'https://aiplatform.us.rep.googleapis.com/v1/projects/p/locations/us/publishers/google/models/gemini-2.5-pro'],
    ['gemini-2.5-pro', 'https://proxy.example.com/vertex/v1/projects/p/locations/us/', 'https://proxy.example.com/vertex/v1/projects/p/locations/us/publishers/google/models/gemini-2.5-pro'],
    ['endpoints/7', 'https://proxy.example.com/vertex/v1/projects/p/locations/us', 'https://proxy.example.com/vertex/v1/projects/p/locations/us/endpoints/7'],
    ['gemini-2.5-pro', 'https://proxy.example.com/projects/mine/v1beta', 'https://proxy.example.com/projects/mine/v1beta/models/gemini-2.5-pro'],
  ])('finds the model %s at %s', async (model, baseUrl, expected) => {
    expect((await send([userMessage('x')], {}, { model, baseUrl })).url).toBe(`${expected}:streamGenerateContent?alt=sse`);
  });

  it('never puts the key into the address, and sends tokens to Vertex AI as such', async () => {
    const vertex = 'https://us-aiplatform.googleapis.com/v1/projects/p/locations/us';
    const headersFor = async (options: Partial<GoogleOptions>): Promise<(string | null)[]> => {
      const { headers, url } = await send([userMessage('x')], {}, options);
      expect(url).not.toContain('key-test');
      return [headers.get('x-goog-api-key'), headers.get('authorization')];
    };

    expect(await headersFor({ baseUrl: vertex })).toStrictEqual([null, 'Bearer key-test']);
    expect(await headersFor({ baseUrl: vertex, keyType: 'api-key' })).toStrictEqual(['key-test', null]);
    expect(await headersFor({ keyType: 'access-token' })).toStrictEqual([null, 'Bearer key-test']);
    expect(await headersFor({ baseUrl: 'https://aiplatform.googleapis.com/v1' })).toStrictEqual(['key-test', null]);
    expect(await headersFor({ baseUrl: 'https://proxy.example.com/v1/projects/p/locations/us' })).toStrictEqual([null, 'Bearer key-test']);
    expect(await headersFor({ baseUrl: 'https://proxy.example.com/projects/mine/v1beta' })).toStrictEqual(['key-test', null]);
  });

  it('TD15: asks a key function at each request', async () => {
    let count = 0;
    const fake = fakeServer(OK);
    const llm = geminiOn(fake, { apiKey: async () => `key-${(count += 1)}\n` });
    await llm.chat(request());
    await llm.chat(request());

    expect(fake.sent.map(({ headers }) => headers.get('x-goog-api-key'))).toStrictEqual(['key-1', 'key-2']);
  });

  it('B11: merges fields of the host with its own, and takes one out that is undefined', async () => {
    const body = await bodyFor([userMessage('x')], { tools: [tool('f')], toolChoice: 'required', maxOutputTokens: 9 }, {
      temperature: 1,
      body: {
        cachedContent: 'cachedContents/7',
        generationConfig: { temperature: undefined, seed: 7 } as never,
        toolConfig: { retrievalConfig: { languageCode: 'de' }, functionCallingConfig: { streamFunctionCallArguments: true, mode: 'AUTO' } },
      },
    });

    expect(body['cachedContent']).toBe('cachedContents/7');
    expect(body.generationConfig).toStrictEqual({ maxOutputTokens: 9, seed: 7 });
    expect(body.toolConfig).toStrictEqual({ functionCallingConfig: { streamFunctionCallArguments: true, mode: 'ANY' }, retrievalConfig: { languageCode: 'de' } });
  });

  it('limits the output by what the model can, and by the request before the option', async () => {
    const limits = { maxOutputTokens: 70_000, capabilities: { maxOutputTokens: 65_536 } };
    const limitFor = async (more: Partial<LLMRequest>): Promise<unknown> => (await bodyFor([userMessage('x')], more, limits)).generationConfig!['maxOutputTokens'];

    expect([await limitFor({}), await limitFor({ maxOutputTokens: 5 }), await limitFor({ maxOutputTokens: 0 })]).toStrictEqual([65_536, 5, 1]);
  });

  it.each([
    [{}, /needs `model`.*google\(\{ model/],
    [undefined, /needs `model`/],
    ['gemini-2.5-flash', /needs `model`/],
    [{ model: 7 }, /needs `model`/],
    [{ model: 'm', baseUrl: 'localhost:8080' }, /`baseUrl`/],
    [{ model: 'm', baseURL: 'http://h/v1' }, /no option `baseURL`\. Did you mean `baseUrl`\? It takes model, apiKey, /],
    [{ model: 'm', body: { tools: [] } }, /`body\.tools` is written from the request\. Give `serverTools` instead/],
    [{ model: 'm', body: { contents: [] } }, /`body\.contents`/],
    [{ model: 'm', body: { systemInstruction: {} } }, /`systemPrompt`/],
    [{ model: 'm', thinkingEffort: 'low', thinkingBudget: 5 }, /exclude one another/],
    [{ model: 'gemini-2.5-pro', thinkingEffort: 'ultra' }, /`thinkingEffort` of gemini-2\.5-pro must be off, minimal, low, medium, high.*`thinkingBudget`/],
  ])('refuses options %j', (options, message) => {
    expect(() => google(options as GoogleOptions)).toThrow(TypeError);
    expect(() => google(options as GoogleOptions)).toThrow(message);
  });

  it('GG1, XC3: merges what follows one another from one side, steering behind results as well', async () => {
    const contents = await contentsOf([
      userMessage('system, once', { origin: 'summary' }),
      userMessage('a'),
      userMessage([{ type: 'text', text: 'b' }, IMAGE]),
      assistantMessage([call('c1'), call('c2')]),
      result('c1'),
      result('c2'),
      userMessage('also X', { origin: 'steering' }),
      assistantMessage('one'),
      assistantMessage('two'),
      userMessage('end'),
    ]);

    expect(contents).toStrictEqual([
      ['user', [{ text: 'system, once' }, { text: 'a' }, { text: 'b' }, WIRE_IMAGE]],
      ['model', [{ functionCall: { name: 'f', args: {} } }, { functionCall: { name: 'f', args: {} } }]],
      [
        'user',
        [
          { functionResponse: { name: 'f', response: { output: 'result of c1' } } },
          { functionResponse: { name: 'f', response: { output: 'result of c2' } } },
          { text: 'also X' },
        ],
      ],
      ['model', [{ text: 'one' }, { text: 'two' }]],
      ['user', [{ text: 'end' }]],
    ]);
  });
});

describe('a history', () => {
  const BEGINNING = ['user', [{ text: '(the conversation begins)' }]];
  const CALLED = { functionCall: { name: 'f', args: {} } };
  const ANSWERED = { functionResponse: { name: 'f', response: { output: 'result of c1' } } };

  it.each<[string, readonly Message[], unknown]>([
    ['a text', [assistantMessage('hi'), userMessage('x')], [BEGINNING, ['model', [{ text: 'hi' }]], ['user', [{ text: 'x' }]]]],
    ['a call', [assistantMessage([call('c1')]), result('c1')], [BEGINNING, ['model', [CALLED]], ['user', [ANSWERED]]]],
    ['a call behind what says nothing', [userMessage(' '), assistantMessage([]), assistantMessage([call('c1')]), result('c1')], [BEGINNING, ['model', [CALLED]], ['user', [ANSWERED]]]],
    ['nothing that is sent, and then a user', [assistantMessage([]), userMessage('x')], [['user', [{ text: 'x' }]]]],
  ])('GG1: that begins with %s of the model begins with a user’s turn', async (_what, messages, contents) => {
    expect(await contentsOf(messages)).toStrictEqual(contents);
  });

  it('GG1: that begins with a reply goes on from the same turn', async () => {
    const fake = fakeServer(OK);
    const llm = geminiOn(fake);
    const history = [assistantMessage([call('c1')]), result('c1')];
    await llm.chat(request(history));
    await llm.chat(request([...history, assistantMessage('done'), userMessage('next')]));

    expect(fake.sent[1]!.text.startsWith(fake.sent[0]!.text.slice(0, -2))).toBe(true);
  });

  it.each<[string, readonly Message[]]>([
    ['is empty', []],
    ['says nothing', [userMessage(' \n'), assistantMessage([])]],
    ['has only thinking of somebody else', [assistantMessage([{ type: 'thinking', text: 'hm' }], { source: { provider: 'other', modelId: 'm' } })]],
    ['ends with a blank aside', [userMessage('', { transient: true })]],
  ])('that %s is refused before anything is sent', async (_what, messages) => {
    const fake = fakeServer(OK);

    expect(await errorOf(geminiOn(fake).chat(request(messages, { systemPrompt: 'Be brief.' })))).toMatchObject({ kind: 'invalid_request', code: 'empty_history', retryable: false });
    expect(fake.sent).toHaveLength(0);
  });
});

describe('results', () => {
  it('GG2: stand in the order of the calls, directly behind the reply, and their media behind all of them', async () => {
    const contents = await contentsOf([
      userMessage('go'),
      assistantMessage([call('a', { name: 'shot' }), call('b'), call('c')]),
      result('c'),
      toolMessage([IMAGE, { type: 'media', mediaType: 'image/svg+xml', data: 'AAAA' }], { toolCallId: 'b', name: 'f' }),
      toolMessage([{ type: 'text', text: 'shot' }, IMAGE], { toolCallId: 'a', name: 'shot' }),
      userMessage('look'),
    ]);

    expect(contents[2]).toStrictEqual([
      'user',
      [
        { functionResponse: { name: 'shot', response: { output: 'shot' } } },
        { functionResponse: { name: 'f', response: { output: '[image/svg+xml left out: this model cannot be sent it]' } } },
        { functionResponse: { name: 'f', response: { output: 'result of c' } } },
        { text: 'Output of the tool shot:' },
        WIRE_IMAGE,
        { text: 'Output of the tool f:' },
        WIRE_IMAGE,
        { text: 'look' },
      ],
    ]);
  });

  it.each([
    ['missing', [assistantMessage([call('a'), call('b')]), result('a')], /the call b has no result/],
    ['missing in the middle', [assistantMessage([call('a')]), userMessage('x')], /the call a has no result/],
    ['extra', [assistantMessage([call('a')]), result('a'), result('z')], /the result of the call z does not follow that call/],
    ['of a reply further up', [assistantMessage([call('a')]), result('a'), assistantMessage('x'), result('a')], /the result of the call a does not follow/],
    ['double', [assistantMessage([call('a')]), result('a'), result('a')], /the call a has two results/],
    ['ambiguous', [assistantMessage([call('a'), call('a')]), result('a')], /two calls of one reply have the same id/],
  ])('GG2: %s results are refused before anything is sent', async (_name, messages, message) => {
    const fake = fakeServer(OK);
    const llm = geminiOn(fake);
    const first = userMessage('go');

    expect(await errorOf(llm.chat(request([first, ...messages])))).toMatchObject({ kind: 'invalid_history', message: expect.stringMatching(message) });
    expect(fake.sent).toHaveLength(0);
    // The same history is no better the second time, another one is.
    expect((await errorOf(llm.chat(request([first, ...messages])))).message).toMatch(message);
    await llm.chat(request([first, assistantMessage([call('a')]), result('a')]));
    expect(fake.sent).toHaveLength(1);
  });

  it('GG3: get the tool\'s name from their message, mapped as the call\'s is', async () => {
    const contents = await contentsOf([userMessage('x'), assistantMessage([call('a', { name: 'server/tool' })]), result('a', 'r', 'server/tool')]);
    const [called, answered] = [contents[1]![1][0]!['functionCall'], contents[2]![1][0]!['functionResponse']] as { name: string }[];

    expect(called!.name).toMatch(/^server_tool_0x/);
    expect(answered!.name).toBe(called!.name);
  });

  it('say what failed as an error, and that there was no output', async () => {
    const contents = await contentsOf([
      userMessage('x'),
      assistantMessage([call('a'), call('b'), call('c')]),
      toolMessage('it broke', { toolCallId: 'a', name: 'f', isError: true }),
      toolMessage(' ', { toolCallId: 'b', name: 'f' }),
      toolMessage([IMAGE], { toolCallId: 'c', name: 'f' }),
    ]);

    expect(contents[2]![1].slice(0, 3).map((part) => (part['functionResponse'] as { response: unknown }).response)).toStrictEqual([
      { error: 'it broke' },
      { output: '(no output)' },
      { output: '(the output follows below, after the tool results)' },
    ]);
  });

  it('GG4: no id fields on the wire, unless asked for', async () => {
    const messages = [userMessage('x'), assistantMessage([call('own_1', { providerId: 'g1' }), call('own_2', { providerId: 'g1' })], { source: SOURCE }), result('own_1'), result('own_2')];
    const { contents } = await bodyFor(messages, {}, { sendCallIds: true });

    expect((await send(messages)).text).not.toContain('"id"');
    expect(contents[1]!.parts.map((part) => (part['functionCall'] as { id: string }).id)).toStrictEqual(['g1', 'own_2']);
    expect(contents[2]!.parts.map((part) => (part['functionResponse'] as { id: string }).id)).toStrictEqual(['g1', 'own_2']);
  });
});

describe('texts and arguments', () => {
  it('BR-053: sends no empty text, and no content that says nothing', async () => {
    const contents = await contentsOf([
      userMessage('a'),
      assistantMessage([]),
      userMessage('  \n'),
      assistantMessage([{ type: 'text', text: '' }, call('c1')]),
      result('c1', ''),
      assistantMessage([{ type: 'thinking', text: 'of another model' }], { source: { provider: 'other', modelId: 'x' } }),
      userMessage([{ type: 'text', text: ' ' }, { type: 'text', text: 'b' }]),
    ]);

    expect(contents.map(([role, parts]) => [role, parts.length])).toStrictEqual([['user', 1], ['model', 1], ['user', 2]]);
  });

  it('BR-092, BR-019: sends arguments that are no object as {}', async () => {
    const texts = ['{"a":', '', '[1]', 'null', '"x"', ' {"ok": 1.50} '];
    const calls = texts.map((inputText, at) => call(`c${at}`, { inputText }));
    const { text } = await send([userMessage('a'), assistantMessage(calls), ...calls.map(({ id }) => result(id))]);

    expect([...text.matchAll(/"args":(.*?)\}[,}]/g)].map((match) => match[1])).toStrictEqual(['{', '{', '{', '{', '{', ' {"ok": 1.50} ']);
  });

  it('BR-025, BR-089, B13: cleans lone surrogates and control characters everywhere, and nothing else', async () => {
    const text = 'ok\u0000\u001b[31mred\u0007\ufffe a\ud83d \t\r\n 😀 \u00a0é漢';
    const clean = 'ok[31mred\ufffd a\ufffd \t\r\n 😀 \u00a0é漢';
    const messages = [userMessage(text), assistantMessage([{ type: 'text', text }, call('c1', { inputText: '{"a":"\ud83d \\u0000"}' })]), result('c1', text)];
    const body = await bodyFor(messages, { systemPrompt: text, tools: [{ ...tool('f'), description: text }] });

    expect(checkGenerateContentRequest(body)).toStrictEqual([]);
    expect(body.contents[0]!.parts).toStrictEqual([{ text: clean }]);
    expect(body.contents[1]!.parts).toStrictEqual([{ text: clean }, { functionCall: { name: 'f', args: { a: '\ufffd ' } } }]);
    expect(body.contents[2]!.parts).toStrictEqual([{ functionResponse: { name: 'f', response: { output: clean } } }]);
  });
});

describe('media', () => {
  it('B9: goes as it is or by address, in lower case', async () => {
    const contents = await contentsOf([
      userMessage([
        { type: 'media', mediaType: 'IMAGE/PNG', data: 'AAAA' },
        { type: 'media', mediaType: 'audio/wav', data: 'AAAA' },
        { type: 'media', mediaType: 'application/pdf', url: 'https://h.example/d' },
        { type: 'media', mediaType: 'image/png', url: 'data:image/jpeg;base64,BBBB' },
      ]),
    ]);

    expect(contents[0]![1]).toStrictEqual([
      { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
      { inlineData: { mimeType: 'audio/wav', data: 'AAAA' } },
      { fileData: { mimeType: 'application/pdf', fileUri: 'https://h.example/d' } },
      { inlineData: { mimeType: 'image/jpeg', data: 'BBBB' } },
    ]);
  });

  it.each<[string, Partial<MediaPart>, object]>([
    ['of a type by another name', { mediaType: 'image/JPG', data: 'AAAA' }, { mimeType: 'image/jpeg', data: 'AAAA' }],
    ['of a type with parameters', { mediaType: 'text/plain; charset=utf-8', data: 'AAAA' }, { mimeType: 'text/plain', data: 'AAAA' }],
    ['in an address with parameters', { mediaType: 'image/png', url: 'data:IMAGE/WEBP;name=a.png;base64,AAAA' }, { mimeType: 'image/webp', data: 'AAAA' }],
    ['in an address that escapes its base64', { mediaType: '', url: 'data:image/png;base64,AA%2B%3D' }, { mimeType: 'image/png', data: 'AA+=' }],
    ['as text in an address', { mediaType: 'text/csv', url: 'data:text/plain;charset=utf-8,a%2C%20%C3%A9,b' }, { mimeType: 'text/plain', data: 'YSwgw6ksYg==' }],
    ['as text in an address that says no type', { mediaType: 'text/csv', url: 'data:,hi' }, { mimeType: 'text/csv', data: 'aGk=' }],
    ['as text in an address of no type at all', { mediaType: '', url: 'data:;base64,aGk=' }, { mimeType: 'text/plain', data: 'aGk=' }],
  ])('AD3: is sent inline %s', async (_what, media, inlineData) => {
    expect((await contentsOf([userMessage([{ type: 'media', ...media } as MediaPart])]))[0]![1]).toStrictEqual([{ inlineData }]);
  });

  it.each<[string, Partial<MediaPart>]>([
    ['a file of the host', { url: 'file:///etc/x.png' }],
    ['an address of this process', { url: 'blob:https://h.example/1' }],
    ['no address', { url: 'x.png' }],
    ['a broken address of data', { url: 'data:image/png,%zz' }],
    ['an address of data without its comma', { url: 'data:image/png;base64' }],
    ['an address without data', { url: 'data:image/png;base64,' }],
    ['no data', { data: '' }],
  ])('AD3: sends a note for %s', async (_what, media) => {
    expect((await contentsOf([userMessage([{ type: 'media', mediaType: 'image/png', ...media }])]))[0]![1]).toStrictEqual([
      { text: '[image/png left out: this model cannot be sent it]' },
    ]);
  });

  it.each([
    ['image/*', 'https://h.example/a.PNG?size=2', 'image/png'],
    ['', 'https://h.example/a.jpeg', 'image/jpeg'],
    ['application/octet-stream', 'gs://bucket/talk.mp3', 'audio/mp3'],
    ['video/*', 'https://h.example/v.mp4#t=5', 'video/mp4'],
    ['image/webp', 'https://h.example/a.png', 'image/webp'],
  ])('GG7: finds the type of %j at %s by the extension', async (mediaType, url, mimeType) => {
    expect((await contentsOf([userMessage([{ type: 'media', mediaType, url }])]))[0]![1]).toStrictEqual([{ fileData: { mimeType, fileUri: url } }]);
  });

  it('GG7: leaves a type that nobody knows to the server', async () => {
    const url = 'https://www.youtube.com/watch?v=x';

    expect((await contentsOf([userMessage([{ type: 'media', mediaType: 'video/*', url }])]))[0]![1]).toStrictEqual([{ fileData: { fileUri: url } }]);
  });

  it('AD3: sends a note for what Gemini or the model does not take', async () => {
    const gif = { type: 'media', mediaType: 'image/gif', data: 'SECRETDATA' } as const;

    expect((await contentsOf([userMessage([gif])]))[0]![1]).toStrictEqual([{ text: '[image/gif left out: this model cannot be sent it]' }]);
    expect((await contentsOf([userMessage([IMAGE])], { capabilities: { mediaTypes: [] } }))[0]![1]).toStrictEqual([
      { text: '[image/png left out: this model cannot be sent it]' },
    ]);
    // A host knows better.
    expect((await bodyFor([userMessage([gif])], {}, { capabilities: { mediaTypes: ['image/'] } })).contents[0]!.parts).toStrictEqual([
      { inlineData: { mimeType: 'image/gif', data: 'SECRETDATA' } },
    ]);
  });

  it('of a reply goes back to the same provider, and as a note to another', async () => {
    const contentsFor = (provider: string): ReturnType<typeof contentsOf> =>
      contentsOf([userMessage('draw'), assistantMessage([IMAGE], { source: { provider, modelId: 'gemini-2.5-flash' } }), userMessage('more')]);

    expect((await contentsFor('google'))[1]).toStrictEqual(['model', [WIRE_IMAGE]]);
    expect((await contentsFor('openai'))[1]).toStrictEqual(['model', [{ text: '[image/png left out: this model cannot be sent it]' }]]);
  });
});

describe('tools', () => {
  it('B10: have names that Gemini takes, each its own', async () => {
    const names = ['a.b', 'a/b', 'ok_name', '1st', '-x', '_1st', `x${'y'.repeat(80)}`, '日本', 'toString', ''];
    const body = await bodyFor([userMessage('x')], { tools: names.map((name) => tool(name)) });
    const declared = (body.tools![0]!['functionDeclarations'] as { name: string }[]).map(({ name }) => name);

    expect(checkGenerateContentRequest(body)).toStrictEqual([]);
    expect(new Set(declared).size).toBe(names.length);
    expect(declared.filter((name) => names.includes(name))).toStrictEqual(['ok_name', '_1st', 'toString']);
    // The name of a call in the history depends on the name alone.
    const history = await bodyFor([userMessage('x'), assistantMessage([call('c', { name: '1st' })]), result('c', 'r', '1st')]);
    expect(history.contents[1]!.parts[0]).toStrictEqual({ functionCall: { name: declared[3], args: {} } });
  });

  it.each([
    ['auto', undefined],
    ['none', { mode: 'NONE' }],
    ['required', { mode: 'ANY' }],
    [{ name: 'a.b' }, { mode: 'ANY', allowedFunctionNames: [expect.stringMatching(/^a_b_0x/)] }],
  ] as const)('are chosen: %j', async (toolChoice, calling) => {
    const body = await bodyFor([userMessage('x')], { tools: [tool('a.b')], toolChoice });

    expect(checkGenerateContentRequest(body)).toStrictEqual([]);
    expect(body.toolConfig).toStrictEqual(calling === undefined ? undefined : { functionCallingConfig: calling });
    expect(await bodyFor([userMessage('x')], { toolChoice })).not.toHaveProperty('toolConfig');
  });

  it('BR-031: have schemas in JSON Schema, and recursive ones in the subset of OpenAPI', async () => {
    const recursive: JsonSchema = { type: 'object', properties: { child: { $ref: '#' }, name: { type: 'string' } }, required: ['name'] };
    const plain: JsonSchema = { type: 'object', properties: { m: { type: 'object', additionalProperties: { type: 'string' } } } };
    const declarations = async (options: Partial<GoogleOptions>): Promise<unknown> => {
      const body = await bodyFor([userMessage('x')], { tools: [tool('plain', plain), tool('recursive', recursive), tool('empty')] }, options);
      return body.tools![0]!['functionDeclarations'];
    };

    expect(await declarations({})).toMatchObject([
      { name: 'plain', parametersJsonSchema: plain },
      { name: 'recursive', parameters: { type: 'OBJECT', properties: { name: { type: 'STRING' } }, required: ['name'] } },
      { name: 'empty', parametersJsonSchema: { type: 'object', properties: {} } },
    ]);
    for (const options of [{ schemaFormat: 'openapi' }, { baseUrl: 'https://generativelanguage.googleapis.com/v1' }] as const) {
      expect(await declarations(options)).toMatchObject([{ parameters: { type: 'OBJECT' } }, { parameters: {} }, { name: 'empty' }]);
      expect((await declarations(options) as object[])[2]).not.toHaveProperty('parameters');
    }
  });

  it('stand for a structured answer by its schema', async () => {
    const schema: JsonSchema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
    const formatFor = async (options: Partial<GoogleOptions>): Promise<unknown> => (await bodyFor([userMessage('x')], { responseSchema: schema }, options)).generationConfig;

    expect(await formatFor({})).toStrictEqual({ responseMimeType: 'application/json', responseJsonSchema: schema });
    expect(await formatFor({ schemaFormat: 'openapi' })).toMatchObject({ responseMimeType: 'application/json', responseSchema: { type: 'OBJECT', required: ['a'] } });
  });

  const COLORS: JsonSchema = { type: 'string', enum: ['red', 'blue'] };
  const TREE: JsonSchema = { type: 'object', properties: { name: { type: 'string' }, kids: { type: 'array', items: { $ref: '#' } } }, required: ['name'] };
  const TREE_OUTLINE = { type: 'OBJECT', properties: { name: { type: 'STRING' }, kids: { type: 'ARRAY', items: { type: 'OBJECT' } } }, required: ['name'] };

  it.each<[string, JsonSchema, unknown, unknown]>([
    ['a list', { type: 'array', items: { type: 'number' }, minItems: 1 }, undefined, { type: 'ARRAY', items: { type: 'NUMBER' }, minItems: 1 }],
    ['one of some texts', COLORS, undefined, { type: 'STRING', enum: ['red', 'blue'] }],
    ['one of some forms', { anyOf: [COLORS, { type: 'array', items: COLORS }] }, undefined, { anyOf: [{ type: 'STRING' }, { type: 'ARRAY', items: { type: 'STRING' } }] }],
    ['a number or nothing', { type: ['integer', 'null'] }, undefined, { type: 'INTEGER', nullable: true }],
    ['what a reference leads to', { $ref: '#/$defs/Color', $defs: { Color: COLORS } }, COLORS, { type: 'STRING', enum: ['red', 'blue'] }],
    ['a list of what a reference leads to', { type: 'array', items: { $ref: '#/definitions/c' }, definitions: { c: COLORS } }, { type: 'array', items: COLORS }, { type: 'ARRAY', items: { type: 'STRING' } }],
    ['an object with references', { type: 'object', properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: COLORS } }, { type: 'object', properties: { a: COLORS } }, { type: 'OBJECT', properties: { a: { type: 'STRING' } } }],
  ])('stand for an answer that is %s, in both formats', async (_what, responseSchema, inlined, subset) => {
    const formatFor = async (options: Partial<GoogleOptions>): Promise<unknown> => {
      const body = await bodyFor([userMessage('x')], { responseSchema }, options);
      expect(checkGenerateContentRequest(body)).toStrictEqual([]);
      return body.generationConfig;
    };

    expect(await formatFor({})).toStrictEqual({ responseMimeType: 'application/json', responseJsonSchema: inlined ?? responseSchema });
    expect(await formatFor({ schemaFormat: 'openapi' })).toMatchObject({ responseSchema: subset });
  });

  it.each<[string, JsonSchema, unknown]>([
    ['of itself', TREE, TREE_OUTLINE],
    ['and a list of such', { type: 'array', items: { $ref: '#/$defs/Tree' }, $defs: { Tree: { ...TREE, properties: { kids: { type: 'array', items: { $ref: '#/$defs/Tree' } } }, required: ['kids'] } } }, { type: 'ARRAY', items: { type: 'OBJECT', required: ['kids'] } }],
    ['and a list of itself', { type: 'array', items: { anyOf: [{ type: 'string' }, { $ref: '#' }] } }, { type: 'ARRAY', items: { anyOf: [{ type: 'STRING' }, { type: 'ARRAY' }] } }],
    ['under the name that is given to answers', { $ref: '#/$defs/Answer', $defs: { Answer: { ...TREE, properties: { name: { type: 'string' }, kids: { type: 'array', items: { $ref: '#/$defs/Answer' } } } } } }, TREE_OUTLINE],
  ])('stand for an answer that is made %s in the subset of OpenAPI', async (_what, responseSchema, subset) => {
    for (const options of [{}, { schemaFormat: 'openapi' }] as const) {
      const body = await bodyFor([userMessage('x')], { responseSchema }, options);
      const { generationConfig } = body;

      // Where a recursion is cut off only the type is told.
      expect(checkGenerateContentRequest(body).filter((rule) => !/an object without properties/.test(rule))).toStrictEqual([]);
      expect(generationConfig).toMatchObject({ responseMimeType: 'application/json', responseSchema: subset });
      expect(JSON.stringify(generationConfig)).not.toContain('$ref');
    }
  });

  it('B15: of the server follow those of the host, and Gemini 3 is told that both are there', async () => {
    const serverTools = [{ googleSearch: {} }, { codeExecution: {} }];
    const toolsFor = async (options: Partial<GoogleOptions>, tools: readonly ToolDefinition[] = [tool('f')]): Promise<GeminiBody> => {
      const body = await bodyFor([userMessage('x')], { tools }, { serverTools, ...options });
      expect(checkGenerateContentRequest(body)).toStrictEqual([]);
      return body;
    };
    const both = await toolsFor({ model: 'gemini-3-flash-preview' });

    expect(both.tools).toMatchObject([{ functionDeclarations: [{ name: 'f' }] }, ...serverTools]);
    expect(both.toolConfig).toStrictEqual({ includeServerSideToolInvocations: true });
    expect((await toolsFor({}, [])).tools).toStrictEqual(serverTools);
    for (const options of [{}, { model: 'gemini-3-flash-preview', baseUrl: 'https://us-aiplatform.googleapis.com/v1/projects/p/locations/us' }]) {
      expect(await toolsFor(options)).not.toHaveProperty('toolConfig');
    }
  });
});

describe('thinking and signatures', () => {
  const own = (parts: readonly AssistantPart[], modelId = 'gemini-2.5-flash', provider = 'google'): Message[] => [
    userMessage('x'),
    assistantMessage(parts, { source: { provider, modelId } }),
    ...parts.flatMap((part) => (part.type === 'tool_call' ? [result(part.id)] : [])),
  ];
  const SIGNED: readonly AssistantPart[] = [
    { type: 'thinking', text: 'hm', providerData: { model: 'gemini-2.5-flash' } },
    { type: 'thinking', text: 'so', signature: 'U0lHMA==', providerData: { model: 'gemini-2.5-flash', thoughtSignature: 'U0lHMA==' } },
    { type: 'text', text: 'I look.', providerData: { model: 'gemini-2.5-flash', thoughtSignature: 'U0lHMQ==' } },
    call('c1', { providerData: { model: 'gemini-2.5-flash', thoughtSignature: 'U0lHMg==' } }),
    call('c2'),
    { type: 'text', text: '', providerData: { model: 'gemini-2.5-flash', thoughtSignature: 'U0lHMw==' } },
  ];
  const CALL = { functionCall: { name: 'f', args: {} } };

  it('GG4, BR-037: go back to the same model in their places, also on an empty text', async () => {
    expect((await contentsOf(own(SIGNED)))[1]).toStrictEqual([
      'model',
      [
        { text: 'hm', thought: true },
        { text: 'so', thought: true, thoughtSignature: 'U0lHMA==' },
        { text: 'I look.', thoughtSignature: 'U0lHMQ==' },
        { ...CALL, thoughtSignature: 'U0lHMg==' },
        CALL,
        { text: '', thoughtSignature: 'U0lHMw==' },
      ],
    ]);
  });

  it('go back to a model that answers under a longer name than it was asked by', async () => {
    expect((await contentsOf(own(SIGNED, 'gemini-2.5-flash-001')))[1]![1]).toHaveLength(6);
  });

  it('XC2, BR-037: go to no other model and to no other provider', async () => {
    for (const messages of [own(SIGNED, 'gemini-2.5-flash', 'openai'), own(SIGNED)]) {
      const model = messages[1]?.role === 'assistant' && messages[1].source?.provider === 'openai' ? 'gemini-2.5-flash' : 'gemini-2.5-pro';
      expect((await contentsOf(messages, { model }))[1]).toStrictEqual(['model', [{ text: 'I look.' }, CALL, CALL]]);
    }
  });

  it('GG4: Gemini 3 gets a word for the signature that a foreign call does not have, on the first of each reply', async () => {
    const foreign = own(SIGNED, 'claude', 'anthropic');
    const contents = await contentsOf([...foreign, assistantMessage([call('c3')]), result('c3')], { model: 'gemini-3-pro-preview' });
    const skipped = { ...CALL, thoughtSignature: 'skip_thought_signature_validator' };

    expect(contents[1]![1]).toStrictEqual([{ text: 'I look.' }, skipped, CALL]);
    expect(contents[3]![1]).toStrictEqual([skipped]);
    expect((await contentsOf(own([call('c1', { providerData: { model: 'gemini-3-pro', thoughtSignature: 'U0lH' } })], 'gemini-3-pro'), { model: 'gemini-3-pro' }))[1]![1]).toStrictEqual([
      { ...CALL, thoughtSignature: 'U0lH' },
    ]);
    expect((await contentsOf(foreign, { model: 'gemini-flash-latest' }))[1]![1][1]).toStrictEqual(skipped);
  });

  it('goes nowhere when told so, but for the signatures of calls', async () => {
    expect((await contentsOf(own(SIGNED), { thinkingHistory: 'drop' }))[1]![1]).toStrictEqual([{ text: 'I look.' }, { ...CALL, thoughtSignature: 'U0lHMg==' }, CALL]);
  });

  it('BR-088: stay in a running tool loop and in later turns, byte for byte', async () => {
    const step = (signature: string, id: string): Message[] => [
      assistantMessage([{ type: 'thinking', text: id, providerData: { model: 'gemini-2.5-flash' } }, call(id, { providerData: { model: 'gemini-2.5-flash', thoughtSignature: signature } })], { source: SOURCE }),
      result(id),
    ];
    const loop = [userMessage('go'), ...step('QQ==', 'c1'), ...step('Qg==', 'c2')];
    const fake = fakeServer(OK);
    const llm = geminiOn(fake);
    await llm.chat(request(loop));
    await llm.chat(request([...loop, assistantMessage('done'), userMessage('next')]));

    expect(fake.sent[0]!.text).toMatch(/"QQ==".*"Qg=="/);
    expect(fake.sent[1]!.text.startsWith(fake.sent[0]!.text.slice(0, -2))).toBe(true);
  });

  it('B15: parts of the server go back as they came and where they came, not from a reply that was cut off', async () => {
    const code = { executableCode: { language: 'PYTHON', code: 'print(1)' }, thoughtSignature: 'Qw==' };
    const done = { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } };
    const search = { toolCall: { id: 't1', toolType: 'GOOGLE_SEARCH_WEB', args: {} } };
    const blocks = [code, done, search, { groundingMetadata: { webSearchQueries: ['q'] } }];
    const parts: AssistantPart[] = [...blocks.map((data): AssistantPart => ({ type: 'provider', provider: 'google', data })), { type: 'text', text: 'It is 1.' }];

    expect((await contentsOf(own(parts)))[1]![1]).toStrictEqual([code, done, search, { text: 'It is 1.' }]);
    expect((await contentsOf(own([...parts, { type: 'provider', provider: 'openai', data: { executableCode: {} } }], 'x', 'openai'), { provider: 'mine' }))[1]![1]).toStrictEqual([{ text: 'It is 1.' }]);
    const cut = [userMessage('x'), assistantMessage(parts, { source: SOURCE, status: 'interrupted' })];
    expect((await contentsOf(cut))[1]![1]).toStrictEqual([{ text: 'It is 1.' }]);
  });
});
