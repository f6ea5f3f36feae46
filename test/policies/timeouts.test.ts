/** withTimeouts as a black box: which silence ends a request, how, and what is left of it. Time is virtual. */
import { describe, expect, it } from 'vitest';
import { decorateLLM, type LLM, LLMError, type LLMRequest, type LLMResponse, NO_USAGE, type Usage } from 'turnloop';
import { createCircuitBreaker, type TimeoutOptions, withCircuitBreaker, withRetry, withTimeouts } from 'turnloop/policies';
import { cutStream, delayed, hanging, type ScriptedReply, type Script, scriptedLLM, stalled, virtualRuntime, type VirtualRuntime } from 'turnloop/testing';
import { failure, startRequest } from './decorated.ts';
import { runScripted } from './run-scripted.ts';

const FIRST = 290_000;
const BETWEEN = 60_000;
const USAGE: Usage = { ...NO_USAGE, inputTokens: 12, outputTokens: 3 };

/** Sends a request to a scripted model with timeouts. */
function scene(replies: Script, options?: TimeoutOptions, parts: Partial<LLMRequest> = {}) {
  const runtime = virtualRuntime();
  const llm = scriptedLLM(replies, { runtime, provider: 'acme', modelId: 'acme-1', chunk: 1 });
  return { runtime, llm, asking: startRequest(withTimeouts(llm, options), runtime, parts) };
}

/** A model of which the test sees the requests, and decides when they settle. */
function manualLLM() {
  const requests: LLMRequest[] = [];
  const settle: { resolve(response: LLMResponse): void; reject(thrown: unknown): void }[] = [];
  const llm: LLM = {
    provider: 'acme',
    modelId: 'acme-1',
    systemPrompt: '',
    chat: (request) => {
      requests.push(request);
      return new Promise((resolve, reject) => settle.push({ resolve, reject }));
    },
  };
  return { llm, requests, settle };
}

const ANSWER: LLMResponse = { content: [{ type: 'text', text: 'late' }], stopReason: 'end_turn', usage: USAGE };

