/** What goes wrong with Gemini: errors as Google words them, aborts, networks, and what must not show. Black-box. */
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type LLMErrorKind, userMessage } from 'turnloop';
import { errorOf, fakeServer, request } from './fake-server.ts';
import { bodyOf, chunk, errorOfGemini, geminiOn, OK, readGemini, stream } from './google-support.ts';

interface Failure {
  readonly code: number;
  readonly status: string;
  readonly message: string;
  readonly details?: readonly object[];
}

const KEY_INVALID = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID', domain: 'googleapis.com', metadata: { service: 'generativelanguage.googleapis.com' } };
const DAILY = {
  '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
  violations: [{ quotaMetric: 'generativelanguage.googleapis.com/generate_content_free_tier_requests', quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier', quotaValue: '250' }],
};

const failures: readonly (readonly [string, Failure, LLMErrorKind, boolean])[] = [
  ['a key that is none', { code: 400, status: 'INVALID_ARGUMENT', message: 'API key not valid. Please pass a valid API key.', details: [KEY_INVALID] }, 'auth', false],
  ['a token that is none', { code: 401, status: 'UNAUTHENTICATED', message: 'Request had invalid authentication credentials.' }, 'auth', false],
  ['no permission', { code: 403, status: 'PERMISSION_DENIED', message: 'Method doesn\'t allow unregistered callers.' }, 'permission', false],
  ['no such model', { code: 404, status: 'NOT_FOUND', message: 'models/gemini-0 is not found for API version v1beta.' }, 'not_found', false],
  ['a wrong field', { code: 400, status: 'INVALID_ARGUMENT', message: 'Invalid JSON payload received. Unknown name "id" at \'contents[1].parts[0].function_call\': Cannot find field.' }, 'invalid_request', false],
  ['the wrong place', { code: 400, status: 'FAILED_PRECONDITION', message: 'User location is not supported for the API use.' }, 'invalid_request', false],
  ['a prompt that is too long', { code: 400, status: 'INVALID_ARGUMENT', message: 'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).' }, 'context_overflow', false],
  ['a body that is too large', { code: 400, status: 'INVALID_ARGUMENT', message: 'Request payload size exceeds the limit: 20971520 bytes.' }, 'request_too_large', false],
  ['an image that is none', { code: 400, status: 'INVALID_ARGUMENT', message: 'Provided image is not valid.' }, 'media_rejected', false],
  ['an image it cannot read', { code: 400, status: 'INVALID_ARGUMENT', message: 'Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting' }, 'media_rejected', false],
  ['a type it does not take', { code: 400, status: 'INVALID_ARGUMENT', message: 'Unsupported MIME type: image/gif' }, 'media_rejected', false],
  ['an address it cannot read', { code: 400, status: 'INVALID_ARGUMENT', message: 'Cannot fetch content from the provided URL.' }, 'media_rejected', false],
  ['a PDF without pages', { code: 400, status: 'INVALID_ARGUMENT', message: 'The document has no pages.' }, 'media_rejected', false],
  [
    'results that are not as many as the calls',
    { code: 400, status: 'INVALID_ARGUMENT', message: 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.' },
    'invalid_history',
    false,
  ],
  ['calls behind no user', { code: 400, status: 'INVALID_ARGUMENT', message: 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.' }, 'invalid_history', false],
  ['results behind no calls', { code: 400, status: 'INVALID_ARGUMENT', message: 'Please ensure that function response turn comes immediately after a function call turn.' }, 'invalid_history', false],
  ['sides that do not alternate', { code: 400, status: 'INVALID_ARGUMENT', message: 'Please ensure that multiturn requests alternate between user and model.' }, 'invalid_history', false],
  ['an empty content', { code: 400, status: 'INVALID_ARGUMENT', message: '* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.' }, 'invalid_history', false],
  ['a call without a signature', { code: 400, status: 'INVALID_ARGUMENT', message: 'Function call is missing a thought_signature in functionCall parts.' }, 'invalid_history', false],
  ['a broken signature', { code: 400, status: 'INVALID_ARGUMENT', message: 'Corrupted thought signature.' }, 'invalid_history', false],
  ['too many requests', { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'Resource has been exhausted (e.g. check quota).' }, 'rate_limit', true],
  ['a quota of the day', { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'You exceeded your current quota, please check your plan and billing details.', details: [DAILY] }, 'rate_limit', true],
  ['a caller that left', { code: 499, status: 'CANCELLED', message: 'The operation was cancelled.' }, 'server', true],
  ['a fault', { code: 500, status: 'INTERNAL', message: 'An internal error has occurred. Please retry or report in …' }, 'server', true],
  ['an overload', { code: 503, status: 'UNAVAILABLE', message: 'The model is overloaded. Please try again later.' }, 'overloaded', true],
  ['a deadline', { code: 504, status: 'DEADLINE_EXCEEDED', message: 'Deadline expired before operation could complete.' }, 'timeout', true],
];

describe('GG7, EE1, EE2, EE4, EE5: errors of Google', () => {
  it.each(failures)('say %s, as a status, in a list, and within a stream', async (_name, error, kind, retryable) => {
    const expected = { kind, retryable, code: error.status, message: expect.stringContaining(error.message.slice(0, 60)) };
    const json = JSON.stringify({ error });

    expect(await errorOfGemini(json, { status: error.code })).toMatchObject({ ...expected, status: error.code });
    expect(await errorOfGemini(`[${json}]`, { status: error.code })).toMatchObject(expected);
    expect(await errorOfGemini(stream(chunk([{ text: 'par' }]), { error }))).toMatchObject({ ...expected, partial: [{ type: 'text', text: 'par' }] });
  });

  it.each(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'RESOURCE_EXHAUSTED', 'INTERNAL', 'CANCELLED'])('are known by the word %s alone', async (status) => {
    expect(await errorOfGemini(stream({ error: { status, message: 'm' } }))).toMatchObject({ retryable: true });
  });

  it('EE6: say how long to wait, in the details and in the text', async () => {
    const limited = (error: object): string => JSON.stringify({ error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'm', ...error } });
    const retry = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '48s' };

    expect(await errorOfGemini(limited({ details: [DAILY, retry] }), { status: 429 })).toMatchObject({ retryAfterMs: 48_000 });
    expect(await errorOfGemini(limited({ message: 'Quota exceeded. Please retry in 20.04466179s.' }), { status: 429 })).toMatchObject({ retryAfterMs: 20_045 });
  });

  it('EE3: tell a body that is too large from a prompt that is', async () => {
    expect(await errorOfGemini('', { status: 413 })).toMatchObject({ kind: 'request_too_large' });
    expect(await errorOfGemini(JSON.stringify({ error: { message: 'too many tokens' } }), { status: 413 })).toMatchObject({ kind: 'context_overflow' });
  });

  it('BR-127: never mistake throttling for an overflow', async () => {
    const message = 'Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000. The input token count exceeds the maximum per minute.';

    expect(await errorOfGemini(JSON.stringify({ error: { code: 429, status: 'RESOURCE_EXHAUSTED', message } }), { status: 429 })).toMatchObject({ kind: 'rate_limit' });
  });

  it('B6: know a host\'s own words', async () => {
    const fake = fakeServer({ status: 400, body: JSON.stringify({ error: { code: 400, status: 'INVALID_ARGUMENT', message: 'zu lang' } }) });

    expect(await errorOf(geminiOn(fake, { errorPatterns: [{ pattern: /zu lang/, kind: 'context_overflow' }] }).chat(request()))).toMatchObject({ kind: 'context_overflow' });
  });

  it('EE9: say which option sets what was refused', async () => {
    const fake = fakeServer({ status: 400, body: JSON.stringify({ error: { code: 400, status: 'INVALID_ARGUMENT', message: 'Thinking level XHIGH is not supported for this model.' } }) });

    expect((await errorOf(geminiOn(fake).chat(request()))).message).toContain('`thinkingEffort`');
  });
});

describe('GG7, EE8: networks', () => {
  it.each([
    ['ECONNRESET', 'network'],
    ['ENOTFOUND', 'network'],
    ['ECONNREFUSED', 'network'],
    ['ETIMEDOUT', 'timeout'],
    ['UND_ERR_HEADERS_TIMEOUT', 'timeout'],
    ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
  ])('that fail with %s', async (code, kind) => {
    const fetch = async (): Promise<Response> => {
      throw new TypeError('fetch failed', { cause: { code } });
    };

    expect(await errorOf(geminiOn({ fetch }).chat(request()))).toMatchObject({ kind, code, retryable: true });
  });

  it('that break without a word', async () => {
    const fetch = async (): Promise<Response> => {
      throw new TypeError('terminated');
    };

    expect(await errorOf(geminiOn({ fetch }).chat(request()))).toMatchObject({ kind: 'network', retryable: true });
  });
});

describe('GG6, GN10, EE7: an abort', () => {
  it('sends nothing when it was there before', async () => {
    const fake = fakeServer(OK);

    expect(await errorOf(geminiOn(fake).chat(request(undefined, { signal: AbortSignal.abort() })))).toMatchObject({ kind: 'aborted', retryable: false });
    expect(fake.sent).toHaveLength(0);
  });

  it('wins against a fetch that does not listen', async () => {
    const controller = new AbortController();
    const fetch = (): Promise<Response> => {
      controller.abort();
      return new Promise(() => {});
    };

    expect(await errorOf(geminiOn({ fetch }).chat(request(undefined, { signal: controller.signal })))).toMatchObject({ kind: 'aborted' });
  });

  it('wins at the borders of the chunks, within a chunk and in its last one, and keeps the text', async () => {
    const chunks = [chunk([{ text: 'a' }]), chunk([{ text: 'b' }]), chunk([{ text: 'c' }], 'STOP')];
    for (const chunking of ['whole', 'bytes', 'cuts'] as const) {
      for (const at of [1, 2, 3]) {
        const controller = new AbortController();
        const fake = fakeServer({ body: stream(...chunks), chunking, open: true });
        let deltas = 0;
        const onDelta = (): void => {
          deltas += 1;
          if (deltas === at) controller.abort();
        };

        const error = await errorOf(geminiOn(fake).chat(request(undefined, { signal: controller.signal, onDelta })));

        expect(error).toMatchObject({ kind: 'aborted', partial: [{ type: 'text', text: 'abc'.slice(0, at) }] });
        expect(deltas).toBe(at);
        expect(fake.cancelled()).toBe(1);
      }
    }
  });

  it('XC4: leaves the adapter usable', async () => {
    const fake = fakeServer(OK);
    const llm = geminiOn(fake);
    await errorOf(llm.chat(request(undefined, { signal: AbortSignal.abort() })));

    expect(await llm.chat(request())).toMatchObject({ content: [{ text: 'ok' }] });
  });
});

describe('one adapter', () => {
  it('XC1: answers concurrent requests apart', async () => {
    const fetch = async (_url: unknown, init?: RequestInit): Promise<Response> => {
      const { contents } = JSON.parse(init?.body as string) as { contents: { parts: { text: string }[] }[] };
      return new Response(stream(chunk([{ text: contents[0]!.parts[0]!.text }]), chunk([], 'STOP')));
    };
    const llm = geminiOn({ fetch });
    const replies = await Promise.all(['a', 'b', 'c'].map((text) => llm.chat(request([userMessage(text)]))));

    expect(replies.map(({ content }) => content)).toStrictEqual(['a', 'b', 'c'].map((text) => [{ type: 'text', text }]));
  });

  it('XC1: keeps what another is told to itself', async () => {
    const fake = fakeServer(OK);
    const body = { generationConfig: { topK: 3 } };
    const options = { model: 'gemini-3-flash-preview', body } as const;
    await geminiOn(fake, { ...options, thinkingEffort: 'high', temperature: 1 }).chat(request(undefined, { maxOutputTokens: 5 }));
    await geminiOn(fake, options).chat(request());

    expect(bodyOf(fake.sent[1]).generationConfig).toStrictEqual({ topK: 3 });
    expect(body).toStrictEqual({ generationConfig: { topK: 3 } });
  });
});

describe('BR-049, B12: no secret shows', () => {
  const OPTIONS = { apiKey: 'key-SECRET123', baseUrl: 'https://h.example/v1beta?key=QUERY-SECRET123' };
  const ECHO = 'API key not valid: key-SECRET123 (https://h.example/v1beta?key=QUERY-SECRET123)';

  it.each([
    ['an error that echoes the key', { status: 400, body: JSON.stringify({ error: { code: 400, message: ECHO, status: ECHO, details: [{ reason: ECHO }] } }) }],
    ['a blocked prompt', { body: stream({ promptFeedback: { blockReason: ECHO, blockReasonMessage: ECHO } }) }],
    ['a failed reply', { body: stream({ candidates: [{ finishReason: 'MALFORMED_FUNCTION_CALL', finishMessage: ECHO }] }) }],
    ['an unknown end of an empty reply', { body: JSON.stringify({ candidates: [{ finishReason: 'STOP' }], echo: ECHO }) }],
    ['no reply at all', { body: JSON.stringify({ echo: ECHO }) }],
  ])('after %s', async (_name, answer) => {
    const error = await errorOf(geminiOn(fakeServer(answer), OPTIONS).chat(request()));

    for (const view of [String(error), error.stack, error.code, JSON.stringify(error), inspect(error, { depth: 9, showHidden: true })]) expect(view).not.toContain('SECRET123');
  });

  it('on the LLM itself', () => {
    const llm = geminiOn(fakeServer(OK), OPTIONS);

    expect(`${JSON.stringify(llm)}${inspect(llm, { depth: 9, showHidden: true })}`).not.toContain('SECRET123');
  });

  it('keeps the query of the address, and adds to it', async () => {
    const fake = fakeServer(OK);
    await geminiOn(fake, OPTIONS).chat(request());

    expect(fake.sent[0]!.url).toBe('https://h.example/v1beta/models/gemini-2.5-flash:streamGenerateContent?key=QUERY-SECRET123&alt=sse');
  });
});

it('reads answers whatever their content type says', async () => {
  const body = stream(chunk([{ text: 'x' }], 'STOP'));

  expect((await readGemini(body)).response.content).toHaveLength(1);
  expect((await geminiOn(fakeServer({ body, headers: { 'content-type': 'application/json' } })).chat(request())).content).toHaveLength(1);
});
