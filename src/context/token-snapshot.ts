/**
 * Token snapshot: what an estimator has learned, as plain JSON, and reading it back from wherever it was kept.
 *
 * It is advice and may be lost: an entry that is not whole is left out, and its model is learned anew.
 */
import { isRecord } from '../core/json.ts';
import type { CalibrationState } from './token-calibration.ts';
import { TOKEN_CLASSES } from './token-text.ts';
import type { WindowState } from './token-window.ts';

/** What an estimator has learned, as plain JSON. */
export interface EstimatorSnapshot {
  /** Format of the snapshot. */
  readonly version: 1;
  /** What is known, by model. */
  readonly models: readonly EstimatorSnapshotModel[];
}

/** What an estimator has learned of a model. */
export interface EstimatorSnapshotModel {
  /** `LLM.provider`. */
  readonly provider: string;
  /** `LLM.modelId`. */
  readonly modelId: string;
  /** What tokens of the estimate cost with it. */
  readonly calibration: CalibrationState;
  /** What fits into it. */
  readonly window: WindowState;
}

/** The entries of a snapshot that are whole; none of what is no snapshot. */
export function readSnapshot(value: unknown): readonly EstimatorSnapshotModel[] {
  if (!isRecord(value) || value['version'] !== 1 || !Array.isArray(value['models'])) return [];
  return value['models'].filter(isModel);
}

function isModel(value: unknown): value is EstimatorSnapshotModel {
  if (!isRecord(value) || typeof value['provider'] !== 'string' || typeof value['modelId'] !== 'string') return false;
  return isCalibration(value['calibration']) && isWindow(value['window']);
}

const SIZE = TOKEN_CLASSES.length;
/** Far beyond what is learned; more comes from elsewhere. */
const MOST = 100;

function isCalibration(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { factor, samples, mix, weights, covariance } = value;
  return (
    isBetween(factor, 0.5, 4) &&
    isBetween(samples, 0, Number.MAX_SAFE_INTEGER) &&
    isList(mix, SIZE, 0) &&
    isList(weights, SIZE, -MOST) &&
    isList(covariance, SIZE * SIZE, -MOST) &&
    // The variances: below 0 the filter would run away.
    covariance.every((one, index) => index % (SIZE + 1) !== 0 || one >= 0)
  );
}

function isWindow(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { limit, fitted } = value;
  return [limit, fitted].every((tokens) => tokens === undefined || isBetween(tokens, 0, Number.MAX_SAFE_INTEGER));
}

function isList(value: unknown, length: number, least: number): value is readonly number[] {
  return Array.isArray(value) && value.length === length && value.every((one) => isBetween(one, least, MOST));
}

function isBetween(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && value >= least && value <= most;
}
