/**
 * Message tools: the tools of a request as this protocol has them, their names, and which of them a reply may call.
 *
 * A server tool with the name of one of the host's tools stands in its place: the provider knows how it is called, and the
 * host runs it (`bash_20250124` and its like).
 */
import { LLMError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import type { ToolChoice, ToolDefinition } from '../../core/llm.ts';
import { nameTools, type ToolNames } from '../shared/tool-names.ts';
import { toToolSchema } from '../shared/tool-schema.ts';
import { cleanText, isBlank } from '../shared/wire-text.ts';
import { markBlock, takesMark } from './cache-marks.ts';

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
  /** The cache mark of the last tool that takes one; empty for none. */
  readonly mark: string;
}

/** Writes the tools of a request. */
export function writeTools(tools: readonly ToolDefinition[], { serverTools, eagerInput, mark }: ToolSettings): MessageTools {
  const names = nameTools(tools);
  const replaced = new Set(serverTools.map(({ name }) => name));
  const own = tools.filter(({ name }) => !replaced.has(name)).map((tool) => toWireTool(tool, names, eagerInput));
  const all = [...own, ...serverTools];
  const marked = all.findLastIndex(takesMark);
  const blocks = all.map((each, at) => markBlock(JSON.stringify(each), at === marked ? mark : ''));
  return { json: blocks.length === 0 ? '' : `[${blocks.join(',')}]`, names };
}

/** The field `tool_choice`; undefined to leave it out. @param isParallel - Whether several calls in a reply are welcome. */
export function toWireChoice(choice: ToolChoice, isParallel: boolean, { toWire }: ToolNames): JsonObject | undefined {
  const serial = isParallel ? {} : { disable_parallel_tool_use: true };
  if (typeof choice === 'object') return { type: 'tool', name: toWire(choice.name), ...serial };
  if (choice === 'none') return { type: 'none' };
  if (choice === 'required') return { type: 'any', ...serial };
  return isParallel ? undefined : { type: 'auto', ...serial };
}

/**
 * Makes sure that a model takes a choice. One that refuses to be forced is not asked without force instead: whoever forces a
 * call counts on it.
 *
 * @throws {@link index.LLMError | LLMError} of kind `invalid_request`, code `forced_tool_choice`.
 */
export function assertChoice(choice: ToolChoice, model: string): void {
  if (choice === 'auto' || choice === 'none') return;
  throw new LLMError({
    kind: 'invalid_request',
    code: 'forced_tool_choice',
    message: `${model} cannot be made to call a tool, and \`toolChoice\` ${JSON.stringify(typeof choice === 'object' ? choice.name : choice)} does: use 'auto' and ask for the call in the prompt, give a \`responseSchema\` instead of the tool, or take a model that can.`,
  });
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
