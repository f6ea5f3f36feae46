/** Any of: several stop conditions as one. */
import type { StopCondition, StopDecision, StopState } from '../core/hooks.ts';
import { messageOf } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';

/**
 * Stop condition: the turn ends as soon as one of these would end it, as that one says.
 *
 * They are asked in order, each when it would be asked alone: one that is not `afterReply` only before a step. One that
 * fails ends the turn, as it does alone.
 *
 * @param conditions - At least one; those made by `anyOf` may be among them.
 * @throws TypeError for none, and for what is no condition.
 *
 * @example
 * ```ts
 * const limits = anyOf(maxSteps(25), maxBudget({ maxTokens: 200_000 }));
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, stopWhen: [limits] });
 * ```
 */
export function anyOf(...conditions: readonly StopCondition[]): StopCondition {
  const stranger = conditions.findIndex((condition: unknown) => typeof condition !== 'function');
  if (conditions.length === 0 || stranger !== -1) {
    const given = conditions.length === 0 ? 'none were given' : `number ${stranger + 1} is of type ${typeof conditions[stranger]}`;
    throw new TypeError(`anyOf needs stop conditions, but ${given}. For example: anyOf(maxSteps(25), maxBudget({ maxTokens: 200_000 })).`);
  }
  const anyOfThem = (state: StopState): StopDecision | undefined => {
    for (const condition of conditions) {
      if (state.afterReply && condition.afterReply !== true) continue;
      const decision: unknown = ask(condition, state);
      if (isDecision(decision)) return decision;
    }
    return undefined;
  };
  return Object.assign(anyOfThem, { afterReply: conditions.some((condition) => condition.afterReply === true) });
}

/** Conditions without types may return anything for "go on": what is no decision must not hide the next condition's. */
function isDecision(value: unknown): value is StopDecision {
  return isRecord(value);
}

function ask(condition: StopCondition, state: StopState): StopDecision | undefined {
  try {
    return condition(state);
  } catch (error) {
    // What the loop does with a failure, under the name of whoever failed and not under ours.
    return { stopReason: 'fatal_error', name: condition.name, reason: `A stop condition failed: ${messageOf(error)}` };
  }
}
