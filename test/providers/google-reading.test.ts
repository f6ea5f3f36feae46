/**
 * Gemini answers: parts, signatures, ends, usage and odd bodies. Each body is read whole, byte by byte, and cut within
 * characters and line ends. Black-box.
 */
import { describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, defineTool, type LLMError, runTurn } from 'turnloop';
import { errorOf, events, fakeServer, request } from './fake-server.ts';
import { bodyOf, chunk, errorOfGemini, geminiOn, OK, readGemini, stream } from './google-support.ts';

const CALL = { functionCall: { name: 'f', args: { a: 1 } } };

describe('the end of a reply', () => {
  it.each([
    ['STOP', 'end_turn'],
    ['stop', 'end_turn'],
    ['MAX_TOKENS', 'max_tokens'],
    ['max_tokens', 'max_tokens'],
    ['CONTINUATION', 'max_tokens'],
    ['SAFETY', 'filtered'],
    ['RECITATION', 'filtered'],
    ['LANGUAGE', 'filtered'],
    ['BLOCKLIST', 'filtered'],
    ['PROHIBITED_CONTENT', 'filtered'],
    ['SPII', 'filtered'],
    ['IMAGE_SAFETY', 'filtered'],
    ['IMAGE_PROHIBITED_CONTENT', 'filtered'],
    ['IMAGE_RECITATION', 'filtered'],
    ['FUNCTION_CALL', 'tool_use'],
    ['OTHER', 'unknown'],
    ['TOO_MANY_TOOL_CALLS', 'unknown'],
    ['NO_IMAGE', 'unknown'],
    ['BRAND_NEW', 'unknown'],
    ['constructor', 'unknown'],
    ['__proto__', 'unknown'],
  ])('FR1, BR-035, BR-139: reads finish reason %s as %s', async (word, stopReason) => {
    const streamed = await readGemini(stream(chunk([{ text: 'x' }]), chunk([], word)));
    const plain = await readGemini(JSON.stringify(chunk([{ text: 'x' }], word)));
    const snake = await readGemini(stream({ candidates: [{ content: { parts: [{ text: 'x' }] }, finish_reason: word }] }));

    for (const { response } of [streamed, plain, snake]) expect(response).toMatchObject({ stopReason, rawStopReason: word });
  });

  it('FR1: an unspecified reason never stands in the place of a real one', async () => {
    const { response } = await readGemini(stream(chunk([{ text: 'a' }], 'FINISH_REASON_UNSPECIFIED'), chunk([{ text: 'b' }], 'MAX_TOKENS'), chunk([], 'finish_reason_unspecified')));

    expect(response).toMatchObject({ stopReason: 'max_tokens', rawStopReason: 'MAX_TOKENS', content: [{ text: 'ab' }] });
  });

  it('FR1, B7: an unspecified reason alone ends no stream, and leaves the end of a whole body open', async () => {
    const unspecified = chunk([{ text: 'par' }], 'FINISH_REASON_UNSPECIFIED');

    expect(await errorOfGemini(stream(unspecified))).toMatchObject({ kind: 'network', code: 'stream_incomplete', partial: [{ text: 'par' }] });
    expect((await readGemini(JSON.stringify(unspecified))).response).toMatchObject({ stopReason: 'unknown', rawStopReason: 'FINISH_REASON_UNSPECIFIED' });
  });

  it('FR1: a reply without a reason is a cut one, but for a whole body', async () => {
    expect(await errorOfGemini(stream(chunk([CALL])))).toMatchObject({ kind: 'network', code: 'stream_incomplete', retryable: true, partial: undefined });
    const { response } = await readGemini(JSON.stringify(chunk([CALL])));
    expect(response.stopReason).toBe('tool_use');
    expect(response).not.toHaveProperty('rawStopReason');
  });

  it('BR-035: a stop with calls is tool use, a limit with calls is a limit', async () => {
    expect((await readGemini(stream(chunk([CALL], 'STOP')))).response).toMatchObject({ stopReason: 'tool_use', rawStopReason: 'STOP' });
    expect((await readGemini(stream(chunk([CALL], 'MAX_TOKENS')))).response).toMatchObject({ stopReason: 'max_tokens' });
  });

  it.each([
    ['MALFORMED_FUNCTION_CALL', 'malformed_response', true],
    ['UNEXPECTED_TOOL_CALL', 'malformed_response', true],
    ['malformed_function_call', 'malformed_response', true],
    ['MISSING_THOUGHT_SIGNATURE', 'invalid_history', false],
  ])('BR-035: takes %s as a failure, with what Gemini says of it', async (word, kind, retryable) => {
    const end = { candidates: [{ finishReason: word, finishMessage: 'Malformed function call: print(f(', index: 0 }], usageMetadata: { promptTokenCount: 9 } };
    const error = await errorOfGemini(stream(chunk([CALL, { text: ')}]' }]), end));

    expect(error).toMatchObject({ kind, retryable, code: word.toUpperCase(), usage: { inputTokens: 9 }, partial: [{ type: 'text', text: ')}]' }] });
    expect(error.message).toContain('Malformed function call: print(f(');
  });

  it('BR-065: reports a stream that just stops, with the text so far', async () => {
    expect(await errorOfGemini(stream(chunk([{ text: 'The answer is 4' }])))).toMatchObject({
      kind: 'network',
      code: 'stream_incomplete',
      retryable: true,
      partial: [{ type: 'text', text: 'The answer is 4' }],
    });
  });

  it('BR-143, BR-145: uses a last event without its blank line, and reports half of one as a cut', async () => {
    const last = `data: ${JSON.stringify(chunk([{ text: 'z' }], 'STOP'))}`;

    expect((await readGemini(`${last}\n`)).response).toMatchObject({ content: [{ text: 'z' }] });
    expect(await errorOfGemini(last.slice(0, -9))).toMatchObject({ kind: 'network', code: 'stream_incomplete' });
  });

  it('BR-091: keeps a finished reply whose connection breaks behind its end', async () => {
    const failure = new TypeError('terminated', { cause: { code: 'ECONNRESET' } });
    const broken = { body: stream(chunk([{ text: 'whole' }], 'STOP')), failure };
    const halfway = { body: stream(chunk([{ text: 'half' }])), failure };

    expect(await geminiOn(fakeServer(broken)).chat(request())).toMatchObject({ stopReason: 'end_turn', content: [{ text: 'whole' }] });
    expect(await errorOf(geminiOn(fakeServer(halfway)).chat(request()))).toMatchObject({ kind: 'network', partial: [{ text: 'half' }] });
  });

  it('is also marked by proxies that add an end mark', async () => {
    expect((await readGemini(events([chunk([{ text: 'x' }], 'STOP')]))).response).toMatchObject({ content: [{ text: 'x' }] });
  });
});

