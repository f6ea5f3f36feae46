/** Streaming, as a black box: fragments go live as they come, and the whole parts are recorded in the model's order. */
import { describe, expect, it } from 'vitest';
import { attemptChat, decorateLLM, isLLMError, type LLM, LLMError, type LLMDelta, toUsage } from 'turnloop';
import { cutStream, echoTool, runScripted, thinking, toolCall } from 'turnloop/testing';

/** Asks once more after a failure. */
function twice(llm: LLM): LLM {
  return decorateLLM(llm, async (request) => {
    try {
      return await attemptChat(llm, request);
    } catch (error) {
      if (!isLLMError(error)) throw error;
      await request.onAttemptFailed?.({ error });
      return attemptChat(llm, request);
    }
  });
}

describe('fragments', () => {
  it('ST1 of text pass through in order and join to the whole', async () => {
    const { recording, result } = await runScripted({ replies: [{ content: 'Hello world', chunk: 4 }] });

    expect(recording.of('text.delta').map(({ attempt, stepId, text }) => [attempt, stepId, text])).toStrictEqual([
      [1, 'step_1', 'Hell'],
      [1, 'step_1', 'o wo'],
      [1, 'step_1', 'rld'],
    ]);
    expect(result.text).toBe('Hello world');
  });

  it('ST2 of thinking pass through in order', async () => {
    const { recording } = await runScripted({ replies: [{ content: [thinking('hmm, well'), 'ok'], chunk: 5 }] });

    expect(recording.of('thinking.delta').map(({ text }) => text)).toStrictEqual(['hmm, ', 'well']);
    expect(recording.types().filter((type) => type.endsWith('.delta'))).toStrictEqual([
      'thinking.delta',
      'thinking.delta',
      'text.delta',
    ]);
  });

  it('ST3 of calls pass through in order with id, name and pieces of the arguments', async () => {
    const { recording } = await runScripted({
      replies: [{ content: [toolCall('echo', '{"text":"a"}'), toolCall('echo', '{}')], chunk: 7 }, 'done'],
      tools: [echoTool()],
    });

    expect(
      recording.of('tool.call.delta').map(({ toolCallId, name, inputText }) => ({ toolCallId, name, inputText })),
    ).toStrictEqual([
      { toolCallId: 'call_1', name: 'echo', inputText: '{"text"' },
      { toolCallId: 'call_1', name: undefined, inputText: ':"a"}' },
      { toolCallId: 'call_2', name: 'echo', inputText: '{}' },
    ]);
    expect(recording.of('tool.call').map(({ toolCallId }) => toolCallId)).toStrictEqual(['call_1', 'call_2']);
  });

  it('ST3 of calls that interleave go to the call of their index', async () => {
    const piece = (callIndex: number, inputText: string, name?: string): LLMDelta => ({
      type: 'tool_call',
      callIndex,
      inputText,
      ...(name !== undefined && { name }),
    });
    const deltas = [piece(1, '{"text"', 'echo'), piece(0, '{}', 'echo'), piece(1, ':"b"}')];

    const { recording } = await runScripted({
      replies: [{ content: [toolCall('echo'), toolCall('echo', { text: 'b' })], deltas }, 'done'],
      tools: [echoTool()],
    });

    const ids = recording.of('tool.call.delta').map(({ toolCallId }) => toolCallId);
    const [first, second] = recording.of('tool.call').map(({ toolCallId }) => toolCallId);
    expect(ids).toStrictEqual([second, first, second]);
  });

  it('ST3 of a call carry its name once, also when the provider repeats it', async () => {
    const deltas: readonly LLMDelta[] = ['{"text"', ':"a"}'].map((inputText) => ({ type: 'tool_call', callIndex: 0, name: 'echo', inputText }));

    const { recording } = await runScripted({ replies: [{ content: [toolCall('echo', { text: 'a' })], deltas }, 'done'], tools: [echoTool()] });

    expect(recording.of('tool.call.delta').map((event) => 'name' in event)).toStrictEqual([true, false]);
  });

  it('are not needed: a model that does not stream gives the same record', async () => {
    const replies = [[thinking('hm'), 'Let me see.', toolCall('echo', { text: 'a' })], 'done'];

    const streamed = await runScripted({ replies, tools: [echoTool()] });
    const whole = await runScripted({ replies, tools: [echoTool()], llmOptions: { streams: false } });

    expect(whole.recording.types().some((type) => type.endsWith('.delta'))).toBe(false);
    expect(withoutTiming(whole.recorded)).toStrictEqual(withoutTiming(streamed.recorded));
  });

  it('of a failed attempt are taken back, and late ones are dropped', async () => {
    let late: ((delta: LLMDelta) => void) | undefined;

    const { recording, result } = await runScripted({
      replies: [
        (request) => {
          late = request.onDelta;
          return cutStream({ content: 'Hello world', chunk: 5 }, { deltaCount: 1 });
        },
        () => {
          late!({ type: 'text', text: 'GHOST' });
          return 'Hi';
        },
      ],
      decorate: twice,
    });

    const shown = recording.events.flatMap((event) => {
      if (event.type === 'step.retrying') return [`retract attempt ${event.attempt}`];
      return event.type === 'text.delta' ? [`${event.attempt}: ${event.text}`] : [];
    });
    expect(shown).toStrictEqual(['1: Hello', 'retract attempt 1', '2: Hi']);
    expect(result.text).toBe('Hi');
  });

  it('of a failed attempt give their calls ids that are not used again', async () => {
    const call = toolCall('echo', { text: 'a' });
    const error = new LLMError({ kind: 'network', message: 'cut' });

    const { recording } = await runScripted({
      replies: [cutStream(call, { deltaCount: 1, error }), call, 'done'],
      decorate: twice,
      tools: [echoTool()],
    });

    expect(recording.of('tool.call.delta').map(({ attempt, toolCallId }) => [attempt, toolCallId])).toStrictEqual([
      [1, 'call_1'],
      [2, 'call_2'],
    ]);
    expect(recording.of('tool.call').map(({ toolCallId }) => toolCallId)).toStrictEqual(['call_2']);
  });
});

