/**
 * Near duplicates: when two entries say the same in slightly different words, so that one of them is enough.
 *
 * Strict, since merging what only looks alike loses a fact: nearly all words are shared, and of numbers, names of one letter
 * and denials every one.
 */
import type { MemoryEntry } from './memory-store.ts';
import { termsOf } from './terms.ts';

/** Share of the words, by weight, that two texts must have in common. */
const LEAST_SHARED = 0.85;
const DENIAL = /\b(?:not|no|never|without|cannot|stopped|former|formerly|except|\w+n['’]t)\b|[不没無无未非勿别莫]/giu;
const NUMBER = /\d+(?:[.,:/-]\d+)*/g;

/** Whether a text says what an entry says, as far as words tell. */
export function saysTheSame(text: string, entry: Pick<MemoryEntry, 'text'>): boolean {
  if (markedBy(text, DENIAL) !== markedBy(entry.text, DENIAL) || markedBy(text, NUMBER) !== markedBy(entry.text, NUMBER)) return false;
  return sharedWords(text, entry.text) >= LEAST_SHARED;
}

/** The text that says more, of two that say the same: the longer one, and of two of one length the first. */
export function fullerText(first: string, second: string): string {
  return second.length > first.length ? second : first;
}

/** What of a sort stands in a text, in no order. */
function markedBy(text: string, pattern: RegExp): string {
  return (text.toLowerCase().match(pattern) ?? []).sort().join(' ');
}

/** Share of the words that two texts have in common, from 0 to 1; 1 for two texts without words that are equal. */
function sharedWords(first: string, second: string): number {
  const [left, right] = [weightsOf(first), weightsOf(second)];
  let [shared, all] = [0, 0];
  for (const [term, weight] of left) {
    shared += right.has(term) ? 2 * weight : 0;
    all += weight;
  }
  for (const weight of right.values()) all += weight;
  if (all === 0) return first.trim() === second.trim() ? 1 : 0;
  return shared / all;
}

function weightsOf(text: string): ReadonlyMap<string, number> {
  return new Map(termsOf(text).map(({ text: term, weight }) => [term, weight]));
}
