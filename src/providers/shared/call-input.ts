/**
 * Call input: a call's arguments as they go back to a server.
 *
 * As the model wrote them, byte for byte, if they are an object; else an empty one, which every server can parse: the
 * call's result says what was wrong. What no server takes is cleaned where it stands, in the text and in its escapes, and
 * all around it stays: numbers have more digits than a parser keeps.
 */
import { isRecord } from '../../core/json.ts';
import { cleanText } from './wire-text.ts';

/** What may stand for something that {@link cleanText} changes. */
const RISKY = /\\[bfu]|[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]/;
/**
 * Escapes, and what of a text is changed. Every escape is matched, so that a backslash that is escaped itself begins none.
 * Halves of surrogate pairs are matched by the run: one may be escaped and the other not.
 */
const UNITS = /(?:\\u[dD][89a-fA-F][\da-fA-F]{2}|[\ud800-\udfff])+|\\u[\da-fA-F]{4}|\\[^u]|[\ufdd0-\ufdef\ufffe\uffff]/g;
const HALF = /\\u[\da-fA-F]{4}|[\ud800-\udfff]/g;

/** JSON text of an object, for a field that holds text. */
export function inputText(text: string): string {
  return isObjectText(text) ? cleanText(text) : '{}';
}

/** JSON text of an object, to stand in a request as it is. */
export function inputJson(text: string): string {
  if (!isObjectText(text)) return '{}';
  return RISKY.test(text) ? text.replace(UNITS, cleanUnit) : text;
}

function isObjectText(text: string): boolean {
  try {
    return isRecord(JSON.parse(text));
  } catch {
    return false;
  }
}

/** What stands in the place of a match of {@link UNITS}: the match itself where nothing is wrong with it. */
function cleanUnit(unit: string): string {
  const value = decode(unit);
  const cleaned = cleanText(value);
  if (cleaned === value) return unit;
  return value.length < 2 ? cleaned : cleanHalves(unit.match(HALF) ?? []);
}

/** Halves of surrogate pairs without those that lack the other half, or make no character with it. */
function cleanHalves(halves: readonly string[]): string {
  let text = '';
  for (let at = 0; at < halves.length; at += 1) {
    const half = halves[at] ?? '';
    const pair = half + (halves[at + 1] ?? '');
    const [value, both] = [decode(half), decode(pair)];
    const isPair = both.length > value.length && both.codePointAt(0) !== value.charCodeAt(0);
    const cleaned = cleanText(isPair ? both : value);
    text += isPair && cleaned === both ? pair : cleaned;
    if (isPair) at += 1;
  }
  return text;
}

function decode(unit: string): string {
  return unit.includes('\\') ? (JSON.parse(`"${unit}"`) as string) : unit;
}
