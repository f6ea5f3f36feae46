/**
 * AI SDK histories, as properties: whatever a conversation holds, a strict model takes its prompt; and each prompt
 * begins with the one before it, the very same objects.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assistantMessage, type Message, toolMessage, userMessage } from 'turnloop';
import { aiSdk } from 'turnloop/providers/ai-sdk';
import { scenarios } from '../properties/scenario.ts';
import { conversations, type ConversationTarget, requestSizes, transcriptHistories } from '../support/conversations.ts';
import { type FakeModelOptions, okModel, type Version } from './ai-sdk-models.ts';
import { checkPrompt } from './ai-sdk-rules.ts';
import { request } from './fake-server.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 1000);
const MODEL = 'fake-model';

/** What the adapter attaches to parts. */
const TARGET: ConversationTarget = {
  provider: 'fake.chat',
  modelId: MODEL,
  thinkingData: [{ model: MODEL }, { model: MODEL, metadata: { anthropic: { signature: 'S' } } }, { model: `${MODEL}-older`, metadata: { anthropic: { signature: 'S' } } }],
  textData: [{ model: MODEL, metadata: { openai: { itemId: 'msg_1' } } }],
  callData: [{ model: MODEL, metadata: { google: { thoughtSignature: 'S' } } }],
  providerRuns: [
    [
      { model: MODEL, block: { type: 'tool-call', toolCallId: 'srv_1', toolName: 'web_search', input: '{"query":"q"}', providerExecuted: true } },
      { model: MODEL, block: { type: 'tool-result', toolCallId: 'srv_1', toolName: 'web_search', result: [{ url: 'https://h' }] } },
      { model: MODEL, block: { type: 'source', sourceType: 'url', id: 's', url: 'https://h' } },
    ],
    [{ model: MODEL, block: { type: 'media-data', providerMetadata: { google: { thoughtSignature: 'T' } } } }],
    [{ model: MODEL, block: { type: 'custom', kind: 'openai.compaction', providerMetadata: { openai: { itemId: 'c' } } } }],
    [{ model: MODEL, block: { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } } }],
  ],
};
const conversation = conversations(TARGET);
const surroundings = fc.record({
  version: fc.constantFrom<Version>('v2', 'v3', 'v4'),
  supportedUrls: fc.constantFrom<NonNullable<FakeModelOptions['supportedUrls']>>({}, { '*': [/./] }, { 'image/*': [/^https:/] }),
  llm: fc.record({
    toolResultMedia: fc.constantFrom('result' as const, 'user' as const),
    thinkingHistory: fc.constantFrom('keep' as const, 'drop' as const),
    capabilities: fc.constantFrom({}, { mediaTypes: [] }, { mediaTypes: ['image/', 'application/pdf'] }),
  }),
});

