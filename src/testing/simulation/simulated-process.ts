/**
 * Simulated process: one process of a run, with a clock of its own.
 *
 * - It dies at once: nothing that waited for something outside ever goes on, and no timer fires any more.
 * - It ends within the grace once the host has aborted it, and leaves neither timers nor listeners behind.
 * - A host has patience for an hour: then it aborts.
 */
import { messageOf } from '../../core/errors.ts';
import { type Runtime, sleep } from '../../core/runtime.ts';
import { virtualRuntime, type VirtualRuntime } from '../virtual-runtime.ts';
import { watchedController, type WatchedController } from '../watched-controller.ts';
import { type Boundary, type FaultKind, isCrash } from './fault.ts';
import type { World } from './world.ts';

/** How patient the host is, in milliseconds. */
export interface ProcessLimits {
  /** How long an aborted turn may take to end. */
  readonly graceMs: number;
  /** How long the host waits before it aborts. */
  readonly patienceMs: number;
}

/** Time that ending takes beside turns: a store that is slow, a session that is closed. */
const CLOSING_MS = 130_000;

/** A wait that a fault makes very long, in milliseconds. */
const SLOW_MS = 30_000;

/** Uses of a boundary while the clock stands still, after which nothing new is to be expected. */
const MOST_AT_ONCE = 20_000;

/** What comes back from a dead process. Another one each time: who waits for one that all share is never let go. */
function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** One use of a boundary, as a wrapper sees it. */
export interface Passage {
  /** What goes wrong; crashes are seen to already. */
  readonly fault: Exclude<FaultKind, `crash_${string}`> | 'crash_within' | undefined;
  /** A number of at least 0 and below 1 that belongs to this use. */
  readonly dice: number;
  /** Dies here if it is to die with half of it done. */
  dieWithin(): Promise<void>;
}

/** One process of a run. */
export class SimulatedProcess {
  /** Which life of the run it is, 1-based. */
  readonly number: number;
  /** The clock that an agent is given: its timers are counted. */
  readonly runtime: Runtime;
  /** The host's. */
  readonly signal: AbortSignal;
  readonly world: World;
  /** True once the process is dead. */
  isDead = false;
  readonly #limits: ProcessLimits;
  readonly #clock: VirtualRuntime;
  readonly #controller: WatchedController = watchedController();
  readonly #timers = new Set<symbol>();
  readonly #onDeath: (() => Promise<void> | void)[] = [];
  #buried: Promise<unknown> = Promise.resolve();
  /** Uses of boundaries since the clock moved. */
  #atOnce = { now: 0, uses: 0 };
  #pauses = 0;
  readonly #cutShort: Promise<'died' | 'hung'>;
  #endAs: (how: 'died' | 'hung') => void = () => undefined;
  #abortedAt: number | undefined;
  #cancelLastCall: () => void = () => undefined;

