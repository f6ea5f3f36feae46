/**
 * Run turn: the loop from an input to a stop reason. Owns the order of steps, the stops between them, and the one end.
 *
 * - R1 Never throws for an expected end; only misuse throws, a `TypeError`, before anything is recorded.
 * - R2 Once `turn.begin` is recorded, `turn.end` comes last and once, unless the turn is suspended or the recorder dead.
 * - R3 Stop beats continue: an abort, `control.stop()`, a hook's or a tool's stop win over steering and continuations.
 * - R4 A limit is checked before money is spent on a step.
 */
import { isTurnloopError, summarizeError, TurnloopError, messageOf } from './errors.ts';
import { TRANSCRIPT_VERSION, type AfterLimit, type DispatchEvent, type SuspendedCall } from './events.ts';
import type { FinishedStep, Hook, HookContext, Recovery, StepSettings, StopCondition, StopDecision } from './hooks.ts';
import type { JsonObject } from './json.ts';
import type { LLM } from './llm.ts';
import { textOf, userMessage, type AssistantMessage, type Message, type UserMessage } from './message.ts';
import { systemRuntime, type Runtime } from './runtime.ts';
import type { StepStopReason, TurnStopReason } from './stop-reason.ts';
import type { AnyTool, PendingCall, ToolCallDecision } from './tool.ts';
import { toolTable } from './tool-input.ts';
import type { ToolBatch } from './tool-call.ts';
import { applyDecisions, type OpenStep, type OpenTurn, type Transcript } from './transcript.ts';
import { createTurnControl, stateOf, type TurnControl, type TurnControlState } from './turn-control.ts';
import { createTurnScope, type TurnScope } from './turn-scope.ts';
import { createRecoveryState, resumeStep, runStep, stopReasonOf, type RecoveryState, type StepOptions, type StepOutcome } from './turn-step.ts';
import type { Usage } from './usage.ts';

/** A turn to go on with. */
export interface ResumeOptions {
  /** The open turn, as `transcript.openTurn()` gives it. */
  readonly turn: OpenTurn;
  /** Decisions about what is pending; a call without one stays pending. @defaultValue none */
  readonly decisions?: readonly ToolCallDecision[] | undefined;
}

/** What a function that gives a step its model or tools is told. */
export interface StepInfo {
  readonly turnId: string;
  /** The step about to begin, 1-based. */
  readonly step: number;
  /** Tokens spent so far. */
  readonly usage: Usage;
}

/** Options of {@link runTurn}. */
export interface RunTurnOptions {
  /** The model; a function is asked anew before each step. */
  readonly llm: LLM | ((info: StepInfo) => LLM | Promise<LLM>);
  /** Gives the history for the next request, oldest first, such as `transcript.buildMessages`. Asked before each step. */
  readonly buildMessages: () => readonly Message[] | Promise<readonly Message[]>;
  /** Takes every event: `createEventDispatcher({ record, emit })`, or any function. Awaited for recorded events. */
  readonly dispatchEvent: DispatchEvent;
  /** What starts the turn; recorded after `turn.begin`. @defaultValue none: the turn goes on from the history */
  readonly input?: string | UserMessage | readonly UserMessage[] | undefined;
  /** Tools; a function is asked anew before each step. @defaultValue none */
  readonly tools?: readonly AnyTool[] | ((info: StepInfo) => readonly AnyTool[] | Promise<readonly AnyTool[]>) | undefined;
  /** Policies, in order. @defaultValue none */
  readonly hooks?: readonly Hook[] | undefined;
  /** Stop conditions; the first that hits ends the turn. @defaultValue none: the turn has no limit of its own */
  readonly stopWhen?: StopCondition | readonly StopCondition[] | undefined;
  /** What to try when a request fails for good, in order. @defaultValue none */
  readonly recoveries?: readonly Recovery[] | undefined;
  /** Settings of every request, unless a hook sets others for a step. */
  readonly request?: StepSettings | undefined;
  /** Handle of this turn. @defaultValue none */
  readonly control?: TurnControl | undefined;
  /** Aborts the turn. */
  readonly signal?: AbortSignal | undefined;
  /** Aborts the turn after so many milliseconds; restarts with a resume. @defaultValue none */
  readonly deadlineMs?: number | undefined;
  /** How long an aborted turn may take to settle, in milliseconds. @defaultValue 2000 */
  readonly graceMs?: number | undefined;
  /** Most tool calls at once. @defaultValue 8 */
  readonly maxParallelTools?: number | undefined;
  /** Clock, timers, ids and randomness. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
  /** Goes on with an open turn instead of starting one. */
  readonly resume?: ResumeOptions | undefined;
  /** Id of the turn. @defaultValue one from the runtime */
  readonly turnId?: string | undefined;
  /** Any value, handed to tools and hooks untouched; never recorded. */
  readonly host?: unknown;
  /** JSON put on every event of the turn. */
  readonly metadata?: JsonObject | undefined;
}

