/**
 * Shrinking: makes a failing run small, as long as it fails in the same way: fewer faults, earlier ones, no delays, a smaller seed.
 */
import type { Fault } from './fault.ts';
import type { PlayedRun } from './play.ts';
import type { Violation } from './world.ts';

/** A run, by what it is made of. */
export interface RunChoice {
  /** The seed. */
  readonly seed: number;
  /** What goes wrong. */
  readonly faults: readonly Fault[];
  /** Whether nothing takes any time. */
  readonly isCalm: boolean;
}

/** A run and what came of it. */
export interface FailedRun extends RunChoice {
  /** What came of it. */
  readonly played: PlayedRun;
}

/** Runs that are tried at most. */
const MOST_TRIES = 400;
/** Seeds that are tried with the same faults. */
const SMALL_SEEDS = 50;

/**
 * Finds a smaller run that fails in the same way.
 *
 * @param replay - Plays a run.
 */
export async function shrink(failed: FailedRun, replay: (choice: RunChoice) => Promise<PlayedRun>): Promise<FailedRun> {
  let best = failed;
  let tries = 0;
  const isBetter = async (choice: RunChoice): Promise<boolean> => {
    if (tries >= MOST_TRIES) return false;
    tries += 1;
    const played = await replay(choice);
    if (!isSameFailure(played.violations, best.played.violations)) return false;
    best = { ...choice, played };
    return true;
  };
  const tryEach = async (choices: () => readonly RunChoice[]): Promise<boolean> => {
    for (const choice of choices()) if (await isBetter(choice)) return true;
    return false;
  };
  await isBetter({ ...best, isCalm: true });
  while (await tryEach(() => withFewerFaults(best)));
  while (await tryEach(() => withEarlierFaults(best)));
  await tryEach(() => withSmallerSeeds(best));
  while (await tryEach(() => withEarlierFaults(best)));
  return best;
}

function isSameFailure([found]: readonly Violation[], [wanted]: readonly Violation[]): boolean {
  return found !== undefined && wanted !== undefined && found.law === wanted.law && wordsOf(found) === wordsOf(wanted);
}

/** What a violation says, without numbers and what it quotes. */
function wordsOf({ message }: Violation): string {
  return message.slice(0, 80).replaceAll(/[\w-]*\d[\w-]*/g, '#');
}

function withFewerFaults({ seed, faults, isCalm }: RunChoice): readonly RunChoice[] {
  return faults.map((_, left) => ({ seed, isCalm, faults: faults.filter((_, index) => index !== left) }));
}

function withEarlierFaults({ seed, faults, isCalm }: RunChoice): readonly RunChoice[] {
  return faults.flatMap((fault, place) => {
    const { at } = fault;
    const earlier = [...new Set([1, Math.floor(at / 2), at - 1])].filter((one) => one >= 1 && one < at);
    return earlier.map((one) => ({ seed, isCalm, faults: faults.map((other, index) => (index === place ? { ...fault, at: one } : other)) }));
  });
}

function withSmallerSeeds({ seed, faults, isCalm }: RunChoice): readonly RunChoice[] {
  return Array.from({ length: Math.min(SMALL_SEEDS, Math.max(0, seed)) }, (_, smaller) => ({ seed: smaller, faults, isCalm }));
}
