/**
 * Compactions one after the other, as properties: at whatever positions a conversation is compacted and by whichever
 * layers, what is left is a history that every protocol takes (law 2).
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTranscript, type LLM, LLMError, type Message, runTurn, type Transcript, userMessage } from 'turnloop';
import { clearOldResults, createContextPolicy, foldOldTexts, type LayerResult, summarizeHistory, trimHistory } from 'turnloop/context';
import { recordingTool, repeat, type Reply, scriptedLLM, toolCall, virtualRuntime } from 'turnloop/testing';
import { brokenRules } from '../properties/protocol-rules.ts';
import { ADAPTERS } from '../providers/every-adapter.ts';
import { checkMessagesRequest } from '../support/anthropic-rules.ts';
import { checkChatRequest } from '../support/chat-rules.ts';
import { requestSizes } from '../support/conversations.ts';
import { checkGenerateContentRequest } from '../support/gemini-rules.ts';
import { checkResponsesRequest } from '../support/responses-rules.ts';
import { eventsOf, histories } from './histories.ts';
import { isSummaryRequest, summariesOf } from './sessions.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 1000);

const CHECKS: Readonly<Record<string, (body: unknown) => readonly string[]>> = {
  openAIChat: checkChatRequest,
  openAIResponses: checkResponsesRequest,
  anthropic: checkMessagesRequest,
  google: checkGenerateContentRequest,
};

/** Rules that the requests of all adapters with this history break. */
async function brokenOnTheWire(messages: readonly Message[]): Promise<readonly string[]> {
  const broken: string[] = [];
  for (const { name, connect } of ADAPTERS) {
    let body: unknown;
    const fetch: typeof globalThis.fetch = async (_url, init) => {
      body = JSON.parse(init?.body as string);
      return Response.json({ error: { message: 'Enough.' } }, { status: 400 });
    };
    const llm: LLM = connect({ apiKey: 'sk-test', fetch });
    await llm.chat({ systemPrompt: '', messages, tools: [], signal: new AbortController().signal }).catch(() => undefined);
    const rules = CHECKS[name]?.(body) ?? ['no check'];
    broken.push(...rules.map((rule) => `${name}: ${rule}`));
  }
  return broken;
}

interface Cut {
  readonly layer: 'clear' | 'fold' | 'summary' | 'trim';
  readonly keep: number;
  readonly tokens: number;
}

const cuts: fc.Arbitrary<readonly Cut[]> = fc.array(
  fc.record({
    layer: fc.constantFrom<Cut['layer']>('clear', 'fold', 'summary', 'summary', 'trim'),
    keep: fc.integer({ min: 0, max: 4 }),
    tokens: fc.integer({ min: 0, max: 400 }),
  }),
  { minLength: 1, maxLength: 8 },
);

async function compacted(messages: readonly Message[], { layer, keep, tokens }: Cut, runtime: ReturnType<typeof virtualRuntime>): Promise<LayerResult> {
  switch (layer) {
    case 'clear':
      return clearOldResults(messages, { canReobtain: () => true, keepNewest: keep, minTokens: 0 });
    case 'fold':
      return foldOldTexts(messages, { keepNewest: keep, maxCharacters: 200 });
    case 'trim':
      return trimHistory(messages, { targetTokens: tokens });
    case 'summary': {
      const options = { llm: scriptedLLM([repeat('Notes.')]), runtime, keepMessages: keep, keepTokens: tokens, userMessageTokens: tokens };
      return summarizeHistory(messages, options).catch((error: unknown) => {
        // Shorter than what it replaces is not always to be had.
        expect(error).toMatchObject({ code: 'summary_failed' });
        return { edits: [], messages, tokensBefore: 0, tokensAfter: 0 };
      });
    }
  }
}

/** Puts messages behind those of a transcript. */
function append(transcript: Transcript, messages: readonly Message[]): void {
  const last = transcript.buildMessages().at(-1);
  if (last === undefined || messages.length === 0) return;
  const edits = [{ from: last.id, to: last.id, messages: [last, ...messages] }];
  transcript.record({ type: 'compaction', turnId: 'turn_0', at: 0, layer: 'appended', edits, tokensBefore: 0, tokensAfter: 0 });
}

function isFromPerson(message: Message): boolean {
  return message.role === 'user' && (message.origin === 'user' || message.origin === 'steering');
}

function unpinned(messages: readonly Message[]): readonly Message[] {
  return messages.filter((message) => message.role !== 'user' || message.pinned !== true);
}

