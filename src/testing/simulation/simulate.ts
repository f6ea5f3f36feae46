/**
 * Simulation: plays a scenario once for each seed, with nothing going wrong and then with faults, and stops at the first run that
 * breaks a law.
 */
import { assertOptions } from '../../core/assert.ts';
import { type Boundary, BOUNDARIES, type Fault, FAULT_KINDS, formatFault, parseFault } from './fault.ts';
import { type PlayedRun, play } from './play.ts';
import { planFaults } from './plan-faults.ts';
import type { Scenario } from './scenario.ts';
import { type RunChoice, shrink } from './shrink.ts';
import { tellStory } from './story.ts';
import type { Violation } from './world.ts';

/** Options of {@link simulate}. */
export interface SimulateOptions {
  /** How many seeds, from `from` on, or which. @defaultValue 1,000 */
  readonly seeds?: number | readonly number[] | undefined;
  /** The first seed. @defaultValue 0 */
  readonly from?: number | undefined;
  /** What goes wrong in each run, such as `'store:crash_after@12'`. @defaultValue the seed chooses: mostly one fault, up to three */
  readonly faults?: readonly string[] | undefined;
  /** Whether nothing takes any time: the simplest of schedules. @defaultValue false */
  readonly calm?: boolean | undefined;
  /** The grace of the turns: what law 4 goes by, in milliseconds. @defaultValue 2,000, as in a turn */
  readonly graceMs?: number | undefined;
  /** How long the host waits for a life until it aborts, in milliseconds. @defaultValue an hour */
  readonly patienceMs?: number | undefined;
}

/** What a simulation came to. */
export interface SimulationReport {
  /** Name of the scenario. */
  readonly scenario: string;
  /** Runs, one a seed. */
  readonly runs: number;
  /** Runs in which at least one fault fired. */
  readonly faultedRuns: number;
  /** How often each fault fired, as `store:crash_after`, those that could have and never did included. */
  readonly fired: ReadonlyMap<string, number>;
}

/** What an error tells of a run that failed. */
export interface SimulationFailure {
  /** The smallest seed found. */
  readonly seed: number;
  /** The fewest faults found, such as `store:crash_after@12`. */
  readonly faults: readonly string[];
  /** Whether nothing took any time. */
  readonly calm: boolean;
  /** What is wrong. */
  readonly violations: readonly Violation[];
}

/** A scenario failed. The message tells how to repeat it, what is wrong, and what happened. */
export class SimulationError extends Error {
  /** `SimulationError`. */
  override readonly name: string = 'SimulationError';
  /** The smallest seed found. */
  readonly seed: number;
  /** The fewest faults found, such as `store:crash_after@12`. */
  readonly faults: readonly string[];
  /** Whether nothing took any time. */
  readonly calm: boolean;
  /** What is wrong. */
  readonly violations: readonly Violation[];

  constructor(message: string, failure: SimulationFailure) {
    super(message);
    this.seed = failure.seed;
    this.faults = failure.faults;
    this.calm = failure.calm;
    this.violations = failure.violations;
  }
}

const DEFAULT_SEEDS = 1_000;
const DEFAULT_GRACE_MS = 2_000;
const DEFAULT_PATIENCE_MS = 3_600_000;
const OPTIONS: Readonly<Record<keyof SimulateOptions, true>> = { seeds: true, from: true, faults: true, calm: true, graceMs: true, patienceMs: true };
const ARGUMENT = { taker: 'simulate', example: 'simulate(scenario, { seeds: 1000 })' };

/**
 * Plays a scenario for many seeds.
 *
 * @throws {@link SimulationError} for the first that breaks a law or a check of the scenario, made as small as it could be.
 * TypeError for options that make no sense.
 */
export async function simulate(scenario: Scenario, options: SimulateOptions = {}): Promise<SimulationReport> {
  assertOptions(options, OPTIONS, ARGUMENT);
  const { calm = false, graceMs = DEFAULT_GRACE_MS, patienceMs = DEFAULT_PATIENCE_MS } = options;
  const faults = options.faults?.map(parseFault);
  const replay = async (choice: RunChoice, isTold = false): Promise<PlayedRun> => {
    const settings = { ...choice, graceMs, patienceMs, isTold };
    const undisturbed = await play(scenario, { ...settings, faults: [], isTold: isTold && choice.faults.length === 0 });
    if (undisturbed.violations.length > 0 && choice.faults.length === 0) return undisturbed;
    return play(scenario, { ...settings, undisturbed });
  };

  const fired = new Map<string, number>();
  let runs = 0;
  let faultedRuns = 0;
  for (const seed of seedsOf(options)) {
    const settings = { seed, isCalm: calm, isTold: false, graceMs, patienceMs };
    const undisturbed = await play(scenario, { ...settings, faults: [] });
    const planned = faults ?? planFaults(seed, undisturbed.visits);
    const isBroken = undisturbed.violations.length > 0;
    const played = isBroken ? undisturbed : await play(scenario, { ...settings, faults: planned, undisturbed });
    runs += 1;
    if (played.fired.length > 0) faultedRuns += 1;
    count(fired, undisturbed.visits.keys(), played.fired);
    if (played.violations.length === 0) continue;
    const small = await shrink({ seed, faults: isBroken ? [] : planned, isCalm: calm, played }, replay);
    const told = { ...small, played: await replay(small, true) };
    throw new SimulationError(tellStory(scenario.name, told), { seed: told.seed, faults: told.faults.map(formatFault), calm: told.isCalm, violations: told.played.violations });
  }
  return { scenario: scenario.name, runs, faultedRuns, fired };
}

function* seedsOf({ seeds = DEFAULT_SEEDS, from = 0 }: SimulateOptions): Generator<number> {
  if (typeof seeds !== 'number') yield* seeds;
  else for (let seed = from; seed < from + seeds; seed += 1) yield seed;
}

function count(fired: Map<string, number>, boundaries: Iterable<Boundary>, faults: readonly Fault[]): void {
  for (const boundary of boundaries) for (const kind of FAULT_KINDS[boundary]) fired.set(`${boundary}:${kind}`, fired.get(`${boundary}:${kind}`) ?? 0);
  for (const { boundary, kind } of faults) fired.set(`${boundary}:${kind}`, (fired.get(`${boundary}:${kind}`) ?? 0) + 1);
}

/** How often each fault fired, as a table of faults and boundaries, for people; `–` where a boundary has no such fault. */
export function formatFired(reports: readonly SimulationReport[]): string {
  const kinds = [...new Set(BOUNDARIES.flatMap((boundary) => FAULT_KINDS[boundary]))];
  const cell = (boundary: Boundary, kind: string): string => {
    if (!FAULT_KINDS[boundary].some((one) => one === kind)) return '–';
    return String(reports.reduce((sum, { fired }) => sum + (fired.get(`${boundary}:${kind}`) ?? 0), 0));
  };
  const rows = kinds.map((kind) => `${kind.padEnd(14)}${BOUNDARIES.map((boundary) => cell(boundary, kind).padStart(10)).join('')}`);
  return [`${''.padEnd(14)}${BOUNDARIES.map((boundary) => boundary.padStart(10)).join('')}`, ...rows].join('\n');
}
