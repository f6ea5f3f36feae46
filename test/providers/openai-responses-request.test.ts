/** Responses requests: what is sent for which history, tools and options. Black-box. */
import { describe, expect, it } from 'vitest';
import { assistantMessage, type AssistantPart, type JsonSchema, type Message, type ToolDefinition, toolMessage, type ToolResultPart, userMessage } from 'turnloop';
import { openAIResponses } from 'turnloop/providers/openai-responses';
import { checkResponsesRequest } from '../support/responses-rules.ts';
import { errorOf, fakeServer, request } from './fake-server.ts';
import { called, inputOf, type Item, MODEL, OK, reasoning, reply, responsesOn, said, send, sentBack, SOURCE, stored } from './openai-responses-support.ts';

const TOOL: ToolDefinition = { name: 'f', description: 'd', inputSchema: { type: 'object', properties: { a: { type: 'string' } } } };
const CALL: AssistantPart = { type: 'tool_call', id: 'own', name: 'f', inputText: '{"a":1}', providerId: 'call_1' };
const PNG: ToolResultPart = { type: 'media', mediaType: 'image/png', data: 'iVBORw0KGgo=' };

function own(...parts: readonly AssistantPart[]): Message {
  return assistantMessage(parts, { source: SOURCE });
}

function result(content: string | readonly ToolResultPart[] = 'r', toolCallId = 'own'): Message {
  return toolMessage(content, { toolCallId, name: 'f' });
}

function typesOf(items: readonly Item[]): readonly unknown[] {
  return items.map(({ type, role }) => (type === 'message' || type === undefined ? role : type));
}

