/** A store of files on a disk that is really full: a small one in memory, where one can be had. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { fileSessionStore } from 'turnloop/sessions';
import { abandon } from './support/disk.ts';
import { note, snapshotOf } from './support/samples.ts';

const folder = mkdtempSync(join(tmpdir(), 'turnloop-full-'));
const isMounted = mountSmallDisk();

function run(program: string, ...options: readonly string[]): void {
  execFileSync(program, options, { stdio: 'ignore' });
}

function mountSmallDisk(): boolean {
  try {
    run('mount', '-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', folder);
    return true;
  } catch {
    return false;
  }
}

afterAll(() => {
  if (isMounted) run('umount', folder);
  rmSync(folder, { recursive: true });
});

/** Takes what room there is; gives it back when called. */
function fill(): () => void {
  const path = join(folder, 'filler');
  for (let size = 256 * 1024; size > 0; size -= 512) {
    try {
      writeFileSync(path, Buffer.alloc(size, 1));
      break;
    } catch {
      rmSync(path, { force: true });
    }
  }
  return () => rmSync(path);
}

describe.skipIf(!isMounted)(`E9 BR-017 a full disk${isMounted ? '' : ' (skipped: no small disk can be mounted here)'}`, () => {
  it('E9 BR-017 fails appends, snapshots and new sessions, and keeps all that was there before', async () => {
    const store = fileSessionStore(folder);
    const log = await store.create({ sessionId: 's', createdAt: 1 });
    let count = 0;
    await log.append([note(count++)]);
    await log.saveSnapshot(snapshotOf('s', 1));
    const free = fill();
    const append = async (): Promise<void> => {
      for (;;) {
        await log.append([note(count, 'x'.repeat(3000))]);
        count += 1;
      }
    };
    await expect(append()).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('ENOSPC') });
    await expect(log.append([note(99, 'x'.repeat(9000))])).rejects.toMatchObject({ code: 'store_failed' });
    await expect(log.saveSnapshot(snapshotOf('s', count, { state: { text: 'x'.repeat(9000) } }))).rejects.toMatchObject({ code: 'store_failed' });
    await expect(store.create({ sessionId: 't', createdAt: 1, events: [note(0, 'x'.repeat(9000))] })).rejects.toMatchObject({ code: 'store_failed' });
    expect(readdirSync(join(folder, 's')).filter((name) => !name.startsWith('lock.')).sort()).toStrictEqual(['log.jsonl', 'snapshot.json']);
    // It can be let go of, read and opened: that needs no room.
    await log.close();
    expect((await store.read('s')).events).toHaveLength(count);
    const again = await store.open('s');
    expect(await again.load()).toMatchObject({ snapshot: { events: 1 }, repairs: [] });

    free();
    await again.append([note(count)]);
    await again.close();
    expect((await store.read('s')).events).toHaveLength(count + 1);
    expect((await store.list()).map(({ sessionId }) => sessionId)).toStrictEqual(['s']);
    await store.delete('s');
  });

  it('E9 has no room to take over the session of a dead owner, which is done once there is', async () => {
    const store = fileSessionStore(folder);
    const log = await store.create({ sessionId: 'd', createdAt: 1, events: [note(0, 'x'.repeat(20_000))] });
    const free = fill();
    abandon(join(folder, 'd'));
    await expect(store.open('d')).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('ENOSPC') });
    expect((await store.read('d')).events).toHaveLength(1);

    free();
    const next = await store.open('d');
    expect((await next.load()).repairs).toMatchObject([{ kind: 'lock_taken' }]);
    await next.close();
    await log.close();
  });
});
