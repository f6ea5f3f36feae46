/**
 * Agent options: what an agent is made of, and what of it is on without being asked for.
 */
import { assertLLM, assertNumbers, assertOptions, assertTool } from '../core/assert.ts';
import { messageOf } from '../core/errors.ts';
import type { Hook, Recovery, StepSettings, StopCondition } from '../core/hooks.ts';
import { isRecord, type JsonValue } from '../core/json.ts';
import type { LLM } from '../core/llm.ts';
import type { Runtime } from '../core/runtime.ts';
import type { AnyTool, StandardSchema } from '../core/tool.ts';
import { assertTurnOptions, type StepInfo } from '../core/turn-options.ts';
import { createContextPolicy, type ContextPolicy } from '../context/context-policy.ts';
import type { ContextPolicyOptions } from '../context/policy-settings.ts';
import type { Memory } from '../memory/memory.ts';
import { approval, type ApprovalOptions } from '../policies/approval.ts';
import type { Budget } from '../policies/budget.ts';
import { withBudget } from '../policies/with-budget.ts';
import { continuePaused, type ContinuePausedOptions } from '../policies/continue-paused.ts';
import { loopGuard } from '../policies/loop-guard.ts';
import type { LoopGuardOptions } from '../policies/loop-guard-options.ts';
import { maxSteps } from '../policies/max-steps.ts';
import { type RetryOptions, withRetry } from '../policies/retry.ts';
import { type ThinkTagsOptions, withThinkTags } from '../policies/think-tags.ts';
import { type TimeoutOptions, withTimeouts } from '../policies/timeouts.ts';
import type { SessionStore } from '../sessions/session-store.ts';
import type { Agent } from './agent.ts';
import { dispatchAgent } from './dispatch-agent.ts';
import type { DispatchAgentOptions } from './dispatch-agent-options.ts';
import { withGuardrails } from './guardrails.ts';
import type { GuardrailOptions } from './guardrails-options.ts';
import { structuredOutput } from './structured-output.ts';
import type { SystemPromptParts } from './system-prompt.ts';

/** Steps of a turn: enough for real work, and a loop that burns money ends. */
const DEFAULT_MAX_STEPS = 25;

const AGENT_ARGUMENT = { taker: 'createAgent', example: 'createAgent({ llm, tools: [search] })' } as const;

/** What a function that gives the system prompt is told. */
export interface PromptInfo {
  /** The session. */
  readonly sessionId: string;
  /** The turn. */
  readonly turnId: string;
  /** The host's own value, as given to the turn. */
  readonly host: unknown;
}

/** Something of the host's that is kept with a session and is in no event of it. */
export interface Learned {
  /** What is kept, as plain JSON without keys and secrets. Asked when a snapshot is taken, between turns. */
  snapshot(): JsonValue;
  /** Given back what was kept, when a session that has it is opened. */
  restore(state: JsonValue): void;
}

