/** Messages requests: thinking that the server does not take back does not end a conversation. Black-box. */
import { describe, expect, it } from 'vitest';
import { assistantMessage, type AssistantPart, createEventDispatcher, createTranscript, type LLMError, type Message, runTurn, userMessage } from 'turnloop';
import type { AnthropicOptions } from 'turnloop/providers/anthropic';
import { call, callBlock, messageEnd, messagesOf, messagesOn, messageStart, named, OK, result, textBlock, thinkingBlock, tool } from './anthropic-support.ts';
import { errorOf, type FakeAnswer, fakeServer, request, type SentRequest } from './fake-server.ts';

const BETA = 'thinking-binding-controls-2026-08-01';
const DROP = { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } };

const BOUND =
  'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block". Content before this block differs from when it was created, first at `messages.0.content.0`.';
const SIGNATURE = 'messages.1.content.0: Invalid `signature` in `thinking` block';
const MODIFIED = 'messages.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.';
const EXPECTED = 'messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.';
const UNKNOWN = [
  'thinking.adaptive.block_binding: Extra inputs are not permitted',
  `Unexpected value(s) \`${BETA}\` for the \`anthropic-beta\` header. Please consult our documentation.`,
];

function refusal(message: string): FakeAnswer {
  return { status: 400, body: JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } }) };
}

function thought(model: string, signature: string, ...parts: readonly AssistantPart[]): Message {
  return assistantMessage([{ type: 'thinking', text: 'hm', signature }, ...parts], { source: { provider: 'anthropic', modelId: model } });
}

function inWork(model: string): Message[] {
  return [userMessage('a'), thought(model, 'S1', call('c1')), result('c1')];
}

function goneOn(model: string): Message[] {
  return [...inWork(model), thought(model, 'S2', call('c2')), result('c2')];
}

/** The signatures that a request sends back. */
function signatures(sent: SentRequest): readonly unknown[] {
  return messagesOf(sent).flatMap(({ content }) => content.flatMap(({ type, signature }) => (type === 'thinking' ? [signature] : [])));
}

function summary(sent: SentRequest): readonly unknown[] {
  return [sent.body['thinking'], sent.headers.get('anthropic-beta'), signatures(sent)];
}

describe('thinking whose conversation was changed before it', () => {
  it.each(['claude-sonnet-5-5', 'claude-opus-5-5', 'claude-haiku-5-5', 'claude-fable-5-1', 'claude-mythos-5-2', 'anthropic.claude-opus-6-v1:0'])(
    'is sent once more to %s, which is told to leave it out, then and later',
    async (model) => {
      const fake = fakeServer(refusal(BOUND), OK);
      const llm = messagesOn(fake, { model, betas: ['mine'] });
      const failures: LLMError[] = [];
      await llm.chat(request(inWork(model), { onAttemptFailed: ({ error }) => void failures.push(error) }));
      await llm.chat(request(goneOn(model)));

      expect(fake.sent.map(summary)).toStrictEqual([
        [undefined, 'mine', ['S1']],
        [DROP, `mine,${BETA}`, ['S1']],
        [DROP, `mine,${BETA}`, ['S1', 'S2']],
      ]);
      expect(failures).toMatchObject([{ kind: 'invalid_history' }]);
    },
  );

  it('keeps what else is said of how to think', async () => {
    const fake = fakeServer(refusal(BOUND), OK);
    await messagesOn(fake, { model: 'claude-sonnet-5-5', thinkingEffort: 'high', thinkingDisplay: 'summarized' }).chat(request(inWork('claude-sonnet-5-5')));

    expect(fake.sent[1]?.body).toMatchObject({ thinking: { ...DROP, display: 'summarized' }, output_config: { effort: 'high' } });
  });

  it.each(UNKNOWN)('is left out where the server cannot be told to: %s', async (message) => {
    const fake = fakeServer(refusal(BOUND), refusal(message), OK);
    const llm = messagesOn(fake, { model: 'claude-sonnet-5-5' });
    await llm.chat(request(inWork('claude-sonnet-5-5')));

    expect(fake.sent.map(summary)).toStrictEqual([
      [undefined, null, ['S1']],
      [DROP, BETA, ['S1']],
      [undefined, null, []],
    ]);
  });

  it.each<readonly [string, Partial<AnthropicOptions>]>([
    ['an older model', { model: 'claude-opus-4-6' }],
    ['a model that thinks between tools only', { model: 'claude-sonnet-5-5', thinkingMode: 'off' }],
    ['a host that says itself how to think', { model: 'claude-sonnet-5-5', body: { thinking: { type: 'adaptive' } } }],
    ['a model without a version', { model: 'claude-opus-latest' }],
  ])('is left out where that cannot be said: %s', async (_which, options) => {
    const fake = fakeServer(refusal(BOUND), OK);
    await messagesOn(fake, options).chat(request(inWork(options.model!)));

    expect(fake.sent.map(signatures)).toStrictEqual([['S1'], []]);
    expect(fake.sent[1]?.headers.get('anthropic-beta')).toBeNull();
  });
});

