/**
 * Item order: where the items of a response stand, whatever order they came in.
 *
 * 1. By their `output_index`. One without, or all if two have the same, stand behind what came before them.
 * 2. Where the response ended with a list of its items, in the order of that list.
 * 3. Calls in the order in which they were announced: their fragments have told their position. What leads up to a call
 *    goes with it, so that thinking stays before what it led to.
 */
import type { ItemDirectory } from './item-directory.ts';
import type { PartialItem } from './output-items.ts';

/** The items that are to stand in a reply, in order; calls that were not announced are not among them. */
export function orderItems({ begun, hasPlaces }: ItemDirectory, final: readonly PartialItem[]): readonly PartialItem[] {
  let last = -Infinity;
  const placed = begun.map(({ item, index }) => {
    last = hasPlaces ? (index ?? last) : last;
    return { item, place: last };
  });
  const byIndex = placed.sort((left, right) => (left.place === right.place ? 0 : left.place - right.place)).map(({ item }) => item);
  const items = inFinalOrder(byIndex, final);
  return inCallOrder(items.filter((item) => item.kind !== 'call' || item.callIndex >= 0));
}

/** What the list does not hold stands behind what was before it. */
function inFinalOrder(items: readonly PartialItem[], final: readonly PartialItem[]): readonly PartialItem[] {
  if (final.length === 0) return items;
  const listed = new Set(final);
  const first: PartialItem[] = [];
  const following = new Map<PartialItem, PartialItem[]>();
  let behind = first;
  for (const item of items) {
    if (listed.has(item)) following.set(item, (behind = []));
    else behind.push(item);
  }
  return [...first, ...final.flatMap((item) => [item, ...(following.get(item) ?? [])])];
}

function inCallOrder(items: readonly PartialItem[]): readonly PartialItem[] {
  const groups: { readonly items: PartialItem[]; callIndex: number }[] = [];
  let group: (typeof groups)[number] | undefined;
  for (const item of items) {
    if (group === undefined) groups.push((group = { items: [], callIndex: Infinity }));
    group.items.push(item);
    if (item.kind !== 'call') continue;
    group.callIndex = item.callIndex;
    group = undefined;
  }
  return groups.sort((left, right) => (left.callIndex === right.callIndex ? 0 : left.callIndex - right.callIndex)).flatMap((each) => each.items);
}
