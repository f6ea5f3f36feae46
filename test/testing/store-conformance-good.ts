/** A store with all that the conformance kit can use, made of the one in the process: faults are changes of it. */
import { inProcessSessionStore, SessionError, type SessionContent, type SessionLog, type SessionStore } from 'turnloop/sessions';
import type { StoreUnderTest } from 'turnloop/testing/conformance';

/** What of a log is different. */
export type ChangeLog = (log: SessionLog, about: { readonly isChild: boolean; readonly sessionId: string }) => Partial<SessionLog>;

/** A log with something else in it; its getters and private members stay its own. */
function changedLog(log: SessionLog, changes: Partial<SessionLog>): SessionLog {
  return {
    header: log.header,
    load: () => log.load(),
    append: (events) => log.append(events),
    saveSnapshot: (snapshot) => log.saveSnapshot(snapshot),
    child: (id) => log.child(id),
    close: () => log.close(),
    ...changes,
  };
}

/** A store all of whose logs are changed, those of sub-agents too. */
export function withLogs(store: SessionStore, change: ChangeLog): SessionStore {
  const wrap = (log: SessionLog, sessionId: string, isChild: boolean): SessionLog => {
    const inner = changedLog(log, { child: async (id) => wrap(await log.child(id), sessionId, true) });
    return changedLog(inner, change(inner, { isChild, sessionId }));
  };
  return {
    ...store,
    create: async (session) => wrap(await store.create(session), session.sessionId, false),
    open: async (sessionId) => wrap(await store.open(sessionId), sessionId, false),
  };
}

/** A good store, whose writers can be made to look dead, and whose writes to fail. */
export function goodStore(): StoreUnderTest & { readonly abandon: (sessionId: string) => Promise<void> } {
  const epochs = new Map<string, number>();
  const taken = new Set<string>();
  const open = new Map<string, SessionLog>();
  let isBroken = false;
  const assertWrites = (): void => {
    if (isBroken) throw new SessionError('store_failed', 'The disk is full; all is as it was.');
  };
  const inner = inProcessSessionStore();
  const fenced = withLogs(inner, (log, { isChild, sessionId }) => {
    const epoch = epochs.get(sessionId);
    const guarded = <Arguments extends unknown[], Value>(work: (...args: Arguments) => Promise<Value>) => async (...args: Arguments): Promise<Value> => {
      if (epochs.get(sessionId) !== epoch) throw new SessionError('session_lost', 'Another writer has it.');
      assertWrites();
      return work(...args);
    };
    if (!isChild) open.set(sessionId, log);
    const load = async (): Promise<SessionContent> => {
      const content = await log.load();
      return isChild || !taken.delete(sessionId) ? content : { ...content, repairs: [{ kind: 'lock_taken', message: 'The owner had died.' }] };
    };
    return { load, append: guarded(log.append), saveSnapshot: guarded(log.saveSnapshot) };
  });
  const store: SessionStore = {
    ...fenced,
    create: async (session) => {
      assertWrites();
      return fenced.create(session);
    },
  };
  return {
    store,
    reopen: () => store,
    abandon: async (sessionId) => {
      epochs.set(sessionId, (epochs.get(sessionId) ?? 0) + 1);
      taken.add(sessionId);
      await open.get(sessionId)?.close();
    },
    breakWrites: () => {
      isBroken = true;
      return () => {
        isBroken = false;
      };
    },
    outside: () => ['neighbour'],
  };
}
