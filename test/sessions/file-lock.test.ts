/** Who holds a session of a store of files: one at a time, whoever dies, stops or is slow. */
import { readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemRuntime } from 'turnloop';
import { type FileSystem, fileSessionStore, type SessionLog, type SessionStore } from 'turnloop/sessions';
import { seededRandom } from 'turnloop/testing';
import { abandon, faultyDisk, lockOf, storeFolder } from './support/disk.ts';
import { note, notes, snapshotOf } from './support/samples.ts';

let place: ReturnType<typeof storeFolder>;
let store: SessionStore;
let made: SessionLog[];
const folder = (): string => join(place.folder, 's');

beforeEach(() => {
  place = storeFolder();
  store = fileSessionStore(place.folder);
  made = [];
});
afterEach(async () => {
  await Promise.allSettled(made.map((log) => log.close()));
  vi.useRealTimers();
  place.remove();
});

async function create(from = store): Promise<SessionLog> {
  const log = await from.create({ sessionId: 's', createdAt: 7, events: [note(0)] });
  made.push(log);
  return log;
}

/** Fields of the name of a held lock. */
const FIELD = { since: 1, pid: 3, started: 4, place: 5, host: 6 };

/** Gives the lock of session `s` another name, as somebody else would have. */
function relabel(fields: Partial<Record<keyof typeof FIELD, string>>): void {
  const parts = lockOf(folder()).split('.');
  for (const [name, value] of Object.entries(fields)) parts[FIELD[name as keyof typeof FIELD]] = value;
  renameSync(join(folder(), lockOf(folder())), join(folder(), parts.join('.')));
}

/** Makes the lock of session `s` look as if nobody had touched it for a while. */
function age(seconds: number): void {
  const at = Date.now() / 1000 - seconds;
  utimesSync(join(folder(), lockOf(folder())), at, at);
}

describe('E9 a session that somebody holds', () => {
  it('E9 is refused to all others, by the process, the host and the time, also in the same process', async () => {
    const log = await create(fileSessionStore(place.folder, { runtime: { ...systemRuntime, now: () => Date.UTC(2030, 0, 2) } }));

    const refused = expect.stringContaining(`process ${process.pid} on ${hostname().slice(0, 60)}, since 2030-01-02T00:00:00.000Z`);
    await expect(store.open('s')).rejects.toMatchObject({ code: 'session_locked', message: refused });
    await expect(store.delete('s')).rejects.toMatchObject({ code: 'session_locked', message: refused });
    await log.append([note(1)]);
    await log.close();
    await (await store.open('s')).close();
  });

  it('E9 is free when it was closed, and the folder says so', async () => {
    const log = await create();
    expect(lockOf(folder())).not.toBe('lock.free');
    await log.close();

    expect(lockOf(folder())).toBe('lock.free');
    const again = await store.open('s');
    expect((await again.load()).repairs).toStrictEqual([]);
    await again.close();
  });

  it('E9 cannot be opened without its lock, which people may put back', async () => {
    await (await create()).close();
    rmSync(join(folder(), 'lock.free'));

    await expect(store.open('s')).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('put an empty file lock.free there') });
    writeFileSync(join(folder(), 'lock.free'), '');
    await (await store.open('s')).close();
  });

  it('E9 stays held if it cannot be let go of, and closing says so', async () => {
    let isFailing = false;
    const log = await create(fileSessionStore(place.folder, { files: faultyDisk(({ call }) => (isFailing && call === 'rename' ? { code: 'EIO' } : undefined)) }));
    isFailing = true;

    await expect(log.close()).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('stays locked') });
    await expect(store.open('s')).rejects.toMatchObject({ code: 'session_locked' });
  });
});

