/**
 * Budget: one amount of tokens or money for whatever shares it: steps, retries, fallbacks, summaries, sub-agents, and
 * several turns if the host wants.
 *
 * Owns what a host sees of it. The books are `budget-ledger.ts`; {@link withBudget} keeps them around a model.
 */
import { assertOptions } from '../core/assert.ts';
import { isRecord } from '../core/json.ts';
import type { ModelUsage } from '../core/transcript.ts';
import { NO_USAGE, toUsage, type Usage } from '../core/usage.ts';
import { assertMembers } from '../context/assert-context.ts';
import { createTokenEstimator, type TokenEstimator } from '../context/token-estimator.ts';
import { BudgetLedger } from './budget-ledger.ts';
import { assertLimits, type BudgetLimits, type Spending } from './budget-limits.ts';

const SNAPSHOT_VERSION = 1;
/** Tokens of a reply where nobody says how long it may be. More than most are; a model that writes more says so in its capabilities, or the host here. */
export const DEFAULT_OUTPUT_RESERVE = 8_192;

const ARGUMENT = { taker: 'createBudget', example: "createBudget({ maxTokens: 500_000 }), or createBudget({ maxCost: 2, prices: createPrices({ 'gpt-5-mini': { input: 0.25, output: 2 } }) })" };
const OPTIONS: Readonly<Record<keyof BudgetOptions, true>> = {
  maxTokens: true,
  maxCost: true,
  prices: true,
  unpriced: true,
  outputReserve: true,
  estimator: true,
  snapshot: true,
};

/** What a budget asks of an estimator. Every {@link context.TokenEstimator | TokenEstimator} has it. */
export type BudgetEstimator = Pick<TokenEstimator, 'estimateRequest' | 'estimateText' | 'observe'>;

/** Options of {@link createBudget}. */
export interface BudgetOptions extends BudgetLimits {
  /**
   * Tokens set aside for the reply of each request under way, where several are: then the others know what it may still
   * cost. A lower figure lets more go at once near the end of the budget, a higher one keeps it with longer replies.
   *
   * @defaultValue the most that the reply may have (`request.maxOutputTokens`, `capabilities.maxOutputTokens`), or 8,192
   * where nobody says
   */
  readonly outputReserve?: number | undefined;
  /** Says what a prompt will cost, and learns from what it did. @defaultValue an estimator of its own */
  readonly estimator?: BudgetEstimator | undefined;
  /** What was spent before, from {@link Budget.snapshot}. @defaultValue nothing */
  readonly snapshot?: BudgetSnapshot | undefined;
}

/** What was spent, as it is kept on disk. Plain JSON. */
export interface BudgetSnapshot {
  /** Version of the format. */
  readonly version: 1;
  /** Tokens by model. What they cost is worked out anew, by the prices of the budget that takes it. */
  readonly models: readonly ModelUsage[];
  /** How many of these tokens nobody told of. */
  readonly estimatedTokens: number;
}

/** What was spent of a budget. */
export interface BudgetSpent extends Spending {
  /** Tokens by model, in order of first use. */
  readonly usageByModel: ReadonlyMap<string, Usage>;
  /** How many of the tokens nobody told of: those of requests that were cut off, by estimate. */
  readonly estimatedTokens: number;
}

/** What is left of a budget; a member without a limit is left out. */
export interface BudgetRemaining {
  /** Tokens, at least 0. */
  readonly tokens?: number | undefined;
  /** Money, at least 0. */
  readonly cost?: number | undefined;
}

/** A budget that models, turns and agents share. */
export interface Budget {
  /** What was spent so far; requests under way count when they end. */
  readonly spent: BudgetSpent;
  /** What is left of it, requests under way not taken off. */
  readonly remaining: BudgetRemaining;
  /**
   * Counts tokens that no model under {@link withBudget} spent here: those of a turn before it was resumed, or of an
   * embedding.
   *
   * @param modelId - The model that they were spent on.
   * @param usage - The tokens; counters left out are 0.
   */
  add(modelId: string, usage: Partial<Usage>): void;
  /** What was spent, as plain JSON, to go on with in another process. What is under way is not in it. */
  snapshot(): BudgetSnapshot;
}

/** The sides of a budget that its policies see. */
export interface BudgetParts {
  readonly ledger: BudgetLedger;
  readonly estimator: BudgetEstimator;
  readonly outputReserve: number | undefined;
}

const parts = new WeakMap<Budget, BudgetParts>();

