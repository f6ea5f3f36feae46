/**
 * `turnloop simulate`: plays the scenarios that a module exports, in several processes at once, and sums up what went wrong.
 *
 * The seeds are shared out evenly over the scenarios, and those of a scenario over the processes. Each process is this command
 * again, with one scenario and a part of the seeds, and prints its report as a line of JSON.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { messageOf } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import { parseFault } from '../testing/simulation/fault.ts';
import type { Scenario } from '../testing/simulation/scenario.ts';
import { formatFired, simulate, SimulationError, type SimulationReport } from '../testing/simulation/simulate.ts';
import { UsageError } from './usage-error.ts';

/** Help for the command. */
export const SIMULATE_HELP = `turnloop simulate FILE [options]
  FILE             an ES module that exports scenarios, by default or by name; for TypeScript
                   NODE_OPTIONS='--import tsx' npx turnloop simulate file.ts
  --seeds N        how many runs, over all scenarios (default 1000)
  --from N         the first seed of each scenario (default 0)
  --scenario NAME  only this scenario; may be given more than once
  --fault FAULT    exactly this goes wrong, such as store:crash_after@12; may be given more than once
  --calm           nothing takes any time
  --complete       fails if a fault that can go wrong never did
  --jobs N         processes at once (default: as many as there are processors)
`;

interface SimulateArguments {
  readonly file: string;
  readonly seeds: number;
  readonly from: number;
  readonly scenarios: readonly string[];
  readonly faults: readonly string[];
  readonly isCalm: boolean;
  readonly isComplete: boolean;
  readonly jobs: number;
  /** Whether this is one of the processes. */
  readonly isJob: boolean;
}

/** Runs the command. @returns The exit code. */
export async function simulateCommand(args: readonly string[]): Promise<number> {
  if (parse(args).values.help === true) {
    process.stdout.write(`Usage: ${SIMULATE_HELP}`);
    return 0;
  }
  const given = readArguments(args);
  const scenarios = await loadScenarios(given);
  return given.isJob ? runJob(scenarios, given) : runJobs(scenarios, given);
}

function readArguments(args: readonly string[]): SimulateArguments {
  const { values, positionals } = parse(args);
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0) throw new UsageError('turnloop simulate takes one file.');
  const { scenario = [], fault = [], calm = false, complete = false, job = false } = values;
  for (const one of fault) readFault(one);
  return {
    file,
    seeds: readNumber('seeds', values.seeds, { otherwise: 1_000, least: 1 }),
    from: readNumber('from', values.from, { otherwise: 0, least: 0 }),
    jobs: readNumber('jobs', values.jobs, { otherwise: availableParallelism(), least: 1 }),
    scenarios: scenario,
    faults: fault,
    isCalm: calm,
    isComplete: complete,
    isJob: job,
  };
}

interface ParsedArguments {
  readonly values: {
    readonly seeds?: string | undefined;
    readonly from?: string | undefined;
    readonly jobs?: string | undefined;
    readonly scenario?: string[] | undefined;
    readonly fault?: string[] | undefined;
    readonly calm?: boolean | undefined;
    readonly complete?: boolean | undefined;
    readonly job?: boolean | undefined;
    readonly help?: boolean | undefined;
  };
  readonly positionals: readonly string[];
}

