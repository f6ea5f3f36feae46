/** History edits: the one compaction that turns a history into another, whether it took, and which messages none can name. */
import type { CompactionEdit } from '../core/events.ts';
import type { Message } from '../core/message.ts';
import { applyEdits } from './layer.ts';

/**
 * Edits that make `after` out of `before`, in order and without overlap. A message that is the same object in both stands
 * in none of them, unless something new comes where nothing goes: then the message before it is replaced by itself, or at
 * the very beginning the first one. What was built for one request counts in neither: the record does not know it.
 *
 * @param built - Messages as they were.
 * @param wanted - Some of them in their order, and new ones between them.
 */
export function editsTo(built: readonly Message[], wanted: readonly Message[]): readonly CompactionEdit[] {
  const [before, after] = [built.filter(isRecorded), wanted.filter(isRecorded)];
  const positions = new Map(before.map((message, index) => [message, index]));
  const edits: CompactionEdit[] = [];
  let done = 0;
  let added: readonly Message[] = [];
  /** What stands from `done` on goes, up to a message that stays or the end. */
  const closeAt = (position: number): void => {
    if (position > done) push(done, position - 1, added);
    else if (added.length > 0) insertAt(position);
    added = [];
  };
  const insertAt = (position: number): void => {
    const last = edits.at(-1);
    const [previous, next] = [before[position - 1], before[position]];
    // What stands before may have been replaced itself, to carry something new.
    if (last !== undefined && last.to === previous?.id) edits[edits.length - 1] = { ...last, messages: [...last.messages, ...added] };
    else if (previous !== undefined && previous.id !== '') push(position - 1, position - 1, [previous, ...added]);
    else if (next !== undefined && next.id !== '') push(position, position, [...added, next]);
  };
  const push = (start: number, end: number, messages: readonly Message[]): void => {
    const [from, to] = [before[start], before[end]];
    if (from !== undefined && to !== undefined) edits.push({ from: from.id, to: to.id, messages });
  };
  for (const message of after) {
    const position = positions.get(message) ?? -1;
    if (position < done) {
      added = [...added, message];
      continue;
    }
    closeAt(position);
    done = position + 1;
  }
  closeAt(before.length);
  return edits;
}

/** True if all recorded messages up to the last that an edit replaces are there as they were, whatever was built beside them. */
export function isStillThere(before: readonly Message[], now: readonly Message[], edits: readonly CompactionEdit[]): boolean {
  const [past, present] = [before.filter(isRecorded), now.filter(isRecorded)];
  const ends = new Set(edits.map(({ to }) => to));
  const end = past.findLastIndex(({ id }) => ends.has(id)) + 1;
  return past.slice(0, end).every((message, index) => isSame(message, present[index]));
}

/** True if two histories have the same messages in the record, whatever was built beside them. */
export function isSameRecord(left: readonly Message[], right: readonly Message[]): boolean {
  return isSameList(left.filter(isRecorded), right.filter(isRecorded));
}

/**
 * True if edits were recorded, and the history is not built from the record, or not by its ids: what one of them was to
 * replace stands there as before, or none has visibly been applied and it has become no shorter. What was built for one
 * request says nothing: it may be longer in each.
 */
export function isUnedited(
  { before, now, edits }: { readonly before: readonly Message[]; readonly now: readonly Message[]; readonly edits: readonly CompactionEdit[] },
  tokensOf: (messages: readonly Message[]) => number,
): boolean {
  const [past, present] = [before.filter(isRecorded), now.filter(isRecorded)];
  const isIgnored = edits.some(({ from, to, messages }) => {
    const start = past.findIndex(({ id }) => id === from);
    const range = past.slice(start, past.findIndex(({ id }) => id === to) + 1);
    const place = present.findIndex(({ id }) => id === from);
    return !holds(messages, range) && place !== -1 && isSameList(range, present.slice(place, place + range.length));
  });
  if (isIgnored) return true;
  return !isVisible(edits, past, present) && tokensOf(present) >= tokensOf(past);
}

/** True if something that edits brought is there, or something that they name is not, where others still have their ids. */
function isVisible(edits: readonly CompactionEdit[], past: readonly Message[], present: readonly Message[]): boolean {
  const known = new Map(present.map((message) => [message.id, message]));
  const old = new Set(past);
  if (edits.some(({ messages }) => messages.some((message) => !old.has(message) && isSame(message, known.get(message.id))))) return true;
  const names = new Set(edits.map(({ from }) => from));
  const isById = past.some((message) => message.id !== '' && !names.has(message.id) && isSame(message, known.get(message.id)));
  return isById && past.some((message) => names.has(message.id) && !isSame(message, known.get(message.id)));
}

/** True if a history begins with what edits made of another, whatever was built beside them. */
export function isEdited(before: readonly Message[], now: readonly Message[], edits: readonly CompactionEdit[]): boolean {
  const present = now.filter(isRecorded);
  return applyEdits(before.filter(isRecorded), edits).every((message, index) => isSame(message, present[index]));
}

/** Copies of messages that no edit can name. */
const nameless = new WeakMap<Message, Message>();

/**
 * A history in which messages of an id that is not theirs alone have none: an edit that names it would hit another, so
 * layers are to leave them as they are.
 */
export function withoutEqualIds(messages: readonly Message[]): { readonly messages: readonly Message[]; readonly equalIds: readonly string[] } {
  const seen = new Set<string>();
  const equal = new Set<string>();
  for (const { id } of messages.filter(isRecorded)) {
    if (seen.has(id)) equal.add(id);
    seen.add(id);
  }
  equal.delete('');
  if (equal.size === 0) return { messages, equalIds: [] };
  return { messages: messages.map((message) => (equal.has(message.id) && isRecorded(message) ? withoutId(message) : message)), equalIds: [...equal] };
}

/** The same copy each time: what is kept of a message is kept by object. */
function withoutId(message: Message): Message {
  const known = nameless.get(message) ?? { ...message, id: '' };
  nameless.set(message, known);
  return known;
}

/** False for what was built for one request: it is anew in each. */
export function isRecorded(message: Message): boolean {
  return message.role !== 'user' || message.transient !== true;
}

/** True if a list has another in it: an edit may only add to what it names. */
function holds(list: readonly Message[], part: readonly Message[]): boolean {
  return list.some((_, start) => isSameList(part, list.slice(start, start + part.length)));
}

function isSameList(left: readonly Message[], right: readonly Message[]): boolean {
  return left.length === right.length && left.every((message, index) => isSame(message, right[index]));
}

/** A history may be built anew each time, of equal messages. */
export function isSame(left: Message, right: Message | undefined): boolean {
  return left === right || (left.id === right?.id && JSON.stringify(left) === JSON.stringify(right));
}