describe('settings', () => {
  it('sends as little as it can', async () => {
    const sent = await send([userMessage('Hello')]);

    expect(sent.url).toBe('https://api.example.com/v1/responses');
    expect(sent.headers.get('authorization')).toBe('Bearer sk-test');
    expect(sent.body).toStrictEqual({ model: MODEL, stream: true, store: false, include: ['reasoning.encrypted_content'], input: [{ role: 'user', content: 'Hello' }] });
  });

  it('B11: sends every option by its name', async () => {
    const schema: JsonSchema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };
    const options = { temperature: 0.5, thinkingEffort: 'low', thinkingSummary: 'auto', stream: false, serverTools: [{ type: 'web_search' }], headers: { 'openai-organization': 'o' } } as const;
    const { body, headers } = await send([userMessage('x')], { systemPrompt: 'Be brief.', tools: [TOOL], toolChoice: { name: 'f' }, responseSchema: schema, maxOutputTokens: 500 }, { ...options, maxOutputTokens: 9 });

    expect(headers.get('openai-organization')).toBe('o');
    expect(body).toStrictEqual({
      model: MODEL,
      stream: false,
      store: false,
      temperature: 0.5,
      reasoning: { effort: 'low', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
      instructions: 'Be brief.',
      tools: [{ type: 'function', name: 'f', description: 'd', parameters: TOOL.inputSchema, strict: false }, { type: 'web_search' }],
      input: [{ role: 'user', content: 'x' }],
      tool_choice: { type: 'function', name: 'f' },
      max_output_tokens: 500,
      text: { format: { type: 'json_schema', name: 'answer', schema, strict: true } },
    });
    expect(checkResponsesRequest(body)).toStrictEqual([]);
  });

  it('OR1: the system prompt goes as instructions, cleaned; a blank one not at all', async () => {
    const { body } = await send([userMessage('x')], { systemPrompt: 'a\u0000b' });
    const { body: blank } = await send([userMessage('x')], { systemPrompt: ' \n' });

    expect(body['instructions']).toBe('ab');
    expect(typesOf(body['input'] as Item[])).toStrictEqual(['user']);
    expect(blank).not.toHaveProperty('instructions');
  });

  it('OR3, BR-031, BR-047: tools are never strict, their schemas made fit, and the given ones stay as they are', async () => {
    const odd: JsonSchema = { type: 'object', properties: { route: { type: 'string' } }, anyOf: [{ required: ['route'] }] };
    const before = JSON.stringify(odd);
    const { body } = await send([userMessage('x')], { tools: [{ ...TOOL, name: 'a.b', inputSchema: odd }, TOOL] });
    const tools = body['tools'] as Item[];

    expect(tools.map(({ strict }) => strict)).toStrictEqual([false, false]);
    expect(tools[0]).toMatchObject({ type: 'function', parameters: { type: 'object', properties: { route: { type: 'string' } } } });
    expect(checkResponsesRequest(body)).toStrictEqual([]);
    expect(JSON.stringify(odd)).toBe(before);
  });

  it('a response schema that the server could not hold a reply to is not strict', async () => {
    const { body } = await send([userMessage('x')], { responseSchema: { type: 'object', properties: { a: {} } } });

    expect(body['text']).toStrictEqual({ format: { type: 'json_schema', name: 'answer', schema: { type: 'object', properties: { a: {} } } } });
  });

  it.each([
    ['none', 'none'],
    ['required', 'required'],
    ['auto', undefined],
    [{ name: 'a.b' }, { type: 'function', name: expect.stringMatching(/^a_b_0x/) as unknown }],
  ] as const)('tool choice %j', async (toolChoice, expected) => {
    const { body } = await send([userMessage('x')], { tools: [{ ...TOOL, name: 'a.b' }], toolChoice });
    const { body: bare } = await send([userMessage('x')], { toolChoice });

    expect(body['tool_choice']).toStrictEqual(expected);
    expect(bare).not.toHaveProperty('tool_choice');
  });

  it.each([
    [1, 16],
    [100, 100],
    [1e9, 128_000],
  ])('%d output tokens are sent as %d', async (maxOutputTokens, sent) => {
    expect((await send([userMessage('x')], { maxOutputTokens })).body['max_output_tokens']).toBe(sent);
    expect((await send([userMessage('x')], { maxOutputTokens }, { capabilities: { maxOutputTokens: 64 } })).body['max_output_tokens']).toBe(Math.min(sent, 64));
  });

  it('a tool\'s wire name comes back as its own', async () => {
    const wireName = ((await send([userMessage('x')], { tools: [{ ...TOOL, name: 'a.b' }] })).body['tools'] as Item[])[0]!['name'] as string;
    const { content } = await responsesOn(fakeServer({ body: reply([called(1, wireName)]) })).chat(request([userMessage('x')], { tools: [{ ...TOOL, name: 'a.b' }] }));

    expect(content).toMatchObject([{ name: 'a.b' }]);
  });

  describe('the body option', () => {
    it('adds, replaces and removes fields, each of which stands there once', async () => {
      const { body, text } = await send([userMessage('x')], { systemPrompt: 's', tools: [TOOL], toolChoice: 'required', maxOutputTokens: 50 }, {
        body: { truncation: 'auto', store: true, include: undefined, instructions: 'mine', tools: undefined, tool_choice: 'none', max_output_tokens: 20, reasoning: { effort: 'high' } },
      });

      expect(body).toStrictEqual({ model: MODEL, stream: true, store: true, truncation: 'auto', instructions: 'mine', tool_choice: 'none', max_output_tokens: 20, reasoning: { effort: 'high' }, input: [{ role: 'user', content: 'x' }] });
      for (const name of Object.keys(body)) expect(text.split(`"${name}":`)).toHaveLength(2);
    });

    it('shares `text` with the response schema', async () => {
      const schema = { type: 'object', properties: {} };
      const verbose = { body: { text: { verbosity: 'low' } } };

      expect((await send([userMessage('x')], {}, verbose)).body['text']).toStrictEqual({ verbosity: 'low' });
      expect((await send([userMessage('x')], { responseSchema: schema }, verbose)).body['text']).toMatchObject({ verbosity: 'low', format: { schema } });
      expect((await send([userMessage('x')], { responseSchema: schema }, { body: { text: undefined } })).body).not.toHaveProperty('text');
    });
  });

  it.each([
    [{ model: '' }, /needs `model`/],
    [{ model: 'm', store: true }, /no option `store`/],
    [{ model: 'm', State: 'incremental' }, /Did you mean `state`/],
    [{ model: 'm', state: 'stateful' }, /`state` must be one of 'stateless', 'incremental'/],
    [{ model: 'm', thinkingHistory: 'fill' }, /`thinkingHistory` must be one of 'keep', 'drop'/],
    [{ model: 'm', body: { input: [] } }, /`body\.input` is written from the request/],
  ])('refuses %j', (options, words) => {
    expect(() => openAIResponses(options as never)).toThrow(TypeError);
    expect(() => openAIResponses(options as never)).toThrow(words);
  });

  it('says who it is', () => {
    const llm = openAIResponses({ model: 'm', systemPrompt: 's', capabilities: { contextWindow: 9 } });

    expect([llm.provider, llm.modelId, llm.systemPrompt, llm.capabilities]).toStrictEqual(['openai', 'm', 's', { contextWindow: 9 }]);
    expect(openAIResponses({ model: 'm', provider: 'azure' }).provider).toBe('azure');
  });
});

