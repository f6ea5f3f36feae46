/**
 * Tool scheduler: which calls of a batch may overlap. Owns only that; what a call does is `tool-call.ts`'s business.
 *
 * - S1 Calls that conflict never overlap, and run in the order of the batch.
 * - S2 A call waits for conflicting calls before it, for its own permission, and for the parallel limit: nothing else.
 * - S3 Near-linear: a call costs what its accesses cost (their depth in the tree of names), whatever the batch's size.
 *   Only an access that is changed after the fact looks at all waiting calls.
 *
 * How: each place in the tree of names keeps lanes. A lane lists, in batch order, the unfinished calls that touch the
 * place in one way. A call watches the lanes that can hold a conflicting call, and is free of a lane once the lane's
 * first call is not before it. That stays true from then on, so each watch is settled once.
 */
import { accessesConflict, type ToolAccess } from './tool-access.ts';

/** A call's place in the batch. */
export interface SchedulerTicket {
  /** Lets the call start as soon as nothing is in its way: `start` is called then, once, possibly at once. */
  ready(start: () => void): void;
  /** Changes what the call touches, before it started. It keeps its place. */
  reclaim(accesses: readonly ToolAccess[]): void;
  /** Gives back the call's share of the parallel limit but not its place: it has suspended. */
  park(): void;
  /** The call is over, or will not run. Calling it again does nothing. */
  release(): void;
}

/** Schedules the calls of one batch. */
export interface ToolScheduler {
  /** Adds a call behind those added before. */
  add(accesses: readonly ToolAccess[]): SchedulerTicket;
}

/**
 * Makes the scheduler of a batch.
 *
 * @param maxParallel - How many calls may run at once; at least 1.
 */
export function createToolScheduler(maxParallel: number): ToolScheduler {
  return new Scheduler(maxParallel);
}

/** What one call claims; a call that changes its accesses gets another. */
class Claim {
  readonly order: number;
  /** Where this claim stands. */
  readonly lanes: Lane[] = [];
  active = true;
  /** Lanes and calls that are in the way. */
  blockers = 0;
  readonly #onFree: () => void;

  constructor(order: number, onFree: () => void) {
    this.order = order;
    this.#onFree = onFree;
  }

  unblock(): void {
    this.blockers -= 1;
    if (this.blockers === 0 && this.active) this.#onFree();
  }
}

/** Claims in batch order, taken from the front. Out-of-order insertion is rare: only changed accesses do it. */
class ClaimList {
  #claims: Claim[];
  #head = 0;

  constructor(first: Claim) {
    this.#claims = [first];
  }

  get first(): Claim | undefined {
    return this.#claims[this.#head];
  }

