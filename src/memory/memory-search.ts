/**
 * Memory search: one way to ask a store, by words and by vector, and to rank what it answers.
 *
 * - An embedder that fails costs the search by meaning, never the search by words.
 * - Entries that no vector was made of yet (imported, added while the embedder was down, or made by another one) get theirs
 *   before the first search.
 */
import { messageOf } from '../core/errors.ts';
import { EMBED_BATCH, embedTexts } from './embedder.ts';
import type { MemorySettings } from './memory-options.ts';
import { type FoundMemory, type MemoryEntry, MemoryError, type MemoryFilter, type MemoryVector } from './memory-store.ts';
import { type RankedMemory, rankMemories } from './rank.ts';

/** What is searched. */
export interface MemorySearch extends MemoryFilter {
  /** The question, in any language. */
  readonly text: string;
  /** Most entries. @defaultValue 15 */
  readonly limit?: number | undefined;
  /** Ends the search: it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Candidates for each place of an answer: recency and importance may put a lesser fit before a better one. */
const CANDIDATES_PER_PLACE = 4;

/** Searches one store. */
export class MemorySearcher {
  readonly #settings: MemorySettings;
  #isEmbedded = false;

  constructor(settings: MemorySettings) {
    this.#settings = settings;
  }

  /** Entries that may lack a vector were added. */
  expectMissing(): void {
    this.#isEmbedded = false;
  }

  /** Vectors of texts; undefined without an embedder, and when it fails. */
  async vectorsOf(texts: readonly string[], signal?: AbortSignal): Promise<readonly MemoryVector[] | undefined> {
    const { embedder } = this.#settings;
    if (embedder === undefined) return undefined;
    try {
      return await embedTexts(embedder, texts, { signal });
    } catch (error) {
      signal?.throwIfAborted();
      this.report('memory.embedder_failed', error);
      return undefined;
    }
  }

  /** What fits a question best, ranked; entries that fit not at all are left out. */
  async find({ text, limit = this.#settings.maxEntries, signal, ...filter }: MemorySearch): Promise<readonly FoundMemory[]> {
    const { store } = this.#settings;
    await this.#embedMissing(signal);
    signal?.throwIfAborted();
    const vectors = text.trim() === '' ? undefined : await this.vectorsOf([text], signal);
    const vector = vectors?.[0];
    // One of a text that means nothing, such as a smile, is as far from everything.
    const isNothing = vector?.values.every((value) => value === 0) ?? false;
    return store.find({ ...filter, text, vector: isNothing ? undefined : vector, limit: limit * CANDIDATES_PER_PLACE });
  }

  /** Found entries in the order in which they are recalled. */
  rank(found: readonly FoundMemory[]): readonly RankedMemory[] {
    const { runtime, weights, halfLives } = this.#settings;
    return rankMemories(found, { now: runtime.now(), weights, halfLives });
  }

  /** Notes that entries were recalled. A store that cannot note it costs nothing else. */
  async noteUse(entries: readonly MemoryEntry[]): Promise<void> {
    const usedAt = this.#settings.runtime.now();
    try {
      if (entries.length > 0) await this.#settings.store.update(entries.map(({ id }) => ({ id, usedAt })));
    } catch (error) {
      this.report('memory.recall_failed', error);
    }
  }

  /** Tells the host of a failure. */
  report(name: string, error: unknown): void {
    const code = error instanceof MemoryError ? error.code : 'store_failed';
    this.#settings.notify({ name, data: { code, message: messageOf(error) } });
  }

  async #embedMissing(signal: AbortSignal | undefined): Promise<void> {
    const { embedder, store } = this.#settings;
    if (embedder === undefined) return;
    while (!this.#isEmbedded) {
      const entries = await store.list({ lacksVectorOf: embedder.name, limit: EMBED_BATCH });
      const vectors = entries.length === 0 ? [] : await this.vectorsOf(entries.map(({ text }) => text), signal);
      if (vectors === undefined) return;
      this.#isEmbedded = entries.length < EMBED_BATCH;
      if (entries.length > 0) await store.update(entries.map(({ id }, index) => ({ id, vector: vectors[index] })));
    }
  }
}
