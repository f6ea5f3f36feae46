/**
 * Responses answers: items, fragments, ends, usage, errors and odd bodies. Each body is read whole, byte by byte, and cut
 * within characters and line ends. Black-box.
 */
import { describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, type LLMDelta, runTurn, toolMessage, userMessage } from 'turnloop';
import { errorOf, fakeServer, request } from './fake-server.ts';
import {
  called,
  completed,
  created,
  errorOfReply,
  inputOf,
  type Item,
  itemEvents,
  MODEL,
  named,
  readReply,
  reasoning,
  reply,
  responseOf,
  responsesOn,
  said,
  sentBack,
  streamOf,
} from './openai-responses-support.ts';

function added(index: number, item: Item): Item {
  return { type: 'response.output_item.added', output_index: index, item };
}

function done(index: number, item: Item): Item {
  return { type: 'response.output_item.done', output_index: index, item };
}

function textDelta(index: number, delta: unknown, more: Item = {}): Item {
  return { type: 'response.output_text.delta', output_index: index, content_index: 0, delta, ...more };
}

function inputDelta(index: number, delta: string): Item {
  return { type: 'response.function_call_arguments.delta', output_index: index, delta };
}

function summaryDelta(index: number, summary: number, delta: string): Item {
  return { type: 'response.reasoning_summary_text.delta', output_index: index, summary_index: summary, delta };
}

const MESSAGE = { type: 'message', id: 'msg_1', role: 'assistant', status: 'in_progress', content: [] };
const CALL = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'sh', arguments: '' };

function textOfDeltas(deltas: readonly LLMDelta[], type: 'text' | 'thinking'): string {
  return deltas.map((delta) => (delta.type === type ? delta.text : '')).join('');
}

describe('a reply', () => {
  it('reads text, with its usage, its id and its model', async () => {
    const usage = { input_tokens: 100, input_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 }, output_tokens: 9, output_tokens_details: { reasoning_tokens: 4 } };
    const body = named([
      created(),
      added(0, MESSAGE),
      { type: 'response.content_part.added', output_index: 0, content_index: 0, part: { type: 'output_text', text: '' } },
      textDelta(0, 'Hel'),
      textDelta(0, 'lo'),
      done(0, said(1, 'Hello')),
      completed([said(1, 'Hello')], { usage, model: 'gpt-5-test-2025' }),
    ]);

    const { response, deltas } = await readReply(body);

    expect(response).toStrictEqual({
      content: [{ type: 'text', text: 'Hello' }],
      stopReason: 'end_turn',
      rawStopReason: 'completed',
      usage: { inputTokens: 30, cacheReadTokens: 60, cacheWriteTokens: 10, outputTokens: 9, thinkingTokens: 4 },
      responseId: 'resp_1',
      modelId: 'gpt-5-test-2025',
    });
    expect(deltas).toStrictEqual([
      { type: 'text', text: 'Hel' },
      { type: 'text', text: 'lo' },
    ]);
  });

  it('BR-023, BR-068: cached tokens are a part of the input, thinking is a part of the output', async () => {
    const usage = { input_tokens: 1000, output_tokens: 33, input_tokens_details: { cached_tokens: 900 }, output_tokens_details: { reasoning_tokens: 21 } };
    const { response } = await readReply(reply([said(1, 'x')], { usage }));

    expect(response.usage).toStrictEqual({ inputTokens: 100, cacheReadTokens: 900, cacheWriteTokens: 0, outputTokens: 33, thinkingTokens: 21 });
  });

  it.each([null, 'many', {}, { input_tokens: -1, output_tokens: 'x', input_tokens_details: 7 }])('reads odd usage as nothing: %j', async (usage) => {
    const { response } = await readReply(reply([said(1, 'x')], { usage }));

    expect(response.usage).toMatchObject({ inputTokens: 0, outputTokens: 0 });
  });

  it.each([{}, null, { input_tokens: null, output_tokens: null }])('law-5: usage that says nothing takes none away that came before: %j', async (usage) => {
    const told = { type: 'response.in_progress', response: responseOf([], { status: 'in_progress', usage: { input_tokens: 7, output_tokens: 2 } }) };
    const { response } = await readReply(named([told, ...itemEvents([said(1, 'x')]), completed([], { usage })]));

    expect(response.usage).toMatchObject({ inputTokens: 7, outputTokens: 2 });
  });

  it('GN3: keeps every item in its place', async () => {
    const search = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } };
    const items = [reasoning(1), search, said(1, 'a'), reasoning(2), called(1), said(2, 'b'), called(2)];
    const streamed = await readReply(reply(items));
    const plain = await readReply(JSON.stringify(responseOf(items)));

    expect(streamed.response.content.map(({ type }) => type)).toStrictEqual(['thinking', 'provider', 'text', 'thinking', 'tool_call', 'text', 'tool_call']);
    expect(streamed.response.content[1]).toStrictEqual({ type: 'provider', provider: 'openai', data: search });
    expect(plain.response).toStrictEqual(streamed.response);
  });

  it('GN1: reads the same from fragments, from wholes, and from a body', async () => {
    const items = [reasoning(1, { summary: [{ type: 'summary_text', text: 'why' }] }), said(1, 'text'), called(1, 'f', '{"a":1}')];
    const fragments = [
      added(0, { type: 'reasoning', id: 'rs_1', summary: [] }),
      summaryDelta(0, 0, 'w'),
      summaryDelta(0, 0, 'hy'),
      { type: 'response.reasoning_summary_text.done', output_index: 0, summary_index: 0, text: 'why' },
      done(0, items[0]!),
      added(1, MESSAGE),
      textDelta(1, 'te'),
      textDelta(1, 'xt'),
      { type: 'response.output_text.done', output_index: 1, content_index: 0, text: 'text' },
      { type: 'response.content_part.done', output_index: 1, content_index: 0, part: { type: 'output_text', text: 'text' } },
      done(1, items[1]!),
      added(2, { ...items[2], arguments: '' }),
      inputDelta(2, '{"a"'),
      inputDelta(2, ':1}'),
      { type: 'response.function_call_arguments.done', output_index: 2, arguments: '{"a":1}' },
      done(2, items[2]!),
    ];
    const readings = [
      await readReply(named([created(), ...fragments, completed(items)])),
      await readReply(reply(items)),
      await readReply(named([created(), completed(items)])),
      await readReply(named([completed(items)])),
      await readReply(JSON.stringify(responseOf(items))),
    ];

    for (const { response, deltas } of readings) {
      expect(response).toStrictEqual(readings[0]!.response);
      expect([textOfDeltas(deltas, 'thinking'), textOfDeltas(deltas, 'text')]).toStrictEqual(['why', 'text']);
      expect(deltas.filter(({ type }) => type === 'tool_call').map((delta) => (delta as { inputText: string }).inputText).join('')).toBe('{"a":1}');
    }
    expect(readings[0]!.response.content).toStrictEqual([
      { type: 'thinking', text: 'why', redactedData: 'E1', providerData: { model: MODEL, type: 'reasoning', id: 'rs_1' } },
      { type: 'text', text: 'text', providerData: { id: 'msg_1' } },
      { type: 'tool_call', name: 'f', inputText: '{"a":1}', providerId: 'call_1', providerData: { model: MODEL, type: 'function_call', id: 'fc_1' } },
    ]);
  });

  it('GN2: makes no part of nothing', async () => {
    const { response } = await readReply(streamOf(added(0, MESSAGE), textDelta(0, ''), done(0, said(1, '')), ...itemEvents([said(2, 'b')])));

    expect(response.content).toStrictEqual([{ type: 'text', text: 'b' }]);
  });

  it('keeps annotations and the phase with their text', async () => {
    const annotation = { type: 'url_citation', url: 'https://h/', start_index: 0, end_index: 1, title: 't' };
    const later = { ...annotation, title: 'later' };
    const content = [
      { type: 'output_text', text: 'a', annotations: [annotation] },
      { type: 'output_text', text: 'b', annotations: [] },
    ];
    const whole = await readReply(reply([said(1, '', { content, phase: 'final_answer' })]));
    const streamed = await readReply(
      streamOf(added(0, { ...MESSAGE, phase: 'commentary' }), textDelta(0, 'x'), { type: 'response.output_text.annotation.added', output_index: 0, content_index: 0, annotation: later }),
    );

    expect(whole.response.content).toStrictEqual([
      { type: 'text', text: 'a', providerData: { phase: 'final_answer', annotations: [annotation] } },
      { type: 'text', text: 'b', providerData: { phase: 'final_answer' } },
    ]);
    expect(streamed.response.content).toStrictEqual([{ type: 'text', text: 'x', providerData: { phase: 'commentary', annotations: [later] } }]);
  });

  it('a refusal is text of a reply that was filtered', async () => {
    const item = said(1, '', { content: [{ type: 'refusal', refusal: 'I will not.' }] });
    const streamed = await readReply(streamOf(added(0, MESSAGE), { type: 'response.refusal.delta', output_index: 0, delta: 'I will ' }, { type: 'response.refusal.done', output_index: 0, refusal: 'I will not.' }, done(0, item)));
    const plain = await readReply(JSON.stringify(responseOf([item])));

    expect(streamed.response).toMatchObject({ content: [{ type: 'text', text: 'I will not.' }], stopReason: 'filtered', rawStopReason: 'completed' });
    expect(textOfDeltas(streamed.deltas, 'text')).toBe('I will not.');
    expect(plain.response).toStrictEqual(streamed.response);
  });

  it('GN5: ten thousand fragments are one part', async () => {
    const body = streamOf(added(0, MESSAGE), ...Array.from({ length: 10_000 }, () => textDelta(0, 'ab')));
    const deltas: LLMDelta[] = [];
    const response = await responsesOn(fakeServer({ body })).chat(request(undefined, { onDelta: (delta) => deltas.push(delta) }));

    expect(response.content).toStrictEqual([{ type: 'text', text: 'ab'.repeat(10_000) }]);
    expect(deltas).toHaveLength(10_000);
  });
});

