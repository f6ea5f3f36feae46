/**
 * Keeping a long session inside the model's window: estimates, shorter tool results, compaction, and what to do when a
 * request is refused as too large. Needs nothing but `turnloop`.
 *
 * @module
 */
export { reduceMedia, type ReduceMediaOptions } from './reduce-media.ts';
