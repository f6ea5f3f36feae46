/** What a store of files does with its logs: how they are written, and what of a broken one can be had back. */
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fileSessionStore, type SessionContent, type SessionStore } from 'turnloop/sessions';
import { type DiskCall, type Fault, faultyDisk, storeFolder } from './support/disk.ts';
import { finished, note, notes, resulted, resultOf, snapshotOf } from './support/samples.ts';

let place: ReturnType<typeof storeFolder>;
let store: SessionStore;
const logPath = (): string => join(place.folder, 's', 'log.jsonl');

beforeEach(() => {
  place = storeFolder();
  store = fileSessionStore(place.folder);
});
afterEach(() => place.remove());

/** A session `s` with some events, closed. */
async function keep(count: number): Promise<void> {
  const log = await store.create({ sessionId: 's', createdAt: 7 });
  await log.append(notes(0, count));
  await log.close();
}

async function load(): Promise<SessionContent> {
  const log = await store.open('s');
  try {
    return await log.load();
  } finally {
    await log.close();
  }
}

const lines = (): unknown[] =>
  readFileSync(logPath(), 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line): unknown => JSON.parse(line));

describe('E9 the log of a session', () => {
  it('E9 is a line for the header and a line for each event', async () => {
    const log = await store.create({ sessionId: 's', createdAt: 7, metadata: { title: 'A\nB' }, events: [note(0)] });
    await log.append([note(1), note(2)]);
    await log.close();

    expect(lines()).toStrictEqual([{ type: 'session', version: 1, sessionId: 's', createdAt: 7, metadata: { title: 'A\nB' } }, note(0), note(1), note(2)]);
  });

  it('E9 has the body of a result once, and gives it back with both events', async () => {
    const body = resultOf('a long body');
    const events = [finished('c1', body), finished('c2', resultOf('x')), resulted('c1', resultOf('a long body')), resulted('c2', resultOf('another'))];
    const log = await store.create({ sessionId: 's', createdAt: 7 });
    await log.append(events);
    await log.close();

    expect(readFileSync(logPath(), 'utf8').split('a long body')).toHaveLength(2);
    expect((await load()).events).toStrictEqual(events);
    expect((await store.read('s')).events).toStrictEqual(events);
  });

  it('E10 has the body of a result again behind a snapshot, which reading may begin with', async () => {
    const log = await store.create({ sessionId: 's', createdAt: 7, events: [note(0)] });
    await log.append([finished('c1', resultOf('body'))]);
    await log.saveSnapshot(snapshotOf('s', 2));
    await log.append([resulted('c1', resultOf('body'))]);
    await log.close();

    expect((await load()).events).toStrictEqual([resulted('c1', resultOf('body'))]);
    expect((await store.read('s')).events).toStrictEqual([note(0), finished('c1', resultOf('body')), resulted('c1', resultOf('body'))]);
  });

  it('E9 has the body of a result again if the write of the first failed', async () => {
    const { store: failing, faults } = faultyStore();
    const log = await failing.create({ sessionId: 's', createdAt: 7 });
    faults.set('file.write', { code: 'ENOSPC' });
    await expect(log.append([finished('c1', resultOf('body'))])).rejects.toMatchObject({ code: 'store_failed' });
    faults.clear();
    await log.append([resulted('c1', resultOf('body'))]);
    await log.close();

    expect((await load()).events).toStrictEqual([resulted('c1', resultOf('body'))]);
  });

  it('E9 is not a log if a result refers to what is not there: the place is named', async () => {
    await keep(1);
    appendFileSync(logPath(), `${JSON.stringify({ ...resulted('c1', resultOf('')), result: undefined })}\n${JSON.stringify(note(1))}\n`);

    await expect(store.read('s')).rejects.toMatchObject({ code: 'broken_log', message: expect.stringMatching(/line 3 .*tool\.finished/) });
  });

  it('E9 can be read by anybody while it is written', async () => {
    const log = await store.create({ sessionId: 's', createdAt: 7 });
    await log.append([note(0)]);
    appendFileSync(logPath(), '{"type":"input.rem');

    expect((await store.read('s')).events).toStrictEqual([note(0)]);
    expect(readFileSync(logPath(), 'utf8')).toMatch(/input\.rem$/);
    await log.close();
  });
});