/**
 * Makes a budget. Nothing is limited by it alone: put it around each model with {@link withBudget}, and into `stopWhen`
 * with {@link maxBudget}.
 *
 * Without a limit it only counts.
 *
 * @param options - How much, and by which prices.
 * @throws TypeError for an option that does not exist or makes no sense, and for a snapshot that is none.
 *
 * @example
 * ```ts
 * const budget = createBudget({ maxTokens: 500_000 });
 * const llm = withRetry(withBudget(openAIChat({ model: 'gpt-5-mini' }), budget));
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, stopWhen: [maxBudget(budget)] });
 * ```
 */
export function createBudget(options: BudgetOptions = {}): Budget {
  assertOptions(options, OPTIONS, ARGUMENT);
  assertLimits(options, ARGUMENT);
  const { outputReserve, estimator = createTokenEstimator(), snapshot } = options;
  if (outputReserve !== undefined && (!Number.isSafeInteger(outputReserve) || outputReserve < 0)) {
    throw new TypeError(
      `createBudget: \`outputReserve\` must be a whole number of tokens of at least 0, not ${String(outputReserve)}. ` +
        'For example: createBudget({ maxTokens: 500_000, outputReserve: 4_000 }).',
    );
  }
  assertMembers(estimator, ['estimateRequest', 'estimateText', 'observe'], { option: 'estimator', taker: 'createBudget', example: 'createBudget({ maxTokens: 500_000, estimator: createTokenEstimator() })' });
  const ledger = new BudgetLedger(options);
  if (snapshot !== undefined) restore(ledger, snapshot);

  const budget: Budget = {
    get spent() {
      return { ...ledger.spending, usageByModel: new Map(ledger.usageByModel), estimatedTokens: ledger.estimatedTokens };
    },
    get remaining() {
      const { tokens, cost } = ledger.left;
      return { ...(tokens !== Infinity && { tokens }), ...(cost !== Infinity && { cost }) };
    },
    add: (modelId, usage) => {
      if (typeof modelId !== 'string' || !isRecord(usage) || wrongCounter(usage) !== undefined) {
        throw new TypeError("add takes the name of a model and its tokens: budget.add('gpt-5-mini', { inputTokens: 1200, outputTokens: 80 }).");
      }
      ledger.book(modelId, toUsage(usage));
    },
    snapshot: () => ({
      version: SNAPSHOT_VERSION,
      models: Array.from(ledger.usageByModel, ([modelId, usage]) => ({ modelId, usage })),
      estimatedTokens: ledger.estimatedTokens,
    }),
  };
  parts.set(budget, { ledger, estimator, outputReserve });
  return budget;
}

/** The parts of a budget. @throws TypeError for one that {@link createBudget} did not make. */
export function budgetParts(budget: Budget, taker: string): BudgetParts {
  const found = parts.get(budget);
  if (found === undefined) {
    throw new TypeError(`${taker} needs a budget from createBudget. For example: ${taker === 'withBudget' ? 'withBudget(llm, createBudget({ maxTokens: 500_000 }))' : 'maxBudget(createBudget({ maxTokens: 500_000 }))'}.`);
  }
  return found;
}

/** Books what a snapshot says. It comes from a disk: nothing of it is taken for granted. */
function restore(ledger: BudgetLedger, snapshot: unknown): void {
  const refuse = (what: string): TypeError =>
    new TypeError(`createBudget: \`snapshot\` ${what}. It is what budget.snapshot() gave: createBudget({ maxTokens: 500_000, snapshot }).`);
  if (!isRecord(snapshot) || !Array.isArray(snapshot['models'])) throw refuse('is none');
  if (snapshot['version'] !== SNAPSHOT_VERSION) {
    throw refuse(`has version ${String(snapshot['version'])}, and this release reads version ${SNAPSHOT_VERSION}`);
  }
  for (const model of snapshot['models'] as readonly unknown[]) {
    if (!isRecord(model) || typeof model['modelId'] !== 'string' || !isRecord(model['usage'])) throw refuse('has a model without a name or tokens');
    const wrong = wrongCounter(model['usage']);
    if (wrong !== undefined) throw refuse(`has \`${wrong}\`, which is no count of tokens`);
    ledger.book(model['modelId'], toUsage(model['usage']));
  }
  const { estimatedTokens } = snapshot;
  if (typeof estimatedTokens === 'number' && estimatedTokens > 0) ledger.estimatedTokens = estimatedTokens;
}

/** The first member that is no counter, or no whole number of at least 0; undefined if all are. */
function wrongCounter(usage: Readonly<Record<string, unknown>>): string | undefined {
  return Object.keys(usage).find((name) => {
    const count = usage[name];
    return !Object.hasOwn(NO_USAGE, name) || (count !== undefined && (typeof count !== 'number' || !Number.isSafeInteger(count) || count < 0));
  });
}
