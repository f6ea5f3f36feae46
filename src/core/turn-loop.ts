/**
 * Turn loop: from an input to a stop reason. Owns the order of steps, the stops between them, and the one end.
 *
 * - R1 Never throws for an expected end: limits, aborts, failures of model, tools, hooks and recorder are results.
 * - R2 Once `turn.begin` is recorded, `turn.end` comes last and once, unless the turn is suspended or the recorder dead.
 * - R3 Stop beats continue: an abort, `control.stop()`, a hook's or a tool's stop win over steering and continuations.
 * - R4 A limit is checked before money is spent on a step.
 */
import { isThenable } from './event-dispatcher.ts';
import { isTurnloopError, messageOf, summarizeError, TurnloopError, type LLMError } from './errors.ts';
import { TRANSCRIPT_VERSION, type AfterLimit, type ReachedLimit, type SuspendedCall } from './events.ts';
import type { BeforeStepResult, FinishedStep, HookContext, StepSettings, StopCondition, StopDecision, StopRequest } from './hooks.ts';
import { isRecord } from './json.ts';
import { isUserMessage, textOf, userMessage, type AssistantMessage, type Message, type UserMessage } from './message.ts';
import { createRecoveryState, type RecoveryState } from './step-request.ts';
import { isTurnStopReason, type StepStopReason, type TurnStopReason } from './stop-reason.ts';
import type { ToolCallDecision } from './tool.ts';
import type { ToolBatch } from './tool-call.ts';
import { toolSet } from './tool-input.ts';
import { applyDecisions, type OpenStep } from './transcript.ts';
import { createTurnControl, stateOf, type TurnControlState } from './turn-control.ts';
import { inputOf, type ResumeOptions, type RunTurnOptions, type StepInfo, type TurnResult } from './turn-options.ts';
import { createTurnScope, type StepSetUp, type TurnScope } from './turn-scope.ts';
import { resumeStep, runStep, stopReasonOf, type StepOptions, type StepOutcome } from './turn-step.ts';

/** How often a turn may go on after a stop, whatever the hooks say. */
const MAX_CONTINUATIONS = 100;
/** What a hook that just says `true` tells the model. */
const CONTINUE_REMINDER = 'You stopped, but the task is not done. Go on.';
/** What a reply that a person cut off is followed by. */
const CANCEL_REMINDER = 'The user interrupted the reply above on purpose. Do not resume it unless asked.';

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

/** One turn, from its options to its result. */
export class TurnLoop {
  readonly #options: RunTurnOptions;
  readonly #scope: TurnScope;
  readonly #control: TurnControlState;
  readonly #recoveries: RecoveryState;
  readonly #conditions: readonly StopCondition[];
  /** Steps begun. */
  #steps: number;
  /** The step to begin next: the last one again if nothing of its reply was recorded. */
  #next: number;
  #continuations: number;
  #lastModelId: string | undefined;
  #message: AssistantMessage | undefined;
  /** The step that is open, for the interruption event. */
  #activeStep: number | undefined;
  #batch: ToolBatch | undefined;
  /** What is asked of a step's calls before they are there; undefined while none are to come. */
  #early: { skip: boolean; readonly cancelled: Set<string> } | undefined;
  /** Set for the one step that was granted after a limit. */
  #afterLimit: AfterLimit | undefined;
  #limitAsked = false;
  /** Set while a paused reply goes back as it is: nothing may stand behind it. */
  #isPaused = false;
  /** True once the turn's begin, or that it goes on, is recorded. */
  #isOpen = false;
  /** Settings of the step about to begin. */
  #settings: StepSettings = {};
  /** The model and the tools of the last step, or in the first one those that hooks were shown. */
  #known: StepSetUp | undefined;

