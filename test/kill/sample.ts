/** Sample: which deaths the sessions of the kill test die. */
import { seededRandom } from 'turnloop/testing';
import type { Death } from './death.ts';
import type { Play } from './play.ts';

type Counts = Play['report']['counts'];

/** Longest that a kill from outside comes behind its event, in milliseconds: as long as a step takes. */
const MAX_DELAY_MS = 20;
/** Most deaths of one session of a random sample. */
const MAX_DEATHS = 4;
/** How far apart deaths at events are in one session. */
const EVENTS_BETWEEN = 136;

/** Deaths of all kinds at random places, so many in all, in lists of one to four: those of a session. */
export function randomDeaths(count: number, seed: number, counts: Counts): readonly (readonly Death[])[] {
  return randomSessions(count, seed, (random) => randomDeath(random, counts));
}

/** Kills from outside at random instants, so many in all, in lists of one to four: those of a session. */
export function randomInstants(count: number, seed: number, counts: Counts): readonly (readonly Death[])[] {
  return randomSessions(count, seed, (random) => instant(random, counts));
}

function randomSessions(count: number, seed: number, make: (random: () => number) => Death): readonly (readonly Death[])[] {
  const random = seededRandom(seed);
  const sessions: (readonly Death[])[] = [];
  for (let left = count; left > 0; ) {
    const length = Math.min(left, upTo(MAX_DEATHS, random));
    left -= length;
    const deaths = Array.from({ length }, () => make(random));
    // Writes and calls of the disk are counted in each process anew: those come first.
    sessions.push(deaths.sort((one, other) => Number(isAtEvent(one)) - Number(isAtEvent(other)) || one.at - other.at));
  }
  return sessions;
}

function randomDeath(random: () => number, counts: Counts): Death {
  const kind = random();
  if (kind < 0.5) return instant(random, counts);
  if (kind < 0.75) return { kind: 'event', at: upTo(counts.events, random), when: random() < 0.5 ? 'before' : 'after' };
  // Three in a row have not done all that there is to do.
  const few = (all: number): number => upTo(Math.floor(all / MAX_DEATHS), random);
  return kind < 0.87 ? { kind: 'torn', at: few(counts.writes) } : { kind: 'disk', at: few(counts.calls) };
}

function instant(random: () => number, { events }: Counts): Death {
  // A kill that comes behind the last event finds nobody.
  return { kind: 'instant', at: upTo(events - 20, random), delayMs: random() * MAX_DELAY_MS };
}

function upTo(most: number, random: () => number): number {
  return 1 + Math.floor(random() * most);
}

function isAtEvent({ kind }: Death): boolean {
  return kind === 'event' || kind === 'instant';
}

/** Deaths before or behind every event: each at one in so many of a session, so that all sessions together have all. */
export function everyEvent(when: 'before' | 'after', { events }: Counts): readonly (readonly Death[])[] {
  return numbers(EVENTS_BETWEEN).map((first) =>
    numbers(events)
      .filter((at) => at % EVENTS_BETWEEN === first % EVENTS_BETWEEN)
      .map((at): Death => ({ kind: 'event', at, when })),
  );
}

/** A death at each call of the disk that is no write: each in a session of its own. */
export function everyDiskCall({ calls }: Counts): readonly (readonly Death[])[] {
  return numbers(calls).map((at) => [{ kind: 'disk', at }]);
}

function numbers(most: number): readonly number[] {
  return Array.from({ length: most }, (_, index) => index + 1);
}
