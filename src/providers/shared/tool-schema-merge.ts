/** Merging: one schema for what two say, of the same value. */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import { isAssertion, isList, isObject } from './tool-schema-keywords.ts';

/** Keywords that read each other: those of two schemas may not be mixed. */
const GROUPS: readonly (readonly string[])[] = [
  ['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties'],
  ['prefixItems', 'items', 'additionalItems', 'unevaluatedItems', 'contains', 'minContains', 'maxContains'],
  ['if', 'then', 'else'],
  ['minimum', 'exclusiveMinimum'],
  ['maximum', 'exclusiveMaximum'],
  ['contentEncoding', 'contentMediaType', 'contentSchema'],
];
/** They look at what all other keywords left over, so nothing may join them. */
const UNEVALUATED = ['unevaluatedProperties', 'unevaluatedItems'];

/**
 * A schema for what fits both. Of annotations (title, description, default …) those of `use` win: they are about this use
 * of the schema.
 */
export function both(base: JsonObject, use: JsonObject): JsonObject {
  const [first, second] = [assertionsOf(base), assertionsOf(use)];
  if (first.length === 0 || second.length === 0 || canJoin(base, use)) return { ...base, ...use, ...joinedLists(base, use) };
  const { allOf } = use;
  // Some servers look for a type in every schema.
  const type = use['type'] ?? base['type'];
  return { ...use, ...(type !== undefined && { type }), allOf: [base, ...(isList(allOf) ? allOf : [])] };
}

function assertionsOf(schema: JsonObject): readonly string[] {
  return Object.keys(schema).filter(isAssertion);
}

function canJoin(base: JsonObject, use: JsonObject): boolean {
  if ([...UNEVALUATED, '$ref'].some((keyword) => Object.hasOwn(base, keyword) || Object.hasOwn(use, keyword))) return false;
  if (GROUPS.some((group) => [base, use].every((schema) => group.some((keyword) => Object.hasOwn(schema, keyword))))) return false;
  return assertionsOf(use).every((keyword) => !Object.hasOwn(base, keyword) || isEqual(base[keyword], use[keyword]) || keyword === 'allOf' || keyword === 'required');
}

/** The lists of which both have one and which add up. */
function joinedLists(base: JsonObject, use: JsonObject): JsonObject {
  const joined: [string, JsonValue][] = [];
  for (const keyword of ['allOf', 'required']) {
    const [first, second] = [base[keyword], use[keyword]];
    if (isList(first) && isList(second)) joined.push([keyword, keyword === 'allOf' ? [...first, ...second] : [...new Set([...first, ...second])]]);
  }
  return Object.fromEntries(joined);
}

/** A schema for what fits any of these; at least one is given. */
export function anyOf(schemas: readonly JsonObject[]): JsonObject {
  const different = distinct(schemas);
  const [only, ...others] = different;
  if (only === undefined || others.length === 0) return only ?? {};
  const free = different.find((schema) => assertionsOf(schema).length === 0);
  if (free !== undefined) return free;
  const values = different.map(listedValues);
  const { type } = only;
  if (values.every((list) => list !== undefined) && others.every((schema) => isEqual(schema['type'], type))) {
    return { ...(type !== undefined && { type }), enum: distinct(values.flat()) };
  }
  return { anyOf: different.flatMap((schema) => (isList(schema['anyOf']) && Object.keys(schema).length === 1 ? schema['anyOf'] : [schema])) };
}

/** The values of a schema that only lists them. */
function listedValues(schema: JsonObject): readonly JsonValue[] | undefined {
  if (!Object.keys(schema).every((keyword) => keyword === 'type' || keyword === 'const' || keyword === 'enum')) return undefined;
  const { const: only, enum: values } = schema;
  if (only !== undefined) return [only];
  return isList(values) ? values : undefined;
}

function distinct<Value extends JsonValue>(values: readonly Value[]): readonly Value[] {
  return values.filter((value, index) => values.findIndex((other) => isEqual(other, value)) === index);
}

/** Whether two JSON values are the same, whatever the order of their keys. */
export function isEqual(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  if (left === right) return true;
  if (isList(left) && isList(right)) return left.length === right.length && left.every((value, index) => isEqual(value, right[index]));
  if (!isObject(left) || !isObject(right)) return false;
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => Object.hasOwn(right, key) && isEqual(left[key], right[key]));
}
