/** AI SDK replies: what becomes of a stream's parts, and of a result that was not streamed. Black-box. */
import { describe, expect, it } from 'vitest';
import { systemRuntime } from 'turnloop';
import { aiSdk } from 'turnloop/providers/ai-sdk';
import { call, errorOfParts, fakeModel, finish, OK, read, text } from './ai-sdk-models.ts';
import { request } from './fake-server.ts';

describe('the end of a reply', () => {
  it.each([
    ['stop', 'end_turn', 'end_turn'],
    ['stop', 'stop_sequence', 'stop_sequence'],
    ['stop', 'pause_turn', 'paused'],
    ['other', 'compaction', 'paused'],
    ['length', 'max_tokens', 'max_tokens'],
    ['content-filter', 'refusal', 'filtered'],
    ['tool-calls', 'tool_calls', 'tool_use'],
    ['other', 'eos', 'end_turn'],
    ['other', 'brand_new_reason', 'unknown'],
    ['other', 'constructor', 'unknown'],
    ['__proto__', '__proto__', 'unknown'],
  ])('FR1, BR-035, BR-139: reads %s (%s) as %s', async (unified, raw, stopReason) => {
    const { response } = await read([...text('x'), finish(unified, raw)]);

    expect(response).toMatchObject({ stopReason, rawStopReason: raw });
  });

  it('FR1: takes the word of the SDK where the provider has none', async () => {
    const { response } = await read([...text('x'), { ...finish(), finishReason: { unified: 'stop', raw: undefined } }]);

    expect(response).toMatchObject({ stopReason: 'end_turn', rawStopReason: 'stop' });
  });

  it.each([
    ['stop', 'end_turn'],
    ['length', 'max_tokens'],
    ['content-filter', 'filtered'],
    ['other', 'unknown'],
  ])('FR1: reads the bare word %s of the oldest specification as %s', async (word, stopReason) => {
    const { response } = await read([...text('x'), { type: 'finish', finishReason: word, usage: {} }], { version: 'v2' });

    expect(response).toMatchObject({ stopReason, rawStopReason: word });
  });

  it('BR-035: a reply that stopped with calls is tool use', async () => {
    const { response } = await read([...call('f', ['{}']), finish('stop', 'stop')]);

    expect(response.stopReason).toBe('tool_use');
  });

  it.each([
    ['no finish part', []],
    ['a finish without any reason', [{ ...finish(), finishReason: { unified: 'other', raw: undefined } }]],
    ['an interrupted one', [finish('interrupted', 'x')]],
    ['the word that the oldest specification starts with', [{ ...finish(), finishReason: 'unknown' }]],
    ['that word in an object', [{ ...finish(), finishReason: { unified: 'unknown', raw: undefined } }]],
  ])('BR-065: reports a stream with %s as cut, with the text so far and without half a call', async (_name, end) => {
    const parts = [...text('The answer is 4'), { type: 'tool-input-start', id: 'c', toolName: 'f' }, { type: 'tool-input-delta', id: 'c', delta: '{"a":' }, ...end];

    const error = await errorOfParts(parts);

    expect(error).toMatchObject({ kind: 'network', code: 'stream_incomplete', retryable: true });
    expect(error.partial).toStrictEqual([{ type: 'text', text: 'The answer is 4' }]);
  });

  it.each([['unknown'], [{ unified: 'other', raw: undefined }], [undefined]])('B7: a result that was not streamed is whole, also with the reason %j', async (finishReason) => {
    const result = { content: [{ type: 'text', text: 'The answer is 42.' }], finishReason, usage: {} };
    const { response } = await read([result], { version: 'v2', llm: { stream: false } });

    expect(response).toMatchObject({ content: [{ text: 'The answer is 42.' }], stopReason: 'unknown' });
  });

  it('BR-065: keeps of a cut reply the thinking that was over, and nothing that names items of the provider', async () => {
    const openai = { itemId: 'msg_1' };
    const parts = [
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'hm' },
      { type: 'reasoning-end', id: 'r', providerMetadata: { anthropic: { signature: 'S' } } },
      { type: 'text-start', id: 't', providerMetadata: { openai } },
      { type: 'text-delta', id: 't', delta: 'so' },
      { type: 'reasoning-start', id: 'r2' },
      { type: 'reasoning-delta', id: 'r2', delta: 'and' },
    ];

    expect((await errorOfParts(parts)).partial).toMatchObject([{ type: 'thinking', text: 'hm', signature: 'S' }, { type: 'text', text: 'so' }]);
    expect((await errorOfParts(parts)).partial?.[1]).not.toHaveProperty('providerData');
  });

  it.each([
    ['error', 'server', 'error'],
    ['MALFORMED_FUNCTION_CALL', 'malformed_response', 'MALFORMED_FUNCTION_CALL'],
  ])('takes a finish of error (%s) as a failure, with what it cost', async (raw, kind, code) => {
    expect(await errorOfParts([...text('par'), finish('error', raw)])).toMatchObject({
      kind,
      code,
      retryable: true,
      partial: [{ text: 'par' }],
      usage: { outputTokens: 5 },
    });
  });

  it('does not wait for a stream that stays open after its finish, and cancels it', async () => {
    const model = fakeModel(OK, { open: true });

    expect(await aiSdk(model).chat(request())).toMatchObject({ content: [{ text: 'ok' }] });
    expect(model.cancelled()).toBe(1);
  });

  it.each([{ failure: new TypeError('terminated') }, { open: true }])('reports what is wrong with a reply, not how its stream ended: %o', async (end) => {
    expect(await errorOfParts([finish()], end)).toMatchObject({ kind: 'malformed_response', code: 'empty' });
  });

  it('takes a reply whose stream breaks after its finish as whole', async () => {
    const { response } = await read([...OK, ...text('late')], { failure: new TypeError('terminated') });

    expect(response.content).toStrictEqual([{ type: 'text', text: 'ok' }]);
  });
});

