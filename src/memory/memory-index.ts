/**
 * Memory index: entries in memory, with their words and vectors. What the in-process store and the file store search.
 *
 * It is synchronous and changes only by operations, plain data that a log can keep: the same operations in the same order
 * give the same index.
 */
import type { FoundMemory, MemoryAddition, MemoryChange, MemoryEntry, MemoryFilter, MemoryListing, MemoryQuery, MemoryVector } from './memory-store.ts';
import { byId, byNewest, toPredicate } from './filter-entries.ts';
import { takeBest } from './take-best.ts';
import { TextIndex } from './text-index.ts';

/** One change of the index. */
export type MemoryOperation =
  | { readonly op: 'add'; readonly entry: MemoryEntry; readonly vector?: MemoryVector | undefined }
  | { readonly op: 'change'; readonly change: MemoryChange }
  | { readonly op: 'forget'; readonly id: string };

interface Slot {
  readonly number: number;
  readonly entry: MemoryEntry;
  readonly vector: MemoryVector | undefined;
}

/** Entries in memory. */
export class MemoryIndex {
  readonly #byId = new Map<string, Slot>();
  readonly #slots: (Slot | undefined)[] = [];
  readonly #free: number[] = [];
  readonly #words = new TextIndex();

  /** How many entries there are. */
  get size(): number {
    return this.#byId.size;
  }

  /** The entry with this id. */
  get(id: string): MemoryEntry | undefined {
    return this.#byId.get(id)?.entry;
  }

  /** Everything there is, as operations on an empty index. */
  *contents(): Generator<MemoryOperation> {
    for (const { entry, vector } of this.#byId.values()) yield { op: 'add', entry, vector };
  }

  /** The operations that add what is not there yet. */
  toAdd(additions: readonly MemoryAddition[]): readonly MemoryOperation[] {
    const added = new Map<string, MemoryOperation>();
    for (const { entry, vector } of additions) {
      if (!this.#byId.has(entry.id) && !added.has(entry.id)) added.set(entry.id, { op: 'add', entry, vector });
    }
    return [...added.values()];
  }

  /** The operations that change what is there. */
  toChange(changes: readonly MemoryChange[]): readonly MemoryOperation[] {
    return changes.filter(({ id }) => this.#byId.has(id)).map((change) => ({ op: 'change', change }));
  }

  /** The operations that forget what is meant. */
  toForget(filter: MemoryFilter): readonly MemoryOperation[] {
    return this.#matching(filter).map(({ entry }) => ({ op: 'forget', id: entry.id }));
  }

  /** Makes an operation happen. */
  apply(operation: MemoryOperation): void {
    switch (operation.op) {
      case 'add':
        this.#add(operation.entry, operation.vector);
        break;
      case 'change':
        this.#change(operation.change);
        break;
      case 'forget':
        this.#forget(operation.id);
        break;
      default:
        operation satisfies never;
    }
  }

  /** As `MemoryStore.list`. */
  list(listing: MemoryListing): readonly MemoryEntry[] {
    const { lacksVectorOf, limit = Infinity } = listing;
    const slots = this.#matching(listing).filter(({ vector }) => lacksVectorOf === undefined || vector?.embedder !== lacksVectorOf);
    const entries = slots.map(({ entry }) => entry);
    return limit < entries.length ? takeBest(entries, limit, byNewest) : entries.sort(byNewest);
  }

  /** As `MemoryStore.find`. */
  find(query: MemoryQuery): readonly FoundMemory[] {
    const { text = '', vector, limit } = query;
    const isMeant = toPredicate(query);
    const scores = text === '' ? new Float64Array() : this.#words.score(text);
    const textScoreOf = ({ number }: Slot): number => scores[number] ?? 0;
    const meant = [...this.#byId.values()].filter(({ entry }) => isMeant(entry));
    const byWords = takeBest(
      meant.filter((slot) => textScoreOf(slot) > 0),
      limit,
      (a, b) => textScoreOf(b) - textScoreOf(a) || byId(a.entry, b.entry),
    );
    const similarities = new Map<Slot, number>();
    if (vector !== undefined) {
      for (const slot of meant) if (slot.vector?.embedder === vector.embedder) similarities.set(slot, dot(slot.vector.values, vector.values));
    }
    const byVector = takeBest(similarities, limit, ([a, first], [b, second]) => second - first || byId(a.entry, b.entry)).map(([slot]) => slot);
    return [...new Set([...byWords, ...byVector])]
      .map((slot) => ({ entry: slot.entry, textScore: textScoreOf(slot), ...(similarities.has(slot) && { similarity: similarities.get(slot) }) }))
      .sort(byScore);
  }

  #matching(filter: MemoryFilter): readonly Slot[] {
    const isMeant = toPredicate(filter);
    return [...this.#byId.values()].filter(({ entry }) => isMeant(entry));
  }

  #add(entry: MemoryEntry, vector: MemoryVector | undefined): void {
    const number = this.#free.pop() ?? this.#slots.length;
    this.#put({ number, entry, vector });
    this.#words.add(number, entry.text);
  }

  #change({ id, text, vector, kind, importance, pinned, usedAt }: MemoryChange): void {
    const slot = this.#byId.get(id);
    if (slot === undefined) return;
    const { number, entry } = slot;
    const { pinned: wasPinned, uses = 0, lastUsedAt, ...rest } = entry;
    const isPinned = pinned ?? wasPinned ?? false;
    const changed: MemoryEntry = {
      ...rest,
      ...(text !== undefined && { text }),
      ...(kind !== undefined && { kind }),
      ...(importance !== undefined && { importance }),
      ...(isPinned && { pinned: true }),
      ...(usedAt === undefined ? lastUsedAt !== undefined && { lastUsedAt } : { lastUsedAt: Math.max(lastUsedAt ?? usedAt, usedAt) }),
      ...(usedAt === undefined ? uses > 0 && { uses } : { uses: uses + 1 }),
    };
    if (changed.text !== entry.text) {
      this.#words.remove(number, entry.text);
      this.#words.add(number, changed.text);
    }
    this.#put({ number, entry: changed, vector: vector ?? (text === undefined ? slot.vector : undefined) });
  }

  #forget(id: string): void {
    const slot = this.#byId.get(id);
    if (slot === undefined) return;
    this.#words.remove(slot.number, slot.entry.text);
    this.#byId.delete(id);
    this.#slots[slot.number] = undefined;
    this.#free.push(slot.number);
  }

  #put(slot: Slot): void {
    this.#byId.set(slot.entry.id, slot);
    this.#slots[slot.number] = slot;
  }
}

/** Below any cosine. */
const NO_SIMILARITY = -2;

function byScore(a: FoundMemory, b: FoundMemory): number {
  return b.textScore - a.textScore || (b.similarity ?? NO_SIMILARITY) - (a.similarity ?? NO_SIMILARITY) || byId(a.entry, b.entry);
}

/** Of two vectors of one embedder; four sums at once, which engines do faster than one. */
function dot(a: Float32Array, b: Float32Array): number {
  let [first, second, third, fourth] = [0, 0, 0, 0];
  const length = Math.min(a.length, b.length);
  const whole = length - (length % 4);
  // Within the length there is a number at each index.
  for (let index = 0; index < whole; index += 4) {
    first += (a[index] as number) * (b[index] as number);
    second += (a[index + 1] as number) * (b[index + 1] as number);
    third += (a[index + 2] as number) * (b[index + 2] as number);
    fourth += (a[index + 3] as number) * (b[index + 3] as number);
  }
  for (let index = whole; index < length; index += 1) first += (a[index] as number) * (b[index] as number);
  return first + second + third + fourth;
}
