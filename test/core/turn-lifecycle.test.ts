/** runTurn from its input to its end, as a black box: steps, their numbers, their usage, and how a turn ends by itself. */
import { describe, expect, it } from 'vitest';
import { addUsage, type Hook, type LLM, toUsage, type Usage, userMessage } from 'turnloop';
import { maxSteps } from 'turnloop/policies';
import { echoTool, recordingTool, repeat, runScripted, scriptedLLM, type TestTool, toolCall } from 'turnloop/testing';
import { conversation, resultLines } from './support.ts';

const SPENT: Usage = { inputTokens: 10, cacheReadTokens: 3, cacheWriteTokens: 2, outputTokens: 5, thinkingTokens: 1 };

describe('runTurn', () => {
  it('LC1 makes one request, one step and end_turn of one reply without calls', async () => {
    const { result, llm } = await runScripted({ replies: [{ content: 'Hello', usage: SPENT, responseId: 'resp-1' }] });

    expect(llm.callCount).toBe(1);
    expect(result).toStrictEqual({
      turnId: 'turn_1',
      stopReason: 'end_turn',
      steps: 1,
      usage: SPENT,
      usageByModel: [{ modelId: 'scripted-model', usage: SPENT }],
      message: {
        role: 'assistant',
        id: 'step_1',
        content: [{ type: 'text', text: 'Hello' }],
        source: { provider: 'scripted', modelId: 'scripted-model', responseId: 'resp-1' },
      },
      text: 'Hello',
    });
  });

  it('LC2 repeats tool steps until a reply has no calls', async () => {
    const usage = { inputTokens: 4, outputTokens: 1 };

    const { result, llm, recording } = await runScripted({
      replies: [
        { content: [toolCall('echo', { text: 'a' })], usage },
        { content: [toolCall('echo', { text: 'b' })], usage },
        { content: 'done', usage },
      ],
      tools: [echoTool()],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 3, text: 'done', usage: toUsage({ inputTokens: 12, outputTokens: 3 }) });
    expect(recording.of('step.begin').map((event) => event.step)).toStrictEqual([1, 2, 3]);
    expect(conversation(llm.requests[2]!.messages)).toStrictEqual([
      'user: hi',
      'assistant: echo()',
      'tool call_1: a',
      'assistant: echo()',
      'tool call_2: b',
    ]);
  });

  it('LC3 ends max_tokens after a truncated reply, without an interruption', async () => {
    const { result, recording } = await runScripted({ replies: [{ content: 'The answer is', stopReason: 'max_tokens' }] });

    expect(result).toMatchObject({ stopReason: 'max_tokens', steps: 1, text: 'The answer is' });
    expect(recording.of('turn.interrupted')).toStrictEqual([]);
  });

  it('LC4 keeps the raw finish reason of a filtered reply on step.end', async () => {
    const { result, recording } = await runScripted({
      replies: [{ content: 'I cannot', stopReason: 'filtered', rawStopReason: 'content_filter' }],
    });

    expect(result.stopReason).toBe('filtered');
    expect(recording.of('step.end')).toMatchObject([{ stopReason: 'filtered', rawStopReason: 'content_filter' }]);
  });

  it('LC5 ends unknown when a tool_use finish comes without any call', async () => {
    const { result, llm, recording } = await runScripted({
      replies: [{ content: 'Let me see.', stopReason: 'tool_use', rawStopReason: 'tool_calls' }],
      tools: [echoTool()],
    });

    expect(result).toMatchObject({ stopReason: 'unknown', steps: 1, text: 'Let me see.' });
    expect(recording.of('step.end')).toMatchObject([{ stopReason: 'unknown', rawStopReason: 'tool_calls' }]);
    expect(llm.callCount).toBe(1);
  });

  it.each(['end_turn', 'stop_sequence'] as const)('LC6 runs the calls of a reply that ended %s', async (stopReason) => {
    const echo = echoTool();

    const { result, recording } = await runScripted({
      replies: [{ content: [toolCall('echo', { text: 'a' })], stopReason, rawStopReason: 'stop' }, 'done'],
      tools: [echo],
    });

    expect(echo.inputs).toStrictEqual([{ text: 'a' }]);
    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2 });
    expect(recording.of('step.end')[0]).toMatchObject({ stopReason: 'tool_use', rawStopReason: 'stop' });
  });

  it('LC7 executes nothing of a filtered reply, and closes its calls', async () => {
    const echo = echoTool();

    const { result, recorded, recording } = await runScripted({
      replies: [{ content: [toolCall('echo', { text: 'a' })], stopReason: 'filtered' }],
      tools: [echo],
    });

    expect(echo.runCount).toBe(0);
    expect(result).toMatchObject({ stopReason: 'filtered', steps: 1 });
    expect(recording.of('tool.call')[0]).toMatchObject({ inputText: '{"text":"a"}' });
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', 'This call was not executed: the reply was stopped by a content filter.'],
    ]);
  });

  it('LC8 ends max_steps after two steps of an endless caller, with every call paired', async () => {
    const { result, llm, recorded } = await runScripted({
      replies: [repeat({ content: [toolCall('echo', { text: 'a' })], usage: { inputTokens: 7 } })],
      tools: [echoTool()],
      stopWhen: maxSteps(2),
    });

    expect(result).toMatchObject({ stopReason: 'max_steps', steps: 2, stoppedBy: 'maxSteps', usage: toUsage({ inputTokens: 14 }) });
    expect(llm.callCount).toBe(2);
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'ok', 'a'],
      ['call_2', 'ok', 'a'],
    ]);
  });

  it('LC9 takes a cap of 0 for no limit', async () => {
    const { result } = await runScripted({
      replies: [repeat(toolCall('echo'), 60), 'done'],
      tools: [echoTool()],
      stopWhen: maxSteps(0),
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 61 });
  });

  it('LC10 has no limit of its own', async () => {
    const { result } = await runScripted({ replies: [repeat(toolCall('echo'), 150), 'done'], tools: [echoTool()] });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 151 });
  });

  it('LC11 sums the cache counters too', async () => {
    const { result } = await runScripted({
      replies: [{ content: [toolCall('echo')], usage: SPENT }, { content: 'done', usage: SPENT }],
      tools: [echoTool()],
    });

    expect(result.usage).toStrictEqual({
      inputTokens: 20,
      cacheReadTokens: 6,
      cacheWriteTokens: 4,
      outputTokens: 10,
      thinkingTokens: 2,
    });
  });
});

