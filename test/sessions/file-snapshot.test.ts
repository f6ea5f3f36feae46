/** What a store of files does with its snapshots: one that does not fit its log is never used, and the log says all. */
import { copyFileSync, readdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { userMessage } from 'turnloop';
import { fileSessionStore, type SessionContent, type SessionStore } from 'turnloop/sessions';
import { abandon, faultyDisk, storeFolder } from './support/disk.ts';
import { note, notes, snapshotOf } from './support/samples.ts';

let place: ReturnType<typeof storeFolder>;
let store: SessionStore;
const folder = (): string => join(place.folder, 's');
const snapshotPath = (): string => join(folder(), 'snapshot.json');
const logPath = (): string => join(folder(), 'log.jsonl');

beforeEach(() => {
  place = storeFolder();
  store = fileSessionStore(place.folder);
});
afterEach(() => place.remove());

/** Session `s`: two events, a snapshot of them, one event. */
async function keep(): Promise<void> {
  const log = await store.create({ sessionId: 's', createdAt: 7, events: notes(0, 2) });
  await log.saveSnapshot(snapshotOf('s', 2, { turns: 1 }));
  await log.append([note(2)]);
  await log.close();
}

async function load(id = 's'): Promise<SessionContent> {
  const log = await store.open(id);
  try {
    return await log.load();
  } finally {
    await log.close();
  }
}

/** Changes the snapshot file as a JSON object. */
function change(changes: Record<string, unknown>): void {
  writeFileSync(snapshotPath(), JSON.stringify({ ...(JSON.parse(readFileSync(snapshotPath(), 'utf8')) as object), ...changes }));
}

const dropped = { events: notes(0, 3), repairs: [{ kind: 'snapshot_dropped', message: expect.any(String) }] };

describe('E10 BR-017 a snapshot that cannot be used', () => {
  it.each([
    ['is empty', () => truncateSync(snapshotPath(), 0)],
    ['ends in the middle', () => truncateSync(snapshotPath(), 100)],
    ['has the rest of a longer one behind it', () => writeFileSync(snapshotPath(), `${readFileSync(snapshotPath(), 'utf8')}${'x'.repeat(1111)}`)],
    ['is no object', () => writeFileSync(snapshotPath(), '[]')],
    ['is of another session', () => change({ sessionId: 't' })],
    ['has no transcript', () => change({ transcript: undefined })],
    ['has no version', () => change({ version: undefined })],
    ['has a queue of what is no message', () => change({ queue: [{ role: 'assistant' }] })],
    ['does not say how many events it covers', () => change({ events: 'two' })],
    ['does not say what it covers', () => change({ log: undefined })],
    ['covers what is not there', () => change({ log: { size: 1e9, lastLineAt: 3, hash: '' } })],
    ['covers a part of a line', () => change({ log: { size: 20, lastLineAt: 0, hash: '' } })],
    ['covers nothing', () => change({ log: { size: 0, lastLineAt: 0, hash: '' } })],
    ['is a folder', () => {
      rmSync(snapshotPath());
      symlinkSync(folder(), snapshotPath());
    }],
  ])('E10 BR-017 because it %s is dropped, told of, and left until the next takes its place', async (_, spoil) => {
    await keep();
    spoil();

    expect(await load()).toStrictEqual(dropped);
    // It is still there, and dropped again.
    expect(await load()).toStrictEqual(dropped);
    const log = await store.open('s');
    await log.saveSnapshot(snapshotOf('s', 3));
    await log.close();
    expect(await load()).toStrictEqual({ snapshot: snapshotOf('s', 3), events: [], repairs: [] });
  });

  it('E10 because the log lost its end is dropped', async () => {
    await keep();
    const whole = readFileSync(logPath());
    const [lastLine, lineBefore] = [whole.lastIndexOf('\n', -2), whole.lastIndexOf('\n', whole.lastIndexOf('\n', -2) - 1)];
    truncateSync(logPath(), lineBefore + 1);

    expect(lastLine).toBeGreaterThan(lineBefore);
    expect(await load()).toStrictEqual({ events: [note(0)], repairs: [{ kind: 'snapshot_dropped', message: expect.stringContaining('covers more than the log has') }] });
  });

  it('E10 because it is that of a session that had the same id is dropped', async () => {
    await keep();
    copyFileSync(snapshotPath(), join(place.above, 'kept'));
    await store.delete('s');
    await (await store.create({ sessionId: 's', createdAt: 7, events: notes(5, 8) })).close();
    copyFileSync(join(place.above, 'kept'), snapshotPath());

    expect(await load()).toStrictEqual({ ...dropped, events: notes(5, 8) });
  });

  it('E10 that was deleted leaves the whole log', async () => {
    await keep();
    rmSync(snapshotPath());

    expect(await load()).toStrictEqual({ events: notes(0, 3), repairs: [] });
  });

  it('E10 is read without the log before it', async () => {
    await keep();
    let bytes = 0;
    const files = faultyDisk(() => undefined);
    const counting = {
      ...files,
      open: async (path: string, use: 'read' | 'change' | 'new') => {
        const file = await files.open(path, use);
        return { ...file, read: async (offset: number, length: number) => (path === logPath() && (bytes += length), file.read(offset, length)) };
      },
    };
    const long = await store.open('s');
    await long.load();
    await long.append(Array.from({ length: 2000 }, (_, index) => note(index, 'x'.repeat(1000))));
    await long.saveSnapshot(snapshotOf('s', 2003));
    await long.append([note(9)]);
    await long.close();

    const log = await fileSessionStore(place.folder, { files: counting }).open('s');
    expect((await log.load()).events).toStrictEqual([note(9)]);
    await log.close();
    expect(bytes).toBeLessThan(200_000);
  });
});

describe('E10 BR-074 a snapshot of another release', () => {
  it('E10 BR-074 that is older has defaults for what was added since, and no NaN', async () => {
    await keep();
    const { log } = JSON.parse(readFileSync(snapshotPath(), 'utf8')) as { log: unknown };
    writeFileSync(snapshotPath(), JSON.stringify({ version: 1, sessionId: 's', events: 2, transcript: { version: 1, messages: [] }, log }));

    const { snapshot, events } = await load();
    expect(snapshot).toStrictEqual({ ...snapshotOf('s', 2), at: 0 });
    expect(events).toStrictEqual([note(2)]);
  });

  it.each([
    ['turns', null],
    ['steps', 'x'],
    ['usage', { inputTokens: null, outputTokens: 5 }],
    ['state', 7],
    ['agent', 8],
  ])('E10 BR-074 whose `%s` is damaged is dropped: the log tells what is true', async (field, value) => {
    await keep();
    change({ [field]: value });

    const { snapshot, events, repairs } = await load();
    expect([snapshot, events]).toStrictEqual([undefined, notes(0, 3)]);
    expect(repairs).toMatchObject([{ kind: 'snapshot_dropped', message: expect.stringContaining(`\`${field}\``) }]);
  });

  it.each([
    ['', { version: 99 }],
    [' of its transcript', { transcript: { version: 99, messages: [{ role: 'user', content: [{ type: 'hologram' }] }] } }],
  ])('E10 BR-074 of a newer version%s is refused with `unsupported_version`, and nothing is touched', async (_, changes) => {
    await keep();
    change(changes);
    const before = [readFileSync(snapshotPath(), 'utf8'), readFileSync(logPath(), 'utf8')];

    await expect(load()).rejects.toMatchObject({ name: 'SessionError', code: 'unsupported_version', message: expect.stringContaining('version 99') });
    expect([readFileSync(snapshotPath(), 'utf8'), readFileSync(logPath(), 'utf8')]).toStrictEqual(before);
    // Its events can be had.
    expect((await store.read('s')).events).toStrictEqual(notes(0, 3));
  });
});

describe('E10 BR-017 a snapshot that cannot be written', () => {
  it.each(['file.write', 'file.flush', 'rename', 'open'] as const)('E10 BR-017 because the disk fails to %s leaves the one before, and no other file', async (call) => {
    await keep();
    let isFailing = false;
    const files = faultyDisk((asked) => (isFailing && asked.call === call ? { code: 'ENOSPC', ...(call === 'file.write' && { afterBytes: 10 }) } : undefined));
    const log = await fileSessionStore(place.folder, { files }).open('s');
    await log.load();
    const before = readdirSync(folder()).sort();
    isFailing = true;

    await expect(log.saveSnapshot(snapshotOf('s', 3))).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('ENOSPC') });
    isFailing = false;
    expect(readdirSync(folder()).sort()).toStrictEqual(before);
    await log.append([note(3)]);
    await log.close();
    expect(await load()).toStrictEqual({ snapshot: snapshotOf('s', 2, { turns: 1 }), events: notes(2, 4), repairs: [] });
  });

  it('E10 is on the disk behind the events that it covers', async () => {
    const calls: string[] = [];
    const files = faultyDisk(({ call, path }) => {
      if (call === 'file.flush' || call === 'rename') calls.push(`${call} ${path.replace(/^.*\/(?:[0-9a-f-]{36}(?=\.tmp))?/, '')}`);
      return undefined;
    });
    const log = await fileSessionStore(place.folder, { files }).create({ sessionId: 's', createdAt: 7, events: [note(0)] });
    calls.length = 0;
    await log.saveSnapshot(snapshotOf('s', 1));

    expect(calls).toStrictEqual(['file.flush log.jsonl', 'file.flush .tmp', 'rename snapshot.json']);
    await log.close();
  });
});

