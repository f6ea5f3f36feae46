/** Timed batch: one step of a turn, whose calls take given times and are authorised at given times. */
import {
  createTranscript,
  runTurn,
  type ToolAccess,
  userMessage,
} from 'turnloop';
import { recordingTool, scriptedLLM, toolCall } from 'turnloop/testing';
import { accessesOf } from './fake-tools.ts';
import type { Touch } from './scenario.ts';
import { World } from './world.ts';

/** A call of the batch. */
export interface TimedCall {
  readonly touch: readonly Touch[];
  /** How long it runs. */
  readonly ms: number;
  /** How long its authorisation takes. */
  readonly authorizeMs: number;
  /** What it touches after its authorisation, where that changes it. */
  readonly edit?: readonly Touch[];
}

/** One step of calls. */
export interface TimedBatch {
  readonly calls: readonly TimedCall[];
  readonly maxParallel: number;
}

/** When a call ran, in virtual time. */
export interface TimedRun {
  /** Place in the batch. */
  readonly index: number;
  readonly accesses: readonly ToolAccess[];
  readonly startedAt: number;
  readonly endedAt: number;
}

/** Runs the batch in a turn of its own and tells when each call ran. */
export async function runTimedBatch(batch: TimedBatch): Promise<readonly TimedRun[]> {
  const world = new World();
  const transcript = createTranscript();
  const touchOf = (input: unknown): readonly Touch[] => (input as { touch: readonly Touch[] }).touch;
  const tool = recordingTool({
    name: 'work',
    accesses: (input) => accessesOf(touchOf(input)),
    execute: async (input) => {
      await world.sleep(input['ms'] as number, undefined);
      return 'done';
    },
  });
  const calls = batch.calls.map(({ touch, ms }, index) => toolCall('work', { index, ms, touch: touch.map((one) => [...one]) }));

  const running = runTurn({
    llm: scriptedLLM([calls, 'done']),
    tools: [tool],
    input: userMessage('Work.'),
    buildMessages: transcript.buildMessages,
    dispatchEvent: (event) => {
      transcript.record(event as Parameters<typeof transcript.record>[0]);
    },
    hooks: [
      {
        name: 'slow',
        authorizeToolCall: async (_context, { input }) => {
          const { index, ms } = input as { index: number; ms: number };
          const { authorizeMs, edit } = batch.calls[index]!;
          await world.sleep(authorizeMs, undefined);
          return edit === undefined ? undefined : { action: 'edit', input: { index, ms, touch: edit.map((one) => [...one]) } };
        },
      },
    ],
    maxParallelTools: batch.maxParallel,
    runtime: world.loopRuntime,
  });
  await world.runtime.settle(running);

  return tool.runs.map((run) => ({
    index: run.input['index'] as number,
    accesses: accessesOf(touchOf(run.input)),
    startedAt: run.startedAt,
    endedAt: run.endedAt!,
  }));
}
