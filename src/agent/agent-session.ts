/**
 * Agent session: runs the turns of a session, one at a time, and keeps its record.
 *
 * - An event is in the log before the state has it, and in the state before anybody hears of it.
 * - Nothing queued starts behind a failure, an abort or a stop, nor in a session just opened: it waits until it is asked for.
 * - After `close` nothing is written, and no turn runs.
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import { isTurnloopError, messageOf, TurnloopError } from '../core/errors.ts';
import { createEventDispatcher, isRecordedEvent, isThenable } from '../core/event-dispatcher.ts';
import type { CompactionEdit, LoopEvent, RecordedEvent } from '../core/events.ts';
import { userMessage, type Message, type UserMessage } from '../core/message.ts';
import { closeOpenTurn, runTurn } from '../core/run-turn.ts';
import type { Runtime } from '../core/runtime.ts';
import type { TurnStopReason } from '../core/stop-reason.ts';
import type { PendingCall, ToolCallDecision } from '../core/tool.ts';
import type { OpenTurn } from '../core/transcript.ts';
import { createTurnControl, type SteerOutcome, type TurnControl } from '../core/turn-control.ts';
import { assertDecisions, inputOf } from '../core/turn-options.ts';
import { NO_USAGE, type Usage } from '../core/usage.ts';
import type { CompactionReport } from '../context/compact-now.ts';
import type { MemoryOwner } from '../memory/memory-store.ts';
import { type HandoffEvent, SessionError, type SessionEvent, type SessionHeader, type SessionLog, type SessionRepair } from '../sessions/session-store.ts';
import { assertInput, assertNew, assertOneInput } from './agent-input.ts';
import { EventStream } from './event-stream.ts';
import type { AgentInput, CompactSessionOptions, ResumeTurnOptions, RunOptions, Session, SessionListener, SessionStatus } from './session.ts';
import type { CastSession, SessionCast } from './session-cast.ts';
import { SessionQueue, type QueuedInput } from './session-queue.ts';
import type { SessionState } from './session-state.ts';
import type { SubAgentLog } from './sub-agent-record.ts';
import type { AgentTurnEvent, AgentTurnResult, Turn } from './turn.ts';
import { planUndo, type UndoOptions, type UndoReport } from './undo.ts';

/** What a session is made with. */
export interface SessionParts<Output> {
  readonly log: SessionLog;
  readonly state: SessionState;
  readonly repairs: readonly SessionRepair[];
  /** The agents that may have the conversation, and what they bring to a turn. */
  readonly cast: (session: CastSession) => SessionCast<Output>;
  /** Whose memory it recalls and adds to. */
  readonly memoryOwners: readonly MemoryOwner[];
  /** Reads the log from its beginning. */
  readonly readEvents: () => Promise<readonly SessionEvent[]>;
}

/** Ends after which what is queued waits to be asked for: a person, a limit or a failure said stop. */
const HOLDING: ReadonlySet<TurnStopReason> = new Set([
  'aborted',
  'stopped',
  'suspended',
  'fatal_error',
  'deadline',
  'max_budget',
  'circuit_breaker',
  'context_overflow',
]);

/** A snapshot costs as much as the history is long: it is due when at least as many events have come, and not for fewer. */
const LEAST_EVENTS_OF_SNAPSHOT = 100;

/** A turn that runs. */
interface Running<Output> {
  readonly turn: Turn<Output>;
  readonly stream: EventStream<AgentTurnEvent>;
}

/** What is to be run. */
interface Job {
  readonly options: RunOptions & ResumeTurnOptions;
  readonly input?: AgentInput | undefined;
  /** Set to go on with an open turn. */
  readonly open?: OpenTurn | undefined;
}

/** The ways of one turn to the outside. */
interface TurnWays {
  readonly turnId: string;
  readonly control: TurnControl;
  readonly stream: EventStream<AgentTurnEvent>;
}