describe('what a turn is given', () => {
  it('records its input after turn.begin, each message with an id', async () => {
    const { recorded } = await runScripted({
      replies: ['ok'],
      input: [userMessage('first', { id: 'mine' }), userMessage('second')],
    });

    expect(recorded.slice(0, 3)).toStrictEqual([
      { type: 'turn.begin', version: 1, inputCount: 2, turnId: 'turn_1', at: 0 },
      { type: 'message', message: userMessage('first', { id: 'mine' }), turnId: 'turn_1', at: 0 },
      { type: 'message', message: userMessage('second', { id: 'message_1' }), turnId: 'turn_1', at: 0 },
    ]);
  });

  it('goes on from the history when it has no input', async () => {
    const { llm, recording } = await runScripted({
      replies: ['ok'],
      input: [],
      buildMessages: () => [userMessage('from before', { id: 'old' })],
    });

    expect(recording.of('message')).toStrictEqual([]);
    expect(conversation(llm.requests[0]!.messages)).toStrictEqual(['user: from before']);
  });

  it('puts its metadata on every event, live ones too', async () => {
    const metadata = { session: 's-1' };

    const { events } = await runScripted({ replies: [toolCall('echo'), 'ok'], tools: [echoTool()], metadata, turnId: 'mine' });

    expect(events.every((event) => event.turnId === 'mine' && event.metadata === metadata)).toBe(true);
    expect(events.map((event) => event.type)).toContain('text.delta');
  });

  it('hands the host value to tools and hooks, and records nothing of it', async () => {
    const host = { secret: 'host-value' };
    const seen: unknown[] = [];
    const tool = recordingTool({ execute: (_input, context) => (seen.push(context.host), 'ok') });

    const { events } = await runScripted({
      replies: [toolCall('record'), 'ok'],
      tools: [tool],
      hooks: [{ name: 'watch', beforeStep: (context) => void seen.push(context.host) }],
      host,
    });

    expect(seen).toStrictEqual([host, host, host]);
    expect(JSON.stringify(events)).not.toContain('host-value');
  });

  it('sends the system prompt of the model, the tools, and the same messages by identity', async () => {
    const tools = [echoTool()];

    const { llm } = await runScripted({ replies: [toolCall('echo'), 'ok'], llmOptions: { systemPrompt: 'Be brief.' }, tools });

    const [first, second] = llm.requests;
    expect(first).toMatchObject({ systemPrompt: 'Be brief.' });
    expect([first!.tools, second!.tools]).toStrictEqual([tools, tools]);
    expect(second!.messages[0]).toBe(first!.messages[0]);
  });
});

