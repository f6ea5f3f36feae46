/**
 * Tool calls: from planned calls to their results.
 *
 * - T1 Every call gets exactly one result, on every path: settled by its plan, denied, failed, timed out, cancelled,
 *   skipped, aborted.
 * - T2 Calls are authorised at once, without waiting for each other, and start as the scheduler lets them.
 * - T3 `tool.finished` is recorded as a call ends, after its last look by the hooks; `tool.result` in provider order.
 * - T4 Raw output that a hook failed to look at is never recorded.
 * - T5 A call that suspends keeps its place: what does not depend on it is finished, nothing behind it is settled.
 */
import { messageOf, TurnloopError, userCancel } from './errors.ts';
import { isThenable } from './event-dispatcher.ts';
import { CallContext, CallRun, type CallBatch } from './call-run.ts';
import type { RecordedToolResult, SuspendedCall } from './events.ts';
import type { AuthorizeDecision, FinishedCall, Hook, HookCall, HookSibling } from './hooks.ts';
import { cloneJson, isRecord, toJson, type JsonValue } from './json.ts';
import { isSuspension, replayOf, type AnyTool, type PendingCall, type ToolResult, type ToolUpdate } from './tool.ts';
import { checkGivenInput, unknownToolMessage } from './tool-input.ts';
import { reasonOf, resolveCall, UNKNOWN_OUTCOME, type PlannedCall, type ToolStep } from './tool-plan.ts';
import { errorOutcome, failureResult, toToolOutcome, type ToolOutcome } from './tool-result.ts';
import { createToolScheduler, type SchedulerTicket, type ToolScheduler } from './tool-scheduler.ts';
import { abortOutcome, type LingeringTool, type TurnScope } from './turn-scope.ts';

/** What came of a batch of calls. */
export interface BatchOutcome {
  /** Calls with their results, in provider order; not those that suspended, nor what waits behind them. */
  readonly results: readonly FinishedCall[];
  /** The tool that ended the turn. */
  readonly stoppedBy: string | undefined;
  /** Calls that wait for a decision; empty if the batch is done. */
  readonly suspended: readonly SuspendedCall[];
}

/** What a call is told that a person cancelled alone: the turn goes on. */
const CALL_CANCELLED =
  'The user cancelled this call on purpose. That is not a fault: do not repeat it unless the user asks, and go on without it.';
const STEERED = 'Skipped: the user sent a new message before this call started, so it was not run.';

/** A running batch, for whoever controls the turn. */
export interface ToolBatch {
  /** Runs the calls. Rejects if the recorder fails or the turn's grace is over. */
  run(): Promise<BatchOutcome>;
  /** Closes all calls that have not started as skipped. */
  skipPendingCalls(): void;
  /** Cancels one call. @returns False if it is not waiting or running. */
  cancelToolCall(toolCallId: string): boolean;
}

/** Makes the batch of a step's calls. */
export function createToolBatch(scope: TurnScope, step: ToolStep, calls: readonly PlannedCall[]): ToolBatch {
  return new Batch(scope, step, calls);
}

/** Runs planned calls to their results: a batch without a handle. */
export function runToolCalls(scope: TurnScope, step: ToolStep, calls: readonly PlannedCall[]): Promise<BatchOutcome> {
  return createToolBatch(scope, step, calls).run();
}