describe('E9 BR-017 a log that a crash left', () => {
  it.each([
    ['has half a line at its end', '{"type":"input.removed","at":1,"mess'],
    ['has a whole event without a line break at its end', JSON.stringify(note(9))],
    ['has a line at its end that is no JSON', '\u0000\u0000\u0000\u0000\n'],
    ['ends in the middle of a character', Buffer.from('{"type":"é').subarray(0, -1)],
  ])('E9 BR-017 and %s is cut back to its whole events, and goes on', async (_, torn) => {
    await keep(3);
    const before = readFileSync(logPath());
    appendFileSync(logPath(), torn);

    expect((await store.read('s')).events).toStrictEqual(notes(0, 3));
    const log = await store.open('s');
    expect(await log.load()).toStrictEqual({ events: notes(0, 3), repairs: [{ kind: 'torn_line', message: expect.stringContaining(logPath()) }] });
    expect(readFileSync(logPath())).toStrictEqual(before);
    await log.append([note(3)]);
    await log.close();
    expect(await load()).toStrictEqual({ events: notes(0, 4), repairs: [] });
  });

  it('E9 BR-017 at any byte of its last line loses that line alone', async () => {
    await keep(2);
    const whole = readFileSync(logPath());
    const lastLine = whole.lastIndexOf('\n', -2) + 1;
    for (let size = lastLine; size < whole.length; size += 1) {
      writeFileSync(logPath(), whole.subarray(0, size));
      const { events, repairs } = await load();
      expect(events).toStrictEqual([note(0)]);
      expect(repairs).toHaveLength(size === lastLine ? 0 : 1);
    }
  });

  it.each([
    ['that is empty', ''],
    ['that is a part of a header', '{"type":"session","version":1'],
    ['whose header is no JSON', 'header\n{"type":"x"}\n'],
    ['without a header', `${JSON.stringify(note(1))}\n`],
    ['whose header has no id', '{"type":"session","version":1,"createdAt":1}\n'],
    ['whose header has no version', '{"type":"session","sessionId":"s","createdAt":1}\n'],
    ['that is of another session', '{"type":"session","version":1,"sessionId":"t","createdAt":1}\n'],
  ])('E9 BR-017 %s is refused, never an empty session, and stays as it is', async (_, text) => {
    await keep(1);
    writeFileSync(logPath(), text);

    await expect(store.open('s')).rejects.toMatchObject({ name: 'SessionError', code: 'broken_log', message: expect.stringContaining(`${logPath()}, line 1 (byte 0)`) });
    await expect(store.read('s')).rejects.toMatchObject({ code: 'broken_log' });
    expect(await store.list()).toStrictEqual([]);
    expect(readFileSync(logPath(), 'utf8')).toBe(text);
    await expect(store.create({ sessionId: 's', createdAt: 1 })).rejects.toMatchObject({ code: 'session_exists' });
  });

  it('E9 whose file is gone is refused', async () => {
    await keep(1);
    rmSync(logPath());

    await expect(store.open('s')).rejects.toMatchObject({ code: 'broken_log' });
  });

  it.each([
    ['that is no JSON', '{"type":'],
    ['that is no event', '{"kind":"x"}'],
    ['that is no text', Buffer.from('7b2274797065223a22ff227d', 'hex')],
    ['that is empty', ''],
  ])('E9 with a line in the middle %s is refused by its place, and nothing is changed', async (_, line) => {
    await keep(2);
    const at = readFileSync(logPath()).length;
    appendFileSync(logPath(), line);
    appendFileSync(logPath(), `\n${JSON.stringify(note(5))}\n`);
    const before = readFileSync(logPath());

    const broken = { code: 'broken_log', message: expect.stringContaining(`${logPath()}, line 4 (byte ${at}): `) };
    await expect(store.read('s')).rejects.toMatchObject(broken);
    await expect(load()).rejects.toMatchObject(broken);
    await expect(load()).rejects.toThrow(/the 2 events before it can be read/);
    expect(readFileSync(logPath())).toStrictEqual(before);
    // It is in the list, so that somebody finds it.
    expect(await store.list()).toHaveLength(1);
  });

  it('E9 with a broken line before the half of one is refused by the place of the first', async () => {
    await keep(2);
    appendFileSync(logPath(), 'broken\n{"type"');

    await expect(load()).rejects.toMatchObject({ code: 'broken_log', message: expect.stringContaining('line 4 ') });
    expect(readFileSync(logPath(), 'utf8')).toContain('\nbroken\n');
  });

  it('E9 with a broken line behind a snapshot is refused by its place in the whole log', async () => {
    const log = await store.create({ sessionId: 's', createdAt: 7, events: notes(0, 2) });
    await log.saveSnapshot(snapshotOf('s', 2));
    await log.append([note(2)]);
    await log.close();
    appendFileSync(logPath(), `broken\n${JSON.stringify(note(5))}\n`);

    await expect(load()).rejects.toThrow(/line 5 .*the 3 events before/);
  });

  it('E9 of a newer release is refused with `unsupported_version`, and nothing is touched', async () => {
    await keep(1);
    writeFileSync(logPath(), '{"type":"session","version":2,"sessionId":"s","createdAt":1}\n{"half":');
    const before = readdirSync(join(place.folder, 's'));

    await expect(store.open('s')).rejects.toMatchObject({ code: 'unsupported_version', message: expect.stringContaining('version 2') });
    await expect(store.read('s')).rejects.toMatchObject({ code: 'unsupported_version' });
    expect(readFileSync(logPath(), 'utf8')).toMatch(/"half":$/);
    expect(readdirSync(join(place.folder, 's'))).toStrictEqual(before);
  });

  it('E9 is read whole, however long it and its lines are', async () => {
    const long = [note(0, 'é'.repeat(3_000_000)), note(1), note(2, 'x'.repeat(6_000_000)), ...notes(3, 20)];
    const log = await store.create({ sessionId: 's', createdAt: 7 });
    await log.append(long);
    await log.close();

    expect((await load()).events).toStrictEqual(long);
  });
});

