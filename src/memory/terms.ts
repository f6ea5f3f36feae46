/**
 * Terms: the words of a text as a search sees them. Whatever compares texts by their words does it over these.
 *
 * - Equal for what people take as equal: case, width, accents, the usual endings of English, and the ways to write an
 *   identifier (`fooBar`, `foo_bar`, `foo-bar`).
 * - Scripts without spaces between words give pairs of characters, and single ones, which say less. Dictionaries of the
 *   platform would cut words better, but differently from version to version, so that what was indexed would not be found.
 * - Words that stand in any sentence are left out.
 */
import { stemOf } from './stem.ts';
import { isFillerPair, isStopCharacter, isStopWord } from './stop-words.ts';

/** A word of a text, or a piece of one. */
export interface Term {
  /** In the form in which it is compared. */
  readonly text: string;
  /** How much it says, from above 0 to 1: a whole word is 1. */
  readonly weight: number;
}

/** Single characters of a script without spaces: many words share one. */
const CHARACTER_WEIGHT = 0.25;

/** Longer words are keys, hashes or base64: their beginning tells them apart. */
const MAX_WORD = 64;

const UNSPACED = '\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}';
/** A run of a script without spaces (Korean has some, and endings that pairs see through), or an identifier. */
const RUN = new RegExp(`(?<unspaced>[${UNSPACED}\\u30fc\\u3005]+)|(?:(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}])+(?:['’_-](?:(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}])+)*`, 'gu');
/** Where a part of an identifier ends: `fooBar`, `HTTPServer`, `node20`. */
const PART = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})|(?<=\p{N})(?=\p{L})|(?<=\p{L})(?=\p{N})/u;
const JOINT = /[_-]/u;
const POSSESSIVE = /['’]s$/iu;
const APOSTROPHE = /['’]/gu;
const ACCENT = /[\u0300-\u036f]/gu;

/** The terms of a text in their order; one that stands there twice comes twice. */
export function termsOf(text: string): readonly Term[] {
  const terms: Term[] = [];
  const plain = text.normalize('NFKD').replace(ACCENT, '').normalize('NFC');
  for (const match of plain.matchAll(RUN)) {
    if (match.groups?.['unspaced'] === undefined) pushWords(terms, match[0]);
    else pushCharacters(terms, Array.from(match[0]));
  }
  return terms;
}

function pushWords(terms: Term[], run: string): void {
  const identifier = run.replace(POSSESSIVE, '').replace(APOSTROPHE, '');
  const parts = identifier.split(JOINT).flatMap((piece) => piece.split(PART));
  for (const part of parts) pushWord(terms, part);
  // The whole as well: `e-mail` is `email`, and `fooBar` more than a foo and a bar.
  if (parts.length > 1) pushWord(terms, parts.join(''));
}

function pushWord(terms: Term[], word: string): void {
  const lower = word.toLowerCase();
  if (lower === '' || isStopWord(lower)) return;
  terms.push({ text: stemOf(lower.slice(0, MAX_WORD)), weight: 1 });
}

function pushCharacters(terms: Term[], characters: readonly string[]): void {
  for (const [index, character] of characters.entries()) {
    if (!isStopCharacter(character)) terms.push({ text: character, weight: CHARACTER_WEIGHT });
    const next = characters[index + 1];
    if (next !== undefined && !isFillerPair(character, next)) terms.push({ text: character + next, weight: 1 });
  }
}
