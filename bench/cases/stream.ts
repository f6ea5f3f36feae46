/**
 * stream: what the loop costs a delta.
 *
 * Measured: a turn of one step whose reply comes in 100,000 text deltas, through `onDelta` to a listener that reads each.
 * - `us-per-delta`: the model reads an async generator, a promise for each delta.
 * - `us-per-delta-pushed`: the model calls `onDelta` for one delta after the other, as an adapter does with the many events
 *   of a network chunk. Nothing hides what the loop costs.
 * - `bytes-per-delta`: what is allocated for a pushed delta, measured in a process whose young generation is so large that
 *   nothing is collected. It holds what unoptimised code allocates, so it compares; it is no heap profile of production.
 *
 * Limit: the same generator, or the same calls, straight to a listener that reads each delta, and a string that gathers
 * the text. Fair, since both sides make the same deltas in the same way: what is left is the loop's.
 */
import type { LLM, LLMDelta, LLMRequest, LLMResponse } from 'turnloop';
import { allocatedBytes, ROOMY_FLAGS } from '../lib/allocation.ts';
import type { BenchCase, Measurement, Numbers } from '../lib/bench-case.ts';
import { tokenOf, tokensLength } from '../lib/scenario.ts';
import { cpuMsPerRun, expectEqual } from '../lib/timing.ts';
import { benchModel, runToEnd, USAGE } from '../lib/turnloop-turn.ts';

const DELTAS = 100_000;
const TEXT_LENGTH = tokensLength(DELTAS);
const BUDGET = { warmMs: 300, measureMs: 500 };
const WARM_STREAMS = 3;

type TextListener = (text: string) => void;
/** Lets all deltas reach the listener. */
type Streamed = (listener: TextListener) => Promise<void>;

export const stream: BenchCase = {
  name: 'stream',
  repetitions: 4,
  measurements: [
    timeOf('turnloop', { pulled: throughTurnloop(pulledReply), pushed: throughTurnloop(pushedReply) }),
    timeOf('bare', { pulled: barePulled, pushed: barePushed }),
    bytesOf('turnloop-bytes', throughTurnloop(pushedReply)),
    bytesOf('bare-bytes', barePushed),
  ],
  figures: [
    {
      metric: 'us-per-delta',
      unit: 'us',
      value: ['turnloop', 'pulled'],
      ratio: { metric: 'x-limit', to: ['bare', 'pulled'], label: 'bare generator' },
    },
    {
      metric: 'us-per-delta-pushed',
      unit: 'us',
      value: ['turnloop', 'pushed'],
      ratio: { metric: 'x-limit-pushed', to: ['bare', 'pushed'], label: 'bare callback' },
    },
    {
      metric: 'bytes-per-delta',
      unit: 'bytes',
      value: ['turnloop-bytes', 'bytes'],
      ratio: { metric: 'x-limit-bytes', to: ['bare-bytes', 'bytes'], label: 'bare callback' },
    },
  ],
};

async function* deltas(): AsyncGenerator<LLMDelta & { readonly type: 'text' }> {
  for (let index = 0; index < DELTAS; index += 1) yield { type: 'text', text: tokenOf(index) };
}

async function barePulled(listener: TextListener): Promise<void> {
  let text = '';
  for await (const delta of deltas()) {
    text += delta.text;
    listener(delta.text);
  }
  expectEqual('length of the text', text.length, TEXT_LENGTH);
}

async function barePushed(listener: TextListener): Promise<void> {
  let text = '';
  for (let index = 0; index < DELTAS; index += 1) {
    const delta: LLMDelta = { type: 'text', text: tokenOf(index) };
    text += delta.text;
    listener(delta.text);
  }
  expectEqual('length of the text', text.length, TEXT_LENGTH);
}

async function pulledReply({ onDelta }: LLMRequest): Promise<LLMResponse> {
  let text = '';
  for await (const delta of deltas()) {
    text += delta.text;
    onDelta?.(delta);
  }
  return { content: [{ type: 'text', text }], stopReason: 'end_turn', usage: USAGE };
}

async function pushedReply({ onDelta }: LLMRequest): Promise<LLMResponse> {
  let text = '';
  for (let index = 0; index < DELTAS; index += 1) {
    const delta: LLMDelta = { type: 'text', text: tokenOf(index) };
    text += delta.text;
    onDelta?.(delta);
  }
  return { content: [{ type: 'text', text }], stopReason: 'end_turn', usage: USAGE };
}

function throughTurnloop(reply: LLM['chat']): Streamed {
  return async (listener) => {
    const llm = benchModel(reply);
    const text = await runToEnd(llm, {
      listener: (event) => {
        if (event.type === 'text.delta') listener(event.text);
      },
    });
    expectEqual('length of the text', text.length, TEXT_LENGTH);
  };
}

async function streamChecked(streamed: Streamed): Promise<void> {
  let length = 0;
  await streamed((text) => {
    length += text.length;
  });
  expectEqual('characters that reached the listener', length, TEXT_LENGTH);
}

function timeOf(name: string, ways: { readonly pulled: Streamed; readonly pushed: Streamed }): Measurement {
  const usPerDelta = async (streamed: Streamed): Promise<number> =>
    ((await cpuMsPerRun(() => streamChecked(streamed), BUDGET)) * 1000) / DELTAS;
  return {
    name,
    measure: async (): Promise<Numbers> => ({ pulled: await usPerDelta(ways.pulled), pushed: await usPerDelta(ways.pushed) }),
  };
}

function bytesOf(name: string, streamed: Streamed): Measurement {
  return {
    name,
    nodeFlags: ROOMY_FLAGS,
    measure: async (): Promise<Numbers> => {
      for (let count = 0; count < WARM_STREAMS; count += 1) await streamChecked(streamed);
      const bytes = await allocatedBytes(() => streamed(ignore));
      return { bytes: bytes / DELTAS };
    },
  };
}

function ignore(): void {
  // Counting allocations minds nothing else.
}
