/**
 * Bad input: keys, addresses, models and answers that are not what they should be, through every adapter over HTTP. Each is
 * a clear error that says what to look at, and none shows a secret. Black-box.
 */
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, LLMError, type LLM, type LLMRequest, type LoopEvent, runTurn, userMessage } from 'turnloop';
import { answer, type ReplayServer, type Responder, startReplayServer } from '../support/replay-server.ts';
import { type AdapterCase, ADAPTERS, type CommonOptions } from './every-adapter.ts';

let server: ReplayServer;

beforeAll(async () => {
  server = await startReplayServer();
});

afterAll(() => server.close());

function request(more: Partial<LLMRequest> = {}): LLMRequest {
  return { systemPrompt: '', messages: [userMessage('Hello')], tools: [], signal: new AbortController().signal, ...more };
}

async function errorOf(llm: LLM): Promise<LLMError> {
  const thrown: unknown = await llm.chat(request()).then(
    () => new Error('the chat succeeded'),
    (error: unknown) => error,
  );
  if (!(thrown instanceof LLMError)) throw thrown;
  return thrown;
}

function json(status: number, value: unknown, headers: Record<string, string> = {}): Responder {
  return answer(JSON.stringify(value), status, { 'content-type': 'application/json', ...headers });
}

const SSE = { 'content-type': 'text/event-stream' };
const NOT_UTF8 = [new TextEncoder().encode('data: {"x":"'), Uint8Array.of(0xff, 0xfe, 0xc3), new TextEncoder().encode('"}\n\n')];

