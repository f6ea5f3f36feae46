/** trimHistory alone: what goes first, what stays, and how it is said. That histories stay whole is in layers.test.ts. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assistantMessage, type Message, textOf, toolMessage, userMessage } from 'turnloop';
import { createTokenEstimator, trimHistory, type TrimHistoryOptions } from 'turnloop/context';
import { recorded } from './histories.ts';

const MARKER = '[Older messages were left out here, to fit the context window.]';

function exchange(name: string, output: string, inputText = '{}'): readonly Message[] {
  return [
    assistantMessage([{ type: 'tool_call', id: `call_${name}`, name: 'run', inputText, input: {} }], { id: `step_${name}` }),
    toolMessage(output, { id: `result_${name}`, toolCallId: `call_${name}`, name: 'run' }),
  ];
}

const task = userMessage('Build the thing.', { id: 'task' });
const question = userMessage('And the tests?', { id: 'question' });

/** Distinct words, so that no estimate takes them for few tokens. */
function words(count: number): string {
  return Array.from({ length: count }, (_, index) => `word${index}`).join(' ');
}

function ids(messages: readonly Message[]): readonly string[] {
  return messages.map(({ id }) => id);
}

/** A task, ten exchanges of the same size, a question, and an exchange that is not answered yet. */
const long: readonly Message[] = [
  task,
  ...Array.from({ length: 10 }, (_, index) => exchange(`${index}`, words(120))).flat(),
  question,
  ...exchange('new', words(120)),
];

const total = trimHistory(long, { targetTokens: 1e9 }).tokensBefore;

