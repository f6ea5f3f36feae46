/**
 * Session cast: the agents that may have the conversation of a session, and what they bring to its turns.
 *
 * - The agent that the session was opened with sets its context policy and its memory, and limits that hold throughout; the one
 *   that has the conversation brings model, prompt, tools, hooks and limits of its own (`takingOver`).
 * - Within a turn prompt and memory stand still, so that each request begins with the one before.
 */
import type { CompactionEdit, CompactionEvent, UsageEvent } from '../core/events.ts';
import { messageOf, TurnloopError } from '../core/errors.ts';
import type { Hook } from '../core/hooks.ts';
import type { JsonObject, JsonValue } from '../core/json.ts';
import type { LLM } from '../core/llm.ts';
import type { Message, UserMessage } from '../core/message.ts';
import { systemRuntime, type Runtime } from '../core/runtime.ts';
import type { AnyTool, ToolContext } from '../core/tool.ts';
import type { RunTurnOptions, StepInfo, TurnResult } from '../core/turn-options.ts';
import { NO_USAGE } from '../core/usage.ts';
import type { CompactionReport, CompactOptions } from '../context/compact-now.ts';
import { createContextPolicy, type ContextPolicy } from '../context/context-policy.ts';
import { createTokenEstimator, type TokenEstimator } from '../context/token-estimator.ts';
import type { EstimatorSnapshot } from '../context/token-snapshot.ts';
import type { MemorySession } from '../memory/memory-session.ts';
import type { MemoryOwner } from '../memory/memory-store.ts';
import { maxBudget } from '../policies/max-budget.ts';
import { strictHistory } from '../policies/strict-history.ts';
import { SessionError, type SessionEvent } from '../sessions/session-store.ts';
import { isContextPolicy } from './agent-options.ts';
import { partsOf, policedLLM, takingOver, type AgentParts } from './agent-parts.ts';
import { AgentSeat } from './agent-seat.ts';
import { dispatchAgent } from './dispatch-agent.ts';
import type { DispatchAgentOptions, SubAgentType } from './dispatch-agent-options.ts';
import { handoffTool, onlyFor, type HandoffTarget } from './handoff.ts';
import { limitsOf, limitsWhile } from './seat-limits.ts';
import type { RunOptions, ResumeTurnOptions } from './session.ts';
import type { SessionState } from './session-state.ts';
import type { SubAgentLog } from './sub-agent-record.ts';
import type { AgentTurnResult } from './turn.ts';

/** What a cast does through its session. */
export interface CastSession {
  readonly sessionId: string;
  readonly state: SessionState;
  /** Whose memory it recalls and adds to. */
  readonly memoryOwners: readonly MemoryOwner[];
  /** Makes an event durable, and part of the state. */
  append(event: SessionEvent): Promise<void>;
  /** Opens the log of a sub-agent. */
  openSubAgentLog(toolCallId: string): Promise<SubAgentLog>;
}

/** A turn that is about to run. */
export interface CastTurn {
  readonly turnId: string;
  readonly options: RunOptions & ResumeTurnOptions;
  readonly input: readonly UserMessage[];
}

/** What a cast brings to a turn. */
type CastOptions = Omit<RunTurnOptions, 'dispatchEvent' | 'control' | 'resume' | 'turnId' | 'input' | 'signal' | 'metadata' | 'host'>;

export class SessionCast<Output> {
  readonly #root: AgentParts;
  readonly #session: CastSession;
  /** Every agent that may have the conversation, by name. */
  readonly #seats = new Map<string, AgentSeat>();
  /** The agent that has the step that runs. */
  #stepAgent: AgentSeat;
  #context: ContextPolicy | undefined;
  readonly #memory: MemorySession | undefined;
  /** Ids of the messages that were there before the turn. */
  #knownMessages: ReadonlySet<string> = new Set();

