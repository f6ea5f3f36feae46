/**
 * Text index: which entries have which words, and how well they fit a question (BM25).
 *
 * - A rare word counts more than a common one; the tenth time counts hardly more than the third; a short entry that is about
 *   the word counts more than a long one that has it too.
 * - Words like those asked for count as well, less; of one word of the question only the best form counts in an entry.
 * - So do everyday concepts that its words belong to: a question about a spouse finds the husband.
 * - Adding, changing and removing cost what the text is long; a question costs what its words are common.
 */
import { conceptsOf } from './concepts.ts';
import { SimilarWords } from './similar-words.ts';
import { termsOf } from './terms.ts';

/** How soon a repeated word stops counting, and how much the length of an entry counts. Entries are short: less than in books. */
export const SATURATION = 1.2;
export const LENGTH_SHARE = 0.3;

/** A similar word is a guess. */
export const SIMILAR_WEIGHT = 0.3;

/**
 * A concept is shared by words that may mean different things. Eighths, like the weights of terms: lengths are sums of them, and
 * so exact, whatever was added and removed in whichever order.
 */
const CONCEPT_WEIGHT = 0.375;

/** Where a word stands: slots, ascending, and how many times in each. */
interface Posting {
  readonly slots: number[];
  readonly counts: number[];
  readonly weight: number;
}

/** Words of texts, by slot: a small whole number that stands for an entry. */
export class TextIndex {
  readonly #postings = new Map<string, Posting>();
  readonly #similar = new SimilarWords();
  readonly #lengths: number[] = [];
  #size = 0;
  #totalLength = 0;

  /** Adds the text of a slot that is free. */
  add(slot: number, text: string): void {
    const counts = countTerms(text);
    let length = 0;
    for (const [term, { count, weight }] of counts) {
      length += count * weight;
      const posting = this.#postings.get(term);
      if (posting === undefined) {
        this.#postings.set(term, { slots: [slot], counts: [count], weight });
        this.#similar.add(term);
      } else {
        const at = placeOf(posting.slots, slot);
        posting.slots.splice(at, 0, slot);
        posting.counts.splice(at, 0, count);
      }
    }
    this.#lengths[slot] = length;
    this.#totalLength += length;
    this.#size += 1;
  }

  /** Takes out the text that was added for a slot. */
  remove(slot: number, text: string): void {
    for (const term of countTerms(text).keys()) {
      const posting = this.#postings.get(term);
      if (posting === undefined) continue;
      const at = placeOf(posting.slots, slot);
      posting.slots.splice(at, 1);
      posting.counts.splice(at, 1);
      if (posting.slots.length > 0) continue;
      this.#postings.delete(term);
      this.#similar.remove(term);
    }
    this.#totalLength -= this.#lengths[slot] ?? 0;
    this.#size -= 1;
    this.#lengths[slot] = 0;
  }

  /** Score by slot: above 0 for every entry that has a word of the question or one like it, 0 for others and for free slots. */
  score(question: string): Float64Array {
    const scores = new Float64Array(this.#lengths.length);
    // The best form of one word in each entry; emptied after each word, since most entries have none.
    const best = new Float64Array(this.#lengths.length);
    for (const [term, { weight }] of countTerms(question)) {
      const touched: number[] = [];
      this.#scoreTerm({ best, touched }, term, weight);
      for (const { word, likeness } of this.#similar.of(term)) this.#scoreTerm({ best, touched }, word, weight * likeness * SIMILAR_WEIGHT);
      for (const slot of touched) {
        scores[slot] = (scores[slot] ?? 0) + (best[slot] ?? 0);
        best[slot] = 0;
      }
    }
    return scores;
  }

  #scoreTerm({ best, touched }: { readonly best: Float64Array; readonly touched: number[] }, term: string, weight: number): void {
    const posting = this.#postings.get(term);
    if (posting === undefined) return;
    const { slots, counts } = posting;
    const rarity = rarityOf(slots.length, this.#size);
    const average = this.#totalLength / this.#size;
    for (let index = 0; index < slots.length; index += 1) {
      const slot = slots[index] ?? 0;
      const count = counts[index] ?? 0;
      const length = 1 - LENGTH_SHARE + (LENGTH_SHARE * (this.#lengths[slot] ?? 0)) / average;
      const score = (weight * rarity * count * (SATURATION + 1)) / (count + SATURATION * length);
      const before = best[slot] ?? 0;
      if (score <= before) continue;
      if (before === 0) touched.push(slot);
      best[slot] = score;
    }
  }
}

/** How much a word says that so many of the entries have. */
export function rarityOf(having: number, entries: number): number {
  return Math.log(1 + (entries - having + 0.5) / (having + 0.5));
}

/** A term of a text. */
export interface TermCount {
  /** How many times it stands there. */
  readonly count: number;
  /** How much it says, from above 0 to 1: the same wherever it stands. */
  readonly weight: number;
}

/** The terms of a text, and the concepts that they belong to. */
export function countTerms(text: string): ReadonlyMap<string, TermCount> {
  const counts = new Map<string, TermCount>();
  for (const { text: term, weight } of termsOf(text)) {
    counts.set(term, { count: (counts.get(term)?.count ?? 0) + 1, weight });
    // No word has this sign in it.
    for (const concept of conceptsOf(term)) counts.set(`#${concept}`, { count: 1, weight: CONCEPT_WEIGHT });
  }
  return counts;
}

/** Where a slot stands in a list, or would. */
function placeOf(slots: readonly number[], slot: number): number {
  let low = 0;
  let high = slots.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((slots[middle] ?? 0) < slot) low = middle + 1;
    else high = middle;
  }
  return low;
}