class Batch implements ToolBatch, CallBatch {
  readonly scope: TurnScope;
  readonly step: ToolStep;
  readonly #runs: readonly CallRun[];
  readonly #byId: ReadonlyMap<string, CallRun>;
  readonly #scheduler: ToolScheduler;
  readonly #siblings: readonly HookSibling[];
  /** Calls that wait for the result of another, by its id. */
  readonly #followers = new Map<string, ((result: RecordedToolResult) => void)[]>();
  readonly #done: Promise<void>;
  #finishWaiting: () => void = () => undefined;
  /** Calls that are doing something, rather than waiting for others. */
  #busy = 0;
  /** Tools that are not waited for any more and have not let go. */
  #lingering = 0;
  /** Set when no call is doing anything any more: from then on nothing can change what came of the batch. */
  #closed = false;
  #flushed = 0;
  #flushing = false;
  #stoppedBy: CallRun | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(scope: TurnScope, step: ToolStep, calls: readonly PlannedCall[]) {
    this.scope = scope;
    this.step = step;
    this.#runs = calls.map((planned, index) => new CallRun(planned, index));
    this.#byId = new Map(this.#runs.map((run) => [run.toolCallId, run]));
    this.#siblings = calls.map(({ call: { id, name, inputText } }) => ({ toolCallId: id, name, inputText }));
    this.#scheduler = createToolScheduler(scope.maxParallelTools);
    this.#done = new Promise((resolve) => {
      this.#finishWaiting = resolve;
    });
  }

  async run(): Promise<BatchOutcome> {
    const stopWatching = this.scope.onAbort(() => {
      this.#abortAll();
    });
    this.#busy += 1;
    // Tools of earlier steps that still run stand before every call of this one.
    for (const tool of this.scope.lingering) this.#holdFor(this.#scheduler.add(tool.accesses), tool);
    for (const run of this.#runs) this.#place(run);
    for (const run of this.#runs) if (run.state !== 'finished') void this.#drive(run);
    this.#pause();
    await this.#done;
    stopWatching();
    if (this.#failure !== undefined) throw this.#failure.error;
    await this.#flush();
    return {
      results: this.#runs.flatMap((run) => (run.result === undefined ? [] : [finishedCall(run, run.result)])),
      stoppedBy: this.#stoppedBy?.planned.call.name,
      suspended: this.#runs.flatMap((run) => run.suspended ?? []),
    };
  }

  /** Gives a call its place in the schedule, in provider order, before any of them moves. */
  #place(run: CallRun): void {
    const { plan, prior } = run.planned;
    if (prior?.result !== undefined) {
      run.result = prior.result;
      run.state = 'finished';
      if (prior.stopTurn === true) this.#stoppedBy ??= run;
    } else if (plan.kind === 'run') {
      run.ticket = this.#scheduler.add(plan.accesses);
    }
  }

  /** One call, from its plan to its result. Nobody else finishes it: whoever wants it ended interrupts this. */
  async #drive(run: CallRun): Promise<void> {
    this.#busy += 1;
    try {
      const { plan } = run.planned;
      if (plan.kind === 'share') {
        const shared = await this.#ending(run, async () => ({ result: await this.#share(run, plan.toolCallId), stopTurn: false }));
        // What it shares had its last look already; what ended it early has not.
        await (run.ended === undefined ? this.#conclude(run, shared) : this.#finish(run, shared));
      } else {
        const outcome = plan.kind === 'settle' ? plan.outcome : await this.#ending(run, () => this.#perform(run, plan.parsed));
        await this.#finish(run, outcome);
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#pause();
    }
  }

  /** What a call comes to: whatever goes wrong on the way is an outcome of this call, unless the turn itself cannot go on. */
  async #ending(run: CallRun, work: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Interrupted) {
        run.ended ??= error.outcome;
        return error.outcome;
      }
      if (this.scope.recorderError !== undefined) throw error;
      run.ended ??= this.scope.isAborted
        ? abortOutcome(this.scope, run.hasStarted || run.hasRun)
        : errorOutcome(`The call failed: ${messageOf(error)}`);
      return run.ended;
    } finally {
      run.suspended = undefined;
    }
  }

  /** Nothing of the loop's own can go on: the turn is over. What runs is stopped. */
  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.scope.abort('failure', error);
    this.#abortAll();
  }

  /** A call has nothing to do for now; once none has, the batch is over. */
  #pause(): void {
    this.#busy -= 1;
    this.#closeIfDone();
  }

  #closeIfDone(): void {
    // What waits for a lingering tool will yet run.
    const isHeldUp = this.#lingering > 0 && this.#runs.some((run) => run.state === 'waiting');
    if (this.#busy > 0 || isHeldUp) return;
    this.#closed = true;
    this.#finishWaiting();
  }

  /** Waits for other calls or people: `begin` gets the function that ends the wait. */
  #idle<Value>(run: CallRun, begin: (wake: (value: Value) => void) => void): Promise<Value> {
    if (run.ended !== undefined) return Promise.reject(new Interrupted(run.ended));
    return new Promise<Value>((resolve, reject) => {
      let isWaiting = true;
      const leave = (): boolean => {
        if (!isWaiting || this.#closed) return false;
        isWaiting = false;
        run.interrupt = undefined;
        this.#busy += 1;
        return true;
      };
      run.interrupt = (outcome) => {
        if (leave()) reject(new Interrupted(outcome));
      };
      begin((value) => {
        if (leave()) resolve(value);
      });
      this.#pause();
    });
  }

  /** Waits for foreign work on behalf of a call; an interruption ends the wait, and what comes of the work is swallowed. */
  async #race<Value>(run: CallRun, work: PromiseLike<Value> | Value): Promise<Value> {
    if (!isThenable(work)) return work;
    try {
      return await new Promise<Value>((resolve, reject) => {
        run.interrupt = (outcome) => {
          reject(new Interrupted(outcome));
        };
        // It may have been ended between two waits.
        if (run.ended !== undefined) reject(new Interrupted(run.ended));
        (work as PromiseLike<Value>).then(resolve, reject);
      });
    } finally {
      run.interrupt = undefined;
    }
  }

  /** @throws Interrupted if the call is not to go on. */
  #checkpoint(run: CallRun): void {
    if (run.ended !== undefined) throw new Interrupted(run.ended);
    if (this.scope.isAborted) throw new Interrupted(abortOutcome(this.scope, false));
    const stopper = this.#stoppedBy;
    if (stopper !== undefined && stopper.index < run.index) throw new Interrupted(stopOutcome(stopper));
  }

  /** Authorises and runs a call. */
  async #perform(run: CallRun, parsed: unknown): Promise<ToolOutcome> {
    const { prior, tool } = run.planned;
    if (tool === undefined) return errorOutcome(unknownToolMessage(run.planned.call.name, this.step.tools));
    run.parsed = parsed;
    this.#checkpoint(run);
    if (prior?.suspended !== undefined) return this.#suspend(run, prior.suspended);
    if (prior?.started === true && replayOf(tool) === 'never') return errorOutcome(UNKNOWN_OUTCOME);
    if (prior !== undefined || this.scope.hasHook('authorizeToolCall')) {
      const answered = await this.#authorize(run, tool);
      if (answered !== undefined) return answered;
      this.#checkpoint(run);
    }
    run.state = 'waiting';
    await this.#idle<undefined>(run, (wake) => {
      run.ticket?.ready(() => {
        if (run.state === 'waiting') run.state = 'starting';
        wake(undefined);
      });
    });
    return this.#execute(run, tool);
  }

  /** Asks the hooks, or carries out the decision of a resume. An outcome if the call is not to run. */
  async #authorize(run: CallRun, tool: AnyTool): Promise<ToolOutcome | undefined> {
    const { prior } = run.planned;
    // A call that ran before was authorised before.
    if (prior?.started !== undefined) return undefined;
    run.state = 'authorizing';
    let asked = 0;
    let suspender = -1;
    if (prior?.decision !== undefined) {
      const answered = await this.#carryOut(run, tool, { decision: prior.decision });
      if (answered !== undefined) return answered;
      // The decision stands for the hook that suspended; those behind it have not been asked. What it has not seen is the
      // edited arguments: those it may still refuse.
      suspender = this.scope.hooks.findIndex((_, index) => hookKey(this.scope.hooks, index) === prior.decidedFor);
      asked = prior.decision.action === 'edit' ? suspender : suspender + 1;
    }
    for (const [index, hook] of this.scope.hooks.entries()) {
      if (index < asked || hook.authorizeToolCall === undefined) continue;
      let decision: AuthorizeDecision;
      try {
        const answer = this.scope.settle(hook.authorizeToolCall(this.step.context, this.#hookCall(run)));
        decision = (await this.#race(run, answer)) ?? { action: 'allow' };
      } catch (error) {
        if (error instanceof Interrupted || this.scope.isAborted) throw error;
        this.scope.hookFailed(hook, 'authorizeToolCall', error);
        return errorOutcome(`The call was denied: hook "${hook.name}" failed: ${messageOf(error)}`);
      }
      this.#checkpoint(run);
      if (index === suspender && decision.action === 'suspend') continue;
      const key = hookKey(this.scope.hooks, index);
      const answered = await this.#carryOut(run, tool, { decision, hook: key });
      if (answered !== undefined) return answered;
      this.#checkpoint(run);
    }
    return undefined;
  }

  /** Does what was decided. An outcome if the call is not to run; undefined if it is allowed so far. */
  async #carryOut(
    run: CallRun,
    tool: AnyTool,
    { decision, hook }: { readonly decision: AuthorizeDecision; readonly hook?: string },
  ): Promise<ToolOutcome | undefined> {
    const from = hook === undefined ? 'The decision' : `Hook "${hook}"`;
    switch (decision.action) {
      case 'allow':
        return undefined;
      case 'deny':
        return errorOutcome(reasonOf(decision.reason, 'The user denied this call: it was not run.'));
      case 'answer':
        return toToolOutcome(decision.result, from);
      case 'edit':
        return this.#edit(run, tool, decision.input);
      case 'suspend': {
        const { toolCallId } = run;
        const edited = run.edited && run.input !== undefined ? { input: run.input } : {};
        const pending = [this.#pendingCall(run, decision.reason)];
        return this.#suspend(run, { toolCallId, pending, ...edited, ...(hook !== undefined && { hook }) });
      }
      default:
        decision satisfies never;
        return errorOutcome(`The call was denied: ${from} gave a decision that does not exist.`);
    }
  }

  /** Changes what a call would run with; an outcome if the new arguments will not do. */
  async #edit(run: CallRun, tool: AnyTool, input: JsonValue): Promise<ToolOutcome | undefined> {
    const read = await this.#race(run, this.scope.settle(checkGivenInput(tool, input)));
    if (!read.ok) return errorOutcome(read.message);
    const { description, accesses } = resolveCall(tool, read.parsed);
    run.input = read.input;
    run.parsed = read.parsed;
    run.description = description;
    run.accesses = accesses;
    run.edited = true;
    run.ticket?.reclaim(accesses);
    return undefined;
  }

  #pendingCall(run: CallRun, reason: string | undefined): PendingCall {
    const { call } = run.planned;
    const { description } = run;
    return {
      toolCallId: call.id,
      name: call.name,
      input: run.input ?? {},
      ...(description !== undefined && { description }),
      ...(reason !== undefined && { reason }),
      step: this.step.step,
      agentPath: [],
    };
  }

  /** Keeps a call in its place until it is interrupted, or for ever. */
  #suspend(run: CallRun, suspended: SuspendedCall): Promise<never> {
    run.state = 'suspended';
    run.suspended = suspended;
    run.ticket?.park();
    return this.#idle<never>(run, () => undefined);
  }

  /** Runs the tool. */
  async #execute(run: CallRun, tool: AnyTool): Promise<ToolOutcome> {
    const { step, stepId } = this.step;
    const { toolCallId } = run;
    if (run.edited || replayOf(tool) !== 'safe') {
      const input = run.edited ? { input: run.input ?? {} } : {};
      await this.scope.record({ type: 'tool.start', step, stepId, toolCallId, ...input });
    }
    if (run.ended !== undefined) return run.ended;
    if (this.scope.isAborted) return abortOutcome(this.scope, false);
    run.state = 'running';
    let returned: unknown;
    try {
      const running: unknown = tool.execute(run.parsed, new CallContext(this, run));
      returned = isThenable(running) ? await this.#watch(run, tool, running) : running;
    } catch (error) {
      if (error instanceof Interrupted) throw error;
      if (this.scope.isAborted) return abortOutcome(this.scope, true);
      return run.isAborted ? errorOutcome(CALL_CANCELLED) : { result: failureResult(error), stopTurn: false };
    }
    if (!isSuspension(returned)) return toToolOutcome(returned, `Tool "${tool.name}"`);
    if (this.scope.isAborted) return abortOutcome(this.scope, true);
    if (run.isAborted) return errorOutcome(CALL_CANCELLED);
    const { pending = [] } = returned;
    const state = toJson(returned.state ?? null);
    if (state === undefined || !Array.isArray(pending)) {
      return errorOutcome(`Tool "${tool.name}" suspended with a state that is not JSON, or with a wrong "pending".`);
    }
    const below = (pending as readonly PendingCall[]).map((one) => ({ ...one, agentPath: [toolCallId, ...one.agentPath] }));
    return this.#suspend(run, { toolCallId, pending: below.length > 0 ? below : [this.#pendingCall(run, undefined)], state });
  }

  /** Waits for a tool, for its time limit, and for the end of the grace after an abort or a cancel. */
  async #watch(run: CallRun, tool: AnyTool, running: PromiseLike<unknown>): Promise<unknown> {
    const { timeoutMs } = tool;
    const end = (outcome: ToolOutcome): void => {
      // From here on the call has ended: it tells of no more progress.
      run.state = 'finishing';
      run.lingering = once;
      run.interrupt?.(outcome);
    };
    // Asked once: some thenables start their work anew each time.
    const once = Promise.resolve(running);
    const work = this.#race(run, once);
    const onWorkOver = (): void => {
      end(abortOutcome(this.scope, true));
    };
    const stopWatching = this.scope.onWorkOver(onWorkOver);
    if (stopWatching === undefined) onWorkOver();
    const cancelTimer =
      timeoutMs === undefined
        ? undefined
        : this.scope.runtime.setTimer(timeoutMs, () => {
            const message = `The tool took longer than its time limit of ${timeoutMs} ms (timeout).`;
            run.abort(new TurnloopError('tool_timeout', message));
            end(errorOutcome(`${message} It was told to stop: its effects may have happened in part.`));
          });
    try {
      return await work;
    } finally {
      cancelTimer?.();
      stopWatching?.();
    }
  }

  /** The hooks' last look, then the records. */
  async #finish(run: CallRun, outcome: ToolOutcome): Promise<void> {
    run.state = 'finishing';
    const isLookedAt = this.scope.hasHook('finalizeToolResult');
    await this.#conclude(run, isLookedAt ? await this.#finalize(run, outcome) : outcome);
  }

  async #conclude(run: CallRun, { result, stopTurn }: ToolOutcome): Promise<void> {
    const { step, stepId } = this.step;
    const stop = stopTurn ? { stopTurn } : {};
    run.state = 'finishing';
    await this.scope.record({ type: 'tool.finished', step, stepId, toolCallId: run.toolCallId, result, ...stop });
    run.result = result;
    run.state = 'finished';
    if (stopTurn) this.#stop(run);
    this.#release(run);
    for (const wake of this.#followers.get(run.toolCallId) ?? []) wake(result);
    this.#followers.delete(run.toolCallId);
    await this.#flush();
  }

  /** Gives up a call's place: at once, or when a tool that is not waited for any more has let go. */
  #release(run: CallRun): void {
    const { ticket, lingering } = run;
    if (ticket === undefined || lingering === undefined) {
      ticket?.release();
      return;
    }
    ticket.park();
    this.#holdFor(ticket, this.scope.linger(run.accesses ?? [], lingering));
  }

  /** Keeps a place until a lingering tool is gone. */
  #holdFor(ticket: SchedulerTicket, tool: LingeringTool): void {
    this.#lingering += 1;
    void tool.gone.then(() => {
      this.#lingering -= 1;
      ticket.release();
      this.#closeIfDone();
    });
  }

  async #finalize(run: CallRun, outcome: ToolOutcome): Promise<ToolOutcome> {
    let current = outcome;
    for (const hook of this.scope.hooks) {
      if (hook.finalizeToolResult === undefined) continue;
      try {
        const call = this.#hookCall(run);
        const replaced: ToolResult | string | undefined | void | null = await this.scope.settleReview(hook.finalizeToolResult(this.step.context, call, current.result));
        if (replaced === undefined || replaced === null) continue;
        // A text stands for the content alone.
        const whole = typeof replaced === 'string' ? { ...current.result, content: replaced } : replaced;
        const next = toToolOutcome(whole, `Hook "${hook.name}"`);
        current = { result: next.result, stopTurn: next.stopTurn || (current.stopTurn && next.result.isError !== true) };
      } catch (error) {
        this.scope.hookFailed(hook, 'finalizeToolResult', error);
        return errorOutcome(`The call is over, but its result is withheld: hook "${hook.name}" failed to look at it.`);
      }
    }
    return current;
  }

  /** Records the results that are next in provider order. */
  async #flush(): Promise<void> {
    if (this.#flushing) return;
    this.#flushing = true;
    const { step, stepId } = this.step;
    try {
      for (let run = this.#runs[this.#flushed]; run?.result !== undefined; run = this.#runs[this.#flushed]) {
        this.#flushed += 1;
        if (run.planned.prior?.settled === true) continue;
        const { toolCallId, result } = run;
        await this.scope.record({ type: 'tool.result', step, stepId, toolCallId, name: run.planned.call.name, result });
      }
    } finally {
      this.#flushing = false;
    }
  }

  /** The final result of another call. */
  async #share(run: CallRun, toolCallId: string): Promise<RecordedToolResult> {
    this.#checkpoint(run);
    const original = this.#byId.get(toolCallId);
    if (original?.result !== undefined) return original.result;
    run.state = 'waiting';
    return this.#idle<RecordedToolResult>(run, (wake) => {
      const followers = this.#followers.get(toolCallId);
      if (followers === undefined) this.#followers.set(toolCallId, [wake]);
      else followers.push(wake);
    });
  }

  #stop(by: CallRun): void {
    // Of several the first in provider order is named, whichever finished first: a resume could not tell.
    if (this.#stoppedBy === undefined || by.index < this.#stoppedBy.index) this.#stoppedBy = by;
    for (const run of this.#runs) if (run.index > by.index && !run.hasStarted) run.end(run.hasRun ? SKIPPED_AFTER_RUN : stopOutcome(by));
  }

  skipPendingCalls(): void {
    for (const run of this.#runs) if (!run.hasStarted) run.end(run.hasRun ? SKIPPED_AFTER_RUN : errorOutcome(STEERED));
  }

  cancelToolCall(toolCallId: string): boolean {
    const run = this.#byId.get(toolCallId);
    if (run === undefined || this.#closed || run.state === 'finishing' || run.state === 'finished') return false;
    if (run.state !== 'running') {
      run.end(errorOutcome(CALL_CANCELLED));
      return true;
    }
    run.abort(userCancel('The user cancelled this call.'));
    // A tool that does not mind its signal is not waited for longer than an aborted turn would.
    const cancelTimer = this.scope.runtime.setTimer(this.scope.graceMs, () => {
      if (run.state === 'running') run.interrupt?.(errorOutcome(CALL_CANCELLED));
    });
    void this.#done.then(cancelTimer);
    return true;
  }

  #abortAll(): void {
    for (const run of this.#runs) {
      run.abort(this.scope.signal.reason);
      // A tool that runs gets its share of the grace.
      if (run.state !== 'running') run.end(abortOutcome(this.scope, run.hasRun));
    }
  }

  progress(run: CallRun, update: ToolUpdate): void {
    let current: ToolUpdate = update;
    for (const hook of this.scope.hooks) {
      if (hook.finalizeProgress === undefined) continue;
      const next = this.#finalizeProgress(hook, run, current);
      if (next === null) return;
      current = next;
    }
    const { step, stepId } = this.step;
    this.scope.emit({ type: 'tool.progress', step, stepId, toolCallId: run.toolCallId, update: current });
  }

  #finalizeProgress(hook: Hook, run: CallRun, update: ToolUpdate): ToolUpdate | null {
    try {
      const next: unknown = hook.finalizeProgress?.(this.#hookCall(run), update);
      if (next === undefined) return update;
      if (isThenable(next)) {
        next.then(undefined, () => undefined);
        throw new TypeError('finalizeProgress is synchronous: it returned a promise');
      }
      if (next !== null && !isRecord(next)) throw new TypeError('finalizeProgress returned something that is no update');
      // An object is taken for an update: listeners are told to expect anything in custom ones.
      return next as ToolUpdate | null;
    } catch (error) {
      this.scope.hookFailed(hook, 'finalizeProgress', error);
      return null;
    }
  }

  #hookCall(run: CallRun): HookCall {
    const { call, tool } = run.planned;
    const { description, accesses } = run;
    return {
      toolCallId: call.id,
      name: call.name,
      inputText: call.inputText,
      // A copy: what a hook does to it changes neither the record nor the call.
      input: run.input === undefined ? undefined : cloneJson(run.input),
      tool,
      ...(description !== undefined && { description }),
      ...(accesses !== undefined && { accesses }),
      siblings: this.#siblings,
    };
  }
}

/** A hook's name, told apart from others of the same name before it: a record has to find it again. */
function hookKey(hooks: readonly Hook[], index: number): string {
  const name = hooks[index]?.name ?? '';
  const before = hooks.slice(0, index).filter((hook) => hook.name === name).length;
  return before === 0 ? name : `${name}#${before + 1}`;
}

/** What a call is told that had run, suspended, and is not gone on with. */
const SKIPPED_AFTER_RUN: ToolOutcome = errorOutcome(
  'Skipped: this call had started and waited for a decision. It is not gone on with: its effects may have happened in part.',
);

/** Carries the outcome of a call that is not to go on. */
class Interrupted extends Error {
  readonly outcome: ToolOutcome;

  constructor(outcome: ToolOutcome) {
    super('The call is not to go on.');
    this.outcome = outcome;
  }
}

function stopOutcome(by: CallRun): ToolOutcome {
  return errorOutcome(`Skipped: the tool "${by.planned.call.name}" ended the turn before this call started, so it was not run.`);
}

function finishedCall(run: CallRun, result: RecordedToolResult): FinishedCall {
  const { id, name, inputText } = run.planned.call;
  return { toolCallId: id, name, inputText, input: run.input, result };
}
