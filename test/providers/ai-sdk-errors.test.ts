/** AI SDK failures: what models throw or report, aborts, time limits, and what of all this shows. Black-box. */
import { inspect } from 'node:util';
import { APICallError, InvalidResponseDataError, JSONParseError, LoadAPIKeyError, NoSuchModelError, TypeValidationError, UnsupportedFunctionalityError } from 'ai';
import { describe, expect, it } from 'vitest';
import { LLMError, type LLMDelta, type LLMRequest, userMessage } from 'turnloop';
import { virtualRuntime, watchedController } from 'turnloop/testing';
import { aiSdk, type AiSdkOptions } from 'turnloop/providers/ai-sdk';
import { errorOfParts, fakeModel, type FakeModel, type FakeModelOptions, finish, OK, text } from './ai-sdk-models.ts';
import { errorOf, request } from './fake-server.ts';

const URL_TEXT = 'https://api.example.com/v1/chat?key=QUERY-SECRET123';

function apiError(more: Partial<ConstructorParameters<typeof APICallError>[0]> = {}): APICallError {
  return new APICallError({ message: 'It failed', url: URL_TEXT, requestBodyValues: { key: 'BODY-SECRET123' }, ...more });
}

/** The error of a model that throws this when it is asked. */
function errorOfThrown(thrown: unknown, llm: AiSdkOptions = {}): Promise<LLMError> {
  return errorOfParts([], { thrown, llm });
}

describe('an HTTP failure', () => {
  it.each([
    [400, { error: { message: "This model's maximum context length is 8192 tokens" } }, 'context_overflow', false],
    [400, { error: { message: 'messages: tool_use ids were found without tool_result blocks' } }, 'invalid_history', false],
    [401, { error: { message: 'no' } }, 'auth', false],
    [403, { error: { message: 'no' } }, 'permission', false],
    [404, { error: { message: 'no' } }, 'not_found', false],
    [413, { error: { message: 'too big' } }, 'request_too_large', false],
    [422, { error: { message: 'bad' } }, 'invalid_request', false],
    [429, { error: { message: 'slow down' } }, 'rate_limit', true],
    [429, { error: { message: 'no money', code: 'insufficient_quota' } }, 'quota', false],
    [500, { error: { message: 'oops' } }, 'server', true],
    [529, { error: { message: 'Overloaded' } }, 'overloaded', true],
  ])('B6, EE1, EE2, EE3, EE4: of status %d and %j is %s', async (statusCode, body, kind, retryable) => {
    const error = await errorOfThrown(apiError({ statusCode, responseBody: JSON.stringify(body) }));

    expect(error).toMatchObject({ kind, retryable, status: statusCode });
    expect(error.message).toContain(`fake.chat answered ${statusCode}: ${body.error.message}`);
  });

  it('EE6: carries how long to wait and the id of the request', async () => {
    const responseHeaders = { 'Retry-After': '7', 'x-request-id': 'req_1', 'not a header': 'x', broken: 'a\u0000b' };

    expect(await errorOfThrown(apiError({ statusCode: 429, responseHeaders, responseBody: '{}' }))).toMatchObject({ retryAfterMs: 7000, requestId: 'req_1' });
  });

  it('is known by its fields, in causes too, and of other libraries', async () => {
    const { name: _name, stack: _stack, ...fields } = apiError({ statusCode: 503, responseBody: '{"error":"busy"}' });
    const gateway = Object.assign(new Error('Gateway request failed'), { statusCode: 500, cause: apiError({ statusCode: 429, responseBody: '{"error":{"message":"slow down"}}' }) });

    expect(await errorOfThrown(fields)).toMatchObject({ kind: 'overloaded', status: 503, message: expect.stringContaining('busy') });
    expect(await errorOfThrown(gateway)).toMatchObject({ kind: 'rate_limit', status: 429 });
    expect(await errorOfThrown(Object.assign(new Error('busy'), { statusCode: 503 }))).toMatchObject({ kind: 'overloaded', message: expect.stringContaining('busy') });
    expect(await errorOfThrown(Object.assign(new Error('slow down'), { status: 429, headers: new Headers({ 'retry-after': '3' }) }))).toMatchObject({ kind: 'rate_limit', retryAfterMs: 3000 });
  });

  it.each([
    [{ responseBody: '<html><title>Bad gateway</title></html>' }, 'Bad gateway'],
    [{ responseBody: '', data: { error: { message: 'said elsewhere' } } }, 'said elsewhere'],
    [{ responseBody: '{"type":"response.failed","response":{"error":{"message":"deep","code":"server_error"}}}' }, 'deep'],
    [{ responseBody: '{}', message: 'of the SDK' }, 'of the SDK'],
    [{ message: 'of the SDK' }, 'of the SDK'],
  ])('BR-095: says what the server said: %j', async (more, said) => {
    expect((await errorOfThrown(apiError({ statusCode: 502, ...more }))).message).toContain(said);
  });

  it('asks the host’s own wordings first', async () => {
    const error = await errorOfThrown(apiError({ statusCode: 400, responseBody: '{"error":{"message":"quota of the house"}}' }), { errorPatterns: [{ pattern: /house/, kind: 'quota', retryable: true }] });

    expect(error).toMatchObject({ kind: 'quota', retryable: true });
  });
});

