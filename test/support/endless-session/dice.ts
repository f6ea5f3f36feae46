/** Dice: what a simulated session draws from chance, the same for the same seed. */
import { seededRandom } from 'turnloop/testing';

/** A source of chance. */
export interface Dice {
  /** From 0 up to but not including 1. */
  random(): number;
  /** A whole number, both ends included. */
  between(least: number, most: number): number;
  /** One of the list. */
  pick<Value>(list: readonly Value[]): Value;
  /** True with this probability. */
  chance(probability: number): boolean;
  /** Log-normal: half of the numbers are below `median`; one in six is above `median * e^sigma`. */
  logNormal(median: number, sigma: number): number;
}

/** Dice that fall alike for equal seeds. */
export function createDice(...seeds: readonly (number | string)[]): Dice {
  const random = seededRandom(hash(seeds.join('\n')));
  const between = (least: number, most: number): number => least + Math.floor(random() * (most - least + 1));
  return {
    random,
    between,
    pick: (list) => list[Math.floor(random() * list.length)]!,
    chance: (probability) => random() < probability,
    logNormal: (median, sigma) => median * Math.exp(sigma * normal(random)),
  };
}

/** Box and Muller. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value | 0;
}
