/** How many files a store of files has open: few, however many sessions are held. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FileSystem, fileSessionStore, nodeFileSystem, type OpenFile, type SessionLog, type SessionStore } from 'turnloop/sessions';
import { abandon, lockOf, storeFolder } from './support/disk.ts';
import { note, notes, snapshotOf } from './support/samples.ts';

let place: ReturnType<typeof storeFolder>;
beforeEach(() => {
  place = storeFolder();
});
afterEach(() => place.remove());

interface NarrowDisk extends FileSystem {
  /** Files that were open at once. */
  readonly most: number;
  /** Of which file closing fails. */
  failClose: ((path: string) => boolean) | undefined;
}

/** A disk that refuses to have more files open than a process may. */
function narrowDisk(limit: number): NarrowDisk {
  let open = 0;
  const disk = {
    ...nodeFileSystem,
    most: 0,
    failClose: undefined as ((path: string) => boolean) | undefined,
    async open(path: string, use: 'read' | 'change' | 'new'): Promise<OpenFile> {
      if (open >= limit) throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      open += 1;
      disk.most = Math.max(disk.most, open);
      try {
        const file = await nodeFileSystem.open(path, use);
        return {
          ...file,
          close: async () => {
            await file.close();
            open -= 1;
            if (disk.failClose?.(path) === true) throw Object.assign(new Error('EIO: it cannot be closed'), { code: 'EIO' });
          },
        };
      } catch (error) {
        open -= 1;
        throw error;
      }
    },
  };
  return disk;
}

const idOf = (index: number): string => `s-${index}`;
const range = (length: number): number[] => Array.from({ length }, (_, index) => index);

/** Uses so many other sessions that none of the first is open any more. */
async function useOthers(store: SessionStore): Promise<readonly SessionLog[]> {
  return Promise.all(range(70).map((index) => store.create({ sessionId: `other-${index}`, createdAt: 1 })));
}

describe('E9 sessions without number', () => {
  it('E9 are held by one store with few files open, also if all are opened, written, given sub-agents and closed at once', { timeout: 60_000 }, async () => {
    const disk = narrowDisk(80);
    const store = fileSessionStore(place.folder, { files: disk });
    const logs = await Promise.all(range(1500).map((index) => store.create({ sessionId: idOf(index), createdAt: 1 })));
    await Promise.all(logs.map((log) => log.append([note(0)])));
    await Promise.all(logs.map((log) => log.append([note(1), note(2)])));
    const children = await Promise.all(logs.slice(0, 200).map((log) => log.child('c')));
    await Promise.all(children.map((child) => child.append([note(5)])));
    await Promise.all(logs.slice(0, 200).map((log) => log.saveSnapshot(snapshotOf(log.header.sessionId, 3))));
    await Promise.all(logs.map((log) => log.append([note(3)])));
    await Promise.all(logs.map((log) => log.close()));

    const opened = await Promise.all(range(1500).map((index) => store.open(idOf(index))));
    const contents = await Promise.all(opened.map((log) => log.load()));
    contents.forEach(({ events, snapshot }, index) => {
      expect(events).toStrictEqual(index < 200 ? [note(3)] : notes(0, 4));
      expect(snapshot?.events).toBe(index < 200 ? 3 : undefined);
    });
    await Promise.all(opened.map((log) => log.close()));
    expect((await Promise.all(range(1500).map((index) => store.read(idOf(index))))).every(({ events }) => events.length === 4)).toBe(true);
    expect(disk.most).toBeLessThanOrEqual(64);
  });

  it('E9 of which all owners have died are taken over at once', { timeout: 60_000 }, async () => {
    const first = fileSessionStore(place.folder);
    const lost = await Promise.all(range(200).map((index) => first.create({ sessionId: idOf(index), createdAt: 1, events: notes(0, 3) })));
    for (const index of range(200)) abandon(join(place.folder, idOf(index)));

    const disk = narrowDisk(80);
    const store = fileSessionStore(place.folder, { files: disk });
    const logs = await Promise.all(range(200).map((index) => store.open(idOf(index))));
    await Promise.all(logs.map((log) => log.append([note(3)])));
    await Promise.all(logs.map((log) => log.close()));
    await Promise.all(lost.map((log) => log.close()));
    expect((await Promise.all(range(200).map((index) => store.read(idOf(index))))).every(({ events }) => events.length === 4)).toBe(true);
    expect(disk.most).toBeLessThanOrEqual(64);
  });
});

describe('E9 a log that was closed for others', () => {
  it('E9 is not written to, nor cut, if its session was taken over meanwhile', async () => {
    const store = fileSessionStore(place.folder, { files: narrowDisk(80) });
    const first = await store.create({ sessionId: 's', createdAt: 1, events: notes(0, 2) });
    const others = await useOthers(store);
    abandon(join(place.folder, 's'));
    const elsewhere = fileSessionStore(place.folder);
    const second = await elsewhere.open('s');
    await second.append([note(2)]);
    const before = readFileSync(join(place.folder, 's', 'log.jsonl'), 'utf8');

    await expect(first.append([note(9)])).rejects.toMatchObject({ code: 'session_lost' });
    await expect(first.saveSnapshot(snapshotOf('s', 2))).rejects.toMatchObject({ code: 'session_lost' });
    expect(readFileSync(join(place.folder, 's', 'log.jsonl'), 'utf8')).toBe(before);
    await second.append([note(3)]);
    await second.close();
    await first.close();
    await Promise.all(others.map((log) => log.close()));
    expect((await elsewhere.read('s')).events).toStrictEqual(notes(0, 4));
    expect(lockOf(join(place.folder, 's'))).toBe('lock.free');
  });

  it('E9 and could not be closed says so at its next write, and goes on', async () => {
    const disk = narrowDisk(80);
    const store = fileSessionStore(place.folder, { files: disk });
    const log = await store.create({ sessionId: 's', createdAt: 1 });
    await log.append([note(0)]);
    disk.failClose = (path) => path === join(place.folder, 's', 'log.jsonl');
    const others = await useOthers(store);
    disk.failClose = undefined;

    await expect(log.append([note(1)])).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('EIO') });
    await log.append([note(1)]);
    await log.close();
    await Promise.all(others.map((other) => other.close()));
    expect((await store.read('s')).events).toStrictEqual(notes(0, 2));
  });
});