describe('an answer that the SDK cannot read', () => {
  it.each([
    ['no JSON', apiError({ message: 'Invalid JSON response', statusCode: 200, responseBody: '<html>log in</html>', cause: new JSONParseError({ text: 'x', cause: 1 }) }), 'malformed_response'],
    ['an error with status 200', apiError({ message: 'Invalid JSON response', statusCode: 200, responseBody: '{"error":{"message":"maximum context length is 9","code":"context_length_exceeded"}}' }), 'context_overflow'],
    ['an error without a status', apiError({ data: { error: { message: 'Overloaded', type: 'overloaded_error' } } }), 'overloaded'],
    ['a failure without a reason', apiError({ message: 'no idea' }), 'server'],
  ])('BR-067: %s is known for what it is', async (_name, thrown, kind) => {
    expect(await errorOfThrown(thrown)).toMatchObject({ kind });
  });

  it('quotes the beginning of what came', async () => {
    const error = await errorOfThrown(apiError({ message: 'Invalid JSON response', statusCode: 200, responseBody: '<html>log in</html>' }));

    expect(error.message).toBe('fake.chat: Invalid JSON response: "<html>log in</html>"');
  });
});

describe('a failure within a stream', () => {
  it.each([
    ['an object', { type: 'overloaded_error', message: 'Overloaded' }, 'overloaded'],
    ['an object in an object', { type: 'error', error: { type: 'rate_limit_error', message: 'slow' } }, 'rate_limit'],
    ['a text', 'maximum context length is 9 tokens', 'context_overflow'],
    ['an object with a status', { message: 'quota', code: 'insufficient_quota', statusCode: 429, isRetryable: false }, 'quota'],
    ['an HTTP error', apiError({ statusCode: 529, responseBody: '{"error":{"message":"Overloaded"}}' }), 'overloaded'],
    ['an event that was not expected', new TypeValidationError({ value: { error: { message: 'busy', code: 'server_busy' } }, cause: 1 }), 'overloaded'],
    ['an event that is nothing known', new TypeValidationError({ value: { x: 1 }, cause: 1 }), 'malformed_response'],
    ['broken JSON', new JSONParseError({ text: '{', cause: 1 }), 'malformed_response'],
    ['a cut that the SDK saw', new InvalidResponseDataError({ data: 1, message: 'Response stream ended without a finish reason.' }), 'network'],
    ['nothing', undefined, 'unknown'],
  ])('BR-043, BR-067: of %s is known, and what had come is kept', async (_name, error, kind) => {
    expect(await errorOfParts([...text('par'), { type: 'error', error }, finish()])).toMatchObject({ kind, partial: [{ text: 'par' }] });
  });

  it('cancels the stream', async () => {
    const model = fakeModel([{ type: 'error', error: 'no' }, ...text('x')], { open: true });
    await errorOf(aiSdk(model).chat(request()));

    expect(model.cancelled()).toBe(1);
    expect(model.calls[0]?.abortSignal.aborted).toBe(true);
  });
});

