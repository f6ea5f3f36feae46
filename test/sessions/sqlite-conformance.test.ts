/** The store in SQLite does what agents expect of a session store, in a file and in memory. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { describe, it } from 'vitest';
import { type LibsqlClient, sqliteSessionStore } from 'turnloop/sessions/sqlite';
import { storeConformance, type StoreUnderTest } from 'turnloop/testing/conformance';

/** A database whose writes fail on demand, in the middle of a transaction. */
function breakable(client: LibsqlClient): { readonly client: LibsqlClient; readonly breakWrites: () => () => void } {
  let isBroken = false;
  return {
    client: {
      protocol: client.protocol,
      execute: (statement) => client.execute(statement),
      batch: (statements, mode) => client.batch(isBroken ? [...statements, { sql: 'INSERT INTO nowhere VALUES (1)', args: [] }] : statements, mode),
    },
    breakWrites: () => {
      isBroken = true;
      return () => {
        isBroken = false;
      };
    },
  };
}

/** Makes the owner of a session a process that there is not. */
function abandonIn(client: LibsqlClient): NonNullable<StoreUnderTest['abandon']> {
  return async (sessionId) => {
    const dead = "json_set(owner, '$.pid', 999999999)";
    await client.execute({ sql: `UPDATE turnloop_session_logs SET owner = ${dead} WHERE parent = 0 AND id = ?`, args: [JSON.stringify(sessionId)] });
  };
}

describe('E8 E9 E10 E11 BR-007 BR-148 the store in a SQLite file', () => {
  const cases = storeConformance(
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'turnloop-sqlite-'));
      const url = `file:${join(folder, 'sessions.db')}`;
      const clients = [createClient({ url })];
      // Fewer waits for the disk; it stays so for all who open the file.
      await clients[0]!.execute('PRAGMA journal_mode = WAL');
      const { client, breakWrites } = breakable(clients[0]!);
      return {
        store: sqliteSessionStore({ client }),
        reopen: () => {
          const other = createClient({ url });
          clients.push(other);
          return sqliteSessionStore({ client: other });
        },
        abandon: abandonIn(client),
        breakWrites,
        close: async () => {
          for (const each of clients) each.close();
          await rm(folder, { recursive: true });
        },
      };
    },
    { skip: { outside: 'it is one file' } },
  );

  for (const { name, run } of cases) it(name, run);
});

describe('E8 BR-007 BR-148 the store in a SQLite database in memory', () => {
  const cases = storeConformance(
    () => {
      const made = createClient({ url: ':memory:' });
      const { client, breakWrites } = breakable(made);
      return {
        store: sqliteSessionStore({ client }),
        reopen: () => sqliteSessionStore({ client }),
        abandon: abandonIn(client),
        breakWrites,
        close: () => made.close(),
      };
    },
    { skip: { outside: 'it is in memory' } },
  );

  for (const { name, run } of cases) it(name, run);
});