  insert(claim: Claim): void {
    let index = this.#claims.length;
    for (let before = this.#claims[index - 1]; index > this.#head && before !== undefined && before.order > claim.order; ) {
      index -= 1;
      before = this.#claims[index - 1];
    }
    if (index === this.#claims.length) this.#claims.push(claim);
    else this.#claims.splice(index, 0, claim);
  }

  shift(): void {
    this.#head += 1;
    if (this.#head < 64 || this.#head * 2 < this.#claims.length) return;
    this.#claims = this.#claims.slice(this.#head);
    this.#head = 0;
  }
}

class Lane {
  readonly #claims: ClaimList;
  #watchers: ClaimList | undefined;

  constructor(first: Claim) {
    this.#claims = new ClaimList(first);
    first.lanes.push(this);
  }

  enter(claim: Claim): void {
    this.#claims.insert(claim);
    claim.lanes.push(this);
  }

  watch(claim: Claim): void {
    if (this.#firstOrder() >= claim.order) return;
    claim.blockers += 1;
    if (this.#watchers === undefined) this.#watchers = new ClaimList(claim);
    else this.#watchers.insert(claim);
  }

  /** Some claim of this lane is over: frees the watchers that no claim stands before any more. */
  settle(): void {
    const watchers = this.#watchers;
    if (watchers === undefined) return;
    const first = this.#firstOrder();
    for (let watcher = watchers.first; watcher !== undefined; watcher = watchers.first) {
      if (watcher.active && watcher.order > first) return;
      watchers.shift();
      watcher.unblock();
    }
  }

  #firstOrder(): number {
    for (let claim = this.#claims.first; claim !== undefined; claim = this.#claims.first) {
      if (claim.active) return claim.order;
      this.#claims.shift();
    }
    return Infinity;
  }
}

/** The claims of one kind at a place: those that write, and all of them. A read minds the writes only. */
class LanePair {
  // Made on first use: most places see accesses of one kind only.
  #writes: Lane | undefined;
  #any: Lane | undefined;

  enter(claim: Claim, mode: ToolAccess['mode']): void {
    if (this.#any === undefined) this.#any = new Lane(claim);
    else this.#any.enter(claim);
    if (mode === 'read') return;
    if (this.#writes === undefined) this.#writes = new Lane(claim);
    else this.#writes.enter(claim);
  }

  watch(claim: Claim, mode: ToolAccess['mode']): void {
    (mode === 'write' ? this.#any : this.#writes)?.watch(claim);
  }
}

/** A place in the tree of names. */
class Place {
  /** Accesses of this place together with all below it. */
  readonly trees = new LanePair();
  /** Accesses of exactly this place, with or without what is below. */
  readonly here = new LanePair();
  /** Accesses of this place or of any below it. */
  readonly within = new LanePair();
  #children: Map<string, Place> | undefined;

  child(name: string): Place {
    this.#children ??= new Map<string, Place>();
    const place = this.#children.get(name) ?? new Place();
    this.#children.set(name, place);
    return place;
  }
}

type TaskState = 'held' | 'ready' | 'running' | 'parked' | 'over';

class Task implements SchedulerTicket {
  readonly order: number;
  accesses: readonly ToolAccess[];
  claim: Claim;
  state: TaskState = 'held';
  /** Claims that wait for this call beside the lanes, because accesses changed after the fact. */
  followers: Claim[] = [];
  start: () => void = () => undefined;
  readonly #scheduler: Scheduler;

  constructor(scheduler: Scheduler, order: number, accesses: readonly ToolAccess[]) {
    this.#scheduler = scheduler;
    this.order = order;
    this.accesses = accesses;
    this.claim = this.newClaim();
  }

  newClaim(): Claim {
    return new Claim(this.order, () => {
      this.#scheduler.offer(this);
    });
  }

  get isStarted(): boolean {
    return this.state === 'running' || this.state === 'parked';
  }

  ready(start: () => void): void {
    if (this.state !== 'held') return;
    this.start = start;
    this.state = 'ready';
    this.#scheduler.offer(this);
  }

  reclaim(accesses: readonly ToolAccess[]): void {
    if (this.state === 'held') this.#scheduler.reclaim(this, accesses);
  }

  park(): void {
    if (this.state !== 'running') return;
    this.state = 'parked';
    this.#scheduler.giveBack();
  }

  release(): void {
    if (this.state !== 'over') this.#scheduler.release(this);
  }
}

class Scheduler implements ToolScheduler {
  readonly #root = new Place();
  readonly #maxParallel: number;
  readonly #tasks: Task[] = [];
  #queue: Task[] = [];
  #running = 0;

  constructor(maxParallel: number) {
    this.#maxParallel = maxParallel;
  }

  add(accesses: readonly ToolAccess[]): Task {
    const task = new Task(this, this.#tasks.length, accesses);
    this.#tasks.push(task);
    this.#enter(task.claim, accesses);
    return task;
  }

  /** Queues a call that may start; does nothing while something is in its way. */
  offer(task: Task): void {
    if (task.state !== 'ready' || task.claim.blockers > 0) return;
    this.#queue.push(task);
    this.#pump();
  }

  giveBack(): void {
    this.#running -= 1;
    this.#pump();
  }

  reclaim(task: Task, accesses: readonly ToolAccess[]): void {
    const { claim, followers } = task;
    task.accesses = accesses;
    task.claim = task.newClaim();
    task.followers = [];
    // Calls behind it passed its old claim by: those that run are waited for, those that do not yet run have to wait.
    for (const other of this.#tasks.slice(task.order + 1)) {
      if (other.state === 'over' || !accessesConflict(accesses, other.accesses)) continue;
      const [first, second] = other.isStarted ? [other, task] : [task, other];
      first.followers.push(second.claim);
      second.claim.blockers += 1;
    }
    this.#enter(task.claim, accesses);
    this.#leave(claim, followers);
  }

  release(task: Task): void {
    const wasRunning = task.state === 'running';
    task.state = 'over';
    if (wasRunning) this.#running -= 1;
    this.#leave(task.claim, task.followers);
    task.followers = [];
    this.#pump();
  }

  #enter(claim: Claim, accesses: readonly ToolAccess[]): void {
    for (const { mode, place, below } of accesses) {
      let node = this.#root;
      node.within.enter(claim, mode);
      for (const name of place) {
        node.trees.watch(claim, mode);
        node = node.child(name);
        node.within.enter(claim, mode);
      }
      node.here.enter(claim, mode);
      if (below) node.trees.enter(claim, mode);
      (below ? node.within : node.here).watch(claim, mode);
    }
  }

  #leave(claim: Claim, followers: readonly Claim[]): void {
    claim.active = false;
    for (const lane of claim.lanes) lane.settle();
    for (const follower of followers) follower.unblock();
  }

  #pump(): void {
    while (this.#running < this.#maxParallel) {
      const task = this.#queue.shift();
      if (task === undefined) return;
      // It may have got something in its way, or been released, since it was queued.
      if (task.state !== 'ready' || task.claim.blockers > 0) continue;
      task.state = 'running';
      this.#running += 1;
      task.start();
    }
  }
}
