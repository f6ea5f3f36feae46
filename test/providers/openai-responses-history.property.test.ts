/**
 * Responses histories, as properties: whatever a conversation holds, a strict server takes it; each request begins with
 * the one before it; and a server that remembers is given the same conversation as one that does not.
 */
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { assistantMessage, type Message, toolMessage, userMessage } from 'turnloop';
import type { OpenAIResponsesOptions } from 'turnloop/providers/openai-responses';
import { scenarios } from '../properties/scenario.ts';
import { conversations, type ConversationTarget, requestSizes, transcriptHistories } from '../support/conversations.ts';
import { checkResponsesRequest } from '../support/responses-rules.ts';
import { fakeServer, request } from './fake-server.ts';
import { called, type Item, MODEL, OK, reasoning, responsesOn, said, SOURCE, stored } from './openai-responses-support.ts';
import { rememberingServer } from './remembering-server.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 1000);

/** What the adapter attaches to parts. Ids of the server's items are its own: no two of them are the same. */
const TARGET: ConversationTarget = {
  provider: SOURCE.provider,
  modelId: MODEL,
  thinkingData: [
    (count) => ({ model: MODEL, type: 'reasoning', id: `rs_${count}` }),
    (count) => ({ model: MODEL, type: 'reasoning', id: `rs_${count}`, lengths: [1, 2] }),
    (count) => ({ model: 'gpt-5-other', type: 'reasoning', id: `rs_${count}` }),
  ],
  textData: [
    (count) => ({ id: `msg_${count}` }),
    (count) => ({ id: `msg_${count}`, phase: 'commentary' }),
    { phase: 'final_answer', annotations: [{ type: 'file_path', file_id: 'f', index: 0 }] },
  ],
  callData: [
    (count) => ({ model: MODEL, type: 'function_call', id: `fc_${count}` }),
    { model: MODEL, type: 'function_call', namespace: 'n' },
    (count) => ({ model: MODEL, type: 'custom_tool_call', id: `ctc_${count}` }),
  ],
  providerRuns: [
    (count) => [{ type: 'web_search_call', id: `ws_${count}`, status: 'completed', action: { type: 'search', query: 'q' } }],
    (count) => [
      { type: 'shell_call', id: `sh_${count}`, call_id: `call_sh_${count}`, status: 'completed', action: { commands: ['ls'] } },
      { type: 'shell_call_output', id: `sho_${count}`, call_id: `call_sh_${count}`, status: 'completed', output: [] },
    ],
    (count) => [{ type: 'local_shell_call', id: `lsh_${count}`, call_id: `call_lsh_${count}`, action: {} }],
  ],
};
const conversation = conversations(TARGET);

