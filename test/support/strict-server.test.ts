/** The strict servers, as the official client libraries find them: they refuse in the right shape, and reply in it. */
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { type StrictProtocol, type StrictServer, startStrictServer } from './strict-server.ts';
import type { ScriptedReply } from './strict-server-replies.ts';

const REPLY: ScriptedReply = { thinking: 'Hm, so', text: 'I look.', calls: [{ name: 'f', input: { a: 1 } }, { name: 'g', input: {} }] };

const open: StrictServer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function start(protocol: StrictProtocol, ...replies: readonly ScriptedReply[]): Promise<StrictServer> {
  const server = await startStrictServer(protocol, { replies });
  open.push(server);
  return server;
}

function openAI(server: StrictServer): OpenAI {
  return new OpenAI({ apiKey: 'sk-test', baseURL: server.baseUrl, maxRetries: 0 });
}

function anthropic(server: StrictServer): Anthropic {
  return new Anthropic({ apiKey: 'sk-test', baseURL: server.baseUrl.replace(/\/v1$/, ''), maxRetries: 0 });
}

function google(server: StrictServer): GoogleGenAI {
  return new GoogleGenAI({ apiKey: 'test', httpOptions: { baseUrl: server.baseUrl.replace(/\/v1beta$/, ''), apiVersion: 'v1beta' } });
}

describe('a server of Chat Completions', () => {
  it('replies as scripted, then says ok', async () => {
    const server = await start('openai-chat', REPLY);
    const ask = (): Promise<OpenAI.ChatCompletion> =>
      openAI(server).chat.completions.stream({ model: 'm', messages: [{ role: 'user', content: 'a' }], stream_options: { include_usage: true } }).finalChatCompletion();
    const [choice] = (await ask()).choices;

    expect(choice).toMatchObject({ finish_reason: 'tool_calls', message: { content: 'I look.', tool_calls: [{ function: { name: 'f', arguments: '{"a":1}' } }, { function: { name: 'g', arguments: '{}' } }] } });
    expect((await ask()).choices[0]?.message.content).toBe('ok');
    expect(server.refusals).toStrictEqual([]);
  });

  it('refuses', async () => {
    const server = await start('openai-chat');
    const asked = openAI(server).chat.completions.create({ model: 'm', stream: true, messages: [{ role: 'user', content: 'a' }, { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] }] });

    await expect(asked).rejects.toMatchObject({ status: 400, type: 'invalid_request_error', message: /must be followed by tool messages/ });
    expect(server.refusals.join()).toMatch(/request 0: end: calls without results/);
  });
});

describe('a server of Responses', () => {
  const input = [{ role: 'user', content: 'a' }] as const;

  it('replies as scripted, and remembers', async () => {
    const server = await start('openai-responses', REPLY);
    const { responses } = openAI(server);
    const first = await responses.stream({ model: 'm', input: [...input], include: ['reasoning.encrypted_content'] }).finalResponse();

    expect(first.output).toMatchObject([
      { id: 'rs_1', type: 'reasoning', summary: [{ text: 'Hm, so' }], encrypted_content: 'secret_1' },
      { id: 'msg_1', content: [{ text: 'I look.' }] },
      { id: 'fc_1_0', call_id: 'call_1_0', arguments: '{"a":1}' },
      { id: 'fc_1_1', call_id: 'call_1_1', arguments: '{}' },
    ]);
    const outputs = ['call_1_0', 'call_1_1'].map((id) => ({ type: 'function_call_output' as const, call_id: id, output: 'r' }));
    const second = await responses.stream({ model: 'm', input: outputs, previous_response_id: first.id }).finalResponse();
    expect(second.output_text).toBe('ok');
    const third = await responses.stream({ model: 'm', input: 'b', previous_response_id: second.id }).finalResponse();
    expect(third.output_text).toBe('ok');
    expect(server.refusals).toStrictEqual([]);
  });

  it('refuses an output that is missing, what it forgot, and what it was not to keep', async () => {
    const server = await start('openai-responses', REPLY);
    const { responses } = openAI(server);
    const first = await responses.stream({ model: 'm', input: [...input] }).finalResponse();
    const next = { model: 'm', input: 'b', stream: true as const };

    await expect(responses.create({ ...next, previous_response_id: first.id })).rejects.toMatchObject({ status: 400, message: /No tool output found/ });
    server.responses.delete(first.id);
    await expect(responses.create({ ...next, previous_response_id: first.id })).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found', param: 'previous_response_id' });
    const kept = await responses.stream({ model: 'm', input: [...input], store: false }).finalResponse();
    await expect(responses.create({ ...next, previous_response_id: kept.id })).rejects.toMatchObject({ code: 'previous_response_not_found' });
  });
});

