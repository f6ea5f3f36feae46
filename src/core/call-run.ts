/**
 * Call run: a call on its way, and the context that its tool is given.
 *
 * - Its signal is made when it is first asked for: most tools never do.
 * - Once it has ended it tells of no more progress and forwards nothing.
 */
import type { RecordedToolResult, SuspendedCall } from './events.ts';
import type { JsonValue } from './json.ts';
import type { LLM } from './llm.ts';
import type { Runtime } from './runtime.ts';
import type { ChildEvent, ResumedCall, ToolContext, ToolUpdate } from './tool.ts';
import type { ToolAccess } from './tool-access.ts';
import type { PlannedCall, ToolStep } from './tool-plan.ts';
import type { ToolOutcome } from './tool-result.ts';
import type { SchedulerTicket } from './tool-scheduler.ts';
import type { TurnScope } from './turn-scope.ts';
import type { Usage } from './usage.ts';

/** The batch that a call belongs to. */
export interface CallBatch {
  /** What the turn shares. */
  readonly scope: TurnScope;
  /** The step of the batch. */
  readonly step: ToolStep;
  /** Passes a running call's progress on. */
  progress(run: CallRun, update: ToolUpdate): void;
}

/** Where a call stands. */
export type CallState =
  | 'new'
  | 'authorizing'
  | 'waiting'
  | 'starting'
  | 'running'
  | 'finishing'
  | 'finished'
  | 'suspended';

/** A call on its way. */
export class CallRun {
  readonly planned: PlannedCall;
  readonly index: number;
  state: CallState = 'new';
  /** The arguments as they stand now. */
  input: JsonValue | undefined;
  /** The same as the tool takes them. */
  parsed: unknown;
  description: string | undefined;
  accesses: readonly ToolAccess[] | undefined;
  result: RecordedToolResult | undefined;
  suspended: SuspendedCall | undefined;
  ticket: SchedulerTicket | undefined;
  /** Its arguments were changed after they were recorded. */
  edited = false;
  /** Why the call is not to go on: its outcome, decided from outside. */
  ended: ToolOutcome | undefined;
  /** The tool, while it is not waited for any more and has not let go. */
  lingering: PromiseLike<unknown> | undefined;
  /** Ends the wait that the call is in. */
  interrupt: ((outcome: ToolOutcome) => void) | undefined;
  #controller: AbortController | undefined;
  #abortReason: { readonly reason: unknown } | undefined;

  constructor(planned: PlannedCall, index: number) {
    this.planned = planned;
    this.index = index;
    this.input = planned.input;
    this.description = planned.description;
    this.accesses = planned.plan.kind === 'run' ? planned.plan.accesses : undefined;
    this.edited = planned.prior?.edited === true;
  }

  /** True once the tool runs, or is about to. */
  get hasStarted(): boolean {
    return this.state === 'starting' || this.state === 'running' || this.state === 'finishing' || this.state === 'finished';
  }

  /** True if its tool ran before: it suspended, or the process stopped. */
  get hasRun(): boolean {
    const { prior } = this.planned;
    return this.suspended?.state !== undefined || prior?.resumed !== undefined || prior?.started === true;
  }

  /** Ends the call before it is done: what it waits for now is waited for no more. */
  end(outcome: ToolOutcome): void {
    this.ended ??= outcome;
    this.interrupt?.(this.ended);
  }

  get toolCallId(): string {
    return this.planned.call.id;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason.reason);
    }
    return this.#controller.signal;
  }

  get isAborted(): boolean {
    return this.#abortReason !== undefined;
  }

  abort(reason: unknown): void {
    if (this.isAborted) return;
    this.#abortReason = { reason };
    this.#controller?.abort(reason);
  }
}

/** What the tool of a call is given. */
export class CallContext implements ToolContext {
  readonly turnId: string;
  readonly step: number;
  readonly toolCallId: string;
  readonly idempotencyKey: string;
  readonly inputText: string;
  readonly llm: LLM;
  readonly host: unknown;
  readonly runtime: Runtime;
  readonly resumed: ResumedCall | undefined;
  readonly #batch: CallBatch;
  readonly #run: CallRun;

  constructor(batch: CallBatch, run: CallRun) {
    const { scope, step } = batch;
    const { call, prior } = run.planned;
    this.turnId = scope.turnId;
    this.step = step.step;
    this.toolCallId = call.id;
    this.idempotencyKey = `${scope.turnId}.${call.id}`;
    this.inputText = call.inputText;
    this.llm = step.llm;
    this.host = scope.host;
    this.runtime = scope.runtime;
    this.resumed = prior?.resumed;
    this.#batch = batch;
    this.#run = run;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }

  // Bound to the call, so that a tool can take its context apart: `(input, { progress }) => …`.
  readonly progress = (update: ToolUpdate): void => {
    if (this.#run.state === 'running') this.#batch.progress(this.#run, update);
  };

  readonly forward = (event: ChildEvent): void => {
    if (this.#run.state === 'running') this.#batch.scope.forward(this.toolCallId, event);
  };

  readonly recordUsage = async (usage: Usage, modelId: string): Promise<void> => {
    const { step, stepId } = this.#batch.step;
    try {
      await this.#batch.scope.recordUsage(usage, { modelId, purpose: 'child', step, stepId });
    } catch {
      // A recorder that fails ends the turn by itself; a tool has nothing to do about it.
    }
  };
}
