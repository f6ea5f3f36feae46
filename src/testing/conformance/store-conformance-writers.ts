/** Cases about writers: one at a time, whatever becomes of it, and whatever becomes of its writes. */
import type { SessionEvent, SessionLog } from '../../sessions/session-store.ts';
import { expectEqual, fail, shown } from './llm-conformance-checks.ts';
import type { StoreCasesOf } from './store-conformance-case.ts';
import { event, events, snapshot, toolRun } from './store-conformance-samples.ts';
import { expectError, expectOneWinner, expectRefused, type StoreStage } from './store-conformance-stage.ts';

const ID = 'session_1';
const AT_ONCE = 5;

/** A writer that looks dead, and the one that took its session. */
async function takeOver(stage: StoreStage): Promise<{ readonly lost: SessionLog; readonly child: SessionLog; readonly taken: SessionLog }> {
  const abandon = stage.able('abandon');
  const lost = await stage.create(ID, { events: [event(0)] });
  const child = stage.add(await lost.child('child_1'));
  await child.append([event(0)]);
  await abandon(ID);
  return { lost, child, taken: await stage.open(ID) };
}

/** Cases about writers. */
export const writerCases: StoreCasesOf<'writer' | 'reopen' | 'lost' | 'failure'> = {
  'writer.one': {
    title: 'a session that somebody writes to is opened by nobody else: `session_locked`',
    async run(stage) {
      const log = await stage.create(ID);
      await expectError(stage.open(ID), 'session_locked', 'open, of a session that was made and not closed');
      await log.close();
      const opened = await stage.open(ID);
      await expectError(stage.open(ID), 'session_locked', 'open, of a session that was opened and not closed');
      await opened.append([event(1)]);
      await stage.create('session_2');
    },
  },
  'writer.free': {
    title: 'a session that was closed can be opened again, as often as one likes',
    async run(stage) {
      await stage.keep(ID);
      for (let count = 0; count < 3; count += 1) {
        const log = await stage.open(ID);
        expectEqual((await log.load()).events, events(0, count), `load, when ${count} writers had written one event each`);
        await log.append([event(count)]);
        await log.close();
      }
    },
  },
  'writer.at_once': {
    title: 'of several that open one session at once, one succeeds',
    async run(stage) {
      await stage.keep(ID);
      const calls = Array.from({ length: AT_ONCE }, () => stage.open(ID));
      const log = await expectOneWinner(calls, 'session_locked', 'open of one session at once');
      await log.append([event(0)]);
    },
  },

  'reopen.content': {
    title: 'another store on the same storage has all that was kept',
    async run(stage) {
      const kept = snapshot(ID, { events: 2 });
      const log = await stage.create(ID, { metadata: { title: 'kept' } });
      await log.append(events(0, 2));
      await log.saveSnapshot(kept);
      await log.append([event(2)]);
      const child = stage.add(await log.child('child_1'));
      await child.append([event(7)]);
      await log.close();
      const other = await stage.able('reopen')();
      expectEqual(await other.read(ID), { header: log.header, events: events(0, 3) }, 'read of another store');
      expectEqual((await other.list()).map(({ sessionId }) => sessionId), [ID], 'ids in the list of another store');
      const again = await stage.open(ID, other);
      expectEqual(await again.load(), { snapshot: kept, events: [event(2)], repairs: [] }, 'load of another store');
      expectEqual((await stage.add(await again.child('child_1')).load()).events, [event(7)], 'events of the child, in another store');
      await again.append([event(3)]);
      await again.close();
      expectEqual((await stage.store.read(ID)).events, events(0, 4), 'read of the first store, after another wrote to it');
    },
  },
  'reopen.writer': {
    title: 'a session that one store writes to is neither opened, made nor deleted by another, but read',
    async run(stage) {
      const log = await stage.create(ID, { events: [event(0)] });
      const other = await stage.able('reopen')();
      await expectError(other.open(ID), 'session_locked', 'open in another store');
      await expectError(other.delete(ID), 'session_locked', 'delete in another store');
      await expectError(other.create({ sessionId: ID, createdAt: 0 }), 'session_exists', 'create in another store');
      await log.append([event(1)]);
      expectEqual((await other.read(ID)).events, events(0, 2), 'events that another store reads');
      await log.close();
      const next = await stage.open(ID, other);
      await expectError(stage.open(ID), 'session_locked', 'open, when another store has the session');
      await next.append([event(2)]);
    },
  },
  'reopen.at_once': {
    title: 'of several stores that open or make one session at once, one succeeds',
    async run(stage) {
      const reopen = stage.able('reopen');
      const stores = [stage.store, await reopen(), await reopen()];
      const made = await expectOneWinner(
        stores.map(async (store) => stage.add(await store.create({ sessionId: ID, createdAt: 0 }))),
        'session_exists',
        'create in several stores at once',
      );
      await made.close();
      const opened = await expectOneWinner(stores.map((store) => stage.open(ID, store)), 'session_locked', 'open in several stores at once');
      await opened.append([event(0)]);
    },
  },

  'lost.taken': {
    title: 'a session whose writer has died is opened by the next, whose `repairs` say `lock_taken`',
    async run(stage) {
      const { taken } = await takeOver(stage);
      const { events: loaded, repairs } = await taken.load();
      expectEqual(loaded, [event(0)], 'events that load gives');
      if (!repairs.some(({ kind, message }) => kind === 'lock_taken' && message !== '')) fail(`\`repairs\` tells of no \`lock_taken\`: ${shown(repairs)}`);
      await taken.append([event(1)]);
      await taken.close();
      await stage.expectEvents(ID, events(0, 2), 'after the session was taken');
    },
  },
  'lost.refused': {
    title: 'a writer that lost its session writes no more, to a sub-agent neither: `session_lost`',
    async run(stage) {
      const { lost, child, taken } = await takeOver(stage);
      await taken.append([event(1)]);
      await expectRefused(lost, 'session_lost', { events: [event(7)], snapshot: snapshot(ID, { events: 2 }) });
      await expectRefused(child, 'session_lost', { events: [event(7)], snapshot: snapshot(child.header.sessionId, { events: 2 }) });
      await taken.append([event(2)]);
      expectEqual((await stage.add(await taken.child('child_1')).load()).events, [event(0)], 'events of the child');
      await taken.close();
      expectEqual((await stage.load(ID)).snapshot, undefined, 'a snapshot of who had lost the session');
      await stage.expectEvents(ID, events(0, 3), 'after a writer lost the session and went on');
    },
  },
  'lost.close': {
    title: 'a writer that lost its session does not let it go for the next',
    async run(stage) {
      const { lost, taken } = await takeOver(stage);
      await lost.close();
      await expectError(stage.open(ID), 'session_locked', 'open, after the lost writer closed its log');
      await taken.append([event(1)]);
    },
  },

  'failure.whole': {
    title: 'an append that fails is `store_failed` and leaves the log as it was, which takes later ones',
    async run(stage) {
      const breakWrites = stage.able('breakWrites');
      const log = await stage.create(ID, { events: [event(0)] });
      const mend = breakWrites();
      const failing = [log.append(events(10, 3)), log.append([event(20)])];
      for (const call of failing) call.catch(() => undefined);
      for (const call of failing) await expectError(call, 'store_failed', 'append, when nothing can be written');
      mend();
      await log.append([event(1)]);
      await log.append([event(2)]);
      await log.close();
      await stage.expectEvents(ID, events(0, 3), 'after an append that failed');
    },
  },
  'failure.results': {
    title: 'a result is whole, though the `tool.finished` with the same body could not be written',
    async run(stage) {
      const breakWrites = stage.able('breakWrites');
      const [call, start, finished, result] = toolRun('call_1', 'the same body') as readonly [SessionEvent, SessionEvent, SessionEvent, SessionEvent];
      const log = await stage.create(ID, { events: [call, start] });
      const mend = breakWrites();
      await expectError(log.append([finished]), 'store_failed', 'append, when nothing can be written');
      mend();
      await log.append([result]);
      await log.close();
      await stage.expectEvents(ID, [call, start, result], 'after one in their middle could not be written');
    },
  },
  'failure.create': {
    title: 'a session that could not be made is not there, and can be made later',
    async run(stage) {
      const mend = stage.able('breakWrites')();
      await expectError(stage.create(ID, { events: [event(7)] }), 'store_failed', 'create, when nothing can be written');
      mend();
      expectEqual(await stage.store.list(), [], 'list, after a session could not be made');
      await stage.keep(ID, [event(0)]);
      await stage.expectEvents(ID, [event(0)], 'after it was made at last');
    },
  },
  'failure.snapshot': {
    title: 'a snapshot that fails is `store_failed`, and the one before is still there',
    async run(stage) {
      const breakWrites = stage.able('breakWrites');
      const kept = snapshot(ID, { events: 1 });
      const log = await stage.create(ID, { events: [event(0)] });
      await log.saveSnapshot(kept);
      await log.append([event(1)]);
      const mend = breakWrites();
      await expectError(log.saveSnapshot(snapshot(ID, { events: 2 })), 'store_failed', 'saveSnapshot, when nothing can be written');
      mend();
      await log.append([event(2)]);
      await log.close();
      expectEqual(await stage.load(ID), { snapshot: kept, events: events(1, 2), repairs: [] }, 'load, after a snapshot that failed');
    },
  },
};
