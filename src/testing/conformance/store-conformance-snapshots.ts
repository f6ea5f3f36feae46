/** Cases about snapshots: the newest that holds comes back, with the events behind it. */
import { isTurnloopError } from '../../core/errors.ts';
import { userMessage } from '../../core/message.ts';
import { expectEqual, fail, shown } from './llm-conformance-checks.ts';
import type { StoreCasesOf } from './store-conformance-case.ts';
import { AWKWARD_TEXTS, AWKWARD_VALUES, awkwardKeys, event, events, largeText, snapshot, toolRun } from './store-conformance-samples.ts';

const ID = 'session_1';
const NEWER_VERSION = 1_000;

/** Cases about snapshots. */
export const snapshotCases: StoreCasesOf<'snapshot'> = {
  'snapshot.behind': {
    title: 'load gives the snapshot and the events behind it, and nothing is lost by it',
    async run(stage) {
      const kept = snapshot(ID, { events: 3, turns: 1, steps: 2 });
      const log = await stage.create(ID);
      await log.append(events(0, 3));
      await log.saveSnapshot(kept);
      await log.append(events(3, 2));
      await log.close();
      expectEqual(await stage.load(ID), { snapshot: kept, events: events(3, 2), repairs: [] }, 'load');
      expectEqual((await stage.store.read(ID)).events, events(0, 5), 'events that read gives');
    },
  },
  'snapshot.replaced': {
    title: 'a snapshot takes the place of the one before',
    async run(stage) {
      const log = await stage.create(ID);
      for (let count = 1; count <= 3; count += 1) {
        await log.append([event(count - 1)]);
        await log.saveSnapshot(snapshot(ID, { events: count, turns: count }));
      }
      await log.close();
      const newest = snapshot(ID, { events: 3, turns: 3 });
      expectEqual(await stage.load(ID), { snapshot: newest, events: [], repairs: [] }, 'load, after the third snapshot');
      const again = await stage.open(ID);
      await again.load();
      await again.append([event(3)]);
      const later = snapshot(ID, { events: 4, turns: 4 });
      await again.saveSnapshot(later);
      await again.close();
      expectEqual(await stage.load(ID), { snapshot: later, events: [], repairs: [] }, 'load, after the snapshot of another writer');
    },
  },
  'snapshot.content': {
    title: 'all of a snapshot comes back as it was',
    async run(stage) {
      const kept = snapshot(ID, {
        ...{ events: 1, turns: 7, steps: 11, agent: 'reviewer' },
        transcript: { version: 1, messages: [userMessage(largeText(), { id: 'message_0' }), ...AWKWARD_TEXTS.map((text, index) => userMessage(`.${text}`, { id: `message_${index + 1}` }))] },
        usage: { inputTokens: 1, cacheReadTokens: 2, cacheWriteTokens: 3, outputTokens: 5, thinkingTokens: 4 },
        queue: [userMessage('later', { id: 'message_9', origin: 'host' })],
        state: { keys: awkwardKeys(), values: AWKWARD_VALUES },
      });
      const log = await stage.create(ID, { events: [event(0)] });
      await log.saveSnapshot(kept);
      await log.close();
      expectEqual((await stage.load(ID)).snapshot, kept, '`snapshot` that load gives');
    },
  },
  'snapshot.order': {
    title: 'a snapshot that overlaps appends covers those that were called before it',
    async run(stage) {
      const log = await stage.create(ID);
      const kept = snapshot(ID, { events: 4 });
      await Promise.all([log.append(events(0, 3)), log.append([event(3)]), log.saveSnapshot(kept), log.append(events(4, 2))]);
      await log.close();
      expectEqual(await stage.load(ID), { snapshot: kept, events: events(4, 2), repairs: [] }, 'load');
    },
  },
  'snapshot.results': {
    title: 'a result behind a snapshot is whole, though `tool.finished` had the same body before it',
    async run(stage) {
      const run = toolRun('call_1', 'the same body');
      const log = await stage.create(ID);
      await log.append(run.slice(0, 3));
      const kept = snapshot(ID, { events: 3 });
      await log.saveSnapshot(kept);
      await log.append(run.slice(3));
      await log.close();
      expectEqual(await stage.load(ID), { snapshot: kept, events: run.slice(3), repairs: [] }, 'load');
      expectEqual((await stage.store.read(ID)).events, run, 'events that read gives');
    },
  },
  'snapshot.newer': {
    title: 'a snapshot of a newer version is refused with `unsupported_version`, and the log stays',
    async run(stage) {
      const log = await stage.create(ID, { events: [event(0)] });
      await log.saveSnapshot(snapshot(ID, { events: 1, version: NEWER_VERSION })).catch(expectUnsupported);
      await log.close();
      const loaded = await stage.load(ID).then((log) => log.snapshot, expectUnsupported);
      if (loaded !== undefined) fail(`load gave a snapshot of version ${NEWER_VERSION}, which nobody here can read: leave it out, or reject with \`unsupported_version\``);
      expectEqual((await stage.store.read(ID)).events, [event(0)], 'events that read gives');
    },
  },
  'snapshot.beyond': {
    title: 'a snapshot that covers more events than there are is not used: the whole log is loaded, and `repairs` says so',
    async run(stage) {
      const log = await stage.create(ID, { events: events(0, 2) });
      const isKept = await log.saveSnapshot(snapshot(ID, { events: 3 })).then(
        () => true,
        () => false,
      );
      await log.close();
      const { snapshot: loaded, events: behind, repairs } = await stage.load(ID);
      expectEqual(loaded, undefined, '`snapshot` that load gives');
      expectEqual(behind, events(0, 2), 'events that load gives');
      if (isKept && !repairs.some(({ kind }) => kind === 'snapshot_dropped')) fail(`\`repairs\` tells of no \`snapshot_dropped\`: ${shown(repairs)}`);
    },
  },
};

function expectUnsupported(error: unknown): void {
  if (isTurnloopError(error) && error.code === 'unsupported_version') return;
  fail(`a snapshot of a newer version: expected \`unsupported_version\`, got ${shown(error)}`);
}
