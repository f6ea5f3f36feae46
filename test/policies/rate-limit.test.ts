/**
 * createRateLimit and withRateLimit as black boxes: who starts when, in which order, and what an abort leaves behind. That
 * no minute has more than its limit, for any traffic, is in `rate-limit.property.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import { type LLM, toUsage } from 'turnloop';
import { createCircuitBreaker, createRateLimit, type RateLimitOptions, withCircuitBreaker, withRateLimit, withRetry } from 'turnloop/policies';
import { cutStream, delayed, type Reply, repeat, runScripted, scriptedLLM, virtualRuntime } from 'turnloop/testing';
import { failure, startRequest } from './decorated.ts';

/** The system prompt says how many tokens a request has by the estimate. */
const stated = { estimateRequest: ({ systemPrompt }: { systemPrompt: string }) => Number(systemPrompt), observe: () => undefined };
const replyOf = (inputTokens: number, outputTokens = 0): Reply => ({ content: 'ok', usage: { inputTokens, outputTokens } });

/** Requests of the given sizes, sent at once; when each of them started. */
function scene(options: RateLimitOptions, replies: readonly Reply[] = []) {
  const runtime = virtualRuntime({ start: 1_000_000 });
  const begun = runtime.now();
  const starts: (readonly [size: string, afterMs: number])[] = [];
  const left = [...replies];
  const llm = scriptedLLM(
    ({ systemPrompt }) => {
      starts.push([systemPrompt, runtime.now() - begun]);
      return left.shift() ?? replyOf(Number(systemPrompt));
    },
    { runtime },
  );
  const limit = createRateLimit({ estimator: stated, ...options });
  const limited = withRateLimit(llm, limit);
  const ask = (size: number | string, through: LLM = limited) => startRequest(through, runtime, { systemPrompt: String(size) });
  return { runtime, llm, limit, limited, starts, ask };
}

