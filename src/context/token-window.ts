/**
 * Token window: how many tokens fit into a model, as refusals and successes show.
 *
 * - W1 After a refusal the window is less than what was refused, whatever fitted before (but W4).
 * - W2 A request that went through proves that its tokens fit, whatever was declared or refused before.
 * - W3 A window that the provider named beats one that was inferred.
 * - W4 A window is at least 256 tokens. A figure below is none, and a refusal of so little was about
 *   something else: taken at its word, nothing would ever be sent again.
 */

/** A refusal tells that it was too much, not by how much; and it is known as an estimate. */
const SHARE_OF_REFUSED = 0.95;

/** No model takes less: a system prompt would not fit. */
const LEAST_WINDOW = 256;
/** No model takes more, nor will for long. */
export const MOST_WINDOW = 1e9;

/** A window as plain JSON. */
export interface WindowState {
  /** More than this does not fit. */
  readonly limit?: number | undefined;
  /** This much has fitted. */
  readonly fitted?: number | undefined;
}

/** True for a count of tokens that can be a window. */
export function isWindow(tokens: unknown): tokens is number {
  return typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= LEAST_WINDOW && tokens <= MOST_WINDOW;
}

/** What is known of one model's window. */
export class ObservedWindow {
  #limit: number | undefined;
  #fitted: number;

  /** @param state - From {@link ObservedWindow.state}; without it nothing is known. */
  constructor(state?: WindowState) {
    this.#limit = state?.limit;
    this.#fitted = state?.fitted ?? 0;
  }

  /** A request of so many tokens went through. */
  fit(tokens: number): void {
    if (tokens > MOST_WINDOW) return;
    this.#fitted = Math.max(this.#fitted, Math.floor(tokens));
    if (this.#limit !== undefined) this.#limit = Math.max(this.#limit, this.#fitted);
  }

  /**
   * A request was refused.
   *
   * @param tokens - What it had.
   * @param window - What fits, where the provider told. What cannot be a window is passed over.
   */
  refuse(tokens: number, window?: number): void {
    const named = window === undefined ? NaN : Math.floor(window);
    const inferred = Math.min(this.#limit ?? MOST_WINDOW, Math.floor(tokens * SHARE_OF_REFUSED));
    const limit = isWindow(named) ? named : inferred;
    if (!isWindow(limit)) return;
    this.#limit = limit;
    this.#fitted = Math.min(this.#fitted, limit);
  }

  /** The window, given what the model declares; undefined if nothing is known. */
  within(declared: number | undefined): number | undefined {
    if (this.#limit === undefined) return declared === undefined ? undefined : Math.max(declared, this.#fitted);
    return Math.max(Math.min(this.#limit, declared ?? Infinity), this.#fitted);
  }

  /** All of it, as plain JSON. */
  get state(): WindowState {
    return { ...(this.#limit !== undefined && { limit: this.#limit }), fitted: this.#fitted };
  }
}
