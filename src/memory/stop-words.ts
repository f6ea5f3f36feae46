/**
 * Stop words: what stands in any sentence or question, English and Chinese, and so says nothing about which entry is meant.
 */

const ENGLISH: ReadonlySet<string> = new Set(
  (
    'a about after again all also am an and any anyone are arent as at be because been before being both but by can cannot cant ' +
    'could couldnt did didnt do does doesnt doing done dont down during each either else ever every everyone few for from further ' +
    'get gets getting give go goes going gonna got had hadnt has hasnt have havent having he hed hell her here heres hers herself hes him himself ' +
    'his how hows however i id if ill im in into is isnt it itd itll its itself ive just kind know let lets like likely many may maybe me might more ' +
    'most much must my myself neither no nor not now of off often on once one only onto or other others otherwise our ours ourselves out over own ' +
    'please quite rather really remember remind same say says shall she shed shell shes should shouldnt so some someone something sort still such ' +
    'tell than that thats the their theirs them themselves then there theres these they theyd theyll theyre theyve thing things this those though ' +
    'through to too toward under until up upon us very via want wants was wasnt we wed well were werent weve what whatever whats when whenever where ' +
    'wheres whether which while who whoever whom whos whose why will with within without wont would wouldnt yes yet you youd youll your youre ' +
    'yours yourself youve'
  ).split(' '),
);

const CHINESE_CHARACTERS: ReadonlySet<string> = new Set(
  '的了是在有和与及或也都就还又再很太更最这那哪谁吗呢吧啊呀嘛哦着过得地之其此各每某个些们我你您他她它被把让给对从向到于为以而且但若如因所将会能可要想应该请问不没无非并等什么怎几多少',
);

/** Pairs that belong to the question and not to what is asked about. */
const CHINESE_PAIRS: ReadonlySet<string> = new Set(
  (
    '什么 怎么 怎样 如何 哪个 哪里 哪些 哪儿 多少 是否 为何 可以 可能 能否 需要 应该 我们 你们 他们 她们 它们 自己 这个 那个 这些 那些 这里 那里 ' +
    '一个 一些 一下 一种 因为 所以 但是 如果 虽然 然后 而且 或者 以及 还是 就是 不是 没有 时候 请问 告诉 记得 知道 关于 现在 已经 曾经 一般 通常 平时'
  ).split(' '),
);

/** Whether a word in small letters, without apostrophes, says nothing. */
export function isStopWord(word: string): boolean {
  return ENGLISH.has(word);
}

/** Whether a character alone says nothing. */
export function isStopCharacter(character: string): boolean {
  return CHINESE_CHARACTERS.has(character);
}

/** Whether two characters beside each other say nothing: words of a question, or two that say nothing alone. */
export function isFillerPair(first: string, second: string): boolean {
  return CHINESE_PAIRS.has(first + second) || (CHINESE_CHARACTERS.has(first) && CHINESE_CHARACTERS.has(second));
}
