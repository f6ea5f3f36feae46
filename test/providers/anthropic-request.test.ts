/** Messages requests: settings, tools, answers by schema, and a whole turn. Black-box. */
import { describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, defineTool, type JsonSchema, runTurn, userMessage } from 'turnloop';
import { anthropic, type AnthropicOptions } from 'turnloop/providers/anthropic';
import { checkMessagesRequest } from '../support/anthropic-rules.ts';
import { call, callBlock, messagesOn, MODEL, OK, own, reply, result, send, textBlock, thinkingBlock, tool, wire } from './anthropic-support.ts';
import { errorOf, fakeServer, request } from './fake-server.ts';

describe('a request', () => {
  it('B3: has address, key, version, settings, tools, system prompt and messages', async () => {
    const history = [userMessage('go'), own([{ type: 'text', text: 'I look.' }, call('c1', { providerId: 'toolu_1', inputText: '{"a": 1}' })]), result('c1', '42')];
    const { url, headers, text } = await send(
      history,
      { systemPrompt: 'Be brief.', tools: [tool('f')], toolChoice: 'none', maxOutputTokens: 100 },
      { headers: { 'x-team': 'a' }, body: { metadata: { user_id: 'u' } }, model: 'claude-opus-4-6', temperature: 0 },
    );

    expect(url).toBe('https://api.example.com/v1/messages');
    expect(Object.fromEntries(headers)).toStrictEqual({
      'content-type': 'application/json',
      accept: 'text/event-stream',
      'anthropic-version': '2023-06-01',
      'x-api-key': 'sk-ant-test',
      'x-team': 'a',
    });
    expect(text).toBe(
      '{"model":"claude-opus-4-6","stream":true,"metadata":{"user_id":"u"},' +
        '"tools":[{"name":"f","description":"Does f.","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],' +
        '"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],' +
        '"messages":[{"role":"user","content":[{"type":"text","text":"go","cache_control":{"type":"ephemeral"}}]},' +
        '{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"f","input":{"a": 1}}]},' +
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"42"}],"cache_control":{"type":"ephemeral"}}]}],' +
        '"temperature":0,"tool_choice":{"type":"none"},"max_tokens":100}',
    );
  });

  it('AN9: reads no environment variables, and sends no key when there is none', async () => {
    process.env['ANTHROPIC_API_KEY'] = 'sk-ant-from-the-environment';
    process.env['ANTHROPIC_BASE_URL'] = 'https://elsewhere.example';
    const { url, headers } = await send([userMessage('x')], {}, { apiKey: undefined });
    delete process.env['ANTHROPIC_API_KEY'];
    delete process.env['ANTHROPIC_BASE_URL'];

    expect(url).toBe('https://api.example.com/v1/messages');
    expect(JSON.stringify([...headers])).not.toContain('environment');
    expect(headers.has('x-api-key')).toBe(false);
  });

  it('sends the key as a bearer token where a gateway wants it', async () => {
    const { headers } = await send([userMessage('x')], {}, { authScheme: 'bearer' });

    expect([headers.get('authorization'), headers.get('x-api-key')]).toStrictEqual(['Bearer sk-ant-test', null]);
  });

  it('goes to Anthropic unless told otherwise, and streams unless told otherwise', async () => {
    const fake = fakeServer(OK);
    await anthropic({ model: MODEL, fetch: fake.fetch, stream: false }).chat(request());

    expect(fake.sent[0]).toMatchObject({ url: 'https://api.anthropic.com/v1/messages', body: { stream: false } });
    expect(fake.sent[0]!.headers.get('accept')).toBe('application/json');
  });

  it('AN3: names each beta once, wherever it was named', async () => {
    const betas = ['files-api-2025-04-14', 'interleaved-thinking-2025-05-14'];
    const { headers } = await send(
      [userMessage('x')],
      {},
      { betas, headers: { 'Anthropic-Beta': 'a-2025-01-01, files-api-2025-04-14' }, model: 'claude-sonnet-4-5', thinkingBudget: 2000 },
    );

    expect(headers.get('anthropic-beta')).toBe('files-api-2025-04-14,interleaved-thinking-2025-05-14,a-2025-01-01');
    expect((await send([userMessage('x')])).headers.has('anthropic-beta')).toBe(false);
  });

  it('AN3: sends betas in the body where an endpoint wants them there', async () => {
    expect((await send([userMessage('x')], {}, { body: { anthropic_beta: ['b-2025-01-01'] } })).body['anthropic_beta']).toStrictEqual(['b-2025-01-01']);
  });

  it('lets fields of the host take the place of its own, and an undefined one remove it', async () => {
    const { body, text } = await send(
      [userMessage('x')],
      { systemPrompt: 's', tools: [tool('f')], toolChoice: 'required' },
      { body: { max_tokens: 7, system: 'mine', tools: [], tool_choice: undefined, stream: undefined, model: 'other' } },
    );

    expect(body).toStrictEqual({ model: 'other', max_tokens: 7, system: 'mine', tools: [], messages: [{ role: 'user', content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] }] });
    for (const field of ['max_tokens', 'system', 'tools', 'tool_choice', 'stream']) expect(text.split(`"${field}":`).length).toBeLessThanOrEqual(2);
  });

  it.each([
    [undefined, /needs `model`.*anthropic\(\{ model/],
    [{ model: 'm', baseURL: 'http://h/v1' }, /no option `baseURL`\. Did you mean `baseUrl`\?/],
    [{ model: 'm', promptCache: true }, /`promptCache` must be one of '5m', '1h', 'off'/],
    [{ model: 'm', authScheme: 'Bearer' }, /`authScheme` must be one of/],
    [{ model: 'm', thinkingMode: 'enabled' }, /`thinkingMode` must be one of/],
    [{ model: 'm', thinkingBudget: 'many' }, /`thinkingBudget` must be a number of tokens/],
    [{ model: 'm', thinkingBudget: 0 }, /`thinkingBudget` must be a number of tokens/],
    [{ model: 'claude-sonnet-4-5', thinkingBudget: 1023 }, /`thinkingBudget`.* at least 1024.*`thinkingMode: 'off'`/],
    [{ model: 'claude-sonnet-4-5', thinkingEffort: 'extreme' }, /no.*`thinkingEffort` "extreme".*It takes minimal, low/],
    [{ model: 'claude-opus-4-7', thinkingBudget: 2000 }, /takes no `thinkingBudget`.*`thinkingEffort`/],
  ])('refuses options %j', (options, message) => {
    expect(() => anthropic(options as AnthropicOptions)).toThrow(TypeError);
    expect(() => anthropic(options as AnthropicOptions)).toThrow(message);
  });
});

