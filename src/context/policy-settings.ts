/**
 * Policy settings: the options of the context policy, their defaults, and what of them contradicts itself.
 */
import { assertLLM, assertNumbers, assertOptions } from '../core/assert.ts';
import type { LLM } from '../core/llm.ts';
import type { Message } from '../core/message.ts';
import type { AnyTool } from '../core/tool.ts';
import { assertEstimator, assertReserve, checkedResult } from './assert-context.ts';
import { clearOldResults, reobtainableFrom } from './clear-old-results.ts';
import { foldOldTexts } from './fold-old-texts.ts';
import type { LayerResult } from './layer.ts';
import type { LimitMediaOptions } from './limit-media.ts';
import type { ReduceMediaOptions } from './reduce-media.ts';
import { summarizeHistory, type SummarizeHistoryOptions } from './summarize-history.ts';
import type { FilesOfCall } from './summary-files.ts';
import { createTokenEstimator, type TokenEstimator } from './token-estimator.ts';
import { trimHistory } from './trim-history.ts';
import type { TruncateToolResultOptions } from './truncate-tool-result.ts';

/** What a layer without a model is given. */
export interface LayerOptions {
  /** Counts tokens. */
  readonly estimator: TokenEstimator;
  /** The tools of the step. */
  readonly tools: readonly AnyTool[];
  /** How many of the newest messages are left alone. */
  readonly keepNewest: number;
  /** Fewer tokens of the estimator than this are not worth a change of the past. */
  readonly minGain: number;
}

/** A layer that asks no model: clears results, or folds texts. */
export type ContextLayer = (messages: readonly Message[], options: LayerOptions) => LayerResult;

/** The layer that brings a history down to a number of tokens of the estimator, come what may. */
export type TrimLayer = (
  messages: readonly Message[],
  options: { readonly estimator: TokenEstimator; readonly targetTokens: number },
) => LayerResult;

/** The layer that asks a model. */
export type SummarizeLayer = (messages: readonly Message[], options: SummarizeHistoryOptions) => Promise<LayerResult>;

/** Options of {@link createContextPolicy}. */
export interface ContextPolicyOptions {
  /** Counts tokens, and learns from what requests did cost. Share one over policies of the same models. @defaultValue a new one */
  readonly estimator?: TokenEstimator | undefined;
  /** Writes the summaries. @defaultValue the model of the step */
  readonly summarizer?: LLM | undefined;
  /**
   * Tokens of the window. Less, if a request that large was refused: what was seen beats what was said.
   *
   * @defaultValue what was seen when requests were refused or went through, else what the model declares, else unknown
   */
  readonly window?: number | undefined;
  /**
   * Tokens kept free for the reply, at most half of the window. None are where the window is the model's `maxInputTokens`:
   * there the reply has room of its own.
   *
   * @defaultValue what the model declares as its longest reply, else an eighth of the window, at most 4,096
   */
  readonly outputReserve?: number | undefined;
  /** Share of the window from which old results are cleared. @defaultValue 0.5 */
  readonly clearAt?: number | undefined;
  /** Share of the window from which long old texts are folded. @defaultValue 0.7 */
  readonly foldAt?: number | undefined;
  /** Share of the window from which the history is summarised; earlier if the room for the reply is touched. @defaultValue 0.85 */
  readonly summarizeAt?: number | undefined;
  /** How many of the newest messages the layers leave alone; summaries and trims may take more. @defaultValue 20 */
  readonly keepMessages?: number | undefined;
  /**
   * Tokens of a person's messages that a summary leaves word for word, beside the first and the newest. At most an eighth
   * of what the window has for messages.
   *
   * @defaultValue 20,000
   */
  readonly userMessageTokens?: number | undefined;
  /**
   * Share of the window that clearing or folding has to free to be worth it: each time the provider's cache of what stands
   * behind is lost.
   *
   * @defaultValue 0.25: rare and large, so that nine tenths of the tokens of a long session come from the cache
   */
  readonly minBatch?: number | undefined;
  /**
   * After so many milliseconds without a request the provider's cache is taken for lost, and smaller batches are worth it.
   *
   * @defaultValue 300,000: as long as the large providers keep it
   */
  readonly cacheIdleMs?: number | undefined;
  /** Layer 1: shortens each long result as it comes. @defaultValue {@link truncateToolResult} with its defaults */
  readonly truncate?: TruncateToolResultOptions | false | undefined;
  /** Layer 2. @defaultValue {@link clearOldResults} for tools that may run any number of times */
  readonly clear?: ContextLayer | false | undefined;
  /** Layer 3. @defaultValue {@link foldOldTexts} */
  readonly fold?: ContextLayer | false | undefined;
  /** Layer 4. @defaultValue {@link summarizeHistory} */
  readonly summarize?: SummarizeLayer | false | undefined;
  /** Layer 5, also what an overflow leads to. @defaultValue {@link trimHistory} */
  readonly trim?: TrimLayer | false | undefined;
  /** What becomes of media that no request could be sent with. @defaultValue {@link limitMedia} with its defaults */
  readonly limitMedia?: LimitMediaOptions | false | undefined;
  /** What becomes of media that a provider refuses. @defaultValue {@link reduceMedia} with its defaults */
  readonly reduceMedia?: ReduceMediaOptions | false | undefined;
  /** Share of the declared window's input budget that a turn's input may take; `false` for any. @defaultValue 0.6 */
  readonly preflight?: number | false | undefined;
  /** Names the files of a call, for the lists of a summary. @defaultValue arguments called `path`, `file_path` and the like */
  readonly filesOf?: FilesOfCall | undefined;
}

