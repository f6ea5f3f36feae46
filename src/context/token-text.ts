/**
 * Token text: how many tokens a text is likely to be, counted in one pass without a vocabulary.
 *
 * Tokenizers cut a text before they look anything up: words with the space before them, digits by three, runs of marks, white
 * space. This file cuts as o200k_base does and adds what a piece of that kind and length costs on average. Costs are
 * counted apart by {@link TOKEN_CLASSES | class}: tokenizers differ by class, and a calibration can learn each.
 *
 * - T1 Deterministic, and never less than 0. Time is linear in the text.
 * - T2 The sum over all classes is the estimate.
 */
import { isChinesePair } from './token-chinese.ts';
import { BEFORE, type Before, latinWordTokens } from './token-words.ts';

/** What tokens are counted apart by: Latin words, digits, marks and space, Chinese with its neighbours, all else, media. */
export const TOKEN_CLASSES = ['latin', 'digits', 'marks', 'cjk', 'scripts', 'media'] as const;

/** Tokens by class, in the order of {@link TOKEN_CLASSES}. */
export type TokenCounts = Float64Array;

/** Index of each class. */
export const LATIN = 0;
const DIGITS = 1;
/** Index of the class for marks, space and what frames messages. */
export const MARKS = 2;
const CJK = 3;
const SCRIPTS = 4;
/** Index of the class for media. */
export const MEDIA = 5;

/** No tokens. */
export function noTokens(): TokenCounts {
  return new Float64Array(TOKEN_CLASSES.length);
}

/** Tokens of all classes together. */
export function sumOf(counts: TokenCounts): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return sum;
}

// Kinds of characters, as far as the cutting goes.
const MARK = 0;
const LOWER = 1;
const UPPER = 2;
/** A letter of a script without cases, or of one where they do not matter here. */
const LETTER = 3;
const DIGIT = 4;
const SPACE = 5;
const NEWLINE = 6;

/** Adds the tokens of a text. */
export function addTextTokens(text: string, counts: TokenCounts): void {
  let index = 0;
  let before: Before = BEFORE.nothing;
  while (index < text.length) {
    const code = text.charCodeAt(index);
    const kind = kindOf(code);
    if (isLetter(kind)) {
      index = addWord({ text, start: index, before }, counts);
      before = BEFORE.letter;
    } else if (kind === DIGIT) {
      let end = index + 1;
      while (end < index + 3 && end < text.length && kindOf(text.charCodeAt(end)) === DIGIT) end += 1;
      add(counts, DIGITS, 1);
      index = end;
      before = BEFORE.digit;
    } else if (kind !== NEWLINE && isLetterAt(text, index + 1)) {
      index = addWord({ text, start: index + 1, before: code === 0x20 ? BEFORE.space : BEFORE.mark }, counts);
      before = BEFORE.letter;
    } else {
      const isSpaced = code === 0x20 && index + 1 < text.length && kindOf(text.charCodeAt(index + 1)) === MARK;
      index = kind === MARK || isSpaced ? addMarks(text, isSpaced ? index + 1 : index, counts) : addSpace(text, index, counts);
      before = BEFORE.nothing;
    }
  }
}

function add(counts: TokenCounts, kind: number, tokens: number): void {
  counts[kind] = (counts[kind] ?? 0) + tokens;
}

/** Adds the word that starts at an index. @returns The index behind it. */
function addWord({ text, start, before }: { readonly text: string; readonly start: number; readonly before: Before }, counts: TokenCounts): number {
  let end = start;
  let isLatin = true;
  let sawLower = false;
  // Capitals first, then small letters: `HTMLParser` is one piece, `camelCase` two.
  for (; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    const kind = kindOf(code);
    if (!isLetter(kind) || (kind === UPPER && sawLower)) break;
    if (kind === LOWER) sawLower = true;
    if (!isLatinLetter(code)) isLatin = false;
  }
  if (!isLatin) {
    addForeignWord({ text, start, end, isMarked: before === BEFORE.mark }, counts);
    return end;
  }
  const endingLength = endingLengthAt(text, end);
  add(counts, LATIN, latinWordTokens({ text, start, end, before, hasEnding: endingLength > 0 }));
  return end + endingLength;
}

/** Length of an ending such as `'s` or `'ll`, which tokenizers leave at the word. */
function endingLengthAt(text: string, index: number): number {
  if (text.charCodeAt(index) !== 0x27) return 0;
  return /^'(?:[stmd]|re|ve|ll)/i.exec(text.slice(index, index + 3))?.[0].length ?? 0;
}