const RUN_ARGUMENT = { taker: 'session.run', example: "session.run('Hello')" };
const RUN_OPTIONS: Readonly<Record<keyof RunOptions, true>> = { signal: true, deadlineMs: true, host: true, skill: true, metadata: true, denyPending: true };
const RESUME_ARGUMENT = { taker: 'session.resume', example: "session.resume({ decisions: [{ toolCallId, action: 'allow' }] })" };
const RESUME_OPTIONS: Readonly<Record<keyof ResumeTurnOptions, true>> = { signal: true, deadlineMs: true, host: true, skill: true, decisions: true };

export class AgentSession<Output> implements Session<Output> {
  readonly #log: SessionLog;
  readonly #state: SessionState;
  readonly #cast: SessionCast<Output>;
  readonly #readEvents: () => Promise<readonly SessionEvent[]>;
  readonly #queue: SessionQueue<Output>;
  readonly #listeners = new Set<SessionListener>();
  readonly repairs: readonly SessionRepair[];
  #running: Running<Output> | undefined;
  /** Something else than a turn has the session: an undo, a compaction. */
  #busyWith: string | undefined;
  #holds = 0;
  /** What is queued waits to be asked for. */
  #queueRests = true;
  /** Events on their way into the log. */
  #appending = 0;
  /** Why nothing more is written for the running turn. */
  #turnFailure: { readonly error: unknown } | undefined;
  #closing: Promise<void> | undefined;
  /** Aborts, when the session is closed, what has no turn to be aborted with. */
  readonly #closed = new AbortController();
  /** What goes on beside the turns, such as a snapshot: waited for before the log is let go. */
  readonly #work = new Set<Promise<void>>();

