/**
 * Tool schema for Gemini: a JSON Schema in the words of `functionDeclarations[].parameters`, a subset of OpenAPI 3.0.
 *
 * A function declaration has two fields for its arguments, of which one may be set:
 * - `parametersJsonSchema` takes JSON Schema, so what `toToolSchema` gives. It is the better choice: maps
 *   (`additionalProperties`), tuples, listed numbers and limits reach the model. Known to the Gemini API and Vertex AI since
 *   mid-2025. References there may have a description and a default beside them and nothing else, and recursive ones
 *   may stand in optional properties only: a schema that keeps a `$ref` is safer in the other field.
 * - `parameters` takes what this file writes. It is for recursive schemas, and for gateways and models that do not know
 *   the newer field. They refuse any keyword they do not know and any schema without a type.
 *
 * What is lost here is checked all the same, by the tool: conditions, closed objects, maps, patterns (they are read by
 * another engine), formats but `date-time`. Listed values that are no texts go into the description.
 *
 * - A recursive schema is written once, and once more inside itself. Where it comes up again only its types are told: an
 *   object without properties, as a rule. So is everything recursive once a thousand schemas are written.
 * - Beside `anyOf` nothing may stand: what is said of the whole is said in its first branch.
 */
import type { JsonObject, JsonSchema, JsonValue } from '../../core/json.ts';
import { DEFINITIONS_POINTER } from './tool-schema-inline.ts';
import { isAssertion, isList, isObject, typesOf } from './tool-schema-keywords.ts';
import { anyOf, both, isEqual } from './tool-schema-merge.ts';
import { repairSchema } from './tool-schema-repair.ts';
import { shapeOf } from './tool-schema-shape.ts';
import { toToolSchema } from './tool-schema.ts';

/** Once as what it is, once inside itself to show how it goes on; servers refuse what is nested deep. */
const MAX_OPENINGS = 2;
const MAX_SCHEMAS = 1000;
/** The types of any value. Arrays are not among them: they would have to say of what. */
const ANY_TYPE = ['string', 'number', 'boolean', 'object'];

const LIMITS: ReadonlyMap<string, readonly string[]> = new Map([
  ['string', ['minLength', 'maxLength']],
  ['array', ['minItems', 'maxItems']],
  ['object', ['minProperties', 'maxProperties']],
]);
const FORMATS: ReadonlyMap<string, readonly string[]> = new Map([
  ['string', ['date-time']],
  ['integer', ['int32', 'int64']],
  ['number', ['float', 'double']],
]);

const written = new WeakMap<JsonSchema, { readonly parameters: JsonObject | undefined }>();

/**
 * The value of `parameters` for a tool's schema; `undefined` for a tool without any, where the field is left out. The
 * schema stays as it is, and gets the same answer each time.
 *
 * @param schema - Of an object, as `ToolDefinition.inputSchema` is.
 */
export function toGeminiSchema(schema: JsonSchema): JsonObject | undefined {
  const known = written.get(schema);
  if (known !== undefined) return known.parameters;
  const root = toToolSchema(schema);
  const object = createWriter(root)(root, { opened: ['#'] });
  const parameters = isObject(object['properties']) ? object : undefined;
  written.set(schema, { parameters });
  return parameters;
}

interface Position {
  /** The references on the way here. */
  readonly opened: readonly string[];
  /** Set where only types are told: the references on the way since then. */
  readonly outline?: readonly string[];
}

