/**
 * Simulation: plays a scenario once for each seed, with nothing going wrong and then with faults, and stops at the first run that
 * breaks a law.
 */
import { assertNumbers, assertOptions } from '../../core/assert.ts';
import { isRecord } from '../../core/json.ts';
import { type Boundary, BOUNDARIES, type Fault, FAULT_KINDS, formatFault, parseFault } from './fault.ts';
import { type PlayedRun, play } from './play.ts';
import { planFaults } from './plan-faults.ts';
import type { Scenario } from './scenario.ts';
import { type FailedRun, type RunChoice, shrink } from './shrink.ts';
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
/** Beyond this, a seed and the next are the same. */
const MOST_SEED = 2 ** 52;
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
  assertScenario(scenario);
  assertOptions(options, OPTIONS, ARGUMENT);
  assertNumbers(options, { from: { least: 0, most: MOST_SEED, whole: true }, graceMs: { least: 0 }, patienceMs: { least: 1 } }, ARGUMENT);
  assertChoice(options);
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
    throw failureOf(scenario.name, { small, told, options });
  }
  return { scenario: scenario.name, runs, faultedRuns, fired };
}

/** The error of a run that failed, also where it went well when it was played again. */
function failureOf(scenario: string, { small, told, options }: { readonly small: FailedRun; readonly told: FailedRun; readonly options: SimulateOptions }): SimulationError {
  const isGone = told.played.violations.length === 0;
  const shown = isGone ? { ...told, played: { ...told.played, violations: [...small.played.violations, { message: NOT_THE_SAME }] } } : told;
  const { seed, faults, isCalm, played } = shown;
  return new SimulationError(tellStory(scenario, shown, options), { seed, faults: faults.map(formatFault), calm: isCalm, violations: played.violations });
}

const NOT_THE_SAME = 'played again, the same seed went well: is all time, randomness and every id from `life.runtime` and `world`, and all that changes made anew in `build`?';

function assertScenario(scenario: unknown): void {
  if (isRecord(scenario) && typeof scenario['name'] === 'string' && typeof scenario['build'] === 'function') return;
  throw new TypeError(`simulate takes a scenario: { name, build }. For example: ${ARGUMENT.example}.`);
}

function assertChoice({ seeds, faults, calm }: SimulateOptions): void {
  const fail = (name: string, what: string): never => {
    throw new TypeError(`simulate: \`${name}\` must be ${what}. For example: ${ARGUMENT.example}.`);
  };
  const isSeed = (value: unknown, least: number): boolean => Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= MOST_SEED;
  const isList = Array.isArray(seeds) && seeds.length > 0 && seeds.every((seed) => isSeed(seed, 0));
  // None would be a test that tests nothing.
  if (seeds !== undefined && !isList && !isSeed(seeds, 1)) fail('seeds', `a whole number of at least 1, or a list of seeds, each a whole number from 0 to ${MOST_SEED}`);
  if (faults !== undefined && !(Array.isArray(faults) && faults.every((fault) => typeof fault === 'string'))) fail('faults', "a list such as ['store:crash_after@12']");
  if (calm !== undefined && typeof calm !== 'boolean') fail('calm', 'true or false');
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
