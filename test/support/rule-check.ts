/** Rule check: what the hand-written rules of all protocols are made of. Knows nothing of the adapters. */

/** A JSON object as it came over the wire. */
export type Wire = Readonly<Record<string, unknown>>;

/** Notes a broken rule. */
export type Say = (rule: string) => void;

/** What servers refuse in any text: lone halves of surrogate pairs, and control characters other than tab, LF and CR. */
const UNSAFE_TEXT = /[\p{Cs}\u0000-\u0008\u000b\u000c\u000e-\u001f]/u;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** Keywords that no server takes at the root of a tool's schema. */
const ROOT_KEYWORDS = ['oneOf', 'anyOf', 'allOf', 'not', 'enum', '$ref'] as const;

export function isObject(value: unknown): value is Wire {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isBlank(value: unknown): boolean {
  return typeof value !== 'string' || value.trim() === '';
}

export function isBase64(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && BASE64.test(value);
}

/** True for text that parses to an object. */
export function isObjectText(text: unknown): boolean {
  if (typeof text !== 'string') return false;
  try {
    return isObject(JSON.parse(text));
  } catch {
    return false;
  }
}

/** A list of objects; anything else is said to be broken, and left out. */
export function listOf(value: unknown, name: string, say: Say): readonly Wire[] {
  if (!Array.isArray(value)) {
    say(`${name}: not a list`);
    return [];
  }
  const list = value as readonly unknown[];
  if (!list.every(isObject)) say(`${name}: holds what is no object`);
  return list.filter(isObject);
}

/** Fields of an object: those before the `|` must be there, those behind it may be; no others. */
export function checkFields(value: Wire, fields: string, say: Say): void {
  const [needed, optional] = fields.split('|').map((list) => list.trim().split(/\s+/).filter((name) => name !== ''));
  for (const name of needed ?? []) if (value[name] === undefined) say(`${name}: missing`);
  const known = new Set([...(needed ?? []), ...(optional ?? [])]);
  for (const name of Object.keys(value)) if (!known.has(name)) say(`unknown field ${name}`);
}

/** One of these words. */
export function checkWord(value: unknown, words: readonly string[], rule: string): readonly string[] {
  return typeof value === 'string' && words.includes(value) ? [] : [`${rule}: ${JSON.stringify(value)}`];
}

/** Every text and every name of a field, at any depth. */
export function checkStrings(value: unknown, say: Say): void {
  if (typeof value === 'string') {
    if (UNSAFE_TEXT.test(value)) say(`unsafe text: ${JSON.stringify(value.slice(0, 20))}`);
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, inner] of Object.entries(value)) {
      if (UNSAFE_TEXT.test(name)) say(`unsafe name of a field: ${JSON.stringify(name)}`);
      checkStrings(inner, say);
    }
  }
}

/** A tool's schema: an object, and nothing at its root that servers refuse there. */
export function checkToolSchema(schema: unknown, say: Say): void {
  if (!isObject(schema) || schema['type'] !== 'object') {
    say('a schema that is no object');
    return;
  }
  const { properties } = schema;
  if (properties !== undefined && !isObject(properties)) say('properties that are no object');
  for (const keyword of ROOT_KEYWORDS) if (keyword in schema) say(`${keyword} at the root`);
}

/** What a schema must be like to be enforced: each object closed and, if `allRequired`, with nothing optional. */
export function checkStrictSchema(schema: unknown, allRequired: boolean, say: Say): void {
  if (Array.isArray(schema)) {
    for (const each of schema) checkStrictSchema(each, allRequired, say);
    return;
  }
  if (!isObject(schema)) return;
  const { type, properties } = schema;
  const isObjectSchema = type === 'object' || (Array.isArray(type) && type.includes('object')) || isObject(properties);
  if (isObjectSchema) {
    if (schema['additionalProperties'] !== false) say('an object that is open though the schema is strict');
    const required: readonly unknown[] = Array.isArray(schema['required']) ? schema['required'] : [];
    const names = isObject(properties) ? Object.keys(properties) : [];
    if (allRequired && names.some((name) => !required.includes(name))) say('an optional property though the schema is strict');
  }
  for (const [keyword, inner] of Object.entries(schema)) {
    // Names of properties are no keywords.
    if ((keyword === 'properties' || keyword === '$defs') && isObject(inner)) {
      for (const each of Object.values(inner)) checkStrictSchema(each, allRequired, say);
    } else if (keyword !== 'enum' && keyword !== 'const' && keyword !== 'default') {
      checkStrictSchema(inner, allRequired, say);
    }
  }
}
