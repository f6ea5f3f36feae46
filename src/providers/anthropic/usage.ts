/** Usage: the protocol's token counts in our counters. Its input has neither what the cache gave nor what it took. */
import { isRecord } from '../../core/json.ts';
import { toUsage, type Usage } from '../../core/usage.ts';
import { tokenCount } from '../shared/json-values.ts';

/** A usage object as it came. */
export type RawUsage = Readonly<Record<string, unknown>>;

/**
 * What is known after another usage object of the same reply: its values stand, where it has them. The later ones are
 * cumulative, and correct the first.
 */
export function laterUsage(known: RawUsage | undefined, next: unknown): RawUsage | undefined {
  if (!isRecord(next)) return known;
  const told = Object.entries(next).filter(([, value]) => value !== undefined && value !== null);
  return { ...known, ...Object.fromEntries(told) };
}

/** Reads a usage object. What other models did for the reply, listed in `iterations`, is not in its counters. */
export function readUsage(raw: RawUsage): Usage {
  const details = isRecord(raw['output_tokens_details']) ? raw['output_tokens_details'] : {};
  const outputTokens = tokenCount(raw['output_tokens']);
  return toUsage({
    inputTokens: tokenCount(raw['input_tokens']),
    cacheReadTokens: tokenCount(raw['cache_read_input_tokens']),
    cacheWriteTokens: tokenCount(raw['cache_creation_input_tokens']),
    outputTokens,
    thinkingTokens: Math.min(outputTokens, tokenCount(details['thinking_tokens'])),
  });
}
