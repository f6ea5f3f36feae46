/**
 * Messages answers: blocks, ends, usage and errors. Each body is read whole, byte by byte, and cut within characters and
 * line ends. Black-box.
 */
import { describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, runTurn } from 'turnloop';
import { block, callBlock, errorOfReply, messagesOn, messageEnd, messageStart, MODEL, named, readReply, reply, textBlock, thinkingBlock } from './anthropic-support.ts';
import { errorOf, events, fakeServer, request } from './fake-server.ts';

/** A plain body. */
function body(content: readonly unknown[], more: object = {}): string {
  return JSON.stringify({ id: 'msg_2', type: 'message', role: 'assistant', model: MODEL, content, stop_reason: 'end_turn', usage: { input_tokens: 4, output_tokens: 2 }, ...more });
}

describe('the end of a reply', () => {
  it.each([
    ['end_turn', 'end_turn'],
    ['max_tokens', 'max_tokens'],
    ['model_context_window_exceeded', 'max_tokens'],
    ['stop_sequence', 'stop_sequence'],
    ['tool_use', 'tool_use'],
    ['pause_turn', 'paused'],
    ['compaction', 'paused'],
    ['refusal', 'filtered'],
    ['END_TURN', 'end_turn'],
    ['length', 'max_tokens'],
    ['brand_new_reason', 'unknown'],
    ['constructor', 'unknown'],
    ['__proto__', 'unknown'],
  ])('FR1, GN9: reads stop reason %s as %s', async (word, stopReason) => {
    const streamed = await readReply(reply([textBlock(0, 'x')], word));
    const plain = await readReply(body([{ type: 'text', text: 'x' }], { stop_reason: word }));

    expect(streamed.response).toMatchObject({ stopReason, rawStopReason: word });
    expect(plain.response).toMatchObject({ stopReason, rawStopReason: word });
  });

  it('FR1: an end mark without a reason is the end, and calls at an end are tool use', async () => {
    const silent = await readReply(named([messageStart(), ...textBlock(0, 'x'), { type: 'message_stop' }]));
    const called = await readReply(reply([callBlock(0, 'c', '{}')], 'end_turn'));

    expect(silent.response.stopReason).toBe('end_turn');
    expect(silent.response).not.toHaveProperty('rawStopReason');
    expect(called.response).toMatchObject({ stopReason: 'tool_use', rawStopReason: 'end_turn' });
  });

  it('B7: a reason without an end mark is an end as well, whatever comes first', async () => {
    const [delta] = messageEnd('end_turn');
    const { response } = await readReply(named([messageStart(), ...textBlock(0, 'x').slice(0, 2), delta, ...textBlock(0).slice(1)]));

    expect(response).toMatchObject({ stopReason: 'end_turn', content: [{ text: 'x' }] });
  });

  it('B7: passes over what follows the end mark', async () => {
    const after = named([...textBlock(1, 'more'), { type: 'error', error: { type: 'api_error', message: 'late' } }]);

    expect((await readReply(reply([textBlock(0, 'x')]) + after)).response.content).toStrictEqual([{ type: 'text', text: 'x' }]);
    expect((await readReply(`${reply([textBlock(0, 'x')])}data: [DONE]\n\n`)).response.content).toHaveLength(1);
  });

  it('BR-065, B7: reports a stream that just stops, with the text so far, thinking that had ended, and no call', async () => {
    const cut = await errorOfReply(
      named([messageStart(), ...thinkingBlock(0, 'whole', 'S'), ...textBlock(1, 'The answer'), ...callBlock(2, 'c', '{}'), ...thinkingBlock(3, 'half', 'S2').slice(0, 2)]),
    );

    expect(cut).toMatchObject({ kind: 'network', code: 'stream_incomplete', retryable: true, usage: { inputTokens: 5 } });
    expect(cut.partial).toStrictEqual([
      { type: 'thinking', text: 'whole', signature: 'S', providerData: { model: MODEL } },
      { type: 'text', text: 'The answer' },
    ]);
  });

  it('B7: is not in its beginning, whatever a server puts there', async () => {
    const begun = { type: 'message_start', message: { id: 'm', stop_reason: 'end_turn', content: [], usage: {} } };

    expect(await errorOfReply(named([begun, ...textBlock(0, 'x')]))).toMatchObject({ code: 'stream_incomplete' });
  });

  it('keeps thinking and the provider\'s blocks of a reply that was cut off only once they were whole', async () => {
    const use = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };
    const whole = block(0, use, { type: 'input_json_delta', partial_json: '{"query":"q"}' });
    const half = block(1, { ...use, id: 'srvtoolu_2' }, { type: 'input_json_delta', partial_json: '{"que' }).slice(0, 2);
    const transcript = createTranscript();
    const dispatchEvent = createEventDispatcher({ record: transcript.record, emit: () => {} });
    const llm = messagesOn(fakeServer({ body: named([messageStart(), ...whole, ...half]) }));
    const { message } = await runTurn({ llm, buildMessages: transcript.buildMessages, dispatchEvent, input: 'hi' });

    expect(message?.content).toStrictEqual([{ type: 'provider', provider: 'anthropic', data: { ...use, input: { query: 'q' } } }]);
  });

  it('BR-121: reports the output limit with thinking alone, and with a call as it was cut', async () => {
    const thought = await readReply(reply([thinkingBlock(0, 'hm', 'S')], 'max_tokens'));
    const called = await readReply(named([messageStart(), ...callBlock(0, 'c', '{"path":"a').slice(0, 2), ...messageEnd('max_tokens')]));

    expect(thought.response).toMatchObject({ stopReason: 'max_tokens', content: [{ type: 'thinking' }] });
    expect(called.response).toMatchObject({ stopReason: 'max_tokens', content: [{ name: 'f', inputText: '{"path":"a' }] });
  });

  it('B15: at the output limit leaves out a call of the provider\'s tool that was cut', async () => {
    const use = block(1, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }, { type: 'input_json_delta', partial_json: '{"que' }).slice(0, 2);
    const { response } = await readReply(named([messageStart(), ...textBlock(0, 'x'), ...use, ...messageEnd('max_tokens')]));

    expect(response.content).toStrictEqual([{ type: 'text', text: 'x' }]);
  });

  it.each([
    ['no block', []],
    ['thinking only', [thinkingBlock(0, 'hm', 'S')]],
    ['thinking and white space', [thinkingBlock(0, 'hm', 'S'), textBlock(1, ' \n')]],
    ['an empty block', [textBlock(0)]],
  ])('GN8: reports a reply with %s as empty', async (_name, blocks) => {
    expect(await errorOfReply(reply(blocks))).toMatchObject({ kind: 'malformed_response', code: 'empty', retryable: true, message: expect.stringContaining('end_turn') });
  });

  it('GN8: takes an empty refusal as one, and what the provider did as an answer', async () => {
    const refused = await readReply(reply([], 'refusal'));
    const compacted = await readReply(reply([block(0, { type: 'compaction', content: 'sum' })], 'compaction'));

    expect(refused.response).toMatchObject({ stopReason: 'filtered', content: [] });
    expect(compacted.response).toMatchObject({ stopReason: 'paused', content: [{ type: 'provider' }] });
  });

  it('GN10: delivers nothing once the request was aborted', async () => {
    const controller = new AbortController();
    const fake = fakeServer({ body: reply([textBlock(0, 'a', 'b', 'c')]), chunking: 'cuts', open: true });
    const texts: unknown[] = [];
    const onDelta = (delta: { readonly type: string }): void => {
      texts.push(delta);
      controller.abort();
    };
    const error = await errorOf(messagesOn(fake).chat(request(undefined, { signal: controller.signal, onDelta })));

    expect(error.kind).toBe('aborted');
    expect([texts.length, fake.cancelled()]).toStrictEqual([1, 1]);
  });
});

