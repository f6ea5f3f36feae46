/**
 * JSON: its types, and reading it from text that a model wrote.
 *
 * Owns where a text stops being JSON, in words a model can act on. Whether the value fits a tool is
 * `tool-input.ts`'s business.
 *
 * - A text is parsed once; only a text that failed is scanned a second time, to find the place.
 * - No value read here has an own `__proto__` key.
 */

/** Any value JSON can hold. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

/** A JSON object. Keys may come from a model or a provider: read them as data only. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** A JSON Schema (draft 2020-12), as plain JSON. */
export type JsonSchema = JsonObject;

/** What {@link parseJson} found: the value, or what is wrong and where. */
export type JsonParseResult =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false;
      /** What is wrong, with the place and the text around it. */
      readonly message: string;
      /** Offset into the text, 0-based, of the first character that cannot stand there. */
      readonly position: number;
    };

/** True for objects that are neither `null` nor an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Parses JSON text without ever repairing it.
 *
 * Integers that a JavaScript number cannot hold exactly are refused rather than rounded: an id that is
 * silently off by one acts on the wrong thing.
 *
 * @param text - JSON text. Empty text is not JSON here.
 */
export function parseJson(text: string): JsonParseResult {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const { position, expected } = findJsonError(text);
    return { ok: false, position, message: `${expected} at position ${position}${excerptAt(text, position)}` };
  }
  if (LONG_INTEGER.test(text)) {
    const position = findUnsafeInteger(text);
    if (position !== undefined) {
      const message = `the integer at position ${position}${excerptAt(text, position)} is too large to be exact; send it as a string`;
      return { ok: false, position, message };
    }
  }
  if (text.includes('__proto__') || text.includes('\\u')) dropProtoKeys(value);
  return { ok: true, value };
}

const LONG_INTEGER = /\d{16}/;
const EXCERPT_LENGTH = 20;

function excerptAt(text: string, position: number): string {
  if (position >= text.length) return ' (the end of the text)';
  const excerpt = text.slice(Math.max(0, position - EXCERPT_LENGTH), position + EXCERPT_LENGTH);
  return `, near ${JSON.stringify(excerpt)}`;
}

function dropProtoKeys(root: unknown): void {
  const open: unknown[] = [root];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    if (Object.hasOwn(value, '__proto__')) Reflect.deleteProperty(value, '__proto__');
    for (const child of Object.values(value)) {
      if (typeof child === 'object' && child !== null) open.push(child);
    }
  }
}

function findUnsafeInteger(text: string): number | undefined {
  const token = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  for (const match of text.matchAll(token)) {
    if (/^-?\d{16,}$/.test(match[0]) && !Number.isSafeInteger(Number(match[0]))) return match.index;
  }
  return undefined;
}

const VALUE = 'a value was expected';
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const LITERAL = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])/y;
const SPACE = /[ \t\n\r]*/y;

/**
 * Finds where a text stops being JSON. Engines word this differently and some leave the place out, so the
 * answer to the model would depend on the runtime.
 */
function findJsonError(text: string): { position: number; expected: string } {
  let position = 0;
  const closers: string[] = [];
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = position;
    if (!pattern.test(text)) return false;
    position = pattern.lastIndex;
    return true;
  };
  const stopped = (expected: string): { position: number; expected: string } => ({ position, expected });

  for (;;) {
    // A value, or the start of one.
    skip(SPACE);
    const start = text[position];
    if (start === '{' || start === '[') {
      position += 1;
      skip(SPACE);
      const closer = start === '{' ? '}' : ']';
      if (text[position] !== closer) {
        closers.push(closer);
        if (start === '[') continue;
        const key = readKey();
        if (key !== undefined) return stopped(key);
        continue;
      }
      position += 1;
    } else if (start === '"') {
      if (!skip(STRING)) return stopped('a string is not closed or has an illegal character or escape');
    } else if (!skip(LITERAL)) {
      return stopped(VALUE);
    }
    // What follows a value: closers, then a comma and the next one.
    for (;;) {
      skip(SPACE);
      const closer = closers.at(-1);
      if (closer === undefined) return stopped('the text should end');
      if (text[position] === closer) {
        position += 1;
        closers.pop();
        continue;
      }
      if (text[position] !== ',') return stopped(`"," or "${closer}" was expected`);
      position += 1;
      skip(SPACE);
      if (closer === '}') {
        const key = readKey();
        if (key !== undefined) return stopped(key);
      }
      break;
    }
  }

  function readKey(): string | undefined {
    if (!skip(STRING)) return 'a property name in double quotes was expected';
    skip(SPACE);
    if (text[position] !== ':') return '":" was expected';
    position += 1;
    return undefined;
  }
}