describe('messages', () => {
  it('sends texts as texts, and media where there is any', async () => {
    const { body } = await send([userMessage([{ type: 'text', text: 'a' }, { type: 'text', text: ' ' }, { type: 'text', text: 'b' }]), own({ type: 'text', text: 'c' }), userMessage([{ type: 'text', text: 'd' }, PNG])]);

    expect(body['input']).toStrictEqual([
      { role: 'user', content: 'a\n\nb' },
      { type: 'message', role: 'assistant', content: 'c' },
      { role: 'user', content: [{ type: 'input_text', text: 'd' }, { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'auto' }] },
    ]);
  });

  it('OR3: sends calls and their outputs, parallel ones too', async () => {
    const second: AssistantPart = { ...CALL, id: 'own2', providerId: 'call_2' };
    const sent = await send([userMessage('x'), own(CALL, second), result('one'), result('two', 'own2')]);

    expect(inputOf(sent).slice(1)).toStrictEqual([
      { type: 'function_call', call_id: 'call_1', arguments: '{"a":1}', name: 'f' },
      { type: 'function_call', call_id: 'call_2', arguments: '{"a":1}', name: 'f' },
      { type: 'function_call_output', call_id: 'call_1', output: 'one' },
      { type: 'function_call_output', call_id: 'call_2', output: 'two' },
    ]);
  });

  it('XC3: steering stands behind the outputs', async () => {
    const sent = await send([userMessage('x'), own(CALL), result(), userMessage('also y', { origin: 'steering' })]);

    expect(typesOf(inputOf(sent))).toStrictEqual(['user', 'function_call', 'function_call_output', 'user']);
  });

  it.each(['', '[1]', 'null', '{"a":'])('BR-092: malformed arguments %j go back as an empty object', async (inputText) => {
    expect(inputOf(await send([userMessage('x'), own({ ...CALL, inputText }), result()]))[1]).toMatchObject({ arguments: '{}' });
  });

  it('BR-053: blank texts and messages without anything are not sent, an output without text says so', async () => {
    const messages = [userMessage('a'), own(), userMessage(' \n'), own({ type: 'text', text: '' }, CALL), result(''), own({ type: 'text', text: ' ' })];
    const sent = await send(messages);

    expect(inputOf(sent)).toStrictEqual([
      { role: 'user', content: 'a' },
      { type: 'function_call', call_id: 'call_1', arguments: '{"a":1}', name: 'f' },
      { type: 'function_call_output', call_id: 'call_1', output: '(no output)' },
    ]);
  });

  it('BR-025, BR-089: cleans what servers refuse, and leaves all else as it is', async () => {
    const dirty = 'ok\u0000\u001b[31mred\u0007\ufffe a\ud83d tab\tline\r\n😀';
    const sent = await send([userMessage(dirty), own({ type: 'text', text: dirty }, { ...CALL, inputText: '{"a":"x\ud83d"}' }), result(dirty)], { systemPrompt: dirty, tools: [{ ...TOOL, description: dirty }] });
    const clean = 'ok[31mred\ufffd a\ufffd tab\tline\r\n😀';

    expect(sent.text).not.toMatch(/\p{Cs}/u);
    expect(inputOf(sent)).toMatchObject([{ content: clean }, { content: clean }, { arguments: '{"a":"x\ufffd"}' }, { output: clean }]);
    expect(checkResponsesRequest(sent.body)).toStrictEqual([]);
  });

  it('BR-046: ids of calls are legal, different, the same for call and output, and the same each time', async () => {
    const ids = ['functions.todo:0', `call_A|fc_${'f'.repeat(400)}`, 'a/b', 'call-2287d3de-269c-416e-a172-6e4ecc95e9ec-0', 'a/b', ''];
    const calls = ids.map((providerId, at): AssistantPart => ({ ...CALL, id: `own${at}`, providerId }));
    const messages = [userMessage('x'), own(...calls), ...ids.map((_id, at) => result('r', `own${at}`))];
    const before = JSON.stringify(messages);
    const [first, second] = [inputOf(await send(messages)), inputOf(await send(messages))];
    const sent = first.slice(1, 7).map((item) => item['call_id'] as string);

    for (const id of sent) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(new Set(sent).size).toBe(6);
    expect(sent[3]).toBe(ids[3]);
    expect(first.slice(7).map((item) => item['call_id'])).toStrictEqual(sent);
    expect(second).toStrictEqual(first);
    expect(JSON.stringify(messages)).toBe(before);
  });

  it('XC2: what only another provider reads is left out, and what is left is sent', async () => {
    const source = { provider: 'anthropic', modelId: 'claude' };
    const foreign: AssistantPart[] = [
      { type: 'thinking', text: 't', signature: 'S' },
      { type: 'provider', provider: 'anthropic', data: { type: 'server_tool_use' } },
      { type: 'text', text: 'a', providerData: { id: 'msg_1', phase: 'final_answer' } },
    ];
    const sent = await send([userMessage('x'), assistantMessage(foreign, { source }), assistantMessage(foreign.slice(0, 2), { source }), userMessage('y')]);

    expect(inputOf(sent)).toStrictEqual([{ role: 'user', content: 'x' }, { type: 'message', role: 'assistant', content: 'a' }, { role: 'user', content: 'y' }]);
  });

  it('what another adapter of the same provider attached is left out', async () => {
    const parts: AssistantPart[] = [
      { type: 'thinking', text: 't', redactedData: 'D', providerData: { model: MODEL, field: 'reasoning_content' } },
      { type: 'provider', provider: 'openai', data: { annotations: [] } },
      { type: 'provider', provider: 'openai', data: ['x'] },
      { type: 'text', text: 'a' },
    ];

    expect(typesOf(inputOf(await send([userMessage('x'), own(...parts)])))).toStrictEqual(['user', 'assistant']);
  });

  it('media of a model\'s own stand as a note', async () => {
    expect(inputOf(await send([userMessage('x'), own({ type: 'text', text: 'a' }, PNG)]))[1]).toMatchObject({ content: expect.stringContaining('image/png left out') as unknown });
  });
});

