/**
 * withCircuitBreaker as a black box: when it opens, what requests do meanwhile, who probes, and what follows. Time is
 * virtual. What a turn makes of it is in `circuit-breaker-in-a-turn.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import { decorateLLM, type LLM, type LLMError, type LLMErrorKind, type Notice } from 'turnloop';
import { type CircuitBreaker, type CircuitBreakerOptions, createCircuitBreaker, withCircuitBreaker, withFallback, withRetry } from 'turnloop/policies';
import { createConcurrencyLimit } from 'turnloop/policies/concurrency';
import { cutStream, delayed, hanging, repeat, type Script, type ScriptedReply, scriptedLLM, virtualRuntime } from 'turnloop/testing';
import { type Asking, failure, startRequest } from './decorated.ts';

const OPEN_MS = 60_000;

/** A breaker around a scripted model. */
function scene(replies: Script, options?: CircuitBreakerOptions) {
  const runtime = virtualRuntime();
  const llm = scriptedLLM(replies, { runtime });
  const breaker = createCircuitBreaker(options);
  const decorated = withCircuitBreaker(llm, breaker);
  const start = (parts?: Parameters<typeof startRequest>[2]): Asking => startRequest(decorated, runtime, parts);
  /** A request that is answered, or fails, without a wait. */
  const ask = async (): Promise<Asking> => {
    const asking = start();
    await runtime.flush();
    return asking;
  };
  return { runtime, llm, breaker, decorated, start, ask };
}

/** A request that fails once its signal aborts. */
function failWhenAborted(signal: AbortSignal, error: LLMError): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = (): void => {
      reject(error);
    };
    signal.addEventListener('abort', fail, { once: true });
  });
}

/** The model, which does not hear of aborts. */
function deafTo(llm: LLM): LLM {
  return decorateLLM(llm, (request) => llm.chat({ ...request, signal: new AbortController().signal }));
}

/** Opens a breaker that opens at the first failure, by a request that waits from then on, or in mode fail has ended. */
async function opened(replies: Script = [], options: CircuitBreakerOptions = {}) {
  const all: Script = typeof replies === 'function' ? replies : [failure('overloaded'), ...replies];
  const opened = scene(all, { failures: 1, ...options });
  const opener = await opened.ask();
  expect(opened.breaker.state).toBe('open');
  return { ...opened, opener };
}

