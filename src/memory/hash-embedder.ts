/**
 * Hash embedder: vectors of words, pieces of words and everyday concepts, without a model. For hosts that run offline.
 *
 * It knows spelling and a list of common concepts in English and Chinese; it does not understand. The same text gives the same
 * vector in every process and version of this name.
 */
import { conceptsOf } from './concepts.ts';
import type { Embedder } from './embedder.ts';
import { termsOf } from './terms.ts';

const DIMENSIONS = 768;
/** It knows spelling and everyday words, and little of what they mean: words alone say most of it. */
const WEIGHT = 0.5;

/** A word counts whole, and again by its pieces; both together are about two words. */
const PIECES_WEIGHT = 0.7;
const CONCEPT_WEIGHT = 0.8;
const PIECE = 3;

/**
 * Makes an embedder that runs in the process, at once and offline: hashes of words, of their pieces and of some hundred
 * everyday concepts, English and Chinese. Better than words alone for inflections, near spellings and common ways to say
 * the same; an embedding model is better than it.
 */
export function hashEmbedder(): Embedder {
  return {
    name: `turnloop-hash-1-${DIMENSIONS}`,
    dimensions: DIMENSIONS,
    weight: WEIGHT,
    embed: async (texts, { signal } = {}) => {
      signal?.throwIfAborted();
      return texts.map(embedText);
    },
  };
}

function embedText(text: string): Float32Array {
  const weights = new Map<string, number>();
  const add = (feature: string, weight: number): void => void weights.set(feature, (weights.get(feature) ?? 0) + weight);
  for (const { text: term, weight } of termsOf(text)) {
    add(`w${term}`, weight);
    const pieces = piecesOf(term);
    for (const piece of pieces) add(`p${piece}`, PIECES_WEIGHT / Math.sqrt(pieces.length));
    for (const concept of conceptsOf(term)) add(`c${concept}`, CONCEPT_WEIGHT * Math.max(weight, 0.5));
  }
  const values = new Float32Array(DIMENSIONS);
  for (const [feature, weight] of weights) {
    const hash = hashOf(feature);
    const place = hash % DIMENSIONS;
    // What comes again says less; two features of one place may as well cancel out as add up.
    values[place] = (values[place] ?? 0) + Math.sqrt(weight) * (hash >= HALF ? 1 : -1);
  }
  return values;
}

/** Pieces of a word of letters; what is short or has digits counts as a whole only. */
function piecesOf(term: string): readonly string[] {
  if (term.length <= PIECE || !/^[\p{L}\p{M}]+$/u.test(term)) return [];
  const marked = `^${term}$`;
  return Array.from({ length: marked.length - PIECE + 1 }, (_, start) => marked.slice(start, start + PIECE));
}

const HALF = 2 ** 31;

/** FNV-1a of the UTF-16 code units, mixed once more, since its low bits alone decide the place. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash ^= text.charCodeAt(index);
    hash = Math.imul(hash, 0x01000193);
  }
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 12;
  return hash >>> 0;
}
