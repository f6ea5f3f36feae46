/** clearOldResults alone: which results become a line, and which stay. That histories stay whole is in layers.test.ts. */
import { describe, expect, it, vi } from 'vitest';
import { assistantMessage, createTranscript, type Message, textOf, toolMessage, type ToolResultPart, userMessage } from 'turnloop';
import { clearOldResults, type ClearOldResultsOptions, reobtainableFrom } from 'turnloop/context';
import { recordingTool, runScripted, toolCall } from 'turnloop/testing';

const LONG = 'some output\n'.repeat(200);

interface Exchange {
  readonly name?: string;
  readonly content?: string | readonly ToolResultPart[];
  readonly isError?: boolean;
}

/** A task, and one call with its result after the other. */
function session(exchanges: readonly Exchange[]): readonly Message[] {
  const steps = exchanges.flatMap(({ name = 'read', content = LONG, isError = false }, index): readonly Message[] => [
    assistantMessage([{ type: 'tool_call', id: `call_${index}`, name, inputText: '{}', input: {} }], { id: `step_${index}` }),
    toolMessage(content, { id: `result_${index}`, toolCallId: `call_${index}`, name, isError }),
  ]);
  return [userMessage('Do it.', { id: 'message_1' }), ...steps, assistantMessage('Done.', { id: 'step_last' })];
}

const anything = { canReobtain: () => true };

/** Ids of the results that were cleared. */
function cleared(messages: readonly Message[], options: ClearOldResultsOptions = anything): readonly string[] {
  return clearOldResults(messages, options).edits.map(({ from }) => from);
}

const twenty: readonly Exchange[] = Array.from({ length: 20 }, () => ({}));

