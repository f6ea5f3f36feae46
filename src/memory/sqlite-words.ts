/**
 * SQLite words: the terms of a text as FTS5 is to see them, and questions about them.
 *
 * - FTS5 would cut texts in its own way, and Chinese not at all: it is given the terms of `terms.ts` instead, one of its
 *   tokens each, in letters and digits that no tokenizer touches.
 * - What says less has a column of its own, with a weight of its own: single characters, and concepts.
 */
import { conceptsOf } from './concepts.ts';
import { SimilarWords } from './similar-words.ts';
import { termsOf } from './terms.ts';

/** A text in three columns of tokens. */
export interface IndexedWords {
  /** Words, and pairs of characters. */
  readonly words: string;
  /** Single characters of scripts without spaces. */
  readonly characters: string;
  /** What everyday words mean. */
  readonly concepts: string;
}

/** How much the columns count, in the order of {@link IndexedWords}, as in the index of the other stores. */
export const COLUMN_WEIGHTS = '1.0, 0.25, 0.4';
/** How much a word counts that is only like one of the question. */
export const SIMILAR_WEIGHT = 0.3;

/** A word of this many letters may be like others; these begin as it does. */
const COMPARABLE_LENGTH = 4;
const BEGINNING = 2;

/** What stands in the index for a text. */
export function indexedWords(text: string): IndexedWords {
  const tokens = tokensOf(text);
  return { words: tokens.words.join(' '), characters: tokens.characters.join(' '), concepts: tokens.concepts.join(' ') };
}

/** A question for FTS5: any of the tokens of a text; undefined if it has none. */
export function matchAny(text: string): string | undefined {
  const tokens = tokensOf(text);
  const columns = Object.entries(tokens).flatMap(([column, all]) => (all.length === 0 ? [] : [`${column} : (${quoted(all)})`]));
  return columns.length === 0 ? undefined : columns.join(' OR ');
}

/** Ranges of tokens in which there may be words like those of a text. */
export function similarRanges(text: string): readonly { readonly from: string; readonly below: string }[] {
  const words = new Set(termsOf(text).flatMap(({ text: term, weight }) => (weight === 1 && term.length >= COMPARABLE_LENGTH ? [term] : [])));
  const beginnings = new Set([...words].map((word) => tokenOf(Array.from(word).slice(0, BEGINNING).join(''))));
  // No token has a sign behind `z`.
  return [...beginnings].map((from) => ({ from, below: `${from}{` }));
}

/** A question for FTS5: any of the tokens that are words like those of a text; undefined if none is. */
export function matchSimilar(text: string, tokens: readonly string[]): string | undefined {
  const similar = new SimilarWords();
  for (const token of tokens) similar.add(termOf(token));
  const asked = new Set(termsOf(text).map((term) => term.text));
  const found = new Set([...asked].flatMap((term) => similar.of(term).map(({ word }) => word)));
  const others = [...found].filter((word) => !asked.has(word)).map(tokenOf);
  return others.length === 0 ? undefined : `words : (${quoted(others)})`;
}

function tokensOf(text: string): { readonly [Column in keyof IndexedWords]: readonly string[] } {
  const terms = termsOf(text);
  return {
    words: terms.flatMap(({ text: term, weight }) => (weight === 1 ? [tokenOf(term)] : [])),
    characters: terms.flatMap(({ text: term, weight }) => (weight === 1 ? [] : [tokenOf(term)])),
    concepts: [...new Set(terms.flatMap(({ text: term }) => conceptsOf(term)))].map(String),
  };
}

function quoted(tokens: readonly string[]): string {
  return [...new Set(tokens)].map((token) => `"${token}"`).join(' OR ');
}

/** Whatever is no small letter or digit as its code between two `z`: what begins alike still does. */
function tokenOf(term: string): string {
  return term.replace(/[^a-y0-9]/gu, (character) => `z${(character.codePointAt(0) ?? 0).toString(16)}z`);
}

function termOf(token: string): string {
  return token.replace(/z([0-9a-f]+)z/g, (_whole, code: string) => String.fromCodePoint(Number.parseInt(code, 16)));
}
