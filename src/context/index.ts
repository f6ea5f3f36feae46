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
export type { CompactionReport, CompactOptions } from './compact-now.ts';
export { type ContextPolicy, createContextPolicy } from './context-policy.ts';
export { foldOldTexts, type FoldOldTextsOptions } from './fold-old-texts.ts';
export type { LayerResult } from './layer.ts';
export { limitMedia, type LimitMediaOptions } from './limit-media.ts';
export type { ContextLayer, ContextPolicyOptions, LayerOptions, SummarizeLayer, TrimLayer } from './policy-settings.ts';
export { preflight, type PreflightOptions } from './preflight.ts';
export { reduceMedia, type ReduceMediaOptions } from './reduce-media.ts';
export { summarizeHistory, type SummarizeHistoryOptions } from './summarize-history.ts';
export type { FileCall, FilesOfCall } from './summary-files.ts';
export type { TouchedFiles } from './summary-message.ts';
export type { CalibrationState } from './token-calibration.ts';
export {
  createTokenEstimator,
  type EstimatedModel,
  type EstimatedRequest,
  type OverflowFigures,
  type TokenEstimator,
  type TokenEstimatorOptions,
} from './token-estimator.ts';
export type { EstimatorSnapshot, EstimatorSnapshotModel } from './token-snapshot.ts';
export type { WindowState } from './token-window.ts';
export { trimHistory, type TrimHistoryOptions } from './trim-history.ts';
export {
  type StoredResultCall,
  truncateToolResult,
  type TruncateToolResultOptions,
} from './truncate-tool-result.ts';