describe('blocks', () => {
  it('BR-008, GN4: are told apart by their index, interleaved, and stand in the order of their starts', async () => {
    const start = (index: number, content_block: object): unknown => ({ type: 'content_block_start', index, content_block });
    const delta = (index: number, fragment: object): unknown => ({ type: 'content_block_delta', index, delta: fragment });
    const stop = (index: number): unknown => ({ type: 'content_block_stop', index });
    const { response, deltas } = await readReply(
      named([
        messageStart(),
        ...thinkingBlock(0, 'plan', 'S0'),
        ...textBlock(1, 'a'),
        start(2, { type: 'tool_use', id: 't1', name: 'f', input: {} }),
        delta(2, { type: 'input_json_delta', partial_json: '{"x"' }),
        start(3, { type: 'thinking', thinking: '', signature: '' }),
        start(4, { type: 'tool_use', id: 't2', name: 'g', input: {} }),
        delta(4, { type: 'input_json_delta', partial_json: '{"y":' }),
        delta(3, { type: 'thinking_delta', thinking: 'more' }),
        delta(2, { type: 'input_json_delta', partial_json: ':1}' }),
        stop(2),
        delta(3, { type: 'signature_delta', signature: 'S1' }),
        delta(4, { type: 'input_json_delta', partial_json: '2}' }),
        stop(4),
        stop(3),
        ...messageEnd('tool_use'),
      ]),
    );

    expect(response.content).toStrictEqual([
      { type: 'thinking', text: 'plan', signature: 'S0', providerData: { model: MODEL } },
      { type: 'text', text: 'a' },
      { type: 'tool_call', name: 'f', inputText: '{"x":1}', providerId: 't1' },
      { type: 'thinking', text: 'more', signature: 'S1', providerData: { model: MODEL } },
      { type: 'tool_call', name: 'g', inputText: '{"y":2}', providerId: 't2' },
    ]);
    expect(deltas).toStrictEqual([
      { type: 'thinking', text: 'plan' },
      { type: 'text', text: 'a' },
      { type: 'tool_call', callIndex: 0, name: 'f', providerId: 't1', inputText: '' },
      { type: 'tool_call', callIndex: 0, inputText: '{"x"' },
      { type: 'tool_call', callIndex: 1, name: 'g', providerId: 't2', inputText: '' },
      { type: 'tool_call', callIndex: 1, inputText: '{"y":' },
      { type: 'thinking', text: 'more' },
      { type: 'tool_call', callIndex: 0, inputText: ':1}' },
      { type: 'tool_call', callIndex: 1, inputText: '2}' },
    ]);
  });

  it('GN3: stay think, text, think, text', async () => {
    const { response } = await readReply(reply([thinkingBlock(0, 'a', 'S'), textBlock(1, 'b'), thinkingBlock(2, 'c', 'S'), textBlock(3, 'd')]));

    expect(response.content.map(({ type }) => type)).toStrictEqual(['thinking', 'text', 'thinking', 'text']);
  });

  it('BR-154, BR-137, BR-028, GN1: of thinking stay apart, each with its signature, also without text', async () => {
    const { response } = await readReply(reply([thinkingBlock(0, 'a', 'S', '0'), thinkingBlock(1, '', 'S1'), callBlock(2, 'c')], 'tool_use'));

    expect(response.content).toStrictEqual([
      { type: 'thinking', text: 'a', signature: 'S0', providerData: { model: MODEL } },
      { type: 'thinking', text: '', signature: 'S1', providerData: { model: MODEL } },
      { type: 'tool_call', name: 'f', inputText: '', providerId: 'c' },
    ]);
  });

  it('AN7, GN2: of thinking may lack text and signature, and may be redacted', async () => {
    const bare = block(0, { type: 'thinking' }, { type: 'thinking_delta', thinking: '' }, { type: 'signature_delta', signature: '' });
    const { response, deltas } = await readReply(reply([bare, block(1, { type: 'redacted_thinking', data: 'R' }), callBlock(2, 'c', '{}')], 'tool_use'));

    expect(response.content.slice(0, 2)).toStrictEqual([
      { type: 'thinking', text: '', providerData: { model: MODEL, unsigned: true } },
      { type: 'thinking', text: '', redactedData: 'R', providerData: { model: MODEL } },
    ]);
    expect(deltas.map(({ type }) => type)).toStrictEqual(['tool_call', 'tool_call']);
  });

  it('GN2: without anything in them make no part, and null fragments change nothing', async () => {
    const odd = block(1, { type: 'tool_use', id: 'c', name: 'f', input: {} }, { type: 'input_json_delta', partial_json: null }, { type: 'text_delta', text: null }, { type: 'input_json_delta', partial_json: '{}' });
    const { response } = await readReply(reply([textBlock(0, ''), odd], 'tool_use'));

    expect(response.content).toStrictEqual([{ type: 'tool_call', name: 'f', inputText: '{}', providerId: 'c' }]);
  });

  it.each([
    ['no argument text at all', [], ''],
    ['an empty text', [''], ''],
    ['text that is no JSON', ['{"a": tru', 'e,, }'], '{"a": true,, }'],
    ['a surrogate pair in two pieces', ['{"a":"\\ud83d', '\\ude00"}'], '{"a":"\\ud83d\\ude00"}'],
  ])('KS4: of a call keep %s byte for byte', async (_name, pieces, inputText) => {
    expect((await readReply(reply([callBlock(0, 'c', ...pieces)], 'tool_use'))).response.content).toMatchObject([{ inputText }]);
  });

  it('take arguments from the start of a call where nothing follows it', async () => {
    const call = (input: unknown): readonly unknown[] => block(0, { type: 'tool_use', id: 'c', name: 'f', input });
    const { response, deltas } = await readReply(reply([call({ a: 1 })], 'tool_use'));

    expect(response.content).toMatchObject([{ inputText: '{"a":1}' }]);
    expect(deltas.map((delta) => delta.type === 'tool_call' && delta.inputText)).toStrictEqual(['', '{"a":1}']);
    expect((await readReply(reply([call('{"b":2}')], 'tool_use'))).response.content).toMatchObject([{ inputText: '{"b":2}' }]);
    expect((await readReply(named([messageStart(), call({ a: 1 })[0], ...messageEnd('tool_use')]))).response.content).toMatchObject([{ inputText: '{"a":1}' }]);
    const both = block(0, { type: 'tool_use', id: 'c', name: 'f', input: { a: 1 } }, { type: 'input_json_delta', partial_json: '{"a":2}' });
    expect((await readReply(reply([both], 'tool_use'))).response.content).toMatchObject([{ inputText: '{"a":2}' }]);
  });

  it('go on without an index, and begin without a start, where a server leaves these out', async () => {
    const noIndex = [callBlock(0, 'c', '{"a"', ':1}')].flat().map((event) => ({ ...(event as object), index: undefined }));
    const noStart = [
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hm' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } },
    ];

    expect((await readReply(reply([noIndex], 'tool_use'))).response.content).toMatchObject([{ inputText: '{"a":1}' }]);
    expect((await readReply(reply([noStart]))).response.content).toMatchObject([{ type: 'thinking', text: 'hm' }, { type: 'text', text: 'hi' }]);
  });

  it('GN4: of a call without a name, and arguments of no call, are no reply', async () => {
    const nameless = block(0, { type: 'tool_use', id: 'c', input: {} }, { type: 'input_json_delta', partial_json: '{}' });
    const stray = [{ type: 'content_block_delta', index: 3, delta: { type: 'input_json_delta', partial_json: '{}' } }];

    for (const blocks of [nameless, stray, [...callBlock(0, 'c', '{}'), ...stray]]) expect(await errorOfReply(reply([blocks], 'tool_use'))).toMatchObject({ kind: 'malformed_response', code: 'nameless_call' });
  });

  it('GN7: of a call bear the host\'s own name of the tool', async () => {
    const tools = [{ name: 'a.b', description: 'd', inputSchema: { type: 'object' } }];
    const probe = fakeServer({ body: reply([textBlock(0, 'x')]) });
    await messagesOn(probe).chat(request(undefined, { tools }));
    const [{ name }] = probe.sent[0]!.body['tools'] as [{ name: string }];
    const deltas: unknown[] = [];
    const { content } = await messagesOn(fakeServer({ body: reply([block(0, { type: 'tool_use', id: 'c', name, input: {} })], 'tool_use') })).chat(request(undefined, { tools, onDelta: (delta) => deltas.push(delta) }));

    expect(content).toMatchObject([{ name: 'a.b' }]);
    expect(deltas).toMatchObject([{ name: 'a.b' }]);
  });

  it('B15: of the provider\'s own are parts as they came, with what was streamed of them', async () => {
    const use = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };
    const found = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ type: 'web_search_result', encrypted_content: 'E', page_age: null }] };
    const { response, deltas } = await readReply(
      reply([
        block(0, use, { type: 'input_json_delta', partial_json: '{"que' }, { type: 'input_json_delta', partial_json: 'ry":"q"}' }),
        block(1, found),
        block(2, { type: 'compaction', content: null }, { type: 'compaction_delta', content: 'Sum' }, { type: 'compaction_delta', content: 'med up', encrypted_content: 'X' }),
        block(3, { type: 'brand_new', a: { b: [1] } }),
      ]),
    );

    expect(response.content).toStrictEqual(
      [{ ...use, input: { query: 'q' } }, found, { type: 'compaction', content: 'Summed up', encrypted_content: 'X' }, { type: 'brand_new', a: { b: [1] } }].map((data) => ({
        type: 'provider',
        provider: 'anthropic',
        data,
      })),
    );
    expect(deltas).toStrictEqual([]);
  });

  it('B15: keep what they cite and what else the provider attached', async () => {
    const citation = { type: 'web_search_result_location', url: 'https://h', encrypted_index: 'I' };
    const cited = block(0, { type: 'text', text: '', citations: [] }, { type: 'citations_delta', citation }, { type: 'text_delta', text: 'x' });
    const called = block(1, { type: 'tool_use', id: 'c', name: 'f', input: {}, caller: { type: 'code_execution_20260120', tool_id: 'srvtoolu_1' }, toolset_name: null });
    const { response } = await readReply(reply([cited, called], 'tool_use'));

    expect(response.content).toStrictEqual([
      { type: 'text', text: 'x', providerData: { model: MODEL, extra: { citations: [citation] } } },
      { type: 'tool_call', name: 'f', inputText: '', providerId: 'c', providerData: { model: MODEL, extra: { caller: { type: 'code_execution_20260120', tool_id: 'srvtoolu_1' } } } },
    ]);
  });

  it('KS4: of a plain body are read alike', async () => {
    const { response, deltas } = await readReply(
      body(
        [
          { type: 'thinking', thinking: 'plan', signature: 'S' },
          { type: 'text', text: 'Hi', citations: null },
          { type: 'tool_use', id: 'c', name: 'f', input: { a: 1 } },
          { type: 'tool_use', id: 'd', name: 'f', input: {} },
          { type: 'tool_use', id: 'e', name: 'f', input: null },
          { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } },
        ],
        { stop_reason: 'tool_use' },
      ),
    );

    expect(response).toMatchObject({
      responseId: 'msg_2',
      modelId: MODEL,
      usage: { inputTokens: 4, outputTokens: 2 },
      content: [{ text: 'plan', signature: 'S' }, { type: 'text', text: 'Hi' }, { inputText: '{"a":1}' }, { inputText: '{}' }, { inputText: 'null' }, { type: 'provider' }],
    });
    expect(response.content[1]).not.toHaveProperty('providerData');
    expect(deltas.map((delta) => (delta.type === 'tool_call' ? delta.inputText : delta.text))).toStrictEqual(['plan', 'Hi', '', '{"a":1}', '', '{}', '', 'null']);
  });

  it('are read from one event that holds the whole message', async () => {
    expect((await readReply(events([JSON.parse(body([{ type: 'text', text: 'all' }]))]))).response).toMatchObject({ content: [{ text: 'all' }], stopReason: 'end_turn' });
  });

  it('GN5: may be many, and long', async () => {
    const pieces = Array.from({ length: 10_000 }, (_, at) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: `${at % 10}` } }));
    const calls = Array.from({ length: 100 }, (_, at) => callBlock(at + 1, `c${at}`, '{"a":"', 'x'.repeat(10_000), '"}')).flat();
    const { content } = await messagesOn(fakeServer({ body: named([messageStart(), ...textBlock(0).slice(0, 1), ...pieces, ...calls, ...messageEnd('tool_use')]) })).chat(request());

    expect(content[0]).toMatchObject({ type: 'text', text: '0123456789'.repeat(1000) });
    expect(content).toHaveLength(101);
    expect(content.slice(1).every((part) => part.type === 'tool_call' && part.inputText.length === 10_008)).toBe(true);
  });

  it('pass over events and blocks that are none', async () => {
    const odd = [{ type: 'ping' }, { type: 'brand_new' }, 'text', null, 7, [], { type: 'content_block_start', index: 9 }, { type: 'content_block_delta', index: 9, delta: 'x' }, { type: 'content_block_stop', index: 77 }, { type: 'message_start' }];

    expect((await readReply(named([...odd, messageStart(), ...odd, ...textBlock(0, 'x'), ...odd, ...messageEnd('end_turn')]))).response.content).toStrictEqual([{ type: 'text', text: 'x' }]);
  });

  it('AN7: know themselves by the name of the event where the data does not say', async () => {
    const unnamed = reply([textBlock(0, 'x')]).replaceAll(/(data: \{)"type":"(?:message|content)_[a-z_]+",?/g, '$1');

    expect((await readReply(unnamed)).response.content).toStrictEqual([{ type: 'text', text: 'x' }]);
  });
});

