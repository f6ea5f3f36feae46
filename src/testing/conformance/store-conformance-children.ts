/** Cases about sub-agents: logs of their own that live, and are held and deleted, with their session. */
import type { SessionEvent, SessionLog } from '../../sessions/session-store.ts';
import { expectEqual } from './llm-conformance-checks.ts';
import type { StoreCasesOf } from './store-conformance-case.ts';
import { AWKWARD_IDS, event, events, GOOD_IDS, PROTOTYPE_IDS, snapshot } from './store-conformance-samples.ts';
import { expectError, expectRefused, isRefusedId, type StoreStage } from './store-conformance-stage.ts';

const ID = 'session_1';
const CHILD = 'call_1';

async function openChild(stage: StoreStage, log: SessionLog, id: string = CHILD): Promise<SessionLog> {
  return stage.add(await log.child(id));
}

/** What a child has, that is not open. */
async function eventsOf(stage: StoreStage, log: SessionLog, id: string = CHILD): Promise<readonly SessionEvent[]> {
  const child = await openChild(stage, log, id);
  const { events: loaded } = await child.load();
  await child.close();
  return loaded;
}

/** Cases about sub-agents. */
export const childCases: StoreCasesOf<'children'> = {
  'children.own': {
    title: 'a sub-agent has a log of its own, which is there again with its session',
    async run(stage) {
      const log = await stage.create(ID, { events: [event(0)] });
      const child = await openChild(stage, log);
      expectEqual(await child.load(), { events: [], repairs: [] }, 'load of a new child');
      await Promise.all([child.append([event(10)]), log.append([event(1)]), child.append([event(11)])]);
      await child.close();
      expectEqual(await eventsOf(stage, log), events(10, 2), 'events of the child');
      await log.close();
      await stage.expectEvents(ID, events(0, 2), 'of the session, whose child has others');
      expectEqual(await eventsOf(stage, await stage.open(ID)), events(10, 2), 'events of the child, after the session was opened again');
    },
  },
  'children.unlisted': {
    title: 'a sub-agent is no session: in no list, and not to be opened or read',
    async run(stage) {
      const log = await stage.create(ID);
      await (await openChild(stage, log)).append([event(1)]);
      expectEqual((await stage.store.list()).map(({ sessionId }) => sessionId), [ID], 'ids in the list');
      await expectError(stage.open(CHILD), 'session_not_found', 'open of the id of a child');
      await expectError(stage.store.read(CHILD), 'session_not_found', 'read of the id of a child');
      expectEqual(await stage.store.delete(CHILD), false, 'delete of the id of a child');
      await stage.keep(CHILD, [event(2)]);
      await stage.expectEvents(CHILD, [event(2)], 'of a session with the id of a child');
    },
  },
  'children.once': {
    title: 'several sub-agents are open at once, and each of them once: `session_locked`',
    async run(stage) {
      const log = await stage.create(ID);
      const ids = ['call_1', 'call_2', 'call_3'];
      const children = await Promise.all(ids.map((id) => openChild(stage, log, id)));
      await Promise.all(children.map((child, index) => child.append([event(index)])));
      await expectError(log.child('call_2'), 'session_locked', 'child, of one that is open');
      await children[1]?.close();
      expectEqual(await eventsOf(stage, log, 'call_2'), [event(1)], 'events of the second child, opened again');
      await children[0]?.append([event(7)]);
    },
  },
  'children.close': {
    title: 'closing a session closes its sub-agents, and what they had under way ends first',
    async run(stage) {
      const log = await stage.create(ID);
      const child = await openChild(stage, log);
      await Promise.all([child.append(events(0, 2)), log.close()]);
      await expectRefused(child, 'session_closed', { events: [event(7)], snapshot: snapshot(child.header.sessionId, {}) });
      await child.close();
      expectEqual(await eventsOf(stage, await stage.open(ID)), events(0, 2), 'events of the child');
    },
  },
  'children.deleted': {
    title: 'sub-agents are deleted with their session',
    async run(stage) {
      const log = await stage.create(ID);
      const child = await openChild(stage, log);
      await child.append([event(1)]);
      await (await openChild(stage, child)).append([event(2)]);
      await log.close();
      expectEqual(await stage.store.delete(ID), true, 'delete');
      const again = await openChild(stage, await stage.create(ID));
      expectEqual((await again.load()).events, [], 'events of a child, after the session was deleted and made anew');
      expectEqual(await eventsOf(stage, again), [], 'events of a child of that');
    },
  },
  'children.apart': {
    title: 'sub-agents share nothing: whatever their ids look like, and whatever session has one of the same id',
    async run(stage) {
      const ids = [...GOOD_IDS, ...AWKWARD_IDS, ...PROTOTYPE_IDS];
      const log = await stage.create(ID);
      const other = await stage.create('session_2');
      await (await openChild(stage, other)).append([event(1_000)]);
      const taken: string[] = [];
      for (const [index, id] of ids.entries()) {
        const isRefused = await isRefusedId(
          openChild(stage, log, id).then(async (child) => {
            await child.append([event(index)]);
            await child.close();
          }),
        );
        if (!isRefused) taken.push(id);
      }
      for (const id of taken) expectEqual(await eventsOf(stage, log, id), [event(ids.indexOf(id))], `events of the child ${JSON.stringify(id)}`);
      expectEqual(await eventsOf(stage, log), [], 'events of a child that is new in this session');
    },
  },
  'children.snapshot': {
    title: 'a sub-agent has a snapshot of its own',
    async run(stage) {
      const log = await stage.create(ID, { events: events(0, 3) });
      const child = await openChild(stage, log);
      const { sessionId } = child.header;
      await child.append(events(10, 2));
      await child.saveSnapshot(snapshot(sessionId, { events: 2, turns: 2 }));
      await child.append([event(12)]);
      await log.saveSnapshot(snapshot(ID, { events: 3, turns: 3 }));
      await log.close();
      const again = await stage.open(ID);
      expectEqual(await again.load(), { snapshot: snapshot(ID, { events: 3, turns: 3 }), events: [], repairs: [] }, 'load of the session');
      const loaded = await (await openChild(stage, again)).load();
      expectEqual(loaded, { snapshot: snapshot(sessionId, { events: 2, turns: 2 }), events: [event(12)], repairs: [] }, 'load of the child');
    },
  },
  'children.nested': {
    title: 'a sub-agent has sub-agents as a session has',
    async run(stage) {
      const log = await stage.create(ID);
      const child = await openChild(stage, log);
      const grandchild = await openChild(stage, child);
      await Promise.all([child.append([event(1)]), grandchild.append([event(2)])]);
      await child.close();
      await expectRefused(grandchild, 'session_closed', { events: [event(7)], snapshot: snapshot(grandchild.header.sessionId, {}) });
      const again = await openChild(stage, log);
      expectEqual((await again.load()).events, [event(1)], 'events of the child');
      expectEqual(await eventsOf(stage, again), [event(2)], 'events of the child of the child');
    },
  },
};
