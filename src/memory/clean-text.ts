/**
 * Clean text: what was remembered, as one line that a model can read and that cannot pass for anything but text.
 *
 * - Control characters are out, and so are those that change the order or the visibility of text.
 * - It is one line: what looks like a new entry, or like a new speaker, can only stand in the middle of one.
 * - Nothing opens or closes a tag, ours or a chat template's: the angle bracket becomes another that looks like it.
 */

/** Line ends, tabs and other controls. */
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;
/** Characters without a look of their own, but for the two joiners that scripts and emoji need; and halves of characters. */
const INVISIBLE = /(?![\u200c\u200d])[\p{Cf}\p{Cs}\p{Co}]/gu;
const TAG_START = /[<＜﹤](?=\s*[/|!?]?\s*[\p{L}|/!?])/gu;
const TEMPLATE_MARK = /\[(?=\s*\/?\s*(?:INST|SYS|SYSTEM|USER|ASSISTANT)\b)/giu;
const SPACES = / {2,}/g;

/** One line of text and nothing else; possibly empty. */
export function cleanText(text: string): string {
  return text
    .replace(CONTROLS, ' ')
    .replace(INVISIBLE, '')
    .replace(TAG_START, '‹')
    .replace(TEMPLATE_MARK, '(')
    .replace(SPACES, ' ')
    .trim();
}
