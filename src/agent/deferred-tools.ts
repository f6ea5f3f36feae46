/**
 * Deferred tools: hundreds of tools behind two. The model finds them with `search_tools` and calls them with `call_tool`.
 *
 * - The tools that a request lists never change: neither a search nor a call spoils the provider's cache of it.
 * - The loop sees calls of the tools themselves: they are recorded, checked, authorised, scheduled and guarded by their own
 *   names, and a call nobody translated runs nothing.
 */
import { assertLLM, assertNumbers, assertOptions } from '../core/assert.ts';
import { attemptChat } from '../core/attempt-chat.ts';
import { isRecord } from '../core/json.ts';
import { decorateLLM, type LLM, type LLMRequest } from '../core/llm.ts';
import { type AnyTool, defineTool } from '../core/tool.ts';
import { ToolAccesses } from '../core/tool-access.ts';
import { toolSet } from '../core/tool-input.ts';
import { CALL_TOOL, createOutgoingTranslator, holdCalls, readCallToolInput, toOwnCall } from './deferred-tools-call.ts';
import { createToolSearch, type ToolSearch } from './deferred-tools-search.ts';

const SEARCH_TOOLS = 'search_tools';
const DEFAULT_LIMIT = 5;
const MAX_LIMIT = 20;
/** What a search tells of tools, in characters: below what the first layer of a context policy shortens. */
const MAX_TOLD = 8_000;
const MAX_LISTED = 50;

const ARGUMENT = { taker: 'deferTools', example: 'const deferred = deferTools(hundredsOfTools)' };
const OPTIONS: Readonly<Record<keyof DeferToolsOptions, true>> = { limit: true };

/** Options of {@link deferTools}. */
export interface DeferToolsOptions {
  /** Tools that a search shows unless it asks for another number. @defaultValue 5, of at most 20 */
  readonly limit?: number | undefined;
}

/** Tools that requests leave out, and what a turn needs to have them all the same. Made by {@link deferTools}. */
export interface DeferredTools {
  /** For the turn's `tools`: `search_tools`, `call_tool`, and the tools themselves, marked `deferred`. */
  readonly tools: readonly AnyTool[];
  /**
   * The model to give the turn: its `call_tool` calls become calls of the tools they name, and go back to it as the
   * `call_tool` calls they were.
   *
   * Put it inside of guardrails, which then judge the tool that is really called, and around `withRetry`. The fragments of
   * such a call are held back and come in one piece, since only then it is known which tool it calls.
   *
   * @throws TypeError without a model.
   */
  wrap(llm: LLM): LLM;
}

/**
 * Defers tools: requests do not list them, the model searches for what it needs. For sets so large that their schemas
 * would fill the prompt, such as those of several MCP servers.
 *
 * @param tools - The tools to defer. Others stand beside them in the turn's list.
 * @param options - How much a search shows.
 * @throws TypeError for a tool that is none, two of one name, one named `search_tools` or `call_tool`, or a wrong option.
 *
 * @example
 * ```ts
 * const deferred = deferTools(hundredsOfTools);
 * await runTurn({ llm: deferred.wrap(llm), tools: [readFile, ...deferred.tools], dispatchEvent, buildMessages, input });
 * ```
 */
export function deferTools(tools: readonly AnyTool[], options: DeferToolsOptions = {}): DeferredTools {
  const { table, list } = toolSet(tools);
  assertOptions(options, OPTIONS, ARGUMENT);
  assertNumbers(options, { limit: { least: 1, most: MAX_LIMIT, whole: true } }, ARGUMENT);
  for (const name of [SEARCH_TOOLS, CALL_TOOL]) {
    if (table.has(name)) throw new TypeError(`deferTools: a tool is named "${name}", which is the name of one that it adds. Rename it.`);
  }
  const search = createToolSearch(list);
  const names: ReadonlySet<string> = new Set(table.keys());
  const translate = createOutgoingTranslator(names);
  return {
    tools: [searchTool(search, list, options.limit ?? DEFAULT_LIMIT), callTool(search, names), ...list.map(deferred)],
    wrap: (llm) => {
      assertLLM(llm, { taker: 'deferTools().wrap', example: 'runTurn({ llm: deferred.wrap(llm), … })' });
      return decorateLLM(llm, async (request) => {
        const calls = request.onDelta === undefined ? undefined : newAttempts(request, request.onDelta);
        const response = await attemptChat(llm, { ...translate(request), ...calls?.callbacks });
        const content = response.content.map((part) => toOwnCall(part, names));
        calls?.release(content);
        return content.every((part, index) => part === response.content[index]) ? response : { ...response, content };
      });
    },
  };
}

