/**
 * Path queues: the least that schedules calls which write files. One queue for each exact path; a call runs when it
 * stands first in all of its queues and a place is free. No reads, no trees, no changed accesses.
 */

interface QueuedCall {
  readonly paths: readonly string[];
  readonly start: () => void;
  /** Queues in which it does not stand first yet. */
  blockers: number;
}

/** Schedules calls by the paths they write. */
export class PathQueues {
  readonly #queues = new Map<string, { readonly calls: QueuedCall[]; head: number }>();
  readonly #free: QueuedCall[] = [];
  readonly #maxParallel: number;
  #nextFree = 0;
  #running = 0;

  constructor(maxParallel: number) {
    this.#maxParallel = maxParallel;
  }

  /** Adds a call. @returns Ends it. */
  add(paths: readonly string[], start: () => void): () => void {
    const call: QueuedCall = { paths, start, blockers: 0 };
    for (const path of paths) {
      const queue = this.#queues.get(path);
      if (queue === undefined) {
        this.#queues.set(path, { calls: [call], head: 0 });
        continue;
      }
      if (queue.calls.length > queue.head) call.blockers += 1;
      queue.calls.push(call);
    }
    if (call.blockers === 0) this.#free.push(call);
    this.#pump();
    return () => {
      this.#end(call);
    };
  }

  #end(call: QueuedCall): void {
    this.#running -= 1;
    for (const path of call.paths) {
      const queue = this.#queues.get(path)!;
      queue.head += 1;
      const first = queue.calls[queue.head];
      if (first === undefined) continue;
      first.blockers -= 1;
      if (first.blockers === 0) this.#free.push(first);
    }
    this.#pump();
  }

  #pump(): void {
    while (this.#running < this.#maxParallel) {
      const call = this.#free[this.#nextFree];
      if (call === undefined) return;
      this.#nextFree += 1;
      this.#running += 1;
      call.start();
    }
  }
}
