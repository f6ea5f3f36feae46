/**
 * Death: where a child process of the kill test dies, and the store and the disk that see to it.
 *
 * All deaths are SIGKILL: nothing of the process gets a word in. Events are those of the session and of its sub-agents, in
 * the order in which they are appended.
 */
import { type FileSystem, nodeFileSystem, type OpenFile, type SessionEvent, type SessionLog, type SessionStore } from 'turnloop/sessions';

/** How a process dies. Events and writes are counted from 1. */
export type Death =
  /** Just before or behind the append of the n-th event. */
  | { readonly kind: 'event'; readonly at: number; readonly when: 'before' | 'after' }
  /** In the middle of the process's n-th write to a file: half of the bytes are there. */
  | { readonly kind: 'torn'; readonly at: number }
  /** Just before it asks anything else of the disk for the n-th time: a rename, a snapshot, a lock. */
  | { readonly kind: 'disk'; readonly at: number }
  /** Killed from outside, so many milliseconds after the n-th event. */
  | { readonly kind: 'instant'; readonly at: number; readonly delayMs: number };

/** In words, to find it again. */
export function deathText(death: Death): string {
  const { kind, at } = death;
  if (kind === 'event') return `${death.when} event ${at}`;
  if (kind === 'instant') return `${death.delayMs.toFixed(2)} ms after event ${at}`;
  return kind === 'torn' ? `in write ${at}` : `before disk call ${at}`;
}

function die(): void {
  process.kill(process.pid, 'SIGKILL');
}

/** Counts a process's way to its death. */
export class DeathWatch {
  readonly #death: Death | undefined;
  readonly #onMark: () => void;
  #events = 0;
  #writes = 0;
  #calls = 0;

  /**
   * @param death - With events counted from the start of the process.
   * @param onMark - Called at the event after which somebody else kills.
   */
  constructor(death: Death | undefined, onMark: () => void) {
    this.#death = death;
    this.#onMark = onMark;
  }

  /** Events appended, or about to be. */
  get events(): number {
    return this.#events;
  }

  /** Writes of files. */
  get writes(): number {
    return this.#writes;
  }

  /** Other things asked of the disk. */
  get calls(): number {
    return this.#calls;
  }

  async event(append: () => Promise<void>): Promise<void> {
    this.#events += 1;
    const death = this.#death;
    const isHere = death?.at === this.#events;
    if (isHere && death.kind === 'event' && death.when === 'before') die();
    if (isHere && death.kind === 'instant') this.#onMark();
    await append();
    if (isHere && death.kind === 'event') die();
  }

  async write(file: OpenFile, offset: number, bytes: Uint8Array): Promise<void> {
    this.#writes += 1;
    if (this.#death?.kind === 'torn' && this.#death.at === this.#writes) {
      await file.write(offset, bytes.subarray(0, bytes.length >> 1));
      die();
    }
    await file.write(offset, bytes);
  }

  disk(): void {
    this.#calls += 1;
    if (this.#death?.kind === 'disk' && this.#death.at === this.#calls) die();
  }
}

/** A store whose events are counted. */
export function watchedStore(store: SessionStore, watch: DeathWatch): SessionStore {
  return {
    create: async (session) => watchedLog(await store.create(session), watch),
    open: async (sessionId) => watchedLog(await store.open(sessionId), watch),
    read: (sessionId) => store.read(sessionId),
    list: () => store.list(),
    delete: (sessionId) => store.delete(sessionId),
  };
}

function watchedLog(log: SessionLog, watch: DeathWatch): SessionLog {
  return {
    header: log.header,
    load: () => log.load(),
    append: (events: readonly SessionEvent[]) => watch.event(() => log.append(events)),
    saveSnapshot: (snapshot) => log.saveSnapshot(snapshot),
    child: async (id) => watchedLog(await log.child(id), watch),
    close: () => log.close(),
  };
}

/** A disk whose calls are counted. */
export function watchedDisk(watch: DeathWatch): FileSystem {
  const files = nodeFileSystem;
  const watched = <Value>(work: () => Promise<Value>): Promise<Value> => {
    watch.disk();
    return work();
  };
  return {
    open: (path, use) => watched(async () => watchedFile(await files.open(path, use), watch)),
    look: (path) => files.look(path),
    list: (folder) => files.list(folder),
    makeFolder: (path) => watched(() => files.makeFolder(path)),
    rename: (from, to) => watched(() => files.rename(from, to)),
    remove: (path) => watched(() => files.remove(path)),
    flushFolder: (path) => watched(() => files.flushFolder(path)),
  };
}

function watchedFile(file: OpenFile, watch: DeathWatch): OpenFile {
  return {
    look: () => file.look(),
    read: (offset, length) => file.read(offset, length),
    write: (offset, bytes) => watch.write(file, offset, bytes),
    truncate: async (length) => {
      watch.disk();
      await file.truncate(length);
    },
    flush: async () => {
      watch.disk();
      await file.flush();
    },
    close: () => file.close(),
  };
}
