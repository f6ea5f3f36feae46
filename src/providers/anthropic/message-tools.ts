/**
 * Message tools: the tools of a request as this protocol has them, their names, and which of them a reply may call.
 *
 * A server tool with the name of one of the host's tools stands in its place: the provider knows how it is called, and the
 * host runs it (`bash_20250124` and its like).
 */
import type { JsonObject } from '../../core/json.ts';
import type { ToolChoice, ToolDefinition } from '../../core/llm.ts';
import { nameTools, type ToolNames } from '../shared/tool-names.ts';
import { toToolSchema } from '../shared/tool-schema.ts';
import { cleanText, isBlank } from '../shared/wire-text.ts';
import { markBlock } from './cache-marks.ts';

/** The tools of a request. */
export interface MessageTools {
  /** JSON of the `tools` list; empty for none. */
  readonly json: string;
  readonly names: ToolNames;
}

/** What the tools of all requests share. */
export interface ToolSettings {
  /** What follows the host's tools, as it is. */
  readonly serverTools: readonly JsonObject[];
  /** Whether arguments are streamed unchecked, as the model writes them. */
  readonly eagerInput: boolean;
  /** The cache mark of the last tool; empty for none. */
  readonly mark: string;
}

/** Writes the tools of a request. */
export function writeTools(tools: readonly ToolDefinition[], { serverTools, eagerInput, mark }: ToolSettings): MessageTools {
  const names = nameTools(tools);
  const replaced = new Set(serverTools.map(({ name }) => name));
  const own = tools.filter(({ name }) => !replaced.has(name)).map((tool) => toWireTool(tool, names, eagerInput));
  const blocks = [...own, ...serverTools].map((tool) => JSON.stringify(tool));
  const last = blocks.pop();
  return { json: last === undefined ? '' : `[${[...blocks, markBlock(last, mark)].join(',')}]`, names };
}

/** The field `tool_choice`; undefined to leave it out. @param isParallel - Whether several calls in a reply are welcome. */
export function toWireChoice(choice: ToolChoice, isParallel: boolean, { toWire }: ToolNames): JsonObject | undefined {
  const serial = isParallel ? {} : { disable_parallel_tool_use: true };
  if (typeof choice === 'object') return { type: 'tool', name: toWire(choice.name), ...serial };
  if (choice === 'none') return { type: 'none' };
  if (choice === 'required') return { type: 'any', ...serial };
  return isParallel ? undefined : { type: 'auto', ...serial };
}

function toWireTool({ name, description, inputSchema }: ToolDefinition, { toWire }: ToolNames, eagerInput: boolean): JsonObject {
  const text = cleanText(description);
  return {
    name: toWire(name),
    ...(!isBlank(text) && { description: text }),
    input_schema: toToolSchema(inputSchema),
    ...(eagerInput && { eager_input_streaming: true }),
  };
}
