/**
 * SQL database: one way to SQLite, whichever library the host opened it with. Imports none of them.
 *
 * - A write is one transaction: all of its statements or none. Its first statement writes.
 * - While another process writes, SQLite waits by itself.
 * - Values are always arguments, never part of the SQL.
 */

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

/** What a statement changed, as `@libsql/client` says it. */
export interface LibsqlChange {
  /** How many rows. */
  readonly rowsAffected: number;
}

/** What a statement gave, as `@libsql/client` says it. */
export interface LibsqlResult extends LibsqlChange {
  /** Its rows. */
  readonly rows: readonly SqlRow[];
}

/** What a statement changed, as the synchronous libraries say it. */
export interface SyncSqlChange {
  /** How many rows. */
  readonly changes: number | bigint;
}

/** A database opened with `createClient` of `@libsql/client`. */
export interface LibsqlClient {
  /** How it reaches its database: `file` for one on this machine. */
  readonly protocol?: string | undefined;
  /** Runs one statement. */
  execute(statement: SqlStatement): Promise<LibsqlResult>;
  /** Runs several in one transaction. */
  batch(statements: SqlStatement[], mode: 'write' | 'deferred'): Promise<readonly LibsqlChange[]>;
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
  run(...args: SqlValue[]): SyncSqlChange;
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

/** How long SQLite waits for others who write: as long as better-sqlite3 has it wait. */
const WAIT: SqlStatement = { sql: 'PRAGMA busy_timeout = 5000', args: [] };

/** True for what {@link sqlDatabase} takes. */
export function isSqlClient(value: unknown): value is SqlClient {
  if (typeof value !== 'object' || value === null) return false;
  return hasMethods(value, ['execute', 'batch']) || hasMethods(value, ['exec', 'prepare']);
}

/** The database behind an opened client. */
export function sqlDatabase(client: SqlClient): SqlDatabase {
  return 'execute' in client ? libsqlDatabase(client) : syncDatabase(client);
}

function libsqlDatabase(client: LibsqlClient): SqlDatabase {
  return {
    read: async (statement) => (await client.execute(statement)).rows,
    write: async (statements) => {
      // A client has several connections, none of which waits by itself; and one on which BEGIN IMMEDIATE has failed commits
      // nothing any more. So each transaction has its connection wait first, and takes the lock with its first statement.
      const isLocal = client.protocol === 'file';
      const results = isLocal ? (await client.batch([WAIT, ...statements], 'deferred')).slice(1) : await client.batch([...statements], 'write');
      return results.map(({ rowsAffected }) => rowsAffected);
    },
  };
}

function syncDatabase(client: SyncSqlClient): SqlDatabase {
  client.exec(WAIT.sql);
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

function hasMethods(value: object, names: readonly string[]): boolean {
  return names.every((name) => typeof Reflect.get(value, name) === 'function');
}
