/**
 * Elide text: the beginning and the end of a text, with a mark that says how much is missing between.
 *
 * - A pair of surrogates is never cut.
 * - There is one mark at most: a text that has one is cut around it, and the mark counts both cuts.
 */

/** What stands in the place of characters left out, here or in a text that was folded. Its form is fixed, so that it is known again. */
const MARK = /\n?\[… (\d+) characters(?: \(\d+ lines?\))? left out …\]\n/;
/** Share of the room that goes to the beginning: what a text is about stands there. */
const HEAD_SHARE = 0.6;
/** Shrinking goes on until an estimate fits; each round at least by this. */
const ROUND = 0.95;

/** The first characters of a text, at most `length`. */
export function headOf(text: string, length: number): string {
  const end = Math.max(0, Math.min(length, text.length));
  return text.slice(0, isHighSurrogate(text, end - 1) && end < text.length ? end - 1 : end);
}

/** The last characters of a text, at most `length`. */
export function tailOf(text: string, length: number): string {
  const start = Math.max(0, text.length - Math.max(0, length));
  return text.slice(start > 0 && isHighSurrogate(text, start - 1) ? start + 1 : start);
}

function isHighSurrogate(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  return code >= 0xd800 && code <= 0xdbff;
}

/**
 * A text cut down to about `length` characters, the mark aside; itself if it is no longer than that.
 *
 * @param length - Characters kept; 0 keeps the mark alone.
 */
export function elideText(text: string, length: number): string {
  const { before, after, missing } = split(text);
  if (before.length + after.length <= length) return text;
  const headLength = Math.ceil(length * HEAD_SHARE);
  // Around a mark the two sides may be of any length: what one does not need the other gets.
  const head = headOf(before, Math.max(headLength, length - after.length));
  const tail = tailOf(after, length - head.length);
  const left = missing + before.length + after.length - head.length - tail.length;
  return `${head}\n[… ${left} characters left out …]\n${tail}`;
}

/** The two sides of a text's mark; of a text without one both are the same text, cut where the beginning ends. */
function split(text: string): { readonly before: string; readonly after: string; readonly missing: number } {
  const found = MARK.exec(text);
  if (found === null) {
    const before = headOf(text, Math.ceil(text.length * HEAD_SHARE));
    return { before, after: text.slice(before.length), missing: 0 };
  }
  return {
    before: text.slice(0, found.index),
    after: text.slice(found.index + found[0].length),
    missing: Number(found[1]),
  };
}

/**
 * A text cut down to a number of tokens; undefined if not even the mark fits.
 *
 * @param estimate - Tokens of a text.
 */
export function elideToTokens(text: string, tokens: number, estimate: (text: string) => number): string | undefined {
  let current = text;
  let length = text.length;
  for (let size = estimate(current); size > tokens; size = estimate(current)) {
    if (length === 0) return undefined;
    length = Math.floor(length * Math.min(ROUND, tokens / size));
    current = elideText(text, length);
  }
  return current;
}
