/**
 * Strict schema: whether a server can hold a reply to a JSON Schema, word by word.
 *
 * Tools are never sent as strict: that needs every property to be required, and one schema that breaks a rule makes the
 * whole request fail. A response schema is sent as strict if it follows the rules as it is. It is never bent to them:
 * what is optional would have to become nullable, and whoever gave the schema would get nulls that it does not allow.
 *
 * The rules are those of OpenAI's structured outputs, read narrowly: what is not known to be taken counts as not taken.
 */
import type { JsonObject, JsonSchema, JsonValue } from '../../core/json.ts';
import { DEFINITIONS, isList, isObject, typesOf } from './tool-schema-keywords.ts';

const MAX_PROPERTIES = 5000;
const MAX_NESTING = 10;
const MAX_ENUM_VALUES = 1000;
/** Of all names and listed values together, in characters. */
const MAX_NAMED_LENGTH = 120_000;
/** An `enum` of more values than this may not be longer than the next figure, in characters. */
const LONG_ENUM = 250;
const MAX_LONG_ENUM_LENGTH = 15_000;

const TEXTS = ['title', 'description', '$comment'];
const NUMBER_KEYWORDS = ['multipleOf', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'];
/** What each type may have, besides texts, `enum` and `const`. */
const KEYWORDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['object', ['properties', 'required', 'additionalProperties']],
  ['array', ['items', 'minItems', 'maxItems']],
  ['string', ['pattern', 'format']],
  ['number', NUMBER_KEYWORDS],
  ['integer', NUMBER_KEYWORDS],
  ['boolean', []],
  ['null', []],
]);
const FORMATS: ReadonlySet<JsonValue> = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid']);

/** What a schema has used up. */
interface Count {
  properties: number;
  enumValues: number;
  length: number;
}

/**
 * Whether a response schema may be sent with `strict: true`: each object is closed and requires all it has, the root is
 * an object, and no keyword is beyond what strict mode takes.
 */
export function isStrictSchema(schema: JsonSchema): boolean {
  const { $schema: _dialect, $defs = {}, definitions: older = {}, ...root } = schema;
  if (root['type'] !== 'object' || !isObject($defs) || !isObject(older)) return false;
  const definitions = { ...older, ...$defs };
  const count: Count = { properties: 0, enumValues: 0, length: Object.keys(definitions).join('').length };
  return (
    [root, ...Object.values(definitions)].every((each) => isStrict(each, { count, definitions, nesting: 1 })) &&
    count.properties <= MAX_PROPERTIES &&
    count.enumValues <= MAX_ENUM_VALUES &&
    count.length <= MAX_NAMED_LENGTH
  );
}

interface Document {
  readonly count: Count;
  readonly definitions: JsonObject;
  /** How many objects and arrays deep. */
  readonly nesting: number;
}

function isStrict(schema: JsonValue, document: Document): boolean {
  if (!isObject(schema) || document.nesting > MAX_NESTING) return false;
  const { $ref: reference, anyOf: branches, ...rest } = schema;
  if (reference !== undefined) return Object.keys(schema).length === 1 && isKnownReference(reference, document.definitions);
  if (branches === undefined) return isStrictType(rest, document);
  return hasOnly(rest, []) && isList(branches) && branches.length > 0 && branches.every((branch) => isStrict(branch, document));
}

function isKnownReference(reference: JsonValue, definitions: JsonObject): boolean {
  if (reference === '#') return true;
  const [root, keyword = '', name = '', ...others] = typeof reference === 'string' ? reference.split('/') : [];
  if (root !== '#' || !DEFINITIONS.includes(keyword) || !Object.hasOwn(definitions, name) || others.length > 0) return false;
  // One that stands for another says nothing by itself, and the two may stand for each other.
  const definition = definitions[name];
  return isObject(definition) && definition['$ref'] === undefined;
}

function isStrictType(schema: JsonObject, document: Document): boolean {
  const types = typesOf(schema['type']);
  const keywords = types.flatMap((type) => KEYWORDS.get(type) ?? ['']);
  if (types.length === 0 || keywords.includes('') || !hasOnly(schema, ['type', 'enum', 'const', ...keywords])) return false;
  const { format, enum: values, const: only } = schema;
  if (format !== undefined && !FORMATS.has(format)) return false;
  if (values !== undefined && !isStrictEnum(values, types, document.count)) return false;
  if (only !== undefined && !isStrictEnum([only], types, document.count)) return false;
  const inner = { ...document, nesting: document.nesting + 1 };
  return types.every((type) => (type === 'object' ? isStrictObject(schema, inner) : type !== 'array' || isStrict(schema['items'] ?? null, inner)));
}

function isStrictObject({ properties, required, additionalProperties }: JsonObject, document: Document): boolean {
  if (!isObject(properties) || !isList(required) || additionalProperties !== false) return false;
  const names = Object.keys(properties);
  document.count.properties += names.length;
  document.count.length += names.join('').length;
  return (
    names.length === required.length &&
    names.every((name) => required.includes(name)) &&
    Object.values(properties).every((property) => isStrict(property, document))
  );
}

function isStrictEnum(values: JsonValue, types: readonly string[], count: Count): boolean {
  if (!isList(values) || values.length === 0) return false;
  const { length } = values.map(String).join('');
  count.enumValues += values.length;
  count.length += length;
  if (values.length > LONG_ENUM && length > MAX_LONG_ENUM_LENGTH) return false;
  return values.every((value) => types.some((type) => (type === 'integer' ? Number.isInteger(value) : type === (value === null ? 'null' : typeof value))));
}

function hasOnly(schema: JsonObject, keywords: readonly string[]): boolean {
  return Object.keys(schema).every((keyword) => keywords.includes(keyword) || TEXTS.includes(keyword));
}
