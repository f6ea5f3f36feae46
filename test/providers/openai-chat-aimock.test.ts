/** Chat Completions by a mock server of somebody else's, over HTTP: replies, tools, failures, and what the server was asked. */
import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, type LLM, type LLMDelta, type LLMRequest, runTurn, type Tool, userMessage } from 'turnloop';
import { openAIChat, type OpenAIChatOptions } from 'turnloop/providers/openai-chat';
import { errorOf, request } from './fake-server.ts';

const mock = new LLMock({ port: 0, logLevel: 'silent' });

beforeAll(() => mock.start());
beforeEach(() => {
  mock.clearFixtures();
  mock.clearRequests();
});
afterAll(() => mock.stop());

function llm(options: Partial<OpenAIChatOptions> = {}): LLM {
  return openAIChat({ model: 'gpt-5-mini', apiKey: 'sk-test', baseUrl: `${mock.url}/v1`, ...options });
}

function ask(text: string, onDelta?: (delta: LLMDelta) => void): LLMRequest {
  return request([userMessage(text)], { onDelta });
}

const weather: Tool = {
  name: 'get_weather',
  description: 'Weather.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  execute: (input) => `sunny in ${(input as { city: string }).city}`,
};

describe('a mock server', () => {
  it.each([true, false])('replies in text, streamed: %s', async (isStreamed) => {
    mock.onMessage('hello', { content: 'Hello from far away, 你好 🏔️', usage: { prompt_tokens: 11, completion_tokens: 7 } }, { chunkSize: 3 });
    let text = '';
    const response = await llm({ stream: isStreamed }).chat(ask('hello', (delta) => (text += delta.type === 'text' ? delta.text : '')));

    expect(response).toMatchObject({ stopReason: 'end_turn', usage: { inputTokens: 11, outputTokens: 7 } });
    expect(response.content.filter(({ type }) => type !== 'thinking')).toStrictEqual([{ type: 'text', text: 'Hello from far away, 你好 🏔️' }]);
    expect(text).toBe('Hello from far away, 你好 🏔️');
    expect(mock.getLastRequest()!.path).toBe('/v1/chat/completions');
  });

  it('replies with thinking', async () => {
    mock.onMessage('think', { content: 'Done.', reasoning: 'First this, then that.' }, { chunkSize: 5 });
    let thinking = '';
    const response = await llm().chat(ask('think', (delta) => (thinking += delta.type === 'thinking' ? delta.text : '')));

    expect(response.content).toMatchObject([{ type: 'thinking', text: 'First this, then that.' }, { type: 'text', text: 'Done.' }]);
    expect(thinking).toBe('First this, then that.');
  });

  it('plays a turn with parallel tools, and gets their results in order', async () => {
    const calls = ['Paris', 'London'].map((city) => ({ name: 'get_weather', arguments: JSON.stringify({ city }) }));
    mock.on({ userMessage: 'weather', hasToolResult: false }, { content: 'I look.', toolCalls: calls });
    mock.on({ hasToolResult: true }, { content: 'Both are sunny.' });
    const { record, buildMessages } = createTranscript();
    const result = await runTurn({ llm: llm({ systemPrompt: 'Be brief.' }), tools: [weather], buildMessages, dispatchEvent: createEventDispatcher({ record }), input: 'weather' });
    const asked = mock.getRequests().map(({ body }) => (body as { messages: { role: string; content: unknown }[] }).messages);

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'Both are sunny.' });
    expect(asked[0]!.map(({ role }) => role)).toStrictEqual(['system', 'user']);
    expect(asked[1]!.map(({ role }) => role)).toStrictEqual(['system', 'user', 'assistant', 'tool', 'tool']);
    expect(asked[1]!.slice(-2).map(({ content }) => content)).toStrictEqual(['sunny in Paris', 'sunny in London']);
  });

  it.each([
    [429, 'rate_limit_error', 'rate_limit', true],
    [529, 'overloaded_error', 'overloaded', true],
    [503, 'server_error', 'overloaded', true],
    [500, 'server_error', 'server', true],
    [401, 'authentication_error', 'auth', false],
    [400, 'invalid_request_error', 'invalid_request', false],
  ])('EE1: refuses with %i %s', async (status, type, kind, retryable) => {
    mock.onMessage('fail', { error: { message: 'not now', type }, status });

    expect(await errorOf(llm().chat(ask('fail')))).toMatchObject({ kind, retryable, status, message: expect.stringContaining('not now') as string });
  });

  it('EE6: says when to come again', async () => {
    mock.onMessage('fail', { error: { message: 'slow down', type: 'rate_limit_error' }, status: 429, retryAfter: 7 });

    expect(await errorOf(llm().chat(ask('fail')))).toMatchObject({ kind: 'rate_limit', retryAfterMs: 7000 });
  });

  it('B7: hangs up in the middle', async () => {
    mock.onMessage('cut', { content: 'A long answer that is never finished' }, { chunkSize: 4, truncateAfterChunks: 6 });

    expect(await errorOf(llm().chat(ask('cut')))).toMatchObject({ kind: 'network', retryable: true });
  });

  it('GN10: is let go of in the middle', async () => {
    mock.onMessage('slow', { content: 'A slow answer' }, { chunkSize: 1, latency: 20 });
    const controller = new AbortController();
    const chat = llm().chat({ ...ask('slow', (delta) => (delta.type === 'text' ? controller.abort() : undefined)), signal: controller.signal });

    expect(await errorOf(chat)).toMatchObject({ kind: 'aborted', partial: expect.arrayContaining([{ type: 'text', text: 'A' }]) as unknown });
  });
});
