/**
 * Ready-made policies: decorators of models, stop conditions and recoveries. Needs nothing but `turnloop`.
 *
 * Decorators of models work alone and together; the order says what they mean. From the inside out, the usual one: model,
 * `withThinkTags`, `withTimeouts`, `withBudget`, limits, `withRetry`, `withCircuitBreaker`, `withFallback`; of limits,
 * `withRateLimit` inside of a concurrency limit. Whoever shares a budget, a breaker and limits among several models puts them
 * around each in the same order: in different orders two requests may wait for each other.
 *
 * | inside | outside | what it means | the other way round |
 * | --- | --- | --- | --- |
 * | `withTimeouts` | limits | times run from when the request is sent | they run while it waits for its place |
 * | `withTimeouts` | `withRetry` | an attempt out of time is retried | each attempt is timed anew; only `totalMs` is for all of them, and ends them |
 * | limits | `withRetry` | a place is taken for each attempt, and free between them | a request keeps its place while it waits for its next attempt; not under a circuit breaker, whose probe may need that place |
 * | `withBudget` | limits | what is set aside for a request is set aside when it is sent | the same, and given back while the request waits for its place |
 * | `withBudget` | `withRetry` | each attempt is asked for before it is sent, and counted | as well, for attempts that the retry tells of |
 * | `withRetry` | `withCircuitBreaker` | requests count that failed for good; a probe is retried too; retries wait while it is open | each attempt counts; a probe is one attempt; one that is refused ends the request |
 * | `withRetry` | `withFallback` | a model is given up only after its retries | the models are tried in turn, then all of them again |
 * | `withTimeouts` | `withCircuitBreaker` | a probe that hangs is given up | the pause counts as time to the first token |
 * | `withCircuitBreaker` (`fail`) | `withFallback` | while a provider is down the next model is asked at once | it counts if all models fail, and then asks none |
 * | `withCircuitBreaker` (`wait`) | `withFallback` | requests pause, and move on only if the probe fails | as above, and pauses |
 * | `withBudget` | `withFallback` | each model has its own budget, or all share one; a refusal does not move on | one budget for all; each attempt is asked for as if it were the first model's |
 *
 * @module
 */
export { anyOf } from './any-of.ts';
export { approval, type ApprovalAnswer, type ApprovalOptions, type ApprovalQuestion } from './approval.ts';
export {
  type ApprovalEntry,
  type ApprovalMemory,
  type ApprovalMemoryInProcess,
  createApprovalMemory,
  type RememberedDecision,
} from './approval-memory.ts';
export type { ApprovalRule, ApprovalRuling } from './approval-rules.ts';
export {
  type Budget,
  type BudgetEstimator,
  type BudgetOptions,
  type BudgetRemaining,
  type BudgetSnapshot,
  type BudgetSpent,
  createBudget,
} from './budget.ts';
export type { BudgetLimits, Spending } from './budget-limits.ts';
export { callKey, type KeyedCall } from './call-key.ts';
export {
  type CircuitBreaker,
  type CircuitBreakerOptions,
  createCircuitBreaker,
  withCircuitBreaker,
} from './circuit-breaker.ts';
export type { CircuitBreakerSnapshot } from './circuit-breaker-snapshot.ts';
export { continuePaused, type ContinuePausedOptions } from './continue-paused.ts';
export { type FallbackOptions, withFallback } from './fallback.ts';
export { finalAnswer, type FinalAnswerOptions, type LimitStopReason } from './final-answer.ts';
export { loopGuard } from './loop-guard.ts';
export type { LoopGuardCall, LoopGuardOptions } from './loop-guard-options.ts';
export { maxBudget } from './max-budget.ts';
export { maxSteps } from './max-steps.ts';
export { planFirst, type PlanFirstOptions } from './plan-first.ts';
export { costOf, createPrices, type ModelPrice, type Prices } from './prices.ts';
export { createRateLimit, type RateLimit, type RateLimitOptions, withRateLimit } from './rate-limit.ts';
export type { RateLimitEstimator } from './rate-limiter.ts';
export {
  type RetryCandidate,
  retryDelayMs,
  type RetryDelayOptions,
  type RetryOptions,
  withRetry,
} from './retry.ts';
export { strictHistory } from './strict-history.ts';
export { withThinkTags, type ThinkTagsOptions } from './think-tags.ts';
export type { ThinkTag } from './think-tag-scanner.ts';
export { type TimeoutOptions, withTimeouts } from './timeouts.ts';
export { withBudget } from './with-budget.ts';
