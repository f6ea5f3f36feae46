/**
 * SQLite words: the words of texts in an index of FTS5, scored as in the index of the other stores.
 *
 * - FTS5 would cut texts in its own way, and Chinese not at all: it is given the terms of `text-index.ts` instead, one of its
 *   tokens each, in letters and digits that no tokenizer touches.
 * - It keeps which entries have which terms. How well they fit is reckoned as `text-index.ts` does, so that every store gives
 *   the same figures; only words like those of a question are looked for among those that begin alike.
 */
import { SimilarWords } from './similar-words.ts';
import type { SqlRow, SqlStatement, SqlValue } from '../sqlite/sql-database.ts';
import { countTerms, LENGTH_SHARE, rarityOf, SATURATION, SIMILAR_WEIGHT } from './text-index.ts';

/** Makes what is not there yet. */
export const WORD_TABLES: readonly string[] = [
  `CREATE VIRTUAL TABLE IF NOT EXISTS turnloop_memory_words USING fts5(words, tokenize = 'ascii')`,
  `CREATE VIRTUAL TABLE IF NOT EXISTS turnloop_memory_vocabulary USING fts5vocab('turnloop_memory_words', 'row')`,
  `CREATE VIRTUAL TABLE IF NOT EXISTS turnloop_memory_postings USING fts5vocab('turnloop_memory_words', 'instance')`,
];

/** How many letters two words that are alike begin with in common. */
const BEGINNING = 2;

/** A text as the index has it. */
export interface IndexedWords {
  /** Its tokens. */
  readonly tokens: string;
  /** How long it is, for scores. */
  readonly length: number;
}

/** What stands in the index for a text. */
export function indexedWords(text: string): IndexedWords {
  const tokens: string[] = [];
  let length = 0;
  for (const [term, { count, weight }] of countTerms(text)) {
    length += count * weight;
    for (let time = 0; time < count; time += 1) tokens.push(tokenOf(term));
  }
  return { tokens: tokens.join(' '), length };
}

/** Which of the terms of a text, and of those that begin alike, the index has, and how many entries have each. */
export function selectVocabulary(text: string): SqlStatement {
  const terms = [...countTerms(text).keys()];
  const beginnings = terms.map((term) => tokenOf(Array.from(term).slice(0, BEGINNING).join('')));
  // The bracket stands behind all letters.
  const ranges = [...new Set(beginnings)].map((from) => ({ from, below: `${from}{` }));
  return {
    sql: `SELECT DISTINCT term, doc FROM json_each(?) AS range CROSS JOIN turnloop_memory_vocabulary
      ON term >= range.value ->> 'from' AND term < range.value ->> 'below'`,
    args: [JSON.stringify(ranges)],
  };
}

/** What all entries come to. */
export interface WordTotals {
  /** How many there are. */
  readonly entries: number;
  /** The sum of their lengths. */
  readonly length: number;
}

/** A term that is looked for. */
interface AskedTerm {
  /** Which term of the question it stands for: of several, the best counts. */
  readonly ask: number;
  readonly token: string;
  /** How much it counts, rarity included. */
  readonly weight: number;
}

/** The terms of a text, and those like them, as far as the index has them. @param vocabulary - Rows of {@link selectVocabulary}. */
export function askedTerms(text: string, vocabulary: readonly SqlRow[], { entries }: WordTotals): readonly AskedTerm[] {
  const similar = new SimilarWords();
  const having = new Map(vocabulary.map((row) => [termOf(String(row['term'])), Number(row['doc'])]));
  for (const term of having.keys()) similar.add(term);
  return [...countTerms(text)].flatMap(([term, { weight }], ask) =>
    [{ word: term, share: 1 }, ...similar.of(term).map(({ word, likeness }) => ({ word, share: likeness * SIMILAR_WEIGHT }))].flatMap(({ word, share }) => {
      const count = having.get(word);
      return count === undefined ? [] : [{ ask, token: tokenOf(word), weight: weight * share * rarityOf(count, entries) }];
    }),
  );
}

/** The `number` of each entry that has one of the terms, and its `score`: SQL, to be put into other SQL. */
export function selectScores(asked: readonly AskedTerm[], { entries, length }: WordTotals): { readonly sql: string; readonly args: readonly SqlValue[] } {
  const average = entries === 0 ? 1 : length / entries;
  return {
    sql: `SELECT number, sum(score) AS score FROM (
      SELECT number, max(weight * count * ${SATURATION + 1} / (count + ${SATURATION} * (${1 - LENGTH_SHARE} + ${LENGTH_SHARE} * length / ?))) AS score
      FROM (SELECT asked.value ->> 'ask' AS ask, asked.value ->> 'weight' AS weight, doc AS number, count(*) AS count
        FROM json_each(?) AS asked CROSS JOIN turnloop_memory_postings ON term = asked.value ->> 'token' GROUP BY ask, term, doc)
      JOIN turnloop_memories USING (number) GROUP BY ask, number) GROUP BY number`,
    args: [average, JSON.stringify(asked)],
  };
}

/** Whatever is no small letter or digit as its code between two `z`: what begins alike still does. */
function tokenOf(term: string): string {
  return term.replace(/[^a-y0-9]/gu, (character) => `z${(character.codePointAt(0) ?? 0).toString(16)}z`);
}

function termOf(token: string): string {
  return token.replace(/z([0-9a-f]+)z/g, (_whole, code: string) => String.fromCodePoint(Number.parseInt(code, 16)));
}
