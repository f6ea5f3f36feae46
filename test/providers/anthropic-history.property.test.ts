/**
 * Messages histories, as properties: whatever a conversation holds, a strict server takes it; and each request begins with
 * the one before it.
 */
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { assistantMessage, type Message, toolMessage, userMessage } from 'turnloop';
import type { AnthropicOptions } from 'turnloop/providers/anthropic';
import { scenarios } from '../properties/scenario.ts';
import { checkMessagesRequest } from '../support/anthropic-rules.ts';
import { conversations, type ConversationTarget, requestSizes, transcriptHistories } from '../support/conversations.ts';
import { MODEL, messagesOf, messagesOn, OK, SOURCE } from './anthropic-support.ts';
import { fakeServer, request } from './fake-server.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 1000);

const SEARCH = [
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
  { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ type: 'web_search_result', url: 'https://h.example', title: 't', encrypted_content: 'E', page_age: null }] },
];
const REMOTE = [
  { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'ask', server_name: 's', input: {} },
  { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', is_error: false, content: [{ type: 'text', text: 'r' }] },
];

/** What the adapter attaches to parts. */
const TARGET: ConversationTarget = {
  provider: SOURCE.provider,
  modelId: MODEL,
  thinkingData: [{ model: MODEL }, { model: 'claude-other' }],
  textData: [{ model: MODEL, extra: { citations: [{ type: 'char_location', cited_text: 'c', document_index: 0, document_title: null, start_char_index: 0, end_char_index: 1 }] } }],
  callData: [{ model: MODEL, extra: { caller: { type: 'direct' } } }],
  providerRuns: [SEARCH, REMOTE],
};
const conversation = conversations(TARGET);

/** Ids of the provider's own calls are its own: a conversation that repeats a sample has it twice. */
function broken(body: unknown): readonly string[] {
  return checkMessagesRequest(body).filter((rule) => !/an id that is used twice: (?:srv|mcp)toolu_1/.test(rule));
}

/** A request without its marks and without what closes it: what the next one begins with. */
function beginning(text: string): string {
  const bare = withoutMarks(text);
  return bare.slice(0, bare.lastIndexOf(']}],"'));
}

function withoutMarks(text: string): string {
  return text.replaceAll(/,"cache_control":\{"type":"ephemeral"(?:,"ttl":"1h")?\}/g, '');
}

describe('Messages histories', () => {
  it.each<readonly [string, Partial<AnthropicOptions>]>([
    ['as it is', {}],
    ['with a budget to think', { thinkingMode: 'budget' }],
    ['with thinking as it sees fit', { thinkingMode: 'adaptive', promptCache: '1h' }],
    ['without media', { capabilities: { mediaTypes: [] }, promptCache: 'off' }],
  ])('are taken by a strict server, %s', async (_name, options) => {
    await fc.assert(
      fc.asyncProperty(conversation, async (messages) => {
        const before = JSON.stringify(messages);
        const fake = fakeServer(OK);

        await messagesOn(fake, options).chat(request(messages, { systemPrompt: 's', tools: [{ name: 'f', description: 'd', inputSchema: { type: 'object' } }] }));

        expect(broken(fake.sent[0]?.body)).toStrictEqual([]);
        expect(JSON.stringify(messages)).toBe(before);
      }),
      { numRuns: Math.ceil(RUNS / 2) },
    );
  });

  it('law-2: are taken whatever prefix of whatever transcript they are folded from', async () => {
    await fc.assert(
      fc.asyncProperty(scenarios(), fc.boolean(), async (scenario, mixed) => {
        const fake = fakeServer(OK);
        const llm = messagesOn(fake);
        for (const history of await transcriptHistories(scenario, TARGET, { mixed })) await llm.chat(request(history));

        for (const { body } of fake.sent) expect(broken(body)).toStrictEqual([]);
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('law-11: each request begins with the one before it, cache marks aside, whichever adapter object writes it', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, async (messages) => {
        const fake = fakeServer(OK);
        const llm = messagesOn(fake);
        for (const size of requestSizes(messages)) await llm.chat(request(messages.slice(0, size), { systemPrompt: 's' }));
        await messagesOn(fake).chat(request(messages, { systemPrompt: 's' }));

        for (const [at, { text }] of fake.sent.slice(1).entries()) {
          const before = fake.sent[at]!;
          // A reply at the end is written as the end needs it.
          if (messagesOf(before).at(-1)?.role === 'user') expect(withoutMarks(text).startsWith(beginning(before.text))).toBe(true);
        }
        expect(fake.sent.at(-1)?.text).toBe(fake.sent.at(-2)?.text);
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('PC: has its marks on the newest user turns, whatever stands there', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, async (messages) => {
        const fake = fakeServer(OK);
        await messagesOn(fake).chat(request(messages.filter((message) => message.role !== 'user' || message.transient !== true), { systemPrompt: 's' }));
        const users = messagesOf(fake.sent[0]!).filter(({ role }) => role === 'user');
        const marked = users.map(({ content }) => content.map((each) => 'cache_control' in each));

        for (const [at, blocks] of marked.entries()) expect(blocks.indexOf(true)).toBe(at < users.length - 2 ? -1 : blocks.length - 1);
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('law-10: a step costs what is new in it', async () => {
    const fake = fakeServer(OK);
    const llm = messagesOn(fake);
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

  it('leaves transient messages at the tail out of what is kept, and out of the marks', async () => {
    const fake = fakeServer(OK);
    const llm = messagesOn(fake);
    const [first, second] = [userMessage('a'), assistantMessage('b')];
    await llm.chat(request([first, userMessage('reminder 1', { transient: true })]));
    await llm.chat(request([first, second, userMessage('reminder 2', { transient: true })]));
    await llm.chat(request([first, second]));

    const texts = fake.sent.map((sent) => messagesOf(sent).map(({ content }) => content.map((each) => [each['text'], 'cache_control' in each])));
    expect(texts).toStrictEqual([
      [[['a', true], ['reminder 1', false]]],
      [[['a', true]], [['b', false]], [['reminder 2', false]]],
      [[['a', true]], [['b', false]]],
    ]);
  });
});