describe('what may change from step to step', () => {
  it('A5 lets a tool that was loaded mid-turn work in the next step', async () => {
    const loaded = echoTool({ name: 'loaded' });
    const load = recordingTool({ name: 'load', execute: () => (tools.push(loaded), 'loaded') });
    const tools: TestTool[] = [load];

    const { llm } = await runScripted({
      replies: [toolCall('load'), toolCall('loaded', { text: 'a' }), 'done'],
      tools: () => [...tools],
    });

    expect(llm.requests.map((request) => request.tools.map((tool) => tool.name))).toStrictEqual([
      ['load'],
      ['load', 'loaded'],
      ['load', 'loaded'],
    ]);
    expect(loaded.inputs).toStrictEqual([{ text: 'a' }]);
  });

  it('A21 asks for the model of each step, and names the one that answered', async () => {
    const second: LLM = scriptedLLM(['from the second'], { modelId: 'second', systemPrompt: 'Second.' });

    const { result, recording } = await runScripted({
      replies: [toolCall('echo')],
      tools: [echoTool()],
      decorate: (first) => ({ step }) => (step === 1 ? first : second),
    });

    expect(result).toMatchObject({ text: 'from the second', message: { source: { modelId: 'second' } } });
    expect(recording.of('usage').map((event) => event.modelId)).toStrictEqual(['scripted-model', 'second']);
  });

  it('A21 sends the settings of the turn unless a hook sets others for a step', async () => {
    const { llm } = await runScripted({
      replies: [toolCall('echo'), 'done'],
      tools: [echoTool()],
      request: { maxOutputTokens: 100, toolChoice: 'auto' },
      hooks: [{ name: 'first', beforeStep: ({ step }) => (step === 1 ? { toolChoice: { name: 'echo' } } : undefined) }],
    });

    expect(llm.requests.map(({ toolChoice, maxOutputTokens }) => ({ toolChoice, maxOutputTokens }))).toStrictEqual([
      { toolChoice: { name: 'echo' }, maxOutputTokens: 100 },
      { toolChoice: 'auto', maxOutputTokens: 100 },
    ]);
  });

  it('A21 asks for an answer of a schema in the steps that a hook names', async () => {
    const responseSchema = { type: 'object', properties: { answer: { type: 'string' } } };

    const { llm } = await runScripted({
      replies: ['{"answer":"x"}'],
      hooks: [{ name: 'shape', beforeStep: () => ({ responseSchema }) }],
    });

    expect(llm.requests[0]).toMatchObject({ responseSchema });
    expect(llm.requests[0]).not.toHaveProperty('toolChoice');
  });
});

it('the message of a result and of a finished step is the one in the history, inputs of its calls included', async () => {
  const finished: unknown[] = [];
  const { result, transcript } = await runScripted({
    replies: [toolCall('echo', { text: 'a' })],
    tools: [echoTool()],
    hooks: [{ name: 'watch', afterStep: (_context, { message }) => void finished.push(message) }],
    stopWhen: maxSteps(1),
  });
  const [, reply] = transcript.buildMessages();

  expect(reply).toMatchObject({ content: [{ type: 'tool_call', input: { text: 'a' } }] });
  expect(result.message).toStrictEqual(reply);
  expect(finished).toStrictEqual([reply]);
});

describe('usage', () => {
  it('AD5: is kept per model and per turn, and what was handed out does not change', async () => {
    const first = toUsage({ inputTokens: 3, outputTokens: 1 });
    const second = toUsage({ inputTokens: 5, outputTokens: 2 });
    const seen: Usage[] = [];
    const hooks: Hook[] = [{ name: 'watch', afterStep: (context) => void seen.push(context.usage) }];
    const { result, recording } = await runScripted({
      replies: [{ content: [toolCall('echo', { text: 'a' })], usage: first, modelId: 'small' }, { content: 'done', usage: second, modelId: 'large' }],
      tools: [echoTool()],
      hooks,
    });

    const byModel = recording.of('usage').map(({ modelId, usage: spent }) => [modelId, spent]);
    expect(byModel).toStrictEqual([
      ['small', first],
      ['large', second],
    ]);
    expect(seen).toStrictEqual([first, addUsage(first, second)]);
    expect(result.usage).toStrictEqual(addUsage(first, second));
  });
});