describe('a broken connection', () => {
  const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

  it.each([
    ['a fetch that failed', apiError({ message: 'Cannot connect to API: x', cause: new TypeError('fetch failed', { cause: reset }), isRetryable: true }), 'network', 'ECONNRESET'],
    ['a socket', new TypeError('terminated', { cause: reset }), 'network', 'ECONNRESET'],
    ['a socket without a code', new TypeError('terminated'), 'network', 'network'],
    ['a slow one', new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'UND_ERR_HEADERS_TIMEOUT' }) }), 'timeout', 'UND_ERR_HEADERS_TIMEOUT'],
    ['a signal of somebody else', new DOMException('This operation was aborted', 'AbortError'), 'network', 'network'],
  ])('EE8, BR-091: of %s is a failure worth a retry', async (_name, thrown, kind, code) => {
    expect(await errorOfThrown(thrown)).toMatchObject({ kind, code, retryable: true });
    expect(await errorOfParts(text('par'), { failure: thrown })).toMatchObject({ kind, retryable: true, partial: [{ text: 'par' }] });
  });
});

describe('a failure of the program', () => {
  it.each([
    ['a missing key', new LoadAPIKeyError({ message: 'OpenAI API key is missing.' }), 'auth'],
    ['a missing model', new NoSuchModelError({ modelId: 'x', modelType: 'languageModel' }), 'not_found'],
    ['media that the provider cannot have', new UnsupportedFunctionalityError({ functionality: 'media type: video/mp4' }), 'media_rejected'],
    ['another thing it cannot do', new UnsupportedFunctionalityError({ functionality: 'toolChoice none' }), 'invalid_request'],
    ['a bug', new TypeError('x is not a function'), 'unknown'],
    ['a code of the program', Object.assign(new TypeError('bad'), { code: 'ERR_INVALID_ARG_TYPE' }), 'unknown'],
    ['no error at all', 7, 'unknown'],
    ['nothing', null, 'unknown'],
  ])('such as %s is not worth a retry', async (_name, thrown, kind) => {
    expect(await errorOfThrown(thrown)).toMatchObject({ kind, retryable: false });
  });

  it('of ours is handed on as it is', async () => {
    const thrown = new LLMError({ kind: 'refused', message: 'no' });

    expect(await errorOfThrown(thrown)).toBe(thrown);
  });

  it.each([undefined, {}, { stream: {} }, null])('is a model that gives %o in the place of a stream', async (result) => {
    const model = { ...fakeModel(), doStream: () => Promise.resolve(result) } as unknown as FakeModel;

    expect(await errorOf(aiSdk(model).chat(request()))).toMatchObject({ kind: 'malformed_response', message: expect.stringContaining('gave no stream') });
  });

  it('is a model that does not know its own addresses', async () => {
    const supportedUrls = Promise.reject(new Error('no'));

    expect(await errorOfParts(OK, { supportedUrls })).toMatchObject({ kind: 'unknown', message: 'fake.chat failed: no' });
  });
});

/** Every way in which an error or an object gets into a log. */
function views(value: unknown): string {
  const error = value as Partial<Error>;
  return [String(value), error.stack, JSON.stringify(value), inspect(value, { depth: 10, showHidden: true }), inspect(Object.values(value as object), { depth: 10 })].join('\n');
}

