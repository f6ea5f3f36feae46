/**
 * Printable: text of a model, a tool or a file, made harmless for a terminal.
 *
 * Whoever may write control characters to a terminal can hide text, fake a prompt, set the title or fill the clipboard.
 */
import { stripVTControlCharacters } from 'node:util';

// All control characters but tab and newline, those that turn the direction of text around, and the line separators.
 
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Text with line breaks and tabs, without colours, and with every other control character shown as a symbol. */
export function toPrintable(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/\r\n?/g, '\n')
    .replace(UNPRINTABLE, (character) => toSymbol(character.charCodeAt(0)));
}

/** The same on one line of at most `width` characters. */
export function toPrintableLine(text: string, width: number): string {
  const line = toPrintable(text).replace(/\s+/g, ' ').trim();
  const characters = Array.from(line);
  return characters.length <= width ? line : `${characters.slice(0, Math.max(0, width - 1)).join('')}…`;
}

/** Unicode has pictures of the oldest control characters: `␛` for escape. */
function toSymbol(code: number): string {
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? '\u2421' : '\ufffd';
}
