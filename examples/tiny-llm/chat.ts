/**
 * A request of turnloop as the chat that the model's template renders.
 *
 * Owns what the model gets to see of a history: text, calls and results, each result
 * short enough for so small a model. Everything else a message may hold is left out.
 */
import { textOf, type AssistantMessage, type JsonObject, type LLMRequest, type Message, type ToolMessage } from 'turnloop';
import type { Chat, ChatCall, ChatMessage } from './chat-template.ts';

/** Longest tool result in characters: what the model was trained on, and copes with several times in one prompt. */
const MAX_RESULT_LENGTH = 400;

/** The chat of a request. The system prompt comes after the tools, as in training. */
export function toChat({ systemPrompt, messages, tools }: LLMRequest): Chat {
  const system: ChatMessage[] = systemPrompt === '' ? [] : [{ role: 'system', text: systemPrompt }];
  return { toolNames: tools.map((tool) => tool.name), messages: [...system, ...messages.map(toChatMessage)] };
}

function toChatMessage(message: Message): ChatMessage {
  switch (message.role) {
    case 'user':
      return { role: 'user', text: textOf(message) };
    case 'assistant':
      return { role: 'assistant', text: textOf(message), calls: callsOf(message) };
    case 'tool':
      return { role: 'tool', text: cutMiddle(toResultText(message), MAX_RESULT_LENGTH) };
  }
}

function callsOf({ content }: AssistantMessage): readonly ChatCall[] {
  return content.flatMap((part) => (part.type === 'tool_call' ? [{ name: part.name, input: parseInput(part.inputText) }] : []));
}

/** A call's arguments; none if the model wrote something other than a JSON object. */
function parseInput(inputText: string): JsonObject {
  try {
    const value: unknown = JSON.parse(inputText);
    // What `JSON.parse` gives is JSON; that it is an object is checked here.
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
  } catch {
    return {};
  }
}

/**
 * A result as the model knows it: it takes a text that starts with `Error` for a failure, and quotes its first line.
 *
 * A failed result starts with a line that says no more than that it failed. The next one is worth quoting.
 */
function toResultText({ content, isError = false }: ToolMessage): string {
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  if (!isError) return text;
  const [status = '', ...details] = text.split('\n');
  const reason = details.length === 0 ? status : details.join('\n');
  return reason.startsWith('Error') ? reason : `Error: ${reason}`;
}

/**
 * Leaves out the middle of a long text, and says so.
 *
 * Most of what is kept is the beginning, since that is what the model quotes.
 */
export function cutMiddle(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const head = text.slice(0, Math.floor(maxLength * 0.65));
  const tail = text.slice(-Math.floor(maxLength * 0.2));
  return `${head}\n[... ${text.length - head.length - tail.length} characters omitted ...]\n${tail}`;
}
