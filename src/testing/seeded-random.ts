/** Seeded random: numbers that look random and are the same for the same seed, on every platform. */

/**
 * Makes a source of numbers from 0 up to but not including 1. Mulberry32: 32 bits of state, good enough to vary tests.
 *
 * @param seed - Any number; only its lowest 32 bits count.
 */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
