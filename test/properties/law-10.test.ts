/**
 * Law 10, linear: work per step does not grow with the number of steps before it, nor work per delta with the length of
 * the reply, nor scheduling with the square of the batch; nothing is re-parsed, re-cloned or re-serialised per delta or
 * per step. Operations are counted, time is not looked at.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTranscript, type LLM, type LLMDelta, type LoopEvent, NO_USAGE, type RecordedEvent, type ReplyPart, runTurn, type ToolAccess, userMessage } from 'turnloop';
import { echoTool, virtualRuntime } from 'turnloop/testing';
import { createToolScheduler } from '../../src/core/tool-scheduler.ts';
import { accessesOf } from './fake-tools.ts';
import { law } from './law.ts';
import { countCalls, countExecutions, ReadCounter, startCounting, takeExecutions } from './operations.ts';
import { type Touch, touches } from './scenario.ts';

const part: fc.Arbitrary<ReplyPart> = fc.oneof(
  fc.constant<ReplyPart>({ type: 'text', text: 'Hello.' }),
  fc.constant<ReplyPart>({ type: 'thinking', text: 'Hm.' }),
  fc.constantFrom('{"text":"a"}', '{"text":', '').map((inputText): ReplyPart => ({ type: 'tool_call', name: 'echo', inputText })),
);

/** A reply that asks for a tool, so that the turn goes on. */
const replyParts = fc.array(part, { maxLength: 3 }).map((parts): readonly ReplyPart[] => [...parts, { type: 'tool_call', name: 'echo', inputText: '{"text":"b"}' }]);

/** A turn that gives the same reply for so many steps; `onStep` is called as each request comes. */
async function runSteps(
  count: number,
  parts: readonly ReplyPart[],
  around: { readonly onStep?: (step: number) => Promise<void> | void; readonly watch?: (event: RecordedEvent) => RecordedEvent } = {},
): Promise<void> {
  const runtime = virtualRuntime();
  const transcript = createTranscript();
  const { watch = (event: RecordedEvent): RecordedEvent => event, onStep } = around;
  const llm: LLM = {
    provider: 'fake',
    modelId: 'fake-1',
    systemPrompt: '',
    chat: async ({ scope }) => {
      const { step } = scope!;
      await onStep?.(step);
      const content: readonly ReplyPart[] = step > count ? [{ type: 'text', text: 'done' }] : parts;
      return { content, stopReason: 'end_turn', usage: NO_USAGE };
    },
  };
  const running = runTurn({
    llm,
    tools: [echoTool()],
    input: userMessage('Go on and on.'),
    buildMessages: transcript.buildMessages,
    dispatchEvent: (event: LoopEvent) => {
      // The turn has no sub-agent, so what is recorded here is what has no live-only type.
      if (!event.type.includes('delta')) transcript.record(watch(event as RecordedEvent));
    },
    runtime,
  });
  await runtime.settle(running);
}