describe('a server of Messages', () => {
  it('replies as scripted', async () => {
    const server = await start('anthropic', REPLY);
    const message = await anthropic(server).messages.stream({ model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'a' }] }).finalMessage();

    expect(message).toMatchObject({
      stop_reason: 'tool_use',
      content: [
        { type: 'thinking', thinking: 'Hm, so', signature: 'sig_1' },
        { type: 'text', text: 'I look.' },
        { type: 'tool_use', id: 'toolu_1_0', name: 'f', input: { a: 1 } },
        { type: 'tool_use', id: 'toolu_1_1', name: 'g', input: {} },
      ],
      usage: { input_tokens: 10, output_tokens: 5 },
    });
    expect(server.refusals).toStrictEqual([]);
  });

  it('refuses', async () => {
    const server = await start('anthropic');
    const asked = anthropic(server).messages.create({ model: 'm', max_tokens: 10, stream: true, messages: [{ role: 'user', content: ' ' }] });

    await expect(asked).rejects.toMatchObject({ status: 400, error: { type: 'error', error: { type: 'invalid_request_error' } } });
  });
});

describe('a server of Gemini', () => {
  it('replies as scripted', async () => {
    const server = await start('google', REPLY);
    const parts: unknown[] = [];
    for await (const chunk of await google(server).models.generateContentStream({ model: 'm', contents: 'a' })) parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));

    expect(parts).toStrictEqual([
      { text: 'Hm,', thought: true },
      { text: ' so', thought: true },
      { text: 'I lo' },
      { text: 'ok.' },
      { functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 'c2lnbmF0dXJlIDE=' },
      { functionCall: { name: 'g', args: {} } },
    ]);
    expect(server.refusals).toStrictEqual([]);
  });

  it('refuses', async () => {
    const server = await start('google');
    const asked = google(server).models.generateContentStream({ model: 'm', contents: [{ role: 'model', parts: [{ text: 'a' }] }] });

    await expect(asked).rejects.toMatchObject({ status: 400, message: /INVALID_ARGUMENT/ });
  });
});

describe('every server', () => {
  it.each<[StrictProtocol, string]>([
    ['openai-chat', '/chat/completions'],
    ['openai-responses', '/responses'],
    ['anthropic', '/messages'],
    ['google', '/models/m:streamGenerateContent?alt=sse'],
  ])('%s wants a key and its path, and JSON', async (protocol, path) => {
    const server = await start(protocol);
    const post = async (where: string, headers: Record<string, string> = {}, body = 'no JSON'): Promise<number> =>
      (await fetch(`${server.baseUrl}${where}`, { method: 'POST', body, headers })).status;

    expect(await post('/other')).toBe(404);
    expect(await post(path)).toBe(401);
    expect(await post(path, { authorization: 'Bearer k', 'x-goog-api-key': 'k' })).toBe(400);
    expect(server.requests).toHaveLength(1);
    expect(server.refusals.join()).toMatch(/content-type/);
  });

  it('goes by other rules if told so, and by another script from then on', async () => {
    const server = await startStrictServer('openai-chat', { check: () => [] });
    open.push(server);
    server.script({ text: 'other' });
    const { choices } = await openAI(server).chat.completions.stream({ model: 'm', messages: [] }).finalChatCompletion();

    expect(choices[0]?.message.content).toBe('other');
  });
});