describe('OR7, B9: media', () => {
  it.each<[ToolResultPart, Item]>([
    [PNG, { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'auto' }],
    [{ type: 'media', mediaType: 'IMAGE/JPG', data: 'AAAA' }, { type: 'input_image', image_url: 'data:image/jpeg;base64,AAAA', detail: 'auto' }],
    [{ type: 'media', mediaType: 'image/svg+xml', url: 'https://h/i' }, { type: 'input_image', image_url: 'https://h/i', detail: 'auto' }],
    [{ type: 'media', mediaType: 'application/pdf', data: 'AAAA' }, { type: 'input_file', filename: 'document.pdf', file_data: 'data:application/pdf;base64,AAAA' }],
    [{ type: 'media', mediaType: 'application/pdf', url: 'https://h/d' }, { type: 'input_file', file_url: 'https://h/d' }],
    [{ type: 'media', mediaType: 'text/csv; charset=utf-8', data: 'YSxi' }, { type: 'input_file', filename: 'table.csv', file_data: 'data:text/csv;base64,YSxi' }],
    [{ type: 'media', mediaType: 'text/x-python', data: 'YSxi' }, { type: 'input_file', filename: 'file.txt', file_data: 'data:text/x-python;base64,YSxi' }],
    [{ type: 'media', mediaType: 'audio/mpeg', data: 'AAAA' }, { type: 'input_file', filename: 'audio.mp3', file_data: 'data:audio/mpeg;base64,AAAA' }],
    [{ type: 'media', mediaType: 'audio/x-wav', data: 'AAAA' }, { type: 'input_file', filename: 'audio.wav', file_data: 'data:audio/x-wav;base64,AAAA' }],
    [{ type: 'media', mediaType: 'audio/ogg', url: 'https://h/a' }, { type: 'input_file', file_url: 'https://h/a' }],
  ])('%j is sent, also in a tool\'s output', async (part, expected) => {
    const sent = await send([userMessage([part]), own(CALL), result([{ type: 'text', text: 'see' }, part])]);

    expect(inputOf(sent)[0]).toStrictEqual({ role: 'user', content: [expected] });
    expect(inputOf(sent)[2]).toMatchObject({ output: [{ type: 'input_text', text: 'see' }, expected] });
    expect(checkResponsesRequest(sent.body)).toStrictEqual([]);
  });

  it.each<[ToolResultPart]>([
    [{ type: 'media', mediaType: 'image/svg+xml', data: 'AAAA' }],
    [{ type: 'media', mediaType: 'audio/ogg', data: 'AAAA' }],
    [{ type: 'media', mediaType: 'video/mp4', data: 'AAAA' }],
    [{ type: 'media', mediaType: 'video/mp4', url: 'https://h/v' }],
    [{ type: 'media', mediaType: 'application/zip', data: 'AAAA' }],
    [{ type: 'media', mediaType: 'application/zip', url: 'https://h/z' }],
  ])('%j becomes a note, also in a tool\'s output', async (part) => {
    const sent = await send([userMessage([part]), own(CALL), result([part])]);

    expect(inputOf(sent)[0]).toStrictEqual({ role: 'user', content: `[${part.type === 'media' && part.mediaType} left out: this model cannot be sent it]` });
    expect(inputOf(sent)[2]).toMatchObject({ output: expect.stringContaining('left out') as unknown });
    expect(sent.text).not.toContain('AAAA');
  });

  it('BR-058: a model that takes no images gets notes', async () => {
    const sent = await send([userMessage([PNG]), own(CALL), result([PNG])], {}, { capabilities: { mediaTypes: [] } });

    expect(sent.text).not.toContain('iVBOR');
  });
});

