/**
 * Undo: takes a person's messages back, with everything that came of them.
 *
 * It is a `compaction` of the layer `undo`: the events stay, the history forgets. What the host put in stays, and behind a
 * summary there is nothing to go back to, since what it covers cannot be had again.
 */
import type { CompactionEdit } from '../core/events.ts';
import type { Message, UserMessage } from '../core/message.ts';

/** What to take back. */
export interface UndoOptions {
  /** Messages of a person, counted from the newest. @defaultValue 1 */
  readonly prompts?: number | undefined;
  /** The oldest message to take back, in place of a number. */
  readonly messageId?: string | undefined;
}

/** How far an undo got. */
export interface UndoReport {
  /** Messages of a person that were taken back. */
  readonly undone: number;
  /** The oldest of them, without its id: written anew it is another message. Absent if there was none. */
  readonly message?: UserMessage | undefined;
  /** What kept it from going as far as it was asked to. */
  readonly stoppedAt?: 'summary' | 'beginning' | undefined;
}

/** What an undo comes to. */
export interface UndoPlan {
  readonly report: UndoReport;
  /** None if there is nothing to take back. */
  readonly edits: readonly CompactionEdit[];
}

/** Works out what an undo takes out of a history. */
export function planUndo(messages: readonly Message[], { prompts = 1, messageId }: UndoOptions): UndoPlan {
  const found: number[] = [];
  let stoppedAt: UndoReport['stoppedAt'] = 'beginning';
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (message?.role !== 'user') continue;
    if (message.origin === 'summary') {
      stoppedAt = 'summary';
      break;
    }
    if (message.origin !== 'user') continue;
    found.push(index);
    if (messageId === undefined ? found.length === prompts : message.id === messageId) {
      stoppedAt = undefined;
      break;
    }
  }
  // A message that is not there takes nothing with it.
  const from = messageId !== undefined && stoppedAt !== undefined ? undefined : found.at(-1);
  if (from === undefined) return { report: { undone: 0, ...(stoppedAt !== undefined && { stoppedAt }) }, edits: [] };
  const removed = messages.slice(from);
  const [first, last] = [removed[0], removed.at(-1)];
  if (first?.role !== 'user' || last === undefined) return { report: { undone: 0 }, edits: [] };
  const kept = removed.filter((message) => message.role === 'user' && message.origin === 'host');
  return {
    report: { undone: found.length, message: { ...first, id: '' }, ...(stoppedAt !== undefined && { stoppedAt }) },
    edits: [{ from: first.id, to: last.id, messages: kept }],
  };
}
