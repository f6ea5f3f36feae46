/**
 * Layer: what the layers of the context policy share. A layer looks at a history and says which messages are to become
 * which others; it changes nothing itself and asks no model, but for the summary.
 *
 * - L1 A message that is protected stands in no edit: the first task, the newest message of a person, pinned messages,
 *   memory, messages built for one request.
 * - L2 A reply and the results of its calls are one exchange: an edit takes all of it or leaves its pairs whole.
 * - L3 Pure: equal history, equal edits.
 */
import type { CompactionEdit } from '../core/events.ts';
import type { Message, UserMessage } from '../core/message.ts';

/** A history after the edits of a layer, as the fold of the transcript will have it. */
export function applyEdits(messages: readonly Message[], edits: readonly CompactionEdit[]): readonly Message[] {
  const byStart = new Map(edits.map((edit) => [edit.from, edit]));
  const result: Message[] = [];
  let until: string | undefined;
  for (const message of messages) {
    if (until === undefined) {
      const edit = byStart.get(message.id);
      if (edit === undefined) {
        result.push(message);
        continue;
      }
      result.push(...edit.messages);
      until = edit.to;
    }
    if (until === message.id) until = undefined;
  }
  return result;
}

/** Edits that put each changed message in the place of its old form. The lists are of equal length. */
export function editsBetween(before: readonly Message[], after: readonly Message[]): readonly CompactionEdit[] {
  return after.flatMap((message, index) =>
    message === before[index] ? [] : [{ from: message.id, to: message.id, messages: [message] }],
  );
}

/** True for what a person said: the task, and what was added to it while it ran. */
export function isFromUser(message: Message): message is UserMessage {
  return message.role === 'user' && (message.origin === 'user' || message.origin === 'steering');
}

/** Messages that no layer touches, by L1. */
export function protectedMessages(messages: readonly Message[]): ReadonlySet<Message> {
  const first = messages.find(isFromUser);
  const newest = messages.findLast(isFromUser);
  return new Set(messages.filter((message) => message === first || message === newest || isUntouchable(message)));
}

/** Pinned, memory, built for one request, or without an id that an edit could name. */
function isUntouchable(message: Message): boolean {
  if (message.id === '') return true;
  return message.role === 'user' && (message.pinned === true || message.transient === true || message.origin === 'memory');
}
