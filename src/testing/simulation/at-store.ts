/**
 * Session stores and recorders: writes to them fail and are slow, and what they have kept is known to the world.
 *
 * Appends that overlap keep their order, as the contract of a store says. A process that dies lets go of its sessions.
 */
import type { RecordedEvent } from '../../core/events.ts';
import type { SessionLog, SessionStore } from '../../sessions/session-store.ts';
import type { Life } from './life.ts';

/** A store of one life. */
export function simulatedStore(life: Life, store: SessionStore): SessionStore {
  const hold = async (opening: Promise<SessionLog>): Promise<SessionLog> => {
    const log = await opening;
    life.onDeath(() => void log.close().catch(() => undefined));
    return life.alive(new SimulatedLog(life, log, log.header.sessionId));
  };
  return {
    create: (session) => hold(store.create(session)),
    open: (sessionId) => hold(store.open(sessionId)),
    read: (sessionId) => life.alive(store.read(sessionId)),
    list: () => life.alive(store.list()),
    delete: (sessionId) => life.alive(store.delete(sessionId)),
  };
}

class SimulatedLog implements SessionLog {
  readonly #life: Life;
  readonly #log: SessionLog;
  readonly #name: string;
  #before: Promise<unknown> = Promise.resolve();

  constructor(life: Life, log: SessionLog, name: string) {
    this.#life = life;
    this.#log = log;
    this.#name = name;
  }

  get header(): SessionLog['header'] {
    return this.#log.header;
  }

  async load(): ReturnType<SessionLog['load']> {
    const content = await this.#life.alive(this.#log.load());
    this.#life.world.compare(this.#name, content.snapshot?.events ?? 0, content.events);
    return content;
  }

  append(events: Parameters<SessionLog['append']>[0]): Promise<void> {
    return this.#inOrder('the log', async () => {
      await this.#log.append(events);
      for (const event of events) this.#life.world.keep(this.#name, event);
    });
  }

  saveSnapshot(snapshot: Parameters<SessionLog['saveSnapshot']>[0]): Promise<void> {
    return this.#inOrder('a snapshot', () => this.#log.saveSnapshot(snapshot));
  }

  async child(id: string): Promise<SessionLog> {
    const log = await this.#life.alive(this.#log.child(id));
    return new SimulatedLog(this.#life, log, `${this.#name}/${id}`);
  }

  async close(): Promise<void> {
    await this.#before;
    await this.#life.alive(this.#log.close());
  }

  #inOrder(what: string, write: () => Promise<void>): Promise<void> {
    const written = this.#before.then(() => passStore(this.#life, what, write));
    this.#before = written.catch(() => undefined);
    return written;
  }
}

/** A recorder of one life. */
export function simulatedRecorder(life: Life, log: RecordedEvent[]): (event: RecordedEvent) => Promise<void> {
  return (event) =>
    passStore(life, 'the record', () => {
      log.push(event);
      life.world.keep('', event);
    });
}

function passStore(life: Life, what: string, write: () => Promise<void> | void): Promise<void> {
  return life.pass('store', undefined, ({ fault }) => {
    if (fault === 'error') throw new Error(`simulated: ${what} cannot be written`);
    return write();
  });
}
