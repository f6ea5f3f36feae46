/**
 * loop: what the loop costs a step, beside a model that costs nothing.
 *
 * Measured: whole turns of 100 and of 1,000 steps with one call each of a tool with a schema, and of 100 steps with eight
 * calls each. A turn has a transcript that records and a listener, as a host's has. `growth` is the cost of a step in
 * the long turn over that in the short one.
 *
 * `bytes-per-step` is what a step of the turn of 100 allocates. It does not depend on what else the machine does, and says
 * what many turns at once cost the collector. It holds what unoptimised code allocates: no heap profile of production.
 *
 * Limit: the bare loop of lib/bare-turn.ts. Fair, since it gives the same answers to the same calls and keeps the messages
 * for the next request; and out of reach, since it promises nothing: no events, no record, no abort, no failure.
 */
import { allocatedBytes, ROOMY_FLAGS } from '../lib/allocation.ts';
import { bareTurn } from '../lib/bare-turn.ts';
import type { BenchCase, Measurement, Numbers } from '../lib/bench-case.ts';
import { FINAL_TEXT, type TurnCounts, type TurnShape } from '../lib/scenario.ts';
import { type Budget, cpuMsPerRun, expectEqual, repeat } from '../lib/timing.ts';
import { turnloopTurn } from '../lib/turnloop-turn.ts';

const BUDGET = { warmMs: 200, measureMs: 300 };
/** The loop is more code than the engine optimises in a moment; the bare loop gets as long. */
const FIRST_BUDGET = { warmMs: 1000, measureMs: 300 };
const WARM_TURNS = 50;
const COUNTED_TURNS = 10;

type Turn = (shape: TurnShape) => Promise<TurnCounts>;

export const loop: BenchCase = {
  name: 'loop',
  repetitions: 4,
  measurements: [
    timeOf('turnloop', turnloopTurn),
    timeOf('bare', bareTurn),
    bytesOf('turnloop-bytes', turnloopTurn),
    bytesOf('bare-bytes', bareTurn),
  ],
  figures: [
    {
      metric: 'us-per-step',
      unit: 'us',
      value: ['turnloop', '100x1'],
      ratio: { metric: 'x-limit', to: ['bare', '100x1'], label: 'bare loop' },
    },
    {
      metric: 'us-per-step-1000',
      unit: 'us',
      value: ['turnloop', '1000x1'],
      ratio: { metric: 'x-limit-1000', to: ['bare', '1000x1'], label: 'bare loop' },
    },
    {
      metric: 'us-per-step-1000',
      unit: 'us',
      value: ['turnloop', '1000x1'],
      ratio: { metric: 'growth', to: ['turnloop', '100x1'], label: 'a step of 100' },
    },
    {
      metric: 'us-per-step-8-calls',
      unit: 'us',
      value: ['turnloop', '100x8'],
      ratio: { metric: 'x-limit-8-calls', to: ['bare', '100x8'], label: 'bare loop' },
    },
    {
      metric: 'bytes-per-step',
      unit: 'bytes',
      value: ['turnloop-bytes', 'bytes'],
      ratio: { metric: 'x-limit-bytes', to: ['bare-bytes', 'bytes'], label: 'bare loop' },
    },
  ],
};

async function runChecked(turn: Turn, shape: TurnShape): Promise<void> {
  const { text, calls } = await turn(shape);
  expectEqual('text', text, FINAL_TEXT);
  expectEqual('calls', calls, (shape.steps - 1) * shape.calls);
}

function timeOf(name: string, turn: Turn): Measurement {
  const usPerStep = async (shape: TurnShape, budget: Budget): Promise<number> =>
    ((await cpuMsPerRun(() => runChecked(turn, shape), budget)) * 1000) / shape.steps;
  return {
    name,
    measure: async (): Promise<Numbers> => ({
      '100x1': await usPerStep({ steps: 100, calls: 1 }, FIRST_BUDGET),
      '1000x1': await usPerStep({ steps: 1000, calls: 1 }, BUDGET),
      '100x8': await usPerStep({ steps: 100, calls: 8 }, BUDGET),
    }),
  };
}

function bytesOf(name: string, turn: Turn): Measurement {
  const shape = { steps: 100, calls: 1 };
  return {
    name,
    nodeFlags: ROOMY_FLAGS,
    measure: async (): Promise<Numbers> => {
      await repeat(WARM_TURNS, () => runChecked(turn, shape))();
      const bytes = await allocatedBytes(repeat(COUNTED_TURNS, () => turn(shape)));
      return { bytes: bytes / (COUNTED_TURNS * shape.steps) };
    },
  };
}