/** Options of {@link createAgent}. */
export interface AgentOptions<Output = unknown> {
  /** Names it in results, handoffs and snapshots. @defaultValue `'agent'` */
  readonly name?: string | undefined;
  /** What it is good at, for agents that may hand over to it. @defaultValue nothing is said */
  readonly description?: string | undefined;
  /**
   * The model. One that `withRetry` was put around is taken as it is; any other gets `withTimeouts` and `withRetry`.
   */
  readonly llm: LLM;
  /**
   * The system prompt: a text, sections, or a function that gives them, asked once in a turn. What stays equal keeps the
   * provider's cache.
   *
   * @defaultValue the model's own
   */
  readonly systemPrompt?: string | SystemPromptParts | ((info: PromptInfo) => string | SystemPromptParts | Promise<string | SystemPromptParts>) | undefined;
  /** Tools; a function is asked anew before each step. @defaultValue none */
  readonly tools?: readonly AnyTool[] | ((info: StepInfo) => readonly AnyTool[] | Promise<readonly AnyTool[]>) | undefined;
  /** Tools that the model finds by a search instead of being offered them all: for hundreds. @defaultValue none */
  readonly deferredTools?: readonly AnyTool[] | undefined;
  /** Steps a turn may take, a whole number; 0 for no limit. @defaultValue 25: enough for real work, and runaways end */
  readonly maxSteps?: number | undefined;
  /** Further stop conditions. @defaultValue none */
  readonly stopWhen?: StopCondition | readonly StopCondition[] | undefined;
  /** Options of `withRetry`; false for none. @defaultValue its defaults, unless the model asks again by itself */
  readonly retry?: RetryOptions | false | undefined;
  /** Options of `withTimeouts`; false for none. @defaultValue its defaults, unless the model asks again by itself */
  readonly timeouts?: TimeoutOptions | false | undefined;
  /** Options of `withThinkTags`, which makes thinking of `<think>` texts at the beginning of an answer; false for none. @defaultValue its defaults */
  readonly thinkTags?: ThinkTagsOptions | false | undefined;
  /** Options of `continuePaused`, which goes on with replies that a provider paused for tools of its own; false for none. @defaultValue its defaults */
  readonly continuePaused?: ContinuePausedOptions | false | undefined;
  /** A context policy or the options of one; false for none. @defaultValue one for each session, with its defaults */
  readonly context?: ContextPolicy | ContextPolicyOptions | false | undefined;
  /** Options of `loopGuard`; false for none. @defaultValue its defaults */
  readonly loopGuard?: LoopGuardOptions | false | undefined;
  /** Which calls a person is asked about: options of `approval`. @defaultValue nobody is asked, every call runs */
  readonly approval?: ApprovalOptions | undefined;
  /** What all its turns, summaries and sub-agents may spend together, and all agents that its sessions are handed to. @defaultValue no limit */
  readonly budget?: Budget | undefined;
  /** Judge inputs, answers and calls, and end the turn where they trip. @defaultValue none */
  readonly guardrails?: GuardrailOptions | undefined;
  /** Hooks of your own; they stand before the agent's. @defaultValue none */
  readonly hooks?: readonly Hook[] | undefined;
  /** Recoveries of your own; they stand before the agent's: `strictHistory()` and those of the context policy. @defaultValue none */
  readonly recoveries?: readonly Recovery[] | undefined;
  /** Settings of every request. */
  readonly request?: StepSettings | undefined;
  /** What the answer has to be: any Standard Schema (zod, valibot, arktype …). @defaultValue text */
  readonly output?: StandardSchema<Output> | undefined;
  /** What is remembered from one session to the next: shown to the model, learned from its turns. @defaultValue nothing */
  readonly memory?: Memory | undefined;
  /** Offers `dispatch_agent`, by which the model gives tasks to sub-agents: true, or its options. @defaultValue false */
  readonly subAgents?: boolean | DispatchAgentOptions | undefined;
  /**
   * Agents that the conversation may be handed to; a function where they know each other. One that takes over brings its model,
   * prompt, tools, hooks and limits. What this one may spend, its step limit, `stopWhen` and `hooks` hold on beside them, and so
   * do its `approval` and `guardrails` where the other has none. Deadline, grace, parallel tools, recoveries, context and memory
   * stay those of this one. @defaultValue none
   */
  readonly handoffs?: readonly Agent[] | (() => readonly Agent[]) | undefined;
  /** Where sessions are kept. @defaultValue in this process */
  readonly sessions?: SessionStore | undefined;
  /** Things of yours that sessions keep in their snapshots, by name. @defaultValue none */
  readonly learned?: Readonly<Record<string, Learned>> | undefined;
  /** Whether queued inputs get a turn each, or all that wait one together. @defaultValue `'one'` */
  readonly followUps?: 'one' | 'all' | undefined;
  /** Aborts a turn after so many milliseconds. @defaultValue none */
  readonly deadlineMs?: number | undefined;
  /** How long an aborted turn may take to settle, in milliseconds. @defaultValue 2000 */
  readonly graceMs?: number | undefined;
  /** Most tool calls at once. @defaultValue 8 */
  readonly maxParallelTools?: number | undefined;
  /** Clock, timers, ids and randomness. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
  /** Told of what failed beside a turn and changed nothing of it: a snapshot, a listener, what was to be remembered. @defaultValue nobody */
  readonly onProblem?: ((problem: Error) => void) | undefined;
}

const OPTIONS: Readonly<Record<keyof AgentOptions, true>> = {
  name: true,
  description: true,
  llm: true,
  systemPrompt: true,
  tools: true,
  deferredTools: true,
  maxSteps: true,
  stopWhen: true,
  retry: true,
  timeouts: true,
  thinkTags: true,
  continuePaused: true,
  context: true,
  loopGuard: true,
  approval: true,
  budget: true,
  guardrails: true,
  hooks: true,
  recoveries: true,
  request: true,
  output: true,
  memory: true,
  subAgents: true,
  handoffs: true,
  sessions: true,
  learned: true,
  followUps: true,
  deadlineMs: true,
  graceMs: true,
  maxParallelTools: true,
  runtime: true,
  onProblem: true,
};

/** The limit of steps, as `maxSteps` takes it. */
export function stepLimit({ maxSteps = DEFAULT_MAX_STEPS }: Pick<AgentOptions, 'maxSteps'>): number {
  return maxSteps;
}

