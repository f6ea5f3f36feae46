/** Usage: the servers' token counts in our disjoint counters. */
import { isRecord } from '../../core/json.ts';
import { toUsage, type Usage } from '../../core/usage.ts';
import { tokenCount } from '../shared/json-values.ts';

/**
 * Finds the usage object of a chunk or a body: at the top, where Groq (`x_groq`) or Moonshot (the choice) put it.
 * Undefined if it has none, or an empty one.
 */
export function findUsage(chunk: Record<string, unknown>, choice: Record<string, unknown> | undefined): unknown {
  const { usage, x_groq: groq } = chunk;
  if (isRecord(usage)) return usage;
  if (isRecord(groq) && isRecord(groq['usage'])) return groq['usage'];
  return choice !== undefined && isRecord(choice['usage']) ? choice['usage'] : undefined;
}

/** Reads a usage object. The prompt of this protocol includes what was cached, the completion what was thought. */
export function readUsage(raw: unknown): Usage {
  if (!isRecord(raw)) return toUsage({});
  const prompt = tokenCount(raw['prompt_tokens']);
  const promptDetails = isRecord(raw['prompt_tokens_details']) ? raw['prompt_tokens_details'] : {};
  const cacheReadTokens = Math.min(
    prompt,
    tokenCount(promptDetails['cached_tokens']) || tokenCount(raw['prompt_cache_hit_tokens']) || tokenCount(raw['cached_tokens']),
  );
  const cacheWriteTokens = Math.min(
    prompt - cacheReadTokens,
    tokenCount(promptDetails['cache_write_tokens']) || tokenCount(raw['cache_creation_input_tokens']),
  );
  return toUsage({
    inputTokens: prompt - cacheReadTokens - cacheWriteTokens,
    cacheReadTokens,
    cacheWriteTokens,
    ...readOutput(raw, prompt),
  });
}

function readOutput(raw: Record<string, unknown>, prompt: number): { outputTokens: number; thinkingTokens: number } {
  const completion = tokenCount(raw['completion_tokens']);
  const details = isRecord(raw['completion_tokens_details']) ? raw['completion_tokens_details'] : {};
  const thinkingTokens = tokenCount(details['reasoning_tokens']) || tokenCount(raw['reasoning_tokens']);
  // xAI counts thinking beside the completion, and so does Gemini, which does not even name it: the total tells.
  const beside = Math.max(0, tokenCount(raw['total_tokens']) - prompt - completion);
  if (beside > 0 && (thinkingTokens === 0 || thinkingTokens === beside)) {
    return { outputTokens: completion + beside, thinkingTokens: beside };
  }
  return { outputTokens: Math.max(completion, thinkingTokens), thinkingTokens };
}
