/**
 * Session stores and recorders: writes to them fail and are slow, and what they have kept is known to the world.
 *
 * Appends that overlap keep their order, as the contract of a store says. A process that dies lets go of its sessions; what its
 * store had kept is looked at before, since letting go may write what no dead process writes.
 */
import type { RecordedEvent } from '../../core/events.ts';
import type { SessionLog, SessionStore } from '../../sessions/session-store.ts';
import { nextTask } from '../next-task.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** A store of one process. */
export function simulatedStore(process: SimulatedProcess, store: SessionStore): SessionStore {
  const hold = async (opening: Promise<SessionLog>): Promise<SessionLog> => {
    const log = await opening;
    process.onDeath(() => letGo(process, store, log));
    return process.alive(new SimulatedLog(process, log, log.header.sessionId));
  };
  return {
    create: (session) => hold(store.create(session)),
    open: (sessionId) => hold(store.open(sessionId)),
    read: (sessionId) => process.alive(store.read(sessionId)),
    list: () => process.alive(store.list()),
    delete: (sessionId) => process.alive(store.delete(sessionId)),
  };
}

/** Closes the log of a process that is over, after what was kept is compared with what the store has. */
async function letGo(process: SimulatedProcess, store: SessionStore, log: SessionLog): Promise<void> {
  const { sessionId } = log.header;
  // What is being written at this moment may be there or not.
  const kept = [...(process.world.logs.get(sessionId) ?? [])];
  const read = store.read(sessionId).then(
    ({ events }) => events,
    () => undefined,
  );
  // A store on a disk that died with the process says nothing any more: the next life looks at what it has.
  const events = await Promise.race([read, nextTask().then(() => undefined)]);
  if (events !== undefined) process.world.expectKept(sessionId, kept, events);
  void log.close().catch(() => undefined);
}

class SimulatedLog implements SessionLog {
  readonly #process: SimulatedProcess;
  readonly #log: SessionLog;
  readonly #name: string;
  #before: Promise<unknown> = Promise.resolve();

  constructor(process: SimulatedProcess, log: SessionLog, name: string) {
    this.#process = process;
    this.#log = log;
    this.#name = name;
  }

  get header(): SessionLog['header'] {
    return this.#log.header;
  }

  async load(): ReturnType<SessionLog['load']> {
    const content = await this.#process.alive(this.#log.load());
    this.#process.world.compare(this.#name, content.snapshot?.events ?? 0, content.events);
    return content;
  }

  append(events: Parameters<SessionLog['append']>[0]): Promise<void> {
    return this.#inOrder('the log', async () => {
      await this.#log.append(events);
      for (const event of events) this.#process.world.keep(this.#name, event);
    });
  }

  saveSnapshot(snapshot: Parameters<SessionLog['saveSnapshot']>[0]): Promise<void> {
    return this.#inOrder('a snapshot', () => this.#log.saveSnapshot(snapshot));
  }

  async child(id: string): Promise<SessionLog> {
    const log = await this.#process.alive(this.#log.child(id));
    return new SimulatedLog(this.#process, log, `${this.#name}/${id}`);
  }

  async close(): Promise<void> {
    await this.#before;
    await this.#process.alive(this.#log.close());
  }

  #inOrder(what: string, write: () => Promise<void>): Promise<void> {
    const written = this.#before.then(() => passStore(this.#process, what, write));
    this.#before = written.catch(() => undefined);
    return written;
  }
}

/** A recorder of one process. */
export function simulatedRecorder(process: SimulatedProcess, log: RecordedEvent[]): (event: RecordedEvent) => Promise<void> {
  return (event) =>
    passStore(process, 'the record', () => {
      log.push(event);
      process.world.keep('', event);
    });
}

function passStore(process: SimulatedProcess, what: string, write: () => Promise<void> | void): Promise<void> {
  return process.pass('store', undefined, ({ fault }) => {
    if (fault === 'error') throw new Error(`simulated: ${what} cannot be written`);
    return write();
  });
}
