/**
 * Laws of withCircuitBreaker, over whatever requests come, when they come, how long they take, how they end, and whether
 * they are aborted: an independent model of a breaker sees nothing that must not be.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { type LLM, LLMError, type LLMErrorKind, type LLMRequest, type LLMResponse, NO_USAGE, sleep } from 'turnloop';
import { createCircuitBreaker, withCircuitBreaker, withRetry } from 'turnloop/policies';
import { virtualRuntime, type VirtualRuntime } from 'turnloop/testing';
import { law } from '../properties/law.ts';
import { BreakerModel } from './outages/breaker-model.ts';
import { type Asking, startRequest } from './decorated.ts';

const OPEN_MS = 100;

interface Attempt {
  readonly takesMs: number;
  readonly kind: LLMErrorKind | 'ok';
  /** Whether it heeds its signal. */
  readonly isDeaf: boolean;
}

interface Scenario {
  readonly mode: 'wait' | 'fail';
  readonly failures: number;
  readonly retries: boolean;
  readonly requests: readonly {
    readonly at: number;
    readonly abortAfterMs: number | undefined;
    readonly attempts: readonly Attempt[];
  }[];
}

// Few moments, so that things often happen at the same one, and at the one at which the breaker may be probed.
const moment = fc.constantFrom(0, 1, 10, 50, 99, 100, 101, 150, 200, 250);

const attempt: fc.Arbitrary<Attempt> = fc.record({
  takesMs: moment,
  kind: fc.constantFrom<Attempt['kind']>('ok', 'ok', 'server', 'server', 'overloaded', 'auth', 'unknown'),
  isDeaf: fc.boolean(),
});

const scenario: fc.Arbitrary<Scenario> = fc.record({
  mode: fc.constantFrom<Scenario['mode']>('wait', 'wait', 'fail'),
  failures: fc.integer({ min: 1, max: 3 }),
  retries: fc.boolean(),
  requests: fc.array(
    fc.record({
      at: moment,
      abortAfterMs: fc.option(moment, { nil: undefined, freq: 3 }),
      attempts: fc.array(attempt, { minLength: 1, maxLength: 6 }),
    }),
    { minLength: 1, maxLength: 12 },
  ),
});

/** A model whose requests end as the scenario says, by the step that they belong to; after the last attempt it answers. */
function playedLLM({ requests }: Scenario, runtime: VirtualRuntime, onRequest: (stepId: string) => void): LLM {
  const asked = new Map<string, number>();
  const chat = async ({ scope, signal }: LLMRequest): Promise<LLMResponse> => {
    const stepId = scope?.stepId ?? '';
    onRequest(stepId);
    const count = asked.get(stepId) ?? 0;
    asked.set(stepId, count + 1);
    const { takesMs, kind, isDeaf } = requests[Number(stepId)]?.attempts[count] ?? { takesMs: 1, kind: 'ok', isDeaf: false };
    await sleep(takesMs, { runtime, signal: isDeaf ? undefined : signal });
    if (kind !== 'ok') throw new LLMError({ kind, message: `${kind}.` });
    return { content: [{ type: 'text', text: 'ok' }], stopReason: 'end_turn', usage: NO_USAGE };
  };
  return { provider: 'played', modelId: 'played-1', systemPrompt: '', chat };
}

law('C2 BR-094 sends nothing while it is open, one probe after that, and forgets nobody', scenario, async (given) => {
  const { mode, failures, retries, requests } = given;
  const runtime = virtualRuntime();
  const model = new BreakerModel({ now: () => runtime.now(), failures, openMs: OPEN_MS });
  const breaker = createCircuitBreaker({ mode, failures, openMs: OPEN_MS });
  const played = playedLLM(given, runtime, (stepId) => {
    model.sent(stepId);
  });
  const inner = retries ? withRetry(played, { maxAttempts: 3, baseDelayMs: 10 }) : played;
  const llm = withCircuitBreaker(model.tap(inner), breaker);

  const askings: Asking[] = [];
  requests.forEach(({ at, abortAfterMs }, index) => {
    runtime.setTimer(at, () => {
      const scope = { turnId: 'turn_1', step: 1, stepId: String(index), runtime, notify: () => undefined };
      const asking = startRequest(llm, runtime, { scope });
      askings.push(asking);
      if (abortAfterMs !== undefined) runtime.setTimer(abortAfterMs, () => {
        asking.controller.abort();
      });
    });
  });
  await runtime.runUntilIdle();

  expect(model.violations).toStrictEqual([]);
  expect(breaker.state).toBe(model.state);
  expect(askings).toHaveLength(requests.length);
  for (const { outcome, controller, failed } of askings) {
    expect(outcome).not.toBe(undefined);
    expect(controller.listenerCount).toBe(0);
    if (!retries) expect(failed.length).toBeLessThanOrEqual(1);
  }
});