describe('thinking in the history', () => {
  const think = (redactedData: string | undefined, text = '', providerData?: object): AssistantPart =>
    ({ type: 'thinking', text, ...(redactedData !== undefined && { redactedData }), ...(providerData !== undefined && { providerData }) }) as AssistantPart;

  it('OR2: parts with equal encrypted content are one item, others are not, empty ones are kept', async () => {
    const sent = await send([userMessage('x'), own(think('E1', 'a'), think('E1', 'b'), think('E1'), think('E2', 'c'), think('E3'), { type: 'text', text: 'y' })]);

    expect(inputOf(sent).slice(1)).toStrictEqual([
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'a' }, { type: 'summary_text', text: 'b' }], encrypted_content: 'E1' },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'c' }], encrypted_content: 'E2' },
      { type: 'reasoning', summary: [], encrypted_content: 'E3' },
      { type: 'message', role: 'assistant', content: 'y' },
    ]);
  });

  it('BR-014, BR-028, BR-088: items go back as they came, in their order, with their ids', async () => {
    const first = reply([reasoning(1, { summary: ['a', 'b'].map((text) => ({ type: 'summary_text', text })) }), called(1)], { id: 'resp_1' });
    const second = reply([reasoning(2), said(2, 'done', { phase: 'final_answer' })], { id: 'resp_2' });
    const fake = fakeServer({ body: first }, { body: second }, OK);
    const llm = responsesOn(fake);
    const history: Message[] = [userMessage('go')];
    history.push(stored(await llm.chat(request([...history]))), result('r', 'own_resp_1_1'));
    history.push(stored(await llm.chat(request([...history]))), userMessage('more'));
    await llm.chat(request([...history]));

    expect(inputOf(fake.sent[2]!)).toStrictEqual([
      { role: 'user', content: 'go' },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'a' }, { type: 'summary_text', text: 'b' }], encrypted_content: 'E1' },
      { type: 'function_call', call_id: 'call_1', arguments: '{"a":1}', name: 'f', id: 'fc_1' },
      { type: 'function_call_output', call_id: 'call_1', output: 'r' },
      { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'E2' },
      { type: 'message', id: 'msg_2', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'done', annotations: [] }], phase: 'final_answer' },
      { role: 'user', content: 'more' },
    ]);
    expect(fake.sent[2]!.text.startsWith(fake.sent[1]!.text.slice(0, -2))).toBe(true);
    for (const { body } of fake.sent) expect(checkResponsesRequest(body)).toStrictEqual([]);
  });

  it('BR-034: nothing is kept at the server, and thinking without its encrypted content is not sent', async () => {
    const fake = await sentBack(reply([reasoning(1), called(1), reasoning(2, { encrypted_content: null }), called(2)]), (message) => [
      userMessage('x'),
      message,
      ...message.content.flatMap((part) => (part.type === 'tool_call' ? [result('r', part.id)] : [])),
    ]);

    for (const { body } of fake.sent) expect(body).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] });
    expect(inputOf(fake.sent[1]!).slice(1, 4)).toStrictEqual([
      // Its ids would send the server looking for what it does not have.
      { type: 'reasoning', summary: [], encrypted_content: 'E1' },
      { type: 'function_call', call_id: 'call_1', arguments: '{"a":1}', name: 'f' },
      { type: 'function_call', call_id: 'call_2', arguments: '{"a":1}', name: 'f' },
    ]);
    expect(checkResponsesRequest(fake.sent[1]!.body)).toStrictEqual([]);
  });

  it('BR-014: thinking that led to nothing is not sent, nor are ids of items whose reply is not all there', async () => {
    const aborted = assistantMessage([think('E3', 't', { model: MODEL, type: 'reasoning', id: 'rs_3' })], { source: SOURCE, status: 'interrupted' });
    const sent = await send([userMessage('x'), aborted, userMessage('y'), own({ type: 'text', text: 'z', providerData: { id: 'msg_1' } }, think('E4', '', { model: MODEL, type: 'reasoning', id: 'rs_4' }))]);

    expect(inputOf(sent).slice(1)).toStrictEqual([{ role: 'user', content: 'y' }, { type: 'message', role: 'assistant', content: 'z' }]);
  });

  it('BR-014: ids go only where thinking goes with them, and the reply was not changed', async () => {
    const parts = (await responsesOn(fakeServer({ body: reply([reasoning(1), said(1, 'a'), called(1)]) })).chat(request())).content;
    const message = stored({ content: parts, stopReason: 'tool_use', usage: {} as never, responseId: 'r' });
    const ids = async (content: readonly AssistantPart[], status?: 'interrupted'): Promise<unknown> => {
      const call = content.find((part) => part.type === 'tool_call');
      const sent = await send([userMessage('x'), { ...message, content, status }, ...(call === undefined ? [] : [result('r', call.id)])]);
      expect(checkResponsesRequest(sent.body)).toStrictEqual([]);
      return inputOf(sent).slice(1).map(({ type, id }) => [type, id]).filter(([type]) => type !== 'function_call_output');
    };
    const [thinking, text, call] = message.content as [AssistantPart, AssistantPart, AssistantPart];

    expect(await ids([thinking, text, call])).toStrictEqual([['reasoning', 'rs_1'], ['message', 'msg_1'], ['function_call', 'fc_1']]);
    expect(await ids([text, call])).toStrictEqual([['message', undefined], ['function_call', undefined]]);
    expect(await ids([thinking, { type: 'text', text: 'changed' }, call])).toStrictEqual([['reasoning', undefined], ['message', undefined], ['function_call', undefined]]);
    expect(await ids([thinking, { type: 'text', text: ' ', providerData: { id: 'msg_1' } }, call])).toStrictEqual([['reasoning', undefined], ['function_call', undefined]]);
    expect(await ids([thinking, text], 'interrupted')).toStrictEqual([['reasoning', undefined], ['message', undefined]]);
  });

  it('goes back to the same provider and model only', async () => {
    const part = think('E', 't', { model: 'gpt-5-other', type: 'reasoning' });
    const other = assistantMessage([think('E'), { type: 'text', text: 'y' }], { source: { provider: 'azure', modelId: MODEL } });
    const older = assistantMessage([think('E'), { type: 'text', text: 'y' }], { source: { provider: 'openai', modelId: 'gpt-5-older' } });
    const named = assistantMessage([think('E', '', { model: MODEL, type: 'reasoning' }), { type: 'text', text: 'y' }], { source: { provider: 'openai', modelId: `${MODEL}-2025-08-07` } });

    const types = async (message: Message): Promise<unknown> => typesOf(inputOf(await send([userMessage('x'), message])).slice(1));

    expect(await types(own(part, { type: 'text', text: 'y' }))).toStrictEqual(['assistant']);
    expect(await types(other)).toStrictEqual(['assistant']);
    expect(await types(older)).toStrictEqual(['assistant']);
    expect(await types(named)).toStrictEqual(['reasoning', 'assistant']);
  });

  it('BR-088: thinking that a server shows as it is goes back as it is', async () => {
    const item = { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] };
    const fake = await sentBack(reply([item, said(1, 'a')]), (message) => [userMessage('x'), message, userMessage('y')]);
    const both = await sentBack(reply([{ ...item, summary: [{ type: 'summary_text', text: 's' }], encrypted_content: 'E' }, said(1, 'a')]), (message) => [userMessage('x'), message, userMessage('y')]);

    const two = await sentBack(reply([item, item, said(1, 'a')]), (message) => [userMessage('x'), message, userMessage('y')]);

    expect(inputOf(fake.sent[1]!)[1]).toStrictEqual({ type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] });
    expect(typesOf(inputOf(two.sent[1]!))).toStrictEqual(['user', 'reasoning', 'reasoning', 'assistant', 'user']);
    expect(inputOf(both.sent[1]!)[1]).toMatchObject({ id: 'rs_1', summary: [{ type: 'summary_text', text: 's' }], content: [{ type: 'reasoning_text', text: 'hm' }], encrypted_content: 'E' });
  });

  it('BR-119: the reply that is being gone on with stays as it is, and so it does later', async () => {
    const body = reply([reasoning(1), said(1, 'x'), reasoning(2), called(1)]);
    const fake = fakeServer({ body }, OK, OK);
    const llm = responsesOn(fake);
    const message = stored(await llm.chat(request()));
    const history = [userMessage('Hello'), message, result('r', 'own_resp_1_3')];
    await llm.chat(request(history));
    await llm.chat(request([...history, own({ type: 'text', text: 'ok' }), userMessage('next')]));

    expect(inputOf(fake.sent[1]!).slice(1, 5).map(({ id }) => id)).toStrictEqual(['rs_1', 'msg_1', 'rs_2', 'fc_1']);
    expect(inputOf(fake.sent[2]!).slice(0, 6)).toStrictEqual(inputOf(fake.sent[1]!));
  });

  it('`thinkingHistory: drop` sends none, and asks for none in encrypted form', async () => {
    const { body } = await send([userMessage('x'), own(think('E1'), { type: 'text', text: 'y' })], {}, { thinkingHistory: 'drop' });

    expect(typesOf(body['input'] as Item[])).toStrictEqual(['user', 'assistant']);
    expect(body).not.toHaveProperty('include');
  });

  it.each(['gpt-4o', 'gpt-4.1-mini', 'openai/gpt-4.1', 'gpt-3.5-turbo', 'chatgpt-4o-latest', 'gpt-5-chat-latest', 'gpt-5.1-chat-latest'])('%s does not think, so nothing is asked of it', async (model) => {
    expect((await send([userMessage('x')], {}, { model })).body).not.toHaveProperty('include');
  });

  it.each(['gpt-5', 'gpt-5.1-codex', 'o4-mini', 'grok-4', 'openai/gpt-oss-20b'])('%s may think', async (model) => {
    expect((await send([userMessage('x')], {}, { model })).body).toHaveProperty('include');
  });
});

