/** Responses by a mock server of somebody else's, over HTTP: replies, tools, failures, and what the server was asked. */
import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, type LLM, type LLMDelta, type LLMRequest, runTurn, type Tool, userMessage } from 'turnloop';
import { openAIResponses, type OpenAIResponsesOptions } from 'turnloop/providers/openai-responses';
import { errorOf, request } from './fake-server.ts';

const mock = new LLMock({ port: 0, logLevel: 'silent' });

beforeAll(() => mock.start());
beforeEach(() => {
  mock.clearFixtures();
  mock.clearRequests();
});
afterAll(() => mock.stop());

function llm(options: Partial<OpenAIResponsesOptions> = {}): LLM {
  return openAIResponses({ model: 'gpt-5-mini', apiKey: 'sk-test', baseUrl: `${mock.url}/v1`, ...options });
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
    // A model that thinks gets its thinking, encrypted as it was asked for.
    expect(response.content).toMatchObject([{ type: 'thinking', text: '', redactedData: expect.any(String) as string }, { type: 'text', text: 'Hello from far away, 你好 🏔️' }]);
    expect(text).toBe('Hello from far away, 你好 🏔️');
    expect(mock.getLastRequest()!.path).toBe('/v1/responses');
  });

  it('replies with thinking', async () => {
    mock.onMessage('think', { content: 'Done.', reasoning: 'First this, then that.' }, { chunkSize: 5 });
    let thinking = '';
    const response = await llm().chat(ask('think', (delta) => (thinking += delta.type === 'thinking' ? delta.text : '')));

    expect(response.content).toMatchObject([{ type: 'thinking', text: 'First this, then that.' }, { type: 'text', text: 'Done.' }]);
    expect(thinking).toBe('First this, then that.');
  });

  it.each(['stateless', 'incremental'] as const)('plays a turn with parallel tools, and gets their results in order, %s', async (state) => {
    const calls = ['Paris', 'London'].map((city) => ({ name: 'get_weather', arguments: JSON.stringify({ city }) }));
    mock.on({ userMessage: 'weather', hasToolResult: false }, { content: 'I look.', toolCalls: calls });
    mock.on({ hasToolResult: true }, { content: 'Both are sunny.' });
    const { record, buildMessages } = createTranscript();
    const result = await runTurn({ llm: llm({ systemPrompt: 'Be brief.', state }), tools: [weather], buildMessages, dispatchEvent: createEventDispatcher({ record }), input: 'weather' });
    const asked = mock.getRequests().map(({ body }) => (body as { messages: { role: string; content: unknown; tool_calls?: unknown[] }[] }).messages);

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'Both are sunny.' });
    expect(asked[0]!.map(({ role }) => role)).toStrictEqual(['system', 'user']);
    // The mock adds what results need before them.
    expect(asked[1]!.some(({ role }) => role === 'user')).toBe(state === 'stateless');
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

    expect(await errorOf(llm().chat(ask('fail')))).toMatchObject({ kind, retryable, status, message: expect.stringContaining('not now') });
  });

  it('EE6: says when to come again', async () => {
    mock.onMessage('fail', { error: { message: 'slow down', type: 'rate_limit_error' }, status: 429, retryAfter: 7 });

    expect(await errorOf(llm().chat(ask('fail')))).toMatchObject({ kind: 'rate_limit', retryAfterMs: 7000 });
  });

  it('B7: hangs up in the middle', async () => {
    mock.onMessage('cut', { content: 'A long answer that is never finished' }, { chunkSize: 4, truncateAfterChunks: 6 });

    // How much arrives before the connection breaks is up to the network.
    expect(await errorOf(llm().chat(ask('cut')))).toMatchObject({ kind: 'network', retryable: true });
  });

  it('GN10: is let go of in the middle', async () => {
    mock.onMessage('slow', { content: 'A slow answer' }, { chunkSize: 1, latency: 20 });
    const controller = new AbortController();
    const chat = llm().chat({ ...ask('slow', () => controller.abort()), signal: controller.signal });

    expect(await errorOf(chat)).toMatchObject({ kind: 'aborted', partial: [{ type: 'thinking' }, { type: 'text', text: 'A' }] });
  });
});