describe('an empty reply', () => {
  it.each([
    ['nothing', []],
    ['white space', text(' \n')],
    ['thinking alone', [{ type: 'reasoning-start', id: 'r' }, { type: 'reasoning-delta', id: 'r', delta: 'hm' }]],
    ['sources alone', [{ type: 'source', sourceType: 'url', id: 's', url: 'https://h' }]],
    ['the start of a message alone', [{ type: 'custom', kind: 'anthropic.message_start' }]],
  ])('GN8: of %s is malformed', async (_name, parts) => {
    expect(await errorOfParts([...parts, finish()])).toMatchObject({ kind: 'malformed_response', code: 'empty', retryable: true });
  });

  it.each(['length', 'content-filter'])('GN8, BR-121: that ended by %s is what it is', async (unified) => {
    expect((await read([finish(unified)])).response.content).toStrictEqual([]);
  });
});

describe('texts and thinking', () => {
  it('GN3, GN5: come live in order and become a part for each block, however many fragments', async () => {
    const fragments = Array.from({ length: 1000 }, (_, at) => ({ type: 'text-delta', id: 'a', delta: `${at} ` }));
    const { response, deltas } = await read([
      { type: 'stream-start', warnings: [] },
      { type: 'reasoning-start', id: 'a' },
      { type: 'reasoning-delta', id: 'a', delta: 'hm' },
      { type: 'reasoning-end', id: 'a' },
      { type: 'text-start', id: 'a' },
      ...fragments,
      { type: 'text-end', id: 'a' },
      ...text('again', 'a'),
      { type: 'ping' },
      finish(),
    ]);
    const long = fragments.map(({ delta }) => delta).join('');

    expect(response.content).toStrictEqual([
      { type: 'thinking', text: 'hm', providerData: { model: 'fake-model' } },
      { type: 'text', text: long },
      { type: 'text', text: 'again' },
    ]);
    expect(deltas.map((delta) => delta.type)).toStrictEqual(['thinking', ...fragments.map(() => 'text'), 'text']);
  });

  it('BR-154: keeps texts that arrive in turns, and neighbouring thinking, apart', async () => {
    const { response } = await read([
      { type: 'reasoning-start', id: '1' },
      { type: 'reasoning-start', id: '2' },
      { type: 'reasoning-delta', id: '2', delta: 'b' },
      { type: 'reasoning-delta', id: '1', delta: 'a' },
      { type: 'reasoning-delta', id: '1', delta: '', providerMetadata: { anthropic: { signature: 'S1' } } },
      { type: 'reasoning-end', id: '2', providerMetadata: { anthropic: { signature: 'S2' } } },
      ...text('x'),
      finish(),
    ]);

    expect(response.content).toMatchObject([{ text: 'a', signature: 'S1' }, { text: 'b', signature: 'S2' }, { text: 'x' }]);
  });

  it('GN2: leaves out what holds nothing, and keeps what only holds metadata', async () => {
    const { response, deltas } = await read([
      { type: 'reasoning-start', id: '1' },
      { type: 'reasoning-end', id: '1' },
      { type: 'reasoning-start', id: '2', providerMetadata: { anthropic: { redactedData: 'R' } } },
      { type: 'reasoning-end', id: '2' },
      { type: 'text-start', id: '3' },
      { type: 'text-delta', id: '3', delta: '' },
      { type: 'text-end', id: '3' },
      ...text('x'),
      finish(),
    ]);

    expect(response.content).toStrictEqual([
      { type: 'thinking', text: '', redactedData: 'R', providerData: { model: 'fake-model', metadata: { anthropic: { redactedData: 'R' } } } },
      { type: 'text', text: 'x' },
    ]);
    expect(deltas).toHaveLength(1);
  });

  it.each<[string, () => unknown, unknown]>([
    ['a number too large', () => 7n, {}],
    ['a loop', () => { const loop: Record<string, unknown> = { at: 1 }; loop['self'] = loop; return loop; }, { left: { at: 1 } }],
    ['a list with such', () => [1, 7n, { a: 7n, b: 2 }], { left: [1, null, { b: 2 }] }],
    ['what throws when it is written', () => ({ toJSON: () => { throw new Error('no'); }, b: 2 }), { left: { b: 2 } }],
    ['what throws when it is read', () => ({ get a(): never { throw new Error('no'); }, b: 2 }), { left: { b: 2 } }],
    ['nothing at all', () => undefined, {}],
  ])('GN2: keeps what stands beside %s in metadata', async (_what, make, left) => {
    const unclean = { left: make() };
    const metadata = { anthropic: { signature: 'S', ...unclean }, ...unclean };
    const { response } = await read([
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'hm' },
      { type: 'reasoning-end', id: 'r', providerMetadata: metadata },
      { type: 'tool-result', toolCallId: 's', toolName: 'w', result: { found: 1, ...unclean }, providerMetadata: metadata },
      { type: 'tool-call', toolCallId: 'a', toolName: 'f', input: '{}', providerMetadata: metadata },
      finish(),
    ]);
    const clean = { anthropic: { signature: 'S', ...(left as object) }, ...(left as object) };

    expect(response.content).toStrictEqual([
      { type: 'thinking', text: 'hm', signature: 'S', providerData: { model: 'fake-model', metadata: clean } },
      { type: 'provider', provider: 'fake.chat', data: { model: 'fake-model', block: { type: 'tool-result', toolCallId: 's', toolName: 'w', result: { found: 1, ...(left as object) }, providerMetadata: clean } } },
      { type: 'tool_call', name: 'f', inputText: '{}', providerId: 'a', providerData: { model: 'fake-model', metadata: clean } },
    ]);
  });

  it('GN2: keeps metadata as it was when it came', async () => {
    const metadata = { openai: { itemId: 'msg_1' } };
    const parts = [{ type: 'text-start', id: 't', providerMetadata: metadata }, { type: 'text-delta', id: 't', delta: 'x' }, finish()];
    const { content } = await aiSdk(fakeModel(parts)).chat(request(undefined, { onDelta: () => void (metadata.openai.itemId = 'changed') }));

    expect(content).toMatchObject([{ providerData: { metadata: { openai: { itemId: 'msg_1' } } } }]);
  });

  it('BR-028: joins the metadata of start, fragments and end', async () => {
    const { response } = await read([
      { type: 'reasoning-start', id: 'r', providerMetadata: { openai: { itemId: 'rs_1', reasoningEncryptedContent: null } } },
      { type: 'reasoning-delta', id: 'r', delta: 'hm' },
      { type: 'reasoning-end', id: 'r', providerMetadata: { openai: { reasoningEncryptedContent: 'E' } } },
      { type: 'text-start', id: 't', providerMetadata: { openai: { itemId: 'msg_1' } } },
      { type: 'text-delta', id: 't', delta: 'x' },
      { type: 'text-end', id: 't', providerMetadata: JSON.parse('{"openai":{"phase":"final","__proto__":{"x":1}},"__proto__":{"y":1}}') as unknown },
      finish(),
    ]);

    expect(response.content).toStrictEqual([
      { type: 'thinking', text: 'hm', redactedData: 'E', providerData: { model: 'fake-model', metadata: { openai: { itemId: 'rs_1', reasoningEncryptedContent: 'E' } } } },
      { type: 'text', text: 'x', providerData: { model: 'fake-model', metadata: { openai: { itemId: 'msg_1', phase: 'final' } } } },
    ]);
  });

  it('reads fragments without a start', async () => {
    expect((await read([{ type: 'text-delta', id: '0', delta: 'x' }, { type: 'text-end', id: 'none' }, finish()])).response.content).toStrictEqual([{ type: 'text', text: 'x' }]);
  });
});

