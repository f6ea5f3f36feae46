/** Statistics: a median and how far the rest lies around it. */

/** Median of several repetitions, and their ends. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** The middle of the values; of an even count the mean of both middles. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const upper = sorted.length >> 1;
  const lower = sorted.length % 2 === 0 ? upper - 1 : upper;
  return (sorted[lower]! + sorted[upper]!) / 2;
}

/** Median and ends of the values. */
export function spread(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}
