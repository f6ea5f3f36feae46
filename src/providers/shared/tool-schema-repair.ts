/**
 * Repair: a schema in the words of draft 2020-12, with a type wherever it is clear which.
 *
 * Servers refuse a whole request over one schema they cannot read: draft-4 and draft-7 forms, an array without `items`, a
 * property without a type, an `enum` that does not fit its type. What a schema accepts stays the same, with these exceptions, in which
 * it says more clearly what its author meant:
 * - a type is added where the other keywords are about one type only (`properties` → object, `minLength` → string)
 * - a type that none of the listed values has gives way to theirs
 * - OpenAPI's `nullable`, which JSON Schema does not know, admits null
 * - what no validator could read is left out: unknown types, an empty `enum`, a `required` that is no list
 *
 * Conditions (`not`, `if` …) get no types: what narrows them could widen the whole.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import { isAssertion, isList, isObject, mapSubschemas, type Place, typesOf } from './tool-schema-keywords.ts';

/** `typed`: a branch of a schema that has a type. `condition`: in a condition, however deep. */
type Context = 'value' | 'typed' | 'condition';
type Keywords = Map<string, JsonValue>;

const TYPES: ReadonlySet<string> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);

/** Where servers expect a boolean as often as a schema. */
const BOOLEAN_PLACES: ReadonlySet<string> = new Set(['additionalProperties', 'unevaluatedProperties', 'unevaluatedItems']);

/** What only says something about values of one type. */
const STRUCTURE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    object: ['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties', 'propertyNames', 'required', 'minProperties', 'maxProperties', 'dependentRequired', 'dependentSchemas'],
    array: ['items', 'prefixItems', 'unevaluatedItems', 'contains', 'minItems', 'maxItems', 'uniqueItems'],
    string: ['minLength', 'maxLength', 'pattern', 'contentEncoding', 'contentMediaType'],
    number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  }).flatMap(([type, keywords]) => keywords.map((keyword) => [keyword, type] as const)),
);

/** Repairs a schema whose references are inlined, and everything in it. */
export function repairSchema(schema: JsonObject): JsonObject {
  return repair(schema, 'value');
}

function repair(schema: JsonObject, context: Context): JsonObject {
  const keywords: Keywords = new Map(Object.entries(schema));
  dropUnreadable(keywords);
  renewForms(keywords);
  admitNull(keywords);
  if (context === 'value') settleTypes(keywords);
  requireItems(keywords);
  const isTyped = context === 'typed' || keywords.has('type');
  return mapSubschemas(Object.fromEntries(keywords), (child, place) => repairChild(child, place, contextOf(place, context, isTyped)));
}

function contextOf({ role }: Place, context: Context, isTyped: boolean): Context {
  if (context === 'condition' || role === 'condition') return 'condition';
  return role === 'branch' && isTyped ? 'typed' : 'value';
}

function repairChild(child: JsonObject | boolean, { keyword }: Place, context: Context): JsonValue {
  if (typeof child !== 'boolean') return repair(child, context);
  if (BOOLEAN_PLACES.has(keyword) || (keyword === 'items' && !child)) return child;
  return child ? {} : { not: {} };
}

function dropUnreadable(keywords: Keywords): void {
  const type = keywords.get('type');
  const types = [...new Set(typesOf(type).map((name) => name.toLowerCase()))].filter((name) => TYPES.has(name));
  if (types.length === 0) keywords.delete('type');
  else keywords.set('type', isList(type) ? types : types[0] ?? null);
  const required = keywords.get('required');
  if (isList(required)) keywords.set('required', [...new Set(required.filter((name) => typeof name === 'string'))]);
  else keywords.delete('required');
  const values = keywords.get('enum');
  if (!isList(values) || values.length === 0) keywords.delete('enum');
  for (const text of ['title', 'description']) if (typeof keywords.get(text) !== 'string') keywords.delete(text);
}

/** The forms of drafts 4 to 7, as draft 2020-12 has them. */
function renewForms(keywords: Keywords): void {
  const items = keywords.get('items');
  const rest = keywords.get('additionalItems');
  keywords.delete('additionalItems');
  if (isList(items)) {
    keywords.delete('items');
    keywords.set('prefixItems', items);
    if (rest !== undefined) keywords.set('items', rest);
  }
  for (const [limit, exclusive] of [['minimum', 'exclusiveMinimum'], ['maximum', 'exclusiveMaximum']] as const) {
    const flag = keywords.get(exclusive);
    if (typeof flag !== 'boolean') continue;
    const value = keywords.get(limit);
    keywords.delete(exclusive);
    if (!flag || value === undefined) continue;
    keywords.delete(limit);
    keywords.set(exclusive, value);
  }
  const dependencies = keywords.get('dependencies');
  keywords.delete('dependencies');
  if (isObject(dependencies)) {
    addEntries(keywords, 'dependentRequired', Object.entries(dependencies).filter(([, value]) => isList(value)));
    addEntries(keywords, 'dependentSchemas', Object.entries(dependencies).filter(([, value]) => !isList(value)));
  }
}

