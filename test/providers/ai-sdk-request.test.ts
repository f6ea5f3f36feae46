/** AI SDK requests: which models and options are taken, and what a model is asked. Black-box. */
import { describe, expect, it } from 'vitest';
import { type AssistantPart, assistantMessage, type LLMRequest, type MediaPart, type Message, toolMessage, userMessage } from 'turnloop';
import { aiSdk, type AiSdkModel, type AiSdkOptions } from 'turnloop/providers/ai-sdk';
import { callFor, fakeModel, finish, OK, okModel, type SentCall, text, type Version } from './ai-sdk-models.ts';
import { errorOf, request } from './fake-server.ts';

const SOURCE = { provider: 'fake.chat', modelId: 'fake-model' };
const CALL: AssistantPart = { type: 'tool_call', id: 'call_own1', name: 'read', inputText: '{"path":"a"}', providerId: 'call_1' };
const PNG: MediaPart = { type: 'media', mediaType: 'Image/PNG', data: 'AAAA' };
const PAGE: MediaPart = { type: 'media', mediaType: 'application/pdf', url: 'https://h.example/d.pdf' };
const RESULT = toolMessage('done', { toolCallId: 'call_own1', name: 'read' });

async function promptOf(messages: readonly Message[], options: Parameters<typeof callFor>[1] = {}): Promise<SentCall['prompt']> {
  return (await callFor({ messages }, options)).prompt;
}

/** The content of the assistant message in a history around it. */
async function sentBack(content: readonly AssistantPart[], options: Parameters<typeof callFor>[1] & { readonly source?: object; readonly status?: 'interrupted' } = {}): Promise<unknown> {
  const { source = SOURCE, status } = options;
  const message = assistantMessage(content, { source: source as typeof SOURCE, status });
  const results = content.flatMap((part) => (part.type === 'tool_call' ? [toolMessage('done', { toolCallId: part.id, name: part.name })] : []));
  const prompt = await promptOf([userMessage('go'), message, ...results], options);
  return prompt.find(({ role }) => role === 'assistant')?.content;
}