describe('empty answers', () => {
  it.each([
    ['nothing at all', ''],
    ['comments alone', ': hb\n\n: hb\n\n'],
    ['usage alone', stream({ usageMetadata: { promptTokenCount: 5 } })],
  ])('BR-109: reports a stream of %s', async (_name, body) => {
    expect(await errorOfGemini(body)).toMatchObject({ kind: 'network', retryable: true });
  });

  it.each([
    ['no parts', [chunk([], 'STOP')]],
    ['an empty text', [chunk([{ text: '' }], 'STOP')]],
    ['thinking only', [chunk([{ text: 'hm', thought: true }]), chunk([], 'STOP')]],
    ['thinking and white space', [chunk([{ text: 'hm', thought: true }, { text: ' \n' }], 'STOP')]],
    ['a signature only', [chunk([{ text: '', thoughtSignature: 'Uw==' }], 'STOP')]],
    ['sources only', [{ candidates: [{ groundingMetadata: { webSearchQueries: ['q'] }, finishReason: 'STOP' }] }]],
  ])('GN8, GN2: reports a reply with %s as empty', async (_name, chunks) => {
    expect(await errorOfGemini(stream(...chunks))).toMatchObject({ kind: 'malformed_response', code: 'empty', retryable: true, message: expect.stringContaining('STOP') });
  });

  it('GN8: takes an empty reply that was filtered, or cut by the limit, as one', async () => {
    expect((await readGemini(stream(chunk([], 'SAFETY')))).response).toMatchObject({ stopReason: 'filtered', content: [] });
    expect((await readGemini(stream(chunk([{ text: 'hm', thought: true }], 'MAX_TOKENS')))).response).toMatchObject({ stopReason: 'max_tokens' });
    expect((await readGemini(stream(chunk([{ text: 'hm', thought: true }, CALL], 'STOP')))).response.content).toHaveLength(2);
  });
});

