/**
 * Turn scope: what all parts of a running turn share. Its identity, its way out for events, its tokens, and its end.
 *
 * - E1 Every wait for something foreign goes through a stage of the grace, so that after an abort the turn settles in
 *   time whatever foreign code does: first models, tools and hooks, then the hooks' last look at results, then records.
 * - E2 The first abort wins. After `close` nothing is recorded or emitted, and no timer or listener is left.
 * - E3 Recorded events go out one after the other, in the order of the calls to `record`.
 * - E4 After the recorder failed once nothing more is recorded: nothing is claimed that may not be true.
 */
import { isTurnloopError, isUserCancel, messageOf, TurnloopError } from './errors.ts';
import { isThenable } from './event-dispatcher.ts';
import type { DispatchEvent, ForwardedEvent, LiveEvent, LoopEvent, RecordedEvent, TextDeltaEvent, ThinkingDeltaEvent, ToolCallDeltaEvent, UsagePurpose } from './events.ts';
import type { Hook, HookContext, HookRecord } from './hooks.ts';
import type { JsonObject } from './json.ts';
import type { LLM, LLMScope, Notice } from './llm.ts';
import type { Message, UserMessage } from './message.ts';
import { systemRuntime, type Runtime } from './runtime.ts';
import type { ToolAccess } from './tool-access.ts';
import type { AnyTool, ChildEvent } from './tool.ts';
import { errorOutcome, type ToolOutcome } from './tool-result.ts';
import { addUsage, NO_USAGE, toUsage, type Usage } from './usage.ts';

/** Where an abort came from; `failure` is the loop's own, such as a recorder that failed. */
export type AbortCause = 'signal' | 'control' | 'deadline' | 'failure';

/** Options of {@link createTurnScope}. */
export interface TurnScopeOptions {
  /** Takes every event of the turn. */
  readonly dispatchEvent: DispatchEvent;
  /** Gives the history, for hooks and requests. */
  readonly buildMessages: () => Promise<readonly Message[]> | readonly Message[];
  /** @defaultValue one from the runtime */
  readonly turnId?: string | undefined;
  /** @defaultValue none */
  readonly hooks?: readonly Hook[] | undefined;
  /** @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
  /** Handed to tools and hooks untouched. */
  readonly host?: unknown;
  /** JSON on every event of the turn. */
  readonly metadata?: JsonObject | undefined;
  /** Aborts the turn. */
  readonly signal?: AbortSignal | undefined;
  /** Aborts the turn after so many milliseconds. @defaultValue none */
  readonly deadlineMs?: number | undefined;
  /** How long an aborted turn may take to settle, in milliseconds. @defaultValue 2000: enough for a child process to end */
  readonly graceMs?: number | undefined;
  /** Most tool calls at once. @defaultValue 8 */
  readonly maxParallelTools?: number | undefined;
}

/** Grace of an aborted turn, in milliseconds. */
const DEFAULT_GRACE_MS = 2000;
/** Tool calls at once. */
const DEFAULT_MAX_PARALLEL_TOOLS = 8;
/** When the stages of the grace end, as shares of it: each has time left that the one before cannot use up. */
const STAGE_ENDS = { work: 0.75, review: 0.875, records: 1 } as const;

/** Thrown inside the loop when waiting is over: the turn was aborted and its grace has passed. */
class GraceOver extends Error {
  override readonly name: string = 'GraceOver';
}

/** A tool that is not waited for any more and has not let go of what it touches. */
export interface LingeringTool {
  /** What it touches. */
  readonly accesses: readonly ToolAccess[];
  /** Resolves when it has let go, or was given up. */
  readonly gone: Promise<void>;
}

/** Makes the scope of one turn. Call `close` when the turn is over. */
export function createTurnScope(options: TurnScopeOptions): TurnScope {
  return new TurnScope(options);
}

/** Type of an event before the scope puts turn, time and metadata on it. */
export type Unstamped<Event> = Event extends unknown ? Omit<Event, 'turnId' | 'at' | 'metadata'> : never;

