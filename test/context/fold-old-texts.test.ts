/** foldOldTexts alone: what becomes shorter, and what never changes. That histories stay whole is in layers.test.ts. */
import { describe, expect, it } from 'vitest';
import { assistantMessage, type AssistantPart, type Message, textOf, toolMessage, type ToolCallPart, userMessage } from 'turnloop';
import { foldOldTexts, type FoldOldTextsOptions } from 'turnloop/context';

const LONG = 'x'.repeat(5_000);
const FOLDED = `${'x'.repeat(600)}\n[… 3800 characters left out …]\n${'x'.repeat(600)}`;

/** A task, an old message, and a newer question with its answer. */
function around(...old: readonly Message[]): readonly Message[] {
  return [userMessage('Do it.', { id: 'message_1' }), ...old, userMessage('And now?', { id: 'message_9' }), assistantMessage('Done.', { id: 'step_9' })];
}

function fold(history: readonly Message[], options: FoldOldTextsOptions = {}): readonly Message[] {
  return foldOldTexts(history, { keepNewest: 0, ...options }).messages;
}

/** Parts of an old reply after the fold. */
function foldReply(parts: readonly AssistantPart[]): readonly AssistantPart[] {
  const results = parts.flatMap((part) => (part.type === 'tool_call' ? [toolMessage('ok', { id: `result_${part.id}`, toolCallId: part.id, name: part.name })] : []));
  const reply = fold(around(assistantMessage(parts, { id: 'step_1' }), ...results))[1];
  return reply?.role === 'assistant' ? reply.content : [];
}

function foldCall(inputText: string, more: Partial<ToolCallPart> = {}): ToolCallPart {
  const [part] = foldReply([{ type: 'tool_call', id: 'call_1', name: 'write', inputText, ...more }]);
  if (part?.type !== 'tool_call') throw new Error('The call is gone.');
  return part;
}