describe('BR-049: an error holds no secret', () => {
  const ECHO = 'Incorrect API key provided: sk-KEY-SECRET123, authorization: Bearer TOKEN-SECRET123, x-api-key HEADER-SECRET123 at https://h/?key=QUERY-SECRET123';
  const llm: AiSdkOptions = { headers: { 'x-api-key': 'HEADER-SECRET123' } };
  const secretive = { url: URL_TEXT, responseHeaders: { 'set-cookie': 'COOKIE-SECRET123', 'x-request-id': 'QUERY-SECRET123' }, cause: new Error(ECHO) };

  it.each<[string, FakeModelOptions & { readonly parts?: readonly unknown[] }]>([
    ['an HTTP failure', { thrown: apiError({ ...secretive, statusCode: 401, responseBody: JSON.stringify({ error: { message: ECHO, code: ECHO } }) }) }],
    ['a page', { thrown: apiError({ ...secretive, statusCode: 502, responseBody: `<html>${ECHO}</html>` }) }],
    ['a success that is none', { thrown: apiError({ ...secretive, statusCode: 200, responseBody: ECHO, message: ECHO }) }],
    ['no connection', { thrown: apiError({ ...secretive, message: `Cannot connect to API: ${ECHO}` }) }],
    ['an error of the SDK', { thrown: new TypeValidationError({ value: { echo: ECHO }, cause: 1 }) }],
    ['a bug', { thrown: Object.assign(new Error(ECHO), { requestBody: ECHO }) }],
    ['a stream that breaks', { failure: new TypeError(`terminated: ${ECHO}`) }],
    ['a code', { thrown: Object.assign(new Error('x'), { code: 'EQUERY-SECRET123' }) }],
    ['an error part', { parts: [{ type: 'error', error: { message: ECHO, code: ECHO } }] }],
  ])('after %s', async (_name, { parts = [], ...model }) => {
    const error = await errorOfParts(parts, { ...model, llm });

    expect(error).toBeInstanceOf(LLMError);
    expect(error.cause).toBeUndefined();
    expect(views(error)).not.toContain('SECRET123');
  });

  it.each([
    ['{"api_key":"abcdefgh1234"}', '{"api_key":"***"}'],
    ['password=hunter2222 was wrong', 'password=*** was wrong'],
    ['AIzaSyA0123456789abcdefgh is no key', '*** is no key'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln expired', '*** expired'],
    ['max_tokens: 200000 is too many for claude-sonnet-4-5-20250929', 'max_tokens: 200000 is too many for claude-sonnet-4-5-20250929'],
    ['unexpected token: abc', 'unexpected token: abc'],
  ])('and no key of any usual shape: %s', async (said, expected) => {
    expect((await errorOfParts([{ type: 'error', error: { message: said } }])).message).toBe(`fake.chat answered with an error: ${expected}`);
  });

  it('nor does the LLM, whatever the model holds', () => {
    const model = Object.assign(fakeModel(), { config: { apiKey: 'sk-SECRET123' } });

    expect(views(aiSdk(model, { headers: { authorization: 'Bearer SECRET123' } }))).not.toContain('SECRET123');
  });
});

describe('GN10: an abort', () => {
  it('BR-157: before the request asks nobody', async () => {
    const { model, controller } = { model: fakeModel(OK), controller: new AbortController() };
    controller.abort();

    expect(await errorOf(aiSdk(model).chat(request(undefined, { signal: controller.signal })))).toMatchObject({ kind: 'aborted' });
    expect(model.calls).toHaveLength(0);
  });

  it.each<[string, FakeModelOptions, readonly unknown[], AiSdkOptions?]>([
    ['the model answers', { silent: true }, []],
    ['the model makes its whole result', { silent: true }, [], { stream: false }],
    ['it says which addresses it takes', { supportedUrls: new Promise<never>(() => {}) }, []],
    ['the next part comes', { open: true }, text('par')],
  ])('EE7, BR-070: while %s ends the request at once, though the model does not heed it', async (_name, options, parts, llm) => {
    const controller = watchedController();
    const model = fakeModel(parts, options);
    const chat = errorOf(aiSdk(model, llm).chat(request(undefined, { signal: controller.signal })));
    await new Promise((resolve) => setImmediate(resolve));
    controller.abort();

    expect(await chat).toMatchObject({ kind: 'aborted', partial: parts.length === 0 ? undefined : [{ text: 'par' }] });
    expect(model.calls.every(({ abortSignal }) => abortSignal.aborted)).toBe(true);
    expect(model.cancelled()).toBe(parts.length === 0 ? 0 : 1);
    expect(controller.listenerCount).toBe(0);
  });

  it('ends a stream of another make that goes on after it was cancelled', async () => {
    const controller = new AbortController();
    let reads = 0;
    const read = async (): Promise<unknown> => {
      reads += 1;
      if (reads === 3) controller.abort();
      return { done: reads > 1000, value: { type: 'text-delta', id: '0', delta: 'x' } };
    };
    const model = { ...fakeModel(), doStream: () => Promise.resolve({ stream: { getReader: () => ({ read, cancel: async () => {} }) } }) } as unknown as FakeModel;

    expect(await errorOf(aiSdk(model).chat(request(undefined, { signal: controller.signal })))).toMatchObject({ kind: 'aborted', partial: [{ text: 'xx' }] });
    expect(reads).toBe(3);
  });

  const CANCELS: readonly (readonly [string, () => unknown])[] = [
    ['gives nothing', () => undefined],
    ['throws', () => { throw new Error('no cancel here'); }],
    ['rejects', () => Promise.reject(new Error('no cancel here'))],
    ['never ends', () => new Promise(() => {})],
  ];

  /** A model whose stream is of another make: what is read comes from a list, and then nothing ever does. */
  function foreignModel(parts: readonly unknown[], cancel: (() => unknown) | undefined): FakeModel {
    const left = [...parts];
    const read = (): Promise<unknown> => (left.length > 0 ? Promise.resolve({ done: false, value: left.shift() }) : new Promise(() => {}));
    const stream = { getReader: () => ({ read, cancel }), cancel };
    return { ...fakeModel(), doStream: () => Promise.resolve({ stream }) } as unknown as FakeModel;
  }

  it.each(CANCELS)('ends a stream of another make that never settles, and whose `cancel` %s', async (_what, cancel) => {
    const controller = watchedController();
    const chat = errorOf(aiSdk(foreignModel(text('par'), cancel)).chat(request(undefined, { signal: controller.signal })));
    await new Promise((resolve) => setImmediate(resolve));
    controller.abort();

    expect(await chat).toMatchObject({ kind: 'aborted', partial: [{ text: 'par' }] });
    expect(controller.listenerCount).toBe(0);
  });

  it.each([...CANCELS, ['is not there', undefined] as const])('B7: ends a finished reply of such a stream, whose `cancel` %s, soon', async (_what, cancel) => {
    const runtime = virtualRuntime();
    const scope: LLMRequest['scope'] = { turnId: 't', step: 1, stepId: 's', runtime, notify() {} };
    const chat = aiSdk(foreignModel(OK, cancel)).chat(request(undefined, { scope }));
    await new Promise((resolve) => setImmediate(resolve));
    await runtime.advance(1000);

    expect(await chat).toMatchObject({ content: [{ text: 'ok' }], stopReason: 'end_turn' });
    expect(runtime.pendingTimers).toBe(0);
  });

  it.each(CANCELS)('B8: ends the wait for such a stream, whose `cancel` %s, when its time is up', async (_what, cancel) => {
    const runtime = virtualRuntime();
    const scope: LLMRequest['scope'] = { turnId: 't', step: 1, stepId: 's', runtime, notify() {} };
    const chat = errorOf(aiSdk(foreignModel(text('par'), cancel)).chat(request(undefined, { scope })));
    await new Promise((resolve) => setImmediate(resolve));
    await runtime.advance(60_000);

    expect(await chat).toMatchObject({ kind: 'timeout', code: 'between_tokens_timeout', partial: [{ text: 'par' }] });
  });

  it.each(CANCELS)('lets go of such a stream that comes too late, whose `cancel` %s', async (_what, cancel) => {
    const controller = new AbortController();
    let answer = (): void => {};
    const late: FakeModel = {
      ...foreignModel(OK, cancel),
      async doStream(options) {
        await new Promise<void>((resolve) => (answer = resolve));
        return foreignModel(OK, cancel).doStream(options);
      },
    };
    const chat = errorOf(aiSdk(late).chat(request(undefined, { signal: controller.signal })));
    await new Promise((resolve) => setImmediate(resolve));
    controller.abort();

    expect(await chat).toMatchObject({ kind: 'aborted' });
    answer();
    await new Promise((resolve) => setImmediate(resolve));
  });

  it.each<[string, () => unknown, string]>([
    ['throws', () => { throw new Error('broken'); }, 'unknown'],
    ['gives no promise', () => ({ done: true, value: undefined }), 'network'],
    ['gives nothing', () => undefined, 'unknown'],
  ])('of a stream whose `read` %s is a failure', async (_what, read, kind) => {
    const stream = { getReader: (): unknown => ({ read }) };
    const model = { ...fakeModel(), doStream: () => Promise.resolve({ stream }) } as unknown as FakeModel;

    expect(await errorOf(aiSdk(model).chat(request()))).toMatchObject({ kind });
  });

  it('cancels a stream that comes too late', async () => {
    const controller = new AbortController();
    const model = fakeModel(OK);
    let answer: (() => void) | undefined;
    const late: FakeModel = {
      ...model,
      async doStream(options) {
        await new Promise<void>((resolve) => (answer = resolve));
        return model.doStream(options);
      },
    };
    const chat = errorOf(aiSdk(late).chat(request(undefined, { signal: controller.signal })));
    await new Promise((resolve) => setImmediate(resolve));
    controller.abort();
    await chat;
    answer?.();
    await new Promise((resolve) => setImmediate(resolve));

    expect(model.cancelled()).toBe(1);
  });

  it.each([0, 1])('in a fragment’s callback is the end, also in the last one (%d)', async (at) => {
    const controller = new AbortController();
    const deltas: LLMDelta[] = [];
    const onDelta = (delta: LLMDelta): void => {
      deltas.push(delta);
      if (deltas.length === at + 1) controller.abort();
    };
    const model = fakeModel([...text('a'), ...text('b'), finish()]);

    expect(await errorOf(aiSdk(model).chat(request(undefined, { signal: controller.signal, onDelta })))).toMatchObject({ kind: 'aborted' });
    expect(deltas).toHaveLength(at + 1);
  });

  it('in a callback of a result that was not streamed is the end as well', async () => {
    const controller = new AbortController();
    const deltas: LLMDelta[] = [];
    const onDelta = (delta: LLMDelta): void => {
      deltas.push(delta);
      controller.abort();
    };
    const result = { content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }], finishReason: { unified: 'stop', raw: 'stop' } };

    expect(await errorOf(aiSdk(fakeModel([result]), { stream: false }).chat(request(undefined, { signal: controller.signal, onDelta })))).toMatchObject({ kind: 'aborted' });
    expect(deltas).toHaveLength(1);
  });

  it('XC4: leaves the model usable', async () => {
    const controller = new AbortController();
    const llm = aiSdk(fakeModel(OK));
    controller.abort();
    await errorOf(llm.chat(request(undefined, { signal: controller.signal })));

    expect(await llm.chat(request())).toMatchObject({ content: [{ text: 'ok' }] });
  });
});