describe('withCircuitBreaker, closed', () => {
  it('C2 opens after five failures in a row, and not before', async () => {
    const { ask, breaker, llm } = scene([repeat(failure('overloaded'), 5)]);

    for (let count = 1; count < 5; count += 1) {
      const { outcome, failed } = await ask();
      expect(outcome).toMatchObject({ kind: 'overloaded', stopReason: undefined });
      expect(failed).toStrictEqual([]);
      expect([breaker.state, breaker.failures]).toStrictEqual(['closed', count]);
    }
    await ask();

    expect([breaker.state, breaker.failures, breaker.openUntil]).toStrictEqual(['open', 5, OPEN_MS]);
    expect(llm.callCount).toBe(5);
  });

  it('C2 begins the count anew with each reply', async () => {
    const { ask, breaker } = scene([failure('server'), 'ok', failure('server')], { failures: 2 });

    for (let count = 0; count < 3; count += 1) await ask();

    expect([breaker.state, breaker.failures]).toStrictEqual(['closed', 1]);
  });

  it.each<LLMErrorKind>(['rate_limit', 'overloaded', 'server', 'network', 'timeout', 'malformed_response'])(
    'C2 counts a failure of kind %s',
    async (kind) => {
      const { ask, breaker } = scene([failure(kind)], { failures: 1 });

      await ask();

      expect(breaker.state).toBe('open');
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
  ])('C2 neither counts a failure of kind %s nor lets it end the row', async (kind) => {
    const error = failure(kind);
    const { ask, breaker } = scene([failure('server'), error], { failures: 2 });

    await ask();
    const { outcome } = await ask();

    expect(outcome).toBe(error);
    expect([breaker.state, breaker.failures]).toStrictEqual(['closed', 1]);
  });

  it('C2 counts the kinds it is told, and no others', async () => {
    const { ask, breaker } = scene([failure('server'), failure('quota')], { failures: 1, kinds: ['quota'] });

    await ask();
    expect(breaker.state).toBe('closed');
    await ask();

    expect(breaker.state).toBe('open');
  });

  it('C2 counts a request with retries inside once, when it has failed for good', async () => {
    const runtime = virtualRuntime();
    const breaker = createCircuitBreaker();
    const llm = withCircuitBreaker(withRetry(scriptedLLM([repeat(failure('server'), 10)]), { maxAttempts: 10 }), breaker);

    const { response } = startRequest(llm, runtime);
    await runtime.settle(response).catch(() => undefined);

    expect(breaker.failures).toBe(1);
  });

  it.each<LLMErrorKind>(['aborted', 'network'])('C2 does not count a request that was aborted, though it fails as %s', async (kind) => {
    const runtime = virtualRuntime();
    const breaker = createCircuitBreaker({ failures: 1 });
    const inner = decorateLLM(scriptedLLM([]), ({ signal }) => failWhenAborted(signal, failure(kind)));
    const asking = startRequest(withCircuitBreaker(inner, breaker), runtime);

    asking.controller.abort();
    await runtime.flush();

    expect(asking.outcome).toMatchObject({ kind });
    expect([asking.failed, breaker.failures]).toStrictEqual([[], 0]);
  });

  it('C2 RT3 sends nothing for a request that is aborted already', async () => {
    const { runtime, start, llm } = scene([]);
    const controller = new AbortController();
    controller.abort(new Error('Enough.'));

    const asking = start({ signal: controller.signal });
    await runtime.flush();

    expect(asking.outcome).toBe(controller.signal.reason);
    expect(llm.callCount).toBe(0);
  });

  it('C2 is shared by all models that it stands around', async () => {
    const runtime = virtualRuntime();
    const breaker = createCircuitBreaker({ failures: 2, mode: 'fail' });
    const [large, small] = [scriptedLLM([failure('server')]), scriptedLLM([failure('server')])];

    for (const llm of [large, small]) {
      startRequest(withCircuitBreaker(llm, breaker), runtime);
      await runtime.flush();
    }
    const third = startRequest(withCircuitBreaker(large, breaker), runtime);
    await runtime.flush();

    expect(breaker.state).toBe('open');
    expect(third.outcome).toMatchObject({ code: 'circuit_open' });
    expect(large.callCount + small.callCount).toBe(2);
  });

  it('C2 has a breaker of its own where none is given', async () => {
    const runtime = virtualRuntime();
    const llm = withCircuitBreaker(scriptedLLM([repeat(failure('server'), 5)]));

    const askings: Asking[] = [];
    for (let count = 0; count < 5; count += 1) {
      askings.push(startRequest(llm, runtime));
      await runtime.flush();
    }

    expect(askings[4]?.failed).toMatchObject([{ delayMs: OPEN_MS }]);
  });
});

