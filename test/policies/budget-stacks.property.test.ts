/**
 * The law of a budget in any stack of what waits: nobody waits for ever, what was sent is what is counted, nothing is set
 * aside for good, and what is spent goes over the limit by one reply at most.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type LLM, type LLMResponse, sleep, toUsage } from 'turnloop';
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
} from 'turnloop/policies';
import { createConcurrencyLimit } from 'turnloop/policies/concurrency';
import { scriptedLLM, seededRandom, virtualRuntime } from 'turnloop/testing';
import { failure, startRequest } from './decorated.ts';

const RUNS = Number(process.env['FC_RUNS'] ?? 300);
const PROMPT = 100;
const LONGEST = 400;
const flat: BudgetEstimator = { estimateRequest: () => PROMPT, estimateText: (text) => text.length, observe: () => undefined };

interface Parts {
  readonly a: LLM;
  readonly b: LLM;
  readonly pay: (llm: LLM) => LLM;
  readonly guard: (llm: LLM) => LLM;
  readonly place: (llm: LLM) => LLM;
  readonly rate: (llm: LLM) => LLM;
}

const STACKS = {
  'breaker(retry(budget))': ({ a, pay, guard }) => guard(withRetry(pay(a), { maxAttempts: 3 })),
  'fallback(breaker(retry(budget)), budget)': ({ a, b, pay, guard }) => withFallback([guard(withRetry(pay(a), { maxAttempts: 2 })), pay(b)]),
  'budget(fallback(retry))': ({ a, b, pay }) => pay(withFallback([withRetry(a, { maxAttempts: 2 }), b])),
  'budget(fallback(retry(budget), budget))': ({ a, b, pay }) => pay(withFallback([withRetry(pay(a), { maxAttempts: 2 }), pay(b)])),
  'budget(breaker(retry))': ({ a, pay, guard }) => pay(guard(withRetry(a, { maxAttempts: 2 }))),
  'budget(breaker(retry(place(rate))))': ({ a, pay, guard, place, rate }) => pay(guard(withRetry(place(rate(a)), { maxAttempts: 2 }))),
  'breaker(retry(budget(place(rate))))': ({ a, pay, guard, place, rate }) => guard(withRetry(pay(place(rate(a))), { maxAttempts: 3 })),
  'breaker(retry(place(rate(budget))))': ({ a, pay, guard, place, rate }) => guard(withRetry(place(rate(pay(a))), { maxAttempts: 3 })),
  'place(retry(rate(budget)))': ({ a, pay, place, rate }) => place(withRetry(rate(pay(a)), { maxAttempts: 3 })),
  'rate(budget(retry))': ({ a, pay, rate }) => rate(pay(withRetry(a, { maxAttempts: 3 }))),
} satisfies Record<string, (parts: Parts) => LLM>;

interface World {
  readonly seed: number;
  readonly maxTokens: number;
  /** Whatever shares the budget, the breaker and the limits stands in one order. */
  readonly stack: keyof typeof STACKS;
  readonly aborts: boolean;
}

const names = fc.constantFrom(...(Object.keys(STACKS) as (keyof typeof STACKS)[]));
const worlds: fc.Arbitrary<World> = fc.record({
  seed: fc.integer(),
  maxTokens: fc.integer({ min: 300, max: 3300 }),
  stack: names,
  aborts: fc.boolean(),
});

async function play({ seed, maxTokens, stack, aborts }: World) {
  const runtime = virtualRuntime();
  const random = seededRandom(seed);
  const upTo = (most: number): number => Math.floor(random() * most);
  const budget = createBudget({ maxTokens, estimator: flat, outputReserve: LONGEST });
  const bill = { tokens: 0 };

  const model = (modelId: string): LLM => ({
    provider: 'fake',
    modelId,
    systemPrompt: '',
    chat: async ({ signal, onDelta }): Promise<LLMResponse> => {
      const output = upTo(LONGEST);
      const usage = toUsage({ inputTokens: PROMPT, outputTokens: output });
      const kind = random();
      try {
        await sleep(1 + upTo(3000), { runtime, signal });
      } catch (aborted) {
        // A budget has to take it that the prompt was read.
        if (signal.aborted) bill.tokens += PROMPT;
        throw aborted;
      }
      if (kind < 0.2) throw failure('overloaded');
      bill.tokens += PROMPT + output;
      if (kind < 0.3) {
        if (output > 0) onDelta?.({ type: 'text', text: 'x'.repeat(output) });
        else bill.tokens -= PROMPT;
        throw failure('network');
      }
      if (kind < 0.4) throw failure('server', { usage });
      return { content: kind < 0.5 ? [] : [{ type: 'text', text: 'x' }], stopReason: 'end_turn', usage };
    },
  });

  const breaker = createCircuitBreaker({ failures: 2, openMs: 2000 });
  const rate = createRateLimit({ requestsPerMinute: 20, estimator: flat });
  const limit = createConcurrencyLimit(2);
  const parts: Parts = {
    a: model('a'),
    b: model('b'),
    pay: (llm) => withBudget(llm, budget),
    guard: (llm) => withCircuitBreaker(llm, breaker),
    place: (llm) => limit.llm(llm),
    rate: (llm) => withRateLimit(llm, rate),
  };
  const llms = [STACKS[stack](parts), STACKS[stack](parts)];
  const asked = [];
  for (let index = 0; index < 8; index += 1) {
    const request = startRequest(llms[upTo(2)] ?? parts.a, runtime);
    request.response.catch(() => undefined);
    asked.push(request);
    await runtime.advance(upTo(800));
    if (aborts && random() < 0.25) asked[upTo(asked.length)]?.controller.abort(new Error('Enough.'));
  }
  await runtime.advance(2_000_000);
  return { runtime, budget, bill, limit, rate, asked };
}

it('C2 C4 C10 law: in any stack nobody waits for ever, what was sent is counted, and nothing is set aside for good', async () => {
  await fc.assert(
    fc.asyncProperty(worlds, async (world) => {
      const { runtime, budget, bill, limit, rate, asked } = await play(world);

      expect(asked.filter(({ outcome }) => outcome === undefined)).toHaveLength(0);
      expect([limit.active, limit.waiting, rate.waiting, runtime.pendingTimers]).toStrictEqual([0, 0, 0, 0]);
      for (const { controller } of asked) expect(controller.listenerCount).toBe(0);

      expect(budget.spent.tokens).toBe(bill.tokens);
      expect(bill.tokens).toBeLessThanOrEqual(world.maxTokens + LONGEST);

      const left = budget.remaining.tokens ?? 0;
      if (left <= PROMPT) return;
      budget.add('elsewhere', { inputTokens: left - PROMPT });
      const last = startRequest(withBudget(scriptedLLM(['last']), budget), runtime);
      await runtime.flush();
      expect(last.outcome).toBe('last');
    }),
    { numRuns: RUNS },
  );
});
