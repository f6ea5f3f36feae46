/** anyOf as a black box: the condition alone, and a turn that it ends. */
import { describe, expect, it } from 'vitest';
import { NO_USAGE, type StopCondition, type StopState, toUsage } from 'turnloop';
import { anyOf, maxBudget, maxSteps } from 'turnloop/policies';
import { recordingTool, repeat, runScripted, toolCall } from 'turnloop/testing';
import { watchRejections } from '../core/support.ts';

function stateOf(parts: Partial<StopState> = {}): StopState {
  return { turnId: 'turn_1', steps: 0, usage: NO_USAGE, usageByModel: new Map(), modelId: undefined, afterReply: false, ...parts };
}

const twoCalls = { content: [toolCall('look')], usage: { inputTokens: 100, outputTokens: 10 } };

describe('anyOf', () => {
  it('A2 says what the first of its conditions says that would stop', () => {
    const condition = anyOf(maxSteps(5), maxSteps(3), maxSteps(2));

    expect(condition(stateOf({ steps: 1 }))).toBeUndefined();
    expect(condition(stateOf({ steps: 4 }))).toMatchObject({ stopReason: 'max_steps', reason: 'The limit of 3 steps was reached.' });
  });

  it('A2 is asked after a reply only if one of its conditions is', () => {
    expect(anyOf(maxSteps(1)).afterReply).toBe(false);
    expect(anyOf(maxSteps(1), maxBudget({ maxTokens: 1 })).afterReply).toBe(true);
    expect(anyOf(anyOf(maxBudget({ maxTokens: 1 })), maxSteps(1)).afterReply).toBe(true);
  });

  it('A2 asks a condition after a reply only if it is to be asked then', () => {
    const condition = anyOf(maxSteps(1), anyOf(maxSteps(1)), maxBudget({ maxTokens: 10 }));
    const spent = toUsage({ inputTokens: 10 });

    expect(condition(stateOf({ steps: 1, afterReply: true }))).toBeUndefined();
    expect(condition(stateOf({ steps: 1, afterReply: true, usage: spent }))).toMatchObject({ stopReason: 'max_budget' });
    expect(condition(stateOf({ steps: 1, usage: spent }))).toMatchObject({ stopReason: 'max_steps' });
  });

  it('A2 LC8 lets the calls of the last step run when the steps are at an end, beside a budget', async () => {
    const tool = recordingTool({ name: 'look' });
    const { result } = await runScripted({
      replies: [repeat(twoCalls)],
      tools: [tool],
      stopWhen: [anyOf(maxBudget({ maxTokens: 100_000 }), maxSteps(2))],
    });

    expect(result).toMatchObject({ stopReason: 'max_steps', stoppedBy: 'maxSteps', steps: 2 });
    expect(tool.runs).toHaveLength(2);
  });

  it('A2 TC4 closes the calls of the reply that spent the budget, beside steps', async () => {
    const tool = recordingTool({ name: 'look' });
    const { result } = await runScripted({
      replies: [repeat(twoCalls)],
      tools: [tool],
      stopWhen: anyOf(maxSteps(10), maxBudget({ maxTokens: 110 })),
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', stoppedBy: 'maxBudget', steps: 1 });
    expect(tool.runs).toHaveLength(0);
  });

  it('ends the turn under the name of a condition that fails, as that one does alone', async () => {
    const broken: StopCondition = function broken() {
      throw new Error('Broken.');
    };
    const alone = await runScripted({ replies: ['never'], stopWhen: [broken] });
    const among = await runScripted({ replies: ['never'], stopWhen: [anyOf(maxSteps(3), broken)] });

    expect(among.result).toMatchObject({ stopReason: 'fatal_error', stoppedBy: 'broken' });
    expect(among.result).toMatchObject({ stopReason: alone.result.stopReason, stoppedBy: alone.result.stoppedBy });
    expect(String(among.result.error)).toBe(String(alone.result.error));
  });

  it.each([null, undefined, false])('asks on behind a condition without types that gives %s', (given) => {
    const nothing = (() => given) as unknown as StopCondition;

    expect(anyOf(nothing, maxSteps(1))(stateOf({ steps: 1 }))).toMatchObject({ stopReason: 'max_steps' });
  });

  it.each<readonly [string, () => unknown, string]>([
    ['a promise', async () => undefined, 'a promise'],
    ['a promise that fails', async () => Promise.reject(new Error('late')), 'a promise'],
    ['a word', () => 'max_steps', 'string'],
    ['an object that is no decision', () => ({ stop: true }), 'object'],
  ])('ends the turn under the name of a condition that gives %s, as that one does alone', async (_what, answer, what) => {
    const rejections = watchRejections();
    const odd = Object.assign(answer as unknown as StopCondition, {});
    Object.defineProperty(odd, 'name', { value: 'odd' });
    const alone = await runScripted({ replies: ['never'], stopWhen: [odd] });
    const among = await runScripted({ replies: ['never'], stopWhen: [anyOf(maxSteps(3), odd)] });
    await new Promise((resolve) => setImmediate(resolve));
    rejections.stop();

    expect(among.result).toMatchObject({ stopReason: 'fatal_error', stoppedBy: 'odd' });
    expect(among.result).toMatchObject({ stopReason: alone.result.stopReason, stoppedBy: alone.result.stoppedBy });
    expect(String(among.result.error)).toContain(`odd returned neither undefined nor { stopReason, name }, but ${what}`);
    expect(rejections.reasons).toStrictEqual([]);
  });

  it('names a condition without a name by its place', () => {
    const nameless: readonly StopCondition[] = [(() => 1) as unknown as StopCondition];

    expect(anyOf(maxSteps(3), ...nameless)(stateOf({ steps: 1 }))).toMatchObject({ stopReason: 'fatal_error', name: 'condition 2 of anyOf' });
  });

  it.each<[string, readonly unknown[], string]>([
    ['no conditions', [], 'none were given'],
    ['a list of them', [[maxSteps(1)]], 'number 1 is of type object'],
    ['undefined', [maxSteps(1), undefined], 'number 2 is of type undefined'],
  ])('refuses %s, and shows a correct call', (_what, conditions, message) => {
    const make = (): unknown => anyOf(...(conditions as readonly StopCondition[]));

    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow('anyOf(maxSteps(25), maxBudget({ maxTokens: 200_000 }))');
  });
});
