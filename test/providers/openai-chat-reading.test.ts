/**
 * Chat Completions answers: text, thinking, ends, usage and odd bodies. Each body is read whole, byte by byte, and cut
 * within characters and line ends. Black-box.
 */
import { describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, runTurn } from 'turnloop';
import { callDelta, delta, errorOf, errorOfBody, events, fakeServer, chatOn, finish, readBody, request } from './fake-server.ts';

const CALL = { index: 0, id: 'c', function: { name: 'f', arguments: '{"a":1}' } };

describe('the end of a reply', () => {
  it.each([
    ['stop', 'end_turn'],
    ['eos', 'end_turn'],
    ['length', 'max_tokens'],
    ['model_context_window_exceeded', 'max_tokens'],
    ['content_filter', 'filtered'],
    ['refusal', 'filtered'],
    ['sensitive', 'filtered'],
    ['stop_sequence', 'stop_sequence'],
    ['pause_turn', 'paused'],
    ['tool_calls', 'tool_use'],
    ['brand_new_reason', 'unknown'],
    ['constructor', 'unknown'],
    ['__proto__', 'unknown'],
  ])('FR1, BR-035, BR-139: reads finish reason %s as %s', async (word, stopReason) => {
    const streamed = await readBody(events([delta({ content: 'x' }), finish(word)]));
    const plain = await readBody(JSON.stringify({ choices: [{ message: { content: 'x' }, finish_reason: word }] }));

    expect(streamed.response).toMatchObject({ stopReason, rawStopReason: word });
    expect(plain.response).toMatchObject({ stopReason, rawStopReason: word });
  });

  it('OC, BR-035: a finish reason of stop with calls is tool use', async () => {
    const { response } = await readBody(events([callDelta(CALL), finish('stop')]));

    expect(response).toMatchObject({ stopReason: 'tool_use', rawStopReason: 'stop' });
  });

  it('BR-098 A: takes whole calls and [DONE] without a finish reason as tool use', async () => {
    const { response } = await readBody(events([{ choices: [{ index: 0, delta: { tool_calls: [CALL] }, finish_reason: null }] }]));

    expect(response.stopReason).toBe('tool_use');
    expect(response).not.toHaveProperty('rawStopReason');
  });

  it('BR-098 B: does not take a call and a mere end of the stream as a reply', async () => {
    const start = { index: 0, id: 'c', function: { name: 'f', arguments: '' } };

    expect(await errorOfBody(events([callDelta(start)], ''))).toMatchObject({ kind: 'network', code: 'stream_incomplete', partial: undefined });
  });

  it('BR-098 C: takes text and [DONE] without a finish reason as the end of the turn', async () => {
    const { response } = await readBody(events([delta({ content: 'hi' })]));

    expect(response).toMatchObject({ stopReason: 'end_turn', content: [{ type: 'text', text: 'hi' }] });
  });

  it('BR-065: reports a stream that just stops, with the text so far and without half a call', async () => {
    const cut = await errorOfBody(events([delta({ content: 'The answer is 4' }), callDelta({ ...CALL, function: { name: 'f', arguments: '{"path":"/tm' } })], ''));

    expect(cut).toMatchObject({ kind: 'network', code: 'stream_incomplete', retryable: true });
    expect(cut.partial).toStrictEqual([{ type: 'text', text: 'The answer is 4' }]);
  });

  it('BR-064, BR-121: reports the output limit with the call as it was cut, or with thinking alone', async () => {
    const call = await readBody(events([callDelta({ ...CALL, function: { name: 'write', arguments: '{"path":"a' } }), finish('length')]));
    const thought = await readBody(
      events([delta({ reasoning_content: 'hmm' }), finish('length'), { choices: [], usage: { prompt_tokens: 1, completion_tokens: 32_000 } }]),
    );

    expect(call.response).toMatchObject({ stopReason: 'max_tokens', content: [{ name: 'write', inputText: '{"path":"a' }] });
    expect(thought.response).toMatchObject({ stopReason: 'max_tokens', usage: { outputTokens: 32_000 } });
  });

  it('BR-143: uses a last event without its blank line, and reports half of one as a cut', async () => {
    const last = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'z' }, finish_reason: 'stop' }] })}`;

    expect((await readBody(`${last}\n`)).response).toMatchObject({ stopReason: 'end_turn', content: [{ text: 'z' }] });
    expect((await readBody(last)).response.content).toStrictEqual([{ type: 'text', text: 'z' }]);
    expect(await errorOfBody(last.slice(0, -9))).toMatchObject({ kind: 'network', code: 'stream_incomplete' });
  });

  describe.each([1, 2, 3])('cut after %d bytes of a character', (length) => {
    const begun = (text: string): Uint8Array => new Uint8Array([...new TextEncoder().encode(text), ...new TextEncoder().encode('😀').subarray(0, length)]);
    const failure = new TypeError('terminated', { cause: { code: 'ECONNRESET' } });

    it.each([
      ['an event', 'data: {"x":"'],
      ['a comment', ': '],
    ])('keeps a reply that was complete when %s follows it', async (_name, rest) => {
      const body = begun(events([delta({ content: 'whole' }), finish('stop')], '') + rest);

      expect((await readBody(body)).response).toMatchObject({ stopReason: 'end_turn', content: [{ text: 'whole' }] });
      expect(await chatOn(fakeServer({ body, failure })).chat(request())).toMatchObject({ content: [{ text: 'whole' }] });
    });

    it('reports a reply that was not complete as cut, with the text so far', async () => {
      const body = begun(`${events([delta({ content: 'par' })], '')}data: {"choices":[{"index":0,"delta":{"content":"`);

      expect(await errorOfBody(body)).toMatchObject({ kind: 'network', code: 'stream_incomplete', retryable: true, partial: [{ text: 'par' }] });
      expect(await errorOfBody(begun('data: {"id":"'))).toMatchObject({ kind: 'network', code: 'stream_incomplete' });
    });

    it('reports a plain body as what it is without it', async () => {
      const error = await errorOfBody(begun('{"choices":[{"message":{"content":"'));

      expect(error).toMatchObject({ kind: 'malformed_response', message: expect.stringContaining('not valid JSON') });
    });
  });

  it.each([{}, { message: '', code: null }, { message: null, details: {} }, '', null, false])('takes no error for one that says nothing: %j', async (error) => {
    const chunk = delta({ content: 'hi' }) as object;
    const { response } = await readBody(events([{ ...chunk, error }, finish('stop')]));
    const plain = await readBody(JSON.stringify({ choices: [{ message: { content: 'hi' }, finish_reason: 'stop' }], error }));

    for (const { content } of [response, plain.response]) expect(content).toStrictEqual([{ type: 'text', text: 'hi' }]);
  });

  it.each([
    [{ error: true, message: 'quota exceeded' }, { kind: 'server' }],
    [{ code: 429, message: 'slow down' }, { kind: 'rate_limit', code: '429' }],
    [{ code: '401', message: 'bad key', success: false }, { kind: 'auth' }],
    [{ success: false, message: 'out of order' }, { kind: 'server' }],
  ])('takes a message beside a failure for an error: %j', async (body, expected) => {
    const error = { ...expected, message: expect.stringContaining(body.message) as string };

    expect(await errorOfBody(events([delta({ content: 'par' }), body]))).toMatchObject({ ...error, partial: [{ text: 'par' }] });
    expect(await errorOfBody(JSON.stringify(body))).toMatchObject(error);
  });

  const DEEP = '['.repeat(20_000) + ']'.repeat(20_000);
  it.each([
    ['an event', `data: ${DEEP}\n\n`],
    ['arguments', `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"a":${DEEP}}}}]}}]}\n\n`],
    ['an error', `data: {"error":{"detail":${DEEP}}}\n\n`],
    ['what comes with a reply', `data: {"choices":[{"index":0,"delta":{"content":"x","annotations":[${DEEP}]}}]}\n\n`],
    ['a plain answer', `{"choices":[{"message":{"content":"x","annotations":[${DEEP}]}}]}`],
  ])('takes %s that nests without end for no reply', async (_what, body) => {
    const error = await errorOf(chatOn(fakeServer({ body })).chat(request()));

    expect(error).toMatchObject({ kind: 'malformed_response', message: expect.stringContaining('nested too deep') as string });
  });

  it('quotes little of a word without end', async () => {
    const word = 'x'.repeat(100_000);
    const error = await errorOf(chatOn(fakeServer({ body: events([finish(word)]) })).chat(request()));

    expect(error).toMatchObject({ kind: 'malformed_response', code: 'empty' });
    expect(error.message.length).toBeLessThan(1200);
  });

  it('BR-035: gives a refusal as text, and says that it is one', async () => {
    const { response, deltas } = await readBody(events([delta({ refusal: 'I can' }), delta({ refusal: 'not.' }), finish('stop')]));

    expect(response).toMatchObject({ stopReason: 'filtered', content: [{ type: 'text', text: 'I cannot.' }] });
    expect(deltas).toHaveLength(2);
  });

  it.each(['error', 'ERROR', 'insufficient_system_resource', 'network_error'])('takes finish reason %s as a failure', async (word) => {
    expect(await errorOfBody(events([delta({ content: 'par' }), finish(word)]))).toMatchObject({ code: word, retryable: true, partial: [{ text: 'par' }] });
  });

  it('BR-091: keeps a finished reply whose connection breaks before its end mark', async () => {
    const body = events([delta({ content: 'whole' }), finish('stop')], '');
    const llm = chatOn(fakeServer({ body, failure: new TypeError('terminated', { cause: { code: 'ECONNRESET' } }) }));

    expect(await llm.chat(request())).toMatchObject({ stopReason: 'end_turn', content: [{ text: 'whole' }] });
  });
});

