/** Filter entries: which entries a filter means, and in which order they are listed. */
import type { MemoryEntry, MemoryFilter, MemoryOwner } from './memory-store.ts';

/** One text for each owner, and another for any other owner. */
function ownerKey({ scope, scopeId }: MemoryOwner): string {
  // No scope has a colon.
  return `${scope}:${scopeId}`;
}

/** Whether a filter means an entry. The filter is looked at once, however many entries there are. */
export function toPredicate(filter: MemoryFilter): (entry: MemoryEntry) => boolean {
  const { kinds, createdFrom = -Infinity, createdBefore = Infinity, pinned } = filter;
  const ids = filter.ids && new Set(filter.ids);
  const owners = filter.owners && new Set(filter.owners.map(ownerKey));
  return (entry) =>
    entry.createdAt >= createdFrom &&
    entry.createdAt < createdBefore &&
    (ids === undefined || ids.has(entry.id)) &&
    (kinds === undefined || kinds.includes(entry.kind)) &&
    (pinned === undefined || pinned === (entry.pinned === true)) &&
    (owners === undefined || owners.has(ownerKey(entry)));
}

/** Newest first; of the same time, by id. */
export function byNewest(a: MemoryEntry, b: MemoryEntry): number {
  return b.createdAt - a.createdAt || byId(a, b);
}

/** Oldest first; of the same time, by id. */
export function byOldest(a: MemoryEntry, b: MemoryEntry): number {
  return a.createdAt - b.createdAt || byId(a, b);
}

/** By id, in the order of its UTF-16 code units. */
export function byId(a: MemoryEntry, b: MemoryEntry): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
