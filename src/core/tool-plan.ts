/**
 * Tool plan: what is to happen to each call of a reply, decided before anything of the reply is recorded.
 *
 * - Calls are read, checked and prepared one after the other, in provider order.
 * - A call that cannot run has its outcome here; whether one that can may run is `tool-call.ts`'s business.
 */
import { messageOf } from './errors.ts';
import type { HookCall, HookContext, HookSibling, PrepareDecision } from './hooks.ts';
import { cloneJson, type JsonValue } from './json.ts';
import type { LLM } from './llm.ts';
import type { ToolCallPart } from './message.ts';
import type { AnyTool } from './tool.ts';
import { isAccessList, ToolAccesses, type ToolAccess } from './tool-access.ts';
import { checkGivenInput, checkToolInput, parseToolInput, unknownToolMessage, unreadInput, type ToolInputResult, type ToolTable } from './tool-input.ts';
import { errorOutcome, toToolOutcome, type ToolOutcome } from './tool-result.ts';
import type { OpenCall } from './transcript.ts';
import { abortOutcome, type TurnScope } from './turn-scope.ts';

/** The step whose calls these are. */
export interface ToolStep {
  /** 1-based. */
  readonly step: number;
  /** Id of the step. */
  readonly stepId: string;
  /** The model. */
  readonly llm: LLM;
  /** Tools of the step. */
  readonly tools: ToolTable;
  /** What the hooks of the step are given. */
  readonly context: HookContext;
}

/** What is to happen to a call. */
export type CallPlan =
  /** It may run, once it is authorised. */
  | {
      /** Tells this shape from the others. */
      readonly kind: 'run';
      /** What `execute` takes. */
      readonly parsed: unknown;
      /** What it touches. */
      readonly accesses: readonly ToolAccess[];
    }
  /** It does not run; this is its result before the hooks' last look. */
  | {
      /** Tells this shape from the others. */
      readonly kind: 'settle';
      /** Its result. */
      readonly outcome: ToolOutcome;
    }
  /** It does not run; it gets the final result of this earlier call. */
  | {
      /** Tells this shape from the others. */
      readonly kind: 'share';
      /** Id of the call. */
      readonly toolCallId: string;
    };

/** A call that was read, checked and prepared. */
export interface PlannedCall {
  /** The call as the model made it. */
  readonly call: ToolCallPart;
  /** The tool; absent for an unknown one. */
  readonly tool: AnyTool | undefined;
  /** The arguments it would run with; absent where the text was not an object. */
  readonly input: JsonValue | undefined;
  /** What it would do, in words, where the tool says. */
  readonly description: string | undefined;
  /** What is to happen to it. */
  readonly plan: CallPlan;
  /** True if a hook kept it from running: a resume asks that hook again. */
  readonly held: boolean;
  /** What the record knows of it, on a resume. */
  readonly prior?: OpenCall | undefined;
}

/** What is told of a call that was running when the process stopped. */
export const UNKNOWN_OUTCOME: string =
  'The process stopped while this call was running, and it is not known whether it took effect. It was not run again: ' +
  'find out what happened before you repeat it.';

/** Result of a call of a reply that was not whole. */
export function notExecuted(why: string): CallPlan {
  return { kind: 'settle', outcome: errorOutcome(`This call was not executed: ${why}.`) };
}

/**
 * Reads, checks and prepares the calls of a reply, one after the other in provider order. Never rejects but for the end
 * of the turn's grace.
 */
export async function planToolCalls(
  scope: TurnScope,
  step: ToolStep,
  calls: readonly ToolCallPart[],
): Promise<readonly PlannedCall[]> {
  const siblings = calls.map(({ id, name, inputText }) => ({ toolCallId: id, name, inputText }));
  const planned: PlannedCall[] = [];
  for (const call of calls) {
    const tool = step.tools.get(call.name);
    const read = tool === undefined ? undefined : await readInput(scope, parseToolInput(tool, call.inputText));
    const seen = { tools: step.tools, call, tool, siblings, read };
    planned.push(mustPrepare(scope) ? await prepare(scope, step.context, seen) : conclude(seen, read));
  }
  return planned;
}