/** How a turn ended. */
export interface TurnResult {
  readonly turnId: string;
  readonly stopReason: TurnStopReason;
  /** Steps begun. */
  readonly steps: number;
  /** Tokens spent: the sum of the turn's `usage` events. */
  readonly usage: Usage;
  /** The last reply; absent if there was none. */
  readonly message?: AssistantMessage | undefined;
  /** Text of the last reply; empty if it had none. */
  readonly text: string;
  /** What failed, for `fatal_error` and other ends by a failure. Serialises to name, kind and message. */
  readonly error?: TurnloopError | undefined;
  /** The hook, tool or condition that ended the turn; `control` for `control.stop()`. */
  readonly stoppedBy?: string | undefined;
  /** Its reason, in words. */
  readonly stopMessage?: string | undefined;
  /** Calls that wait for a decision, for `suspended`. */
  readonly pending?: readonly PendingCall[] | undefined;
  /** Steered messages that no request saw. */
  readonly undelivered?: readonly UserMessage[] | undefined;
}

/** How often a turn may go on after a stop, whatever the hooks say. */
const MAX_CONTINUATIONS = 100;
/** What a hook that just says `true` tells the model. */
const CONTINUE_REMINDER = 'You stopped, but the task is not done. Go on.';
/** What a reply that a person cut off is followed by. */
const CANCEL_REMINDER = 'The user interrupted the reply above on purpose. Do not resume it unless asked.';

/**
 * Runs a turn: asks the model, runs the tools it asks for, and again, until there is a reason to stop.
 *
 * @returns How it ended. Every expected end is a result: limits, aborts, failures of model, tools, hooks and recorder.
 * @throws TypeError for misuse: a missing option, a tool with a broken schema, a control used twice. Nothing was recorded then.
 */
export async function runTurn(options: RunTurnOptions): Promise<TurnResult> {
  assertOptions(options);
  return new Turn(options).run();
}

function assertOptions(options: RunTurnOptions): void {
  const call = 'runTurn({ llm, buildMessages: transcript.buildMessages, dispatchEvent, input: "Hello" })';
  // Callers without types come here too.
  const given: Partial<RunTurnOptions> | undefined = options;
  for (const name of ['llm', 'buildMessages', 'dispatchEvent'] as const) {
    if (given?.[name] === undefined) throw new TypeError(`runTurn needs "${name}". A call looks like ${call}.`);
  }
  const { llm, tools, graceMs, deadlineMs, maxParallelTools } = options;
  if (typeof llm !== 'function' && typeof llm.chat !== 'function') {
    throw new TypeError('"llm" has no chat function. An LLM looks like { provider, modelId, systemPrompt, chat }.');
  }
  if (tools !== undefined && typeof tools !== 'function') toolTable(tools);
  assertNumber('graceMs', graceMs, 0);
  assertNumber('deadlineMs', deadlineMs, 0);
  assertNumber('maxParallelTools', maxParallelTools, 1);
  const missing = options.resume?.turn.missingInput ?? 0;
  if (missing > 0 && inputOf(options.input).length < missing) {
    throw new TypeError(
      'The turn to resume stopped before its input was recorded. Pass the same "input" again, or give the turn up with ' +
        'closeOpenTurn(transcript).',
    );
  }
}

function assertNumber(name: string, value: number | undefined, least: number): void {
  if (value === undefined || value >= least) return;
  throw new TypeError(`"${name}" is ${value}; it must be a number of at least ${least}.`);
}

function inputOf(input: RunTurnOptions['input']): readonly UserMessage[] {
  if (input === undefined) return [];
  if (typeof input === 'string') return [userMessage(input)];
  return 'role' in input ? [input] : input;
}

