/** Token marks: how many tokens a run of punctuation and symbols is. The figures are means over many texts, with o200k_base. */

/** Tokens of a run of marks by how often they change in it: `":` is as cheap as a word, `)}/>` is not. */
const BY_CHANGES = [1, 1.1, 1.3, 1.8, 2.3, 2.8, 3.5];
/** The same for the marks of JSON alone: what stands between a key and a value is a token of its own. */
const JSON_BY_CHANGES = [1, 1, 1.01, 1.4, 1.7, 2.7, 3.1];
const JSON_MARKS: ReadonlySet<number> = new Set(Array.from('",:{}[]', (mark) => mark.charCodeAt(0)));
const MORE_CHANGES = 0.65;
/** What so many repeats of a mark add: drawn lines are few tokens. */
const REPEATS = [
  { from: 4, tokens: 0.4 },
  { from: 17, tokens: 0.9 },
  { from: 80, tokens: 1 },
] as const;
/** From two lines of this length on, each more is a token. */
const LONGEST_LINE = 80;
const BOX = 0.47;
const EMOJI = 1.55;
const WIDE_MARK = 0.92;

/** Tokens of the marks between two indices. */
export function markTokens(text: string, start: number, end: number): number {
  let changes = -1;
  let equal = 0;
  let other = 0;
  let last = -1;
  let isJson = true;
  for (let index = start; index < end; index += 1) {
    const code = text.charCodeAt(index);
    if (code >= 0x80 || code < 0x20) {
      other += otherMarkTokens(code);
      continue;
    }
    if (code === last) equal += 1;
    else changes += 1;
    if (!JSON_MARKS.has(code)) isJson = false;
    last = code;
  }
  return Math.max(1, other + (changes < 0 ? 0 : asciiMarkTokens(isJson ? JSON_BY_CHANGES : BY_CHANGES, changes, equal)));
}

function asciiMarkTokens(byChanges: readonly number[], changes: number, equal: number): number {
  const most = byChanges.length - 1;
  const base = (byChanges[Math.min(changes, most)] ?? 0) + Math.max(0, changes - most) * MORE_CHANGES;
  const repeats = REPEATS.reduce((sum, { from, tokens }) => (equal >= from ? sum + tokens : sum), 0);
  return base + repeats + Math.max(0, equal / LONGEST_LINE - 2);
}

/** Tokens of a mark beyond ASCII, or of a control character. */
function otherMarkTokens(code: number): number {
  if (code >= 0x2500 && code < 0x25a0) return BOX;
  // Two of these are one sign.
  if (code >= 0xd800 && code < 0xe000) return EMOJI / 2;
  return WIDE_MARK;
}
