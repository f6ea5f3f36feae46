/**
 * Limits, as a black box: stop conditions are asked before money is spent on a step, a hook may grant one last step
 * without tools, and nothing goes on for ever.
 */
import { describe, expect, it } from 'vitest';
import { type Hook, type StopCondition, type StopState, toUsage, userMessage } from 'turnloop';
import { echoTool, repeat, runScripted, toolCall } from 'turnloop/testing';
import { conversation, outputBudget, resultLines, secondProcess, stepLimit } from './support.ts';

const FINAL: Hook = {
  name: 'final',
  shouldContinueAfterStop: (_context, stop) => (stop.limit ? userMessage('Answer now.', { origin: 'reminder' }) : undefined),
};

describe('a stop condition', () => {
  it('A2 ends the turn before the step that it forbids, as an ordinary result', async () => {
    const { result, llm, recording } = await runScripted({
      replies: [repeat(toolCall('echo'))],
      tools: [echoTool()],
      stopWhen: stepLimit(3),
    });

    expect(result).toMatchObject({ stopReason: 'max_steps', stoppedBy: 'stepLimit', stopMessage: '3 steps', steps: 3 });
    expect(result).not.toHaveProperty('error');
    expect(llm.callCount).toBe(3);
    expect(recording.of('turn.end')).toMatchObject([{ stopReason: 'max_steps', stoppedBy: 'stepLimit', stopMessage: '3 steps' }]);
  });

  it('A2 is asked before the first step too', async () => {
    const { result, llm } = await runScripted({ stopWhen: stepLimit(0) });

    expect(result).toMatchObject({ stopReason: 'max_steps', steps: 0 });
    expect(llm.callCount).toBe(0);
  });

  it('is told the steps, the usage, the usage by model, and the model', async () => {
    const seen: StopState[] = [];
    const watching: StopCondition = (state) => {
      seen.push({ ...state, usageByModel: new Map(state.usageByModel) });
      return undefined;
    };

    await runScripted({
      replies: [{ content: [toolCall('echo')], usage: { inputTokens: 5 }, modelId: 'real-model' }, 'done'],
      tools: [echoTool()],
      stopWhen: watching,
    });

    const usage = toUsage({ inputTokens: 5 });
    expect(seen).toStrictEqual([
      { turnId: 'turn_1', steps: 0, usage: toUsage({}), usageByModel: new Map(), modelId: undefined, afterReply: false },
      { turnId: 'turn_1', steps: 1, usage, usageByModel: new Map([['real-model', usage]]), modelId: 'real-model', afterReply: false },
    ]);
  });

  it('decides by its place in the list: the first that hits ends the turn', async () => {
    const named = (name: string): StopCondition => ({ steps }) => (steps > 0 ? { stopReason: 'stopped', name } : undefined);

    const { result } = await runScripted({
      replies: [toolCall('echo')],
      tools: [echoTool()],
      stopWhen: [() => undefined, named('first'), named('second')],
    });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'first' });
  });

  it('is not asked between a reply and its tools unless it is marked afterReply', async () => {
    const echo = echoTool();
    const spent: StopCondition = ({ usage }) => (usage.outputTokens >= 10 ? { stopReason: 'max_budget', name: 'spent' } : undefined);

    const { result } = await runScripted({
      replies: [{ content: [toolCall('echo')], usage: { outputTokens: 10 } }],
      tools: [echo],
      stopWhen: spent,
    });

    expect(echo.runCount).toBe(1);
    expect(result).toMatchObject({ stopReason: 'max_budget', steps: 1 });
  });

  it('marked afterReply closes the calls of the reply that hits it', async () => {
    const { result, recorded } = await runScripted({
      replies: [{ content: ['so far', toolCall('echo')], usage: { outputTokens: 10 } }],
      tools: [echoTool()],
      stopWhen: outputBudget(10),
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', stoppedBy: 'outputBudget', text: 'so far' });
    expect(resultLines(recorded)[0]![2]).toContain('This call was not executed');
    expect(recorded.at(-2)).toMatchObject({ type: 'step.end', stopReason: 'tool_use' });
  });

  it('marked afterReply closes them in another process too, if none of them had started', async () => {
    const options = { tools: [echoTool()], stopWhen: outputBudget(10) };
    const whole = await runScripted({ ...options, replies: [{ content: [toolCall('echo')], usage: { outputTokens: 10 } }] });
    const called = whole.recorded.findIndex((event) => event.type === 'tool.call');
    const echo = echoTool();

    const { result, recorded } = await runScripted({
      ...secondProcess(whole.recorded.slice(0, called + 1)),
      ...options,
      resume: {},
      tools: [echo],
    });

    expect(echo.runCount).toBe(0);
    expect(result).toMatchObject({ stopReason: 'max_budget', stoppedBy: 'outputBudget' });
    expect(resultLines(recorded)).toStrictEqual(resultLines(whole.recorded));
  });

  it.each([
    ['a promise', async () => undefined, 'a promise: it has to answer at once'],
    ['a promise that fails', () => Promise.reject(new Error('later')), 'a promise: it has to answer at once'],
    ['no decision', () => ({ stopReason: 'enough' }), 'but object'],
  ])('that answers with %s ends the turn as a failure that says so', async (_name, answer, words) => {
    // As a host without types would.
    const condition = answer as unknown as StopCondition;

    const { result, llm } = await runScripted({ stopWhen: condition });

    expect(result).toMatchObject({ stopReason: 'fatal_error' });
    expect(result.error!.message).toContain(words);
    expect(llm.callCount).toBe(0);
  });

  it('keeps its stop and its reason over the last step that a hook grants, whatever other hooks say of that step', async () => {
    const strict: Hook = { name: 'strict', afterStep: ({ step }) => (step === 2 ? { reason: 'Enough.' } : undefined) };
    const limit: StopCondition = ({ steps }) => (steps >= 1 ? { stopReason: 'max_steps', name: 'limit', reason: 'One step.' } : undefined);

    const { result, recording } = await runScripted({
      replies: [toolCall('echo'), toolCall('echo')],
      tools: [echoTool()],
      hooks: [FINAL, strict],
      stopWhen: limit,
    });

    expect(result).toMatchObject({ stopReason: 'max_steps', stoppedBy: 'limit', stopMessage: 'One step.', steps: 2 });
    expect(recording.of('turn.end')).toMatchObject([{ stopReason: 'max_steps', stoppedBy: 'limit', stopMessage: 'One step.' }]);
  });

  it('that throws ends the turn as a failure, not by a rejection', async () => {
    const { result } = await runScripted({
      stopWhen: () => {
        throw new Error('no prices');
      },
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error' });
    expect(result.error!.message).toContain('no prices');
  });
});

describe('a last step after a limit', () => {
  it('C9 is granted once, with toolChoice none and the tool list unchanged', async () => {
    const tools = [echoTool()];

    const { result, llm, recording } = await runScripted({
      replies: [toolCall('echo', { text: 'a' }), 'the final answer'],
      tools,
      stopWhen: stepLimit(1),
      hooks: [FINAL],
    });

    expect(llm.requests.map(({ toolChoice }) => toolChoice)).toStrictEqual([undefined, 'none']);
    expect(llm.requests[1]!.tools).toBe(llm.requests[0]!.tools);
    expect(conversation(llm.requests[1]!.messages).at(-1)).toBe('user: Answer now.');
    expect(result).toMatchObject({ stopReason: 'max_steps', stoppedBy: 'stepLimit', steps: 2, text: 'the final answer' });
    expect(recording.of('step.begin')[1]).toMatchObject({ afterLimit: { stopReason: 'max_steps', stoppedBy: 'stepLimit' } });
  });

  it('C9 is the last one, also when the model calls tools in it', async () => {
    const { result, llm } = await runScripted({
      replies: [repeat(toolCall('echo'))],
      tools: [echoTool()],
      stopWhen: stepLimit(1),
      hooks: [FINAL],
    });

    expect(result).toMatchObject({ stopReason: 'max_steps', steps: 2 });
    expect(llm.callCount).toBe(2);
  });

  it('C9 runs none of the calls that a model makes although it was told not to', async () => {
    const echo = echoTool();

    await runScripted({
      replies: [toolCall('echo', { text: 'first' }), toolCall('echo', { text: 'last' })],
      tools: [echo],
      stopWhen: stepLimit(1),
      hooks: [FINAL],
    });

    expect(echo.inputs).toStrictEqual([{ text: 'first' }]);
  });

  it('C9 is granted after a budget that the reply itself reached', async () => {
    const { result } = await runScripted({
      replies: [{ content: [toolCall('echo')], usage: { outputTokens: 10 } }, 'in short'],
      tools: [echoTool()],
      stopWhen: outputBudget(10),
      hooks: [FINAL],
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', stoppedBy: 'outputBudget', steps: 2, text: 'in short' });
  });

  it('C9 asks the hooks once only', async () => {
    let asked = 0;

    await runScripted({
      replies: [repeat(toolCall('echo'), 2)],
      tools: [echoTool()],
      stopWhen: stepLimit(1),
      hooks: [{ name: 'count', shouldContinueAfterStop: (_context, stop) => (stop.limit ? (asked += 1) > 0 : false) }],
    });

    expect(asked).toBe(1);
  });

  it('C9 ends as it would have when it is resumed in another process', async () => {
    const whole = await runScripted({
      replies: [toolCall('echo', { text: 'a' }), 'the final answer'],
      tools: [echoTool()],
      stopWhen: stepLimit(1),
      hooks: [FINAL],
    });
    const begun = whole.recorded.findIndex((event) => event.type === 'step.begin' && event.step === 2);

    const { result, llm } = await runScripted({
      ...secondProcess(whole.recorded.slice(0, begun + 1)),
      resume: {},
      replies: ['the final answer'],
      tools: [echoTool()],
      stopWhen: stepLimit(1),
      hooks: [FINAL],
    });

    expect(result).toMatchObject({ stopReason: 'max_steps', stoppedBy: 'stepLimit', steps: 2, text: 'the final answer' });
    expect(llm.requests[0]).toMatchObject({ toolChoice: 'none' });
  });
});

describe('continuations', () => {
  it('A4 end after a hundred, whatever the hooks say', async () => {
    const { result, llm, recording } = await runScripted({
      replies: [repeat('not yet')],
      hooks: [{ name: 'never enough', shouldContinueAfterStop: () => true }],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 101 });
    expect(llm.callCount).toBe(101);
    expect(recording.of('notice')).toMatchObject([{ name: 'continuations.exhausted', data: { continuations: 100 } }]);
  });

  it('A4 respect the limit of steps', async () => {
    const { result } = await runScripted({
      replies: [repeat('not yet')],
      stopWhen: stepLimit(3),
      hooks: [{ name: 'never enough', shouldContinueAfterStop: (_context, stop) => !stop.limit }],
    });

    expect(result).toMatchObject({ stopReason: 'max_steps', steps: 3 });
  });
});
