/**
 * Inlining: a schema with its references replaced by what they point to.
 *
 * - What stands beside a reference is kept and applies as well; descriptions and defaults there are about this use.
 * - References that stay (see `tool-schema-cycles.ts`) have the form `#/$defs/Name`, or `#` for the root itself.
 * - References out of the document are left out. So are those that lead back to themselves without a value in between.
 * - The result shares no schema with the input or within itself, and is bounded in depth and size, also if
 *   the input is an object that contains itself: beyond, `{}` stands for anything.
 */
import type { JsonObject, JsonSchema, JsonValue } from '../../core/json.ts';
import { MAX_DEPTH, planInlining } from './tool-schema-cycles.ts';
import { DEFINITIONS, isObject, mapSubschemas } from './tool-schema-keywords.ts';
import { both } from './tool-schema-merge.ts';
import { findReferences } from './tool-schema-refs.ts';

/** A schema and the definitions that its references name. */
export interface InlinedSchema {
  readonly root: JsonObject;
  readonly definitions: ReadonlyMap<string, JsonObject>;
}

/** Where the definitions of an inlined schema stand. */
export const DEFINITIONS_POINTER = '#/$defs/';

const MAX_SCHEMAS = 20_000;
/** What identifies a schema or holds definitions. Copied to where it is used, an identity would be there twice. */
const DROPPED: ReadonlySet<string> = new Set([
  ...DEFINITIONS,
  // The definitions of an OpenAPI document.
  'components',
  ...['$ref', '$dynamicRef', '$recursiveRef'],
  ...['$schema', '$vocabulary', '$id', '$anchor', '$dynamicAnchor', '$recursiveAnchor'],
]);

interface Position {
  readonly depth: number;
  /** The root or the schema referred to that this is a part of, as long as it is about the same value. */
  readonly within: JsonObject | undefined;
  /** At the root: also a reference that would stay is opened, since the root must be an object. */
  readonly isRoot: boolean;
}

/** Inlines what can be inlined. */
export function inlineSchema(schema: JsonSchema): InlinedSchema {
  const references = findReferences(schema);
  const plan = planInlining(schema, references);
  const names = new Map<JsonObject, string>();
  const taken = new Set<string>();
  let schemas = 0;

  function write(source: JsonObject, at: Position): JsonObject {
    schemas += 1;
    if (schemas > MAX_SCHEMAS || at.depth > MAX_DEPTH) return {};
    const rest = mapSubschemas(withoutDropped(source), (child, { sameValue }) =>
      isObject(child) ? write(child, { depth: at.depth + 1, within: sameValue ? at.within : undefined, isRoot: false }) : child,
    );
    const reference = references.of(source);
    if (reference === undefined || reference.target === true) return rest;
    const { target, name } = reference;
    if (target === false) return both({ not: {} }, rest);
    if (at.within !== undefined && plan.leadsTo(target, at.within)) return rest;
    if (!plan.keeps(target)) return both(write(target, { ...at, within: target }), rest);
    if (at.isRoot && target !== schema) return both(write(target, { ...at, depth: at.depth + 1, within: target }), rest);
    return { $ref: target === schema ? '#' : `${DEFINITIONS_POINTER}${nameOf(target, name)}`, ...rest };
  }

  function nameOf(target: JsonObject, wanted: string): string {
    const known = names.get(target);
    if (known !== undefined) return known;
    let name = wanted;
    for (let again = 2; taken.has(name); again += 1) name = `${wanted}_${again}`;
    taken.add(name);
    names.set(target, name);
    return name;
  }

  const root = write(schema, { depth: 0, within: schema, isRoot: true });
  const definitions = new Map<string, JsonObject>();
  // Writing a definition may name further ones: a map goes on over what is added.
  for (const [target, name] of names) definitions.set(name, write(target, { depth: 0, within: target, isRoot: false }));
  return { root, definitions };
}

function withoutDropped(schema: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => !DROPPED.has(keyword)));
}

/** The schemas that a written schema refers to, by name; whatever is not listed is referred to by nothing. */
export function usedDefinitions(root: JsonValue, definitions: ReadonlyMap<string, JsonObject>): ReadonlyMap<string, JsonObject> {
  const used = new Map<string, JsonObject>();
  const add = (schema: JsonObject): void => {
    const { $ref: reference } = schema;
    const name = typeof reference === 'string' && reference.startsWith(DEFINITIONS_POINTER) ? reference.slice(DEFINITIONS_POINTER.length) : undefined;
    const definition = name === undefined ? undefined : definitions.get(name);
    if (name !== undefined && definition !== undefined) used.set(name, definition);
    mapSubschemas(schema, (child) => {
      if (isObject(child)) add(child);
      return child;
    });
  };
  if (isObject(root)) add(root);
  for (const definition of used.values()) add(definition);
  return used;
}
