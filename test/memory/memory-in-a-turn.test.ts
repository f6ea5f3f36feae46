/** Memory in whole turns with a context policy: one block in each request, whatever is compacted, and nothing else changed by it. */
import { describe, expect, it } from 'vitest';
import { createTranscript, type LLMRequest, type Message, textOf, type Transcript } from 'turnloop';
import { createContextPolicy } from 'turnloop/context';
import { createMemory, inProcessMemoryStore, type Memory, type MemorySession } from 'turnloop/memory';
import { recordingTool, type ScriptedOutcome, toolCall, virtualRuntime } from 'turnloop/testing';
import { layersOf, longHistory, runWith, type SessionModel, sessionModel, transcriptOf, windowFor } from '../context/sessions.ts';
import { ADA } from './support.ts';

const SUMMARY = 'Goal: mend the tests. Settled: files 1 to 30 are fine.';
const SYSTEM = 'You are planner.';

interface Run {
  readonly outcome: ScriptedOutcome;
  readonly requests: readonly LLMRequest[];
  readonly llm: SessionModel;
}

const blocksOf = (messages: readonly Message[]): readonly Message[] => messages.filter((message) => message.role === 'user' && message.origin === 'memory');

/** A turn in which the model calls a tool that learns M2, and the history is compacted between the two requests. */
async function runTurnWith(session: MemorySession, memory: Memory, transcript: Transcript): Promise<Run> {
  const learn = recordingTool({
    name: 'learn',
    execute: async () => {
      await memory.forget({ owners: [ADA] });
      await memory.add({ ...ADA, text: 'M2' });
      return 'a long result '.repeat(800);
    },
  });
  const llm = sessionModel(
    { steps: [{ content: [toolCall('learn')] }, 'Done.'], summaries: [{ content: SUMMARY }, { content: SUMMARY }] },
    { modelId: 'm2', systemPrompt: SYSTEM },
  );
  const policy = createContextPolicy({ clear: false, fold: false, window: windowFor(transcript.buildMessages(), 0.6), truncate: false });
  const outcome = await runWith(policy, {
    llm,
    transcript,
    tools: [learn, ...session.tools],
    input: 'Go on.',
    buildMessages: () => [...(session.block === undefined ? [] : [session.block]), ...transcript.buildMessages()],
  });
  return { outcome, requests: llm.stepRequests(), llm };
}

async function start(): Promise<{ readonly memory: Memory; readonly session: MemorySession; readonly run: Run; readonly transcript: Transcript }> {
  const memory = createMemory({ store: inProcessMemoryStore(), runtime: virtualRuntime() });
  await memory.add({ ...ADA, text: 'M1' });
  const session = memory.openSession({ sessionId: 's1', owners: [ADA] });
  await session.recall('M1 or M2 or M3?');
  const transcript = transcriptOf(longHistory({ exchanges: 30 }));
  return { memory, session, transcript, run: await runTurnWith(session, memory, transcript) };
}

describe('memory in a turn', () => {
  it('E2 BR-061 stands once at the head of each request, the same through a compaction, and nowhere in the record', async () => {
    const { run, session } = await start();

    expect(run.outcome.result.stopReason).toBe('end_turn');
    expect(layersOf(run.outcome)).toStrictEqual(['summary']);
    expect(run.requests).toHaveLength(2);
    for (const { messages } of run.requests) {
      expect(blocksOf(messages)).toStrictEqual([session.block]);
      expect(messages[0]).toBe(session.block);
      expect(textOf(messages[0])).toContain('M1');
    }
    expect(JSON.stringify(run.outcome.recorded)).not.toMatch(/M1|<memory>/);
    expect(run.llm.summaryRequests().map(({ messages }) => textOf(messages[0])).join()).not.toMatch(/M1|<memory>/);
  });

  it('E2 BR-061 is new at the next turn, and after a resume, and never twice', async () => {
    const { memory, session, transcript, run } = await start();
    await session.recall('Which M?');
    const next = await runTurnWith(session, memory, transcript);

    await memory.forget({ owners: [ADA] });
    await memory.add({ ...ADA, text: 'M3' });
    const resumed = memory.openSession({ sessionId: 's1', owners: [ADA] });
    await resumed.recall('Which M?');
    const after = await runTurnWith(resumed, memory, createTranscript(transcript.events));

    const shown = [run, next, after].map(({ requests }) => requests.map(({ messages }) => blocksOf(messages).map(textOf).join().match(/M\d/g)));
    expect(shown).toStrictEqual([[['M1'], ['M1']], [['M2'], ['M2']], [['M3'], ['M3']]]);
  });

  it('E2 BR-163 changes neither the system prompt, nor the model, nor the tools, before and after a compaction', async () => {
    const { run } = await start();
    const [first, second] = run.requests;

    expect(first!.systemPrompt).toBe(SYSTEM);
    expect(second!.systemPrompt).toBe(SYSTEM);
    expect(second!.tools).toStrictEqual(first!.tools);
    expect(run.outcome.recorded.filter((event) => event.type === 'usage' && event.purpose === 'step')).toMatchObject([{ modelId: 'm2' }, { modelId: 'm2' }]);
  });

  it('E2 begins a later request with the same bytes, as long as the same is recalled', async () => {
    const { memory, session } = await start();
    await session.recall('Which M?');
    const first = session.block;

    await memory.add({ scope: 'user', scopeId: 'bob', text: 'Which M? M9 of Bob.' });
    await session.recall('And which tea?');

    expect(session.block).toBe(first);
  });
});
