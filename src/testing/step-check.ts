/**
 * Step check: what the laws say about the recorded events of one step. Which step an event belongs to, and whether a step
 * may begin, is `turn-check.ts`'s business.
 */
import type {
  ContentPartEvent,
  RecordedToolResult,
  StepBeginEvent,
  StepEndEvent,
  SuspendedCall,
  ToolCallEvent,
  ToolFinishedEvent,
  ToolResultEvent,
  ToolStartEvent,
} from '../core/events.ts';
import type { StepStopReason } from '../core/stop-reason.ts';
import type { Usage } from '../core/usage.ts';

/** Says that a law is broken. */
export interface Report {
  /** The event being checked breaks a law. */
  (law: number, message: string): void;
  /** The same for the event being checked now, to be said later. */
  fromHere(): (law: number, message: string) => void;
}

interface CallCheck {
  readonly event: ToolCallEvent;
  /** Started since the turn began or was last resumed. */
  started: boolean;
  finished: ToolFinishedEvent | undefined;
  settled: boolean;
  /** What it finished with; in a turn that was given up, what it was settled with. */
  result: RecordedToolResult | undefined;
}

/** Ends of a reply that may have nothing in it: all others need a part. */
const MAY_BE_EMPTY: ReadonlySet<StepStopReason> = new Set<StepStopReason>(['filtered', 'max_tokens']);

/** Checks one step, event by event. */
export class StepCheck {
  readonly begin: StepBeginEvent;
  ended = false;
  /** What a `usage` event said the reply cost. */
  replyUsage: Usage | undefined;
  readonly #report: Report;
  readonly #calls: CallCheck[] = [];
  readonly #callsById = new Map<string, CallCheck>();
  #received = 0;
  #count: number | undefined;
  #interrupted = false;
  #stopReason: StepStopReason | undefined;
  /** Calls settled without having finished: right only where the turn was given up. */
  readonly #unfinished: { readonly toolCallId: string; readonly report: ReturnType<Report['fromHere']> }[] = [];
  /** Which call's result comes next. */
  #due = 0;
  #toolsBegan = false;

  constructor(begin: StepBeginEvent, report: Report) {
    this.begin = begin;
    this.#report = report;
  }

  /** Parts of the reply recorded so far. */
  get received(): number {
    return this.#received;
  }

  /** True once every part of the reply is recorded. */
  get isWhole(): boolean {
    return this.#received === this.#count;
  }

  /** True if the reply was cut off, and only a part of it was kept. */
  get isInterrupted(): boolean {
    return this.#interrupted;
  }

