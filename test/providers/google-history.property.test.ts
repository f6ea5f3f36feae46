/**
 * Gemini histories, as properties: whatever a conversation holds, a strict server takes it; and each request begins with
 * the one before it.
 */
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { assistantMessage, type Message, toolMessage, userMessage } from 'turnloop';
import type { GoogleOptions } from 'turnloop/providers/google';
import { scenarios } from '../properties/scenario.ts';
import { conversations, type ConversationTarget, requestSizes, transcriptHistories } from '../support/conversations.ts';
import { checkGenerateContentRequest } from '../support/gemini-rules.ts';
import { fakeServer, request } from './fake-server.ts';
import { bodyOf, geminiOn, OK } from './google-support.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 1000);
const GENERATIONS = [
  [2, 'gemini-2.5-flash'],
  [3, 'gemini-3-flash-preview'],
] as const;

/** What the adapter attaches to parts. */
function targetOf(model: string): ConversationTarget {
  const signed = { model, thoughtSignature: 'U0lHTkVE' };
  return {
    provider: 'google',
    modelId: model,
    thinkingData: [{ model }, signed, { model: 'gemini-other', thoughtSignature: 'T1RIRVI=' }],
    textData: [signed],
    callData: [signed],
    providerRuns: [
      [{ executableCode: { language: 'PYTHON', code: 'print(1)' } }, { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' }, thoughtSignature: 'Q09ERQ==' }],
      [{ toolCall: { id: 't1', toolType: 'GOOGLE_SEARCH_WEB', args: {} } }, { toolResponse: { id: 't1', toolType: 'GOOGLE_SEARCH_WEB', response: {} } }],
      [{ groundingMetadata: { webSearchQueries: ['q'] } }],
      [{ mediaSignature: signed }],
    ],
  };
}

/** A request without what closes it: what the next one begins with. */
function beginning(text: string): string {
  return text.slice(0, text.lastIndexOf(']}]'));
}

describe.each(GENERATIONS)('Gemini histories of generation %i', (generation, model) => {
  const target = targetOf(model);
  const conversation = conversations(target);

  it.each<readonly [string, Partial<GoogleOptions>]>([
    ['as they are', {}],
    ['with ids', { sendCallIds: true }],
    ['without media and thinking', { capabilities: { mediaTypes: [] }, thinkingHistory: 'drop' }],
  ])('are taken by a strict server, %s', async (_name, options) => {
    await fc.assert(
      fc.asyncProperty(conversation, async (messages) => {
        const before = JSON.stringify(messages);
        const fake = fakeServer(OK);

        await geminiOn(fake, { model, ...options }).chat(request(messages, { systemPrompt: 's', tools: [{ name: 'f', description: 'd', inputSchema: { type: 'object' } }] }));

        expect(checkGenerateContentRequest(fake.sent[0]?.body, { generation })).toStrictEqual([]);
        expect(JSON.stringify(messages)).toBe(before);
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('law-2: are taken whatever prefix of whatever transcript they are folded from', async () => {
    await fc.assert(
      fc.asyncProperty(scenarios(), fc.boolean(), async (scenario, mixed) => {
        const fake = fakeServer(OK);
        const llm = geminiOn(fake, { model });
        for (const history of await transcriptHistories(scenario, target, { mixed })) await llm.chat(request(history));

        for (const { body } of fake.sent) expect(checkGenerateContentRequest(body, { generation })).toStrictEqual([]);
      }),
      { numRuns: Math.ceil(RUNS / 8) },
    );
  });

  it('law-11: each request begins with the one before it, whichever adapter object writes it', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, async (messages) => {
        const fake = fakeServer(OK);
        const llm = geminiOn(fake, { model });
        const settings = { systemPrompt: 's', maxOutputTokens: 7 };
        for (const size of requestSizes(messages)) await llm.chat(request(messages.slice(0, size), settings));
        await geminiOn(fake, { model }).chat(request(messages, settings));

        for (const [at, { text }] of fake.sent.slice(1).entries()) expect(text.startsWith(beginning(fake.sent[at]!.text))).toBe(true);
        expect(fake.sent.at(-1)?.text).toBe(fake.sent.at(-2)?.text);
      }),
      { numRuns: Math.ceil(RUNS / 8) },
    );
  });

  it('GG2: results come in the order of the calls, whatever order they stand in', async () => {
    const shuffled = conversation.chain((messages) =>
      fc.infiniteStream(fc.nat(1000)).map((rolls) => {
        const runs: Message[][] = [];
        for (const message of messages) {
          const run = runs.at(-1);
          if (message.role === 'tool' && run?.[0]?.role === 'tool') run.push(message);
          else runs.push([message]);
        }
        const key = new Map(messages.map((message) => [message, rolls.next().value]));
        return { messages, mixed: runs.flatMap((run) => run.sort((a, b) => key.get(a)! - key.get(b)!)) };
      }),
    );
    await fc.assert(
      fc.asyncProperty(shuffled, async ({ messages, mixed }) => {
        const fake = fakeServer(OK);
        await geminiOn(fake, { model }).chat(request(messages));
        await geminiOn(fake, { model }).chat(request(mixed));

        expect(fake.sent[1]!.text).toBe(fake.sent[0]!.text);
      }),
      { numRuns: Math.ceil(RUNS / 8) },
    );
  });
});

describe('Gemini requests', () => {
  it('law-10: a step costs what is new in it', async () => {
    const fake = fakeServer(OK);
    const llm = geminiOn(fake);
    const messages: Message[] = [userMessage('go')];
    const tools = [{ name: 'f', description: 'd', inputSchema: { type: 'object', properties: {} } }];
    const stringify = vi.spyOn(JSON, 'stringify');
    const parse = vi.spyOn(JSON, 'parse');
    const costs: (readonly [number, number])[] = [];

    for (let count = 0; count < 100; count += 1) {
      messages.push(assistantMessage([{ type: 'tool_call', id: `c${count}`, name: 'f', inputText: '{"a":1}' }]), toolMessage('r', { toolCallId: `c${count}`, name: 'f' }));
      stringify.mockClear();
      parse.mockClear();
      await llm.chat(request([...messages], { tools }));
      costs.push([stringify.mock.calls.length, parse.mock.calls.length]);
    }

    // The first step writes the user's message and the tools as well.
    expect(new Set(costs.slice(1).map(String)).size).toBe(1);
    expect(costs[1]![0]).toBeLessThan(8);
  });

  it('leave transient messages at the tail out of what is kept', async () => {
    const fake = fakeServer(OK);
    const llm = geminiOn(fake);
    const calls = assistantMessage([{ type: 'tool_call', id: 'c', name: 'f', inputText: '{}' }]);
    const [first, result] = [userMessage('a'), toolMessage('r', { toolCallId: 'c', name: 'f' })];
    await llm.chat(request([first, userMessage('reminder 1', { transient: true })]));
    await llm.chat(request([first, calls, result, userMessage('reminder 2', { transient: true })]));
    await llm.chat(request([first, calls, result, assistantMessage('b')]));

    expect(fake.sent.map((sent) => bodyOf(sent).contents.map(({ parts }) => parts.map((part) => part['text'])))).toStrictEqual([
      [['a', 'reminder 1']],
      [['a'], [undefined], [undefined, 'reminder 2']],
      [['a'], [undefined], [undefined], ['b']],
    ]);
  });
});
