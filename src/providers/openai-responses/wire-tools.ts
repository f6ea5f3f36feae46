/** Wire tools: the tools of a request as this protocol has them, and their names. */
import type { JsonObject } from '../../core/json.ts';
import type { ToolDefinition } from '../../core/llm.ts';
import { nameTools, type ToolNames } from '../shared/tool-names.ts';
import { toToolSchema } from '../shared/tool-schema.ts';
import { cleanText } from '../shared/wire-text.ts';

/** The tools of a request. */
export interface WireTools {
  /** JSON of the `tools` list; empty for none. */
  readonly json: string;
  readonly names: ToolNames;
}

/** Writes the tools of a request. @param serverTools - What follows them, as it is. */
export function writeTools(tools: readonly ToolDefinition[], serverTools: readonly JsonObject[]): WireTools {
  const names = nameTools(tools);
  const list = [...tools.map((tool) => toWireTool(tool, names)), ...serverTools];
  return { json: list.length === 0 ? '' : JSON.stringify(list), names };
}

function toWireTool({ name, description, inputSchema }: ToolDefinition, { toWire }: ToolNames): JsonObject {
  return {
    type: 'function',
    name: toWire(name),
    description: cleanText(description),
    parameters: toToolSchema(inputSchema),
    // Left out, the server makes the schema strict, and refuses those that cannot be.
    strict: false,
  };
}
