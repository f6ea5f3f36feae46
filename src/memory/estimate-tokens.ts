/** Estimate tokens: about how many tokens a short text costs, rather too many than too few. */

/** Letters of one token in words that are common, and digits of one token in numbers. */
const LETTERS_PER_TOKEN = 6;
const DIGITS_PER_TOKEN = 3;
/** Letters of other alphabets come in shorter pieces. */
const OTHER_LETTERS_PER_TOKEN = 3;

const PIECES = /(?<latin>[A-Za-z]+)|(?<digits>\d+)|(?<ideograph>[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}])|(?<letters>[\p{L}\p{M}]+)|(?<other>[^\s]|\n)/gu;

/** Tokens of a text: whole, 0 for an empty one. */
export function estimateTokens(text: string): number {
  let tokens = 0;
  for (const { 0: piece, groups = {} } of text.matchAll(PIECES)) {
    if (groups['latin'] !== undefined) tokens += Math.ceil(piece.length / LETTERS_PER_TOKEN);
    else if (groups['digits'] !== undefined) tokens += Math.ceil(piece.length / DIGITS_PER_TOKEN);
    else if (groups['letters'] !== undefined) tokens += Math.ceil(piece.length / OTHER_LETTERS_PER_TOKEN);
    else tokens += groups['ideograph'] === undefined && piece.length > 1 ? 3 : 1;
  }
  return tokens;
}
