/**
 * Rank: which of the entries that were found are recalled, and in which order. One ranking over every store.
 *
 * - An entry's score is a sum: how well it fits the question, how fresh it is, how much it matters. Fitting counts most; the
 *   rest decides among those that fit alike, and where nothing does.
 * - Fresh is what was learned or used lately; it fades by half in a time that depends on the kind.
 * - Pinned entries come first. The budget binds them too.
 * - Equal input gives an equal order: ties go to the newer entry, then by id.
 */
import { byNewest } from './filter-entries.ts';
import type { FoundMemory, MemoryEntry, MemoryKind } from './memory-store.ts';

/** How much each side of a score counts; any numbers of at least 0. */
export interface RankWeights {
  /** How well its words fit. @defaultValue 1 */
  readonly words?: number | undefined;
  /** How near its vector is, where there is one. @defaultValue what the embedder says, else 1 */
  readonly vector?: number | undefined;
  /** How fresh it is. @defaultValue 0.1 */
  readonly recency?: number | undefined;
  /** How much it matters. @defaultValue 0.1 */
  readonly importance?: number | undefined;
}

/** After how many milliseconds an entry of a kind is half as fresh. */
export type HalfLives = Readonly<Record<MemoryKind, number>>;

/** Options of {@link rankMemories}. */
export interface RankOptions {
  /** What time it is, in milliseconds since the epoch. */
  readonly now: number;
  /** @defaultValue see {@link RankWeights} */
  readonly weights?: RankWeights | undefined;
  /** @defaultValue 90 days for a `fact`, 30 for an `experience`, one for `working` notes */
  readonly halfLives?: Partial<HalfLives> | undefined;
}

/** An entry and its score. */
export interface RankedMemory {
  /** The entry. */
  readonly entry: MemoryEntry;
  /** Higher is better; comparable within one answer. */
  readonly score: number;
}

const DAY_MS = 24 * 60 * 60 * 1_000;
const DEFAULT_WEIGHTS: Required<{ readonly [Name in keyof RankWeights]: number }> = { words: 1, vector: 1, recency: 0.1, importance: 0.1 };
const DEFAULT_HALF_LIVES: HalfLives = { fact: 90 * DAY_MS, experience: 30 * DAY_MS, working: DAY_MS };

/**
 * Puts entries that were found in the order in which they are recalled, pinned ones first.
 *
 * @param found - One answer of a store: figures of different answers cannot be compared.
 */
export function rankMemories(found: readonly FoundMemory[], options: RankOptions): readonly RankedMemory[] {
  const weights = { ...DEFAULT_WEIGHTS, ...defined(options.weights) };
  const halfLives = { ...DEFAULT_HALF_LIVES, ...defined(options.halfLives) };
  const bestWords = Math.max(0, ...found.map(({ textScore }) => textScore)) || 1;
  const bestVector = Math.max(0, ...found.map(({ similarity = 0 }) => similarity)) || 1;
  const ranked = found.map(({ entry, textScore, similarity = 0 }) => ({
    entry,
    score:
      (weights.words * textScore) / bestWords +
      (weights.vector * Math.max(0, similarity)) / bestVector +
      weights.recency * freshness(entry, options.now, halfLives) +
      weights.importance * entry.importance,
  }));
  return ranked.sort((a, b) => Number(b.entry.pinned ?? false) - Number(a.entry.pinned ?? false) || b.score - a.score || byNewest(a.entry, b.entry));
}

/** From 1 for what is new or was just used towards 0. */
function freshness(entry: MemoryEntry, now: number, halfLives: HalfLives): number {
  const age = Math.max(0, now - Math.max(entry.createdAt, entry.lastUsedAt ?? entry.createdAt));
  return 2 ** (-age / halfLives[entry.kind]);
}

/** What is given; undefined stands for the default. */
function defined<Options extends object>(options: Options | undefined): { readonly [Name in keyof Options]: Exclude<Options[Name], undefined> } {
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== undefined);
  // The same names without those that are undefined.
  return Object.fromEntries(given) as { readonly [Name in keyof Options]: Exclude<Options[Name], undefined> };
}
