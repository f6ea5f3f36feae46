/** Any of: several stop conditions as one. */
import { messageOf } from '../core/errors.ts';
import { isThenable } from '../core/event-dispatcher.ts';
import type { StopCondition, StopDecision, StopState } from '../core/hooks.ts';
import { isRecord } from '../core/json.ts';
import { isTurnStopReason } from '../core/stop-reason.ts';

/**
 * Stop condition: the turn ends as soon as one of these would end it, as that one says.
 *
 * They are asked in order, each when it would be asked alone: one that is not `afterReply` only before a step. One that
 * fails, or answers with a promise or with no decision, ends the turn under its own name, as it does alone.
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
    for (const [index, condition] of conditions.entries()) {
      if (state.afterReply && condition.afterReply !== true) continue;
      const decision = ask(condition, state, index);
      if (decision !== undefined) return decision;
    }
    return undefined;
  };
  return Object.assign(anyOfThem, { afterReply: conditions.some((condition) => condition.afterReply === true) });
}

function ask(condition: StopCondition, state: StopState, index: number): StopDecision | undefined {
  const name = condition.name === '' ? `condition ${index + 1} of anyOf` : condition.name;
  try {
    const given: unknown = condition(state);
    // Conditions without types may say "go on" in these ways too.
    if (given === undefined || given === null || given === false) return undefined;
    if (isDecision(given)) return given;
    if (isThenable(given)) given.then(undefined, () => undefined);
    const what = isThenable(given) ? 'a promise: it has to answer at once' : typeof given;
    throw new TypeError(`${name} returned neither undefined nor { stopReason, name }, but ${what}`);
  } catch (error) {
    // What the loop does with a failure, under the name of whoever failed and not under ours.
    return { stopReason: 'fatal_error', name, reason: `A stop condition failed: ${messageOf(error)}` };
  }
}

function isDecision(value: unknown): value is StopDecision {
  return isRecord(value) && isTurnStopReason(value['stopReason']) && value['stopReason'] !== 'suspended' && typeof value['name'] === 'string';
}
