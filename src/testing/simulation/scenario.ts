/**
 * Scenario: what a simulation plays. Types only.
 *
 * A scenario builds a world from a seed, and lives in it. Whatever an agent meets is handed through the world first, which is
 * where time passes, things go wrong, and laws are checked.
 */
import type { RecordedEvent } from '../../core/events.ts';
import type { LLM } from '../../core/llm.ts';
import type { Runtime } from '../../core/runtime.ts';
import type { AnyTool } from '../../core/tool.ts';
import type { MemoryStore } from '../../memory/memory-store.ts';
import type { FileSystem } from '../../sessions/file-system.ts';
import type { SessionStore } from '../../sessions/session-store.ts';
import type { Fault } from './fault.ts';

/** Something to be played again and again, with a new seed each time. */
export interface Scenario {
  /** Its name, as reports show it. */
  readonly name: string;
  /**
   * Builds the world of one run: what outlives a process, such as stores, files, services and their counters. Must come to the
   * same for the same seed.
   */
  build(world: SimulatedWorld): SimulatedRun | Promise<SimulatedRun>;
}

/** One run of a scenario. */
export interface SimulatedRun {
  /**
   * One life of a process: makes agents, has them work, and resolves once all is done. Called again after each death; what it
   * awaited before never comes back then.
   */
  live(life: SimulatedLife): Promise<void>;
  /**
   * What the run came to: JSON, without ids and times. Compared with that of the run in which nothing goes wrong, if no fault of
   * this one may change it: faults of listeners, and slowness.
   */
  outcome?(): unknown;
  /** Called once all is over. Throws if something is not as it has to be. */
  check?(report: RunReport): void | Promise<void>;
}

/** What `check` is told of a run. */
export interface RunReport {
  /** What went wrong, in its order. */
  readonly fired: readonly Fault[];
  /** Lives of the process. */
  readonly lives: number;
  /** True if the host gave up, so that turns were aborted. */
  readonly isAborted: boolean;
  /** What `outcome` came to where nothing went wrong. */
  readonly undisturbed: unknown;
}

/** What a run is built from: the seed's choices. */
export interface SimulatedWorld {
  /** The seed. */
  readonly seed: number;
  /** A number of at least 0 and below 1. */
  random(): number;
  /** A whole number from 0 up to and without `below`. */
  int(below: number): number;
  /** One of these. */
  pick<Value>(choices: readonly Value[]): Value;
  /** True with this probability. */
  chance(probability: number): boolean;
}

/** One life of a process. What it hands out dies with it. */
export interface SimulatedLife {
  /** Which life it is, 1-based. */
  readonly number: number;
  /** The clock, timers, ids and randomness. */
  readonly runtime: Runtime;
  /** The host's: aborts where a fault says so, and when a life takes far too long. Hand it to each turn. */
  readonly signal: AbortSignal;
  /** A model whose requests are looked at, and which fails, hangs and is slow. */
  llm(llm: LLM): LLM;
  /** A tool that fails, hangs and is slow, and which must never run twice for one call where it may not. */
  tool<One extends AnyTool>(tool: One): One;
  /** A store of sessions that fails and is slow, and whose sessions are let go of when the process dies. */
  sessions(store: SessionStore): SessionStore;
  /** A recorder for turns without a session: keeps events in `log`, which outlives the process. */
  recorder(log: RecordedEvent[]): (event: RecordedEvent) => Promise<void>;
  /** A disk for a store of files. It forgets nothing when the process dies. */
  disk(files: FileSystem): FileSystem;
  /** A memory store that fails, hangs and is slow. */
  memory(store: MemoryStore): MemoryStore;
  /** An HTTP client for an adapter: its requests are refused, answered with 429 and 500, cut and slow. */
  fetch(fetch: typeof globalThis.fetch): typeof globalThis.fetch;
  /** A listener for `session.subscribe`, or for `emit` of an event dispatcher, that fails and hangs, and at which the host aborts. */
  listener(listener?: (event: ListenedEvent) => unknown): (event: ListenedEvent) => unknown;
  /** Waits for so many milliseconds of the clock; forever once the process is dead. */
  pause(ms: number): Promise<void>;
}

/** What every event has that a listener may be told of. */
export interface ListenedEvent {
  /** Its type. */
  readonly type: string;
  /** The turn; absent for what happens between turns. */
  readonly turnId?: string | undefined;
  /** Ids of the calls that lead to a sub-agent. */
  readonly agentPath?: readonly string[] | undefined;
}