describe('withRateLimit', () => {
  it('C10 starts as many requests a minute as the limit says, in the order in which they came', async () => {
    const { ask, starts, runtime, limit } = scene({ requestsPerMinute: 2 });
    for (const size of [1, 2, 3, 4, 5]) ask(size);
    await runtime.flush();
    expect(starts).toStrictEqual([['1', 0], ['2', 0]]);
    expect(limit.waiting).toBe(3);

    await runtime.runUntilIdle();

    expect(starts.slice(2)).toStrictEqual([['3', 60_000], ['4', 60_000], ['5', 120_000]]);
    expect(limit.waiting).toBe(0);
    expect(runtime.pendingTimers).toBe(0);
  });

  it('C10 slides: what was sent at the end of a minute counts in the next', async () => {
    const { ask, starts, runtime } = scene({ requestsPerMinute: 2 });
    ask(1);
    await runtime.advance(59_000);
    ask(2);
    ask(3);
    ask(4);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['1', 0], ['2', 59_000], ['3', 60_000], ['4', 119_000]]);
  });

  it('C10 shares one limit among the models of one key', async () => {
    const { ask, starts, runtime, limit, llm } = scene({ requestsPerMinute: 1 });
    const other = withRateLimit(llm, limit);
    ask(1);
    ask(2, other);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['1', 0], ['2', 60_000]]);
  });

  it('C10 starts as many tokens a minute as the limit says, by the estimate', async () => {
    const { ask, starts, runtime } = scene({ tokensPerMinute: 1000 });
    for (const size of [600, 400, 300, 700]) ask(size);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['600', 0], ['400', 0], ['300', 60_000], ['700', 60_000]]);
  });

  it('C10 counts what a request really had as soon as it is known', async () => {
    const { ask, starts, runtime } = scene({ tokensPerMinute: 1000 }, [delayed(replyOf(100), 5000), delayed(replyOf(1000), 1000)]);
    ask(900);
    await runtime.flush();
    ask(900);
    ask(1);
    await runtime.runUntilIdle();

    // The first had less than it was taken for, so the second need not wait; it had more, so the third has to.
    expect(starts).toStrictEqual([['900', 0], ['900', 5000], ['1', 65_000]]);
  });

  it('C10 counts the tokens that a failure tells of', async () => {
    const { ask, starts, runtime } = scene({ tokensPerMinute: 1000 }, [failure('server', { usage: toUsage({ inputTokens: 50 }) })]);
    ask(900);
    await runtime.flush();
    ask(950);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['900', 0], ['950', 0]]);
  });

  it.each([
    ['fails and tells nothing', cutStream('Hello', { deltaCount: 1 })],
    ['is answered by a server that does not count', { content: 'ok', usage: {} }],
  ])('C10 keeps the estimate of a request that %s', async (_what, outcome) => {
    const { ask, starts, runtime } = scene({ tokensPerMinute: 1000 }, [outcome]);
    ask(900);
    await runtime.flush();
    ask(200);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['900', 0], ['200', 60_000]]);
  });

  it('C10 expects of a reply what the last ones had', async () => {
    const { ask, starts, runtime } = scene({ tokensPerMinute: 1000 }, [replyOf(0, 500), delayed(replyOf(850), 5000)]);
    ask(0);
    await runtime.advance(60_000);
    // A fifth of the 500 tokens is expected of each reply, until the first of them is known to have had none.
    ask(850);
    ask(10);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['0', 0], ['850', 60_000], ['10', 65_000]]);
  });

  it('C10 gives a request that is larger than the limit a minute of its own, instead of no chance', async () => {
    const { ask, starts, runtime } = scene({ tokensPerMinute: 1000 });
    for (const size of [10, 5000, 20]) ask(size);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['10', 0], ['5000', 60_000], ['20', 120_000]]);
  });

  it('C10 lets a request that is larger than the limit start beside those that took nothing', async () => {
    const { ask, starts, runtime } = scene({ tokensPerMinute: 1000 });
    ask(0);
    ask(5000);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['0', 0], ['5000', 0]]);
  });

  it('C10 lets nobody overtake, so that a large request does not starve behind small ones', async () => {
    const { ask, starts, runtime } = scene({ tokensPerMinute: 1000 });
    ask(500);
    ask(900);
    ask(1);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['500', 0], ['900', 60_000], ['1', 60_000]]);
  });

  it('C10 pauses for all on the key when the server says how long', async () => {
    const { ask, starts, runtime } = scene({}, [failure('rate_limit', { status: 429, retryAfterMs: 7000 })]);
    ask(1);
    await runtime.flush();
    ask(2);
    ask(3);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['1', 0], ['2', 7000], ['3', 7000]]);
  });

  it('C10 pauses also for those who wait already', async () => {
    const { ask, starts, runtime } = scene({ requestsPerMinute: 1 }, [delayed(failure('rate_limit', { retryAfterMs: 40_000 }), 30_000)]);
    ask(1);
    ask(2);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['1', 0], ['2', 70_000]]);
  });

  it.each([
    ['BR-094 a month', failure('rate_limit', { retryAfterMs: 2_592_000_000 }), 60_000],
    ['no time', failure('rate_limit'), 0],
    ['a time that is none', failure('rate_limit', { retryAfterMs: NaN }), 0],
    ['a time for another reason', failure('overloaded', { retryAfterMs: 7000 }), 0],
  ])('C10 pauses a minute at most, and only for a rate limit: %s', async (_what, error, afterMs) => {
    const { ask, starts, runtime } = scene({}, [error]);
    ask(1);
    await runtime.flush();
    ask(2);
    await runtime.runUntilIdle();

    expect(starts[1]).toStrictEqual(['2', afterMs]);
  });

  it('C10 pauses as long as the server says if told so', async () => {
    const { ask, starts, runtime } = scene({ maxRetryAfterMs: Infinity }, [failure('rate_limit', { retryAfterMs: 3_600_000 })]);
    ask(1);
    await runtime.flush();
    ask(2);
    await runtime.runUntilIdle();

    expect(starts[1]).toStrictEqual(['2', 3_600_000]);
  });

  it('C10 counts nothing that something inside did not send', async () => {
    const { ask, starts, runtime } = scene({ requestsPerMinute: 1, tokensPerMinute: 100 }, [failure('refused')]);
    ask(100);
    await runtime.flush();
    ask(100);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['100', 0], ['100', 0]]);
  });

  it('C10 counts each attempt of a retry, which goes to the end of the line', async () => {
    const { ask, starts, runtime, limited } = scene({ requestsPerMinute: 2 }, [failure('server')]);
    const retried = withRetry(limited, { baseDelayMs: 1000 });
    ask(1, retried);
    ask(2);
    ask(3);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['1', 0], ['2', 0], ['3', 60_000], ['1', 60_000]]);
  });

  it('C10 counts each attempt of a retry around which it stands', async () => {
    const { ask, starts, runtime, limit, llm } = scene({ requestsPerMinute: 1 }, [failure('server'), failure('server')]);
    const { failed } = ask(1, withRateLimit(withRetry(llm, { baseDelayMs: 0 }), limit));
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['1', 0], ['1', 60_000], ['1', 120_000]]);
    expect(failed).toHaveLength(2);
  });

  it('C10 counts a request once that stands under the same limit twice', async () => {
    const { ask, starts, runtime, limit, limited } = scene({ requestsPerMinute: 2 });
    const twice = withRateLimit(withRetry(limited), limit);
    ask(1, twice);
    ask(2, twice);
    await runtime.runUntilIdle();

    expect(starts).toStrictEqual([['1', 0], ['2', 0]]);
  });

  it('C10 C2 sends nothing while a breaker is open that opened during the wait', async () => {
    const { ask, starts, runtime, limited, limit } = scene({ requestsPerMinute: 1 });
    const breaker = createCircuitBreaker({ failures: 1, mode: 'fail' });
    const guarded = withCircuitBreaker(limited, breaker);
    ask(1, guarded);
    const waiting = ask(2, guarded);
    startRequest(withCircuitBreaker(scriptedLLM([delayed(failure('server'), 30_000)], { runtime }), breaker), runtime);
    await runtime.runUntilIdle();

    expect(waiting.outcome).toMatchObject({ kind: 'refused', stopReason: 'circuit_breaker' });
    expect(starts).toStrictEqual([['1', 0]]);
    // What was not sent takes nothing of the minute.
    ask(3);
    await runtime.runUntilIdle();
    expect(starts[1]).toStrictEqual(['3', 60_000]);
    expect(limit.waiting).toBe(0);
  });

  it('C10 tells who has to wait, how long at least, and behind how many', async () => {
    const { ask, runtime } = scene({ requestsPerMinute: 1 });
    const [first, second, third] = [ask(1), ask(2), ask(3)];
    await runtime.runUntilIdle();

    expect(first?.notices).toStrictEqual([]);
    expect(second?.notices).toStrictEqual([{ name: 'rateLimit.waiting', data: { delayMs: 60_000, ahead: 0 } }]);
    expect(third?.notices).toStrictEqual([{ name: 'rateLimit.waiting', data: { delayMs: 60_000, ahead: 1 } }]);
  });

  it('C10 says nothing of a wait that nobody would notice', async () => {
    const { ask, runtime } = scene({ requestsPerMinute: 1 });
    ask(1);
    await runtime.advance(59_950);
    const { notices } = ask(2);
    await runtime.runUntilIdle();

    expect(notices).toStrictEqual([]);
  });

  it('C10 shows the wait as an event of the turn', async () => {
    const limit = createRateLimit({ requestsPerMinute: 1 });
    const runtime = virtualRuntime();
    const decorate = (llm: LLM): LLM => withRateLimit(llm, limit);
    await runScripted({ runtime, replies: ['one'], decorate });
    const { recording, result } = await runScripted({ runtime, replies: ['two'], decorate });

    expect(result.text).toBe('two');
    expect(recording.of('notice')).toMatchObject([{ name: 'rateLimit.waiting', data: { delayMs: 60_000, ahead: 0 } }]);
  });

  describe('when aborted', () => {
    it('C10 takes the first in line out at once, and lets the next one go', async () => {
      const { ask, starts, runtime, limit } = scene({ tokensPerMinute: 1000 });
      ask(500);
      const large = ask(900);
      ask(400);
      await runtime.flush();
      expect(runtime.pendingTimers).toBe(1);
      const reason = new Error('Enough.');
      large.controller.abort(reason);

      await expect(large.response).rejects.toBe(reason);
      expect(large.controller.listenerCount).toBe(0);
      await runtime.flush();
      expect(starts).toStrictEqual([['500', 0], ['400', 0]]);
      expect(runtime.pendingTimers).toBe(0);
      expect(limit.waiting).toBe(0);
    });

    it('C10 leaves no timer behind when the only one who waits leaves', async () => {
      const { ask, runtime, starts } = scene({ requestsPerMinute: 1 });
      ask(1);
      const waiting = ask(2);
      await runtime.flush();
      waiting.controller.abort();
      await expect(waiting.response).rejects.toThrow();

      expect(runtime.pendingTimers).toBe(0);
      await runtime.advance(60_000);
      expect(starts).toHaveLength(1);
    });

    it('C10 takes one out of the middle, and the others keep their order', async () => {
      const { ask, starts, runtime } = scene({ requestsPerMinute: 1 });
      const all = [1, 2, 3, 4].map((size) => ask(size));
      await runtime.flush();
      all[2]?.controller.abort();
      await runtime.runUntilIdle();

      expect(starts).toStrictEqual([['1', 0], ['2', 60_000], ['4', 120_000]]);
      expect(all.map(({ controller }) => controller.listenerCount)).toStrictEqual([0, 0, 0, 0]);
    });

    it('C10 refuses a request that was aborted before, and counts nothing', async () => {
      const { limited, runtime, starts, ask } = scene({ requestsPerMinute: 1 });
      const { response } = startRequest(limited, runtime, { signal: AbortSignal.abort(new Error('Enough.')), systemPrompt: '1' });
      await expect(response).rejects.toThrow('Enough.');

      ask(2);
      await runtime.flush();
      expect(starts).toStrictEqual([['2', 0]]);
    });

    it('C10 ends a wait between two attempts as well', async () => {
      const { ask, runtime, limit, llm, starts } = scene({ requestsPerMinute: 1 }, [failure('server')]);
      const request = ask(1, withRateLimit(withRetry(llm), limit));
      await runtime.flush();
      const reason = new Error('Enough.');
      request.controller.abort(reason);

      await expect(request.response).rejects.toBe(reason);
      expect(request.controller.listenerCount).toBe(0);
      expect(runtime.pendingTimers).toBe(0);
      expect(starts).toHaveLength(1);
    });
  });

  it('C10 waits no longer than a minute more when the clock is set back', async () => {
    const real = virtualRuntime({ start: 1_000_000_000 });
    let offset = 0;
    const runtime = { ...real, now: () => real.now() + offset, setTimer: real.setTimer };
    const starts: number[] = [];
    const llm = scriptedLLM(() => {
      starts.push(real.now() - 1_000_000_000);
      return failure('rate_limit', { retryAfterMs: 50_000 });
    });
    const limited = withRateLimit(llm, createRateLimit({ requestsPerMinute: 1, estimator: stated }));
    const ask = () => startRequest(limited, { ...real, ...runtime }, { systemPrompt: '1' });
    ask();
    await real.flush();
    offset = -3_600_000;
    ask();
    await real.runUntilIdle();

    expect(starts).toStrictEqual([0, 60_000]);
  });

  it('C10 lets a thousand requests a minute through without a limit', async () => {
    const { ask, starts, runtime } = scene({ requestsPerMinute: Infinity, tokensPerMinute: Infinity });
    for (let index = 0; index < 1000; index += 1) ask(1_000_000);
    await runtime.flush();

    expect(starts).toHaveLength(1000);
    expect(runtime.pendingTimers).toBe(0);
  });

  it('C10 learns what prompts really had', async () => {
    const learnt: number[] = [];
    const runtime = virtualRuntime();
    const estimator = { ...stated, observe: (_request: unknown, _model: unknown, tokens: number) => void learnt.push(tokens) };
    const usage = { inputTokens: 50, cacheReadTokens: 30, cacheWriteTokens: 7, outputTokens: 9 };
    const llm = withRateLimit(scriptedLLM([repeat({ content: 'ok', usage }, 1)]), createRateLimit({ estimator }));
    await startRequest(llm, runtime, { systemPrompt: '1' }).response;

    expect(learnt).toStrictEqual([87]);
  });
});

