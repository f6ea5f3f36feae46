/** A store of files whose process dies at any instant: between any two calls of the disk, and in the middle of any write. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fileSessionStore, type SessionEvent, type SessionLog } from 'turnloop/sessions';
import { abandon, faultyDisk, lockOf, storeFolder } from './support/disk.ts';
import { finished, note, resulted, resultOf, snapshotOf } from './support/samples.ts';

/** What a process does with a session: events by their number, several calls at once, or a snapshot. */
type Step = { readonly append: readonly number[] } | { readonly snapshot: true };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ append: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 }) }) },
    { weight: 1, arbitrary: fc.constant({ snapshot: true } as const) },
  ),
  { maxLength: 12 },
);

/** Event of that number in the log: among them results whose body is written once. */
function eventAt(index: number): SessionEvent {
  if (index % 5 === 1) return finished(`call_${index}`, resultOf(`body ${index} é`));
  if (index % 5 === 3) return resulted(`call_${index - 2}`, resultOf(`body ${index - 2} é`));
  return note(index, 'x'.repeat(index % 40));
}

/** A disk that stops for good after so many bytes written and calls made: as many of the bytes are there. */
function dyingDisk(ticks: number): ReturnType<typeof faultyDisk> {
  let left = ticks;
  return faultyDisk(({ call, bytes }) => {
    if (left <= 0) return { code: 'EIO' };
    left -= call === 'file.write' ? bytes : 10;
    return left < 0 && call === 'file.write' ? { code: 'EIO', afterBytes: bytes + left } : undefined;
  });
}

/** What became of a session at the hand of a process. */
interface Life {
  /** Events that were confirmed. */
  readonly confirmed: number;
  /** Events that had been handed over. */
  readonly given: number;
}

/** A process that works with session `s`, which has so many events, until it dies or has done its steps. */
async function live(folder: string, ticks: number, had: number, todo: readonly Step[]): Promise<Life> {
  let [confirmed, given] = [had, had];
  const store = fileSessionStore(folder, { files: dyingDisk(ticks) });
  let log: SessionLog;
  try {
    log = existsSync(join(folder, 's')) ? await store.open('s') : await store.create({ sessionId: 's', createdAt: 1 });
  } catch {
    return { confirmed, given };
  }
  try {
    await log.load();
    for (const step of todo) {
      if ('snapshot' in step) {
        await log.saveSnapshot(snapshotOf('s', confirmed));
        continue;
      }
      const calls = step.append.map((count) => {
        const events = Array.from({ length: count }, () => eventAt((given += 1) - 1));
        return log.append(events).then(() => {
          confirmed += count;
        });
      });
      await Promise.all(calls.map((call) => call.catch(() => undefined)));
      await Promise.all(calls);
    }
  } catch {
    // It died.
  }
  await log.close().catch(() => undefined);
  return { confirmed, given };
}

describe('E9 E10 BR-017 a session whose process dies at any instant', () => {
  it('E9 E10 BR-017 has what was confirmed, in order, and nothing that was not handed over, and goes on', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.integer({ min: 0, max: 3000 }), steps), { minLength: 1, maxLength: 4 }), async (lives) => {
        const { folder, remove } = storeFolder();
        try {
          let had = 0;
          for (const [ticks, todo] of lives) {
            const { confirmed, given } = await live(folder, ticks, had, todo);
            const session = join(folder, 's');
            if (!existsSync(session)) {
              expect(confirmed).toBe(0);
              continue;
            }
            if (lockOf(session) !== 'lock.free' && lockOf(session) !== 'lock.abandoned') abandon(session);
            had = await check(folder, { confirmed, given });
          }
        } finally {
          remove();
        }
      }),
      { numRuns: 100 },
    );
  });
});

/** Opens the session as the next process does; gives how many events it has. */
async function check(folder: string, { confirmed, given }: Life): Promise<number> {
  const store = fileSessionStore(folder);
  const { events: all } = await store.read('s');
  const log = await store.open('s');
  const { snapshot, events, repairs } = await log.load();
  const before = snapshot?.events ?? 0;
  const count = before + events.length;

  expect(count).toBeGreaterThanOrEqual(confirmed);
  expect(count).toBeLessThanOrEqual(given);
  expect(all).toStrictEqual(Array.from({ length: count }, (_, index) => eventAt(index)));
  expect(events).toStrictEqual(all.slice(before));
  expect(repairs.map(({ kind }) => kind)).not.toContain('snapshot_dropped');
  await log.append([eventAt(count)]);
  await log.close();
  expect((await store.read('s')).events).toHaveLength(count + 1);
  expect(readdirSync(join(folder, 's')).filter((name) => !['lock.free', 'log.jsonl', 'snapshot.json'].includes(name))).toStrictEqual([]);
  return count + 1;
}
