/**
 * Token counter: what a request costs at a server, by a real tokenizer: system prompt, tools, and of each message what
 * goes over the wire. Thinking goes back only to the model that signed it. A text is counted once.
 */
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import type { LLM, LLMRequest, Message, MessagePart, ReplyPart, ToolDefinition } from 'turnloop';

/** What a server puts around each message and each call: roles, ends, names of fields. */
const MESSAGE_TOKENS = 4;
const CALL_TOKENS = 8;
const TOOL_TOKENS = 6;

export interface TokenCounter {
  request(request: LLMRequest, model: LLM): number;
  reply(content: readonly ReplyPart[]): number;
  /** Tokens that a request has in common with the one before, from its beginning. */
  commonPrefix(before: LLMRequest, after: LLMRequest, model: LLM): number;
}

interface MessageCount {
  readonly tokens: number;
  /** Tokens of signed thinking, on top. */
  readonly thinking: number;
}

export function createTokenCounter(): TokenCounter {
  const texts = new Map<string, number>();
  const messages = new WeakMap<Message, MessageCount>();
  const tools = new WeakMap<readonly ToolDefinition[], number>();
  const wires = new WeakMap<Message, string>();

  function ofText(text: string): number {
    const known = texts.get(text) ?? countTokens(text);
    texts.set(text, known);
    return known;
  }

  function ofPart(part: MessagePart | ReplyPart): number {
    switch (part.type) {
      case 'text':
        return ofText(part.text);
      case 'tool_call':
        return CALL_TOKENS + ofText(part.name) + ofText(part.inputText);
      case 'thinking':
        return 0;
      default:
        throw new Error(`The session has no ${part.type} parts.`);
    }
  }

  function countOf(message: Message): MessageCount {
    const known = messages.get(message);
    if (known !== undefined) return known;
    const count = { tokens: MESSAGE_TOKENS, thinking: 0 };
    for (const part of message.content) {
      count.tokens += ofPart(part);
      if (part.type === 'thinking' && part.signature !== undefined) count.thinking += ofText(part.text);
    }
    messages.set(message, count);
    return count;
  }

  function ofMessage(message: Message, { provider, modelId }: LLM): number {
    const { tokens, thinking } = countOf(message);
    const isOwn = message.role === 'assistant' && message.source?.provider === provider && message.source.modelId === modelId;
    return isOwn ? tokens + thinking : tokens;
  }

  function ofHead({ systemPrompt, tools: list }: LLMRequest): number {
    const known = tools.get(list) ?? list.reduce((sum, { name, description, inputSchema }) => sum + TOOL_TOKENS + ofText(JSON.stringify({ name, description, inputSchema })), 0);
    tools.set(list, known);
    return known + (systemPrompt === '' ? 0 : MESSAGE_TOKENS + ofText(systemPrompt));
  }

  function wireOf(message: Message): string {
    const known = wires.get(message) ?? JSON.stringify([message.role, message.content, message.role === 'tool' ? message.toolCallId : '']);
    wires.set(message, known);
    return known;
  }

  return {
    request: (request, model) => request.messages.reduce((sum, message) => sum + ofMessage(message, model), ofHead(request)),
    reply: (content) => content.reduce((sum, part) => sum + (part.type === 'thinking' ? ofText(part.text) : ofPart(part)), 0),
    commonPrefix(before, after, model) {
      const isSameHead = before.systemPrompt === after.systemPrompt && (before.tools === after.tools || JSON.stringify(before.tools) === JSON.stringify(after.tools));
      if (!isSameHead) return 0;
      let tokens = ofHead(after);
      for (const [index, message] of after.messages.entries()) {
        const old = before.messages[index];
        if (old !== message && (old === undefined || wireOf(old) !== wireOf(message))) break;
        tokens += ofMessage(message, model);
      }
      return tokens;
    },
  };
}
