/** Keys that are asked for: at each request, and once more when a server refuses one. The same for every adapter. */
import { describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, type FailedAttempt, LLMError, runTurn } from 'turnloop';
import { withRetry } from 'turnloop/policies';
import { recordEvents, virtualRuntime } from 'turnloop/testing';
import { chatOn, errorOf, type FakeAnswer, fakeServer, request } from './fake-server.ts';
import { ADAPTERS, type AdapterCase } from './every-adapter.ts';

const REFUSED: FakeAnswer = { status: 401, body: '{"error":{"message":"invalid token","type":"authentication_error"}}' };

/** A good answer of this adapter's server. */
function ok(adapter: AdapterCase): FakeAnswer {
  return { body: adapter.stream({ text: 'hi' }), headers: { 'content-type': 'text/event-stream' } };
}

/** A source of tokens that keeps one until it is told to make another. */
function tokens() {
  const asked: boolean[] = [];
  let token = 1;
  const apiKey = async ({ refresh }: { readonly refresh: boolean }): Promise<string> => {
    asked.push(refresh);
    if (refresh) token += 1;
    return `token-${token}`;
  };
  return { apiKey, asked };
}

describe.each(ADAPTERS)('$name', (adapter) => {
  it('TD15 asks for the key at each request, and sends what it is then', async () => {
    let count = 0;
    const server = fakeServer(ok(adapter));
    const llm = adapter.connect({ fetch: server.fetch, apiKey: () => `token-${(count += 1)}` });
    await llm.chat(request());
    await llm.chat(request());

    expect(server.sent.map(({ headers }) => [...headers.values()].find((value) => value.includes('token-')))).toStrictEqual(
      [1, 2].map((number) => expect.stringContaining(`token-${number}`) as string),
    );
  });

  it('TD15 asks for the key anew when the server refuses it, and sends the request once more', async () => {
    const { apiKey, asked } = tokens();
    const failed: FailedAttempt[] = [];
    const server = fakeServer(REFUSED, ok(adapter));
    const response = await adapter.connect({ fetch: server.fetch, apiKey }).chat(request(undefined, { onAttemptFailed: (attempt) => void failed.push(attempt) }));

    expect(response.content).toMatchObject([{ type: 'text' }]);
    expect(asked).toStrictEqual([false, true]);
    expect(server.sent.map(({ text }) => text)).toStrictEqual([server.sent[0]?.text, server.sent[0]?.text]);
    expect(server.sent.map(({ headers }) => [...headers.values()].some((value) => value.includes('token-2')))).toStrictEqual([false, true]);
    expect(failed).toMatchObject([{ error: { kind: 'auth', status: 401 } }]);
  });

  it('TD15 gives an auth error when the new key is refused as well', async () => {
    const { apiKey, asked } = tokens();
    const failed: FailedAttempt[] = [];
    const server = fakeServer(REFUSED);
    const error = await errorOf(adapter.connect({ fetch: server.fetch, apiKey }).chat(request(undefined, { onAttemptFailed: (attempt) => void failed.push(attempt) })));

    expect(error).toMatchObject({ kind: 'auth', status: 401, retryable: false });
    expect([server.sent.length, asked.length, failed.length]).toStrictEqual([2, 2, 1]);
  });

  it('TD15 sends nothing again for a key that is a text', async () => {
    const server = fakeServer(REFUSED, ok(adapter));
    const error = await errorOf(adapter.connect({ fetch: server.fetch, apiKey: 'token-1' }).chat(request()));

    expect(error).toMatchObject({ kind: 'auth', status: 401 });
    expect(server.sent).toHaveLength(1);
  });
});

