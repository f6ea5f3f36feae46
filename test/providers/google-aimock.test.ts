/** Gemini by a mock server of somebody else's, over HTTP: replies, tools, failures, and what the server was asked. */
import { LLMock } from '@copilotkit/aimock';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, type LLMDelta, runTurn, type Tool, userMessage } from 'turnloop';
import { google, type GoogleOptions } from 'turnloop/providers/google';
import { errorOf, request } from './fake-server.ts';

const mock = new LLMock({ port: 0, logLevel: 'silent' });

beforeAll(() => mock.start());
beforeEach(() => {
  mock.clearFixtures();
  mock.clearRequests();
});
afterAll(() => mock.stop());

function llm(options: Partial<GoogleOptions> = {}): ReturnType<typeof google> {
  return google({ model: 'gemini-2.5-flash', apiKey: 'key-test', baseUrl: `${mock.url}/v1beta`, ...options });
}

function ask(text: string, onDelta?: (delta: LLMDelta) => void): Parameters<ReturnType<typeof google>['chat']>[0] {
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

    expect(response).toMatchObject({ content: [{ type: 'text', text: 'Hello from far away, 你好 🏔️' }], stopReason: 'end_turn', usage: { inputTokens: 11, outputTokens: 7 } });
    expect(text).toBe('Hello from far away, 你好 🏔️');
    expect(mock.getLastRequest()!.path).toContain(isStreamed ? ':streamGenerateContent' : ':generateContent');
  });

  it('replies with thinking', async () => {
    mock.onMessage('think', { content: 'Done.', reasoning: 'First this, then that.' }, { chunkSize: 5 });

    expect((await llm().chat(ask('think'))).content).toMatchObject([{ type: 'thinking', text: 'First this, then that.' }, { type: 'text', text: 'Done.' }]);
  });

  it.each([
    ['length', 'max_tokens'],
    ['content_filter', 'filtered'],
  ])('ends by %s', async (finishReason, stopReason) => {
    mock.onMessage('end', { content: 'So far', finishReason });

    expect(await llm().chat(ask('end'))).toMatchObject({ stopReason, content: [{ text: 'So far' }] });
  });

  it('B1: plays a turn with parallel tools, and gets their results in order', async () => {
    const calls = ['Paris', 'London'].map((city) => ({ name: 'get_weather', arguments: JSON.stringify({ city }) }));
    mock.on({ userMessage: 'weather', hasToolResult: false }, { content: 'I look.', toolCalls: calls });
    mock.on({ userMessage: 'weather', hasToolResult: true }, { content: 'Both are sunny.' });
    const transcript = createTranscript();
    const dispatchEvent = createEventDispatcher({ record: transcript.record, emit: () => {} });
    const result = await runTurn({ llm: llm({ systemPrompt: 'Be brief.' }), tools: [weather], buildMessages: transcript.buildMessages, dispatchEvent, input: 'weather' });
    const asked = mock.getRequests().map(({ body }) => (body as { messages: { role: string; content: unknown; tool_calls?: unknown[] }[] }).messages);

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'Both are sunny.' });
    expect(asked[0]!.map(({ role }) => role)).toStrictEqual(['system', 'user']);
    expect(asked[1]!.map(({ role }) => role)).toStrictEqual(['system', 'user', 'assistant', 'tool', 'tool']);
    expect(asked[1]![2]!.tool_calls).toHaveLength(2);
    expect(asked[1]!.slice(3).map(({ content }) => content)).toStrictEqual(['{"output":"sunny in Paris"}', '{"output":"sunny in London"}']);
  });

  it.each([
    [429, 'RESOURCE_EXHAUSTED', 'rate_limit', true],
    [529, 'OVERLOADED', 'overloaded', true],
    [503, 'UNAVAILABLE', 'overloaded', true],
    [500, 'INTERNAL', 'server', true],
    [401, 'UNAUTHENTICATED', 'auth', false],
    [400, 'INVALID_ARGUMENT', 'invalid_request', false],
  ])('EE1: refuses with %i %s', async (status, type, kind, retryable) => {
    mock.onMessage('fail', { error: { message: 'not now', type }, status });

    expect(await errorOf(llm().chat(ask('fail')))).toMatchObject({ kind, retryable, status, code: type, message: expect.stringContaining('not now') });
  });

  it('EE6: says when to come again', async () => {
    mock.onMessage('fail', { error: { message: 'slow down', type: 'RESOURCE_EXHAUSTED' }, status: 429, retryAfter: 7 });

    expect(await errorOf(llm().chat(ask('fail')))).toMatchObject({ kind: 'rate_limit', retryAfterMs: 7000 });
  });

  it('B7: hangs up in the middle', async () => {
    mock.onMessage('cut', { content: 'A long answer that is never finished' }, { chunkSize: 4, truncateAfterChunks: 3 });

    // How much arrives before the connection breaks is up to the network.
    expect(await errorOf(llm().chat(ask('cut')))).toMatchObject({ kind: 'network', retryable: true });
  });

  it('GG6: is let go of in the middle', async () => {
    mock.onMessage('slow', { content: 'A slow answer' }, { chunkSize: 1, latency: 20 });
    const controller = new AbortController();
    const chat = llm().chat({ ...ask('slow', () => controller.abort()), signal: controller.signal });

    expect(await errorOf(chat)).toMatchObject({ kind: 'aborted', partial: [{ type: 'text', text: 'A' }] });
  });
});
