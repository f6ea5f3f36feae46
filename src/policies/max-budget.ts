/** Max budget: ends a turn when its tokens or its money are spent. */
import { assertOptions } from '../core/assert.ts';
import { isRecord } from '../core/json.ts';
import type { StopCondition, StopDecision, StopState } from '../core/hooks.ts';
import { totalTokens } from '../core/usage.ts';
import { budgetParts, type Budget } from './budget.ts';
import { assertLimits, reachedLimit, spendingOf, type BudgetLimits } from './budget-limits.ts';

const ARGUMENT = { taker: 'maxBudget', example: "maxBudget({ maxTokens: 200_000 }), or maxBudget({ maxCost: 2, prices: createPrices({ 'gpt-5-mini': { input: 0.25, output: 2 } }) })" };
const OPTIONS: Readonly<Record<keyof BudgetLimits, true>> = { maxTokens: true, maxCost: true, prices: true, unpriced: true };

/**
 * Stop condition: the turn ends `max_budget` once its budget is spent.
 *
 * Asked before each step, and as soon as a reply's tokens are known: the calls of the reply that spent the last of it are
 * recorded and closed as not executed. The last request may go over the limit; {@link withBudget} refuses one whose prompt
 * does not fit before it is sent.
 *
 * @param budget - Limits of their own for each turn, which count what the turn records (steps, failed attempts, summaries,
 * sub-agents) and go on over a resume. Or a {@link Budget}, shared with whatever else spends it: its models have to be under
 * {@link withBudget}, since only what goes through there is counted.
 * @throws TypeError without a limit, and for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, stopWhen: [maxBudget({ maxTokens: 200_000 })] });
 * ```
 */
export function maxBudget(budget: Budget | BudgetLimits): StopCondition {
  return Object.assign(isBudget(budget) ? ofBudget(budget) : ofTurn(budget), { afterReply: true });
}

function isBudget(budget: Budget | BudgetLimits): budget is Budget {
  return isRecord(budget) && typeof budget['snapshot'] === 'function';
}

/** Limits of each turn, by what the turn has recorded. */
function ofTurn(limits: BudgetLimits): StopCondition {
  assertOptions(limits, OPTIONS, ARGUMENT);
  assertLimits(limits, ARGUMENT);
  assertSomeLimit(limits);
  return function maxBudget({ usage, usageByModel }: StopState): StopDecision | undefined {
    const spending = { ...spendingOf(usageByModel, limits.prices), usage, tokens: totalTokens(usage) };
    return decision(reachedLimit(spending, limits));
  };
}

/** The limits of a budget that others may share. */
function ofBudget(budget: Budget): StopCondition {
  const { ledger } = budgetParts(budget, 'maxBudget');
  assertSomeLimit(ledger.limits);
  return function maxBudget({ usage, afterReply }: StopState): StopDecision | undefined {
    if (afterReply && totalTokens(usage) > 0 && ledger.spending.tokens === 0 && !ledger.wasAsked) {
      // A limit that nothing counts towards is none. The loop ends a turn whose condition fails.
      throw new Error('The turn spends tokens, and nothing is booked on its budget. Put it around the model: withBudget(llm, budget).');
    }
    return decision(reachedLimit(ledger.spending, ledger.limits));
  };
}

function decision(reached: string | undefined): StopDecision | undefined {
  if (reached === undefined) return undefined;
  return { stopReason: 'max_budget', name: 'maxBudget', reason: `The budget is spent: ${reached}` };
}

function assertSomeLimit({ maxTokens, maxCost }: BudgetLimits): void {
  if (maxTokens !== undefined || maxCost !== undefined) return;
  throw new TypeError(`maxBudget needs maxTokens or maxCost, in its options or in those of the budget. For example: ${ARGUMENT.example}.`);
}
