/** Cases about ids: they are data, whatever they look like. */
import type { SessionStore } from '../../sessions/session-store.ts';
import { expectEqual } from './llm-conformance-checks.ts';
import type { StoreCasesOf } from './store-conformance-case.ts';
import { AWKWARD_IDS, event, GOOD_IDS, NO_IDS, PROTOTYPE_IDS } from './store-conformance-samples.ts';
import { expectError, isRefusedId, type StoreStage } from './store-conformance-stage.ts';

/** Makes a session of each id that the store takes, with an event that tells it from the others. */
async function keepAll(stage: StoreStage, ids: readonly string[]): Promise<readonly string[]> {
  const taken: string[] = [];
  for (const [index, id] of ids.entries()) if (!(await isRefusedId(stage.keep(id, [event(index)])))) taken.push(id);
  return taken;
}

async function listedIds(store: SessionStore): Promise<readonly string[]> {
  return (await store.list()).map(({ sessionId }) => sessionId).sort();
}

/** Cases about ids. */
export const idCases: StoreCasesOf<'ids' | 'outside'> = {
  'ids.texts': {
    title: 'any text that people call a session is an id',
    async run(stage) {
      for (const [index, id] of GOOD_IDS.entries()) await stage.keep(id, [event(index)]);
      for (const [index, id] of GOOD_IDS.entries()) await stage.expectEvents(id, [event(index)], `of the session ${JSON.stringify(id)}`);
      expectEqual(await listedIds(stage.store), [...GOOD_IDS].sort(), 'ids in the list');
    },
  },
  'ids.apart': {
    title: 'ids that look like paths, patterns or each other are refused with `invalid_session_id`, or never share anything',
    async run(stage) {
      const taken = await keepAll(stage, AWKWARD_IDS);
      for (const id of taken) {
        const { header, events } = await stage.store.read(id);
        expectEqual(header.sessionId, id, `\`sessionId\` of the session ${JSON.stringify(id)}`);
        expectEqual(events, [event(AWKWARD_IDS.indexOf(id))], `events of the session ${JSON.stringify(id)}`);
      }
      expectEqual(await listedIds(stage.store), [...taken].sort(), 'ids in the list');
      for (const [index, id] of taken.entries()) {
        expectEqual(await stage.store.delete(id), true, `delete of ${JSON.stringify(id)}`);
        expectEqual((await stage.store.list()).length, taken.length - index - 1, `sessions left after ${JSON.stringify(id)} was deleted`);
      }
    },
  },
  'ids.refused': {
    title: 'the empty text, more than 1,000 bytes and halves of characters are no ids: `invalid_session_id`',
    async run(stage) {
      for (const id of NO_IDS) {
        const name = JSON.stringify(id.slice(0, 5));
        await expectError(stage.create(id), 'invalid_session_id', `create of ${name}`);
        await expectError(stage.open(id), 'invalid_session_id', `open of ${name}`);
        await expectError(stage.store.read(id), 'invalid_session_id', `read of ${name}`);
        await expectError(stage.store.delete(id), 'invalid_session_id', `delete of ${name}`);
      }
      expectEqual(await stage.store.list(), [], 'list');
    },
  },
  'ids.prototype': {
    title: 'names that every object has are ids as any other',
    async run(stage) {
      for (const id of PROTOTYPE_IDS) {
        await expectError(stage.open(id), 'session_not_found', `open of ${id}, which nobody made`);
        expectEqual(await stage.store.delete(id), false, `delete of ${id}, which nobody made`);
      }
      for (const id of PROTOTYPE_IDS) await stage.keep(id, [event(1)]);
      for (const id of PROTOTYPE_IDS) await stage.expectEvents(id, [event(1)], `of the session ${id}`);
    },
  },
  'outside.untouched': {
    title: 'no id leads out of the storage, to make, read or delete anything',
    async run(stage) {
      const look = stage.able('outside');
      const before = await look();
      const ids = [...AWKWARD_IDS, ...NO_IDS, ...PROTOTYPE_IDS];
      const taken = await keepAll(stage, ids);
      expectEqual(await look(), before, 'what is outside, after sessions with awkward ids were made');
      const log = await stage.create('session_1');
      for (const id of ids) await isRefusedId(log.child(id).then((child) => child.append([event(1)])));
      await log.close();
      expectEqual(await look(), before, 'what is outside, after sub-agents with awkward ids were made');
      for (const id of [...taken, 'session_1']) await stage.store.delete(id);
      expectEqual(await look(), before, 'what is outside, after they were deleted');
    },
  },
};
