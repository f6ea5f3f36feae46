/**
 * Fold input: shorter strings in the arguments of an old call.
 *
 * - The text stays the JSON object that it was: keys, numbers and order byte for byte, which a parse and a write would
 *   not promise.
 * - What no adapter sends as an object is left alone.
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
