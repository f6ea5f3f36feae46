/**
 * Similar words: which words of a vocabulary look like a word, so that an ending no rule knows, a compound or a slip of the
 * pen is found all the same.
 *
 * Likeness is the share of pieces of three letters that two words have in common. Only words of letters count, and long
 * enough ones: short words are like each other by chance, and numbers that are alike are different numbers.
 */

/** A word of the vocabulary and how like it is, from the least that counts to 1. */
export interface SimilarWord {
  /** The word. */
  readonly word: string;
  /** 1 for equal pieces. */
  readonly likeness: number;
}

const MIN_LENGTH = 4;
const MIN_LIKENESS = 0.5;
const PIECE = 3;
const LETTERS = /^[\p{L}\p{M}]+$/u;

/** The words of an index, found by their pieces. */
export class SimilarWords {
  readonly #words = new Map<string, ReadonlySet<string>>();
  readonly #byPiece = new Map<string, Set<string>>();

  /** Adds a word; one that is there already, or that likeness does not apply to, changes nothing. */
  add(word: string): void {
    if (!isComparable(word) || this.#words.has(word)) return;
    const pieces = piecesOf(word);
    this.#words.set(word, pieces);
    for (const piece of pieces) {
      const words = this.#byPiece.get(piece);
      if (words === undefined) this.#byPiece.set(piece, new Set([word]));
      else words.add(word);
    }
  }

  /** Takes a word out; unknown ones change nothing. */
  remove(word: string): void {
    for (const piece of this.#words.get(word) ?? []) {
      const words = this.#byPiece.get(piece);
      words?.delete(word);
      if (words?.size === 0) this.#byPiece.delete(piece);
    }
    this.#words.delete(word);
  }

  /** Words like this one, itself left out, the likest first; of the same likeness, in the order of their code units. */
  of(word: string): readonly SimilarWord[] {
    if (!isComparable(word)) return [];
    const pieces = piecesOf(word);
    const shared = new Map<string, number>();
    for (const piece of pieces) {
      for (const other of this.#byPiece.get(piece) ?? []) shared.set(other, (shared.get(other) ?? 0) + 1);
    }
    shared.delete(word);
    const similar: SimilarWord[] = [];
    for (const [other, count] of shared) {
      const likeness = (2 * count) / (pieces.size + (this.#words.get(other)?.size ?? 0));
      if (likeness >= MIN_LIKENESS) similar.push({ word: other, likeness });
    }
    return similar.sort((a, b) => b.likeness - a.likeness || (a.word < b.word ? -1 : 1));
  }
}

function isComparable(word: string): boolean {
  return word.length >= MIN_LENGTH && LETTERS.test(word);
}

/** Pieces of a word. The beginning counts twice, since that is what words of one family share. */
function piecesOf(word: string): ReadonlySet<string> {
  const marked = `^^${word}`;
  const pieces = new Set<string>();
  for (let start = 0; start + PIECE <= marked.length; start += 1) pieces.add(marked.slice(start, start + PIECE));
  return pieces;
}
