/**
 * withRetry as a black box: which failures are repeated, after which delays, and what an abort does to it. Time is
 * virtual. What a turn makes of a retry is in `retry-in-a-turn.test.ts`.
 */
import { getEventListeners } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import {
  decorateLLM,
  type FailedAttempt,
  LLMError,
  type LLMDelta,
  type LLMErrorKind,
  type LLMErrorOptions,
  type LLMRequest,
  type LLMResponse,
  NO_USAGE,
  userMessage,
} from 'turnloop';
import { retryDelayMs, type RetryOptions, withRetry } from 'turnloop/policies';
import { cutStream, hanging, repeat, type Reply, type RepeatedReply, scriptedLLM, virtualRuntime } from 'turnloop/testing';

function failure(kind: LLMErrorKind, options: Partial<LLMErrorOptions> = {}): LLMError {
  return new LLMError({ kind, message: `${kind}.`, ...options });
}

interface Scenario {
  readonly replies: readonly (Reply | RepeatedReply)[];
  readonly options?: RetryOptions;
  readonly request?: Partial<LLMRequest>;
}

/** Asks a retried scripted model once, and tells what came of it. */
function ask({ replies, options, request = {} }: Scenario) {
  const runtime = virtualRuntime();
  const llm = scriptedLLM(replies, { runtime });
  const failed: FailedAttempt[] = [];
  const deltas: LLMDelta[] = [];
  const waits: number[] = [];
  const observed = {
    ...runtime,
    setTimer: (delayMs: number, callback: () => void) => {
      waits.push(delayMs);
      return runtime.setTimer(delayMs, callback);
    },
  };
  const response = withRetry(llm, options).chat({
    systemPrompt: '',
    messages: [userMessage('Hello')],
    tools: [],
    signal: new AbortController().signal,
    onDelta: (delta) => deltas.push(delta),
    onAttemptFailed: (attempt) => {
      failed.push(attempt);
    },
    scope: { turnId: 'turn_1', step: 1, stepId: 'step_1', runtime: observed, notify: () => undefined },
    ...request,
  });
  response.catch(() => undefined);
  const settle = (): Promise<LLMResponse> => runtime.settle(response);
  return { runtime, llm, response, settle, failed, deltas, waits };
}