/** Refuses misuse of what no other part of the agent looks at. @throws TypeError that names the option. */
export function assertAgentOptions(options: AgentOptions): void {
  assertOptions(options, OPTIONS, AGENT_ARGUMENT);
  assertLLM(options.llm, AGENT_ARGUMENT);
  assertNumbers(options, { deadlineMs: { least: 0, orInfinity: true }, graceMs: { least: 0 }, maxParallelTools: { least: 1, whole: true, orInfinity: true } }, AGENT_ARGUMENT);
  // Each part refuses what it cannot take: here, and not when the first turn runs.
  const { llm, tools, hooks, recoveries, stopWhen, request, context, loopGuard: guard, approval: asked, subAgents, guardrails, continuePaused: paused } = options;
  assertTurnOptions({ llm, buildMessages: () => [], dispatchEvent: () => undefined, tools, hooks, recoveries, stopWhen, request });
  maxSteps(stepLimit(options));
  const { retry, timeouts, thinkTags, budget, output } = options;
  assertOption('context', () => context !== undefined && context !== false && !isContextPolicy(context) && createContextPolicy(context));
  assertOption('loopGuard', () => guard !== undefined && guard !== false && loopGuard(guard));
  assertOption('approval', () => asked !== undefined && approval(asked));
  assertOption('subAgents', () => typeof subAgents === 'object' && dispatchAgent(subAgents));
  assertOption('guardrails', () => guardrails !== undefined && withGuardrails(llm, guardrails));
  assertOption('continuePaused', () => paused !== undefined && paused !== false && continuePaused(paused));
  assertOption('retry', () => retry !== undefined && retry !== false && withRetry(llm, retry));
  assertOption('timeouts', () => timeouts !== undefined && timeouts !== false && withTimeouts(llm, timeouts));
  assertOption('thinkTags', () => thinkTags !== undefined && thinkTags !== false && withThinkTags(llm, thinkTags));
  assertOption('budget', () => budget !== undefined && withBudget(llm, budget));
  assertOption('output', () => output !== undefined && structuredOutput(output));
  const given: { readonly [Name in keyof AgentOptions]: unknown } = options;
  assertText('name', given.name);
  assertText('description', given.description);
  for (const tool of options.deferredTools ?? []) assertTool(tool, { ...AGENT_ARGUMENT, example: 'createAgent({ llm, deferredTools: [search] })' });
  if (given.systemPrompt !== undefined && typeof given.systemPrompt !== 'string' && typeof given.systemPrompt !== 'function' && !isRecord(given.systemPrompt)) {
    throw new TypeError(`createAgent: \`systemPrompt\` must be a text, sections or a function, not ${typeof given.systemPrompt}. For example: createAgent({ llm, systemPrompt: 'Be brief.' }).`);
  }
  if (given.followUps !== undefined && given.followUps !== 'one' && given.followUps !== 'all') {
    throw new TypeError(`createAgent: \`followUps\` must be 'one' or 'all', not ${JSON.stringify(given.followUps)}. For example: createAgent({ llm, followUps: 'all' }).`);
  }
  assertMembers('sessions', given.sessions, { methods: ['create', 'open', 'read', 'list', 'delete'], example: "createAgent({ llm, sessions: fileSessionStore('./sessions') })" });
  assertMembers('memory', given.memory, { methods: ['openSession'], example: "createAgent({ llm, memory: createMemory({ store }) })" });
  assertMembers('runtime', given.runtime, { methods: ['now', 'setTimer', 'createId', 'random'], example: 'createAgent({ llm, runtime: virtualRuntime() })' });
  for (const [name, one] of Object.entries(options.learned ?? {})) {
    assertMembers(`learned.${name}`, one, { methods: ['snapshot', 'restore'], example: 'createAgent({ llm, learned: { notes: { snapshot, restore } } })' });
  }
  if (given.handoffs !== undefined && typeof given.handoffs !== 'function' && !Array.isArray(given.handoffs)) {
    throw new TypeError('createAgent: `handoffs` must be a list of agents, or a function that gives one. For example: createAgent({ llm, handoffs: [billing] }).');
  }
  if (given.onProblem !== undefined && typeof given.onProblem !== 'function') {
    throw new TypeError('createAgent: `onProblem` must be a function. For example: createAgent({ llm, onProblem: console.error }).');
  }
}

/** Has the part that an option is for look at it. @throws TypeError that names the option, and says what the part says. */
function assertOption(name: keyof AgentOptions, look: () => unknown): void {
  try {
    look();
  } catch (error) {
    throw new TypeError(`createAgent: \`${name}\` is not what it has to be. ${messageOf(error)}`, { cause: error });
  }
}

/** Whether it is a policy rather than the options of one. */
export function isContextPolicy(context: ContextPolicy | ContextPolicyOptions | false | undefined): context is ContextPolicy {
  return typeof context === 'object' && 'hooks' in context && 'recoveries' in context;
}

function assertMembers(name: string, value: unknown, { methods, example }: { readonly methods: readonly string[]; readonly example: string }): void {
  if (value === undefined || (isRecord(value) && methods.every((method) => typeof value[method] === 'function'))) return;
  throw new TypeError(`createAgent: \`${name}\` must have ${methods.join(', ')}. For example: ${example}.`);
}

function assertText(name: string, value: unknown): void {
  if (value === undefined || (typeof value === 'string' && value !== '')) return;
  throw new TypeError(`createAgent: \`${name}\` must be a text, not ${JSON.stringify(value) ?? typeof value}. For example: createAgent({ name: 'billing', llm }).`);
}
