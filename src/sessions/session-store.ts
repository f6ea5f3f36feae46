/**
 * Session store: where the events of sessions are kept. Types, and the errors that every store has.
 *
 * - A session is a log of events, oldest first. It is the only source of truth: a snapshot only saves folding it.
 * - One writer for a session at a time. Whoever lost a session to another writer cannot write to it any more.
 * - An event is durable before `append` resolves. One that failed leaves the log as it was.
 * - Session ids are data: any text but the empty one, and two of them never share anything.
 */
import { TurnloopError } from '../core/errors.ts';
import type { RecordedEvent } from '../core/events.ts';
import type { JsonObject } from '../core/json.ts';
import type { UserMessage } from '../core/message.ts';
import type { TranscriptSnapshot } from '../core/transcript.ts';
import type { Usage } from '../core/usage.ts';

/** Version of the session format: of the log's header and of snapshots. Newer ones are refused. */
export const SESSION_VERSION = 1;

/** An input was queued, to be the input of a later turn: it has been, once a `message` event has its id. */
export interface InputQueuedEvent {
  /** Tells this shape from the others. */
  readonly type: 'input.queued';
  /** When, in milliseconds since the epoch. */
  readonly at: number;
  /** The input; its id names it. */
  readonly message: UserMessage;
}

/** A queued input was taken back. */
export interface InputRemovedEvent {
  /** Tells this shape from the others. */
  readonly type: 'input.removed';
  /** When, in milliseconds since the epoch. */
  readonly at: number;
  /** Id of the input's message. */
  readonly messageId: string;
}

/** The conversation went to another agent, which the session has from now on. */
export interface HandoffEvent {
  /** Tells this shape from the others. */
  readonly type: 'handoff';
  /** When, in milliseconds since the epoch. */
  readonly at: number;
  /** The turn in which it happened, or an id of its own. */
  readonly turnId: string;
  /** The call that asked for it; absent where one was taken back. */
  readonly toolCallId?: string | undefined;
  /** Name of the agent that had it. */
  readonly from: string;
  /** Name of the agent that has it now. */
  readonly to: string;
}

/** What is kept of a session: the events of its turns, and what happened to the session itself. */
export type SessionEvent = RecordedEvent | InputQueuedEvent | InputRemovedEvent | HandoffEvent;

/** What a session begins with. Plain JSON. */
export interface SessionHeader {
  /** Version of the format, {@link SESSION_VERSION}. */
  readonly version: number;
  /** Id of the session. */
  readonly sessionId: string;
  /** When it was made, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** Where it was forked from; absent for one that began empty. */
  readonly forkedFrom?: SessionFork | undefined;
  /** The host's JSON about it, such as a title or a user. */
  readonly metadata?: JsonObject | undefined;
}

/** Where a session was forked from. */
export interface SessionFork {
  /** The session. */
  readonly sessionId: string;
  /** The last turn that both share; absent if none. */
  readonly turnId?: string | undefined;
}

/** What the events of a session come to at one point, between turns. Plain JSON; never has a key in it. */
export interface SessionSnapshot {
  /** Version of the format, {@link SESSION_VERSION}. */
  readonly version: number;
  /** Id of the session. */
  readonly sessionId: string;
  /** When it was taken, in milliseconds since the epoch. */
  readonly at: number;
  /** How many events of the log it covers: a resume reads those behind. */
  readonly events: number;
  /** The transcript. */
  readonly transcript: TranscriptSnapshot;
  /** Turns begun. */
  readonly turns: number;
  /** Steps begun. */
  readonly steps: number;
  /** Tokens spent, over all turns. */
  readonly usage: Usage;
  /** Inputs that were queued and not delivered, oldest first. */
  readonly queue: readonly UserMessage[];
  /** Name of the agent that has the conversation after a handoff; absent while none happened. */
  readonly agent?: string | undefined;
  /** What was learned and is in no event, by name: of the token estimator, and of whatever else the host wants kept. */
  readonly state: JsonObject;
}

/** What had to be done to a session to read it. */
export interface SessionRepair {
  /**
   * `torn_line`: the log ended in the middle of an event, whose bytes were cut off. `snapshot_dropped`: the snapshot could
   * not be used, and the whole log was read. `lock_taken`: the session's owner had died.
   */
  readonly kind: 'torn_line' | 'snapshot_dropped' | 'lock_taken';
  /** What was found and what was done, for people. */
  readonly message: string;
}

/** What a log has when it is opened. */
export interface SessionContent {
  /** The newest snapshot that holds; absent if there is none. */
  readonly snapshot?: SessionSnapshot | undefined;
  /** The events behind it, oldest first; all if there is no snapshot. */
  readonly events: readonly SessionEvent[];
  /** What had to be repaired. */
  readonly repairs: readonly SessionRepair[];
}