describe('empty answers', () => {
  it.each([
    ['nothing at all', '', 'empty_body'],
    ['comments alone', ': hb\n\n: hb\n\n', 'stream_incomplete'],
  ])('BR-109: reports a stream of %s', async (_name, body, code) => {
    expect(await errorOfBody(body)).toMatchObject({ kind: 'network', code, retryable: true });
  });

  it.each([
    ['no delta', [finish('stop')]],
    ['thinking only', [delta({ reasoning_content: 'hm' }), finish('stop')]],
    ['thinking and white space', [delta({ reasoning_content: 'hm' }), delta({ content: ' \n' }), finish('stop')]],
    ['only an end mark', []],
  ])('GN8: reports a reply with %s as empty', async (_name, chunks) => {
    expect(await errorOfBody(events(chunks))).toMatchObject({ kind: 'malformed_response', code: 'empty', retryable: true });
  });

  it('GN8: takes an empty filtered reply as one', async () => {
    const { response } = await readBody(events([finish('content_filter')]));

    expect(response).toMatchObject({ stopReason: 'filtered', content: [] });
  });
});

describe('thinking', () => {
  it.each([
    ['A: reasoning', [{ reasoning: 'a' }], { field: 'reasoning' }],
    ['B: reasoning_content', [{ reasoning_content: 'a' }], { field: 'reasoning_content' }],
    [
      'C: the same in three fields',
      [{ reasoning: 'a', reasoning_content: 'a', reasoning_details: [{ type: 'reasoning.text', text: 'a', index: 0 }] }],
      { field: 'reasoning_content', details: [{ type: 'reasoning.text', text: 'a', index: 0 }] },
    ],
    [
      'details alone, in pieces',
      [
        { reasoning_details: [{ type: 'reasoning.text', text: '', index: 0 }] },
        { reasoning_details: [{ type: 'reasoning.text', text: 'a', index: 0 }] },
        { reasoning_details: [{ type: 'reasoning.text', signature: 'S', index: 0 }] },
      ],
      { details: [{ type: 'reasoning.text', text: 'a', index: 0, signature: 'S' }] },
      { signature: 'S' },
    ],
  ])('BR-073 %s: counts once', async (_name, deltas, providerData, marks: object = {}) => {
    const { response } = await readBody(events([...deltas.map((each) => delta(each)), delta({ content: 'x' }), finish('stop')]));

    expect(response.content).toStrictEqual([
      { type: 'thinking', text: 'a', ...marks, providerData: { model: 'test-model', ...providerData } },
      { type: 'text', text: 'x' },
    ]);
  });

  const first = { type: 'reasoning.text', text: 'a', signature: 'S0' };
  const second = { type: 'reasoning.text', text: 'b', signature: 'S1' };
  it.each([
    ['with signatures', [[first], [second]], [first, second]],
    [
      'in pieces, under one index',
      [{ text: 'a' }, { signature: 'S0' }, { signature: 'S0', format: 'x' }, { text: 'b' }, { signature: 'S1' }].map((piece) => [{ type: 'reasoning.text', index: 0, ...piece }]),
      [{ ...first, index: 0, format: 'x' }, { ...second, index: 0 }],
    ],
    ['with ids', ['r1', 'r2'].map((id) => [{ type: 'reasoning.summary', summary: id, id }]), ['r1', 'r2'].map((id) => ({ type: 'reasoning.summary', summary: id, id }))],
  ])('GN1, BR-154: keeps blocks apart that come %s', async (_name, lists, details) => {
    const { response } = await readBody(events([...lists.map((list) => delta({ reasoning_details: list })), delta({ content: 'x' }), finish('stop')]));

    expect(response.content[0]).toMatchObject({ providerData: { details } });
  });

  it('GN1, BR-154: keeps the blocks of a plain answer apart', async () => {
    const details = ['a', 'b'].map((text) => ({ type: 'reasoning.text', text }));
    const { response } = await readBody(JSON.stringify({ choices: [{ message: { content: 'x', reasoning_details: details }, finish_reason: 'stop' }] }));

    expect(response.content[0]).toMatchObject({ text: 'ab', providerData: { details } });
  });

  it('BR-073 D: keeps encrypted details', async () => {
    const detail = { type: 'reasoning.encrypted', data: 'E', id: 'r1' };
    const { response } = await readBody(events([delta({ reasoning_details: [detail] }), delta({ content: 'x' }), finish('stop')]));

    expect(response.content[0]).toStrictEqual({ type: 'thinking', text: '', redactedData: 'E', providerData: { model: 'test-model', details: [detail] } });
  });

  it.each([
    ['a signature', { reasoning: 'th', reasoning_details: [{ type: 'reasoning.text', text: 'th', signature: 'S', index: 0 }] }, { text: 'th', signature: 'S' }],
    ['the signature of the message', { reasoning: 'th', extra_content: { google: { thought_signature: 'S' } } }, { text: 'th', signature: 'S' }],
    ['a bare signature of the message', { reasoning: 'th', thought_signature: 'S' }, { text: 'th', signature: 'S' }],
    ['encrypted data', { reasoning_details: [{ type: 'reasoning.encrypted', data: 'E', id: 'r1' }] }, { text: '', redactedData: 'E' }],
  ])('stays with a reply that was cut off when it has %s', async (_name, thinking, kept) => {
    const body = events([delta(thinking), delta({ content: 'par' })], '');
    const transcript = createTranscript();
    const dispatchEvent = createEventDispatcher({ record: transcript.record, emit: () => {} });
    const { message } = await runTurn({ llm: chatOn(fakeServer({ body })), buildMessages: transcript.buildMessages, dispatchEvent, input: 'hi' });

    expect(message?.content).toMatchObject([{ type: 'thinking', ...kept }, { type: 'text', text: 'par' }]);
  });

  it('GN3: keeps think, text, think, text as four parts, and their deltas in order', async () => {
    const chunks = [delta({ reasoning: 'a' }), delta({ content: 'b' }), delta({ reasoning: 'c' }), delta({ content: 'd' }), finish('stop')];
    const { response, deltas } = await readBody(events(chunks));

    expect(response.content.map((part) => part.type)).toStrictEqual(['thinking', 'text', 'thinking', 'text']);
    expect(deltas.map((each) => (each.type === 'tool_call' ? '' : each.text)).join('')).toBe('abcd');
  });

  it('BR-059: reads typed parts in content, streamed and not', async () => {
    const chunks = [
      { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'why' }] }] },
      { content: [{ type: 'reference', reference_ids: ['r'] }, { type: 'text', text: 'Hi' }] },
      { content: ' there' },
    ];
    const streamed = await readBody(events([...chunks.map((each) => delta(each)), finish('stop')]));
    const plain = await readBody(
      JSON.stringify({ choices: [{ message: { content: [...(chunks[0]!.content as object[]), { type: 'text', text: 'Hi there' }] }, finish_reason: 'stop' }] }),
    );

    for (const { response } of [streamed, plain]) {
      expect(response.content).toStrictEqual([
        { type: 'thinking', text: 'why', providerData: { model: 'test-model', field: 'content' } },
        { type: 'text', text: 'Hi there' },
      ]);
    }
  });

  it('BR-139: passes over parts of odd types', async () => {
    const { response } = await readBody(events([delta({ content: [{ type: 'hasOwnProperty' }, { type: '__proto__', text: 'no' }, null, 'yes'] }), finish('stop')]));

    expect(response.content).toStrictEqual([{ type: 'text', text: 'yes' }]);
  });
});

