/** Usage: the AI SDK's token counts in our disjoint counters. */
import { isRecord } from '../../core/json.ts';
import { toUsage, type Usage } from '../../core/usage.ts';
import { tokenCount } from '../shared/json-values.ts';

/**
 * Reads usage of any specification.
 *
 * @param provider - The SDK's name: in the oldest specification it depends on the provider what is counted where.
 * @param metadata - The reply's own metadata, where that specification has Anthropic's cache writes.
 */
export function readUsage(raw: unknown, provider: string, metadata: unknown): Usage {
  if (!isRecord(raw)) return toUsage({});
  const { inputTokens: input, outputTokens: output } = raw;
  return isRecord(input) ? readDetailed(input, isRecord(output) ? output : {}) : readFlat(raw, provider, metadata);
}

function readDetailed(input: Record<string, unknown>, output: Record<string, unknown>): Usage {
  const cacheReadTokens = tokenCount(input['cacheRead']);
  const cacheWriteTokens = tokenCount(input['cacheWrite']);
  const rest = Math.max(0, tokenCount(input['total']) - cacheReadTokens - cacheWriteTokens);
  const thinkingTokens = tokenCount(output['reasoning']);
  return toUsage({
    inputTokens: typeof input['noCache'] === 'number' ? input['noCache'] : rest,
    cacheReadTokens,
    cacheWriteTokens,
    outputTokens: Math.max(tokenCount(output['total']) || tokenCount(output['text']) + thinkingTokens, thinkingTokens),
    thinkingTokens,
  });
}

/** Providers whose flat input count leaves out what was cached. */
const COUNTS_BESIDE = /anthropic|bedrock/;

function readFlat(raw: Record<string, unknown>, provider: string, metadata: unknown): Usage {
  const input = tokenCount(raw['inputTokens']);
  const cached = tokenCount(raw['cachedInputTokens']);
  const isBeside = COUNTS_BESIDE.test(provider) || cached > input;
  const thinkingTokens = tokenCount(raw['reasoningTokens']);
  return toUsage({
    inputTokens: isBeside ? input : input - cached,
    cacheReadTokens: cached,
    cacheWriteTokens: isBeside ? cacheWrites(metadata) : 0,
    outputTokens: Math.max(tokenCount(raw['outputTokens']), thinkingTokens),
    thinkingTokens,
  });
}

function cacheWrites(metadata: unknown): number {
  const { anthropic, bedrock }: Record<string, unknown> = isRecord(metadata) ? metadata : {};
  if (isRecord(anthropic)) return tokenCount(anthropic['cacheCreationInputTokens']);
  const usage = isRecord(bedrock) ? bedrock['usage'] : undefined;
  return isRecord(usage) ? tokenCount(usage['cacheWriteInputTokens']) : 0;
}
