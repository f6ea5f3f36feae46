/**
 * Item match: whether an item that a server announces or gives whole is one that came before.
 *
 * Ids alone do not tell: some servers give all items one id or an empty one, others give one item another id in each
 * event. So what an item says counts as well, and a call is never taken for another call.
 */
import { parseJson, word } from '../shared/json-values.ts';
import { type PartialItem, recordsOf } from './output-items.ts';
import type { WireEvent } from './wire-event.ts';

/** An item that began. */
export interface BegunItem {
  readonly item: PartialItem;
  /** The id under which it did, as the server gave it; undefined for none. */
  readonly id: string | undefined;
}

/** A call's input as its item has it; some servers send an object in the place of its text. */
export function wholeInput({ arguments: input, input: freeText }: WireEvent): string {
  if (typeof input === 'string') return input;
  if (typeof input === 'object' && input !== null) return JSON.stringify(input);
  return typeof freeText === 'string' ? freeText : '';
}

/** Whether two inputs of a call are the same, maybe written in another way. */
function isSameInput(left: string, right: string): boolean {
  return left === right || plainInput(left) === plainInput(right);
}

/** Whether an item that is announced is another one than that which was announced in its place. */
export function isOther({ item, id }: BegunItem, wire: WireEvent): boolean {
  if (item.type !== wire['type']) return true;
  const callId = item.kind === 'call' ? word(item.callId) : undefined;
  return differ(callId, wire['call_id']) ?? differ(id, wire['id']) ?? false;
}

/** Whether a whole item is another one than that which it would end. Since that began, its ids may have changed. */
export function isOtherWhole(begun: BegunItem, wire: WireEvent): boolean {
  const { item } = begun;
  if (item.isDone) return !isRepeat(begun, wire);
  return item.kind === 'call' && differ(word(item.name), wire['name']) === true;
}

/** Whether a whole item is one that has ended, given once more. */
function isRepeat(begun: BegunItem, wire: WireEvent): boolean {
  const { item, id } = begun;
  if (isOther(begun, wire)) return false;
  switch (item.kind) {
    case 'call':
      return item.name === word(wire['name']) && isSameInput(item.inputText, wholeInput(wire));
    case 'message':
      return textOfItem(item) === textOfWire(wire);
    case 'reasoning':
      return item.encrypted === word(wire['encrypted_content']) && textOfItem(item) === textOfWire(wire);
    case 'other':
      return differ(id, wire['id']) === false || JSON.stringify(item.data) === JSON.stringify(wire);
  }
}

/** What an item of the final list and one that was streamed have in common. */
interface Pairing {
  readonly ofBegun: (begun: BegunItem) => string | undefined;
  readonly ofWire: (wire: WireEvent) => string | undefined;
}

/** The surest first. */
const PAIRINGS: readonly Pairing[] = [
  {
    ofBegun: ({ item, id }) => (item.kind === 'call' ? keyOf(item.type, item.callId) : keyOf(item.type, id)),
    ofWire: (wire) => keyOf(wire['type'], isCall(wire) ? wire['call_id'] : wire['id']),
  },
  // Ids that changed: a call that says the same, else one of which no more than the name is known.
  {
    ofBegun: ({ item }) => (item.kind === 'call' && item.isDone ? `${item.type} ${item.name} ${plainInput(item.inputText)}` : undefined),
    ofWire: (wire) => (isCall(wire) ? `${String(wire['type'])} ${String(wire['name'])} ${plainInput(wholeInput(wire))}` : undefined),
  },
  {
    ofBegun: ({ item }) => (item.kind === 'call' && !item.isDone ? keyOf(item.type, item.name) : undefined),
    ofWire: (wire) => (isCall(wire) ? keyOf(wire['type'], wire['name']) : undefined),
  },
  {
    ofBegun: ({ item }) => (item.kind === 'call' ? undefined : item.type),
    ofWire: (wire) => (isCall(wire) ? undefined : String(wire['type'])),
  },
];

/**
 * Finds each item of the list at the end of a response among those that were streamed, none twice; undefined for one
 * that was not.
 */
export function pairItems(wires: readonly WireEvent[], begun: readonly BegunItem[]): readonly (PartialItem | undefined)[] {
  const found = new Map<WireEvent, PartialItem>();
  const taken = new Set<PartialItem>();
  for (const { ofBegun, ofWire } of PAIRINGS) {
    const left = new Map<string, BegunItem[]>();
    for (const each of begun) {
      const key = taken.has(each.item) ? undefined : ofBegun(each);
      const others = key === undefined ? undefined : left.get(key);
      if (others !== undefined) others.push(each);
      else if (key !== undefined) left.set(key, [each]);
    }
    for (const wire of wires) {
      const key = found.has(wire) ? undefined : ofWire(wire);
      const item = key === undefined ? undefined : left.get(key)?.shift()?.item;
      if (item === undefined) continue;
      found.set(wire, item);
      taken.add(item);
    }
  }
  return wires.map((wire) => found.get(wire));
}

/** The types whose texts together are the same in the final list as in what was streamed, however they are divided. */
export function toldTypes(wires: readonly WireEvent[], begun: readonly BegunItem[]): ReadonlySet<unknown> {
  const types = ['message', 'reasoning'];
  return new Set(
    types.filter((type) => {
      const streamed = begun.filter(({ item }) => item.type === type).map(({ item }) => textOfItem(item));
      return streamed.join('') === wires.filter((wire) => wire['type'] === type).map(textOfWire).join('');
    }),
  );
}

function isCall({ type }: WireEvent): boolean {
  return type === 'function_call' || type === 'custom_tool_call';
}

/** Undefined for an id that is none. */
function keyOf(type: unknown, id: unknown): string | undefined {
  return word(id) === undefined ? undefined : `${String(type)} ${String(id)}`;
}

/** Undefined if one of the two is none. */
function differ(known: string | undefined, given: unknown): boolean | undefined {
  return known === undefined || word(given) === undefined ? undefined : known !== given;
}

/** An input without what JSON leaves to the writer; as it is if it is no JSON. */
function plainInput(input: string): string {
  const value = parseJson(input);
  return value === undefined ? input : JSON.stringify(value);
}

function textOfItem(item: PartialItem): string {
  if (item.kind === 'message') return [...item.texts.values()].map(({ text }) => text).join('');
  return item.kind === 'reasoning' ? [...item.summaries.values(), ...item.raw.values()].join('') : '';
}

/** The text that a whole item says; empty for none. */
export function textOfWire({ type, summary, content }: WireEvent): string {
  const pieces = type === 'message' ? recordsOf(content) : [...recordsOf(summary), ...recordsOf(content)];
  return pieces.map(({ text, refusal }) => text ?? refusal).filter((text) => typeof text === 'string').join('');
}