describe('AI SDK histories', () => {
  it('are taken by a strict model of each specification', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, surroundings, async (messages, { llm: options, ...model }) => {
        const before = JSON.stringify(messages);
        const { model: asked, llm } = okModel(model, options);

        await llm.chat(request(messages, { systemPrompt: 's' }));

        expect(checkPrompt(asked.calls[0]?.prompt, model.version)).toStrictEqual([]);
        expect(JSON.stringify(messages)).toBe(before);
      }),
      { numRuns: RUNS },
    );
  });

  it('law-2: are taken whatever prefix of whatever transcript they are folded from', async () => {
    await fc.assert(
      fc.asyncProperty(scenarios(), fc.boolean(), async (scenario, mixed) => {
        const { model, llm } = okModel();
        for (const history of await transcriptHistories(scenario, TARGET, { mixed })) await llm.chat(request(history));

        for (const { prompt } of model.calls) expect(checkPrompt(prompt, 'v3')).toStrictEqual([]);
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('law-11: each prompt begins with the one before it, and with equal ones whichever adapter object writes it', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, surroundings, async (messages, { llm: options, ...model }) => {
        const { model: asked, llm } = okModel(model, options);
        for (const size of requestSizes(messages)) await llm.chat(request(messages.slice(0, size), { systemPrompt: 's' }));
        await aiSdk(asked, options).chat(request(messages, { systemPrompt: 's' }));

        const prompts = asked.calls.map(({ prompt }) => prompt);
        for (const [at, prompt] of prompts.slice(1, -1).entries()) {
          for (const [index, message] of prompts[at]!.entries()) expect(prompt[index]).toBe(message);
        }
        expect(prompts.at(-1)).toStrictEqual(prompts.at(-2));
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });

  it('law-11: hands out nothing that changes when the history goes on, in the middle of results neither', async () => {
    const calls = ['a', 'b'].map((id) => ({ type: 'tool_call' as const, id, name: 'f', inputText: '{}' }));
    const messages = [userMessage('go'), assistantMessage(calls), ...['a', 'b'].map((id) => toolMessage('r', { toolCallId: id, name: 'f' })), userMessage('more')];
    const { model, llm } = okModel();
    const seen: string[] = [];
    for (let size = 1; size <= messages.length; size += 1) {
      await llm.chat(request(messages.slice(0, size)));
      seen.push(JSON.stringify(model.calls.at(-1)?.prompt));
    }

    expect(model.calls.map(({ prompt }) => JSON.stringify(prompt))).toStrictEqual(seen);
    expect(model.calls[4]?.prompt.slice(0, 3)).toStrictEqual(model.calls[3]?.prompt);
  });

  it('law-10: write each message once, also when the history changes around it', async () => {
    const counted = { count: 0 };
    const counting = (message: Message): Message =>
      new Proxy(message, {
        get(target, key, receiver) {
          if (key === 'content') counted.count += 1;
          return Reflect.get(target, key, receiver) as unknown;
        },
      });
    const messages = Array.from({ length: 20 }, (_, at) => counting(userMessage(`message ${at}`)));
    const { llm } = okModel();
    await llm.chat(request(messages));
    const afterFirst = counted.count;
    // Compacted, forked, and with something new at the head.
    await llm.chat(request(messages.slice(5)));
    await llm.chat(request([userMessage('memory', { transient: true }), ...messages]));

    expect(counted.count).toBe(afterFirst);
  });

  it('keep nothing of transient messages at the tail', async () => {
    const { model, llm } = okModel();
    const [first, second] = [userMessage('a'), assistantMessage('b')];
    await llm.chat(request([first, userMessage('reminder 1', { transient: true })]));
    await llm.chat(request([first, second, userMessage('reminder 2', { transient: true })]));
    await llm.chat(request([first, second]));

    expect(model.calls.map(({ prompt }) => prompt.map(({ content }) => (content as [{ text: string }])[0].text))).toStrictEqual([
      ['a', 'reminder 1'],
      ['a', 'b', 'reminder 2'],
      ['a', 'b'],
    ]);
  });
});

describe('the rules', () => {
  const user = { role: 'user', content: [{ type: 'text', text: 'a' }] };
  const call = { type: 'tool-call', toolCallId: 'c', toolName: 'f', input: {} };
  const result = { type: 'tool-result', toolCallId: 'c', toolName: 'f', output: { type: 'text', value: 'r' } };
  const withResult = (part: object): unknown => [user, { role: 'assistant', content: [call] }, { role: 'tool', content: [part] }];

  it('let a good prompt pass', () => {
    expect(checkPrompt([{ role: 'system', content: 's' }, ...(withResult(result) as object[]), user], 'v3')).toStrictEqual([]);
  });

  it.each<[string, unknown, Version?]>([
    ['no list', {}],
    ['a late system', [user, { role: 'system', content: 's' }]],
    ['a role', [{ role: 'developer', content: [] }]],
    ['empty content', [{ role: 'user', content: [] }]],
    ['a blank text', [{ role: 'user', content: [{ type: 'text', text: ' ' }] }]],
    ['an unsafe text', [{ role: 'user', content: [{ type: 'text', text: 'a\ud83d' }] }]],
    ['a call of a user', [{ role: 'user', content: [call] }]],
    ['an unknown field', [{ role: 'user', content: [{ type: 'text', text: 'a', signature: 'S' }] }]],
    ['odd options', [{ role: 'user', content: [{ type: 'text', text: 'a', providerOptions: { openai: 'x' } }] }]],
    ['thinking at the end', [user, { role: 'assistant', content: [{ type: 'reasoning', text: 'a' }] }]],
    ['a call without a result', [user, { role: 'assistant', content: [call] }, user]],
    ['a call at the end', [user, { role: 'assistant', content: [call] }]],
    ['a result without a call', [user, { role: 'tool', content: [result] }]],
    ['a result of another call', withResult({ ...result, toolCallId: 'd' })],
    ['a result of another name', withResult({ ...result, toolName: 'g' })],
    ['two results', [...(withResult(result) as object[]), { role: 'tool', content: [result] }]],
    ['a blank result', withResult({ ...result, output: { type: 'text', value: '' } })],
    ['a result of an older form', withResult({ ...result, output: { type: 'content', value: [{ type: 'media', data: 'AAAA', mediaType: 'image/png' }] } })],
    ['an id twice', [...(withResult(result) as object[]), ...(withResult(result) as object[])]],
    ['an illegal id', withResult({ ...result, toolCallId: 'a.b' })],
    ['an input that is a text', [user, { role: 'assistant', content: [{ ...call, input: '{}' }] }, { role: 'tool', content: [result] }]],
    ['a result that nobody ran', [user, { role: 'assistant', content: [result] }]],
    ['a file of the newer form', [{ role: 'user', content: [{ type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } }] }]],
    ['a file of the older form', [{ role: 'user', content: [{ type: 'file', mediaType: 'image/png', data: 'AAAA' }] }], 'v4'],
    ['a part of the newest', [user, { role: 'assistant', content: [{ type: 'custom', kind: 'a.b' }] }]],
  ])('find %s', (_name, prompt, version = 'v3') => {
    expect(checkPrompt(prompt, version)).not.toStrictEqual([]);
  });
});