describe('B15: items of the server\'s own tools', () => {
  const search: Item = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } };
  const back = async (...items: readonly Item[]): Promise<readonly Item[]> => {
    const fake = await sentBack(reply([...items, said(1, 'a')]), (message) => [userMessage('x'), message, userMessage('y')]);
    return inputOf(fake.sent[1]!).slice(1, -2);
  };

  it('go back unchanged and in order, with the thinking that led to them', async () => {
    expect(await back(reasoning(1), search, { type: 'brand_new_call', id: 'n', data: [1] })).toStrictEqual([reasoning(1), search, { type: 'brand_new_call', id: 'n', data: [1] }]);
    expect(await back(reasoning(1), search, reasoning(2, { encrypted_content: null }))).toStrictEqual([reasoning(1), search]);
  });

  it.each(['local_shell_call', 'shell_call', 'apply_patch_call', 'computer_call'])('that nobody answered do not, with the thinking that led to them: %s', async (type) => {
    const call = { type, id: 'x_1', call_id: 'call_1', status: 'completed' };

    expect(await back(call)).toStrictEqual([]);
    expect(await back(call, { type: `${type}_output`, id: 'y', call_id: 'call_2' })).toStrictEqual([]);
    expect(await back(call, { type: `${type}_output`, id: 'y', call_id: 'call_1' })).toHaveLength(2);
  });

  it('that ask the client to search or to approve do not either', async () => {
    const ask = { type: 'tool_search_call', id: 't', call_id: 'c', execution: 'client', arguments: {} };

    expect(await back(ask, { type: 'mcp_approval_request', id: 'm' })).toStrictEqual([]);
    expect(await back({ ...ask, execution: 'server' })).toHaveLength(1);
    expect(await back(ask, { type: 'tool_search_output', call_id: 'c', execution: 'client', tools: [] })).toHaveLength(2);
  });

  it('a call of a custom tool goes back as one, and so does its output', async () => {
    const call = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_1', name: 'patch', input: 'a\u0007b' };
    const fake = await sentBack(reply([reasoning(1), call]), (message) => [userMessage('x'), message, result('not JSON', 'own_resp_1_1'), userMessage('y')]);

    expect(inputOf(fake.sent[1]!).slice(2, 4)).toStrictEqual([
      { type: 'custom_tool_call', call_id: 'call_1', input: 'ab', name: 'patch', id: 'ctc_1' },
      { type: 'custom_tool_call_output', call_id: 'call_1', output: 'not JSON' },
    ]);
  });

  it('what belongs to a call goes back with it', async () => {
    const fake = await sentBack(reply([called(1, 'f', '{}', { namespace: 'n', caller: { type: 'direct' } })]), (message) => [userMessage('x'), message, result('r', 'own_resp_1_0')]);

    expect(inputOf(fake.sent[1]!)[1]).toStrictEqual({ type: 'function_call', call_id: 'call_1', arguments: '{}', name: 'f', namespace: 'n', caller: { type: 'direct' } });
  });
});

