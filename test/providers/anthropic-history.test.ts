/** Messages requests: a history's turns, ids, media and the provider's own blocks. Black-box. */
import { describe, expect, it } from 'vitest';
import {
  assistantMessage,
  type AssistantPart,
  createEventDispatcher,
  createTranscript,
  type Message,
  runTurn,
  toolMessage,
  userMessage,
} from 'turnloop';
import { gatedTool } from 'turnloop/testing';
import { checkMessagesRequest } from '../support/anthropic-rules.ts';
import { call, messagesOn, MODEL, OK, own, reply, result, send, SOURCE, wire } from './anthropic-support.ts';
import { fakeServer, request } from './fake-server.ts';

const IMAGE = { type: 'media', mediaType: 'image/png', data: 'iVBORw0KGgo=' } as const;
const WIRE_IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };

describe('turns', () => {
  it('AN1, BR-076: have the results of parallel calls in one user turn, in the order of the calls', async () => {
    const gates = ['a', 'b', 'c'].map((name) => gatedTool({ name, readOnly: true }));
    const body = reply([['a', 'b', 'c'].map((name, at) => ({ type: 'content_block_start', index: at, content_block: { type: 'tool_use', id: `toolu_${name}`, name, input: {} } }))], 'tool_use');
    const fake = fakeServer({ body }, OK);
    const { record, buildMessages } = createTranscript();
    const turn = runTurn({ llm: messagesOn(fake), tools: gates, buildMessages, dispatchEvent: createEventDispatcher({ record, emit: () => {} }), input: 'go' });
    await Promise.all(gates.map((gate) => gate.started()));
    for (const at of [2, 0, 1]) gates[at]!.finish(`result ${at}`);
    await turn;

    expect(wire(fake.sent[1]!)).toStrictEqual([
      ['user', [{ type: 'text', text: 'go' }]],
      ['assistant', ['a', 'b', 'c'].map((name) => ({ type: 'tool_use', id: `toolu_${name}`, name, input: {} }))],
      ['user', ['a', 'b', 'c'].map((name, at) => ({ type: 'tool_result', tool_use_id: `toolu_${name}`, content: [{ type: 'text', text: `result ${at}` }] }))],
    ]);
  });

  it('AN1, XC3, BR-110: have what a user says behind the results, and several messages as one', async () => {
    const messages = [
      userMessage('one'),
      userMessage('two'),
      own([call('a'), call('b')]),
      toolMessage([{ type: 'text', text: 'text' }, IMAGE], { toolCallId: 'a', name: 'f' }),
      result('b'),
      userMessage('also X', { origin: 'steering' }),
    ];
    const sent = await send(messages);

    expect(wire(sent)).toMatchObject([
      ['user', [{ text: 'one' }, { text: 'two' }]],
      ['assistant', [{ id: 'a' }, { id: 'b' }]],
      ['user', [{ tool_use_id: 'a', content: [{ text: 'text' }, WIRE_IMAGE] }, { tool_use_id: 'b' }, { type: 'text', text: 'also X' }]],
    ]);
    expect(checkMessagesRequest(sent.body)).toStrictEqual([]);
  });

  it('BR-053: have no empty text, and say something in each', async () => {
    const sent = await send([
      userMessage('a'),
      assistantMessage([]),
      userMessage('b'),
      own([{ type: 'text', text: '' }, call('t')]),
      result('t', ''),
      userMessage('  \n'),
      assistantMessage([{ type: 'thinking', text: 'of another' }], { source: { provider: 'other', modelId: 'x' } }),
      userMessage([{ type: 'text', text: ' ' }, { type: 'text', text: 'c' }]),
    ]);

    expect(wire(sent)).toStrictEqual([
      ['user', [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }]],
      ['assistant', [{ type: 'tool_use', id: 't', name: 'f', input: {} }]],
      ['user', [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: '(no output)' }] }, { type: 'text', text: 'c' }]],
    ]);
  });

  it('begin with the user, also where the history does not', async () => {
    const sent = await send([assistantMessage('Welcome!'), userMessage('hi')]);

    expect(wire(sent).map(([role]) => role)).toStrictEqual(['user', 'assistant', 'user']);
    expect(checkMessagesRequest(sent.body)).toStrictEqual([]);
  });

  it('hold a reply without white space and thinking at its end, whether it is the last or not', async () => {
    const prefill = await send([userMessage('a'), assistantMessage('The answer is: \n')]);
    const thought = await send([userMessage('a'), own([{ type: 'text', text: 'So: ' }, { type: 'thinking', text: 'hm', signature: 'S' }])]);
    const goneOn = await send([userMessage('a'), assistantMessage('The answer is: \n'), userMessage('go on')]);

    expect(wire(prefill)[1]).toStrictEqual(['assistant', [{ type: 'text', text: 'The answer is:' }]]);
    expect(wire(thought)[1]).toStrictEqual(['assistant', [{ type: 'text', text: 'So:' }]]);
    expect(wire(goneOn)[1]).toStrictEqual(wire(prefill)[1]);
  });

  it('law-11: say again of a paused reply what was said when it was the last', async () => {
    const fake = fakeServer(OK);
    const llm = messagesOn(fake, { promptCache: 'off' });
    const paused = [userMessage('go'), own([{ type: 'text', text: 'Searching\n\n' }, { type: 'thinking', text: 'hm', signature: 'S' }])];
    const goneOn = [...paused, own([{ type: 'text', text: 'More \t\u00a0' }])];
    for (const messages of [paused, goneOn, [...goneOn, userMessage('x')]]) await llm.chat(request(messages));
    const [first, second, third] = fake.sent.map(({ text }) => text.slice(text.indexOf('"messages":['), text.lastIndexOf(']}]')));

    expect(second!.startsWith(first!)).toBe(true);
    expect(third!.startsWith(second!)).toBe(true);
    expect(second).toContain('{"type":"text","text":"Searching"},{"type":"text","text":"More"}');
  });

  it('BR-121: leave out a reply that was thinking alone', async () => {
    const sent = await send([userMessage('a'), own([{ type: 'thinking', text: 'hm', signature: 'S' }]), userMessage('b')]);

    expect(wire(sent)).toStrictEqual([['user', [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }]]]);
  });

  it('BR-124: keep a call with its thinking and the result that the history closes it with', async () => {
    const thinking: AssistantPart = { type: 'thinking', text: 'hm', signature: 'S', providerData: { model: MODEL } };
    const sent = await send([userMessage('a'), own([thinking, call('t1')]), toolMessage('was not executed', { toolCallId: 't1', name: 'f', isError: true }), userMessage('hi'), own([call('t1b', { providerId: 't1' })]), result('t1b')]);

    expect(checkMessagesRequest(sent.body)).toStrictEqual([]);
    expect(wire(sent)[1]).toMatchObject(['assistant', [{ type: 'thinking', signature: 'S' }, { type: 'tool_use', id: 't1' }]]);
    expect(wire(sent)[4]).toMatchObject(['user', [{ tool_use_id: 't1b' }]]);
  });

  it('marks failures, but for those with media, which go with text alone', async () => {
    const failed = (content: string | readonly [typeof IMAGE]): Message => toolMessage(content, { toolCallId: 'a', name: 'f', isError: true });

    expect(wire(await send([userMessage('x'), own([call('a')]), failed('Error: no')]))[2]?.[1]).toMatchObject([{ is_error: true }]);
    expect(wire(await send([userMessage('x'), own([call('a')]), failed([IMAGE])]))[2]?.[1]).toStrictEqual([{ type: 'tool_result', tool_use_id: 'a', content: [WIRE_IMAGE] }]);
  });

  it('BR-089, B13: have no control characters and lone surrogates, and everything else as it was', async () => {
    const text = 'ok\u0000\u001b[31mred\u0007\ufffe a\ud83d \t\r\n 😀 \u00a0é漢';
    const { body, text: json } = await send([userMessage(text), own([call('c1', { inputText: '{"a":"\ud83d \\u0000"}' })]), result('c1', text)], { systemPrompt: text });

    expect(json).not.toMatch(/\p{Cs}/u);
    expect(checkMessagesRequest(body)).toStrictEqual([]);
    expect(JSON.stringify(body)).toContain(JSON.stringify('ok[31mred\ufffd a\ufffd \t\r\n 😀 \u00a0é漢'));
  });

  it('send arguments as the model wrote them, and what is no object as {}', async () => {
    const texts = ['{"a":', '', '[1]', 'null', '"x"', ' {"ok": 1e3} '];
    const { text } = await send([userMessage('a'), own(texts.map((inputText, at) => call(`c${at}`, { inputText }))), ...texts.map((_text, at) => result(`c${at}`))]);

    expect([...text.matchAll(/"input":(.*?)\}(?=,\{"type":"tool_use"|\]\},\{"role":"user")/g)].map(([, input]) => input)).toStrictEqual(['{}', '{}', '{}', '{}', '{}', ' {"ok": 1e3} ']);
  });
});

