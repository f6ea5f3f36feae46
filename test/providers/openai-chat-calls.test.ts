/**
 * Tool calls in Chat Completions streams: which fragment belongs to which call, whatever servers do with indexes, ids
 * and names. Each body is read whole, byte by byte, and cut within characters and line ends.
 */
import { describe, expect, it } from 'vitest';
import type { LLMResponse } from 'turnloop';
import { callDelta, delta, errorOfBody, events, finish, readBody } from './fake-server.ts';

type Call = readonly [id: string | undefined, name: string, inputText: string];

function callsOf({ content }: LLMResponse): Call[] {
  return content.flatMap((part) => (part.type === 'tool_call' ? [[part.providerId, part.name, part.inputText] as const] : []));
}

async function readCalls(...chunks: readonly unknown[]): Promise<Call[]> {
  const { response, deltas } = await readBody(events([...chunks, finish('tool_calls')]));
  const calls = callsOf(response);
  // What was streamed is what came out, call by call.
  const streamed: [string | undefined, string, string][] = [];
  for (const each of deltas) {
    if (each.type !== 'tool_call') continue;
    streamed[each.callIndex] ??= [each.providerId, each.name ?? '', ''];
    streamed[each.callIndex]![2] += each.inputText;
  }
  expect(streamed.map(([, name, text]) => [name, text])).toStrictEqual(calls.map(([, name, text]) => [name, text]));
  return calls;
}

function call(name: string | undefined, args?: unknown, more: object = {}): unknown {
  return { ...more, type: 'function', function: { ...(name !== undefined && { name }), ...(args !== undefined && { arguments: args }) } };
}

const INPUT = '{"x":1}';

