/**
 * createBudget and withBudget as black boxes: what is counted, what is refused, and who waits for whom. That no budget is
 * exceeded by more than one reply is in `budget.property.test.ts`.
 */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { decorateLLM, type LLM, LLMError, type LLMResponse, NO_USAGE, toUsage } from 'turnloop';
import { type BudgetEstimator, type BudgetOptions, createBudget, createPrices, createRateLimit, withBudget, withCircuitBreaker, createCircuitBreaker, withFallback, withRetry } from 'turnloop/policies';
import { cutStream, delayed, hanging, llmRequest, type Script, scriptedLLM, stalled, stubborn, virtualRuntime, runScripted } from 'turnloop/testing';
import { failure, startRequest } from './decorated.ts';

/** Every prompt has 100 tokens, every character of a reply is one. */
const flat: BudgetEstimator = { estimateRequest: () => 100, estimateText: (text) => text.length, observe: () => undefined };
const reply = (text: string, outputTokens = 10) => ({ content: text, usage: { inputTokens: 100, outputTokens } });
const prices = createPrices({
  'scripted-model': { input: 10_000, output: 20_000, cacheRead: 1_000, cacheWrite: 12_500 },
  other: { input: 100_000, output: 200_000 },
});

function scene(replies: Script, options: BudgetOptions) {
  const runtime = virtualRuntime();
  const llm = scriptedLLM(replies, { runtime });
  const budget = createBudget({ estimator: flat, ...options });
  const paid = withBudget(llm, budget);
  return { runtime, llm, budget, paid, ask: () => startRequest(paid, runtime) };
}