  constructor(options: RunTurnOptions) {
    const { resume, stopWhen = [] } = options;
    this.#options = options;
    this.#control = stateOf(options.control ?? createTurnControl());
    this.#conditions = typeof stopWhen === 'function' ? [stopWhen] : stopWhen;
    this.#recoveries = createRecoveryState(options.recoveries);
    this.#steps = resume?.turn.steps ?? 0;
    this.#next = this.#steps + 1;
    this.#afterLimit = resume?.turn.afterLimit;
    this.#limitAsked = this.#afterLimit !== undefined;
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
        skipPendingCalls: () => {
          this.#skipPendingCalls();
        },
        cancelToolCall: (toolCallId) => this.#cancelToolCall(toolCallId),
      });
      if (scope.isAborted) return this.#result(this.#interrupt(this.#abortEnd()));
      const end = await this.#guarded(() => this.#go());
      return this.#result(await this.#conclude(end));
    } finally {
      scope.close();
    }
  }

  #skipPendingCalls(): void {
    if (this.#batch !== undefined) this.#batch.skipPendingCalls();
    else if (this.#early !== undefined) this.#early.skip = true;
  }

  #cancelToolCall(toolCallId: string): boolean {
    if (this.#batch !== undefined) return this.#batch.cancelToolCall(toolCallId);
    if (this.#early === undefined) return false;
    this.#early.cancelled.add(toolCallId);
    return true;
  }

  /** Takes a step's batch of calls, and tells it what was asked before it was there. */
  #takeBatch(batch: ToolBatch | undefined): void {
    const early = this.#early;
    this.#batch = batch;
    this.#early = undefined;
    if (batch === undefined || early === undefined) return;
    for (const toolCallId of early.cancelled) batch.cancelToolCall(toolCallId);
    if (early.skip) batch.skipPendingCalls();
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
    let after = this.#options.resume === undefined ? await this.#begin() : await this.#resume(this.#options.resume);
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

  async #begin(): Promise<AfterStep> {
    const input = inputOf(this.#options.input);
    await this.#scope.record({ type: 'turn.begin', version: TRANSCRIPT_VERSION, inputCount: input.length });
    this.#isOpen = true;
    const recorded: UserMessage[] = [];
    for (const message of input) recorded.push(await this.#recordMessage(message));
    this.#scope.input = recorded;
    return 'next';
  }

  async #recordMessage(given: UserMessage, afterLimit?: AfterLimit): Promise<UserMessage> {
    const message = given.id === '' ? { ...given, id: this.#scope.runtime.createId('message') } : given;
    await this.#scope.record({ type: 'message', message, ...(afterLimit !== undefined && { afterLimit }) });
    return message;
  }

  /**
   * Goes on with an open turn. What a step needs is asked for before anything is recorded: if it cannot be had, the turn
   * stays as it is and can be resumed again.
   */
  async #resume({ turn, decisions = [] }: ResumeOptions): Promise<AfterStep> {
    const { step: open, missingInput } = turn;
    const mustFinish = open !== undefined && isFinishable(open);
    const setUp = mustFinish ? await this.#setUp(open.step) : undefined;
    const messages = await this.#history();
    await this.#scope.record({ type: 'turn.resume', decisions, ordinal: turn.resumes + 1 });
    this.#isOpen = true;
    const input = missingInput > 0 ? inputOf(this.#options.input).slice(-missingInput) : [];
    for (const message of input) await this.#recordMessage(message);
    this.#message = turn.lastReply;
    if (open === undefined) return 'next';
    if (open.ended !== undefined) {
      // Nobody knows whether the hooks were asked before the process stopped: they are asked again.
      const stopper = open.calls.find((call) => call.stopTurn === true);
      return this.#afterFinished(finishedStep(open, open.ended, this.#message), {
        stoppedBy: stopper?.name,
        limit: open.reply?.limit,
      });
    }
    if (open.reply?.interrupted !== undefined) return { end: interruptedEnd(open.reply.interrupted) };
    if (setUp === undefined) {
      // Nothing of its reply counts: the step is asked again, under its own number.
      this.#next = open.step;
      return 'next';
    }
    this.#activeStep = open.step;
    this.#reportUnmatched(open, decisions);
    const step = { ...open, calls: applyDecisions(open.calls, decisions) };
    return this.#afterStep(await resumeStep(this.#scope, step, this.#stepOptions({ step: open.step, ...setUp, messages })));
  }

  /** A decision that speaks of no pending call changes nothing; whoever made it should know. */
  #reportUnmatched(open: OpenStep, decisions: readonly ToolCallDecision[]): void {
    const suspended = open.calls.filter((call) => call.suspended !== undefined);
    const known = new Set(
      suspended.flatMap((call) => [call.toolCallId, ...(call.suspended?.pending ?? []).map((one) => one.toolCallId)]),
    );
    for (const { toolCallId } of decisions) {
      if (!known.has(toolCallId)) this.#scope.notify({ name: 'decision.unmatched', data: { toolCallId } });
    }
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
      // Hooks may take their time: what was said meanwhile does not miss the request.
      await this.#drainSteering();
    }
    return scope.isAborted ? this.#abortEnd() : undefined;
  }

  async #askBeforeStep(): Promise<End | undefined> {
    const scope = this.#scope;
    const step = this.#next;
    for (const hook of scope.hooks) {
      if (hook.beforeStep === undefined) continue;
      const context = await this.#hookContext(step);
      try {
        const asked: BeforeStepResult | undefined | void | null = await scope.settle(hook.beforeStep(context));
        if (scope.isAborted) return this.#abortEnd();
        if (asked === undefined || asked === null) continue;
        const { block, ...settings } = asked;
        if (block !== undefined) {
          return { stopReason: block.stopReason ?? 'stopped', stoppedBy: hook.name, stopMessage: block.reason };
        }
        this.#settings = withSettings(this.#settings, settings);
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
  async #setUp(step: number): Promise<StepSetUp> {
    const { llm, tools = [] } = this.#options;
    const scope = this.#scope;
    try {
      const model = typeof llm === 'function' ? await scope.settle(llm(this.#info(step))) : llm;
      const list = typeof tools === 'function' ? await scope.settle(tools(this.#info(step))) : tools;
      toolSet(list);
      if (!isRecord(model)) throw new TypeError('"llm" gave no model');
      this.#known = { llm: model, tools: list };
      return this.#known;
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
    const step = this.#next;
    const { llm, tools } = await this.#setUp(step);
    const messages = await this.#history();
    const settings: StepSettings = this.#afterLimit === undefined ? this.#settings : { ...this.#settings, toolChoice: 'none' };
    this.#steps = step;
    this.#next = step + 1;
    this.#activeStep = step;
    this.#isPaused = false;
    this.#early = { skip: false, cancelled: new Set() };
    return runStep(this.#scope, this.#stepOptions({ step, llm, tools, messages, settings }));
  }

  #stepOptions(own: Pick<StepOptions, 'step' | 'llm' | 'tools' | 'messages' | 'settings'>): StepOptions {
    return {
      recoveries: this.#recoveries,
      afterLimit: this.#afterLimit,
      checkReply: (modelId) => {
        this.#lastModelId = modelId;
        return this.#checkConditions(true);
      },
      onBatch: (batch) => {
        this.#takeBatch(batch);
      },
      ...own,
    };
  }

  async #afterStep(outcome: StepOutcome): Promise<AfterStep> {
    const scope = this.#scope;
    if (outcome.kind !== 'done') {
      this.#message = outcome.message ?? this.#message;
      if (scope.recorderError !== undefined) throw scope.recorderError;
      if (outcome.kind === 'suspended') return { end: { stopReason: 'suspended', suspended: outcome.suspended } };
      if (outcome.kind === 'failed') return { end: failedEnd(outcome.error) };
      if (outcome.message !== undefined && scope.isUserCancel) {
        await this.#recordMessage(userMessage(CANCEL_REMINDER, { origin: 'reminder' }));
      }
      return { end: this.#abortEnd() };
    }
    return this.#afterFinished(outcome.finished, outcome);
  }

  /** What a step that is recorded to its end leads to. */
  async #afterFinished(
    finished: FinishedStep,
    { stoppedBy, limit }: { readonly stoppedBy: string | undefined; readonly limit: ReachedLimit | undefined },
  ): Promise<AfterStep> {
    const scope = this.#scope;
    this.#message = finished.message;
    this.#early = undefined;
    const stop = await this.#askAfterStep(finished);
    if (scope.isAborted) return { end: this.#abortEnd() };
    this.#activeStep = undefined;
    // The step was granted after a limit: the turn has ended already, whatever else would end it.
    const limitEnd = this.#limitEnd();
    if (limitEnd !== undefined) return limitEnd;
    if (stop !== undefined) return { end: stop };
    if (stoppedBy !== undefined) return { end: { stopReason: 'stopped', stoppedBy } };
    if (this.#control.stopRequested && finished.stopReason === 'tool_use') return { end: STOPPED_BY_CONTROL };
    if (limit !== undefined) {
      const end = await this.#continueAfterLimit(limit);
      return end === undefined ? 'next' : { end };
    }
    return finished.stopReason === 'tool_use' ? 'next' : { stopped: finished.stopReason };
  }

  /** The end of a turn whose last step was granted after a limit. */
  #limitEnd(): { readonly end: End } | undefined {
    if (this.#afterLimit === undefined) return undefined;
    const { stopReason, stoppedBy, stopMessage } = this.#afterLimit;
    return { end: { stopReason, stoppedBy, stopMessage } };
  }

  async #askAfterStep(finished: FinishedStep): Promise<End | undefined> {
    const scope = this.#scope;
    let end: End | undefined;
    for (const hook of scope.hooks) {
      if (hook.afterStep === undefined || scope.isAborted) continue;
      try {
        const stop: StopRequest | undefined | void | null = await scope.settle(hook.afterStep(await this.#hookContext(this.#steps), finished));
        if (stop !== undefined && stop !== null) {
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
    this.#known ??= await this.#setUp(step);
    return this.#scope.hookContext(step, this.#known);
  }

  #checkConditions(afterReply: boolean): StopDecision | undefined {
    const state = {
      turnId: this.#scope.turnId,
      steps: this.#next - 1,
      usage: this.#scope.usage,
      usageByModel: this.#scope.usageByModel,
      modelId: this.#lastModelId,
      afterReply,
    };
    for (const condition of this.#conditions) {
      if (afterReply && condition.afterReply !== true) continue;
      try {
        const decision: unknown = condition(state);
        if (decision === undefined || decision === null || decision === false) continue;
        if (isStopDecision(decision)) return decision;
        if (isThenable(decision)) decision.then(undefined, () => undefined);
        const given = isThenable(decision) ? 'a promise: it has to answer at once' : typeof decision;
        throw new TypeError(`it returned neither undefined nor { stopReason, name }, but ${given}`);
      } catch (error) {
        // A limit that cannot be asked must not let money through.
        return { stopReason: 'fatal_error', name: condition.name, reason: `A stop condition failed: ${messageOf(error)}` };
      }
    }
    return undefined;
  }

  /** Puts what waits to be said before the next request. */
  async #drainSteering(): Promise<void> {
    if (this.#isPaused) return;
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
    if (this.#goOnSteered(stopReason)) return undefined;
    const goOn = await this.#askToContinue(end.stopReason, false);
    if (this.#scope.isAborted) return this.#abortEnd();
    if (this.#control.stopRequested) return end;
    if (goOn === undefined) return this.#goOnSteered(stopReason) ? undefined : end;
    if (this.#continuations >= MAX_CONTINUATIONS) {
      this.#scope.notify({ name: 'continuations.exhausted', data: { continuations: MAX_CONTINUATIONS } });
      return end;
    }
    this.#continuations += 1;
    // A paused reply goes back as it is: a message behind it would start something new.
    this.#isPaused = stopReason === 'paused';
    if (!this.#isPaused) await this.#recordMessage(goOn);
    return undefined;
  }

  /** Steering that waits when the model is done opens another step. */
  #goOnSteered(stopReason: StepStopReason): boolean {
    const isWhole = stopReason !== 'filtered' && stopReason !== 'paused';
    if (!isWhole || !this.#control.hasSteering) return false;
    this.#continuations += 1;
    return true;
  }

  /** A limit was reached: the hooks may grant one last step, without tools. */
  async #continueAfterLimit(limit: ReachedLimit): Promise<End | undefined> {
    const { stopReason, name, reason } = limit;
    const error = stopReason === 'fatal_error' ? new TurnloopError('hook_failed', reason ?? `Condition "${name}" failed.`) : undefined;
    const end: End = { stopReason, stoppedBy: name, stopMessage: reason, error };
    if (error !== undefined || this.#limitAsked || this.#control.stopRequested || this.#scope.isAborted) return end;
    this.#limitAsked = true;
    const goOn = await this.#askToContinue(stopReason, true);
    if (goOn === undefined || this.#scope.isAborted) return this.#scope.isAborted ? this.#abortEnd() : end;
    this.#afterLimit = { stopReason, stoppedBy: name, ...(reason !== undefined && { stopMessage: reason }) };
    await this.#recordMessage(goOn, this.#afterLimit);
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
        if (isUserMessage(answer)) return answer;
        if (isRecord(answer)) throw new TypeError('it returned something that is neither a user message nor a boolean');
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
    const isSaid = typeof reason === 'string' || reason instanceof Error;
    return isSaid ? { stopReason: 'aborted', stopMessage: messageOf(reason) } : { stopReason: 'aborted' };
  }

  /** Records the end, or the suspension. */
  async #conclude(end: End): Promise<End> {
    const scope = this.#scope;
    // A turn that could not be gone on with stands as it was.
    if (scope.recorderError !== undefined || !this.#isOpen) return this.#interrupt(end);
    try {
      if (end.suspended !== undefined) {
        await scope.recordLast({ type: 'turn.suspend', calls: end.suspended });
        return end;
      }
      this.#interrupt(end);
      const { stopReason, stoppedBy, stopMessage, error } = end;
      await scope.recordLast({
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
      usageByModel: Array.from(this.#scope.usageByModel, ([modelId, usage]) => ({ modelId, usage })),
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

/** The end of a turn whose request failed for good. */
function failedEnd(error: LLMError): End {
  const { stoppedBy, message } = error;
  return { stopReason: stopReasonOf(error), error, ...(stoppedBy !== undefined && { stoppedBy, stopMessage: message }) };
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

/** A step as hooks see it, out of the record. */
function finishedStep(open: OpenStep, stopReason: StepStopReason, reply: AssistantMessage | undefined): FinishedStep {
  const message: AssistantMessage = reply ?? { role: 'assistant', id: open.stepId, content: [] };
  const results = open.calls.flatMap(({ toolCallId, name, inputText, input, result }) =>
    result === undefined ? [] : [{ toolCallId, name, inputText, input, result }],
  );
  return { stopReason, usage: open.usage, message, results };
}

/** True if a step's reply is recorded whole and its calls may still have to run. */
function isFinishable(open: OpenStep): boolean {
  return open.ended === undefined && open.reply !== undefined && open.reply.interrupted === undefined;
}

/** Settings over settings: one that is undefined says nothing. */
function withSettings(base: StepSettings, over: StepSettings): StepSettings {
  const { toolChoice = base.toolChoice, responseSchema = base.responseSchema, maxOutputTokens = base.maxOutputTokens } = over;
  return { toolChoice, responseSchema, maxOutputTokens };
}

/** The end of a turn whose process stopped between keeping a reply that was cut off and recording why. */
function interruptedEnd(stopReason: TurnStopReason): End {
  const stopMessage = 'The process stopped while the turn was ending.';
  if (stopReason === 'aborted' || stopReason === 'deadline') return { stopReason, stopMessage };
  const message = 'The request had failed; the process stopped before it was recorded why.';
  return { stopReason, stopMessage, error: new TurnloopError('request_failed', message) };
}

function isStopDecision(value: unknown): value is StopDecision {
  return isRecord(value) && isTurnStopReason(value['stopReason']) && value['stopReason'] !== 'suspended' && typeof value['name'] === 'string';
}

function asTurnloopError(error: unknown): TurnloopError {
  if (isTurnloopError(error)) return error;
  return new TurnloopError('internal', `The loop failed: ${messageOf(error)}`, { cause: error });
}

