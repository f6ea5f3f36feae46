/**
 * Session store in SQLite. The host opens the database, with `@libsql/client`, `node:sqlite` or better-sqlite3: none of
 * them is imported here.
 *
 * @module
 */
import { assertOptions } from '../core/assert.ts';
import { systemRuntime, type Runtime } from '../core/runtime.ts';
import { shownId, storeFailed } from './store-errors.ts';
import { assertEventList, assertSessionId, decodeHeader, encodeHeader, EventEncoder, headerOf } from './session-codec.ts';
import { SessionError, type SessionHeader, type SessionLog, type SessionRepair, type SessionStore, type SessionSummary } from './session-store.ts';
import { isSqlClient, sqlDatabase, type SqlClient, type SqlDatabase, type SqlRow } from '../sqlite/sql-database.ts';
import { Heart, newWriter, take } from './sqlite-hold.ts';
import { decodeEvents, readHeader, SqliteLog } from './sqlite-log.ts';
import { deleteSession, foundSession, insertEvents, insertSession, newRow, releaseSession, SELECT_SESSIONS, selectAll, selectSession, TABLES, type Writer } from './sqlite-tables.ts';

export type { LibsqlChange, LibsqlClient, LibsqlResult, SqlClient, SqlRow, SqlStatement, SqlValue, SyncSqlChange, SyncSqlClient, SyncSqlStatement } from '../sqlite/sql-database.ts';

/** Options of {@link sqliteSessionStore}. */
export interface SqliteSessionStoreOptions {
  /**
   * The opened database: `createClient` of `@libsql/client`, `new DatabaseSync` of `node:sqlite`, or `new Database` of
   * better-sqlite3. The store makes its tables in it, whose names begin with `turnloop_session`, and never closes it.
   */
  readonly client: SqlClient;
  /** Tells when something was written. @defaultValue the system's */
  readonly runtime?: Runtime | undefined;
}

const TAKER = { taker: 'sqliteSessionStore', example: "sqliteSessionStore({ client: createClient({ url: 'file:sessions.db' }) })" };

/**
 * Makes a store that keeps sessions in a SQLite database, which several processes may use.
 *
 * While another process writes to the database, this one waits, for up to 5 seconds (`PRAGMA busy_timeout`).
 *
 * How durable a commit is, the database says: with `PRAGMA journal_mode = WAL` and `synchronous = NORMAL` writes are fast
 * and outlast the process, but the last may not outlast a loss of power.
 *
 * @throws TypeError for what is not an opened database.
 * @example
 * ```ts
 * const client = createClient({ url: 'file:sessions.db' });
 * const agent = createAgent({ llm, sessions: sqliteSessionStore({ client }) });
 * ```
 */
export function sqliteSessionStore(options: SqliteSessionStoreOptions): SessionStore {
  assertOptions(options, { client: true, runtime: true }, TAKER);
  const { client, runtime = systemRuntime } = options;
  if (!isSqlClient(client)) throw new TypeError(`sqliteSessionStore: \`client\` is not an opened SQLite database. For example: ${TAKER.example}.`);
  return new SqliteStore(sqlDatabase(client), runtime);
}

class SqliteStore implements SessionStore {
  readonly #database: SqlDatabase;
  readonly #runtime: Runtime;
  readonly #heart: Heart;
  #tables: Promise<unknown> | undefined;

  constructor(database: SqlDatabase, runtime: Runtime) {
    this.#database = database;
    this.#runtime = runtime;
    this.#heart = new Heart(database);
  }

  async create(session: Parameters<SessionStore['create']>[0]): Promise<SessionLog> {
    const header = headerOf(session);
    const encoder = new EventEncoder();
    const events = session.events ?? [];
    assertEventList(events, 'create');
    const lines = events.map((event) => encoder.encode(event));
    const { sessionId } = header;
    return this.#use(`Session ${shownId(sessionId)} could not be made.`, async (database) => {
      const { writer: mark, owner } = newWriter();
      const writer = { root: newRow(), writer: mark };
      const row = insertSession(writer, { id: sessionId, header: encodeHeader(header), writtenAt: this.#runtime.now(), owner });
      try {
        await database.write(lines.length === 0 ? [row] : [row, insertEvents(writer.root, lines, writer)]);
      } catch (error) {
        // Each library has its own word for a row that is there already.
        if (foundSession(await database.read(selectSession(sessionId))) === undefined) throw error;
        throw new SessionError('session_exists', `There is a session ${shownId(sessionId)} already; it is as it was.`);
      }
      return this.#hold(writer, header, []);
    });
  }

  async open(sessionId: string): Promise<SessionLog> {
    assertSessionId(sessionId);
    return this.#use(`Session ${shownId(sessionId)} could not be opened.`, async (database) => {
      const { root, writer, header, takenFrom } = await take(database, sessionId, (text) => readHeader(text, sessionId));
      const repairs: SessionRepair[] = takenFrom === undefined ? [] : [{ kind: 'lock_taken', message: `The session was taken over from ${takenFrom}.` }];
      return this.#hold({ root, writer }, readHeader(header, sessionId), repairs);
    });
  }

  async read(sessionId: string): ReturnType<SessionStore['read']> {
    assertSessionId(sessionId);
    return this.#use(`Session ${shownId(sessionId)} could not be read.`, async (database) => {
      const rows = await database.read(selectAll(sessionId));
      const [first] = rows;
      if (first === undefined) throw new SessionError('session_not_found', `There is no session ${shownId(sessionId)} in the database.`);
      const header = readHeader(String(first['header']), sessionId);
      return { header, events: decodeEvents(first['line'] === null ? [] : rows, 0, sessionId) };
    });
  }

  async list(): Promise<readonly SessionSummary[]> {
    return this.#use('The sessions could not be listed.', async (database) => (await database.read(SELECT_SESSIONS)).flatMap(summaryOf));
  }

  async delete(sessionId: string): Promise<boolean> {
    assertSessionId(sessionId);
    return this.#use(`Session ${shownId(sessionId)} could not be deleted.`, async (database) => {
      if (foundSession(await database.read(selectSession(sessionId))) === undefined) return false;
      // As a writer: nobody else has it then.
      const taken = await take(database, sessionId, () => undefined);
      try {
        return (await database.write(deleteSession(taken))).at(-1) === 1;
      } catch (error) {
        await database.write([releaseSession(taken)]).catch(() => undefined);
        throw error;
      }
    });
  }

  #hold(writer: Writer, header: SessionHeader, repairs: readonly SessionRepair[]): SessionLog {
    const database = this.#database;
    this.#heart.add(writer);
    return new SqliteLog(
      { database, runtime: this.#runtime, writer },
      {
        ...{ log: writer.root, header, repairs },
        onClose: async () => {
          this.#heart.delete(writer);
          await database.write([releaseSession(writer)]);
        },
      },
    );
  }

  /** Uses the database, with its tables. @param failed - What is told if it fails. */
  async #use<Value>(failed: string, work: (database: SqlDatabase) => Promise<Value>): Promise<Value> {
    try {
      await (this.#tables ??= this.#database.write(TABLES));
    } catch (error) {
      this.#tables = undefined;
      throw storeFailed(`${failed} The tables could not be made.`, error);
    }
    try {
      return await work(this.#database);
    } catch (error) {
      throw storeFailed(failed, error);
    }
  }
}

/** A session for the list; none if it cannot be read. */
function summaryOf(row: SqlRow): readonly SessionSummary[] {
  try {
    return [{ ...decodeHeader(String(row['header'])), updatedAt: Number(row['written_at']) }];
  } catch {
    return [];
  }
}