describe('thinking', () => {
  it('OR2: one item is one part, with its encrypted content and a break between summaries', async () => {
    const item = reasoning(1, { summary: ['one', 'two'].map((text) => ({ type: 'summary_text', text })) });
    const body = streamOf(
      added(0, { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'not yet' }),
      { type: 'response.reasoning_summary_part.added', output_index: 0, summary_index: 0 },
      summaryDelta(0, 0, 'o'),
      summaryDelta(0, 0, 'ne'),
      summaryDelta(0, 1, 't'),
      summaryDelta(0, 1, 'wo'),
      done(0, item),
      ...itemEvents([said(2, 'x')]).map((event) => ({ ...event, output_index: 1 })),
    );

    const { response, deltas } = await readReply(body);

    expect(response.content[0]).toStrictEqual({
      type: 'thinking',
      text: 'one\n\ntwo',
      redactedData: 'E1',
      providerData: { model: MODEL, type: 'reasoning', id: 'rs_1', lengths: [3, 3] },
    });
    expect(textOfDeltas(deltas, 'thinking')).toBe('one\n\ntwo');
  });

  it('OR2: items stay apart, also empty ones', async () => {
    const { response } = await readReply(reply([reasoning(1), reasoning(2), reasoning(3, { encrypted_content: null }), said(1, 'x')]));

    expect(response.content.map((part) => part.type === 'thinking' && [part.text, part.redactedData])).toStrictEqual([['', 'E1'], ['', 'E2'], ['', undefined], false]);
  });

  it('shows the thinking itself where a server shows no summary, and says that it is that', async () => {
    const item = { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'hm, well' }] };
    const streamed = await readReply(
      streamOf(
        added(0, { type: 'reasoning', id: 'rs_1', summary: [], content: [] }),
        { type: 'response.content_part.added', output_index: 0, content_index: 0, part: { type: 'reasoning_text', text: '' } },
        { type: 'response.reasoning_text.delta', output_index: 0, content_index: 0, delta: 'hm, ' },
        { type: 'response.reasoning_text.delta', output_index: 0, content_index: 0, delta: 'well' },
        { type: 'response.reasoning_text.done', output_index: 0, content_index: 0, text: 'hm, well' },
        done(0, item),
        ...itemEvents([said(2, 'x')]).map((event) => ({ ...event, output_index: 1 })),
      ),
    );
    const plain = await readReply(JSON.stringify(responseOf([item, said(2, 'x')])));

    expect(streamed.response.content[0]).toStrictEqual({ type: 'thinking', text: 'hm, well', providerData: { model: MODEL, type: 'reasoning', id: 'rs_1', raw: true } });
    expect(textOfDeltas(streamed.deltas, 'thinking')).toBe('hm, well');
    expect(plain.response.content[0]).toStrictEqual(streamed.response.content[0]);
  });

  it('shows what came first where a server shows both, and keeps the other', async () => {
    const both = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'in short' }], content: [{ type: 'reasoning_text', text: 'at length' }] };
    const rawFirst = await readReply(streamOf(added(0, { type: 'reasoning', id: 'rs_1' }), { type: 'response.reasoning_text.delta', output_index: 0, delta: 'at length' }, done(0, both), ...itemEvents([said(2, 'x')]).map((event) => ({ ...event, output_index: 1 }))));
    const plain = await readReply(JSON.stringify(responseOf([both, said(2, 'x')])));

    expect(rawFirst.response.content[0]).toMatchObject({ text: 'at length', providerData: { raw: true, summary: ['in short'] } });
    expect(textOfDeltas(rawFirst.deltas, 'thinking')).toBe('at length');
    expect(plain.response.content[0]).toMatchObject({ text: 'in short', providerData: { raw: 'at length' } });
    expect(textOfDeltas(plain.deltas, 'thinking')).toBe('in short');
  });

  it('keeps no id that changed between events, is too long, or has not its type\'s prefix', async () => {
    const id = (first: string, last: string): Promise<unknown> =>
      readReply(streamOf(added(0, { type: 'reasoning', id: first }), done(0, reasoning(1, { id: last })), ...itemEvents([said(2, 'x')]).map((event) => ({ ...event, output_index: 1 })))).then(
        ({ response }) => (response.content[0] as { providerData: { id?: unknown } }).providerData.id,
      );

    expect([await id('rs_1', 'rs_1'), await id('rs_1', 'rs_2'), await id('x', 'rs_2'), await id('x', 'x'), await id(`rs_${'a'.repeat(62)}`, `rs_${'a'.repeat(62)}`)]).toStrictEqual([
      'rs_1',
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('calls', () => {
  it('OR3: reads several calls, each with the id that its output is to name', async () => {
    const { response, deltas } = await readReply(reply([called(1, 'f', '{"a":1}'), called(2, 'g', '{}')]));

    expect(response).toMatchObject({
      content: [
        { type: 'tool_call', name: 'f', inputText: '{"a":1}', providerId: 'call_1' },
        { type: 'tool_call', name: 'g', inputText: '{}', providerId: 'call_2' },
      ],
      stopReason: 'tool_use',
    });
    expect(response.content[0]).not.toHaveProperty('providerData');
    expect(deltas[0]).toStrictEqual({ type: 'tool_call', callIndex: 0, name: 'f', providerId: 'call_1', inputText: '' });
  });

  it('GN4, BR-106: fragments of two calls that alternate go to their own', async () => {
    const { response, deltas } = await readReply(
      streamOf(
        added(0, { ...CALL, call_id: 'a', name: 'f' }),
        added(1, { ...CALL, id: 'fc_2', call_id: 'b', name: 'g' }),
        inputDelta(0, '{"n":'),
        inputDelta(1, '{"m":'),
        inputDelta(0, '1}'),
        inputDelta(1, '2}'),
      ),
    );

    expect(response.content).toMatchObject([
      { name: 'f', providerId: 'a', inputText: '{"n":1}' },
      { name: 'g', providerId: 'b', inputText: '{"m":2}' },
    ]);
    expect(deltas.slice(2).map((delta) => delta.type === 'tool_call' && delta.callIndex)).toStrictEqual([0, 1, 0, 1]);
  });

  it.each([
    ['the event of the whole arguments', [{ type: 'response.function_call_arguments.done', output_index: 0, item_id: 'fc_1', arguments: '{"command":"ls"}' }, done(0, CALL)]],
    ['the whole item', [done(0, { ...CALL, arguments: '{"command":"ls"}' })]],
    ['the whole item, as an object', [done(0, { ...CALL, arguments: { command: 'ls' } })]],
    ['the event of the whole arguments, as an object', [{ type: 'response.function_call_arguments.done', output_index: 0, arguments: { command: 'ls' } }, done(0, { ...CALL, arguments: { command: 'ls' } })]],
    ['fragments and both', [inputDelta(0, '{"command":'), inputDelta(0, '"ls"}'), { type: 'response.function_call_arguments.done', output_index: 0, arguments: '{"command":"ls"}' }, done(0, { ...CALL, arguments: '{"command":"ls"}' })]],
    ['fragments and the same, written in another way', [inputDelta(0, '{"command":"ls"}'), done(0, { ...CALL, arguments: '{"command": "ls"}' })]],
  ])('OR4, BR-152: takes arguments from %s', async (_name, list) => {
    const { response, deltas } = await readReply(streamOf(added(0, CALL), ...list));

    expect(response.content).toStrictEqual([{ type: 'tool_call', name: 'sh', inputText: '{"command":"ls"}', providerId: 'call_1' }]);
    expect(deltas.map((delta) => (delta as { inputText: string }).inputText).join('')).toBe('{"command":"ls"}');
  });

  it('OR4, BR-152: takes arguments that only the end of the response holds', async () => {
    const { response } = await readReply(named([created(), added(0, CALL), completed([{ ...CALL, arguments: '{"command":"ls"}' }])]));

    expect(response.content).toMatchObject([{ name: 'sh', inputText: '{"command":"ls"}' }]);
  });

  it.each([
    ['the event of the whole arguments', { type: 'response.function_call_arguments.done', output_index: 0, arguments: '{"command":"rm"}' }],
    ['the whole item', done(0, { ...CALL, arguments: '{"command":"rm"}' })],
    ['what the fragments are only a part of', done(0, { ...CALL, arguments: '{"command":"ls"} and more' })],
  ])('OR4: arguments that differ from %s are an error', async (_name, last) => {
    expect(await errorOfReply(streamOf(added(0, CALL), inputDelta(0, '{"command":"ls"}'), last))).toMatchObject({ kind: 'malformed_response', code: 'input_mismatch', retryable: true });
  });

  it('BR-019: arguments that are empty or missing are empty text', async () => {
    for (const empty of ['', null, undefined]) {
      const { response } = await readReply(streamOf(added(0, CALL), done(0, { ...CALL, arguments: empty })));

      expect(response.content).toMatchObject([{ name: 'sh', inputText: '' }]);
    }
  });

  it('a name that comes late holds the call back till then', async () => {
    const { response, deltas } = await readReply(
      streamOf(added(0, { type: 'function_call', id: 'fc_1' }), inputDelta(0, '{"a":'), inputDelta(0, '1}'), added(1, { ...CALL, name: 'g', call_id: 'call_2' }), done(0, called(1)), done(1, { ...CALL, name: 'g', call_id: 'call_2' })),
    );

    expect(response.content).toMatchObject([
      { name: 'g', providerId: 'call_2' },
      { name: 'f', providerId: 'call_1', inputText: '{"a":1}' },
    ]);
    expect(deltas).toMatchObject([
      { callIndex: 0, name: 'g' },
      { callIndex: 1, name: 'f', providerId: 'call_1', inputText: '{"a":1}' },
    ]);
  });

  it('a call without a name is an error, and one without an id has none of the item\'s but its own', async () => {
    const nameless = streamOf(added(0, { type: 'function_call', id: 'fc_1', call_id: 'call_1' }), inputDelta(0, '{}'));
    const { response } = await readReply(streamOf(done(0, { ...CALL, call_id: undefined })));
    const { response: bare } = await readReply(streamOf(done(0, { type: 'function_call', name: 'sh' })));

    expect(await errorOfReply(nameless)).toMatchObject({ kind: 'malformed_response', code: 'nameless_call' });
    expect(response.content).toStrictEqual([{ type: 'tool_call', name: 'sh', inputText: '', providerId: 'fc_1' }]);
    expect(bare.content).toStrictEqual([{ type: 'tool_call', name: 'sh', inputText: '' }]);
  });

  it('a call of a custom tool is a call whose input is the text as it came', async () => {
    const item = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_1', name: 'patch', input: '*** Begin\n+x' };
    const streamed = await readReply(
      streamOf(
        added(0, { ...item, input: '' }),
        { type: 'response.custom_tool_call_input.delta', output_index: 0, delta: '*** Begin' },
        { type: 'response.custom_tool_call_input.delta', output_index: 0, delta: '\n+x' },
        { type: 'response.custom_tool_call_input.done', output_index: 0, input: '*** Begin\n+x' },
        done(0, item),
      ),
    );
    const plain = await readReply(JSON.stringify(responseOf([item])));

    expect(streamed.response).toMatchObject({ stopReason: 'tool_use' });
    expect(streamed.response.content).toStrictEqual([
      { type: 'tool_call', name: 'patch', inputText: '*** Begin\n+x', providerId: 'call_1', providerData: { model: MODEL, type: 'custom_tool_call' } },
    ]);
    expect(plain.response.content).toStrictEqual(streamed.response.content);
  });

  it('keeps what else has to go back with a call', async () => {
    const { response } = await readReply(reply([called(1, 'f', '{}', { namespace: 'n', caller: { type: 'program', caller_id: 'p' } })]));

    expect(response.content).toMatchObject([{ providerData: { model: MODEL, type: 'function_call', namespace: 'n', caller: { type: 'program', caller_id: 'p' } } }]);
  });

  it('BR-139: names of tools and words of a server are data', async () => {
    const { response } = await readReply(reply([called(1, '__proto__', '{}'), { type: 'constructor', id: 'x' }], { model: '__proto__' }));

    expect(response.content).toMatchObject([{ name: '__proto__' }, { type: 'provider', data: { type: 'constructor' } }]);
    expect(response.modelId).toBe('__proto__');
  });
});

describe('which item an event is about', () => {
  it('OR5: the id of the response is the response\'s, the last one it was given', async () => {
    const { response } = await readReply(named([created({ id: 'resp_a' }), { type: 'response.in_progress', response: { id: 'resp_b' } }, ...itemEvents([said(1, 'x')]), completed([], { id: 'resp_c' })]));
    const { response: unnamed } = await readReply(named([created({ id: 'resp_a' }), ...itemEvents([said(1, 'x')]), completed([], { id: undefined })]));
    const { response: none } = await readReply(named([...itemEvents([said(1, 'x')]), completed([], { id: 7 })]));

    expect([response.responseId, unnamed.responseId, none.responseId]).toStrictEqual(['resp_c', 'resp_a', undefined]);
  });

  it('is said by its place, whatever ids come', async () => {
    const { response } = await readReply(
      streamOf(
        added(0, { ...MESSAGE, id: 'a' }),
        added(1, { ...CALL, id: 'b' }),
        textDelta(0, 'x', { item_id: 'c' }),
        { ...inputDelta(1, '{}'), item_id: 'a' },
        textDelta(0, 'y', { item_id: 'd' }),
        done(1, { ...CALL, id: 'e', arguments: '{}' }),
        done(0, { ...said(1, 'xy'), id: 'f' }),
      ),
    );

    expect(response.content).toMatchObject([{ type: 'text', text: 'xy' }, { type: 'tool_call', inputText: '{}' }]);
  });

  it('is said by its id where a server counts no places (llama.cpp), and else by its type', async () => {
    const byId = streamOf(
      { type: 'response.output_item.added', item: MESSAGE },
      { type: 'response.output_item.added', item: CALL },
      { type: 'response.output_text.delta', item_id: 'msg_1', delta: 'x' },
      { type: 'response.function_call_arguments.delta', item_id: 'fc_1', delta: '{}' },
      { type: 'response.output_item.done', item: said(1, 'x') },
      { type: 'response.output_item.done', item: { ...CALL, arguments: '{}' } },
    );
    const byType = streamOf(
      { type: 'response.output_item.added', item: { ...MESSAGE, id: undefined } },
      { type: 'response.output_item.added', item: { ...CALL, id: undefined } },
      { type: 'response.output_text.delta', item_id: 'other', delta: 'x' },
      { type: 'response.function_call_arguments.delta', delta: '{}' },
    );

    for (const body of [byId, byType]) expect((await readReply(body)).response.content).toMatchObject([{ text: 'x' }, { inputText: '{}' }]);
  });

  it('two calls whose fragments alternate are told apart by their ids alone', async () => {
    const fragment = (id: string, delta: string): Item => ({ type: 'response.function_call_arguments.delta', item_id: id, delta });
    const opened = ['fc_1', 'fc_2'].map((id) => ({ type: 'response.output_item.added', item: { ...CALL, id, call_id: id } }));
    const { response } = await readReply(streamOf(...opened, fragment('fc_1', '{"a":'), fragment('fc_2', '{"b":'), fragment('fc_1', '1}'), fragment('fc_2', '2}')));

    expect(response.content).toMatchObject([{ inputText: '{"a":1}' }, { inputText: '{"b":2}' }]);
  });

  it('pieces of a message are counted from wherever a server counts them (vLLM)', async () => {
    const { response } = await readReply(streamOf(added(0, MESSAGE), textDelta(0, 'a', { content_index: 1 }), textDelta(0, 'b', { content_index: 4 }), done(0, said(1, '', { content: ['a', 'b', 'c'].map((text) => ({ type: 'output_text', text })) }))));

    expect(response.content).toMatchObject([{ text: 'a' }, { text: 'b' }, { text: 'c' }]);
  });

  it('reads a stream that begins in the middle', async () => {
    const { response } = await readReply(named([textDelta(3, 'x'), textDelta(3, 'y'), inputDelta(4, '{}'), done(4, { ...CALL, arguments: '{}' }), completed()]));

    expect(response.content).toMatchObject([{ text: 'xy' }, { name: 'sh', inputText: '{}' }]);
  });

  it('the end of a response brings what the stream left out, and nothing twice', async () => {
    const search = { type: 'web_search_call', id: 'ws_1', status: 'completed' };
    const whole = [search, said(1, 'x'), called(1)];
    const unfinished = named([created(), added(0, { ...search, status: 'in_progress' }), added(1, MESSAGE), textDelta(1, 'x'), completed(whole)]);
    const renamed = named([created(), ...itemEvents([said(1, 'x')]), completed([{ ...reasoning(1), id: 'other' }, { ...said(1, 'x'), id: 'other' }])]);

    expect((await readReply(unfinished)).response.content).toMatchObject([{ type: 'provider', data: search }, { text: 'x' }, { name: 'f' }]);
    expect((await readReply(renamed)).response.content.map(({ type }) => type)).toStrictEqual(['thinking', 'text']);
  });
});

describe('items that a server does not tell apart', () => {
  const f = called(1);
  const g = called(2, 'g', '{"b":2}');
  const unplaced = (type: 'added' | 'done', item: Item): Item => ({ type: `response.output_item.${type}`, item });
  const open = (item: Item): Item => ({ ...item, arguments: '' });

  it.each<[string, string]>([
    ['a body that gives both one id', JSON.stringify(responseOf([f, { ...g, id: 'fc_1' }]))],
    ['a body that gives both an empty id', JSON.stringify(responseOf([{ ...f, id: '' }, { ...g, id: '' }]))],
    ['a body that gives none', JSON.stringify(responseOf([{ ...f, id: undefined }, { ...g, id: undefined }]))],
    ['wholes in one place', streamOf(done(0, f), done(0, g))],
    ['wholes of one id', streamOf(done(0, f), done(1, { ...g, id: 'fc_1' }))],
    ['wholes of one id, without a place', streamOf(unplaced('done', f), unplaced('done', { ...g, id: 'fc_1' }))],
    ['wholes of nothing', streamOf(unplaced('done', { ...f, id: undefined }), unplaced('done', { ...g, id: '' }))],
    ['one place, one after the other', streamOf(added(0, open(f)), inputDelta(0, '{"a":1}'), done(0, f), added(0, open(g)), inputDelta(0, '{"b":2}'), done(0, g))],
    ['one place, both open', streamOf(added(0, open(f)), added(0, open(g)), done(0, f), done(0, g))],
    [
      'one place, and fragments that name their item',
      streamOf(added(0, open(f)), added(0, open(g)), { ...inputDelta(0, '{"a":'), item_id: 'fc_1' }, { ...inputDelta(0, '{"b":2}'), item_id: 'fc_2' }, { ...inputDelta(0, '1}'), item_id: 'fc_1' }, done(0, g), done(0, f)),
    ],
    ['one id, both open', streamOf(unplaced('added', open(f)), unplaced('added', open({ ...g, id: 'fc_1' })), unplaced('done', f), unplaced('done', { ...g, id: 'fc_1' }))],
    ['an end that holds one more', named([created(), ...itemEvents([f]), completed([f, g])])],
    ['an end that holds one more of the same id', named([created(), ...itemEvents([f]), completed([f, { ...g, id: 'fc_1' }])])],
    ['an end that has only ids that changed', named([created(), ...itemEvents([f, g]), completed([called(7), called(8, 'g', '{ "b": 2 }')])])],
    ['an end that ends what is open, under other ids', named([created(), added(0, open(f)), added(1, open(g)), completed([{ ...f, id: 'x', call_id: 'y' }, { ...g, id: 'x', call_id: 'z' }])])],
  ])('GN4, OR3: two calls are two calls, in %s', async (_name, body) => {
    const { response, deltas } = await readReply(body);

    expect(response.content).toMatchObject([{ name: 'f', inputText: '{"a":1}' }, { name: 'g', inputText: '{"b":2}' }]);
    const heard = [0, 1].map((index) => deltas.map((delta) => (delta.type === 'tool_call' && delta.callIndex === index ? delta.inputText : '')).join(''));
    expect(heard).toStrictEqual(['{"a":1}', '{"b":2}']);
  });

  it('GN4: calls that say the same are as many as the server made', async () => {
    const [one, other] = [called(1, 'f', '{}'), called(2, 'f', '{}')];
    const bodies = [streamOf(done(0, one), done(0, other)), named([...itemEvents([one]), completed([one, other])]), named([...itemEvents([one, other]), completed([one, other])]), JSON.stringify(responseOf([one, { ...other, id: 'fc_1' }]))];

    for (const body of bodies) expect((await readReply(body)).response.content).toMatchObject([{ providerId: 'call_1' }, { providerId: 'call_2' }]);
  });

  it.each<[string, string]>([
    ['a body that gives both an empty id', JSON.stringify(responseOf([said(1, 'a', { id: '' }), said(2, 'b', { id: '' })]))],
    ['wholes in one place', streamOf(done(0, said(1, 'a')), done(0, said(2, 'b')))],
    ['wholes in one place, of one id', streamOf(done(0, said(1, 'a')), done(0, said(1, 'b')))],
    ['an end that holds one more', named([created(), ...itemEvents([said(1, 'a')]), completed([said(1, 'a'), said(2, 'b')])])],
  ])('two messages are two messages, in %s', async (_name, body) => {
    const { response, deltas } = await readReply(body);

    expect(response.content).toStrictEqual([{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }]);
    expect(textOfDeltas(deltas, 'text')).toBe('ab');
  });

  it('GN1: thinking that a server gives one id stays apart', async () => {
    const items = [reasoning(1), { ...reasoning(2), id: 'rs_1' }, said(1, 'x')];

    for (const body of [JSON.stringify(responseOf(items)), streamOf(...items.map((item) => done(0, item))), named([done(0, items[0]!), completed(items)])]) {
      expect((await readReply(body)).response.content).toMatchObject([{ redactedData: 'E1' }, { redactedData: 'E2' }, { text: 'x' }]);
    }
  });

  it('ids that several items have do not go back', async () => {
    const body = JSON.stringify(responseOf([reasoning(1), { ...called(1), id: 'fc_1' }, { ...called(2), id: 'fc_1' }]));
    const results = [1, 2].map((at) => toolMessage('r', { toolCallId: `own_resp_1_${at}`, name: 'f' }));
    const { sent } = await sentBack(body, (message) => [userMessage('go'), message, ...results]);

    expect(inputOf(sent[1]!).slice(1, 4).map(({ type, id, call_id: callId }) => [type, id, callId])).toStrictEqual([['reasoning', undefined, undefined], ['function_call', undefined, 'call_1'], ['function_call', undefined, 'call_2']]);
  });

  it('what the end only divides in another way does not come twice', async () => {
    const { response } = await readReply(named([created(), ...itemEvents([said(1, 'ab')]), completed([said(2, 'a'), said(3, 'b')])]));

    expect(response.content).toStrictEqual([{ type: 'text', text: 'ab' }]);
  });

  it('arguments that an ended call came without are taken from the end', async () => {
    const { response } = await readReply(named([created(), added(0, CALL), done(0, CALL), completed([{ ...CALL, arguments: '{"a":1}' }])]));

    expect(response.content).toMatchObject([{ name: 'sh', inputText: '{"a":1}' }]);
  });
});

describe('the order of items', () => {
  it.each<[string, string]>([
    ['their places', streamOf(done(1, called(1)), done(0, reasoning(1)))],
    ['the list at the end', named([created(), done(1, called(1)), completed([reasoning(1), called(1)])])],
    ['the list at the end, where there are no places', named([created(), ...[called(1), reasoning(1)].map((item) => ({ type: 'response.output_item.done', item })), completed([reasoning(1), called(1)])])],
  ])('BR-008, BR-014: is that of %s, not that of their arrival', async (_name, body) => {
    expect((await readReply(body)).response.content.map(({ type }) => type)).toStrictEqual(['thinking', 'tool_call']);
    const { sent } = await sentBack(body, (message) => [userMessage('go'), message, toolMessage('r', { toolCallId: 'own_resp_1_1', name: 'f' })]);
    expect(inputOf(sent[1]!).map(({ type }) => type)).toStrictEqual([undefined, 'reasoning', 'function_call', 'function_call_output']);
  });

  it('is that of their arrival where several have one place', async () => {
    const { response } = await readReply(streamOf(done(1, reasoning(1)), done(1, said(1, 'a')), done(0, called(1)), done(0, called(2))));

    expect(response.content.map(({ type }) => type)).toStrictEqual(['thinking', 'text', 'tool_call', 'tool_call']);
  });

  it('keeps what the list at the end leaves out behind what it followed', async () => {
    const { response } = await readReply(named([created(), ...itemEvents([said(1, 'a'), said(2, 'b'), called(1), said(3, 'c')]), completed([called(1), said(2, 'b')])]));

    expect(response.content.map((part) => (part.type === 'text' ? part.text : part.type))).toStrictEqual(['a', 'tool_call', 'c', 'b']);
  });

  it('is for calls the one in which they were told live, each behind what led to it', async () => {
    const list = [reasoning(1), called(1), reasoning(2), called(2, 'g'), said(3, 'x')];
    const { response, deltas } = await readReply(named([created(), done(3, list[3]!), done(2, list[2]!), done(1, list[1]!), done(0, list[0]!), done(4, list[4]!), completed(list)]));

    expect(response.content.map((part) => (part.type === 'thinking' ? part.redactedData : part.type === 'tool_call' ? part.name : part.type))).toStrictEqual(['E2', 'g', 'E1', 'f', 'text']);
    expect(deltas.flatMap((delta) => (delta.type === 'tool_call' && delta.name !== undefined ? [[delta.callIndex, delta.name]] : []))).toStrictEqual([[0, 'g'], [1, 'f']]);
  });
});

describe('odd streams', () => {
  it('an item that is announced again is the same item', async () => {
    const { response } = await readReply(streamOf(added(0, CALL), added(0, CALL), inputDelta(0, '{}'), done(0, { ...CALL, arguments: '{}' })));
    const { response: ended } = await readReply(streamOf(...itemEvents([reasoning(1), said(1, 'x'), called(1)]), done(2, called(1)), done(1, said(1, 'x')), done(0, reasoning(1))));
    const { response: unplaced } = await readReply(streamOf({ type: 'response.output_item.added', item: CALL }, { type: 'response.output_item.added', item: CALL }, { type: 'response.output_item.done', item: CALL }));

    expect([response.content.length, unplaced.content.length, ended.content.length]).toStrictEqual([1, 1, 3]);
  });

  it('a fragment whose place is another item\'s goes to the item of its id, else to the latest of its type', async () => {
    const byId = await readReply(streamOf(added(0, MESSAGE), added(1, CALL), { ...inputDelta(0, '{"a":'), item_id: 'fc_1' }, inputDelta(0, '1}'), textDelta(0, 'x')));

    expect(byId.response.content).toMatchObject([{ text: 'x' }, { inputText: '{"a":1}' }]);
  });

  it('a response that is complete and has an empty error is complete', async () => {
    expect((await readReply(reply([said(1, 'x')], { error: {} }))).response.stopReason).toBe('end_turn');
    expect((await readReply(JSON.stringify(responseOf([said(1, 'x')], { error: {} })))).response.stopReason).toBe('end_turn');
    expect((await readReply(named([{ ...created(), error: {} }, ...itemEvents([said(1, 'x')]), { ...completed(), error: {} }]))).response.stopReason).toBe('end_turn');
    expect(await errorOfReply(reply([said(1, 'x')], { error: 'out of order' }))).toMatchObject({ kind: 'server', message: expect.stringContaining('out of order') as string });
    expect(await errorOfReply(reply([said(1, 'x')], { error: { code: 'server_error', message: 'm' } }))).toMatchObject({ kind: 'server' });
  });
});

describe('the end of a reply', () => {
  it.each([
    ['max_output_tokens', 'max_tokens'],
    ['content_filter', 'filtered'],
    ['brand_new', 'unknown'],
    ['__proto__', 'unknown'],
  ])('FR1, GN9, BR-122, BR-035: a response that is incomplete for %s ends as %s, with its usage', async (reason, stopReason) => {
    const facts = { status: 'incomplete', incomplete_details: { reason }, usage: { input_tokens: 10, output_tokens: 1000, total_tokens: 1010 } };
    const item = said(1, 'half', { status: 'incomplete' });
    const streamed = await readReply(named([created(), ...itemEvents([item]), { type: 'response.incomplete', response: responseOf([item], facts) }]));
    const plain = await readReply(JSON.stringify(responseOf([item], facts)));

    expect(streamed.response).toMatchObject({ content: [{ text: 'half' }], stopReason, rawStopReason: reason, usage: { inputTokens: 10, outputTokens: 1000 } });
    expect(plain.response).toStrictEqual(streamed.response);
  });

  it('FR1: an incomplete response that says no reason is not complete', async () => {
    const body = named([...itemEvents([called(1)]), { type: 'response.incomplete', response: responseOf([], { status: 'incomplete', incomplete_details: null }) }]);

    expect((await readReply(body)).response).toMatchObject({ stopReason: 'unknown', rawStopReason: 'incomplete' });
  });

  it('BR-121: a reply that is all thinking, cut by the limit, says so', async () => {
    const facts = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };

    expect((await readReply(reply([reasoning(1)], facts))).response).toMatchObject({ stopReason: 'max_tokens', content: [{ type: 'thinking' }] });
  });

  it('BR-064: half a call never runs', async () => {
    const facts = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
    const body = named([created(), added(0, CALL), inputDelta(0, '{"command":"rm'), { type: 'response.incomplete', response: responseOf([], facts) }]);
    const { record, buildMessages } = createTranscript();
    const ran: unknown[] = [];
    const sh = { name: 'sh', description: 'd', inputSchema: { type: 'object', properties: {} }, execute: (input: unknown) => (ran.push(input), 'x') };
    const result = await runTurn({ llm: responsesOn(fakeServer({ body })), tools: [sh], input: 'go', buildMessages, dispatchEvent: createEventDispatcher({ record }) });

    expect(result.stopReason).toBe('max_tokens');
    expect(ran).toStrictEqual([]);
  });

  it('BR-065, B7: a stream that just stops is cut off: text and whole items are kept, calls are not', async () => {
    const search = { type: 'web_search_call', id: 'ws_1' };
    const error = await errorOfReply(named([created(), ...itemEvents([reasoning(1), search, called(1)]), added(3, MESSAGE), textDelta(3, 'The answer'), added(4, { type: 'reasoning', id: 'rs_2' }), summaryDelta(4, 0, 'why')]));

    expect(error).toMatchObject({ kind: 'network', code: 'stream_incomplete', retryable: true });
    expect(error.partial).toStrictEqual([
      { type: 'thinking', text: '', redactedData: 'E1', providerData: { model: MODEL, type: 'reasoning', id: 'rs_1' } },
      { type: 'provider', provider: 'openai', data: search },
      { type: 'text', text: 'The answer' },
    ]);
  });

  it('an end mark alone is an end if nothing is left open', async () => {
    const end = 'data: [DONE]\n\n';

    expect((await readReply(named(itemEvents([called(1)])) + end)).response).toMatchObject({ stopReason: 'tool_use' });
    expect(await errorOfReply(named([...itemEvents([said(1, 'x')]), added(1, CALL)]) + end)).toMatchObject({ code: 'stream_incomplete' });
    expect(await errorOfReply(end)).toMatchObject({ code: 'stream_incomplete' });
  });

  it('nothing after the last event counts, and the end mark of another protocol does no harm', async () => {
    const after = named(itemEvents([said(2, 'late')])) + 'data: [DONE]\n\n';

    expect((await readReply(reply([said(1, 'x')]) + after)).response.content).toStrictEqual([{ type: 'text', text: 'x' }]);
  });

  it.each([
    ['nothing', []],
    ['thinking alone', [reasoning(1, { summary: [{ type: 'summary_text', text: 'hm' }] })]],
    ['thinking and white space', [reasoning(1), said(1, ' \n')]],
  ])('GN8: a reply of %s is empty', async (_name, items) => {
    const error = await errorOfReply(reply(items));

    expect(error).toMatchObject({ kind: 'malformed_response', code: 'empty', retryable: true, usage: { inputTokens: 5 } });
    expect(error.message).toContain('completed');
  });

  it('GN8: emptiness that a filter caused is no failure', async () => {
    expect((await readReply(reply([], { status: 'incomplete', incomplete_details: { reason: 'content_filter' } }))).response).toMatchObject({ content: [], stopReason: 'filtered' });
  });

  it.each([
    ['queued', { kind: 'invalid_request', code: 'response_queued', retryable: false }],
    ['in_progress', { kind: 'invalid_request', code: 'response_in_progress' }],
    ['cancelled', { kind: 'server', code: 'response_cancelled', retryable: true }],
  ])('a body whose response is %s is no reply', async (status, expected) => {
    expect(await errorOfReply(JSON.stringify(responseOf([], { status })))).toMatchObject(expected);
  });

  it('a stream whose response was cancelled is no reply', async () => {
    expect(await errorOfReply(named([created(), { type: 'response.cancelled', response: responseOf([], { status: 'cancelled' }) }]))).toMatchObject({ code: 'response_cancelled' });
  });
});

describe('errors', () => {
  const failed = (error: unknown, more: Item = {}): Item => ({ type: 'response.failed', response: responseOf([], { status: 'failed', error, ...more }) });

  it.each<[string, Item, object]>([
    ['a quota', { type: 'error', error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'm' } }, { kind: 'quota', code: 'insufficient_quota', retryable: false }],
    ['a bare error', { type: 'error', code: 'rate_limit_exceeded', message: 'try again in 2s', param: null }, { kind: 'rate_limit', retryAfterMs: 2000 }],
    ['an overflow', { type: 'error', code: 'context_length_exceeded', message: 'Your input exceeds the context window' }, { kind: 'context_overflow', retryable: false }],
    ['a gateway\'s quotation', { type: 'error', message: '{"error":{"code":429,"message":"slow down"}}' }, { kind: 'rate_limit', status: 429 }],
    ['an embedded status', failed({ code: 'server_error', message: 'Error code: 429 - later' }), { kind: 'rate_limit', status: 429 }],
    ['a failed response', failed({ code: 'server_error', message: 'An error occurred' }), { kind: 'server', retryable: true }],
    ['a failed response that is about the prompt', failed({ code: 'invalid_prompt', message: 'flagged' }), { kind: 'invalid_request', retryable: false }],
    ['a failed response without a reason', failed(null), { kind: 'server', retryable: true }],
  ])('OR6, BR-067: %s is a typed error, with what came before and its cost', async (_name, event, expected) => {
    const error = await errorOfReply(named([created(), added(0, MESSAGE), textDelta(0, 'so far'), event]));

    expect(error).toMatchObject({ ...expected, partial: [{ type: 'text', text: 'so far' }] });
  });

  it('OR6: what a failed response cost is told', async () => {
    expect(await errorOfReply(named([failed({ code: 'server_error', message: 'm' }, { usage: { input_tokens: 7, output_tokens: 1 } })]))).toMatchObject({ usage: { inputTokens: 7 } });
  });

  it('law-5: what a failure cost that was not streamed is told', async () => {
    const usage = { input_tokens: 7, output_tokens: 1 };
    const bodies = [responseOf([], { status: 'failed', error: { code: 'server_error', message: 'm' }, usage }), responseOf([], { status: 'failed', error: null, usage }), { error: { message: 'm' }, usage }, { type: 'error', message: 'm', usage }];

    for (const body of bodies) expect(await errorOfReply(JSON.stringify(body))).toMatchObject({ kind: 'server', usage: { inputTokens: 7, outputTokens: 1 } });
  });

  it('words of a server that end in an error hold no key, and are no longer than a line', async () => {
    const key = `sk-test-${'k'.repeat(80)}`;
    const bodies = (word: string): readonly string[] => [
      JSON.stringify(responseOf([], { status: word })),
      JSON.stringify(responseOf([], { status: 'incomplete', incomplete_details: { reason: word } })),
      streamOf(added(0, { ...CALL, name: word }), inputDelta(0, '{'), done(0, { ...CALL, name: word, arguments: '{}' })),
      named([{ type: 'response.completed', response: word }]),
    ];
    for (const word of [`x${key}y`, 'long '.repeat(10_000)]) {
      for (const body of bodies(word)) {
        const error = await errorOf(responsesOn(fakeServer({ body }), { apiKey: key }).chat(request()));
        const told = JSON.stringify([error.message, error.code, error.stack]);
        expect(told).not.toContain('kkkk');
        expect(error.message.length + error.code.length).toBeLessThan(3000);
      }
    }
  });

  it.each<[string, Item | readonly unknown[]]>([
    ['text without text', { type: 'response.output_text.delta', output_index: 0 }],
    ['text that is none', { type: 'response.output_text.delta', output_index: 0, delta: 7 }],
    ['arguments that are none', { type: 'response.function_call_arguments.done', output_index: 0, arguments: null }],
    ['no item', { type: 'response.output_item.added', output_index: 0 }],
    ['an item without a type', { type: 'response.output_item.done', output_index: 0, item: {} }],
    ['no annotation', { type: 'response.output_text.annotation.added', output_index: 0, annotation: 'x' }],
    ['no response', { type: 'response.completed' }],
    ['no response at its start', { type: 'response.created', response: 'x' }],
  ])('OR6: an event that is known and holds %s is malformed', async (_name, event) => {
    const error = await errorOfReply(named([event as Item]));

    expect(error).toMatchObject({ kind: 'malformed_response', retryable: true });
    expect(error.message).toContain(String((event as Item)['type']));
  });

  it('OR6: events that are not known are passed over', async () => {
    const odd = [{ type: 'response.brand_new', output_index: 0, delta: 7 }, { type: 'keepalive' }, { type: '__proto__' }, {}, 7, null, [1]];
    const body = named([created(), added(0, MESSAGE)]) + odd.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') + named([textDelta(0, 'x'), completed()]);

    expect((await readReply(body)).response.content).toStrictEqual([{ type: 'text', text: 'x' }]);
  });

  it('an event that is named only outside its data is read as well', async () => {
    const body = 'event: response.output_text.delta\ndata: {"output_index":0,"delta":"x"}\n\nevent: response.completed\ndata: {"response":{"status":"completed"}}\n\n';

    expect((await readReply(body)).response.content).toStrictEqual([{ type: 'text', text: 'x' }]);
  });

  it('BR-095: pages, bodies of other protocols and broken JSON are typed errors', async () => {
    expect(await errorOfReply('<html>Bad gateway</html>', { status: 502 })).toMatchObject({ kind: 'server', status: 502, retryable: true });
    expect(await errorOfReply('<html>login</html>', { headers: { 'content-type': 'text/html' } })).toMatchObject({ kind: 'malformed_response', message: expect.stringContaining('text/html') });
    expect(await errorOfReply('{"choices":[{"message":{"content":"hi"}}]}')).toMatchObject({ kind: 'malformed_response', message: expect.stringContaining('baseUrl') });
    expect(await errorOfReply('{"output":[')).toMatchObject({ kind: 'malformed_response' });
    expect(await errorOfReply(`${named([created()])}data: {"type":\n\n`)).toMatchObject({ kind: 'malformed_response' });
    expect(await errorOfReply('data: {"error":{"message":"ctx","code":"context_length_exceeded"},"message":"ctx"}\n\n')).toMatchObject({ kind: 'context_overflow', code: 'context_length_exceeded' });
    expect(await errorOfReply('{"error":{"message":"no","code":"invalid_api_key"}}')).toMatchObject({ kind: 'auth' });
    expect(await errorOfReply(JSON.stringify(responseOf([], { status: 'failed', error: { code: 'server_error', message: 'no' } })))).toMatchObject({ kind: 'server', message: expect.stringContaining('no') });
  });

  it('BR-095 B: a whole body that answers a request for a stream is read', async () => {
    expect((await readReply(JSON.stringify(responseOf([said(1, 'hi')])))).response.content).toStrictEqual([{ type: 'text', text: 'hi' }]);
  });
});

describe('time and aborts', () => {
  it('GN10, EE7: an abort before the request sends nothing', async () => {
    const fake = fakeServer({ body: reply([said(1, 'x')]) });

    expect(await errorOf(responsesOn(fake).chat(request(undefined, { signal: AbortSignal.abort() })))).toMatchObject({ kind: 'aborted' });
    expect(fake.sent).toHaveLength(0);
  });

  it('GN10, XC4: an abort in the middle keeps what came, lets go of the connection, and the adapter stays of use', async () => {
    const fake = fakeServer({ body: named([created(), added(0, MESSAGE), textDelta(0, 'so far')]), open: true }, { body: reply([said(1, 'x')]) });
    const controller = new AbortController();
    const llm = responsesOn(fake);

    const error = await errorOf(llm.chat(request(undefined, { signal: controller.signal, onDelta: () => controller.abort() })));

    expect(error).toMatchObject({ kind: 'aborted', partial: [{ type: 'text', text: 'so far' }] });
    expect(fake.cancelled()).toBe(1);
    expect((await llm.chat(request())).content).toMatchObject([{ text: 'x' }]);
  });

  it('XC1: requests side by side do not mix', async () => {
    const llm = responsesOn(fakeServer({ body: reply([said(1, 'first'), called(1)]), chunking: 'bytes' }, { body: reply([said(2, 'second')]), chunking: 'bytes' }));
    const replies = await Promise.all([llm.chat(request()), llm.chat(request())]);

    expect(replies.map(({ content }) => content.map((part) => (part.type === 'text' ? part.text : part.type)))).toStrictEqual([['first', 'tool_call'], ['second']]);
  });

  it('that an item begins is no token; that a server\'s tool works is a sign of it', async () => {
    const tool = { type: 'web_search_call', id: 'ws_1', status: 'in_progress' };
    const step = { type: 'response.web_search_call.searching', output_index: 0, item_id: 'ws_1' };
    const read = async (firstTokenMs: number, ...list: readonly Item[]): Promise<string | undefined> => {
      const timeouts = { firstTokenMs, betweenTokensMs: firstTokenMs === 20 ? 10_000 : 20 };
      return (await errorOf(responsesOn(fakeServer({ body: named([created(), ...list]), open: true }), { timeouts }).chat(request()))).code;
    };

    expect(await read(20, added(0, { type: 'reasoning', id: 'rs_1' }), { type: 'response.reasoning_summary_part.added', output_index: 0 }, { type: 'keepalive' })).toBe('first_token_timeout');
    expect(await read(10_000, added(0, tool), step, done(0, tool))).toBe('between_tokens_timeout');
    expect(await read(10_000, added(0, MESSAGE), textDelta(0, 'x'))).toBe('between_tokens_timeout');
  });

  it('a model may think unseen in the midst of its reply, and a server\'s tool run, as long as before it', async () => {
    const read = async (...list: readonly Item[]): Promise<string | undefined> => {
      const body = named([created(), added(0, MESSAGE), textDelta(0, 'I look.'), ...list]);
      return (await errorOf(responsesOn(fakeServer({ body, open: true }), { timeouts: { firstTokenMs: 200, betweenTokensMs: 20 } }).chat(request()))).code;
    };
    const thinking = added(1, { type: 'reasoning', id: 'rs_1' });
    const tools = ['web_search_call', 'code_interpreter_call', 'mcp_call'].map((type) => added(1, { type, id: 'x_1', status: 'in_progress' }));

    for (const tool of tools) expect(await read(tool)).toBe('first_token_timeout');
    expect(await read(tools[2]!, { type: 'response.mcp_call.in_progress', output_index: 1, item_id: 'x_1' })).toBe('first_token_timeout');
    expect(await read(tools[1]!, added(2, { ...MESSAGE, id: 'msg_2' }), textDelta(2, 'y'))).toBe('between_tokens_timeout');
    expect(await read(thinking)).toBe('first_token_timeout');
    expect(await read(thinking, summaryDelta(1, 0, 'seen'))).toBe('between_tokens_timeout');
  });
});
