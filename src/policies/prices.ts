/**
 * Prices: what the tokens of a model cost, by a table of the host's. Nothing here knows a price of its own.
 *
 * - P1 A model that is not in the table has no cost: undefined, never 0, and never the price of a similar name, but
 *   for dated snapshots of one that is.
 * - P2 Names of models are data: they are keys of a `Map`, and only own properties of a table count.
 */
import { isRecord } from '../core/json.ts';
import type { Usage } from '../core/usage.ts';

const PER = 1_000_000;
const EXAMPLE = "createPrices({ 'gpt-5-mini': { input: 0.25, output: 2, cacheRead: 0.025 } })";
/** What names of dated snapshots end with: a date, or four digits. */
const SNAPSHOT = /-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$/;
const RATES = ['input', 'output', 'cacheRead', 'cacheWrite'] as const;

/** What a million tokens cost, in a currency of the host's choice. */
export interface ModelPrice {
  /** A million tokens of the prompt that no cache was asked about. */
  readonly input: number;
  /** A million tokens of the reply, thinking included. */
  readonly output: number;
  /** A million tokens of the prompt that came out of the cache. @defaultValue `input`, which is never too little */
  readonly cacheRead?: number | undefined;
  /** A million tokens of the prompt that went into the cache. @defaultValue `input`: many providers charge nothing extra */
  readonly cacheWrite?: number | undefined;
}

/** Prices by the name of the model, as a provider tells it. {@link createPrices} makes one, and so may you. */
export interface Prices {
  /** The price of a model; undefined where it is not known. */
  get(modelId: string): ModelPrice | undefined;
}

/**
 * Makes prices of a table.
 *
 * A dated snapshot (`-2025-08-07`, `-20250807` or `-0807` at the end) that is not in the table has the price of the name
 * without its date: many providers answer a request for `gpt-5-mini` as `gpt-5-mini-2025-08-07`. Any other name has to be
 * the whole name.
 *
 * @param table - Prices by name of the model, in an object or a map; copied.
 * @throws TypeError for anything but numbers of at least 0 per million tokens, `input` and `output` among them.
 *
 * @example
 * ```ts
 * const prices = createPrices({ 'claude-sonnet-4-5': { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } });
 * ```
 */
export function createPrices(table: Readonly<Record<string, ModelPrice>> | ReadonlyMap<string, ModelPrice>): Prices {
  if (!isRecord(table)) throw new TypeError(`createPrices needs a table of prices. For example: ${EXAMPLE}.`);
  const entries: Iterable<readonly [string, ModelPrice]> = table instanceof Map ? table : Object.entries(table);
  const prices = new Map<string, ModelPrice>();
  for (const [modelId, price] of entries) prices.set(modelId, checkedPrice(modelId, price));
  return { get: (modelId) => prices.get(modelId) ?? prices.get(modelId.replace(SNAPSHOT, '')) };
}

/**
 * What tokens of a model cost; undefined if its price is not known.
 *
 * @param usage - Tokens, of one request or of many.
 * @param modelId - The model that they were spent on.
 * @param prices - The host's table.
 */
export function costOf(usage: Usage, modelId: string, prices: Prices): number | undefined {
  const price = prices.get(modelId);
  if (price === undefined) return undefined;
  const { input, output, cacheRead = input, cacheWrite = input } = price;
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const cost = (inputTokens * input + outputTokens * output + cacheReadTokens * cacheRead + cacheWriteTokens * cacheWrite) / PER;
  // A table of the host's own may say anything: what is no number is no cost.
  return Number.isFinite(cost) && cost >= 0 ? cost : undefined;
}

/** The most that tokens of a prompt can cost, whatever part of them a cache reads or writes. */
export function highestInputCost(tokens: number, { input, cacheRead = input, cacheWrite = input }: ModelPrice): number {
  return (tokens * Math.max(input, cacheRead, cacheWrite)) / PER;
}

/** What tokens of a reply cost. */
export function outputCost(tokens: number, { output }: ModelPrice): number {
  return (tokens * output) / PER;
}

/** @throws TypeError if they cannot be asked for a price, such as a bare table. */
export function assertPrices(prices: unknown, { taker, example }: { readonly taker: string; readonly example: string }): void {
  if (prices === undefined) return;
  if (typeof prices === 'object' && prices !== null && typeof Reflect.get(prices, 'get') === 'function') return;
  throw new TypeError(`${taker}: \`prices\` must come from createPrices, or have a function get. For example: ${example}.`);
}

function checkedPrice(modelId: string, price: unknown): ModelPrice {
  const refuse = (what: string): TypeError => new TypeError(`createPrices: ${what} of "${modelId}". For example: ${EXAMPLE}.`);
  if (!isRecord(price)) throw refuse('there is no price');
  const unknown = Object.keys(price).find((name) => !RATES.some((rate) => rate === name));
  if (unknown !== undefined) throw refuse(`there is no rate \`${unknown}\`, only ${RATES.join(', ')}: look at the price`);
  const rate = (name: (typeof RATES)[number]): number | undefined => {
    const value = price[name];
    if (value === undefined && name !== 'input' && name !== 'output') return undefined;
    if (typeof value === 'number' && value >= 0 && Number.isFinite(value)) return value;
    throw refuse(`\`${name}\` must be a number of at least 0, not ${String(value)}, in the price`);
  };
  return { input: rate('input') ?? 0, output: rate('output') ?? 0, cacheRead: rate('cacheRead'), cacheWrite: rate('cacheWrite') };
}
