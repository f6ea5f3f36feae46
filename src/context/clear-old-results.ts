/**
 * Clear old results: layer 2. Old results that can be had again become a line that says so.
 *
 * - Only results change: their call stays, and so do their id, name and `isError`, so pairs are whole (L2).
 * - All that can be cleared is cleared at once, and only if it is worth it: a change of the past costs the provider's
 *   cache.
 */
import { assertNumbers, assertOptions, assertTool } from '../core/assert.ts';
import type { Message, ToolMessage } from '../core/message.ts';
import { replayOf, type AnyTool } from '../core/tool.ts';
import { assertEstimator, assertHistory } from './assert-context.ts';
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
 * @throws TypeError for messages that are none, and for an option that is missing, does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const { edits, tokensBefore, tokensAfter } = clearOldResults(messages, { canReobtain: reobtainableFrom(tools) });
 * ```
 */
export function clearOldResults(messages: readonly Message[], options: ClearOldResultsOptions): LayerResult {
  assertHistory(messages, ARGUMENT);
  assertOptions(options, OPTIONS, ARGUMENT);
  assertEstimator(options.estimator, ARGUMENT);
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
 *
 * @throws TypeError for what is not a list of tools.
 */
export function reobtainableFrom(tools: readonly AnyTool[]): (message: ToolMessage) => boolean {
  assertTools(tools);
  const names = new Set(tools.filter((tool) => replayOf(tool) === 'safe').map(({ name }) => name));
  return (message) => message.isError !== true && names.has(message.name);
}

function clear(message: ToolMessage, tokens: number): ToolMessage {
  return { ...message, content: [{ type: 'text', text: lineFor(message, String(Math.ceil(tokens))) }] };
}

function lineFor({ name }: ToolMessage, tokens: string): string {
  // A name is a model's word: one line of it, and not too much.
  return `[The result of ${JSON.stringify(name.slice(0, MAX_NAME))}, about ${tokens} tokens, was cleared. Make the call again if it is needed.]`;
}

const TOKENS = /, about (\d{1,15}) tokens, was cleared\./;

/** True for a result that {@link clearOldResults} replaced: the very line, so that nothing long can pass for it. */
function isCleared(message: ToolMessage): boolean {
  const [only, ...others] = message.content;
  if (only?.type !== 'text' || others.length > 0) return false;
  const [, tokens] = TOKENS.exec(only.text) ?? [];
  return tokens !== undefined && only.text === lineFor(message, tokens);
}

function assertTools(value: unknown): void {
  const argument = { taker: 'reobtainableFrom', example: ARGUMENT.example };
  if (!Array.isArray(value)) throw new TypeError(`reobtainableFrom needs a list of tools, not a value of type ${typeof value}. For example: ${ARGUMENT.example}.`);
  value.forEach((tool) => assertTool(tool, argument));
}

function assertFunction(value: unknown): void {
  if (typeof value === 'function') return;
  throw new TypeError(`clearOldResults needs \`canReobtain\`, a function, not a value of type ${typeof value}. For example: ${ARGUMENT.example}.`);
}
