/** Agent: a model with tools and policies, as its host sees it. Types only. */
import type { JsonObject } from '../core/json.ts';
import type { MemoryOwner } from '../memory/memory-store.ts';
import type { SessionStore } from '../sessions/session-store.ts';
import type { AgentInput, Session, TurnOptions } from './session.ts';
import type { Turn } from './turn.ts';

/** Where a session begins: without any of them empty, under an id of its own. */
export interface OpenSessionOptions {
  /**
   * Id of a new session: any text of 1 to 1,000 bytes. With `resumeSessionId` of the same id the session is gone on with if it
   * exists, and made if not.
   *
   * @defaultValue one from the runtime
   */
  readonly sessionId?: string | undefined;
  /** Id of a session to go on with. */
  readonly resumeSessionId?: string | undefined;
  /** A session whose turns the new one begins with. */
  readonly fork?: ForkOptions | undefined;
  /** Whose memory the session recalls and adds to, such as that of a user, beside its own. @defaultValue the agent's */
  readonly memoryOwners?: readonly MemoryOwner[] | undefined;
  /** JSON kept with a new session, such as a title. */
  readonly metadata?: JsonObject | undefined;
}

/** Where a session forks. */
export interface ForkOptions {
  /** The session; nobody needs to hold it, and who holds it is not disturbed. */
  readonly sessionId: string;
  /** The last turn that the new session has. @defaultValue the last that is over */
  readonly afterTurn?: string | undefined;
}

/** An agent. Made by {@link createAgent}. */
export interface Agent<Output = unknown> {
  /** Its name. */
  readonly name: string;
  /** Where its sessions are kept: to list, read and delete them. */
  readonly sessions: SessionStore;
  /**
   * Opens a session: a new one, one to go on with, or a fork. Nothing runs yet.
   *
   * @throws {@link sessions.SessionError | SessionError} `session_not_found`, `session_exists`, `session_locked`,
   * `invalid_session_id`, `unsupported_version`, `broken_log`, `not_in_session` (the turn to fork at), `unknown_agent` (it was
   * handed to an agent that is not among `handoffs`), `store_failed`. Nothing is changed or deleted then.
   */
  openSession(options?: OpenSessionOptions): Promise<Session<Output>>;
  /**
   * Runs one turn in a session of its own that is kept nowhere: one that ends `suspended` cannot be gone on with. For calls that
   * wait for a person open a session.
   */
  run(input: AgentInput, options?: TurnOptions): Turn<Output>;
}

