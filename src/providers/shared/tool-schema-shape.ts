/**
 * Shape: the properties that a schema of an object has, also those that stand in its branches.
 *
 * Every property that a branch tells about is told; none is required that only some branches require.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import { isList, isObject, typesOf } from './tool-schema-keywords.ts';
import { anyOf, both } from './tool-schema-merge.ts';

/** The properties of an object. */
export interface ObjectShape {
  readonly properties: ReadonlyMap<string, JsonObject>;
  readonly required: ReadonlySet<string>;
}

interface Property {
  readonly schema: JsonObject;
  /** False if some branch is silent about it: then the schema is one of several, and may not narrow what others say. */
  readonly always: boolean;
}

interface Shape {
  readonly properties: ReadonlyMap<string, Property>;
  readonly required: ReadonlySet<string>;
}

/** Finds the schema that a reference stands for. */
export type FindDefinition = (reference: string) => JsonObject | undefined;

const EMPTY: Shape = { properties: new Map(), required: new Set() };

/** So many branches are looked into. A schema with more says nothing further: it was made to take long. */
const MAX_BRANCHES = 10_000;

/** The shape of a schema for an object. */
export function shapeOf(schema: JsonObject, definitionOf: FindDefinition): ObjectShape {
  const opened = new Set<string>();
  /** Of definitions that do not lead back to themselves: those are looked into once, however many point to them. */
  const known = new Map<string, Shape>();
  let branchCount = 0;
  let cycleCount = 0;

  /** Each definition once on a way: a second time it would say the same again, or lead back to itself. */
  function findDefinition(reference: string): Shape {
    const before = known.get(reference);
    if (before !== undefined) return before;
    if (opened.has(reference)) {
      cycleCount += 1;
      return EMPTY;
    }
    const definition = definitionOf(reference);
    if (definition === undefined) return EMPTY;
    const cyclesBefore = cycleCount;
    opened.add(reference);
    const shape = find(definition);
    opened.delete(reference);
    if (cycleCount === cyclesBefore) known.set(reference, shape);
    return shape;
  }

  function find(branch: JsonObject): Shape {
    const { $ref: reference, allOf } = branch;
    let shape = ownShape(branch);
    branchCount += 1;
    if (branchCount > MAX_BRANCHES) return shape;
    if (typeof reference === 'string') shape = join(shape, findDefinition(reference));
    for (const one of branchesIn(allOf)) shape = join(shape, find(one));
    for (const keyword of ['anyOf', 'oneOf']) {
      const branches = branchesIn(branch[keyword]).filter(mayBeObject).map(find);
      if (branches.length > 0) shape = join(shape, choose(branches));
    }
    const conditional = [branch['then'], branch['else']].filter(isObject).map(find);
    return conditional.length === 0 ? shape : join(shape, choose([...conditional, EMPTY]));
  }

  const { properties, required } = find(schema);
  return { properties: new Map([...properties].map(([name, property]) => [name, property.schema])), required };
}

function ownShape({ properties, required }: JsonObject): Shape {
  const entries = isObject(properties) ? Object.entries(properties) : [];
  return {
    properties: new Map(entries.map(([name, schema]) => [name, { schema: isObject(schema) ? schema : {}, always: true }])),
    required: new Set(isList(required) ? required.filter((name) => typeof name === 'string') : []),
  };
}

function branchesIn(branches: JsonValue | undefined): readonly JsonObject[] {
  return isList(branches) ? branches.filter(isObject) : [];
}

function mayBeObject({ type }: JsonObject): boolean {
  return type === undefined || typesOf(type).includes('object');
}

/** What holds where both hold. */
function join(first: Shape, second: Shape): Shape {
  const properties = new Map(first.properties);
  for (const [name, property] of second.properties) {
    const known = properties.get(name);
    if (known === undefined || (property.always && !known.always)) properties.set(name, property);
    else if (known.always && property.always) properties.set(name, { schema: joinSchemas(known.schema, property.schema), always: true });
  }
  return { properties, required: new Set([...first.required, ...second.required]) };
}

/** The annotations of the first win: the outer schema is written for the whole. */
function joinSchemas(first: JsonObject, second: JsonObject): JsonObject {
  return both(second, first);
}

/** What is known if one of these holds. */
function choose(shapes: readonly Shape[]): Shape {
  const names = new Set(shapes.flatMap(({ properties }) => [...properties.keys()]));
  const properties = new Map<string, Property>();
  for (const name of names) {
    const found = shapes.flatMap((shape) => shape.properties.get(name) ?? []);
    properties.set(name, {
      schema: anyOf(found.map(({ schema }) => schema)),
      always: found.length === shapes.length && found.every(({ always }) => always),
    });
  }
  const [first = EMPTY, ...others] = shapes;
  return { properties, required: new Set([...first.required].filter((name) => others.every(({ required }) => required.has(name)))) };
}
