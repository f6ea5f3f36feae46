/**
 * Chat tools: the tools of a request as this protocol has them, and their names.
 *
 * Kimi's own tools are named `$…`. They are offered by name alone, called like any other, and answered by the host: its
 * tool of that name gives back its input, and the server does the work.
 */
import type { JsonObject } from '../../core/json.ts';
import type { ToolDefinition } from '../../core/llm.ts';
import { nameTools, type ToolNames, toWireName } from '../shared/tool-names.ts';
import { toToolSchema } from '../shared/tool-schema.ts';
import { cleanText } from '../shared/wire-text.ts';
import type { ChatDialect } from './options.ts';

/** The tools of a request. */
export interface ChatTools {
  /** JSON of the `tools` list; empty for none. */
  readonly json: string;
  readonly names: ToolNames;
}

const KIMI_TOOL = /^\$[a-zA-Z0-9_-]{1,63}$/;

/** Writes the tools of a request. @param serverTools - What follows them, as it is. */
export function writeTools(tools: readonly ToolDefinition[], dialect: ChatDialect, serverTools: readonly JsonObject[]): ChatTools {
  const ofServer = tools.filter(({ name }) => isServerTool(name, dialect));
  const { toWire, fromWire } = nameTools(tools.filter((tool) => !ofServer.includes(tool)));
  const names: ToolNames = { toWire: (name) => (isServerTool(name, dialect) ? name : toWire(name)), fromWire };
  const list = [...tools.map((tool) => (ofServer.includes(tool) ? serverTool(tool) : hostTool(tool, names))), ...serverTools];
  return { json: list.length === 0 ? '' : JSON.stringify(list), names };
}

/** The wire name of a called tool, offered or not. */
export function calledName(name: string, dialect: ChatDialect): string {
  return isServerTool(name, dialect) ? name : toWireName(name);
}

function isServerTool(name: string, dialect: ChatDialect): boolean {
  return dialect === 'kimi' && KIMI_TOOL.test(name);
}

function serverTool({ name }: ToolDefinition): JsonObject {
  return { type: 'builtin_function', function: { name } };
}

function hostTool({ name, description, inputSchema }: ToolDefinition, { toWire }: ToolNames): JsonObject {
  return {
    type: 'function',
    function: { name: toWire(name), description: cleanText(description), parameters: toToolSchema(inputSchema) },
  };
}
