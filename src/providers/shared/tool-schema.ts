/**
 * Tool schema: a JSON Schema as Chat Completions, Responses and Messages take it for a tool's arguments.
 *
 * - The root is an object with `properties` and without combinators, which MCP servers like to write and all three
 *   protocols refuse there: it tells the model about every property, and requires none that only some branches require.
 *   Combinators further inside stay.
 * - References are inlined; only recursive ones stay, with their `$defs`, and all of them where inlining would make the
 *   schema huge (`tool-schema-inline.ts`, `tool-schema-cycles.ts`).
 * - Older drafts, missing types and values that do not fit their type are put right (`tool-schema-repair.ts`).
 * - Its texts and names are cleaned of what no server takes (`wire-text.ts`).
 * - A schema that needs none of this comes out with the same text. Equal schemas give equal texts, and a reduced one is
 *   not reduced further.
 *
 * Arguments are still checked against the tool's own schema: this one may accept more than that. What Gemini takes is in
 * `tool-schema-gemini.ts`.
 */
import type { JsonObject, JsonSchema, JsonValue } from '../../core/json.ts';
import { DEFINITIONS_POINTER, inlineSchema, usedDefinitions } from './tool-schema-inline.ts';
import { isObject } from './tool-schema-keywords.ts';
import { repairSchema } from './tool-schema-repair.ts';
import { shapeOf } from './tool-schema-shape.ts';
import { cleanJson } from './wire-text.ts';

/** What makes a root more than a list of properties. */
const COMBINATORS = ['allOf', 'anyOf', 'oneOf', '$ref', 'then', 'else'];
/** What may not stand at the root, or says nothing to a model there. */
const DROPPED: ReadonlySet<string> = new Set([...COMBINATORS, 'not', 'if', 'enum', 'const', 'nullable']);

const reduced = new WeakMap<JsonSchema, JsonSchema>();

/**
 * A schema with `type: object` and `properties` that says the same as far as a server takes it. The given one stays as it
 * is, and gets the same answer each time.
 *
 * @param schema - Of an object, as `ToolDefinition.inputSchema` is.
 */
export function toToolSchema(schema: JsonSchema): JsonSchema {
  const known = reduced.get(schema);
  if (known !== undefined) return known;
  const result = cleanJson(reduce(schema));
  reduced.set(schema, result);
  return result;
}

function reduce(schema: JsonSchema): JsonSchema {
  const inlined = inlineSchema(schema);
  const definitions = new Map(Array.from(inlined.definitions, ([name, definition]) => [name, repairSchema(definition)]));
  const root = toObjectRoot(inlined.root, definitions);
  const used = usedDefinitions(root, definitions);
  return used.size === 0 ? root : { ...root, $defs: Object.fromEntries(used) };
}

function toObjectRoot(schema: JsonObject, definitions: ReadonlyMap<string, JsonObject>): JsonObject {
  // That it is an object goes before what its keywords look like.
  const { nullable: _nullable, ...rest } = schema;
  const root = repairSchema({ ...rest, type: 'object' });
  const kept = Object.fromEntries(Object.entries(root).filter(([keyword]) => !DROPPED.has(keyword)));
  if (!COMBINATORS.some((keyword) => Object.hasOwn(root, keyword))) return isObject(kept['properties']) ? kept : { ...kept, properties: {} };
  const { properties, required } = shapeOf(root, (reference) => definitions.get(reference.slice(DEFINITIONS_POINTER.length)));
  // Once more: what a condition said is a property like any other now.
  return repairSchema({
    ...kept,
    properties: Object.fromEntries<JsonValue>(properties),
    ...(required.size > 0 && { required: [...required] }),
  });
}
