/**
 * scheduler: what it costs to find out which calls of a large batch may overlap.
 *
 * Measured: batches of 2,000 and of 8,000 calls that write two files each, eight at a time.
 * - `ms-2000x2`: the scheduler alone, driven directly, each call over as soon as it starts. No two calls write the
 *   same file. Accesses are made before, as a tool would.
 * - `ms-2000x2-chained`: the same where each call writes a file of the call before it and one of the call behind it, so
 *   that every call waits.
 * - `ms-2000x2-turn`: a whole turn whose first reply holds the calls, made to accesses by the tool.
 * `growth` is the cost of a call in the batch of 8,000 over that in the batch of 2,000: 1 is linear, 4 is quadratic. A
 * large batch outlives collections and is copied by them: some of the growth is the collector's.
 *
 * Limit: alone, a queue for each path (lib/path-queues.ts), which knows neither reads nor folders. In a turn, the same
 * turn with a tool that touches nothing: what is left is what scheduling costs.
 */
import { ToolAccesses, type AnyTool, type ReplyPart, type ToolAccess } from 'turnloop';
import { createToolScheduler } from '../../src/core/tool-scheduler.ts';
import type { BenchCase, Measurement, Numbers } from '../lib/bench-case.ts';
import { PathQueues } from '../lib/path-queues.ts';
import { FINAL_TEXT, TOOL_OUTPUT } from '../lib/scenario.ts';
import { cpuMsPerRun, expectEqual } from '../lib/timing.ts';
import { benchModel, runToEnd, USAGE } from '../lib/turnloop-turn.ts';

const SMALL = 2000;
const LARGE = 8000;
const MAX_PARALLEL = 8;
const BUDGET = { warmMs: 300, measureMs: 300 };
const TURN_BUDGET = { warmMs: 700, measureMs: 400 };
const FILES_PER_FOLDER = 100;

type Paths = readonly [string, string];
/** Runs a batch to its end. @returns How many calls started. */
type Batch = () => number;

export const scheduler: BenchCase = {
  name: 'scheduler',
  repetitions: 3,
  measurements: [
    aloneOf('turnloop', turnloopBatch),
    aloneOf('bare', bareBatch),
    turnOf('turn', ({ first, second }) => [...ToolAccesses.writeFile(first), ...ToolAccesses.writeFile(second)]),
    turnOf('turn-none', () => ToolAccesses.none()),
  ],
  figures: [
    {
      metric: 'ms-2000x2',
      unit: 'ms',
      value: ['turnloop', '2000'],
      ratio: { metric: 'x-limit', to: ['bare', '2000'], label: 'queue per path' },
    },
    {
      metric: 'us-per-call-8000',
      unit: 'us',
      value: ['turnloop', 'us-8000'],
      ratio: { metric: 'growth', to: ['turnloop', 'us-2000'], label: 'a call of 2,000' },
    },
    {
      metric: 'ms-2000x2-chained',
      unit: 'ms',
      value: ['turnloop', 'chained-2000'],
      ratio: { metric: 'x-limit-chained', to: ['bare', 'chained-2000'], label: 'queue per path' },
    },
    {
      metric: 'us-per-call-8000-chained',
      unit: 'us',
      value: ['turnloop', 'chained-us-8000'],
      ratio: { metric: 'growth-chained', to: ['turnloop', 'chained-us-2000'], label: 'a call of 2,000' },
    },
    {
      metric: 'ms-2000x2-turn',
      unit: 'ms',
      value: ['turn', '2000'],
      ratio: { metric: 'x-no-accesses', to: ['turn-none', '2000'], label: 'without accesses' },
    },
    {
      metric: 'us-per-call-8000-turn',
      unit: 'us',
      value: ['turn', 'us-8000'],
      ratio: { metric: 'growth-turn', to: ['turn', 'us-2000'], label: 'a call of 2,000' },
    },
  ],
};

function fileOf(index: number): string {
  return `/project/folder-${Math.floor(index / FILES_PER_FOLDER)}/file-${index}.txt`;
}

/** Two files of its own for each call. */
function apart(index: number): Paths {
  return [fileOf(2 * index), fileOf(2 * index + 1)];
}

