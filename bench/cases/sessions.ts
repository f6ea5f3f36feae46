/**
 * resume, sessions: what a session costs to be opened again, while nobody uses it, and the longer it is.
 *
 * - `resume/ms-10000-events`: from `openSession` to ready in a warm process, of a session of 10,000 events (2,000 steps with a
 *   call each, results of about 1 KB) in files, from its log alone; time on the wall, the median of several. `-snapshot`: with
 *   the snapshot that a closed session has.
 * - `sessions/kb-idle`: heap of an open session in which nothing happens, of 1,000 in files.
 * - `sessions/ratio-end-start`: processor time of a step near the end of a session of 5,000 steps, 100 turns of 50, over that of
 *   one near its start. Each turn is taken back once it is over, so that the history stays short, as a context policy keeps it:
 *   what grows then is the log alone. `kb-per-step-start` and `-end` are the heap that a step leaves behind, in the first and
 *   in the second half.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineTool, NO_USAGE, type LLM } from 'turnloop';
import { createAgent, type Agent } from 'turnloop/agent';
import { fileSessionStore } from 'turnloop/sessions';
import type { BenchCase, Numbers } from '../lib/bench-case.ts';
import { median } from '../lib/statistics.ts';
import { collectGarbage, cpuMs, expectEqual } from '../lib/timing.ts';

const RESUMED_STEPS = 2_000;
const RESUMES = 9;
const IDLE = 1_000;
const TURNS = 100;
const STEPS_OF_TURN = 50;
const WINDOW = 10;
/** Turns of each half behind the first ones. */
const HALF = (TURNS - WINDOW) / 2;
const HEAP_TURNS: readonly number[] = [WINDOW, WINDOW + HALF];
const BODY = 'x'.repeat(1_000);

export const sessionCases: readonly BenchCase[] = [
  {
    name: 'resume',
    repetitions: 3,
    measurements: [
      { name: 'log', measure: () => measureResume('log') },
      { name: 'snapshot', measure: () => measureResume('snapshot') },
    ],
    figures: [
      { metric: 'ms-10000-events', unit: 'ms', value: ['log', 'ms'] },
      { metric: 'ms-10000-events-snapshot', unit: 'ms', value: ['snapshot', 'ms'] },
    ],
  },
  {
    name: 'sessions',
    repetitions: 2,
    measurements: [
      { name: 'idle', nodeFlags: ['--expose-gc'], measure: measureIdle },
      { name: 'long', nodeFlags: ['--expose-gc'], measure: measureLong },
    ],
    figures: [
      { metric: 'kb-idle', unit: 'KB', value: ['idle', 'kb'] },
      { metric: 'us-per-step-end', unit: 'us', value: ['long', 'end'], ratio: { metric: 'ratio-end-start', to: ['long', 'start'], label: 'the first turns' } },
      { metric: 'kb-per-step-start', unit: 'KB', value: ['long', 'kbFirst'] },
      { metric: 'kb-per-step-end', unit: 'KB', value: ['long', 'kb'] },
    ],
  },
];

/** Calls its tool in all steps of a turn but the last. */
function busyLLM(steps: number): LLM {
  return {
    provider: 'bench',
    modelId: 'bench',
    systemPrompt: '',
    chat: async ({ messages }) => {
      const replies = messages.length - 1 - messages.findLastIndex(({ role }) => role === 'user');
      if (replies / 2 >= steps - 1) return { content: [{ type: 'text', text: 'Done.' }], stopReason: 'end_turn', usage: NO_USAGE };
      return { content: [{ type: 'tool_call', name: 'look', inputText: `{"n":${replies}}` }], stopReason: 'tool_use', usage: NO_USAGE };
    },
  };
}

const look = defineTool({ name: 'look', description: 'Looks.', input: { type: 'object', properties: { n: { type: 'integer' } } }, execute: ({ n }) => `${String(n)} ${BODY}` });

/** What lives on the heap. */
function heapBytes(): number {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

async function inFolder<Value>(work: (folder: string) => Promise<Value>): Promise<Value> {
  const folder = await mkdtemp(join(tmpdir(), 'turnloop-bench-'));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

function agentOf(folder: string, steps: number): Agent {
  return createAgent({ llm: busyLLM(steps), tools: [look], sessions: fileSessionStore(folder), maxSteps: 0, context: false, loopGuard: false });
}

function measureResume(from: 'log' | 'snapshot'): Promise<Numbers> {
  return inFolder(async (folder) => {
    const agent = agentOf(folder, RESUMED_STEPS);
    const session = await agent.openSession({ sessionId: 's' });
    expectEqual('stop reason', (await session.run('Go.').result).stopReason, 'end_turn');
    const { length } = await session.events();
    if (length < 10_000) throw new Error(`The session has ${length} events.`);
    await session.close();
    const times: number[] = [];
    for (let round = 0; round < RESUMES; round += 1) {
      if (from === 'log') await rm(join(folder, 's', 'snapshot.json'));
      const start = performance.now();
      const resumed = await agent.openSession({ resumeSessionId: 's' });
      times.push(performance.now() - start);
      expectEqual('messages', resumed.messages().length, RESUMED_STEPS * 2);
      // Closing it takes the snapshot again.
      await resumed.close();
    }
    return { ms: median(times) };
  });
}

function measureIdle(): Promise<Numbers> {
  return inFolder(async (folder) => {
    const agent = agentOf(folder, 1);
    const before = heapBytes();
    const sessions = [];
    for (let index = 0; index < IDLE; index += 1) sessions.push(await agent.openSession());
    const kb = (heapBytes() - before) / 1_024 / IDLE;
    for (const session of sessions) await session.close();
    return { kb };
  });
}

function measureLong(): Promise<Numbers> {
  return inFolder(async (folder) => {
    const agent = agentOf(folder, STEPS_OF_TURN);
    const session = await agent.openSession();
    const costs: number[] = [];
    const heaps: number[] = [];
    for (let turn = 0; turn < TURNS; turn += 1) {
      if (HEAP_TURNS.includes(turn)) heaps.push(heapBytes());
      const start = cpuMs();
      const { steps } = await session.run('Go.').result;
      costs.push(((cpuMs() - start) * 1_000) / steps);
      expectEqual('steps', steps, STEPS_OF_TURN);
      await session.undo();
    }
    const [warm = 0, middle = 0, end = heapBytes()] = heaps;
    const [first, second] = [middle - warm, end - middle].map((bytes) => bytes / 1_024 / (HALF * STEPS_OF_TURN));
    await session.close();
    // The first turns warm the compiler up.
    return { start: median(costs.slice(WINDOW, 2 * WINDOW)), end: median(costs.slice(-WINDOW)), kbFirst: first ?? 0, kb: second ?? 0 };
  });
}