describe('a prompt that is blocked', () => {
  it('is an error that no retry helps, with the reason', async () => {
    const error = await errorOfGemini(stream({ promptFeedback: { blockReason: 'PROHIBITED_CONTENT', blockReasonMessage: 'Not this.' }, usageMetadata: { promptTokenCount: 7 } }));

    expect(error).toMatchObject({ kind: 'content_filter', retryable: false, code: 'PROHIBITED_CONTENT', usage: { inputTokens: 7 } });
    expect(error.message).toMatch(/the prompt was blocked \(PROHIBITED_CONTENT\): Not this\./);
    expect(await errorOfGemini(JSON.stringify({ promptFeedback: { blockReason: 'SAFETY' } }))).toMatchObject({ kind: 'content_filter', code: 'SAFETY' });
  });

  it('keeps what came before, and is told apart from mere feedback', async () => {
    const blocked = stream(chunk([{ text: 'par' }]), { prompt_feedback: { block_reason: 'OTHER' } });
    const fine = stream({ promptFeedback: { safetyRatings: [] } }, { promptFeedback: { blockReason: 'BLOCKED_REASON_UNSPECIFIED' } }, chunk([{ text: 'x' }], 'STOP'));

    expect(await errorOfGemini(blocked)).toMatchObject({ kind: 'content_filter', partial: [{ text: 'par' }] });
    expect((await readGemini(fine)).response.content).toStrictEqual([{ type: 'text', text: 'x' }]);
  });
});

describe('text and thinking', () => {
  it('GN1, GN5: joins 10,000 pieces of text to one part', async () => {
    const body = stream(...Array.from({ length: 10_000 }, () => chunk([{ text: 'ab' }])), chunk([], 'STOP'));
    let deltas = 0;
    const { content } = await geminiOn(fakeServer({ body })).chat(request(undefined, { onDelta: () => void (deltas += 1) }));

    expect(content).toStrictEqual([{ type: 'text', text: 'ab'.repeat(10_000) }]);
    expect(deltas).toBe(10_000);
  });

  it('GN1, GN3: joins neighbouring thinking, and keeps think, text, think, text as four parts with their deltas in order', async () => {
    const thought = (text: string): object => ({ text, thought: true });
    const { response, deltas } = await readGemini(stream(chunk([thought('a'), thought('b')]), chunk([{ text: 'c' }]), chunk([thought('d')]), chunk([{ text: 'e', thought: false }], 'STOP')));

    expect(response.content.map((part) => [part.type, 'text' in part ? part.text : ''])).toStrictEqual([['thinking', 'ab'], ['text', 'c'], ['thinking', 'd'], ['text', 'e']]);
    expect(deltas.map((each) => (each.type === 'tool_call' ? '' : each.text)).join('')).toBe('abcde');
  });

  it('GG4: keeps a signature on the part where it came, and never joins it with another', async () => {
    const { response } = await readGemini(
      stream(
        chunk([{ text: 'so ', thought: true }]),
        chunk([{ text: 'so', thought: true, thoughtSignature: 'QQ==' }]),
        chunk([{ text: 'more', thought: true }]),
        chunk([{ text: 'I ' }]),
        chunk([{ text: 'look', thoughtSignature: 'Qg==' }]),
        chunk([{ text: '.' }]),
        chunk([{ ...CALL, thoughtSignature: 'Qw==' }, CALL]),
        chunk([{ text: '', thoughtSignature: 'RA==' }], 'STOP'),
      ),
    );
    const signed = (thoughtSignature: string): object => ({ providerData: { model: 'gemini-2.5-flash', thoughtSignature } });
    const call = { type: 'tool_call', name: 'f', inputText: '{"a":1}' };

    expect(response.content).toStrictEqual([
      { type: 'thinking', text: 'so so', signature: 'QQ==', ...signed('QQ==') },
      { type: 'thinking', text: 'more', providerData: { model: 'gemini-2.5-flash' } },
      { type: 'text', text: 'I ' },
      { type: 'text', text: 'look', ...signed('Qg==') },
      { type: 'text', text: '.' },
      { ...call, ...signed('Qw==') },
      call,
      { type: 'text', text: '', ...signed('RA==') },
    ]);
  });

  it('GG4: takes a signature that stands alone in its part as that of an empty text', async () => {
    const { response } = await readGemini(stream(chunk([{ text: 'x' }]), chunk([{ thoughtSignature: 'Uw==' }], 'STOP')));

    expect(response.content[1]).toStrictEqual({ type: 'text', text: '', providerData: { model: 'gemini-2.5-flash', thoughtSignature: 'Uw==' } });
  });

  it('GG4, BR-037: a turn sends every part back as it came, also after a save and a load', async () => {
    const parts = [{ text: 'hm', thought: true }, { text: 'I look', thoughtSignature: 'QQ==' }, { ...CALL, thoughtSignature: 'Qg==' }, CALL, { text: '', thoughtSignature: 'Qw==' }];
    const fake = fakeServer({ body: stream(...parts.map((part) => chunk([part])), chunk([], 'STOP')) }, OK);
    const transcript = createTranscript();
    const dispatchEvent = createEventDispatcher({ record: transcript.record, emit: () => {} });
    const tool = { name: 'f', description: 'd', inputSchema: { type: 'object', properties: {} }, execute: () => 'r' };
    const { stopReason } = await runTurn({ llm: geminiOn(fake), tools: [tool], buildMessages: transcript.buildMessages, dispatchEvent, input: 'hi' });
    const loaded = createTranscript(JSON.parse(JSON.stringify(transcript.events)) as typeof transcript.events);
    await geminiOn(fake).chat(request(loaded.buildMessages()));

    expect(stopReason).toBe('end_turn');
    for (const sent of fake.sent.slice(1)) expect(bodyOf(sent).contents[1]).toStrictEqual({ role: 'model', parts });
  });

  it('stays with a reply that was cut off when something followed it', async () => {
    const thought = { text: 'hm', thought: true, thoughtSignature: 'QQ==' };

    expect((await errorOfGemini(stream(chunk([thought]), chunk([{ text: 'par' }])))).partial).toMatchObject([{ type: 'thinking', text: 'hm', signature: 'QQ==' }, { type: 'text', text: 'par' }]);
    expect((await errorOfGemini(stream(chunk([thought])))).partial).toBeUndefined();
  });
});

