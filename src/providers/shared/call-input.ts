/**
 * Call input: a call's arguments as they go back to a server.
 *
 * As the model wrote them, byte for byte, if they are an object; else an empty one, which every server can parse: the
 * call's result says what was wrong. What no server takes is cleaned, in the text and in its escapes.
 */
import { isRecord } from '../../core/json.ts';
import { cleanText } from './wire-text.ts';

/** An escape that may stand for what {@link cleanText} takes out. */
const RISKY_ESCAPE = /\\u(?:[dD][89a-fA-F]|00[01]|[fF][fF][fF][eE-fF]|[fF][dD][dDeE])/;

/** JSON text of an object, for a field that holds text. */
export function inputText(text: string): string {
  return parseObject(text) === undefined ? '{}' : cleanText(text);
}

/** JSON text of an object, to stand in a request as it is. */
export function inputJson(text: string): string {
  const input = parseObject(text);
  if (input === undefined) return '{}';
  return RISKY_ESCAPE.test(text) ? JSON.stringify(input, cleanValue) : cleanText(text);
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Keys are cleaned with the object that holds them. */
function cleanValue(_key: string, value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [cleanText(key), inner]));
}
