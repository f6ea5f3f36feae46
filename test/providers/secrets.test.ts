/** Secrets: keys, secret headers and secret parts of addresses never show, whatever fails and however it is looked at. */
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { LLMError } from 'turnloop';
import type { OpenAIChatOptions } from 'turnloop/providers/openai-chat';
import { chatOn, delta, errorOf, events, type FakeAnswer, fakeServer, finish, request } from './fake-server.ts';

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
  ['a redirect with a token of its own', { status: 302, headers: { location: 'https://h.example/back#access_token=SECRET123&state=1' } }],
  ['a reason for ending with nothing', { body: events([finish('sk-test-SECRET123')]) }],
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

  it.each(['x-passphrase', 'X-PWD', 'x-passwd', 'x-my-password'])('after a server that echoes the header %s', async (name) => {
    const answer = { status: 400, body: JSON.stringify({ error: { message: 'no: OWN-SECRET123' } }) };

    expect(views(await errorOf(chatOn(fakeServer(answer), { headers: { [name]: 'OWN-SECRET123' } }).chat(request())))).not.toContain('SECRET123');
  });

  it.each(['sk-SECRET123\nx', 'sk-SECRET123-ключ'])('after a key that no header can carry', async (apiKey) => {
    const error = await errorOf(chatOn(fakeServer(), { apiKey }).chat(request()));

    expect(error).toMatchObject({ kind: 'auth', code: 'invalid_header' });
    expect(views(error)).not.toContain('SECRET123');
  });

  const key = 'sk-test-SECRET123';
  const padded = (length: number): string => `${'x'.repeat(length)} ${key} tail`;

  it.each([
    ['plain text', (text: string): FakeAnswer => ({ status: 500, body: text }), 200],
    ['a page', (text: string): FakeAnswer => ({ status: 500, body: `<html>${text}` }), 8192],
    ['a message', (text: string): FakeAnswer => ({ status: 500, body: JSON.stringify({ error: { message: text, code: text } }) }), 1000],
    ['a success that is a page', (text: string): FakeAnswer => ({ body: `<html>${text}` }), 200],
    ['a success that is no completion', (text: string): FakeAnswer => ({ body: JSON.stringify([text]) }), 200],
    ['an event that is no JSON', (text: string): FakeAnswer => ({ body: `data: ${text}\n\n` }), 200],
    ['no event at all', (text: string): FakeAnswer => ({ body: text }), 200],
    ['a redirect', (text: string): FakeAnswer => ({ status: 302, headers: { location: `https://h.example/${text}` } }), 200],
    ['the id of a request', (text: string): FakeAnswer => ({ status: 500, headers: { 'x-request-id': text } }), 200],
    ['the content type of a page', (text: string): FakeAnswer => ({ body: '<html>', headers: { 'content-type': text } }), 1000],
    ['a body that breaks', (text: string): FakeAnswer => ({ body: events([delta({ content: 'x' })], ''), failure: new Error(text) }), 200],
    ['the code of a body that breaks', (text: string): FakeAnswer => ({ body: 'data: 1', failure: Object.assign(new Error('x'), { code: text }) }), 200],
  ])('wherever %s is cut', async (_name, answer, limit) => {
    for (let length = limit - 60; length <= limit; length += 1) {
      const error = await errorOf(chatOn(fakeServer(answer(padded(length))), OPTIONS).chat(request()));

      expect(views(error)).not.toMatch(/sk-t|SECRET/);
    }
  });

  it('when long secrets are before the one that is cut', async () => {
    const apiKey = `LONG-SECRET123${'k'.repeat(300)}`;
    const error = await errorOf(chatOn(fakeServer({ body: `data: ${`${apiKey} `.repeat(20)}\n\n` }), { apiKey }).chat(request()));

    expect(views(error)).not.toContain('LONG');
  });

  it.each([500, 200])('when the connection breaks within one (%d)', async (status) => {
    for (let length = 4; length <= key.length; length += 1) {
      const answer = { status, body: `Incorrect API key provided: ${key.slice(0, length)}` };

      expect(views(await errorOf(chatOn(fakeServer(answer), OPTIONS).chat(request())))).not.toContain('sk-t');
    }
  });

  it.each(['sk-TEST-secret123', 'header-secret123', 'COOKIE-secret123', 'query-SECRET123'])('in whatever case: %s', async (echo) => {
    const answer = { status: 401, body: JSON.stringify({ error: { message: `no: ${echo}.` } }), headers: { 'x-request-id': echo } };
    const error = await errorOf(chatOn(fakeServer(answer), OPTIONS).chat(request()));

    expect(error.requestId).toBe('***');
    expect(views(error)).not.toMatch(/secret123/i);
  });

  it('as it is escaped in JSON', async () => {
    const error = await errorOf(chatOn(fakeServer({ body: '{"key":"a\\"b\\\\cSECRET123"' }), { apiKey: 'a"b\\cSECRET123' }).chat(request()));

    expect(views(error)).not.toContain('SECRET123');
  });

  it.each([
    ['parameters', '?key'.repeat(15_000)],
    ['one parameter', `?${'key'.repeat(20_000)}`],
    ['users', 'http://'.repeat(8000)],
    ['colons', `${':'.repeat(60_000)}\nx`],
  ])('without taking long over texts made of %s', async (_name, text) => {
    const answers = [{ status: 500, body: JSON.stringify({ error: { message: text } }) }, { body: text }];

    // A pattern that looks back over the text at each of its characters would outlast the runner's time limit.
    for (const answer of answers) expect(await errorOf(chatOn(fakeServer(answer), OPTIONS).chat(request()))).toBeInstanceOf(LLMError);
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