describe('time', () => {
  it('is given to a model that thinks unseen or waits for a tool of the provider, as before its first token', async () => {
    const read = async (...list: readonly unknown[]): Promise<string | undefined> => {
      const body = named([messageStart(), ...textBlock(0, 'I look.'), ...list]);
      return (await errorOf(messagesOn(fakeServer({ body, open: true }), { timeouts: { firstTokenMs: 200, betweenTokensMs: 20 } }).chat(request()))).code;
    };
    const search = block(1, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} });
    const [unseen, , done] = thinkingBlock(1, '', 'S');

    expect(await read()).toBe('between_tokens_timeout');
    expect(await read(unseen)).toBe('first_token_timeout');
    expect(await read(...search)).toBe('first_token_timeout');
    expect(await read(...thinkingBlock(1, 'seen').slice(0, 2))).toBe('between_tokens_timeout');
    expect(await read(unseen, done)).toBe('between_tokens_timeout');
  });
});

describe('usage', () => {
  it.each([
    ['BR-023: the cache beside the input', { input_tokens: 100, cache_read_input_tokens: 900, cache_creation_input_tokens: 0, output_tokens: 1 }, { output_tokens: 10 }, [100, 900, 0, 10, 0]],
    ['AN7: from both events', { input_tokens: 40, cache_creation_input_tokens: 7, output_tokens: 1 }, { output_tokens: 3 }, [40, 0, 7, 3, 0]],
    ['BR-100 A: null that changes nothing', { input_tokens: 40, output_tokens: 0 }, { input_tokens: null, cache_read_input_tokens: null, output_tokens: 3 }, [40, 0, 0, 3, 0]],
    ['BR-100 B: the later, true number', { input_tokens: 0, output_tokens: 0 }, { input_tokens: 321, cache_read_input_tokens: 5, output_tokens: 3 }, [321, 5, 0, 3, 0]],
    ['how much of it was thinking', { input_tokens: 1, output_tokens: 1 }, { output_tokens: 30, output_tokens_details: { thinking_tokens: 20 } }, [1, 0, 0, 30, 20]],
    ['odd values', { input_tokens: 'x', output_tokens: -1 }, { output_tokens: 2, output_tokens_details: 7 }, [0, 0, 0, 2, 0]],
    ['none at the start', undefined, { input_tokens: 9, output_tokens: 2 }, [9, 0, 0, 2, 0]],
    ['none at the end', { input_tokens: 9, output_tokens: 2 }, undefined, [9, 0, 0, 2, 0]],
  ])('is %s', async (_name, atStart, atEnd, [inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, thinkingTokens]) => {
    const { response } = await readReply(named([messageStart(atStart ?? null), ...textBlock(0, 'x'), ...messageEnd('end_turn', atEnd ?? null)]));

    expect(response.usage).toStrictEqual({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, thinkingTokens });
  });

  it('is nothing where the server tells nothing', async () => {
    const { response } = await readReply(named([...textBlock(0, 'x'), { type: 'message_delta', delta: { stop_reason: 'end_turn' } }]));

    expect(response).toMatchObject({ usage: { inputTokens: 0, outputTokens: 0 }, stopReason: 'end_turn' });
    expect(response).not.toHaveProperty('responseId');
  });
});