/** Two files for each call, shared with its neighbours. */
function chained(index: number): Paths {
  return [fileOf(index), fileOf(index + 1)];
}

function pathsOf(count: number, paths: (index: number) => Paths): readonly Paths[] {
  return Array.from({ length: count }, (_, index) => paths(index));
}

function turnloopBatch(calls: readonly Paths[]): Batch {
  const accesses = calls.map(([first, second]) => [...ToolAccesses.writeFile(first), ...ToolAccesses.writeFile(second)]);
  return () => {
    const batch = createToolScheduler(MAX_PARALLEL);
    const started: number[] = [];
    const tickets = accesses.map((one) => batch.add(one));
    tickets.forEach((ticket, index) => {
      ticket.ready(() => {
        started.push(index);
      });
    });
    for (let next = 0; next < started.length; next += 1) tickets[started[next]!]!.release();
    return started.length;
  };
}

function bareBatch(calls: readonly Paths[]): Batch {
  return () => {
    const batch = new PathQueues(MAX_PARALLEL);
    const started: number[] = [];
    const ends = calls.map((paths, index) =>
      batch.add(paths, () => {
        started.push(index);
      }),
    );
    for (let next = 0; next < started.length; next += 1) ends[started[next]!]!();
    return started.length;
  };
}

function aloneOf(name: string, batchOf: (calls: readonly Paths[]) => Batch): Measurement {
  const timeOf = (count: number, paths: (index: number) => Paths): Promise<number> => {
    const batch = batchOf(pathsOf(count, paths));
    return cpuMsPerRun(() => {
      expectEqual('calls', batch(), count);
    }, BUDGET);
  };
  return {
    name,
    measure: async (): Promise<Numbers> => {
      const small = await timeOf(SMALL, apart);
      const large = await timeOf(LARGE, apart);
      const chainedSmall = await timeOf(SMALL, chained);
      const chainedLarge = await timeOf(LARGE, chained);
      return {
        '2000': small,
        'us-2000': usPerCall(small, SMALL),
        'us-8000': usPerCall(large, LARGE),
        'chained-2000': chainedSmall,
        'chained-us-2000': usPerCall(chainedSmall, SMALL),
        'chained-us-8000': usPerCall(chainedLarge, LARGE),
      };
    },
  };
}

function usPerCall(milliseconds: number, calls: number): number {
  return (milliseconds * 1000) / calls;
}

interface WriteInput {
  readonly first: string;
  readonly second: string;
}

function turnOf(name: string, accesses: (input: WriteInput) => readonly ToolAccess[]): Measurement {
  const timeOf = (count: number): Promise<number> => {
    const calls = pathsOf(count, apart).map(([first, second]) => JSON.stringify({ first, second } satisfies WriteInput));
    return cpuMsPerRun(() => runBatchTurn(calls, accesses), TURN_BUDGET);
  };
  return {
    name,
    measure: async (): Promise<Numbers> => {
      const small = await timeOf(SMALL);
      const large = await timeOf(LARGE);
      return { '2000': small, 'us-2000': usPerCall(small, SMALL), 'us-8000': usPerCall(large, LARGE) };
    },
  };
}

async function runBatchTurn(calls: readonly string[], accesses: (input: WriteInput) => readonly ToolAccess[]): Promise<void> {
  let ran = 0;
  const tool: AnyTool = {
    name: 'write_both',
    description: 'Writes two files.',
    inputSchema: {
      type: 'object',
      properties: { first: { type: 'string' }, second: { type: 'string' } },
      required: ['first', 'second'],
    },
    accesses,
    execute: async () => {
      ran += 1;
      return TOOL_OUTPUT;
    },
  };
  let step = 0;
  const llm = benchModel(async () => {
    step += 1;
    if (step > 1) return { content: [{ type: 'text', text: FINAL_TEXT }], stopReason: 'end_turn', usage: USAGE };
    const content = calls.map((inputText): ReplyPart => ({ type: 'tool_call', name: tool.name, inputText }));
    return { content, stopReason: 'tool_use', usage: USAGE };
  });
  expectEqual('text', await runToEnd(llm, { tools: [tool] }), FINAL_TEXT);
  expectEqual('calls', ran, calls.length);
}