describe('withTimeouts', () => {
  it('BR-091 B8 fails a request that gets no token within 290 s, before Node would, and aborts the model', async () => {
    const { runtime, llm, asking } = scene([hanging()]);

    await runtime.advance(FIRST - 1);
    expect(asking.outcome).toBe(undefined);
    await runtime.advance(1);

    expect(asking.outcome).toMatchObject({
      kind: 'timeout',
      code: 'first_token_timeout',
      retryable: true,
      message: 'acme acme-1 sent no token within 290000 ms.',
    });
    expect([llm.runningCount, runtime.pendingTimers, asking.controller.listenerCount]).toStrictEqual([0, 0, 0]);
  });

  it('B8 fails a request whose stream is silent for 60 s after a token', async () => {
    const { runtime, asking, llm } = scene([stalled('Hello', 3)]);

    await runtime.advance(BETWEEN - 1);
    expect(asking.outcome).toBe(undefined);
    await runtime.advance(1);

    expect(asking.outcome).toMatchObject({ kind: 'timeout', code: 'between_tokens_timeout', retryable: true });
    expect(asking.deltas).toHaveLength(3);
    expect([llm.runningCount, runtime.pendingTimers]).toStrictEqual([0, 0]);
  });

  it('B8 lets a stream take as long as it likes while tokens come', async () => {
    const slow: ScriptedReply = { content: 'Hello world', deltaDelayMs: BETWEEN - 1 };
    const { runtime, asking } = scene([slow]);

    await runtime.settle(asking.response);

    expect(asking.outcome).toBe('Hello world');
    expect(runtime.now()).toBe(11 * (BETWEEN - 1));
    expect([runtime.pendingTimers, asking.controller.listenerCount]).toStrictEqual([0, 0]);
  });

  it('B8 also waits no longer for the end of a reply than for its next token', async () => {
    const { llm, requests } = manualLLM();
    const runtime = virtualRuntime();
    const asking = startRequest(withTimeouts(llm), runtime);
    await runtime.advance(1_000);
    requests[0]?.onDelta?.({ type: 'text', text: 'all of it' });

    await runtime.advance(BETWEEN);

    expect(asking.outcome).toMatchObject({ code: 'between_tokens_timeout' });
  });

  it('B8 takes no more than one timer for any number of deltas, which looks at the time when it fires', async () => {
    const runtime = virtualRuntime();
    let set = 0;
    const counting = {
      ...runtime,
      setTimer: (delayMs: number, callback: () => void) => {
        set += 1;
        return runtime.setTimer(delayMs, callback);
      },
    };
    const { llm, requests, settle } = manualLLM();
    const scope = { turnId: 'turn_1', step: 1, stepId: 'step_1', runtime: counting, notify: () => undefined };
    const asking = startRequest(withTimeouts(llm), runtime, { scope });

    for (let count = 0; count < 10_000; count += 1) requests[0]?.onDelta?.({ type: 'text', text: 'x' });
    expect(set).toBe(2);
    await runtime.advance(40_000);
    requests[0]?.onDelta?.({ type: 'text', text: 'x' });
    await runtime.advance(40_000);
    expect(set).toBe(3);
    await runtime.advance(19_999);
    expect(asking.outcome).toBe(undefined);
    await runtime.advance(1);

    expect(asking.outcome).toMatchObject({ code: 'between_tokens_timeout' });
    settle[0]?.resolve(ANSWER);
  });

  it('B8 bounds the whole reply of a model that does not stream by the time to the first token', async () => {
    const runtime = virtualRuntime();
    const llm = scriptedLLM([delayed('ok', 100_000), delayed('ok', 300_000)], { runtime, streams: false });
    const [first, second] = [startRequest(withTimeouts(llm), runtime), startRequest(withTimeouts(llm), runtime)];

    await runtime.advance(FIRST);

    expect(first.outcome).toBe('ok');
    expect(second.outcome).toMatchObject({ code: 'first_token_timeout' });
  });

  it('B8 sees the tokens of a caller that listens to none', async () => {
    const slow: ScriptedReply = { content: 'Hello', deltaDelayMs: 50_000 };
    const { runtime, asking } = scene([slow], { firstTokenMs: 55_000 }, { onDelta: undefined });

    await runtime.settle(asking.response);

    expect(asking.outcome).toBe('Hello');
  });

  it('B8 bounds the whole request where it is told to, also while tokens come', async () => {
    const slow: ScriptedReply = { content: 'Hello world', deltaDelayMs: 1_000 };
    const { runtime, asking } = scene([slow], { totalMs: 5_500 });

    await runtime.advance(5_500);

    expect(asking.outcome).toMatchObject({
      kind: 'timeout',
      code: 'total_timeout',
      message: 'acme acme-1 did not finish its answer within 5500 ms.',
    });
    expect(asking.deltas).toHaveLength(5);
  });

  it('B8 leaves the shorter limit to the model that has one', async () => {
    const own = failure('timeout', { code: 'first_token_timeout' });
    const { runtime, asking } = scene([delayed(own, 10_000)]);

    await runtime.advance(10_000);

    expect(asking.outcome).toBe(own);
    expect(runtime.pendingTimers).toBe(0);
  });

  it('B8 BR-094 has no limit where it is Infinity, and no timer then', async () => {
    const { runtime, asking } = scene([hanging()], { firstTokenMs: Infinity, betweenTokensMs: Infinity });

    await runtime.flush();
    expect(runtime.pendingTimers).toBe(0);
    asking.controller.abort();
    await runtime.flush();

    expect(asking.outcome).toMatchObject({ name: 'AbortError' });
  });

  it('B8 BR-094 takes a limit beyond the longest timer as it is', async () => {
    const { runtime, asking } = scene([hanging()], { firstTokenMs: 1e12 });

    await runtime.settle(asking.response).catch(() => undefined);

    expect(runtime.now()).toBe(1e12);
    expect(asking.outcome).toMatchObject({ code: 'first_token_timeout' });
  });

  it('B8 passes a failure of the model on as it is', async () => {
    const error = failure('invalid_request');
    const { runtime, asking } = scene([error]);

    await runtime.flush();

    expect(asking.outcome).toBe(error);
    expect([runtime.pendingTimers, asking.controller.listenerCount]).toStrictEqual([0, 0]);
  });
});

