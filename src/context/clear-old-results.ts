/**
 * Clear old results: layer 2. Old results that can be had again become a line that says so.
 *
 * - Only results change: their call stays, and so do their id, name and `isError`, so pairs are whole (L2).
 * - All that can be cleared is cleared at once, and only if it is worth it: a change of the past costs the provider's
 *   cache.
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import type { Message, ToolMessage } from '../core/message.ts';
import { replayOf, type AnyTool } from '../core/tool.ts';
import { protectedMessages, recentStart, resultOf, type LayerResult } from './layer.ts';
import { createTokenEstimator, type TokenEstimator } from './token-estimator.ts';

/** As many as an agent that reads some files, edits and tests comes to in a handful of steps. */
const DEFAULT_KEEP_NEWEST = 20;
/** Below it the line that says so costs a good part of what it frees. */
const DEFAULT_MIN_TOKENS = 100;
/** More of a name is not a name. */
const MAX_NAME = 64;

const ARGUMENT = { taker: 'clearOldResults', example: 'clearOldResults(messages, { canReobtain: reobtainableFrom(tools) })' };
const OPTIONS: Readonly<Record<keyof ClearOldResultsOptions, true>> = {
  canReobtain: true,
  estimator: true,
  keepNewest: true,
  minTokens: true,
  minGain: true,
};

/** Options of {@link clearOldResults}. */
export interface ClearOldResultsOptions {
  /**
   * Whether the model can have a result again by making the call again, without harm. There is no default: a model that
   * is told to send a mail again would. {@link reobtainableFrom} asks the tools.
   */
  readonly canReobtain: (message: ToolMessage) => boolean;
  /** Counts tokens. @defaultValue a new one */
  readonly estimator?: TokenEstimator | undefined;
  /**
   * How many of the newest messages are left alone, a whole number of at least 0. The exchange they begin in stays whole,
   * and results that the model has not answered yet always stay.
   *
   * @defaultValue 20
   */
  readonly keepNewest?: number | undefined;
  /** Results of fewer tokens are left alone. @defaultValue 100 */
  readonly minTokens?: number | undefined;
  /** Fewer tokens than this are not worth a change of the past: nothing is done then. @defaultValue 1 */
  readonly minGain?: number | undefined;
}

/**
 * Replaces old results by a line that names the tool, says about how many tokens were there, and that the call can be
 * made again. Pure; asks no model.
 *
 * @param messages - The history, oldest first; not changed.
 * @throws TypeError for an option that is missing, does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const { edits, tokensBefore, tokensAfter } = clearOldResults(messages, { canReobtain: reobtainableFrom(tools) });
 * ```
 */
export function clearOldResults(messages: readonly Message[], options: ClearOldResultsOptions): LayerResult {
  assertOptions(options, OPTIONS, ARGUMENT);
  assertNumbers(options, { keepNewest: { least: 0, whole: true }, minTokens: { least: 0 }, minGain: { least: 0 } }, ARGUMENT);
  assertFunction(options.canReobtain);
  const { canReobtain, estimator = createTokenEstimator(), keepNewest = DEFAULT_KEEP_NEWEST, minTokens = DEFAULT_MIN_TOKENS, minGain } = options;
  const isProtected = protectedMessages(messages);
  const changes = new Map<Message, readonly Message[]>();
  for (const message of messages.slice(0, recentStart(messages, keepNewest))) {
    if (message.role !== 'tool' || isProtected.has(message) || isCleared(message)) continue;
    const tokens = estimator.estimateMessage(message);
    if (tokens < minTokens || !canReobtain(message)) continue;
    const cleared = clear(message, tokens);
    if (estimator.estimateMessage(cleared) < tokens) changes.set(message, [cleared]);
  }
  return resultOf(messages, changes, { estimator, ...(minGain !== undefined && { minGain }) });
}

/**
 * Says of a result that it can be had again: it is no error, and its tool is among these and may run any number of times
 * (`readOnly`, or `replay: 'safe'`).
 */
export function reobtainableFrom(tools: readonly AnyTool[]): (message: ToolMessage) => boolean {
  const names = new Set(tools.filter((tool) => replayOf(tool) === 'safe').map(({ name }) => name));
  return (message) => message.isError !== true && names.has(message.name);
}

function clear(message: ToolMessage, tokens: number): ToolMessage {
  // A name is a model's word: one line of it, and not too much.
  const name = JSON.stringify(message.name.slice(0, MAX_NAME));
  const text = `[The result of ${name}, about ${Math.ceil(tokens)} tokens, was cleared. Make the call again if it is needed.]`;
  return { ...message, content: [{ type: 'text', text }] };
}

const CLEARED = /^\[The result of ".*", about \d+ tokens, was cleared\. Make the call again if it is needed\.\]$/s;

/** True for a result that {@link clearOldResults} replaced. */
function isCleared({ content }: ToolMessage): boolean {
  const [only, ...others] = content;
  return only?.type === 'text' && others.length === 0 && CLEARED.test(only.text);
}

function assertFunction(value: unknown): void {
  if (typeof value === 'function') return;
  throw new TypeError(`clearOldResults needs \`canReobtain\`, a function, not a value of type ${typeof value}. For example: ${ARGUMENT.example}.`);
}