describe('the model', () => {
  it.each<Version>(['v2', 'v3', 'v4'])('is taken of specification %s', async (version) => {
    const { llm, model } = okModel({ version }, { systemPrompt: 'Be brief.' });

    expect(llm).toMatchObject({ provider: 'fake.chat', modelId: 'fake-model', systemPrompt: 'Be brief.' });
    expect(await llm.chat(request())).toMatchObject({ content: [{ text: 'ok' }] });
    expect(model.calls).toHaveLength(1);
  });

  it.each([
    ['an id', 'openai/gpt-5', /aiSdk takes a model object, not the id "openai\/gpt-5": aiSdk\(openai\('gpt-5'\)\)/],
    ['nothing', undefined, /takes a language model object/],
    ['a provider', () => fakeModel(), /takes a language model object/],
    ['a model without a stream', { ...fakeModel(), doStream: undefined }, /takes a language model object/],
    ['an older specification', { ...fakeModel(), specificationVersion: 'v1' }, /specifications v2, v3 and v4 .* the model's is "v1"/],
    ['no specification', { ...fakeModel(), specificationVersion: undefined }, /the model's is none/],
    ['a name of Object.prototype', { ...fakeModel(), specificationVersion: 'toString' }, /the model's is "toString"/],
    ['no name', { ...fakeModel(), modelId: undefined }, /names no `provider` or no `modelId`/],
  ])('is refused if it is %s', (_name, model, message) => {
    expect(() => aiSdk(model as AiSdkModel)).toThrow(TypeError);
    expect(() => aiSdk(model as AiSdkModel)).toThrow(message);
  });
});

describe('options', () => {
  it.each<[string, unknown, RegExp]>([
    ['null', null, /the options must be an object/],
    ['an unknown one', { systemprompt: 'x' }, /has no option `systemprompt`. Did you mean `systemPrompt`\?/],
    ['an unknown setting', { settings: { top_p: 1 } }, /has no option `settings.top_p`. It takes settings.topP/],
    ['an unknown time limit', { timeouts: { connectms: 1 } }, /`timeouts.connectms`. Did you mean `timeouts.connectMs`/],
    ['a prompt that is no text', { systemPrompt: 7 }, /`systemPrompt` must be a text/],
    ['headers that are a list', { headers: [['a', 'SECRET']] }, /`headers` must be a plain object/],
    ['headers that are an object of the web', { headers: new Headers({ a: 'SECRET' }) }, /`headers` must be a plain object/],
    ['a header that is no text', { headers: { authorization: ['SECRET'] } }, /header `authorization` must be a text/],
    ['a tool of ones own as one of the provider', { providerTools: { mine: { execute() {} } } }, /`providerTools.mine` is no tool that a provider runs/],
    ['an effort where no model takes it', { thinkingEffort: 'low' }, /`thinkingEffort` is for models of specification v4; one of v3 takes it .* providerOptions/],
  ])('are refused if they are %s, without a secret', (_name, options, message) => {
    const make = (): unknown => aiSdk(fakeModel(), options as AiSdkOptions);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).not.toThrow(/SECRET/);
  });

  it('name the model otherwise', () => {
    expect(aiSdk(fakeModel(), { provider: 'openai', modelId: 'gpt', capabilities: { contextWindow: 9 } })).toMatchObject({
      provider: 'openai',
      modelId: 'gpt',
      capabilities: { contextWindow: 9 },
    });
  });

  it('B11: reach the model, and nothing that is not set does', async () => {
    const plain = await callFor({});
    const full = await callFor(
      {},
      {
        version: 'v4',
        llm: {
          temperature: 0.5,
          maxOutputTokens: 100,
          thinkingEffort: 'low',
          headers: { 'x-title': 'a' },
          providerOptions: { openai: { store: false } },
          settings: { topP: 0.9, stopSequences: ['END'], seed: undefined },
        },
      },
    );

    expect(Object.keys(plain).sort()).toStrictEqual(['abortSignal', 'prompt']);
    expect(full).toMatchObject({
      temperature: 0.5,
      maxOutputTokens: 100,
      reasoning: 'low',
      headers: { 'x-title': 'a' },
      providerOptions: { openai: { store: false } },
      topP: 0.9,
      stopSequences: ['END'],
    });
    expect(full).not.toHaveProperty('seed');
  });
});

describe('a request', () => {
  const tools = [
    { name: 'read', description: 'Reads a file.\u0000', inputSchema: { type: 'object', properties: { path: { type: 'string' } } } },
    { name: 'a.b', description: 'd', inputSchema: { anyOf: [{ properties: { x: {} } }] } },
  ];

  it('B10: offers tools under legal names, with plain schemas that are nobody else’s', async () => {
    const before = JSON.stringify(tools);
    const { model, llm } = okModel();
    await llm.chat(request(undefined, { tools }));
    const sent = [...(model.calls[0]?.['tools'] as { name: string; inputSchema: { properties: object } }[])];
    Object.assign(sent[0]!.inputSchema.properties, { extra: {} });
    (model.calls[0]?.['tools'] as unknown[]).length = 0;
    await llm.chat(request(undefined, { tools }));

    expect(sent).toMatchObject([
      { type: 'function', name: 'read', description: 'Reads a file.', inputSchema: { type: 'object', properties: { path: { type: 'string' } } } },
      { type: 'function', name: expect.stringMatching(/^a_b_/), inputSchema: { type: 'object', properties: { x: {} } } },
    ]);
    expect(model.calls[1]?.['tools']).toHaveLength(2);
    expect(JSON.stringify(tools)).toBe(before);
  });

  it.each<[LLMRequest['toolChoice'], unknown]>([
    [undefined, undefined],
    ['auto', undefined],
    ['none', { type: 'none' }],
    ['required', { type: 'required' }],
    [{ name: 'read' }, { type: 'tool', toolName: 'read' }],
  ])('B11: asks with the tool choice %o', async (toolChoice, expected) => {
    const sent = await callFor({ tools, toolChoice });

    expect(sent['toolChoice']).toStrictEqual(expected);
    expect(sent['tools']).toHaveLength(2);
    expect(await callFor({ toolChoice })).not.toHaveProperty('toolChoice');
  });

  it.each<[Version, string]>([
    ['v2', 'provider-defined'],
    ['v3', 'provider'],
  ])('B15: offers tools that the provider runs, to a model of %s', async (version, type) => {
    const providerTools = { web_search: { type: 'provider', id: 'anthropic.web_search_1', args: { maxUses: 3 }, inputSchema: {} } };

    expect((await callFor({ tools: [] }, { version, llm: { providerTools } }))['tools']).toStrictEqual([
      { type, id: 'anthropic.web_search_1', name: 'web_search', args: { maxUses: 3 } },
    ]);
  });

  it('B11: asks for JSON of a schema', async () => {
    const responseSchema = { type: 'object', properties: {} };

    expect((await callFor({ responseSchema }))['responseFormat']).toStrictEqual({ type: 'json', name: 'answer', schema: responseSchema });
  });

  it.each([
    [undefined, {}, undefined],
    [50, {}, 50],
    [50, { maxOutputTokens: 100 }, 50],
    [0, {}, 1],
    [1e9, {}, 128_000],
    [1e9, { capabilities: { maxOutputTokens: 200_000 } }, 200_000],
  ])('AN8: limits the reply to %o tokens', async (maxOutputTokens, llm, expected) => {
    expect((await callFor({ maxOutputTokens }, { llm }))['maxOutputTokens']).toBe(expected);
  });

  it('starts with the system prompt of the request, if it says something', async () => {
    expect((await callFor({ systemPrompt: 'Be \ud83dbrief.' })).prompt[0]).toStrictEqual({ role: 'system', content: 'Be \ufffdbrief.' });
    expect((await callFor({ systemPrompt: ' \n' })).prompt).toMatchObject([{ role: 'user' }]);
  });
});

describe('messages', () => {
  it('are written as the SDK has them', async () => {
    const messages = [
      userMessage([{ type: 'text', text: 'Look' }, PNG]),
      assistantMessage([{ type: 'text', text: 'So' }, CALL], { source: SOURCE }),
      RESULT,
      userMessage('and?'),
    ];

    expect(await promptOf(messages)).toStrictEqual([
      { role: 'user', content: [{ type: 'text', text: 'Look' }, { type: 'file', mediaType: 'image/png', data: 'AAAA' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'So' },
          { type: 'tool-call', toolCallId: 'call_1', toolName: 'read', input: { path: 'a' } },
        ],
      },
      { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'call_1', toolName: 'read', output: { type: 'text', value: 'done' } }] },
      { role: 'user', content: [{ type: 'text', text: 'and?' }] },
    ]);
  });

  it('AN1, BR-076: hold parallel results in one message, and a text behind them in another', async () => {
    const calls = ['a', 'b'].map((id): AssistantPart => ({ type: 'tool_call', id, name: 'f', inputText: '{}' }));
    const results = ['a', 'b'].map((id) => toolMessage(id, { toolCallId: id, name: 'f', isError: id === 'b' }));
    const prompt = await promptOf([userMessage('go'), assistantMessage(calls), ...results, userMessage('also')]);

    expect(prompt.slice(2)).toMatchObject([
      { role: 'tool', content: [{ toolCallId: 'a', output: { type: 'text', value: 'a' } }, { toolCallId: 'b', output: { type: 'error-text', value: 'b' } }] },
      { role: 'user', content: [{ text: 'also' }] },
    ]);
  });

  it('BR-053: leave out blank texts and what is empty then', async () => {
    const prompt = await promptOf([userMessage('a'), assistantMessage(''), userMessage(' \n'), assistantMessage([{ type: 'text', text: '' }, CALL]), RESULT]);

    expect(prompt).toMatchObject([{ role: 'user' }, { role: 'assistant', content: [{ type: 'tool-call' }] }, { role: 'tool' }]);
    expect(await promptOf([userMessage('a'), assistantMessage([CALL]), toolMessage(' ', { toolCallId: 'call_own1', name: 'read' })])).toMatchObject([
      {},
      {},
      { content: [{ output: { type: 'text', value: '(no output)' } }] },
    ]);
  });

  it('B13, BR-089: hold no lone surrogates and no control characters, in escapes neither', async () => {
    const bad = 'a\ud83d\u0000b';
    const prompt = await promptOf([
      userMessage(bad),
      assistantMessage([{ type: 'text', text: bad }, { ...CALL, inputText: '{"x":"a\\ud83d\\u0000b","\\ud83d":1}' }]),
      toolMessage(bad, { toolCallId: 'call_own1', name: 'read' }),
    ]);

    expect(JSON.stringify(prompt)).not.toMatch(/\\u0000|\\ud83d/);
    expect(prompt[1]?.content).toMatchObject([{ text: 'a\ufffdb' }, { input: { x: 'a\ufffdb', '\ufffd': 1 } }]);
  });

  it.each([
    ['{"a":1}', { a: 1 }],
    ['', {}],
    ['{"a":', {}],
    ['[1]', {}],
    ['null', {}],
    ['"text"', {}],
  ])('BR-092: send the arguments %s as %o', async (inputText, input) => {
    expect(await sentBack([{ ...CALL, inputText }])).toMatchObject([{ input }]);
  });

  it('BR-046: have legal ids that differ, the same for call and result', async () => {
    const calls = ['functions.todo:0', `call_A|fc_${'f'.repeat(400)}`, 'a/b', 'same', 'same'].map(
      (providerId, at): AssistantPart => ({ type: 'tool_call', id: `call_own${at}`, name: 'f', inputText: '{}', providerId }),
    );
    const prompt = await promptOf([userMessage('go'), assistantMessage(calls), ...calls.map((_, at) => toolMessage('r', { toolCallId: `call_own${at}`, name: 'f' }))]);
    const ids = (message: number): string[] => (prompt[message]?.content as { toolCallId: string }[]).map(({ toolCallId }) => toolCallId);

    expect(new Set(ids(1)).size).toBe(5);
    for (const id of ids(1)) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,40}$/);
    expect(ids(2)).toStrictEqual(ids(1));
  });

  it.each([
    ['mistral.chat', {}, true],
    ['gateway', { modelId: 'mistral/large' }, true],
    ['openai.chat', {}, false],
    ['openai.chat', { llm: { idFormat: 'nine-characters' as const } }, true],
  ])('BR-103: have ids of nine characters for Mistral (%s)', async (provider, options, isNine) => {
    const [sent] = (await sentBack([CALL], { provider, ...options })) as [{ toolCallId: string }];

    expect(/^[a-zA-Z0-9]{9}$/.test(sent.toolCallId)).toBe(isNine);
  });
});