describe('withTimeouts, when the time is up', () => {
  it('BR-070 B8 settles though the model does not heed the signal; what it says later is swallowed', async () => {
    const { llm, requests, settle } = manualLLM();
    const runtime = virtualRuntime();
    const asking = startRequest(withTimeouts(llm), runtime);

    await runtime.advance(FIRST);
    expect(asking.outcome).toMatchObject({ code: 'first_token_timeout' });
    expect(requests[0]?.signal.aborted).toBe(true);
    requests[0]?.onDelta?.({ type: 'text', text: 'late' });
    await expect(requests[0]?.onAttemptFailed?.({ error: failure('server') })).rejects.toMatchObject({ kind: 'timeout' });
    settle[0]?.reject(new Error('late'));
    await runtime.runUntilIdle();

    expect([asking.deltas, asking.failed]).toStrictEqual([[], []]);
    expect([runtime.now(), runtime.pendingTimers, asking.controller.listenerCount]).toStrictEqual([FIRST, 0, 0]);
  });

  it('B8 keeps tokens and parts that the model tells of when it is aborted', async () => {
    const runtime = virtualRuntime();
    const partial = [{ type: 'text', text: 'Hel' } as const];
    const llm = decorateLLM(
      scriptedLLM([]),
      ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(new LLMError({ kind: 'aborted', message: 'Aborted.', usage: USAGE, partial, requestId: 'req_1' }));
          });
        }),
    );

    const asking = startRequest(withTimeouts(llm), runtime);
    await runtime.advance(FIRST);

    expect(asking.outcome).toMatchObject({ kind: 'timeout', usage: USAGE, partial, requestId: 'req_1' });
    expect(runtime.pendingTimers).toBe(0);
  });

  it('B8 counts the tokens of an answer that comes in the moment in which the time is up', async () => {
    const { llm, requests, settle } = manualLLM();
    const runtime = virtualRuntime();
    const asking = startRequest(withTimeouts(llm), runtime);
    requests[0]?.signal.addEventListener('abort', () => {
      settle[0]?.resolve(ANSWER);
    });

    await runtime.advance(FIRST);

    expect(asking.outcome).toMatchObject({ kind: 'timeout', usage: USAGE });
  });

  it('BR-091 B8 is retried: a stalled stream is taken back, and the next attempt is timed anew', async () => {
    const { result, listener, runtime } = await runScripted({
      replies: [stalled({ content: 'Hello world', chunk: 5 }, 1), { content: 'Hello world', chunk: 5 }],
      decorate: (llm) => withRetry(withTimeouts(llm), { baseDelayMs: 0 }),
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'Hello world' });
    expect(listener.of('step.retrying')).toMatchObject([{ error: { kind: 'timeout' } }]);
    expect([runtime.now(), runtime.pendingTimers]).toStrictEqual([BETWEEN, 0]);
  });

  it('BR-070 ends a turn whose model stalls, and keeps what had arrived', async () => {
    const { result, listener } = await runScripted({ replies: [stalled('par', 1)], decorate: (llm) => withTimeouts(llm) });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'timeout' } });
    expect(listener.of('content.part')).toMatchObject([{ part: { type: 'text', text: 'par' } }]);
  });
});