describe('the limit of a reply', () => {
  it.each([
    ['claude-opus-4-6', 128_000],
    ['claude-haiku-5-5', 128_000],
    ['claude-fable-5-2', 128_000],
    ['claude-opus-4-10', 128_000],
    ['claude-sonnet-4-5-20250929', 64_000],
    ['claude-haiku-4-5', 64_000],
    ['claude-opus-4-5', 64_000],
    ['claude-sonnet-4-20250514', 64_000],
    ['claude-3-7-sonnet-latest', 64_000],
    ['claude-opus-4-1-20250805', 32_000],
    ['claude-opus-4@20250514', 32_000],
    ['claude-3-5-haiku-20241022', 8192],
    ['claude-3-opus-20240229', 4096],
    ['claude-2.1', 4096],
    ['anthropic.claude-v2:1', 4096],
    ['claude-instant-1.2', 4096],
    ['anthropic.claude-instant-v1', 4096],
    ['claude-instant', 4096],
    ['us.anthropic.claude-opus-4-1-20250805-v1:0', 32_000],
    ['anthropic/claude-3.5-sonnet', 8192],
    ['anthropic/claude-4.6-opus', 128_000],
    ['claude-mythos-preview', 128_000],
    ['kimi-k2', 128_000],
    ['glm-4.6', 128_000],
  ])('AN8: is the most that %s writes', async (model, ceiling) => {
    expect((await send([userMessage('x')], {}, { model })).body['max_tokens']).toBe(ceiling);
    expect((await send([userMessage('x')], { maxOutputTokens: 999_999 }, { model })).body['max_tokens']).toBe(ceiling);
  });

  it('AN8: is the request\'s, else the option\'s, both only below what the model writes', async () => {
    const options = { model: 'claude-haiku-4-5', maxOutputTokens: 9000 };

    expect((await send([userMessage('x')], { maxOutputTokens: 50 }, options)).body['max_tokens']).toBe(50);
    expect((await send([userMessage('x')], {}, options)).body['max_tokens']).toBe(9000);
    expect((await send([userMessage('x')], { maxOutputTokens: 0 }, options)).body['max_tokens']).toBe(1);
    expect((await send([userMessage('x')], {}, { ...options, capabilities: { maxOutputTokens: 500 } })).body['max_tokens']).toBe(500);
  });
});

