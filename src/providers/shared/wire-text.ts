/** Wire text: text as a server can take it. */
import type { JsonObject, JsonValue } from '../../core/json.ts';

// With the `u` flag \p{Cs} matches lone halves of surrogate pairs only.
const UNSAFE = /[\p{Cs}\p{Noncharacter_Code_Point}\u0000-\u0008\u000b\u000c\u000e-\u001f]/u;
const LONE_OR_NONCHARACTER = /[\p{Cs}\p{Noncharacter_Code_Point}]/gu;
/** What may stand for something to clean in a JSON text. */
const RISKY_JSON = /\\[bfu]|\p{Noncharacter_Code_Point}/u;
const SAID = /[^\s\u0000-\u0008\u000e-\u001f]/;
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g;

/**
 * Cleans a text for a request: lone surrogates and non-characters become U+FFFD, control characters other than tab,
 * line feed and carriage return go. Servers refuse these, or cut the text there, in every later request of the
 * conversation. Any other text comes back as it is.
 */
export function cleanText(text: string): string {
  return UNSAFE.test(text) ? text.replace(LONE_OR_NONCHARACTER, '\ufffd').replace(CONTROL, '') : text;
}

/** True for text that says nothing: empty, or nothing but white space and what {@link cleanText} takes out. */
export function isBlank(text: string): boolean {
  return !SAID.test(text);
}

const cleanObjects = new WeakMap<JsonObject, JsonObject>();

/** An object with all its texts and names cleaned; the same one if there is nothing to clean. Cleans each object once. */
export function cleanJson(object: JsonObject): JsonObject {
  const known = cleanObjects.get(object);
  if (known !== undefined) return known;
  const json = JSON.stringify(object);
  // In JSON, what is cleaned is escaped, but for characters that stand for nothing.
  const cleaned = RISKY_JSON.test(json) ? (cleanValue(JSON.parse(json) as JsonObject) as JsonObject) : object;
  const result = JSON.stringify(cleaned) === json ? object : cleaned;
  cleanObjects.set(object, result);
  return result;
}

function cleanValue(value: JsonValue): JsonValue {
  if (typeof value === 'string') return cleanText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (isList(value)) return value.map(cleanValue);
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [cleanText(name), cleanValue(field)]));
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/**
 * Joins what stands in a JSON list, each with a comma between if there is something on both sides.
 *
 * Never looks into the texts: one that was joined is put together only when it is sent.
 */
export function joinJson(left: string, right: string): string {
  return left === '' || right === '' ? left + right : `${left},${right}`;
}