describe('withTimeouts, around other decorators', () => {
  it('B8 times each attempt of a retry inside anew, and not the waits between them', async () => {
    const runtime = virtualRuntime();
    const llm = withTimeouts(withRetry(scriptedLLM([cutStream('par', { deltaCount: 1 }), delayed('ok', 90_000)], { runtime }), { baseDelayMs: 300_000, maxDelayMs: 300_000 }));
    const asking = startRequest(llm, runtime);

    await runtime.settle(asking.response);

    expect(asking.outcome).toBe('ok');
    expect(asking.failed).toHaveLength(1);
  });

  it('B8 times the next attempt also when telling of the failure took longer than any limit', async () => {
    let tell = (): void => undefined;
    const told = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const runtime = virtualRuntime();
    const llm = withTimeouts(withRetry(scriptedLLM([failure('server'), hanging()]), { baseDelayMs: 0, maxAttempts: 2 }));
    const asking = startRequest(llm, runtime, { onAttemptFailed: () => told });

    await runtime.advance(2 * FIRST);
    expect(asking.outcome).toBe(undefined);
    tell();
    await runtime.advance(FIRST - 1);
    expect(asking.outcome).toBe(undefined);
    await runtime.advance(1);

    expect(asking.outcome).toMatchObject({ code: 'first_token_timeout' });
  });

  it('B8 starts no timer when the failure is told after the time was up', async () => {
    let tell = (): void => undefined;
    const told = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const runtime = virtualRuntime();
    const llm = withTimeouts(withRetry(scriptedLLM([failure('server'), 'never'])), { totalMs: 5_000 });
    const asking = startRequest(llm, runtime, { onAttemptFailed: () => told });

    await runtime.advance(5_000);
    expect(asking.outcome).toMatchObject({ code: 'total_timeout' });
    tell();
    await runtime.flush();

    expect(runtime.pendingTimers).toBe(0);
  });

  it('B8 ends a retry inside by the total, during a wait between attempts', async () => {
    const { result, runtime, llm } = await runScripted({
      replies: [failure('server'), 'never'],
      decorate: (inner) => withTimeouts(withRetry(inner, { baseDelayMs: 30_000 }), { totalMs: 10_000 }),
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'timeout' } });
    expect([llm.callCount, runtime.now(), runtime.pendingTimers]).toStrictEqual([1, 10_000, 0]);
  });

  it('B8 C2 does not take the pause of a circuit breaker inside, that was told, for silence', async () => {
    const runtime = virtualRuntime();
    const inner = withCircuitBreaker(scriptedLLM([failure('server'), 'ok']), createCircuitBreaker({ failures: 1 }));
    const asking = startRequest(withTimeouts(inner, { firstTokenMs: 1_000 }), runtime);

    await runtime.settle(asking.response);

    expect([asking.outcome, runtime.now()]).toStrictEqual(['ok', 60_000]);
  });

  it('B8 fails with what telling a failure fails with', async () => {
    const error = new Error('The record could not be written.');
    const runtime = virtualRuntime();
    const asking = startRequest(withTimeouts(withRetry(scriptedLLM([failure('server'), 'never']))), runtime, {
      onAttemptFailed: () => Promise.reject(error),
    });

    await runtime.flush();

    expect(asking.outcome).toBe(error);
    expect(runtime.pendingTimers).toBe(0);
  });
});

/** A runtime whose clock can be set: only its timers tell the truth. */
function settableClock(runtime: VirtualRuntime) {
  let offset = 0;
  const scope = { turnId: 'turn_1', step: 1, stepId: 'step_1', runtime: { ...runtime, now: () => runtime.now() + offset }, notify: () => undefined };
  return {
    scope,
    set(by: number): void {
      offset += by;
    },
  };
}