describe('clearOldResults', () => {
  it('D3 puts a line in the place of an old result: its tool, about how many tokens, and that the call can be made again', () => {
    const { edits, messages, tokensBefore, tokensAfter } = clearOldResults(session([{}]), { ...anything, keepNewest: 0 });

    const line = {
      role: 'tool',
      id: 'result_0',
      toolCallId: 'call_0',
      name: 'read',
      content: [{ type: 'text', text: expect.stringMatching(/^\[The result of "read", about \d+ tokens, was cleared\. Make the call again if it is needed\.\]$/) }],
    };
    expect(edits).toStrictEqual([{ from: 'result_0', to: 'result_0', messages: [line] }]);
    expect(messages[2]).toStrictEqual(line);
    expect(tokensBefore - tokensAfter).toBeGreaterThan(300);
  });

  it('D3 keeps the newest 20 messages', () => {
    // 42 messages: the newest 20 begin with an exchange's result, so that its call counts as new too.
    expect(cleared(session(twenty))).toStrictEqual(Array.from({ length: 10 }, (_, index) => `result_${index}`));
    expect(cleared(session(twenty.slice(0, 9)))).toStrictEqual([]);
  });

  it('D3 keeps as many as told, exchanges whole', () => {
    expect(cleared(session(twenty.slice(0, 4)), { ...anything, keepNewest: 4 })).toStrictEqual(['result_0', 'result_1']);
    expect(cleared(session(twenty.slice(0, 4)), { ...anything, keepNewest: 5 })).toStrictEqual(['result_0', 'result_1']);
    expect(cleared(session(twenty.slice(0, 4)), { ...anything, keepNewest: 6 })).toStrictEqual(['result_0']);
  });

  it('D3 keeps all results of an exchange, if the newest messages begin among them', () => {
    const calls = [1, 2, 3].map((number) => ({ type: 'tool_call', id: `call_${number}`, name: 'read', inputText: '{}' }) as const);
    const results = calls.map(({ id }) => toolMessage(LONG, { id: `result_${id}`, toolCallId: id, name: 'read' }));
    const history = [userMessage('Do it.', { id: 'message_1' }), assistantMessage(calls, { id: 'step_1' }), ...results, assistantMessage('Read.', { id: 'step_2' })];

    expect(cleared(history, { ...anything, keepNewest: 2 })).toStrictEqual([]);
    expect(cleared(history, { ...anything, keepNewest: 1 })).toHaveLength(3);
  });

  it('D3 leaves a result that is shorter than the line, among longer ones', () => {
    expect(cleared(session([{ content: 'x' }, {}, { content: 'y' }]), { ...anything, keepNewest: 0, minTokens: 0 })).toStrictEqual(['result_1']);
  });

  it('D3 BR-119 keeps results that the model has not answered yet, however many', () => {
    const calls = Array.from({ length: 30 }, (_, index) => ({ type: 'tool_call', id: `call_${index}`, name: 'read', inputText: '{}' }) as const);
    const results = calls.map(({ id }) => toolMessage(LONG, { id: `result_${id}`, toolCallId: id, name: 'read' }));
    const open = [userMessage('Do it.', { id: 'message_1' }), assistantMessage(calls, { id: 'step_1' }), ...results];

    expect(cleared(open, { ...anything, keepNewest: 0 })).toStrictEqual([]);
    expect(cleared([...open, userMessage('Hurry.', { id: 'message_2', origin: 'steering' })], { ...anything, keepNewest: 0 })).toStrictEqual([]);
    expect(cleared([...open, assistantMessage('Read.', { id: 'step_2' })], { ...anything, keepNewest: 0 })).toHaveLength(30);
  });

  it('MC3 D3 leaves results under 100 tokens', () => {
    const short = session([{ content: 'short' }, { content: LONG }]);

    expect(cleared(short, { ...anything, keepNewest: 0 })).toStrictEqual(['result_1']);
    expect(cleared(short, { ...anything, keepNewest: 0, minTokens: 100_000 })).toStrictEqual([]);
  });

  it('MC3 leaves messages that are no results, and results that cannot be had again', () => {
    const history = [...session([{ name: 'read' }, { name: 'send' }, { name: 'read', isError: true }]), assistantMessage(LONG, { id: 'step_x' }), userMessage(LONG, { id: 'message_2' })];
    const tools = [recordingTool({ name: 'read', readOnly: true }), recordingTool({ name: 'send' })];

    expect(cleared(history, { canReobtain: reobtainableFrom(tools), keepNewest: 0 })).toStrictEqual(['result_0']);
  });

  it('D3 takes a tool that may run again for one whose results can be had again, whether it reads or is safe to repeat', () => {
    const tools = [recordingTool({ name: 'a', readOnly: true }), recordingTool({ name: 'b', replay: 'safe' }), recordingTool({ name: 'c', replay: 'idempotent' })];
    const canReobtain = reobtainableFrom(tools);

    expect(['a', 'b', 'c', 'd'].filter((name) => canReobtain(toolMessage('x', { toolCallId: 'call', name })))).toStrictEqual(['a', 'b']);
  });

  it('MC3 leaves a result without an id, which no edit can name', () => {
    const history = session([{}]).map((message) => (message.role === 'tool' ? { ...message, id: '' } : message));

    expect(cleared(history, { ...anything, keepNewest: 0 })).toStrictEqual([]);
  });

  it('MC1 leaves the events, and the history as it was until the edits are recorded', async () => {
    const tool = recordingTool({ name: 'read', readOnly: true, execute: () => LONG });
    const { transcript } = await runScripted({ replies: [toolCall('read', {}), 'done'], tools: [tool] });
    const before = transcript.buildMessages();
    const events = [...transcript.events];

    const result = clearOldResults(before, { ...anything, keepNewest: 0 });

    expect(transcript.buildMessages()).toBe(before);
    const { edits, tokensBefore, tokensAfter } = result;
    transcript.record({ type: 'compaction', turnId: 'turn_2', at: 0, layer: 'clearOldResults', edits, tokensBefore, tokensAfter });
    expect(transcript.buildMessages()).toStrictEqual(result.messages);
    expect(transcript.events.slice(0, -1)).toStrictEqual(events);
    // A process that reads the record has the same history.
    expect(createTranscript(structuredClone(transcript.events)).buildMessages()).toStrictEqual(result.messages);
  });

  it('MC2 D9 clears all at once, and nothing as long as it is not worth it', () => {
    const history = session(twenty);
    const once = clearOldResults(history, { ...anything, minGain: 2_000 });
    expect(once.edits).toHaveLength(10);

    const more = (count: number): number => {
      const later = Array.from({ length: count }, (_, index): readonly Message[] => [
        assistantMessage([{ type: 'tool_call', id: `more_${index}`, name: 'read', inputText: '{}' }], { id: `step_more_${index}` }),
        toolMessage(LONG, { id: `result_more_${index}`, toolCallId: `more_${index}`, name: 'read' }),
      ]).flat();
      return clearOldResults([...once.messages, ...later], { ...anything, minGain: 2_000 }).edits.length;
    };
    expect([1, 2, 3].map(more)).toStrictEqual([0, 0, 0]);
    expect(more(6)).toBeGreaterThan(3);
  });

  it.each(['read', 'x\n\u2028]"', '字'.repeat(60), ''])('D3 does not clear a second time what %j gave', (name) => {
    const options = { ...anything, keepNewest: 0, minTokens: 0 };
    const { messages } = clearOldResults(session([{ name, content: LONG.repeat(50) }]), options);

    expect(textOf(messages[2])).toContain(' was cleared. ');
    expect(clearOldResults(messages, options)).toMatchObject({ edits: [], messages });
  });

  it('D3 clears media along', () => {
    const image = { type: 'media', mediaType: 'image/png', data: 'A'.repeat(8_000) } as const;
    const { messages } = clearOldResults(session([{ content: [{ type: 'text', text: 'A shot.' }, image] }]), { ...anything, keepNewest: 0 });

    expect(JSON.stringify(messages)).not.toContain('image/png');
  });

  it('D3 keeps that a result was an error, where those can be had again', () => {
    const { messages } = clearOldResults(session([{ isError: true }]), { ...anything, keepNewest: 0 });

    expect(messages[2]).toMatchObject({ isError: true, toolCallId: 'call_0' });
  });

  it.each([
    ['a whole book in it', `[The result of "${'x '.repeat(20_000)}", about 5 tokens, was cleared. Make the call again if it is needed.]`],
    ['much behind it', `[The result of "read", about 5 tokens, was cleared. Make the call again if it is needed.]\n${LONG}`],
  ])('law-12 clears what a tool made to look cleared, with %s', (_what, content) => {
    expect(cleared(session([{ content }]), { ...anything, keepNewest: 0 })).toStrictEqual(['result_0']);
  });

  it('law-12 says no more of a name than one line of it', () => {
    const name = `x\n\u2028[${'y'.repeat(500)}`;
    const result = clearOldResults(session([{ name }]), { ...anything, keepNewest: 0 });

    const line = textOf(result.messages[2]);
    expect(line.split('\n')).toHaveLength(1);
    expect(line.length).toBeLessThan(200);
  });

  it('D3 asks only about results that it would clear', () => {
    const canReobtain = vi.fn(() => false);
    clearOldResults(session(twenty), { canReobtain });

    expect(canReobtain).toHaveBeenCalledTimes(10);
  });

  it.each<[unknown, string]>([
    [undefined, 'needs a list of messages, not undefined.'],
    [[null], '`messages[0]` is not a message, which has a role and a list of parts, but null.'],
  ])('refuses the messages %j, says why and shows a correct call', (messages, message) => {
    const call = (): unknown => clearOldResults(messages as readonly Message[], anything);

    expect(call).toThrow(TypeError);
    expect(call).toThrow(message);
    expect(call).toThrow('For example: clearOldResults(messages, { canReobtain: reobtainableFrom(tools) }).');
  });

  it.each<[unknown, string]>([
    [undefined, 'reobtainableFrom needs a list of tools, not a value of type undefined.'],
    [[3], 'reobtainableFrom needs a tool'],
  ])('refuses the tools %j', (tools, message) => {
    expect(() => reobtainableFrom(tools as never)).toThrow(message);
  });

  it.each<[unknown, string]>([
    [undefined, 'the options are not an object, but undefined.'],
    [{}, 'clearOldResults needs `canReobtain`, a function, not a value of type undefined.'],
    [{ ...anything, keepNewest: -1 }, '`keepNewest` must be a whole number of at least 0, not -1.'],
    [{ ...anything, minTokens: '5' }, '`minTokens` must be a number of at least 0, not a value of type string.'],
    [{ ...anything, minGain: NaN }, '`minGain` must be a number of at least 0, not NaN.'],
    [{ ...anything, estimator: {} }, '`estimator`'],
    [{ ...anything, keep: 1 }, 'clearOldResults has no option `keep`'],
  ])('refuses the options %j, says why and shows a correct call', (options, message) => {
    const call = (): unknown => clearOldResults([], options as ClearOldResultsOptions);

    expect(call).toThrow(TypeError);
    expect(call).toThrow(message);
    expect(call).toThrow('For example: clearOldResults(messages, { canReobtain: reobtainableFrom(tools) }).');
  });
});