describe('tools', () => {
  it('B10: have legal names, described or not, and schemas that servers take', async () => {
    const tools = [tool('a.b', { anyOf: [{ type: 'object', properties: { x: { type: 'string' } } }] }), { ...tool('g'), description: ' ' }];
    const { body } = await send([userMessage('x')], { tools, toolChoice: { name: 'a.b' } });
    const [first, second] = body['tools'] as [{ name: string }, object];

    expect(checkMessagesRequest(body)).toStrictEqual([]);
    expect(body['tool_choice']).toStrictEqual({ type: 'tool', name: first.name });
    expect(second).not.toHaveProperty('description');
  });

  it.each([
    ['auto', {}, undefined],
    ['none', {}, { type: 'none' }],
    ['required', {}, { type: 'any' }],
    [{ name: 'f' }, {}, { type: 'tool', name: 'f' }],
    ['auto', { parallelTools: false }, { type: 'auto', disable_parallel_tool_use: true }],
    ['required', { parallelTools: false }, { type: 'any', disable_parallel_tool_use: true }],
    ['none', { parallelTools: false }, { type: 'none' }],
  ] as const)('are chosen by %j, %j', async (toolChoice, options, expected) => {
    expect((await send([userMessage('x')], { tools: [tool('f')], toolChoice }, options)).body['tool_choice']).toStrictEqual(expected);
    expect((await send([userMessage('x')], { toolChoice }, options)).body).not.toHaveProperty('tool_choice');
  });

  it('B15: of the server follow the host\'s, and stand in place of one with their name', async () => {
    const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 2 };
    const bash = { type: 'bash_20250124', name: 'bash' };
    const { body } = await send([userMessage('x')], { tools: [tool('bash'), tool('f')] }, { serverTools: [bash, search], promptCache: 'off' });

    expect(body['tools']).toStrictEqual([{ name: 'f', description: 'Does f.', input_schema: { type: 'object', properties: {} } }, bash, search]);
    expect((await send([userMessage('x')], { toolChoice: 'required' }, { serverTools: [search] })).body).toMatchObject({ tools: [{ name: 'web_search' }], tool_choice: { type: 'any' } });
  });

  it('stream their arguments unchecked when told so', async () => {
    expect((await send([userMessage('x')], { tools: [tool('f')] }, { eagerInput: true })).body['tools']).toMatchObject([{ eager_input_streaming: true }]);
  });

  it.each(['claude-opus-5-5', 'claude-sonnet-5-5', 'anthropic/claude-fable-5.1', 'claude-mythos-5-2', 'claude-opus-6'])(
    'cannot be forced upon %s, which refuses that: an error says so, and nothing is sent',
    async (model) => {
      const fake = fakeServer(OK);
      const llm = messagesOn(fake, { model });
      for (const toolChoice of ['required', { name: 'f' }] as const) {
        const error = await errorOf(llm.chat(request(undefined, { tools: [tool('f')], toolChoice })));

        expect(error).toMatchObject({ kind: 'invalid_request', code: 'forced_tool_choice', retryable: false });
        expect(error.message).toMatch(/`toolChoice` "(?:required|f)".*'auto'.*`responseSchema`/);
      }
      expect(fake.sent).toHaveLength(0);

      for (const toolChoice of ['auto', 'none'] as const) await llm.chat(request(undefined, { tools: [tool('f')], toolChoice }));
      await llm.chat(request(undefined, { toolChoice: 'required' }));
      await messagesOn(fake, { model, body: { tool_choice: { type: 'any' } } }).chat(request(undefined, { tools: [tool('f')], toolChoice: 'required' }));
      expect(fake.sent.map(({ body }) => body['tool_choice'])).toStrictEqual([undefined, { type: 'none' }, undefined, { type: 'any' }]);
    },
  );

  it.each(['claude-opus-5', 'claude-sonnet-5', 'claude-haiku-5-5', 'claude-fable-5', 'claude-opus-latest', 'kimi-k2'])('can be forced upon %s', async (model) => {
    const { body } = await send([userMessage('x')], { tools: [tool('f')], toolChoice: 'required' }, { model });

    expect(body['tool_choice']).toStrictEqual({ type: 'any' });
  });

  it('GN12: are those of the request, nothing else', async () => {
    expect((await send([userMessage('x')])).body).not.toHaveProperty('tools');
  });
});

