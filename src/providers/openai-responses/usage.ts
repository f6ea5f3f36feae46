/** Usage: the servers' token counts in our disjoint counters. */
import { isRecord } from '../../core/json.ts';
import { toUsage, type Usage } from '../../core/usage.ts';
import { tokenCount } from '../shared/json-values.ts';

/** Reads a usage object. The input of this protocol includes what was cached, the output what was thought. */
export function readUsage(raw: unknown): Usage {
  if (!isRecord(raw)) return toUsage({});
  const { input_tokens_details: inputDetails, output_tokens_details: outputDetails } = raw;
  const input = tokenCount(raw['input_tokens']);
  const cacheReadTokens = Math.min(input, detail(inputDetails, 'cached_tokens'));
  const cacheWriteTokens = Math.min(input - cacheReadTokens, detail(inputDetails, 'cache_write_tokens'));
  const thinkingTokens = detail(outputDetails, 'reasoning_tokens');
  return toUsage({
    inputTokens: input - cacheReadTokens - cacheWriteTokens,
    cacheReadTokens,
    cacheWriteTokens,
    outputTokens: Math.max(tokenCount(raw['output_tokens']), thinkingTokens),
    thinkingTokens,
  });
}

function detail(details: unknown, name: string): number {
  return isRecord(details) ? tokenCount(details[name]) : 0;
}
