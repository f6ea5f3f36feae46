/**
 * Budget limits: how much may be spent, what spending comes to, and whether it has come to the limit. The one place that
 * says so, for the budget that is shared and for the limits of a turn.
 */
import { assertNumbers } from '../core/assert.ts';
import { addUsage, NO_USAGE, totalTokens, type Usage } from '../core/usage.ts';
import { assertPrices, costOf, type Prices } from './prices.ts';

/** How much may be spent. */
export interface BudgetLimits {
  /**
   * Most tokens, a whole number: prompts, cached or not, and replies. 0 allows nothing, `Infinity` anything.
   *
   * @defaultValue no limit
   */
  readonly maxTokens?: number | undefined;
  /** Most money, in the currency of `prices`; needs them. 0 allows only what is free, `Infinity` anything. @defaultValue no limit */
  readonly maxCost?: number | undefined;
  /** What tokens cost, from {@link policies.createPrices | createPrices}. @defaultValue none: only tokens are counted */
  readonly prices?: Prices | undefined;
  /**
   * What a `maxCost` makes of a model without a price. `refuse`: it is not asked, since nobody could say when the money
   * is spent. `free`: it counts as costing nothing.
   *
   * @defaultValue `'refuse'`
   */
  readonly unpriced?: 'refuse' | 'free' | undefined;
}

/** What was spent. */
export interface Spending {
  /** Tokens by counter. */
  readonly usage: Usage;
  /** All tokens. */
  readonly tokens: number;
  /** What the models with a price cost; undefined without prices. */
  readonly cost: number | undefined;
  /** Models that were used and have no price; empty without prices. */
  readonly unpriced: readonly string[];
}

/** What usage by model comes to. */
export function spendingOf(usageByModel: ReadonlyMap<string, Usage>, prices: Prices | undefined): Spending {
  let usage = NO_USAGE;
  let cost = 0;
  const unpriced: string[] = [];
  for (const [modelId, spent] of usageByModel) {
    usage = addUsage(usage, spent);
    if (prices === undefined) continue;
    const part = costOf(spent, modelId, prices);
    if (part === undefined) unpriced.push(modelId);
    else cost += part;
  }
  return { usage, tokens: totalTokens(usage), cost: prices === undefined ? undefined : cost, unpriced };
}

/** In words, which limit spending has reached; undefined for none. */
export function reachedLimit({ tokens, cost = 0, unpriced }: Spending, limits: BudgetLimits): string | undefined {
  const { maxTokens = Infinity, maxCost = Infinity } = limits;
  if (tokens >= maxTokens) return `${tokens} of ${maxTokens} tokens are spent.`;
  if (maxCost === Infinity) return undefined;
  if (unpriced.length > 0 && limits.unpriced !== 'free') {
    return `What ${unpriced.map((modelId) => JSON.stringify(modelId)).join(', ')} cost is not known, so a maxCost of ${maxCost} cannot be kept: add it to \`prices\`.`;
  }
  // At a limit of 0 models that cost nothing may go on.
  return cost > 0 && cost >= maxCost ? `${money(cost)} of ${money(maxCost)} is spent.` : undefined;
}

/** An amount of money as it reads: rates are per million tokens, so that cents have many places. */
export function money(amount: number): string {
  return String(Number(amount.toPrecision(6)));
}

/** @throws TypeError for limits that make no sense, or cannot be kept. */
export function assertLimits(limits: BudgetLimits, argument: { readonly taker: string; readonly example: string }): void {
  const { taker, example } = argument;
  assertNumbers(limits, { maxTokens: { least: 0, whole: true, orInfinity: true }, maxCost: { least: 0, orInfinity: true } }, argument);
  assertPrices(limits.prices, argument);
  const { maxCost, prices, unpriced } = limits;
  if (maxCost !== undefined && prices === undefined) {
    throw new TypeError(`${taker}: \`maxCost\` ${maxCost} needs \`prices\`, which are per million tokens. For example: ${example}.`);
  }
  if (unpriced !== undefined && unpriced !== 'refuse' && unpriced !== 'free') {
    throw new TypeError(`${taker}: \`unpriced\` must be 'refuse' or 'free', not ${String(unpriced)}. For example: ${example}.`);
  }
}