describe('a key that is asked for anew', () => {
  const OK = ok(ADAPTERS[0]!);

  it('TD15 is not sent again if it is the one that was refused', async () => {
    const server = fakeServer(REFUSED, OK);
    const failed: FailedAttempt[] = [];
    const error = await errorOf(chatOn(server, { apiKey: () => 'token-1\n' }).chat(request(undefined, { onAttemptFailed: (attempt) => void failed.push(attempt) })));

    expect(error).toMatchObject({ kind: 'auth', status: 401 });
    expect([server.sent.length, failed.length]).toStrictEqual([1, 0]);
  });

  it.each([
    ['403', { status: 403, body: '{"error":{"message":"not for you"}}' }],
    ['429', { status: 429, body: '{"error":{"message":"slow down"}}' }],
    ['401 that is about money', { status: 401, body: '{"error":{"message":"no credit","code":"insufficient_quota"}}' }],
    ['500', { status: 500, body: '{"error":{"message":"oops"}}' }],
  ])('TD15 is not asked for after a %s', async (_status, answer) => {
    const { apiKey, asked } = tokens();
    await errorOf(chatOn(fakeServer(answer, OK), { apiKey }).chat(request()));

    expect(asked).toStrictEqual([false]);
  });

  it('TD15 is asked for by each request that is refused', async () => {
    const { apiKey, asked } = tokens();
    const server = fakeServer(REFUSED, OK, REFUSED, OK);
    const llm = chatOn(server, { apiKey });
    await llm.chat(request());
    await llm.chat(request());

    expect(asked).toStrictEqual([false, true, false, true]);
    expect(server.sent.map(({ headers }) => headers.get('authorization'))).toStrictEqual([1, 2, 2, 3].map((number) => `Bearer token-${number}`));
  });

  it('TD16 ends the request with what the function says if there is no way to get one', async () => {
    const server = fakeServer(REFUSED, OK);
    const apiKey = ({ refresh }: { readonly refresh: boolean }): string => {
      if (refresh) throw new LLMError({ kind: 'auth', code: 'login_required', message: 'Log in again.' });
      return 'token-1';
    };

    expect(await errorOf(chatOn(server, { apiKey }).chat(request()))).toMatchObject({ kind: 'auth', code: 'login_required', retryable: false });
    expect(server.sent).toHaveLength(1);
  });

  it('TD15 is not waited for longer than for a connection, nor after an abort, and leaves nothing behind', async () => {
    const runtime = virtualRuntime();
    const scope = { turnId: 'turn_1', step: 1, stepId: 'step_1', runtime, notify: () => undefined };
    const apiKey = ({ refresh }: { readonly refresh: boolean }): string | Promise<string> => (refresh ? new Promise(() => undefined) : 'token-1');
    const late = errorOf(chatOn(fakeServer(REFUSED), { apiKey }).chat(request(undefined, { scope })));
    expect(await runtime.settle(late)).toMatchObject({ kind: 'timeout', code: 'api_key_timeout' });

    const controller = new AbortController();
    const aborted = errorOf(chatOn(fakeServer(REFUSED), { apiKey }).chat(request(undefined, { scope, signal: controller.signal })));
    await runtime.flush();
    controller.abort();
    expect(await runtime.settle(aborted)).toMatchObject({ kind: 'aborted' });
    expect(runtime.pendingTimers).toBe(0);
  });

  it('TD15 shows no key in any error', async () => {
    const server = fakeServer(REFUSED, { status: 401, body: '{"error":{"message":"token-2 is not valid, nor was token-1"}}' });
    const error = await errorOf(chatOn(server, { apiKey: tokens().apiKey }).chat(request()));

    expect(error.message).not.toMatch(/token-\d/);
  });
});

describe('a turn whose key cannot be had', () => {
  async function turn(apiKey: () => string | Promise<string>) {
    const runtime = virtualRuntime();
    const server = fakeServer(ok(ADAPTERS[0]!));
    const transcript = createTranscript();
    const listener = recordEvents();
    const result = await runtime.settle(
      runTurn({
        llm: withRetry(chatOn(server, { apiKey })),
        input: 'hi',
        buildMessages: transcript.buildMessages,
        dispatchEvent: createEventDispatcher({ record: transcript.record, emit: listener.emit }),
        runtime,
      }),
    );
    return { result, server, listener };
  }

  it('TD16 ends at once, without a retry, when the source of keys cannot be reached', async () => {
    let asked = 0;
    const { result, server, listener } = await turn(() => {
      asked += 1;
      throw Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:8200'), { code: 'ECONNREFUSED' });
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'auth', code: 'api_key_failed' } });
    expect([asked, server.sent.length]).toStrictEqual([1, 0]);
    expect(listener.of('step.retrying')).toStrictEqual([]);
  });

  it('TD16 ends with an auth error when a person has to log in first', async () => {
    const { result } = await turn(() => Promise.reject(new LLMError({ kind: 'auth', code: 'login_required', message: 'Log in first.' })));

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'auth', code: 'login_required', message: 'Log in first.' } });
  });
});
