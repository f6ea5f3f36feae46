/**
 * Options of `dispatchAgent`: what a host may set, and what comes of it once defaults are in. Misuse is refused here, when
 * the tool is made.
 */
import { assertLLM, assertNumbers, assertOptions } from '../core/assert.ts';
import type { Hook, Recovery, StepSettings, StopCondition } from '../core/hooks.ts';
import { isRecord } from '../core/json.ts';
import type { LLM } from '../core/llm.ts';
import type { ToolAccess } from '../core/tool-access.ts';
import { toolSet } from '../core/tool-input.ts';
import type { AnyTool } from '../core/tool.ts';
import { assertTurnOptions } from '../core/turn-options.ts';
import { SubAgentPlaces } from './sub-agent-places.ts';
import type { OpenSubAgentLog } from './sub-agent-record.ts';

/** Arguments of `dispatch_agent`. */
export interface DispatchAgentInput {
  /** The task: all that the sub-agent is told. */
  readonly prompt: string;
  /** The task in a few words, for people. */
  readonly description?: string | undefined;
  /** Which kind of sub-agent, one of `types`. */
  readonly type?: string | undefined;
}

/** A kind of sub-agent that a model may choose. */
export interface SubAgentType {
  /** What it is good at, for the model that chooses. */
  readonly description: string;
  /** Its model. @defaultValue that of the options */
  readonly llm?: LLM | undefined;
  /** What it is told before the prompt. @defaultValue the system prompt of its model */
  readonly systemPrompt?: string | undefined;
  /** Its tools, all of them: also those that change something. @defaultValue the `readOnly` ones of the options */
  readonly tools?: readonly AnyTool[] | undefined;
  /** Most steps. @defaultValue that of the options */
  readonly maxSteps?: number | undefined;
}

/** Options of {@link agent.dispatchAgent | dispatchAgent}. */
export interface DispatchAgentOptions {
  /** Name of the tool. @defaultValue `'dispatch_agent'` */
  readonly name?: string | undefined;
  /** Kinds of sub-agents by name, for the model to choose from. @defaultValue one kind, which has no name */
  readonly types?: Readonly<Record<string, SubAgentType>> | undefined;
  /** Model of the sub-agents, with its budget, retries and limits. @defaultValue the one that made the call */
  readonly llm?: LLM | undefined;
  /**
   * What to choose from, such as the caller's own tools: of these a sub-agent has the `readOnly` ones. A kind that is to change
   * something gets its tools by `types`. @defaultValue none
   */
  readonly tools?: readonly AnyTool[] | undefined;
  /** Hooks of the sub-agents' turns, such as an approval: those of the caller's turn may be shared. @defaultValue none */
  readonly hooks?: readonly Hook[] | undefined;
  /** Stop conditions beside `maxSteps`. @defaultValue none */
  readonly stopWhen?: StopCondition | readonly StopCondition[] | undefined;
  /** What to try when a request fails for good. @defaultValue none */
  readonly recoveries?: readonly Recovery[] | undefined;
  /** Settings of every request. */
  readonly request?: StepSettings | undefined;
  /** Most steps of a sub-agent; 0 for no limit. @defaultValue 8: a part of a task, not a task */
  readonly maxSteps?: number | undefined;
  /**
   * How long a sub-agent may run, in milliseconds, without the time it waits for a place; restarts with a resume. `Infinity`
   * for no limit. @defaultValue 600,000: eight steps of a slow model, with a pause of its provider
   */
  readonly deadlineMs?: number | undefined;
  /** How deep sub-agents may dispatch: the deepest do not have the tool. @defaultValue 1: sub-agents do not dispatch */
  readonly maxDepth?: number | undefined;
  /**
   * Most sub-agents at work at once, over all turns that use this tool and all depths. One that waits for sub-agents of its own
   * does not count. @defaultValue 4
   */
  readonly maxParallel?: number | undefined;
  /**
   * How long an aborted sub-agent may take to settle, in milliseconds; each further depth has half of it. Keep it well below the
   * `graceMs` of the caller's turn, or what it spent while it settled is not counted there. @defaultValue 1,000: half of a turn's
   */
  readonly graceMs?: number | undefined;
  /** Which events of sub-agents the caller's turn shows: `tools` is tool calls, usage and notices. @defaultValue `'all'` */
  readonly forward?: 'all' | 'tools' | undefined;
  /** Most characters of a sub-agent's text that the caller's model sees. @defaultValue 8,192, as of any tool's result */
  readonly maxResultCharacters?: number | undefined;
  /**
   * A shorter answer is asked about once: it is all that the caller gets. 0 never asks. @defaultValue 1: only a blank answer is
   * too short, since "42" may be all there is to say
   */
  readonly minAnswerCharacters?: number | undefined;
  /**
   * What a call touches. @defaultValue a read of everything if all tools of the kind are `readOnly`, so that such calls
   * overlap with each other and with reads; else everything: two sub-agents that write never overlap
   */
  readonly accesses?: ((input: DispatchAgentInput) => readonly ToolAccess[]) | undefined;
  /**
   * Where the events of a sub-agent are kept. With it a call that was cut off by a crash goes on where it was
   * (`replay: 'idempotent'`), and one that had ended gives its result without asking a model.
   *
   * @defaultValue events are in memory; a suspended call keeps them in the caller's transcript
   */
  readonly openLog?: OpenSubAgentLog | undefined;
}

