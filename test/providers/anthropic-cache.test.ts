/** Messages requests: where the prompt is marked for the cache, beside a host's own marks. Black-box. */
import { describe, expect, it } from 'vitest';
import { type AssistantPart, type JsonValue, type Message, userMessage } from 'turnloop';
import type { AnthropicOptions } from 'turnloop/providers/anthropic';
import { checkMessagesRequest } from '../support/anthropic-rules.ts';
import { call, messagesOn, OK, own, result, send, tool } from './anthropic-support.ts';
import { fakeServer, request, type SentRequest } from './fake-server.ts';

const MARK = { type: 'ephemeral' };

/** Where marks stand, in the order of the prompt. */
function marks({ body }: SentRequest): string[] {
  const { tools, system, messages, cache_control: automatic } = body;
  const found: string[] = [];
  const look = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'cache_control') found.push(`${path} ${(inner as { ttl?: string }).ttl ?? '5m'}`);
      else look(inner, `${path}${path === '' ? '' : '.'}${key}`);
    }
  };
  look({ tools, system, messages }, '');
  if (automatic !== undefined) look({ cache_control: automatic }, 'body');
  return found;
}

describe('cache marks', () => {
  const LOOP = [userMessage('a'), own([call('c1')]), result('c1'), own([call('c2'), call('c3')]), result('c2'), result('c3')];
  const AGENT = { systemPrompt: 's', tools: [tool('f'), tool('g')] };

  it('AN3, PC: stand on the last tool, the system prompt and the two newest user turns', async () => {
    expect(marks(await send(LOOP, AGENT))).toStrictEqual(['tools.1 5m', 'system.0 5m', 'messages.2.content.0 5m', 'messages.4.content.1 5m']);
    expect(marks(await send([userMessage('a')]))).toStrictEqual(['messages.0.content.0 5m']);
  });

  it('BR-082: last as long as told, and say nothing of it by default', async () => {
    const long = await send(LOOP, AGENT, { promptCache: '1h' });

    expect(marks(long)).toStrictEqual(['tools.1 1h', 'system.0 1h', 'messages.2.content.0 1h', 'messages.4.content.1 1h']);
    expect((await send(LOOP, AGENT)).text).not.toContain('ttl');
    expect(marks(await send(LOOP, AGENT, { promptCache: 'off' }))).toStrictEqual([]);
  });

  it.each<readonly [string, Partial<AnthropicOptions>, readonly string[]]>([
    ['a short one on a tool', { serverTools: [{ type: 'web_search_20250305', name: 'w', cache_control: MARK }], promptCache: '1h' }, ['tools.2 5m', 'system.0 5m', 'messages.2.content.0 5m', 'messages.4.content.1 5m']],
    ['a long one on the system prompt', { body: { system: [{ type: 'text', text: 's', cache_control: { type: 'ephemeral', ttl: '1h' } }] } }, ['tools.1 1h', 'system.0 1h', 'messages.2.content.0 5m', 'messages.4.content.1 5m']],
    ['one of two on the system prompt', { body: { system: [{ type: 'text', text: 's', cache_control: MARK }, { type: 'text', text: 't', cache_control: MARK }] } }, ['tools.1 5m', 'system.0 5m', 'system.1 5m', 'messages.4.content.1 5m']],
    ['the server\'s own, a long one', { body: { cache_control: { type: 'ephemeral', ttl: '1h' } } }, ['tools.1 1h', 'system.0 1h', 'messages.2.content.0 1h', 'body 1h']],
    [
      'four on tools',
      { serverTools: ['a', 'b', 'c', 'd'].map((name) => ({ type: 'web_search_20250305', name, cache_control: MARK })) },
      ['tools.2 5m', 'tools.3 5m', 'tools.4 5m', 'tools.5 5m'],
    ],
  ])('BR-056, BR-082: give way to the host\'s: %s', async (_name, options, expected) => {
    const sent = await send(LOOP, AGENT, options);

    expect(marks(sent)).toStrictEqual(expected);
    expect(checkMessagesRequest(sent.body)).toStrictEqual([]);
  });

  it.each<readonly [string, Record<string, JsonValue>[], readonly string[]]>([
    ['the last that is there at once', [{ type: 'web_search_20250305', name: 'w' }, { type: 'custom', name: 'big', input_schema: { type: 'object' }, defer_loading: true }], ['tools.2 5m']],
    ['the host\'s last, if all of the server\'s come later', [{ name: 'big', input_schema: { type: 'object' }, defer_loading: true }], ['tools.1 5m']],
    ['no set of tools that come later', [{ type: 'mcp_toolset', mcp_server_name: 'm', default_config: { defer_loading: true } }], ['tools.1 5m']],
    ['none beside the host\'s own mark', [{ type: 'web_search_20250305', name: 'w', cache_control: MARK }, { name: 'big', input_schema: { type: 'object' }, defer_loading: true }], ['tools.2 5m']],
  ])('stand on a tool that takes one: %s', async (_which, serverTools, expected) => {
    expect(marks(await send([userMessage('a')], AGENT, { serverTools })).filter((mark) => mark.startsWith('tools'))).toStrictEqual(expected);
  });

  it('stand on no tool where all of them come later', async () => {
    const serverTools = [{ name: 'big', input_schema: { type: 'object' }, defer_loading: true }];

    expect(marks(await send([userMessage('a')], { systemPrompt: 's' }, { serverTools }))).toStrictEqual(['system.0 5m', 'messages.0.content.0 5m']);
  });

  it('BR-056: are at most four in each request of a long turn, the last on the newest result', async () => {
    const fake = fakeServer(OK);
    const llm = messagesOn(fake, { body: { system: [{ type: 'text', text: 'one', cache_control: MARK }, { type: 'text', text: 'two' }] } });
    const messages: Message[] = [userMessage('go')];
    for (let step = 1; step <= 6; step += 1) {
      messages.push(own([call(`c${step}`)]), result(`c${step}`));
      await llm.chat(request([...messages], { tools: ['f', 'g', 'h'].map((name) => tool(name)) }));
    }

    for (const [at, sent] of fake.sent.entries()) {
      expect(marks(sent)).toStrictEqual(['tools.2 5m', 'system.0 5m', `messages.${at * 2}.content.0 5m`, `messages.${at * 2 + 2}.content.0 5m`]);
    }
  });

  it('BR-130: stand on no thinking and on no empty text, and on something all the same', async () => {
    const thinking: AssistantPart = { type: 'thinking', text: 'hm', signature: 'S' };
    const redacted: AssistantPart = { type: 'thinking', text: '', redactedData: 'R' };
    const first = [userMessage('a'), own([thinking, { type: 'text', text: '' }, call('c1')]), result('c1', '')];
    const second = [...first, own([{ type: 'text', text: 'x' }, redacted])];
    for (const sent of [await send(first), await send(second)]) {
      expect(marks(sent)).toStrictEqual(['messages.0.content.0 5m', 'messages.2.content.0 5m']);
      expect(checkMessagesRequest(sent.body)).toStrictEqual([]);
    }
  });
});