describe('calls', () => {
  it('BR-097, BR-104: come whole, several in a part list, with their deltas in order', async () => {
    const { response, deltas } = await readGemini(stream(chunk([{ text: 'a' }, { functionCall: { name: 'f', args: { b: [1, 'é'], c: null } } }, { functionCall: { name: 'g' } }]), chunk([{ functionCall: { name: 'f', args: {} } }], 'STOP')));

    expect(response.content).toStrictEqual([
      { type: 'text', text: 'a' },
      { type: 'tool_call', name: 'f', inputText: '{"b":[1,"é"],"c":null}' },
      { type: 'tool_call', name: 'g', inputText: '{}' },
      { type: 'tool_call', name: 'f', inputText: '{}' },
    ]);
    expect(deltas.slice(1)).toStrictEqual([
      { type: 'tool_call', callIndex: 0, name: 'f', providerId: undefined, inputText: '{"b":[1,"é"],"c":null}' },
      { type: 'tool_call', callIndex: 1, name: 'g', providerId: undefined, inputText: '{}' },
      { type: 'tool_call', callIndex: 2, name: 'f', providerId: undefined, inputText: '{}' },
    ]);
  });

  it('GN4, GN5: come a hundred at once, and with a megabyte of arguments', async () => {
    const many = Array.from({ length: 100 }, (_, at) => ({ functionCall: { name: `f${at % 7}`, args: { at } } }));
    const args = { text: 'é'.repeat(500_000) };
    const body = stream(...many.map((part) => chunk([part])), chunk([{ functionCall: { name: 'big', args } }], 'STOP'));
    const { content } = await geminiOn(fakeServer({ body })).chat(request());

    expect(content.map((part) => part.type === 'tool_call' && [part.name, part.inputText])).toStrictEqual([
      ...many.map(({ functionCall: call }) => [call.name, JSON.stringify(call.args)]),
      ['big', JSON.stringify(args)],
    ]);
  });

  it('GG3: have the provider\'s id where there is one, however often, and none else', async () => {
    const { response } = await readGemini(stream(chunk([{ functionCall: { id: 'x1', name: 'f' } }, { functionCall: { id: 'x1', name: 'f' } }, { functionCall: { id: '', name: 'f' } }], 'STOP')));

    expect(response.content.map((part) => part.type === 'tool_call' && part.providerId)).toStrictEqual(['x1', 'x1', undefined]);
  });

  it('GG3: get ids of the loop\'s own, unique also for parallel calls and repeated upstream ids', async () => {
    const step = { body: stream(chunk([{ functionCall: { id: 'x', name: 'f' } }, { functionCall: { id: 'x', name: 'f' } }, { functionCall: { name: 'f' } }], 'STOP')) };
    const fake = fakeServer(step, step, OK);
    const transcript = createTranscript();
    const dispatchEvent = createEventDispatcher({ record: transcript.record, emit: () => {} });
    const tool = { name: 'f', description: 'd', inputSchema: { type: 'object', properties: {} }, execute: () => 'r' };
    await runTurn({ llm: geminiOn(fake), tools: [tool], buildMessages: transcript.buildMessages, dispatchEvent, input: 'hi' });
    const ids = transcript.events.flatMap((event) => (event.type === 'tool.call' ? [event.toolCallId] : []));

    expect(ids).toHaveLength(6);
    expect(new Set(ids).size).toBe(6);
    expect(fake.sent[2]!.text).not.toContain('"id"');
  });

  it('GN7: keep the order of the message, and the tool\'s own name', async () => {
    const names = ['server/tool', '1st'];
    const tools = names.map((name) => ({ name, description: '', inputSchema: {} }));
    const fake = fakeServer(OK);
    await geminiOn(fake).chat(request(undefined, { tools }));
    const declared = (bodyOf(fake.sent[0]).tools![0]!['functionDeclarations'] as { name: string }[]).map(({ name }) => ({ functionCall: { name } }));
    const deltas: unknown[] = [];
    const { content } = await geminiOn(fakeServer({ body: stream(chunk(declared, 'STOP')) })).chat(request(undefined, { tools, onDelta: (delta) => deltas.push(delta) }));

    expect(content).toMatchObject(names.map((name) => ({ name })));
    expect(deltas).toMatchObject(names.map((name) => ({ name })));
  });

  it('BR-055: may be named like members of every object', async () => {
    const { response } = await readGemini(stream(chunk([{ functionCall: { name: '__proto__', args: {} } }, { functionCall: { name: 'constructor', args: { toString: 1 } } }], 'STOP')));

    expect(response.content).toMatchObject([{ name: '__proto__' }, { name: 'constructor', inputText: '{"toString":1}' }]);
  });

  it('are accepted in snake case and with arguments as text, as proxies send them', async () => {
    const { response } = await readGemini(stream(chunk([{ function_call: { name: 'f', args: '{"a": 1}' }, thought_signature: 'Uw==' }], 'STOP')));

    expect(response.content).toStrictEqual([{ type: 'tool_call', name: 'f', inputText: '{"a": 1}', providerData: { model: 'gemini-2.5-flash', thoughtSignature: 'Uw==' } }]);
  });

  it('BR-151: without a name are no calls', async () => {
    expect(await errorOfGemini(stream(chunk([{ functionCall: { args: { a: 1 } } }], 'STOP')))).toMatchObject({ kind: 'malformed_response', code: 'nameless_call' });
    expect((await readGemini(stream(chunk([{ text: 'x' }, { functionCall: {} }], 'STOP')))).response.content).toHaveLength(1);
  });
});