function createWriter(root: JsonSchema): (schema: JsonObject, at: Position) => JsonObject {
  const definitions = isObject(root['$defs']) ? root['$defs'] : {};
  let schemas = 0;

  function definitionOf(reference: string): JsonObject | undefined {
    if (reference === '#') return root;
    const name = reference.slice(DEFINITIONS_POINTER.length);
    const definition = Object.hasOwn(definitions, name) ? definitions[name] : undefined;
    return isObject(definition) ? definition : undefined;
  }

  function write(schema: JsonObject, at: Position): JsonObject {
    schemas += 1;
    const { $ref: reference, ...own } = schema;
    if (typeof reference === 'string') return writeReference(reference, own, at);
    if (isObjectLike(own)) return writeObject(own, at);
    const { allOf, ...rest } = own;
    if (isList(allOf)) return write(allOf.filter(isObject).reduce(overlay, rest), at);
    const branches = branchesOf(own);
    if (branches !== undefined) return writeBranches(own, branches, at);
    const types = typesOf(own['type']);
    const [type, ...others] = types.filter((name) => name !== 'null');
    if (types.length === 0) return writeUntyped(own, at);
    if (others.length === 0) return type === 'array' ? writeArray(own, at) : writeScalar(own, type ?? 'null');
    const { description: _description, ...each } = own;
    return union(own, [type, ...others].map((name) => write({ ...each, type: name ?? 'null' }, at)), types.includes('null'));
  }

  function isCut(reference: string, at: Position): boolean {
    return at.outline !== undefined || schemas > MAX_SCHEMAS || at.opened.filter((name) => name === reference).length >= MAX_OPENINGS;
  }

  function writeReference(reference: string, use: JsonObject, at: Position): JsonObject {
    const definition = definitionOf(reference);
    if (definition === undefined) return write(use, at);
    if (!isCut(reference, at)) return write(both(definition, use), { opened: [...at.opened, reference] });
    const { outline = [] } = at;
    if (outline.includes(reference)) return { type: 'OBJECT' };
    return write(both(definition, use), { ...at, outline: [...outline, reference] });
  }

  function writeObject(schema: JsonObject, at: Position): JsonObject {
    const head = headOf(schema, 'object');
    if (at.outline !== undefined) return head;
    const opened = [...at.opened];
    const { properties, required } = shapeOf(schema, (reference) => {
      if (isCut(reference, at)) return undefined;
      opened.push(reference);
      return definitionOf(reference);
    });
    // What nothing fits may not be there.
    const possible = [...properties].filter(([, property]) => !isEqual(property['not'], {}));
    const needed = [...required].filter((name) => possible.some(([known]) => known === name));
    return {
      ...head,
      ...(possible.length > 0 && { properties: Object.fromEntries(possible.map(([name, property]) => [name, write(property, { opened })])) }),
      ...(needed.length > 0 && { required: needed }),
    };
  }

  function writeArray(schema: JsonObject, at: Position): JsonObject {
    const { prefixItems, items, maxItems } = schema;
    const first = isList(prefixItems) ? prefixItems.filter(isObject) : [];
    const kinds = [...first, ...(isObject(items) ? [items] : [])];
    return {
      ...headOf(schema, 'array'),
      ...(items === false && maxItems === undefined && { maxItems: first.length }),
      items: write(kinds.length === 0 ? {} : anyOf(kinds), at),
    };
  }

  function writeBranches(schema: JsonObject, branches: readonly JsonObject[], at: Position): JsonObject {
    const { anyOf: _anyOf, oneOf: _oneOf, type, ...rest } = schema;
    // Only one of the two can be told, and what stands outside holds for each branch.
    if (type !== undefined && Object.keys(rest).some(isAssertion)) return write({ ...rest, type }, at);
    const typed = type === undefined ? branches : branches.map((branch) => ({ type, ...branch }));
    const filled = typed.filter((branch) => !isNull(branch));
    return union(rest, filled.map((branch) => write(branch, at)), filled.length < typed.length);
  }

  function writeUntyped(schema: JsonObject, at: Position): JsonObject {
    // Schemas in conditions have no type yet.
    const repaired = repairSchema(schema);
    return write(repaired['type'] === undefined && branchesOf(repaired) === undefined ? { ...repaired, type: ANY_TYPE } : repaired, at);
  }

  return write;
}

/** Whether only an object fits a schema, as far as can be seen here. */
function isObjectLike({ type, allOf }: JsonObject): boolean {
  const types = typesOf(type).filter((name) => name !== 'null');
  if (types.length > 0) return types.length === 1 && types[0] === 'object';
  return isList(allOf) && allOf.some((branch) => isObject(branch) && isObjectLike(branch));
}