describe('withBudget', () => {
  it('C4 refuses a request whose prompt does not fit before it is sent, with the figures', async () => {
    const { ask, llm, budget, runtime } = scene([reply('one'), 'never'], { maxTokens: 200 });
    ask();
    await runtime.flush();

    const { response, notices } = ask();

    await expect(response).rejects.toMatchObject({
      name: 'LLMError',
      kind: 'refused',
      code: 'max_budget',
      stopReason: 'max_budget',
      retryable: false,
      message: 'The request to "scripted-model" was not sent: its prompt is estimated at 100 tokens; 90 of 200 tokens are left.',
    });
    expect(llm.callCount).toBe(1);
    expect(budget.spent.tokens).toBe(110);
    expect(notices).toMatchObject([
      { name: 'budget.refused', data: { modelId: 'scripted-model', estimatedTokens: 100, tokens: 110, remainingTokens: 90 } },
    ]);
  });

  it('C4 sends a request whose prompt just fits', async () => {
    const { ask, budget, runtime } = scene([reply('one', 0), reply('two', 50)], { maxTokens: 200 });
    ask();
    await runtime.flush();
    const second = ask();
    await runtime.flush();

    expect(second.outcome).toBe('two');
    expect(budget.spent.tokens).toBe(250);
    expect(budget.remaining).toStrictEqual({ tokens: 0 });
  });

  it('C4 A2 ends the turn max_budget', async () => {
    const budget = createBudget({ maxTokens: 50, estimator: flat });

    const { result, llm } = await runScripted({ replies: ['never'], decorate: (inner) => withBudget(inner, budget) });

    expect(result).toMatchObject({ stopReason: 'max_budget', steps: 1, usage: NO_USAGE });
    expect(llm.callCount).toBe(0);
  });

  it('C4 says after each request what was spent and what is left', async () => {
    const { ask, runtime } = scene([reply('one')], { maxTokens: 1000, maxCost: 100, prices });
    const { notices } = ask();
    await runtime.flush();

    expect(notices).toStrictEqual([
      {
        name: 'budget.spent',
        data: { modelId: 'scripted-model', requestTokens: 110, tokens: 110, cost: 1.2, remainingTokens: 890, remainingCost: 98.8 },
      },
    ]);
  });

  it('C4 hands the request on as it is, but for its callbacks', async () => {
    const { paid, llm } = scene([reply('one')], {});
    const request = llmRequest({ maxOutputTokens: 7 });

    await paid.chat(request);

    const [sent] = llm.requests;
    expect(sent?.messages[0]).toBe(request.messages[0]);
    expect(sent).toMatchObject({ maxOutputTokens: 7, signal: request.signal });
  });

  it('C4 counts each attempt of a retry inside of which it stands, and refuses the one that does not fit', async () => {
    const runtime = virtualRuntime();
    const llm = scriptedLLM([failure('server', { usage: toUsage({ inputTokens: 100, outputTokens: 5 }) }), 'never'], { runtime });
    const budget = createBudget({ maxTokens: 150, estimator: flat });
    const { response, failed } = startRequest(withRetry(withBudget(llm, budget)), runtime);

    await expect(runtime.settle(response)).rejects.toMatchObject({ code: 'max_budget' });
    expect(llm.callCount).toBe(1);
    expect(failed).toHaveLength(1);
    expect(budget.spent.tokens).toBe(105);
  });

  it('C4 counts each attempt of a retry around which it stands, and refuses the one that does not fit', async () => {
    const runtime = virtualRuntime();
    const usage = toUsage({ inputTokens: 100, outputTokens: 5 });
    const llm = scriptedLLM([failure('server', { usage }), failure('server', { usage }), 'never'], { runtime });
    const budget = createBudget({ maxTokens: 250, estimator: flat });
    const { response, failed, controller, notices } = startRequest(withBudget(withRetry(llm), budget), runtime);

    await expect(runtime.settle(response)).rejects.toMatchObject({ code: 'max_budget', usage });
    expect(llm.callCount).toBe(2);
    // The last failure is only thrown: no attempt follows it.
    expect(failed).toHaveLength(1);
    expect(budget.spent.tokens).toBe(210);
    expect(notices.map(({ name }) => name)).toStrictEqual(['budget.spent', 'budget.spent', 'budget.refused']);
    expect(controller.listenerCount).toBe(0);
  });

  it('C4 law-5 the turn counts what the budget counts, also when an attempt inside is refused', async () => {
    const usage = toUsage({ inputTokens: 100, outputTokens: 5 });
    const budget = createBudget({ maxTokens: 150, estimator: flat });

    const { result } = await runScripted({
      replies: [failure('server', { usage })],
      decorate: (llm) => withBudget(withRetry(llm), budget),
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', usage });
    expect(budget.spent.usage).toStrictEqual(usage);
  });

  it('C3 C4 C5 lets each model of a fallback pay its own price', async () => {
    const runtime = virtualRuntime();
    const usage = toUsage({ inputTokens: 100 });
    const budget = createBudget({ maxCost: 1000, prices, estimator: flat });
    const first = withBudget(scriptedLLM([failure('server', { usage })], { runtime }), budget);
    const second = withBudget(scriptedLLM([reply('two', 0)], { runtime, modelId: 'other' }), budget);

    await startRequest(withFallback([first, second]), runtime).response;

    expect(Object.fromEntries(budget.spent.usageByModel)).toMatchObject({ 'scripted-model': usage, other: { inputTokens: 100 } });
    expect(budget.spent.cost).toBe(1 + 10);
  });

  it('C3 C4 C5 counts each model of a fallback around which it stands under its name', async () => {
    const runtime = virtualRuntime();
    const usage = toUsage({ inputTokens: 100 });
    const budget = createBudget({ maxCost: 1000, prices, estimator: flat });
    const models = [scriptedLLM([failure('server', { usage })], { runtime }), scriptedLLM([reply('two', 0)], { runtime, modelId: 'other' })];

    await startRequest(withBudget(withFallback(models), budget), runtime).response;

    expect(budget.spent.cost).toBe(1 + 10);
  });

  it('C4 counts a request once that stands under the same budget twice', async () => {
    const runtime = virtualRuntime();
    const budget = createBudget({ maxTokens: 150, estimator: flat });
    const total = createBudget({ maxTokens: 1000, estimator: flat });
    const llm = withBudget(withRetry(withBudget(withBudget(scriptedLLM([reply('one')], { runtime }), budget), total)), budget);

    const { response } = startRequest(llm, runtime);
    await runtime.settle(response);

    expect(budget.spent.tokens).toBe(110);
    expect(total.spent.tokens).toBe(110);
  });

  it('C4 holds back with a breaker that opened while it waited', async () => {
    const runtime = virtualRuntime();
    const budget = createBudget({ maxTokens: 299, outputReserve: 100, estimator: flat });
    const llm = scriptedLLM([delayed(reply('one'), 2000), 'never'], { runtime });
    const breaker = createCircuitBreaker({ failures: 1, mode: 'fail' });
    const guarded = withCircuitBreaker(withBudget(llm, budget), breaker);
    startRequest(guarded, runtime);
    const waiting = startRequest(guarded, runtime);
    startRequest(withCircuitBreaker(scriptedLLM([delayed(failure('server'), 1000)], { runtime }), breaker), runtime);

    await expect(runtime.settle(waiting.response)).rejects.toMatchObject({ kind: 'refused', stopReason: 'circuit_breaker' });
    expect(llm.callCount).toBe(1);
    expect(waiting.notices.map(({ name }) => name)).toContain('budget.waiting');
    expect(budget.spent.tokens).toBe(110);
  });

  describe('what counts where nobody told', () => {
    it('C4 counts a reply without a count by the estimate', async () => {
      const { ask, budget, runtime } = scene([{ content: 'Twelve chars', usage: {} }], {});
      ask();
      await runtime.flush();

      expect(budget.spent).toMatchObject({ tokens: 112, estimatedTokens: 112, usage: { inputTokens: 100, outputTokens: 12 } });
    });

    it.each([
      ['a stream that was cut', cutStream('Hello', { deltaCount: 1 }), 105],
      ['a request that timed out', failure('timeout'), 100],
      ['a request that the server refused', failure('server', { status: 503 }), 0],
      ['a connection that never was', failure('network'), 0],
      ['a request that something inside did not send', failure('refused'), 0],
    ])('C4 counts %s', async (_what, failed, tokens) => {
      const { ask, budget, runtime } = scene([failed], {});
      ask();
      await runtime.flush();

      expect(budget.spent).toMatchObject({ tokens, estimatedTokens: tokens });
    });

    it.each([
      ['before the first fragment', hanging(), 100],
      ['in the middle of a stream', stalled('Hello', 1), 105],
    ])('C4 counts a request that is aborted %s', async (_when, stuck, tokens) => {
      const { ask, budget, runtime } = scene([stuck], {});
      const { controller, response } = ask();
      await runtime.flush();
      controller.abort();
      await expect(response).rejects.toThrow();

      expect(budget.spent).toMatchObject({ tokens, estimatedTokens: tokens });
    });

    it('C4 counts what was streamed also where nobody listens, as for a summary', async () => {
      const { paid, budget } = scene([cutStream('Hello', { deltaCount: 1 })], {});

      await expect(paid.chat(llmRequest())).rejects.toMatchObject({ kind: 'network' });

      expect(budget.spent).toMatchObject({ tokens: 105, estimatedTokens: 105 });
    });

    it('C4 counts what a failure told, and not the estimate too', async () => {
      const usage = toUsage({ inputTokens: 90, outputTokens: 3 });
      const { ask, budget, runtime } = scene([cutStream('Hello', { deltaCount: 1, error: failure('network', { usage }) })], {});
      ask();
      await runtime.flush();

      expect(budget.spent).toMatchObject({ tokens: 93, estimatedTokens: 0, usage });
    });
  });

  describe('with requests at once', () => {
    it('C4 sets the reply of a request under way aside, and lets the next one wait for what is left', async () => {
      const { ask, llm, runtime, budget } = scene([delayed(reply('one'), 1000), reply('two')], { maxTokens: 400, outputReserve: 250 });
      ask();
      const second = ask();
      await runtime.flush();
      expect(llm.callCount).toBe(1);
      expect(second.notices).toStrictEqual([
        { name: 'budget.waiting', data: { modelId: 'scripted-model', estimatedTokens: 100, underWay: 1 } },
      ]);

      await runtime.settle(second.response);

      expect(runtime.now()).toBe(1000);
      expect(second.outcome).toBe('two');
      expect(budget.spent.tokens).toBe(220);
    });

    it('C4 lets as many go at once as fit with their replies', async () => {
      const { ask, llm, runtime } = scene([delayed(reply('one'), 1000), delayed(reply('two'), 1000), delayed(reply('three'), 1000)], {
        maxTokens: 400,
        outputReserve: 50,
      });
      ask();
      ask();
      ask();
      await runtime.flush();

      expect(llm.callCount).toBe(3);
    });

    it.each([
      ['what the request allows', { maxOutputTokens: 100 }, {}, 2],
      ['what the model can write', {}, { maxOutputTokens: 100 }, 2],
      ['the smaller of the two', { maxOutputTokens: 100 }, { maxOutputTokens: 9000 }, 2],
      ['8,192 tokens where nobody says', {}, {}, 1],
    ])('C4 sets aside %s for a reply', async (_what, request, capabilities, atOnce) => {
      const runtime = virtualRuntime();
      const llm = scriptedLLM([hanging(), hanging()], { runtime, capabilities });
      const paid = withBudget(llm, createBudget({ maxTokens: 8_391, estimator: flat }));
      startRequest(paid, runtime, request);
      startRequest(paid, runtime, request);
      await runtime.flush();

      expect(llm.callCount).toBe(atOnce);
    });

    it('C4 refuses who waited once what the others spent leaves no room', async () => {
      const { ask, llm, runtime } = scene([delayed(reply('one', 250), 1000), 'never'], { maxTokens: 400, outputReserve: 250 });
      ask();
      const second = ask();

      await expect(runtime.settle(second.response)).rejects.toMatchObject({ code: 'max_budget' });
      expect(llm.callCount).toBe(1);
    });

    it('C4 serves who waits in the order in which they came, whatever their size', async () => {
      const runtime = virtualRuntime();
      const order: string[] = [];
      const llm = scriptedLLM(
        ({ systemPrompt }) => {
          order.push(systemPrompt);
          return delayed({ content: systemPrompt, usage: { inputTokens: Number(systemPrompt) } }, 1000);
        },
        { runtime },
      );
      const estimator = { ...flat, estimateRequest: ({ systemPrompt }: { systemPrompt: string }) => Number(systemPrompt) };
      const paid = withBudget(llm, createBudget({ maxTokens: 1000, outputReserve: 0, estimator }));
      const all = ['300', '600', '101', '1'].map((systemPrompt) => startRequest(paid, runtime, { systemPrompt }));
      // The third does not fit beside the first two, and the small one behind it does not overtake it.
      await runtime.flush();
      expect(order).toStrictEqual(['300', '600']);

      await runtime.runUntilIdle();

      expect(order).toStrictEqual(['300', '600', '1']);
      expect(all.map(({ outcome }) => (outcome instanceof LLMError ? outcome.code : outcome))).toStrictEqual(['300', '600', 'max_budget', '1']);
    });

    it('C4 takes whoever is aborted while waiting out at once, and lets the next one go', async () => {
      const { ask, llm, runtime, budget } = scene([delayed(reply('one'), 1000), reply('three')], { maxTokens: 400, outputReserve: 250 });
      ask();
      const second = ask();
      const third = ask();
      await runtime.flush();
      const reason = new Error('Enough.');
      second.controller.abort(reason);

      await expect(second.response).rejects.toBe(reason);
      expect(second.controller.listenerCount).toBe(0);
      await runtime.settle(third.response);
      expect(third.outcome).toBe('three');
      expect(llm.callCount).toBe(2);
      expect(budget.spent.tokens).toBe(220);
    });

    it('C4 does not wait for a model that does not listen to its abort', async () => {
      const { ask, runtime, budget } = scene([stubborn(hanging()), reply('two')], { maxTokens: 400, outputReserve: 250 });
      const first = ask();
      const second = ask();
      await runtime.flush();
      first.controller.abort();
      await runtime.flush();

      expect(second.outcome).toBe('two');
      expect(budget.spent.tokens).toBe(110);
    });

    it('C4 refuses a request that does not fit beside what such a model has streamed', async () => {
      const { ask, llm, runtime } = scene([stubborn(stalled('x'.repeat(60), 1)), 'never'], { maxTokens: 250, outputReserve: 100 });
      const first = ask();
      await runtime.flush();
      const second = ask();
      first.controller.abort();

      await expect(second.response).rejects.toMatchObject({ code: 'max_budget' });
      expect(llm.callCount).toBe(1);
    });

    it('C4 leaves nothing on a signal that many requests share', async () => {
      const { paid, runtime } = scene([reply('one'), delayed(reply('two'), 1000)], {});
      const { signal } = new AbortController();

      const both = [startRequest(paid, runtime, { signal }), startRequest(paid, runtime, { signal })];
      await runtime.settle(Promise.all(both.map(({ response }) => response)));

      expect(getEventListeners(signal, 'abort')).toStrictEqual([]);
    });

    it('rejects with the reason of a signal that was aborted before, and sends nothing', async () => {
      const { paid, llm, runtime, budget } = scene([], { maxTokens: 1000 });

      const { response } = startRequest(paid, runtime, { signal: AbortSignal.abort(new Error('Enough.')) });

      await expect(response).rejects.toThrow('Enough.');
      expect(llm.callCount).toBe(0);
      expect(budget.spent.tokens).toBe(0);
    });
  });

  describe('with money', () => {
    it('C4 C5 refuses a request whose prompt is too dear, at the dearest rate it may have', async () => {
      // 100 tokens cost 1 at the rate of the prompt, and 1.25 if all of it goes into the cache.
      const { ask, llm } = scene(['never'], { maxCost: 1.2, prices });

      await expect(ask().response).rejects.toMatchObject({
        code: 'max_budget',
        message: 'The request to "scripted-model" was not sent: its prompt is estimated at 100 tokens; it costs up to 1.25, and 1.2 of 1.2 is left.',
      });
      expect(llm.callCount).toBe(0);
    });

    it('C4 C5 counts what was read from the cache at its own rate', async () => {
      const cached = { content: 'one', usage: { cacheReadTokens: 100, outputTokens: 10 } };
      const { ask, runtime, budget } = scene([cached], { maxCost: 5, prices });
      ask();
      await runtime.flush();

      expect(budget.spent.cost).toBeCloseTo(0.3, 10);
      expect(budget.remaining.cost).toBeCloseTo(4.7, 10);
    });

    it('C5 refuses a model without a price under a maxCost, and says so', async () => {
      const runtime = virtualRuntime();
      const llm = scriptedLLM(['never'], { modelId: 'mystery' });
      const { response } = startRequest(withBudget(llm, createBudget({ maxCost: 5, prices, estimator: flat })), runtime);

      const thrown: unknown = await response.catch((error: unknown) => error);
      expect(thrown).toMatchObject({ kind: 'refused', code: 'no_price', retryable: false, stopReason: undefined });
      expect(String(thrown)).toContain('"mystery" was not sent: the model has no price');
      expect(llm.callCount).toBe(0);
    });

    it('C5 asks it if such models count as free, and names it', async () => {
      const runtime = virtualRuntime();
      const budget = createBudget({ maxCost: 5, prices, unpriced: 'free', estimator: flat });
      await startRequest(withBudget(scriptedLLM([reply('one')], { modelId: 'mystery' }), budget), runtime).response;

      expect(budget.spent).toMatchObject({ tokens: 110, cost: 0, unpriced: ['mystery'] });
    });

    it('C5 takes the price of the model that was asked where the server answers with a name of its own', async () => {
      const { ask, runtime, budget } = scene([{ ...reply('one'), modelId: 'scripted-model-2025-08-07' }], { maxCost: 5, prices });
      ask();
      await runtime.flush();

      expect(budget.spent).toMatchObject({ cost: 1.2, unpriced: [] });
    });

    it('C5 guesses no price for a model that a decorator chose, and sends nothing more under a maxCost', async () => {
      const { ask, llm, runtime, budget } = scene([{ ...reply('one'), modelId: 'mystery', provider: 'elsewhere' }, 'never'], { maxCost: 5, prices });
      ask();
      await runtime.flush();

      expect(budget.spent).toMatchObject({ cost: 0, unpriced: ['mystery'] });
      await expect(ask().response).rejects.toMatchObject({ code: 'max_budget', message: expect.stringContaining('"mystery"') });
      expect(llm.callCount).toBe(1);
    });
  });

  it('C4 D1 teaches its estimator what prompts really had, and nothing by what another model counted', async () => {
    const learnt: number[] = [];
    const runtime = virtualRuntime();
    const estimator = { ...flat, observe: (_request: unknown, _model: unknown, tokens: number) => void learnt.push(tokens) };
    const usage = { inputTokens: 50, cacheReadTokens: 30, cacheWriteTokens: 7, outputTokens: 9 };
    const replies = [{ content: 'one', usage }, { content: 'two', usage, provider: 'elsewhere' }, { content: 'three', usage: {} }];
    const paid = withBudget(scriptedLLM(replies), createBudget({ estimator }));
    for (const _reply of replies) await startRequest(paid, runtime).response;

    expect(learnt).toStrictEqual([87]);
  });

  it('C4 asks nothing of a model whose prompt cannot be estimated', async () => {
    const { paid, llm } = scene(['never'], { maxTokens: 5, estimator: { ...flat, estimateRequest: () => NaN } });

    await expect(paid.chat(llmRequest())).rejects.toThrow('NaN');
    expect(llm.callCount).toBe(0);
  });

  it('C4 sets nothing aside for good for whoever does not wait for onAttemptFailed', async () => {
    const runtime = virtualRuntime();
    const hasty: LLM = decorateLLM(scriptedLLM([]), async ({ onAttemptFailed }): Promise<LLMResponse> => {
      void onAttemptFailed?.({ error: failure('server', { usage: toUsage({ inputTokens: 100 }) }) });
      return { content: [{ type: 'text', text: 'ok' }], stopReason: 'end_turn', usage: toUsage({ inputTokens: 100 }) };
    });
    const paid = withBudget(hasty, createBudget({ maxTokens: 450, outputReserve: 250, estimator: flat }));
    await startRequest(paid, runtime, { onAttemptFailed: () => runtime.flush() }).response;
    await runtime.flush();
    await runtime.flush();

    const second = startRequest(paid, runtime);
    await runtime.flush();

    expect(second.outcome).toBe('ok');
  });

  it('C4 leaves no unhandled rejection behind for whoever does not wait for onAttemptFailed', async () => {
    const runtime = virtualRuntime();
    const hasty: LLM = decorateLLM(scriptedLLM([]), async ({ onAttemptFailed }): Promise<LLMResponse> => {
      void onAttemptFailed?.({ error: failure('server', { usage: toUsage({ inputTokens: 100 }) }) });
      return { content: [{ type: 'text', text: 'ok' }], stopReason: 'end_turn', usage: toUsage({ inputTokens: 100 }) };
    });
    const budget = createBudget({ maxTokens: 150, estimator: flat });

    await startRequest(withBudget(hasty, budget), runtime).response;
    await runtime.flush();

    expect(budget.spent.tokens).toBe(200);
  });

  it.each<[string, () => unknown, string]>([
    ['no model', () => withBudget(undefined as never, createBudget()), 'withBudget needs an LLM'],
    ['no budget', () => withBudget(scriptedLLM([]), { maxTokens: 5 } as never), 'withBudget needs a budget from createBudget'],
  ])('refuses %s, and shows a correct call', (_what, make, message) => {
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow('createBudget({ maxTokens: 500_000 })');
  });
});

describe('createBudget', () => {
  it('C4 only counts without a limit', async () => {
    const { ask, budget, runtime } = scene([reply('one')], {});
    ask();
    await runtime.flush();

    expect(budget.spent).toMatchObject({ tokens: 110, cost: undefined, unpriced: [], estimatedTokens: 0 });
    expect(budget.remaining).toStrictEqual({});
  });

  it('C4 takes in what was spent elsewhere', () => {
    const budget = createBudget({ maxTokens: 1000, prices });
    budget.add('scripted-model', { inputTokens: 100 });
    budget.add('scripted-model', { outputTokens: 10, thinkingTokens: 5 });
    budget.add('other', { inputTokens: 900 });

    expect(budget.spent).toMatchObject({ tokens: 1010, cost: 1.2 + 90 });
    expect(budget.remaining).toStrictEqual({ tokens: 0 });
  });

  it('C4 goes on from a snapshot that went through JSON', async () => {
    const { ask, budget, runtime } = scene([reply('one'), cutStream('Hello', { deltaCount: 1 })], { maxCost: 100, prices });
    ask();
    ask();
    await runtime.flush();

    const snapshot = JSON.parse(JSON.stringify(budget.snapshot())) as ReturnType<typeof budget.snapshot>;
    const again = createBudget({ maxCost: 100, prices, snapshot });

    expect(snapshot).toStrictEqual(budget.snapshot());
    expect(again.spent).toStrictEqual(budget.spent);
    expect(again.spent.estimatedTokens).toBe(105);
    expect(again.remaining).toStrictEqual(budget.remaining);
  });

  it('law-12 takes names of models as data, also in a snapshot', () => {
    const budget = createBudget({ maxTokens: 100 });
    budget.add('__proto__', { inputTokens: 60 });
    const snapshot = JSON.parse(JSON.stringify(budget.snapshot())) as ReturnType<typeof budget.snapshot>;

    expect(createBudget({ snapshot }).spent.usageByModel.get('__proto__')).toMatchObject({ inputTokens: 60 });
  });

  it('C4 gives a copy of what was spent', () => {
    const budget = createBudget();
    budget.add('m', { inputTokens: 1 });
    const { usageByModel } = budget.spent;
    budget.add('m', { inputTokens: 1 });

    expect(usageByModel.get('m')).toMatchObject({ inputTokens: 1 });
  });

  it.each<[string, unknown, string]>([
    ['a negative budget', { maxTokens: -5 }, '`maxTokens` must be a whole number of at least 0, or Infinity, not -5'],
    ['a budget that is a text', { maxTokens: '5' }, '`maxTokens` must be a whole number'],
    ['negative money', { maxCost: -1, prices }, '`maxCost` must be a number of at least 0, or Infinity, not -1'],
    ['money without prices', { maxCost: 1 }, '`maxCost` 1 needs `prices`'],
    ['a bare table of prices', { prices: { m: {} } }, '`prices` must come from createPrices'],
    ['a broken reserve', { outputReserve: 0.5 }, '`outputReserve` must be a whole number of tokens of at least 0, not 0.5'],
    ['a snapshot that is none', { snapshot: 'x' }, '`snapshot` is none'],
    ['a snapshot of a later release', { snapshot: { version: 2, models: [] } }, '`snapshot` has version 2, and this release reads version 1'],
    ['a snapshot with nonsense', { snapshot: { version: 1, models: [{ usage: {} }] } }, '`snapshot` has a model without a name'],
    ['an option that does not exist', { limit: 3 }, 'createBudget has no option `limit`'],
  ])('BR-160 refuses %s, and shows a correct call', (_what, options, message) => {
    const make = (): unknown => createBudget(options as BudgetOptions);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow('createBudget({ max');
  });

  it('refuses to add what is no usage', () => {
    expect(() => createBudget().add('m', 5 as never)).toThrow("budget.add('gpt-5-mini', { inputTokens: 1200, outputTokens: 80 })");
  });
});

describe('what a budget is given', () => {
  it.each([{ inputTokens: -5 }, { inputTokens: '500' }, { inputTokens: 0.5 }, { tokens: 500 }])('C4 refuses to add %j, which is no count of tokens', (usage) => {
    const budget = createBudget({ maxTokens: 1_000 });

    expect(() => {
      budget.add('m', usage as object);
    }).toThrow('add takes the name of a model and its tokens');
    expect(budget.spent.tokens).toBe(0);
  });

  it('C4 refuses a snapshot whose counters are no numbers, and names the counter', () => {
    const snapshot = { version: 1, estimatedTokens: 0, models: [{ modelId: 'm', usage: { inputTokens: '900' } }] };

    expect(() => createBudget({ snapshot: snapshot as never })).toThrow('has `inputTokens`, which is no count of tokens');
  });

  it('C4 C10 refuses an estimator that is none, and names what it lacks', () => {
    expect(() => createBudget({ estimator: {} as never })).toThrow('createBudget: `estimator` has no function `estimateRequest`');
    expect(() => createRateLimit({ estimator: {} as never })).toThrow('createRateLimit: `estimator` has no function `estimateRequest`');
  });
});
