/** maxBudget as a black box: the condition alone, and turns that it ends. */
import { describe, expect, it } from 'vitest';
import type { NO_USAGE} from 'turnloop';
import { LLMError, type StopState, toUsage } from 'turnloop';
import { createBudget, createPrices, maxBudget, withBudget, withFallback, withRetry } from 'turnloop/policies';
import { recordingTool, repeat, runScripted, scriptedLLM, toolCall } from 'turnloop/testing';

const prices = createPrices({ 'scripted-model': { input: 1_000_000, output: 2_000_000 }, free: { input: 0, output: 0 } });
const usage = { inputTokens: 100, outputTokens: 10 };
const call = { content: [toolCall('look')], usage };

function stateAfter(spent: Record<string, Partial<typeof NO_USAGE>>, parts: Partial<StopState> = {}): StopState {
  const usageByModel = new Map(Object.entries(spent).map(([modelId, counters]) => [modelId, toUsage(counters)]));
  const all = Object.values(spent).reduce((sum, counters) => sum + (counters.inputTokens ?? 0), 0);
  return { turnId: 'turn_1', steps: 1, usage: toUsage({ inputTokens: all }), usageByModel, modelId: undefined, afterReply: true, ...parts };
}

describe('maxBudget with limits of the turn', () => {
  it('A2 TC4 closes the calls of the reply that spends the budget, after one model call', async () => {
    const tool = recordingTool({ name: 'look' });
    const { result, llm, recording } = await runScripted({
      replies: [call, 'never'],
      tools: [tool],
      stopWhen: [maxBudget({ maxTokens: 110 })],
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', stoppedBy: 'maxBudget', steps: 1 });
    expect(result.stopMessage).toBe('The budget is spent: 110 of 110 tokens are spent.');
    expect(llm.callCount).toBe(1);
    expect(tool.runs).toHaveLength(0);
    expect(recording.of('tool.call')).toHaveLength(1);
    expect(recording.of('tool.result')).toMatchObject([{ result: { isError: true } }]);
  });

  it('A2 lets a turn go on that has a token left', async () => {
    const { result } = await runScripted({
      replies: [call, { content: 'done', usage: { outputTokens: 0 } }],
      tools: [recordingTool({ name: 'look' })],
      stopWhen: [maxBudget({ maxTokens: 111 })],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done' });
  });

  it('A2 A3 counts failed attempts that the provider told the tokens of', async () => {
    const { result } = await runScripted({
      replies: [new LLMError({ kind: 'server', message: 'Failed.', usage: toUsage({ inputTokens: 100 }) }), call, 'never'],
      tools: [recordingTool({ name: 'look' })],
      decorate: (llm) => withRetry(llm),
      stopWhen: [maxBudget({ maxTokens: 200 })],
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', steps: 1 });
  });

  it('A2 goes on counting in a turn that is resumed', async () => {
    const tool = recordingTool({ name: 'look' });
    const stopWhen = [maxBudget({ maxTokens: 200 })];
    const hooks = [{ name: 'ask', authorizeToolCall: () => ({ action: 'suspend' as const }) }];
    const first = await runScripted({ replies: [call], tools: [tool], stopWhen, hooks });
    expect(first.result.stopReason).toBe('suspended');
    const pending = first.result.pending ?? [];

    const second = await runScripted({
      transcript: first.transcript,
      resume: { decisions: pending.map(({ toolCallId }) => ({ toolCallId, action: 'allow' })) },
      replies: [call, 'never'],
      tools: [tool],
      stopWhen,
    });

    expect(second.result).toMatchObject({ stopReason: 'max_budget', steps: 2 });
    expect(tool.runs).toHaveLength(1);
  });

  it('A2 C5 ends a turn whose money is spent', async () => {
    const { result } = await runScripted({
      replies: [repeat(call)],
      tools: [recordingTool({ name: 'look' })],
      stopWhen: [maxBudget({ maxCost: 240, prices })],
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', steps: 2, stopMessage: 'The budget is spent: 240 of 240 is spent.' });
  });

  it('C5 ends a turn that used a model without a price, and says which', () => {
    const decision = maxBudget({ maxCost: 5, prices })(stateAfter({ 'mystery\n': { inputTokens: 1 } }));

    expect(decision).toMatchObject({ stopReason: 'max_budget', name: 'maxBudget' });
    expect(decision?.reason).toContain('"mystery\\n"');
    expect(decision?.reason).toContain('prices');
  });

  it('C5 lets models without a price count as free if told so, or if only tokens are limited', () => {
    const state = stateAfter({ mystery: { inputTokens: 50 } });

    expect(maxBudget({ maxCost: 5, prices, unpriced: 'free' })(state)).toBeUndefined();
    expect(maxBudget({ maxTokens: 51, prices })(state)).toBeUndefined();
    expect(maxBudget({ maxTokens: 50, prices })(state)).toBeDefined();
  });

  it('A2 allows nothing at a limit of 0, and what is free at a cost of 0', () => {
    const fresh = stateAfter({}, { steps: 0, afterReply: false });

    expect(maxBudget({ maxTokens: 0 })(fresh)).toMatchObject({ stopReason: 'max_budget' });
    expect(maxBudget({ maxCost: 0, prices })(fresh)).toBeUndefined();
    expect(maxBudget({ maxCost: 0, prices })(stateAfter({ free: { inputTokens: 9 } }))).toBeUndefined();
    expect(maxBudget({ maxCost: 0, prices })(stateAfter({ 'scripted-model': { inputTokens: 9 } }))).toBeDefined();
  });

  it('A2 never stops at a limit of Infinity', () => {
    expect(maxBudget({ maxTokens: Infinity })(stateAfter({ m: { inputTokens: 1e12 } }))).toBeUndefined();
  });
});

describe('maxBudget with a shared budget', () => {
  it('A2 C4 ends a turn whose budget others have spent, before it costs anything', async () => {
    const budget = createBudget({ maxTokens: 100 });
    budget.add('scripted-model', { inputTokens: 100 });

    const { result, llm } = await runScripted({
      replies: ['never'],
      decorate: (inner) => withBudget(inner, budget),
      stopWhen: [maxBudget(budget)],
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', stoppedBy: 'maxBudget', steps: 0 });
    expect(llm.callCount).toBe(0);
  });

  it('A2 C4 TC4 closes the calls of the reply that spends it', async () => {
    const tool = recordingTool({ name: 'look' });
    const budget = createBudget({ maxTokens: 110 });

    const { result } = await runScripted({
      replies: [call],
      tools: [tool],
      decorate: (inner) => withBudget(inner, budget),
      stopWhen: [maxBudget(budget)],
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', stoppedBy: 'maxBudget', steps: 1 });
    expect(tool.runs).toHaveLength(0);
  });

  it('A2 C3 C4 lets a turn go on that a model beside the budget answers, where the one under it is down', async () => {
    const budget = createBudget({ maxTokens: 1_000 });
    const down = scriptedLLM([repeat(new LLMError({ kind: 'overloaded', message: 'Down.' }))], { modelId: 'big' });

    const { result } = await runScripted({
      replies: [{ content: 'free answer', usage }],
      decorate: (free) => withFallback([withBudget(down, budget), free]),
      stopWhen: [maxBudget(budget)],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'free answer' });
    expect(budget.spent.tokens).toBe(0);
  });

  it('A2 C4 ends a turn whose model is not under the budget, and says what is missing', async () => {
    const { result } = await runScripted({ replies: [call], stopWhen: [maxBudget(createBudget({ maxTokens: 1000 }))] });

    expect(result.stopReason).toBe('fatal_error');
    expect(result.error?.message).toContain('withBudget(llm, budget)');
  });
});

describe('maxBudget, misused', () => {
  it.each<[string, unknown, string]>([
    ['no limit', {}, 'maxBudget needs maxTokens or maxCost'],
    ['a budget without a limit', createBudget(), 'maxBudget needs maxTokens or maxCost'],
    ['nothing', undefined, 'the options are not an object, but undefined'],
    ['a negative limit', { maxTokens: -1 }, '`maxTokens` must be a whole number of at least 0, or Infinity, not -1'],
    ['a broken number', { maxTokens: 2.5 }, '`maxTokens` must be a whole number'],
    ['a cost without prices', { maxCost: 2 }, '`maxCost` 2 needs `prices`'],
    ['a bare table', { maxCost: 2, prices: { m: { input: 1, output: 1 } } }, '`prices` must come from createPrices'],
    ['an option that does not exist', { maxTokens: 1, tokens: 2 }, 'maxBudget has no option `tokens`'],
    ['a word it does not know', { maxTokens: 1, unpriced: 'ignore' }, "`unpriced` must be 'refuse' or 'free', not ignore"],
  ])('refuses %s, and shows a correct call', (_what, limits, message) => {
    const make = (): unknown => maxBudget(limits as never);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow('For example: ');
  });
});