describe('ids', () => {
  it('AN6, BR-046: are legal, distinct and the same for call and result, on every request', async () => {
    const odd = ['functions.todo:0', `call_A|fc_${'f'.repeat(400)}`, 'a/b', '', 'a b', '漢', 'toolu_01', 'toolu_01', 'x'.repeat(64), 'x'.repeat(65)];
    const messages = [userMessage('a'), own(odd.map((providerId, at) => call(`own_${at}`, { providerId }))), ...odd.map((_id, at) => result(`own_${at}`))];
    const before = JSON.stringify(messages);
    const [first, second] = [await send(messages), await send(messages)];
    const [, calls, results] = wire(first);
    const ids = calls![1].map(({ id }) => id as string);

    for (const id of ids) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(new Set(ids).size).toBe(odd.length);
    expect([ids[6], ids[7], ids[8]]).toStrictEqual(['toolu_01', 'own_7', 'x'.repeat(64)]);
    expect(results![1].map(({ tool_use_id: id }) => id)).toStrictEqual(ids);
    expect(second.text).toBe(first.text);
    expect(JSON.stringify(messages)).toBe(before);
  });
});

describe('media', () => {
  it('AN5, B9: are images and documents, inline and by address, also in results', async () => {
    const parts = [
      IMAGE,
      { type: 'media', mediaType: 'image/JPG', data: 'AAAA' },
      { type: 'media', mediaType: 'image/webp', url: 'https://h/x.webp' },
      { type: 'media', mediaType: 'image/*', url: 'data:image/gif;base64,R0lG' },
      { type: 'media', mediaType: 'Application/PDF', data: 'JVBERi0=' },
      { type: 'media', mediaType: 'application/pdf', url: 'https://h/x.pdf' },
      { type: 'media', mediaType: 'text/csv', data: btoa('a,b') },
    ] as const;
    const sent = await send([userMessage(parts), own([call('c')]), toolMessage(parts, { toolCallId: 'c', name: 'f' })]);
    const expected = [
      WIRE_IMAGE,
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'AAAA' } },
      { type: 'image', source: { type: 'url', url: 'https://h/x.webp' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/gif', data: 'R0lG' } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } },
      { type: 'document', source: { type: 'url', url: 'https://h/x.pdf' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a,b' } },
    ];

    expect(wire(sent)[0]?.[1]).toStrictEqual(expected);
    expect(wire(sent)[2]?.[1]).toStrictEqual([{ type: 'tool_result', tool_use_id: 'c', content: expected }]);
    expect(checkMessagesRequest(sent.body)).toStrictEqual([]);
  });

  it.each([
    ['audio/wav', { data: 'AAAA' }],
    ['video/mp4', { data: 'AAAA' }],
    ['video/mp4', { url: 'https://h/v.mp4' }],
    ['image/svg+xml', { data: 'AAAA' }],
    ['image/png', { data: '' }],
    ['image/png', { url: 'gs://bucket/x.png' }],
    ['text/plain', { data: '§ no base64 §' }],
  ])('AN5: of type %s, as %j, are a note', async (mediaType, place) => {
    const part = { type: 'media', mediaType, ...place } as typeof IMAGE;
    const note = { type: 'text', text: `[${mediaType} left out: this model cannot be sent it]` };

    expect(wire(await send([userMessage([part])]))[0]?.[1]).toStrictEqual([note]);
    expect(wire(await send([userMessage('x'), own([call('c')]), toolMessage([part], { toolCallId: 'c', name: 'f' })]))[2]?.[1]).toMatchObject([{ content: [note] }]);
  });

  it('are a note for a model that takes none', async () => {
    const { text } = await send([userMessage([IMAGE])], {}, { capabilities: { mediaTypes: ['application/pdf'] } });

    expect(text).not.toContain(IMAGE.data);
    expect(text).toContain('image/png left out');
  });
});

describe('the provider\'s own tools', () => {
  const USE = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } };
  const RESULT = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] };
  const part = (data: object): AssistantPart => ({ type: 'provider', provider: 'anthropic', data: data as never });

  it('B15: go back unchanged while the reply is gone on with, and without a call that came to nothing', async () => {
    const paused = [userMessage('a'), own([{ type: 'text', text: 'I search. ' }, part(USE)])];
    const goneOn = [...paused, own([part(RESULT), { type: 'text', text: 'Found.' }]), userMessage('b')];

    expect(wire(await send(paused))[1]).toStrictEqual(['assistant', [{ type: 'text', text: 'I search. ' }, USE]]);
    expect(wire(await send(goneOn))[1]).toStrictEqual(['assistant', [{ type: 'text', text: 'I search. ' }, USE, RESULT, { type: 'text', text: 'Found.' }]]);
    expect(wire(await send([...paused, userMessage('never mind')]))[1]).toStrictEqual(['assistant', [{ type: 'text', text: 'I search. ' }]]);
    expect(wire(await send([...paused, userMessage('now', { transient: true })]))[1]).toStrictEqual(['assistant', [{ type: 'text', text: 'I search. ' }]]);
    expect(wire(await send([userMessage('a'), own([part(USE)]), userMessage('b')]))).toHaveLength(1);
  });

  it('B15: keep a call that waits for the results of calls beside it, and lose it in a reply that was cut off', async () => {
    const mixed = [userMessage('a'), own([part(USE), call('c')]), result('c')];
    const cutOff = [userMessage('a'), assistantMessage([{ type: 'text', text: 'x' }, part(USE)], { source: SOURCE, status: 'interrupted' })];

    expect(wire(await send(mixed))[1]?.[1]).toMatchObject([USE, { type: 'tool_use' }]);
    expect(wire(await send(cutOff))[1]?.[1]).toStrictEqual([{ type: 'text', text: 'x' }]);
  });

  it('B15: of a result alone leave nothing, but for one whose call stands in an earlier turn', async () => {
    const later = [userMessage('a'), own([part(USE), call('c')]), result('c'), own([part(RESULT), { type: 'text', text: 'Found.' }]), userMessage('b')];
    const alone = [userMessage('a'), own([part(RESULT), { type: 'text', text: 'Found.' }]), userMessage('b')];

    expect(wire(await send(later))[3]?.[1]).toStrictEqual([RESULT, { type: 'text', text: 'Found.' }]);
    expect(wire(await send(alone))[1]?.[1]).toStrictEqual([{ type: 'text', text: 'Found.' }]);
  });

  it('B15: cite without what is only in answers', async () => {
    const citation = { type: 'char_location', cited_text: 'c', document_index: 0, document_title: null, start_char_index: 0, end_char_index: 1 };
    const cited = { type: 'text', text: 'x', providerData: { model: MODEL, extra: { citations: [{ ...citation, file_id: 'file_1' }, 'odd'] } } } as const;
    const before = JSON.stringify(cited);

    expect(wire(await send([userMessage('a'), own([cited]), userMessage('b')]))[1]?.[1]).toStrictEqual([{ citations: [citation, 'odd'], type: 'text', text: 'x' }]);
    expect(JSON.stringify(cited)).toBe(before);
  });

  it('leave out what is no block', async () => {
    expect(wire(await send([userMessage('a'), own([part({ no: 'type' }), { type: 'text', text: 'x' }]), userMessage('b')]))[1]?.[1]).toStrictEqual([{ type: 'text', text: 'x' }]);
  });
});
