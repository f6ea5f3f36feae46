/** Media notes: messages with a text in place of media. Messages are never left out, so pairs stay whole. */
import type { MediaPart, Message, MessagePart, TextPart } from '../core/message.ts';

/** What the model reads in place of a medium at an index of the content; undefined for one that stays. */
export type MediaNote = (part: MediaPart, index: number) => string | undefined;

/** The message with notes in place of media; itself if none changes. */
export function noteMedia(message: Message, note: MediaNote): Message {
  const parts: readonly MessagePart[] = message.content;
  // By index: one part object may stand in a history more than once.
  const notes = parts.map((part, index) => (part.type === 'media' ? note(part, index) : undefined));
  if (notes.every((text) => text === undefined)) return message;
  const replace = <Part extends MessagePart>(part: Part, index: number): Part | TextPart => {
    const text = notes[index];
    return text === undefined ? part : { type: 'text', text };
  };
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
