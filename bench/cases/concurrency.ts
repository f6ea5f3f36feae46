/**
 * concurrency: what a turn costs that waits, and ten thousand that wait at once.
 *
 * Measured:
 * - `kb-per-turn`: 10,000 turns stand in the third request of five, none answered. The heap after a collection, less the
 *   heap before the first turn, over the turns. A turn's own transcript, model and tool count.
 * - `ms-10000x5`: wall time, the only one in this bench, of 10,000 turns of five steps started together, with a model that answers after 50 ms.
 *
 * Limit: for the time, five waits of 50 ms: what the turns would take if they cost nothing (`x-ideal`). The bare loop's
 * time over that shows what even a loop without promises costs (10,000 timers at once are not free either). For the
 * heap, the bare loop: it holds the same messages in the same place, and nothing that a turn needs to be stopped.
 */
import { bareTurn } from '../lib/bare-turn.ts';
import type { BenchCase, Measurement, Numbers } from '../lib/bench-case.ts';
import { FINAL_TEXT, type TurnCounts, type TurnShape } from '../lib/scenario.ts';
import { collectGarbage, delay, expectEqual } from '../lib/timing.ts';
import { turnloopTurn } from '../lib/turnloop-turn.ts';

const TURNS = 10_000;
const STEPS = 5;
const ANSWER_MS = 50;
const WARM_TURNS = 200;
const HELD_STEP = 2;

type Turn = (shape: TurnShape) => Promise<TurnCounts>;

export const concurrency: BenchCase = {
  name: 'concurrency',
  repetitions: 3,
  measurements: [
    heapOf('turnloop-heap', turnloopTurn),
    heapOf('bare-heap', bareTurn),
    wallOf('turnloop', turnloopTurn),
    wallOf('bare', bareTurn),
  ],
  figures: [
    {
      metric: 'kb-per-turn',
      unit: 'KB',
      value: ['turnloop-heap', 'kb'],
      ratio: { metric: 'x-limit-kb', to: ['bare-heap', 'kb'], label: 'bare loop' },
    },
    {
      metric: 'ms-10000x5',
      unit: 'ms',
      value: ['turnloop', 'wall'],
      ratio: { metric: 'x-ideal', to: ['turnloop', 'ideal'], label: 'waiting alone' },
    },
    {
      metric: 'ms-10000x5-bare',
      unit: 'ms',
      value: ['bare', 'wall'],
      ratio: { metric: 'x-ideal-bare', to: ['bare', 'ideal'], label: 'waiting alone' },
    },
  ],
};

/** Runs turns at once. */
async function runTogether(count: number, turn: Turn, gate?: (step: number) => Promise<void>): Promise<void> {
  const shape: TurnShape = { steps: STEPS, calls: 1, ...(gate !== undefined && { gate }) };
  const turns = await Promise.all(Array.from({ length: count }, () => turn(shape)));
  for (const { text, calls } of turns) {
    expectEqual('text', text, FINAL_TEXT);
    expectEqual('calls', calls, STEPS - 1);
  }
}

function heapOf(name: string, turn: Turn): Measurement {
  return {
    name,
    nodeFlags: ['--expose-gc'],
    measure: async (): Promise<Numbers> => {
      await runTogether(WARM_TURNS, turn);
      let release: () => void = () => undefined;
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      let standing = 0;
      const gate = async (step: number): Promise<void> => {
        if (step !== HELD_STEP) return;
        standing += 1;
        await released;
      };
      collectGarbage();
      const before = process.memoryUsage().heapUsed;
      const turns = runTogether(TURNS, turn, gate);
      while (standing < TURNS) await delay(10);
      await delay(10);
      collectGarbage();
      const bytes = process.memoryUsage().heapUsed - before;
      release();
      await turns;
      return { kb: bytes / 1024 / TURNS };
    },
  };
}

function wallOf(name: string, turn: Turn): Measurement {
  return {
    name,
    measure: async (): Promise<Numbers> => {
      for (let count = 0; count < 5; count += 1) await runTogether(WARM_TURNS, turn);
      const start = performance.now();
      await runTogether(TURNS, turn, () => delay(ANSWER_MS));
      return { wall: performance.now() - start, ideal: STEPS * ANSWER_MS };
    },
  };
}
