/**
 * Session: a conversation with an agent, as its host sees it. Types only.
 */
import type { JsonObject } from '../core/json.ts';
import type { Message, UserMessage } from '../core/message.ts';
import type { PendingCall, ToolCallDecision } from '../core/tool.ts';
import type { OpenTurn } from '../core/transcript.ts';
import type { Usage } from '../core/usage.ts';
import type { CompactionReport } from '../context/compact-now.ts';
import type { SessionEvent, SessionHeader, SessionRepair } from '../sessions/session-store.ts';
import type { QueuedInput } from './session-queue.ts';
import type { AgentTurnEvent, Turn } from './turn.ts';
import type { UndoOptions, UndoReport } from './undo.ts';

/** What starts a turn: a text, a message, or several. */
export type AgentInput = string | UserMessage | readonly UserMessage[];

/** Options of a turn. */
export interface TurnOptions {
  /** Aborts the turn. */
  readonly signal?: AbortSignal | undefined;
  /** Aborts the turn after so many milliseconds. @defaultValue the agent's */
  readonly deadlineMs?: number | undefined;
  /** Any value, handed to tools, hooks and a `systemPrompt` function untouched; never recorded. */
  readonly host?: unknown;
  /** Body of a skill, put into the system prompt of this turn only. A resume of the turn needs it again. @defaultValue none */
  readonly skill?: string | undefined;
}

/** Options of {@link Session.run}. */
export interface RunOptions extends TurnOptions {
  /** JSON put on every event of the turn. */
  readonly metadata?: JsonObject | undefined;
  /**
   * What to do about a turn that waits for decisions, or was left by a crash: true gives it up, with every call of it that
   * has no result closed as not executed.
   *
   * @defaultValue false: the input is refused
   */
  readonly denyPending?: boolean | undefined;
}

/** Options of {@link Session.resume}. */
export interface ResumeTurnOptions extends TurnOptions {
  /** Decisions about pending calls, those of sub-agents too; a call without one stays pending. @defaultValue none */
  readonly decisions?: readonly ToolCallDecision[] | undefined;
}

/** Options of {@link Session.compact}. */
export interface CompactSessionOptions {
  /** What is to be kept above all, in words. @defaultValue empty */
  readonly focus?: string | undefined;
  /** Ends it. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * `idle`: a turn may start. `running`: one does, or an undo or a compaction is under way. `suspended`: one waits for decisions. `interrupted`: one was left by a crash
 * or by a log that failed, and can be gone on with. `closed`: nothing more happens here.
 */
export type SessionStatus = 'idle' | 'running' | 'suspended' | 'interrupted' | 'closed';

/** What a listener of a session hears: every event of its turns, and what happens to the session itself. */
export type SessionListener = (event: AgentTurnEvent | SessionEvent) => unknown;

/** A conversation with an agent. Made by `agent.openSession`. */
export interface Session<Output = unknown> {
  /** Id of the session. */
  readonly sessionId: string;
  /** What it began with. */
  readonly header: SessionHeader;
  /** What had to be repaired when it was opened; mostly nothing. */
  readonly repairs: readonly SessionRepair[];
  /** Whether a turn may start. */
  readonly status: SessionStatus;
  /** Name of the agent that has the conversation. */
  readonly agent: string;
  /** Tokens spent, over all turns. */
  readonly usage: Usage;
  /** Turns begun. */
  readonly turns: number;
  /** The turn that runs; undefined if none does. */
  readonly turn: Turn<Output> | undefined;
  /** Inputs that wait for their turn, oldest first. */
  readonly queue: readonly QueuedInput<Output>[];
  /** The history, as the next request would have it, without what was remembered. */
  messages(): readonly Message[];
  /** The turn that was begun and is not over, as far as it is recorded. One whose input was lost with its process is none. */
  openTurn(): OpenTurn | undefined;
  /** Calls that wait for a decision, those of sub-agents too; for `session.resume({ decisions })`. */
  pending(): readonly PendingCall[];
  /**
   * Starts a turn.
   *
   * @throws {@link sessions.SessionError | SessionError} `turn_running`; `turn_open` for one that waits for decisions or was
   * left by a crash, unless `denyPending` says to give it up; `message_exists` for a message that the history has;
   * `session_closed`. TypeError for an input that is none, or blank.
   */
  run(input: AgentInput, options?: RunOptions): Turn<Output>;
  /**
   * Goes on with the turn that is open: after decisions were made, or after a crash.
   *
   * @throws {@link sessions.SessionError | SessionError} `no_open_turn`, `not_pending` for a decision about a call
   * that does not wait for one, `turn_running`, `session_closed`.
   */
  resume(options?: ResumeTurnOptions): Turn<Output>;
  /**
   * Queues an input: it gets its turn when those before it are over, at once if the session is idle. Resolves once it is
   * durable: it survives a crash.
   *
   * Queued inputs start by themselves behind a turn that came to an end of its own, also at a step limit; not behind one
   * that was aborted, stopped, suspended, or failed, and not when a session is opened: then the next `run`, `runQueued` or
   * `followUp` goes on. An input whose id is queued already is not queued again.
   *
   * @throws {@link sessions.SessionError | SessionError} `message_exists` for a message that the history has, `session_closed`,
   * `store_failed`. TypeError for an input that is none, or blank.
   */
  followUp(input: string | UserMessage): Promise<QueuedInput<Output>>;
  /**
   * Starts the next queued input now.
   *
   * @returns Its turn; undefined if nothing is queued.
   * @throws {@link sessions.SessionError | SessionError} `turn_running`, `turn_open`, `session_closed`.
   */
  runQueued(): Turn<Output> | undefined;
  /**
   * Puts what is queued into the running turn instead, before its next request. What it does not deliver stays queued.
   *
   * @returns How many were delivered.
   */
  steerQueued(): Promise<number>;
  /**
   * Holds the queue: nothing queued starts until it is released. For work that needs the session at rest.
   *
   * @returns Releases it.
   * @throws {@link sessions.SessionError | SessionError} `turn_running`, `session_closed`.
   */
  hold(): () => void;
  /**
   * Takes a person's messages back, with everything that came of them. The events stay in the log.
   *
   * @throws {@link sessions.SessionError | SessionError} `turn_running`, `turn_open`, `not_in_session`, `session_closed`.
   */
  undo(options?: UndoOptions): Promise<UndoReport>;
  /**
   * Summarises the history now.
   *
   * @throws {@link sessions.SessionError | SessionError} `turn_running`, `turn_open`, `session_closed`; what
   * `ContextPolicy.compact` throws.
   */
  compact(options?: CompactSessionOptions): Promise<CompactionReport>;
  /** Every event of the session, oldest first, read from its store. */
  events(): Promise<readonly SessionEvent[]>;
  /** Hears every event from now on, of all turns. A listener that fails changes nothing. @returns Ends it. */
  subscribe(listener: SessionListener): () => void;
  /** Resolves once no turn runs and no queued input is about to start. */
  idle(): Promise<void>;
  /**
   * Ends the session here: aborts a running turn or compaction, keeps what is queued, waits for what is being remembered, takes
   * a last snapshot, and lets go of the store. Doing it again changes nothing.
   */
  close(): Promise<void>;
}
