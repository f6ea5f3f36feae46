/**
 * Simulated usage: token counts derived from sizes, four characters to a token, and a prompt cache that remembers the
 * request before. Plausible and deterministic, nothing more.
 *
 * Each message is measured once: the cost per request is one addition per message.
 */
import type { LLMRequest, ReplyPart, ToolDefinition } from '../core/llm.ts';
import type { Message, MessagePart } from '../core/message.ts';
import type { Usage } from '../core/usage.ts';

const CHARACTERS_PER_TOKEN = 4;

/** Counts the tokens of a request and its reply. */
export type UsageSimulator = (request: LLMRequest, content: readonly ReplyPart[]) => Usage;

/**
 * Makes a counter of tokens.
 *
 * @param cache - Whether what a request has in common with the one before counts as read from the cache.
 */
export function createUsageSimulator(cache: boolean): UsageSimulator {
  const messageSizes = new WeakMap<Message, number>();
  const toolSizes = new WeakMap<readonly ToolDefinition[], number>();
  let before: Prompt | undefined;

  return (request, content) => {
    const prompt = measure(request);
    const cached = cache && before !== undefined ? commonTokens(before, prompt) : 0;
    before = prompt;
    return {
      inputTokens: prompt.tokens - cached,
      cacheReadTokens: cached,
      cacheWriteTokens: 0,
      outputTokens: tokens(sizeOf(content)),
      thinkingTokens: tokens(sizeOf(content.filter((part) => part.type === 'thinking'))),
    };
  };

  function measure(request: LLMRequest): Prompt {
    const { systemPrompt, tools, messages } = request;
    const headTokens = tokens(systemPrompt.length + remember(toolSizes, tools, () => toolsSize(tools)));
    const sizes = messages.map((message) => remember(messageSizes, message, () => tokens(sizeOf(message.content))));
    const total = sizes.reduce((sum, size) => sum + size, headTokens);
    return { systemPrompt, tools, messages: [...messages], sizes, headTokens, tokens: total };
  }
}

interface Prompt {
  readonly systemPrompt: string;
  readonly tools: readonly ToolDefinition[];
  readonly messages: readonly Message[];
  readonly sizes: readonly number[];
  readonly headTokens: number;
  readonly tokens: number;
}

/** Tokens of what two prompts begin with alike: the system prompt and tools first, then message by message. */
function commonTokens(before: Prompt, now: Prompt): number {
  if (before.systemPrompt !== now.systemPrompt || !sameJson(before.tools, now.tools)) return 0;
  let common = now.headTokens;
  for (const [index, message] of now.messages.entries()) {
    if (!sameJson(message, before.messages[index])) break;
    common += now.sizes[index] ?? 0;
  }
  return common;
}

function sameJson(left: unknown, right: unknown): boolean {
  return left === right || (right !== undefined && JSON.stringify(left) === JSON.stringify(right));
}

function sizeOf(parts: readonly (MessagePart | ReplyPart)[]): number {
  return parts.reduce((sum, part) => sum + partSize(part), 0);
}

function partSize(part: MessagePart | ReplyPart): number {
  switch (part.type) {
    case 'text':
      return part.text.length;
    case 'thinking':
      return part.text.length + (part.redactedData?.length ?? 0);
    case 'tool_call':
      return part.name.length + part.inputText.length;
    case 'media':
      return (part.data ?? part.url).length;
    case 'provider':
      return JSON.stringify(part.data).length;
  }
}

function toolsSize(tools: readonly ToolDefinition[]): number {
  return tools.reduce((sum, tool) => sum + tool.name.length + tool.description.length + JSON.stringify(tool.inputSchema).length, 0);
}

function tokens(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}

function remember<Key extends object>(known: WeakMap<Key, number>, key: Key, measureKey: () => number): number {
  const value = known.get(key) ?? measureKey();
  known.set(key, value);
  return value;
}
