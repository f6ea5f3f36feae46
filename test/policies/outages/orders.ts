/** Orders: how decorators stand around the simulated providers, each with models of the breakers in it. */
import type { LLM } from 'turnloop';
import { type CircuitBreaker, type CircuitBreakerOptions, createCircuitBreaker, withCircuitBreaker, withFallback, withRetry, withTimeouts } from 'turnloop/policies';
import { createConcurrencyLimit } from 'turnloop/policies/concurrency';
import type { BreakerModel } from './breaker-model.ts';

/** What an order is made of. */
export interface Parts {
  /** Two providers. */
  readonly providers: readonly [LLM, LLM];
  /** Makes the model of a breaker that stands in front of these providers. */
  readonly watch: (breaker: CircuitBreaker, options: { readonly failures: number; readonly openMs: number }, behind: readonly LLM[]) => BreakerModel;
}

/** A way to stack decorators. */
export interface Order {
  readonly name: string;
  /** Whether text that was shown is never taken back. */
  readonly keepsText?: boolean;
  build(parts: Parts): LLM;
}

/** A breaker around a model, and its model around what it lets in. */
function guarded(parts: Parts, inner: LLM, { options, behind }: { readonly options: CircuitBreakerOptions; readonly behind: readonly LLM[] }): LLM {
  const breaker = createCircuitBreaker(options);
  const { failures = 5, openMs = 60_000 } = options;
  return withCircuitBreaker(parts.watch(breaker, { failures, openMs }, behind).tap(inner), breaker);
}

const RETRY = { maxAttempts: 3 };

/** Every order under test. */
export const ORDERS: readonly Order[] = [
  {
    name: 'retry < breaker (wait)',
    build: (parts) => {
      const [one] = parts.providers;
      return guarded(parts, withRetry(withTimeouts(one), RETRY), { options: { failures: 3 }, behind: [one] });
    },
  },
  {
    name: 'limit < retry < breaker (wait)',
    build: (parts) => {
      const [one] = parts.providers;
      const limited = createConcurrencyLimit(2).llm(withTimeouts(one));
      return guarded(parts, withRetry(limited, RETRY), { options: { failures: 2 }, behind: [one] });
    },
  },
  {
    name: 'retry < breaker (fail)',
    build: (parts) => {
      const [one] = parts.providers;
      return guarded(parts, withRetry(withTimeouts(one)), { options: { mode: 'fail', failures: 2 }, behind: [one] });
    },
  },
  {
    name: 'breaker (wait) < retry',
    build: (parts) => {
      const [one] = parts.providers;
      return withRetry(guarded(parts, withTimeouts(one), { options: {}, behind: [one] }));
    },
  },
  {
    name: 'breaker (fail) < retry, which waits for it',
    build: (parts) => {
      const [one] = parts.providers;
      const inner = guarded(parts, withTimeouts(one), { options: { mode: 'fail', openMs: 20_000 }, behind: [one] });
      return withRetry(inner, { shouldRetry: ({ error }) => error.stopReason === 'circuit_breaker' || undefined });
    },
  },
  {
    name: 'retry < breaker (fail) < fallback',
    build: (parts) => {
      const [one, two] = parts.providers;
      return withFallback([
        guarded(parts, withRetry(withTimeouts(one), RETRY), { options: { mode: 'fail', failures: 2 }, behind: [one] }),
        guarded(parts, withRetry(withTimeouts(two), RETRY), { options: { failures: 2 }, behind: [two] }),
      ]);
    },
  },
  {
    name: 'retry < fallback < breaker (wait)',
    build: (parts) => {
      const [one, two] = parts.providers;
      const both = withFallback([withRetry(withTimeouts(one), RETRY), withRetry(withTimeouts(two), RETRY)]);
      return guarded(parts, both, { options: { failures: 2 }, behind: [one, two] });
    },
  },
  {
    name: 'retry < breaker (fail) < fallback, text is never taken back',
    keepsText: true,
    build: (parts) => {
      const [one, two] = parts.providers;
      const mode = 'beforeFirstDelta';
      return withFallback(
        [
          guarded(parts, withRetry(withTimeouts(one), { mode }), { options: { mode: 'fail' }, behind: [one] }),
          withRetry(withTimeouts(two), { mode }),
        ],
        { mode },
      );
    },
  },
  {
    name: 'retry < breaker (wait) < timeouts',
    build: (parts) => {
      const [one] = parts.providers;
      const inner = guarded(parts, withRetry(one, RETRY), { options: { failures: 3 }, behind: [one] });
      return withTimeouts(inner, { firstTokenMs: 400_000, totalMs: 600_000 });
    },
  },
];
