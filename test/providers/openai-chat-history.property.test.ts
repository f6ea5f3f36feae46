/**
 * Chat Completions histories, as properties: whatever a conversation holds, a strict server takes it; and each request
 * begins with the one before it.
 */
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  assistantMessage,
  type AssistantPart,
  type Message,
  type ThinkingPart,
  toolMessage,
  type ToolResultPart,
  userMessage,
  type UserMessageOrigin,
} from 'turnloop';
import { checkChatRequest } from '../support/chat-rules.ts';
import { chatOn, delta, events, fakeServer, finish, request } from './fake-server.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 1000);
const OK = { body: events([delta({ content: 'ok' }), finish('stop')]) };

const text = fc.oneof(fc.string({ maxLength: 12 }), fc.string({ unit: 'binary', maxLength: 6 }), fc.constantFrom('', ' \n', 'a\ud83d', '\u0000', 'plain words'));
const media = fc.constantFrom<ToolResultPart>(
  { type: 'media', mediaType: 'image/png', data: 'AAAA' },
  { type: 'media', mediaType: 'audio/wav', data: 'AAAA' },
  { type: 'media', mediaType: 'video/mp4', url: 'https://h/v' },
);
const userParts = fc.array(fc.oneof(text.map((each) => ({ type: 'text' as const, text: each })), media), { maxLength: 3 });
const user = fc.record({ parts: userParts, origin: fc.constantFrom<UserMessageOrigin>('user', 'steering', 'reminder') });

const source = fc.constantFrom({ provider: 'openai', modelId: 'test-model' }, { provider: 'openai', modelId: 'older' }, { provider: 'anthropic', modelId: 'claude' }, undefined);
const thinking = fc.record({ text, providerData: fc.constantFrom(undefined, { model: 'test-model', field: 'reasoning' }, { model: 'test-model', field: 'content' }, { model: 'test-model', details: [{ type: 'reasoning.encrypted', data: 'E' }] }) });
const call = fc.record({
  name: fc.oneof(fc.constantFrom('read', 'a.b', 'toString', '', '__proto__'), text),
  inputText: fc.oneof(fc.constantFrom('', '{}', '{"a":1}', '[1]', '{"a":', '{"a":"\ud83d"}'), text),
  providerId: fc.option(fc.oneof(fc.constantFrom('call_0', 'functions.x:0', '', 'EscTeQY62'), text, fc.string({ minLength: 41, maxLength: 60 })), { nil: undefined }),
  result: fc.array(fc.oneof(text.map((each) => ({ type: 'text' as const, text: each })), media), { maxLength: 3 }),
});
const step = fc.record({ thoughts: fc.array(thinking, { maxLength: 2 }), said: fc.array(text, { maxLength: 2 }), calls: fc.array(call, { maxLength: 3 }), source });
const conversation = fc.array(fc.record({ input: user, steps: fc.array(step, { maxLength: 4 }) }), { minLength: 1, maxLength: 4 });

type Conversation = typeof conversation extends fc.Arbitrary<infer Value> ? Value : never;

/** A history whose calls and results are paired, as the projection makes it; the rest is as wild as it comes. */
function toMessages(turns: Conversation): Message[] {
  let count = 0;
  const messages: Message[] = [userMessage('first')];
  for (const { input, steps } of turns) {
    messages.push(userMessage(input.parts, { origin: input.origin }));
    for (const { thoughts, said, calls, source: from } of steps) {
      const named = calls.map((each) => ({ ...each, id: `call_own${(count += 1)}` }));
      const parts: AssistantPart[] = [
        ...thoughts.map((each): ThinkingPart => ({ type: 'thinking', ...each })),
        ...said.map((each): AssistantPart => ({ type: 'text', text: each })),
        ...named.map(({ result: _result, ...each }): AssistantPart => ({ type: 'tool_call', ...each })),
      ];
      messages.push(assistantMessage(parts, { source: from }));
      for (const { id, name, result } of named) messages.push(toolMessage(result, { toolCallId: id, name }));
    }
  }
  return messages;
}

/** After how many messages each request of the conversation is made: before every reply. */
function requestSizes(messages: readonly Message[]): number[] {
  return messages.flatMap((message, at) => (message.role === 'assistant' ? [at] : [])).concat(messages.length);
}

describe('Chat Completions histories', () => {
  it.each(['common', 'nine-characters'] as const)('are taken by a strict server, with %s ids', async (idFormat) => {
    await fc.assert(
      fc.asyncProperty(conversation, fc.boolean(), async (turns, takesMedia) => {
        const messages = toMessages(turns);
        const before = JSON.stringify(messages);
        const fake = fakeServer(OK);

        await chatOn(fake, { idFormat, capabilities: takesMedia ? {} : { mediaTypes: [] } }).chat(request(messages));

        expect(checkChatRequest(fake.sent[0]?.body)).toStrictEqual([]);
        expect(JSON.stringify(messages)).toBe(before);
      }),
      { numRuns: RUNS },
    );
  });

  it('law-11: each request begins with the one before it, whichever adapter object writes it', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, async (turns) => {
        const messages = toMessages(turns);
        const fake = fakeServer(OK);
        const llm = chatOn(fake);
        for (const size of requestSizes(messages)) await llm.chat(request(messages.slice(0, size), { systemPrompt: 's' }));
        await chatOn(fake).chat(request(messages, { systemPrompt: 's' }));

        const texts = fake.sent.map((each) => each.text);
        for (const [at, each] of texts.slice(1).entries()) expect(each.startsWith(texts[at]!.slice(0, -2))).toBe(true);
        expect(texts.at(-1)).toBe(texts.at(-2));
      }),
      { numRuns: RUNS / 4 },
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