describe('usage', () => {
  it.each([
    ['BR-023: the cached part of the prompt', { prompt_tokens: 1000, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 900 } }, [100, 900, 0, 10, 0]],
    ['BR-068: thinking within the completion', { prompt_tokens: 8, completion_tokens: 33, total_tokens: 41, completion_tokens_details: { reasoning_tokens: 21 } }, [8, 0, 0, 33, 21]],
    ['thinking beside the completion', { prompt_tokens: 5, completion_tokens: 3, total_tokens: 18, completion_tokens_details: { reasoning_tokens: 10 } }, [5, 0, 0, 13, 10]],
    ['KM4: cached tokens at the top', { prompt_tokens: 10, completion_tokens: 1, cached_tokens: 4 }, [6, 4, 0, 1, 0]],
    ['DeepSeek cache hits', { prompt_tokens: 10, completion_tokens: 1, prompt_cache_hit_tokens: 4 }, [6, 4, 0, 1, 0]],
    ['cache writes', { prompt_tokens: 10, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 2, cache_write_tokens: 3 } }, [5, 2, 3, 1, 0]],
    ['cache writes beside the prompt', { prompt_tokens: 5, completion_tokens: 2, total_tokens: 17, cache_creation_input_tokens: 10 }, [5, 0, 10, 2, 0]],
    ['counts that are not whole', { prompt_tokens: 5.4, completion_tokens: 2.5 }, [5, 0, 0, 3, 0]],
    ['null and odd values', { prompt_tokens: null, completion_tokens: 'x', prompt_tokens_details: null, total_tokens: -1 }, [0, 0, 0, 0, 0]],
    ['more cached than there was', { prompt_tokens: 3, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 9 } }, [0, 3, 0, 1, 0]],
  ])('reads %s', async (_name, usage, [inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, thinkingTokens]) => {
    const { response } = await readBody(events([delta({ content: 'x' }), finish('stop'), { choices: [], usage }]));

    expect(response.usage).toStrictEqual({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, thinkingTokens });
  });

  it('BR-077: reads on after the finish reason, and passes over chunks without choices', async () => {
    const { response } = await readBody(
      events([{ choices: [], prompt_filter_results: [{}] }, delta({ content: 'hi' }, null), finish('stop'), { choices: [], usage: { prompt_tokens: 7, completion_tokens: 1 } }]),
    );

    expect(response).toMatchObject({ content: [{ text: 'hi' }], usage: { inputTokens: 7, outputTokens: 1 } });
  });

  it('BR-107: reads usage beside a choice, and a choice without a delta', async () => {
    const usage = { prompt_tokens: 65, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 64 } };
    const { response } = await readBody(events([delta({ content: 'x' }), { choices: [{ index: 0, finish_reason: 'stop' }] }, { choices: [{ index: 0, delta: {} }], usage }]));

    expect(response).toMatchObject({ content: [{ text: 'x' }], usage: { inputTokens: 1, cacheReadTokens: 64, outputTokens: 2 } });
  });

  it('BR-125: takes the last of usages that count up', async () => {
    const chunks = [1, 2, 3].map((completion) => ({ ...(delta({ content: 'x' }) as object), usage: { prompt_tokens: 50, completion_tokens: completion } }));
    const { response } = await readBody(events([...chunks, finish('stop')]));

    expect(response.usage).toMatchObject({ inputTokens: 50, outputTokens: 3 });
  });

  it.each([
    ['nothing', {}],
    ['null', { prompt_tokens: null, completion_tokens: null }],
    ['zeros', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
  ])('keeps what was counted when a usage of %s follows, or hides another', async (_name, empty) => {
    const usage = { prompt_tokens: 4, completion_tokens: 2 };
    const followed = await readBody(events([delta({ content: 'x' }), { ...(finish('stop') as object), usage }, { choices: [], usage: empty }]));
    const hiding = await readBody(events([delta({ content: 'x' }), finish('stop'), { choices: [], usage: empty, x_groq: { usage } }]));

    for (const { response } of [followed, hiding]) expect(response.usage).toMatchObject({ inputTokens: 4, outputTokens: 2 });
  });

  it('keeps what an answer that is an error tells of tokens', async () => {
    const error = await errorOfBody(JSON.stringify({ error: { message: 'boom' }, usage: { prompt_tokens: 9, completion_tokens: 1 } }));

    expect(error).toMatchObject({ kind: 'server', usage: { inputTokens: 9, outputTokens: 1 } });
  });

  it('KM4: reads usage from the choice and from x_groq', async () => {
    const usage = { prompt_tokens: 4, completion_tokens: 2 };
    const fromChoice = await readBody(events([delta({ content: 'x' }), { choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage }] }]));
    const fromGroq = await readBody(events([delta({ content: 'x' }), finish('stop'), { choices: [], x_groq: { usage } }]));

    expect([fromChoice.response.usage.inputTokens, fromGroq.response.usage.outputTokens]).toStrictEqual([4, 2]);
  });

  it('is with the error of a reply that failed', async () => {
    const error = await errorOfBody(events([delta({ content: 'x' }), { choices: [], usage: { prompt_tokens: 5, completion_tokens: 1 } }], ''));

    expect(error.usage).toMatchObject({ inputTokens: 5, outputTokens: 1 });
  });
});

