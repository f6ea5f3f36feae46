/**
 * Ready-made policies: decorators of models, stop conditions and recoveries. Needs nothing but `turnloop`.
 *
 * @module
 */
export { maxSteps } from './max-steps.ts';
export { reduceMedia, type ReduceMediaOptions } from './reduce-media.ts';
export {
  type RetryCandidate,
  retryDelayMs,
  type RetryDelayOptions,
  type RetryOptions,
  withRetry,
} from './retry.ts';
export { strictHistory } from './strict-history.ts';