describe('what a server refuses is said in another way', () => {
  const refuse = (message: string, code: string | null = null): { body: string; status: number } => ({ status: 400, body: JSON.stringify({ error: { message, type: 'invalid_request_error', code } }) });
  const answered = (items: readonly Item[], id = 'resp_1'): { body: string } => ({ body: reply(items, { id }) });

  it.each([
    'The input has to include a message.',
    "Invalid value: 'xhigh'. Supported values include 'low', 'medium' and 'high'.",
    'Unsupported value: tools must include a name',
    "Invalid schema for function 'f': properties must include all keys not allowed",
    "Invalid schema for function 'grep': In context=('properties', 'include'), schema must have a 'type' key.",
    'Your messages include content that is not allowed by policy',
    "Unknown parameter: 'tools[0].include'.",
    'The request must include: a text. Numbers are not supported.',
  ])('a refusal that only holds the word is none of what is asked for: %s', async (message) => {
    const fake = fakeServer(refuse(message), OK);
    const llm = responsesOn(fake);

    expect(await errorOf(llm.chat(request()))).toMatchObject({ kind: 'invalid_request' });
    await llm.chat(request());
    expect(fake.sent.map(({ body }) => 'include' in body)).toStrictEqual([true, true]);
  });

  it.each([
    "Unknown parameter: 'include'.",
    'include: Extra inputs are not permitted',
    "Unrecognized key(s) in object: 'include'",
    "Invalid value: 'reasoning.encrypted_content'. Supported values are: 'file_search_call.results' and 'message.input_image.image_url'.",
    "[{'type': 'literal_error', 'loc': ('body', 'include', 0), 'msg': 'Input should be another'}]",
    "The 'include' parameter is not supported by this server.",
    'Encrypted content is not supported with this model.',
  ])('encrypted thinking that is not to be had is not asked for again: %s', async (message) => {
    const fake = fakeServer(refuse(message), OK);
    const llm = responsesOn(fake);
    const failures: string[] = [];
    await llm.chat(request(undefined, { onAttemptFailed: ({ error }) => void failures.push(error.message) }));
    await llm.chat(request());

    expect(fake.sent.map(({ body }) => 'include' in body)).toStrictEqual([true, false, false]);
    expect(failures).toStrictEqual([expect.stringContaining(message) as string]);
  });

  it('it is asked for again if that was not what the server refused', async () => {
    const fake = fakeServer(refuse("Unknown parameter: 'include'."), refuse('The model is not there.'), OK);
    const llm = responsesOn(fake);

    expect(await errorOf(llm.chat(request()))).toMatchObject({ message: expect.stringContaining('not there') as string });
    await llm.chat(request());
    expect(fake.sent.map(({ body }) => 'include' in body)).toStrictEqual([true, false, true]);
  });

  it.each([
    "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content item_id did not match the target item id.",
    "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    "Invalid 'input[1].id': string too long.",
    "Invalid 'input[1].content': array too long. Expected an array with maximum length 0.",
    'Duplicate item found with id rs_1. Remove duplicate items from your input and try again.',
    "item['content'] is not an array",
    'input item ID does not belong to this connection',
  ])('BR-014, BR-034: thinking that is refused is left out from then on: %s', async (message) => {
    const fake = fakeServer(answered([reasoning(1), said(1, 'a')]), refuse(message), OK);
    const llm = responsesOn(fake);
    const history = [userMessage('Hello'), stored(await llm.chat(request())), userMessage('next')];
    const { content } = await llm.chat(request(history));
    await llm.chat(request([...history, own({ type: 'text', text: 'ok' }), userMessage('last')]));

    expect(content).toMatchObject([{ text: 'ok' }]);
    expect(fake.sent.map((sent) => typesOf(inputOf(sent)))).toStrictEqual([
      ['user'],
      ['user', 'reasoning', 'assistant', 'user'],
      ['user', 'assistant', 'user'],
      ['user', 'assistant', 'user', 'assistant', 'user'],
    ]);
  });

  it('thinking that is refused within a stream is left out as well, and a server that is broken is not asked twice', async () => {
    const refused = { body: `data: ${JSON.stringify({ type: 'error', code: 'invalid_encrypted_content', message: 'could not be verified' })}\n\n` };
    const fake = fakeServer(answered([reasoning(1), said(1, 'a')]), refused, { status: 500, body: JSON.stringify({ error: { message: 'encrypted content' } }) });
    const llm = responsesOn(fake);
    const history = [userMessage('Hello'), stored(await llm.chat(request())), userMessage('next')];

    expect(await errorOf(llm.chat(request(history)))).toMatchObject({ kind: 'server', status: 500 });
    expect(fake.sent.map((sent) => typesOf(inputOf(sent)))).toStrictEqual([['user'], ['user', 'reasoning', 'assistant', 'user'], ['user', 'assistant', 'user']]);
  });

  it('thinking of replies that come later is sent all the same', async () => {
    const fake = fakeServer(answered([reasoning(1), said(1, 'a')]), refuse('encrypted content could not be verified', 'invalid_encrypted_content'), answered([reasoning(2), said(2, 'b')], 'resp_2'), OK);
    const llm = responsesOn(fake);
    const history: Message[] = [userMessage('Hello'), stored(await llm.chat(request())), userMessage('next')];
    history.push(stored(await llm.chat(request([...history]))), userMessage('last'));
    await llm.chat(request(history));

    expect(typesOf(inputOf(fake.sent[3]!))).toStrictEqual(['user', 'assistant', 'user', 'reasoning', 'assistant', 'user']);
  });

  it('a refusal that is left when nothing can be left out is an error', async () => {
    const fake = fakeServer(refuse('Encrypted content could not be verified.'));
    const history = [userMessage('x'), own({ type: 'text', text: 'y' }), userMessage('z')];

    expect(await errorOf(responsesOn(fake).chat(request(history)))).toMatchObject({ kind: 'invalid_request', status: 400 });
    expect(fake.sent).toHaveLength(1);
  });

  it('another refusal is an error at once', async () => {
    const fake = fakeServer(answered([reasoning(1), said(1, 'a')]), refuse('temperature is not supported'));
    const llm = responsesOn(fake);
    const history = [userMessage('Hello'), stored(await llm.chat(request())), userMessage('next')];

    expect(await errorOf(llm.chat(request(history)))).toMatchObject({ kind: 'invalid_request' });
    expect(fake.sent).toHaveLength(2);
  });
});