  addPart(event: ContentPartEvent | ToolCallEvent): void {
    const what = `${event.type} ${event.index} of step ${event.step}`;
    if (event.index !== this.#received) this.#report(3, `${what} stands where part ${this.#received} was due`);
    if (event.count !== (this.#count ?? event.count)) this.#report(3, `${what} counts ${event.count} parts, the parts before it ${String(this.#count)}`);
    if (event.index >= event.count) this.#report(3, `${what} is beyond its own count of ${event.count}`);
    if (event.index === 0 && event.reply === undefined) this.#report(9, `${what} does not say what a resume needs to know of the reply`);
    if (this.#toolsBegan) this.#report(3, `${what} comes after a tool of the step`);
    if (this.ended) this.#report(3, `${what} comes after its step.end`);
    this.#received += 1;
    this.#count = event.count;
    this.#interrupted ||= event.reply?.interrupted !== undefined;
    this.#stopReason ??= event.reply?.stopReason;
    if (event.type === 'tool.call') this.#addCall(event);
  }

  #addCall(event: ToolCallEvent): void {
    if (event.sameAs !== undefined && !this.#callsById.has(event.sameAs)) {
      this.#report(1, `call ${event.toolCallId} shares the result of ${event.sameAs}, which is no earlier call of the step`);
    }
    const call: CallCheck = { event, started: false, finished: undefined, settled: false, result: undefined };
    this.#calls.push(call);
    this.#callsById.set(event.toolCallId, call);
  }

  start(event: ToolStartEvent): void {
    const call = this.#callOf(event);
    if (call === undefined) return;
    if (call.finished !== undefined) this.#report(9, `call ${event.toolCallId} starts after it finished`);
    else if (call.started) this.#report(9, `call ${event.toolCallId} starts twice`);
    call.started = true;
  }

  finish(event: ToolFinishedEvent): void {
    const call = this.#callOf(event);
    if (call === undefined) return;
    if (call.finished !== undefined) this.#report(9, `call ${event.toolCallId} finishes twice`);
    else if (call.settled) this.#report(3, `call ${event.toolCallId} finishes after its tool.result`);
    call.finished ??= event;
    call.result ??= event.result;
    this.#checkShared(call, call.result);
  }

  /** A call that shares a result has that very result, or was ended before it had it. */
  #checkShared({ event: { toolCallId, sameAs } }: CallCheck, result: RecordedToolResult): void {
    const shared = sameAs === undefined ? undefined : this.#callsById.get(sameAs)?.result;
    if (shared === undefined || result.isError === true || sameJson(shared, result)) return;
    this.#report(1, `call ${toolCallId} shares the result of ${String(sameAs)}, and has another`);
  }

  settle(event: ToolResultEvent): void {
    const call = this.#callOf(event);
    if (call === undefined) return;
    const { toolCallId } = event;
    const due = this.#calls[this.#due];
    if (call.settled) this.#report(1, `call ${toolCallId} has a second tool.result`);
    else if (due !== call) this.#report(3, `the tool.result of ${toolCallId} stands where that of ${String(due?.event.toolCallId)} was due`);
    if (call.finished === undefined) this.#unfinished.push({ toolCallId, report: this.#report.fromHere() });
    else if (!sameJson(call.finished.result, event.result)) this.#report(9, `the tool.result of ${toolCallId} is not what it finished with`);
    if (event.name !== call.event.name) this.#report(3, `the tool.result of ${toolCallId} names "${event.name}", its call "${call.event.name}"`);
    call.settled = true;
    call.result ??= event.result;
    while (this.#calls[this.#due]?.settled === true) this.#due += 1;
  }

  suspend(calls: readonly SuspendedCall[]): void {
    if (this.ended) this.#report(3, `turn.suspend comes after the step.end of step ${this.begin.step}`);
    if (calls.length === 0) this.#report(3, 'turn.suspend names no call');
    for (const { toolCallId } of calls) {
      const call = this.#callsById.get(toolCallId);
      if (call === undefined) this.#report(3, `turn.suspend names ${toolCallId}, which is no call of step ${this.begin.step}`);
      else if (call.finished !== undefined) this.#report(3, `turn.suspend names ${toolCallId}, which has finished`);
    }
    const first = this.#calls.findIndex((call) => calls.some(({ toolCallId }) => toolCallId === call.event.toolCallId));
    const behind = this.#calls.slice(Math.max(0, first)).find((call) => call.settled);
    if (behind !== undefined) this.#report(3, `call ${behind.event.toolCallId} has a tool.result though it stands behind a suspended call`);
  }

  /** The turn is resumed: what had started may start again. */
  resume(): void {
    for (const call of this.#calls) call.started = false;
  }

  end(event: StepEndEvent): void {
    if (this.ended) this.#report(3, `step ${event.step} has a second step.end`);
    if (this.#count !== undefined && !this.isWhole) {
      this.#report(3, `step ${event.step} ends with ${this.#received} of its ${this.#count} parts`);
    }
    if (this.#count === undefined && !MAY_BE_EMPTY.has(event.stopReason)) {
      this.#report(3, `step ${event.step} ends "${event.stopReason}" without a part of its reply`);
    }
    if (event.stopReason !== (this.#stopReason ?? event.stopReason)) {
      this.#report(3, `step ${event.step} ends "${event.stopReason}", its reply "${String(this.#stopReason)}"`);
    }
    this.reportUnfinished();
    this.reportUnanswered();
    if (!sameUsage(this.replyUsage, event.usage)) {
      this.#report(5, `the step.end of step ${event.step} has other tokens than the usage event of its reply`);
    }
    this.ended = true;
  }

  /** Reports each call that got its result without having finished. */
  reportUnfinished(): void {
    for (const { toolCallId, report } of this.#unfinished) {
      report(3, `call ${toolCallId} has a tool.result without a tool.finished before it`);
    }
    this.#unfinished.length = 0;
  }

  /** Reports each call without a result. */
  reportUnanswered(): void {
    for (const { event, settled } of this.#calls) {
      if (!settled) this.#report(1, `call ${event.toolCallId} of "${event.name}" has no tool.result`);
    }
  }

  #callOf(event: ToolStartEvent | ToolFinishedEvent | ToolResultEvent): CallCheck | undefined {
    const what = `${event.type} of ${event.toolCallId}`;
    this.#toolsBegan = true;
    if (this.ended) this.#report(3, `${what} comes after the step.end of step ${event.step}`);
    if (!this.isWhole) this.#report(3, `${what} comes before all parts of the reply: ${this.#received} of ${this.#count ?? 'none'}`);
    const call = this.#callsById.get(event.toolCallId);
    if (call === undefined) this.#report(1, `${what} belongs to no call of step ${event.step}`);
    return call;
  }
}

function sameUsage(recorded: Usage | undefined, told: Usage): boolean {
  const counters = ['inputTokens', 'cacheReadTokens', 'cacheWriteTokens', 'outputTokens', 'thinkingTokens'] as const;
  return counters.every((counter) => (recorded?.[counter] ?? 0) === told[counter]);
}

function sameJson(left: unknown, right: unknown): boolean {
  return left === right || JSON.stringify(left) === JSON.stringify(right);
}