interface ForeignWord {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** Whether a mark, not a space, stands before it and belongs to it. */
  readonly isMarked: boolean;
}

/** What a mark before a run of Chinese or its neighbours adds: it is seldom one token with it. */
const MARK_BEFORE_CJK = 0.53;
/** What a run adds, however long. */
const CJK_RUN = 0.285;
const CHINESE_PAIR = 0.905;
const CHINESE_CHARACTER = 0.97;
const KANA = 0.63;
const HANGUL = 0.69;
const LATIN_AMONG_OTHERS = 0.59;

/** Adds letters that are not all Latin. Scripts with words cost by length; scripts without by character. */
function addForeignWord({ text, start, end, isMarked }: ForeignWord, counts: TokenCounts): void {
  let cjk = 0;
  let latin = 0;
  let letters = 0;
  let script: Script | undefined;
  for (let index = start; index < end; index += 1) {
    const code = text.charCodeAt(index);
    if (code >= 0x3400 && code < 0xa000) {
      const isPair = index + 1 < end && isChinesePair(code, text.charCodeAt(index + 1));
      cjk += isPair ? CHINESE_PAIR : CHINESE_CHARACTER;
      if (isPair) index += 1;
    } else if (isHangul(code)) cjk += HANGUL;
    else if (isCjk(code)) cjk += KANA;
    else if (isLatinLetter(code)) latin += LATIN_AMONG_OTHERS;
    else {
      script ??= scriptOf(code);
      letters += 1;
    }
  }
  if (cjk > 0) cjk += isMarked ? MARK_BEFORE_CJK + CJK_RUN : CJK_RUN;
  if (script !== undefined) add(counts, SCRIPTS, 1 + Math.max(0, script.perLetter * (letters - script.free)));
  add(counts, CJK, cjk > 0 ? Math.max(1, cjk) : 0);
  add(counts, LATIN, latin);
}

/** What a word of a script costs: one token up to so many letters, then more by letter. */
interface Script {
  /** The last code of the script. */
  readonly until: number;
  readonly free: number;
  readonly perLetter: number;
}

/** By code, in ascending order. Measured with o200k_base on manuals and messages of programs. */
const SCRIPT_COSTS: readonly Script[] = [
  // Greek and what stands before it.
  { until: 0x3ff, free: 2, perLetter: 0.38 },
  // Cyrillic.
  { until: 0x52f, free: 2, perLetter: 0.22 },
  // Armenian and Hebrew.
  { until: 0x5ff, free: 1, perLetter: 0.36 },
  // Arabic.
  { until: 0x77f, free: 3, perLetter: 0.34 },
  // The scripts of India.
  { until: 0xdff, free: 2, perLetter: 0.34 },
  // Thai, Lao and their neighbours.
  { until: 0xfff, free: 3, perLetter: 0.72 },
];
const OTHER_SCRIPT: Script = { until: 0xffff, free: 1, perLetter: 0.8 };

function scriptOf(code: number): Script {
  return SCRIPT_COSTS.find(({ until }) => code <= until) ?? OTHER_SCRIPT;
}

/** Tokens of a run of marks by how often they change in it: `":` is as cheap as a word, `)}/>` is not. */
const BY_CHANGES = [1, 1.1, 1.3, 1.8, 2.3, 2.8, 3.5];
/** The same for the marks of JSON alone: what stands between a key and a value is a token of its own. */
const JSON_BY_CHANGES = [1, 1, 1.01, 1.4, 1.7, 2.7, 3.1];
const JSON_MARKS: ReadonlySet<number> = new Set(Array.from('",:{}[]', (mark) => mark.charCodeAt(0)));
const MORE_CHANGES = 0.65;
/** A drawn line of up to so many equal marks is one token. */
const LINE_LENGTHS = [4, 17, 80];
const LINE_TOKENS = [0.4, 0.9, 1];
const BOX = 0.47;
const EMOJI = 1.55;
const WIDE_MARK = 0.92;

/** Adds a run of marks and the line breaks behind it. @returns The index behind. */
function addMarks(text: string, start: number, counts: TokenCounts): number {
  let changes = -1;
  let equal = 0;
  let other = 0;
  let last = -1;
  let isJson = true;
  let index = start;
  for (; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (kindOf(code) !== MARK) break;
    if (code >= 0x80 || code < 0x20) {
      other += otherMarkTokens(code);
      continue;
    }
    if (code === last) equal += 1;
    else changes += 1;
    if (isJson && !JSON_MARKS.has(code)) isJson = false;
    last = code;
  }
  add(counts, MARKS, Math.max(1, other + (changes < 0 ? 0 : asciiMarkTokens(isJson ? JSON_BY_CHANGES : BY_CHANGES, changes, equal))));
  while (index < text.length && kindOf(text.charCodeAt(index)) === NEWLINE) index += 1;
  return index;
}