  constructor(world: World, number: number, limits: ProcessLimits) {
    this.world = world;
    this.number = number;
    this.#limits = limits;
    this.#clock = virtualRuntime({ start: world.now, seed: world.seed + number, idPrefix: number === 1 ? '' : `${number}_` });
    this.signal = this.#controller.signal;
    this.runtime = this.#countedRuntime();
    this.#cutShort = new Promise((resolve) => {
      this.#endAs = resolve;
    });
  }

  /** Waits for so many milliseconds; forever once the process is dead. */
  async pause(ms: number): Promise<void> {
    this.#countUse();
    this.#pauses += 1;
    await this.alive(sleep(ms, { runtime: this.#clock }));
    this.#pauses -= 1;
  }

  /** Resolves once what the dead process held is let go of. */
  async buried(): Promise<void> {
    await this.#buried;
  }

  /**
   * Lives to the end, or dies.
   *
   * @param checkEnd - Called once it is over.
   */
  async run(live: () => Promise<void>, checkEnd: () => void): Promise<'ended' | 'died'> {
    const giveUp = this.#clock.setTimer(this.#limits.patienceMs, () => this.abort('the host waited long enough'));
    const ended = live().then(
      () => 'ended' as const,
      (error: unknown) => {
        if (!this.isDead) this.world.report(`live() failed: ${messageOf(error)}`);
        return 'ended' as const;
      },
    );
    const end = await this.#clock.settle(Promise.race([ended, this.#cutShort])).catch((error: unknown) => {
      // Timers that keep coming while the host is patient.
      this.world.report(`live() does not end: ${messageOf(error)}`, 4);
      this.kill();
      return 'died' as const;
    });
    giveUp();
    this.#cancelLastCall();
    if (this.isDead) return 'died';
    if (end === 'ended') await this.#checkEnd(checkEnd);
    else this.world.report(this.#hungText(), 4);
    this.kill();
    return 'ended';
  }

  /** The host aborts. */
  abort(reason: string): void {
    if (this.isDead || this.signal.aborted) return;
    this.world.isAborted = true;
    this.#abortedAt = this.#now();
    this.world.tell('host', `aborts: ${reason}`);
    this.#cancelLastCall = this.#clock.setTimer(this.#limits.graceMs + CLOSING_MS, () => this.#endAs('hung'));
    this.#controller.abort(new DOMException('The simulated host aborted.', 'AbortError'));
  }

  /** The process is dead from now on. */
  kill(): void {
    if (this.isDead) return;
    this.#now();
    this.isDead = true;
    this.#buried = Promise.all(this.#onDeath.map(async (onDeath) => onDeath()));
    this.#endAs('died');
  }

  /** Called when the process dies, or is over. */
  onDeath(action: () => Promise<void> | void): void {
    this.#onDeath.push(action);
  }

  /** What a promise gives, to a process that is still alive. */
  async alive<Value>(promise: PromiseLike<Value> | Value): Promise<Value> {
    try {
      const value = await promise;
      this.#now();
      return this.isDead ? await never() : value;
    } catch (error) {
      this.#now();
      if (this.isDead) await never();
      throw error;
    }
  }

  /**
   * Passes a boundary: waits as the schedule says, dies where a fault says so, and tells `action` what else goes wrong.
   *
   * @param signal - What ends a wait.
   */
  async pass<Value>(boundary: Boundary, signal: AbortSignal | undefined, action: (passage: Passage) => PromiseLike<Value> | Value): Promise<Value> {
    if (this.isDead) return never();
    this.#countUse();
    const visit = this.world.visit(boundary);
    const { fault, number } = visit;
    await this.#wait(visit.delays[0], signal);
    if (fault === 'crash_before') return this.#dieHere();
    if (fault === 'slow') await this.#wait(SLOW_MS, signal);
    const passage: Passage = {
      fault: fault === 'crash_after' ? undefined : fault,
      dice: this.world.dice(boundary, number),
      dieWithin: async () => {
        if (fault === 'crash_within') await this.#dieHere();
      },
    };
    const value = await this.alive(action(passage));
    if (fault !== undefined && isCrash(fault)) return this.#dieHere();
    await this.#wait(visit.delays[1], signal);
    return value;
  }

  /** Nothing comes back until the signal is aborted; then it fails with the signal's reason. */
  async stall(signal: AbortSignal | undefined): Promise<never> {
    if (signal === undefined) return never();
    await this.alive(sleep(Infinity, { runtime: this.#clock, signal }));
    return never();
  }

  /** Nothing ever comes back. */
  deaf(): Promise<never> {
    return never();
  }

  /** A life that goes round and round at one moment would never end, and no clock would stop it. */
  #countUse(): void {
    const now = this.#clock.now();
    if (now !== this.#atOnce.now) this.#atOnce = { now, uses: 0 };
    this.#atOnce.uses += 1;
    if (this.#atOnce.uses <= MOST_AT_ONCE || this.isDead) return;
    this.world.report(`live() goes round and round: ${MOST_AT_ONCE} uses of its stores, models, tools and pauses at ${now} ms, and the clock stands still`, 4);
    this.kill();
  }

  async #wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (ms > 0) await this.alive(sleep(ms, { runtime: this.#clock, signal }));
  }

  #dieHere(): Promise<never> {
    this.kill();
    return never();
  }

  #now(): number {
    if (!this.isDead) this.world.now = this.#clock.now();
    return this.world.now;
  }

  #hungText(): string {
    const what = this.#abortedAt === undefined
      ? 'the process hangs: nothing can happen any more'
      : `the process goes on ${this.#limits.graceMs + CLOSING_MS} ms after the host aborted it at ${this.#abortedAt} ms`;
    return this.#timers.size > 0 || this.#pauses > 0 ? what : `${what}. Nothing in it waits for \`life.runtime\`: does it wait for the real clock, a file or a socket?`;
  }

  /** Nothing of a life that is over is left. */
  async #checkEnd(checkEnd: () => void): Promise<void> {
    await this.#clock.flush();
    const { world } = this;
    this.#now();
    if (this.#timers.size > 0) world.report(`${this.#timers.size} timers are left when all is over`, 4);
    if (this.#controller.listenerCount > 0 && !this.signal.aborted) world.report(`${this.#controller.listenerCount} listeners are left on the host's signal: is there a turn that was not awaited?`, 4);
    checkEnd();
  }

  /** The clock, which knows what was set by the agent and what by the world. */
  #countedRuntime(): Runtime {
    const clock = this.#clock;
    return {
      now: () => clock.now(),
      random: () => clock.random(),
      createId: (kind) => {
        this.world.hasGivenId = true;
        return clock.createId(kind);
      },
      setTimer: (delayMs, callback) => {
        if (delayMs === Infinity) return () => undefined;
        const timer = Symbol();
        this.#timers.add(timer);
        const cancel = clock.setTimer(delayMs, () => {
          this.#timers.delete(timer);
          this.#now();
          callback();
        });
        return () => {
          this.#timers.delete(timer);
          cancel();
        };
      },
    };
  }
}