describe('whole parts', () => {
  it('ST4 of text are recorded and live, all with the id of the step', async () => {
    const { recording, recorded } = await runScripted({ replies: [['first', toolCall('echo'), 'second'], 'done'], tools: [echoTool()] });

    const parts = recording.of('content.part');
    expect(parts.map(({ stepId, index, count, part }) => [stepId, index, count, part])).toStrictEqual([
      ['step_1', 0, 3, { type: 'text', text: 'first' }],
      ['step_1', 2, 3, { type: 'text', text: 'second' }],
      ['step_2', 0, 1, { type: 'text', text: 'done' }],
    ]);
    expect(recorded.filter((event) => event.type === 'content.part')).toStrictEqual(parts);
  });

  it('ST5 of thinking keep their signature and encrypted data, and what is absent stays absent', async () => {
    const parts = [
      thinking('plain'),
      thinking('signed', { signature: 'sig' }),
      thinking('', { redactedData: 'enc' }),
      thinking('with', { providerData: { itemId: 'rs_1' } }),
    ];

    const { recording } = await runScripted({ replies: [[...parts, 'ok']] });

    expect(recording.of('content.part').slice(0, 4).map((event) => event.part)).toStrictEqual([
      { type: 'thinking', text: 'plain' },
      { type: 'thinking', text: 'signed', signature: 'sig' },
      { type: 'thinking', text: '', redactedData: 'enc' },
      { type: 'thinking', text: 'with', providerData: { itemId: 'rs_1' } },
    ]);
  });

  it('ST6 of all kinds keep the order of the reply', async () => {
    const provider = { type: 'provider', provider: 'scripted', data: { search: 'x' } } as const;
    const media = { type: 'media', mediaType: 'image/png', data: 'aGk=' } as const;

    const { recorded, result } = await runScripted({
      replies: [[thinking('a'), 'b', toolCall('echo', { text: 'c' }), provider, 'd', media, toolCall('echo')], 'done'],
      tools: [echoTool()],
    });

    const order = recorded.flatMap((event) => {
      if (event.type === 'tool.call') return [`tool_call ${event.index}`];
      return event.type === 'content.part' && event.step === 1 ? [`${event.part.type} ${event.index}`] : [];
    });
    expect(order).toStrictEqual(['thinking 0', 'text 1', 'tool_call 2', 'provider 3', 'text 4', 'media 5', 'tool_call 6']);
    expect(result.text).toBe('done');
  });

  it('ST7 are all recorded before step.end', async () => {
    const { recorded } = await runScripted({ replies: [['one', thinking('two', { signature: 's' }), 'three']] });

    const types = recorded.map((event) => event.type);
    expect(types.lastIndexOf('content.part')).toBe(types.indexOf('step.end') - 1);
    expect(types.filter((type) => type === 'content.part')).toHaveLength(3);
  });

  it('measure the time to the first fragment and to the end', async () => {
    const { recording } = await runScripted({ replies: [{ content: 'Hello', chunk: 3, deltaDelayMs: 20, usage: {} }] });

    expect(recording.of('step.end')).toMatchObject([{ timing: { firstDeltaMs: 20, totalMs: 40 }, usage: toUsage({}) }]);
  });
});

/** A record without times and timings, which a stream has and an answer in one piece has not. */
function withoutTiming(events: readonly object[]): readonly object[] {
  return events.map((event) => ({ ...event, at: 0, timing: undefined }));
}
