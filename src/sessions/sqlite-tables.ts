/**
 * SQLite tables: where sessions stand in a database, and each question that is asked of them.
 *
 * - A session is a row of `logs` with parent 0. A sub-agent is one, too, whose parent is the log it belongs to and whose
 * - Who holds a session stands in its row: `writer` is different each time it is opened. Whatever is written asks in the
 *   same transaction whether the writer is still the same, so that who lost a session changes nothing.
 * - Heartbeats are by the clock of the database, which all writers share.
 */
import { randomInt } from 'node:crypto';
import type { SqlRow, SqlStatement, SqlValue } from '../sqlite/sql-database.ts';

/** Milliseconds since the epoch, by the clock of the database. */
const NOW = `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`;

/** Makes what is not there yet. */
export const TABLES: readonly SqlStatement[] = [
  `CREATE TABLE IF NOT EXISTS turnloop_session_logs (
    log INTEGER PRIMARY KEY,
    root INTEGER NOT NULL,
    parent INTEGER NOT NULL,
    id TEXT NOT NULL,
    header TEXT NOT NULL,
    written_at REAL NOT NULL,
    writer TEXT,
    owner TEXT,
    beat_at INTEGER,
    UNIQUE (parent, id)
  )`,
  `CREATE INDEX IF NOT EXISTS turnloop_session_roots ON turnloop_session_logs (root)`,
  `CREATE TABLE IF NOT EXISTS turnloop_session_events (
    log INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (log, seq)
  )`,
  `CREATE TABLE IF NOT EXISTS turnloop_session_snapshots (log INTEGER PRIMARY KEY, json TEXT NOT NULL)`,
].map((sql) => ({ sql, args: [] }));

/** A number for a new row. One that is taken makes the write fail: with a million rows, once in some hundred million sessions. */
export function newRow(): number {
  return randomInt(1, MAX_ROW);
}

/** The largest range that there are random numbers for. */
const MAX_ROW = 2 ** 48 - 1;

/** Who writes to a session. */
export interface Writer {
  /** Row of the session. */
  readonly root: number;
  /** This hold of it alone. */
  readonly writer: string;
}

/** What a row of a session tells of it. */
export interface FoundSession {
  readonly log: number;
  readonly header: string;
  /** Who holds it; absent if it is free. */
  readonly held?: { readonly writer: string; readonly owner: string; readonly beatAt: number; readonly ageMs: number };
}

const HOLDS = 'EXISTS (SELECT 1 FROM turnloop_session_logs WHERE log = ? AND writer = ?)';

/** A new session, held by its writer. Fails if there is one. */
export function insertSession({ root, writer }: Writer, session: { readonly id: string; readonly header: string; readonly writtenAt: number; readonly owner: string }): SqlStatement {
  const { id, header, writtenAt, owner } = session;
  return {
    sql: `INSERT INTO turnloop_session_logs (log, root, parent, id, header, written_at, writer, owner, beat_at) VALUES (?, 0, 0, ?, ?, ?, ?, ?, ${NOW})`,
    args: [root, keyOf(id), header, writtenAt, writer, owner],
  };
}

/** The row of a session. */
export function selectSession(id: string): SqlStatement {
  return {
    sql: `SELECT log, header, writer, owner, beat_at, ${NOW} - beat_at AS age FROM turnloop_session_logs WHERE parent = 0 AND id = ?`,
    args: [keyOf(id)],
  };
}

/** Reads {@link selectSession}. */
export function foundSession([row]: readonly SqlRow[]): FoundSession | undefined {
  if (row === undefined) return undefined;
  const found = { log: Number(row['log']), header: String(row['header']) };
  if (typeof row['writer'] !== 'string') return found;
  const held = { writer: row['writer'], owner: String(row['owner']), beatAt: Number(row['beat_at']), ageMs: Number(row['age']) };
  return { ...found, held };
}

/** Takes a session, if it is still as it was found. */
export function takeSession({ log, held }: FoundSession, by: { readonly writer: string; readonly owner: string }): SqlStatement {
  return {
    sql: `UPDATE turnloop_session_logs SET writer = ?, owner = ?, beat_at = ${NOW} WHERE log = ? AND writer IS ? AND beat_at IS ?`,
    args: [by.writer, by.owner, log, held?.writer ?? null, held?.beatAt ?? null],
  };
}

/** Makes sure of a hold, in front of a write: changes one row, or none if it was lost. @param writtenAt - Null if nothing happens to the session. */
export function confirmHold({ root, writer }: Writer, writtenAt: number | null): SqlStatement {
  return {
    sql: `UPDATE turnloop_session_logs SET beat_at = ${NOW}, written_at = coalesce(?, written_at) WHERE log = ? AND writer = ?`,
    args: [writtenAt, root, writer],
  };
}