/** A kind of sub-agent with all defaults in. */
export interface SubAgentKind {
  readonly llm: LLM | undefined;
  readonly systemPrompt: string | undefined;
  readonly tools: readonly AnyTool[];
  readonly maxSteps: number;
  /** None of its tools changes anything. */
  readonly readOnly: boolean;
}

/** The options with all defaults in, and what the calls share. */
export interface DispatchSettings
  extends Pick<DispatchAgentOptions, 'hooks' | 'stopWhen' | 'recoveries' | 'request' | 'accesses' | 'openLog'> {
  readonly name: string;
  /** For the model: names and descriptions of the types. */
  readonly types: readonly (readonly [name: string, description: string])[];
  /** By name; under undefined the kind of a call that names none. */
  readonly kinds: ReadonlyMap<string | undefined, SubAgentKind>;
  readonly deadlineMs: number;
  readonly maxDepth: number;
  readonly graceMs: number;
  readonly forward: 'all' | 'tools';
  readonly maxResultCharacters: number;
  readonly minAnswerCharacters: number;
  readonly places: SubAgentPlaces;
}

const ARGUMENT = { taker: 'dispatchAgent', example: "dispatchAgent({ tools, types: { explorer: { description: 'Finds things.' } } })" };

const OPTIONS: Readonly<Record<keyof DispatchAgentOptions, true>> = {
  name: true,
  types: true,
  llm: true,
  tools: true,
  hooks: true,
  stopWhen: true,
  recoveries: true,
  request: true,
  maxSteps: true,
  deadlineMs: true,
  maxDepth: true,
  maxParallel: true,
  graceMs: true,
  forward: true,
  maxResultCharacters: true,
  minAnswerCharacters: true,
  accesses: true,
  openLog: true,
};

const TYPE_OPTIONS: Readonly<Record<keyof SubAgentType, true>> = {
  description: true,
  llm: true,
  systemPrompt: true,
  tools: true,
  maxSteps: true,
};