describe('Responses histories', () => {
  it.each<readonly [string, Partial<OpenAIResponsesOptions>]>([
    ['as it is', {}],
    ['that remembers', { state: 'incremental' }],
    ['without media and older thinking', { capabilities: { mediaTypes: [] }, thinkingHistory: 'drop' }],
  ])('are taken by a strict server, %s', async (_name, options) => {
    await fc.assert(
      fc.asyncProperty(conversation, async (messages) => {
        const before = JSON.stringify(messages);
        const fake = fakeServer(OK);

        await responsesOn(fake, options).chat(request(messages, { systemPrompt: 's', tools: [{ name: 'f', description: 'd', inputSchema: { type: 'object' } }] }));

        expect(checkResponsesRequest(fake.sent[0]?.body)).toStrictEqual([]);
        expect(JSON.stringify(messages)).toBe(before);
      }),
      { numRuns: Math.ceil(RUNS / 2) },
    );
  });

  it('law-2: are taken whatever prefix of whatever transcript they are folded from', async () => {
    await fc.assert(
      fc.asyncProperty(scenarios(), fc.boolean(), async (scenario, mixed) => {
        const fake = fakeServer(OK);
        const llm = responsesOn(fake);
        for (const history of await transcriptHistories(scenario, TARGET, { mixed })) await llm.chat(request(history));

        for (const { body } of fake.sent) expect(checkResponsesRequest(body)).toStrictEqual([]);
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('law-11: each request begins with the one before it, whichever adapter object writes it', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, async (messages) => {
        const fake = fakeServer(OK);
        const llm = responsesOn(fake);
        for (const size of requestSizes(messages)) await llm.chat(request(messages.slice(0, size), { systemPrompt: 's' }));
        await responsesOn(fake).chat(request(messages, { systemPrompt: 's' }));

        const texts = fake.sent.map(({ text }) => text);
        for (const [at, text] of texts.slice(1).entries()) expect(text.startsWith(texts[at]!.slice(0, -2))).toBe(true);
        expect(texts.at(-1)).toBe(texts.at(-2));
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('law-10: a step costs what is new in it', async () => {
    const fake = fakeServer(OK);
    const llm = responsesOn(fake);
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
});

/** What happens to a history before its next request. */
type Fate =
  | { readonly type: 'goOn' | 'copy' | 'restart' | 'forget' | 'remind' | 'foreign' }
  | { readonly type: 'fork' | 'edit' | 'drop' | 'expire'; readonly at: number };

const fate: fc.Arbitrary<Fate> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant('goOn' as const) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constantFrom('copy', 'restart', 'forget', 'remind', 'foreign') }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constantFrom('fork', 'edit', 'drop', 'expire'), at: fc.nat(20) }) },
);

describe('a server that remembers', () => {
  it('B2: is given the same conversation as one that does not, whatever happens to it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fate, fc.constantFrom('text', 'call', 'calls')), { minLength: 1, maxLength: 12 }), async (steps) => {
        let kind = 'text';
        const remembering = rememberingServer((number) => [
          reasoning(number),
          ...(kind === 'text' ? [said(number, `answer ${number}`)] : []),
          ...(kind === 'text' ? [] : [called(number), ...(kind === 'calls' ? [called(number + 1000)] : [])]),
        ]);
        let llm = responsesOn(remembering, { state: 'incremental' });
        let history: readonly Message[] = [userMessage('start')];
        const earlier: (readonly Message[])[] = [];

        for (const [happens, next] of steps) {
          kind = next;
          if (happens.type === 'restart') llm = responsesOn(remembering, { state: 'incremental' });
          if (happens.type === 'forget') remembering.responses.clear();
          if (happens.type === 'expire') remembering.responses.delete([...remembering.responses.keys()].at(happens.at) ?? '');
          history = suffer(history, happens, earlier);
          const asked = happens.type === 'remind' ? [...history, userMessage('remember', { transient: true })] : history;
          const reply = stored(await llm.chat(request(asked)));
          const heard = remembering.heard.at(-1)!;
          expect(heard.broken).toStrictEqual([]);
          expect(heard.conversation.map(gist)).toStrictEqual(await wholeGist(asked));
          earlier.push(history);
          const results = reply.content.flatMap((part) => (part.type === 'tool_call' ? [toolMessage(`result of ${part.id}`, { toolCallId: part.id, name: 'f' })] : []));
          history = [...history, reply, ...results, ...(results.length > 0 ? [] : [userMessage(`go on from ${reply.source?.responseId}`)])];
        }
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  function suffer(history: readonly Message[], happens: Fate, earlier: readonly (readonly Message[])[]): readonly Message[] {
    switch (happens.type) {
      case 'copy':
        return JSON.parse(JSON.stringify(history)) as readonly Message[];
      case 'foreign':
        return [...history, assistantMessage('theirs', { source: { provider: 'other', modelId: 'm', responseId: 'resp_1' } }), userMessage('back to you')];
      case 'fork':
        return earlier[happens.at % Math.max(1, earlier.length)] ?? history;
      case 'edit':
        return history.map((message, at) => (at === happens.at && message.role === 'user' ? userMessage(`edited ${happens.at}`) : message));
      case 'drop': {
        // A compaction up to a user's message.
        const cut = history.findIndex((message, at) => at >= happens.at && message.role === 'user');
        return cut === -1 ? history : [userMessage('summary', { origin: 'summary' }), ...history.slice(cut)];
      }
      default:
        return history;
    }
  }

  async function wholeGist(messages: readonly Message[]): Promise<readonly unknown[]> {
    const fake = fakeServer(OK);
    await responsesOn(fake).chat(request(messages));
    return (fake.sent[0]!.body['input'] as readonly Item[]).map(gist);
  }

  /** An item without what only tells the server which one it is. */
  function gist(item: Item): unknown {
    const { type = 'message', role, content, encrypted_content: secret, call_id: callId, arguments: input, output } = item;
    const text = Array.isArray(content) ? (content as readonly Item[]).map((part) => part['text']).join('') : content;
    return { type, role, text, secret, callId, input, output };
  }
});