describe('a history', () => {
  it.each<[string, readonly Message[]]>([
    ['is empty', []],
    ['says nothing', [userMessage(' \n'), assistantMessage([])]],
    ['has only thinking of somebody else', [assistantMessage([{ type: 'thinking', text: 'hm' }], { source: { provider: 'other', modelId: 'm' } })]],
  ])('that %s is refused before anything is asked', async (_what, messages) => {
    const { model, llm } = okModel();

    expect(await errorOf(llm.chat(request(messages, { systemPrompt: 'Be brief.' })))).toMatchObject({ kind: 'invalid_request', code: 'empty_history' });
    expect(model.calls).toHaveLength(0);
  });
});

describe('media', () => {
  const urls = { supportedUrls: { 'image/*': [/^https:\/\/ok\.example\//g], 'application/pdf': [/^https:/] } };
  const at = (url: string, mediaType = 'image/png'): MediaPart => ({ type: 'media', mediaType, url });

  it.each<[Version, unknown, unknown]>([
    ['v2', 'AAAA', new URL('https://ok.example/i.png')],
    ['v3', 'AAAA', new URL('https://ok.example/i.png')],
    ['v4', { type: 'data', data: 'AAAA' }, { type: 'url', url: new URL('https://ok.example/i.png') }],
  ])('B9: are files of a user message, as %s has them', async (version, inline, linked) => {
    const [sent] = await promptOf([userMessage([PNG, at('https://ok.example/i.png')])], { version, ...urls });

    expect(sent?.content).toStrictEqual([
      { type: 'file', mediaType: 'image/png', data: inline },
      { type: 'file', mediaType: 'image/png', data: linked },
    ]);
  });

  it('B9: at addresses that the model’s server does not fetch, or that it does not take, are replaced by a note', async () => {
    const parts = [at('https://ok.example/i'), at('https://ok.example/i'), at('https://other.example/i'), at('https://ok.example/v', 'video/mp4'), at('no address'), at('data:image/gif;base64,BBBB')];
    const [sent] = await promptOf([userMessage(parts)], urls);
    const content = sent?.content as { type: string }[];

    expect(content.map(({ type }) => type)).toStrictEqual(['file', 'file', 'text', 'text', 'text', 'file']);
    expect(content[2]).toStrictEqual({ type: 'text', text: '[image/png left out: this model cannot be sent it]' });
    expect(await promptOf([userMessage([PNG])], { llm: { capabilities: { mediaTypes: ['audio/'] } } })).toMatchObject([{ content: [{ type: 'text' }] }]);
  });

  it.each<[string, Partial<MediaPart>, object]>([
    ['of a type by another name', { mediaType: 'image/JPG', data: 'AAAA' }, { mediaType: 'image/jpeg', data: 'AAAA' }],
    ['of a type with parameters', { mediaType: 'text/plain; charset=utf-8', data: 'AAAA' }, { mediaType: 'text/plain', data: 'AAAA' }],
    ['in an address with parameters, of the type that it says', { url: 'data:image/webp;name=a.png;base64,AAAA' }, { mediaType: 'image/webp', data: 'AAAA' }],
    ['as text in an address', { url: 'data:text/plain;charset=utf-8,a%2C%20%C3%A9,b' }, { mediaType: 'text/plain', data: 'YSwgw6ksYg==' }],
  ])('AD3: %s are sent as they are', async (_what, media, file) => {
    const [sent] = await promptOf([userMessage([{ type: 'media', mediaType: 'image/png', ...media }])]);

    expect(sent?.content).toStrictEqual([{ type: 'file', ...file }]);
  });

  it.each<[string, Partial<MediaPart>]>([
    ['no data', { data: '' }],
    ['an address without data', { url: 'data:image/png;base64,' }],
    ['a broken address of data', { url: 'data:image/png,%zz' }],
    ['a file of the host', { url: 'file:///etc/x.png' }],
  ])('AD3: of which there is but %s are replaced by a note, in messages and results', async (_what, media) => {
    const part = { type: 'media', mediaType: 'image/png', ...media } as MediaPart;
    const prompt = await promptOf([userMessage([part]), assistantMessage([CALL]), toolMessage([part], { toolCallId: 'call_own1', name: 'read' })], { ...urls, provider: 'anthropic.messages' });
    const note = '[image/png left out: this model cannot be sent it]';

    expect(prompt[0]?.content).toStrictEqual([{ type: 'text', text: note }]);
    expect(prompt[2]?.content).toMatchObject([{ output: { type: 'text', value: note } }]);
  });

  it('B9: may stand at any address where the model says so later', async () => {
    const prompt = await promptOf([userMessage([PAGE])], { supportedUrls: Promise.resolve({ '*/*': [/.*/] }) });

    expect(prompt).toMatchObject([{ content: [{ type: 'file', data: new URL('https://h.example/d.pdf') }] }]);
    expect(await promptOf([userMessage([at('no address')])], { supportedUrls: { '*': [/./] } })).toMatchObject([{ content: [{ type: 'text' }] }]);
  });

  const history = (parts: readonly MediaPart[], isError = false): readonly Message[] => [
    userMessage('go'),
    assistantMessage([CALL]),
    toolMessage([{ type: 'text', text: 'seen' }, ...parts], { toolCallId: 'call_own1', name: 'read', isError }),
    userMessage('next'),
  ];
  const outputOf = (prompt: SentCall['prompt']): unknown => (prompt[2]?.content as [{ output: unknown }])[0].output;

  it.each<[Version, readonly unknown[]]>([
    ['v2', [{ type: 'media', mediaType: 'image/png', data: 'AAAA' }, { type: 'text', text: '[application/pdf left out: this model cannot be sent it]' }]],
    ['v3', [{ type: 'image-data', mediaType: 'image/png', data: 'AAAA' }, { type: 'file-url', mediaType: 'application/pdf', url: 'https://h.example/d.pdf' }]],
    ['v4', [{ type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } }, { type: 'file', mediaType: 'application/pdf', data: { type: 'url', url: new URL('https://h.example/d.pdf') } }]],
  ])('BR-058: of a tool stand in its result where %s takes them', async (version, files) => {
    const prompt = await promptOf(history([PNG, PAGE]), { version, provider: 'anthropic.messages', ...urls });

    expect(outputOf(prompt)).toStrictEqual({ type: 'content', value: [{ type: 'text', text: 'seen' }, ...files] });
    expect(prompt).toHaveLength(4);
  });

  it('BR-058: of a tool stand in a result of v3 in all their forms', async () => {
    const parts = [{ ...PAGE, url: undefined, data: 'BBBB' } as MediaPart, at('https://ok.example/i.png')];

    expect(outputOf(await promptOf(history(parts), { provider: 'google.generative-ai', ...urls }))).toMatchObject({
      value: [{}, { type: 'file-data', mediaType: 'application/pdf', data: 'BBBB' }, { type: 'image-url', url: 'https://ok.example/i.png' }],
    });
  });

  it('BR-058, BR-110: of a tool come from a user after all results where a result cannot hold them', async () => {
    const second: AssistantPart = { ...CALL, id: 'call_own2', providerId: 'call_2' };
    const messages = [userMessage('go'), assistantMessage([CALL, second]), toolMessage([PNG], { toolCallId: 'call_own1', name: 'read' }), toolMessage('b', { toolCallId: 'call_own2', name: 'read' }), userMessage('also')];

    expect((await promptOf(messages)).slice(2)).toStrictEqual([
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'call_1', toolName: 'read', output: { type: 'text', value: '(the output follows below, after the tool results)' } },
          { type: 'tool-result', toolCallId: 'call_2', toolName: 'read', output: { type: 'text', value: 'b' } },
        ],
      },
      { role: 'user', content: [{ type: 'text', text: 'Output of the tool read:' }, { type: 'file', mediaType: 'image/png', data: 'AAAA' }] },
      { role: 'user', content: [{ type: 'text', text: 'also' }] },
    ]);
  });

  it('BR-058: of a failed tool come from a user too: a result that holds them cannot say that it failed', async () => {
    const prompt = await promptOf(history([PNG], true), { provider: 'anthropic.messages' });

    expect(outputOf(prompt)).toStrictEqual({ type: 'error-text', value: 'seen' });
    expect(prompt[3]).toMatchObject({ role: 'user', content: [{ text: 'Output of the tool read:' }, { type: 'file' }] });
  });

  it.each([
    ['openai.responses', {}, true],
    ['openai.chat', {}, false],
    ['amazon-bedrock', {}, true],
    ['vertex.anthropic.messages', {}, true],
    ['groq.chat', {}, false],
    ['gateway', { modelId: 'anthropic/claude' }, true],
    ['gateway', { modelId: 'mistral/large' }, false],
    ['groq.chat', { llm: { toolResultMedia: 'result' as const } }, true],
    ['openai.responses', { llm: { toolResultMedia: 'user' as const } }, false],
  ])('BR-058: go where the packages for %s (%o) show them to the model', async (provider, options, isInResult) => {
    expect(outputOf(await promptOf(history([PNG]), { provider, ...options }))).toMatchObject({ type: isInResult ? 'content' : 'text' });
  });
});