/** Plans the calls of an open step again: what is recorded of them stands, what never started is looked at anew. */
export async function replanToolCalls(
  scope: TurnScope,
  step: ToolStep,
  calls: readonly OpenCall[],
): Promise<readonly PlannedCall[]> {
  const siblings = calls.map(({ toolCallId, name, inputText }) => ({ toolCallId, name, inputText }));
  const planned: PlannedCall[] = [];
  for (const prior of calls) {
    const { toolCallId, name, inputText, input, sameAs } = prior;
    const call: ToolCallPart = { type: 'tool_call', id: toolCallId, name, inputText, ...(input !== undefined && { input }) };
    const tool = step.tools.get(name);
    if (sameAs !== undefined) {
      const plan: CallPlan = { kind: 'share', toolCallId: sameAs };
      planned.push({ call, tool, input, description: prior.description, plan, held: false, prior });
      continue;
    }
    const known = prior.held === true ? undefined : input;
    const read = tool && (await readInput(scope, known === undefined ? parseToolInput(tool, inputText) : checkToolInput(tool, known)));
    const seen = { tools: step.tools, call, tool, siblings, read };
    if (tool === undefined && prior.started === true) {
      const plan: CallPlan = { kind: 'settle', outcome: errorOutcome(`${UNKNOWN_OUTCOME} The tool does not exist any more.`) };
      planned.push({ call, tool, input, description: prior.description, plan, held: false, prior });
      continue;
    }
    const next = prior.held === true || tool === undefined ? await prepare(scope, step.context, seen) : conclude(seen, read);
    planned.push({ ...next, prior });
  }
  return planned;
}

/** False if nothing but the call itself decides what becomes of it. */
function mustPrepare(scope: TurnScope): boolean {
  return scope.isAborted || scope.hasHook('prepareToolCall');
}

/** Waits for a schema library; after an abort the call is closed whatever becomes of its arguments. */
async function readInput(
  scope: TurnScope,
  reading: Promise<ToolInputResult> | ToolInputResult,
): Promise<ToolInputResult> {
  try {
    return await scope.settle(reading);
  } catch {
    return { ok: false, message: 'The turn was aborted before the arguments were checked.' };
  }
}

interface SeenCall {
  /** Tools of the step. */
  readonly tools: ToolTable;
  /** The call as the model made it. */
  readonly call: ToolCallPart;
  /** The tool; absent for an unknown one. */
  readonly tool: AnyTool | undefined;
  readonly siblings: readonly HookSibling[];
  /** Its arguments as they were read; absent for an unknown tool. */
  readonly read: ToolInputResult | undefined;
}

function hookCall(seen: SeenCall, input: JsonValue | undefined): HookCall {
  const { call, tool, siblings } = seen;
  const copy = input === undefined ? undefined : cloneJson(input);
  return { toolCallId: call.id, name: call.name, inputText: call.inputText, input: copy, tool, siblings };
}