  constructor({ log, state, repairs, cast, memoryOwners, readEvents }: SessionParts<Output>) {
    this.#log = log;
    this.#state = state;
    this.#cast = cast({
      sessionId: log.header.sessionId,
      state,
      memoryOwners,
      append: (event) => this.#append(event),
      openSubAgentLog: (toolCallId) => this.#openSubAgentLog(toolCallId),
    });
    this.#readEvents = readEvents;
    this.repairs = repairs;
    this.#queue = new SessionQueue({
      remove: (messageId) => this.#append({ type: 'input.removed', at: this.#runtime.now(), messageId }),
    });
    for (const message of state.queue) this.#queue.add(message);
  }

  get sessionId(): string {
    return this.#log.header.sessionId;
  }

  get header(): SessionHeader {
    return this.#log.header;
  }

  get status(): SessionStatus {
    if (this.#closing !== undefined) return 'closed';
    if (this.#running !== undefined || this.#busyWith !== undefined) return 'running';
    const open = this.openTurn();
    if (open === undefined) return 'idle';
    return open.suspended ? 'suspended' : 'interrupted';
  }

  get agent(): string {
    return this.#cast.agent;
  }

  get usage(): Usage {
    return this.#state.usage;
  }

  get turns(): number {
    return this.#state.turns;
  }

  get turn(): Turn<Output> | undefined {
    return this.#running?.turn;
  }

  get queue(): readonly QueuedInput<Output>[] {
    return this.#queue.inputs;
  }

  get #runtime(): Runtime {
    return this.#cast.runtime;
  }

  messages(): readonly Message[] {
    return this.#state.transcript.buildMessages();
  }

  openTurn(): OpenTurn | undefined {
    const open = this.#state.transcript.openTurn();
    // One that died before its input was kept has nothing to go on with: the next turn ends it.
    return open !== undefined && open.missingInput > 0 ? undefined : open;
  }

  pending(): readonly PendingCall[] {
    return (this.openTurn()?.step?.calls ?? []).flatMap((call) => call.suspended?.pending ?? []);
  }

  run(input: AgentInput, options: RunOptions = {}): Turn<Output> {
    assertOptions(options, RUN_OPTIONS, RUN_ARGUMENT);
    assertInput(input, RUN_ARGUMENT.example);
    this.#assertFree('session.run');
    assertNew(input, this.messages(), this.sessionId);
    if (options.denyPending !== true) this.#assertNoOpenTurn('An input');
    return this.#start({ options, input });
  }

  resume(options: ResumeTurnOptions = {}): Turn<Output> {
    assertOptions(options, RESUME_OPTIONS, RESUME_ARGUMENT);
    assertDecisions(options.decisions ?? [], 'decisions');
    this.#assertFree('session.resume');
    const open = this.openTurn();
    if (open === undefined) throw new SessionError('no_open_turn', `No turn of session "${this.sessionId}" is open: there is none to go on with. Start one with session.run(input).`);
    this.#assertPending(open, options.decisions);
    return this.#start({ options, open });
  }

  /** A decision about a call that does not wait, such as one that was decided before, would change nothing and say nothing. */
  #assertPending({ turnId, step }: OpenTurn, decisions: readonly ToolCallDecision[] = []): void {
    const suspended = (step?.calls ?? []).flatMap((call) => call.suspended ?? []);
    const ids = new Set(suspended.flatMap(({ toolCallId, pending }) => [toolCallId, ...pending.map((call) => call.toolCallId)]));
    const unknown = decisions.find(({ toolCallId }) => !ids.has(toolCallId));
    if (unknown === undefined) return;
    throw new SessionError('not_pending', `Call "${unknown.toolCallId}" of turn "${turnId}" does not wait for a decision; ${ids.size === 0 ? 'none does' : `these do: ${[...ids].join(', ')}`}. session.pending() tells.`);
  }

  async followUp(input: string | UserMessage): Promise<QueuedInput<Output>> {
    assertOneInput(input, "session.followUp('And then?')");
    this.#assertOpen();
    const message = typeof input === 'string' ? userMessage(input) : input;
    const named = message.id === '' ? { ...message, id: this.#runtime.createId('message') } : message;
    await this.#queue.settled(named.id);
    const known = this.#queue.get(named.id);
    if (known !== undefined) return known;
    assertNew(named, this.messages(), this.sessionId);
    await this.#append({ type: 'input.queued', at: this.#runtime.now(), message: named });
    const queued = this.#queue.add(named);
    this.#queueRests = false;
    // It is in the log: whoever closed the session meanwhile finds it queued when it is opened again.
    if (this.#closing !== undefined) this.#queue.close();
    else this.#startQueued();
    return queued;
  }

  runQueued(): Turn<Output> | undefined {
    this.#assertFree('session.runQueued');
    this.#assertNoOpenTurn('A queued input');
    return this.#startQueued();
  }

  async steerQueued(): Promise<number> {
    this.#assertOpen();
    const turn = this.#running?.turn;
    if (turn === undefined) return 0;
    return this.#queue.steerInto(async (message): Promise<SteerOutcome> => turn.steer(message));
  }

  hold(): () => void {
    this.#assertFree('session.hold');
    this.#holds += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holds -= 1;
      if (!this.#queueRests) this.#startQueued();
    };
  }

  async undo(options: UndoOptions = {}): Promise<UndoReport> {
    assertOptions(options, { prompts: true, messageId: true }, { taker: 'session.undo', example: 'session.undo({ prompts: 1 })' });
    assertNumbers(options, { prompts: { least: 1, whole: true } }, { taker: 'session.undo', example: 'session.undo({ prompts: 1 })' });
    return this.#alone('session.undo', async () => {
      const before = this.messages();
      const { report, edits } = planUndo(before, options);
      const { messageId } = options;
      if (messageId !== undefined && report.undone === 0) {
        throw new SessionError('not_in_session', `No message "${messageId}" of a person is in the history of session "${this.sessionId}" since its last summary: nothing was taken back.`);
      }
      if (edits.length > 0) await this.#append(this.#cast.undoEvent(before, edits), ...(await this.#handBack(edits)));
      return report;
    });
  }

  /** Gives the conversation back to the agent that had it when the first message that is taken back came. */
  async #handBack([edit]: readonly CompactionEdit[]): Promise<readonly HandoffEvent[]> {
    const events = await this.#readEvents();
    const start = events.findLastIndex((event) => event.type === 'message' && event.message.id === edit?.from);
    const first = start === -1 ? undefined : events.slice(start).find((event) => event.type === 'handoff');
    if (first === undefined || first.from === this.agent) return [];
    return [{ type: 'handoff', at: this.#runtime.now(), turnId: this.#runtime.createId('turn'), from: this.agent, to: first.from }];
  }

  async compact(options: CompactSessionOptions = {}): Promise<CompactionReport> {
    assertOptions(options, { focus: true, signal: true }, { taker: 'session.compact', example: "session.compact({ focus: 'the open bugs' })" });
    return this.#alone('session.compact', () =>
      this.#cast.compact({
        ...options,
        signal: options.signal === undefined ? this.#closed.signal : AbortSignal.any([options.signal, this.#closed.signal]),
        // The policy records in the transcript by itself, behind the log.
        record: (event) => this.#append(event),
        transcript: { ...this.#state.transcript, record: () => undefined },
      }),
    );
  }

  events(): Promise<readonly SessionEvent[]> {
    return this.#readEvents();
  }

  subscribe(listener: SessionListener): () => void {
    if (typeof listener !== 'function') throw new TypeError('session.subscribe takes a function: session.subscribe((event) => …).');
    // One entry for each subscription, also of the same function.
    const own: SessionListener = (event) => listener(event);
    this.#listeners.add(own);
    return () => {
      this.#listeners.delete(own);
    };
  }

  async idle(): Promise<void> {
    while (this.#running !== undefined || this.#work.size > 0) {
      await this.#running?.turn.result.catch(() => undefined);
      await Promise.all(this.#work);
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#queue.close();
    this.#closed.abort(new TurnloopError('abort', 'The session was closed.'));
    this.#running?.turn.abort(new TurnloopError('abort', 'The session was closed.'));
    // An aborted turn settles within its grace.
    await this.#running?.turn.result.catch(() => undefined);
    await Promise.all(this.#work);
    this.#background(this.#saveSnapshot(1));
    await Promise.all(this.#work);
    this.#listeners.clear();
    await this.#log.close();
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) {
      throw new SessionError('session_closed', `Session "${this.sessionId}" was closed here. Open it again: agent.openSession({ resumeSessionId: '${this.sessionId}' }).`);
    }
  }

  #assertFree(taker: string): void {
    this.#assertOpen();
    if (this.#running !== undefined) {
      throw new SessionError(
        'turn_running',
        `${taker}: a turn of session "${this.sessionId}" is running. Steer it with turn.steer(message), queue an input with session.followUp(input), or wait for turn.result.`,
      );
    }
    if (this.#busyWith !== undefined) throw new SessionError('turn_running', `${taker}: ${this.#busyWith} is under way in session "${this.sessionId}". Wait for it.`);
  }

  #assertNoOpenTurn(what: string): void {
    const open = this.openTurn();
    if (open === undefined) return;
    const calls = this.pending().length;
    const why = open.suspended ? `waits for ${calls === 1 ? 'a decision about a call' : `decisions about ${calls} calls`}` : 'was begun and not ended';
    throw new SessionError(
      'turn_open',
      `${what} has to wait: turn "${open.turnId}" of session "${this.sessionId}" ${why}. ` +
        'Go on with it, session.resume({ decisions }), or give it up, session.run(input, { denyPending: true }).',
    );
  }

  /** Does something that no turn may run beside. */
  async #alone<Value>(taker: string, work: () => Promise<Value>): Promise<Value> {
    this.#assertFree(taker);
    this.#assertNoOpenTurn(taker);
    this.#busyWith = taker;
    const done = this.#endLostTurn().then(work);
    // Its caller is told what fails of it.
    this.#background(done.catch(() => undefined));
    try {
      return await done;
    } finally {
      this.#busyWith = undefined;
      if (!this.#queueRests) this.#startQueued();
    }
  }

  /** Ends a turn whose input was lost, so that what comes between turns stands between turns. */
  async #endLostTurn(): Promise<void> {
    const record = (event: RecordedEvent): Promise<void> => this.#append(event);
    await closeOpenTurn(this.#state.transcript, { dispatchEvent: createEventDispatcher({ record }), runtime: this.#runtime });
  }

  /** Makes events durable together, then part of the state. */
  async #record(events: readonly SessionEvent[]): Promise<void> {
    this.#appending += 1;
    try {
      await this.#log.append(events);
    } finally {
      this.#appending -= 1;
    }
    for (const event of events) {
      this.#state.record(event);
      if (event.type === 'message') this.#queue.delivered(event.message.id);
    }
  }

  /** The same for events that no turn dispatches, and lets them be heard of. */
  async #append(...events: readonly SessionEvent[]): Promise<void> {
    const recorded = this.#record(events);
    // Its caller is told what fails of it.
    this.#background(recorded.catch(() => undefined));
    await recorded;
    for (const event of events) {
      if (event.type === 'handoff') this.#running?.stream.push(event);
      this.#tell(event);
    }
  }

  /**
   * Writes for the running turn or a sub-agent of it. Once the store has failed one of them nothing more is written for any:
   * that a sub-agent failed, or was aborted by the failure, is not what became of it. All go on where they were.
   */
  async #write<Value>(write: () => Promise<Value>): Promise<Value> {
    if (this.#turnFailure !== undefined) throw this.#turnFailure.error;
    try {
      return await write();
    } catch (error) {
      if (!isTurnloopError(error) || error.code === 'store_failed') this.#turnFailure ??= { error };
      throw error;
    }
  }

  /** The log of a sub-agent below the session. */
  async #openSubAgentLog(toolCallId: string): Promise<SubAgentLog> {
    const log = await this.#write(() => this.#log.child(toolCallId));
    return {
      // Nothing but the events of its turn is ever put in.
      load: async () => (await this.#write(() => log.load())).events as readonly RecordedEvent[],
      record: (event) => this.#write(() => log.append([event])),
      close: () => log.close(),
    };
  }

  #tell(event: AgentTurnEvent | SessionEvent): void {
    for (const listener of this.#listeners) {
      try {
        const returned = listener(event);
        if (isThenable(returned)) returned.then(undefined, this.#cast.report);
      } catch (error) {
        this.#cast.report(error);
      }
    }
  }

  #start(job: Job): Turn<Output> {
    const control = createTurnControl();
    const turnId = job.open?.turnId ?? this.#runtime.createId('turn');
    this.#queueRests = false;
    const stream = new EventStream<AgentTurnEvent>((event) => event.type === 'handoff' || isRecordedEvent(event));
    const result = this.#run(job, { turnId, control, stream });
    // Whoever only iterates is told there.
    result.catch(() => undefined);
    const turn: Turn<Output> = { ...control, turnId, sessionId: this.sessionId, result, [Symbol.asyncIterator]: () => stream.read() };
    this.#running = { turn, stream };
    return turn;
  }

  async #run(job: Job, ways: TurnWays): Promise<AgentTurnResult<Output>> {
    // The caller gets the turn before anything happens.
    await Promise.resolve();
    try {
      const result = await this.#runJob(job, ways);
      // A closing tool that gives the answer ends the turn as well as words do.
      this.#finish(ways, { isWell: !HOLDING.has(result.stopReason) || result.output !== undefined });
      return result;
    } catch (error) {
      this.#finish(ways, { isWell: false, failure: { error } });
      throw error;
    }
  }

  async #runJob({ options, input, open }: Job, { turnId, control, stream }: TurnWays): Promise<AgentTurnResult<Output>> {
    this.#turnFailure = undefined;
    const record = withInput((events) => this.#write(() => this.#record(events)));
    const tell = (event: LoopEvent): void => {
      this.#tell(event);
    };
    try {
      if (open === undefined) await closeOpenTurn(this.#state.transcript, { dispatchEvent: createEventDispatcher({ record, emit: tell }), runtime: this.#runtime });
    } catch (error) {
      // The turn before could not be ended: the log fails, and this one would not get further.
      const failure = isTurnloopError(error) ? error : new TurnloopError('recorder_failed', `The recorder failed: ${messageOf(error)}`, { cause: error });
      return { turnId, stopReason: 'fatal_error', steps: 0, usage: NO_USAGE, usageByModel: [], text: '', error: failure, agent: this.agent };
    }
    const cast = this.#cast.beginTurn({ turnId, options, input: inputOf(input) });
    const { signal, metadata, host, decisions } = options;
    const emit = (event: LoopEvent): void => {
      stream.push(event);
      tell(event);
    };
    const result = await runTurn({
      ...cast,
      dispatchEvent: createEventDispatcher({ record, emit }),
      control,
      ...(open === undefined ? { turnId } : { resume: { turn: open, decisions } }),
      ...(input !== undefined && { input }),
      ...(signal !== undefined && { signal }),
      ...(metadata !== undefined && { metadata }),
      ...(options.deadlineMs !== undefined && { deadlineMs: options.deadlineMs }),
      host,
    });
    return this.#withoutQueued(await this.#cast.resultOf(result));
  }

  /** What was to be steered in and is queued still is not handed back as well: it would be said twice. */
  #withoutQueued({ undelivered = [], ...result }: AgentTurnResult<Output>): AgentTurnResult<Output> {
    const left = undelivered.filter(({ id }) => this.#queue.get(id) === undefined);
    return { ...result, ...(left.length > 0 && { undelivered: left }) };
  }

  /** The turn is over: the session is free before anybody hears of it. */
  #finish({ turnId, stream }: TurnWays, { isWell, failure }: { readonly isWell: boolean; readonly failure?: { readonly error: unknown } }): void {
    this.#running = undefined;
    this.#cast.endTurn();
    this.#queue.putBack();
    this.#queueRests = !isWell;
    if (this.#closing === undefined) {
      this.#background(this.#saveSnapshot(LEAST_EVENTS_OF_SNAPSHOT));
      if (isWell) {
        this.#background(this.#remember(turnId));
        this.#startQueued();
      }
    }
    stream.end(failure);
  }

  /** Learns from a turn beside those that follow, and records what it cost once none of them runs. */
  async #remember(turnId: string): Promise<void> {
    const spent = await this.#cast.remember(turnId);
    if (spent === undefined) return;
    while (this.#running !== undefined) await this.#running.turn.result.catch(() => undefined);
    await this.#append(spent);
  }

  #startQueued(): Turn<Output> | undefined {
    if (this.#closing !== undefined || this.#running !== undefined || this.#busyWith !== undefined || this.#holds > 0) return undefined;
    if (this.openTurn() !== undefined) return undefined;
    const messages = this.#queue.next(this.#cast.followUps === 'all' ? Infinity : 1);
    if (messages.length === 0) return undefined;
    const turn = this.#start({ options: {}, input: messages });
    this.#queue.started(messages, turn);
    return turn;
  }

  async #saveSnapshot(leastEvents: number): Promise<void> {
    // It has to cover all that is in the log: a later one will.
    if (this.#appending > 0) return;
    const { behindSnapshot } = this.#state;
    if (behindSnapshot < Math.max(leastEvents, leastEvents === 1 ? 1 : this.messages().length)) return;
    const snapshot = this.#state.snapshot({ sessionId: this.sessionId, at: this.#runtime.now(), learned: this.#cast.learned() });
    if (snapshot === undefined) return;
    this.#state.behindSnapshot = 0;
    await this.#log.saveSnapshot(snapshot);
  }

  /** Work beside the turns: what fails of it is reported, and changes nothing. */
  #background(work: Promise<unknown>): void {
    const tracked = work
      .then(
        () => undefined,
        (error: unknown) => {
          this.#cast.report(error);
        },
      )
      .finally(() => this.#work.delete(tracked));
    this.#work.add(tracked);
  }
}

/** Hands a turn's beginning on with its input: they become durable together, so that no turn is left whose input nobody has. */
function withInput(record: (events: readonly RecordedEvent[]) => Promise<void>): (event: RecordedEvent) => Promise<void> | void {
  let held: RecordedEvent[] = [];
  let missing = 0;
  return (event) => {
    if (event.type === 'turn.begin') missing = event.inputCount;
    else if (event.type === 'message') missing -= 1;
    else missing = 0;
    held.push(event);
    if (missing > 0) return undefined;
    const events = held;
    held = [];
    return record(events);
  };
}
