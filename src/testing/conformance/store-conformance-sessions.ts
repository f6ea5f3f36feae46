/** Cases about sessions as a whole: making, opening, reading, listing and deleting them. */
import { expectEqual, fail, shown } from './llm-conformance-checks.ts';
import { pause } from './llm-conformance-wait.ts';
import type { StoreCasesOf } from './store-conformance-case.ts';
import { CREATED_AT, event, events, snapshot } from './store-conformance-samples.ts';
import { expectError, expectOneWinner } from './store-conformance-stage.ts';

/** Long enough for the clocks of file systems to tell two writes apart. */
const TICK_MS = 20;
const AT_ONCE = 5;

const PARTS = {
  forkedFrom: { sessionId: 'session_0', turnId: 'turn_3' },
  metadata: { title: 'A \u0000 title, 世界', user: { id: 7 }, tags: [] },
};
const HEADER = { version: 1, sessionId: 'session_1', createdAt: CREATED_AT, ...PARTS };

/** Cases about sessions as a whole. */
export const sessionCases: StoreCasesOf<'create' | 'open' | 'read' | 'list' | 'delete'> = {
  'create.new': {
    title: 'a new session has the header it was made with, and nothing else',
    async run(stage) {
      const log = await stage.create('session_1', PARTS);
      expectEqual(log.header, HEADER, '`header` of the log');
      expectEqual(await log.load(), { events: [], repairs: [] }, 'load of a new session');
    },
  },
  'create.events': {
    title: 'events that a session is made with are there with it, and later ones come behind',
    async run(stage) {
      const log = await stage.create('session_1', { events: events(0, 3) });
      expectEqual((await log.load()).events, events(0, 3), 'load of a session made with events');
      await log.append([event(3)]);
      await log.close();
      await stage.expectEvents('session_1', events(0, 4), 'after one more');
    },
  },
  'create.exists': {
    title: 'making a session that is there is refused with `session_exists`, and changes nothing',
    async run(stage) {
      const log = await stage.create('session_1', { ...PARTS, events: events(0, 2) });
      await expectError(stage.create('session_1', { events: [event(7)] }), 'session_exists', 'create of a session that is open');
      await log.close();
      await expectError(stage.create('session_1', { events: [event(8)] }), 'session_exists', 'create of a session that is closed');
      await stage.expectEvents('session_1', events(0, 2), 'after others tried to make it');
      expectEqual((await stage.store.read('session_1')).header, HEADER, '`header`, after others tried to make it');
    },
  },
  'create.at_once': {
    title: 'of several that make one session at once, one succeeds',
    async run(stage) {
      const calls = Array.from({ length: AT_ONCE }, () => stage.create('session_1'));
      const log = await expectOneWinner(calls, 'session_exists', 'create of one session at once');
      await log.append([event(1)]);
      await log.close();
      await stage.expectEvents('session_1', [event(1)], 'after it was made by several');
    },
  },
  'open.header': {
    title: 'a session is opened with the header it was made with',
    async run(stage) {
      await (await stage.create('session_1', PARTS)).close();
      const log = await stage.open('session_1');
      expectEqual(log.header, HEADER, '`header` of the log');
    },
  },
  'open.missing': {
    title: 'opening what is not there is refused with `session_not_found`, and makes nothing',
    async run(stage) {
      await stage.keep('session_1');
      await expectError(stage.open('session_2'), 'session_not_found', 'open');
      expectEqual((await stage.store.list()).map(({ sessionId }) => sessionId), ['session_1'], 'ids in the list');
    },
  },
  'read.all': {
    title: 'reading gives the header and every event, also those before a snapshot',
    async run(stage) {
      const log = await stage.create('session_1', PARTS);
      await log.append(events(0, 3));
      await log.saveSnapshot(snapshot('session_1', { events: 3 }));
      await log.append([event(3)]);
      await log.close();
      expectEqual(await stage.store.read('session_1'), { header: HEADER, events: events(0, 4) }, 'read');
    },
  },
  'read.held': {
    title: 'a session can be read while somebody writes to it, as often as one likes',
    async run(stage) {
      const log = await stage.create('session_1');
      for (let count = 1; count <= 3; count += 1) {
        await log.append([event(count - 1)]);
        expectEqual((await stage.store.read('session_1')).events, events(0, count), `read, when ${count} events had been appended`);
      }
      await log.append([event(3)]);
    },
  },
  'read.missing': {
    title: 'reading what is not there is refused with `session_not_found`',
    async run(stage) {
      await expectError(stage.store.read('session_1'), 'session_not_found', 'read');
    },
  },
  'list.summaries': {
    title: 'the list has the header of each session, open or not, and when it was last written',
    async run(stage) {
      expectEqual(await stage.store.list(), [], 'list of an empty store');
      await (await stage.create('session_1', PARTS)).close();
      await stage.create('session_2');
      const listed = await stage.store.list();
      const headers = listed.map(({ updatedAt: _written, ...header }) => header).sort((left, right) => (left.sessionId < right.sessionId ? -1 : 1));
      expectEqual(headers, [HEADER, { version: 1, sessionId: 'session_2', createdAt: CREATED_AT }], 'headers in the list, by id');
      for (const { updatedAt } of listed) if (!Number.isFinite(updatedAt)) fail(`\`updatedAt\` is ${shown(updatedAt)}: a time in milliseconds`);
    },
  },
  'list.order': {
    title: 'the list begins with the session that was last written',
    async run(stage) {
      const first = await stage.create('session_1');
      for (const id of ['session_2', 'session_3']) {
        await pause(TICK_MS);
        await stage.create(id);
      }
      const before = await stage.store.list();
      expectEqual(before.map(({ sessionId }) => sessionId), ['session_3', 'session_2', 'session_1'], 'ids in the list');
      await pause(TICK_MS);
      await first.append([event(1)]);
      const after = await stage.store.list();
      expectEqual(after.map(({ sessionId }) => sessionId), ['session_1', 'session_3', 'session_2'], 'ids in the list, after the first was written');
      const times = after.map(({ updatedAt }) => updatedAt);
      if (times.some((time, index) => time > (times[index - 1] ?? Infinity))) fail(`\`updatedAt\` rises in the list: ${shown(times)}`);
    },
  },
  'delete.gone': {
    title: 'of a session that was deleted nothing is left, also when its id is used again',
    async run(stage) {
      const log = await stage.create('session_1', { ...PARTS, events: events(0, 3) });
      await log.saveSnapshot(snapshot('session_1', { events: 3 }));
      await log.close();
      expectEqual(await stage.store.delete('session_1'), true, 'delete');
      expectEqual(await stage.store.delete('session_1'), false, 'delete of what is not there');
      await expectError(stage.open('session_1'), 'session_not_found', 'open of what was deleted');
      await expectError(stage.store.read('session_1'), 'session_not_found', 'read of what was deleted');
      expectEqual(await stage.store.list(), [], 'list, after the only session was deleted');
      const again = await stage.create('session_1');
      expectEqual(await again.load(), { events: [], repairs: [] }, 'load of a new session with the id of a deleted one');
      expectEqual(again.header, { version: 1, sessionId: 'session_1', createdAt: CREATED_AT }, '`header` of that session');
    },
  },
  'delete.others': {
    title: 'deleting a session leaves the others',
    async run(stage) {
      for (const id of ['session_1', 'session_10', 'session_2']) await stage.keep(id, [event(1), event(2)]);
      await stage.store.delete('session_1');
      await stage.expectEvents('session_10', [event(1), event(2)], 'after another was deleted');
      await stage.expectEvents('session_2', [event(1), event(2)], 'after another was deleted');
    },
  },
  'delete.held': {
    title: 'deleting a session that somebody writes to is refused with `session_locked`',
    async run(stage) {
      const log = await stage.create('session_1', { events: [event(1)] });
      await expectError(stage.store.delete('session_1'), 'session_locked', 'delete');
      await log.append([event(2)]);
      await log.close();
      await stage.expectEvents('session_1', [event(1), event(2)], 'after somebody tried to delete it');
      expectEqual(await stage.store.delete('session_1'), true, 'delete, after it was closed');
    },
  },
};