describe('calls', () => {
  it('GN4, BR-106: arrive live under their place in the reply, also when they arrive in turns', async () => {
    const { response, deltas } = await read([
      ...text('x'),
      { type: 'tool-input-start', id: 'a', toolName: 'first' },
      { type: 'tool-input-start', id: 'b', toolName: 'second' },
      { type: 'tool-input-delta', id: 'b', delta: '{"b":' },
      { type: 'tool-input-delta', id: 'a', delta: '{"a":1}' },
      { type: 'tool-input-delta', id: 'b', delta: '2}' },
      { type: 'tool-call', toolCallId: 'b', toolName: 'second', input: '{"b":2}' },
      { type: 'tool-call', toolCallId: 'a', toolName: 'first', input: '{"a":1}', providerMetadata: { google: { thoughtSignature: 'S' } } },
      finish('tool-calls'),
    ]);

    expect(response.content.slice(1)).toStrictEqual([
      { type: 'tool_call', name: 'first', inputText: '{"a":1}', providerId: 'a', providerData: { model: 'fake-model', metadata: { google: { thoughtSignature: 'S' } } } },
      { type: 'tool_call', name: 'second', inputText: '{"b":2}', providerId: 'b' },
    ]);
    expect(deltas.slice(1)).toStrictEqual([
      { type: 'tool_call', callIndex: 0, name: 'first', providerId: 'a', inputText: '' },
      { type: 'tool_call', callIndex: 1, name: 'second', providerId: 'b', inputText: '' },
      { type: 'tool_call', callIndex: 1, inputText: '{"b":' },
      { type: 'tool_call', callIndex: 0, inputText: '{"a":1}' },
      { type: 'tool_call', callIndex: 1, inputText: '2}' },
    ]);
  });

  it('come live when they come at once, or when the last of them does', async () => {
    const whole = await read([{ type: 'tool-call', toolCallId: 'c', toolName: 'f', input: '{"a":1}' }, finish()]);
    const rest = await read([
      { type: 'tool-input-start', id: 'c', toolName: 'f' },
      { type: 'tool-input-delta', id: 'c', delta: '{"a"' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'f', input: '{"a":1}' },
      finish(),
    ]);

    for (const { response, deltas } of [whole, rest]) {
      const live = deltas.map((delta) => (delta.type === 'tool_call' ? delta.inputText : '')).join('');
      expect(live).toBe('{"a":1}');
      expect(response.content).toStrictEqual([{ type: 'tool_call', name: 'f', inputText: '{"a":1}', providerId: 'c' }]);
    }
  });

  it('are what the call part says, not what streamed before it in another form', async () => {
    const { response, deltas } = await read([
      { type: 'tool-input-start', id: 'c', toolName: 'patch', inputEncoding: 'text' },
      { type: 'tool-input-delta', id: 'c', delta: '*** Begin' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'patch', input: '"*** Begin"' },
      ...call('g', ['{"a": 1}'], { input: '{"a":1,"type":"run"}', toolName: 'run' }),
      finish(),
    ]);
    const live = (index: number): unknown => deltas.flatMap((delta) => (delta.type === 'tool_call' && delta.callIndex === index ? [delta.inputText] : []));

    expect(response.content).toMatchObject([{ inputText: '"*** Begin"' }, { name: 'run', inputText: '{"a":1,"type":"run"}' }]);
    expect(live(0)).toStrictEqual(['', '"*** Begin"']);
    expect(live(1)).toStrictEqual(['', '{"a": 1}']);
  });

  it('BR-148: of one id are two calls, however they arrive', async () => {
    const whole = { type: 'tool-call', toolCallId: 'id_f', toolName: 'f', input: '{"a":3}' };
    const { response } = await read([...call('f', ['{"a":1}']), ...call('f', ['{"a":2}']), whole, finish()]);

    expect(response.content).toMatchObject([
      { inputText: '{"a":1}', providerId: 'id_f' },
      { inputText: '{"a":2}', providerId: 'id_f' },
      { inputText: '{"a":3}', providerId: 'id_f' },
    ]);
  });

  it.each([
    [{ a: 1 }, '{"a":1}'],
    ['', ''],
    [null, ''],
    [undefined, ''],
  ])('BR-019, BR-097: with the arguments %o have the text %o', async (input, inputText) => {
    const { response } = await read([{ type: 'tool-call', toolCallId: 'c', toolName: 'f', input }, finish()]);

    expect(response.content).toMatchObject([{ inputText }]);
  });

  it('BR-098 B: that never became whole are no calls of a whole reply', async () => {
    const begun = [{ type: 'tool-input-start', id: 'c', toolName: 'f' }, { type: 'tool-input-delta', id: 'c', delta: '{"a":' }];

    expect(await errorOfParts([...begun, finish('tool-calls')])).toMatchObject({ kind: 'malformed_response', code: 'unfinished_call' });
    expect((await read([...begun, finish('length')])).response).toMatchObject({ stopReason: 'max_tokens', content: [{ name: 'f', inputText: '{"a":' }] });
  });

  it('of no name are malformed', async () => {
    expect(await errorOfParts([{ type: 'tool-call', toolCallId: 'c', input: '{}' }, finish()])).toMatchObject({ kind: 'malformed_response', code: 'nameless_call' });
  });

  it("have the tools' own names", async () => {
    const tools = [{ name: 'db/read users', description: '', inputSchema: {} }];
    const model = fakeModel(OK);
    await aiSdk(model).chat(request(undefined, { tools }));
    const [tool] = model.calls[0]?.['tools'] as [{ name: string }];
    const answering = fakeModel([...call(tool.name, ['{}']), finish()]);

    const response = await aiSdk(answering).chat(request(undefined, { tools }));

    expect(tool.name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(response.content).toMatchObject([{ name: 'db/read users' }]);
  });
});

describe('files', () => {
  it('B9: of every form become media', async () => {
    const { response } = await read([
      { type: 'file', mediaType: 'image/png', data: 'AAAA' },
      { type: 'file', mediaType: 'image/png', data: new Uint8Array([1, 2, 255]) },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([0]) } },
      { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://h/i.png') } },
      { type: 'file', mediaType: 'image/png', data: new URL('data:image/webp;base64,BBBB') },
      { type: 'file', mediaType: 'image/png', data: undefined },
      finish(),
    ]);

    expect(response.content).toStrictEqual([
      { type: 'media', mediaType: 'image/png', data: 'AAAA' },
      { type: 'media', mediaType: 'image/png', data: 'AQL/' },
      { type: 'media', mediaType: 'image/png', data: 'AA==' },
      { type: 'media', mediaType: 'image/png', url: 'https://h/i.png' },
      { type: 'media', mediaType: 'image/webp', data: 'BBBB' },
    ]);
  });

  it('B9: of megabytes are read as well', async () => {
    const { response } = await read([{ type: 'file', mediaType: 'image/png', data: new Uint8Array(3_000_000) }, finish()]);

    expect(response.content).toMatchObject([{ data: 'A'.repeat(4_000_000) }]);
  });
});

