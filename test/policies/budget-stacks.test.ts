/**
 * Budgets together with what waits: breakers, limits, retries and fallbacks around them and inside. Nobody may wait for
 * ever, nothing that was not sent may cost anything, and nothing that was sent may be forgotten. In any stack, by chance:
 * `budget.property.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import { decorateLLM, type LLM, toUsage } from 'turnloop';
import {
  type BudgetEstimator,
  createBudget,
  createCircuitBreaker,
  createRateLimit,
  withBudget,
  withCircuitBreaker,
  withFallback,
  withRateLimit,
  withRetry,
  withTimeouts,
} from 'turnloop/policies';
import { createConcurrencyLimit } from 'turnloop/policies/concurrency';
import { cutStream, delayed, hanging, scriptedLLM, virtualRuntime, type VirtualRuntime } from 'turnloop/testing';
import { failure, startRequest } from './decorated.ts';

const HOUR_MS = 3_600_000;

/** Every prompt has 100 tokens, every character of a reply is one. */
const flat: BudgetEstimator = { estimateRequest: () => 100, estimateText: (text) => text.length, observe: () => undefined };
const reply = (text: string, outputTokens = 10) => ({ content: text, usage: { inputTokens: 100, outputTokens } });
const replies = (count: number) => Array.from({ length: count }, (_, index) => reply(`${index}`));

/** Opens a breaker with the failure of a request that is gone at once. */
async function open(breaker: ReturnType<typeof createCircuitBreaker>, runtime: VirtualRuntime): Promise<void> {
  const { response, controller } = startRequest(withCircuitBreaker(scriptedLLM([failure('server')]), breaker), runtime);
  const over = response.catch(() => undefined);
  await runtime.flush();
  controller.abort(new Error('Gone.'));
  await over;
}

