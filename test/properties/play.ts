/**
 * Play: runs a scenario on virtual time, and hands back everything that could be seen of it from outside.
 */
import {
  createEventDispatcher,
  createTranscript,
  createTurnControl,
  isRecordedEvent,
  type LLM,
  type LoopEvent,
  type RecordedEvent,
  runTurn,
  type RunTurnOptions,
  type StopCondition,
  type ToolCallDecision,
  type Transcript,
  type TurnControl,
  type TurnResult,
  userCancel,
  userMessage,
} from 'turnloop';
import { type WatchedController, watchedController } from 'turnloop/testing';
import { fakeHooks, fakeRecoveries } from './fake-hooks.ts';
import { fakeModel, type SeenRequest } from './fake-model.ts';
import { fakeTools } from './fake-tools.ts';
import type { ActionSpec, FaultSpec, Scenario, SourceSpec } from './scenario.ts';
import { World } from './world.ts';

/** An event as it left the loop. */
export interface Dispatched {
  readonly event: LoopEvent;
  /** Virtual time. */
  readonly at: number;
}

/** Everything that was seen of a played turn. */
export interface Play {
  readonly result: TurnResult;
  readonly transcript: Transcript;
  readonly world: World;
  /** Every event that left the loop, in order. */
  readonly dispatched: readonly Dispatched[];
  readonly requests: readonly SeenRequest[];
  readonly controller: WatchedController;
  /** When the turn settled. */
  readonly settledAt: number;
  /** When it was first aborted, by a person, its deadline or a failing recorder; undefined if it was not so far. */
  readonly abortedAt: number | undefined;
  /** What became of each steered message, in order; a steering that was never settled is missing. */
  readonly steered: readonly string[];
  /** How many messages were steered so far. */
  readonly steerCount: number;
}

/** How a scenario is played. */
export interface PlayOptions {
  /** Goes on with the open turn of these events, in a process of its own. */
  readonly from?: readonly RecordedEvent[] | undefined;
  readonly decisions?: readonly ToolCallDecision[] | undefined;
  /** Stands in the ids of a later process. */
  readonly idPrefix?: string | undefined;
  /** Also sees every event, as a listener. */
  readonly listener?: ((event: LoopEvent) => unknown) | undefined;
}

/** Ends a turn that waits for what never comes. Longer than anything a scenario waits for otherwise. */
const LAST_RESORT_MS = 10_000;

/** Plays a scenario to the end of its turn. */
export async function play(scenario: Scenario, options: PlayOptions = {}): Promise<Play> {
  const { from, decisions = [], idPrefix = '', listener } = options;
  const transcript = createTranscript(from);
  const world = new World({ idPrefix, start: from?.at(-1)?.at ?? 0 });
  const stage = new Stage(scenario, world, transcript);
  const turn = transcript.openTurn();
  const dispatch = createEventDispatcher({ record: (event) => stage.record(event), ...(listener && { emit: listener }) });

  const running = runTurn({
    ...stage.options(),
    dispatchEvent: (event: LoopEvent) => {
      stage.see(event);
      return dispatch(event);
    },
    ...(turn !== undefined && { resume: { turn, decisions } }),
  });
  let settledAt = Infinity;
  const settled = running.finally(() => {
    settledAt = world.runtime.now();
  });
  const result = await world.runtime.settle(settled);

  return {
    result,
    transcript,
    world,
    dispatched: stage.dispatched,
    requests: stage.requests,
    controller: stage.controller,
    settledAt,
    abortedAt: stage.abortedAt,
    steered: stage.steered,
    get steerCount() {
      return stage.steerCount;
    },
  };
}

/** What stands around a turn: its host, its people, its faults. */
class Stage {
  readonly dispatched: Dispatched[] = [];
  readonly requests: SeenRequest[] = [];
  readonly steered: string[] = [];
  steerCount = 0;
  abortedAt: number | undefined;
  readonly controller: WatchedController = watchedController();
  readonly #control: TurnControl = createTurnControl();
  readonly #scenario: Scenario;
  readonly #world: World;
  readonly #transcript: Transcript;
  #records = 0;
  #calls: string[] = [];

