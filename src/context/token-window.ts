/**
 * Token window: how many tokens fit into a model, as refusals and successes show.
 *
 * - W1 After a refusal the window is less than what was refused, whatever fitted before.
 * - W2 A request that went through proves that its tokens fit, whatever was declared or refused before.
 * - W3 A window that the provider named beats one that was inferred.
 */

/** A refusal tells that it was too much, not by how much; and it is known as an estimate. */
const SHARE_OF_REFUSED = 0.95;

/** A window as plain JSON. */
export interface WindowState {
  /** More than this does not fit. */
  readonly limit?: number | undefined;
  /** This much has fitted. */
  readonly fitted?: number | undefined;
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
    this.#fitted = Math.max(this.#fitted, tokens);
    if (this.#limit !== undefined) this.#limit = Math.max(this.#limit, tokens);
  }

  /**
   * A request was refused.
   *
   * @param tokens - What it had.
   * @param window - What fits, where the provider told.
   */
  refuse(tokens: number, window?: number): void {
    const inferred = Math.min(this.#limit ?? Infinity, Math.max(1, Math.floor(tokens * SHARE_OF_REFUSED)));
    this.#limit = window ?? inferred;
    this.#fitted = Math.min(this.#fitted, this.#limit);
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
