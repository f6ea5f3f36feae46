/** Fault plan: what goes wrong in a run, chosen by its seed among all that can, by what was used where nothing goes wrong. */
import { seededRandom } from '../seeded-random.ts';
import { type Boundary, type Fault, FAULT_KINDS } from './fault.ts';
import { hashOf } from './world.ts';

/** How many faults a run has: mostly one, since two hide each other. */
const COUNTS: readonly number[] = [0, 1, 1, 1, 1, 1, 1, 2, 2, 3];

/** Faults behind the first may come later than anything did: a run that goes wrong is longer. */
const LONGER = 1.5;

/**
 * Chooses the faults of a run.
 *
 * @param visits - How often each boundary was used where nothing went wrong.
 */
export function planFaults(seed: number, visits: ReadonlyMap<Boundary, number>): readonly Fault[] {
  const random = seededRandom(hashOf(seed, 'faults', 0));
  const pick = <Value>(choices: readonly Value[]): Value | undefined => choices[Math.floor(random() * choices.length)];
  const boundaries = [...visits.keys()].sort();
  const count = pick(COUNTS) ?? 0;
  const faults: Fault[] = [];
  for (let index = 0; index < count; index += 1) {
    const boundary = pick(boundaries);
    const kind = boundary === undefined ? undefined : pick(FAULT_KINDS[boundary]);
    if (boundary === undefined || kind === undefined) continue;
    const uses = (visits.get(boundary) ?? 1) * (index === 0 ? 1 : LONGER);
    const at = 1 + Math.floor(random() * uses);
    if (!faults.some((other) => other.boundary === boundary && other.at === at)) faults.push({ boundary, kind, at });
  }
  return faults;
}