describe('errors in an answer that began well', () => {
  it.each([
    ['an object with a code', { id: 'g', choices: [], error: { code: 502, message: 'upstream at capacity' } }, 'upstream at capacity', 'server', true],
    ['a message alone', { error: { message: 'quota exceeded' } }, 'quota exceeded', 'server', true],
    ['a plain string', { error: 'plain string' }, 'plain string', 'server', true],
    ['in the choice', { choices: [{ index: 0, delta: {}, finish_reason: 'error', error: { code: 502, message: 'gone' } }] }, 'gone', 'server', true],
    ['BR-043 overloaded', { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'Overloaded', 'overloaded', true],
    ['BR-095 D: an overflow', { error: { message: 'ctx', code: 'context_length_exceeded' }, message: 'ctx' }, 'ctx', 'context_overflow', false],
    ['a flat object', { object: 'error', message: 'bad', type: 'invalid_request_error', code: 400 }, 'bad', 'invalid_request', false],
  ] as const)('BR-067: throws %s, before and after text', async (_name, chunk, text, kind, retryable) => {
    const before = await errorOfBody(events([chunk]));
    const after = await errorOfBody(events([delta({ content: 'par' }), chunk]));

    expect(before).toMatchObject({ kind, retryable, message: expect.stringContaining(text), partial: undefined });
    expect(after).toMatchObject({ kind, retryable, partial: [{ type: 'text', text: 'par' }] });
  });

  it('reads an event named error without an error object', async () => {
    const body = `${events([delta({ content: 'x' })], '')}event: error\ndata: {"message":"boom","code":"server_error"}\n\n`;

    expect(await errorOfBody(body)).toMatchObject({ kind: 'server', message: expect.stringContaining('boom') });
  });

  it('BR-145: reports broken JSON once, with its beginning and the text so far', async () => {
    const body = `${events([delta({ content: 'par' })], '')}data: {"choices":[{"index":0,"del\ndata: {"error":{"message":"stream_read_error"}}\n\n`;
    const error = await errorOfBody(body);

    expect(error).toMatchObject({ kind: 'malformed_response', partial: [{ text: 'par' }] });
    expect(error.message).toContain('{\\"choices\\":[{\\"index\\":0');
    expect(error.message.length).toBeLessThan(400);
  });
});

describe('answers that are not a stream', () => {
  it('BR-095 B: reads a plain body to a request for a stream', async () => {
    const { response } = await readBody(JSON.stringify({ choices: [{ message: { content: 'hi' }, finish_reason: 'stop' }] }));

    expect(response.content).toStrictEqual([{ type: 'text', text: 'hi' }]);
  });

  it('BR-095 C: names the content type of a web page', async () => {
    const error = await errorOfBody('<html>login</html>', { headers: { 'content-type': 'text/html' } });

    expect(error).toMatchObject({ kind: 'malformed_response', message: expect.stringMatching(/text\/html.*<html>login/) });
  });

  it.each([
    ['JSON that is no completion', '{"hello":"world"}'],
    ['JSON that was cut', '{"choices":[{"message":{"cont'],
    ['a list', '[1,2]'],
    ['plain words', 'Service is starting, please wait'],
  ])('reports %s with its beginning', async (_name, body) => {
    const error = await errorOfBody(body);

    expect(error.kind).toBe('malformed_response');
    expect(error.message).toContain(JSON.stringify(body).slice(1, 12));
  });

  it('takes no more than 200 characters of it', async () => {
    const error = await errorOfBody(`{"a":"${'x'.repeat(5000)}"}`);

    expect(error.message.length).toBeLessThan(300);
  });

  it('reports bytes that are not UTF-8', async () => {
    const body = new Uint8Array([...new TextEncoder().encode('data: {"choices":[{"delta":{"content":"'), 0xe9, 0x22, 10, 10]);
    const fetch = async (): Promise<Response> => new Response(body);

    expect(await errorOf(chatOn({ fetch }).chat(request()))).toMatchObject({ kind: 'malformed_response', code: 'invalid_utf8' });
  });
});

describe('what a reply says about itself', () => {
  it('gives the id and the model of the answer, and its times', async () => {
    const chunk = { id: 'resp-1', model: 'test-model-2025', ...(delta({ content: 'x' }, 'stop') as object) };
    const response = await chatOn(fakeServer({ body: events([chunk]) })).chat(request());

    expect(response).toMatchObject({ responseId: 'resp-1', modelId: 'test-model-2025' });
    // AD2
    expect(response.timing?.totalMs).toBeGreaterThanOrEqual(response.timing?.firstDeltaMs ?? Infinity);
  });

  it('GN1, GN5: joins 10,000 text deltas to one part', async () => {
    const { response, deltas } = await readBody(events([...Array.from({ length: 10_000 }, () => delta({ content: 'ab' })), finish('stop')]));

    expect(response.content).toStrictEqual([{ type: 'text', text: 'ab'.repeat(10_000) }]);
    expect(deltas).toHaveLength(10_000);
  });

  it('reads images that a model made', async () => {
    const images = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }];
    const { response } = await readBody(JSON.stringify({ choices: [{ message: { content: '', images }, finish_reason: 'stop' }] }));

    expect(response.content).toStrictEqual([{ type: 'media', mediaType: 'image/png', data: 'AAAA' }]);
  });
});