describe('B8: time limits', () => {
  /** A request on a clock that stands still until it is moved. */
  function timed(model: FakeModel, timeouts: AiSdkOptions['timeouts'] = {}): { readonly chat: Promise<LLMError>; readonly runtime: ReturnType<typeof virtualRuntime> } {
    const runtime = virtualRuntime();
    const scope: LLMRequest['scope'] = { turnId: 't', step: 1, stepId: 's', runtime, notify() {} };
    return { chat: errorOf(aiSdk(model, { timeouts }).chat(request([userMessage('hi')], { scope }))), runtime };
  }

  it.each<[string, FakeModel, AiSdkOptions['timeouts'], string, number]>([
    ['answer', fakeModel([], { silent: true }), { connectMs: 10 }, 'connect_timeout', 10],
    ['answer, by default as long as for the first token', fakeModel([], { silent: true }), undefined, 'connect_timeout', 290_000],
    ['send a token', fakeModel([{ type: 'stream-start', warnings: [] }, { type: 'text-start', id: '0' }], { open: true }), { firstTokenMs: 20 }, 'first_token_timeout', 20],
    ['go on', fakeModel(text('x'), { open: true }), { betweenTokensMs: 30 }, 'between_tokens_timeout', 30],
    ['go on, by default', fakeModel(text('x'), { open: true }), undefined, 'between_tokens_timeout', 60_000],
  ])('end the wait for a model that does not %s', async (_name, model, timeouts, code, limitMs) => {
    const { chat, runtime } = timed(model, timeouts);
    await new Promise((resolve) => setImmediate(resolve));
    await runtime.advance(limitMs - 1);
    expect(runtime.pendingTimers).toBe(1);
    await runtime.advance(1);

    expect(await chat).toMatchObject({ kind: 'timeout', code, retryable: true });
    expect(runtime.pendingTimers).toBe(0);
    expect(model.calls[0]?.abortSignal.aborted).toBe(true);
  });

  it('leave no timer behind a reply, and measure it', async () => {
    const runtime = virtualRuntime();
    const scope: LLMRequest['scope'] = { turnId: 't', step: 1, stepId: 's', runtime, notify() {} };
    const response = await aiSdk(fakeModel(OK)).chat(request(undefined, { scope }));

    expect(runtime.pendingTimers).toBe(0);
    expect(response.timing).toStrictEqual({ firstDeltaMs: 0, totalMs: 0 });
  });
});
