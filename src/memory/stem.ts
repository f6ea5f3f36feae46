/**
 * Stem: English words without their usual endings, so that `deploys`, `deployed` and `deployment` are one word.
 *
 * It need not give words, only the same form for the same word. Where a rule would be wrong as often as right there is none:
 * what has the same beginning is found by likeness all the same.
 */

/** Endings, the longest first, and what stands for them. */
const ENDINGS: readonly (readonly [ending: string, instead: string])[] = [
  ['izations', 'ize'],
  ['ization', 'ize'],
  ['ational', 'ate'],
  ['fulness', 'ful'],
  ['ements', ''],
  ['ations', 'ate'],
  ['ement', ''],
  ['ation', 'ate'],
  ['ments', ''],
  ['ities', 'ity'],
  ['ment', ''],
  ['ness', ''],
  ['ingly', ''],
  ['edly', ''],
  ['ings', ''],
  ['ions', ''],
  ['sses', 'ss'],
  ['ves', 'f'],
  ['ies', 'y'],
  ['ied', 'y'],
  ['ing', ''],
  ['ion', ''],
  ['ers', ''],
  ['ors', ''],
  ['ed', ''],
  ['ly', ''],
  ['er', ''],
  ['or', ''],
  ['es', ''],
  ['s', ''],
];

/** Words that change in their middle; the rest of English is regular enough. */
const IRREGULAR: ReadonlyMap<string, string> = new Map([
  ['bought', 'buy'],
  ['built', 'build'],
  ['children', 'child'],
  ['chose', 'choose'],
  ['chosen', 'choose'],
  ['drank', 'drink'],
  ['drove', 'drive'],
  ['driven', 'drive'],
  ['ate', 'eat'],
  ['eaten', 'eat'],
  ['feet', 'foot'],
  ['flew', 'fly'],
  ['gave', 'give'],
  ['given', 'give'],
  ['grew', 'grow'],
  ['kept', 'keep'],
  ['knew', 'know'],
  ['learnt', 'learn'],
  ['led', 'lead'],
  ['left', 'leave'],
  ['made', 'make'],
  ['men', 'man'],
  ['met', 'meet'],
  ['mice', 'mouse'],
  ['people', 'person'],
  ['ran', 'run'],
  ['sang', 'sing'],
  ['saw', 'see'],
  ['seen', 'see'],
  ['sent', 'send'],
  ['slept', 'sleep'],
  ['sold', 'sell'],
  ['spoke', 'speak'],
  ['spoken', 'speak'],
  ['spent', 'spend'],
  ['swam', 'swim'],
  ['taught', 'teach'],
  ['thought', 'think'],
  ['told', 'tell'],
  ['took', 'take'],
  ['taken', 'take'],
  ['went', 'go'],
  ['women', 'woman'],
  ['wore', 'wear'],
  ['worn', 'wear'],
  ['written', 'write'],
  ['wrote', 'write'],
]);

/** Shorter stems are shared by words that have nothing to do with each other. */
const MIN_STEM = 3;
const VOWEL = /[aeiouy]/;
const DOUBLED = /([bdfgmnprt])\1$/;

/** The stem of a word in small letters. Words of other alphabets, and with digits, come back as they are. */
export function stemOf(word: string): string {
  if (!/^[a-z]+$/.test(word)) return word;
  return trimmed(withoutEnding(IRREGULAR.get(word) ?? word));
}

function withoutEnding(word: string): string {
  for (const [ending, instead] of ENDINGS) {
    if (!word.endsWith(ending)) continue;
    const stem = word.slice(0, -ending.length);
    if (stem.length < MIN_STEM || !VOWEL.test(stem)) continue;
    if (ending === 's' && /[su]$/.test(stem)) continue;
    const bare = stem + instead;
    // `managers` is a `manager` is one who `manages`: one ending may hide another.
    return ending === 's' || ending === 'es' ? withoutEnding(bare) : bare;
  }
  return word;
}

/** What is left of spelling: `planned` is `plan`, `use` is `using`, `tidy` is `tidies`. */
function trimmed(stem: string): string {
  const single = stem.replace(DOUBLED, '$1');
  if (single.length <= MIN_STEM) return single.length === MIN_STEM ? single.replace(/(?<=..)e$/, '') : single;
  return single.replace(/e$/, '').replace(/y$/, 'i');
}
