/** Weather: what a simulated provider is like, over time. Fine stretches and bursts of trouble, from a seed. */

/** What a provider does with the requests of a stretch, beside answering some. */
export type Trouble = 'rate_limit' | 'overloaded' | 'reset' | 'stall' | 'truncated' | 'invalid';

interface Stretch {
  readonly until: number;
  /** How likely a request meets it. */
  readonly share: number;
  readonly troubles: readonly Trouble[];
}

const ALL: readonly Trouble[] = ['rate_limit', 'overloaded', 'reset', 'stall', 'truncated', 'invalid'];
const BURSTS: readonly (readonly Trouble[])[] = [
  ['rate_limit'],
  ['overloaded'],
  ['reset'],
  ['stall'],
  ['truncated'],
  ['rate_limit', 'overloaded'],
  ALL,
];

/** What comes of a request that is sent now; undefined for an answer. */
export type Weather = (now: number) => Trouble | undefined;

/** Makes the weather of one provider. */
export function createWeather(random: () => number): Weather {
  let stretch: Stretch = { until: 0, share: 0, troubles: ALL };
  return (now) => {
    while (now >= stretch.until) stretch = nextStretch(stretch, random);
    if (random() >= stretch.share) return undefined;
    return stretch.troubles[Math.floor(random() * stretch.troubles.length)];
  };
}

function nextStretch(before: Stretch, random: () => number): Stretch {
  const wasFine = before.share < 0.5;
  const burst = BURSTS[Math.floor(random() * BURSTS.length)] ?? ALL;
  return wasFine
    ? { until: before.until + 5_000 + random() * 400_000, share: 0.6 + 0.4 * random(), troubles: burst }
    : { until: before.until + 5_000 + random() * 200_000, share: 0.04, troubles: ALL };
}
