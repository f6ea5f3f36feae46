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
import { DIGIT, isCjk, isHangul, isLatinLetter, isLetter, isOtherCyrillic, kindOf, LOWER, MARK, NEWLINE, SPACE, UPPER } from './token-characters.ts';
import { isChinesePair } from './token-chinese.ts';
import { markTokens } from './token-marks.ts';
import { BEFORE, type Before, latinWordTokens } from './token-words.ts';

/** What tokens are counted apart by: Latin words, digits, marks and space, Chinese with its neighbours, all else, media. */
export const TOKEN_CLASSES = ['latin', 'digits', 'marks', 'cjk', 'scripts', 'media'] as const;

/** Tokens by class, in the order of {@link TOKEN_CLASSES}. */
export type TokenCounts = Float64Array;

// Index of each class.
const LATIN = 0;
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
/** What a letter such as the Ukrainian `ї` adds: words of other languages than Russian are less often whole tokens. */
const OTHER_CYRILLIC = 0.8;

/** Adds letters that are not all Latin. Scripts with words cost by length; scripts without by character. */
function addForeignWord({ text, start, end, isMarked }: ForeignWord, counts: TokenCounts): void {
  let cjk = 0;
  let latin = 0;
  let letters = 0;
  let rare = 0;
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
      if (isOtherCyrillic(code)) rare += OTHER_CYRILLIC;
    }
  }
  if (cjk > 0) cjk += isMarked ? MARK_BEFORE_CJK + CJK_RUN : CJK_RUN;
  if (script !== undefined) add(counts, SCRIPTS, 1 + Math.max(0, script.perLetter * (letters - script.free)) + rare);
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
  // Cyrillic, the letters of Russian.
  { until: 0x52f, free: 2, perLetter: 0.19 },
  // Armenian and Hebrew.
  { until: 0x5ff, free: 1, perLetter: 0.36 },
  // Arabic.
  { until: 0x77f, free: 3, perLetter: 0.34 },
  // The scripts of India.
  { until: 0xdff, free: 2, perLetter: 0.34 },
  // Thai.
  { until: 0xe7f, free: 2, perLetter: 0.42 },
  // Lao and its neighbours.
  { until: 0x109f, free: 3, perLetter: 0.72 },
  // Georgian.
  { until: 0x10ff, free: 1, perLetter: 0.27 },
];
const OTHER_SCRIPT: Script = { until: 0xffff, free: 1, perLetter: 0.8 };

function scriptOf(code: number): Script {
  return SCRIPT_COSTS.find(({ until }) => code <= until) ?? OTHER_SCRIPT;
}

/** Adds a run of marks and the line breaks behind it. @returns The index behind. */
function addMarks(text: string, start: number, counts: TokenCounts): number {
  let end = start;
  while (end < text.length && kindOf(text.charCodeAt(end)) === MARK) end += 1;
  add(counts, MARKS, markTokens(text, start, end));
  while (end < text.length && kindOf(text.charCodeAt(end)) === NEWLINE) end += 1;
  return end;
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

function isLetterAt(text: string, index: number): boolean {
  return index < text.length && isLetter(kindOf(text.charCodeAt(index)));
}
