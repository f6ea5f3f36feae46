/**
 * Answer format: the form of a structured answer.
 *
 * Unlike a tool's arguments an answer may be anything: a list, one of some texts, one of several forms.
 */
import type { JsonObject, JsonSchema, JsonValue } from '../../core/json.ts';
import { isJsonObject } from '../shared/own-data.ts';
import { toGeminiSchema } from '../shared/tool-schema-gemini.ts';
import { DEFINITIONS_POINTER, type InlinedSchema, inlineSchema } from '../shared/tool-schema-inline.ts';
import { mapSubschemas } from '../shared/tool-schema-keywords.ts';
import { cleanJson } from '../shared/wire-text.ts';
import { isJsonSchemaTaken, type SchemaFormat } from './tools.ts';

/** `generationConfig` fields for an answer of this schema. Models before Gemini 3 refuse them beside tools. */
export function toAnswerFormat(schema: JsonSchema, format: SchemaFormat): JsonObject {
  return { responseMimeType: 'application/json', ...schemaField(cleanJson(schema), format) };
}

function schemaField(schema: JsonSchema, format: SchemaFormat): JsonObject {
  if (isJsonSchemaTaken(schema, format)) return { responseJsonSchema: schema };
  const inlined = inlineSchema(schema);
  // What is left of references is recursive.
  if (isJsonSchemaTaken(inlined.root, format)) return { responseJsonSchema: inlined.root };
  return { responseSchema: toOpenApi(inlined) };
}

/** Only objects have a way into that subset, so the answer is written as the property of one. */
function toOpenApi({ root, definitions }: InlinedSchema): JsonValue {
  let name = 'Answer';
  while (definitions.has(name)) name += '_';
  const reference = `${DEFINITIONS_POINTER}${name}`;
  const moved = [...definitions, [name, root] as const].map(([each, schema]) => [each, moveRoot(schema, reference)] as const);
  const written = toGeminiSchema({
    type: 'object',
    properties: { answer: { $ref: reference } },
    required: ['answer'],
    $defs: Object.fromEntries<JsonValue>(moved),
  });
  const properties = written?.['properties'];
  return (isJsonObject(properties) ? properties['answer'] : undefined) ?? { type: 'OBJECT' };
}

/** The schema, with references to the root leading to where that stands now. */
function moveRoot(schema: JsonObject, reference: string): JsonObject {
  const moved = mapSubschemas(schema, (child) => (isJsonObject(child) ? moveRoot(child, reference) : child));
  return moved['$ref'] === '#' ? { ...moved, $ref: reference } : moved;
}