describe('withCircuitBreaker, open in mode wait', () => {
  it('C2 pauses the request that opened it, tells of its failure with the pause, and sends it as the probe', async () => {
    const { runtime, llm, opener, breaker } = await opened(['back']);

    expect(opener.failed).toMatchObject([{ error: { kind: 'overloaded' }, delayMs: OPEN_MS }]);
    await runtime.advance(OPEN_MS - 1);
    expect([llm.callCount, breaker.state]).toStrictEqual([1, 'open']);
    await runtime.advance(1);

    expect(opener.outcome).toBe('back');
    expect([llm.callCount, breaker.state, breaker.failures]).toStrictEqual([2, 'closed', 0]);
    expect(opener.failed).toHaveLength(1);
  });

  it('C2 says in notices what happens, with the remaining milliseconds', async () => {
    const { runtime, opener, start } = await opened(['back', 'ok']);

    await runtime.advance(20_000);
    const second = start();
    await runtime.advance(OPEN_MS);

    expect(opener.notices).toStrictEqual([
      { name: 'circuitBreaker.opened', data: { failures: 1, kind: 'overloaded', remainingMs: 60_000 } },
      { name: 'circuitBreaker.waiting', data: { remainingMs: 60_000 } },
      { name: 'circuitBreaker.probing', data: { failures: 1 } },
      { name: 'circuitBreaker.closed', data: { failures: 1 } },
    ]);
    expect(second.notices).toStrictEqual([{ name: 'circuitBreaker.waiting', data: { remainingMs: 40_000 } }]);
    expect(second.outcome).toBe('ok');
  });

  it('C2 sends one probe while all others wait for its outcome, then all go on', async () => {
    const { runtime, llm, start, breaker, opener } = await opened([delayed('back', 1_000), repeat('ok', 3)]);
    const others = [start(), start()];

    await runtime.advance(OPEN_MS);
    expect([llm.callCount, breaker.state]).toStrictEqual([2, 'half_open']);
    const late = start();
    await runtime.flush();
    expect(late.notices).toStrictEqual([{ name: 'circuitBreaker.waiting', data: { remainingMs: 0 } }]);
    await runtime.advance(999);
    expect(llm.callCount).toBe(2);
    await runtime.advance(1);

    expect(opener.outcome).toBe('back');
    expect([...others, late].map(({ outcome }) => outcome)).toStrictEqual(['ok', 'ok', 'ok']);
    expect([opener, ...others, late].map(({ controller }) => controller.listenerCount)).toStrictEqual([0, 0, 0, 0]);
    expect(runtime.pendingTimers).toBe(0);
  });

  it('C2 ends the prober and all who waited with circuit_breaker when the probe fails, and opens again', async () => {
    const { runtime, llm, start, breaker, opener } = await opened([failure('server', { message: 'Still down.' }), 'never']);
    const others = [start(), start()];

    await runtime.advance(OPEN_MS);

    expect(opener.outcome).toMatchObject({ kind: 'server', message: 'Still down.', stopReason: 'circuit_breaker', retryable: false, retryAfterMs: OPEN_MS });
    for (const { outcome } of others) {
      expect(outcome).toMatchObject({
        kind: 'refused',
        code: 'circuit_open',
        stopReason: 'circuit_breaker',
        retryable: false,
        retryAfterMs: OPEN_MS,
        message: expect.stringContaining('server: Still down.'),
      });
    }
    expect([llm.callCount, breaker.state, breaker.openUntil]).toStrictEqual([2, 'open', 2 * OPEN_MS]);
    expect(runtime.pendingTimers).toBe(0);
  });

  it('C2 ends those too whose timer is due in the millisecond in which the probe fails', async () => {
    const { runtime, llm, start } = await opened([failure('server'), 'never']);
    await runtime.advance(30_000);
    const second = start();

    await runtime.advance(30_000);

    expect(second.outcome).toMatchObject({ code: 'circuit_open' });
    expect(llm.callCount).toBe(2);
  });

  it('C2 a refusal repeats no tokens: those of the probe count once', async () => {
    const usage = { inputTokens: 10, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 5, thinkingTokens: 0 };
    const { runtime, start, opener } = await opened([failure('server', { usage })]);
    const other = start();

    await runtime.advance(OPEN_MS);

    expect(opener.outcome).toMatchObject({ usage });
    expect(other.outcome).toMatchObject({ code: 'circuit_open', usage: undefined, cause: { kind: 'server' } });
  });

  it('C2 lets a request that comes after the open time be the probe', async () => {
    const { runtime, breaker, ask, opener } = await opened(['back']);
    opener.controller.abort();

    await runtime.advance(2 * OPEN_MS);
    expect(breaker.state).toBe('open');
    const { outcome } = await ask();

    expect([outcome, breaker.state]).toStrictEqual(['back', 'closed']);
  });

  it.each([
    ['a failure that says nothing of the provider', failure('unknown')],
    ['a refusal of the request itself', failure('context_overflow')],
  ])('C2 hands the probe on after %s', async (_what, error) => {
    const { runtime, start, opener, breaker } = await opened([error, 'back']);
    const next = start();

    await runtime.advance(OPEN_MS);

    expect(opener.outcome).toBe(error);
    expect(next.outcome).toBe('back');
    expect(next.notices.map(({ name }) => name)).toStrictEqual(['circuitBreaker.waiting', 'circuitBreaker.probing', 'circuitBreaker.closed']);
    expect(breaker.state).toBe('closed');
  });

  it('C2 stays open after such a probe with nobody in line, and the next to come probes', async () => {
    const { runtime, ask, breaker } = await opened([failure('auth'), 'back']);

    await runtime.advance(OPEN_MS);
    expect(breaker.state).toBe('open');
    const { outcome } = await ask();

    expect([outcome, breaker.state]).toStrictEqual(['back', 'closed']);
  });

  it('C2 lets a request wait for a failure of its own only once', async () => {
    const { runtime, start, llm, breaker } = scene(
      [delayed(failure('server'), 5_000), failure('overloaded'), 'back', failure('server', { message: 'Again.' })],
      { failures: 1 },
    );
    const poisoned = start();
    const opener = start();

    await runtime.advance(OPEN_MS);

    expect(opener.outcome).toBe('back');
    expect(poisoned.outcome).toMatchObject({ kind: 'server', message: 'Again.', stopReason: 'circuit_breaker' });
    expect(poisoned.failed).toHaveLength(1);
    expect([llm.callCount, breaker.state]).toStrictEqual([4, 'open']);
  });

  it('BR-010 pauses after a reply that broke off, so that its text is taken back once', async () => {
    const { runtime, start } = scene([cutStream('Hello world', { deltaCount: 1 }), 'Hello world'], { failures: 1 });
    const asking = start();

    await runtime.advance(OPEN_MS);

    expect(asking.outcome).toBe('Hello world');
    expect(asking.failed).toHaveLength(1);
  });
});

