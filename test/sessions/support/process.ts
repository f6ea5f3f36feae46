/**
 * A process that works with a session of a store of files, told by its parent what to do: run by `file-processes.test.ts`.
 *
 * Arguments: the folder, what to do, a number that tells it from the others.
 */
import { fileSessionStore, type SessionLog, type SessionStore } from 'turnloop/sessions';
import { note, snapshotOf } from './samples.ts';

const [folder = '', task = '', own = '0'] = process.argv.slice(2);
const tell = (message: unknown): void => void process.send?.(message);

const TASKS: Readonly<Record<string, (store: SessionStore) => Promise<void>>> = {
  /** Writes events and snapshots until it is killed, and tells of each event that is durable. */
  async write(store) {
    const log = await store.open('s');
    const { snapshot, events } = await log.load();
    for (let count = (snapshot?.events ?? 0) + events.length; ; count += 1) {
      await log.append([note(count, 'x'.repeat((count * 37) % 3000))]);
      tell(count);
      if (count % 20 === 19) await log.saveSnapshot(snapshotOf('s', count + 1));
    }
  },
  /** Waits for its turn with the session, writes two events, and dies with it. */
  async die(store) {
    const log = await openInTurn(store);
    const { events } = await log.load();
    await log.append([note(Number(own) * 2)]);
    await log.append([note(Number(own) * 2 + 1)]);
    tell(events.length);
    process.kill(process.pid, 'SIGKILL');
  },
  /** Holds the session, and has nothing else to do. */
  async hold(store) {
    await store.open('s');
    tell('held');
  },
  /** Tries to open it, and stays until it is killed. */
  async stay(store) {
    await store.open('s').then(
      () => tell('opened'),
      (error: unknown) => tell(error),
    );
  },
};

async function openInTurn(store: SessionStore): Promise<SessionLog> {
  for (;;) {
    try {
      return await store.open('s');
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'session_locked') throw error;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
}

tell('ready');
// Listening keeps the process; who only holds the session is not kept.
process.on('message', () => {
  if (task === 'hold') process.channel?.unref();
  void TASKS[task]?.(fileSessionStore(folder));
});
