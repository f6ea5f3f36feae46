/** Cases about logs: what is appended comes back as it was, in order, and all or nothing of it. */
import { isRecord, type JsonObject } from '../../core/json.ts';
import type { SessionEvent } from '../../sessions/session-store.ts';
import { expectEqual, fail } from './llm-conformance-checks.ts';
import type { CaseDefinition } from './conformance-case.ts';
import type { StoreCasesOf } from './store-conformance-case.ts';
import { AWKWARD_TEXTS, AWKWARD_VALUES, awkwardKeys, event, events, largeText, snapshot, textEvent, toolRun, unknownEvent } from './store-conformance-samples.ts';
import { expectError, expectRefused, type StoreStage } from './store-conformance-stage.ts';

const MANY = 2_500;
const OVERLAPPING = 40;

function contentCase(title: string, make: () => readonly SessionEvent[]): CaseDefinition<StoreStage> {
  return {
    title,
    async run(stage) {
      const made = make();
      await stage.keep('session_1', made);
      await stage.expectEvents('session_1', made, 'of what was appended');
      await (await stage.create('session_2', { events: made })).close();
      await stage.expectEvents('session_2', made, 'of what the session was made with');
    },
  };
}

/** Changes all that can be changed in a value: what is frozen stays. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const key of Object.keys(value)) {
    spoil(Reflect.get(value, key));
    if (typeof Reflect.get(value, key) !== 'object') Reflect.set(value, key, 'spoilt');
  }
  if (isRecord(value)) Reflect.set(value, 'spoilt', true);
}

function changeable(): SessionEvent[] {
  return [textEvent('as it was'), unknownEvent({ list: [{ deep: 1 }], text: 'as it was' })];
}

/** Cases about logs. */
export const logCases: StoreCasesOf<'append' | 'content' | 'close'> = {
  'append.order': {
    title: 'events come back in the order in which they were appended',
    async run(stage) {
      const log = await stage.create('session_1');
      for (const [from, count] of [[0, 1], [1, 5], [6, 1], [7, 2]] as const) await log.append(events(from, count));
      await log.close();
      await stage.expectEvents('session_1', events(0, 9), 'after four appends');
      const again = await stage.open('session_1');
      await again.load();
      await again.append(events(9, 2));
      await again.close();
      await stage.expectEvents('session_1', events(0, 11), 'after a fifth, of another writer');
    },
  },
  'append.overlapping': {
    title: 'appends that overlap keep the order in which they were called',
    async run(stage) {
      const log = await stage.create('session_1');
      const calls: Promise<void>[] = [];
      let count = 0;
      // The first are the longest: whoever writes them side by side has them come last.
      for (let size = OVERLAPPING; size > 0; size -= 1) {
        calls.push(log.append(events(count, size)));
        count += size;
      }
      await Promise.all(calls);
      await log.close();
      await stage.expectEvents('session_1', events(0, count), 'after appends that overlapped');
    },
  },
  'append.nothing': {
    title: 'appending no events changes nothing',
    async run(stage) {
      const log = await stage.create('session_1', { events: [] });
      await log.append([]);
      await log.append([event(1)]);
      await log.append([]);
      await log.close();
      await stage.expectEvents('session_1', [event(1)], 'after appends of nothing');
    },
  },
  'append.whole': {
    title: 'of a list of events of which one is no JSON nothing is kept, and later ones are',
    async run(stage) {
      const cycle: Record<string, unknown> = {};
      cycle['itself'] = cycle;
      const broken = unknownEvent(cycle as JsonObject);
      const log = await stage.create('session_1');
      await log.append([event(0)]);
      const [refused, kept] = await Promise.allSettled([log.append([event(7), broken, event(8)]), log.append([event(1)])]);
      if (refused.status !== 'rejected') fail('append: resolved for an event that holds itself, which nothing can keep');
      if (kept.status === 'rejected') throw kept.reason;
      await log.append([event(2)]);
      await log.close();
      await stage.expectEvents('session_1', events(0, 3), 'after an append that was refused');
    },
  },
  'append.many': {
    title: 'thousands of events come back, in order',
    async run(stage) {
      await stage.keep('session_1', events(0, MANY));
      await stage.expectEvents('session_1', events(0, MANY), `of ${MANY} events`);
    },
  },

  'content.texts': contentCase('texts come back to the last character: control characters, halves of characters, line ends, quotes', () => AWKWARD_TEXTS.map(textEvent)),
  'content.keys': contentCase('keys stay keys, `__proto__` too', () => [unknownEvent(awkwardKeys()), unknownEvent({ inner: [awkwardKeys()] })]),
  'content.values': contentCase('numbers, words, empty and deep values come back as they were', () => [unknownEvent(AWKWARD_VALUES)]),
  'content.large': contentCase('a text of a megabyte comes back', () => [textEvent(largeText()), event(1)]),
  'content.results': contentCase('results of tools come back whole, with `tool.finished` and with `tool.result`', () => [
    ...toolRun('call_1', 'the same body'),
    ...toolRun('call_2', AWKWARD_TEXTS.join('')),
    // Their order is that of completion, and that of the calls.
    ...[toolRun('call_3', 'three'), toolRun('call_4', 'four')].flatMap((run) => run.slice(0, 2)),
    ...[toolRun('call_4', 'four'), toolRun('call_3', 'three')].flatMap((run) => run.slice(2, 3)),
    ...[toolRun('call_3', 'three'), toolRun('call_4', 'not what the tool gave')].flatMap((run) => run.slice(3)),
  ]),
  'content.unknown': contentCase('events of types that a later release has are kept', () => [event(0), unknownEvent({ any: 'thing' }), event(1)]),
  'content.appended': {
    title: 'changing what was appended, after that, changes nothing that is kept',
    async run(stage) {
      const given = changeable();
      const first = changeable();
      const log = await stage.create('session_1', { events: first });
      spoil(first);
      await log.append(given);
      spoil(given);
      given.pop();
      await log.close();
      await stage.expectEvents('session_1', [...changeable(), ...changeable()], 'after what was appended had been changed');
    },
  },
  'content.handed_out': {
    title: 'changing what was loaded or read changes nothing that is kept',
    async run(stage) {
      const kept = snapshot('session_1', { state: { list: [{ deep: 1 }] } });
      const metadata = { list: [{ deep: 1 }] };
      const log = await stage.create('session_1', { metadata });
      await log.saveSnapshot(kept);
      await log.append(changeable());
      await log.close();
      spoil(await stage.load('session_1'));
      spoil(await stage.store.read('session_1'));
      spoil(await stage.store.list());
      spoil(log.header);
      await stage.expectEvents('session_1', changeable(), 'after what was handed out had been changed');
      expectEqual((await stage.load('session_1')).snapshot, kept, 'the snapshot, after what was handed out had been changed');
      expectEqual((await stage.store.read('session_1')).header.metadata, metadata, '`metadata`, after what was handed out had been changed');
    },
  },

  'close.refuses': {
    title: 'a log that was closed refuses everything with `session_closed`',
    async run(stage) {
      const log = await stage.create('session_1', { events: [event(1)] });
      await log.close();
      await expectRefused(log, 'session_closed', { events: [event(2)], snapshot: snapshot('session_1', {}) });
      await expectError(log.load(), 'session_closed', 'load');
      await expectError(log.child('child_1'), 'session_closed', 'child');
      await stage.expectEvents('session_1', [event(1)], 'after a closed log was written to');
    },
  },
  'close.twice': {
    title: 'closing a log again changes nothing, also when another has the session by then',
    async run(stage) {
      const log = await stage.create('session_1');
      await Promise.all([log.close(), log.close()]);
      const next = await stage.open('session_1');
      await log.close();
      await expectError(stage.open('session_1'), 'session_locked', 'open, after a former writer closed its log again');
      await next.append([event(1)]);
    },
  },
  'close.waits': {
    title: 'what is under way when a log is closed ends first',
    async run(stage) {
      const log = await stage.create('session_1');
      const calls = [log.append(events(0, 3)), log.append([event(3)]), log.close()];
      await Promise.all(calls);
      await stage.expectEvents('session_1', events(0, 4), 'after the log was closed in the middle');
    },
  },
};