it('BR-092: a call with an integer that no double holds never runs, and the model is told', async () => {
  const calling = 'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"id":9223372036854775807}}}]},"finishReason":"STOP"}]}\n\n';
  const fake = fakeServer({ body: calling }, OK);
  const { buildMessages, record } = createTranscript();
  const ran: unknown[] = [];
  const f = defineTool({ name: 'f', description: 'd', input: { type: 'object', properties: { id: { type: 'integer' } } }, execute: (input) => String(ran.push(input)) });
  await runTurn({ llm: geminiOn(fake), tools: [f], input: 'go', buildMessages, dispatchEvent: createEventDispatcher({ record }) });

  expect(ran).toStrictEqual([]);
  expect(JSON.stringify(bodyOf(fake.sent[1]).contents.at(-1))).toMatch(/too large to be exact; send it as a string/);
});

describe('calls that Vertex AI streams value by value', () => {
  const part = (functionCall: object, more: object = {}): object => chunk([{ functionCall, ...more }]);
  const values = (...partialArgs: readonly object[]): object => part({ partialArgs, willContinue: true });
  const END = part({});

  it('are put together by the paths of the values', async () => {
    const { response, deltas } = await readGemini(
      stream(
        part({ name: 'f', id: 'v1', willContinue: true }, { thoughtSignature: 'Uw==' }),
        values({ jsonPath: '$.city', stringValue: 'New ', willContinue: true }),
        values({ jsonPath: '$.city', stringValue: 'York' }, { jsonPath: '$.days', numberValue: 3 }),
        values({ jsonPath: '$.list[0].on', boolValue: true }, { jsonPath: '$.list[1].on', boolValue: false }, { jsonPath: "$['a.b'].__proto__", nullValue: 'NULL_VALUE' }),
        END,
        part({ name: 'g', willContinue: true }),
        END,
        chunk([CALL], 'STOP'),
      ),
    );
    const first = '{"city":"New York","days":3,"list":[{"on":true},{"on":false}],"a.b":{"__proto__":null}}';

    expect(response.content).toStrictEqual([
      { type: 'tool_call', name: 'f', inputText: first, providerId: 'v1', providerData: { model: 'gemini-2.5-flash', thoughtSignature: 'Uw==' } },
      { type: 'tool_call', name: 'g', inputText: '{}' },
      { type: 'tool_call', name: 'f', inputText: '{"a":1}' },
    ]);
    expect(deltas.map((each) => each.type === 'tool_call' && [each.callIndex, each.name, each.inputText])).toStrictEqual([
      [0, 'f', ''],
      [0, undefined, first],
      [1, 'g', ''],
      [1, undefined, '{}'],
      [2, 'f', '{"a":1}'],
    ]);
  });

  it('end where the next one begins, and set a value again rather than add to it', async () => {
    const { response } = await readGemini(
      stream(part({ name: 'f', willContinue: true, partialArgs: [{ jsonPath: '$.a', stringValue: 'x' }] }), values({ jsonPath: '$.a', stringValue: 'y' }, { jsonPath: '$.l[4000000000]', numberValue: 1 }), chunk([CALL], 'STOP')),
    );

    expect(response.content).toMatchObject([{ inputText: '{"a":"y","l":[1]}' }, { inputText: '{"a":1}' }]);
  });

  it('BR-064, KS1: are no calls as long as they have no end', async () => {
    const begun = [part({ name: 'f', willContinue: true }), values({ jsonPath: '$.path', stringValue: '/tm', willContinue: true })];

    expect(await errorOfGemini(stream(...begun, chunk([], 'STOP')))).toMatchObject({ kind: 'malformed_response', code: 'unfinished_call', retryable: true });
    expect(await errorOfGemini(stream(...begun))).toMatchObject({ kind: 'network', code: 'stream_incomplete' });
    expect((await readGemini(stream(...begun, chunk([], 'MAX_TOKENS')))).response).toMatchObject({ stopReason: 'max_tokens', content: [{ inputText: '' }] });
  });
});

