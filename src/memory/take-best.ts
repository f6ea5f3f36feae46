/** Take best: the first few of many in some order, without sorting the rest. */

/**
 * The first `limit` of the items in an order, in that order.
 *
 * @param compare - Below 0 if the first of two comes first; never 0 for two different items, so that the answer is one.
 */
export function takeBest<Item>(items: Iterable<Item>, limit: number, compare: (a: Item, b: Item) => number): readonly Item[] {
  const best: Item[] = [];
  for (const item of items) {
    const last = best.at(-1);
    if (best.length >= limit && (last === undefined || compare(last, item) <= 0)) continue;
    best.splice(placeOf(best, item, compare), 0, item);
    if (best.length > limit) best.pop();
  }
  return best;
}

function placeOf<Item>(best: readonly Item[], item: Item, compare: (a: Item, b: Item) => number): number {
  let low = 0;
  let high = best.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const there = best[middle];
    if (there !== undefined && compare(there, item) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