describe('law-10 linear', () => {
  law('law-10: a late step parses, serialises, clones and reads of the record exactly what an early one does', replyParts, async (parts) => {
    const reader = new ReadCounter();
    const calls = countCalls();
    const seen: (readonly number[])[] = [];
    try {
      await runSteps(24, parts, {
        watch: (event) => reader.watch(event),
        onStep: () => {
          seen.push([reader.reads, calls.counts.parse, calls.counts.stringify, calls.counts.clone]);
        },
      });
    } finally {
      calls.stop();
    }

    const work = seen.slice(1).map((counts, index) => counts.map((count, which) => count - seen[index]![which]!));
    expect(work[22]).toStrictEqual(work[3]);
    const [, parses, strings, clones] = work[3]!;
    expect(parses).toBeLessThanOrEqual(parts.filter(({ type }) => type === 'tool_call').length);
    // What is said about arguments that were refused quotes names; nothing else is ever serialised.
    expect(strings).toBeLessThanOrEqual(4 * parts.filter((one) => one.type === 'tool_call' && !one.inputText.endsWith('}')).length);
    expect(clones).toBe(0);
  });

  it('law-10: step 400 executes what step 20 does', { timeout: 60_000 }, async () => {
    const parts: readonly ReplyPart[] = [
      { type: 'text', text: 'Hello.' },
      { type: 'tool_call', name: 'echo', inputText: '{"text":"b"}' },
    ];
    const executions = new Map<number, number>();
    const onStep = async (step: number): Promise<void> => {
      if (step === 20 || step === 400) await startCounting();
      if (step === 40 || step === 420) executions.set(step, Math.max(executions.get(step) ?? 0, await takeExecutions()));
    };
    for (let round = 0; round < 3; round += 1) await runSteps(420, parts, { onStep });

    expect(executions.get(40)).toBeGreaterThan(1000);
    expect(executions.get(420)).toBeLessThanOrEqual(executions.get(40)! * 1.5);
  });

  law('law-10: each delta is read once and costs no parsing, cloning or serialising, however long the reply', deltaLists(), async (deltas) => {
    const [once, fourTimes] = [await readsOf(deltas), await readsOf([deltas, deltas, deltas, deltas].flat())];

    // The first delta of a call has a name, which later ones do not.
    expect(fourTimes).toBeLessThanOrEqual(4 * once);
  });

  it('law-10: a reply of four times as many deltas executes four times as much', async () => {
    const deltas = (count: number): readonly LLMDelta[] => Array.from({ length: count }, () => ({ type: 'text', text: 'abc' }));
    const short = await countExecutions(() => streamDeltas(deltas(1000)));
    const long = await countExecutions(() => streamDeltas(deltas(4000)));

    expect(short).toBeGreaterThan(1000);
    expect(long).toBeLessThanOrEqual(short * 5);
  });

  law('law-10: what scheduling reads of the accesses grows with the batch, not with its square', fc.array(touches, { minLength: 1, maxLength: 4 }), (pattern) => {
    const [small, large] = [accessReads(pattern, 24), accessReads(pattern, 96)];

    expect(large).toBeLessThanOrEqual(4 * small);
  });

  it.each<readonly [string, (index: number) => readonly Touch[]]>([
    ['that all write one file', () => [['w', 'file', '/same']]],
    ['that each write two files of their own', (index) => [['w', 'file', `/a${index}`], ['w', 'file', `/b${index}`]]],
    ['that read a tree, and every tenth writes in it', (index) => [[index % 10 === 0 ? 'w' : 'r', index % 10 === 0 ? 'file' : 'tree', '/a']]],
    ['that all touch everything', () => [['w', 'all', '']]],
    ['that write deep files below one tree', (index) => [['w', 'file', `/a/b/c/d/${index}`], ['r', 'file', '/a/b/c/x']]],
    ['that read everything', () => [['r', 'all', '']]],
  ])('law-10: a batch four times as large executes four times as much, for calls %s', async (_what, touchOf) => {
    const short = await countExecutions(() => schedule(250, (index) => accessesOf(touchOf(index))));
    const long = await countExecutions(() => schedule(1000, (index) => accessesOf(touchOf(index))));

    expect(short).toBeGreaterThan(250);
    expect(long).toBeLessThanOrEqual(short * 5);
  });
});

/** A reply that streams these deltas and then says nothing but `done`. */
async function streamDeltas(deltas: readonly LLMDelta[]): Promise<void> {
  const runtime = virtualRuntime();
  const transcript = createTranscript();
  const llm: LLM = {
    provider: 'fake',
    modelId: 'fake-1',
    systemPrompt: '',
    chat: async ({ onDelta }) => {
      for (const delta of deltas) onDelta?.(delta);
      return { content: [{ type: 'text', text: 'done' }], stopReason: 'end_turn', usage: NO_USAGE };
    },
  };
  const running = runTurn({
    llm,
    input: 'Talk.',
    buildMessages: transcript.buildMessages,
    dispatchEvent: (event: LoopEvent) => {
      if (!event.type.includes('delta')) transcript.record(event as RecordedEvent);
    },
    runtime,
  });
  await runtime.settle(running);
}

function deltaLists(): fc.Arbitrary<readonly LLMDelta[]> {
  const delta = fc.oneof<fc.Arbitrary<LLMDelta>[]>(
    fc.constantFrom('a', 'bc', '').map((text) => ({ type: 'text', text })),
    fc.constant({ type: 'thinking', text: 'h' }),
    fc.nat(2).map((callIndex) => ({ type: 'tool_call', callIndex, inputText: '{' })),
  );
  return fc.array(delta, { minLength: 1, maxLength: 30 });
}

async function readsOf(deltas: readonly LLMDelta[]): Promise<number> {
  const reader = new ReadCounter();
  const calls = countCalls();
  try {
    await streamDeltas(deltas.map((delta) => reader.watch({ ...delta })));
  } finally {
    calls.stop();
  }
  expect(calls.counts).toStrictEqual({ parse: 0, stringify: 0, clone: 0 });
  return reader.reads;
}

/** Schedules a batch, four at once, each over as soon as the next starts. */
function schedule(count: number, accesses: (index: number) => readonly ToolAccess[]): void {
  const scheduler = createToolScheduler(4);
  const tickets = Array.from({ length: count }, (_, index) => scheduler.add(accesses(index)));
  const running: (() => void)[] = [];
  for (const ticket of tickets) {
    ticket.ready(() => {
      running.push(() => {
        ticket.release();
      });
    });
  }
  let ended = 0;
  for (let next = running.shift(); next !== undefined; next = running.shift()) {
    next();
    ended += 1;
  }
  expect(ended).toBe(count);
}

function accessReads(pattern: readonly (readonly Touch[])[], count: number): number {
  const reader = new ReadCounter();
  schedule(count, (index) => reader.watch(accessesOf(pattern[index % pattern.length]!)));
  return reader.reads;
}