/** A store on a disk that fails at the calls that are set. */
function faultyStore(options: { flush?: 'process' | 'power' } = {}): { store: SessionStore; faults: Map<DiskCall, Fault> } {
  const faults = new Map<DiskCall, Fault>();
  const files = faultyDisk(({ call }) => faults.get(call));
  return { store: fileSessionStore(place.folder, { files, ...options }), faults };
}

describe('E9 BR-017 a disk that fails', () => {
  it.each([0, 1, 30])('E9 BR-017 that is full after %d bytes leaves the log as it was, for later appends and readers', async (afterBytes) => {
    const { store: failing, faults } = faultyStore();
    const log = await failing.create({ sessionId: 's', createdAt: 7 });
    await log.append([note(0)]);
    const before = readFileSync(logPath());
    faults.set('file.write', { code: 'ENOSPC', afterBytes });

    await expect(log.append([note(8), note(9)])).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('ENOSPC') });
    expect(readFileSync(logPath())).toStrictEqual(before);
    faults.clear();
    await log.append([note(1)]);
    await log.close();
    expect(await load()).toStrictEqual({ events: notes(0, 2), repairs: [] });
  });

  it('E9 that can neither write nor cut off takes no more, until it can', async () => {
    const { store: failing, faults } = faultyStore();
    const log = await failing.create({ sessionId: 's', createdAt: 7 });
    await log.append([note(0)]);
    faults.set('file.write', { code: 'ENOSPC', afterBytes: 20 }).set('file.truncate', { code: 'EIO' });
    await expect(log.append([note(8)])).rejects.toMatchObject({ code: 'store_failed' });

    faults.delete('file.write');
    await expect(log.append([note(9)])).rejects.toMatchObject({ code: 'store_failed', message: expect.stringContaining('EIO') });
    // Whoever reads sees whole events all the same.
    expect((await store.read('s')).events).toStrictEqual([note(0)]);
    faults.clear();
    await log.append([note(1)]);
    await log.close();
    expect(await load()).toStrictEqual({ events: notes(0, 2), repairs: [] });
  });

  it('E9 that cannot flush fails the append, where events are to survive a loss of power', async () => {
    const { store: failing, faults } = faultyStore({ flush: 'power' });
    const log = await failing.create({ sessionId: 's', createdAt: 7 });
    faults.set('file.flush', { code: 'EIO' });
    await expect(log.append([note(8)])).rejects.toMatchObject({ code: 'store_failed' });
    faults.clear();
    await log.append([note(0)]);
    await log.close();

    expect((await load()).events).toStrictEqual([note(0)]);
  });

  it('E9 is asked to flush by each append only where events are to survive a loss of power', async () => {
    const flushes = async (flush: 'process' | 'power'): Promise<number> => {
      let count = 0;
      const files = faultyDisk(({ call }) => {
        if (call === 'file.flush') count += 1;
        return undefined;
      });
      const log = await fileSessionStore(join(place.folder, flush), { files, flush }).create({ sessionId: 's', createdAt: 7 });
      count = 0;
      await log.append([note(0)]);
      await log.append([note(1)]);
      const flushed = count;
      await log.close();
      return flushed;
    };

    expect(await flushes('process')).toBe(0);
    expect(await flushes('power')).toBe(2);
  });

  it('E9 of which the lock cannot be looked at fails the append, which is not kept', async () => {
    const { store: failing, faults } = faultyStore();
    const log = await failing.create({ sessionId: 's', createdAt: 7 });
    faults.set('look', { code: 'EIO' });
    await expect(log.append([note(8)])).rejects.toMatchObject({ code: 'store_failed' });
    faults.clear();
    await log.append([note(0)]);
    await log.close();

    expect((await load()).events).toStrictEqual([note(0)]);
  });

  it.each(['makeFolder', 'open', 'file.write', 'rename', 'list'] as const)('E9 that fails to %s while a session is made leaves no session and nothing else', async (call) => {
    const { store: failing, faults } = faultyStore();
    // What is left over is looked for once.
    await (await failing.create({ sessionId: 'other', createdAt: 7 })).close();
    faults.set(call, { code: 'EIO' });
    await expect(failing.create({ sessionId: 's', createdAt: 7, events: [note(0)] })).rejects.toMatchObject({ code: 'store_failed' });
    faults.clear();

    expect(readdirSync(place.folder)).toStrictEqual(['other']);
    const log = await failing.create({ sessionId: 's', createdAt: 7 });
    await log.close();
  });

  it('E9 that fails to remove a deleted session has deleted it all the same', async () => {
    const { store: failing, faults } = faultyStore();
    await keep(1);
    faults.set('remove', { code: 'EIO' });

    expect(await failing.delete('s')).toBe(true);
    faults.clear();
    expect(await store.list()).toStrictEqual([]);
    await expect(store.open('s')).rejects.toMatchObject({ code: 'session_not_found' });
    // The next store that makes a session here removes the rest.
    await (await fileSessionStore(place.folder).create({ sessionId: 's', createdAt: 7 })).close();
    expect(readdirSync(place.folder)).toStrictEqual(['s']);
  });

  it('E9 that fails to rename keeps the session that was to be deleted', async () => {
    await keep(1);
    let renames = 0;
    const files = faultyDisk(({ call }) => (call === 'rename' && (renames += 1) === 2 ? { code: 'EIO' } : undefined));

    await expect(fileSessionStore(place.folder, { files }).delete('s')).rejects.toMatchObject({ code: 'store_failed' });
    expect((await load()).events).toStrictEqual([note(0)]);
  });
});