describe('other parts', () => {
  it('reads media that a model made, and keeps its signature for the way back', async () => {
    const inlineData = { mimeType: 'image/png', data: 'AAAA' };
    const fake = fakeServer({ body: stream(chunk([{ text: 'Here:' }, { inlineData, thoughtSignature: 'Uw==' }, { inlineData: { ...inlineData, data: 'BBBB' } }], 'STOP')) }, OK);
    const transcript = createTranscript();
    const dispatchEvent = createEventDispatcher({ record: transcript.record, emit: () => {} });
    const llm = geminiOn(fake);
    const { message } = await runTurn({ llm, buildMessages: transcript.buildMessages, dispatchEvent, input: 'draw' });
    await runTurn({ llm, buildMessages: transcript.buildMessages, dispatchEvent, input: 'again' });

    expect(message!.content.filter((part) => part.type === 'media')).toStrictEqual([
      { type: 'media', mediaType: 'image/png', data: 'AAAA' },
      { type: 'media', mediaType: 'image/png', data: 'BBBB' },
    ]);
    expect(bodyOf(fake.sent[1]).contents[1]!.parts).toStrictEqual([{ text: 'Here:' }, { inlineData, thoughtSignature: 'Uw==' }, { inlineData: { ...inlineData, data: 'BBBB' } }]);
    await geminiOn(fake, { model: 'gemini-2.5-pro' }).chat(request(transcript.buildMessages()));
    expect(fake.sent.at(-1)!.text).not.toContain('Uw==');
  });

  it('B15: keeps what the server ran, in order, and the sources at the end', async () => {
    const code = { executableCode: { language: 'PYTHON', code: 'print(1)' } };
    const done = { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } };
    const found = (queries: readonly string[]): object => ({ groundingMetadata: { webSearchQueries: queries }, urlContextMetadata: {} });
    const { response } = await readGemini(
      stream(chunk([code]), chunk([done]), { candidates: [{ content: { parts: [{ text: 'It is 1.' }] }, ...found(['q']) }] }, { candidates: [{ ...found(['q', 'r']), finishReason: 'STOP' }] }),
    );

    expect(response.content).toStrictEqual([
      { type: 'provider', provider: 'google', data: code },
      { type: 'provider', provider: 'google', data: done },
      { type: 'text', text: 'It is 1.' },
      { type: 'provider', provider: 'google', data: { groundingMetadata: { webSearchQueries: ['q', 'r'] } } },
    ]);
  });

  it('BR-139: passes over what is no part, and keeps parts of new kinds', async () => {
    const odd = [{}, null, 'text', { videoMetadata: {} }, { inlineData: { mimeType: 'image/png', data: 'AAAA' }, thought: true }, { newKind: { a: 1 } }, { text: 'x' }];
    const { response } = await readGemini(stream(chunk(odd, 'STOP')));

    expect(response.content.map((part) => part.type)).toStrictEqual(['provider', 'provider', 'text']);
  });

  it('reads candidate 0 alone', async () => {
    const { response } = await readGemini(stream({ candidates: [{ index: 1, content: { parts: [{ text: 'no' }] }, finishReason: 'SAFETY' }, { index: 0, content: { parts: [{ text: 'yes' }] }, finishReason: 'STOP' }] }));

    expect(response).toMatchObject({ content: [{ text: 'yes' }], stopReason: 'end_turn' });
  });
});

