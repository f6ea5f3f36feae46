/**
 * Fold input: shorter arguments of a call, by their strings, or by whatever they hold.
 *
 * - The text stays a JSON object. What is not made shorter of it stays byte for byte, which a parse and a write would not
 *   promise: keys, numbers, order.
 * - What no adapter sends as an object does not become one.
 */
import { isRecord, parseJson } from '../core/json.ts';
import type { ToolCallPart } from '../core/message.ts';

/** The call with its long strings replaced, in its text and in what was parsed of it; itself if none changes. */
export function foldInput(call: ToolCallPart, fold: (value: string) => string): ToolCallPart {
  const inputText = foldInputText(call.inputText, fold);
  if (inputText === call.inputText) return call;
  return { ...call, inputText, ...(call.input !== undefined && { input: foldValue(call.input, fold) }) };
}

function foldInputText(text: string, fold: (value: string) => string): string {
  const parsed = parseJson(text);
  if (!parsed.ok || !isRecord(parsed.value)) return text;
  const pieces: string[] = [];
  let copied = 0;
  let end: number;
  for (let start = text.indexOf('"'); start !== -1; start = text.indexOf('"', end)) {
    end = endOfString(text, start);
    if (isKey(text, end)) continue;
    const value = JSON.parse(text.slice(start, end)) as string;
    const folded = fold(value);
    if (folded === value) continue;
    pieces.push(text.slice(copied, start), JSON.stringify(folded));
    copied = end;
  }
  return pieces.join('') + text.slice(copied);
}

/** What stands for arguments that are too many to be named. */
const WHOLE = '[…]';
/** Arguments with more than this many times what one of them may have become one. */
const MOST_VALUES = 4;

/**
 * The call with whatever is long in its arguments made shorter: a list, an object or a number becomes a string with the
 * beginning and the end of its JSON, and all arguments together one string if they are too many. For a call that would
 * otherwise make every request too large.
 *
 * @param shorten - A text within `maxCharacters`.
 */
export function shortenInput(call: ToolCallPart, maxCharacters: number, shorten: (text: string) => string): ToolCallPart {
  if (call.inputText.length <= maxCharacters) return call;
  const parsed = parseJson(call.inputText);
  if (!parsed.ok || !isRecord(parsed.value)) return { ...call, inputText: shortenOther(call.inputText, shorten) };
  let inputText = shortenValues(foldInputText(call.inputText, shorten), maxCharacters, shorten);
  if (inputText.length > MOST_VALUES * maxCharacters) inputText = JSON.stringify({ [WHOLE]: shorten(call.inputText) });
  if (inputText === call.inputText) return call;
  return { ...call, inputText, ...(call.input !== undefined && { input: JSON.parse(inputText) as unknown }) };
}

/** Text that is no JSON object, and is none afterwards: a provider is sent `{}` for it. */
function shortenOther(text: string, shorten: (text: string) => string): string {
  const shorter = shorten(text);
  const parsed = parseJson(shorter);
  return parsed.ok && isRecord(parsed.value) ? text : shorter;
}

function shortenValues(text: string, maxCharacters: number, shorten: (text: string) => string): string {
  const pieces: string[] = [];
  let copied = 0;
  for (const [start, end] of valuesOf(text)) {
    if (end - start <= maxCharacters || text[start] === '"') continue;
    pieces.push(text.slice(copied, start), JSON.stringify(shorten(text.slice(start, end))));
    copied = end;
  }
  return pieces.join('') + text.slice(copied);
}

const STRUCTURE = /["{}[\],:]/g;

/** Where the values of an object start and end, in text that is JSON. */
function valuesOf(text: string): readonly (readonly [start: number, end: number])[] {
  const values: (readonly [number, number])[] = [];
  const next = new RegExp(STRUCTURE);
  let depth = 0;
  let start: number | undefined;
  for (let found = next.exec(text); found !== null; found = next.exec(text)) {
    const { 0: mark, index } = found;
    if (mark === '"') next.lastIndex = endOfString(text, index);
    else if (mark === '{' || mark === '[') depth += 1;
    else if (mark === ':' && depth === 1) start = index + 1 + (/^\s*/.exec(text.slice(index + 1, index + 100))?.[0].length ?? 0);
    else if (depth === 1 && start !== undefined) {
      values.push([start, index]);
      start = undefined;
    }
    if (mark === '}' || mark === ']') depth -= 1;
  }
  return values;
}

/** Index behind the string that starts at `start`, in text that is JSON. */
function endOfString(text: string, start: number): number {
  let end = start + 1;
  while (text[end] !== '"') end += text[end] === '\\' ? 2 : 1;
  return end + 1;
}

const COLON = /[ \t\n\r]*:/y;

/** Whether the string that ends here is a key. */
function isKey(text: string, end: number): boolean {
  COLON.lastIndex = end;
  return COLON.test(text);
}

function foldValue(value: unknown, fold: (value: string) => string): unknown {
  if (typeof value === 'string') return fold(value);
  if (Array.isArray(value)) return value.map((inner) => foldValue(inner, fold));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, foldValue(inner, fold)]));
}