/** The options with their defaults. */
export interface PolicySettings {
  readonly estimator: TokenEstimator;
  readonly summarizer: LLM | undefined;
  readonly window: number | undefined;
  readonly outputReserve: number | undefined;
  readonly clearAt: number;
  readonly foldAt: number;
  readonly summarizeAt: number;
  readonly keepMessages: number;
  readonly userMessageTokens: number;
  readonly minBatch: number;
  readonly cacheIdleMs: number;
  readonly clear: ContextLayer | false;
  readonly fold: ContextLayer | false;
  readonly summarize: SummarizeLayer | false;
  readonly trim: TrimLayer | false;
  readonly filesOf: FilesOfCall | undefined;
}

const ARGUMENT = { taker: 'createContextPolicy', example: 'createContextPolicy({ summarizeAt: 0.8, keepMessages: 30 })' };
const OPTIONS: Readonly<Record<keyof ContextPolicyOptions, true>> = {
  estimator: true,
  summarizer: true,
  window: true,
  outputReserve: true,
  clearAt: true,
  foldAt: true,
  summarizeAt: true,
  keepMessages: true,
  userMessageTokens: true,
  minBatch: true,
  cacheIdleMs: true,
  truncate: true,
  clear: true,
  fold: true,
  summarize: true,
  trim: true,
  limitMedia: true,
  reduceMedia: true,
  preflight: true,
  filesOf: true,
};

/** @throws TypeError for an option that does not exist, makes no sense, or contradicts another. */
export function toSettings(options: ContextPolicyOptions): PolicySettings {
  assertOptions(options, OPTIONS, ARGUMENT);
  assertNumbers(
    options,
    {
      window: { least: 1 },
      outputReserve: { least: 1 },
      clearAt: { least: 0, most: 1 },
      foldAt: { least: 0, most: 1 },
      summarizeAt: { least: 0, most: 1 },
      keepMessages: { least: 0, whole: true },
      userMessageTokens: { least: 0, orInfinity: true },
      minBatch: { least: 0, most: 1 },
      cacheIdleMs: { least: 0, orInfinity: true },
    },
    ARGUMENT,
  );
  if (options.summarizer !== undefined) assertLLM(options.summarizer, { ...ARGUMENT, example: 'createContextPolicy({ summarizer: smallModel })' });
  if (options.estimator !== undefined) assertEstimator(options.estimator, ARGUMENT);
  for (const name of ['clear', 'fold', 'summarize', 'trim', 'filesOf'] as const) assertFunction(name, options[name]);
  const settings: PolicySettings = {
    estimator: options.estimator ?? createTokenEstimator(),
    summarizer: options.summarizer,
    window: options.window,
    outputReserve: options.outputReserve,
    clearAt: options.clearAt ?? 0.5,
    foldAt: options.foldAt ?? 0.7,
    summarizeAt: options.summarizeAt ?? 0.85,
    keepMessages: options.keepMessages ?? 20,
    userMessageTokens: options.userMessageTokens ?? 20_000,
    minBatch: options.minBatch ?? 0.25,
    cacheIdleMs: options.cacheIdleMs ?? 300_000,
    clear: checkedLayer('clear', options.clear ?? defaultClear),
    fold: checkedLayer('fold', options.fold ?? defaultFold),
    summarize: checkedSummarize(options.summarize ?? summarizeHistory),
    trim: checkedLayer('trim', options.trim ?? trimHistory),
    filesOf: options.filesOf,
  };
  assertReserve(options, ARGUMENT);
  assertConsistent(settings);
  return settings;
}

/** A layer whose result is looked at: it may be a host's own. */
function checkedLayer<Options>(
  name: string,
  layer: ((messages: readonly Message[], options: Options) => LayerResult) | false,
): ((messages: readonly Message[], options: Options) => LayerResult) | false {
  return layer === false ? false : (messages, options) => checkedResult(name, layer(messages, options));
}

function checkedSummarize(layer: SummarizeLayer | false): SummarizeLayer | false {
  return layer === false ? false : async (messages, options) => checkedResult('summarize', await layer(messages, options));
}

function defaultClear(messages: readonly Message[], { tools, estimator, keepNewest, minGain }: LayerOptions): LayerResult {
  return clearOldResults(messages, { canReobtain: reobtainableFrom(tools), estimator, keepNewest, minGain });
}

function defaultFold(messages: readonly Message[], { estimator, keepNewest, minGain }: LayerOptions): LayerResult {
  return foldOldTexts(messages, { estimator, keepNewest, minGain });
}

function assertFunction(name: string, value: unknown): void {
  if (value === undefined || typeof value === 'function' || (value === false && name !== 'filesOf')) return;
  const orFalse = name === 'filesOf' ? '' : ' or false';
  throw new TypeError(`createContextPolicy: \`${name}\` must be a function${orFalse}, not a value of type ${typeof value}.`);
}

function assertConsistent({ clearAt, foldAt, summarizeAt }: PolicySettings): void {
  if (clearAt <= foldAt && foldAt <= summarizeAt) return;
  throw new TypeError(
    `createContextPolicy: \`clearAt\` (${clearAt}), \`foldAt\` (${foldAt}) and \`summarizeAt\` (${summarizeAt}) must not fall: the ` +
      'cheapest layer comes first. For example: createContextPolicy({ clearAt: 0.5, foldAt: 0.7, summarizeAt: 0.85 }).',
  );
}