describe('withCircuitBreaker, requests under way when it opens', () => {
  it('C2 lets a reply come that was under way, and stays open: only a probe closes it', async () => {
    const { runtime, start, breaker, llm } = scene([delayed('slow', 5_000), failure('server'), 'back'], { failures: 1 });
    const slow = start();
    const opener = start();

    await runtime.advance(5_000);

    expect(slow.outcome).toBe('slow');
    expect([breaker.state, breaker.openUntil]).toStrictEqual(['open', OPEN_MS]);
    await runtime.advance(OPEN_MS);
    expect([opener.outcome, llm.callCount]).toStrictEqual(['back', 3]);
  });

  it('C2 does not start the open time anew for a failure that was under way, and pauses that request too', async () => {
    const { runtime, start, breaker } = scene([delayed(failure('network'), 5_000), failure('server'), 'back', 'ok'], { failures: 1 });
    const slow = start();
    const opener = start();

    await runtime.advance(5_000);

    expect(slow.failed).toMatchObject([{ error: { kind: 'network' }, delayMs: 55_000 }]);
    expect([breaker.failures, breaker.openUntil]).toStrictEqual([1, OPEN_MS]);
    await runtime.advance(55_000);
    expect([opener.outcome, slow.outcome]).toStrictEqual(['back', 'ok']);
  });

  it('RT10 C2 lets it pause as long as the server asked for, where that is longer, up to the open time', async () => {
    const asks = (retryAfterMs: number) => delayed(failure('rate_limit', { retryAfterMs }), 50_000);
    const { runtime, start } = scene([asks(25_000), asks(1e9), failure('server'), 'back', 'ok', 'ok'], { failures: 1 });
    const [slow, slower] = [start(), start()];
    start();

    await runtime.advance(74_999);
    expect([slow.failed[0]?.delayMs, slower.failed[0]?.delayMs]).toStrictEqual([25_000, OPEN_MS]);
    expect(slow.outcome).toBe(undefined);
    await runtime.advance(1);
    expect([slow.outcome, slower.outcome]).toStrictEqual(['ok', undefined]);
    await runtime.advance(35_000);

    expect(slower.outcome).toBe('ok');
  });

  it('C2 takes no news of the time before it opened for news of the time after it closed', async () => {
    const { runtime, start, breaker } = scene([delayed(failure('network'), 70_000), failure('server'), 'back'], { failures: 1 });
    const slow = start();
    start();

    await runtime.advance(70_000);

    expect(slow.outcome).toMatchObject({ kind: 'network', stopReason: undefined });
    expect([breaker.state, breaker.failures]).toStrictEqual(['closed', 0]);
  });

  it.each<[string, (llm: LLM, breaker: CircuitBreaker) => LLM]>([
    ['directly', (llm, breaker) => withCircuitBreaker(withRetry(llm), breaker)],
    ['with another decorator in between', (llm, breaker) => withCircuitBreaker(withCircuitBreaker(withRetry(llm)), breaker)],
  ])('C2 holds the next attempt of a retry inside back, %s', async (_how, decorate) => {
    const runtime = virtualRuntime();
    const breaker = createCircuitBreaker({ failures: 1 });
    const [retried, failing] = [scriptedLLM([failure('server'), 'ok']), scriptedLLM([failure('overloaded')])];
    const waiting = startRequest(decorate(retried, breaker), runtime);
    await runtime.advance(100);
    const opener = startRequest(withCircuitBreaker(failing, breaker), runtime);
    await runtime.flush();
    expect(breaker.state).toBe('open');
    opener.controller.abort();

    await runtime.advance(OPEN_MS - 1);
    expect(retried.callCount).toBe(1);
    await runtime.advance(1);

    // It came first and so it is the probe.
    expect(waiting.outcome).toBe('ok');
    expect(waiting.failed).toHaveLength(1);
    expect(waiting.notices.map(({ name }) => name)).toStrictEqual(['circuitBreaker.waiting', 'circuitBreaker.probing', 'circuitBreaker.closed']);
    expect(breaker.state).toBe('closed');
  });

  it('C2 C10 holds a request back that waited for a place of a limit inside, and gives the place to the probe', async () => {
    const runtime = virtualRuntime();
    const breaker = createCircuitBreaker({ failures: 1 });
    const llm = scriptedLLM([delayed(failure('overloaded'), 1_000), 'back', 'ok'], { runtime });
    const limited = withCircuitBreaker(createConcurrencyLimit(1).llm(llm), breaker);
    const [opener, queued] = [startRequest(limited, runtime), startRequest(limited, runtime)];

    await runtime.advance(OPEN_MS);
    expect(llm.callCount).toBe(1);
    await runtime.advance(1_000);

    expect([opener.outcome, queued.outcome].sort()).toStrictEqual(['back', 'ok']);
    expect([breaker.state, runtime.pendingTimers]).toStrictEqual(['closed', 0]);
  });

  it('C2 ends a retry inside without another attempt in mode fail', async () => {
    const runtime = virtualRuntime();
    const breaker = createCircuitBreaker({ failures: 1, mode: 'fail' });
    const [retried, failing] = [scriptedLLM([failure('server'), 'never']), scriptedLLM([failure('overloaded')])];
    const waiting = startRequest(withCircuitBreaker(withRetry(retried), breaker), runtime);
    await runtime.flush();
    startRequest(withCircuitBreaker(failing, breaker), runtime);

    await runtime.advance(1_000);

    expect(waiting.outcome).toMatchObject({ kind: 'refused', code: 'circuit_open' });
    expect(retried.callCount).toBe(1);
    expect(runtime.pendingTimers).toBe(0);
  });
});

