/**
 * Token characters: what kind of character a code stands for, as far as tokenizers ask when they cut a text. Ranges are
 * rounded where a script has few users: a letter taken for a mark costs about the same.
 */

// Kinds of characters.
/** Punctuation, symbols, control characters. */
export const MARK = 0;
/** A small letter. */
export const LOWER = 1;
/** A capital. */
export const UPPER = 2;
/** A letter of a script without cases, or of one where they do not matter here. */
const LETTER = 3;
/** A digit from 0 to 9. */
export const DIGIT = 4;
/** White space within a line. */
export const SPACE = 5;
/** A line break. */
export const NEWLINE = 6;

const ASCII_KINDS = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code >= 97 && code <= 122) return LOWER;
  if (code >= 65 && code <= 90) return UPPER;
  if (code >= 48 && code <= 57) return DIGIT;
  if (code === 0x0a || code === 0x0d) return NEWLINE;
  return code === 0x20 || (code >= 0x09 && code <= 0x0c) ? SPACE : MARK;
});

/** Kind of the character with this code. Halves of a pair, such as those of an emoji, are marks. */
export function kindOf(code: number): number {
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

/** True for the kinds of letters. */
export function isLetter(kind: number): boolean {
  return kind === LOWER || kind === UPPER || kind === LETTER;
}

/** True for Latin letters, with and without accents, given that it is a letter. */
export function isLatinLetter(code: number): boolean {
  return code < 0x250 || (code >= 0x1e00 && code < 0x1f00);
}

/** True for the letters of Korean. */
export function isHangul(code: number): boolean {
  return (code >= 0xac00 && code < 0xd7b0) || (code >= 0x1100 && code < 0x1200);
}

/** Kana, rare Chinese characters, and letters of full width. */
export function isCjk(code: number): boolean {
  return (code >= 0x3005 && code < 0x3400) || (code >= 0xf900 && code < 0xfb00) || code >= 0xff00;
}

/** True for the letters of Cyrillic that Russian does not have. */
export function isOtherCyrillic(code: number): boolean {
  return code >= 0x400 && code < 0x530 && (code < 0x410 || code > 0x44f) && code !== 0x401 && code !== 0x451;
}
