/** History edits: the one compaction that turns a history into another, whatever steps led there. */
import type { CompactionEdit } from '../core/events.ts';
import type { Message } from '../core/message.ts';

/**
 * Edits that make `after` out of `before`, in order and without overlap. A message that is the same object in both stands
 * in none of them, unless something new comes where nothing goes: then the message before it is replaced by itself.
 *
 * @param after - Messages of `before` in their order, and new ones between them.
 */
export function editsTo(before: readonly Message[], after: readonly Message[]): readonly CompactionEdit[] {
  const positions = new Map(before.map((message, index) => [message, index]));
  const edits: CompactionEdit[] = [];
  let done = 0;
  let added: Message[] = [];
  const closeAt = (position: number): void => {
    const start = added.length > 0 && position === done ? Math.max(0, done - 1) : done;
    const [from, to] = [before[start], before[Math.max(start, position - 1)]];
    if ((position > done || added.length > 0) && from !== undefined && to !== undefined) {
      edits.push({ from: from.id, to: to.id, messages: start < done ? [from, ...added] : added });
    }
    added = [];
  };
  for (const message of after) {
    const position = positions.get(message) ?? -1;
    if (position < done) {
      added.push(message);
      continue;
    }
    closeAt(position);
    done = position + 1;
  }
  closeAt(before.length);
  return edits;
}
