/**
 * Context window: how much of a model's window a request may take, and from which figure on something is done about it.
 *
 * - Without a known window there are no figures, and nothing is triggered by a share of it.
 * - What is kept free for the reply is at most half of the window: a model whose output may fill its whole window would
 *   else have no room for input.
 */
import type { LLM } from '../core/llm.ts';

/** Where a model does not say how long its replies may be: this share of the window, at most as many tokens. */
const DEFAULT_OUTPUT_SHARE = 1 / 8;
const DEFAULT_OUTPUT_TOKENS = 4_096;
const MAX_OUTPUT_SHARE = 0.5;
/** Estimates err: the room for the reply is taken for touched this much earlier. */
const RESERVE_FACTOR = 1.1;

/** Figures of a window, in tokens. */
export interface ContextWindow {
  /** The window. */
  readonly tokens: number;
  /** Kept free for the reply. */
  readonly outputTokens: number;
  /** What is left for a request: the window less what is kept free for the reply. */
  readonly inputTokens: number;
  /** A request of as many tokens touches the room for the reply, with a margin of a tenth of it. */
  readonly reserveAt: number;
}

/**
 * Figures of a window.
 *
 * @param tokens - The window.
 * @param llm - Says how long its replies may be, if it knows.
 * @param outputReserve - What is to be kept free for the reply, if the host says.
 */
export function contextWindow(tokens: number, llm: LLM, outputReserve: number | undefined): ContextWindow {
  const asked = outputReserve ?? llm.capabilities?.maxOutputTokens ?? Math.min(DEFAULT_OUTPUT_TOKENS, tokens * DEFAULT_OUTPUT_SHARE);
  const most = Math.floor(tokens * MAX_OUTPUT_SHARE);
  const outputTokens = Math.max(1, Math.min(Math.floor(asked), most));
  return {
    tokens,
    outputTokens,
    inputTokens: tokens - outputTokens,
    reserveAt: tokens - Math.min(Math.ceil(outputTokens * RESERVE_FACTOR), most),
  };
}
