/** What only the store in SQLite has: whichever library opened the database, who holds a session in it, and what is broken there. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, type Client } from '@libsql/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type SessionError, type SessionEvent, SessionError as SessionErrorClass } from 'turnloop/sessions';
import { type SqlClient, sqliteSessionStore, type SyncSqlClient } from 'turnloop/sessions/sqlite';
import { virtualRuntime } from 'turnloop/testing';
import { storeConformance } from 'turnloop/testing/conformance';

const ID = 'session_1';
const removed = (number: number): SessionEvent => ({ type: 'input.removed', at: number, messageId: `message_${number}` });

let folder: string;
let url: string;
const clients: Client[] = [];

function open(): Client {
  const client = createClient({ url });
  clients.push(client);
  return client;
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnloop-sqlite-'));
  url = `file:${join(folder, 'sessions.db')}`;
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await rm(folder, { recursive: true });
});

async function failureOf(call: Promise<unknown>): Promise<SessionError> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof SessionErrorClass) return error;
  throw new Error('no SessionError', { cause: error });
}

describe('the option `client`', () => {
  it.each<[unknown, RegExp]>([
    [undefined, /the options are not an object/],
    [{}, /`client` is not an opened SQLite database.*createClient/],
    [{ client: 'file:sessions.db' }, /`client` is not an opened SQLite database/],
    [{ client: { exec: () => {} } }, /`client` is not an opened SQLite database/],
    [{ client: { execute: () => {} } }, /`client` is not an opened SQLite database/],
    [{ client: { execute: () => {}, batch: () => {} }, path: 'x' }, /no option `path`/],
  ])('is asked for where %j is given', (options, message) => {
    const make = (): unknown => sqliteSessionStore(options as { client: SqlClient });

    expect(make).toThrow(message);
    expect(make).toThrow(TypeError);
  });
});

describe('E8 a library without promises', () => {
  // That of better-sqlite3; what `@libsql/client` itself stands on has it, too.
  const Database = createRequire(createRequire(import.meta.url).resolve('@libsql/client'))('libsql') as new (path: string) => SyncSqlClient & { close(): void };

  const cases = storeConformance(
    () => {
      const client = new Database(':memory:');
      return { store: sqliteSessionStore({ client }), reopen: () => sqliteSessionStore({ client }), close: () => client.close() };
    },
    { skip: { lost: 'as in the other database', failure: 'as in the other database', outside: 'it is in memory' } },
  );
  for (const { name, run } of cases) it(name, run);

  it('leaves nothing of a transaction that fails in its middle', async () => {
    const client = new Database(':memory:');
    const store = sqliteSessionStore({ client });
    const log = await store.create({ sessionId: ID, createdAt: 0 });
    client.exec('ALTER TABLE turnloop_session_events RENAME TO elsewhere');
    const failure = await failureOf(log.append([removed(1)]));
    client.exec('ALTER TABLE elsewhere RENAME TO turnloop_session_events');
    await log.append([removed(2)]);

    expect(failure).toMatchObject({ code: 'store_failed', message: expect.stringMatching(/"session_1" could not be written to, and is as it was\..*turnloop_session_events/) });
    expect((await store.read(ID)).events).toStrictEqual([removed(2)]);
    client.close();
  });
});

describe('E9 who holds a session', () => {
  /** A session that somebody holds, whose owner is then said to be another. */
  async function heldBy(owner: object, ageMs = 0): Promise<Promise<unknown>> {
    const client = open();
    await sqliteSessionStore({ client }).create({ sessionId: ID, createdAt: 0 });
    const { rows } = await client.execute('SELECT owner FROM turnloop_session_logs');
    const changed = JSON.stringify({ ...(JSON.parse(rows[0]!['owner'] as string) as object), ...owner });
    await client.execute({ sql: 'UPDATE turnloop_session_logs SET owner = ?, beat_at = beat_at - ?', args: [changed, ageMs] });
    const log = await sqliteSessionStore({ client: open() }).open(ID);
    return log.load();
  }

  const TAKEN = { repairs: [{ kind: 'lock_taken', message: expect.stringMatching(/taken over from process \d+ on .*, which is dead/) }] };
  const HOUR_MS = 3_600_000;

  it('is told who cannot have it', async () => {
    expect(await failureOf(heldBy({}, HOUR_MS))).toMatchObject({ code: 'session_locked', message: expect.stringMatching(/held by process \d+ on .*Close it there/) });
  });

  it('is a process that there is not', async () => {
    expect(await heldBy({ pid: 999_999_999 })).toMatchObject(TAKEN);
  });

  it.runIf(process.platform === 'linux')('is a process that has the pid of one that died', async () => {
    expect(await heldBy({ pid: process.pid, started: '1' })).toMatchObject(TAKEN);
  });

  it.runIf(process.platform === 'linux')('is a process that was killed, and not buried by its parent', async () => {
    // The shell becomes a program that never asks after the child.
    const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60']);
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(line.toString());
    const statOf = async (): Promise<string[]> => (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]!.split(' ');
    await vi.waitFor(async () => expect((await statOf())[0]).toBe('Z'));
    try {
      expect(await heldBy({ pid, started: (await statOf())[19] })).toMatchObject(TAKEN);
    } finally {
      parent.kill('SIGKILL');
    }
  });

  it('is a process elsewhere, for as long as it says that it lives', async () => {
    expect(await failureOf(heldBy({ host: 'elsewhere', place: 'elsewhere', pid: 1 }, 30_000))).toMatchObject({ code: 'session_locked', message: expect.stringContaining('process 1 on elsewhere') });
  });

  it('is a process elsewhere that has not been heard of for a minute', async () => {
    expect(await heldBy({ place: 'elsewhere', pid: 1 }, 61_000)).toMatchObject(TAKEN);
  });

  it('says every now and then that it lives, until it lets go', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const client = open();
      const beatAt = async (): Promise<unknown> => (await client.execute('SELECT beat_at FROM turnloop_session_logs')).rows[0]!['beat_at'];
      const log = await sqliteSessionStore({ client }).create({ sessionId: ID, createdAt: 0 });
      await client.execute('UPDATE turnloop_session_logs SET beat_at = 0');
      await vi.advanceTimersByTimeAsync(10_000);
      await vi.waitFor(async () => expect(await beatAt()).toBeGreaterThan(0));
      expect(vi.getTimerCount()).toBe(1);
      await log.close();

      expect(vi.getTimerCount()).toBe(0);
      expect(await beatAt()).toBeNull();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('E11 what is broken in the database', () => {
  it('is told with its place, and left as it is: an event', async () => {
    const client = open();
    const store = sqliteSessionStore({ client });
    await (await store.create({ sessionId: ID, createdAt: 0, events: [removed(1), removed(2), removed(3)] })).close();
    await client.execute("UPDATE turnloop_session_events SET line = substr(line, 1, 20) WHERE seq = 1");
    const message = expect.stringMatching(/event 2 of session "session_1" cannot be read: it is not JSON\. Nothing was changed or deleted/);

    expect(await failureOf(store.read(ID))).toMatchObject({ code: 'broken_log', message });
    const log = await store.open(ID);
    expect(await failureOf(log.load())).toMatchObject({ code: 'broken_log', message });
    expect((await client.execute('SELECT count(*) AS count FROM turnloop_session_events')).rows[0]!['count']).toBe(3);
  });

  it('is told, and left as it is: what a session begins with', async () => {
    const client = open();
    const store = sqliteSessionStore({ client });
    for (const sessionId of [ID, 'session_2', 'session_3']) await (await store.create({ sessionId, createdAt: 0 })).close();
    await client.execute({ sql: "UPDATE turnloop_session_logs SET header = '{' WHERE id = ?", args: [JSON.stringify(ID)] });
    await client.execute({ sql: "UPDATE turnloop_session_logs SET header = json_set(header, '$.version', 2) WHERE id = ?", args: ['"session_2"'] });

    expect(await failureOf(store.open(ID))).toMatchObject({ code: 'broken_log', message: expect.stringContaining('begins with cannot be read') });
    expect(await failureOf(store.open('session_2'))).toMatchObject({ code: 'unsupported_version' });
    expect(await failureOf(store.read('session_2'))).toMatchObject({ code: 'unsupported_version' });
    expect((await store.list()).map(({ sessionId }) => sessionId)).toStrictEqual(['session_3']);
    expect(await store.delete(ID)).toBe(true);
  });

  it('is not used, and told in the repairs: a snapshot', async () => {
    const client = open();
    const store = sqliteSessionStore({ client });
    await (await store.create({ sessionId: ID, createdAt: 0, events: [removed(1)] })).close();
    await client.execute("INSERT INTO turnloop_session_snapshots SELECT log, '{' FROM turnloop_session_logs");

    expect(await (await store.open(ID)).load()).toMatchObject({ events: [removed(1)], repairs: [{ kind: 'snapshot_dropped' }] });
  });
});

describe('a database', () => {
  it('that another process writes to for 200 ms is waited for, and nothing is wrong with it afterwards', async () => {
    const store = sqliteSessionStore({ client: open() });
    const log = await store.create({ sessionId: ID, createdAt: 0 });
    const script = `
      import { createClient } from '@libsql/client';
      const transaction = await createClient({ url: process.argv[1] }).transaction('write');
      console.log('writes');
      setTimeout(() => transaction.commit(), 200);`;
    const other = spawn(process.execPath, ['--input-type=module', '-e', script, url], { cwd: import.meta.dirname });
    await once(other.stdout, 'data');
    await log.append([removed(1)]);
    await log.append([removed(2)]);

    expect((await store.read(ID)).events).toStrictEqual([removed(1), removed(2)]);
    if (other.exitCode === null) await once(other, 'exit');
  });

  it('that was closed is a failure of the store, and what it says is the cause', async () => {
    const client = open();
    const store = sqliteSessionStore({ client });
    const log = await store.create({ sessionId: ID, createdAt: 0 });
    client.close();

    for (const call of [log.append([removed(1)]), log.load(), store.list(), store.open(ID), store.delete(ID)]) {
      expect(await failureOf(call)).toMatchObject({ code: 'store_failed', cause: { code: 'CLIENT_CLOSED' } });
    }
    expect(await failureOf(log.close())).toMatchObject({ code: 'store_failed', message: expect.stringContaining('stays locked') });
  });

  it('that failed when the tables were to be made is tried again', async () => {
    const client = open();
    let isDown = true;
    const failing: SqlClient = {
      protocol: client.protocol,
      execute: (statement) => client.execute(statement),
      batch: (statements, mode) => (isDown ? Promise.reject(new Error('no such host')) : client.batch(statements, mode)),
    };
    const store = sqliteSessionStore({ client: failing });

    expect(await failureOf(store.list())).toMatchObject({ code: 'store_failed', message: expect.stringMatching(/The tables could not be made\. no such host/) });
    isDown = false;
    expect(await store.list()).toStrictEqual([]);
  });

  it('tells when sessions were written by the clock of the runtime', async () => {
    const runtime = virtualRuntime({ start: 7_000 });
    const store = sqliteSessionStore({ client: open(), runtime });
    const log = await store.create({ sessionId: ID, createdAt: 5 });
    await runtime.advance(1_000);
    await log.append([removed(1)]);

    expect(await store.list()).toStrictEqual([{ version: 1, sessionId: ID, createdAt: 5, updatedAt: 8_000 }]);
  });
});
