/**
 * Ready-made policies: decorators of models, stop conditions and recoveries. Needs nothing but `turnloop`.
 *
 * @module
 */
export { callKey, type KeyedCall } from './call-key.ts';
export { continuePaused, type ContinuePausedOptions } from './continue-paused.ts';
export { loopGuard } from './loop-guard.ts';
export type { LoopGuardCall, LoopGuardOptions } from './loop-guard-options.ts';
export { maxSteps } from './max-steps.ts';
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