describe('tools that the server runs', () => {
  const SOURCE = { type: 'url_citation', url_citation: { url: 'https://h/a', start_index: 0, end_index: 2 } };
  const RAN = { index: 0, type: 'search', arguments: '{"query":"x"}', output: 'found' };

  it('B15: leave their results in one provider part, as the server gave them', async () => {
    const { response } = await readBody(
      events([
        { citations: ['https://h/a'], choices: [{ index: 0, delta: { content: 'Hi' } }] },
        delta({ executed_tools: [RAN], annotations: [SOURCE] }),
        { citations: ['https://h/a', 'https://h/b'], choices: [{ index: 0, delta: { annotations: [SOURCE] }, finish_reason: 'stop' }] },
      ]),
    );

    expect(response.content).toStrictEqual([
      { type: 'text', text: 'Hi' },
      {
        type: 'provider',
        provider: 'openai',
        data: { citations: ['https://h/a', 'https://h/b'], executed_tools: [RAN], annotations: [SOURCE, SOURCE] },
      },
    ]);
  });

  it('B15: are read from a plain answer too, and empty lists are nothing', async () => {
    const message = { content: 'Hi', annotations: [] };
    const { response } = await readBody(JSON.stringify({ search_results: [{ title: 'A' }], citations: [], choices: [{ message, finish_reason: 'stop' }] }));

    expect(response.content.slice(1)).toStrictEqual([{ type: 'provider', provider: 'openai', data: { search_results: [{ title: 'A' }] } }]);
  });
});