describe('withCircuitBreaker, open in mode fail', () => {
  it('C2 fails the request that opened it with its own error, and the next ones unsent', async () => {
    const { runtime, opener, ask, llm } = await opened([], { mode: 'fail' });

    expect(opener.outcome).toMatchObject({ kind: 'overloaded', stopReason: 'circuit_breaker', retryable: false, retryAfterMs: OPEN_MS });
    expect(opener.failed).toStrictEqual([]);
    await runtime.advance(20_000);
    const { outcome } = await ask();

    expect(outcome).toMatchObject({
      kind: 'refused',
      code: 'circuit_open',
      stopReason: 'circuit_breaker',
      retryable: false,
      retryAfterMs: 40_000,
      message: 'The request was not sent: the circuit breaker is open, since the provider failed once, the last time with "overloaded: overloaded.". It is asked again in 40 s at the earliest.',
    });
    expect(llm.callCount).toBe(1);
    expect(runtime.pendingTimers).toBe(0);
  });

  it('C2 refuses what comes while the probe is under way, and closes when it succeeds', async () => {
    const { runtime, start, ask, breaker } = await opened([delayed('back', 1_000), 'ok'], { mode: 'fail' });

    await runtime.advance(OPEN_MS);
    const probe = start();
    const { outcome } = await ask();
    expect(outcome).toMatchObject({ code: 'circuit_open', retryAfterMs: undefined, message: expect.stringContaining('A probe is under way.') });
    await runtime.advance(1_000);

    expect([probe.outcome, breaker.state]).toStrictEqual(['back', 'closed']);
    expect((await ask()).outcome).toBe('ok');
  });

  it('C2 opens for another minute when the probe fails', async () => {
    const { runtime, ask, breaker } = await opened([failure('server')], { mode: 'fail' });

    await runtime.advance(OPEN_MS);
    const { outcome, notices } = await ask();

    expect(outcome).toMatchObject({ kind: 'server', stopReason: 'circuit_breaker' });
    expect(notices.map(({ name }) => name)).toStrictEqual(['circuitBreaker.probing', 'circuitBreaker.opened']);
    expect(breaker.openUntil).toBe(2 * OPEN_MS);
  });

  it('RT10 keeps what the provider asked to wait where that is longer than the open time', async () => {
    const { ask } = scene([failure('rate_limit', { retryAfterMs: 90_000 })], { failures: 1, mode: 'fail' });

    expect((await ask()).outcome).toMatchObject({ kind: 'rate_limit', retryAfterMs: 90_000 });
  });

  it('C2 is waited for by a retry outside that is told to', async () => {
    const { runtime, decorated, llm, breaker } = await opened(['back'], { mode: 'fail' });
    const patient = withRetry(decorated, { shouldRetry: ({ error }) => error.code === 'circuit_open' || undefined });

    const { response } = startRequest(patient, runtime);
    await runtime.settle(response);

    expect([runtime.now(), llm.callCount, breaker.state]).toStrictEqual([OPEN_MS, 2, 'closed']);
  });
});