describe('E9 what processes left that died', () => {
  it('E9 while they made a session is removed an hour later, and never listed or opened', async () => {
    const old = join(place.folder, '.tmp-11111111-1111-4111-8111-111111111111');
    const recent = join(place.folder, '.tmp-22222222-2222-4222-8222-222222222222');
    for (const folder of [old, recent]) {
      mkdirSync(folder);
      writeFileSync(join(folder, 'log.jsonl'), '{"type":"session","version":1,"sessionId":"s","createdAt":1}\n');
    }
    const hourAgo = Date.now() / 1000 - 3700;
    utimesSync(old, hourAgo, hourAgo);

    expect(await store.list()).toStrictEqual([]);
    await (await store.create({ sessionId: 's', createdAt: 1 })).close();
    expect(readdirSync(place.folder).sort()).toStrictEqual([recent.slice(place.folder.length + 1), 's']);
  });

  it('E10 while they saved a snapshot or made a sub-agent is removed when the session is opened', async () => {
    const log = await store.create({ sessionId: 's', createdAt: 1 });
    await (await log.child('c')).close();
    await log.close();
    const folder = join(place.folder, 's');
    writeFileSync(join(folder, '11111111-1111-4111-8111-111111111111.tmp'), '{');
    mkdirSync(join(folder, 'agents', '.tmp-11111111-1111-4111-8111-111111111111'));

    const again = await store.open('s');
    expect(readdirSync(join(folder, 'agents'))).toStrictEqual(['c']);
    await again.close();
    expect(readdirSync(folder).sort()).toStrictEqual(['agents', 'lock.free', 'log.jsonl']);
  });
});