describe('foldOldTexts', () => {
  it('D4 folds what a reply said, with how much is missing', () => {
    expect(foldReply([{ type: 'text', text: LONG }])).toStrictEqual([{ type: 'text', text: FOLDED }]);
  });

  it.each(['user', 'steering', 'host', 'reminder'] as const)('D4 folds an old message of origin %s', (origin) => {
    expect(textOf(fold(around(userMessage(LONG, { id: 'message_2', origin })))[1])).toBe(FOLDED);
  });

  it('D4 folds an old result, errors too', () => {
    const call = assistantMessage([{ type: 'tool_call', id: 'call_1', name: 'run', inputText: '{}' }], { id: 'step_1' });
    const result = toolMessage(LONG, { id: 'result_1', toolCallId: 'call_1', name: 'run', isError: true });

    expect(fold(around(call, result))[2]).toStrictEqual({ ...result, content: [{ type: 'text', text: FOLDED }] });
  });

  it('D4 leaves what is short', () => {
    const history = around(userMessage('x'.repeat(2_000), { id: 'message_2' }), assistantMessage('x'.repeat(2_000), { id: 'step_1' }));

    expect(foldOldTexts(history, { keepNewest: 0 })).toMatchObject({ edits: [], messages: history });
  });

  it.each<[string, Message]>([
    ['memory', userMessage(LONG, { id: 'message_2', origin: 'memory' })],
    ['a summary', userMessage(LONG, { id: 'message_2', origin: 'summary' })],
    ['what is pinned', userMessage(LONG, { id: 'message_2', pinned: true })],
    ['what was never recorded', userMessage(LONG)],
  ])('D4 leaves %s', (_what, message) => {
    const history = around(message);

    expect(fold(history)).toBe(history);
  });

  it('D4 D7 leaves the first task and the newest message of a person, however long', () => {
    const history = [userMessage(LONG, { id: 'message_1' }), assistantMessage('Yes?', { id: 'step_1' }), userMessage(LONG, { id: 'message_2' }), assistantMessage('Done.', { id: 'step_2' })];

    expect(fold(history)).toBe(history);
  });

  it.each([
    ['head', (message: Message, history: readonly Message[]) => [message, ...history]],
    ['tail', (message: Message, history: readonly Message[]) => [...history, message]],
  ])('D4 D7 takes what is built for one request, at the %s, neither for the first task nor for the newest message', (_where, build) => {
    const said = [1, 2, 3].map((number) => userMessage(LONG, { id: `message_${number}` }));
    const history = [...said, assistantMessage('Done.', { id: 'step_1' })];

    const { edits } = foldOldTexts(build(userMessage('Be brief.', { id: 'now', transient: true }), history), { keepNewest: 0 });

    expect(edits.map(({ from }) => from)).toStrictEqual(['message_2']);
  });

  it('D4 D7 takes the application for who gives the tasks where only a message built for one request is from a person', () => {
    const said = [1, 2, 3].map((number) => userMessage(LONG, { id: `message_${number}`, origin: 'host' }));
    const history = [...said, assistantMessage('Done.', { id: 'step_1' }), userMessage('Be brief.', { transient: true })];

    expect(foldOldTexts(history, { keepNewest: 0 }).edits.map(({ from }) => from)).toStrictEqual(['message_2']);
  });

  it('D4 takes what the application said for the task, where no person spoke', () => {
    const said = [1, 2, 3].map((number) => userMessage(LONG, { id: `message_${number}`, origin: 'host' }));
    const history = [...said, assistantMessage('Done.', { id: 'step_1' })];

    expect(foldOldTexts(history, { keepNewest: 0 }).edits.map(({ from }) => from)).toStrictEqual(['message_2']);
  });

  it('D4 leaves the newest 20 messages', () => {
    const old = Array.from({ length: 30 }, (_, index) => assistantMessage(LONG, { id: `step_${index}` }));

    const { edits } = foldOldTexts(around(...old));

    // The question and its answer are the newest two.
    expect(edits.map(({ from }) => from)).toStrictEqual(Array.from({ length: 12 }, (_, index) => `step_${index}`));
  });

  it('D4 folds thinking that nobody signed, and no other', () => {
    const sealed: readonly AssistantPart[] = [
      { type: 'thinking', text: LONG, signature: 's' },
      { type: 'thinking', text: '', redactedData: LONG },
      { type: 'thinking', text: LONG, providerData: { model: 'm' } },
      { type: 'provider', provider: 'p', data: LONG },
      { type: 'media', mediaType: 'image/png', data: LONG },
    ];

    expect(foldReply([...sealed, { type: 'thinking', text: LONG }, { type: 'text', text: 'So.' }])).toStrictEqual([
      ...sealed,
      { type: 'thinking', text: FOLDED },
      { type: 'text', text: 'So.' },
    ]);
  });

  it('D4 CX2 keeps what a provider attached to texts and calls', () => {
    const [text] = foldReply([{ type: 'text', text: LONG, providerData: { phase: 'commentary' } }]);
    const call = foldCall(JSON.stringify({ text: LONG }), { providerId: 'toolu_1', providerData: { thoughtSignature: 's' } });

    expect(text).toStrictEqual({ type: 'text', text: FOLDED, providerData: { phase: 'commentary' } });
    expect(call).toMatchObject({ id: 'call_1', providerId: 'toolu_1', providerData: { thoughtSignature: 's' } });
    expect(JSON.parse(call.inputText)).toStrictEqual({ text: FOLDED });
  });

  it('D4 folds long strings in arguments and leaves every other character of them', () => {
    const long = JSON.stringify(LONG);
    const folded = JSON.stringify(FOLDED);
    const before = `{ "path" :"a\\u0062", "n": 1.50,"n":1e2, "lines":[${long}, {"${LONG}": true, "deep":${long}}],\n"end" : "\\"" }`;

    expect(foldCall(before).inputText).toBe(`{ "path" :"a\\u0062", "n": 1.50,"n":1e2, "lines":[${folded}, {"${LONG}": true, "deep":${folded}}],\n"end" : "\\"" }`);
  });

  it('D4 also folds what was parsed of the arguments', () => {
    const input = { path: 'a', lines: [LONG, { deep: LONG, n: 1, none: null }] };

    const call = foldCall(JSON.stringify(input), { input });

    expect(call.input).toStrictEqual({ path: 'a', lines: [FOLDED, { deep: FOLDED, n: 1, none: null }] });
    expect(JSON.parse(call.inputText)).toStrictEqual(call.input);
  });

  it.each([
    ['escapes', JSON.stringify({ text: '\\"\n\u0000'.repeat(900) })],
    ['a key named __proto__', `{"__proto__": ${JSON.stringify(LONG)}}`],
    ['characters of two halves', JSON.stringify({ text: '😀'.repeat(3_000) })],
    ['lone halves', JSON.stringify({ text: '\ud83d-'.repeat(3_000) })],
  ])('D4 leaves an object that parses out of arguments with %s', (_what, inputText) => {
    const { inputText: folded } = foldCall(inputText);

    const [before, after] = [JSON.parse(inputText), JSON.parse(folded)].map((value) => Object.entries(value as Record<string, string>));
    expect(after?.map(([key]) => key)).toStrictEqual(before?.map(([key]) => key));
    expect(after?.[0]?.[1].length).toBeLessThan(2_000);
  });

  it.each([
    ['malformed', `{"text": "${LONG}`],
    ['a list', JSON.stringify([LONG])],
    ['a string', JSON.stringify(LONG)],
    ['free text', LONG],
    ['long by its keys and numbers alone', JSON.stringify(Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`key_${index}`, index])))],
  ])('D4 leaves arguments that are %s', (_what, inputText) => {
    expect(foldCall(inputText).inputText).toBe(inputText);
  });

  it('D9 does nothing as long as it is not worth it', () => {
    const history = around(assistantMessage(LONG, { id: 'step_1' }));

    expect(foldOldTexts(history, { keepNewest: 0, minGain: 5_000 }).edits).toStrictEqual([]);
    expect(foldOldTexts(history, { keepNewest: 0, minGain: 50 }).edits).toHaveLength(1);
  });

  it.each([null, undefined, 'text', [3]])('refuses the messages %j', (messages) => {
    const call = (): unknown => foldOldTexts(messages as never);

    expect(call).toThrow(TypeError);
    expect(call).toThrow('For example: foldOldTexts(messages, {');
  });

  it.each<[Record<string, unknown>, string]>([
    [{ estimator: null }, '`estimator`'],
    [{ maxCharacters: 199 }, '`maxCharacters` must be a whole number of at least 200, not 199.'],
    [{ headCharacters: 1_500, tailCharacters: 500 }, '`headCharacters` (1500) and `tailCharacters` (500) leave nothing out of a text of `maxCharacters` (2000)'],
    [{ keepNewest: 0.5 }, '`keepNewest` must be a whole number of at least 0, not 0.5.'],
    [{ minGain: -1 }, '`minGain` must be a number of at least 0, not -1.'],
    [{ keep: 1 }, 'foldOldTexts has no option `keep`'],
  ])('refuses the options %j, says why and shows a correct call', (options, message) => {
    const call = (): unknown => foldOldTexts([], options);

    expect(call).toThrow(TypeError);
    expect(call).toThrow(message);
    expect(call).toThrow('For example: foldOldTexts(messages, {');
  });
});