describe('a budget and what waits', () => {
  const breaker = () => createCircuitBreaker({ failures: 1, openMs: 1000 });

  it.each<[string, (llm: LLM, pay: (llm: LLM) => LLM) => (state: ReturnType<typeof breaker>) => LLM]>([
    ['around the breaker', (llm, pay) => (state) => pay(withCircuitBreaker(withRetry(llm, { maxAttempts: 2 }), state))],
    ['inside of it', (llm, pay) => (state) => withCircuitBreaker(withRetry(pay(llm), { maxAttempts: 2 }), state)],
    ['around a fallback of it', (llm, pay) => (state) => pay(withFallback([withCircuitBreaker(withRetry(llm, { maxAttempts: 2 }), state)]))],
  ])('C2 C4 lets the probe of an open breaker try again, with the budget %s', async (_where, stack) => {
    const runtime = virtualRuntime();
    const state = breaker();
    const budget = createBudget({ maxTokens: 1000, outputReserve: 400, estimator: flat });
    const llm = stack(scriptedLLM([failure('server'), ...replies(4)], { runtime }), (inner) => withBudget(inner, budget))(state);
    await open(state, runtime);

    const asked = [1, 2, 3, 4].map(() => startRequest(llm, runtime));
    await runtime.advance(HOUR_MS);

    expect(asked.map(({ outcome }) => outcome).sort()).toStrictEqual(['0', '1', '2', '3']);
    expect(budget.spent.tokens).toBe(440);
    expect(runtime.pendingTimers).toBe(0);
  });

  it.each<[string, (llm: LLM) => LLM]>([
    ['for a place', (llm) => createConcurrencyLimit(1).llm(llm)],
    ['for its minute', (llm) => withRateLimit(llm, createRateLimit({ requestsPerMinute: 1 }))],
  ])('C2 C4 C10 sets nothing aside for a request that a breaker holds back while it waits %s inside', async (_what, limited) => {
    const runtime = virtualRuntime();
    const state = createCircuitBreaker({ failures: 1, openMs: 10_000 });
    const budget = createBudget({ maxTokens: 1150, outputReserve: 400, estimator: flat });
    const told = failure('server', { usage: toUsage({ inputTokens: 100, outputTokens: 390 }) });
    const scripted = scriptedLLM([delayed(reply('zero'), 5000), told, ...replies(2)], { runtime });
    const llm = withCircuitBreaker(withRetry(withBudget(limited(scripted), budget), { maxAttempts: 3 }), state);
    const asked = [startRequest(llm, runtime)];
    await runtime.flush();
    asked.push(startRequest(llm, runtime), startRequest(llm, runtime));
    await runtime.flush();
    await open(state, runtime);

    await runtime.advance(HOUR_MS);

    expect(asked.map(({ outcome }) => outcome)).toStrictEqual(['zero', '0', '1']);
    expect(budget.spent.tokens).toBe(820);
  });

  it('C4 C10 waits for nobody who waits for it, also where a limit and a budget are shared in both orders', async () => {
    const runtime = virtualRuntime();
    const limit = createConcurrencyLimit(1);
    const budget = createBudget({ maxTokens: 1500, outputReserve: 700, estimator: flat });
    const scripted = scriptedLLM(Array.from({ length: 5 }, () => delayed(reply('a'), 10)), { runtime });
    const orders = [withBudget(limit.llm(scripted), budget), limit.llm(withBudget(scripted, budget))];

    const asked = [0, 1, 0, 0, 1].map((order) => startRequest(orders[order] ?? scripted, runtime));
    await runtime.advance(HOUR_MS);

    expect(asked.map(({ outcome }) => outcome)).toStrictEqual(['a', 'a', 'a', 'a', 'a']);
  });

  it('C4 lets a request go while another one waits between two attempts inside', async () => {
    const runtime = virtualRuntime();
    const budget = createBudget({ maxTokens: 600, outputReserve: 500, estimator: flat });
    const scripted = scriptedLLM([failure('server', { retryAfterMs: 30_000 }), reply('second'), reply('first')], { runtime });
    const llm = withBudget(withRetry(scripted), budget);
    const first = startRequest(llm, runtime);
    const second = startRequest(llm, runtime);

    await runtime.flush();

    expect(second.outcome).toBe('second');
    await runtime.advance(HOUR_MS);
    expect(first.outcome).toBe('first');
  });

  it('C2 C4 keeps nothing of a request that was aborted as it became the probe', async () => {
    const runtime = virtualRuntime();
    const state = breaker();
    const budget = createBudget({ maxTokens: 800, estimator: flat });
    startRequest(withBudget(scriptedLLM([delayed(reply('a'), 5000)], { runtime, capabilities: { maxOutputTokens: 650 } }), budget), runtime);
    const controller = new AbortController();
    const notify = ({ name }: { readonly name: string }): void => {
      if (name === 'circuitBreaker.probing') controller.abort(new Error('Enough.'));
    };
    const aborted = startRequest(withCircuitBreaker(withBudget(scriptedLLM(['never'], { runtime }), budget), state), runtime, {
      signal: controller.signal,
      scope: { turnId: 'turn', step: 1, stepId: 'step', runtime, notify },
    });
    await runtime.flush();
    await open(state, runtime);
    await runtime.advance(6000);
    expect(aborted.outcome).toStrictEqual(new Error('Enough.'));

    budget.add('elsewhere', { inputTokens: (budget.remaining.tokens ?? 0) - 150 });
    const next = startRequest(withBudget(scriptedLLM([reply('next', 1)]), budget), runtime);
    await runtime.flush();

    expect(next.outcome).toBe('next');
  });

  it('C4 C6 keeps nothing of a request that timeouts inside have given up while it waited for the budget', async () => {
    const runtime = virtualRuntime();
    const budget = createBudget({ maxTokens: 650, outputReserve: 500, estimator: flat });
    const scripted = scriptedLLM([failure('server', { retryAfterMs: 1000 }), delayed(reply('slow'), 60_000), reply('next')], { runtime });
    const timed = startRequest(withBudget(withTimeouts(withRetry(scripted), { totalMs: 5000 }), budget), runtime);
    await runtime.flush();
    const slow = startRequest(withBudget(scripted, budget), runtime);
    await runtime.advance(HOUR_MS);
    expect(timed.outcome).toMatchObject({ kind: 'timeout' });
    expect(slow.outcome).toBe('slow');

    const next = startRequest(withBudget(scripted, budget), runtime);
    await runtime.flush();

    expect(next.outcome).toBe('next');
  });
});

