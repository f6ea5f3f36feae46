/** Messages by a mock server of somebody else's, over HTTP: replies, tools, failures, and what the server was asked. */
import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { assistantMessage, createEventDispatcher, createTranscript, type LLMDelta, runTurn, type Tool, toolMessage, type TurnResult, userMessage } from 'turnloop';
import { anthropic, type AnthropicOptions } from 'turnloop/providers/anthropic';
import { errorOf, request } from './fake-server.ts';

// Strict: it refuses what the real server refuses about thinking, and whatever no answer was made for.
const mock = new LLMock({ port: 0, logLevel: 'silent', strict: true });

beforeAll(() => mock.start());
beforeEach(() => {
  mock.clearFixtures();
  mock.clearRequests();
});
afterAll(() => mock.stop());

function llm(options: Partial<AnthropicOptions> = {}): ReturnType<typeof anthropic> {
  return anthropic({ model: 'claude-sonnet-4-5', apiKey: 'sk-ant-mock', baseUrl: `${mock.url}/v1`, ...options });
}

function ask(text: string, onDelta?: (delta: LLMDelta) => void): Parameters<ReturnType<typeof anthropic>['chat']>[0] {
  return request([userMessage(text)], { onDelta });
}

const weather: Tool = {
  name: 'get_weather',
  description: 'Weather.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: (input) => `sunny in ${(input as { city: string }).city}`,
};

/** Plays a turn with two calls side by side. */
async function play(options: Partial<AnthropicOptions>, reasoning?: string): Promise<TurnResult> {
  const calls = ['Paris', 'London'].map((city) => ({ name: 'get_weather', arguments: JSON.stringify({ city }) }));
  mock.on({ userMessage: 'weather', hasToolResult: false }, { content: 'I look.', toolCalls: calls, ...(reasoning !== undefined && { reasoning }) });
  mock.on({ userMessage: 'weather', hasToolResult: true }, { content: 'Both are sunny.' });
  const transcript = createTranscript();
  const dispatchEvent = createEventDispatcher({ record: transcript.record, emit: () => {} });
  return runTurn({ llm: llm({ systemPrompt: 'Be brief.', ...options }), tools: [weather], buildMessages: transcript.buildMessages, dispatchEvent, input: 'weather' });
}

describe('a mock server', () => {
  it.each([true, false])('replies in text, streamed: %s', async (isStreamed) => {
    mock.onMessage('hello', { content: 'Hello from far away, 你好 🏔️', usage: { input_tokens: 11, output_tokens: 7 } }, { chunkSize: 3 });
    let text = '';
    const response = await llm({ stream: isStreamed }).chat(ask('hello', (delta) => (text += delta.type === 'text' ? delta.text : '')));

    expect(response).toMatchObject({ content: [{ type: 'text', text: 'Hello from far away, 你好 🏔️' }], stopReason: 'end_turn', usage: { inputTokens: 11, outputTokens: 7 } });
    expect(text).toBe('Hello from far away, 你好 🏔️');
    expect(mock.getLastRequest()!.path).toBe('/v1/messages');
  });

  it('replies with thinking', async () => {
    mock.onMessage('think', { content: 'Done.', reasoning: 'First this, then that.' }, { chunkSize: 5 });

    expect((await llm().chat(ask('think'))).content).toMatchObject([{ type: 'thinking', text: 'First this, then that.', signature: expect.stringMatching(/./) }, { type: 'text', text: 'Done.' }]);
  });

  it.each([
    ['length', 'max_tokens'],
    ['stop', 'end_turn'],
  ])('ends by %s', async (finishReason, stopReason) => {
    mock.onMessage('end', { content: 'So far', finishReason });

    expect(await llm().chat(ask('end'))).toMatchObject({ stopReason, content: [{ text: 'So far' }] });
  });

  it('B3, BR-076: plays a turn with parallel tools, and gets their results in order', async () => {
    const result = await play({});
    const asked = mock.getRequests().map(({ body }) => (body as { messages: { role: string; content: unknown; tool_calls?: unknown[] }[] }).messages);

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'Both are sunny.' });
    expect(asked[1]!.map(({ role }) => role)).toStrictEqual(['system', 'user', 'assistant', 'tool', 'tool']);
    expect(asked[1]![2]!.tool_calls).toHaveLength(2);
    expect(asked[1]!.slice(3).map(({ content }) => content)).toStrictEqual(['sunny in Paris', 'sunny in London']);
  });

  it('BR-028: which wants signed thinking first in a reply that is gone on with, gets it', async () => {
    expect(await play({ thinkingBudget: 2048 }, 'Two cities.')).toMatchObject({ stopReason: 'end_turn', steps: 2 });
    expect(mock.getRequests().map(({ response }) => response.status)).toStrictEqual([200, 200]);
  });

  it('XC2: is not asked to think behind a reply of another model that did not', async () => {
    mock.on({ hasToolResult: true }, { content: 'Sunny.' });
    const history = [
      userMessage('weather'),
      assistantMessage([{ type: 'tool_call', id: 'c1', name: 'get_weather', inputText: '{}' }], { source: { provider: 'openai', modelId: 'gpt' } }),
      toolMessage('sunny', { toolCallId: 'c1', name: 'get_weather' }),
    ];

    expect(await llm({ thinkingBudget: 2048 }).chat(request(history, { tools: [weather] }))).toMatchObject({ content: [{ text: 'Sunny.' }] });
  });

  it.each([
    [429, 'rate_limit_error', 'rate_limit', true],
    [529, 'overloaded_error', 'overloaded', true],
    [500, 'api_error', 'server', true],
    [401, 'authentication_error', 'auth', false],
    [400, 'invalid_request_error', 'invalid_request', false],
  ])('EE1: refuses with %i %s', async (status, type, kind, retryable) => {
    mock.onMessage('fail', { error: { message: 'not now', type }, status });

    expect(await errorOf(llm().chat(ask('fail')))).toMatchObject({ kind, retryable, status, message: expect.stringContaining('not now') });
  });

  it('EE6: says when to come again', async () => {
    mock.onMessage('fail', { error: { message: 'slow down', type: 'rate_limit_error' }, status: 429, retryAfter: 7 });

    expect(await errorOf(llm().chat(ask('fail')))).toMatchObject({ kind: 'rate_limit', retryAfterMs: 7000 });
  });

  it('B7: hangs up in the middle', async () => {
    mock.onMessage('cut', { content: 'A long answer that is never finished' }, { chunkSize: 4, truncateAfterChunks: 4 });

    // How much arrives before the connection breaks is up to the network.
    expect(await errorOf(llm().chat(ask('cut')))).toMatchObject({ kind: 'network', retryable: true });
  });

  it('GN10: is let go of in the middle', async () => {
    mock.onMessage('slow', { content: 'A slow answer' }, { chunkSize: 1, latency: 20 });
    const controller = new AbortController();
    const chat = llm().chat({ ...ask('slow', () => controller.abort()), signal: controller.signal });

    expect(await errorOf(chat)).toMatchObject({ kind: 'aborted', partial: [{ type: 'text', text: 'A' }] });
  });
});
