/**
 * Token words: how many tokens a word in Latin letters is, guessed from its letters.
 *
 * Tokenizers of today keep a common word whole and cut a rare one where letters seldom stand together. So a word is one
 * token and some more, by its length, by what stands before it, and by each pair of neighbouring letters. The figures were
 * fitted to o200k_base on English prose, mail, manuals, source code of a dozen languages, JSON, logs and listings, and
 * with less weight on eight other European languages; a calibration does the rest for other tokenizers.
 */

/** What stands before a word; of the two marks, a space counts apart as most words have it. */
export const BEFORE = { nothing: 0, space: 1, digit: 2, letter: 3, mark: 4 } as const;

/** One of {@link BEFORE}. */
export type Before = (typeof BEFORE)[keyof typeof BEFORE];

/** What a length adds to the score of a word, from 0 letters to 16 and more. */
const BY_LENGTH = [0.0, -6.16, -4.49, -3.13, -2.56, -1.83, -1.25, -0.64, 0.22, 0.85, 1.47, 2.08, 2.63, 2.86, 3.65, 3.81, 5.19];
/** By what stands before the word. */
const BY_BEFORE = [0.48, -0.45, 1.02, -0.25, 1.88];
/** All small, one capital, several capitals. */
const BY_CAPITALS = [0.12, 0.84, 1.74];
/** A word with an ending such as `'s`. */
const BY_ENDING = 2.31;

/**
 * What a pair of neighbours adds: a row for the first letter, a column for the second, each from a to z, then the edge
 * of the word, then any letter with an accent. The code of a character less 60, in twentieths.
 */
const PAIRS: readonly string[] = [
  'M@64Z@.I<CH065V5Q.80C<?57?D@',
  'BONT3WZIB(A1S]5WJ?BM1KH^EWBP',
  ':QAP1VQ37^06VY7RH9J39]OM@G>O',
  '@LXF<PH]:G=ICL=MID?GBFFBG;4L',
  '7H45A7?KGKP;<6>:)53:N:71BI.C',
  '>PUS:;5P3FHHNA2MG7]C;LUI6L<G',
  'GNRX8PE-<GO<O?;rL8>HA<]GA38W',
  ';E<W7OJO9IHOD>4CEK]#AK]GMH:H',
  '<;55865NAEF7A3$6G=85NCTGS6KC',
  '?OSG<QRDMJ7XTA:EBJ=U:LFMHIO-',
  'AL6B;KDDDBINU@MNJRCD@R=IQL:=',
  ';5c551ML7GS@M737I:@;6CAc0a7H',
  '53Pa-O@c8aT?;T:2@PDU?NKOSJ6B',
  'BT72=B3H?BCCF=?HUN62=>LEIH6@',
  '89<:E+8M?.0<:/>7O/H<3>-JFADT',
  '@QL<7ML?ERV8?N0=K7O>7EDD@K?J',
  'BEENMJLJFBN)LSJF>>XK+IOIJGX<',
  '7QB8786D7EDK?04[D??=@DOJ5C6I',
  'GX:J77L;:PBULD<@T865:O?O?D6K',
  ';a@S8BP$8PHJCG55I:?A=N21+H1E',
  ':<7<7>AVBJG-67N7I.83PFHIGLHL',
  '4JWM2N@I7GGFQT<<ILWNIOHRYD?L',
  '<RVC7V]45FL>R/0MH;ASWO//QT?E',
  ':@:GOJJ/GHGOBJS=B]PDJQK7=T9N',
  'G>VNSLXS>DIC<61<II44^D:HG?1F',
  '>IHG?IUJPDLVTAXDDINL=L:>KAFC',
  '8<72:>A<9@A<=8>4L=5;<C8S7P<P',
  'ECEQO9H>ISEFPD6R7DCKGMF=RPR;',
];
const EDGE = 26;
const ACCENTED = 27;
const LETTERS = 28;
const PAIR_SCORES = Float64Array.from(PAIRS.join(''), (mark) => (mark.charCodeAt(0) - 60) / 20);

/** Longer than any word: what goes on without a break is data, of which no token has more than about four letters. */
const LONGEST_WORD = 32;
const LETTERS_OF_DATA = 4;

/** A word in a text: letters of the Latin script only. */
export interface LatinWord {
  /** The text around it. */
  readonly text: string;
  /** Index of its first letter. */
  readonly start: number;
  /** Index behind its last letter. */
  readonly end: number;
  /** What stands before it. */
  readonly before: Before;
  /** Whether an ending such as `'s` or `'ll` belongs to it. */
  readonly hasEnding: boolean;
}

/** Tokens of a word, with the space or mark before it. */
export function latinWordTokens({ text, start, end, before, hasEnding }: LatinWord): number {
  const scoredEnd = Math.min(end, start + LONGEST_WORD);
  let score = BY_BEFORE[before] ?? 0;
  let capitals = 0;
  let last = EDGE;
  for (let index = start; index < scoredEnd; index += 1) {
    const code = text.charCodeAt(index);
    if (code >= 65 && code <= 90) capitals += 1;
    const letter = code < 128 ? (code | 32) - 97 : ACCENTED;
    score += PAIR_SCORES[last * LETTERS + letter] ?? 0;
    last = letter;
  }
  score += PAIR_SCORES[last * LETTERS + EDGE] ?? 0;
  score += BY_LENGTH[Math.min(scoredEnd - start, BY_LENGTH.length - 1)] ?? 0;
  score += BY_CAPITALS[Math.min(capitals, 2)] ?? 0;
  if (hasEnding) score += BY_ENDING;
  const tokens = 1 + Math.log1p(Math.exp(score));
  return end === scoredEnd ? tokens : Math.max(tokens, LONGEST_WORD / LETTERS_OF_DATA) + (end - scoredEnd) / LETTERS_OF_DATA;
}