/** The log of a session, held by its one writer. */
export interface SessionLog {
  /** What the session began with. */
  readonly header: SessionHeader;
  /**
   * Reads what is there: once, before the first `append`.
   *
   * @throws {@link sessions.SessionError | SessionError} `broken_log` if an event in the middle cannot be read,
   * `unsupported_version` for a snapshot of a newer version, `store_failed`.
   */
  load(): Promise<SessionContent>;
  /**
   * Makes events durable, all or none, behind those before: calls that overlap keep their order.
   *
   * @throws {@link sessions.SessionError | SessionError} `store_failed` (the log is as it was, and takes later events),
   * `session_lost` (another writer has it), `session_closed`.
   */
  append(events: readonly SessionEvent[]): Promise<void>;
  /**
   * Keeps a snapshot in place of the one before. It covers exactly the events appended so far.
   *
   * @throws {@link sessions.SessionError | SessionError} as `append`; the snapshot before is still there then.
   */
  saveSnapshot(snapshot: SessionSnapshot): Promise<void>;
  /**
   * Opens the log of a sub-agent of this session, and makes it if it is new: it lives and is deleted with the session, and
   * is in no list. Any number may be open at once, but each once.
   *
   * @param id - Any text, such as the id of the call that started the sub-agent.
   */
  child(id: string): Promise<SessionLog>;
  /** Lets go of the session, and of its children. What is under way ends first. Doing it again changes nothing. */
  close(): Promise<void>;
}

/** A session as a list shows it. */
export interface SessionSummary extends SessionHeader {
  /** When something last happened in it, in milliseconds since the epoch: an event was appended, perhaps one of a sub-agent. */
  readonly updatedAt: number;
}

/** All of a session, to look at. */
export interface StoredSession {
  /** What it began with. */
  readonly header: SessionHeader;
  /** Every event, oldest first. */
  readonly events: readonly SessionEvent[];
}

/** What a store is told when a session is made. */
export interface NewSession {
  /** Id of the session: any text of 1 to 1,000 bytes without unpaired surrogates. */
  readonly sessionId: string;
  /** When, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** Where it was forked from. @defaultValue nowhere */
  readonly forkedFrom?: SessionFork | undefined;
  /** The host's JSON about it. @defaultValue none */
  readonly metadata?: JsonObject | undefined;
  /** Its first events, such as those of the session it was forked from; there with it, or not at all. @defaultValue none */
  readonly events?: readonly SessionEvent[] | undefined;
}

/** Keeps sessions. Several processes may use one. */
export interface SessionStore {
  /**
   * Makes a session and holds it for writing.
   *
   * @throws {@link sessions.SessionError | SessionError} `session_exists`, `invalid_session_id`, `store_failed`.
   */
  create(session: NewSession): Promise<SessionLog>;
  /**
   * Holds a session for writing.
   *
   * @throws {@link sessions.SessionError | SessionError} `session_not_found`, `session_locked` (its message says by whom),
   * `invalid_session_id`, `unsupported_version`, `broken_log` if what it begins with cannot be read, `store_failed`.
   */
  open(sessionId: string): Promise<SessionLog>;
  /**
   * Reads all of a session without holding it, also while somebody writes to it.
   *
   * @throws {@link sessions.SessionError | SessionError} as `open`, but never `session_locked`.
   */
  read(sessionId: string): Promise<StoredSession>;
  /** All sessions, the last written first. One that cannot be read is left out: `open` tells why. */
  list(): Promise<readonly SessionSummary[]>;
  /**
   * Deletes a session with its sub-agents.
   *
   * @returns False if there was none.
   * @throws {@link sessions.SessionError | SessionError} `session_locked`, `invalid_session_id`, `store_failed`.
   */
  delete(sessionId: string): Promise<boolean>;
}

/** What can go wrong with a session. */
export type SessionErrorCode =
  /** No session has that id. */
  | 'session_not_found'
  /** A session has that id already. */
  | 'session_exists'
  /** Another writer has it. */
  | 'session_locked'
  /** Another writer has taken it since. */
  | 'session_lost'
  /** It was closed here. */
  | 'session_closed'
  /** The id is not a text that a session can have. */
  | 'invalid_session_id'
  /** It was written by a newer release. */
  | 'unsupported_version'
  /** An event of it cannot be read. */
  | 'broken_log'
  /** Disk or database failed; the cause says how. */
  | 'store_failed'
  /** A turn is running. */
  | 'turn_running'
  /** A turn waits for decisions, or was left by a crash. */
  | 'turn_open'
  /** No turn is open, so there is none to go on with. */
  | 'no_open_turn'
  /** A decision is about a call that does not wait for one. */
  | 'not_pending'
  /** A message of that id is in the session already. */
  | 'message_exists'
  /** The turn or message is not in the session. */
  | 'not_in_session'
  /** It was handed to an agent that is not known here. */
  | 'unknown_agent';

/** Something about a session went wrong. Nothing was deleted; the message says what was kept, and where. */
export class SessionError extends TurnloopError {
  override readonly name: string = 'SessionError';
  declare readonly code: SessionErrorCode;

  constructor(code: SessionErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(code, message, options);
  }
}
