export { runTurn } from './core/run-turn.js';
export { retryDelay } from './core/retry-policy.js';
export const VERSION = '1.2.0';
