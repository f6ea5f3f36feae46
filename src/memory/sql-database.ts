/**
 * SQL database: one way to SQLite, whichever library the host opened it with. Imports none of them.
 *
 * - A write is one transaction: all of its statements or none.
 * - A database that is busy with another process is asked again for a while.
 * - Values are always arguments, never part of the SQL.
 */
import { sleep, type Runtime } from '../core/runtime.ts';

/** A value as SQLite keeps it. */
export type SqlValue = string | number | null | Uint8Array;

/** A statement, with a `?` for each argument. */
export interface SqlStatement {
  /** The SQL. */
  readonly sql: string;
  /** What the `?` stand for, in order. */
  readonly args: SqlValue[];
}

/** A row of an answer, by column. */
export type SqlRow = Readonly<Record<string, unknown>>;

/** A database opened with `createClient` of `@libsql/client`. */
export interface LibsqlClient {
  /** Runs one statement. */
  execute(statement: SqlStatement): Promise<{ readonly rows: readonly SqlRow[]; readonly rowsAffected: number }>;
  /** Runs several in one transaction. */
  batch(statements: SqlStatement[], mode: 'write'): Promise<readonly { readonly rowsAffected: number }[]>;
}

/** A database opened with `new DatabaseSync` of `node:sqlite`, or `new Database` of better-sqlite3. */
export interface SyncSqlClient {
  /** Runs SQL without arguments. */
  exec(sql: string): unknown;
  /** Makes a statement ready. */
  prepare(sql: string): SyncSqlStatement;
}

/** A statement of a {@link SyncSqlClient}. */
export interface SyncSqlStatement {
  /** Runs it, for the rows it gives. */
  all(...args: SqlValue[]): unknown[];
  /** Runs it, for what it changes. */
  run(...args: SqlValue[]): { readonly changes: number | bigint };
}

/** An opened database of any of the libraries. */
export type SqlClient = LibsqlClient | SyncSqlClient;

/** What stores need of a database. */
export interface SqlDatabase {
  /** The rows of a query. */
  read(statement: SqlStatement): Promise<readonly SqlRow[]>;
  /**
   * Runs statements in one transaction.
   *
   * @returns How many rows each of them changed.
   */
  write(statements: readonly SqlStatement[]): Promise<readonly number[]>;
}

/** How long a database that is busy is asked again, in milliseconds. */
const BUSY_LIMIT_MS = 5_000;
const FIRST_DELAY_MS = 2;
const LONGEST_DELAY_MS = 100;

/** True for what {@link sqlDatabase} takes. */
export function isSqlClient(value: unknown): value is SqlClient {
  if (typeof value !== 'object' || value === null) return false;
  return hasMethods(value, ['execute', 'batch']) || hasMethods(value, ['exec', 'prepare']);
}

/** The database behind an opened client. */
export function sqlDatabase(client: SqlClient, runtime: Runtime): SqlDatabase {
  const database = 'execute' in client ? libsqlDatabase(client) : syncDatabase(client);
  return {
    read: (statement) => retryBusy(() => database.read(statement), runtime),
    write: (statements) => retryBusy(() => database.write(statements), runtime),
  };
}

function libsqlDatabase(client: LibsqlClient): SqlDatabase {
  return {
    read: async (statement) => (await client.execute(statement)).rows,
    write: async (statements) => {
      const [first] = statements;
      // One statement is a transaction by itself.
      const results = first !== undefined && statements.length === 1 ? [await client.execute(first)] : await client.batch([...statements], 'write');
      return results.map(({ rowsAffected }) => rowsAffected);
    },
  };
}

function syncDatabase(client: SyncSqlClient): SqlDatabase {
  // There are as many as the stores have texts of SQL: a handful.
  const prepared = new Map<string, SyncSqlStatement>();
  const prepare = (sql: string): SyncSqlStatement => {
    const statement = prepared.get(sql) ?? client.prepare(sql);
    prepared.set(sql, statement);
    return statement;
  };
  const run = ({ sql, args }: SqlStatement): number => Number(prepare(sql).run(...args).changes);
  return {
    // What is asked of a database are rows.
    read: async ({ sql, args }) => prepare(sql).all(...args) as SqlRow[],
    write: async (statements) => {
      client.exec('BEGIN IMMEDIATE');
      try {
        const changes = statements.map(run);
        client.exec('COMMIT');
        return changes;
      } catch (error) {
        rollBack(client);
        throw error;
      }
    },
  };
}

function rollBack(client: SyncSqlClient): void {
  try {
    client.exec('ROLLBACK');
  } catch {
    // Some failures roll back by themselves.
  }
}

async function retryBusy<Value>(work: () => Promise<Value>, runtime: Runtime): Promise<Value> {
  const start = runtime.now();
  for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!isBusy(error) || runtime.now() - start >= BUSY_LIMIT_MS) throw error;
      await sleep(delayMs, { runtime });
    }
  }
}

const BUSY_CODES: readonly unknown[] = [5, 6];

/** Each library has its own way to say `SQLITE_BUSY` (5) and `SQLITE_LOCKED` (6). */
function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, rawCode, errcode } = error as { readonly code?: unknown; readonly rawCode?: unknown; readonly errcode?: unknown };
  if (typeof code === 'string' && /^SQLITE_(BUSY|LOCKED)/.test(code)) return true;
  return [rawCode, errcode].some((number) => typeof number === 'number' && BUSY_CODES.includes(number & 0xff));
}

function hasMethods(value: object, names: readonly string[]): boolean {
  return names.every((name) => typeof Reflect.get(value, name) === 'function');
}