/** Holds calls back, anew for each attempt of the request. */
function newAttempts(request: LLMRequest, onDelta: NonNullable<LLMRequest['onDelta']>) {
  let held = holdCalls(onDelta);
  const callbacks: Pick<LLMRequest, 'onDelta' | 'onAttemptFailed'> = {
    onDelta: (delta) => {
      held.onDelta(delta);
    },
    onAttemptFailed: (attempt) => {
      held = holdCalls(onDelta);
      return request.onAttemptFailed?.(attempt);
    },
  };
  return {
    callbacks,
    release: (content: Parameters<typeof held.release>[0]): void => {
      held.release(content);
    },
  };
}

/** The tool, left out of requests. Calls its methods on itself: it may be an object of a class. */
function deferred(tool: AnyTool): AnyTool {
  const { name, description, inputSchema, readOnly, replay, timeoutMs } = tool;
  return {
    name,
    description,
    inputSchema,
    deferred: true,
    ...(readOnly !== undefined && { readOnly }),
    ...(replay !== undefined && { replay }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(tool.parseInput !== undefined && { parseInput: tool.parseInput.bind(tool) }),
    ...(tool.accesses !== undefined && { accesses: tool.accesses.bind(tool) }),
    ...(tool.describe !== undefined && { describe: tool.describe.bind(tool) }),
    execute: tool.execute.bind(tool),
  };
}

function searchTool(search: ToolSearch, tools: readonly AnyTool[], defaultLimit: number): AnyTool {
  return defineTool({
    name: SEARCH_TOOLS,
    description:
      `Finds tools that are not listed, by words of their names and descriptions, and shows their schemas. Call what it finds with ${CALL_TOOL}.`,
    input: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What the tool is to do, in a few words, or its name.' },
        limit: { type: 'integer', description: `Most tools to show, 1 to ${MAX_LIMIT}. Default ${defaultLimit}.` },
      },
      required: ['query'],
    },
    readOnly: true,
    accesses: () => ToolAccesses.none(),
    execute: ({ query, limit }) => {
      const most = typeof limit === 'number' ? Math.min(Math.max(1, limit), MAX_LIMIT) : defaultLimit;
      const found = search.find(String(query), most);
      return found.length === 0 ? nothingFound(tools) : told(found);
    },
  });
}

/** What is told of the tools that were found: as many schemas as there is room for, then names. */
function told(found: readonly AnyTool[]): string {
  const lines: string[] = [];
  let room = MAX_TOLD;
  for (const { name, description, inputSchema } of found) {
    const line = JSON.stringify({ name, description, inputSchema });
    if (lines.length > 0 && line.length > room) break;
    lines.push(line);
    room -= line.length;
  }
  const others = found.slice(lines.length).map(({ name }) => name);
  if (others.length > 0) lines.push(`Also found, search for the name to see it: ${others.join(', ')}.`);
  lines.push(`Call one with ${CALL_TOOL} {"name": …, "input": …}, where "input" is an object of its inputSchema.`);
  return lines.join('\n');
}

function nothingFound(tools: readonly AnyTool[]): string {
  if (tools.length === 0) return 'There are no tools to be found.';
  const names = tools.slice(0, MAX_LISTED).map(({ name }) => name);
  const more = tools.length > MAX_LISTED ? ` and ${tools.length - MAX_LISTED} more` : '';
  return `No tool has these words in its name or description: try others. There are: ${names.join(', ')}${more}.`;
}

/** What is left of a `call_tool` that calls no deferred tool: it runs nothing, and says what is wrong. */
function callTool(search: ToolSearch, names: ReadonlySet<string>): AnyTool {
  return {
    name: CALL_TOOL,
    description: `Calls a tool that ${SEARCH_TOOLS} found.`,
    inputSchema: {
      type: 'object',
      properties: {
        name: { type: 'string', description: 'Name of the tool.' },
        input: { type: 'object', description: 'Its arguments, as its schema has them.' },
      },
      required: ['name', 'input'],
    },
    // It never does anything itself: nobody need be asked about it.
    readOnly: true,
    accesses: () => ToolAccesses.none(),
    parseInput: (value) => {
      const read = readCallToolInput(value);
      if ('problem' in read) throw new Error(read.problem);
      return read;
    },
    execute: (input) => {
      const name = isRecord(input) ? String(input['name']) : '';
      return { content: names.has(name) ? NOT_WRAPPED : unknownTool(name, search), isError: true };
    },
  };
}

const NOT_WRAPPED = 'Nothing was run: the model of this turn cannot call deferred tools, since it was not made with deferTools().wrap(llm).';

function unknownTool(name: string, search: ToolSearch): string {
  const close = search.find(name, 3).map((tool) => JSON.stringify(tool.name));
  const hint = close.length > 0 ? ` Did you mean ${close.join(' or ')}?` : '';
  const shown = JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name);
  return `There is no tool named ${shown} behind ${CALL_TOOL}, so nothing was run.${hint} Find tools with ${SEARCH_TOOLS}; call those that are listed directly.`;
}