describe('withCircuitBreaker, aborted', () => {
  it('C2 RT3 ends a pause at once, and leaves no timer and no listener', async () => {
    const { runtime, opener, start, llm } = await opened();
    const second = start();
    await runtime.flush();
    const reason = new Error('Enough.');

    for (const { controller } of [opener, second]) controller.abort(reason);
    await runtime.flush();

    expect([opener.outcome, second.outcome]).toStrictEqual([reason, reason]);
    expect([opener.controller.listenerCount, second.controller.listenerCount]).toStrictEqual([0, 0]);
    expect([runtime.pendingTimers, runtime.now(), llm.callCount]).toStrictEqual([0, 0, 1]);
  });

  it('C2 RT3 sends nothing for a request that is aborted already, and does not let it probe', async () => {
    const { runtime, start, breaker, opener, llm } = await opened(['back']);
    opener.controller.abort();
    await runtime.advance(OPEN_MS);
    const controller = new AbortController();
    controller.abort(new Error('Enough.'));

    const asking = start({ signal: controller.signal });
    await runtime.flush();

    expect(asking.outcome).toBe(controller.signal.reason);
    expect([breaker.state, llm.callCount]).toStrictEqual(['open', 1]);
  });

  it('C2 hands an aborted probe to the next in line', async () => {
    const { runtime, opener, start, breaker } = await opened([hanging(), 'back', 'ok']);
    const [second, third] = [start(), start()];
    await runtime.advance(OPEN_MS);

    opener.controller.abort();
    await runtime.flush();

    expect(opener.outcome).toMatchObject({ name: 'AbortError' });
    expect([second.outcome, third.outcome, breaker.state]).toStrictEqual(['back', 'ok', 'closed']);
    expect(second.notices.some(({ name }) => name === 'circuitBreaker.probing')).toBe(true);
  });

  it('C2 hands it on at once though the model does not heed the signal, whose answer then changes nothing', async () => {
    const runtime = virtualRuntime();
    const breaker = createCircuitBreaker({ failures: 1 });
    let answer = (): void => undefined;
    const deaf = new Promise<ScriptedReply>((resolve) => {
      answer = () => {
        resolve({ content: 'late', ignoresAbort: true });
      };
    });
    const llm = deafTo(scriptedLLM([failure('server'), () => deaf, failure('server', { message: 'Still down.' })], { runtime }));
    const decorated = withCircuitBreaker(llm, breaker);
    const opener = startRequest(decorated, runtime);
    await runtime.flush();
    const second = startRequest(decorated, runtime);
    await runtime.advance(OPEN_MS);

    opener.controller.abort();
    await runtime.flush();
    expect(opener.outcome).toBe(undefined);
    expect(second.outcome).toMatchObject({ message: 'Still down.', stopReason: 'circuit_breaker' });
    answer();
    await runtime.flush();

    expect(opener.outcome).toBe('late');
    expect([breaker.state, breaker.openUntil]).toStrictEqual(['open', 2 * OPEN_MS]);
  });

  it('C2 passes the probe on over those who are aborted by the same signal', async () => {
    const { runtime, start, opener, llm } = await opened([hanging(), 'back']);
    opener.controller.abort();
    const shared = new AbortController();
    const [prober, sibling] = [start({ signal: shared.signal }), start({ signal: shared.signal })];
    const other = start();
    await runtime.advance(OPEN_MS);

    shared.abort(new Error('Enough.'));
    await runtime.flush();

    expect(sibling.outcome).toBe(shared.signal.reason);
    expect(prober.outcome).toBe(shared.signal.reason);
    expect([other.outcome, llm.callCount]).toStrictEqual(['back', 3]);
  });

  it.each([
    ['waits', 0],
    ['comes then', OPEN_MS],
  ])('C2 sends no probe for a request that %s and is aborted by who hears of it', async (_what, comesAt) => {
    const { runtime, start, opener, llm } = await opened(['back']);
    opener.controller.abort();
    await runtime.advance(comesAt);
    const controller = new AbortController();
    const notify = (notice: Notice): void => {
      if (notice.name === 'circuitBreaker.probing') controller.abort(new Error('Enough.'));
    };
    const aborted = start({ signal: controller.signal, scope: { turnId: 'turn_1', step: 1, stepId: 'step_1', runtime, notify } });
    const next = start();

    await runtime.advance(OPEN_MS);

    expect(aborted.outcome).toBe(controller.signal.reason);
    expect([next.outcome, llm.callCount]).toStrictEqual(['back', 2]);
  });

  it('C2 does not go on when it is aborted while its failure is told', async () => {
    const { runtime, start, llm } = scene([failure('server'), 'never'], { failures: 1 });
    const controller = new AbortController();

    const asking = start({
      signal: controller.signal,
      onAttemptFailed: () => {
        controller.abort(new Error('Enough.'));
      },
    });
    await runtime.flush();

    expect(asking.outcome).toBe(controller.signal.reason);
    expect([llm.callCount, runtime.pendingTimers]).toStrictEqual([1, 0]);
  });
});