/** What all parts of a running turn share. Made by {@link createTurnScope}. */
export class TurnScope {
  /** The turn. */
  readonly turnId: string;
  /** Clock, timers, ids and randomness. */
  readonly runtime: Runtime;
  /** The host's own value. */
  readonly host: unknown;
  /** Hooks in list order. */
  readonly hooks: readonly Hook[];
  /** Most tool calls at once. */
  readonly maxParallelTools: number;
  /** Milliseconds that an aborted turn may take. */
  readonly graceMs: number;
  /** The turn's input, as it is recorded. */
  input: readonly UserMessage[] = [];
  /** Tokens spent so far. */
  usage: Usage = NO_USAGE;
  /** Tokens by model, in order of first use. */
  readonly usageByModel: Map<string, Usage> = new Map<string, Usage>();
  /** Why the turn was aborted; undefined while it was not. */
  abortCause: AbortCause | undefined;
  /** What the recorder failed with. */
  recorderError: TurnloopError | undefined;

  /** Tools that time has run out for and that still run: calls that conflict with them wait. */
  readonly lingering: Set<LingeringTool> = new Set<LingeringTool>();

  readonly #dispatch: DispatchEvent;
  readonly #buildMessages: TurnScopeOptions['buildMessages'];
  readonly #metadata: JsonObject | undefined;
  readonly #controller = new AbortController();
  readonly #onAbort = new Set<() => void>();
  readonly #stages = { work: new Stage(), review: new Stage(), records: new Stage() };
  readonly #cleanups: (() => void)[] = [];
  #recordTail: Promise<void> | undefined;
  #sealed = false;
  #closed = false;

  constructor(options: TurnScopeOptions) {
    this.runtime = options.runtime ?? systemRuntime;
    this.turnId = options.turnId ?? this.runtime.createId('turn');
    // A copy: a hook that takes itself off the host's list must not hide the one behind it.
    this.hooks = [...(options.hooks ?? [])];
    this.host = options.host;
    this.graceMs = options.graceMs ?? DEFAULT_GRACE_MS;
    this.maxParallelTools = options.maxParallelTools ?? DEFAULT_MAX_PARALLEL_TOOLS;
    this.#dispatch = options.dispatchEvent;
    this.#buildMessages = options.buildMessages;
    this.#metadata = options.metadata;
    this.#watchSignal(options.signal);
    if (options.deadlineMs !== undefined) {
      const { deadlineMs } = options;
      const cancel = this.runtime.setTimer(deadlineMs, () => {
        this.abort('deadline', new TurnloopError('deadline', `The turn's time limit of ${deadlineMs} ms was reached.`));
      });
      this.#cleanups.push(cancel);
    }
  }

  /** Aborts with the turn, and with it only. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** True once the turn was aborted, for whatever cause. */
  get isAborted(): boolean {
    return this.abortCause !== undefined;
  }

  /** The stop reason of an aborted turn. */
  get abortStopReason(): 'aborted' | 'deadline' {
    return this.abortCause === 'deadline' ? 'deadline' : 'aborted';
  }

  /** True if a person cancelled the turn. */
  get isUserCancel(): boolean {
    return this.isAborted && isUserCancel(this.signal.reason);
  }