/** Asks the prepare hooks about a call that can be read, or whose tool does not exist: a host may word that. */
async function prepare(scope: TurnScope, context: HookContext, seen: SeenCall): Promise<PlannedCall> {
  let current = seen.read;
  if (scope.isAborted) return closedByAbort(scope, seen);
  if (current?.ok === false) return conclude(seen, current);
  for (const hook of scope.hooks) {
    if (hook.prepareToolCall === undefined) continue;
    if (scope.isAborted) break;
    try {
      const asked = hook.prepareToolCall(context, hookCall(seen, current?.input));
      const decision: PrepareDecision | undefined | void | null = await scope.settle(asked);
      if (decision === undefined || decision === null) continue;
      if (decision.action === 'rewrite') {
        if (seen.tool === undefined) continue;
        current = await readInput(scope, checkGivenInput(seen.tool, decision.input));
        // A resume asks the hook again: what the model wrote might do, what the hook made of it does not.
        if (!current.ok) return { ...conclude(seen, current), held: true };
        continue;
      }
      const plan: CallPlan =
        decision.action === 'same_as'
          ? sharePlan(seen, decision.toolCallId)
          : decision.action === 'block'
            ? { kind: 'settle', outcome: errorOutcome(reasonOf(decision.reason, 'The call was blocked.')) }
            : { kind: 'settle', outcome: toToolOutcome(decision.result, `Hook "${hook.name}"`) };
      return { ...conclude(seen, current), plan, held: plan.kind === 'settle' };
    } catch (error) {
      if (scope.isAborted) break;
      scope.hookFailed(hook, 'prepareToolCall', error);
      const outcome = errorOutcome(`The call was not run: hook "${hook.name}" failed: ${messageOf(error)}`);
      return { ...conclude(seen, current), plan: { kind: 'settle', outcome }, held: true };
    }
  }
  return scope.isAborted ? closedByAbort(scope, seen) : conclude(seen, current);
}

/** A reason as text, whatever a hook without types gave. */
export function reasonOf(reason: unknown, otherwise: string): string {
  return typeof reason === 'string' && reason !== '' ? reason : otherwise;
}

function closedByAbort(scope: TurnScope, { call, tool, read }: SeenCall): PlannedCall {
  const plan: CallPlan = { kind: 'settle', outcome: abortOutcome(scope, false) };
  return { call, tool, input: inputOf(call, read), description: undefined, held: false, plan };
}

/** The arguments for the record: those that were read, or what they say where no tool was there to read them. */
function inputOf({ inputText }: ToolCallPart, read: ToolInputResult | undefined): JsonValue | undefined {
  return read === undefined ? unreadInput(inputText) : read.input;
}

function sharePlan(seen: SeenCall, toolCallId: string): CallPlan {
  const own = seen.siblings.findIndex((sibling) => sibling.toolCallId === seen.call.id);
  const other = seen.siblings.findIndex((sibling) => sibling.toolCallId === toolCallId);
  if (other === -1 || other >= own) return notExecuted('a hook named a call as its equal that does not stand before it');
  return { kind: 'share', toolCallId };
}

/** What a call that no hook held comes to: the tool says what it would do and what it touches. */
function conclude(seen: SeenCall, read: ToolInputResult | undefined): PlannedCall {
  const { call, tool, tools } = seen;
  const settled = (text: string): PlannedCall => {
    const plan: CallPlan = { kind: 'settle', outcome: errorOutcome(text) };
    return { call, tool, input: inputOf(call, read), description: undefined, held: false, plan };
  };
  if (tool === undefined || read === undefined) return settled(unknownToolMessage(call.name, tools));
  if (!read.ok) return settled(read.message);
  try {
    const { description, accesses } = resolveCall(tool, read.parsed);
    const plan: CallPlan = { kind: 'run', parsed: read.parsed, accesses };
    return { call, tool, input: read.input, description, held: false, plan };
  } catch (error) {
    return settled(`The call was not run: the tool could not say what it does: ${messageOf(error)}`);
  }
}

/** What a tool says of a call: what it would do and what it touches. @throws what the tool throws, or a `TypeError` */
export function resolveCall(
  tool: AnyTool,
  parsed: unknown,
): { readonly description: string | undefined; readonly accesses: readonly ToolAccess[] } {
  const description: unknown = tool.describe?.(parsed);
  if (description !== undefined && typeof description !== 'string') throw new TypeError('describe() did not return a text');
  if (tool.accesses === undefined) {
    return { description, accesses: tool.readOnly === true ? ToolAccesses.readAll() : ToolAccesses.all() };
  }
  const accesses: unknown = tool.accesses(parsed);
  if (!isAccessList(accesses)) throw new TypeError('accesses() did not return a list made with ToolAccesses');
  return { description, accesses };
}
