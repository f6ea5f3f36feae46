/**
 * SQLite hold: one writer's claim to a session in a database, from taking it to letting it go.
 *
 * - A session is taken as it was found, or not at all: of several who want it one gets it.
 * - Who holds sessions says every now and then that it lives, for all of them at once, and keeps no process alive by it.
 */
import { randomUUID } from 'node:crypto';
import { shownId } from './store-errors.ts';
import { describeOwner, HEARTBEAT_LIMIT_MS, HEARTBEAT_MS, isAlive, ownerText, readOwner } from './lock-owner.ts';
import { SessionError } from './session-store.ts';
import type { SqlDatabase } from '../sqlite/sql-database.ts';
import { beat, foundSession, selectSession, takeSession, type FoundSession, type Writer } from './sqlite-tables.ts';

/** How often a session may slip away to others before somebody who wants it gives up. */
const ATTEMPTS = 20;

/** A mark of a new writer, different each time, and who that is. */
export function newWriter(): { readonly writer: string; readonly owner: string } {
  return { writer: randomUUID(), owner: JSON.stringify(describeOwner()) };
}

/** A session that was taken. */
export interface TakenSession extends Writer {
  /** What it begins with, as it stands there. */
  readonly header: string;
  /** The dead owner that it was taken from, in words; absent if it was free. */
  readonly takenFrom?: string | undefined;
}

/**
 * Takes a session.
 *
 * @param check - Throws if its header is not one to be taken.
 * @throws SessionError `session_not_found`, `session_locked`.
 */
export async function take(database: SqlDatabase, sessionId: string, check: (header: string) => void): Promise<TakenSession> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const found = foundSession(await database.read(selectSession(sessionId)));
    if (found === undefined) throw new SessionError('session_not_found', `There is no session ${shownId(sessionId)} in the database.`);
    check(found.header);
    const takenFrom = judge(found, sessionId);
    const by = newWriter();
    const [taken] = await database.write([takeSession(found, by)]);
    if (taken === 1) return { root: found.log, writer: by.writer, header: found.header, takenFrom };
  }
  throw new SessionError('session_locked', `Session ${shownId(sessionId)} is being opened by others.`);
}

/** Who it is to be taken from, in words; undefined if it is free. @throws SessionError `session_locked` if the owner lives. */
function judge({ held }: FoundSession, sessionId: string): string | undefined {
  if (held === undefined) return undefined;
  const owner = readOwner(parsed(held.owner));
  const isDead = owner === undefined ? held.ageMs > HEARTBEAT_LIMIT_MS : !isAlive(owner, held.ageMs);
  const who = owner === undefined ? 'somebody whom the database does not tell' : ownerText(owner);
  if (isDead) return `${who}, which is dead`;
  throw new SessionError('session_locked', `Session ${shownId(sessionId)} is held by ${who}. Close it there, or end that process, to open it here.`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Says for all writers of a store that they live. */
export class Heart {
  readonly #database: SqlDatabase;
  readonly #writers = new Set<Writer>();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /** A session was taken. */
  add(writer: Writer): void {
    this.#writers.add(writer);
    if (this.#timer !== undefined) return;
    // Not by a runtime: others judge by the clock of the database, whatever time it is here.
    this.#timer = setInterval(() => void this.#beat(), HEARTBEAT_MS);
    this.#timer.unref();
  }

  /** It was let go. */
  delete(writer: Writer): void {
    this.#writers.delete(writer);
    if (this.#writers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #beat(): Promise<void> {
    try {
      await this.#database.write([beat([...this.#writers])]);
    } catch {
      // The database fails: the next write says so.
    }
  }
}