describe('withTimeouts, while the clock is set', () => {
  const HOUR = 3_600_000;

  it.each([
    ['an hour back', -HOUR],
    ['a millisecond back', -1],
    ['an hour forward', HOUR],
  ])('B8 ends a request that is silent from the start in time when the clock is set %s', async (_how, by) => {
    const runtime = virtualRuntime({ start: 10 * HOUR });
    const clock = settableClock(runtime);
    const asking = startRequest(withTimeouts(manualLLM().llm), runtime, { scope: clock.scope });
    await runtime.advance(10);
    clock.set(by);

    await runtime.advance(FIRST - 11);
    expect(asking.outcome).toBe(undefined);
    await runtime.advance(1);

    expect(asking.outcome).toMatchObject({ code: 'first_token_timeout' });
    expect(runtime.pendingTimers).toBe(0);
  });

  it('B8 ends a request that goes silent at the latest when the time has passed once more since the clock was set back', async () => {
    const runtime = virtualRuntime({ start: 10 * HOUR });
    const clock = settableClock(runtime);
    const { llm, requests } = manualLLM();
    const asking = startRequest(withTimeouts(llm), runtime, { scope: clock.scope });
    requests[0]?.onDelta?.({ type: 'text', text: 'x' });
    await runtime.advance(BETWEEN - 10);
    requests[0]?.onDelta?.({ type: 'text', text: 'x' });
    clock.set(-HOUR);

    await runtime.advance(BETWEEN + 10);

    expect(asking.outcome).toMatchObject({ code: 'between_tokens_timeout' });
  });

  it('B8 takes no token for silence because the clock was set back before it', async () => {
    const runtime = virtualRuntime({ start: 10 * HOUR });
    const clock = settableClock(runtime);
    const { llm, requests } = manualLLM();
    const asking = startRequest(withTimeouts(llm), runtime, { scope: clock.scope });
    requests[0]?.onDelta?.({ type: 'text', text: 'x' });
    clock.set(-HOUR);
    await runtime.advance(BETWEEN - 10);
    requests[0]?.onDelta?.({ type: 'text', text: 'x' });

    await runtime.advance(BETWEEN - 1);
    expect(asking.outcome).toBe(undefined);
    await runtime.advance(1);

    expect(asking.outcome).toMatchObject({ code: 'between_tokens_timeout' });
  });

  it('B8 keeps to the total, however often the clock is set back and whatever comes', async () => {
    const runtime = virtualRuntime({ start: 100 * HOUR });
    const clock = settableClock(runtime);
    const { llm, requests } = manualLLM();
    const asking = startRequest(withTimeouts(llm, { totalMs: 5_000 }), runtime, { scope: clock.scope });

    for (let round = 0; round < 5; round += 1) {
      expect(asking.outcome).toBe(undefined);
      await runtime.advance(500);
      clock.set(-HOUR);
      await runtime.advance(500);
      requests[0]?.onDelta?.({ type: 'text', text: 'x' });
    }

    expect(asking.outcome).toMatchObject({ code: 'total_timeout' });
    expect(runtime.pendingTimers).toBe(0);
  });
});

describe('withTimeouts, aborted', () => {
  it('B8 RT3 passes an abort on with its reason, and waits for what the model says to it', async () => {
    const { llm, requests, settle } = manualLLM();
    const runtime = virtualRuntime();
    const asking = startRequest(withTimeouts(llm), runtime);
    const reason = new Error('Enough.');

    asking.controller.abort(reason);
    expect(requests[0]?.signal.reason).toBe(reason);
    expect(runtime.pendingTimers).toBe(0);
    settle[0]?.reject(failure('aborted', { usage: USAGE }));
    await runtime.flush();

    expect(asking.outcome).toMatchObject({ kind: 'aborted', usage: USAGE });
    expect(asking.controller.listenerCount).toBe(0);
  });

  it('B8 RT3 sends nothing for a signal that is aborted already', async () => {
    const controller = new AbortController();
    controller.abort(new Error('Enough.'));
    const { runtime, llm, asking } = scene(['never'], {}, { signal: controller.signal });

    await runtime.flush();

    expect(asking.outcome).toBe(controller.signal.reason);
    expect([llm.callCount, runtime.pendingTimers]).toStrictEqual([0, 0]);
  });
});

describe('withTimeouts, misused', () => {
  it.each<[string, object]>([
    ['`firstTokenMs` must be a number of at least 1, or Infinity, not 0', { firstTokenMs: 0 }],
    ['`betweenTokensMs` must be a number of at least 1, or Infinity, not NaN', { betweenTokensMs: NaN }],
    ['`totalMs` must be a number of at least 1, or Infinity, not a value of type string', { totalMs: '5s' }],
    ['withTimeouts has no option `connectMs`; it takes firstTokenMs, betweenTokensMs, totalMs', { connectMs: 5 }],
  ])('B8 refuses options with "%s" and a correct example', (message, options) => {
    expect(() => withTimeouts(scriptedLLM([]), options)).toThrow(TypeError);
    expect(() => withTimeouts(scriptedLLM([]), options)).toThrow(message);
    expect(() => withTimeouts(scriptedLLM([]), options)).toThrow('For example: withTimeouts(');
  });

  it('B8 refuses what is no model', () => {
    expect(() => withTimeouts(undefined as unknown as LLM)).toThrow('withTimeouts needs an LLM');
  });
});
