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
 * Numbers that a JavaScript number cannot hold are refused rather than rounded: an id that is silently off by one acts
 * on the wrong thing. So is a text nested more than 500 deep: whatever handles it later may not survive that.
 *
 * @param text - JSON text. Empty text is not JSON here.
 */
export function parseJson(text: string): JsonParseResult {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const { position, expected } = findJsonError(text);
    return refuse(text, position, (place) => `${expected} at ${place}`);
  }
  if (UNSAFE_NUMBER.test(text)) {
    const position = findUnsafeNumber(text);
    if (position !== undefined) return refuse(text, position, (place) => `the number at ${place} is too large to be exact; send it as a string`);
  }
  if (text.length > MAX_DEPTH) {
    const position = findTooDeep(text);
    if (position !== undefined) return refuse(text, position, (place) => `the text is nested more than ${MAX_DEPTH} deep at ${place}`);
  }
  if (text.includes('__proto__') || text.includes('\\u')) dropProtoKeys(value);
  return { ok: true, value };
}

/** A copy of a JSON value that shares nothing with it. */
export function cloneJson<Value extends JsonValue>(value: Value): Value {
  // A copy of a value has the type of the value.
  return cloneAny(value) as Value;
}

function cloneAny(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(cloneAny);
  const copy: Record<string, unknown> = {};
  // Assigned, this key would set the prototype of the copy.
  for (const [key, child] of Object.entries(value)) if (key !== '__proto__') copy[key] = cloneAny(child);
  return copy;
}

/** A value as the JSON it is once written; undefined for what JSON cannot hold. */
export function toJson(value: unknown): JsonValue | undefined {
  try {
    const text: string | undefined = JSON.stringify(value);
    if (text === undefined) return undefined;
    // What JSON.parse gives is JSON.
    const copy = JSON.parse(text) as JsonValue;
    if (text.includes('__proto__')) dropProtoKeys(copy);
    return copy;
  } catch {
    return undefined;
  }
}

const MAX_DEPTH = 500;
const UNSAFE_NUMBER = /\d{16}|[eE]\+?\d{3}/;

function refuse(text: string, position: number, message: (place: string) => string): JsonParseResult {
  return { ok: false, position, message: message(`position ${position}${excerptAt(text, position)}`) };
}

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

function findUnsafeNumber(text: string): number | undefined {
  const token = /"|-?\d[\d.eE+-]*/g;
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    if (match[0] === '"') token.lastIndex = endOfString(text, match.index);
    else if (!isExact(match[0])) return match.index;
  }
  return undefined;
}

function isExact(digits: string): boolean {
  const value = Number(digits);
  if (!Number.isFinite(value)) return false;
  // Written out to the last digit, an integer is meant exactly; 1e20 is not.
  const isWrittenOut = /^-?\d{16,}/.test(digits);
  return !isWrittenOut || !Number.isInteger(value) || Number.isSafeInteger(value);
}

function findTooDeep(text: string): number | undefined {
  const token = /["[\]{}]/g;
  let depth = 0;
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    if (match[0] === '"') token.lastIndex = endOfString(text, match.index);
    else depth += match[0] === '[' || match[0] === '{' ? 1 : -1;
    if (depth > MAX_DEPTH) return match.index;
  }
  return undefined;
}

/** Index behind the string that starts at `start`, in text that is JSON. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end + 1;
}

function isEscaped(text: string, index: number): boolean {
  let backslashes = 0;
  while (text[index - 1 - backslashes] === '\\') backslashes += 1;
  return backslashes % 2 === 1;
}

const QUOTE = /"/y;
const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
// One character class and no group: a pattern that repeats a group overflows on a string of megabytes.
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const ESCAPE_START = /\\(?:u[0-9a-fA-F]{0,3})?/y;
/** As much of a token as is good, for the place where it is not. */
const NUMBER_START = /-?(?:(?:0|[1-9]\d*)(?:\.\d*)?(?:(?<=\d)[eE][+-]?\d*)?)?/y;
const WORDS = ['true', 'false', 'null'] as const;

/**
 * Finds where a text stops being JSON. Engines word this differently and some leave the place out, so the
 * answer to the model would depend on the runtime.
 */
function findJsonError(text: string): { readonly position: number; readonly expected: string } {
  const scanner = new Scanner(text);
  const closers: string[] = [];
  for (;;) {
    // A value, or the start of one.
    scanner.take(SPACE);
    const opened = scanner.next;
    const closer = opened === '{' ? '}' : opened === '[' ? ']' : undefined;
    if (closer === undefined) {
      if (!scanner.takeScalar()) return scanner.stopped();
    } else {
      scanner.position += 1;
      scanner.take(SPACE);
      if (scanner.next !== closer) {
        closers.push(closer);
        if (closer === '}' && !scanner.takeKey()) return scanner.stopped();
        continue;
      }
      scanner.position += 1;
    }
    // What follows a value: closers, then a comma and the next one.
    for (;;) {
      scanner.take(SPACE);
      const open = closers.at(-1);
      if (open === undefined) return scanner.stopped('the text should end');
      if (scanner.next === open) {
        scanner.position += 1;
        closers.pop();
        continue;
      }
      if (scanner.next !== ',') return scanner.stopped(`"," or "${open}" was expected`);
      scanner.position += 1;
      scanner.take(SPACE);
      if (open === '}' && !scanner.takeKey()) return scanner.stopped();
      break;
    }
  }
}

class Scanner {
  position = 0;
  readonly #text: string;
  #expected = 'a value was expected';

  constructor(text: string) {
    this.#text = text;
  }

  get next(): string | undefined {
    return this.#text[this.position];
  }

  /** Where and why the text broke. */
  stopped(expected: string = this.#expected): { readonly position: number; readonly expected: string } {
    return { position: this.position, expected };
  }

  take(pattern: RegExp): boolean {
    pattern.lastIndex = this.position;
    if (!pattern.test(this.#text)) return false;
    this.position = pattern.lastIndex;
    return true;
  }

  /** A string, number or word; if it is not whole, the position is where it broke. */
  takeScalar(): boolean {
    if (this.take(QUOTE)) return this.#takeRestOfString();
    if (this.take(WORD)) return true;
    const start = this.position;
    this.take(NUMBER_START);
    const end = this.position;
    this.position = start;
    if (this.take(NUMBER) && this.position === end) return true;
    this.position = end > start ? end : start + this.#wordLength(start);
    this.#expected = end > start ? 'a digit was expected' : 'a value was expected';
    return false;
  }

  /** A property name and its colon. */
  takeKey(): boolean {
    this.#expected = 'a property name in double quotes was expected';
    if (!this.take(QUOTE) || !this.#takeRestOfString()) return false;
    this.take(SPACE);
    this.#expected = '":" was expected';
    if (this.next !== ':') return false;
    this.position += 1;
    return true;
  }

  #takeRestOfString(): boolean {
    do this.take(PLAIN);
    while (this.take(ESCAPE));
    if (this.take(QUOTE)) return true;
    this.take(ESCAPE_START);
    this.#expected = 'a string is not closed, or has an illegal character or escape';
    return false;
  }

  /** How many letters of a known word stand at a place. */
  #wordLength(start: number): number {
    const lengths = WORDS.map((word) => {
      let length = 0;
      while (length < word.length && word[length] === this.#text[start + length]) length += 1;
      return length;
    });
    return Math.max(...lengths);
  }
}