describe('a tool of the server', () => {
  const CODE = { executableCode: { language: 'PYTHON', code: 'work()' } };
  const DONE = { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } };
  const SEARCH = { toolCall: { id: 't', toolType: 'GOOGLE_SEARCH_WEB', args: {} } };
  const read = async (more: object, ...parts: readonly object[]): Promise<string> => {
    const body = stream(chunk([{ text: 'I look.' }]), ...parts.map((part) => chunk([part], 'finish' in more ? 'STOP' : undefined)));
    const options = { timeouts: { firstTokenMs: 200, betweenTokensMs: 20 } };
    return geminiOn(fakeServer({ body, ...more }), options)
      .chat(request())
      .then(({ stopReason }) => stopReason, (error: unknown) => (error as LLMError).code);
  };

  it('is given time, as before the first token', async () => {
    expect(await read({ open: true })).toBe('between_tokens_timeout');
    expect(await read({ open: true }, CODE)).toBe('first_token_timeout');
    expect(await read({ open: true }, SEARCH)).toBe('first_token_timeout');
    expect(await read({ open: true }, CODE, DONE)).toBe('between_tokens_timeout');
  });

  it('is not done with a reason for the end that stands before its result', async () => {
    const failure = new TypeError('terminated', { cause: { code: 'ECONNRESET' } });

    expect(await read({ finish: true, failure }, CODE)).toBe('ECONNRESET');
    expect(await read({ finish: true, failure }, CODE, DONE)).toBe('end_turn');
    expect(await read({ finish: true }, CODE)).toBe('end_turn');
  });
});