describe('trimHistory', () => {
  it('D6 does nothing to a history that fits', () => {
    expect(trimHistory(long, { targetTokens: total })).toStrictEqual({ edits: [], messages: long, tokensBefore: total, tokensAfter: total });
  });

  it('D6 D7 leaves the oldest exchanges out, whole, until it fits, and says so once', () => {
    const { messages, tokensAfter } = trimHistory(long, { targetTokens: total * 0.6 });

    expect(tokensAfter).toBeLessThanOrEqual(total * 0.6);
    expect(tokensAfter).toBeGreaterThan(total * 0.45);
    const [first, marker, ...rest] = messages;
    expect(first).toBe(task);
    expect(marker).toStrictEqual({ role: 'user', id: 'trimmed_step_0', origin: 'reminder', content: [{ type: 'text', text: MARKER }] });
    expect(rest).toStrictEqual(long.slice(-rest.length));
    expect(rest[0]?.role).toBe('assistant');
  });

  it('D6 says it once, however often a history is trimmed and grows again', () => {
    let history: readonly Message[] = long;
    for (let round = 0; round < 8; round += 1) {
      history = trimHistory(history, { targetTokens: total * 0.5 }).messages;
      expect(history.filter((message) => textOf(message) === MARKER)).toHaveLength(1);
      expect(ids(history)).toContain('task');
      history = [...history, userMessage(`Go on ${round}.`, { id: `go_${round}` }), ...exchange(`more_${round}`, words(200))];
    }
    expect(ids(history).slice(0, 2)).toStrictEqual(['task', 'trimmed_step_0']);
  });

  it('D6 cuts long results short before it leaves anything out', () => {
    const history = [task, ...exchange('a', words(4_000)), ...exchange('b', words(4_000)), ...exchange('c', words(50)), question];

    const { messages } = trimHistory(history, { targetTokens: 2_000 });

    expect(ids(messages)).toStrictEqual(ids(history));
    expect(textOf(messages[2])).toMatch(/^word0 [^]*\[… \d+ characters left out …\]\n[^]*word3999$/);
    expect(messages[6]).toBe(history[6]);
  });

  it('D6 leaves the newest exchange as it is, if older ones suffice', () => {
    const { messages } = trimHistory(long, { targetTokens: total * 0.4 });

    expect(messages.slice(-3)).toStrictEqual(long.slice(-3));
  });

  it('D6 cuts one huge newest result short, and keeps the rest', () => {
    const history = [...long.slice(0, -1), toolMessage(words(60_000), { id: 'result_new', toolCallId: 'call_new', name: 'run' })];

    const { messages, tokensAfter } = trimHistory(history, { targetTokens: 6_000 });

    expect(tokensAfter).toBeLessThanOrEqual(6_000);
    expect(ids(messages)).toStrictEqual(ids(history));
    expect(textOf(messages.at(-1))).toMatch(/^word0 [^]*word59999$/);
  });

  it('D6 cuts huge arguments of the newest call short', () => {
    const inputText = JSON.stringify({ path: 'a.txt', text: words(60_000) });
    const history = [task, ...exchange('new', 'Written.', inputText)];

    const { messages, tokensAfter } = trimHistory(history, { targetTokens: 3_000 });

    expect(tokensAfter).toBeLessThanOrEqual(3_000);
    expect(JSON.stringify(messages)).toContain('a.txt');
    expect(ids(messages)).toStrictEqual(ids(history));
  });

  it('D6 cuts the first task short where it is too large, and leaves the newest message of a person whole', () => {
    const history = [userMessage(words(60_000), { id: 'task' }), ...long.slice(1, -3), userMessage(words(500), { id: 'question' }), ...long.slice(-2)];

    const { messages, tokensAfter } = trimHistory(history, { targetTokens: 8_000 });

    expect(tokensAfter).toBeLessThanOrEqual(8_000);
    expect(messages[0]?.id).toBe('task');
    expect(textOf(messages[0])).toMatch(/^word0 [^]* left out …\]\n[^]*word59999$/);
    expect(messages).toContain(history.at(-3));
    expect(messages.slice(-2)).toStrictEqual(history.slice(-2));
  });

  it('D6 D7 gives the least there is where the target is out of reach, and shows it', () => {
    const memory = userMessage(words(50), { id: 'memory', origin: 'memory' });
    const summary = userMessage(words(50), { id: 'summary', origin: 'summary' });
    const pinned = userMessage(words(50), { id: 'pinned', pinned: true });
    const history = [memory, ...long.slice(0, 5), summary, ...long.slice(5, 9), pinned, ...long.slice(9)];

    const result = trimHistory(history, { targetTokens: 10 });

    expect(result.tokensAfter).toBeGreaterThan(10);
    expect(ids(result.messages)).toStrictEqual(['memory', 'task', 'trimmed_step_0', 'summary', 'pinned', 'question', 'step_new', 'result_new']);
    expect([memory, task, summary, pinned, question].every((message) => result.messages.includes(message))).toBe(true);
    expect(trimHistory(result.messages, { targetTokens: 10 }).edits).toStrictEqual([]);
    expect(recorded(history, result)).toStrictEqual({ messages: result.messages, findings: [] });
  });

  it('D6 leaves long texts as they are, if they fit', () => {
    const history = [task, ...exchange('a', words(4_000)), ...exchange('b', words(4_000))];

    expect(trimHistory(history, { targetTokens: 1e6 })).toMatchObject({ edits: [], messages: history });
  });

  it('D6 cuts the newest exchange further where a long question leaves no room for it', () => {
    const history = [task, userMessage(words(1_000), { id: 'question' }), ...exchange('new', words(450))];
    const { tokensBefore } = trimHistory(history, { targetTokens: 1e6 });

    const { messages, tokensAfter } = trimHistory(history, { targetTokens: tokensBefore * 0.8 });

    expect(tokensAfter).toBeLessThanOrEqual(tokensBefore * 0.8);
    expect(messages.slice(0, 3)).toStrictEqual(history.slice(0, 3));
    expect(textOf(messages[3])).toMatch(/^word0 [^]* left out …\]\n[^]*word449$/);
  });

  it('D6 cuts a first task further that is not large, where nothing else is left to give', () => {
    const history = [userMessage(words(200), { id: 'task' }), userMessage(words(1_000), { id: 'question' })];
    const { tokensBefore } = trimHistory(history, { targetTokens: 1e6 });

    const { messages, tokensAfter } = trimHistory(history, { targetTokens: tokensBefore * 0.9 });

    expect(tokensAfter).toBeLessThanOrEqual(tokensBefore * 0.9);
    expect(textOf(messages[0])).toMatch(/^word0 [^]* left out …\]\n[^]*word199$/);
    expect(messages[1]).toBe(history[1]);
  });

  it('D6 does not leave out what gives less than saying so takes', () => {
    const history = [task, assistantMessage('Ok.', { id: 'answer' }), question, ...exchange('new', words(4_000))];

    const { messages, edits } = trimHistory(history, { targetTokens: 10 });

    expect(edits.map(({ from }) => from)).toStrictEqual(['result_new']);
    expect(ids(messages)).toStrictEqual(ids(history));
  });

  it('D6 takes what follows in one edit', () => {
    const { edits } = trimHistory([...long.slice(0, 21), assistantMessage('Done.', { id: 'answer' }), question], { targetTokens: 1 });

    expect(edits.map(({ from, to }) => [from, to])).toStrictEqual([['step_0', 'answer']]);
  });

  it('D6 leaves old media out first', () => {
    const image = { type: 'media', mediaType: 'image/png', data: 'A'.repeat(8_000) } as const;
    const history = [task, ...exchange('a', 'x'), userMessage([image], { id: 'shot', origin: 'host' }), assistantMessage('I see.', { id: 'step_b' }), question];

    const { messages } = trimHistory(history, { targetTokens: 300 });

    expect(ids(messages)).toStrictEqual(ids(history));
    expect(textOf(messages[3])).toBe('[image/png left out to fit the context window.]');
  });

  it('D6 leaves an answer out that nobody waits for, and keeps a reply that goes back as it is', () => {
    const answered = [task, assistantMessage(words(400), { id: 'answer' }), question];
    const paused = [task, assistantMessage(words(400), { id: 'paused' })];

    expect(ids(trimHistory(answered, { targetTokens: 10 }).messages)).toStrictEqual(['task', 'trimmed_answer', 'question']);
    expect(ids(trimHistory(paused, { targetTokens: 10 }).messages)).toStrictEqual(['task', 'paused']);
  });

  it('D6 does not say that something was left out where saying so takes more than it gives', () => {
    const history = [task, assistantMessage('Ok.', { id: 'answer' }), question];

    expect(trimHistory(history, { targetTokens: 1 }).edits).toStrictEqual([]);
  });

  /** A reply that makes many calls at once, each with a long result. */
  function manyCalls(count: number): readonly Message[] {
    const calls = Array.from({ length: count }, (_, index) => ({ type: 'tool_call', id: `call_${index}`, name: 'read', inputText: `{"path":"src/${index}.ts"}` }) as const);
    const results = calls.map(({ id }) => toolMessage(words(600), { id: `result_${id}`, toolCallId: id, name: 'read' }));
    return [assistantMessage(calls, { id: 'step_many' }), ...results];
  }

  it.each([
    [4_000, expect.stringMatching(/^word0\n\[… \d+ characters left out …\]\n.+$/)],
    [3_000, '[…]'],
  ])('D6 makes many results of one reply as small as it takes, while the model waits for them: %i tokens', (targetTokens, text) => {
    const history = [task, ...manyCalls(100)];

    const { messages, tokensAfter } = trimHistory(history, { targetTokens });

    expect(tokensAfter).toBeLessThanOrEqual(targetTokens);
    expect(ids(messages)).toStrictEqual(ids(history));
    expect(messages[1]).toBe(history[1]);
    expect(textOf(messages[2])).toStrictEqual(text);
  });

  it('D6 D7 leaves out, whole, what the model never answered, where nothing else helps and a person spoke since', () => {
    const history = [task, ...exchange('old', words(100)), ...manyCalls(100), question];

    expect(ids(trimHistory(history, { targetTokens: 500 }).messages)).toStrictEqual(['task', 'trimmed_step_old', 'question']);
    expect(ids(trimHistory(history.slice(0, -1), { targetTokens: 500 }).messages)).toContain('step_many');
    const steered = [...history.slice(0, -1), userMessage('Faster.', { id: 'steered', origin: 'steering' })];
    expect(ids(trimHistory(steered, { targetTokens: 500 }).messages)).toStrictEqual(['task', 'trimmed_step_old', 'steered']);
  });

  it('D6 keeps what the model never answered where that can be made to fit', () => {
    const history = [task, ...manyCalls(100), question];

    expect(ids(trimHistory(history, { targetTokens: 4_000 }).messages)).toStrictEqual(ids(history));
  });

  it.each(['reminder', 'user'] as const)('D6 keeps what the model never answered where only a message built for one request, of origin %s, stands behind it', (origin) => {
    const history = [task, ...manyCalls(50), userMessage('Be brief.', { transient: true, origin })];

    expect(ids(trimHistory(history, { targetTokens: 100 }).messages)).toStrictEqual(ids(history));
  });

  it.each<[string, string, unknown]>([
    ['a list of numbers', `{"title": "Plot", "data": [${Array.from({ length: 12_000 }, (_, index) => index % 1000).join(', ')}], "n": 1.50}`, { title: 'Plot', data: expect.stringMatching(/^\[0, 1, 2[^]*left out …\]\n[^]*, 999\]$/), n: 1.5 }],
    ['an object', JSON.stringify({ deep: { list: Array.from({ length: 3_000 }, (_, index) => ({ '}]': `"${index}` })) } }), { deep: expect.stringMatching(/^\{"list":[^]* left out …\][^]*\]\}$/) }],
    ['more than can be named', JSON.stringify(Object.fromEntries(Array.from({ length: 9_000 }, (_, index) => [`key_${index}`, index]))), { '[…]': expect.stringMatching(/^\{"key_0":0[^]* left out …\][^]*8999\}$/) }],
  ])('D6 cuts arguments of the newest call short that are long by %s, and leaves an object', (_what, inputText, after) => {
    const [step, result] = exchange('new', 'Done.', inputText);
    const history = [task, step, result] as readonly Message[];

    const { messages, tokensAfter } = trimHistory(history, { targetTokens: 3_000 });

    const [call] = messages[1]?.content ?? [];
    if (call?.type !== 'tool_call') throw new Error('The call is gone.');
    expect(tokensAfter).toBeLessThanOrEqual(3_000);
    expect(JSON.parse(call.inputText)).toStrictEqual(after);
    expect(call.input).toStrictEqual(JSON.parse(call.inputText));
    if (inputText.includes('1.50')) expect(call.inputText).toMatch(/^\{"title": "Plot", "data": "[^]*", "n": 1\.50\}$/);
  });

  it('D6 leaves arguments alone that are no object: no provider is sent them, so they cost nothing', () => {
    const history = [task, ...exchange('new', 'No object.', `{"text": "${words(20_000)}`)];

    const { messages, edits } = trimHistory(history, { targetTokens: 3_000 });

    expect(edits).toStrictEqual([]);
    expect(messages).toBe(history);
  });

  it('law: arguments stay an object, whatever they hold and however small they get', () => {
    const estimator = createTokenEstimator();
    const inputs = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 8 });
    const spaces = fc.constantFrom(undefined, 1, 4);

    fc.assert(
      fc.property(inputs, spaces, fc.nat(200), (input, space, targetTokens) => {
        const inputText = JSON.stringify(input, undefined, space);
        // Core takes numbers that are not exact for malformed.
        fc.pre(!/\d{15}|e\+/.test(inputText));
        const call = { type: 'tool_call', id: 'call_1', name: 'run', inputText, input: JSON.parse(inputText) as unknown } as const;
        const history = [task, assistantMessage([call], { id: 'step_1' }), toolMessage('x', { id: 'result_1', toolCallId: 'call_1', name: 'run' })];

        const result = trimHistory(history, { targetTokens, estimator });

        const [after] = result.messages[1]?.content ?? [];
        if (after?.type !== 'tool_call') throw new Error('The call is gone.');
        expect(JSON.parse(after.inputText)).toStrictEqual(after.input);
        expect(after.inputText.startsWith('{')).toBe(true);
        expect(trimHistory(result.messages, { targetTokens, estimator }).edits).toStrictEqual([]);
      }),
      { numRuns: 500, seed: 20_260_401 },
    );
  });

  it('D6 BR-118 counts in one mark all that is missing, in however many rounds it was cut', () => {
    const history = [task, ...exchange('new', 'x'.repeat(100_000))];

    const text = textOf(trimHistory(history, { targetTokens: 200 }).messages[2]);

    const [, missing] = /\[… (\d+) characters left out …\]/.exec(text) ?? [];
    expect(Number(missing) + text.replace(/\n\[.*\]\n/, '').length).toBe(100_000);
  });

  it.each<[unknown, string]>([
    [null, 'trimHistory needs a list of messages, not null.'],
    [{}, 'trimHistory needs a list of messages, not a value of type object.'],
    [[{ role: 'user', content: 'x' }], '`messages[0]` is not a message'],
  ])('refuses the messages %j, says why and shows a correct call', (messages, message) => {
    const call = (): unknown => trimHistory(messages as readonly Message[], { targetTokens: 1 });

    expect(call).toThrow(TypeError);
    expect(call).toThrow(message);
    expect(call).toThrow('For example: trimHistory(messages, { targetTokens: 16_000 }).');
  });

  it.each<[unknown, string]>([
    [undefined, 'the options are not an object, but undefined.'],
    [{}, 'trimHistory needs `targetTokens`.'],
    [{ targetTokens: -1 }, '`targetTokens` must be a number of at least 0, not -1.'],
    [{ targetTokens: NaN }, '`targetTokens` must be a number of at least 0, not NaN.'],
    [{ targetTokens: 1, estimator: 3 }, '`estimator`'],
    [{ target: 1 }, 'trimHistory has no option `target`'],
  ])('refuses the options %j, says why and shows a correct call', (options, message) => {
    const call = (): unknown => trimHistory([], options as TrimHistoryOptions);

    expect(call).toThrow(TypeError);
    expect(call).toThrow(message);
    expect(call).toThrow('For example: trimHistory(messages, { targetTokens: 16_000 }).');
  });
});
