/**
 * What the tests of tool schemas share: a validator that follows the words of draft 2020-12, generated schemas whose
 * meaning it knows, and values for them.
 */
import fc from 'fast-check';
import type { JsonObject, JsonSchema, JsonValue } from 'turnloop';
import { checkGeminiSchema } from '../support/gemini-schema-rules.ts';

/** The value, with everything in it frozen: whoever writes into it fails. */
export function frozen<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const child of Object.values(value)) frozen(child);
  }
  return value;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value fits a schema. Knows the keywords that are generated here and by the libraries of the tests. */
export function fits(root: JsonSchema, value: JsonValue): boolean {
  const text = (given: JsonValue | undefined): string => JSON.stringify(given, (_key, each: JsonValue) => (isObject(each) ? Object.fromEntries(Object.entries(each).sort()) : each));
  const list = (schemas: JsonValue | undefined): readonly JsonValue[] => (Array.isArray(schemas) ? (schemas as readonly JsonValue[]) : []);
  const typeOf = (given: JsonValue): string => (given === null ? 'null' : Array.isArray(given) ? 'array' : typeof given);
  const target = (reference: string): JsonValue =>
    reference
      .split('/')
      .slice(1)
      .reduce<JsonValue>((at, key) => (at as JsonObject)[key]!, root);

  const fitsType = (type: JsonValue | undefined, given: JsonValue): boolean =>
    type === undefined || [type].flat().some((name) => name === typeOf(given) || (name === 'integer' && Number.isInteger(given)));

  function fitsText({ minLength, maxLength, pattern }: JsonObject, given: string): boolean {
    return given.length >= Number(minLength ?? 0) && given.length <= Number(maxLength ?? Infinity) && (typeof pattern !== 'string' || new RegExp(pattern, 'u').test(given));
  }

  function fitsNumber({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonObject, given: number): boolean {
    return given >= Number(minimum ?? -Infinity) && given <= Number(maximum ?? Infinity) && given > Number(exclusiveMinimum ?? -Infinity) && given < Number(exclusiveMaximum ?? Infinity);
  }

  function fitsArray({ prefixItems, items, minItems, maxItems }: JsonObject, given: readonly JsonValue[]): boolean {
    const first = list(prefixItems);
    return given.length >= Number(minItems ?? 0) && given.length <= Number(maxItems ?? Infinity) && given.every((item, index) => check(first[index] ?? items ?? true, item));
  }

  function fitsObject({ properties, required, additionalProperties }: JsonObject, given: JsonObject): boolean {
    const known = isObject(properties) ? properties : {};
    return (
      list(required).every((name) => Object.hasOwn(given, name as string)) &&
      Object.entries(given).every(([name, each]) => check(Object.hasOwn(known, name) ? known[name]! : (additionalProperties ?? true), each))
    );
  }

  function check(schema: JsonValue, given: JsonValue): boolean {
    if (typeof schema === 'boolean') return schema;
    const keywords = schema as JsonObject;
    const { $ref: reference, type, enum: values, const: only, allOf, anyOf, oneOf, not } = keywords;
    return (
      (reference === undefined || check(target(reference as string), given)) &&
      fitsType(type, given) &&
      (values === undefined || list(values).some((each) => text(each) === text(given))) &&
      (only === undefined || text(only) === text(given)) &&
      (typeof given !== 'string' || fitsText(keywords, given)) &&
      (typeof given !== 'number' || fitsNumber(keywords, given)) &&
      (!Array.isArray(given) || fitsArray(keywords, given as readonly JsonValue[])) &&
      (!isObject(given) || fitsObject(keywords, given)) &&
      list(allOf).every((each) => check(each, given)) &&
      (anyOf === undefined || list(anyOf).some((each) => check(each, given))) &&
      (oneOf === undefined || list(oneOf).filter((each) => check(each, given)).length === 1) &&
      (not === undefined || !check(not, given))
    );
  }

  return check(root, value);
}

const NAMES = ['a', 'b', 'c'] as const;
const DEFINITIONS = ['D0', 'D1', 'D2', 'D3'] as const;

/** Values that a generated schema may be about. */
const anyValue: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<JsonValue>(null, true, false, '', 'x', 'xx', 'xxx', -1, 0, 1, 2, 2.5),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie('value'), { maxKeys: 3 }),
  ),
})).value;

/** An object, as arguments are. */
export const anyArguments: fc.Arbitrary<JsonObject> = fc.dictionary(fc.constantFrom(...NAMES), anyValue, { maxKeys: 3 });

const scalar: fc.Arbitrary<JsonObject> = fc.oneof(
  fc.constantFrom<JsonObject>({ type: 'string' }, { type: 'boolean' }, { type: 'null' }, { type: ['string', 'null'] }, { type: ['number', 'boolean'] }, {}),
  fc.record({ type: fc.constant('string'), minLength: fc.nat(2), maxLength: fc.integer({ min: 1, max: 3 }), description: fc.constant('text') }, { requiredKeys: ['type'] }),
  fc.record({ type: fc.constantFrom('integer', 'number'), minimum: fc.integer({ min: -1, max: 1 }), exclusiveMaximum: fc.nat(3) }, { requiredKeys: ['type'] }),
  fc.record({ type: fc.constant('string'), enum: fc.constantFrom(['x'], ['x', 'xx']) }),
  fc.record({ type: fc.constant('integer'), const: fc.nat(2) }),
);

