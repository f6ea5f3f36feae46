/**
 * Sliding window: how much was taken in the last minute, entry by entry, so that the law is simple: in no minute is more
 * taken than the limit, but for one entry that is larger than the limit by itself and has a minute of its own.
 */

/** The minute of "per minute". */
const WINDOW_MS = 60_000;

/** Something that was taken. */
export interface WindowEntry {
  /** When, on the clock of whoever took it. */
  at: number;
  /** How much. */
  amount: number;
  /** Whether it has left the window. */
  isGone: boolean;
}

/** What was taken in the last minute. A minute is half open: what was taken at 0 is gone at 60,000. */
export class SlidingWindow {
  readonly #limit: number;
  /** Oldest first. */
  readonly #entries: WindowEntry[] = [];
  #sum = 0;

  /** @param limit - Most in a minute; Infinity for anything. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How long until an amount may be taken, in milliseconds; 0 for now. One larger than the limit waits for an empty window. */
  delayFor(amount: number, now: number): number {
    this.#forget(now);
    let left = this.#sum;
    let delayMs = 0;
    for (const entry of this.#entries) {
      if (left === 0 || left + amount <= this.#limit) break;
      left -= entry.amount;
      delayMs = entry.at + WINDOW_MS - now;
    }
    return delayMs;
  }

  /** Takes an amount. */
  take(amount: number, now: number): WindowEntry {
    this.#forget(now);
    const entry = { at: now, amount, isGone: false };
    this.#entries.push(entry);
    this.#sum += amount;
    return entry;
  }

  /** Says what an entry really was; one that has left the window makes no difference. */
  correct(entry: WindowEntry, amount: number): void {
    if (!entry.isGone) this.#sum += amount - entry.amount;
    entry.amount = amount;
  }

  #forget(now: number): void {
    for (let [oldest] = this.#entries; oldest !== undefined && oldest.at + WINDOW_MS <= now; [oldest] = this.#entries) {
      this.#sum -= oldest.amount;
      oldest.isGone = true;
      this.#entries.shift();
    }
    // A system clock may be set back: nobody is to wait for a time that was.
    const newest = this.#entries.at(-1);
    if (newest === undefined || newest.at <= now) return;
    for (const entry of this.#entries) entry.at = Math.min(entry.at, now);
  }
}
