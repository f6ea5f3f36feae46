/**
 * Play: one run of a scenario, from a seed and a list of faults, life after life, with every law checked that can be seen from
 * outside.
 *
 * Law 1, 2, 3, 5 and 9 by what was kept (`check-transcript.ts`), law 2 also for beginnings of it, law 4 by the clock, law 6, 9 and
 * 11 where they could be broken (`at-tool.ts`, `at-model.ts`), law 7 and 8 by comparing with the run in which nothing goes wrong.
 */
import { messageOf } from '../../core/errors.ts';
import type { RecordedEvent } from '../../core/events.ts';
import { createTranscript } from '../../core/transcript.ts';
import { checkTranscript } from '../check-transcript.ts';
import { nextTask } from '../next-task.ts';
import { findBrokenMessages } from './check-messages.ts';
import { type Boundary, type Fault, isCrash } from './fault.ts';
import { Life } from './life.ts';
import { findNonJson } from '../plain-json.ts';
import type { Scenario, SimulatedRun } from './scenario.ts';
import { type ProcessLimits, SimulatedProcess } from './simulated-process.ts';
import { watchRejections } from './unhandled-rejections.ts';
import { hashOf, type StoryLine, type Violation, World } from './world.ts';

/** How a run is played. */
export interface PlayOptions extends ProcessLimits {
  /** The seed. */
  readonly seed: number;
  /** What goes wrong. */
  readonly faults: readonly Fault[];
  /** Whether nothing takes any time. */
  readonly isCalm: boolean;
  /** Whether a story is kept. */
  readonly isTold: boolean;
  /** The run in which nothing goes wrong; absent for that run itself. */
  readonly undisturbed?: PlayedRun | undefined;
}

/** What came of a run. */
export interface PlayedRun {
  /** What went wrong, in its order. */
  readonly fired: readonly Fault[];
  /** How often each boundary was used. */
  readonly visits: ReadonlyMap<Boundary, number>;
  /** What was found to be wrong. */
  readonly violations: readonly Violation[];
  /** What happened, if it was to be told. */
  readonly story: readonly StoryLine[];
  /** Everything that became durable, as text. */
  readonly journal: readonly string[];
  /** What the scenario says that it came to. */
  readonly outcome: unknown;
  /** Lives of the process. */
  readonly lives: number;
}

/** Beginnings of a log that are folded, beside the whole. */
const PREFIXES = 3;

/** Plays one run. */
export async function play(scenario: Scenario, options: PlayOptions): Promise<PlayedRun> {
  const { faults, undisturbed } = options;
  const world = new World(options);
  const run = await built(scenario, world);
  const maxLives = faults.filter(({ kind }) => isCrash(kind)).length + 1;
  const rejections = watchRejections();
  let lives = 0;
  for (let end = 'died'; end === 'died' && lives < maxLives; ) {
    lives += 1;
    if (lives > 1) world.tell('process', `lives again: life ${lives}`);
    const process = new SimulatedProcess(world, lives, options);
    // A life may throw at once, and be no promise.
    end = await new Life(process).run(async (life) => run.live(life));
    await process.buried();
  }
  // The platform tells of them in a task of its own.
  await nextTask();
  rejections.stop();
  for (const reason of rejections.reasons) world.report(`a rejection is not handled: ${messageOf(reason)}`, 4);
  for (const log of world.logs.keys()) checkLog(world, log, world.turnEvents(log));
  const outcome = await outcomeOf(run, world);
  if (undisturbed !== undefined) compare({ world, undisturbed, outcome });
  try {
    await run.check?.({ fired: world.fired, lives, isAborted: world.isAborted, undisturbed: undisturbed === undefined ? outcome : undisturbed.outcome });
  } catch (error) {
    world.report(messageOf(error));
  }
  const { fired, visits, violations, story, journal } = world;
  return { fired, visits, violations, story, journal, outcome, lives };
}

async function built(scenario: Scenario, world: World): Promise<SimulatedRun> {
  try {
    return await scenario.build(world);
  } catch (error) {
    world.report(`build() failed: ${messageOf(error)}`);
    return { live: async () => undefined };
  }
}

async function outcomeOf(run: SimulatedRun, world: World): Promise<unknown> {
  try {
    const outcome: unknown = await run.outcome?.();
    const nonJson = outcome === undefined ? undefined : findNonJson(outcome, 'the outcome');
    if (nonJson !== undefined) world.report(`outcome() gave what is not plain JSON, and cannot be compared: ${nonJson}`);
    return nonJson === undefined ? outcome : undefined;
  } catch (error) {
    world.report(`outcome() failed: ${messageOf(error)}`);
    return undefined;
  }
}

function checkLog(world: World, log: string, events: readonly RecordedEvent[]): void {
  const where = log === '' ? 'the record' : `the log of ${log}`;
  for (const { law, message, index } of checkTranscript(events)) world.report(`${where}, event ${index} (${events[index]?.type ?? 'none'}): ${message}`, law);
  const ends = Array.from({ length: PREFIXES }, (_, index) => Math.abs(hashOf(world.seed, log, index)) % (events.length + 1));
  for (const end of [...ends, events.length]) {
    const transcript = createTranscript(events.slice(0, end));
    for (const problem of findBrokenMessages(transcript.buildMessages())) world.report(`the first ${end} events of ${where} fold to a broken history: ${problem}`, 2);
  }
}

interface Compared {
  readonly world: World;
  readonly undisturbed: PlayedRun;
  readonly outcome: unknown;
}

function compare({ world, undisturbed, outcome }: Compared): void {
  const { journal, fired, journalAtFault = journal.length } = world;
  const isHarmless = fired.every(({ boundary }) => boundary === 'listener');
  // Up to the first fault, and whatever listeners do, a run is the same to the byte.
  const same = isHarmless ? Math.max(journal.length, undisturbed.journal.length) : journalAtFault;
  for (let index = 0; index < same; index += 1) {
    if (journal[index] === undisturbed.journal[index]) continue;
    const law = index < journalAtFault ? 8 : 7;
    world.report(`what is kept at place ${index} is another than where nothing goes wrong: ${journal[index] ?? 'nothing'} instead of ${undisturbed.journal[index] ?? 'nothing'}. ${causeOf(world)}`, law);
    return;
  }
  const [got, expected] = [JSON.stringify(outcome), JSON.stringify(undisturbed.outcome)];
  if (isHarmless && got !== expected) world.report(`the outcome is ${got}, and ${expected} where nothing goes wrong. ${causeOf(world)}`, fired.length > 0 ? 7 : 8);
}

/** What makes two runs of one seed differ, most of the time. */
function causeOf({ hasGivenId }: World): string {
  if (!hasGivenId) return 'No turn took its ids from `life.runtime`: give it to whatever runs turns, as in createAgent({ runtime: life.runtime }).';
  return 'Is all time, randomness and every id from `life.runtime`, and all that changes made anew in `build`?';
}