  constructor(scenario: Scenario, world: World, transcript: Transcript) {
    this.#scenario = scenario;
    this.#world = world;
    this.#transcript = transcript;
    for (const action of scenario.actions) {
      if ('ms' in action.at) world.runtime.setTimer(action.at.ms, () => this.#act(action));
    }
    world.runtime.setTimer(scenario.deadlineMs ?? LAST_RESORT_MS, () => this.#noteAbort());
  }

  options(): Omit<RunTurnOptions, 'dispatchEvent'> {
    const scenario = this.#scenario;
    const world = this.#world;
    const llm = fakeModel(scenario, world, this.requests);
    const tools = fakeTools(scenario.tools, world);
    return {
      llm: source<LLM>(scenario.llm, world, llm),
      tools: source(scenario.toolList, world, tools),
      buildMessages: provider(scenario.history, world, () => this.#transcript.buildMessages()),
      input: scenario.input.map((text) => userMessage(text)),
      hooks: fakeHooks(scenario.hooks, world),
      recoveries: fakeRecoveries(scenario.recoveries, world),
      stopWhen: stopConditions(scenario),
      control: this.#control,
      signal: this.controller.signal,
      deadlineMs: scenario.deadlineMs ?? LAST_RESORT_MS,
      graceMs: scenario.graceMs,
      maxParallelTools: scenario.maxParallelTools,
      runtime: world.loopRuntime,
    };
  }

  #noteAbort(): void {
    this.abortedAt ??= this.#world.runtime.now();
  }

  /** Every event passes here first, recorded or live. */
  see(event: LoopEvent): void {
    this.dispatched.push({ event, at: this.#world.runtime.now() });
    if (event.type === 'tool.call') this.#calls.push(event.toolCallId);
    for (const action of this.#scenario.actions) {
      if ('event' in action.at && action.at.event === this.dispatched.length) this.#act(action);
    }
  }

  record(event: RecordedEvent): Promise<void> | void {
    const { pace, fault } = this.#scenario.recorder;
    this.#records += 1;
    if (fault !== undefined && this.#records >= fault.at) {
      if (fault.mode !== 'deaf') this.#noteAbort();
      return fail(fault, this.#world);
    }
    const keep = (): void => this.#transcript.record(event);
    return this.#world.take(pace, undefined, keep);
  }

  #act({ act, target }: ActionSpec): void {
    if (act === 'abort_signal' || act === 'abort_control' || act === 'user_cancel') this.#noteAbort();
    switch (act) {
      case 'steer':
      case 'steer_skip': {
        this.steerCount += 1;
        const message = userMessage('And this.');
        void this.#control.steer(message, { skipPendingCalls: act === 'steer_skip' }).then((outcome) => this.steered.push(outcome));
        return;
      }
      case 'stop':
        this.#control.stop();
        return;
      case 'cancel_call': {
        const toolCallId = this.#calls[target % Math.max(1, this.#calls.length)];
        if (toolCallId !== undefined) this.#control.cancelToolCall(toolCallId);
        return;
      }
      case 'abort_signal':
        this.controller.abort();
        return;
      case 'abort_control':
        this.#control.abort('no more');
        return;
      case 'user_cancel':
        this.#control.abort(userCancel());
    }
  }
}

function fail<Value>(fault: FaultSpec, world: World): Promise<Value> {
  if (fault.mode === 'throws') throw new Error('fault');
  return fault.mode === 'rejects' ? Promise.reject(new Error('fault')) : world.late<Value>();
}

/** A function that gives a value after a pace, and fails at its n-th use. */
function provider<Value>(spec: SourceSpec, world: World, get: () => Value): () => Value | Promise<Value> {
  let uses = 0;
  return () => {
    uses += 1;
    if (spec.fault?.at === uses) return fail(spec.fault, world);
    return world.take(spec.pace, undefined, get);
  };
}

function source<Value>(spec: SourceSpec, world: World, value: Value): Value | (() => Value | Promise<Value>) {
  return spec.form === 'value' ? value : provider(spec, world, () => value);
}

function stopConditions({ maxSteps, budget }: Scenario): readonly StopCondition[] {
  const conditions: StopCondition[] = [];
  if (maxSteps !== undefined) {
    conditions.push((state) => (state.steps >= maxSteps ? { stopReason: 'max_steps', name: 'maxSteps' } : undefined));
  }
  if (budget !== undefined) {
    const condition: StopCondition = (state) =>
      state.usage.outputTokens >= budget ? { stopReason: 'max_budget', name: 'budget' } : undefined;
    conditions.push(Object.assign(condition, { afterReply: true }));
  }
  return conditions;
}

/** Events of a play that were recorded or tried to be, in order. */
export function recordable({ dispatched }: Play): readonly RecordedEvent[] {
  return dispatched.flatMap(({ event }) => (isRecordedEvent(event) ? [event] : []));
}
