/**
 * Waiting line: first come, first served. Whoever owns it decides when the first may go.
 *
 * - W1 Whoever is aborted while waiting leaves at once, rejects with `signal.reason`, and holds up nobody.
 * - W2 Whoever has left, however that came, has left nothing on the signal.
 */

interface Place<Entry, Pass> {
  readonly entry: Entry;
  readonly resolve: (pass: Pass) => void;
  readonly reject: (reason: unknown) => void;
}

/** Those who wait, in the order in which they came, each for a pass. */
export class WaitingLine<Entry, Pass> {
  /** A set keeps the order, and lets go of anyone in it without looking. */
  readonly #places = new Set<Place<Entry, Pass>>();
  readonly #onLeave: () => void;

  /** @param onLeave - Called when someone was aborted and has left: another may be the first now. */
  constructor(onLeave: () => void) {
    this.#onLeave = onLeave;
  }

  /** How many wait. */
  get size(): number {
    return this.#places.size;
  }

  /** Whose turn it is next. */
  get first(): Entry | undefined {
    return this.#firstPlace()?.entry;
  }

  /** Waits at the end of the line. Resolves with a pass when let go; rejects when refused, or aborted. */
  join(entry: Entry, signal: AbortSignal): Promise<Pass> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const leave = (): void => {
        this.#places.delete(place);
        signal.removeEventListener('abort', onAbort);
      };
      const place: Place<Entry, Pass> = {
        entry,
        resolve: (pass) => {
          leave();
          resolve(pass);
        },
        reject: (reason) => {
          leave();
          reject(reason);
        },
      };
      const onAbort = (): void => {
        place.reject(signal.reason);
        this.#onLeave();
      };
      signal.addEventListener('abort', onAbort);
      this.#places.add(place);
    });
  }

  /** Lets the first one go. */
  letFirstGo(pass: Pass): void {
    this.#firstPlace()?.resolve(pass);
  }

  /** Sends the first one away. */
  refuseFirst(reason: Error): void {
    this.#firstPlace()?.reject(reason);
  }

  #firstPlace(): Place<Entry, Pass> | undefined {
    const [place] = this.#places;
    return place;
  }
}
