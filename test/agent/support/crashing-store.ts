/**
 * Crashing store: a session store whose process dies, or whose disk fails, at a chosen append; and what another process
 * finds then. Appends are counted over all sessions, from 1; sub-agents' logs are counted too.
 */
import type { RecordedEvent } from 'turnloop';
import { inProcessSessionStore, type SessionEvent, SessionError, type SessionLog, type SessionSnapshot, type SessionStore } from 'turnloop/sessions';

/** Which append something goes wrong at: the n-th, or that of the first event that a function likes. */
export type AppendMoment = number | ((event: SessionEvent) => boolean);

/** Options of {@link crashingStore}. */
export interface CrashingStoreOptions {
  /** When. @defaultValue never */
  readonly at?: AppendMoment | undefined;
  /**
   * `dies`: the event is durable, and nothing comes back from then on. `fails`: the event is refused, once. `breaks`: it is
   * refused, and so is every later one.
   *
   * @defaultValue `'dies'`
   */
  readonly mode?: 'dies' | 'fails' | 'breaks' | undefined;
  /** What it fails with. @defaultValue a `SessionError`, `store_failed` */
  readonly error?: unknown;
}

/** A store that goes wrong. Made by {@link crashingStore}. */
export interface CrashingStore extends SessionStore {
  /** Resolves when it has gone wrong. */
  readonly crashed: Promise<void>;
  /** Events appended so far, over all sessions. */
  readonly appended: readonly SessionEvent[];
  /** Snapshots kept so far, oldest first. */
  readonly snapshots: readonly SessionSnapshot[];
  /** What a later process finds: what is durable, read back from JSON, held by nobody. */
  survivor(): Promise<SessionStore>;
}

/** Makes a store that goes wrong. */
export function crashingStore({ at = Infinity, mode = 'dies', error }: CrashingStoreOptions = {}): CrashingStore {
  const inner = inProcessSessionStore();
  const appended: SessionEvent[] = [];
  const snapshots = new Map<string, SessionSnapshot>();
  const taken: SessionSnapshot[] = [];
  let state: 'well' | 'dead' | 'broken' = 'well';
  let wasWrong = false;
  let onCrash = (): void => undefined;
  const crashed = new Promise<void>((resolve) => {
    onCrash = resolve;
  });
  const never = <Value>(): Promise<Value> => new Promise(() => undefined);
  const failure = (): unknown => error ?? new SessionError('store_failed', 'The disk is full. The log is as it was.');
  const isTime = (events: readonly SessionEvent[]): boolean => {
    if (wasWrong) return false;
    const from = appended.length;
    wasWrong = typeof at === 'number' ? at > from && at <= from + events.length : events.some(at);
    return wasWrong;
  };

  function guard(log: SessionLog): SessionLog {
    return {
      header: log.header,
      load: () => (state === 'dead' ? never() : log.load()),
      append: async (events) => {
        if (state === 'dead') return never();
        const isNow = isTime(events);
        if (state === 'broken' || (isNow && mode !== 'dies')) {
          if (mode === 'breaks') state = 'broken';
          onCrash();
          throw failure();
        }
        if (isNow) state = 'dead';
        await log.append(events);
        appended.push(...events);
        if (!isNow) return;
        onCrash();
        return never();
      },
      saveSnapshot: async (snapshot) => {
        if (state === 'dead') return never();
        if (state === 'broken') throw failure();
        await log.saveSnapshot(snapshot);
        snapshots.set(snapshot.sessionId, snapshot);
        taken.push(snapshot);
      },
      child: async (id) => (state === 'dead' ? never() : guard(await log.child(id))),
      close: () => (state === 'dead' ? never() : log.close()),
    };
  }

  return {
    crashed,
    appended,
    snapshots: taken,
    create: async (session) => (state === 'dead' ? never() : guard(await inner.create(session))),
    open: async (sessionId) => (state === 'dead' ? never() : guard(await inner.open(sessionId))),
    read: (sessionId) => inner.read(sessionId),
    list: () => inner.list(),
    delete: (sessionId) => inner.delete(sessionId),
    survivor: async () => {
      const found = inProcessSessionStore();
      for (const { sessionId, updatedAt: _, version: __, ...summary } of await inner.list()) {
        const { events } = throughJson(await inner.read(sessionId));
        const log = await found.create({ sessionId, ...summary, events });
        const snapshot = snapshots.get(sessionId);
        if (snapshot !== undefined) await log.saveSnapshot(throughJson(snapshot));
        await log.close();
      }
      return found;
    },
  };
}

/** The events of turns among those of a session. */
export function turnEvents(events: readonly SessionEvent[]): readonly RecordedEvent[] {
  return events.filter((event): event is RecordedEvent => !['handoff', 'input.queued', 'input.removed'].includes(event.type));
}

function throughJson<Value>(value: Value): Value {
  // What is plain JSON comes back as it was.
  return JSON.parse(JSON.stringify(value)) as Value;
}