describe('withCircuitBreaker, the same breaker twice on one path', () => {
  const NESTINGS: readonly [string, (llm: LLM, breaker: CircuitBreaker) => LLM][] = [
    ['directly', (llm, breaker) => withCircuitBreaker(withCircuitBreaker(llm, breaker), breaker)],
    ['around a fallback', (llm, breaker) => withCircuitBreaker(withFallback([withCircuitBreaker(llm, breaker)]), breaker)],
    ['around a retry that does not retry', (llm, breaker) => withCircuitBreaker(withRetry(withCircuitBreaker(llm, breaker), { maxAttempts: 1 }), breaker)],
    ['three times', (llm, breaker) => withCircuitBreaker(withCircuitBreaker(withCircuitBreaker(llm, breaker), breaker), breaker)],
  ];

  it.each(NESTINGS)('C2 counts a failure once, %s', async (_how, nest) => {
    const runtime = virtualRuntime();
    const breaker = createCircuitBreaker({ failures: 4 });
    const llm = nest(scriptedLLM([failure('server'), failure('server'), 'ok']), breaker);

    const counts: number[] = [];
    for (let count = 0; count < 3; count += 1) {
      await runtime.settle(startRequest(llm, runtime).response).catch(() => undefined);
      counts.push(breaker.failures);
    }

    expect(counts).toStrictEqual([1, 2, 0]);
  });

  it.each(NESTINGS)('C2 probes once it was open, and goes on, %s', async (_how, nest) => {
    const runtime = virtualRuntime();
    const breaker = createCircuitBreaker({ failures: 1 });
    const asking = startRequest(nest(scriptedLLM([failure('server'), 'ok']), breaker), runtime);

    await runtime.settle(asking.response);

    expect([asking.outcome, asking.failed.length, breaker.state, runtime.now()]).toStrictEqual(['ok', 1, 'closed', OPEN_MS]);
    expect([runtime.pendingTimers, asking.controller.listenerCount]).toStrictEqual([0, 0]);
  });

  it('C2 leaves it to the outer one: what a fallback in between answers is no failure', async () => {
    const runtime = virtualRuntime();
    const breaker = createCircuitBreaker({ failures: 1, mode: 'fail' });
    const one = withCircuitBreaker(scriptedLLM([failure('server')]), breaker);
    const asking = startRequest(withCircuitBreaker(withFallback([one, scriptedLLM(['second'])]), breaker), runtime);

    await runtime.settle(asking.response);

    expect([asking.outcome, breaker.state, breaker.failures]).toStrictEqual(['second', 'closed', 0]);
  });

  it('C2 still holds each of two breakers on one path to its own count', async () => {
    const runtime = virtualRuntime();
    const [inner, outer] = [createCircuitBreaker(), createCircuitBreaker()];
    const llm = withCircuitBreaker(withCircuitBreaker(scriptedLLM([failure('server')]), inner), outer);

    await runtime.settle(startRequest(llm, runtime).response).catch(() => undefined);

    expect([inner.failures, outer.failures]).toStrictEqual([1, 1]);
  });
});

