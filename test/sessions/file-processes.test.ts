/** Several processes and one session of a store of files: killed at any instant, at once, one after the other. */
import { type ChildProcess, fork } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fileSessionStore, type SessionStore } from 'turnloop/sessions';
import { seededRandom } from 'turnloop/testing';
import { storeFolder } from './support/disk.ts';
import { note } from './support/samples.ts';

const PROGRAM = new URL('./support/process.ts', import.meta.url);
const TIMEOUT_MS = 60_000;

let place: ReturnType<typeof storeFolder>;
let store: SessionStore;
let processes: ChildProcess[];

beforeEach(async () => {
  place = storeFolder();
  store = fileSessionStore(place.folder);
  processes = [];
  await (await store.create({ sessionId: 's', createdAt: 7 })).close();
});
afterEach(async () => {
  await Promise.all(
    processes.map(async (child) => {
      child.kill('SIGKILL');
      await ended(child);
    }),
  );
  place.remove();
});

/** A process that is ready to do something, once it is told. */
async function start(task: string, own = 0): Promise<ChildProcess> {
  const child = fork(PROGRAM, [place.folder, task, String(own)], { execArgv: ['--import', 'tsx'] });
  processes.push(child);
  expect(await nextMessage(child)).toBe('ready');
  return child;
}

function nextMessage(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', () => reject(new Error('the process ended without a message')));
  });
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => void child.once('exit', () => resolve()));
}

describe('E9 processes with one session', () => {
  it('E9 BR-017 that are killed while they write lose nothing that was durable, and leave nothing broken', { timeout: TIMEOUT_MS }, async () => {
    const random = seededRandom(5);
    let durable = 0;
    for (let round = 0; round < 4; round += 1) {
      const writer = await start('write');
      let last = durable - 1;
      const stopAt = durable + 5 + Math.floor(random() * 60);
      const reached = new Promise<void>((resolve) => {
        writer.on('message', (count) => {
          last = Number(count);
          if (last >= stopAt) resolve();
        });
      });
      writer.send('go');
      await reached;
      await new Promise((resolve) => setTimeout(resolve, random() * 5));
      writer.kill('SIGKILL');
      await ended(writer);

      const { events } = await store.read('s');
      expect(events.length).toBeGreaterThan(last);
      expect(events).toStrictEqual(events.map((_, count) => note(count, 'x'.repeat((count * 37) % 3000))));
      const log = await store.open('s');
      const content = await log.load();
      expect(content.repairs.map(({ kind }) => kind)).toContain('lock_taken');
      expect(content.repairs.map(({ kind }) => kind)).not.toContain('snapshot_dropped');
      expect((content.snapshot?.events ?? 0) + content.events.length).toBe(events.length);
      await log.close();
      expect(readdirSync(join(place.folder, 's')).filter((name) => !['lock.free', 'log.jsonl', 'snapshot.json'].includes(name))).toStrictEqual([]);
      durable = events.length;
    }
  });

  it('E9 of which each dies holding it have it one after the other', { timeout: TIMEOUT_MS }, async () => {
    const count = 4;
    const children = await Promise.all(Array.from({ length: count }, (_, own) => start('die', own)));
    const before = children.map(nextMessage);
    for (const child of children) child.send('go');

    expect((await Promise.all(before)).sort((left, right) => Number(left) - Number(right))).toStrictEqual([0, 2, 4, 6]);
    await Promise.all(children.map(ended));
    const { events } = await store.read('s');
    const order = events.filter((_, index) => index % 2 === 0).map(({ at }) => at / 2);
    expect([...order].sort()).toStrictEqual([0, 1, 2, 3]);
    expect(events).toStrictEqual(order.flatMap((own) => [note(own * 2), note(own * 2 + 1)]));
  });

  it('E9 that want that of a dead one at once: one of them gets it', { timeout: TIMEOUT_MS }, async () => {
    const dead = await start('hold');
    const held = nextMessage(dead);
    dead.send('go');
    expect(await held).toBe('held');
    dead.kill('SIGKILL');
    await ended(dead);

    const children = await Promise.all(Array.from({ length: 4 }, () => start('stay')));
    const outcomes = Promise.all(children.map(nextMessage));
    for (const child of children) child.send('go');
    const losers = (await outcomes).filter((outcome) => outcome !== 'opened');
    for (const child of children) expect(child.exitCode).toBeNull();
    expect(losers).toMatchObject(Array.from({ length: 3 }, () => ({ kind: 'session_locked' })));
  });

  it('E9 tell the second who holds it', { timeout: TIMEOUT_MS }, async () => {
    const log = await store.open('s');
    const second = await start('stay');
    const message = nextMessage(second);
    second.send('go');

    expect(await message).toMatchObject({ name: 'SessionError', kind: 'session_locked', message: expect.stringContaining(`process ${process.pid} on `) });
    await log.close();
  });

  it('E9 end by themselves though they hold it, and leave it to the next', { timeout: TIMEOUT_MS }, async () => {
    const holder = await start('hold');
    const held = nextMessage(holder);
    holder.send('go');
    expect(await held).toBe('held');
    await ended(holder);

    expect(holder.exitCode).toBe(0);
    const log = await store.open('s');
    expect((await log.load()).repairs).toMatchObject([{ kind: 'lock_taken' }]);
    await log.close();
  });
});
