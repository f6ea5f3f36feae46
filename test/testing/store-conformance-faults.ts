/** Faults: stores that do one thing wrong each, and the cases that find it. */
import type { SessionContent, SessionEvent, SessionLog, SessionSnapshot, SessionStore } from 'turnloop/sessions';
import { SessionError, type SessionErrorCode } from 'turnloop/sessions';
import type { StoreConformanceCaseId, StoreUnderTest } from 'turnloop/testing/conformance';
import { type ChangeLog, goodStore, withLogs } from './store-conformance-good.ts';

/** A store that does something wrong. */
export interface StoreFault {
  /** Cases that have to fail. */
  readonly caughtBy: readonly StoreConformanceCaseId[];
  /** What the first of them has to say. */
  readonly saying: RegExp;
  /** Makes it. */
  readonly make: () => StoreUnderTest;
}

/** A good store with other parts. */
function store(change: (good: SessionStore, under: ReturnType<typeof goodStore>) => Partial<SessionStore>): () => StoreUnderTest {
  return () => {
    const good = goodStore();
    const changed = { ...good.store, ...change(good.store, good) };
    return { ...good, store: changed, reopen: () => changed };
  };
}

/** A good store with other logs. @param make - Called for each store, so that logs can share something. */
function logs(make: () => ChangeLog): () => StoreUnderTest {
  return () => {
    const good = goodStore();
    const changed = withLogs(good.store, make());
    return { ...good, store: changed, reopen: () => changed };
  };
}

/** A good store whose events are changed on their way in. */
function written(change: (event: SessionEvent) => SessionEvent | undefined): () => StoreUnderTest {
  return () => {
    const good = goodStore();
    const all = (events: readonly SessionEvent[]): readonly SessionEvent[] => events.flatMap((event) => change(event) ?? []);
    const changed = withLogs(good.store, (log) => ({ append: (events) => log.append(all(events)) }));
    return { ...good, store: { ...changed, create: (session) => changed.create({ ...session, events: session.events && all(session.events) }) } };
  };
}

/** A good store whose events went through a text. */
function throughText(change: (text: string) => string): () => StoreUnderTest {
  return written((event) => JSON.parse(change(JSON.stringify(event))) as SessionEvent);
}

/** A good store that takes each id for another. */
function renamed(rename: (id: string) => string, isListed = false): () => StoreUnderTest {
  return store((good) => ({
    create: (session) => good.create({ ...session, sessionId: rename(session.sessionId) }),
    open: (id) => good.open(rename(id)),
    read: (id) => good.read(rename(id)),
    delete: (id) => good.delete(rename(id)),
    ...(isListed && { list: async () => [] }),
  }));
}

function changeContent(change: (content: SessionContent) => SessionContent): () => StoreUnderTest {
  return logs(() => (log) => ({ load: async () => change(await log.load()) }));
}

/** Shares what it holds with whoever asks. */
function sharingStore(): StoreUnderTest {
  const good = goodStore();
  const kept = new Map<string, { readonly header: SessionLog['header']; readonly events: SessionEvent[]; snapshot?: SessionSnapshot }>();
  const wrap = (log: SessionLog, sessionId: string): SessionLog => {
    const own = kept.get(sessionId)!;
    return {
      ...log,
      append: async (events) => void own.events.push(...events),
      saveSnapshot: async (snapshot) => void (own.snapshot = snapshot),
      load: async () => ({ events: own.events.slice(own.snapshot?.events), repairs: [], snapshot: own.snapshot }),
    };
  };
  return {
    store: {
      ...good.store,
      create: async (session) => {
        kept.set(session.sessionId, { header: session as never, events: [...(session.events ?? [])] });
        return wrap(await good.store.create({ ...session, events: [] }), session.sessionId);
      },
      open: async (id) => wrap(await good.store.open(id), id),
      read: async (id) => kept.get(id)!,
    },
  };
}

/** What a call gives, or something else if it fails with that code. */
function unless<Value, Other>(call: Promise<Value>, code: SessionErrorCode, instead: (error: unknown) => Other | Promise<Other>): Promise<Value | Other> {
  return call.catch((error: unknown) => {
    if (error instanceof SessionError && error.code === code) return instead(error);
    throw error;
  });
}