function addEntries(keywords: Keywords, keyword: string, entries: readonly [string, JsonValue][]): void {
  const known = keywords.get(keyword);
  if (entries.length > 0) keywords.set(keyword, { ...Object.fromEntries(entries), ...(isObject(known) && known) });
}

/** Turns `nullable: true` into what draft 2020-12 has for it. */
function admitNull(keywords: Keywords): void {
  const isNullable = keywords.get('nullable') === true;
  keywords.delete('nullable');
  if (!isNullable) return;
  const assertions = [...keywords].filter(([keyword]) => isAssertion(keyword));
  const isPlain = assertions.every(([keyword]) => keyword === 'type' || keyword === 'enum' || STRUCTURE.has(keyword) || keyword === 'format');
  const alternatives = keywords.get('anyOf');
  if (isPlain) {
    const types = keywords.has('type') ? typesOf(keywords.get('type')) : structuralTypes(keywords);
    if (types.length > 0 && !types.includes('null')) keywords.set('type', [...types, 'null']);
    const values = keywords.get('enum');
    if (isList(values) && !values.includes(null)) keywords.set('enum', [...values, null]);
  } else if (isList(alternatives) && assertions.length === 1) {
    if (!alternatives.some((one) => isObject(one) && one['type'] === 'null')) keywords.set('anyOf', [...alternatives, { type: 'null' }]);
  } else {
    for (const [keyword] of assertions) keywords.delete(keyword);
    keywords.set('anyOf', [Object.fromEntries(assertions), { type: 'null' }]);
  }
}

/** Makes the type and the listed values of a schema fit each other, and finds a type where none is given. */
function settleTypes(keywords: Keywords): void {
  const types = typesOf(keywords.get('type'));
  const values = listedValues(keywords);
  if (values === undefined) {
    const found = structuralTypes(keywords);
    if (types.length === 0 && found.length === 1 && branchesAllow(keywords, found)) keywords.set('type', found[0] ?? null);
    return;
  }
  const fitting = values.filter((value) => types.some((type) => isOfType(value, type)));
  if (fitting.length === values.length) return;
  if (fitting.length > 0) keywords.set('enum', fitting);
  else setTypeOf(values, keywords);
}

function listedValues(keywords: Keywords): readonly JsonValue[] | undefined {
  const only = keywords.get('const');
  if (only !== undefined) return [only];
  const values = keywords.get('enum');
  return isList(values) ? values : undefined;
}

/**
 * Gives listed values their type. Values of several types become one branch for each type, since some servers take a
 * schema with values of one type only.
 */
function setTypeOf(values: readonly JsonValue[], keywords: Keywords): void {
  const byType = new Map<string, JsonValue[]>();
  for (const value of values) {
    const type = typeNameOf(value);
    byType.set(type, [...(byType.get(type) ?? []), value]);
  }
  const hasNull = byType.delete('null');
  const types = [...byType].map(([type, ofType]) => (type === 'number' && ofType.every(Number.isInteger) ? 'integer' : type));
  const [only, ...others] = types;
  if (others.length === 0 || keywords.has('anyOf')) {
    const all = [...types, ...(hasNull ? ['null'] : [])];
    keywords.set('type', all.length === 1 ? only ?? 'null' : all);
    return;
  }
  keywords.delete('type');
  keywords.delete('enum');
  keywords.set('anyOf', [
    ...[...byType.values()].map((ofType, index) => ({ type: types[index] ?? null, enum: ofType })),
    ...(hasNull ? [{ type: 'null' }] : []),
  ]);
}

function typeNameOf(value: JsonValue): string {
  if (value === null) return 'null';
  return isList(value) ? 'array' : typeof value;
}

function isOfType(value: JsonValue, type: string): boolean {
  return type === 'integer' ? Number.isInteger(value) : typeNameOf(value) === type;
}

/** The types that the other keywords are about: one, if they make sense. */
function structuralTypes(keywords: Keywords): readonly string[] {
  return [...new Set([...keywords.keys()].flatMap((keyword) => STRUCTURE.get(keyword) ?? []))];
}

/** Whether the branches of a schema leave room for a type: `properties` beside a branch for texts are about the rest. */
function branchesAllow(keywords: Keywords, types: readonly string[]): boolean {
  if (keywords.has('$ref')) return false;
  return ['allOf', 'anyOf', 'oneOf'].every((keyword) => {
    const branches = keywords.get(keyword);
    return !isList(branches) || branches.every((branch) => isObject(branch) && !Object.hasOwn(branch, '$ref') && typesOf(branch['type']).every((type) => types.includes(type)));
  });
}

/** An array says what is in it, if only that it may be anything. */
function requireItems(keywords: Keywords): void {
  if (!typesOf(keywords.get('type')).includes('array')) return;
  if (!keywords.has('items') && !keywords.has('unevaluatedItems')) keywords.set('items', {});
}