function parse(args: readonly string[]): ParsedArguments {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        seeds: { type: 'string' },
        from: { type: 'string' },
        jobs: { type: 'string' },
        scenario: { type: 'string', multiple: true },
        fault: { type: 'string', multiple: true },
        calm: { type: 'boolean' },
        complete: { type: 'boolean' },
        job: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

function readNumber(name: string, text: string | undefined, { otherwise, least }: { readonly otherwise: number; readonly least: number }): number {
  if (text === undefined) return otherwise;
  if (!/^\d{1,15}$/.test(text) || Number(text) < least) throw new UsageError(`--${name} takes a whole number of at least ${least}, such as --${name} 1000, and not "${text}".`);
  return Number(text);
}

function readFault(text: string): void {
  try {
    parseFault(text);
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}

async function loadScenarios({ file, scenarios: wanted }: SimulateArguments): Promise<readonly Scenario[]> {
  const path = resolve(file);
  if (!existsSync(path)) throw new UsageError(`There is no file ${path}.`);
  const module: unknown = await importModule(path, file);
  const found = (isRecord(module) ? Object.values(module) : []).flat().filter(isScenario);
  const all = [...new Set(found)];
  const twice = all.find(({ name }, index) => all.findIndex((other) => other.name === name) !== index);
  if (twice !== undefined) throw new UsageError(`${file} has two scenarios named "${twice.name}": rename one.`);
  if (all.length === 0) throw new UsageError(`${file} exports no scenario: an object with a \`name\` and a function \`build\`.`);
  for (const name of wanted) {
    if (!all.some((scenario) => scenario.name === name)) throw new UsageError(`${file} has no scenario "${name}", only ${all.map((scenario) => scenario.name).join(', ')}.`);
  }
  return wanted.length === 0 ? all : all.filter(({ name }) => wanted.includes(name));
}

async function importModule(path: string, file: string): Promise<unknown> {
  try {
    return await import(pathToFileURL(path).href);
  } catch (error) {
    if (!isRecord(error) || error['code'] !== 'ERR_UNKNOWN_FILE_EXTENSION') throw error;
    throw new UsageError(`Node cannot load ${file} by itself: ${messageOf(error)}. For TypeScript, install tsx: NODE_OPTIONS='--import tsx' npx turnloop simulate ${file}`);
  }
}

function isScenario(value: unknown): value is Scenario {
  return isRecord(value) && typeof value['name'] === 'string' && typeof value['build'] === 'function';
}

/** Plays a part of the seeds of one scenario, and ends the process: what a scenario left behind must not keep it. */
async function runJob([scenario]: readonly Scenario[], { file, seeds, from, faults, isCalm }: SimulateArguments): Promise<never> {
  if (scenario === undefined) return process.exit(0);
  try {
    const report = await simulate(scenario, { seeds, from, calm: isCalm, ...(faults.length > 0 && { faults }) });
    await new Promise((resolve) => process.send?.({ ...report, fired: [...report.fired] }, resolve));
    process.exit(0);
  } catch (error) {
    if (!(error instanceof SimulationError)) throw error;
    const again = ['turnloop', 'simulate', file, ...seedArguments(scenario.name, error.seed, 1), ...faultArguments(error.faults, error.calm)];
    await new Promise((resolve) => process.stderr.write(`${error.message}\n\nTo repeat it: npx ${again.map(quoted).join(' ')}\n`, resolve));
    process.exit(TOLD);
  }
}

/** The exit code of a job that failed and has said why. */
const TOLD = 3;

/** A word as shells take it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

function seedArguments(scenario: string, from: number, seeds: number): readonly string[] {
  return ['--scenario', scenario, '--from', String(from), '--seeds', String(seeds)];
}

function faultArguments(faults: readonly string[], isCalm: boolean): readonly string[] {
  return [...faults.flatMap((fault) => ['--fault', fault]), ...(isCalm ? ['--calm'] : [])];
}

/** A part of the seeds of one scenario. */
interface Job {
  readonly scenario: string;
  readonly from: number;
  readonly seeds: number;
}

async function runJobs(scenarios: readonly Scenario[], given: SimulateArguments): Promise<number> {
  const jobs = shareOut(scenarios, given);
  const reports: SimulationReport[] = [];
  const running = new Set<ChildProcess>();
  let hasFailed = false;
  const work = async (): Promise<void> => {
    for (let job = jobs.shift(); job !== undefined && !hasFailed; job = jobs.shift()) {
      const report = await runProcess(job, given, running);
      if (report !== undefined) reports.push(report);
      else if (!hasFailed) {
        hasFailed = true;
        for (const child of running) child.kill();
      }
    }
  };
  await Promise.all(Array.from({ length: given.jobs }, work));
  // What has failed has said so; a table of what went well beside it would only hide it.
  if (hasFailed) return 1;
  process.stdout.write(`${summary(scenarios, reports)}\n`);
  const missing = given.isComplete ? neverFired(reports) : [];
  if (missing.length > 0) process.stderr.write(`Never went wrong: ${missing.join(', ')}. Play more seeds.\n`);
  const isIdle = given.faults.length > 0 && reports.every(({ faultedRuns }) => faultedRuns === 0);
  if (isIdle) process.stderr.write(`Nothing went wrong: no run came as far as ${given.faults.join(', ')}.\n`);
  return missing.length > 0 || isIdle ? 1 : 0;
}

/** Parts of at most this many seeds, so that processes are busy until the end. */
const PART = 1000;

function shareOut(scenarios: readonly Scenario[], { seeds, from }: SimulateArguments): Job[] {
  const jobs: Job[] = [];
  scenarios.forEach(({ name }, index) => {
    const share = Math.floor(seeds / scenarios.length) + (index < seeds % scenarios.length ? 1 : 0);
    for (let done = 0; done < share; done += PART) jobs.push({ scenario: name, from: from + done, seeds: Math.min(PART, share - done) });
  });
  return jobs;
}

/** Runs a job in a process of its own. @returns Undefined if it failed: it has said why. */
function runProcess({ scenario, from, seeds }: Job, { file, faults, isCalm }: SimulateArguments, running: Set<ChildProcess>): Promise<SimulationReport | undefined> {
  const args = ['simulate', file, '--job', ...seedArguments(scenario, from, seeds), ...faultArguments(faults, isCalm)];
  const child = fork(process.argv[1] ?? fileURLToPath(import.meta.url), args);
  running.add(child);
  return new Promise((resolve) => {
    let report: SimulationReport | undefined;
    child.on('message', (message: SimulationReport & { readonly fired: readonly (readonly [string, number])[] }) => {
      report = { ...message, fired: new Map(message.fired) };
    });
    child.on('close', (code, signal) => {
      running.delete(child);
      // A job that fails says why, and one that is stopped was told to stop.
      if (signal === null && (code === 0 ? report === undefined : code !== TOLD)) process.stderr.write(`The process that played "${scenario}" from seed ${from} ended with code ${String(code)} before it had told what came of it: something in it waits for what never comes, or ends the process.\n`);
      resolve(code === 0 ? report : undefined);
    });
  });
}

function summary(scenarios: readonly Scenario[], reports: readonly SimulationReport[]): string {
  const rows = scenarios.map(({ name }) => {
    const own = reports.filter(({ scenario }) => scenario === name);
    const [runs, faulted] = [sum(own.map((report) => report.runs)), sum(own.map(({ faultedRuns }) => faultedRuns))];
    return `${name.padEnd(14)}${String(runs).padStart(10)} runs${String(faulted).padStart(10)} with a fault`;
  });
  const [runs, faulted] = [sum(reports.map((report) => report.runs)), sum(reports.map(({ faultedRuns }) => faultedRuns))];
  const share = runs === 0 ? 0 : Math.round((100 * faulted) / runs);
  return [...rows, '', formatFired(reports), '', `${runs} runs, ${faulted} with a fault (${share} %)`].join('\n');
}

/** What can go wrong where it was used, and never did. */
function neverFired(reports: readonly SimulationReport[]): readonly string[] {
  const faults = new Set(reports.flatMap(({ fired }) => [...fired.keys()]));
  return [...faults].filter((fault) => reports.every(({ fired }) => (fired.get(fault) ?? 0) === 0));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
