/**
 * Context window: how much of a model's window a request may take, and from which figure on something is done about it.
 *
 * - Without a known window there are no figures, and nothing is triggered by a share of it.
 * - What is kept free for the reply is at most half of the window: a model whose output may fill its whole window would
 *   else have no room for input.
 * - Of a limit that is one of the input alone nothing is kept free: the reply has room of its own.
 */
import type { LLM } from '../core/llm.ts';
import { answeringModel } from './answering-model.ts';
import type { TokenEstimator } from './token-estimator.ts';

/** Where a model does not say how long its replies may be: this share of the window, at most as many tokens. */
const DEFAULT_OUTPUT_SHARE = 1 / 8;
const DEFAULT_OUTPUT_TOKENS = 4_096;
const MAX_OUTPUT_SHARE = 0.5;
/** Estimates err: the room for the reply is taken for touched this much earlier. */
const RESERVE_FACTOR = 1.1;

/** Figures of a window, in tokens. */
export interface ContextWindow {
  /** The window, or the limit of the input where the model has one. */
  readonly tokens: number;
  /** Most tokens of a reply; kept free for it, unless the window is one of the input alone. */
  readonly outputTokens: number;
  /** What is left for a request. */
  readonly inputTokens: number;
  /** A request of as many tokens touches the room for the reply, with a margin of a tenth of it. */
  readonly reserveAt: number;
}

/** What is known of a window beside what its model declares. */
export interface WindowKnowledge {
  /** What was seen when requests were refused or went through; without it only what is said counts. */
  readonly estimator?: Pick<TokenEstimator, 'windowOf'> | undefined;
  /** Tokens that the host says, instead of the model. */
  readonly window?: number | undefined;
  /** Tokens that the host wants kept free for the reply. */
  readonly outputReserve?: number | undefined;
}

/** Figures of a model's window; undefined if it is not known. */
export function contextWindow(llm: LLM, { estimator, window, outputReserve }: WindowKnowledge): ContextWindow | undefined {
  const tokens = windowTokens(llm, { estimator, window });
  if (tokens === undefined) return undefined;
  const { maxInputTokens, contextWindow: total, maxOutputTokens } = llm.capabilities ?? {};
  const asked = outputReserve ?? maxOutputTokens ?? Math.min(DEFAULT_OUTPUT_TOKENS, tokens * DEFAULT_OUTPUT_SHARE);
  const most = Math.floor(tokens * MAX_OUTPUT_SHARE);
  const outputTokens = Math.max(1, Math.min(Math.floor(asked), most));
  const reserve = Math.min(Math.ceil(outputTokens * RESERVE_FACTOR), most);
  // What an input limit leaves of the whole window may be less than a reply takes.
  const whole = window === undefined && maxInputTokens !== undefined ? (total ?? Infinity) : tokens;
  return {
    tokens,
    outputTokens,
    inputTokens: Math.min(tokens, Math.max(whole - outputTokens, tokens - most)),
    reserveAt: Math.min(tokens, Math.max(whole - reserve, tokens - most)),
  };
}

/** Tokens of a window: as the host or the model says; less if less was seen to fit, and more than the model says if more was. */
export function windowTokens(llm: LLM, { estimator, window }: Pick<WindowKnowledge, 'estimator' | 'window'>): number | undefined {
  const { provider, modelId } = answeringModel(llm);
  const { capabilities } = llm;
  if (window === undefined) return estimator === undefined ? declaredTokens(llm) : estimator.windowOf({ provider, modelId, capabilities });
  return Math.min(window, estimator?.windowOf({ provider, modelId, capabilities: { contextWindow: window } }) ?? window);
}

/** Tokens of a window as the model says. */
export function declaredTokens({ capabilities }: LLM): number | undefined {
  return capabilities?.maxInputTokens ?? capabilities?.contextWindow;
}