describe('thinking that is refused', () => {
  it.each([SIGNATURE, MODIFIED])('law-11: is left out from then on, and new thinking is not: %s', async (message) => {
    const fake = fakeServer(refusal(message), OK);
    const llm = messagesOn(fake, { model: 'claude-opus-4-6', thinkingEffort: 'high', promptCache: 'off' });
    const messages = inWork('claude-opus-4-6');
    await llm.chat(request(messages));
    await llm.chat(request([...messages, thought('claude-opus-4-6', 'S2', call('c2')), result('c2')]));

    expect(fake.sent.map(signatures)).toStrictEqual([['S1'], [], ['S2']]);
    const [, second, third] = fake.sent.map(({ text }) => text);
    expect(third!.startsWith(second!.slice(0, second!.lastIndexOf(']}]')))).toBe(true);
  });

  it('goes with thinking turned off where the reply in work lost its own', async () => {
    const fake = fakeServer(refusal(SIGNATURE), OK);
    await messagesOn(fake, { model: 'claude-sonnet-4-5', thinkingBudget: 4096 }).chat(request(inWork('claude-sonnet-4-5')));

    expect(fake.sent.map(({ body }) => body['thinking'])).toStrictEqual([{ type: 'enabled', budget_tokens: 4096 }, undefined]);
  });

  it('is no more asked for behind a reply without any, by a server that turns out to be that strict', async () => {
    const fake = fakeServer(refusal(EXPECTED), OK);
    const llm = messagesOn(fake, { model: 'my-deployment', thinkingBudget: 4096 });
    const bare = [userMessage('a'), assistantMessage([call('c1')]), result('c1')];
    for (const messages of [bare, bare, [userMessage('new')]]) await llm.chat(request(messages));

    expect(fake.sent.map(({ body }) => (body['thinking'] as { type: string }).type)).toStrictEqual(['enabled', 'disabled', 'disabled', 'enabled']);
  });

  it.each([
    ['there is none', [userMessage('a')], 1],
    ['it is refused without any as well', inWork('claude-opus-4-6'), 2],
  ])('is an error where %s', async (_why, messages, count) => {
    const fake = fakeServer(refusal(SIGNATURE));
    const error = await errorOf(messagesOn(fake, { model: 'claude-opus-4-6' }).chat(request(messages)));

    expect(error).toMatchObject({ kind: 'invalid_history', status: 400, message: expect.stringContaining('Invalid `signature`') as string });
    expect(fake.sent).toHaveLength(count);
  });

  it.each([refusal('max_tokens: too large'), { status: 500, body: SIGNATURE }])('is not taken for it: %j', async (answer) => {
    const fake = fakeServer(answer);
    await errorOf(messagesOn(fake, { model: 'claude-opus-4-6' }).chat(request(inWork('claude-opus-4-6'))));

    expect(fake.sent).toHaveLength(1);
  });
});

/** A server that takes thinking only behind what it was made behind, and thinks in each reply. */
function strictServer(...replies: readonly (readonly unknown[])[]): { readonly fetch: typeof globalThis.fetch; readonly statuses: number[] } {
  const made = new Map<unknown, string>();
  const statuses: number[] = [];
  const fetch = async (_url: unknown, init?: RequestInit): Promise<Response> => {
    const body = JSON.parse(init?.body as string) as { tools: unknown; messages: { content: Record<string, unknown>[] }[]; thinking?: object };
    const before = (count: number): string => JSON.stringify([body.tools, body.messages.slice(0, count)]);
    const moved = body.messages.some(({ content }, at) => content.some(({ signature }) => signature !== undefined && made.get(signature) !== before(at)));
    if (moved && JSON.stringify(body.thinking) !== JSON.stringify(DROP)) {
      statuses.push(400);
      return new Response(refusal(BOUND).body as string, { status: 400 });
    }
    statuses.push(200);
    const signature = `S${made.size}`;
    made.set(signature, before(body.messages.length));
    return new Response(named([messageStart(), ...thinkingBlock(0, 'hm', signature), ...(replies[made.size - 1] ?? []), ...messageEnd('end_turn')]));
  };
  return { fetch, statuses };
}

it('a turn goes on whose reminders are for one request only', async () => {
  const server = strictServer(callBlock(1, 'c1', '{}'), callBlock(1, 'c2', '{}'), textBlock(1, 'done'));
  const transcript = createTranscript();
  let asked = 0;
  const turn = await runTurn({
    llm: messagesOn(server, { model: 'claude-sonnet-5-5', promptCache: 'off' }),
    tools: [{ ...tool('f'), execute: () => 'r' }],
    buildMessages: () => [...transcript.buildMessages(), userMessage(`It is ${(asked += 1)} o'clock.`, { origin: 'reminder', transient: true })],
    dispatchEvent: createEventDispatcher({ record: transcript.record, emit: () => {} }),
    input: [userMessage('go')],
  });

  expect(turn).toMatchObject({ stopReason: 'end_turn', text: 'done', steps: 3 });
  expect(server.statuses).toStrictEqual([200, 400, 200, 200]);
});
