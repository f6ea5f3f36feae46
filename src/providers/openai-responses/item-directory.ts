/**
 * Item directory: which item of a response an event is about.
 *
 * - It is the item with the event's `output_index`; without one, that with its `item_id`, else the latest of its type.
 *   Ids alone would not do: Copilot gives one item another id in each event.
 * - Where several items were given one index, or one id, what else is known of them decides.
 * - An item that is not sure to be one of those that began is one of its own.
 */
import { word } from '../shared/json-values.ts';
import { type BegunItem, isOther, isOtherWhole } from './item-match.ts';
import { openItem, type PartialItem } from './output-items.ts';
import type { WireEvent } from './wire-event.ts';

/** An item that began, and where. */
export interface ListedItem extends BegunItem {
  /** Its `output_index`; undefined for none. */
  readonly index: number | undefined;
}

/** Knows the items of one response. */
export interface ItemDirectory {
  /** In the order in which they began. */
  readonly begun: readonly ListedItem[];
  /** Whether no two items have the same index, so that it says where they stand. */
  readonly hasPlaces: boolean;
  /** The item of an event, of a type; undefined for one that has not begun. @param id - What the event says of its id. */
  find(event: WireEvent, type: string, id: unknown): PartialItem | undefined;
  /** The item that is announced once more; undefined if it is new. */
  findAnnounced(event: WireEvent, wire: WireEvent): PartialItem | undefined;
  /** The item that is given whole; undefined if it is new. */
  findWhole(event: WireEvent, wire: WireEvent): PartialItem | undefined;
  /** Begins an item of a type. */
  begin(event: WireEvent, type: string, id: unknown): PartialItem;
}

/** Makes a directory for one response. */
export function createItemDirectory(): ItemDirectory {
  const begun: ListedItem[] = [];
  const byItem = new Map<PartialItem, ListedItem>();
  /** The latest with the index, or with the id. */
  const byIndex = new Map<number, PartialItem>();
  const byId = new Map<string, PartialItem>();
  /** All items of an index that has more than one. */
  const crowds = new Map<number, PartialItem[]>();

  function find(event: WireEvent, type: string, id: unknown): PartialItem | undefined {
    const { output_index: index } = event;
    const placed = typeof index === 'number' ? byIndex.get(index) : undefined;
    // As for nearly every fragment: no second look, by the id.
    if (placed?.type === type && crowds.size === 0) return placed;
    const named = typeof id === 'string' ? byId.get(id) : undefined;
    const known = named?.type === type ? named : undefined;
    if (typeof index !== 'number') return known ?? latestOf(type);
    const crowd = crowds.get(index);
    if (crowd !== undefined) return findIn(crowd, type, known);
    if (placed?.type === type) return placed;
    // One that has ended elsewhere is another one with the same id.
    if (placed === undefined) return known?.isDone === true ? undefined : known;
    return known ?? latestOf(type);
  }

  function latestOf(type: string): PartialItem | undefined {
    return begun.findLast(({ item }) => item.type === type && !item.isDone)?.item;
  }

  function findIn(crowd: readonly PartialItem[], type: string, named: PartialItem | undefined): PartialItem | undefined {
    if (named !== undefined && crowd.includes(named)) return named;
    return crowd.findLast((item) => item.type === type && !item.isDone) ?? crowd.findLast((item) => item.type === type);
  }

  /** The call that a whole one names, if the one that was found is another. */
  function findCall(found: PartialItem | undefined, { call_id: id, type }: WireEvent): PartialItem | undefined {
    if (found?.kind !== 'call' || word(id) === undefined || found.callId === id) return found;
    return begun.findLast(({ item }) => item.kind === 'call' && item.type === type && item.callId === id)?.item ?? found;
  }

  /** The item, unless it is another one than the server's. */
  function unless(isAnother: (known: ListedItem, wire: WireEvent) => boolean, item: PartialItem | undefined, wire: WireEvent): PartialItem | undefined {
    const listed = item === undefined ? undefined : byItem.get(item);
    return listed === undefined || isAnother(listed, wire) ? undefined : item;
  }

  return {
    begun,
    get hasPlaces() {
      return crowds.size === 0;
    },
    find,
    findAnnounced(event, wire) {
      const { output_index: index } = event;
      const id = word(wire['id']);
      const known = id === undefined ? undefined : byId.get(id);
      const placed = typeof index === 'number' ? (crowds.get(index)?.find((item) => item === known) ?? byIndex.get(index)) : known;
      return placed?.isDone === true ? undefined : unless(isOther, placed, wire);
    },
    findWhole(event, wire) {
      return unless(isOtherWhole, findCall(find(event, String(wire['type']), wire['id']), wire), wire);
    },
    begin(event, type, id) {
      const item = openItem(type);
      const { output_index: index } = event;
      const listed = { item, id: word(id), index: typeof index === 'number' ? index : undefined };
      begun.push(listed);
      byItem.set(item, listed);
      if (listed.id !== undefined) byId.set(listed.id, item);
      if (listed.index !== undefined) {
        const before = byIndex.get(listed.index);
        const crowd = crowds.get(listed.index);
        if (crowd !== undefined) crowd.push(item);
        else if (before !== undefined) crowds.set(listed.index, [before, item]);
        byIndex.set(listed.index, item);
      }
      return item;
    },
  };
}
