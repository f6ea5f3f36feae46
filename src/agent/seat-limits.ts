/**
 * Seat limits: what ends a turn. The limits of the agent that a session was opened with hold for all of a turn; those of one that
 * took over hold beside them for the steps that it has.
 */
import type { StopCondition } from '../core/hooks.ts';
import { maxBudget } from '../policies/max-budget.ts';
import { maxSteps } from '../policies/max-steps.ts';
import { stepLimit } from './agent-options.ts';
import type { AgentParts } from './agent-parts.ts';

/** The stop conditions of an agent. */
export function limitsOf({ options, budgets }: AgentParts): readonly StopCondition[] {
  const { stopWhen = [] } = options;
  return [maxSteps(stepLimit(options)), ...budgets.map((budget) => maxBudget(budget)), ...(typeof stopWhen === 'function' ? [stopWhen] : stopWhen)];
}

/**
 * The same for the steps of one agent alone.
 *
 * @param stepsOf - Steps that it had in the turn; undefined if it does not have the one that runs.
 */
export function limitsWhile(parts: AgentParts, stepsOf: () => number | undefined): readonly StopCondition[] {
  return limitsOf(parts).map((limit) => {
    const own: StopCondition = (state) => {
      const steps = stepsOf();
      return steps === undefined ? undefined : limit({ ...state, steps });
    };
    return limit.afterReply === undefined ? own : Object.assign(own, { afterReply: limit.afterReply });
  });
}