describe('B15: what the provider runs itself', () => {
  it('is kept as it came, in its place, and never runs here', async () => {
    const tool = { type: 'tool-call', toolCallId: 'srv_1', toolName: 'web_search', input: '{"query":"q"}', providerExecuted: true };
    const result = { type: 'tool-result', toolCallId: 'srv_1', toolName: 'web_search', result: [{ url: 'https://h' }], providerMetadata: { anthropic: { x: 1 } } };
    const source = { type: 'source', sourceType: 'url', id: 's', url: 'https://h' };
    const { response, deltas } = await read([
      { type: 'tool-input-start', id: 'srv_1', toolName: 'web_search', providerExecuted: true },
      { type: 'tool-input-delta', id: 'srv_1', delta: '{"query":"q"}' },
      { type: 'tool-input-end', id: 'srv_1' },
      tool,
      { ...result, preliminary: true },
      result,
      source,
      ...text('found'),
      finish(),
    ]);

    expect(response.content).toStrictEqual([
      { type: 'provider', provider: 'fake.chat', data: { model: 'fake-model', block: tool } },
      { type: 'provider', provider: 'fake.chat', data: { model: 'fake-model', block: result } },
      { type: 'provider', provider: 'fake.chat', data: { model: 'fake-model', block: source } },
      { type: 'text', text: 'found' },
    ]);
    expect(deltas).toHaveLength(1);
    expect(response.stopReason).toBe('end_turn');
  });

  it('says that approvals cannot be given', async () => {
    expect(await errorOfParts([{ type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' }])).toMatchObject({ kind: 'invalid_request', code: 'approval_required', retryable: false });
  });
});

describe('usage', () => {
  it.each([
    [
      { inputTokens: { total: 1000, noCache: 100, cacheRead: 900, cacheWrite: 0 }, outputTokens: { total: 10, text: 6, reasoning: 4 } },
      { inputTokens: 100, cacheReadTokens: 900, cacheWriteTokens: 0, outputTokens: 10, thinkingTokens: 4 },
    ],
    [
      { inputTokens: { total: 100, noCache: 100, cacheRead: 900, cacheWrite: 0 }, outputTokens: { total: 10 } },
      { inputTokens: 100, cacheReadTokens: 900, cacheWriteTokens: 0, outputTokens: 10, thinkingTokens: 0 },
    ],
    [
      { inputTokens: { total: 1000, noCache: undefined, cacheRead: 900, cacheWrite: 50 }, outputTokens: { total: undefined, text: 6, reasoning: 4 } },
      { inputTokens: 50, cacheReadTokens: 900, cacheWriteTokens: 50, outputTokens: 10, thinkingTokens: 4 },
    ],
    [
      { inputTokens: { total: undefined }, outputTokens: { total: 3, reasoning: 9 } },
      { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 9, thinkingTokens: 9 },
    ],
    [{ inputTokens: { total: NaN, cacheRead: -1 } }, { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, thinkingTokens: 0 }],
    [undefined, { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, thinkingTokens: 0 }],
  ])('BR-023: counts %j once', async (usage, expected) => {
    expect((await read([...text('x'), finish('stop', 'stop', { usage })])).response.usage).toStrictEqual(expected);
  });

  it.each([
    ['openai.chat', {}, { inputTokens: 100, cacheReadTokens: 900, cacheWriteTokens: 0 }],
    ['anthropic.messages', { anthropic: { cacheCreationInputTokens: 7 } }, { inputTokens: 1000, cacheReadTokens: 900, cacheWriteTokens: 7 }],
    ['strange.chat', {}, { inputTokens: 100, cacheReadTokens: 900, cacheWriteTokens: 0 }],
    ['amazon-bedrock', { bedrock: { usage: { cacheWriteInputTokens: 8 } } }, { inputTokens: 1000, cacheReadTokens: 900, cacheWriteTokens: 8 }],
  ])('BR-023: counts the oldest specification of %s once', async (provider, providerMetadata, expected) => {
    const inputTokens = provider === 'strange.chat' ? 100 : 1000;
    const usage = { inputTokens, outputTokens: 10, totalTokens: 1010, reasoningTokens: 4, cachedInputTokens: 900 };
    const { response } = await read([...text('x'), { type: 'finish', finishReason: 'stop', usage, providerMetadata }], { version: 'v2', provider });

    expect(response.usage).toStrictEqual({ ...expected, outputTokens: 10, thinkingTokens: 4 });
  });
});

describe('what else a model says', () => {
  it('GN9: ids of the answer are kept', async () => {
    const { response } = await read([{ type: 'response-metadata', id: 'resp_1', timestamp: new Date(0), modelId: 'fake-model-2026' }, { type: 'response-metadata' }, ...OK]);

    expect(response).toMatchObject({ responseId: 'resp_1', modelId: 'fake-model-2026' });
  });

  it('what it did not heed of a request is told as a notice', async () => {
    const notices: unknown[] = [];
    const warnings = [{ type: 'unsupported', feature: 'topK' }];
    const scope = { turnId: 't', step: 1, stepId: 's', runtime: systemRuntime, notify: (notice: unknown) => notices.push(notice) };
    await aiSdk(fakeModel([{ type: 'stream-start', warnings }, ...OK])).chat(request(undefined, { scope }));

    expect(notices).toStrictEqual([{ name: 'model.warnings', data: { provider: 'fake.chat', warnings } }]);

    await aiSdk(fakeModel([{ type: 'stream-start', warnings: [...warnings, { type: 'other', of: 7n }] }, ...OK])).chat(request(undefined, { scope }));
    expect(notices[1]).toStrictEqual({ name: 'model.warnings', data: { provider: 'fake.chat', warnings: [...warnings, { type: 'other' }] } });
  });

  it('odd and unknown parts are passed over', async () => {
    const { response } = await read([undefined, 7, {}, { type: 'constructor' }, { type: 'raw', rawValue: {} }, { type: 'brand-new' }, { type: 'tool-input-delta', id: 'none', delta: 'x' }, ...OK]);

    expect(response.content).toStrictEqual([{ type: 'text', text: 'ok' }]);
  });
});

describe('a result that was not streamed', () => {
  it('is read as its stream would be', async () => {
    const result = {
      content: [
        { type: 'reasoning', text: 'hm', providerMetadata: { anthropic: { signature: 'S' } } },
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b', providerMetadata: { openai: { itemId: 'm' } } },
        { type: 'tool-call', toolCallId: 'c', toolName: 'f', input: '{"a":1}' },
        { type: 'file', mediaType: 'image/png', data: 'AAAA' },
      ],
      finishReason: { unified: 'tool-calls', raw: 'tool_calls' },
      usage: finish()['usage'],
      response: { id: 'resp_1', modelId: 'fake-model' },
      warnings: [],
    };
    const { response, deltas } = await read([result], { llm: { stream: false } });

    expect(response).toStrictEqual({
      content: [
        { type: 'thinking', text: 'hm', signature: 'S', providerData: { model: 'fake-model', metadata: { anthropic: { signature: 'S' } } } },
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b', providerData: { model: 'fake-model', metadata: { openai: { itemId: 'm' } } } },
        { type: 'tool_call', name: 'f', inputText: '{"a":1}', providerId: 'c' },
        { type: 'media', mediaType: 'image/png', data: 'AAAA' },
      ],
      stopReason: 'tool_use',
      rawStopReason: 'tool_calls',
      usage: { inputTokens: 7, cacheReadTokens: 2, cacheWriteTokens: 1, outputTokens: 5, thinkingTokens: 3 },
      responseId: 'resp_1',
      modelId: 'fake-model',
    });
    expect(deltas.map(({ type }) => type)).toStrictEqual(['thinking', 'text', 'text', 'tool_call', 'tool_call']);
  });

  it.each([undefined, null, {}, 'text', { content: 'text' }])('is malformed if it is %o', async (result) => {
    expect(await errorOfParts([result], { llm: { stream: false } })).toMatchObject({ kind: 'malformed_response' });
  });
});
