/**
 * Tools: the tools of a request as Gemini takes them.
 *
 * Schemas are sent as JSON Schema, which says most, in the fields that Google added for it. Servers without these take a
 * subset of OpenAPI's schemas; recursive schemas go that way too, since of references the newer fields take only some.
 */
import type { JsonObject, JsonSchema } from '../../core/json.ts';
import type { ToolDefinition } from '../../core/llm.ts';
import { IDENTIFIER_NAMES, nameTools, type ToolNames } from '../shared/tool-names.ts';
import { toGeminiSchema } from '../shared/tool-schema-gemini.ts';
import { toToolSchema } from '../shared/tool-schema.ts';
import { cleanText } from '../shared/wire-text.ts';

/** The words that schemas are sent in. */
export type SchemaFormat = 'json-schema' | 'openapi';

/** The tools of a request. */
export interface GeminiTools {
  /** JSON of the `tools` list; empty for none. */
  readonly json: string;
  readonly names: ToolNames;
  readonly hasFunctions: boolean;
  readonly hasServerTools: boolean;
}

/** Makes a writer of tool lists, which writes each list once. @param serverTools - What follows them, as it is. */
export function createToolWriter(
  format: SchemaFormat,
  serverTools: readonly JsonObject[],
): (tools: readonly ToolDefinition[]) => GeminiTools {
  const known = new WeakMap<readonly ToolDefinition[], GeminiTools>();

  function write(tools: readonly ToolDefinition[]): GeminiTools {
    const names = nameTools(tools, IDENTIFIER_NAMES);
    const functions = tools.length === 0 ? [] : [{ functionDeclarations: tools.map((tool) => toDeclaration(tool, names, format)) }];
    const list = [...functions, ...serverTools];
    return {
      json: list.length === 0 ? '' : JSON.stringify(list),
      names,
      hasFunctions: tools.length > 0,
      hasServerTools: serverTools.length > 0,
    };
  }

  return (tools) => {
    const written = known.get(tools) ?? write(tools);
    known.set(tools, written);
    return written;
  };
}

function toDeclaration({ name, description, inputSchema }: ToolDefinition, { toWire }: ToolNames, format: SchemaFormat): JsonObject {
  const head = { name: toWire(name), description: cleanText(description) };
  const schema = toToolSchema(inputSchema);
  if (isJsonSchemaTaken(schema, format)) return { ...head, parametersJsonSchema: schema };
  const parameters = toGeminiSchema(inputSchema);
  return parameters === undefined ? head : { ...head, parameters };
}

/** Whether a schema can be sent as it is. */
export function isJsonSchemaTaken(schema: JsonSchema, format: SchemaFormat): boolean {
  return format === 'json-schema' && !JSON.stringify(schema).includes('"$ref"');
}