/** Stores that do something wrong. */
export const storeFaults: Readonly<Record<string, StoreFault>> = {
  'forgets what the host says of a session': {
    caughtBy: ['create.new', 'open.header', 'list.summaries', 'read.all'],
    saying: /`header` of the log: expected .*title/,
    make: store((good) => ({ create: ({ sessionId, createdAt, events }) => good.create({ sessionId, createdAt, events }) })),
  },
  'forgets the events that a session is made with': {
    caughtBy: ['create.events', 'create.exists'],
    saying: /load of a session made with events: expected \[\{/,
    make: store((good) => ({ create: ({ events: _events, ...session }) => good.create(session) })),
  },
  'makes a session anew that is there': {
    caughtBy: ['create.exists', 'reopen.writer'],
    saying: /create of a session that is open: expected a SessionError `session_exists`, and it resolved/,
    make: store((good, { abandon }) => ({
      create: async (session) => {
        await abandon(session.sessionId);
        await good.delete(session.sessionId);
        return good.create(session);
      },
    })),
  },
  'looks whether a session is there, and makes it later': {
    caughtBy: ['create.at_once', 'reopen.at_once'],
    saying: /one call of 5 has to succeed, and 5 did/,
    make: store((good, { abandon }) => {
      let last: Promise<unknown> = Promise.resolve();
      return {
        create: async (session) => {
          if ((await good.list()).some(({ sessionId }) => sessionId === session.sessionId)) return good.create(session);
          const made = last.then(async () => {
            await abandon(session.sessionId);
            await good.delete(session.sessionId);
            return good.create(session);
          });
          last = made;
          return made;
        },
      };
    }),
  },
  'makes what it is asked to open': {
    caughtBy: ['open.missing', 'delete.gone', 'children.unlisted', 'ids.prototype'],
    saying: /open: expected a SessionError `session_not_found`/,
    make: store((good) => ({ open: (sessionId) => unless(good.open(sessionId), 'session_not_found', () => good.create({ sessionId, createdAt: 0 })) })),
  },
  'throws an error of its own for what is not there': {
    caughtBy: ['open.missing', 'read.missing'],
    saying: /expected a SessionError `session_not_found` with a message, got Error: ENOENT/,
    make: store((good) => ({
      open: (id) => good.open(id).catch(() => Promise.reject(new Error('ENOENT'))),
      read: (id) => good.read(id).catch(() => Promise.reject(new Error('ENOENT'))),
    })),
  },
  'reads only what is behind the snapshot': {
    caughtBy: ['read.all', 'snapshot.behind'],
    saying: /read, first at events\[0\]\.at: expected/,
    make: store((good) => ({
      read: async (id) => {
        const stored = await good.read(id);
        const isBehind = stored.events.length === 4 || stored.events.length === 5;
        return isBehind ? { ...stored, events: stored.events.slice(3) } : stored;
      },
    })),
  },
  'lets nobody read what somebody writes to': {
    caughtBy: ['read.held', 'reopen.writer'],
    saying: /is open in this process/,
    make: store((good) => ({
      read: async (id) => {
        await (await good.open(id)).close();
        return good.read(id);
      },
    })),
  },
  'lists sessions in the order of their ids': {
    caughtBy: ['list.order'],
    saying: /ids in the list: expected \["session_3","session_2","session_1"\], got/,
    make: store((good) => ({ list: async () => [...(await good.list())].sort((left, right) => (left.sessionId < right.sessionId ? -1 : 1)) })),
  },
  'lists sub-agents as sessions': {
    caughtBy: ['children.unlisted'],
    saying: /ids in the list/,
    make: () => {
      const good = goodStore();
      const ids = new Set<string>();
      const changed = withLogs(good.store, (log) => ({ child: (id) => (ids.add(id), log.child(id)) }));
      return { ...good, store: { ...changed, list: async () => [...(await changed.list()), ...[...ids].map((sessionId) => ({ version: 1, sessionId, createdAt: 0, updatedAt: 0 }))] } };
    },
  },
  'deletes a session in name only': {
    caughtBy: ['delete.gone'],
    saying: /open of what was deleted: expected a SessionError `session_not_found`/,
    make: store((good) => {
      const gone = new Set<string>();
      return {
        list: async () => (await good.list()).filter(({ sessionId }) => !gone.has(sessionId)),
        delete: async (id) => {
          if (gone.has(id)) return false;
          gone.add(id);
          return true;
        },
      };
    }),
  },
  'deletes what begins with the id': {
    caughtBy: ['delete.others', 'ids.apart'],
    saying: /There is no session|session_10/,
    make: store((good) => ({
      delete: async (id) => {
        const ids = (await good.list()).map(({ sessionId }) => sessionId).filter((each) => each.startsWith(id));
        const deleted = await Promise.all(ids.map((each) => good.delete(each)));
        return deleted.length > 0 || good.delete(id);
      },
    })),
  },
  'deletes what somebody writes to': {
    caughtBy: ['delete.held', 'reopen.writer'],
    saying: /delete: expected a SessionError `session_locked`, and it resolved to true/,
    make: store((good, { abandon }) => ({
      delete: async (id) => {
        await abandon(id);
        return good.delete(id);
      },
    })),
  },
  'writes appends side by side': {
    caughtBy: ['append.overlapping'],
    saying: /after appends that overlapped/,
    make: logs(() => (log) => ({
      append: async (events) => {
        for (let turn = 0; turn < events.length; turn += 1) await Promise.resolve();
        await log.append(events);
      },
    })),
  },
  'puts the newest events first': {
    caughtBy: ['append.order', 'append.many'],
    saying: /read, after four appends/,
    make: logs(() => (log) => ({ append: (events) => log.append([...events].reverse()) })),
  },
  'writes an empty line for no events': {
    caughtBy: ['append.nothing'],
    saying: /after appends of nothing/,
    make: logs(() => (log) => ({ append: (events) => log.append(events.length === 0 ? [{ type: 'nothing' } as never] : events) })),
  },
  'keeps the events before one that cannot be written': {
    caughtBy: ['append.whole'],
    saying: /after an append that was refused/,
    make: logs(() => (log) => ({
      append: async (events) => {
        for (const each of events) await log.append([each]);
      },
    })),
  },
  'takes what it cannot write, and drops it': {
    caughtBy: ['append.whole'],
    saying: /resolved for an event that holds itself/,
    make: logs(() => (log) => ({ append: (events) => log.append(events).catch((error: unknown) => (error instanceof TypeError ? undefined : Promise.reject(error))) })),
  },
  'gives the first page of its events': {
    caughtBy: ['append.many'],
    saying: /of 2500 events/,
    make: () => {
      const good = goodStore();
      return { ...good, store: { ...good.store, read: async (id) => ({ ...(await good.store.read(id)), events: (await good.store.read(id)).events.slice(0, 1_000) }) } };
    },
  },
  'cuts texts at a NUL': { caughtBy: ['content.texts'], saying: /of what was appended/, make: throughText((text) => text.replace(/\\u0000[^"]*/g, '')) },
  'writes texts as UTF-8 that are none': { caughtBy: ['content.texts'], saying: /of what was appended/, make: throughText((text) => text.replace(/\\ud83d/g, '\ufffd')) },
  'drops the key that sets prototypes': { caughtBy: ['content.keys'], saying: /__proto__/, make: throughText((text) => text.replace(/"__proto__":\{"polluted":true\},/g, '')) },
  'rounds numbers': { caughtBy: ['content.values'], saying: /of what was appended/, make: throughText((text) => text.replace('5e-324', '0')) },
  'shortens long texts': {
    caughtBy: ['content.large'],
    saying: /of what was appended/,
    make: throughText((text) => (text.length > 500_000 ? text.replace(/0123456789 /g, '') : text)),
  },
  'leaves the body of a result to the one before, and does not put it back': {
    caughtBy: ['content.results'],
    saying: /of what was appended/,
    make: written((event) => (event.type === 'tool.result' ? ({ ...event, result: undefined } as never) : event)),
  },
  'leaves the body of a result to one that may not be there': {
    caughtBy: ['failure.results', 'snapshot.results'],
    saying: /after one in their middle could not be written|load: expected/,
    make: logs(() => {
      const finished = new Set<string>();
      return (log) => ({
        append: (events) => {
          const short = events.map((each) => (each.type === 'tool.result' && finished.has(each.toolCallId) ? ({ ...each, result: undefined } as never) : each));
          for (const each of events) if (each.type === 'tool.finished') finished.add(each.toolCallId);
          return log.append(short);
        },
      });
    }),
  },
  'drops events that it does not know': {
    caughtBy: ['content.unknown', 'content.keys'],
    saying: /later\.release/,
    make: written((event) => ((event as { type: string }).type === 'later.release' ? undefined : event)),
  },
  'keeps what it was given, and not a copy': { caughtBy: ['content.appended', 'content.handed_out'], saying: /after what was appended had been changed/, make: sharingStore },
  'goes on after it was closed': {
    caughtBy: ['close.refuses', 'children.close', 'children.nested'],
    saying: /append to "session_1": expected a SessionError `session_closed`/,
    make: logs(() => (log) => ({ append: (events) => log.append(events).catch(() => undefined) })),
  },
  'frees a session for each close': {
    caughtBy: ['close.twice'],
    saying: /closed its log again: expected a SessionError `session_locked`/,
    make: () => {
      const good = goodStore();
      const changed = withLogs(good.store, (log, { sessionId }) => {
        let isClosed = false;
        return {
          close: async () => {
            if (isClosed) await good.abandon(sessionId);
            isClosed = true;
            await log.close();
          },
        };
      });
      return { ...good, store: changed };
    },
  },
  'frees a session that it has lost': {
    caughtBy: ['lost.close'],
    saying: /after the lost writer closed its log: expected a SessionError `session_locked`/,
    make: () => {
      const good = goodStore();
      const last = new Map<string, object>();
      const lost = new Set<unknown>();
      const changed = withLogs(good.store, (log, { isChild, sessionId }) => {
        const own = {};
        if (!isChild) last.set(sessionId, own);
        return {
          close: async () => {
            if (lost.has(own)) await good.abandon(sessionId);
            await log.close();
          },
        };
      });
      return {
        ...good,
        store: changed,
        abandon: (id) => {
          lost.add(last.get(id));
          return good.abandon(id);
        },
      };
    },
  },
  'closes before what is under way has ended': {
    caughtBy: ['close.waits', 'children.close'],
    saying: /closed here/,
    make: logs(() => (log) => ({
      append: async (events) => {
        await Promise.resolve();
        await log.append(events);
      },
    })),
  },
  'loads the whole log beside the snapshot': {
    caughtBy: ['snapshot.behind', 'snapshot.replaced', 'children.snapshot'],
    saying: /load, first at (events\[0\]\.at|snapshot\.events): expected/,
    make: logs(() => {
      const all = new Map<string, SessionEvent[]>();
      return (log, { isChild, sessionId }) => {
        const events = all.get(`${isChild}${sessionId}`) ?? [];
        all.set(`${isChild}${sessionId}`, events);
        return {
          append: async (more) => {
            await log.append(more);
            events.push(...more);
          },
          load: async () => ({ ...(await log.load()), events: [...events] }),
        };
      };
    }),
  },
  'keeps the first snapshot for ever': {
    caughtBy: ['snapshot.replaced'],
    saying: /after the third snapshot/,
    make: logs(() => {
      const have = new Set<string>();
      return (log, { sessionId }) => ({
        saveSnapshot: async (snapshot) => {
          if (!have.has(sessionId)) await log.saveSnapshot(snapshot);
          have.add(sessionId);
        },
      });
    }),
  },
  'forgets what the host keeps in a snapshot': {
    caughtBy: ['snapshot.content', 'content.handed_out'],
    saying: /`snapshot` that load gives/,
    make: logs(() => (log) => ({ saveSnapshot: (snapshot) => log.saveSnapshot({ ...snapshot, state: {} }) })),
  },
  'saves a snapshot before the appends that wait': {
    caughtBy: ['snapshot.order'],
    saying: /load, first at (events\[0\]\.at|snapshot\.events): expected/,
    make: logs(() => (log) => ({
      // What overlaps finds how many events there are now.
      saveSnapshot: async (snapshot) => log.saveSnapshot({ ...snapshot, events: Math.max(0, snapshot.events - 1) }),
    })),
  },
  'takes a snapshot of any version': {
    caughtBy: ['snapshot.newer'],
    saying: /load gave a snapshot of version 1000, which nobody here can read/,
    make: logs(() => (log) => ({ saveSnapshot: (snapshot) => log.saveSnapshot({ ...snapshot, version: 1 }) })),
  },
  'uses a snapshot that the log does not reach, and says nothing': {
    caughtBy: ['snapshot.beyond'],
    saying: /tells of no `snapshot_dropped`/,
    make: changeContent((content) => ({ ...content, repairs: [] })),
  },
  'lets two write to a session': {
    caughtBy: ['writer.one', 'writer.at_once', 'close.twice', 'reopen.writer', 'reopen.at_once', 'lost.close'],
    saying: /open, of a session that was made and not closed: expected a SessionError `session_locked`/,
    make: store((good, { abandon }) => ({
      open: (id) =>
        unless(good.open(id), 'session_locked', async () => {
          await abandon(id);
          return good.open(id);
        }),
    })),
  },
  'never frees a session': {
    caughtBy: ['writer.free', 'append.order', 'children.once'],
    saying: /is open in this process/,
    make: logs(() => () => ({ close: async () => undefined })),
  },
  'keeps what another store does not see': {
    caughtBy: ['reopen.content', 'reopen.writer', 'reopen.at_once'],
    saying: /There is no session "session_1"/,
    make: () => ({ ...goodStore(), reopen: () => goodStore().store }),
  },
  'believes no owner to be dead': {
    caughtBy: ['lost.taken', 'lost.refused', 'lost.close'],
    saying: /is open in this process/,
    make: () => ({ ...goodStore(), abandon: () => undefined }),
  },
  'takes a session without a word': {
    caughtBy: ['lost.taken'],
    saying: /tells of no `lock_taken`/,
    make: changeContent((content) => ({ ...content, repairs: content.repairs.filter(({ kind }) => kind !== 'lock_taken') })),
  },
  'lets a writer go on that lost its session': {
    caughtBy: ['lost.refused'],
    saying: /append to "session_1": expected a SessionError `session_lost`, and it resolved/,
    make: logs(() => (log) => ({ append: (events) => unless(log.append(events), 'session_lost', () => undefined) })),
  },
  'keeps half of an append that fails': {
    caughtBy: ['failure.whole'],
    saying: /after an append that failed/,
    make: () => {
      const good = goodStore();
      const late: (() => Promise<void>)[] = [];
      const changed = withLogs(good.store, (log) => ({
        append: async (events) => {
          for (const write of late.splice(0)) await write();
          await unless(log.append(events), 'store_failed', (error) => {
            late.push(() => log.append(events.slice(0, 1)));
            throw error;
          });
        },
      }));
      return { ...good, store: changed };
    },
  },
  'takes nothing any more after a failure': {
    caughtBy: ['failure.whole', 'failure.snapshot'],
    saying: /is full/,
    make: () => {
      const good = goodStore();
      return {
        ...good,
        breakWrites: () => {
          good.breakWrites!();
          return () => undefined;
        },
      };
    },
  },
  'leaves a session behind that it could not make': {
    caughtBy: ['failure.create'],
    saying: /list, after a session could not be made/,
    make: store((good) => {
      const half: string[] = [];
      return {
        create: (session) =>
          unless(good.create(session), 'store_failed', (error) => {
            half.push(session.sessionId);
            throw error;
          }),
        list: async () => [...(await good.list()), ...half.map((sessionId) => ({ version: 1, sessionId, createdAt: 0, updatedAt: 0 }))],
      };
    }),
  },
  'loses the snapshot before when the next fails': {
    caughtBy: ['failure.snapshot'],
    saying: /after a snapshot that failed/,
    make: logs(() => {
      const failed = new Set<string>();
      return (log, { sessionId }) => ({
        saveSnapshot: (snapshot) =>
          unless(log.saveSnapshot(snapshot), 'store_failed', (error) => {
            failed.add(sessionId);
            throw error;
          }),
        load: async () => (failed.has(sessionId) ? { ...(await log.load()), snapshot: undefined } : log.load()),
      });
    }),
  },
  'takes letters and digits only for an id': {
    caughtBy: ['ids.texts'],
    saying: /is no id/,
    make: store((good) => ({
      create: async (session) => {
        if (!/^[\w-]*$/.test(session.sessionId)) throw new SessionError('invalid_session_id', `${session.sessionId} is no id`);
        return good.create(session);
      },
    })),
  },
  'cleans ids until they are names of files': {
    caughtBy: ['ids.apart', 'ids.texts'],
    saying: /session/,
    make: renamed((id) => id.replace(/[^\w-]/g, '_')),
  },
  'does not tell small letters from capitals': { caughtBy: ['ids.apart'], saying: /session/, make: renamed((id) => id.toLowerCase()) },
  'takes any text for an id': {
    caughtBy: ['ids.refused'],
    saying: /expected a SessionError `invalid_session_id`/,
    make: renamed((id) => `id of ${id.length}, ${encodeURIComponent(id.replace(/\p{Surrogate}/gu, '?').slice(0, 3))}`),
  },
  'looks ids up in an object': {
    caughtBy: ['ids.prototype'],
    saying: /open of __proto__, which nobody made/,
    make: store((good) => ({ open: (id) => (id in {} ? good.create({ sessionId: `${id} `, createdAt: 0 }) : good.open(id)) })),
  },
  'makes files where ids lead': {
    caughtBy: ['outside.untouched'],
    saying: /what is outside, after sessions with awkward ids were made/,
    make: () => {
      const good = goodStore();
      const found = ['neighbour'];
      return {
        ...good,
        outside: () => [...found],
        store: { ...good.store, create: (session) => (session.sessionId.startsWith('..') && found.push(session.sessionId), good.store.create(session)) },
      };
    },
  },
  'puts what sub-agents do into the session': {
    caughtBy: ['children.own', 'children.snapshot'],
    saying: /events of the child|of the session|load of/,
    make: logs(() => (log) => ({ child: async (id) => ({ ...(await log.child(id)), append: (events) => log.append(events) }) })),
  },
  'opens a sub-agent twice': {
    caughtBy: ['children.once'],
    saying: /child, of one that is open: expected a SessionError `session_locked`/,
    make: logs(() => {
      const open = new Map<string, SessionLog>();
      return (log) => ({
        child: async (id) => {
          const child = await log.child(id).catch(() => open.get(id)!);
          open.set(id, child);
          return child;
        },
      });
    }),
  },
  'leaves sub-agents behind': {
    caughtBy: ['children.deleted'],
    saying: /after the session was deleted and made anew/,
    make: store((good) => {
      const orphans = new Set<string>();
      return {
        delete: (id) => (orphans.add(id), good.delete(id)),
        create: async (session) => {
          const log = await good.create(session);
          if (!orphans.has(session.sessionId)) return log;
          const child = await log.child('call_1');
          await child.append([{ type: 'left behind' } as never]);
          await child.close();
          return log;
        },
      };
    }),
  },
  'keeps sub-agents by their id alone': {
    caughtBy: ['children.apart'],
    saying: /events of a child that is new in this session|is open in this process/,
    make: logs(() => {
      const shared = new Map<string, SessionLog>();
      return (log) => ({
        child: async (id) => {
          const child = shared.get(id) ?? (await log.child(id));
          shared.set(id, child);
          return { ...child, close: async () => undefined };
        },
      });
    }),
  },
  'has no sub-agents of sub-agents': {
    caughtBy: ['children.nested', 'children.deleted'],
    saying: /no child of its own/,
    make: logs(() => (_log, { isChild }) => (isChild ? { child: () => Promise.reject(new Error('no child of its own')) } : {})),
  },
};
