/**
 * Near duplicates: when two entries say the same in slightly different words, so that one of them is enough.
 *
 * Strict, since merging what only looks alike loses a fact: all words of one stand in the other, which has few more, and
 * numbers and denials are the same. One word that differs is another person, day or place.
 */
import type { MemoryEntry } from './memory-store.ts';
import { termsOf } from './terms.ts';

/** Share of the words, by weight, that two texts must have in common: the fuller one may add a little. */
const LEAST_SHARED = 0.7;
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

/** Share of the words that two texts have in common, from 0 to 1; 0 unless one has all words of the other. */
function sharedWords(first: string, second: string): number {
  const [left, right] = [weightsOf(first), weightsOf(second)];
  const [fewer, more] = left.size <= right.size ? [left, right] : [right, left];
  if (fewer.size === 0) return first.trim() === second.trim() ? 1 : 0;
  if ([...fewer.keys()].some((term) => !more.has(term))) return 0;
  const shared = sum(fewer.values());
  return (2 * shared) / (shared + sum(more.values()));
}

function weightsOf(text: string): ReadonlyMap<string, number> {
  return new Map(termsOf(text).map(({ text: term, weight }) => [term, weight]));
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
