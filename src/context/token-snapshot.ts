/**
 * Token snapshot: what an estimator has learned, as plain JSON, and reading it back from wherever it was kept.
 *
 * It is advice and may be lost: an entry that is not whole, or not one that can have been learned, is left out, and its
 * model is learned anew. What is no snapshot at all is a mistake of the caller's, and refused.
 */
import { isRecord } from '../core/json.ts';
import { type CalibrationState, LEAST_FACTOR, LEAST_WEIGHT, MOST_FACTOR, MOST_WEIGHT } from './token-calibration.ts';
import { TOKEN_CLASSES } from './token-text.ts';
import { isWindow, MOST_WINDOW, type WindowState } from './token-window.ts';

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

/**
 * The entries of a snapshot that are whole; none of another version's.
 *
 * @throws TypeError if it is no snapshot. Undefined stands for none.
 */
export function readSnapshot(value: unknown): readonly EstimatorSnapshotModel[] {
  if (value === undefined) return [];
  if (!isRecord(value) || typeof value['version'] !== 'number' || !Array.isArray(value['models'])) {
    throw new TypeError(
      `createTokenEstimator: \`snapshot\` must be what \`estimator.snapshot()\` gave, an object with version and models, not ${nameOf(value)}. ` +
        'For example: createTokenEstimator({ snapshot: JSON.parse(text) }).',
    );
  }
  return value['version'] === 1 ? value['models'].filter(isModel) : [];
}

/** Never the value itself: it may be anything. */
function nameOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return isRecord(value) ? 'an object without them' : `a value of type ${typeof value}`;
}

function isModel(value: unknown): value is EstimatorSnapshotModel {
  if (!isRecord(value) || typeof value['provider'] !== 'string' || typeof value['modelId'] !== 'string') return false;
  return isCalibrationState(value['calibration']) && isWindowState(value['window']);
}

const SIZE = TOKEN_CLASSES.length;
/** Variances start far below, and grow only by what texts may change from request to request. */
const MOST_VARIANCE = 100;
/** Of sums that should be 0 or 1. */
const ROUNDING = 1e-6;

function isCalibrationState(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { factor, samples, mix, weights, covariance } = value;
  return (
    isBetween(factor, LEAST_FACTOR, MOST_FACTOR) &&
    isBetween(samples, 0, Number.MAX_SAFE_INTEGER) &&
    Number.isInteger(samples) &&
    isList(mix, SIZE, { least: 0, most: 1 }) &&
    // Shares of a whole, once there was one: the filter divides by what they come to.
    Math.abs(mix.reduce((sum, share) => sum + share, samples === 0 ? 1 : 0) - 1) < ROUNDING &&
    isList(weights, SIZE, { least: LEAST_WEIGHT, most: MOST_WEIGHT }) &&
    isList(covariance, SIZE * SIZE, { least: -MOST_VARIANCE, most: MOST_VARIANCE }) &&
    isCovariance(covariance)
  );
}

/** True if the same from both sides, and no mix has a variance below 0: with that the filter would run away. */
function isCovariance(matrix: readonly number[]): boolean {
  const at = (row: number, column: number): number => matrix[row * SIZE + column] ?? 0;
  // Cholesky's decomposition, which exists for these matrices only.
  const root: number[] = [];
  for (let row = 0; row < SIZE; row += 1) {
    for (let column = 0; column <= row; column += 1) {
      let rest = at(row, column);
      for (let inner = 0; inner < column; inner += 1) rest -= (root[row * SIZE + inner] ?? 0) * (root[column * SIZE + inner] ?? 0);
      if (at(row, column) !== at(column, row) || (row === column && !(rest > 0))) return false;
      root[row * SIZE + column] = row === column ? Math.sqrt(rest) : rest / (root[column * SIZE + column] ?? 1);
    }
  }
  return true;
}

function isWindowState(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { limit, fitted = 0 } = value;
  if (!isBetween(fitted, 0, MOST_WINDOW) || !Number.isInteger(fitted)) return false;
  return limit === undefined || (isWindow(limit) && limit >= fitted);
}

interface Range {
  readonly least: number;
  readonly most: number;
}

function isList(value: unknown, length: number, { least, most }: Range): value is readonly number[] {
  return Array.isArray(value) && value.length === length && value.every((one) => isBetween(one, least, most));
}

/** False for what is not a number, and for NaN. */
function isBetween(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && value >= least && value <= most;
}