describe('structured answers', () => {
  it('AN9: are asked for by a schema whose objects are closed', async () => {
    const schema: JsonSchema = {
      type: 'object',
      properties: { properties: { type: 'array', items: { $ref: '#/$defs/item' } }, kind: { enum: [{ type: 'object' }] } },
      required: ['properties'],
      $defs: { item: { type: ['object', 'null'], properties: { a: { type: 'string' } }, additionalProperties: true } },
    };
    const before = JSON.stringify(schema);
    const { body } = await send([userMessage('x')], { responseSchema: schema }, { model: 'claude-opus-4-6', thinkingEffort: 'low' });

    expect(body['output_config']).toStrictEqual({
      effort: 'low',
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: { properties: { type: 'array', items: { $ref: '#/$defs/item' } }, kind: { enum: [{ type: 'object' }] } },
          required: ['properties'],
          $defs: { item: { type: ['object', 'null'], properties: { a: { type: 'string' } }, additionalProperties: false } },
          additionalProperties: false,
        },
      },
    });
    expect(checkMessagesRequest(body)).toStrictEqual([]);
    expect(JSON.stringify(schema)).toBe(before);
  });

  const MAP = { type: 'object', additionalProperties: { type: 'number' } };
  const NODE = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } };

  async function sentSchema(responseSchema: JsonSchema): Promise<unknown> {
    const { body } = await send([userMessage('x')], { responseSchema });
    return (body['output_config'] as { format: { schema: unknown } }).format.schema;
  }

  it.each<readonly [string, JsonSchema, JsonSchema]>([
    [
      'branches that all apply',
      { allOf: [{ type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }, { $ref: '#/$defs/b' }], description: 'D', $defs: { b: { type: 'object', properties: { b: { type: 'number' } }, required: ['b'] } } },
      {
        type: 'object',
        properties: { a: { type: 'string' }, b: { type: 'number' } },
        required: ['a', 'b'],
        additionalProperties: false,
        description: 'D',
        $defs: { b: { type: 'object', properties: { b: { type: 'number' } }, required: ['b'], additionalProperties: false } },
      },
    ],
    [
      'properties beside a choice',
      { type: 'object', properties: { a: {} }, title: 'T', anyOf: [{ properties: { b: {} }, required: ['b'] }, { required: ['a'] }] },
      {
        title: 'T',
        anyOf: [
          { type: 'object', properties: { b: {}, a: {} }, required: ['b'], additionalProperties: false },
          { type: 'object', properties: { a: {} }, required: ['a'], additionalProperties: false },
        ],
      },
    ],
    [
      'a property that two branches have',
      { allOf: [{ properties: { p: { type: ['object', 'null'], properties: { a: {} } } } }, { properties: { p: { type: 'object', properties: { b: {} } } } }] },
      { properties: { p: { type: 'object', properties: { a: {}, b: {} }, additionalProperties: false } }, additionalProperties: false },
    ],
    [
      'a branch that is closed',
      { allOf: [{ properties: { a: {} }, additionalProperties: false }, { properties: { a: {}, b: {} } }] },
      { properties: { a: {} }, additionalProperties: false },
    ],
  ])('AN9: are of one object, whoever describes it: %s', async (_what, given, expected) => {
    expect(await sentSchema(given)).toStrictEqual(expected);
  });

  it.each<readonly [string, JsonSchema]>([
    ['a single branch', { allOf: [{ $ref: '#/$defs/node' }], $defs: { node: { ...NODE, additionalProperties: false } } }],
    ['branches about texts', { type: 'string', allOf: [{ minLength: 1 }, { maxLength: 3 }] }],
    ['a condition', { type: 'array', items: { type: 'object', properties: { a: { not: NODE } }, additionalProperties: false } }],
    ['an object without anything', { type: 'object', properties: { a: { type: 'object', properties: {}, additionalProperties: false } }, additionalProperties: false }],
  ])('AN9: leave as it is what needs no more: %s', async (_what, schema) => {
    expect(await sentSchema(schema)).toStrictEqual(schema);
  });

  it.each<readonly [string, JsonSchema, RegExp]>([
    ['a map', { type: 'object', properties: { 'by/name': MAP } }, /at `\/properties\/by~1name` .*`properties`.*\{ name, value \}/],
    ['names and others', { type: 'array', items: { ...MAP, properties: { a: {} } } }, /at `\/items` /],
    ['names by pattern', { $defs: { x: { type: 'object', patternProperties: { '^x': {} } } }, $ref: '#/$defs/x' }, /at `\/\$defs\/x` /],
    ['any object', { type: 'object', properties: { extra: { type: ['object', 'null'], additionalProperties: true } } }, /at `\/properties\/extra` /],
    ['the whole', { type: 'object' }, /schema itself is/],
    ['what contradicts', { allOf: [{ properties: { a: {} }, additionalProperties: false }, { properties: { b: {} }, required: ['b'] }] }, /itself says of one object in several places/],
    ['a part of itself', { $ref: '#/$defs/a', $defs: { a: { allOf: [{ $ref: '#/$defs/a' }, NODE], properties: {} } } }, /at `\/\$defs\/a` says/],
    ['what holds more of itself', { $ref: '#/$defs/a', $defs: { a: { type: 'object', properties: { x: { allOf: [{ $ref: '#/$defs/a' }, NODE] } } } } }, /says of one object/],
  ])('AN9: cannot have objects that are not closed: %s', async (_what, responseSchema, message) => {
    const fake = fakeServer(OK);
    const error = await errorOf(messagesOn(fake).chat(request(undefined, { responseSchema })));

    expect(error).toMatchObject({ kind: 'invalid_request', code: 'schema_open', retryable: false });
    expect(error.message).toMatch(message);
    expect(error.message.length).toBeLessThan(500);
    expect(fake.sent).toHaveLength(0);
  });

  it.each([[{}], [{ description: 'any JSON' }]])('AN9: cannot be just any JSON: %j', async (responseSchema) => {
    const fake = fakeServer(OK);
    const error = await errorOf(messagesOn(fake).chat(request(undefined, { responseSchema })));

    expect(error).toMatchObject({ kind: 'invalid_request', code: 'schema_required', retryable: false });
    expect(fake.sent).toHaveLength(0);
  });
});

