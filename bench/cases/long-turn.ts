/**
 * long-turn: whether a step costs more the more steps came before it.
 *
 * Measured: turns of 2,000 steps with one call each. The mean cost of the last 200 steps over that of steps 100 to 300,
 * both of the same turn, in processor time; each the median of several turns.
 *
 * Limit: 1. A little more is the price of handing the model a list of all messages, which the contract asks for: copying
 * references grows, nothing else may. The bare loop hands its list on uncopied, so it is no measure here.
 */
import type { BenchCase } from '../lib/bench-case.ts';
import { FINAL_TEXT } from '../lib/scenario.ts';
import { median } from '../lib/statistics.ts';
import { cpuMs, expectEqual } from '../lib/timing.ts';
import { turnloopTurn } from '../lib/turnloop-turn.ts';

const STEPS = 2000;
const WINDOW = 200;
const START = 100;
const LAST = STEPS - 1;
const BORDERS: ReadonlySet<number> = new Set([START, START + WINDOW, LAST - WINDOW, LAST]);
const WARM_TURNS = 5;
const TURNS = 15;

export const longTurn: BenchCase = {
  name: 'long-turn',
  repetitions: 4,
  measurements: [
    {
      name: 'turnloop',
      measure: async () => {
        const costs: { readonly start: number; readonly end: number }[] = [];
        for (let turn = 0; turn < WARM_TURNS; turn += 1) await costOfWindows();
        for (let turn = 0; turn < TURNS; turn += 1) costs.push(await costOfWindows());
        return { start: median(costs.map((cost) => cost.start)), end: median(costs.map((cost) => cost.end)) };
      },
    },
  ],
  figures: [
    {
      metric: 'us-per-step-end',
      unit: 'us',
      value: ['turnloop', 'end'],
      ratio: { metric: 'ratio-end-start', to: ['turnloop', 'start'], label: 'steps 100–300' },
    },
  ],
};

/** Microseconds of a step near the start and at the end of a turn. */
async function costOfWindows(): Promise<{ readonly start: number; readonly end: number }> {
  const times = new Map<number, number>();
  const gate = async (step: number): Promise<void> => {
    if (BORDERS.has(step)) times.set(step, cpuMs());
  };
  const { text, calls } = await turnloopTurn({ steps: STEPS, calls: 1, gate });
  expectEqual('text', text, FINAL_TEXT);
  expectEqual('calls', calls, LAST);
  const costOf = (from: number, to: number): number => ((times.get(to)! - times.get(from)!) * 1000) / WINDOW;
  return { start: costOf(START, START + WINDOW), end: costOf(LAST - WINDOW, LAST) };
}
