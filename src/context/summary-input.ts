/**
 * Summary input: a history as the text that a summariser reads.
 *
 * Text, and not the messages themselves: no call can be open or without its result, no signature can be refused, no
 * medium is sent, whatever provider the summariser is of; and long results are cut, so that it stays cheap. What another
 * party wrote is marked as theirs and cannot end the mark.
 */
import type { Message, MessagePart } from '../core/message.ts';
import { isSummary } from './layer.ts';
import { truncateText } from './truncate-text.ts';

/** One message in words. */
export interface Entry {
  /** The message. */
  readonly message: Message;
  /** Its words. */
  readonly text: string;
}

/** Characters of each kind that a summariser gets to see: enough for what happened, too few for what a file said. */
const MAX_CHARACTERS = { user: 8_000, assistant: 6_000, input: 1_500, result: 1_600, provider: 500, name: 100 } as const;

/** The history in words, a message each; former summaries, memory and what was built for one request are left out. */
export function summaryEntries(messages: readonly Message[]): readonly Entry[] {
  return messages.flatMap((message) => {
    if (isSummary(message) || isNotSaid(message)) return [];
    const words = message.content.flatMap(partWords(message)).filter((text) => text.trim() !== '');
    if (words.length === 0) return [];
    return [{ message, text: `<${labelOf(message)}>\n${words.join('\n').replaceAll('</', '<\\/')}\n</${tagOf(message)}>` }];
  });
}

function isNotSaid(message: Message): boolean {
  return message.role === 'user' && (message.transient === true || message.origin === 'memory');
}

function tagOf(message: Message): string {
  if (message.role === 'tool') return 'result';
  return message.role === 'user' && message.origin !== 'user' && message.origin !== 'steering' ? 'note' : message.role;
}

function labelOf(message: Message): string {
  if (message.role !== 'tool') return tagOf(message);
  return `result of=${nameIn(message.name)}${message.isError === true ? ' failed' : ''}`;
}

/** A tool's name is a model's word: it cannot end the mark that it stands in, nor be long. */
function nameIn(name: string): string {
  return JSON.stringify(name.slice(0, MAX_CHARACTERS.name)).replaceAll(/[<>]/g, (mark) => (mark === '<' ? '\\u003c' : '\\u003e'));
}

function partWords(message: Message): (part: MessagePart) => readonly string[] {
  return (part) => {
    switch (part.type) {
      case 'text':
        return [cut(part.text, MAX_CHARACTERS[message.role === 'tool' ? 'result' : message.role])];
      case 'media':
        return [`[${part.mediaType}]`];
      case 'tool_call':
        return [`[call ${nameIn(part.name)} ${cut(part.inputText, MAX_CHARACTERS.input)}]`];
      case 'provider':
        return [`[${cut(JSON.stringify(part.data), MAX_CHARACTERS.provider)}]`];
      case 'thinking':
        // What it led to is said; the rest is long, and was not meant to be kept.
        return [];
    }
  };
}

function cut(text: string, maxCharacters: number): string {
  const kept = maxCharacters - 150;
  const headCharacters = Math.floor(kept * 0.6);
  return truncateText(text, { maxCharacters, headCharacters, tailCharacters: kept - headCharacters });
}

/** Entries from `start` on that fit into a number of tokens; at least one, cut if it must be. */
export function takeEntries(
  entries: readonly Entry[],
  start: number,
  { maxTokens, estimate }: { readonly maxTokens: number; readonly estimate: (text: string) => number },
): { readonly text: string; readonly end: number; readonly tokens: number } {
  let end = start;
  let tokens = 0;
  for (; end < entries.length; end += 1) {
    const size = estimate(entries[end]?.text ?? '');
    if (end > start && tokens + size > maxTokens) break;
    tokens += size;
  }
  const text = entries.slice(start, end).map((entry) => entry.text).join('\n\n');
  if (tokens <= maxTokens) return { text, end, tokens };
  return { text: cut(text, Math.max(400, Math.floor((text.length * maxTokens) / tokens))), end, tokens: maxTokens };
}