describe('what a reply is made of', () => {
  it('GN2: an empty delta makes no part', async () => {
    const { response } = await readBody(events([delta({ content: '', reasoning_content: '' }), delta({ content: 'x' }), delta({ content: '' }), finish('stop')]));

    expect(response.content).toStrictEqual([{ type: 'text', text: 'x' }]);
  });

  it('GN6, GN9: is not shared with what was streamed, and says why it ended in both words', async () => {
    const { response, deltas } = await readBody(events([delta({ content: 'a' }), delta({ content: 'b' }), finish('length')]));

    expect(deltas).toStrictEqual([
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ]);
    expect(response).toMatchObject({ content: [{ type: 'text', text: 'ab' }], stopReason: 'max_tokens', rawStopReason: 'length' });
  });

  it('GN9: has no word of the provider where it gave none', async () => {
    const { response } = await readBody(events([delta({ content: 'a' }, null)]));

    expect(response).not.toHaveProperty('rawStopReason');
  });

  it('GN7: has calls in the order of the message, whole and without the index of the wire', async () => {
    const { response } = await readBody(
      events([
        callDelta({ index: 1, id: 'b', function: { name: 'g', arguments: '{"x"' } }),
        callDelta({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }),
        callDelta({ index: 1, function: { arguments: ':1}' } }),
        finish('tool_calls'),
      ]),
    );

    expect(response.content).toStrictEqual([
      { type: 'tool_call', name: 'g', inputText: '{"x":1}', providerId: 'b' },
      { type: 'tool_call', name: 'f', inputText: '{}', providerId: 'a' },
    ]);
  });

  it('GN11, AD2: comes with its times, from the start of the request, and without those that were not measured', async () => {
    const chat = (body: string) => chatOn(fakeServer({ body })).chat(request());
    const streamed = await chat(events([delta({ content: 'a' }), finish('stop')]));
    const silent = await chat(events([delta({}, 'length')]));

    expect(streamed.timing).toMatchObject({ firstDeltaMs: expect.any(Number) as number, totalMs: expect.any(Number) as number });
    expect(silent.timing?.firstDeltaMs).toBeUndefined();
  });
});
