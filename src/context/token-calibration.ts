/**
 * Token calibration: what a model really counts for a token of the estimate, learned from its replies.
 *
 * The figure is a moving average of counted over estimated tokens. It holds for the mix of classes (Latin words, digits,
 * marks, Chinese …) that the requests had. A tokenizer that needs half as much again for Chinese and nothing more for
 * English would be misjudged as soon as a conversation changes from one to the other, so the weight of each class is
 * learned beside it, by a Kalman filter over the shares of the classes: what no request has shown yet stays near what
 * is known of the others. It learns from what came since an earlier request of the same conversation, where there was
 * one: a few messages tell more of their classes than a history in which they are one part of a hundred.
 *
 * - C1 As long as the mix stays, the factor is the moving average alone.
 * - C2 Factors stay between 0.5 and 4, whatever is observed.
 * - C3 Deterministic, and of constant size.
 */
import { sumOf, TOKEN_CLASSES, type TokenCounts } from './token-text.ts';

const SIZE = TOKEN_CLASSES.length;
/** The first samples pull hard, later ones smooth. */
const FIRST_SAMPLES = 5;
const FIRST_WEIGHT = 0.5;
const LATER_WEIGHT = 0.2;
/** Of all tokenizers there are none lies beyond, for any text. */
export const LEAST_FACTOR = 0.5;
/** See {@link LEAST_FACTOR}. */
export const MOST_FACTOR = 4;
/** A weight further out than factors go only takes longer to come back. */
export const LEAST_WEIGHT = 0;
/** See {@link LEAST_WEIGHT}. */
export const MOST_WEIGHT = 8;

/** How far weights may lie from 1 together, and each from the others, as variances. */
const COMMON_VARIANCE = 0.3 ** 2;
const OWN_VARIANCE = 0.2 ** 2;
/** How far the ratio of a few messages, or of a whole request, lies from what the weights say. */
const NOISE_VARIANCE = 0.1 ** 2;
/** How much a weight may change from request to request: texts change. */
const DRIFT_VARIANCE = 0.004 ** 2;
/** Fewer new tokens of the estimate tell nothing: what frames a message weighs too much in them. */
const LEAST_LEARNED = 20;

/** A calibration as plain JSON. */
export interface CalibrationState {
  /** The moving average. */
  readonly factor: number;
  /** How many requests were observed. */
  readonly samples: number;
  /** Shares of the classes that the average holds for. */
  readonly mix: readonly number[];
  /** Weight of each class. */
  readonly weights: readonly number[];
  /** How sure each weight is, and how they hang together: a square matrix, row by row. */
  readonly covariance: readonly number[];
}

/** A request that was counted. */
export interface CountedRequest {
  /** Tokens of it, by the estimate. */
  readonly counts: TokenCounts;
  /** Tokens of it, by the provider. */
  readonly tokens: number;
}

/** What is known of one model's tokenizer. */
export class Calibration {
  #factor = 1;
  #samples = 0;
  readonly #mix: Float64Array;
  readonly #weights: Float64Array;
  readonly #covariance: Float64Array;

  /** @param state - From {@link Calibration.state}; without it nothing is known. */
  constructor(state?: CalibrationState) {
    this.#factor = state?.factor ?? 1;
    this.#samples = state?.samples ?? 0;
    this.#mix = state === undefined ? new Float64Array(SIZE) : Float64Array.from(state.mix);
    this.#weights = state === undefined ? new Float64Array(SIZE).fill(1) : Float64Array.from(state.weights);
    this.#covariance = state === undefined ? firstCovariance() : Float64Array.from(state.covariance);
  }

  /** The moving average: the factor for requests with the usual mix. */
  get factor(): number {
    return this.#factor;
  }

  /** The factor for a request with these tokens. */
  factorFor(counts: TokenCounts): number {
    const total = sumOf(counts);
    if (this.#samples === 0 || total === 0) return this.#factor;
    return clamp((this.#factor * this.#weightOf(sharesOf(counts, total))) / this.#weightOf(this.#mix));
  }

  /**
   * Learns what a request had.
   *
   * @param earlier - A request that this one begins with.
   */
  observe({ counts, tokens }: CountedRequest, earlier?: CountedRequest): void {
    const total = sumOf(counts);
    const shares = sharesOf(counts, total);
    const weight = this.#samples < FIRST_SAMPLES ? FIRST_WEIGHT : LATER_WEIGHT;
    this.#factor = clamp(this.#factor + weight * (clamp(tokens / total) - this.#factor));
    // Before the first sample there is no mix.
    const mixWeight = this.#samples === 0 ? 1 : weight;
    shares.forEach((share, kind) => {
      const known = this.#mix[kind] ?? 0;
      this.#mix[kind] = known + mixWeight * (share - known);
    });
    this.#samples += 1;

    const added = earlier === undefined ? counts : counts.map((count, kind) => count - (earlier.counts[kind] ?? 0));
    const addedTotal = sumOf(added);
    if (addedTotal >= LEAST_LEARNED) this.#learnWeights(sharesOf(added, addedTotal), clamp((tokens - (earlier?.tokens ?? 0)) / addedTotal));
  }

  /** All of it, as plain JSON. */
  get state(): CalibrationState {
    return {
      factor: this.#factor,
      samples: this.#samples,
      mix: [...this.#mix],
      weights: [...this.#weights],
      covariance: [...this.#covariance],
    };
  }

  #weightOf(shares: Float64Array): number {
    return shares.reduce((sum, share, kind) => sum + share * clamp(this.#weights[kind] ?? 1), 0);
  }

  /** One step of the filter: weights move towards what explains the ratio, the uncertain ones first. */
  #learnWeights(shares: Float64Array, ratio: number): void {
    for (let kind = 0; kind < SIZE; kind += 1) this.#addCovariance(kind, kind, DRIFT_VARIANCE);
    const towards = shares.map((_, row) => shares.reduce((sum, share, column) => sum + this.#covarianceAt(row, column) * share, 0));
    const variance = shares.reduce((sum, share, kind) => sum + share * (towards[kind] ?? 0), NOISE_VARIANCE);
    const surprise = ratio - shares.reduce((sum, share, kind) => sum + share * (this.#weights[kind] ?? 1), 0);
    towards.forEach((pull, row) => {
      const weight = (this.#weights[row] ?? 1) + (pull / variance) * surprise;
      this.#weights[row] = Math.min(MOST_WEIGHT, Math.max(LEAST_WEIGHT, weight));
      towards.forEach((other, column) => this.#addCovariance(row, column, -(pull * other) / variance));
    });
  }

  #covarianceAt(row: number, column: number): number {
    return this.#covariance[row * SIZE + column] ?? 0;
  }

  #addCovariance(row: number, column: number, change: number): void {
    this.#covariance[row * SIZE + column] = this.#covarianceAt(row, column) + change;
  }
}

function firstCovariance(): Float64Array {
  return Float64Array.from({ length: SIZE * SIZE }, (_, index) =>
    index % (SIZE + 1) === 0 ? COMMON_VARIANCE + OWN_VARIANCE : COMMON_VARIANCE,
  );
}

function sharesOf(counts: TokenCounts, total: number): Float64Array {
  return counts.map((count) => count / total);
}

function clamp(factor: number): number {
  return Math.min(MOST_FACTOR, Math.max(LEAST_FACTOR, factor));
}
