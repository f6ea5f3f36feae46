/** Clean requests: whatever a history, a tool or an option holds, every adapter sends text that servers take. */
import { describe, expect, it } from 'vitest';
import { type LLMRequest, type Message, type ToolDefinition, userMessage } from 'turnloop';
import { ADAPTERS } from './every-adapter.ts';
import { fakeServer, request } from './fake-server.ts';

const BAD = 'a\ud83d\u0000\ufffeb';
const SCHEMA = { type: 'object', properties: { [BAD]: { type: 'string', description: BAD, enum: [BAD] } }, required: [BAD], additionalProperties: false };
const TOOL: ToolDefinition = { name: 'f', description: BAD, inputSchema: SCHEMA };

function media(mediaType: string, more: object): Message {
  return userMessage([{ type: 'text', text: 'x' }, { type: 'media', mediaType, ...more } as never]);
}

const requests: readonly (readonly [string, Partial<LLMRequest>])[] = [
  ['the schema of a tool', { tools: [TOOL] }],
  ['the schema of an answer', { responseSchema: SCHEMA }],
  ['the type of media that is left out', { messages: [media(`video/${BAD}`, { data: 'AA' })] }],
  ['the type of an image', { messages: [media(`image/${BAD}`, { data: 'AA' })] }],
  ['the address of an image', { messages: [media('image/png', { url: `https://h/${BAD}` })] }],
  ['the id of a call that is not there', { messages: [userMessage('x'), { role: 'tool', id: 't', content: [{ type: 'text', text: 'r' }], toolCallId: BAD, name: 'f', status: 'ok' } as never] }],
  ['the system prompt', { systemPrompt: BAD }],
];

describe.each(ADAPTERS)('$name', (adapter) => {
  async function textOf(more: Partial<LLMRequest>): Promise<string> {
    const fake = fakeServer({ body: adapter.stream({ text: 'Hello.' }) });
    await adapter.connect({ baseUrl: 'https://h.example/v1', fetch: fake.fetch }).chat(request(more.messages, more));
    return fake.sent[0]!.text;
  }

  // Google's adapter refuses a result without its call.
  const sendable = requests.filter(([what]) => adapter.name !== 'google' || !what.startsWith('the id'));

  it.each(sendable)('B13, BR-025, BR-089: sends no lone surrogates and no control characters in %s', async (_what, more) => {
    expect(await textOf(more)).not.toMatch(/\\ud83d|\\u0000|\ufffe/i);
  });

  it('sends no system prompt that says nothing once it is clean', async () => {
    expect(await textOf({ systemPrompt: '\u0000 \u0001\n' })).toBe(await textOf({ systemPrompt: '' }));
  });
});
