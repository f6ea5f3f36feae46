/**
 * Keywords: which keywords of a JSON Schema hold schemas, and what those are about. Whatever stands under other keywords
 * (`enum`, `default`, a host's own) is data: a `$ref` in there is a text like any other.
 *
 * Keywords of drafts 4 to 2020-12 are known; names of properties never count as keywords.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';

/** Where a schema stands in the schema around it. */
export interface Place {
  readonly keyword: string;
  /**
   * `value`: it describes a value of its own, such as a property. `branch`: it adds to the schema around it, for the same
   * value. `condition`: whether it holds decides about something else, so that narrowing it may widen the whole.
   */
  readonly role: 'value' | 'branch' | 'condition';
  /** Whether it looks at the same value as the schema around it. */
  readonly sameValue: boolean;
}

interface Holder extends Place {
  readonly form: 'schema' | 'list' | 'map' | 'schema or list';
}

const HOLDERS: ReadonlyMap<string, Holder> = new Map(
  [
    ...holders({ form: 'map', role: 'value', sameValue: false }, ['properties', 'patternProperties']),
    ...holders({ form: 'schema', role: 'value', sameValue: false }, [
      'additionalProperties',
      'unevaluatedProperties',
      'additionalItems',
      'unevaluatedItems',
      'contentSchema',
    ]),
    ...holders({ form: 'schema or list', role: 'value', sameValue: false }, ['items']),
    ...holders({ form: 'list', role: 'value', sameValue: false }, ['prefixItems']),
    ...holders({ form: 'list', role: 'branch', sameValue: true }, ['allOf', 'anyOf', 'oneOf']),
    ...holders({ form: 'schema', role: 'condition', sameValue: true }, ['not', 'if', 'then', 'else']),
    ...holders({ form: 'map', role: 'condition', sameValue: true }, ['dependentSchemas', 'dependencies']),
    ...holders({ form: 'schema', role: 'condition', sameValue: false }, ['contains', 'propertyNames']),
  ].map((holder) => [holder.keyword, holder]),
);

function holders(holder: Omit<Holder, 'keyword'>, keywords: readonly string[]): Holder[] {
  return keywords.map((keyword) => ({ keyword, ...holder }));
}

/** Where older and newer drafts keep the schemas that are only referred to. */
export const DEFINITIONS: readonly string[] = ['$defs', 'definitions'];

/** What asserts something about a value. Everything else, also what nobody knows, is an annotation. */
const ASSERTIONS: ReadonlySet<string> = new Set([
  ...HOLDERS.keys(),
  ...['$ref', '$dynamicRef', '$recursiveRef', 'type', 'enum', 'const', 'nullable', 'format'],
  ...['multipleOf', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minLength', 'maxLength', 'pattern'],
  ...['contentEncoding', 'contentMediaType', 'minItems', 'maxItems', 'uniqueItems', 'minContains', 'maxContains'],
  ...['required', 'minProperties', 'maxProperties', 'dependentRequired'],
]);

/** Whether a keyword asserts something about a value; titles, descriptions, defaults and unknown keywords do not. */
export function isAssertion(keyword: string): boolean {
  return ASSERTIONS.has(keyword);
}

/** True for the object form of a schema, and for every other JSON object. */
export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** True for a JSON array. */
export function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** The types of a schema, as a list. */
export function typesOf(type: JsonValue | undefined): readonly string[] {
  return (isList(type) ? type : [type]).filter((one): one is string => typeof one === 'string');
}

/**
 * A copy of a schema with other subschemas. A keyword that should hold schemas and holds none is left out, which no server
 * would take; where only one of several is none, it counts as a schema for anything.
 */
export function mapSubschemas(schema: JsonObject, map: (child: JsonObject | boolean, place: Place) => JsonValue): JsonObject {
  const entries: [string, JsonValue][] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    const holder = HOLDERS.get(keyword);
    const mapped = holder === undefined ? value : mapHeld(value, holder, map);
    // Also where the host's code left a keyword undefined: JSON has no such thing.
    if (mapped !== undefined) entries.push([keyword, mapped]);
  }
  // Also `__proto__` is a property like any other: entries are defined, never assigned.
  return Object.fromEntries(entries);
}

function mapHeld(value: JsonValue, holder: Holder, map: (child: JsonObject | boolean, place: Place) => JsonValue): JsonValue | undefined {
  const { form } = holder;
  if (isList(value)) {
    // A tuple of nothing is one; a choice of nothing is no schema.
    if (form === 'list' ? value.length === 0 : form !== 'schema or list') return undefined;
    return value.map((child) => map(isSchema(child) ? child : true, holder));
  }
  if (form === 'map') {
    if (!isObject(value)) return undefined;
    return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, isNames(child, holder) ? child : map(isSchema(child) ? child : true, holder)]));
  }
  return form !== 'list' && isSchema(value) ? map(value, holder) : undefined;
}

/** What draft 7 calls a dependency is a schema, or names that depend on a name. */
function isNames(value: JsonValue, { keyword }: Holder): boolean {
  return keyword === 'dependencies' && isList(value);
}

function isSchema(value: JsonValue): value is JsonObject | boolean {
  return typeof value === 'boolean' || isObject(value);
}

/** The subschemas of a schema, with the place where each stands. Definitions are not among them. */
export function subschemasOf(schema: JsonObject): readonly (readonly [JsonObject, Place])[] {
  const found: [JsonObject, Place][] = [];
  mapSubschemas(schema, (child, place) => {
    if (typeof child !== 'boolean') found.push([child, place]);
    return child;
  });
  return found;
}