describe('withRetry', () => {
  it('RT2 retries a dropped stream and returns the answer of the second attempt', async () => {
    const { settle, llm, failed } = ask({ replies: [cutStream('Hello world', { deltaCount: 1 }), 'Hello world'] });

    const response = await settle();

    expect(response.content).toStrictEqual([{ type: 'text', text: 'Hello world' }]);
    expect(failed).toStrictEqual([{ error: expect.objectContaining({ kind: 'network' }), delayMs: expect.any(Number), maxAttempts: 10 }]);
    llm.assertDone();
  });

  it.each<LLMErrorKind>(['rate_limit', 'overloaded', 'server', 'network', 'timeout', 'malformed_response'])(
    'EE1 retries a failure of kind %s',
    async (kind) => {
      const { settle, llm } = ask({ replies: [failure(kind), 'ok'] });

      await settle();

      llm.assertDone();
    },
  );

  it.each<LLMErrorKind>([
    'auth',
    'permission',
    'not_found',
    'quota',
    'invalid_request',
    'invalid_history',
    'context_overflow',
    'request_too_large',
    'media_rejected',
    'content_filter',
    'refused',
    'aborted',
    'unknown',
  ])('EE1 throws a failure of kind %s after one call, and tells nobody before', async (kind) => {
    const error = failure(kind);
    const { settle, llm, failed } = ask({ replies: [error] });

    await expect(settle()).rejects.toBe(error);

    expect(llm.callCount).toBe(1);
    expect(failed).toStrictEqual([]);
  });

  it('EE1 does not retry an empty reply that a filter caused', async () => {
    const { settle, llm } = ask({ replies: [failure('malformed_response', { code: 'empty', retryable: false })] });

    await expect(settle()).rejects.toMatchObject({ code: 'empty' });

    expect(llm.callCount).toBe(1);
  });

  it('RT4 does not retry a failure of the key function', async () => {
    const { settle, llm } = ask({ replies: [failure('auth', { message: 'The key could not be had: connection refused.' })] });

    await expect(settle()).rejects.toMatchObject({ kind: 'auth' });

    expect(llm.callCount).toBe(1);
  });

  it('RT8 makes ten calls by default, tells of nine failures, and throws the last', async () => {
    const errors = Array.from({ length: 10 }, (_, index) => failure('overloaded', { message: `Failure ${index + 1}.` }));
    const { settle, llm, failed } = ask({ replies: errors });

    await expect(settle()).rejects.toBe(errors[9]);

    expect(llm.callCount).toBe(10);
    expect(failed.map(({ error }) => error)).toStrictEqual(errors.slice(0, 9));
    expect(failed.every(({ maxAttempts }) => maxAttempts === 10)).toBe(true);
  });

  it('RT5 waits nine times by default: 500 to 625 ms, doubling, at most 32 s and a quarter', async () => {
    const { settle, waits, failed } = ask({ replies: [repeat(failure('server'), 10)] });

    await settle().catch(() => undefined);

    expect(waits).toStrictEqual(failed.map(({ delayMs }) => delayMs));
    const bases = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 32_000, 32_000];
    expect(waits).toHaveLength(bases.length);
    bases.forEach((base, index) => {
      expect(waits[index]).toBeGreaterThanOrEqual(base);
      expect(waits[index]).toBeLessThanOrEqual(base * 1.25);
    });
    expect(new Set(waits.slice(6)).size).toBe(3);
  });

  it('RT7 waits under 3 s in total for three attempts', async () => {
    const { settle, runtime, llm } = ask({ replies: [repeat(failure('server'), 3)], options: { maxAttempts: 3 } });

    await settle().catch(() => undefined);

    expect(llm.callCount).toBe(3);
    expect(runtime.now()).toBeLessThan(3000);
  });

  it('RT9 throws an exhausted quota at once, also with a retry-after', async () => {
    const { settle, llm, runtime } = ask({ replies: [failure('quota', { status: 429, retryAfterMs: 1000 })] });

    await expect(settle()).rejects.toMatchObject({ kind: 'quota' });

    expect(llm.callCount).toBe(1);
    expect(runtime.now()).toBe(0);
  });

  it('RT10 waits exactly as long as the server says, and reports it', async () => {
    const { settle, waits, failed } = ask({ replies: [failure('rate_limit', { retryAfterMs: 42 }), 'ok'] });

    await settle();

    expect(waits).toStrictEqual([42]);
    expect(failed[0]?.delayMs).toBe(42);
  });

  it('RT10 BR-094 cuts a server delay of thirty days to the cap of 60 s', async () => {
    const { settle, waits } = ask({ replies: [failure('rate_limit', { retryAfterMs: 2_592_000_000 }), 'ok'] });

    await settle();

    expect(waits).toStrictEqual([60_000]);
  });

  it('BR-094 hands an uncapped server delay to the runtime as it is, which never fires early', async () => {
    const thirtyDays = 2_592_000_000;
    const { settle, waits, runtime } = ask({
      replies: [failure('rate_limit', { retryAfterMs: thirtyDays }), 'ok'],
      options: { maxRetryAfterMs: Infinity },
    });

    await settle();

    expect(waits).toStrictEqual([thirtyDays]);
    expect(runtime.now()).toBe(thirtyDays);
  });

  it.each([0, -5, NaN])('BR-094 backs off as usual when the server says to wait %s ms', async (retryAfterMs) => {
    const { settle, waits } = ask({ replies: [failure('rate_limit', { retryAfterMs }), 'ok'] });

    await settle();

    expect(waits[0]).toBeGreaterThanOrEqual(500);
  });

  it('takes time and jitter from the runtime of the request', async () => {
    const { settle, runtime, waits } = ask({ replies: [failure('server'), 'ok'] });

    await settle();

    const delayMs = retryDelayMs(1, virtualRuntime().random());
    expect(waits).toStrictEqual([delayMs]);
    expect(runtime.now()).toBe(delayMs);
  });

  it('tells of the failure before it waits, and waits until that is done', async () => {
    const order: string[] = [];
    let release = (): void => undefined;
    const { runtime, llm, settle } = ask({
      replies: [failure('server'), 'ok'],
      request: {
        onAttemptFailed: () => {
          order.push('told');
          return new Promise<void>((resolve) => {
            release = resolve;
          });
        },
      },
    });

    await runtime.flush();
    expect(order).toStrictEqual(['told']);
    expect(runtime.pendingTimers).toBe(0);
    release();
    await runtime.flush();
    expect(runtime.pendingTimers).toBe(1);
    await settle();

    expect(llm.callCount).toBe(2);
    expect(order).toStrictEqual(['told']);
  });

  it('rejects with what onAttemptFailed rejects with, and makes no further call', async () => {
    const error = new Error('The record could not be written.');
    const { settle, llm } = ask({
      replies: [failure('server'), 'ok'],
      request: { onAttemptFailed: () => Promise.reject(error) },
    });

    await expect(settle()).rejects.toBe(error);

    expect(llm.callCount).toBe(1);
  });

  it('BR-010 lets no fragment of a failed attempt through once it has failed', async () => {
    const late: ((delta: LLMDelta) => void)[] = [];
    const attempts = [failure('network'), undefined];
    const deltas: string[] = [];
    const llm = withRetry(
      {
        provider: 'p',
        modelId: 'm',
        systemPrompt: '',
        chat: async ({ onDelta }) => {
          if (onDelta !== undefined) late.push(onDelta);
          const error = attempts.shift();
          if (error !== undefined) {
            onDelta?.({ type: 'text', text: 'first' });
            throw error;
          }
          late[0]?.({ type: 'text', text: 'late' });
          onDelta?.({ type: 'text', text: 'second' });
          return { content: [{ type: 'text', text: 'second' }], stopReason: 'end_turn', usage: NO_USAGE };
        },
      },
      { baseDelayMs: 0 },
    );

    await llm.chat({
      systemPrompt: '',
      messages: [],
      tools: [],
      signal: new AbortController().signal,
      onDelta: (delta) => deltas.push(delta.type === 'text' ? delta.text : delta.type),
    });

    expect(deltas).toStrictEqual(['first', 'second']);
  });

  it('BR-040 sends the same request again, by reference', async () => {
    const { settle, llm } = ask({ replies: [failure('server'), 'ok'] });

    await settle();

    const [first, second] = llm.requests;
    expect(second?.messages).toStrictEqual(first?.messages);
    expect(second?.messages[0]).toBe(first?.messages[0]);
    expect(second?.tools).toBe(first?.tools);
  });

  it('BR-040 treats a synchronous throw of the model like a rejection', async () => {
    const llm = withRetry({
      provider: 'p',
      modelId: 'm',
      systemPrompt: '',
      chat: () => {
        throw failure('auth');
      },
    });

    const response = llm.chat({ systemPrompt: '', messages: [], tools: [], signal: new AbortController().signal });

    await expect(response).rejects.toMatchObject({ kind: 'auth' });
  });

  describe('when aborted', () => {
    it('RT3 makes no further call and rejects with what the attempt threw', async () => {
      const controller = new AbortController();
      const { llm, response, failed, runtime } = ask({
        replies: [hanging(), 'never'],
        request: { signal: controller.signal },
      });

      await runtime.flush();
      controller.abort();

      await expect(response).rejects.toMatchObject({ name: 'AbortError' });
      expect(llm.callCount).toBe(1);
      expect(failed).toStrictEqual([]);
    });

    it('RT3 does not retry a passing failure that comes after the abort', async () => {
      const controller = new AbortController();
      const error = failure('network', { message: 'terminated' });
      const onAttemptFailed = vi.fn();
      const chat = vi.fn(async () => {
        controller.abort();
        throw error;
      });
      const llm = withRetry(decorateLLM(scriptedLLM([]), chat));

      const response = llm.chat({ systemPrompt: '', messages: [], tools: [], signal: controller.signal, onAttemptFailed });

      await expect(response).rejects.toBe(error);
      expect(chat).toHaveBeenCalledTimes(1);
      expect(onAttemptFailed).not.toHaveBeenCalled();
    });

    it('RT3 rejects at once during a wait, and leaves no timer and no listener behind', async () => {
      const controller = new AbortController();
      const { llm, response, runtime } = ask({
        replies: [failure('server'), 'never'],
        request: { signal: controller.signal },
      });

      await runtime.flush();
      expect(runtime.pendingTimers).toBe(1);
      const reason = new Error('Enough.');
      controller.abort(reason);

      await expect(response).rejects.toBe(reason);
      expect(runtime.now()).toBe(0);
      expect(runtime.pendingTimers).toBe(0);
      expect(getEventListeners(controller.signal, 'abort')).toStrictEqual([]);
      await runtime.runUntilIdle();
      expect(llm.callCount).toBe(1);
    });

    it('RT3 leaves no listener behind after a wait that ended', async () => {
      const controller = new AbortController();
      const { settle, runtime } = ask({ replies: [failure('server'), 'ok'], request: { signal: controller.signal } });

      await runtime.flush();
      expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
      await settle();

      expect(getEventListeners(controller.signal, 'abort')).toStrictEqual([]);
    });

    it('RT3 does not even wait when the signal aborts while the failure is told', async () => {
      const controller = new AbortController();
      const { settle, waits, llm } = ask({
        replies: [failure('server'), 'never'],
        request: {
          signal: controller.signal,
          onAttemptFailed: () => {
            controller.abort();
          },
        },
      });

      await expect(settle()).rejects.toMatchObject({ name: 'AbortError' });

      expect(waits).toStrictEqual([]);
      expect(llm.callCount).toBe(1);
    });
  });

  describe('mode beforeFirstDelta', () => {
    it('C1 never retries an attempt that had streamed something', async () => {
      const { settle, llm, failed } = ask({
        replies: [cutStream('Hello world', { deltaCount: 1 })],
        options: { mode: 'beforeFirstDelta' },
      });

      await expect(settle()).rejects.toMatchObject({ kind: 'network' });

      expect(llm.callCount).toBe(1);
      expect(failed).toStrictEqual([]);
    });

    it('C1 retries an attempt that had not', async () => {
      const { settle, llm } = ask({ replies: [failure('network'), 'ok'], options: { mode: 'beforeFirstDelta' } });

      await settle();

      llm.assertDone();
    });

    it('C1 counts each attempt for itself', async () => {
      const { settle, llm } = ask({
        replies: [failure('network'), failure('network'), cutStream('Hello', { deltaCount: 1 })],
        options: { mode: 'beforeFirstDelta' },
      });

      await expect(settle()).rejects.toMatchObject({ kind: 'network' });

      llm.assertDone();
    });
  });

  describe('shouldRetry', () => {
    it('retries what is not retryable when it returns true', async () => {
      const { settle, llm } = ask({ replies: [new Error('odd'), 'ok'], options: { shouldRetry: () => true } });

      await settle();

      llm.assertDone();
    });

    it('ends a retryable failure when it returns false', async () => {
      const { settle, llm } = ask({ replies: [failure('server')], options: { shouldRetry: () => false } });

      await expect(settle()).rejects.toMatchObject({ kind: 'server' });

      llm.assertDone();
    });

    it('leaves it to the error when it returns undefined', async () => {
      const seen: unknown[] = [];
      const server = failure('server');
      const auth = failure('auth');
      const { settle } = ask({
        replies: [cutStream('Hi', { deltaCount: 1, error: server }), auth],
        options: {
          shouldRetry: (failed) => {
            seen.push(failed);
            return undefined;
          },
        },
      });

      await expect(settle()).rejects.toBe(auth);

      expect(seen).toStrictEqual([
        { error: server, attempt: 1, started: true },
        { error: auth, attempt: 2, started: false },
      ]);
    });

    it('is not asked when no attempt is left', async () => {
      const shouldRetry = vi.fn(() => true);
      const { settle } = ask({ replies: [failure('server')], options: { maxAttempts: 1, shouldRetry } });

      await expect(settle()).rejects.toMatchObject({ kind: 'server' });

      expect(shouldRetry).not.toHaveBeenCalled();
    });

    it.each<[string, () => unknown]>([
      ['a promise: it has to answer at once', () => Promise.resolve(false)],
      ['a promise: it has to answer at once', () => Promise.reject(new Error('Nobody may see me.'))],
      ['null', () => null],
      ['a value of type string', () => 'no'],
      ['a value of type number', () => 0],
    ])('ends the request with a TypeError when it returns %s', async (what, shouldRetry) => {
      const usage = { ...NO_USAGE, inputTokens: 12 };
      const options: object = { shouldRetry };
      const { settle, llm, failed } = ask({ replies: [cutStream('Hi', { deltaCount: 1, error: failure('server', { usage }) })], options });
      const thrown = await settle().catch((error: unknown) => error);

      expect(thrown).toMatchObject({ kind: 'unknown', retryable: false, usage, cause: expect.any(TypeError) });
      expect(thrown).toMatchObject({
        message: `withRetry: \`shouldRetry\` must return true, false or undefined, and returned ${what}. For example: withRetry(llm, { shouldRetry: ({ error }) => error.retryable }).`,
      });
      expect(failed).toStrictEqual([]);
      llm.assertDone();
    });

    it('ends the request with what it throws, and with what the failed attempt cost and left', async () => {
      const usage = { ...NO_USAGE, inputTokens: 12 };
      const partial = [{ type: 'text', text: 'Hi' } as const];
      const bug = new Error('A bug.');
      const shouldRetry = (): never => {
        throw bug;
      };
      const { settle } = ask({ replies: [failure('server', { usage, partial, provider: 'p', modelId: 'm' })], options: { shouldRetry } });

      await expect(settle()).rejects.toMatchObject({ kind: 'unknown', message: 'A bug.', cause: bug, usage, partial, provider: 'p', modelId: 'm' });
    });

    it('sees a foreign error as an LLMError, which is thrown as it was', async () => {
      const error = new Error('ECONNRESET');
      const shouldRetry = vi.fn(() => false);
      const { settle } = ask({ replies: [error], options: { shouldRetry } });

      await expect(settle()).rejects.toBe(error);

      expect(shouldRetry).toHaveBeenCalledWith({
        error: expect.objectContaining({ kind: 'unknown', cause: error }),
        attempt: 1,
        started: false,
      });
    });
  });

  it('leaves maxAttempts out of what it tells when there is no limit', async () => {
    const { settle, failed, llm } = ask({ replies: [repeat(failure('server'), 30), 'ok'], options: { maxAttempts: Infinity } });

    await settle();

    llm.assertDone();
    expect(failed).toHaveLength(30);
    expect(failed.every((attempt) => !('maxAttempts' in attempt))).toBe(true);
  });

  it('passes the metadata of the model on', () => {
    const llm = scriptedLLM([], { modelId: 'm', provider: 'p', systemPrompt: 's', capabilities: { contextWindow: 8 } });

    const { modelId, provider, systemPrompt, capabilities } = withRetry(llm);

    expect({ modelId, provider, systemPrompt, capabilities }).toStrictEqual({
      modelId: 'm',
      provider: 'p',
      systemPrompt: 's',
      capabilities: { contextWindow: 8 },
    });
  });

  it.each<[RetryOptions, string]>([
    [{ maxAttempts: 0 }, 'withRetry(llm, { maxAttempts: 5 })'],
    [{ maxAttempts: 2.5 }, 'withRetry(llm, { maxAttempts: 5 })'],
    [{ maxAttempts: NaN }, 'withRetry(llm, { maxAttempts: 5 })'],
    [{ baseDelayMs: -1 }, 'withRetry(llm, { baseDelayMs: 1000 })'],
    [{ maxDelayMs: Infinity }, 'withRetry(llm, { maxDelayMs: 1000 })'],
    [{ maxRetryAfterMs: NaN }, 'withRetry(llm, { maxRetryAfterMs: 1000 })'],
  ])('refuses %o and shows a correct call', (options, call) => {
    const make = (): unknown => withRetry(scriptedLLM([]), options);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(call);
  });

  it.each<[string, unknown[], string]>([
    ['no model', [], 'withRetry needs an LLM, which has a chat function, not undefined.'],
    ['the name of a model', ['gpt-5-mini'], 'withRetry needs an LLM, which has a chat function, not a value of type string.'],
    ['a number of attempts', [scriptedLLM([]), 3], 'withRetry: the options are not an object, but 3.'],
    ['null', [scriptedLLM([]), null], 'withRetry: the options are not an object, but null.'],
    ['an unknown option', [scriptedLLM([]), { retries: 3 }], 'withRetry has no option `retries`; it takes maxAttempts, baseDelayMs,'],
    ['an unknown mode', [scriptedLLM([]), { mode: 'never' }], "withRetry: `mode` must be 'always' or 'beforeFirstDelta'."],
    ['a shouldRetry that is no function', [scriptedLLM([]), { shouldRetry: true }], 'withRetry: `shouldRetry` must be a function.'],
  ])('refuses %s, says why and shows a correct call', (_name, given, message) => {
    const make = (): unknown => Reflect.apply(withRetry, undefined, given);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow(/For example: withRetry\((openAIChat\(\{ model|llm, \{)/);
  });
});

describe('retryDelayMs', () => {
  it('RT5 doubles from 500 ms and stops at 32 s', () => {
    const delays = Array.from({ length: 9 }, (_, index) => retryDelayMs(index + 1, 0));

    expect(delays).toStrictEqual([500, 1000, 2000, 4000, 8000, 16_000, 32_000, 32_000, 32_000]);
  });

  it('RT6 BR-094 stays at the cap for any number of attempts', () => {
    for (const attempt of [8, 40, 1100, 1e9]) {
      expect(retryDelayMs(attempt, 0)).toBe(32_000);
      expect(retryDelayMs(attempt, 0.999)).toBeLessThanOrEqual(40_000);
    }
  });

  it('RT5 adds up to a quarter, in proportion to the random number', () => {
    expect([0, 0.5, 1].map((random) => retryDelayMs(1, random))).toStrictEqual([500, 563, 625]);
  });

  it('BR-094 stays 0 for a base of 0, however often', () => {
    expect(retryDelayMs(5000, 0.5, { baseDelayMs: 0 })).toBe(0);
  });
});
