/** maxSteps: the condition alone, as a black box; a turn that it ends is in core's tests of stop conditions. */
import { describe, expect, it } from 'vitest';
import { NO_USAGE, type StopState } from 'turnloop';
import { maxSteps } from 'turnloop/policies';

function stateAfter(steps: number): StopState {
  return { turnId: 'turn_1', steps, usage: NO_USAGE, usageByModel: new Map(), modelId: undefined };
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

  it('is asked before steps only, so that the calls of the last step run', () => {
    expect(maxSteps(1).afterReply).toBeUndefined();
  });

  it.each([-1, NaN, 2.5, Infinity, '3' as unknown as number])('refuses %s and shows a correct call', (count) => {
    const make = (): unknown => maxSteps(count);

    expect(make).toThrow(TypeError);
    expect(make).toThrow('stopWhen: [maxSteps(25)], or maxSteps(0) for no limit');
  });
});