function isNull({ type }: JsonObject): boolean {
  return isEqual(typesOf(type), ['null']);
}

function branchesOf(schema: JsonObject): readonly JsonObject[] | undefined {
  const branches = schema['anyOf'] ?? schema['oneOf'];
  return isList(branches) ? branches.filter(isObject) : undefined;
}

/** Two schemas for the same value, as far as one list of keywords can say it: where they differ, the outer one wins. */
function overlay(outer: JsonObject, inner: JsonObject): JsonObject {
  return { ...inner, ...outer };
}

/** One of several schemas that are written already. What is said of the whole goes into the first. */
function union(whole: JsonObject, branches: readonly JsonObject[], isNullable: boolean): JsonObject {
  const flat = branches.flatMap((branch) => (isList(branch['anyOf']) ? branch['anyOf'].filter(isObject) : [branch]));
  const [first = { type: 'STRING' }, ...others] = flat.filter((branch, index) => flat.findIndex((other) => isEqual(other, branch)) === index);
  const texts = [whole['description'], first['description']].filter((text) => typeof text === 'string');
  const { type, ...rest } = first;
  const head: JsonObject = {
    ...(type !== undefined && { type }),
    ...(texts.length > 0 && { description: texts.join('\n') }),
    ...((isNullable || first['nullable'] === true || flat.length === 0) && { nullable: true }),
  };
  const { description: _description, nullable: _nullable, ...body } = rest;
  const told = { ...head, ...body };
  return others.length === 0 ? told : { anyOf: [told, ...others] };
}

function writeScalar(schema: JsonObject, type: string): JsonObject {
  if (type === 'null') return { ...headOf(schema, 'string'), nullable: true };
  const { const: only, enum: listed, format } = schema;
  const values = (only !== undefined ? [only] : isList(listed) ? listed : []).filter((value) => value !== null);
  const texts = values.filter((value) => typeof value === 'string' && value !== '');
  const isEnum = type === 'string' && texts.length > 0;
  return {
    ...headOf(schema, type, isEnum ? [] : values),
    ...(isEnum && { enum: texts }),
    ...(typeof format === 'string' && FORMATS.get(type)?.includes(format) === true && { format }),
    ...(type === 'integer' || type === 'number' ? rangeOf(schema, type === 'integer' ? 1 : 0) : {}),
  };
}

/** A limit that is not part of the range becomes the next integer, or the limit itself: the tool knows better. */
function rangeOf(schema: JsonObject, step: number): JsonObject {
  const low = numbersOf([schema['minimum'], schema['exclusiveMinimum']], step);
  const high = numbersOf([schema['maximum'], schema['exclusiveMaximum']], -step);
  return {
    ...(low.length > 0 && { minimum: Math.max(...low) }),
    ...(high.length > 0 && { maximum: Math.min(...high) }),
  };
}

/** An inclusive and an exclusive limit. Those at the end of what a number can hold exactly say nothing. */
function numbersOf([inclusive, exclusive]: readonly (JsonValue | undefined)[], step: number): readonly number[] {
  const limits = [inclusive, typeof exclusive === 'number' ? exclusive + step : undefined];
  return limits.filter((limit) => typeof limit === 'number').filter((limit) => Math.abs(limit) < Number.MAX_SAFE_INTEGER - 1);
}

/** What a schema of one type starts with. */
function headOf(schema: JsonObject, type: string, values: readonly JsonValue[] = []): JsonObject {
  const { description } = schema;
  const texts = [
    ...(typeof description === 'string' ? [description] : []),
    // A model reads this.
    ...(values.length > 0 ? [`One of: ${values.map((value) => JSON.stringify(value)).join(', ')}.`] : []),
  ];
  const limits = (LIMITS.get(type) ?? []).filter((keyword) => typeof schema[keyword] === 'number');
  return {
    type: type.toUpperCase(),
    ...(texts.length > 0 && { description: texts.join('\n') }),
    ...(typesOf(schema['type']).includes('null') && { nullable: true }),
    ...Object.fromEntries(limits.map((keyword) => [keyword, schema[keyword] ?? null])),
  };
}