describe('E9 a session whose owner has died', () => {
  it('E9 is taken over, and who had it is told of', async () => {
    await create();
    abandon(folder());

    const log = await store.open('s');
    const { events, repairs } = await log.load();
    expect(events).toStrictEqual([note(0)]);
    expect(repairs).toStrictEqual([{ kind: 'lock_taken', message: expect.stringMatching(/process \d+ on .*, which is dead/) }]);
    await log.close();
  });

  it.skipIf(process.platform !== 'linux')('E9 is taken over also if its process id was given to another process', async () => {
    await create();
    relabel({ started: '1' });

    await (await store.open('s')).close();
  });

  it('E9 on another host is not touched for a minute after its last sign of life', async () => {
    await create();
    relabel({ place: '0123456789abcdef', host: 'far.2eaway' });
    await expect(store.open('s')).rejects.toMatchObject({ code: 'session_locked', message: expect.stringContaining('on far.away') });
    age(55);
    await expect(store.open('s')).rejects.toMatchObject({ code: 'session_locked' });
    age(62);
    const log = await store.open('s');
    // For others who look at it, the new owner has not been silent for that long.
    expect(statSync(join(folder(), lockOf(folder()))).mtimeMs).toBeGreaterThan(Date.now() - 50_000);
    expect((await log.load()).repairs).toMatchObject([{ kind: 'lock_taken' }]);
    await log.close();
    expect(readdirSync(folder()).sort()).toStrictEqual(['lock.free', 'log.jsonl']);
  });

  it('E9 on another host is not taken for dead because its sign of life could not be dated', async () => {
    await create();
    relabel({ place: '0123456789abcdef' });
    // The owner tidies its folder, and so removes what the time was to be told by.
    const files = faultyDisk(({ call, path }) => {
      if (call === 'look' && path.endsWith('.tmp')) rmSync(path);
      return undefined;
    });

    await expect(fileSessionStore(place.folder, { files }).open('s')).rejects.toMatchObject({ code: 'session_locked' });
  });

  it('E9 of whose lock this release cannot read the name is not touched for a minute either', async () => {
    await (await create()).close();
    renameSync(join(folder(), 'lock.free'), join(folder(), 'lock.of-a-later-release'));
    await expect(store.open('s')).rejects.toMatchObject({ code: 'session_locked' });
    age(62);
    await (await store.open('s')).close();
  });

  it('E9 gives signs of life while it lives, and none once it was closed', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const log = await create();
    age(62);
    const lock = join(folder(), lockOf(folder()));
    const aged = statSync(lock).mtimeMs;
    vi.advanceTimersByTime(10_000);
    await vi.waitFor(() => {
      expect(statSync(lock).mtimeMs).toBeGreaterThan(aged + 60_000);
    });
    await log.close();

    expect(vi.getTimerCount()).toBe(0);
  });

  it('E9 can be deleted', async () => {
    const log = await create();
    abandon(folder());

    expect(await store.delete('s')).toBe(true);
    await expect(log.append([note(1)])).rejects.toMatchObject({ code: 'session_lost' });
    await log.close();
    expect(readdirSync(place.folder)).toStrictEqual([]);
  });

  it('E9 and could not be deleted is still to be taken over', async () => {
    await create();
    abandon(folder());
    const files = faultyDisk(({ call, path }) => (call === 'rename' && path.includes('.gone-') ? { code: 'EIO' } : undefined));

    await expect(fileSessionStore(place.folder, { files }).delete('s')).rejects.toMatchObject({ code: 'store_failed' });
    expect(lockOf(folder())).toBe('lock.abandoned');
    const log = await store.open('s');
    expect((await log.load()).repairs).toMatchObject([{ kind: 'lock_taken' }]);
    await log.close();
  });
});

/** A disk that stops at one call, once, until it is told to go on. */
function stoppingDisk(isThere: (call: string, path: string) => boolean): { files: FileSystem; arm: () => void; arrived: Promise<void>; goOn: () => void } {
  let isArmed = false;
  let [arrive, goOn] = [(): void => undefined, (): void => undefined];
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const gate = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const files = faultyDisk(async ({ call, path }) => {
    if (!isArmed || !isThere(call, path)) return undefined;
    isArmed = false;
    arrive();
    await gate;
    return undefined;
  });
  return {
    files,
    arm: () => {
      isArmed = true;
    },
    arrived,
    goOn: () => goOn(),
  };
}