/** Says that the writers live. */
export function beat(writers: readonly Writer[]): SqlStatement {
  return {
    sql: `UPDATE turnloop_session_logs SET beat_at = ${NOW}
      WHERE log IN (SELECT value FROM json_each(?)) AND writer IN (SELECT value FROM json_each(?))`,
    args: [JSON.stringify(writers.map(({ root }) => root)), JSON.stringify(writers.map(({ writer }) => writer))],
  };
}

/** Lets a session go. */
export function releaseSession({ root, writer }: Writer): SqlStatement {
  return {
    sql: `UPDATE turnloop_session_logs SET writer = NULL, owner = NULL, beat_at = NULL WHERE log = ? AND writer = ?`,
    args: [root, writer],
  };
}

/** Puts events behind those of a log, if the hold is not lost. */
export function insertEvents(log: number, lines: readonly string[], { root, writer }: Writer): SqlStatement {
  return {
    sql: `INSERT INTO turnloop_session_events (log, seq, line)
      SELECT ?, (SELECT coalesce(max(seq) + 1, 0) FROM turnloop_session_events WHERE log = ?) + key, value FROM json_each(?) WHERE ${HOLDS}`,
    args: [log, log, JSON.stringify(lines), root, writer],
  };
}

/** Puts a snapshot in place of that of a log, if the hold is not lost. */
export function putSnapshot(log: number, json: string, { root, writer }: Writer): SqlStatement {
  return {
    sql: `INSERT INTO turnloop_session_snapshots (log, json) SELECT ?, ? WHERE ${HOLDS} ON CONFLICT (log) DO UPDATE SET json = excluded.json`,
    args: [log, json, root, writer],
  };
}

/** A sub-agent of a log, if it is not there and the hold is not lost. */
export function insertChild(child: { readonly log: number; readonly parent: number; readonly id: string; readonly header: string; readonly writtenAt: number }, { root, writer }: Writer): SqlStatement {
  const { log, parent, id, header, writtenAt } = child;
  return {
    sql: `INSERT INTO turnloop_session_logs (log, root, parent, id, header, written_at) SELECT ?, ?, ?, ?, ?, ? WHERE ${HOLDS} ON CONFLICT (parent, id) DO NOTHING`,
    args: [log, root, parent, keyOf(id), header, writtenAt, root, writer],
  };
}

/** The row of a sub-agent. */
export function selectChild(parent: number, id: string): SqlStatement {
  return { sql: 'SELECT log, header FROM turnloop_session_logs WHERE parent = ? AND id = ?', args: [parent, keyOf(id)] };
}

/** The snapshot of a log, and how many events there are: one row. */
export function selectSnapshot(log: number): SqlStatement {
  return {
    sql: `SELECT (SELECT json FROM turnloop_session_snapshots WHERE log = ?) AS snapshot,
      (SELECT coalesce(max(seq) + 1, 0) FROM turnloop_session_events WHERE log = ?) AS events`,
    args: [log, log],
  };
}

/** The events of a log from one on, in order. */
export function selectEvents(log: number, from: number): SqlStatement {
  return { sql: 'SELECT line FROM turnloop_session_events WHERE log = ? AND seq >= ? ORDER BY seq', args: [log, from] };
}

/** All of a session as it is at one moment: its events in order, the header with the first; one row if there are none. */
export function selectAll(id: string): SqlStatement {
  return {
    sql: `SELECT CASE WHEN coalesce(seq, 0) = 0 THEN header END AS header, line
      FROM turnloop_session_logs LEFT JOIN turnloop_session_events USING (log) WHERE parent = 0 AND id = ? ORDER BY seq`,
    args: [keyOf(id)],
  };
}

/** All sessions, the last written first. */
export const SELECT_SESSIONS: SqlStatement = {
  sql: 'SELECT header, written_at FROM turnloop_session_logs WHERE parent = 0 ORDER BY written_at DESC, log DESC',
  args: [],
};

/** Deletes a session with its sub-agents, if the hold is not lost. The last of the statements changes a row then. */
export function deleteSession({ root, writer }: Writer): readonly SqlStatement[] {
  const args: SqlValue[] = [root, root, root, writer];
  const logs = `SELECT log FROM turnloop_session_logs WHERE log = ? OR root = ?`;
  return [
    { sql: `DELETE FROM turnloop_session_events WHERE log IN (${logs}) AND ${HOLDS}`, args },
    { sql: `DELETE FROM turnloop_session_snapshots WHERE log IN (${logs}) AND ${HOLDS}`, args },
    { sql: `DELETE FROM turnloop_session_logs WHERE root = ? AND ${HOLDS}`, args: [root, root, writer] },
    { sql: `DELETE FROM turnloop_session_logs WHERE log = ? AND writer = ?`, args: [root, writer] },
  ];
}

function keyOf(id: string): string {
  return JSON.stringify(id);
}