describe('createCircuitBreaker', () => {
  it("C2 comes back open from a snapshot, with the provider's error", async () => {
    const { breaker, runtime } = await opened();
    await runtime.advance(20_000);
    const snapshot = JSON.parse(JSON.stringify(breaker.snapshot()));

    const restored = createCircuitBreaker({ snapshot, mode: 'fail' });
    const llm = scriptedLLM(['back']);
    const decorated = withCircuitBreaker(llm, restored);
    const refused = startRequest(decorated, runtime);
    await runtime.flush();

    expect(refused.outcome).toMatchObject({ retryAfterMs: 40_000, message: expect.stringContaining('"overloaded: overloaded."') });
    await runtime.advance(40_000);
    const probe = startRequest(decorated, runtime);
    await runtime.flush();
    expect([probe.outcome, restored.state]).toStrictEqual(['back', 'closed']);
  });

  it('C2 comes back with its failures from a snapshot of a closed one', async () => {
    const { ask, breaker } = scene([failure('server')], { snapshot: { failures: 4 } });

    await ask();

    expect([breaker.state, breaker.failures]).toStrictEqual(['open', 5]);
  });

  it('C2 comes back open and due from a snapshot that was taken during a probe', async () => {
    const { runtime, breaker } = await opened([hanging()]);
    await runtime.advance(OPEN_MS);
    expect(breaker.state).toBe('half_open');

    const restored = createCircuitBreaker({ snapshot: breaker.snapshot() });
    const { response } = startRequest(withCircuitBreaker(scriptedLLM(['back']), restored), runtime);
    await runtime.settle(response);

    expect(restored.state).toBe('closed');
  });

  it('C2 BR-094 is open no longer than from now on when the clock was set back', async () => {
    const runtime = virtualRuntime();
    const breaker = createCircuitBreaker({ snapshot: { failures: 5, openUntil: 1e15 } });

    const { response } = startRequest(withCircuitBreaker(scriptedLLM(['back']), breaker), runtime);
    await runtime.settle(response);

    expect(runtime.now()).toBe(OPEN_MS);
  });

  it('C2 waits on when a timer fires early', async () => {
    const runtime = virtualRuntime();
    const early = { ...runtime, setTimer: (delayMs: number, callback: () => void) => runtime.setTimer(delayMs > 1 ? delayMs - 1 : delayMs, callback) };
    const breaker = createCircuitBreaker({ snapshot: { failures: 5, openUntil: OPEN_MS } });
    const llm = scriptedLLM(['back']);
    const scope = { turnId: 'turn_1', step: 1, stepId: 'step_1', runtime: early, notify: () => undefined };

    const { response } = startRequest(withCircuitBreaker(llm, breaker), runtime, { scope });
    await runtime.settle(response);

    expect(runtime.now()).toBe(OPEN_MS);
  });

  it.each<[string, object]>([
    ['`failures` must be a whole number of at least 1, not 0', { failures: 0 }],
    ['`failures` must be a whole number of at least 1, not 1.5', { failures: 1.5 }],
    ['`openMs` must be a number of at least 1, not -5', { openMs: -5 }],
    ['`openMs` must be a number of at least 1, not Infinity', { openMs: Infinity }],
    ["`mode` must be 'wait' or 'fail'", { mode: 'pause' }],
    ['has no option `maxFailures`', { maxFailures: 5 }],
    ['`kinds` must be a list of kinds', { kinds: 'server' }],
    ['`kinds` has "serve", which is no kind of error', { kinds: ['serve'] }],
    ['`kinds` has "refused", which is no failure of a provider', { kinds: ['server', 'refused'] }],
    ['`snapshot` is not one of a circuit breaker', { snapshot: 'closed' }],
    ['`snapshot` is not one of a circuit breaker', { snapshot: { failures: -1 } }],
    ['`snapshot` is not one of a circuit breaker', { snapshot: { failures: 1, openUntil: 'soon' } }],
    ['`snapshot` is not one of a circuit breaker', { snapshot: { failures: 1, lastError: { kind: 'server' } } }],
  ])('C2 refuses options with "%s" and a correct example', (message, options) => {
    expect(() => createCircuitBreaker(options)).toThrow(TypeError);
    expect(() => createCircuitBreaker(options)).toThrow(message);
    expect(() => createCircuitBreaker(options)).toThrow('For example: createCircuitBreaker({');
  });

  it('C2 refuses what is no model, and what is no breaker', () => {
    expect(() => withCircuitBreaker({} as LLM)).toThrow('withCircuitBreaker needs an LLM');
    expect(() => withCircuitBreaker(scriptedLLM([]), { failures: 5 } as CircuitBreaker)).toThrow('withCircuitBreaker needs a breaker that createCircuitBreaker made');
  });
});
