/**
 * Tool schema: a JSON Schema as the servers take it for a tool's arguments.
 *
 * They want an object with `properties` at the root and refuse combinators there, which MCP servers like to write. The
 * reduced schema tells the model about every property and forces none that only some branches force; arguments are
 * still checked against the tool's own schema.
 */
import { isRecord, type JsonObject, type JsonSchema, type JsonValue } from '../../core/json.ts';

const BRANCHES = ['allOf', 'anyOf', 'oneOf'];
/** What may not stand at the root, or says nothing to a model there. */
const DROPPED = new Set([...BRANCHES, 'not', 'if', 'then', 'else', 'enum', 'const', '$ref', '$schema', '$id']);
const MAX_DEPTH = 8;

/** A schema with `type: object` and `properties`, without combinators or a reference at its root; the given one stays as it is. */
export function toToolSchema(schema: JsonSchema): JsonSchema {
  if (isPlainObjectSchema(schema)) return schema;
  const properties = new Map<string, JsonValue>();
  const required = new Set<string>();
  collect(schema, { root: schema, properties, required, forced: true, depth: 0 });
  const kept = Object.entries(schema).filter(([key]) => !DROPPED.has(key));
  const wire: JsonObject = {
    ...Object.fromEntries(kept),
    type: 'object',
    properties: Object.fromEntries(properties),
  };
  return required.size === 0 ? omit(wire, 'required') : { ...wire, required: [...required] };
}

function isPlainObjectSchema(schema: JsonSchema): boolean {
  return schema['type'] === 'object' && isRecord(schema['properties']) && !Object.keys(schema).some((key) => DROPPED.has(key));
}

interface Collection {
  readonly root: JsonSchema;
  readonly properties: Map<string, JsonValue>;
  readonly required: Set<string>;
  /** Whether what this branch requires is required in any case. */
  readonly forced: boolean;
  readonly depth: number;
}

function collect(schema: JsonValue, into: Collection): void {
  // Recursive references end here.
  if (!isObject(schema) || into.depth > MAX_DEPTH) return;
  const deeper = { ...into, depth: into.depth + 1 };
  const { $ref: reference, properties, required } = schema;
  if (typeof reference === 'string') collect(resolve(reference, into.root), deeper);
  if (isObject(properties)) {
    for (const [name, property] of Object.entries(properties)) {
      if (!into.properties.has(name)) into.properties.set(name, property);
    }
  }
  if (into.forced && isList(required)) {
    for (const name of required) if (typeof name === 'string') into.required.add(name);
  }
  for (const keyword of BRANCHES) {
    const branches = schema[keyword];
    if (!isList(branches)) continue;
    const forced = into.forced && (keyword === 'allOf' || branches.length === 1);
    for (const branch of branches) collect(branch, { ...deeper, forced });
  }
}

/** A reference within the document, such as `#/$defs/Input`. */
function resolve(reference: string, root: JsonSchema): JsonValue {
  if (!reference.startsWith('#/')) return null;
  let value: JsonValue = root;
  for (const step of reference.slice(2).split('/')) {
    const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    if (!isObject(value) || !Object.hasOwn(value, key)) return null;
    value = value[key] ?? null;
  }
  return value;
}

function omit(object: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key));
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return isRecord(value);
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}
