/**
 * Stage: one run of one case. Makes the store, keeps account of what is open, checks what is common to all cases.
 *
 * However a case ends, logs are closed and the storage is let go.
 */
import { isTurnloopError } from '../../core/errors.ts';
import type { NewSession, SessionContent, SessionErrorCode, SessionEvent, SessionLog, SessionSnapshot, SessionStore } from '../../sessions/session-store.ts';
import { expectEqual, fail, shown } from './llm-conformance-checks.ts';
import { CREATED_AT } from './store-conformance-samples.ts';

/** A store on a storage of its own, and what else its author can do with that storage. */
export interface StoreUnderTest {
  /** The store. */
  readonly store: SessionStore;
  /** Makes another store on the same storage, as another process would: for `reopen`. */
  readonly reopen?: (() => SessionStore | Promise<SessionStore>) | undefined;
  /** Makes it look as if the process had died that holds the session, which goes on all the same: for `lost`. */
  readonly abandon?: ((sessionId: string) => void | Promise<void>) | undefined;
  /** Lets nothing be written, as a full disk would, until the function is called that it gives: for `failure`. */
  readonly breakWrites?: (() => () => void) | undefined;
  /** What no session may touch, as JSON, such as the names in the folder above that of the store: for `outside`. */
  readonly outside?: (() => unknown) | undefined;
  /** Throws the storage away. */
  readonly close?: (() => void | Promise<void>) | undefined;
}

/** Makes a store on a storage of its own, empty. */
export type CreateStore = () => StoreUnderTest | Promise<StoreUnderTest>;

type Ability = 'reopen' | 'abandon' | 'breakWrites' | 'outside';

/** One run of one case. */
export class StoreStage {
  readonly #made: StoreUnderTest;
  readonly #logs: SessionLog[] = [];

  constructor(made: StoreUnderTest) {
    this.#made = made;
  }

  /** The store. */
  get store(): SessionStore {
    return this.#made.store;
  }

  /** What the author can do with the storage. */
  able<Name extends Ability>(name: Name): NonNullable<StoreUnderTest[Name]> {
    return this.#made[name] ?? fail(`this case needs \`${name}()\` of what createStore gives: offer it, or skip the case with a reason`);
  }

  /** Makes a session. @param parts - What is to differ from the usual one. */
  async create(sessionId: string, parts: Partial<NewSession> = {}): Promise<SessionLog> {
    return this.add(await this.store.create({ sessionId, createdAt: CREATED_AT, ...parts }));
  }

  /** Makes a session with these events, and lets it go. */
  async keep(sessionId: string, events: readonly SessionEvent[] = []): Promise<void> {
    const log = await this.create(sessionId);
    if (events.length > 0) await log.append(events);
    await log.close();
  }

  /** Holds a session. @param store - Where, if not in the store. */
  async open(sessionId: string, store: SessionStore = this.store): Promise<SessionLog> {
    return this.add(await store.open(sessionId));
  }

  /** Holds a session, and gives what is there; then lets it go. */
  async load(sessionId: string, store: SessionStore = this.store): Promise<SessionContent> {
    const log = await this.open(sessionId, store);
    const content = await log.load();
    await log.close();
    return content;
  }

  /** The log, to be closed at the end. */
  add(log: SessionLog): SessionLog {
    this.#logs.push(log);
    return log;
  }

  /** A session has these events, for who reads it and for who opens it. @param what - When that is, for the message. */
  async expectEvents(sessionId: string, expected: readonly SessionEvent[], what: string): Promise<void> {
    expectEqual((await this.store.read(sessionId)).events, expected, `read, ${what}`);
    const { events } = await this.load(sessionId);
    expectEqual(events, expected, `load, ${what}`);
  }

  /** Closes what is open, and lets the storage go. */
  async finish(): Promise<void> {
    // The last opened first, so that children go before their sessions. What a case is about it has closed itself.
    for (const log of this.#logs.reverse()) await log.close().catch(() => undefined);
    await this.#made.close?.();
  }
}

/** A log takes events and snapshots no more. */
export async function expectRefused(log: SessionLog, code: SessionErrorCode, writes: { readonly events: readonly SessionEvent[]; readonly snapshot: SessionSnapshot }): Promise<void> {
  await expectError(log.append(writes.events), code, `append to "${log.header.sessionId}"`);
  await expectError(log.saveSnapshot(writes.snapshot), code, `saveSnapshot of "${log.header.sessionId}"`);
}

/** A call rejects with a `SessionError`. @param what - Which call, for the message. */
export async function expectError(call: Promise<unknown>, code: SessionErrorCode, what: string): Promise<void> {
  const outcome = await settle(call);
  if (!('error' in outcome)) fail(`${what}: expected a SessionError \`${code}\`, and it resolved to ${shown(outcome.value)}`);
  const { error } = outcome;
  if (isTurnloopError(error) && error.code === code && error.name === 'SessionError' && error.message !== '') return;
  fail(`${what}: expected a SessionError \`${code}\` with a message, got ${isTurnloopError(error) ? `\`${error.code}\`, ` : ''}${shown(error)}`);
}

/** True if a call rejects, for the reason that the id is none. Any other failure is thrown. */
export async function isRefusedId(call: Promise<unknown>): Promise<boolean> {
  const outcome = await settle(call);
  if (!('error' in outcome)) return false;
  if (isTurnloopError(outcome.error) && outcome.error.code === 'invalid_session_id') return true;
  throw outcome.error;
}

/** How many of the calls resolved; the others have to reject with that code. */
export async function expectOneWinner(calls: readonly Promise<SessionLog>[], code: SessionErrorCode, what: string): Promise<SessionLog> {
  const outcomes = await Promise.all(calls.map(settle));
  const winners = outcomes.flatMap((outcome) => ('value' in outcome ? [outcome.value] : []));
  for (const outcome of outcomes) if ('error' in outcome) await expectError(Promise.reject(outcome.error), code, what);
  const [winner] = winners;
  if (winner === undefined || winners.length > 1) fail(`${what}: one call of ${calls.length} has to succeed, and ${winners.length} did`);
  return winner;
}

type Outcome<Value> = { readonly value: Value } | { readonly error: unknown };

function settle<Value>(call: Promise<Value>): Promise<Outcome<Value>> {
  return call.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
}
