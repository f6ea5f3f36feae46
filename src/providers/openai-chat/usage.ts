/** Usage: the servers' token counts in our disjoint counters. */
import { isRecord } from '../../core/json.ts';
import { toUsage, type Usage } from '../../core/usage.ts';
import { tokenCount } from '../shared/json-values.ts';

/**
 * Finds the usage object of a chunk or a body: at the top, where Groq (`x_groq`) or Moonshot (the choice) put it.
 * Undefined if it has none, or one that counts nothing: some servers send such a one after the real one.
 */
export function findUsage(chunk: Record<string, unknown>, choice: Record<string, unknown> | undefined): unknown {
  const { usage, x_groq: groq } = chunk;
  if (counts(usage)) return usage;
  const ofGroq = isRecord(groq) ? groq['usage'] : undefined;
  if (counts(ofGroq)) return ofGroq;
  const ofChoice = choice?.['usage'];
  return counts(ofChoice) ? ofChoice : undefined;
}

function counts(usage: unknown): boolean {
  return isRecord(usage) && Object.entries(usage).some(([name, value]) => name.endsWith('tokens') && tokenCount(value) > 0);
}

/** Reads a usage object. The prompt of this protocol includes what was cached, the completion what was thought. */
export function readUsage(raw: unknown): Usage {
  if (!isRecord(raw)) return toUsage({});
  const promptDetails = isRecord(raw['prompt_tokens_details']) ? raw['prompt_tokens_details'] : {};
  const read = tokenCount(promptDetails['cached_tokens']) || tokenCount(raw['prompt_cache_hit_tokens']) || tokenCount(raw['cached_tokens']);
  const written = tokenCount(promptDetails['cache_write_tokens']) || tokenCount(raw['cache_creation_input_tokens']);
  const named = tokenCount(raw['prompt_tokens']);
  const rest = Math.max(0, tokenCount(raw['total_tokens']) - named - tokenCount(raw['completion_tokens']));
  // Gateways to Anthropic may count what was cached beside the prompt, as it does: the total tells.
  const isBeside = rest > 0 && rest !== thinkingIn(raw) && [read, written, read + written].includes(rest);
  const prompt = isBeside ? named + rest : named;
  const cacheReadTokens = Math.min(prompt, read);
  const cacheWriteTokens = Math.min(prompt - cacheReadTokens, written);
  return toUsage({
    inputTokens: prompt - cacheReadTokens - cacheWriteTokens,
    cacheReadTokens,
    cacheWriteTokens,
    ...readOutput(raw, isBeside ? 0 : rest),
  });
}

/** @param beside - What the total counts beside prompt and completion. */
function readOutput(raw: Record<string, unknown>, beside: number): { outputTokens: number; thinkingTokens: number } {
  const completion = tokenCount(raw['completion_tokens']);
  const thinkingTokens = thinkingIn(raw);
  // xAI counts thinking beside the completion, and so does Gemini, which does not even name it.
  if (beside > 0 && (thinkingTokens === 0 || thinkingTokens === beside)) {
    return { outputTokens: completion + beside, thinkingTokens: beside };
  }
  return { outputTokens: Math.max(completion, thinkingTokens), thinkingTokens };
}

function thinkingIn(raw: Record<string, unknown>): number {
  const details = isRecord(raw['completion_tokens_details']) ? raw['completion_tokens_details'] : {};
  return tokenCount(details['reasoning_tokens']) || tokenCount(raw['reasoning_tokens']);
}
