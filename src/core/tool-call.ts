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
import { isSuspension, replayOf, type AnyTool, type ToolUpdate } from './tool.ts';
import { checkToolInput, unknownToolMessage } from './tool-input.ts';
import { accessesOf, type PlannedCall, type ToolStep } from './tool-plan.ts';
import { errorOutcome, failureResult, toToolOutcome, type ToolOutcome } from './tool-result.ts';
import { createToolScheduler, type ToolScheduler } from './tool-scheduler.ts';
import { abortOutcome, CANCELLED, type TurnScope } from './turn-scope.ts';

/** What came of a batch of calls. */
export interface BatchOutcome {
  /** Calls with their results, in provider order; not those that suspended, nor what waits behind them. */
  readonly results: readonly FinishedCall[];
  /** The tool that ended the turn. */
  readonly stoppedBy: string | undefined;
  /** Calls that wait for a decision; empty if the batch is done. */
  readonly suspended: readonly SuspendedCall[];
}

const UNKNOWN_OUTCOME =
  'The process stopped while this call was running, and it is not known whether it took effect. It was not run again: ' +
  'find out what happened before you repeat it.';
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
  readonly #scheduler: ToolScheduler;
  readonly #siblings: readonly HookSibling[];
  readonly #followers = new Map<string, CallRun[]>();
  readonly #done: Promise<void>;
  #finishWaiting: () => void = () => undefined;
  /** Calls that are doing something, rather than waiting for others. */
  #busy = 0;
  #flushed = 0;
  #flushing = false;
  #stoppedBy: CallRun | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(scope: TurnScope, step: ToolStep, calls: readonly PlannedCall[]) {
    this.scope = scope;
    this.step = step;
    this.#runs = calls.map((planned, index) => new CallRun(planned, index));
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
    for (const run of this.#runs) this.#place(run);
    for (const run of this.#runs) if (run.state !== 'finished') this.#background(() => this.#drive(run));
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

  /** One call, from its plan to its result. */
  async #drive(run: CallRun): Promise<void> {
    const { plan } = run.planned;
    if (plan.kind === 'share') {
      this.#share(run, plan.toolCallId);
      return;
    }
    const outcome = plan.kind === 'settle' ? plan.outcome : await this.#perform(run, plan.parsed);
    if (outcome !== undefined) await this.#finish(run, outcome);
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
    if (this.#busy === 0) this.#finishWaiting();
  }

  /** Waits for others: `begin` gets the function that ends the wait. */
  async #wait<Value>(begin: (wake: (value: Value) => void) => void): Promise<Value> {
    let waiting = true;
    const value = await new Promise<Value>((resolve) => {
      begin((woken) => {
        if (waiting) this.#busy += 1;
        waiting = false;
        resolve(woken);
      });
      if (waiting) this.#pause();
      else this.#busy -= 1;
    });
    return value;
  }

  /** Authorises and runs a call; undefined if it suspended. */
  async #perform(run: CallRun, parsed: unknown): Promise<ToolOutcome | undefined> {
    const { prior } = run.planned;
    const tool = run.planned.tool;
    if (tool === undefined) return errorOutcome(unknownToolMessage(run.planned.call.name, this.step.tools));
    const before = this.#skipReason(run);
    if (before !== undefined) return before;
    if (prior?.suspended !== undefined) {
      this.#suspend(run, prior.suspended);
      return undefined;
    }
    if (prior?.started === true && replayOf(tool) === 'never') return errorOutcome(UNKNOWN_OUTCOME);
    const permitted = await this.#authorize(run, tool, parsed);
    const early = this.#skipReason(run);
    if (early !== undefined) {
      run.suspended = undefined;
      return early;
    }
    if (permitted === undefined || 'outcome' in permitted) return permitted?.outcome;
    run.state = 'waiting';
    const skipped = await this.#wait<ToolOutcome | undefined>((wake) => {
      run.interrupt = (outcome) => {
        run.state = 'finishing';
        wake(outcome);
      };
      run.ticket?.ready(() => {
        if (run.state !== 'waiting') return;
        run.state = 'running';
        wake(undefined);
      });
    });
    run.interrupt = undefined;
    return skipped ?? (await this.#execute(run, tool, permitted.parsed));
  }

  /** Why a call that has not started is not to start any more. */
  #skipReason(run: CallRun): ToolOutcome | undefined {
    if (run.cancelled !== undefined) return run.cancelled;
    if (this.scope.isAborted) return abortOutcome(this.scope, false);
    if (this.#stoppedBy !== undefined && this.#stoppedBy.index < run.index) return stopOutcome(this.#stoppedBy);
    return undefined;
  }

  /** Asks the hooks, or carries out the decision of a resume. Undefined if the call suspended. */
  async #authorize(
    run: CallRun,
    tool: AnyTool,
    parsed: unknown,
  ): Promise<{ readonly parsed: unknown } | { readonly outcome: ToolOutcome } | undefined> {
    const { prior } = run.planned;
    // A call that ran before was authorised before; one that a person decided on needs no hook.
    if (prior?.started !== undefined) return { parsed };
    run.state = 'authorizing';
    if (prior?.decision !== undefined) return this.#decide(run, { tool, parsed }, { decision: prior.decision, from: 'The decision' });
    let current = parsed;
    for (const hook of this.scope.hooks) {
      if (hook.authorizeToolCall === undefined) continue;
      let decision: AuthorizeDecision;
      try {
        const call = this.#hookCall(run);
        decision = (await this.scope.settle(hook.authorizeToolCall(this.step.context, call))) ?? { action: 'allow' };
      } catch (error) {
        if (this.scope.isAborted) return { outcome: abortOutcome(this.scope, false) };
        this.scope.hookFailed(hook, 'authorizeToolCall', error);
        return { outcome: errorOutcome(`The call was denied: hook "${hook.name}" failed: ${messageOf(error)}`) };
      }
      if (this.scope.isAborted) return { outcome: abortOutcome(this.scope, false) };
      const decided = await this.#decide(run, { tool, parsed: current }, { decision, from: `Hook "${hook.name}"` });
      if (decided === undefined || 'outcome' in decided) return decided;
      current = decided.parsed;
    }
    return { parsed: current };
  }

  async #decide(
    run: CallRun,
    { tool, parsed }: { readonly tool: AnyTool; readonly parsed: unknown },
    { decision, from }: { readonly decision: AuthorizeDecision; readonly from: string },
  ): Promise<{ readonly parsed: unknown } | { readonly outcome: ToolOutcome } | undefined> {
    switch (decision.action) {
      case 'allow':
        return { parsed };
      case 'deny':
        return { outcome: errorOutcome(decision.reason ?? 'The user denied this call: it was not run.') };
      case 'answer':
        return { outcome: toToolOutcome(decision.result, from) };
      case 'suspend':
        this.#suspend(run, { toolCallId: run.toolCallId, pending: [this.#pendingCall(run, decision.reason)] });
        return undefined;
      case 'edit': {
        const read = await this.scope.settle(checkToolInput(tool, decision.input));
        if (!read.ok) return { outcome: errorOutcome(read.message) };
        run.input = read.input;
        run.edited = true;
        run.ticket?.reclaim(accessesOf(tool, read.parsed));
        return { parsed: read.parsed };
      }
      default:
        decision satisfies never;
        return { outcome: errorOutcome(`The call was denied: ${from} gave a decision that does not exist.`) };
    }
  }

  #pendingCall(run: CallRun, reason: string | undefined): SuspendedCall['pending'][number] {
    const { call, description } = run.planned;
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

  #suspend(run: CallRun, suspended: SuspendedCall): void {
    run.state = 'suspended';
    run.suspended = suspended;
    this.#interruptible(run);
    run.ticket?.park();
  }

  /** Lets an abort, a cancel or a skip finish a call that waits without anybody driving it. */
  #interruptible(run: CallRun): void {
    run.interrupt = (outcome) => {
      run.suspended = undefined;
      run.interrupt = undefined;
      this.#background(() => this.#finish(run, outcome));
    };
  }

  /** Work for a call that nobody drives. */
  #background(work: () => Promise<void>): void {
    this.#busy += 1;
    const done = async (): Promise<void> => {
      try {
        await work();
      } catch (error) {
        this.#fail(error);
      } finally {
        this.#pause();
      }
    };
    void done();
  }

  /** Runs the tool; undefined if it suspended. */
  async #execute(run: CallRun, tool: AnyTool, parsed: unknown): Promise<ToolOutcome | undefined> {
    const { step, stepId } = this.step;
    const { toolCallId } = run;
    if (run.edited || replayOf(tool) !== 'safe') {
      const input = run.edited ? { input: run.input ?? {} } : {};
      await this.scope.record({ type: 'tool.start', step, stepId, toolCallId, ...input });
    }
    const late = this.#skipReason(run);
    if (late !== undefined) return late;
    let returned: unknown;
    try {
      const running: unknown = tool.execute(parsed, new CallContext(this, run));
      returned = isThenable(running) ? await this.#watch(run, tool, running) : running;
    } catch (error) {
      if (error instanceof Interrupted) return error.outcome;
      if (this.scope.isAborted) return abortOutcome(this.scope, true);
      return run.isAborted ? errorOutcome(CANCELLED) : { result: failureResult(error), stopTurn: false };
    }
    if (!isSuspension(returned)) return toToolOutcome(returned, `Tool "${tool.name}"`);
    if (this.scope.isAborted) return abortOutcome(this.scope, true);
    if (run.isAborted) return errorOutcome(CANCELLED);
    const { pending = [], state } = returned;
    const below = pending.map((one) => ({ ...one, agentPath: [toolCallId, ...one.agentPath] }));
    this.#suspend(run, {
      toolCallId,
      pending: below.length > 0 ? below : [this.#pendingCall(run, undefined)],
      state,
    });
    return undefined;
  }

  /** Waits for a tool, for its time limit, and for the end of the grace after an abort or a cancel. */
  async #watch(run: CallRun, tool: AnyTool, running: PromiseLike<unknown>): Promise<unknown> {
    const { runtime } = this.scope;
    let cancelTimer: (() => void) | undefined;
    let stopWatching: (() => void) | undefined;
    try {
      return await new Promise<unknown>((resolve, reject) => {
        const end = (outcome: ToolOutcome): void => {
          // From here on the call has ended: it tells of no more progress.
          run.state = 'finishing';
          reject(new Interrupted(outcome));
        };
        run.interrupt = end;
        const { timeoutMs } = tool;
        if (timeoutMs !== undefined) {
          cancelTimer = runtime.setTimer(timeoutMs, () => {
            const message = `The tool took longer than its time limit of ${timeoutMs} ms (timeout).`;
            run.abort(new TurnloopError('tool_timeout', message));
            end(errorOutcome(`${message} It was stopped: its effects may have happened in part.`));
          });
        }
        const onWorkOver = (): void => {
          end(abortOutcome(this.scope, true));
        };
        stopWatching = this.scope.onWorkOver(onWorkOver);
        if (stopWatching === undefined) onWorkOver();
        running.then(resolve, reject);
      });
    } finally {
      cancelTimer?.();
      stopWatching?.();
      run.interrupt = undefined;
    }
  }

  /** The hooks' last look, then the records. */
  async #finish(run: CallRun, outcome: ToolOutcome): Promise<void> {
    run.state = 'finishing';
    run.interrupt = undefined;
    const { result, stopTurn } = await this.#finalize(run, outcome);
    await this.#conclude(run, result, stopTurn);
  }

  async #conclude(run: CallRun, result: RecordedToolResult, stopTurn: boolean): Promise<void> {
    const { step, stepId } = this.step;
    const stop = stopTurn ? { stopTurn } : {};
    await this.scope.record({ type: 'tool.finished', step, stepId, toolCallId: run.toolCallId, result, ...stop });
    run.result = result;
    run.state = 'finished';
    if (stopTurn) this.#stop(run);
    run.ticket?.release();
    for (const follower of this.#followers.get(run.toolCallId) ?? []) this.#wakeFollower(follower, result);
    this.#followers.delete(run.toolCallId);
    await this.#flush();
  }

  async #finalize(run: CallRun, outcome: ToolOutcome): Promise<ToolOutcome> {
    let current = outcome;
    for (const hook of this.scope.hooks) {
      if (hook.finalizeToolResult === undefined) continue;
      try {
        const call = this.#hookCall(run);
        const replaced = await this.scope.settleReview(hook.finalizeToolResult(this.step.context, call, current.result));
        if (replaced === undefined) continue;
        const next = toToolOutcome(replaced, `Hook "${hook.name}"`);
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

  #share(run: CallRun, toolCallId: string): void {
    run.state = 'waiting';
    this.#interruptible(run);
    const original = this.#runs.find((other) => other.toolCallId === toolCallId);
    if (original?.result !== undefined) {
      this.#wakeFollower(run, original.result);
      return;
    }
    const followers = this.#followers.get(toolCallId);
    if (followers === undefined) this.#followers.set(toolCallId, [run]);
    else followers.push(run);
  }

  #wakeFollower(run: CallRun, result: RecordedToolResult): void {
    if (run.state !== 'waiting') return;
    run.state = 'finishing';
    this.#background(() => this.#conclude(run, result, false));
  }

  #stop(by: CallRun): void {
    this.#stoppedBy ??= by;
    this.#skip((run) => run.index > by.index, () => stopOutcome(by));
  }

  /** Ends calls that have not started. */
  #skip(which: (run: CallRun) => boolean, outcome: (run: CallRun) => ToolOutcome): void {
    for (const run of this.#runs) {
      if (!which(run)) continue;
      if (run.state === 'authorizing' || run.state === 'new') run.cancelled ??= outcome(run);
      else if (run.state === 'waiting' || run.state === 'suspended') run.interrupt?.(outcome(run));
    }
  }

  skipPendingCalls(): void {
    this.#skip(() => true, () => errorOutcome(STEERED));
  }

  cancelToolCall(toolCallId: string): boolean {
    const run = this.#runs.find((other) => other.toolCallId === toolCallId);
    if (run === undefined || run.state === 'finishing' || run.state === 'finished') return false;
    if (run.state !== 'running') {
      this.#skip((other) => other === run, () => errorOutcome(CANCELLED));
      return true;
    }
    run.abort(userCancel('The user cancelled this call.'));
    // A tool that does not mind its signal is not waited for longer than an aborted turn would.
    const cancelTimer = this.scope.runtime.setTimer(this.scope.graceMs, () => {
      run.interrupt?.(errorOutcome(CANCELLED));
    });
    void this.#done.then(cancelTimer);
    return true;
  }

  #abortAll(): void {
    for (const run of this.#runs) run.abort(this.scope.signal.reason);
    this.#skip(
      (run) => run.state !== 'new',
      (run) => abortOutcome(this.scope, run.suspended?.state !== undefined),
    );
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
      const next = hook.finalizeProgress?.(this.#hookCall(run), update);
      return next === undefined ? update : next;
    } catch (error) {
      this.scope.hookFailed(hook, 'finalizeProgress', error);
      return null;
    }
  }

  #hookCall(run: CallRun): HookCall {
    const { call, tool, description, plan } = run.planned;
    return {
      toolCallId: call.id,
      name: call.name,
      inputText: call.inputText,
      input: run.input,
      tool,
      ...(description !== undefined && { description }),
      ...(plan.kind === 'run' && { accesses: plan.accesses }),
      siblings: this.#siblings,
    };
  }
}

/** Carries the outcome of a call whose tool is not waited for any more. */
class Interrupted extends Error {
  readonly outcome: ToolOutcome;

  constructor(outcome: ToolOutcome) {
    super('The tool is not waited for any more.');
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