  #watchSignal(signal: AbortSignal | undefined): void {
    if (signal === undefined) return;
    const onAbort = (): void => {
      this.abort('signal', signal.reason);
    };
    if (signal.aborted) onAbort();
    else {
      signal.addEventListener('abort', onAbort, { once: true });
      this.#cleanups.push(() => {
        signal.removeEventListener('abort', onAbort);
      });
    }
  }

  /** Aborts the turn; only the first abort counts. */
  abort(cause: AbortCause, reason: unknown): void {
    if (this.isAborted || this.#closed) return;
    this.abortCause = cause;
    this.#startGrace();
    this.#controller.abort(reason ?? new TurnloopError('abort', 'The turn was aborted.'));
    for (const callback of [...this.#onAbort]) callback();
  }

  #startGrace(): void {
    const { runtime, graceMs } = this;
    for (const name of ['work', 'review', 'records'] as const) {
      const cancel = runtime.setTimer(graceMs * STAGE_ENDS[name], () => {
        this.#stages[name].end();
      });
      this.#cleanups.push(cancel);
    }
  }

  /**
   * Keeps a tool that is not waited for any more in its place, until it lets go. One that never does holds others up for
   * the grace of an aborted turn, no longer.
   */
  linger(accesses: readonly ToolAccess[], work: PromiseLike<unknown>): LingeringTool {
    let resolve = (): void => undefined;
    const gone = new Promise<void>((settle) => {
      resolve = settle;
    });
    const tool: LingeringTool = { accesses, gone };
    const letGo = (): void => {
      cancelTimer();
      this.lingering.delete(tool);
      resolve();
    };
    const cancelTimer = this.runtime.setTimer(this.graceMs, letGo);
    this.#cleanups.push(cancelTimer);
    this.lingering.add(tool);
    work.then(letGo, letGo);
    return tool;
  }

  /**
   * Calls back when the turn is aborted; at once if it is already.
   *
   * @returns Takes the callback back.
   */
  onAbort(callback: () => void): () => void {
    if (this.isAborted) {
      callback();
      return () => undefined;
    }
    this.#onAbort.add(callback);
    return () => {
      this.#onAbort.delete(callback);
    };
  }

  /**
   * Waits for something foreign. Rejects when the turn was aborted and the grace for foreign work has passed; what comes
   * of it later is swallowed.
   */
  bound<Value>(work: PromiseLike<Value>): Promise<Value> {
    return this.#stages.work.race(work);
  }

  /** {@link bound} for a value that may be there already. */
  settle<Value>(work: PromiseLike<Value> | Value): Promise<Value> | Value {
    return isThenable(work) ? this.bound<Value>(work as PromiseLike<Value>) : (work as Value);
  }

  /** {@link settle} for the last look at a result, which comes after the work. */
  settleReview<Value>(work: PromiseLike<Value> | Value): Promise<Value> | Value {
    return isThenable(work) ? this.#stages.review.race(work as PromiseLike<Value>) : (work as Value);
  }

  /** Calls back when foreign work is not waited for any more; undefined if that has happened already. */
  onWorkOver(callback: () => void): (() => void) | undefined {
    return this.#stages.work.onEnd(callback);
  }

  /**
   * Records an event: resolves once it is durable; undefined if the recorder is done already.
   *
   * @throws {@link index.TurnloopError | TurnloopError} `recorder_failed` (or the store's own error), now or as a rejection,
   * also for every event after the first that failed; `turn_over` behind the event that ends the turn.
   */
  record(event: Unstamped<RecordedEvent>): Promise<void> | undefined {
    if (this.#sealed) throw new TurnloopError('turn_over', 'The turn is over: nothing more of it is recorded.');
    return this.#enqueue(event);
  }

  /** Records the event that ends or suspends the turn: behind it nothing more is recorded. */
  recordLast(event: Unstamped<RecordedEvent>): Promise<void> | undefined {
    this.#sealed = true;
    return this.#enqueue(event);
  }

  #enqueue(event: Unstamped<RecordedEvent>): Promise<void> | undefined {
    if (this.#recordTail !== undefined) return this.#follow(this.#recordTail.then(() => this.#write(event)));
    const written = this.#write(event);
    return written === undefined ? undefined : this.#follow(written);
  }

  #write(event: Unstamped<RecordedEvent>): Promise<void> | undefined {
    if (this.recorderError !== undefined) throw this.recorderError;
    if (this.#closed || this.#stages.records.isOver) throw new GraceOver('The turn is over.');
    try {
      const recorded = this.#dispatch(this.#stamp(event));
      if (!isThenable(recorded)) return undefined;
      return this.#stages.records.race(recorded).catch((error: unknown) => {
        throw this.#recorderFailed(error);
      });
    } catch (error) {
      throw this.#recorderFailed(error);
    }
  }

  /** Makes a write the one that the next has to wait for. */
  #follow(write: Promise<void>): Promise<void> {
    this.#recordTail = write;
    const done = (): void => {
      if (this.#recordTail === write) this.#recordTail = undefined;
    };
    write.then(done, done);
    return write;
  }

  #recorderFailed(error: unknown): Error {
    if (error instanceof GraceOver || error === this.recorderError) return error as Error;
    // A store's own typed error says more than we could.
    this.recorderError = isTurnloopError(error) ? error : new TurnloopError('recorder_failed', `The recorder failed: ${messageOf(error)}`, { cause: error });
    this.abort('failure', this.recorderError);
    return this.recorderError;
  }

  /** Emits a live event. Never throws; does nothing once the turn is over. */
  emit(event: Unstamped<LiveEvent>): void {
    if (this.#closed) return;
    this.#publish(this.#stamp(event));
  }

  /** Emits a fragment of a reply: {@link emit} without a second object for each. */
  emitDelta(delta: TextDeltaEvent | ThinkingDeltaEvent | ToolCallDeltaEvent): void {
    if (this.#closed) return;
    this.#publish(this.#metadata === undefined ? delta : { ...delta, metadata: this.#metadata });
  }

  /** Emits an event of a sub-agent below a call of this turn. */
  forward(toolCallId: string, event: ChildEvent): void {
    if (this.#closed) return;
    const agentPath = [toolCallId, ...(event.agentPath ?? [])];
    // A child's events are events of a turn, whatever the tool says: it gets them from a turn of its own.
    this.#publish({ ...event, agentPath } as unknown as ForwardedEvent);
  }

  #publish(event: LoopEvent): void {
    try {
      const returned: unknown = this.#dispatch(event);
      if (isThenable(returned)) returned.then(undefined, () => undefined);
    } catch {
      // A listener that fails changes nothing (law 7); a dispatcher of ours has reported it already.
    }
  }

  /** Puts turn, time and metadata on an event, in place: every event here is an object that was just made for it. */
  #stamp(event: Unstamped<RecordedEvent | LiveEvent>): LoopEvent {
    const stamp = event as { turnId?: string; at?: number; metadata?: JsonObject };
    stamp.turnId = this.turnId;
    stamp.at = this.runtime.now();
    if (this.#metadata !== undefined) stamp.metadata = this.#metadata;
    // An event without its stamp, stamped again, is that event.
    return event as LoopEvent;
  }

  /** Records tokens and adds them to the turn's. They count even if the recorder fails. */
  recordUsage(
    spent: Usage,
    about: { readonly modelId: string; readonly purpose: UsagePurpose; readonly step?: number; readonly stepId?: string },
  ): Promise<void> | undefined {
    const usage = toUsage(spent);
    if (this.#sealed) return undefined;
    this.usage = addUsage(this.usage, usage);
    this.usageByModel.set(about.modelId, addUsage(this.usageByModel.get(about.modelId) ?? NO_USAGE, usage));
    return this.record({ type: 'usage', ...about, usage });
  }

  /** Emits a notice. */
  notify(notice: Notice): void {
    this.emit({ type: 'notice', name: notice.name, data: notice.data });
  }

  /** True if any hook has this point: most turns have none for most. */
  hasHook(point: keyof Hook): boolean {
    return this.hooks.some((hook) => hook[point] !== undefined);
  }

  /** Reports a failed hook. */
  hookFailed(hook: Hook, point: string, error: unknown): void {
    this.notify({ name: 'hook.failed', data: { hook: hook.name, point, message: messageOf(error) } });
  }

  /** The history as the next request would have it. */
  messages(): Promise<readonly Message[]> | readonly Message[] {
    return this.settle(this.#buildMessages());
  }

  /** What decorators of the model get. */
  llmScope(step: number, stepId: string): LLMScope {
    return {
      turnId: this.turnId,
      step,
      stepId,
      runtime: this.runtime,
      notify: (notice) => {
        this.notify(notice);
      },
    };
  }

  /** What the hooks of a step get. */
  hookContext(step: number, setUp: StepSetUp): HookContext {
    return new ScopedHookContext(this, step, setUp);
  }

  /** Records what a hook or recovery may record. One that does not wait for it leaves no unhandled rejection. */
  recordForHook(event: HookRecord): Promise<void> {
    const write = async (): Promise<void> => {
      await (event.type === 'usage' ? this.recordUsage(event.usage, event) : this.record({ ...event }));
    };
    const written = write();
    written.catch(() => undefined);
    return written;
  }

  /** Ends the scope: nothing is recorded, emitted or waited for any more. */
  close(): void {
    this.#closed = true;
    for (const cleanup of this.#cleanups) cleanup();
    this.#onAbort.clear();
    for (const stage of Object.values(this.#stages)) stage.end();
  }
}

/** The model and the tools of a step. */
export interface StepSetUp {
  /** The model. */
  readonly llm: LLM;
  /** The tools. */
  readonly tools: readonly AnyTool[];
}

class ScopedHookContext implements HookContext {
  readonly turnId: string;
  readonly step: number;
  readonly signal: AbortSignal;
  readonly llm: LLM;
  readonly tools: readonly AnyTool[];
  readonly input: readonly UserMessage[];
  readonly runtime: Runtime;
  readonly host: unknown;
  readonly #scope: TurnScope;

  constructor(scope: TurnScope, step: number, { llm, tools }: StepSetUp) {
    this.turnId = scope.turnId;
    this.step = step;
    this.signal = scope.signal;
    this.llm = llm;
    this.tools = tools;
    this.input = scope.input;
    this.runtime = scope.runtime;
    this.host = scope.host;
    this.#scope = scope;
  }

  get usage(): Usage {
    return this.#scope.usage;
  }

  // Bound to the context, so that a hook can take it apart: `({ notify, record }) => …`.
  readonly messages = async (): Promise<readonly Message[]> => this.#scope.messages();
  readonly record = (event: HookRecord): Promise<void> => this.#scope.recordForHook(event);
  readonly notify = (notice: Notice): void => {
    this.#scope.notify(notice);
  };
}

/** A stage of the grace: waits that end with it. */
class Stage {
  isOver = false;
  readonly #waiting = new Set<(reason: Error) => void>();

  /** The outcome of some work, or a rejection when the stage ends. What comes of the work later is swallowed. */
  race<Value>(work: PromiseLike<Value>): Promise<Value> {
    return new Promise<Value>((resolve, reject) => {
      const stop = this.onEnd(reject);
      work.then(
        (value) => {
          stop?.();
          resolve(value);
        },
        (error: unknown) => {
          stop?.();
          reject(error);
        },
      );
      if (stop === undefined) reject(new GraceOver(GRACE_OVER));
    });
  }

  onEnd(callback: (reason: Error) => void): (() => void) | undefined {
    if (this.isOver) return undefined;
    this.#waiting.add(callback);
    return () => {
      this.#waiting.delete(callback);
    };
  }

  end(): void {
    this.isOver = true;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const callback of waiting) callback(new GraceOver(GRACE_OVER));
  }
}

const GRACE_OVER = 'The turn was aborted and its grace is over.';

/** What a call is told that a person cancelled, with its turn or alone. */
const CANCELLED =
  'The user cancelled this call on purpose. That is not a fault: do not repeat it unless the user asks, and wait for the user.';

/** What a call that the turn's abort caught is told. */
export function abortOutcome(scope: TurnScope, started: boolean): ToolOutcome {
  if (scope.isUserCancel) return errorOutcome(CANCELLED);
  const why = scope.abortCause === 'deadline' ? "The turn's time limit was reached" : 'The turn was aborted';
  return errorOutcome(
    started
      ? `${why} while this call was running: its effects may have happened in part.`
      : `${why} before this call started: it was not run.`,
  );
}