describe.each(ADAPTERS.map((adapter) => [adapter.name, adapter] as const))('%s', (_name, adapter: AdapterCase) => {
  const connect = (options: CommonOptions = {}): LLM => adapter.connect({ baseUrl: server.baseUrl, apiKey: 'sk-test', ...options });

  it.each([
    ['', [userMessage(' \n')]],
    ['Be brief.', [userMessage('\t'), userMessage([]), userMessage('\u0000 ', { transient: true })]],
    ['', []],
  ])('sends nothing of a history that says nothing, and says so (system prompt %j)', async (systemPrompt, messages) => {
    const before = server.requests.length;
    const thrown: unknown = await connect().chat(request({ systemPrompt, messages })).catch((error: unknown) => error);

    expect(thrown).toMatchObject({ kind: 'invalid_request', code: 'empty_history', retryable: false });
    expect((thrown as LLMError).message).toContain("give a user message with text or media, such as userMessage('Hello')");
    expect(server.requests).toHaveLength(before);
  });

  it('says that no key was given, if a server wants one', async () => {
    server.respond(json(401, { error: { message: 'Missing credentials', type: 'authentication_error' } }));
    const error = await errorOf(adapter.connect({ baseUrl: server.baseUrl }));

    expect(error).toMatchObject({ kind: 'auth', status: 401, retryable: false });
    expect(error.message).toMatch(/Missing credentials.*no `apiKey` was given/);
  });

  it('says that the key was refused', async () => {
    server.respond(json(401, { error: { message: 'Incorrect key', type: 'authentication_error' } }));

    expect(await errorOf(connect())).toMatchObject({ kind: 'auth', message: expect.stringContaining('is `apiKey` right?') as string });
  });

  it('sends nothing if the key cannot be had', async () => {
    const before = server.requests.length;
    const fail = (): never => {
      throw new Error('vault: SECRET123');
    };
    const error = await errorOf(connect({ apiKey: fail }));

    expect(error).toMatchObject({ kind: 'auth', code: 'api_key_failed' });
    expect(error.message).not.toContain('SECRET123');
    expect(server.requests).toHaveLength(before);
  });

  it.each([
    ['an unknown model', 404, { error: { message: 'The model `test-model` does not exist', code: 'model_not_found', type: 'not_found_error' } }],
    ['a wrong path', 404, { detail: 'Not Found' }],
    ['a wrong path, as a page', 404, '<html><h1>404 Not Found</h1></html>'],
  ])('says where to look after %s', async (_what, status, body) => {
    server.respond(typeof body === 'string' ? answer(body, status, { 'content-type': 'text/html' }) : json(status, body));

    expect(await errorOf(connect())).toMatchObject({ kind: 'not_found', retryable: false, message: expect.stringContaining('are `model` and `baseUrl` right?') as string });
  });

  it('says that nobody is there', async () => {
    const gone = await startReplayServer();
    await gone.close();
    const error = await errorOf(connect({ baseUrl: gone.baseUrl }));

    expect(error).toMatchObject({ kind: 'network', retryable: true });
    expect(error.message).toContain('is `baseUrl` right, and does the server run?');
  });

  it.each(['stream', 'plain'])('says that a page is no answer (%s)', async (way) => {
    server.respond(answer('<!doctype html><title>Sign in</title>', 200, { 'content-type': 'text/html' }));
    const error = await errorOf(connect({ stream: way === 'stream' }));

    expect(error).toMatchObject({ kind: 'malformed_response' });
    expect(error.message).toMatch(/web page.*`baseUrl`.*Sign in/);
  });

  it('does not follow a redirect, with its key', async () => {
    server.respond((response) => void response.writeHead(307, { location: 'https://elsewhere.example/v1' }).end());
    const error = await errorOf(connect());

    expect(error).toMatchObject({ kind: 'not_found', code: 'redirect', status: 307 });
    expect(error.message).toMatch(/redirects to https:\/\/elsewhere\.example\/v1.*`baseUrl`/);
  });

  it.each(['stream', 'plain'])('says that an answer has no body (%s)', async (way) => {
    server.respond(answer('', 200, SSE));
    const error = await errorOf(connect({ stream: way === 'stream' }));

    expect(error).toMatchObject({ kind: 'network', code: 'empty_body', retryable: true });
    expect(error.message).toContain('`baseUrl`');
  });

  it('says that an answer is not UTF-8', async () => {
    server.respond(answer(NOT_UTF8, 200, SSE));

    expect(await errorOf(connect())).toMatchObject({ kind: 'malformed_response', code: 'invalid_utf8' });
  });

  it.each([
    ['JSON of another API', '{"hello":"world"}', 'malformed_response'],
    ['a list of nothing', '[]', 'malformed_response'],
    ['half of a JSON', '{"choices":[{"mess', 'malformed_response'],
    ['plain text', 'It works!', 'malformed_response'],
    ['events that are no JSON', 'data: hello\n\n', 'malformed_response'],
    ['events of another API', 'data: {"hello":"world"}\n\n', 'network'],
    ['numbers, texts and nothing as events', 'data: 1\n\ndata: null\n\ndata: "x"\n\ndata: []\n\n', 'network'],
  ])('takes %s for no reply', async (_what, body, kind) => {
    server.respond(answer(body, 200));

    expect(await errorOf(connect())).toMatchObject({ kind });
  });

  it('still works after all that', async () => {
    server.respond(answer(adapter.stream({ text: 'Hello.' }), 200, SSE));

    expect(await connect().chat(request())).toMatchObject({ stopReason: 'end_turn', content: [{ type: 'text', text: 'Hello.' }] });
  });

  it.each([
    ['a misspelt option', { baseURL: 'http://h/v1' }, 'Did you mean `baseUrl`?'],
    ['an address that is none', { baseUrl: 'h/v1' }, '`baseUrl` must be an http(s) address'],
    ['an address with a password', { baseUrl: 'http://u:SECRET123@h/v1' }, '`baseUrl` must be an http(s) address'],
    ['a key that is none', { apiKey: 7 }, '`apiKey` must be a text'],
    ['headers that are none', { headers: new Headers() }, '`headers` must be a plain object'],
    ['no model', { model: '' }, 'needs `model`'],
  ])('refuses %s with a TypeError', (_what, options, message) => {
    const build = (): unknown => adapter.connect(options as unknown as CommonOptions);

    expect(build).toThrow(TypeError);
    expect(build).toThrow(message);
    expect(build).not.toThrow('SECRET123');
  });

  describe('B12, BR-049: shows no secret', () => {
    const ECHO = 'no: sk-SECRET123, HEADER-SECRET123, COOKIE-SECRET123, at https://h.example/v1?key=QUERY-SECRET123';
    const begun = (): string => adapter.stream({ thinking: 'Hm.', text: 'Hello.' }).split('\n\n').slice(0, 4).join('\n\n') + '\n\n';
    const secretive = (): LLM =>
      connect({
        apiKey: 'sk-SECRET123',
        baseUrl: `${server.baseUrl}?key=QUERY-SECRET123`,
        headers: { 'x-auth': 'HEADER-SECRET123', cookie: 'session=COOKIE-SECRET123' },
      });

    const failures: readonly (readonly [string, () => Responder])[] = [
      ['a refused key', () => json(401, { error: { message: ECHO, code: ECHO, type: ECHO, status: ECHO } }, { 'x-request-id': ECHO })],
      ['a refused request', () => json(400, { error: { message: ECHO, details: [{ reason: ECHO }] } })],
      ['a page', () => answer(`<html>${ECHO}</html>`, 502)],
      ['a page as a success', () => answer(`<html>${ECHO}</html>`, 200, { 'content-type': ECHO })],
      ['a success of another API', () => json(200, { echo: ECHO })],
      ['broken JSON', () => answer(`{"echo":"${ECHO}`)],
      ['plain text', () => answer(ECHO)],
      ['an event that is no JSON', () => answer(`${begun()}data: ${ECHO}\n\n`, 200, SSE)],
      ['an error in the stream', () => answer(begun() + adapter.errorEvent(ECHO), 200, SSE)],
      ['a cut', () => answer(begun(), 200, SSE)],
      ['a redirect', () => (response) => void response.writeHead(302, { location: 'https://h.example/?key=QUERY-SECRET123' }).end()],
      ['a connection that breaks', () => (response) => void response.destroy()],
    ];

    it.each(failures)('after %s: not in the error, the events, the result or a log', async (_what, responder) => {
      server.respond(responder());
      const llm = secretive();
      const transcript = createTranscript();
      const events: LoopEvent[] = [];
      const result = await runTurn({
        llm,
        input: 'Hello',
        buildMessages: transcript.buildMessages,
        dispatchEvent: createEventDispatcher({ record: transcript.record, emit: (event) => void events.push(event) }),
      });

      expect(result.error).toBeInstanceOf(LLMError);
      for (const value of [result.error, result, events, transcript.events, llm]) {
        const views = [value instanceof Error ? String(value) : '', JSON.stringify(value), inspect(value, { depth: 12, showHidden: true }), value instanceof Error ? value.stack : ''];

        expect(views.join('\n')).not.toContain('SECRET123');
      }
    });

    it('but sends them', async () => {
      server.respond(answer(adapter.stream({ text: 'Hello.' }), 200, SSE));
      await secretive().chat(request());
      const { url, headers } = server.requests.at(-1)!;

      expect(url).toContain('key=QUERY-SECRET123');
      expect(JSON.stringify(headers)).toMatch(/sk-SECRET123.*/);
      expect(headers).toMatchObject({ 'x-auth': 'HEADER-SECRET123' });
    });
  });
});
