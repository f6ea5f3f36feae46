/** Layers of a host's own, under the context policy: what may be recorded of what they want, and what becomes of a bad one. */
import { describe, expect, it } from 'vitest';
import { type Message, userMessage } from 'turnloop';
import { type ContextLayer, createContextPolicy } from 'turnloop/context';
import { toolCall } from 'turnloop/testing';
import { layersOf, longHistory, noticesOf, readTool, runWith, sessionModel, transcriptOf, windowFor } from './sessions.ts';

const ONLY_CLEAR = { fold: false, summarize: false, trim: false } as const;
const tools = [readTool()];
const steps = Array.from({ length: 30 }, () => [toolCall('read')]);

/** The history with a text behind it that is recalled for each request, and is now short, now long. */
function withRecalled(buildMessages: () => readonly Message[]): () => readonly Message[] {
  let count = 0;
  return () => {
    count += 1;
    return [...buildMessages(), userMessage('recalled '.repeat(count % 2 === 0 ? 2_000 : 10), { id: `recalled_${count}`, origin: 'memory', transient: true })];
  };
}

describe('a text of varying length that is built for each request', () => {
  it('D7 makes no compaction ineffective that leaves out and brings nothing', async () => {
    const leavesOut: ContextLayer = (messages) => {
      const [from, to] = [messages[1], messages[2]];
      if (messages.length < 12 || from === undefined || to === undefined) return { edits: [], messages, tokensBefore: 0, tokensAfter: 0 };
      return { edits: [{ from: from.id, to: to.id, messages: [] }], messages: [...messages.slice(0, 1), ...messages.slice(3)], tokensBefore: 0, tokensAfter: 0 };
    };
    const history = longHistory({ exchanges: 8 });
    const policy = createContextPolicy({ ...ONLY_CLEAR, clear: leavesOut, window: windowFor(history, 0.3, tools), clearAt: 0.2 });
    const transcript = transcriptOf(history);

    const outcome = await runWith(policy, {
      llm: sessionModel({ steps: [...steps, 'ok'] }), tools, transcript, buildMessages: withRecalled(transcript.buildMessages),
    });

    expect(noticesOf(outcome, 'context.ineffective')).toStrictEqual([]);
    expect(layersOf(outcome).length).toBeGreaterThan(20);
  });
});