describe('usage', () => {
  it.each([
    ['BR-023: the cached part of the prompt', { promptTokenCount: 1000, candidatesTokenCount: 10, cachedContentTokenCount: 900 }, [100, 900, 0, 10, 0]],
    ['BR-068: thinking beside what was written', { promptTokenCount: 8, candidatesTokenCount: 12, thoughtsTokenCount: 21, totalTokenCount: 41 }, [8, 0, 0, 33, 21]],
    ['BR-068: thinking within what was written, where the total says so', { promptTokenCount: 8, candidatesTokenCount: 33, thoughtsTokenCount: 21, totalTokenCount: 41 }, [8, 0, 0, 33, 21]],
    ['what tools of the server found', { promptTokenCount: 8, toolUsePromptTokenCount: 100, candidatesTokenCount: 2, totalTokenCount: 110 }, [108, 0, 0, 2, 0]],
    ['thinking alone', { promptTokenCount: 8, thoughtsTokenCount: 5, totalTokenCount: 13 }, [8, 0, 0, 5, 5]],
    ['snake case', { prompt_token_count: 8, candidates_token_count: 3, cached_content_token_count: 4 }, [4, 4, 0, 3, 0]],
    ['null and odd values', { promptTokenCount: null, candidatesTokenCount: 'x', totalTokenCount: -1 }, [0, 0, 0, 0, 0]],
    ['more cached than there was', { promptTokenCount: 3, cachedContentTokenCount: 9 }, [0, 3, 0, 0, 0]],
  ])('reads %s', async (_name, usageMetadata, [inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, thinkingTokens]) => {
    const { response } = await readGemini(stream(chunk([{ text: 'x' }], 'STOP', { usageMetadata })));

    expect(response.usage).toStrictEqual({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, thinkingTokens });
  });

  it('BR-125: takes the last of usages that count up, also behind the end', async () => {
    const chunks = [1, 2, 3].map((candidatesTokenCount) => chunk([{ text: 'x' }], candidatesTokenCount === 2 ? 'STOP' : undefined, { usageMetadata: { promptTokenCount: 50, candidatesTokenCount } }));

    expect((await readGemini(stream(...chunks))).response.usage).toMatchObject({ inputTokens: 50, outputTokens: 3 });
  });

  it('is with the error of a reply that failed', async () => {
    const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 1 };

    expect((await errorOfGemini(stream(chunk([{ text: 'x' }], undefined, { usageMetadata })))).usage).toMatchObject({ inputTokens: 5, outputTokens: 1 });
    expect((await errorOfGemini(stream({ error: { code: 503, message: 'm' }, usageMetadata }))).usage).toMatchObject({ inputTokens: 5 });
    expect((await errorOfGemini(stream(chunk([{ text: 'x' }], undefined, { usageMetadata: { trafficType: 'ON_DEMAND' } })))).usage).toBeUndefined();
  });
});

describe('what a reply says about itself', () => {
  it('GN9: gives the id and the model of the answer, and its times', async () => {
    const body = stream(chunk([{ text: 'x' }], 'STOP', { responseId: 'resp-1', modelVersion: 'gemini-2.5-flash-001' }));
    const response = await geminiOn(fakeServer({ body })).chat(request());

    expect(response).toMatchObject({ responseId: 'resp-1', modelId: 'gemini-2.5-flash-001', rawStopReason: 'STOP' });
    // GN11, AD2
    expect(response.timing?.totalMs).toBeGreaterThanOrEqual(response.timing?.firstDeltaMs ?? Infinity);
  });
});

describe('answers that are not a stream', () => {
  it('reads a plain body, asked for or not', async () => {
    const body = JSON.stringify(chunk([{ text: 'hi' }, CALL], 'STOP', { usageMetadata: { promptTokenCount: 1 } }));

    for (const isStreamed of [true, false]) {
      expect((await readGemini(body, { stream: isStreamed })).response).toMatchObject({ content: [{ text: 'hi' }, { name: 'f' }], stopReason: 'tool_use', usage: { inputTokens: 1 } });
    }
  });

  it('reads a list of responses, as a server sends them that does not know events', async () => {
    const { response, deltas } = await readGemini(JSON.stringify([chunk([{ text: 'a' }]), chunk([{ text: 'b' }]), chunk([], 'STOP', { usageMetadata: { candidatesTokenCount: 2 } })]));

    expect(response).toMatchObject({ content: [{ type: 'text', text: 'ab' }], stopReason: 'end_turn', usage: { outputTokens: 2 } });
    expect(deltas).toHaveLength(2);
    expect(await errorOfGemini(JSON.stringify([chunk([{ text: 'a' }]), { error: { code: 503, message: 'gone', status: 'UNAVAILABLE' } }]))).toMatchObject({ kind: 'overloaded', partial: [{ text: 'a' }] });
  });

  it.each([
    ['JSON that is no reply', '{"hello":"world"}'],
    ['JSON that was cut', '{"candidates":[{"cont'],
    ['a list of numbers', '[1,2]'],
    ['an empty list', '[]'],
    ['plain words', 'Service is starting, please wait'],
  ])('BR-095: reports %s with its beginning', async (_name, body) => {
    const error = await errorOfGemini(body);

    expect(error.kind).toBe('malformed_response');
    expect(error.message).toContain(JSON.stringify(body).slice(1, 12));
  });
});
