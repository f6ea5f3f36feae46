/** Secrets: keys, secret headers and secret parts of addresses never show, whatever fails and however it is looked at. */
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { LLMError } from 'turnloop';
import type { OpenAIChatOptions } from 'turnloop/providers/openai-chat';
import { chatOn, delta, errorOf, events, type FakeAnswer, fakeServer, request } from './fake-server.ts';

const OPTIONS: Partial<OpenAIChatOptions> = {
  apiKey: 'sk-test-SECRET123',
  baseUrl: 'https://h.example/v1?key=QUERY-SECRET123&v=2',
  headers: { 'x-api-key': 'HEADER-SECRET123', cookie: 'session=COOKIE-SECRET123; a=b', authorization: 'Bearer OTHER-SECRET123' },
};
const ECHO = 'Incorrect API key provided: sk-test-SECRET123 (x-api-key HEADER-SECRET123, COOKIE-SECRET123, OTHER-SECRET123, https://h.example/v1?key=QUERY-SECRET123)';

/** Every way in which an error or an object gets into a log. */
function views(value: unknown): string {
  const error = value as Partial<Error>;
  return [String(value), error.stack, JSON.stringify(value), inspect(value, { depth: 10, showHidden: true })].join('\n');
}

const failures: readonly (readonly [string, FakeAnswer])[] = [
  ['401 that echoes the key', { status: 401, body: JSON.stringify({ error: { message: ECHO, code: ECHO } }) }],
  ['a page', { status: 502, body: `<html>${ECHO}</html>` }],
  ['plain text', { status: 500, body: ECHO }],
  ['a success that is a page', { body: `<html>${ECHO}</html>` }],
  ['a success that is no completion', { body: JSON.stringify({ echo: ECHO }) }],
  ['broken JSON', { body: `{"echo":"${ECHO}` }],
  ['an event that is no JSON', { body: `data: ${ECHO}\n\n` }],
  ['no event at all', { body: ECHO }],
  ['an error in the stream', { body: events([delta({ content: 'x' }), { error: { message: ECHO, code: ECHO } }]) }],
  ['a redirect', { status: 302, headers: { location: `https://h.example/?key=QUERY-SECRET123&to=sk-test-SECRET123` } }],
  ['a body that breaks', { body: events([delta({ content: 'x' })], ''), failure: new Error(ECHO) }],
];

describe('BR-049: an error holds no secret', () => {
  it.each(failures)('after %s', async (_name, answer) => {
    const error = await errorOf(chatOn(fakeServer(answer), OPTIONS).chat(request()));

    expect(error).toBeInstanceOf(LLMError);
    expect(views(error)).not.toContain('SECRET123');
  });

  it.each([
    ['a fetch that quotes the address', new TypeError(`Failed to parse URL from https://h.example/v1?key=QUERY-SECRET123`)],
    ['a cause that does', new TypeError('fetch failed', { cause: new Error(ECHO) })],
    ['a code that does', Object.assign(new Error('x'), { code: undefined, request: { headers: OPTIONS.headers } })],
  ])('after %s', async (_name, thrown) => {
    const fetch = async (): Promise<Response> => {
      throw thrown;
    };

    expect(views(await errorOf(chatOn({ fetch }, OPTIONS).chat(request())))).not.toContain('SECRET123');
  });

  it.each(['sk-SECRET123\nx', 'sk-SECRET123-ключ'])('after a key that no header can carry', async (apiKey) => {
    const error = await errorOf(chatOn(fakeServer(), { apiKey }).chat(request()));

    expect(error).toMatchObject({ kind: 'auth', code: 'invalid_header' });
    expect(views(error)).not.toContain('SECRET123');
  });

  it('but still says what the server said', async () => {
    const error = await errorOf(chatOn(fakeServer(failures[0]![1]), OPTIONS).chat(request()));

    expect(error.message).toContain('Incorrect API key provided: ***');
  });

  it('does not garble texts for a key that is hardly one', async () => {
    const error = await errorOf(chatOn(fakeServer({ status: 400, body: 'an example' }), { apiKey: 'x' }).chat(request()));

    expect(error.message).toContain('an example');
  });
});

it('BR-140, B12: the LLM shows no secret', () => {
  const llm = chatOn(fakeServer(), OPTIONS);

  expect(views(llm)).not.toContain('SECRET123');
  expect(JSON.parse(JSON.stringify(llm))).toStrictEqual({ provider: 'openai', modelId: 'test-model', systemPrompt: '' });
});