describe('E9 bad input', () => {
  it('E9 a store without a folder is refused with an example', () => {
    expect(() => fileSessionStore('')).toThrow(/^fileSessionStore needs the path of a folder\. For example: /);
    expect(() => fileSessionStore(undefined as never)).toThrow(TypeError);
  });

  it('E9 options that do not exist or make no sense are refused by name', () => {
    expect(() => fileSessionStore('x', { fsync: true } as never)).toThrow(/no option `fsync`/);
    expect(() => fileSessionStore('x', { flush: 'always' as never })).toThrow(/`flush` must be 'process' or 'power'/);
  });

  it('E9 what is no list of events, no event or no snapshot is refused, and nothing is kept of it', async () => {
    const log = await store.create({ sessionId: 's', createdAt: 7 });
    await expect(log.append(note(0) as never)).rejects.toThrow(/append takes a list of events/);
    await expect(log.append([note(0), 'text'] as never)).rejects.toThrow(/append takes events/);
    await expect(log.append([{ ...note(0), at: 1n }] as never)).rejects.toThrow(/input\.removed is not JSON/);
    await expect(log.saveSnapshot({} as never)).rejects.toThrow(TypeError);
    await expect(log.saveSnapshot(snapshotOf('other', 0))).rejects.toThrow(/another session/);
    await expect(log.saveSnapshot(snapshotOf('s', 1))).rejects.toThrow(/covers 1 events, and the log has 0/);
    await log.close();

    expect(await load()).toStrictEqual({ events: [], repairs: [] });
    await expect(store.create({ sessionId: 't', createdAt: 7, events: note(0) } as never)).rejects.toThrow(/create takes a list of events/);
    await expect(store.create({ sessionId: 't', createdAt: 7, metadata: { text: 'x'.repeat(2 ** 20) } })).rejects.toThrow(/metadata/);
    await expect(store.create({ sessionId: 't', createdAt: 7, events: [{}] } as never)).rejects.toThrow(TypeError);
    expect(readdirSync(place.folder)).toStrictEqual(['s']);
  });
});