describe('createRateLimit', () => {
  it.each<[string, unknown, string]>([
    ['no request at all', { requestsPerMinute: 0 }, '`requestsPerMinute` must be a whole number of at least 1, or Infinity, not 0'],
    ['half a token', { tokensPerMinute: 0.5 }, '`tokensPerMinute` must be a whole number'],
    ['a text', { tokensPerMinute: '5' }, '`tokensPerMinute` must be a whole number'],
    ['a negative pause', { maxRetryAfterMs: -1 }, '`maxRetryAfterMs` must be a number of at least 0, or Infinity, not -1'],
    ['an option that does not exist', { rpm: 3 }, 'createRateLimit has no option `rpm`'],
  ])('C10 refuses %s, and shows a correct call', (_what, options, message) => {
    const make = (): unknown => createRateLimit(options as RateLimitOptions);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow('createRateLimit({ requestsPerMinute: 60, tokensPerMinute: 200_000 })');
  });

  it.each<[string, () => unknown, string]>([
    ['no model', () => withRateLimit(undefined as never, createRateLimit()), 'withRateLimit needs an LLM'],
    ['no limit', () => withRateLimit(scriptedLLM([]), { requestsPerMinute: 5 } as never), 'withRateLimit needs a limit from createRateLimit'],
  ])('C10 refuses %s, and shows a correct call', (_what, make, message) => {
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow('createRateLimit({ requestsPerMinute: 60 })');
  });
});
