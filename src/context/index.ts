/**
 * Keeping a long session inside the model's window: estimates, shorter tool results, compaction, and what to do when a
 * request is refused as too large. Needs nothing but `turnloop`.
 *
 * @module
 */
export {
  clearOldResults,
  type ClearOldResultsOptions,
  reobtainableFrom,
} from './clear-old-results.ts';
export { foldOldTexts, type FoldOldTextsOptions } from './fold-old-texts.ts';
export type { LayerResult } from './layer.ts';
export { limitMedia, type LimitMediaOptions } from './limit-media.ts';
export { reduceMedia, type ReduceMediaOptions } from './reduce-media.ts';
export { trimHistory, type TrimHistoryOptions } from './trim-history.ts';
export {
  type StoredResultCall,
  truncateToolResult,
  type TruncateToolResultOptions,
} from './truncate-tool-result.ts';
