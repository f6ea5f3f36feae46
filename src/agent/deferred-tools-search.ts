/**
 * Deferred tools, search: which of many tools a few words are about.
 *
 * By words over names and descriptions, names first; a word that few tools have counts for more. No model, no state: the
 * same words find the same tools, those of equal rank in the host's order.
 */
import type { AnyTool } from '../core/tool.ts';

/** Tools that can be searched. */
export interface ToolSearch {
  /** The tools that the words are about, best first; a tool named in full comes before all others. */
  find(query: string, limit: number): readonly AnyTool[];
}

/** How well a word of the query fits one of a tool; the ranks of a name are doubled. */
const EQUAL = 4;
const BEGINNING = 2;
const INSIDE = 1;
/** Shorter words stand inside of too many others by chance. */
const MIN_PARTIAL = 3;

interface IndexedTool {
  readonly tool: AnyTool;
  readonly name: readonly string[];
  readonly description: readonly string[];
}

/** Makes tools searchable. */
export function createToolSearch(tools: readonly AnyTool[]): ToolSearch {
  const indexed = tools.map((tool): IndexedTool => ({ tool, name: unique(tool.name), description: unique(tool.description) }));
  return {
    find: (query, limit) => {
      const scores = new Map<IndexedTool, number>();
      for (const word of unique(query)) {
        const ranks = indexed.map((one): readonly [IndexedTool, number] => [one, rankOf(one, word)]);
        const hits = ranks.filter(([, rank]) => rank > 0);
        const rarity = Math.log(1 + indexed.length / Math.max(1, hits.length));
        for (const [one, rank] of hits) scores.set(one, (scores.get(one) ?? 0) + rank * rarity);
      }
      const named = query.trim();
      const byRank = indexed.flatMap((one): (readonly [AnyTool, number])[] => {
        const score = one.tool.name === named ? Infinity : scores.get(one);
        return score === undefined ? [] : [[one.tool, score]];
      });
      return byRank
        .sort(([, left], [, right]) => (left === right ? 0 : right - left))
        .slice(0, limit)
        .map(([tool]) => tool);
    },
  };
}

function rankOf({ name, description }: IndexedTool, word: string): number {
  return Math.max(2 * bestFit(name, word), bestFit(description, word));
}

function bestFit(words: readonly string[], word: string): number {
  let best = 0;
  for (const other of words) best = Math.max(best, fit(other, word));
  return best;
}

function fit(other: string, word: string): number {
  if (other === word) return EQUAL;
  const [short, long] = other.length < word.length ? [other, word] : [word, other];
  if (short.length < MIN_PARTIAL) return 0;
  // `file` and `files`, `read` and `readable`.
  if (long.startsWith(short)) return BEGINNING;
  return other.includes(word) ? INSIDE : 0;
}

const WORD = /\p{Script=Han}+|(?:(?!\p{Script=Han})[\p{L}\p{N}])+/gu;
const HAN = /^\p{Script=Han}/u;

function unique(text: string): readonly string[] {
  return [...new Set(wordsOf(text))];
}

/** Words in small letters: parts of names apart, and pairs of characters where a script has no spaces. */
function wordsOf(text: string): readonly string[] {
  const spaced = text.replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2').toLowerCase();
  return (spaced.match(WORD) ?? []).flatMap((word) => {
    const letters = Array.from(word);
    if (!HAN.test(word) || letters.length < 2) return [word];
    return letters.slice(1).map((letter, index) => `${letters[index] ?? ''}${letter}`);
  });
}
