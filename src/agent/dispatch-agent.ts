/**
 * Dispatch agent: the tool by which a model hands a part of its task to a sub-agent.
 *
 * - D1 Arguments are refused before anything is made: a blank prompt, a type that does not exist.
 * - D2 All calls of one tool, over all turns and depths, share its places.
 * - D3 At the deepest level the tool is not there, rather than failing.
 */
import { isRecord, type JsonObject } from '../core/json.ts';
import { ToolAccesses } from '../core/tool-access.ts';
import type { AnyTool, Tool, ToolContext, ToolReturn } from '../core/tool.ts';
import { dispatchSettings, type DispatchAgentInput, type DispatchAgentOptions, type DispatchSettings, type SubAgentKind } from './dispatch-agent-options.ts';
import type { SubAgentPlace } from './sub-agent-places.ts';
import { notStarted } from './sub-agent-result.ts';
import { runSubAgent } from './sub-agent-run.ts';

/**
 * Makes a tool that runs sub-agents: each call is a turn of its own with the call's prompt as input, whose final text is the
 * result. Several run at once, up to a limit; aborts, cancels, approvals, tokens and events go through both turns as if they
 * were one.
 *
 * A sub-agent has only tools that read, unless its type is given others; approval, loop guard and context policies are its
 * own hooks, for which the caller's may be shared. What it may spend is limited by the model it is given (`withBudget`), what
 * its requests wait for by that model's `withRateLimit` and `withRetry`.
 *
 * Results: an answer is the result. A sub-agent that stopped at a limit gives what it had, with a note. One that failed, or
 * whose reply was cut off, is an error that names its stop reason and the kind of the failure. The decisions of a resume may
 * also be about the call itself: `deny` and `answer` then end the sub-agent.
 *
 * @param options - Kinds of sub-agents, their models and tools, and limits.
 * @throws TypeError for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const tools = [readFile, grep];
 * await runTurn({ llm, tools: [...tools, dispatchAgent({ tools })], input: 'Find out where dates are parsed.', … });
 * ```
 */
export function dispatchAgent(options: DispatchAgentOptions = {}): Tool<DispatchAgentInput> {
  return toolAt(dispatchSettings(options), { depth: 1, parent: undefined });
}

/** Where a call of the tool stands in the tree. */
interface Level {
  /** Depth of the sub-agents it makes, 1-based. */
  readonly depth: number;
  /** The place of the sub-agent that has the tool; undefined for the caller's own turn. */
  readonly parent: SubAgentPlace | undefined;
}

function toolAt(settings: DispatchSettings, level: Level): Tool<DispatchAgentInput> {
  const { name, kinds, openLog, maxDepth } = settings;
  const readOnly = [...kinds.values()].every((kind) => kind.readOnly);
  // Whoever may dispatch may do whatever any kind may.
  const reads = (input: DispatchAgentInput): boolean => readOnly || (level.depth === maxDepth && kindOf(settings, input).readOnly);
  return {
    name,
    description: descriptionOf(settings),
    inputSchema: schemaOf(settings),
    readOnly,
    ...(openLog !== undefined && { replay: 'idempotent' }),
    parseInput: (input) => parseInput(settings, input),
    accesses: (input) => settings.accesses?.(input) ?? (reads(input) ? ToolAccesses.readAll() : ToolAccesses.all()),
    describe: ({ description, prompt }) => description ?? shorten(prompt),
    execute: (input, context) => dispatch(settings, level, { input, context }),
  };
}

async function dispatch(
  settings: DispatchSettings,
  { depth, parent }: Level,
  { input, context }: { readonly input: DispatchAgentInput; readonly context: ToolContext },
): Promise<ToolReturn> {
  const { places, maxDepth } = settings;
  let place: SubAgentPlace;
  try {
    place = await places.take(context.signal, parent);
  } catch (reason) {
    return notStarted(reason);
  }
  try {
    const kind = kindOf(settings, input);
    const below: readonly AnyTool[] = depth < maxDepth ? [toolAt(settings, { depth: depth + 1, parent: place })] : [];
    return await runSubAgent({
      settings,
      kind,
      tools: [...kind.tools, ...below],
      graceMs: settings.graceMs / 2 ** (depth - 1),
      input,
      context,
    });
  } finally {
    places.giveBack(place);
  }
}

function kindOf({ kinds }: DispatchSettings, { type }: DispatchAgentInput): SubAgentKind {
  const kind = kinds.get(type);
  if (kind === undefined) throw new TypeError(`There is no type ${String(type)}.`);
  return kind;
}

function descriptionOf({ types }: DispatchSettings): string {
  const lines = types.map(([type, description]) => `- ${type}: ${description}`);
  return [
    'Hands a task to a sub-agent that works on its own and gives back its final answer. It sees only the prompt and nothing of ' +
      'this conversation: say all it needs to know, and what to answer. Several calls in one reply run at the same time.',
    ...(lines.length > 0 ? ['Types:', ...lines] : []),
  ].join('\n');
}

function schemaOf({ types }: DispatchSettings): JsonObject {
  return {
    type: 'object',
    properties: {
      prompt: { type: 'string', description: 'The whole task, with all that is needed to do it.' },
      description: { type: 'string', description: 'The task in three to ten words, for people.' },
      ...(types.length > 0 && { type: { type: 'string', enum: types.map(([type]) => type), description: 'Which kind of sub-agent.' } }),
    },
    required: ['prompt'],
    additionalProperties: false,
  };
}

/** The arguments, checked. @throws Error with what the model can do about it */
function parseInput({ types, kinds }: DispatchSettings, input: unknown): DispatchAgentInput {
  const { prompt, description, type }: Record<string, unknown> = isRecord(input) ? input : {};
  if (typeof prompt !== 'string' || prompt.trim() === '') throw new Error('"prompt" must be a text that says what to do');
  if (description !== undefined && typeof description !== 'string') throw new Error('"description" must be a text');
  if (type !== undefined && (typeof type !== 'string' || !kinds.has(type))) {
    const names = types.map(([name]) => JSON.stringify(name)).join(', ');
    throw new Error(`there is no sub-agent of this type, so none was started. ${names === '' ? 'Leave "type" out' : `"type" is one of ${names}, or left out`}`);
  }
  return { prompt, ...(description !== undefined && { description }), ...(type !== undefined && { type }) };
}

const MAX_DESCRIPTION = 80;

/** The first line of a prompt, or its beginning. */
function shorten(prompt: string): string {
  const [line = ''] = prompt.trim().split('\n', 1);
  return line.length > MAX_DESCRIPTION ? `${line.slice(0, MAX_DESCRIPTION - 1)}…` : line;
}
