/** Usage: Gemini's token counts in our disjoint counters. */
import { isRecord } from '../../core/json.ts';
import { toUsage, type Usage } from '../../core/usage.ts';
import { tokenCount } from '../shared/json-values.ts';
import { fieldOf } from './fields.ts';

const COUNTS = ['promptTokenCount', 'candidatesTokenCount', 'totalTokenCount'] as const;

/** The usage object of a response; undefined if there is none, or one that counts nothing, as Vertex AI sends at first. */
export function findUsage(response: Readonly<Record<string, unknown>>): unknown {
  const usage = fieldOf(response, 'usageMetadata');
  return isRecord(usage) && COUNTS.some((name) => fieldOf(usage, name) !== undefined) ? usage : undefined;
}

/** Reads a usage object. The prompt of this protocol includes what was cached, and not what the server's tools found. */
export function readUsage(raw: unknown): Usage {
  if (!isRecord(raw)) return toUsage({});
  const count = (name: Parameters<typeof fieldOf>[1]): number => tokenCount(fieldOf(raw, name));
  const prompt = count('promptTokenCount');
  const found = count('toolUsePromptTokenCount');
  const written = count('candidatesTokenCount');
  const thinkingTokens = count('thoughtsTokenCount');
  const total = count('totalTokenCount');
  const cacheReadTokens = Math.min(prompt, count('cachedContentTokenCount'));
  // Thinking stands beside what was written; where the total says that it does not, it is a part of it.
  const isWithin = total > 0 && total === prompt + found + written;
  return toUsage({
    inputTokens: prompt - cacheReadTokens + found,
    cacheReadTokens,
    outputTokens: isWithin ? Math.max(written, thinkingTokens) : written + thinkingTokens,
    thinkingTokens,
  });
}
