/** Max steps: ends a turn after a number of steps, before the next one costs anything. */
import type { StopCondition } from '../core/hooks.ts';

/**
 * Stop condition: the turn ends `max_steps` once this many steps have begun.
 *
 * The calls of the last step have run and their results are recorded: the conversation can go on from there.
 *
 * @param count - Steps a turn may take, a whole number; 0 for no limit.
 * @throws TypeError for anything but a whole number of at least 0.
 *
 * @example
 * ```ts
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, stopWhen: [maxSteps(25)] });
 * ```
 */
export function maxSteps(count: number): StopCondition {
  if (!Number.isSafeInteger(count) || count < 0) {
    throw new TypeError(
      `maxSteps: the number of steps must be a whole number of at least 0, not ${String(count)}. ` +
        'For example: stopWhen: [maxSteps(25)], or maxSteps(0) for no limit.',
    );
  }
  return ({ steps }) => {
    if (count === 0 || steps < count) return undefined;
    return { stopReason: 'max_steps', name: 'maxSteps', reason: `The limit of ${count} steps was reached.` };
  };
}