describe('compactions', () => {
  it('law-2 CP6 chained at every cut position of any conversation stay valid on all protocols, and need no repair', async () => {
    await fc.assert(
      fc.asyncProperty(histories, cuts, async (conversation, plan) => {
        const whole = conversation.filter((message) => message.role !== 'user' || message.transient !== true);
        const positions = [...new Set([...requestSizes(whole).filter((size) => size > 0), whole.length])];
        const runtime = virtualRuntime({ idPrefix: 'own' });
        const transcript = createTranscript(eventsOf(whole.slice(0, positions[0])));
        let count = 0;
        for (const [index, position] of positions.entries()) {
          append(transcript, whole.slice(positions[index - 1] ?? position, position));
          const cut = plan[index % plan.length];
          const before = transcript.buildMessages();
          if (cut === undefined || before.length === 0) continue;
          const result = await compacted(before, cut, runtime);
          const { edits, tokensBefore, tokensAfter } = result;
          if (edits.length === 0) continue;
          count += 1;
          transcript.record({ type: 'compaction', turnId: 'turn_0', at: 0, layer: cut.layer, edits, tokensBefore, tokensAfter });
          const after = transcript.buildMessages();

          expect(after).toStrictEqual(result.messages);
          expect(tokensAfter).toBeLessThan(tokensBefore);
          expect(brokenRules(after)).toStrictEqual([]);
          expect(after).toContain(before.findLast(isFromPerson));
          expect(after.map(({ id }) => id)).toContain(before.find(isFromPerson)?.id);
          if (cut.layer === 'summary') expect(summariesOf(unpinned(after))).toHaveLength(1);
        }
        expect(transcript.findings()).toStrictEqual([]);
        if (count > 0) expect(await brokenOnTheWire(transcript.buildMessages())).toStrictEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  it('law-2 law-11 by the policy, in turns with any results and any summaries, give only requests that hold what must stay', async () => {
    const step = fc.record({ calls: fc.integer({ min: 1, max: 3 }), characters: fc.constantFrom(10, 400, 2_000, 9_000) });
    const turns = fc.array(fc.record({ said: fc.integer({ min: 1, max: 60 }), steps: fc.array(step, { maxLength: 8 }) }), { minLength: 1, maxLength: 6 });
    const overflow = new LLMError({ kind: 'context_overflow', message: 'Too long.' });
    const summaries = fc.array(
      fc.constantFrom<Reply>('Goal: short.', `Goal: ${'long '.repeat(300)}`, '', overflow, { content: 'Goal', stopReason: 'max_tokens' }, 'word '.repeat(9_000), [toolCall('read')]),
      { minLength: 1, maxLength: 6 },
    );
    await fc.assert(
      fc.asyncProperty(turns, summaries, fc.integer({ min: 1_200, max: 6_000 }), async (played, notes, window) => {
        const policy = createContextPolicy({ minBatch: 0.1 });
        const transcript = createTranscript();
        const runtime = virtualRuntime();
        let asked = 0;
        for (const [index, turn] of played.entries()) {
          const steps = [...turn.steps];
          let characters = 0;
          const said = `Task ${index}: ${'please '.repeat(turn.said)}`;
          const llm = scriptedLLM(
            (request) => {
              if (isSummaryRequest(request)) return notes[asked++ % notes.length] ?? '';
              const { messages } = request;
              expect(brokenRules(messages)).toStrictEqual([]);
              expect(summariesOf(messages).length).toBeLessThanOrEqual(1);
              expect(messages[0]).toMatchObject({ origin: 'user', content: [{ text: expect.stringMatching(/^Task 0/) as string }] });
              expect(messages.findLast(isFromPerson)).toMatchObject({ content: [{ text: said }] });
              const next = steps.shift();
              characters = next?.characters ?? 0;
              return next === undefined ? 'done' : Array.from({ length: next.calls }, (_, at) => toolCall('read', { path: `${at}.ts` }));
            },
            { capabilities: { contextWindow: window } },
          );
          const tools = [recordingTool({ name: 'read', readOnly: true, execute: () => 'words '.repeat(Math.ceil(characters / 6)) })];
          const running = runTurn({
            llm,
            tools,
            input: [userMessage(said)],
            buildMessages: transcript.buildMessages,
            dispatchEvent: (event) => {
              if (isRecorded(event)) transcript.record(event);
            },
            hooks: policy.hooks,
            recoveries: policy.recoveries,
            runtime,
          });
          const result = await runtime.settle(running);
          expect(result.error).toBeUndefined();
          expect(result.stopReason).toBe('end_turn');
        }
        expect(transcript.findings()).toStrictEqual([]);
        const reloaded = createTranscript(JSON.parse(JSON.stringify(transcript.events)) as typeof transcript.events);
        expect(reloaded.buildMessages()).toStrictEqual(transcript.buildMessages());
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });
});

const LIVE: ReadonlySet<string> = new Set(['text.delta', 'thinking.delta', 'tool.call.delta', 'tool.progress', 'step.retrying', 'turn.interrupted', 'notice']);

type AnyEvent = Parameters<Parameters<typeof runTurn>[0]['dispatchEvent']>[0];

function isRecorded(event: AnyEvent): event is Parameters<Transcript['record']>[0] {
  return !LIVE.has(event.type);
}
