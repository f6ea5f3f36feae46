/** Usage: tokens spent, counted so that nothing is counted twice. */

/**
 * Tokens spent by one model request, or summed over several.
 *
 * The first four counters are disjoint: the whole prompt is `inputTokens + cacheReadTokens + cacheWriteTokens`.
 */
export interface Usage {
  /** Prompt tokens that were neither read from nor written to the provider's cache. */
  readonly inputTokens: number;
  /** Prompt tokens served from the provider's cache. */
  readonly cacheReadTokens: number;
  /** Prompt tokens written to the provider's cache. */
  readonly cacheWriteTokens: number;
  /** Tokens the model generated, thinking included. */
  readonly outputTokens: number;
  /** The part of `outputTokens` that was thinking; 0 where the provider does not tell. */
  readonly thinkingTokens: number;
}

/** No tokens at all. */
export const NO_USAGE: Usage = Object.freeze({
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  thinkingTokens: 0,
});

/**
 * Makes a whole usage record of a partial one: counters that are missing, negative or not finite become 0.
 *
 * @param counters - What is known; undefined for nothing.
 */
export function toUsage(counters: Partial<Usage> | undefined): Usage {
  if (counters === undefined) return NO_USAGE;
  return {
    inputTokens: count(counters.inputTokens),
    cacheReadTokens: count(counters.cacheReadTokens),
    cacheWriteTokens: count(counters.cacheWriteTokens),
    outputTokens: count(counters.outputTokens),
    thinkingTokens: count(counters.thinkingTokens),
  };
}

/** The sum of two usages, counter by counter. */
export function addUsage(left: Usage, right: Usage): Usage {
  return {
    inputTokens: left.inputTokens + right.inputTokens,
    cacheReadTokens: left.cacheReadTokens + right.cacheReadTokens,
    cacheWriteTokens: left.cacheWriteTokens + right.cacheWriteTokens,
    outputTokens: left.outputTokens + right.outputTokens,
    thinkingTokens: left.thinkingTokens + right.thinkingTokens,
  };
}

/** All tokens of a usage: the prompt, cached or not, and the output. */
export function totalTokens(usage: Usage): number {
  return usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens + usage.outputTokens;
}

function count(value: number | undefined): number {
  return value !== undefined && Number.isFinite(value) && value > 0 ? value : 0;
}