describe('E9 an owner that was taken for dead and lives', () => {
  it('E9 and goes on in the middle of a write writes nothing into the session, and is told', async () => {
    const disk = stoppingDisk((call, path) => call === 'file.write' && path.endsWith('.jsonl'));
    const first = await create(fileSessionStore(place.folder, { files: disk.files }));
    disk.arm();
    const late = first.append([note(8), note(9)]);
    await disk.arrived;
    abandon(folder());
    const second = await store.open('s');
    await second.append([note(1)]);
    disk.goOn();

    await expect(late).rejects.toMatchObject({ code: 'session_lost' });
    await second.append([note(2)]);
    await second.close();
    await first.close();
    expect((await store.read('s')).events).toStrictEqual(notes(0, 3));
  });

  it('E9 and had written, but not said so, is told; what it wrote comes before what the next one writes', async () => {
    const disk = stoppingDisk((call, path) => call === 'look' && path.includes('lock.'));
    const first = await create(fileSessionStore(place.folder, { files: disk.files }));
    disk.arm();
    const late = first.append([note(1)]);
    await disk.arrived;
    abandon(folder());
    const second = await store.open('s');
    expect((await second.load()).events).toStrictEqual(notes(0, 2));
    disk.goOn();

    await expect(late).rejects.toMatchObject({ code: 'session_lost' });
    await second.append([note(2)]);
    await second.close();
    expect((await store.read('s')).events).toStrictEqual(notes(0, 3));
    await first.close();
    // It lost the session, and does not let it go.
    expect(lockOf(folder())).toBe('lock.free');
  });

  it('E9 writes nothing into the log of a sub-agent either, also if the next owner never opens it', async () => {
    const disk = stoppingDisk((call, path) => call === 'file.write' && path.includes('agents'));
    const first = await create(fileSessionStore(place.folder, { files: disk.files }));
    const child = await first.child('c');
    await child.append([note(0)]);
    disk.arm();
    const late = child.append([note(9)]);
    await disk.arrived;
    abandon(folder());
    await (await store.open('s')).close();
    const third = await store.open('s');
    const again = await third.child('c');
    await again.append([note(1)]);
    disk.goOn();

    await expect(late).rejects.toMatchObject({ code: 'session_lost' });
    await again.append([note(2)]);
    await third.close();
    await first.close();
    const fourth = await store.open('s');
    expect((await (await fourth.child('c')).load()).events).toStrictEqual(notes(0, 3));
    await fourth.close();
  });

  it('E9 is still kept from writing if taking over failed on the way: the next one does it', async () => {
    const first = await create();
    abandon(folder());
    const failing = fileSessionStore(place.folder, { files: faultyDisk(({ call, path }) => (call === 'file.write' && path.endsWith('.tmp') ? { code: 'ENOSPC' } : undefined)) });
    await expect(failing.open('s')).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('ENOSPC') });
    expect(readdirSync(folder()).sort()).toStrictEqual(['lock.abandoned', 'log.jsonl']);

    const before = statSync(join(folder(), 'log.jsonl')).ino;
    const second = await store.open('s');
    expect(statSync(join(folder(), 'log.jsonl')).ino).not.toBe(before);
    expect((await second.load()).repairs).toMatchObject([{ kind: 'lock_taken' }]);
    await expect(first.append([note(9)])).rejects.toMatchObject({ code: 'session_lost' });
    await second.append([note(1)]);
    await second.close();
    await first.close();
    expect((await store.read('s')).events).toStrictEqual(notes(0, 2));
  });

  it('E9 opens no sub-agent any more', async () => {
    const first = await create();
    abandon(folder());
    const second = await store.open('s');

    await expect(first.child('c')).rejects.toMatchObject({ code: 'session_lost' });
    expect(readdirSync(folder())).not.toContain('agents');
    await second.close();
    await first.close();
  });
});

describe('E9 many who want one session', () => {
  /** A disk whose calls take any time, so that those of several stores interleave in another way each time. */
  function slowDisk(random: () => number): FileSystem {
    return faultyDisk(async () => {
      for (let turns = Math.floor(random() * 4); turns > 0; turns -= 1) await new Promise(setImmediate);
      return undefined;
    });
  }

  it.each(Array.from({ length: 12 }, (_, seed) => seed))('E9 have it one after the other, whether it is let go of or its owner dies (seed %d)', { timeout: 30_000 }, async (seed) => {
    const random = seededRandom(seed);
    await (await create()).close();
    let holders = 0;
    let written = 0;
    const kept: unknown[] = [note(0)];
    const want = async (): Promise<void> => {
      const own = fileSessionStore(place.folder, { files: slowDisk(random) });
      for (;;) {
        let log: SessionLog;
        try {
          log = await own.open('s');
        } catch (error) {
          expect(error).toMatchObject({ code: 'session_locked' });
          await new Promise(setImmediate);
          continue;
        }
        holders += 1;
        expect(holders).toBe(1);
        expect((await log.load()).events).toStrictEqual(kept);
        for (let count = 0; count < 3; count += 1) {
          const event = note((written += 1));
          await log.append([event]);
          kept.push(event);
        }
        await log.saveSnapshot(snapshotOf('s', kept.length));
        rmSync(join(folder(), 'snapshot.json'));
        holders -= 1;
        if (random() < 0.5) abandon(folder());
        await log.close();
        return;
      }
    };
    await Promise.all(Array.from({ length: 6 }, want));

    expect((await store.read('s')).events).toStrictEqual(kept);
    expect(kept).toHaveLength(19);
    expect(readFileSync(join(folder(), 'log.jsonl'), 'utf8').split('\n')).toHaveLength(21);
  });
});
