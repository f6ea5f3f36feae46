/** maxSteps as a black box: the condition alone, and a turn that it ends. */
import { describe, expect, it } from 'vitest';
import { NO_USAGE, type StopState } from 'turnloop';
import { maxSteps } from 'turnloop/policies';
import { recordingTool, repeat, toolCall } from 'turnloop/testing';
import { runScripted } from './run-scripted.ts';

function stateAfter(steps: number): StopState {
  return { turnId: 'turn_1', steps, usage: NO_USAGE, usageByModel: new Map(), modelId: undefined, afterReply: false };
}

describe('maxSteps', () => {
  it('A2 LC8 stops before the step that would be one too many', () => {
    const condition = maxSteps(2);

    expect([0, 1].map((steps) => condition(stateAfter(steps)))).toStrictEqual([undefined, undefined]);
    expect([2, 3].map((steps) => condition(stateAfter(steps)))).toStrictEqual([
      { stopReason: 'max_steps', name: 'maxSteps', reason: 'The limit of 2 steps was reached.' },
      { stopReason: 'max_steps', name: 'maxSteps', reason: 'The limit of 2 steps was reached.' },
    ]);
  });

  it('A2 LC9 never stops at a limit of 0', () => {
    expect(maxSteps(0)(stateAfter(1_000_000))).toBeUndefined();
  });

  it('LC8 ends an endless caller after two steps, with usage kept and every call answered', async () => {
    const { result, llm, listener } = await runScripted({
      replies: [repeat(toolCall('look'))],
      tools: [recordingTool({ name: 'look' })],
      options: { stopWhen: [maxSteps(2)] },
    });

    expect(result).toMatchObject({ stopReason: 'max_steps', stoppedBy: 'maxSteps', steps: 2 });
    expect(result.usage.outputTokens).toBeGreaterThan(0);
    expect(llm.callCount).toBe(2);
    const called = listener.of('tool.call').map(({ toolCallId }) => toolCallId);
    expect(called).toHaveLength(2);
    expect(listener.of('tool.result').map(({ toolCallId }) => toolCallId)).toStrictEqual(called);
  });

  it.each([
    ['LC9 a limit of 0', [maxSteps(0)]],
    ['LC10 no limit', []],
  ])('%s lets a turn take as many steps as it needs', async (_what, stopWhen) => {
    const { result } = await runScripted({
      replies: [repeat(toolCall('look'), 50), 'ok'],
      tools: [recordingTool({ name: 'look' })],
      options: { stopWhen },
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 51 });
  });

  it('is asked before steps only, so that the calls of the last step run', () => {
    expect(maxSteps(1).afterReply).toBeUndefined();
  });

  it.each([-1, NaN, 2.5, Infinity, '3' as unknown as number])('refuses %s and shows a correct call', (count) => {
    const make = (): unknown => maxSteps(count);

    expect(make).toThrow(TypeError);
    expect(make).toThrow('stopWhen: [maxSteps(25)], or maxSteps(0) for no limit');
  });
});