describe('what a provider attached', () => {
  const anthropic = { signature: 'S' };
  const data = (metadata: object, model = 'fake-model'): { providerData: never } => ({ providerData: { model, metadata } as never });
  const own: readonly AssistantPart[] = [
    { type: 'thinking', text: 'hm', ...data({ anthropic }) },
    { type: 'text', text: 'So', ...data({ openai: { itemId: 'msg_1' } }) },
    { ...CALL, ...data({ google: { thoughtSignature: 'T' } }) },
  ];

  it('B4, BR-028, BR-037: goes back to the same provider and model as it came', async () => {
    expect(await sentBack(own)).toStrictEqual([
      { type: 'reasoning', text: 'hm', providerOptions: { anthropic } },
      { type: 'text', text: 'So', providerOptions: { openai: { itemId: 'msg_1' } } },
      { type: 'tool-call', toolCallId: 'call_1', toolName: 'read', input: { path: 'a' }, providerOptions: { google: { thoughtSignature: 'T' } } },
    ]);
  });

  it('goes back though the server answered under a longer name', async () => {
    expect(await sentBack(own, { source: { ...SOURCE, modelId: 'fake-model-2026' } })).toMatchObject([{ type: 'reasoning' }, { providerOptions: {} }, { providerOptions: {} }]);
  });

  it.each([
    ['another provider', { provider: 'openai.chat', modelId: 'fake-model' }, own],
    ['nobody known', undefined, own],
    ['another model', { ...SOURCE, modelId: 'older' }, own.map((part) => ({ ...part, providerData: { ...((part as { providerData?: object }).providerData ?? {}), model: 'older' } }) as AssistantPart)],
  ])('XC2, B4: is left out if it is of %s, and the thinking with it', async (_name, source, parts) => {
    expect(await sentBack(parts, { source: source ?? ({}) })).toStrictEqual([
      { type: 'text', text: 'So' },
      { type: 'tool-call', toolCallId: 'call_1', toolName: 'read', input: { path: 'a' } },
    ]);
  });

  it('is left out of a reply that was cut, of which the provider keeps no items', async () => {
    expect(await sentBack(own, { status: 'interrupted' })).toStrictEqual([
      { type: 'text', text: 'So' },
      { type: 'tool-call', toolCallId: 'call_1', toolName: 'read', input: { path: 'a' } },
    ]);
  });

  it('is left out if another adapter of the provider wrote it', async () => {
    const strange = [null, 'x', [1], { type: 'reasoning' }, { metadata: 7 }, { metadata: { openai: 'x' } }, { metadata: {} }];
    const parts = strange.map((each): AssistantPart => ({ type: 'text', text: 'a', providerData: each as never }));

    expect(await sentBack(parts)).toStrictEqual(parts.map(() => ({ type: 'text', text: 'a' })));
    expect(await sentBack([{ type: 'provider', provider: 'fake.chat', data: { type: 'web_search_call' } }, { type: 'provider', provider: 'fake.chat', data: 'x' }, { type: 'text', text: 'a' }])).toHaveLength(1);
    const block = { type: 'tool-call', toolCallId: 'c', toolName: 'f', input: '{}', providerExecuted: true };
    expect(await sentBack([{ type: 'provider', provider: 'other.chat', data: { model: 'fake-model', block } }, { type: 'text', text: 'a' }])).toHaveLength(1);
  });

  it('BR-119: leaves every block of its own in its place: signed or not, empty or not', async () => {
    const parts: readonly AssistantPart[] = [
      { type: 'thinking', text: '', ...data({ anthropic }) },
      { type: 'text', text: 'x' },
      { type: 'thinking', text: 'y', providerData: { model: 'fake-model' } },
      CALL,
    ];

    expect(await sentBack(parts)).toMatchObject([{ type: 'reasoning', text: '', providerOptions: { anthropic } }, { type: 'text' }, { type: 'reasoning', text: 'y' }, { type: 'tool-call' }]);
  });

  it('BR-014: leaves out thinking that nothing follows', async () => {
    const thought: AssistantPart = { type: 'thinking', text: 'hm', ...data({ openai: { itemId: 'rs_1' } }) };

    expect(await sentBack([{ type: 'text', text: 'a' }, thought, thought])).toStrictEqual([{ type: 'text', text: 'a' }]);
    expect(await sentBack([thought])).toBeUndefined();
  });

  it('goes back without thinking if the host wants none', async () => {
    expect(await sentBack(own, { llm: { thinkingHistory: 'drop' } })).toMatchObject([{ type: 'text' }, { type: 'tool-call' }]);
  });

  it('goes back with all that the SDK takes, whatever stands beside it', async () => {
    expect(await sentBack([{ type: 'text', text: 'a', ...data({ openai: { itemId: 'msg_1' }, note: 'x', list: [1], none: null }) }])).toStrictEqual([
      { type: 'text', text: 'a', providerOptions: { openai: { itemId: 'msg_1' } } },
    ]);
    expect(await sentBack([{ type: 'text', text: 'a', ...data({ note: 'x' }) }])).toStrictEqual([{ type: 'text', text: 'a' }]);
  });

  it('keeps a blank text that is an item of its protocol', async () => {
    expect(await sentBack([{ type: 'text', text: '', ...data({ openai: { itemId: 'msg_1' } }) }])).toStrictEqual([{ type: 'text', text: '', providerOptions: { openai: { itemId: 'msg_1' } } }]);
  });
});

