/**
 * Held responses: what the server is known to hold of which conversation, by the id of the response that ended it.
 *
 * - A history goes on from a response if everything before its reply is what the server was asked with, and its reply
 *   says what the server answered: text by text, so that equal messages are the same messages.
 * - The newest such response counts; what came after it is sent, be it another model's.
 * - Bounded: conversations that were not spoken with for the longest time are forgotten first.
 */
import type { Message } from '../../core/message.ts';
import type { InputItems } from './input-history.ts';

/** What the server holds once it has answered. */
export interface HeldResponse {
  readonly responseId: string;
  /** The conversation. It may have grown since. */
  readonly items: InputItems;
  /** How many of its messages the response answered. */
  readonly count: number;
  /** JSON of the reply's items as they would go back. */
  readonly reply: string;
  /** How many losses were counted before it came: it tells anew whether the server keeps what it gives. */
  readonly lostBefore: number;
}

/** Where a history goes on from. */
export interface Continuation {
  readonly responseId: string;
  /** Index of the first message that the server does not hold. */
  readonly start: number;
}

/** Remembers responses. */
export interface HeldResponses {
  /** Notes a response. */
  keep(response: HeldResponse): void;
  /** Where a history goes on from; undefined if the server holds nothing of it. @param items - Its messages, written. */
  find(messages: readonly Message[], items: InputItems): Continuation | undefined;
  /** The server does not have a response, and likely none before it. Other conversations stay. @returns It, if that is news. */
  lose(responseId: string): HeldResponse | undefined;
}

interface Conversation {
  /** How long it was when it was last counted. */
  counted: number;
  /** What it takes, its replies counted once more: one prompt may be answered again and again. */
  size: number;
  readonly responseIds: string[];
}

/** Makes a memory that is empty. @param maxLength - How many characters all conversations may have together. */
export function createHeldResponses(maxLength: number): HeldResponses {
  const responses = new Map<string, HeldResponse>();
  /** The least recently used first. */
  const conversations = new Map<InputItems, Conversation>();
  let size = 0;

  function use(items: InputItems): Conversation {
    const conversation = conversations.get(items) ?? { counted: 0, size: 0, responseIds: [] };
    conversations.delete(items);
    conversations.set(items, conversation);
    return conversation;
  }

  function drop(items: InputItems): void {
    const conversation = conversations.get(items);
    if (conversation === undefined) return;
    const { size: freed, responseIds } = conversation;
    size -= freed;
    conversations.delete(items);
    for (const id of responseIds) if (responses.get(id)?.items === items) responses.delete(id);
  }

  function shrink(): void {
    for (const items of conversations.keys()) {
      if (size <= maxLength) return;
      drop(items);
    }
  }

  return {
    keep(response) {
      const { responseId, items, reply } = response;
      const conversation = use(items);
      const added = items.length - conversation.counted + reply.length;
      conversation.counted = items.length;
      conversation.size += added;
      conversation.responseIds.push(responseId);
      size += added;
      responses.set(responseId, response);
      shrink();
    },
    find(messages, items) {
      for (let at = items.texts.length - 1; at >= 0; at -= 1) {
        const message = messages[at];
        const id = message?.role === 'assistant' ? message.source?.responseId : undefined;
        const held = id === undefined ? undefined : responses.get(id);
        if (held === undefined || !goesOn(items, at, held)) continue;
        use(held.items);
        return { responseId: held.responseId, start: at + 1 };
      }
      return undefined;
    },
    lose(responseId) {
      const lost = responses.get(responseId);
      if (lost !== undefined) drop(lost.items);
      return lost;
    },
  };
}

/** Whether the reply at an index of a conversation is that of a response, and the messages before it are what it answered. */
function goesOn({ texts }: InputItems, at: number, { items, count, reply }: HeldResponse): boolean {
  if (count !== at || texts[at] !== reply) return false;
  // The same conversation, grown: the usual case.
  if (items.texts === texts) return true;
  for (let each = 0; each < at; each += 1) if (texts[each] !== items.texts[each]) return false;
  return true;
}
