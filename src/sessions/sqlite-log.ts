/**
 * SQLite log: a session, or a sub-agent of one, in a database.
 *
 * - One thing is written at a time, in the order of the calls, each in one transaction that also makes sure of the hold.
 * - No line refers to one that may not be there: neither to one of a write that failed, nor to one before a snapshot.
 */
import { messageOf } from '../core/errors.ts';
import type { Runtime } from '../core/runtime.ts';
import { shownId, storeFailed } from './store-errors.ts';
import { assertEventList, assertSessionId, decodeHeader, encodeHeader, EventDecoder, EventEncoder, headerOf } from './session-codec.ts';
import { SessionError, type SessionContent, type SessionEvent, type SessionHeader, type SessionLog, type SessionRepair, type SessionSnapshot } from './session-store.ts';
import type { SqlDatabase, SqlRow, SqlStatement } from '../sqlite/sql-database.ts';
import { confirmHold, insertChild, insertEvents, newRow, putSnapshot, selectChild, selectEvents, selectSnapshot, type Writer } from './sqlite-tables.ts';
import { assertSnapshot, usableSnapshot } from './usable-snapshot.ts';

/** What the logs of a session have in common. */
export interface SqliteSession {
  /** Where it stands. */
  readonly database: SqlDatabase;
  /** Tells when something was written. */
  readonly runtime: Runtime;
  /** The hold of it. */
  readonly writer: Writer;
}

/** A log in particular. */
export interface SqliteLogParts {
  /** Its row. */
  readonly log: number;
  /** What it begins with. */
  readonly header: SessionHeader;
  /** What had to be done to open it. */
  readonly repairs: readonly SessionRepair[];
  /** Called when it is closed, once nothing of it is under way. */
  readonly onClose: () => Promise<void>;
}

/** The log of a session, or of a sub-agent of one. */
export class SqliteLog implements SessionLog {
  readonly header: SessionHeader;
  readonly #session: SqliteSession;
  readonly #parts: SqliteLogParts;
  readonly #encoder = new EventEncoder();
  readonly #children = new Map<number, SqliteLog>();
  #last: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(session: SqliteSession, parts: SqliteLogParts) {
    this.header = parts.header;
    this.#session = session;
    this.#parts = parts;
  }

  async load(): Promise<SessionContent> {
    return this.#next(async () => {
      const { log, header, repairs } = this.#parts;
      const [row] = await this.#read(selectSnapshot(log));
      const kept = { sessionId: header.sessionId, events: Number(row?.['events']) };
      const found = usableSnapshot(parseSnapshot(row?.['snapshot']), kept);
      const from = found.snapshot?.events ?? 0;
      const events = decodeEvents(await this.#read(selectEvents(log, from)), from, header.sessionId);
      return { snapshot: found.snapshot, events, repairs: [...repairs, ...found.repairs] };
    });
  }

  async append(events: readonly SessionEvent[]): Promise<void> {
    assertEventList(events, 'append');
    const given = [...events];
    return this.#next(async () => {
      try {
        const lines = given.map((event) => this.#encoder.encode(event));
        if (lines.length > 0) await this.#write((writer) => insertEvents(this.#parts.log, lines, writer));
      } catch (error) {
        this.#encoder.forget();
        throw error;
      }
    });
  }

  async saveSnapshot(snapshot: SessionSnapshot): Promise<void> {
    this.#assertOpen();
    assertSnapshot(snapshot, this.header.sessionId);
    const json = JSON.stringify(snapshot);
    return this.#next(async () => {
      this.#encoder.forget();
      // Nothing happened to the session by it.
      await this.#write((writer) => putSnapshot(this.#parts.log, json, writer), null);
    });
  }

  async child(id: string): Promise<SessionLog> {
    this.#assertOpen();
    assertSessionId(id);
    return this.#next(async () => {
      const { log: parent } = this.#parts;
      const writtenAt = this.#session.runtime.now();
      const header = encodeHeader(headerOf({ sessionId: id, createdAt: writtenAt }));
      await this.#write((writer) => insertChild({ log: newRow(), parent, id, header, writtenAt }, writer));
      const [row] = await this.#read(selectChild(parent, id));
      const log = Number(row?.['log']);
      if (this.#children.has(log)) throw new SessionError('session_locked', `Sub-agent ${shownId(id)} of session ${this.#name} is open already: close it first.`);
      const child = new SqliteLog(this.#session, {
        ...{ log, repairs: [] },
        header: readHeader(String(row?.['header']), id),
        onClose: async () => void this.#children.delete(log),
      });
      this.#children.set(log, child);
      return child;
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#end().catch((error: unknown) => {
      // So that it can be tried again.
      this.#closing = undefined;
      throw storeFailed(`Session ${this.#name} could not be let go of, and stays locked; all events are kept.`, error);
    });
    return this.#closing;
  }

  get #name(): string {
    return shownId(this.header.sessionId);
  }

  async #end(): Promise<void> {
    await this.#last;
    await Promise.all([...this.#children.values()].map((child) => child.close()));
    await this.#parts.onClose();
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new SessionError('session_closed', `Session ${this.#name} was closed here; what was written to it is kept.`);
  }

  /** Does something once all before it is done. */
  #next<Value>(work: () => Promise<Value>): Promise<Value> {
    this.#assertOpen();
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #read(statement: SqlStatement): Promise<readonly SqlRow[]> {
    try {
      return await this.#session.database.read(statement);
    } catch (error) {
      throw storeFailed(`Session ${this.#name} could not be read; nothing of it was changed.`, error);
    }
  }

  async #write(statement: (writer: Writer) => SqlStatement, writtenAt: number | null = this.#session.runtime.now()): Promise<void> {
    const { database, writer } = this.#session;
    try {
      const [held] = await database.write([confirmHold(writer, writtenAt), statement(writer)]);
      if (held === 1) return;
    } catch (error) {
      throw storeFailed(`Session ${this.#name} could not be written to, and is as it was.`, error);
    }
    throw new SessionError('session_lost', `Session ${this.#name} is no longer held here: another writer has taken or deleted it. Nothing of this was kept; open it again.`);
  }
}

/**
 * What a session begins with.
 *
 * @throws SessionError `broken_log`, `unsupported_version`.
 */
export function readHeader(text: string, sessionId: string): SessionHeader {
  try {
    return decodeHeader(text);
  } catch (error) {
    if (error instanceof SessionError) throw error;
    throw new SessionError('broken_log', `What session ${shownId(sessionId)} begins with cannot be read: ${messageOf(error)}. Nothing was changed or deleted.`, { cause: error });
  }
}

/**
 * Events of a log.
 *
 * @param rows - What the database has of them.
 * @param from - Which the first of them is, 0-based.
 * @throws SessionError `broken_log`.
 */
export function decodeEvents(rows: readonly SqlRow[], from: number, sessionId: string): readonly SessionEvent[] {
  const decoder = new EventDecoder();
  return rows.map((row, index) => {
    try {
      return decoder.decode(String(row['line']));
    } catch (error) {
      const place = `event ${from + index + 1} of session ${shownId(sessionId)}`;
      throw new SessionError('broken_log', `In the database, ${place} cannot be read: ${messageOf(error)}. Nothing was changed or deleted: those before it can be read.`, { cause: error });
    }
  });
}

/** What was kept as a snapshot, whatever it is. */
function parseSnapshot(json: unknown): unknown {
  if (typeof json !== 'string') return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}