function asciiMarkTokens(byChanges: readonly number[], changes: number, equal: number): number {
  const most = byChanges.length - 1;
  const base = (byChanges[Math.min(changes, most)] ?? 0) + Math.max(0, changes - most) * MORE_CHANGES;
  return LINE_LENGTHS.reduce((sum, length, index) => (equal >= length ? sum + (LINE_TOKENS[index] ?? 0) : sum), base + (equal > 160 ? equal / 80 - 2 : 0));
}

/** Tokens of a mark beyond ASCII, or of a control character. */
function otherMarkTokens(code: number): number {
  if (code >= 0x2500 && code < 0x25a0) return BOX;
  // Two of these are one sign.
  if (code >= 0xd800 && code < 0xe000) return EMOJI / 2;
  return WIDE_MARK;
}

/** A run of spaces is one token up to about this length. */
const LONGEST_SPACE = 80;

/** Adds white space: one token up to the last line break, one for what indents the next word. @returns The index behind. */
function addSpace(text: string, start: number, counts: TokenCounts): number {
  let end = start;
  let lastBreak = -1;
  for (; end < text.length; end += 1) {
    const kind = kindOf(text.charCodeAt(end));
    if (kind === NEWLINE) lastBreak = end;
    else if (kind !== SPACE) break;
  }
  // A space before a word or a mark belongs to it, unless it is the only one left: then it stands for itself.
  const next = lastBreak >= 0 ? lastBreak + 1 : end - start > 1 && end < text.length ? end - 1 : end;
  add(counts, MARKS, Math.ceil((next - start) / LONGEST_SPACE));
  return next;
}

const ASCII_KINDS = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code >= 97 && code <= 122) return LOWER;
  if (code >= 65 && code <= 90) return UPPER;
  if (code >= 48 && code <= 57) return DIGIT;
  if (code === 0x0a || code === 0x0d) return NEWLINE;
  return code === 0x20 || (code >= 0x09 && code <= 0x0c) ? SPACE : MARK;
});

function kindOf(code: number): number {
  if (code < 0x80) return ASCII_KINDS[code] ?? MARK;
  if (code < 0x250) {
    if (code === 0xa0) return SPACE;
    if (code < 0xc0) return code === 0xaa || code === 0xb5 || code === 0xba ? LOWER : MARK;
    if (code === 0xd7 || code === 0xf7) return MARK;
    return code < 0xdf ? UPPER : LOWER;
  }
  if (code < 0x2000) return LETTER;
  if (code < 0x2c00) return code <= 0x200a || code === 0x2028 || code === 0x2029 ? SPACE : MARK;
  if (code < 0x3040) return code === 0x3000 ? SPACE : code === 0x3005 || code < 0x2e00 ? LETTER : MARK;
  if (code < 0xd800) return code >= 0x3190 && code < 0x3400 && (code < 0x31f0 || code > 0x31ff) ? MARK : LETTER;
  if (code < 0xf900) return MARK;
  if (code < 0xfe00) return LETTER;
  if (code < 0xff00) return code >= 0xfe70 && code < 0xfeff ? LETTER : MARK;
  return isWideLetter(code) ? LETTER : MARK;
}

function isWideLetter(code: number): boolean {
  return (code >= 0xff21 && code <= 0xff3a) || (code >= 0xff41 && code <= 0xff5a) || (code >= 0xff66 && code <= 0xffdc);
}

function isLetter(kind: number): boolean {
  return kind === LOWER || kind === UPPER || kind === LETTER;
}

function isLetterAt(text: string, index: number): boolean {
  return index < text.length && isLetter(kindOf(text.charCodeAt(index)));
}

function isLatinLetter(code: number): boolean {
  return code < 0x250 || (code >= 0x1e00 && code < 0x1f00);
}

function isHangul(code: number): boolean {
  return (code >= 0xac00 && code < 0xd7b0) || (code >= 0x1100 && code < 0x1200);
}

/** Kana, rare Chinese characters, and letters of full width. */
function isCjk(code: number): boolean {
  return (code >= 0x3005 && code < 0x3400) || (code >= 0xf900 && code < 0xfb00) || code >= 0xff00;
}