/** What may stand beside a reference. */
const siblings: fc.Arbitrary<JsonObject> = fc.constantFrom<JsonObject>(
  ...[{}, {}, {}, { description: 'use' }, { type: 'string', minLength: 2, title: 'use' }, { type: 'integer', minimum: 0 }],
  ...[{ type: 'object', required: ['a'] }, { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false }, { enum: ['x', 'xxx'], type: 'string' }],
);

interface Within {
  readonly depth: number;
  /** References for the same value lead to later definitions only: so none leads back to itself. */
  readonly from: number;
}

function referenceFrom({ from }: Within): fc.Arbitrary<JsonObject> {
  const targets = [...(from === 0 ? ['#'] : []), ...DEFINITIONS.slice(from).map((name) => `#/$defs/${name}`)];
  return targets.length === 0 ? scalar : fc.tuple(fc.constantFrom(...targets), siblings).map(([$ref, beside]) => ({ $ref, ...beside }));
}

function objectAt({ depth }: Within): fc.Arbitrary<JsonObject> {
  const inner = schemaAt({ depth: depth - 1, from: 0 });
  return fc.record(
    {
      type: fc.constant('object'),
      properties: fc.dictionary(fc.constantFrom(...NAMES), inner, { maxKeys: 3 }),
      required: fc.subarray([...NAMES], { maxLength: 1 }),
      additionalProperties: fc.oneof(fc.constant<JsonValue>(false), inner),
    },
    { requiredKeys: ['type'] },
  );
}

function arrayAt({ depth }: Within): fc.Arbitrary<JsonObject> {
  const inner = schemaAt({ depth: depth - 1, from: 0 });
  return fc.record(
    { type: fc.constant('array'), prefixItems: fc.array(inner, { minLength: 1, maxLength: 2 }), items: fc.oneof(fc.constant<JsonValue>(false), inner), minItems: fc.nat(1) },
    { requiredKeys: ['type', 'items'] },
  );
}

function schemaAt(within: Within): fc.Arbitrary<JsonObject> {
  if (within.depth <= 0) return fc.oneof(scalar, referenceFrom(within));
  const branch = schemaAt({ ...within, depth: within.depth - 1 });
  return fc.oneof(
    { arbitrary: scalar, weight: 3 },
    { arbitrary: referenceFrom(within), weight: 3 },
    { arbitrary: objectAt(within), weight: 3 },
    { arbitrary: arrayAt(within), weight: 2 },
    { arbitrary: fc.tuple(fc.constantFrom('anyOf', 'oneOf', 'allOf'), fc.array(branch, { minLength: 1, maxLength: 2 })).map(([keyword, branches]) => ({ [keyword]: branches })), weight: 2 },
    { arbitrary: branch.map((not) => ({ not })), weight: 1 },
  );
}

/**
 * Schemas of tools with references everywhere, also recursive ones. Each states the types that it is about, so that a
 * reduced schema has no reason to mean anything else.
 */
export const anySchema: fc.Arbitrary<JsonSchema> = fc
  .tuple(objectAt({ depth: 2, from: 0 }), fc.tuple(...DEFINITIONS.map((_name, index) => schemaAt({ depth: 2, from: index + 1 }))))
  .map(([root, definitions]) => ({ ...root, properties: root['properties'] ?? {}, $defs: Object.fromEntries(DEFINITIONS.map((name, index) => [name, definitions[index] ?? {}])) }));

/** The same schema in the words of draft 7 and, for exclusive limits, of draft 4. */
export function inOlderWords(schema: JsonValue): JsonValue {
  if (Array.isArray(schema)) return (schema as readonly JsonValue[]).map(inOlderWords);
  if (!isObject(schema)) return schema;
  const { $defs, $ref: reference, prefixItems, items, exclusiveMaximum, ...rest } = schema;
  return {
    ...Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, inOlderWords(value)])),
    ...($defs !== undefined && { definitions: inOlderWords($defs) }),
    ...(typeof reference === 'string' && { $ref: reference.replace('#/$defs/', '#/definitions/') }),
    ...(prefixItems === undefined ? items !== undefined && { items: inOlderWords(items) } : { items: inOlderWords(prefixItems), ...(items !== undefined && { additionalItems: inOlderWords(items) }) }),
    ...(exclusiveMaximum !== undefined && { maximum: exclusiveMaximum, exclusiveMaximum: true }),
  };
}

/** Every reference in a schema that has none among its data. */
export function referencesIn(schema: JsonValue | undefined): readonly string[] {
  if (Array.isArray(schema)) return (schema as readonly JsonValue[]).flatMap(referencesIn);
  if (!isObject(schema)) return [];
  return [...(typeof schema['$ref'] === 'string' ? [schema['$ref']] : []), ...Object.values(schema).flatMap(referencesIn)];
}

/** What a server of Gemini's that knows its own words only refuses in `parameters`. Objects without properties have no other form, and newer servers take them. */
export function geminiRefusals(schema: unknown): readonly string[] {
  const rules: string[] = [];
  checkGeminiSchema(schema, 'parameters', (rule) => rules.push(rule));
  return rules.filter((rule) => !rule.endsWith('an object without properties'));
}