/** Puts the defaults in. @throws TypeError for misuse, naming the option */
export function dispatchSettings(options: DispatchAgentOptions): DispatchSettings {
  assertDispatchOptions(options);
  const { name = 'dispatch_agent', types = {}, tools = [], llm, maxSteps = 8, maxParallel = 4 } = options;
  // The tool itself reaches a sub-agent by `maxDepth` only.
  const others = (list: readonly AnyTool[]): readonly AnyTool[] => list.filter((tool) => tool.name !== name);
  const readable = others(tools).filter(({ readOnly }) => readOnly === true);
  const kindOf = (type: Partial<SubAgentType>): SubAgentKind => {
    const own = type.tools === undefined ? readable : others(type.tools);
    const readOnly = own.every((tool) => tool.readOnly === true);
    return { llm: type.llm ?? llm, systemPrompt: type.systemPrompt, tools: own, maxSteps: type.maxSteps ?? maxSteps, readOnly };
  };
  const { hooks, stopWhen, recoveries, request, accesses, openLog } = options;
  return {
    hooks,
    stopWhen,
    recoveries,
    request,
    accesses,
    openLog,
    name,
    types: Object.entries(types).map(([key, { description }]) => [key, description]),
    kinds: new Map([[undefined, kindOf({})], ...Object.entries(types).map(([key, type]) => [key, kindOf(type)] as const)]),
    deadlineMs: options.deadlineMs ?? 600_000,
    maxDepth: options.maxDepth ?? 1,
    graceMs: options.graceMs ?? 1_000,
    forward: options.forward ?? 'all',
    maxResultCharacters: options.maxResultCharacters ?? 8_192,
    minAnswerCharacters: options.minAnswerCharacters ?? 1,
    places: new SubAgentPlaces(maxParallel),
  };
}

function assertDispatchOptions(options: DispatchAgentOptions): void {
  assertOptions(options, OPTIONS, ARGUMENT);
  const count = { least: 1, whole: true };
  assertNumbers(
    options,
    {
      maxSteps: { least: 0, whole: true },
      deadlineMs: { least: 0, orInfinity: true },
      maxDepth: count,
      maxParallel: { ...count, orInfinity: true },
      graceMs: { least: 0 },
      maxResultCharacters: { least: 100, whole: true },
      minAnswerCharacters: { least: 0, whole: true },
    },
    ARGUMENT,
  );
  const { name, llm, tools, types, hooks, stopWhen, recoveries, request } = options;
  assertMember('name', name, { kind: 'a text that is not empty', isValid: (value) => typeof value === 'string' && value !== '' });
  assertMember('forward', options.forward, { kind: "'all' or 'tools'", isValid: (value) => value === 'all' || value === 'tools' });
  for (const member of ['accesses', 'openLog'] as const) {
    assertMember(member, options[member], { kind: 'a function', isValid: (value) => typeof value === 'function' });
  }
  if (llm !== undefined) assertLLM(llm, ARGUMENT);
  // Turns of sub-agents refuse the same things, but only once a model has dispatched one.
  const anyLLM = (): LLM => {
    throw new TypeError('It is never asked.');
  };
  assertTurnOptions({ llm: llm ?? anyLLM, buildMessages: () => [], dispatchEvent: () => undefined, tools, hooks, stopWhen, recoveries, request });
  assertMember('types', types, { kind: 'an object of kinds by name', isValid: isRecord });
  for (const [key, type] of Object.entries(types ?? {})) assertType(key, type);
}

function assertType(name: string, type: SubAgentType): void {
  const argument = { ...ARGUMENT, taker: `dispatchAgent: types.${name}` };
  assertOptions(type, TYPE_OPTIONS, argument);
  const isText = (value: unknown): boolean => typeof value === 'string';
  assertMember(`types.${name}.description`, type.description ?? null, { kind: 'a text', isValid: isText });
  assertMember(`types.${name}.systemPrompt`, type.systemPrompt, { kind: 'a text', isValid: isText });
  assertNumbers(type, { maxSteps: { least: 0, whole: true } }, argument);
  if (type.llm !== undefined) assertLLM(type.llm, argument);
  if (type.tools !== undefined) toolSet(type.tools);
}

function assertMember(name: string, value: unknown, rule: { readonly kind: string; readonly isValid: (value: unknown) => boolean }): void {
  if (value === undefined || rule.isValid(value)) return;
  throw new TypeError(`dispatchAgent: \`${name}\` must be ${rule.kind}. For example: ${ARGUMENT.example}.`);
}
