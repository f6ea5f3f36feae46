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
const BY_LENGTH = [0.0, -5.73, -4.18, -2.87, -2.38, -1.67, -1.19, -0.58, 0.23, 0.78, 1.4, 2.0, 2.51, 2.62, 3.42, 3.37, 4.65];
/** By what stands before the word. */
const BY_BEFORE = [0.42, -0.46, 0.94, -0.31, 1.78];
/** All small, one capital, several capitals. */
const BY_CAPITALS = [0.03, 0.78, 1.57];
/** A word with an ending such as `'s`. */
const BY_ENDING = 2.21;

/**
 * What a pair of neighbours adds: a row for the first letter, a column for the second, each from a to z, then the edge
 * of the word, then any letter with an accent. The code of a character less 60, in twentieths.
 */
const PAIRS: readonly string[] = [
  'M@86XA0H>CI176P6M/91D<@88@B@',
  'BOMQ5UVFC)A2RX7TG?AK2GEZDQAN',
  ';PAO2SN58X28TU8SG:I38[KM?F>M',
  'ALVD:OIW:C=HEK=KFD?GAEFBB=4K',
  '6H57C8@LFKO<;6@;(53:L:73AI.D',
  '=MRQ:;:J4DEHHC4HE6ZC;FRF7G<G',
  'HLNT7NF1:DM<LB:pI7?IB@VCA59S',
  ';C>S8JEL8FHMD>6@CL]&BFVCKD9G',
  '<=64966L@EG8B4&8G<95LANEO8JC',
  '@IOF;JLCKF<ULA<CAG=O<JEHDEO2',
  '>H;C=LDCCAHNQ?MJFPDEAL<DPG:=',
  ';6^772KI7HPBU=4<H;@;7@@[2[5H',
  '73O]/LB]:ZO;<O;5?MEUBJGIQE9C',
  'CR83=@3G>BADF@?EMM63><MCIG6B',
  '9:>;F-:K=12=70=9I/G<3:.GGDCP',
  '@NM<7LMAEIS6BJ2<H7L=9DCA@F>J',
  'DCCIJFIEC@I1GKFC@API-FHEFCX<',
  '8NB:8:5E7CCJ?14RC>>=ACLE5D6J',
  'GT:G8:K<;MBWL>=@Q866:MAJ?E5K',
  '<^BP8@S%8JGJCH52D9?A=L51-G1F',
  '<>:=7@BPBIG-78M8E/94NFDEFJGK',
  '4IMK5I>F8DDDLQ>=EJRKHLFKPC@M',
  '=JOC8NW68CGDK52HF=@NQJ06MN?C',
  ':@;HMFF3EFDIBFK<CYLBJJE9@O:G',
  'G@SJQHWM@BGA?71=DH66SC9FF@1F',
  '?EGF>FOFOBHRQ@UCBEKI=H<@IBEC',
  '8;72:>B<8?B=;8=4L=5::C8S:O<N',
  'EBEOO;F>IRFFNE7P9DCLFKC=OOQ<',
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