describe('what a budget counts', () => {
  it.each<[string, (llm: LLM) => LLM]>([
    ['for a place', (llm) => createConcurrencyLimit(1).llm(llm)],
    ['for its minute', (llm) => withRateLimit(llm, createRateLimit({ requestsPerMinute: 1 }))],
  ])('C4 C8 counts nothing for requests that were aborted while they waited %s inside', async (_what, limited) => {
    const runtime = virtualRuntime();
    const budget = createBudget({ maxTokens: 1_000_000, estimator: flat });
    const scripted = scriptedLLM([delayed(reply('a'), 1000)], { runtime });
    const llm = withRetry(withBudget(limited(scripted), budget));
    startRequest(llm, runtime);
    await runtime.flush();
    const waiting = [1, 2, 3].map(() => startRequest(llm, runtime));
    await runtime.flush();

    for (const { controller } of waiting) controller.abort(new Error('Enough.'));
    await runtime.advance(2000);

    expect(scripted.callCount).toBe(1);
    expect(budget.spent.tokens).toBe(110);
  });

  it('C4 C8 counts nothing for a request that was aborted between two attempts inside', async () => {
    const runtime = virtualRuntime();
    const budget = createBudget({ maxTokens: 1_000_000, estimator: flat });
    const { controller, response } = startRequest(withBudget(withRetry(scriptedLLM([failure('server')], { runtime })), budget), runtime);
    await runtime.flush();

    controller.abort(new Error('Enough.'));

    await expect(response).rejects.toThrow('Enough.');
    expect(budget.spent.tokens).toBe(0);
  });

  it('C4 C8 counts the prompt of a request that was aborted at the model inside of a limit', async () => {
    const runtime = virtualRuntime();
    const budget = createBudget({ maxTokens: 1_000_000, estimator: flat });
    const { controller, response } = startRequest(withBudget(createConcurrencyLimit(1).llm(scriptedLLM([hanging()], { runtime })), budget), runtime);
    await runtime.flush();

    controller.abort(new Error('Enough.'));

    await expect(response).rejects.toThrow('Enough.');
    expect(budget.spent.tokens).toBe(100);
  });

  it('C4 counts a reply without substance and without a count as well', async () => {
    const runtime = virtualRuntime();
    const budget = createBudget({ maxTokens: 150, estimator: flat });
    const empty = decorateLLM(scriptedLLM([]), async () => ({ content: [], stopReason: 'end_turn', usage: toUsage({}) }));

    await expect(startRequest(withBudget(empty, budget), runtime).response).rejects.toMatchObject({ code: 'empty' });

    expect(budget.spent.tokens).toBe(100);
  });

  it('C4 counts in both of two budgets what was sent before the inner one refused another attempt', async () => {
    const runtime = virtualRuntime();
    const inner = createBudget({ maxTokens: 220, estimator: flat });
    const outer = createBudget({ maxTokens: 10_000, estimator: flat });
    const scripted = scriptedLLM([cutStream({ content: 'x'.repeat(50) }, { deltaCount: 1 }), 'never'], { runtime });

    await expect(startRequest(withBudget(withBudget(withRetry(scripted), inner), outer), runtime).response).rejects.toMatchObject({ code: 'max_budget' });

    expect(inner.spent.tokens).toBeGreaterThan(100);
    expect(outer.spent.tokens).toBe(inner.spent.tokens);
  });

  it.each<[string, (limited: (llm: LLM) => LLM, pay: (llm: LLM) => LLM) => (llm: LLM) => LLM]>([
    ['around', (limited, pay) => (llm) => pay(limited(withRetry(llm)))],
    ['inside of', (limited, pay) => (llm) => limited(pay(withRetry(llm)))],
  ])('C4 C10 a rate limit goes on counting what was sent before a budget %s it refused another attempt', async (_where, stack) => {
    const runtime = virtualRuntime();
    const rate = createRateLimit({ requestsPerMinute: 1 });
    const budget = createBudget({ maxTokens: 250, estimator: flat });
    const limited = (llm: LLM): LLM => withRateLimit(llm, rate);
    const scripted = scriptedLLM([failure('server', { usage: toUsage({ inputTokens: 100, outputTokens: 100 }) }), reply('next')], { runtime });
    const refused = startRequest(stack(limited, (llm) => withBudget(llm, budget))(scripted), runtime);
    await expect(refused.response).rejects.toMatchObject({ code: 'max_budget' });

    const next = startRequest(limited(scripted), runtime);
    await runtime.advance(59_999);
    expect(next.outcome).toBeUndefined();
    await runtime.advance(1);

    expect(next.outcome).toBe('next');
  });
});

it.each<[string, (llm: LLM) => LLM]>([
  ['withBudget', (llm) => withBudget(llm, createBudget({ maxTokens: 10_000, estimator: flat }))],
  ['withRateLimit', (llm) => withRateLimit(llm, createRateLimit({ requestsPerMinute: 60 }))],
  ['limit.llm', (llm) => createConcurrencyLimit(1).llm(llm)],
])('A8 C1 C4 %s takes a reply that is none as malformed, so that it is tried again', async (_name, decorate) => {
  for (const malformed of [null, undefined, {}, { content: [null], stopReason: 'end_turn' }, { content: [{ type: 'text' }], stopReason: 'end_turn' }]) {
    const runtime = virtualRuntime();
    const broken = decorateLLM(scriptedLLM([]), async () => malformed as never);
    const { response, failed } = startRequest(withRetry(decorate(broken), { maxAttempts: 2 }), runtime);

    await expect(runtime.settle(response)).rejects.toMatchObject({ kind: 'malformed_response' });
    expect(failed).toHaveLength(1);
  }
});