describe('what came back from a model', () => {
  /** Lets a model answer with these parts and asks it again, with its answer. */
  async function roundTrip(parts: readonly unknown[], version: Version, modelId = 'fake-model'): Promise<unknown> {
    const { content, modelId: answered = 'fake-model' } = await aiSdk(fakeModel([...parts, finish()], { version })).chat(request());
    const stored = JSON.parse(JSON.stringify(content)) as readonly AssistantPart[];
    return sentBack(stored, { version, modelId, source: { provider: 'fake.chat', modelId: answered } });
  }

  const search = [
    { type: 'tool-call', toolCallId: 'srv_1', toolName: 'web_search', input: '{"query":"q"}', providerExecuted: true, dynamic: true, providerMetadata: { anthropic: { type: 'mcp' } } },
    { type: 'tool-result', toolCallId: 'srv_1', toolName: 'web_search', result: { hits: [1] }, dynamic: true },
    { type: 'tool-result', toolCallId: 'srv_1', toolName: 'web_search', result: 'text' },
    { type: 'tool-result', toolCallId: 'srv_1', toolName: 'web_search', result: { errorCode: 'x' }, isError: true },
    { type: 'source', sourceType: 'url', id: 's', url: 'https://h' },
    ...text('found'),
  ];

  it.each<Version>(['v2', 'v3', 'v4'])('B15: goes back as the SDK wants it: what the provider ran, to a model of %s', async (version) => {
    expect(await roundTrip(search, version)).toStrictEqual([
      { type: 'tool-call', toolCallId: 'srv_1', toolName: 'web_search', input: { query: 'q' }, providerExecuted: true, providerOptions: { anthropic: { type: 'mcp' } } },
      { type: 'tool-result', toolCallId: 'srv_1', toolName: 'web_search', output: { type: 'json', value: { hits: [1] } } },
      { type: 'tool-result', toolCallId: 'srv_1', toolName: 'web_search', output: { type: 'text', value: 'text' } },
      { type: 'tool-result', toolCallId: 'srv_1', toolName: 'web_search', output: { type: 'error-json', value: { errorCode: 'x' } } },
      { type: 'text', text: 'found' },
    ]);
  });

  it('B15, XC2: is left out for another model', async () => {
    expect(await roundTrip(search, 'v3', 'other-model')).toStrictEqual([{ type: 'text', text: 'found' }]);
  });

  it('goes back with its signature if it is a file, also when the server answered under a longer name', async () => {
    const file = { type: 'file', mediaType: 'image/png', data: 'AAAA', providerMetadata: { google: { thoughtSignature: 'T' } } };
    const plain = { type: 'file', mediaType: 'image/png', data: new Uint8Array([0]) };

    expect(await roundTrip([{ type: 'response-metadata', modelId: 'fake-model-2026' }, file, plain], 'v3')).toStrictEqual([
      { type: 'file', mediaType: 'image/png', data: 'AAAA', providerOptions: { google: { thoughtSignature: 'T' } } },
      { type: 'file', mediaType: 'image/png', data: 'AA==' },
    ]);
    expect(await roundTrip([plain], 'v4')).toStrictEqual([{ type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AA==' } }]);
  });

  it('goes back under the names that the host gave provider and model', async () => {
    const llm = { provider: 'house', modelId: 'best' };
    const parts = [{ type: 'file', mediaType: 'image/png', data: 'AAAA' }, ...search];
    const { content } = await aiSdk(fakeModel([...parts, finish()]), llm).chat(request());

    expect(content.filter((part) => part.type === 'provider').every(({ provider }) => provider === 'house')).toBe(true);
    expect(await sentBack(content as readonly AssistantPart[], { llm, source: llm })).toMatchObject([{ type: 'file' }, { type: 'tool-call' }, { type: 'tool-result' }, {}, {}, { type: 'text' }]);
  });

  it('is replaced by a note if it is another model’s file', async () => {
    expect(await roundTrip([{ type: 'file', mediaType: 'image/png', data: 'AAAA', providerMetadata: { google: { thoughtSignature: 'T' } } }], 'v3', 'other-model')).toStrictEqual([
      { type: 'text', text: '[image/png left out: this model cannot be sent it]' },
    ]);
  });

  it('goes back if only the newest specification has it', async () => {
    const parts = [
      { type: 'custom', kind: 'openai.compaction', providerMetadata: { openai: { itemId: 'cmp_1' } } },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([0]) }, providerMetadata: { google: { thoughtSignature: 'T' } } },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://h/i') } },
      ...text('a'),
    ];

    expect(await roundTrip(parts, 'v4')).toStrictEqual([
      { type: 'custom', kind: 'openai.compaction', providerOptions: { openai: { itemId: 'cmp_1' } } },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: 'AA==' }, providerOptions: { google: { thoughtSignature: 'T' } } },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://h/i') } },
      { type: 'text', text: 'a' },
    ]);
    expect(await roundTrip(parts, 'v3')).toStrictEqual([{ type: 'text', text: 'a' }]);
  });
});

it('XC1: a request changes nothing of what it was given, and hands out lists of the call’s own', async () => {
  const { model, llm } = okModel();
  const messages = [userMessage('a'), assistantMessage('b')];
  await llm.chat(request(messages));
  (model.calls[0]?.prompt as unknown[]).length = 0;
  await llm.chat(request(messages));

  expect(model.calls[1]?.prompt).toHaveLength(2);
  expect(OK).toHaveLength(4);
});