/** Why a turn ends. */
interface End {
  readonly stopReason: TurnStopReason;
  readonly error?: TurnloopError | undefined;
  readonly stoppedBy?: string | undefined;
  readonly stopMessage?: string | undefined;
  readonly suspended?: readonly SuspendedCall[] | undefined;
}

/** What a finished step leads to: an end, a reason to ask whether to go on, or the next step. */
type AfterStep = { readonly end: End } | { readonly stopped: StepStopReason } | 'next';

class Turn {
  readonly #options: RunTurnOptions;
  readonly #scope: TurnScope;
  readonly #control: TurnControlState;
  readonly #recoveries: RecoveryState;
  readonly #conditions: readonly StopCondition[];
  #steps: number;
  #continuations: number;
  #lastModelId: string | undefined;
  #message: AssistantMessage | undefined;
  /** The step that is open, for the interruption event. */
  #activeStep: number | undefined;
  #batch: ToolBatch | undefined;
  /** Set for the one step that was granted after a limit. */
  #afterLimit: AfterLimit | undefined;
  #limitAsked = false;
  /** Settings of the step about to begin. */
  #settings: StepSettings = {};
  /** The model of the last step. */
  #llm: LLM | undefined;

  constructor(options: RunTurnOptions) {
    const { resume, stopWhen = [] } = options;
    this.#options = options;
    this.#control = stateOf(options.control ?? createTurnControl());
    this.#conditions = typeof stopWhen === 'function' ? [stopWhen] : stopWhen;
    this.#recoveries = createRecoveryState(options.recoveries);
    this.#steps = resume?.turn.steps ?? 0;
    this.#continuations = resume?.turn.continuations ?? 0;
    this.#scope = createTurnScope({
      ...options,
      turnId: resume?.turn.turnId ?? options.turnId,
      metadata: options.metadata ?? resume?.turn.metadata,
    });
    if (resume !== undefined) {
      this.#scope.usage = resume.turn.usage;
      for (const { modelId, usage } of resume.turn.usageByModel) this.#scope.usageByModel.set(modelId, usage);
    }
  }

  async run(): Promise<TurnResult> {
    const scope = this.#scope;
    try {
      this.#control.attach({
        abort: (reason) => {
          scope.abort('control', reason);
        },
        skipPendingCalls: () => this.#batch?.skipPendingCalls(),
        cancelToolCall: (toolCallId) => this.#batch?.cancelToolCall(toolCallId) ?? false,
      });
      if (scope.isAborted) return this.#result(this.#interrupt(this.#abortEnd()));
      const end = await this.#guarded(() => this.#go());
      return this.#result(await this.#conclude(end));
    } finally {
      scope.close();
    }
  }

  /** Turns whatever stops the loop's own code into an end. */
  async #guarded(work: () => Promise<End>): Promise<End> {
    try {
      return await work();
    } catch (error) {
      if (this.#scope.recorderError !== undefined) return { stopReason: 'fatal_error', error: this.#scope.recorderError };
      if (this.#scope.isAborted && this.#scope.abortCause !== 'failure') return this.#abortEnd();
      return { stopReason: 'fatal_error', error: asTurnloopError(error) };
    }
  }

  async #go(): Promise<End> {
    await this.#open();
    let after = await this.#resumeOpenStep();
    for (;;) {
      if (after !== 'next') {
        const end = 'end' in after ? after.end : await this.#continueOrEnd(after.stopped);
        if (end !== undefined) return end;
      }
      const end = await this.#beforeStep();
      if (end !== undefined) return end;
      after = await this.#afterStep(await this.#step());
    }
  }

  /** Records how the turn starts, or that it goes on. */
  async #open(): Promise<void> {
    const { resume } = this.#options;
    const input = inputOf(this.#options.input);
    if (resume === undefined) {
      await this.#scope.record({ type: 'turn.begin', version: TRANSCRIPT_VERSION, inputCount: input.length });
      for (const message of input) await this.#recordMessage(message);
      return;
    }
    await this.#scope.record({ type: 'turn.resume', decisions: resume.decisions ?? [] });
    const { missingInput } = resume.turn;
    for (const message of missingInput > 0 ? input.slice(-missingInput) : []) await this.#recordMessage(message);
  }

  async #recordMessage(message: UserMessage): Promise<void> {
    const id = message.id === '' ? this.#scope.runtime.createId('message') : message.id;
    await this.#scope.record({ type: 'message', message: message.id === id ? message : { ...message, id } });
  }

  /** Finishes the step that the turn to resume stood in. */
  async #resumeOpenStep(): Promise<AfterStep> {
    const { resume } = this.#options;
    const open = resume?.turn.step;
    if (resume === undefined || open === undefined) return 'next';
    this.#afterLimit = open.afterLimit;
    this.#limitAsked = open.afterLimit !== undefined;
    if (open.ended !== undefined) {
      this.#message = await this.#recordedReply(open.stepId);
      return open.calls.length > 0 && open.ended === 'tool_use' ? this.#limitEnd() ?? 'next' : { stopped: open.ended };
    }
    if (open.reply === undefined) {
      // Nothing of its reply counts: the step is asked again, under its own number.
      this.#steps = open.step - 1;
      return 'next';
    }
    if (open.reply.interrupted !== undefined) {
      this.#message = await this.#recordedReply(open.stepId);
      return { end: { stopReason: open.reply.interrupted, stopMessage: 'The process stopped while the turn was ending.' } };
    }
    this.#activeStep = open.step;
    this.#reportUnmatched(open, resume.decisions ?? []);
    const step = { ...open, calls: applyDecisions(open.calls, resume.decisions ?? []) };
    const { llm, tools } = await this.#setUp(open.step);
    const options = this.#stepOptions(open.step, llm, tools, await this.#scope.messages(), {});
    return this.#afterStep(await resumeStep(this.#scope, step, options));
  }

  /** A decision that speaks of no pending call changes nothing; whoever made it should know. */
  #reportUnmatched(open: OpenStep, decisions: readonly ToolCallDecision[]): void {
    const known = new Set(open.calls.flatMap((call) => [call.toolCallId, ...(call.suspended?.pending ?? []).map((one) => one.toolCallId)]));
    for (const { toolCallId } of decisions) {
      if (!known.has(toolCallId)) this.#scope.notify({ name: 'decision.unmatched', data: { toolCallId } });
    }
  }

  async #recordedReply(stepId: string): Promise<AssistantMessage | undefined> {
    const messages = await this.#scope.messages();
    return messages.findLast((message) => message.role === 'assistant' && message.id === stepId) as AssistantMessage | undefined;
  }

  /** Everything that comes before a step is opened; an end if it is not to be. */
  async #beforeStep(): Promise<End | undefined> {
    const scope = this.#scope;
    if (scope.isAborted) return this.#abortEnd();
    if (this.#control.stopRequested) return STOPPED_BY_CONTROL;
    if (this.#afterLimit === undefined) {
      const limit = this.#checkConditions(false);
      if (limit !== undefined) {
        const end = await this.#continueAfterLimit(limit);
        if (end !== undefined) return end;
      }
    }
    await this.#drainSteering();
    this.#settings = { ...this.#options.request };
    if (scope.hooks.length > 0) {
      const blocked = await this.#askBeforeStep();
      if (blocked !== undefined) return blocked;
    }
    return scope.isAborted ? this.#abortEnd() : undefined;
  }

  async #askBeforeStep(): Promise<End | undefined> {
    const scope = this.#scope;
    const step = this.#steps + 1;
    for (const hook of scope.hooks) {
      if (hook.beforeStep === undefined) continue;
      try {
        const context = await this.#hookContext(step);
        const asked = await scope.settle(hook.beforeStep(context));
        if (scope.isAborted) return this.#abortEnd();
        if (asked === undefined) continue;
        const { block, ...settings } = asked;
        if (block !== undefined) {
          return { stopReason: block.stopReason ?? 'stopped', stoppedBy: hook.name, stopMessage: block.reason };
        }
        this.#settings = { ...this.#settings, ...settings };
      } catch (error) {
        if (scope.isAborted) throw error;
        scope.hookFailed(hook, 'beforeStep', error);
        throw new TurnloopError('hook_failed', `Hook "${hook.name}" failed in beforeStep: ${messageOf(error)}`, { cause: error });
      }
    }
    return undefined;
  }

  #info(step: number): StepInfo {
    return { turnId: this.#scope.turnId, step, usage: this.#scope.usage };
  }

  /** The model and the tools of a step. */
  async #setUp(step: number): Promise<{ readonly llm: LLM; readonly tools: readonly AnyTool[] }> {
    const { llm, tools = [] } = this.#options;
    const scope = this.#scope;
    try {
      const model = typeof llm === 'function' ? await scope.settle(llm(this.#info(step))) : llm;
      const list = typeof tools === 'function' ? await scope.settle(tools(this.#info(step))) : tools;
      toolTable(list);
      this.#llm = model;
      return { llm: model, tools: list };
    } catch (error) {
      if (scope.isAborted) throw error;
      const message = `The model or the tools of step ${step} could not be had: ${messageOf(error)}`;
      throw new TurnloopError('setup_failed', message, { cause: error });
    }
  }

  async #history(): Promise<readonly Message[]> {
    try {
      return await this.#scope.messages();
    } catch (error) {
      if (this.#scope.isAborted) throw error;
      throw new TurnloopError('history_failed', `buildMessages failed: ${messageOf(error)}`, { cause: error });
    }
  }

  async #step(): Promise<StepOutcome> {
    const step = this.#steps + 1;
    const { llm, tools } = await this.#setUp(step);
    const messages = await this.#history();
    const settings: StepSettings = this.#afterLimit === undefined ? this.#settings : { ...this.#settings, toolChoice: 'none' };
    this.#steps = step;
    this.#activeStep = step;
    return runStep(this.#scope, this.#stepOptions(step, llm, tools, messages, settings));
  }

  #stepOptions(
    step: number,
    llm: LLM,
    tools: readonly AnyTool[],
    messages: readonly Message[],
    settings: StepSettings,
  ): StepOptions {
    return {
      step,
      llm,
      tools,
      messages,
      settings,
      recoveries: this.#recoveries,
      afterLimit: this.#afterLimit,
      checkReply: (modelId) => {
        this.#lastModelId = modelId;
        return this.#checkConditions(true);
      },
      onBatch: (batch) => {
        this.#batch = batch;
      },
    };
  }

  async #afterStep(outcome: StepOutcome): Promise<AfterStep> {
    const scope = this.#scope;
    if (outcome.kind !== 'done') {
      this.#message = outcome.message ?? this.#message;
      if (scope.recorderError !== undefined) throw scope.recorderError;
      if (outcome.kind === 'suspended') return { end: { stopReason: 'suspended', suspended: outcome.suspended } };
      if (outcome.kind === 'failed') return { end: { stopReason: stopReasonOf(outcome.error), error: outcome.error } };
      if (outcome.message !== undefined && scope.isUserCancel) {
        await this.#recordMessage(userMessage(CANCEL_REMINDER, { origin: 'reminder' }));
      }
      return { end: this.#abortEnd() };
    }
    const { finished, stoppedBy, limit } = outcome;
    this.#message = finished.message;
    const stop = await this.#askAfterStep(finished);
    if (scope.isAborted) return { end: this.#abortEnd() };
    this.#activeStep = undefined;
    if (stop !== undefined) return { end: stop };
    if (stoppedBy !== undefined) return { end: { stopReason: 'stopped', stoppedBy } };
    if (this.#control.stopRequested && finished.stopReason === 'tool_use') return { end: STOPPED_BY_CONTROL };
    const limitEnd = this.#limitEnd();
    if (limitEnd !== undefined) return limitEnd;
    if (limit !== undefined) {
      const end = await this.#continueAfterLimit(limit);
      return end === undefined ? 'next' : { end };
    }
    return finished.stopReason === 'tool_use' ? 'next' : { stopped: finished.stopReason };
  }

  /** The end of a turn whose last step was granted after a limit. */
  #limitEnd(): { readonly end: End } | undefined {
    if (this.#afterLimit === undefined) return undefined;
    const { stopReason, stoppedBy } = this.#afterLimit;
    return { end: { stopReason, stoppedBy } };
  }

  async #askAfterStep(finished: FinishedStep): Promise<End | undefined> {
    const scope = this.#scope;
    let end: End | undefined;
    for (const hook of scope.hooks) {
      if (hook.afterStep === undefined || scope.isAborted) continue;
      try {
        const stop = await scope.settle(hook.afterStep(await this.#hookContext(this.#steps), finished));
        if (stop !== undefined) {
          end ??= { stopReason: stop.stopReason ?? 'stopped', stoppedBy: hook.name, stopMessage: stop.reason };
        }
      } catch (error) {
        scope.hookFailed(hook, 'afterStep', error);
      }
    }
    return end;
  }

  /** What the hooks of a step get; before the first step the model that it would have. */
  async #hookContext(step: number): Promise<HookContext> {
    const { llm } = this.#options;
    this.#llm ??= typeof llm === 'function' ? await this.#scope.settle(llm(this.#info(step))) : llm;
    return this.#scope.hookContext(step, this.#llm);
  }

  #checkConditions(afterReply: boolean): StopDecision | undefined {
    const state = {
      turnId: this.#scope.turnId,
      steps: this.#steps,
      usage: this.#scope.usage,
      usageByModel: this.#scope.usageByModel,
      modelId: this.#lastModelId,
    };
    for (const condition of this.#conditions) {
      if (afterReply && condition.afterReply !== true) continue;
      const decision = condition(state);
      if (decision !== undefined) return decision;
    }
    return undefined;
  }

  /** Puts what waits to be said before the next request. */
  async #drainSteering(): Promise<void> {
    for (let steered = this.#control.nextSteering(); steered !== undefined; steered = this.#control.nextSteering()) {
      try {
        await this.#recordMessage({ ...steered.message, origin: 'steering' });
      } catch (error) {
        this.#control.returnSteering(steered);
        throw error;
      }
      steered.settle('delivered');
    }
  }

  /** The model is done: steering, then the hooks, may open another step. An end if neither does. */
  async #continueOrEnd(stopReason: StepStopReason): Promise<End | undefined> {
    const end: End = { stopReason: stopReason === 'tool_use' ? 'unknown' : stopReason };
    if (this.#scope.isAborted) return this.#abortEnd();
    if (this.#control.stopRequested) return end;
    const limitEnd = this.#limitEnd();
    if (limitEnd !== undefined) return limitEnd.end;
    const isWhole = stopReason !== 'filtered' && stopReason !== 'paused';
    if (isWhole && this.#control.hasSteering) return undefined;
    const goOn = await this.#askToContinue(end.stopReason, false);
    if (this.#scope.isAborted) return this.#abortEnd();
    if (this.#control.stopRequested || goOn === undefined) return end;
    if (this.#continuations >= MAX_CONTINUATIONS) {
      this.#scope.notify({ name: 'continuations.exhausted', data: { continuations: MAX_CONTINUATIONS } });
      return end;
    }
    this.#continuations += 1;
    // A paused reply goes back as it is: a message behind it would start something new.
    if (stopReason !== 'paused') await this.#recordMessage(goOn);
    return undefined;
  }

  /** A limit was reached: the hooks may grant one last step, without tools. */
  async #continueAfterLimit(limit: StopDecision): Promise<End | undefined> {
    const { stopReason, name, reason } = limit;
    const end: End = { stopReason, stoppedBy: name, stopMessage: reason };
    if (this.#limitAsked || this.#control.stopRequested || this.#scope.isAborted) return end;
    this.#limitAsked = true;
    const goOn = await this.#askToContinue(stopReason, true);
    if (goOn === undefined || this.#scope.isAborted) return this.#scope.isAborted ? this.#abortEnd() : end;
    this.#afterLimit = { stopReason, stoppedBy: name };
    await this.#recordMessage(goOn);
    return undefined;
  }

  async #askToContinue(stopReason: TurnStopReason, limit: boolean): Promise<UserMessage | undefined> {
    const scope = this.#scope;
    for (const hook of scope.hooks) {
      if (hook.shouldContinueAfterStop === undefined) continue;
      try {
        const stop = { stopReason, limit, continuations: this.#continuations };
        const answer = await scope.settle(hook.shouldContinueAfterStop(await this.#hookContext(this.#steps), stop));
        if (answer === true) return userMessage(CONTINUE_REMINDER, { origin: 'reminder' });
        if (typeof answer === 'object') return answer;
      } catch (error) {
        scope.hookFailed(hook, 'shouldContinueAfterStop', error);
      }
    }
    return undefined;
  }

  #abortEnd(): End {
    const { abortCause, signal } = this.#scope;
    if (abortCause === 'deadline') return { stopReason: 'deadline' };
    const reason: unknown = signal.reason;
    return isTurnloopError(reason) ? { stopReason: 'aborted', stopMessage: reason.message } : { stopReason: 'aborted' };
  }

  /** Records the end, or the suspension. */
  async #conclude(end: End): Promise<End> {
    const scope = this.#scope;
    if (scope.recorderError !== undefined) return this.#interrupt(end);
    try {
      if (end.suspended !== undefined) {
        await scope.record({ type: 'turn.suspend', calls: end.suspended });
        return end;
      }
      this.#interrupt(end);
      const { stopReason, stoppedBy, stopMessage, error } = end;
      await scope.record({
        type: 'turn.end',
        stopReason,
        ...(stoppedBy !== undefined && { stoppedBy }),
        ...(stopMessage !== undefined && { stopMessage }),
        ...(error !== undefined && { error: summarizeError(error) }),
        steps: this.#steps,
      });
      return end;
    } catch {
      const { recorderError } = scope;
      // Without a recorder error it is the grace that was over: the end stands, unrecorded.
      return recorderError === undefined ? end : { stopReason: 'fatal_error', error: recorderError };
    }
  }

  /** Announces an end that comes before the model was done. */
  #interrupt(end: End): End {
    if (INTERRUPTIONS.has(end.stopReason)) {
      this.#scope.emit({
        type: 'turn.interrupted',
        stopReason: end.stopReason,
        ...(this.#activeStep !== undefined && { activeStep: this.#activeStep }),
        ...(end.error !== undefined && { error: summarizeError(end.error) }),
      });
    }
    return end;
  }

  #result(end: End): TurnResult {
    const { stopReason, error, stoppedBy, stopMessage, suspended } = end;
    const undelivered = this.#control.detach();
    return {
      turnId: this.#scope.turnId,
      stopReason,
      steps: this.#steps,
      usage: this.#scope.usage,
      ...(this.#message !== undefined && { message: this.#message }),
      text: textOf(this.#message),
      ...(error !== undefined && { error }),
      ...(stoppedBy !== undefined && { stoppedBy }),
      ...(stopMessage !== undefined && { stopMessage }),
      ...(suspended !== undefined && { pending: suspended.flatMap((call) => call.pending) }),
      ...(undelivered.length > 0 && { undelivered }),
    };
  }
}

const STOPPED_BY_CONTROL: End = { stopReason: 'stopped', stoppedBy: 'control' };

/** Ends that cut a turn short, as against those that a model, a hook, a tool or a person chose. */
const INTERRUPTIONS: ReadonlySet<TurnStopReason> = new Set<TurnStopReason>([
  'max_steps',
  'max_budget',
  'deadline',
  'circuit_breaker',
  'context_overflow',
  'aborted',
  'fatal_error',
]);

function asTurnloopError(error: unknown): TurnloopError {
  if (isTurnloopError(error)) return error;
  return new TurnloopError('internal', `The loop failed: ${messageOf(error)}`, { cause: error });
}

/** Options of {@link closeOpenTurn}. */
export interface CloseOpenTurnOptions {
  /** Takes the closing events; it has to record them in the transcript too. @defaultValue the transcript alone */
  readonly dispatchEvent?: DispatchEvent | undefined;
  /** Clock of the closing events. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
}

/**
 * Gives up an open turn, suspended or left by a crash: its calls without a result get one that says so, and `turn.end`
 * (`aborted`) is recorded. Does nothing if no turn is open.
 */
export async function closeOpenTurn(transcript: Transcript, options: CloseOpenTurnOptions = {}): Promise<void> {
  const open = transcript.openTurn();
  if (open === undefined) return;
  const { dispatchEvent = transcript.record, runtime = systemRuntime } = options;
  const stamp = { turnId: open.turnId, at: runtime.now(), ...(open.metadata !== undefined && { metadata: open.metadata }) };
  const { step } = open;
  for (const call of step?.ended === undefined ? (step?.calls ?? []) : []) {
    if (call.settled === true || step === undefined) continue;
    const text =
      call.started === true
        ? 'The turn was given up while this call was running: its effects may have happened.'
        : 'This call was not executed: the turn was given up.';
    const result = call.result ?? { content: [{ type: 'text', text }], isError: true };
    const { toolCallId, name } = call;
    await dispatchEvent({ type: 'tool.result', ...stamp, step: step.step, stepId: step.stepId, toolCallId, name, result });
  }
  const stopMessage = 'The turn was given up.';
  await dispatchEvent({ type: 'turn.end', ...stamp, stopReason: 'aborted', stopMessage, steps: open.steps });
}