describe('tool-call fragments', () => {
  it.each([
    ['BR-019: empty arguments', [callDelta(call('now', '', { index: 0, id: 'c' }))], [['c', 'now', '']]],
    ['BR-019: null arguments', [callDelta(call('now', null, { index: 0, id: 'c' }))], [['c', 'now', '']]],
    ['BR-019: absent arguments', [callDelta(call('now', undefined, { index: 0, id: 'c' }))], [['c', 'now', '']]],
    [
      'BR-020: two calls without index',
      [callDelta(call('alpha', '{"x":1}', { id: 'c1' })), callDelta(call('beta', '{"y":2}', { id: 'c2' }))],
      [['c1', 'alpha', '{"x":1}'], ['c2', 'beta', '{"y":2}']],
    ],
    [
      'BR-052: the name in every delta',
      ['', '{"p":', '"a"}'].map((text) => callDelta(call('read_file', text, { index: 0, id: 't' }))),
      [['t', 'read_file', '{"p":"a"}']],
    ],
    [
      'BR-062: empty id and name later on',
      [
        callDelta({ index: 0, id: 'call_9', function: { name: 'f', arguments: '{' } }),
        callDelta({ index: 0, id: '', type: null, function: { name: '', arguments: '}' } }),
        callDelta({ index: 0, id: null, function: { name: null, arguments: '' } }),
      ],
      [['call_9', 'f', '{}']],
    ],
    ['BR-097: arguments as an object', [callDelta(call('f', { city: 'Oslo', n: 2 }, { index: 0, id: 'c' }))], [['c', 'f', '{"city":"Oslo","n":2}']]],
    [
      'BR-104 A: one delta, two calls of one tool without index',
      [callDelta(call('f', '{"i":1}', { id: 'a' }), call('f', '{"i":2}', { id: 'b' }))],
      [['a', 'f', '{"i":1}'], ['b', 'f', '{"i":2}']],
    ],
    [
      'BR-104 B: continuations in the same array',
      [
        callDelta(call('f', '{"i":', { index: 0, id: 'a' }), call('g', '', { index: 1, id: 'b' }), { index: 0, function: { arguments: '1}' } }),
        callDelta({ index: 1, function: { arguments: '{}' } }),
      ],
      [['a', 'f', '{"i":1}'], ['b', 'g', '{}']],
    ],
    [
      'BR-104 C: no index and no id, then index 1',
      [callDelta(call('f', INPUT), call('g', INPUT, { index: 1, id: 'b' }))],
      [[undefined, 'f', INPUT], ['b', 'g', INPUT]],
    ],
    [
      'BR-104: equal index, different ids',
      [callDelta(call('f', INPUT, { index: 0, id: 'a' })), callDelta(call('f', INPUT, { index: 0, id: 'b' }))],
      [['a', 'f', INPUT], ['b', 'f', INPUT]],
    ],
    [
      'BR-104: equal index and no ids',
      [callDelta(call('f', INPUT, { index: 0, id: '' })), callDelta(call('f', '{"x":2}', { index: 0, id: '' }))],
      [[undefined, 'f', INPUT], [undefined, 'f', '{"x":2}']],
    ],
    [
      'BR-104, GN4: equal index, fragments that carry the id of their call',
      [
        callDelta(call('f', '', { index: 0, id: 'a' })),
        callDelta(call('g', '', { index: 0, id: 'b' })),
        callDelta({ index: 0, id: 'a', function: { arguments: '{"x":1}' } }),
        callDelta({ index: 0, id: 'b', function: { arguments: '{"y":2}' } }),
      ],
      [['a', 'f', '{"x":1}'], ['b', 'g', '{"y":2}']],
    ],
    [
      'BR-104, GN4: equal index, fragments that carry the id and the name of their call',
      [['a', 'f', ''], ['b', 'g', ''], ['a', 'f', '{"x":1}'], ['b', 'g', '{"y":2}']].map(([id, name, text]) => callDelta(call(name, text, { index: 0, id }))),
      [['a', 'f', '{"x":1}'], ['b', 'g', '{"y":2}']],
    ],
    [
      'BR-104, A15: an equal id under other indexes, with equal arguments',
      [callDelta(call('f', INPUT, { index: 0, id: 'f' }), call('f', INPUT, { index: 1, id: 'f' }))],
      [['f', 'f', INPUT], ['f', 'f', INPUT]],
    ],
    [
      'BR-104, A15: an equal id under other indexes, in fragments',
      [
        callDelta(call('f', '', { index: 0, id: 'f' })),
        callDelta(call('f', '{"x"', { index: 1, id: 'f' })),
        callDelta({ index: 0, id: 'f', function: { arguments: INPUT } }),
        callDelta({ index: 1, id: 'f', function: { arguments: ':2}' } }),
      ],
      [['f', 'f', INPUT], ['f', 'f', '{"x":2}']],
    ],
    [
      'BR-104, A15: an equal id without index, with two whole inputs',
      [callDelta(call('f', INPUT, { id: 'f' })), callDelta(call('f', '{"x":2}', { id: 'f' }))],
      [['f', 'f', INPUT], ['f', 'f', '{"x":2}']],
    ],
    [
      'BR-104: an index that changes within a call of one id',
      [callDelta(call('f', '{"x"', { index: 0, id: 'c' })), callDelta({ index: 1, id: 'c', function: { arguments: ':1}' } })],
      [['c', 'f', INPUT]],
    ],
    [
      'BR-104: an index that comes late',
      [callDelta(call('f', '{"x"', { id: 'c' })), callDelta(call('f', ':1}', { index: 1, id: 'c' }))],
      [['c', 'f', INPUT]],
    ],
    [
      'BR-106: interleaved fragments',
      [
        callDelta(call('f', '{"n":', { index: 0, id: 'a' })),
        callDelta(call('g', '{"m":', { index: 1, id: 'b' })),
        callDelta({ index: 0, function: { arguments: '1}' } }),
        callDelta({ index: 1, function: { arguments: '2}' } }),
      ],
      [['a', 'f', '{"n":1}'], ['b', 'g', '{"m":2}']],
    ],
    [
      'BR-151, OC6, AD1: arguments before id and name',
      [callDelta({ index: 0, function: { arguments: '{"a":' } }), callDelta(call('f', '5}', { index: 0, id: 'late' }))],
      [['late', 'f', '{"a":5}']],
    ],
    ['BR-155: an index from 1', [callDelta(call('f', '{}', { index: 1, id: 'c' }))], [['c', 'f', '{}']]],
    [
      'GN4: string indexes, reversed',
      [
        callDelta(call('f', '{"n":', { index: 'b', id: '1' })),
        callDelta(call('g', '{', { index: 'a', id: '2' })),
        callDelta({ index: 'a', function: { arguments: '}' } }),
        callDelta({ index: 'b', function: { arguments: '1}' } }),
      ],
      [['1', 'f', '{"n":1}'], ['2', 'g', '{}']],
    ],
    [
      'GN4: fragments without index and id go to the latest call',
      [callDelta(call('f', '{"n":', { id: 'a' })), callDelta({ function: { arguments: '1}' } }), callDelta({ function: { arguments: null } })],
      [['a', 'f', '{"n":1}']],
    ],
    ['OC6: a missing id is left to the loop', [callDelta(call('f', INPUT, { index: 0 }))], [[undefined, 'f', INPUT]]],
    ['OC6: entries without a function are passed over', [callDelta({ index: 0, id: 'x' }, null, 'x', call('f', INPUT, { index: 1, id: 'c' }))], [['c', 'f', INPUT]]],
    [
      'a call sent once more in full',
      [callDelta(call('f', '{"x"', { index: 0, id: 'c' })), callDelta({ index: 0, function: { arguments: ':1}' } }), callDelta(call('f', INPUT, { index: 0, id: 'c' }))],
      [['c', 'f', INPUT]],
    ],
    [
      'an id that changes with every fragment',
      [callDelta(call('f', '{"x"', { index: 0, id: 'r1' })), callDelta({ index: 0, id: 'r2', function: { arguments: ':1}' } })],
      [['r1', 'f', INPUT]],
    ],
    ['BR-055: names of Object.prototype', ['constructor', '__proto__'].map((name, index) => callDelta(call(name, '{}', { index, id: name }))), [['constructor', 'constructor', '{}'], ['__proto__', '__proto__', '{}']]],
  ] as const)('reads %s', async (_name, chunks, expected) => {
    expect(await readCalls(...chunks)).toStrictEqual(expected);
  });

  it('gives name and id with the first delta of a call', async () => {
    const { deltas } = await readBody(events([callDelta(call('f', '', { index: 0, id: 'c' })), callDelta({ index: 0, function: { arguments: '{}' } }), finish('tool_calls')]));

    expect(deltas).toStrictEqual([
      { type: 'tool_call', callIndex: 0, name: 'f', providerId: 'c', inputText: '' },
      { type: 'tool_call', callIndex: 0, inputText: '{}' },
    ]);
  });

  it('refuses arguments that never got a name', async () => {
    const error = await errorOfBody(events([callDelta({ index: 0, id: 'c', function: { arguments: '{"a":1}' } }), finish('tool_calls')]));

    expect(error).toMatchObject({ kind: 'malformed_response', code: 'nameless_call', retryable: true });
  });

  it('reads the calls of a body that was not streamed, each as one call', async () => {
    const message = { content: null, tool_calls: [call('f', '', { id: 'a' }), call('f', '', { id: 'a' }), call('g', { y: 1 })] };
    const { response } = await readBody(JSON.stringify({ choices: [{ message, finish_reason: 'tool_calls' }] }), { stream: false });

    expect(callsOf(response)).toStrictEqual([['a', 'f', ''], ['a', 'f', ''], [undefined, 'g', '{"y":1}']]);
  });

  it('GN5: joins 100 interleaved calls and 10,000 fragments', async () => {
    const starts = Array.from({ length: 100 }, (_, index) => callDelta(call(`t${index}`, '{"text":"', { index, id: `c${index}` })));
    const middle = Array.from({ length: 10_000 }, (_, at) => callDelta({ index: at % 100, function: { arguments: 'x'.repeat(10) } }));
    const ends = Array.from({ length: 100 }, (_, index) => callDelta({ index, function: { arguments: '"}' } }));

    const { response } = await readBody(events([...starts, ...middle, ...ends, finish('tool_calls')]));

    expect(callsOf(response)).toStrictEqual(Array.from({ length: 100 }, (_, at) => [`c${at}`, `t${at}`, `{"text":"${'x'.repeat(1000)}"}`]));
  });

  it('BR-037, CX2: keeps what Gemini attaches to a call', async () => {
    const extra = { google: { thought_signature: 'SIG==' } };
    const { response } = await readBody(events([callDelta(call('f', '{}', { index: 0, id: 'c', extra_content: extra })), finish('tool_calls')]));

    expect(response.content).toStrictEqual([
      { type: 'tool_call', name: 'f', inputText: '{}', providerId: 'c', providerData: { model: 'test-model', extra_content: extra } },
    ]);
  });

  it('keeps the order of text, calls and text', async () => {
    const { response } = await readBody(
      events([delta({ content: 'a' }), callDelta(call('f', '{', { index: 0, id: 'c' })), delta({ content: 'b' }), callDelta({ index: 0, function: { arguments: '}' } }), finish('tool_calls')]),
    );

    expect(response.content).toStrictEqual([
      { type: 'text', text: 'a' },
      { type: 'tool_call', name: 'f', inputText: '{}', providerId: 'c' },
      { type: 'text', text: 'b' },
    ]);
  });
});