  /** @throws {@link sessions.SessionError | SessionError} `unknown_agent`. TypeError if two agents have one name, or two tools of one. */
  constructor(root: AgentParts, session: CastSession) {
    this.#root = root;
    this.#session = session;
    const { sessionId, memoryOwners } = session;
    this.#memory = root.options.memory?.openSession({
      sessionId,
      owners: memoryOwners.length > 0 ? memoryOwners : [{ scope: 'agent', scopeId: root.name }],
    });
    this.#seatAll(root);
    for (const seat of this.#seats.values()) seat.assertTools();
    this.#stepAgent = this.#active();
  }

  get runtime(): Runtime {
    return runtimeOf(this.#root);
  }

  /** Name of the agent that has the conversation. */
  get agent(): string {
    return this.#active().parts.name;
  }

  get followUps(): 'one' | 'all' {
    return this.#root.options.followUps ?? 'one';
  }

  /** What an agent brings to a turn that begins, or goes on. */
  beginTurn({ turnId, options, input }: CastTurn): CastOptions {
    const { host, skill } = options;
    for (const seat of this.#seats.values()) seat.beginTurn({ sessionId: this.#session.sessionId, turnId, host, skill });
    const { deadlineMs, graceMs, maxParallelTools, request, recoveries = [] } = this.#root.options;
    const context = this.#contextPolicy();
    const { transcript } = this.#session.state;
    const recall = this.#recallOnce(input);
    return {
      llm: (info) => this.#seatOf(info).llm(),
      // Asked behind the model of the same step.
      tools: (info) => this.#stepAgent.tools(info),
      buildMessages: recall === undefined ? transcript.buildMessages : async () => withBlock(await recall(), transcript.buildMessages()),
      hooks: [...this.#hooks(), ...(context?.hooks ?? [])],
      recoveries: [...recoveries, strictHistory(), ...(context?.recoveries ?? [])],
      stopWhen: [...this.#seats.values()].flatMap((seat) =>
        seat.parts === this.#root ? limitsOf(seat.parts) : limitsWhile(seat.parts, () => (this.#stepAgent === seat ? seat.steps : undefined)),
      ),
      runtime: this.runtime,
      ...(request !== undefined && { request }),
      ...(deadlineMs !== undefined && { deadlineMs }),
      ...(graceMs !== undefined && { graceMs }),
      ...(maxParallelTools !== undefined && { maxParallelTools }),
    };
  }

  /** The turn is over: nothing that it was given is kept. */
  endTurn(): void {
    for (const seat of this.#seats.values()) seat.endTurn();
  }

  /** What a turn comes to. */
  async resultOf(result: TurnResult): Promise<AgentTurnResult<Output>> {
    const { agent } = this;
    // A type says what the schema of the agent that the session was opened with gives.
    const output = (await this.#active().parts.answer?.parse(result)) as Output | undefined;
    return { ...result, agent, ...(output !== undefined && { output }) };
  }

  /** Learns from a turn that is over, as far as it is worth it. @returns What that cost, to be recorded between two turns. */
  async remember(turnId: string): Promise<UsageEvent | undefined> {
    if (this.#memory === undefined) return undefined;
    const messages = this.#session.state.transcript.buildMessages().filter(({ id }) => !this.#knownMessages.has(id));
    const { usage, modelId } = await this.#memory.extract({ messages, turnId });
    if (modelId === undefined) return undefined;
    // The turn is over: what is spent behind it stands under an id of its own.
    return { type: 'usage', turnId: this.runtime.createId('turn'), at: this.runtime.now(), modelId, purpose: 'other', usage };
  }

  /** What is remembered, asked once in a turn; undefined without a memory. */
  #recallOnce(input: readonly UserMessage[]): (() => Promise<UserMessage | undefined>) | undefined {
    const memory = this.#memory;
    if (memory === undefined) return undefined;
    const messages = this.#session.state.transcript.buildMessages();
    // A turn that is gone on with began with the newest message of a person.
    const start = input.length > 0 ? messages.length : messages.findLastIndex((message) => message.role === 'user' && message.origin === 'user');
    this.#knownMessages = new Set(messages.slice(0, Math.max(start, 0)).map(({ id }) => id));
    const asked = input.length > 0 ? input : messages.slice(Math.max(start, 0)).filter((message) => message.role === 'user');
    let block: Promise<UserMessage | undefined> | undefined;
    return () => (block ??= memory.recall(asked));
  }

  /** Summarises the history. */
  async compact(options: Pick<CompactOptions, 'transcript' | 'record' | 'focus' | 'signal'>): Promise<CompactionReport> {
    const context = this.#contextPolicy();
    if (context === undefined) throw new TypeError('session.compact needs a context policy, and this agent has none: its `context` is false.');
    const seat = this.#active();
    const { runtime } = this;
    const turnId = runtime.createId('turn');
    seat.beginTurn({ sessionId: this.#session.sessionId, turnId, host: undefined, skill: undefined });
    const tools = await seat.tools({ turnId, step: 1, usage: NO_USAGE });
    return context.compact({ ...options, llm: await seat.llm(), tools, runtime });
  }

  /** The event that takes messages out of the history. */
  undoEvent(before: readonly Message[], edits: readonly CompactionEdit[]): CompactionEvent {
    const estimator = this.#contextPolicy()?.estimator ?? createTokenEstimator();
    const count = (messages: readonly Message[]): number => Math.round(estimator.estimateMessages(messages));
    const from = before.findIndex(({ id }) => id === edits[0]?.from);
    const kept = edits.flatMap(({ messages }) => messages);
    return {
      type: 'compaction',
      turnId: this.runtime.createId('turn'),
      at: this.runtime.now(),
      layer: 'undo',
      edits,
      tokensBefore: count(before),
      tokensAfter: count([...before.slice(0, from), ...kept]),
    };
  }

  /** What was learned and is in no event. */
  learned(): JsonObject {
    const { learned = {} } = this.#root.options;
    const own = Object.entries(learned).map(([name, one]): [string, JsonValue] => [name, one.snapshot()]);
    // A host's own policy is the host's to keep.
    const estimator = this.#ownsContext ? this.#context?.estimator.snapshot() : undefined;
    return { ...Object.fromEntries(own), ...(estimator !== undefined && { [ESTIMATOR]: { ...estimator } as unknown as JsonObject }) };
  }

  /** Tells the host of a failure that changed nothing. */
  readonly report = (problem: unknown): void => {
    try {
      this.#root.options.onProblem?.(problem instanceof Error ? problem : new TurnloopError('listener_failed', messageOf(problem), { cause: problem }));
    } catch {
      // Who is told of failures and fails has nobody left to tell.
    }
  };

  get #ownsContext(): boolean {
    const { context } = this.#root.options;
    return context !== false && !isContextPolicy(context) && context?.estimator === undefined;
  }

  /** The session's context policy, made when it is first needed: most sessions of a list never run. */
  #contextPolicy(): ContextPolicy | undefined {
    const { context } = this.#root.options;
    if (context === false) return undefined;
    if (isContextPolicy(context)) return context;
    this.#context ??= createContextPolicy({ ...context, estimator: context?.estimator ?? this.#restoredEstimator() });
    return this.#context;
  }

  #restoredEstimator(): TokenEstimator {
    const snapshot = this.#session.state.learnedOf(ESTIMATOR);
    try {
      return createTokenEstimator({ snapshot: snapshot as unknown as EstimatorSnapshot | undefined });
    } catch (error) {
      this.report(error);
      return createTokenEstimator();
    }
  }

  #hooks(): readonly Hook[] {
    const seats = [...this.#seats.values()];
    const [only] = seats;
    if (only !== undefined && seats.length === 1) return only.hooks;
    return seats.flatMap((seat) => {
      const times = { hasStep: () => this.#stepAgent === seat, hasNextStep: () => this.#active() === seat };
      return seat.hooks.map((hook) => onlyFor(hook, times));
    });
  }

  /** The agent of a step, which it keeps to the step's end. */
  #seatOf({ step }: StepInfo): AgentSeat {
    const { state } = this.#session;
    const open = state.transcript.openTurn()?.step;
    this.#stepAgent = open?.step === step ? this.#seatNamed(state.stepAgent) : this.#active();
    this.#stepAgent.steps += 1;
    return this.#stepAgent;
  }

  #active(): AgentSeat {
    return this.#seatNamed(this.#session.state.agent);
  }

  #seatNamed(name: string = this.#root.name): AgentSeat {
    const seat = this.#seats.get(name);
    if (seat !== undefined) return seat;
    throw new SessionError(
      'unknown_agent',
      `Session "${this.#session.sessionId}" was handed to the agent "${name}", which this agent knows nothing of; it knows ${[...this.#seats.keys()].join(', ')}. ` +
        'Open it with an agent that has it among its `handoffs`.',
    );
  }

  #seatAll(own: AgentParts): void {
    const known = this.#seats.get(own.name);
    if (known?.own === own) return;
    if (known !== undefined) throw new TypeError(`Two agents of a session are named "${own.name}". Give each a name of its own: createAgent({ name, llm }).`);
    const { handoffs = [] } = own.options;
    const targets = (typeof handoffs === 'function' ? handoffs() : handoffs).map(partsOf);
    const seat: AgentSeat = new AgentSeat({ own, parts: takingOver(own, this.#root) }, () => [
      ...(this.#memory?.tools ?? []),
      ...this.#dispatchTool(seat),
      ...targets.map(({ name, options }) => handoffTool({ name, description: options.description }, this.#handOver)),
    ]);
    this.#seats.set(own.name, seat);
    for (const target of targets) this.#seatAll(target);
  }

  /** The tool by which an agent gives tasks to sub-agents, which share what limits and watches it. */
  #dispatchTool({ parts, hooks }: AgentSeat): readonly AnyTool[] {
    const { subAgents = false, tools, graceMs, recoveries = [] } = parts.options;
    if (subAgents === false) return [];
    const context = this.#contextPolicy();
    const shared: DispatchAgentOptions = {
      llm: parts.policed,
      // Tools that a function gives may differ from step to step.
      ...(typeof tools !== 'function' && { tools }),
      hooks: [...hooks, ...(context?.hooks ?? [])],
      stopWhen: parts.budgets.map((budget) => maxBudget(budget)),
      recoveries: [...recoveries, strictHistory(), ...(context?.recoveries ?? [])],
      // What is aborted here has to settle in time for its caller.
      ...(graceMs !== undefined && { graceMs: graceMs / 2 }),
      openLog: (toolCallId) => this.#session.openSubAgentLog(toolCallId),
    };
    return [dispatchAgent({ ...shared, ...(subAgents === true ? {} : policedModels(parts, subAgents)) })];
  }

  readonly #handOver = async (target: HandoffTarget, { turnId, toolCallId }: ToolContext): Promise<void> => {
    // A resume runs the call again if the process died before its end.
    if (this.agent === target.name) return;
    await this.#session.append({ type: 'handoff', at: this.runtime.now(), turnId, toolCallId, from: this.agent, to: target.name });
  };
}

/** Name of what the token estimator has learned, in a snapshot. */
const ESTIMATOR = 'turnloop.estimator';

/** The clock of an agent's sessions. */
export function runtimeOf({ options }: AgentParts): Runtime {
  return options.runtime ?? systemRuntime;
}

/** Models that sub-agents have of their own are limited as the agent's is. */
function policedModels({ options, budgets }: AgentParts, { llm, types, ...rest }: DispatchAgentOptions): DispatchAgentOptions {
  const policed = (own: LLM | undefined): { readonly llm?: LLM } => (own === undefined ? {} : { llm: policedLLM({ ...options, llm: own }, budgets) });
  const policedTypes = Object.entries(types ?? {}).map(([name, type]): [string, SubAgentType] => [name, { ...type, ...policed(type.llm) }]);
  return { ...rest, ...policed(llm), ...(types !== undefined && { types: Object.fromEntries(policedTypes) }) };
}

/** The history behind what is remembered. */
function withBlock(block: UserMessage | undefined, messages: readonly Message[]): readonly Message[] {
  return block === undefined ? messages : [block, ...messages];
}