describe('errors', () => {
  it.each([
    [400, 'invalid_request_error', 'max_tokens: required', 'invalid_request', false],
    [401, 'authentication_error', 'invalid x-api-key', 'auth', false],
    [402, 'billing_error', 'pay', 'quota', false],
    [403, 'permission_error', 'no', 'permission', false],
    [404, 'not_found_error', 'model: claude-x', 'not_found', false],
    [408, 'timeout_error', 'slow', 'timeout', true],
    [409, 'conflict_error', 'changed meanwhile', 'server', true],
    [413, 'request_too_large', 'Request exceeds the maximum size', 'request_too_large', false],
    [413, 'request_too_large', 'too many tokens', 'context_overflow', false],
    [429, 'rate_limit_error', 'Number of request tokens has exceeded your per-minute rate limit', 'rate_limit', true],
    [500, 'api_error', 'Internal server error', 'server', true],
    [502, '', 'bad gateway', 'server', true],
    [503, '', 'unavailable', 'overloaded', true],
    [504, 'timeout_error', 'Request timed out', 'timeout', true],
    [529, 'overloaded_error', 'Overloaded', 'overloaded', true],
    [400, 'invalid_request_error', 'prompt is too long: 208310 tokens > 200000 maximum', 'context_overflow', false],
    [400, 'invalid_request_error', 'input length and `max_tokens` exceed context limit: 1 + 2 > 2', 'context_overflow', false],
    [400, 'invalid_request_error', 'Your credit balance is too low to access the Anthropic API.', 'invalid_request', false],
    [400, 'invalid_request_error', 'messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.', 'invalid_history', false],
    [400, 'invalid_request_error', 'messages.2: `tool_result` block(s) provided when previous message does not contain any `tool_use` blocks', 'invalid_history', false],
    [400, 'invalid_request_error', 'messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: x', 'invalid_history', false],
    [400, 'invalid_request_error', 'messages: `tool_use` ids must be unique', 'invalid_history', false],
    [400, 'invalid_request_error', 'messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: x', 'invalid_history', false],
    [400, 'invalid_request_error', 'messages: first message must use the "user" role', 'invalid_history', false],
    [400, 'invalid_request_error', 'messages: text content blocks must be non-empty', 'invalid_history', false],
    [400, 'invalid_request_error', 'messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6 bytes > 5 bytes', 'request_too_large', false],
    [400, 'invalid_request_error', 'Could not process image', 'media_rejected', false],
  ])('EE1–EE5: %d %s "%s" is %s', async (status, type, message, kind, retryable) => {
    const headers = { 'request-id': 'req_1', 'retry-after': '7' };
    const answer = { status, headers, body: JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_1' }) };

    expect(await errorOf(messagesOn(fakeServer(answer)).chat(request()))).toMatchObject({
      kind,
      retryable,
      status,
      requestId: 'req_1',
      retryAfterMs: 7000,
      message: expect.stringContaining(message),
    });
  });

  it.each([
    ['This model does not support effort level \'xhigh\'. Supported levels: high, low.', /`thinkingEffort` option/],
    ['output_config.effort: Input should be \'low\'', /`thinkingEffort` option/],
    ['"thinking.type.disabled" is not supported for this model.', /`thinkingMode` option/],
  ])('EE9: say which option sets what was refused: %s', async (message, hint) => {
    const answer = { status: 400, body: JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } }) };

    expect((await errorOf(messagesOn(fakeServer(answer)).chat(request()))).message).toMatch(hint);
  });

  const before = [messageStart(), ...textBlock(0, 'par').slice(0, 2)];

  it.each([
    ['overloaded_error', 'overloaded', true],
    ['api_error', 'server', true],
    ['rate_limit_error', 'rate_limit', true],
    ['invalid_request_error', 'invalid_request', false],
    ['timeout_error', 'timeout', true],
    ['brand_new_error', 'server', true],
  ] as const)('BR-043, BR-067: in a stream, %s is %s, before and after text', async (type, kind, retryable) => {
    const error = { type: 'error', error: { type, message: 'Overworked' } };
    const [early, late] = [await errorOfReply(named([messageStart(), error])), await errorOfReply(named([...before, error]))];

    expect(early).toMatchObject({ kind, retryable, partial: undefined, message: expect.stringContaining('Overworked') });
    expect(late).toMatchObject({ kind, retryable, partial: [{ type: 'text', text: 'par' }], usage: { inputTokens: 5 } });
  });

  it('BR-043: in a stream end the turn, and never as if it were done', async () => {
    const transcript = createTranscript();
    const texts: string[] = [];
    const dispatchEvent = createEventDispatcher({ record: transcript.record, emit: (event) => event.type === 'text.delta' && texts.push(event.text) });
    const llm = messagesOn(fakeServer({ body: named([...before, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }]) }));
    const result = await runTurn({ llm, buildMessages: transcript.buildMessages, dispatchEvent, input: 'hi' });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'overloaded', retryable: true }, message: { status: 'interrupted', content: [{ type: 'text', text: 'par' }] } });
    expect(texts).toStrictEqual(['par']);
  });

  it.each([
    ['a bare error under its name', 'event: error\ndata: {"type":"overloaded_error","message":"busy"}\n\n'],
    ['one without a type', 'data: {"error":{"type":"overloaded_error","message":"busy"}}\n\n'],
    ['a plain body', JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'busy' } })],
  ])('BR-067: are seen in a 200 that is %s', async (_name, text) => {
    expect(await errorOfReply(text)).toMatchObject({ kind: 'overloaded', message: expect.stringContaining('busy') });
  });

  it('say that an answer is not the protocol\'s', async () => {
    expect(await errorOfReply('{"choices":[]}')).toMatchObject({ kind: 'malformed_response', message: expect.stringContaining('baseUrl') });
  });

  it('EE8: of the connection are network errors, with what had come', async () => {
    const failure = new TypeError('terminated', { cause: { code: 'UND_ERR_SOCKET' } });
    const error = await errorOf(messagesOn(fakeServer({ body: named(before), failure })).chat(request()));

    expect(error).toMatchObject({ kind: 'network', retryable: true, partial: [{ text: 'par' }] });
  });

  it('B12: show no key', async () => {
    const answer = { status: 401, body: JSON.stringify({ type: 'error', error: { type: 'authentication_error', message: 'invalid x-api-key sk-ant-test' } }) };
    for (const authScheme of ['x-api-key', 'bearer'] as const) {
      const error = await errorOf(messagesOn(fakeServer(answer), { authScheme }).chat(request()));
      expect(`${error.message} ${JSON.stringify(error)} ${String(error.stack)}`).not.toContain('sk-ant-test');
    }
    expect(JSON.stringify(messagesOn(fakeServer(answer)))).not.toContain('sk-ant');
  });
});
