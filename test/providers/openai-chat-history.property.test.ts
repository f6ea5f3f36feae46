/**
 * Chat Completions histories, as properties: whatever a conversation holds, a strict server takes it; and each request
 * begins with the one before it.
 */
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { assistantMessage, type Message, toolMessage, userMessage } from 'turnloop';
import { scenarios } from '../properties/scenario.ts';
import { checkChatRequest } from '../support/chat-rules.ts';
import { conversations, type ConversationTarget, requestSizes, transcriptHistories } from '../support/conversations.ts';
import { chatOn, delta, events, fakeServer, finish, request } from './fake-server.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 1000);
const OK = { body: events([delta({ content: 'ok' }), finish('stop')]) };

/** What the adapter attaches to parts. */
const TARGET: ConversationTarget = {
  provider: 'openai',
  modelId: 'test-model',
  thinkingData: [
    { model: 'test-model', field: 'reasoning' },
    { model: 'test-model', field: 'content' },
    { model: 'test-model', details: [{ type: 'reasoning.encrypted', data: 'E' }] },
    { model: 'test-model', extra: { extra_content: { google: { thought_signature: 'S' } } } },
  ],
  callData: [{ model: 'test-model', extra_content: { google: { thought_signature: 'S' } } }],
};
const conversation = conversations(TARGET);

describe('Chat Completions histories', () => {
  it.each(['common', 'mistral'] as const)('are taken by a strict server, in the %s dialect', async (dialect) => {
    await fc.assert(
      fc.asyncProperty(conversation, fc.boolean(), async (messages, takesMedia) => {
        const before = JSON.stringify(messages);
        const fake = fakeServer(OK);

        await chatOn(fake, { dialect, capabilities: takesMedia ? {} : { mediaTypes: [] } }).chat(request(messages));

        expect(checkChatRequest(fake.sent[0]?.body)).toStrictEqual([]);
        expect(JSON.stringify(messages)).toBe(before);
      }),
      { numRuns: RUNS },
    );
  });

  it('law-2: are taken whatever prefix of whatever transcript they are folded from', async () => {
    await fc.assert(
      fc.asyncProperty(scenarios(), fc.boolean(), async (scenario, mixed) => {
        const fake = fakeServer(OK);
        const llm = chatOn(fake);
        for (const history of await transcriptHistories(scenario, TARGET, { mixed })) await llm.chat(request(history));

        for (const { body } of fake.sent) expect(checkChatRequest(body)).toStrictEqual([]);
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('law-11: each request begins with the one before it, whichever adapter object writes it', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, async (messages) => {
        const fake = fakeServer(OK);
        const llm = chatOn(fake);
        for (const size of requestSizes(messages)) await llm.chat(request(messages.slice(0, size), { systemPrompt: 's' }));
        await chatOn(fake).chat(request(messages, { systemPrompt: 's' }));

        const texts = fake.sent.map((each) => each.text);
        for (const [at, each] of texts.slice(1).entries()) expect(each.startsWith(texts[at]!.slice(0, -2))).toBe(true);
        expect(texts.at(-1)).toBe(texts.at(-2));
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('law-10: a step costs what is new in it', async () => {
    const fake = fakeServer(OK);
    const llm = chatOn(fake);
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

  it('writes each message once, also when the history changes around it', async () => {
    const counted = { count: 0 };
    const counting = (message: Message): Message =>
      new Proxy(message, {
        get(target, key, receiver) {
          if (key === 'content') counted.count += 1;
          return Reflect.get(target, key, receiver) as unknown;
        },
      });
    const messages = Array.from({ length: 20 }, (_, at) => counting(userMessage(`message ${at}`)));
    const llm = chatOn(fakeServer(OK));
    await llm.chat(request(messages));
    const afterFirst = counted.count;
    // Compacted, forked, and with something new at the head.
    await llm.chat(request(messages.slice(5)));
    await llm.chat(request([userMessage('memory', { transient: true }), ...messages]));

    expect(counted.count).toBe(afterFirst);
  });

  it('leaves transient messages at the tail out of what is kept', async () => {
    const fake = fakeServer(OK);
    const llm = chatOn(fake);
    const [first, second] = [userMessage('a'), assistantMessage('b')];
    await llm.chat(request([first, userMessage('reminder 1', { transient: true })]));
    await llm.chat(request([first, second, userMessage('reminder 2', { transient: true })]));
    await llm.chat(request([first, second]));

    expect(fake.sent.map(({ body }) => body.messages.map(({ content }) => content))).toStrictEqual([
      ['a', 'reminder 1'],
      ['a', 'b', 'reminder 2'],
      ['a', 'b'],
    ]);
  });
});
