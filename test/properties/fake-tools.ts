/** Fake tools: do what a scenario says, and log each run in the world. */
import {
  type AnyTool,
  suspend,
  type ToolAccess,
  ToolAccesses,
  type ToolContext,
  type ToolReturn,
  toUsage,
} from 'turnloop';
import type { CallInput, ToolSpec, Touch } from './scenario.ts';
import type { World } from './world.ts';

const SCHEMA = { type: 'object', properties: { n: { type: 'integer' }, touch: { type: 'array' } } } as const;

/** Makes the tools of a scenario. */
export function fakeTools(specs: readonly ToolSpec[], world: World): readonly AnyTool[] {
  return specs.map((spec) => fakeTool(spec, world));
}

/** Accesses that an input declares. */
export function accessesOf(touch: readonly Touch[]): readonly ToolAccess[] {
  return touch.flatMap(([mode, kind, place]) => {
    const isRead = mode === 'r';
    switch (kind) {
      case 'all':
        return isRead ? ToolAccesses.readAll() : ToolAccesses.all();
      case 'resource':
        return isRead ? ToolAccesses.read(place) : ToolAccesses.write(place);
      case 'file':
        return isRead ? ToolAccesses.readFile(place) : ToolAccesses.writeFile(place);
      case 'tree':
        return isRead ? ToolAccesses.readTree(place) : ToolAccesses.writeTree(place);
    }
  });
}

/** What a call of a tool touches, by the rules of the design. */
function touched(spec: ToolSpec, input: CallInput): readonly ToolAccess[] {
  if (spec.accesses !== 'none') return accessesOf(input.touch ?? []);
  return spec.readOnly === true ? ToolAccesses.readAll() : ToolAccesses.all();
}

function fakeTool(spec: ToolSpec, world: World): AnyTool {
  const { name, replay, readOnly, timeoutMs, accesses, parse, describe } = spec;
  return {
    name,
    description: `Fake ${name}.`,
    inputSchema: SCHEMA,
    ...(replay !== undefined && { replay }),
    ...(readOnly !== undefined && { readOnly }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(accesses !== 'none' && {
      accesses: (input: unknown) => {
        const touch = (input as CallInput).touch ?? [];
        if (accesses === 'throws' && touch.length === 0) throw new Error('no accesses');
        return accessesOf(touch);
      },
    }),
    ...(parse !== 'none' && { parseInput: (input: unknown) => parseAs(parse, input) }),
    ...(describe !== 'none' && {
      describe: (input: unknown) => {
        if (describe === 'throws' && (input as CallInput).n > 7) throw new Error('no description');
        return `${name} of ${String((input as CallInput).n)}`;
      },
    }),
    execute: (input, context) => run(spec, input as CallInput, { context, world }),
  };
}

function parseAs(parse: ToolSpec['parse'], input: unknown): unknown {
  const fails = (input as CallInput | null)?.n === 5;
  if (parse === 'throws' && fails) throw new Error('five is not allowed');
  if (parse === 'rejects') return fails ? Promise.reject(new Error('five is not allowed')) : Promise.resolve(input ?? {});
  return parse === 'async' ? Promise.resolve(input ?? {}) : (input ?? {});
}

function run(spec: ToolSpec, input: CallInput, around: { readonly context: ToolContext; readonly world: World }): ToolReturn | Promise<ToolReturn> {
  const { context, world } = around;
  const log = {
    toolCallId: context.toolCallId,
    name: spec.name,
    idempotencyKey: context.idempotencyKey,
    input,
    accesses: touched(spec, input),
    resumed: context.resumed !== undefined,
    start: world.tick(),
    end: undefined as number | undefined,
    startedAt: world.runtime.now(),
    endedAt: undefined as number | undefined,
  };
  world.runs.push(log);
  for (let percent = 0; percent < spec.progress; percent += 1) context.progress({ kind: 'progress', percent });
  const end = (): ToolReturn => {
    log.end = world.tick();
    log.endedAt = world.runtime.now();
    context.progress({ kind: 'status', text: 'ending' });
    return deed(spec, input, around);
  };
  return world.take(spec.pace, context.signal, end);
}

function deed(spec: ToolSpec, input: CallInput, around: { readonly context: ToolContext; readonly world: World }): ToolReturn {
  const { context, world } = around;
  const text = `${spec.name} did ${String(input.n)}`;
  switch (spec.deed) {
    case 'text':
      return text;
    case 'blank':
      return input.n % 2 === 0 ? '' : [];
    case 'parts':
      return [{ type: 'media', mediaType: 'image/png', url: 'https://example.com/a.png' }, ...(input.n % 2 === 0 ? [{ type: 'text' as const, text }] : [])];
    case 'result':
      return { content: text, display: { lines: [text] }, truncated: true };
    case 'note':
      return { content: ' ', note: `note on ${text}` };
    case 'error':
      return { content: text, isError: true, stopTurn: true };
    case 'throws':
      throw new Error(`${text} and failed`);
    case 'garbage':
      return [undefined, 7, { lines: 3n }, [{ type: 'tool_call' }], new Map([['a', 1]])][input.n % 5] as unknown as ToolReturn;
    case 'cycle': {
      const cycle: Record<string, unknown> = { content: text };
      cycle['display'] = cycle;
      return cycle as unknown as ToolReturn;
    }
    case 'stop':
      return { content: text, stopTurn: true };
    case 'suspend':
      return context.resumed === undefined ? suspend({ state: { n: input.n ?? 0 } }) : `${text} after ${String(context.resumed.decisions.length)} decisions`;
    case 'suspend_child':
      return context.resumed === undefined ? suspend({ state: { n: input.n ?? 0 }, pending: [pendingChild(context)] }) : `${text} with its child`;
    case 'usage': {
      const usage = toUsage({ inputTokens: 3, outputTokens: 2 });
      world.told.push({ usage, at: world.runtime.now(), certain: true });
      void context.recordUsage(usage, 'child-1');
      context.forward({ type: 'text.delta', turnId: 'child', at: world.runtime.now() });
      return text;
    }
  }
}

function pendingChild(context: ToolContext): NonNullable<Parameters<typeof suspend>[0]['pending']>[number] {
  return { toolCallId: `child_of_${context.toolCallId}`, name: 'delete', input: {}, step: 1, agentPath: [] };
}