describe('E10 BR-079 snapshots that overlap', () => {
  it('E10 BR-079 take place in the order of the calls, whatever their size, and leave no file', async () => {
    let delayed = 0;
    const files = faultyDisk(async ({ call }) => {
      // The first writes are the slowest.
      if (call === 'file.write' || call === 'rename') for (let turns = 30 - (delayed += 1); turns > 0; turns -= 1) await new Promise(setImmediate);
      return undefined;
    });
    const log = await fileSessionStore(place.folder, { files }).create({ sessionId: 's', createdAt: 7 });
    const message = (text: string): { version: number; messages: ReturnType<typeof userMessage>[] } => ({ version: 1, messages: [userMessage(text, { id: 'm' })] });
    const saves = ['x'.repeat(1_000_000), 'small', 'y'.repeat(1000)].map((text) => log.saveSnapshot(snapshotOf('s', 0, { transcript: message(text) })));
    await Promise.all(saves);
    await log.close();

    expect((await load()).snapshot?.transcript).toStrictEqual(message('y'.repeat(1000)));
    expect(readdirSync(folder()).sort()).toStrictEqual(['lock.free', 'log.jsonl', 'snapshot.json']);
  });
});

describe('E10 BR-116 two owners of a session', () => {
  it('E10 BR-116 never save over each other: the one that lost it is told, and the newer stays', async () => {
    const first = await store.create({ sessionId: 's', createdAt: 7, events: notes(0, 2) });
    await first.load();
    abandon(folder());
    const second = await store.open('s');
    await second.load();
    await second.append([note(2)]);
    await second.saveSnapshot(snapshotOf('s', 3));

    await expect(first.append([note(9)])).rejects.toMatchObject({ code: 'session_lost' });
    await expect(first.saveSnapshot(snapshotOf('s', 2))).rejects.toMatchObject({ code: 'session_lost' });
    await first.close();
    await second.close();
    expect(await load()).toStrictEqual({ snapshot: snapshotOf('s', 3), events: [], repairs: [] });
    expect(readdirSync(folder()).sort()).toStrictEqual(['lock.free', 'log.jsonl', 'snapshot.json']);
  });

  it.each([
    ['before it was written', 'open', '.tmp'],
    ['before it took its place', 'rename', 'snapshot.json'],
  ])('E10 BR-116 never lose a save to one that was stopped %s, and comes late', async (_, stopAt, name) => {
    // The first owner goes on when another has taken the session.
    let goOn = (): void => undefined;
    const stopped = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    let isThere = (): void => undefined;
    const arrived = new Promise<void>((resolve) => {
      isThere = resolve;
    });
    const files = faultyDisk(async ({ call, path }) => {
      if (call !== stopAt || !path.endsWith(name)) return undefined;
      isThere();
      await stopped;
      return undefined;
    });
    const first = await fileSessionStore(place.folder, { files }).create({ sessionId: 's', createdAt: 7, events: notes(0, 2) });
    const late = first.saveSnapshot(snapshotOf('s', 2));
    await arrived;
    abandon(folder());
    const second = await store.open('s');
    await second.load();
    await second.append([note(2)]);
    await second.saveSnapshot(snapshotOf('s', 3));
    goOn();

    await expect(late).rejects.toMatchObject({ code: 'session_lost' });
    await second.close();
    await first.close();
    expect(await load()).toStrictEqual({ snapshot: snapshotOf('s', 3), events: [], repairs: [] });
  });
});
