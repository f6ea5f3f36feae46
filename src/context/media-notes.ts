/** Media notes: messages with a text in place of media. Messages are never left out, so pairs stay whole. */
import type { MediaPart, Message, MessagePart, TextPart } from '../core/message.ts';

/** What the model reads in place of a medium; undefined for one that stays. */
export type MediaNote = (part: MediaPart) => string | undefined;

/** The message with notes in place of media; itself if none changes. */
export function noteMedia(message: Message, note: MediaNote): Message {
  const parts: readonly MessagePart[] = message.content;
  const notes = new Map<MessagePart, TextPart>();
  for (const part of parts) {
    const text = part.type === 'media' ? note(part) : undefined;
    if (text !== undefined) notes.set(part, { type: 'text', text });
  }
  if (notes.size === 0) return message;
  const replace = <Part extends MessagePart>(part: Part): Part | TextPart => notes.get(part) ?? part;
  // By role, since each allows other parts.
  switch (message.role) {
    case 'user':
      return { ...message, content: message.content.map(replace) };
    case 'assistant':
      return { ...message, content: message.content.map(replace) };
    case 'tool':
      return { ...message, content: message.content.map(replace) };
  }
}