it('a whole turn runs on it: calls, results, and what the model says at last', async () => {
  const fake = fakeServer({ body: reply([thinkingBlock(0, 'add', 'S'), callBlock(1, 'toolu_1', '{"a":', '2}')], 'tool_use') }, { body: reply([textBlock(0, 'It is ', '4.')]) });
  const { record, buildMessages } = createTranscript();
  const double = defineTool({ name: 'f', description: 'Doubles.', input: { type: 'object', properties: { a: { type: 'number' } } }, execute: (input) => String((input as { a: number }).a * 2) });
  const result = await runTurn({ llm: messagesOn(fake), tools: [double], buildMessages, dispatchEvent: createEventDispatcher({ record, emit: () => {} }), input: 'Double 2.' });

  expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'It is 4.', usage: { inputTokens: 10, outputTokens: 6 } });
  for (const { body } of fake.sent) expect(checkMessagesRequest(body)).toStrictEqual([]);
  expect(wire(fake.sent[1]!)[2]).toStrictEqual(['user', [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: '4' }] }]]);
});

it('XC1, XC4: several requests at once, one of them aborted, do not disturb one another', async () => {
  const fake = fakeServer(OK);
  const llm = messagesOn(fake);
  const controller = new AbortController();
  controller.abort();
  const [first, aborted, second] = await Promise.allSettled([
    llm.chat(request([userMessage('one')])),
    llm.chat(request([userMessage('no')], { signal: controller.signal })),
    llm.chat(request([userMessage('two')])),
  ]);

  expect([first.status, aborted.status, second.status]).toStrictEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(fake.sent.map((sent) => wire(sent)[0]?.[1][0]?.['text'])).toStrictEqual(['one', 'two']);
});
