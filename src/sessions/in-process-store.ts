/**
 * In-process store: sessions that last as long as the process. For tests, and for agents that need not outlive it.
 *
 * - What is kept are frozen copies, and the same are handed out: nobody can change what happened. Texts are not copied.
 * - A session that nobody works with is a header, a list and nothing else.
 * - Every effect is there when a call returns its promise: calls that overlap have the order in which they were made.
 */
import { assertOptions } from '../core/assert.ts';
import { systemRuntime, type Runtime } from '../core/runtime.ts';
import { shownId } from './store-errors.ts';
import { frozenJson } from './frozen-json.ts';
import { assertEvent, assertEventList, assertSessionId, headerOf } from './session-codec.ts';
import {
  SessionError,
  type NewSession,
  type SessionContent,
  type SessionEvent,
  type SessionHeader,
  type SessionLog,
  type SessionSnapshot,
  type SessionStore,
} from './session-store.ts';
import { assertSnapshot, usableSnapshot } from './usable-snapshot.ts';

/** Options of {@link inProcessSessionStore}. */
export interface InProcessSessionStoreOptions {
  /** Tells when something was written. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
}

/** What is kept of a session, or of a sub-agent of one. */
interface Kept {
  readonly header: SessionHeader;
  readonly events: SessionEvent[];
  snapshot: SessionSnapshot | undefined;
  updatedAt: number;
  isHeld: boolean;
  /** Sub-agents by id; most sessions have none. */
  children: Map<string, Kept> | undefined;
}

/**
 * Makes a store that keeps sessions in the process and nowhere else, until they are deleted.
 *
 * @example
 * ```ts
 * const agent = createAgent({ llm, sessions: inProcessSessionStore() });
 * ```
 */
export function inProcessSessionStore(options: InProcessSessionStoreOptions = {}): SessionStore {
  assertOptions(options, { runtime: true }, { taker: 'inProcessSessionStore', example: 'inProcessSessionStore()' });
  const { runtime = systemRuntime } = options;
  // The last written stands last.
  const sessions = new Map<string, Kept>();

  function find(sessionId: string): Kept {
    assertSessionId(sessionId);
    const kept = sessions.get(sessionId);
    if (kept === undefined) throw new SessionError('session_not_found', `There is no session ${shownId(sessionId)} in this process.`);
    return kept;
  }

  /** Holds a session: its log, and those of its sub-agents, tell of what they write here. */
  function hold(kept: Kept): SessionLog {
    return new InProcessLog(kept, runtime, () => {
      kept.updatedAt = runtime.now();
      sessions.delete(kept.header.sessionId);
      sessions.set(kept.header.sessionId, kept);
    });
  }

  return {
    async create(session) {
      const kept = keep(session, runtime.now());
      const { sessionId } = kept.header;
      if (sessions.has(sessionId)) throw new SessionError('session_exists', `There is a session ${shownId(sessionId)} already; it is as it was.`);
      sessions.set(sessionId, kept);
      return hold(kept);
    },
    open: async (sessionId) => {
      const kept = find(sessionId);
      assertFree(kept);
      return hold(kept);
    },
    read: async (sessionId) => {
      const { header, events } = find(sessionId);
      return { header, events: [...events] };
    },
    list: async () => [...sessions.values()].reverse().map(({ header, updatedAt }) => ({ ...header, updatedAt })),
    async delete(sessionId) {
      assertSessionId(sessionId);
      const kept = sessions.get(sessionId);
      if (kept !== undefined) assertFree(kept);
      return sessions.delete(sessionId);
    },
  };
}

function keep(session: NewSession, updatedAt: number): Kept {
  const header = frozenJson(headerOf(session));
  return { header, events: copiesOf(session.events ?? [], 'create'), updatedAt, snapshot: undefined, isHeld: false, children: undefined };
}

function copiesOf(events: readonly SessionEvent[], call: 'append' | 'create'): SessionEvent[] {
  assertEventList(events, call);
  return events.map((event) => {
    assertEvent(event);
    return frozenJson(event);
  });
}

function assertFree({ isHeld, header }: Kept): void {
  if (isHeld) throw new SessionError('session_locked', `Session ${shownId(header.sessionId)} is open in this process: close it there first.`);
}

class InProcessLog implements SessionLog {
  readonly #kept: Kept;
  readonly #runtime: Runtime;
  readonly #onAppend: () => void;
  #children: Set<SessionLog> | undefined;
  #isClosed = false;

  constructor(kept: Kept, runtime: Runtime, onAppend: () => void) {
    this.#kept = kept;
    this.#runtime = runtime;
    this.#onAppend = onAppend;
    kept.isHeld = true;
  }

  get header(): SessionHeader {
    return this.#kept.header;
  }

  async load(): Promise<SessionContent> {
    this.#assertOpen();
    const { header, events } = this.#kept;
    const { snapshot, repairs } = usableSnapshot(this.#kept.snapshot, { sessionId: header.sessionId, events: events.length });
    return { snapshot, events: events.slice(snapshot?.events), repairs };
  }

  async append(events: readonly SessionEvent[]): Promise<void> {
    this.#assertOpen();
    for (const copy of copiesOf(events, 'append')) this.#kept.events.push(copy);
    this.#onAppend();
  }

  async saveSnapshot(snapshot: SessionSnapshot): Promise<void> {
    this.#assertOpen();
    assertSnapshot(snapshot, this.header.sessionId);
    this.#kept.snapshot = frozenJson(snapshot);
  }

  async child(id: string): Promise<SessionLog> {
    this.#assertOpen();
    assertSessionId(id);
    const now = this.#runtime.now();
    const children = (this.#kept.children ??= new Map<string, Kept>());
    const kept = children.get(id) ?? keep({ sessionId: id, createdAt: now }, now);
    assertFree(kept);
    children.set(id, kept);
    const log = new InProcessLog(kept, this.#runtime, this.#onAppend);
    (this.#children ??= new Set()).add(log);
    return log;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#kept.isHeld = false;
    for (const child of this.#children ?? []) await child.close();
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new SessionError('session_closed', `Session ${shownId(this.header.sessionId)} was closed here; what was written to it is kept.`);
  }
}
