/**
 * Sub-agent places: how many sub-agents work at once, over a whole tree of them.
 *
 * - P1 First come, first served. Whoever is aborted while it waits leaves at once, holds up nobody, and leaves nothing on
 *   the signal.
 * - P2 An agent that waits for sub-agents of its own lends them its place, one after the other: nobody waits for a place
 *   that an ancestor keeps, and in every family that has begun somebody works.
 */

/** A place of a running sub-agent. Made by {@link SubAgentPlaces.take}. */
export class SubAgentPlace {
  /** Who lends it; undefined for one of the common places. */
  readonly lender: SubAgentPlace | undefined;
  /** A sub-agent below works in it. */
  isLent = false;

  constructor(lender: SubAgentPlace | undefined) {
    this.lender = lender;
  }
}

interface Waiting {
  readonly parent: SubAgentPlace | undefined;
  readonly resolve: (place: SubAgentPlace) => void;
}

/** The places that a tree of sub-agents shares. */
export class SubAgentPlaces {
  /** A set keeps the order, and lets go of anyone in it. */
  readonly #line = new Set<Waiting>();
  #free: number;

  /** @param count - How many may work at once. */
  constructor(count: number) {
    this.#free = count;
  }

  /**
   * Waits for a place.
   *
   * @param signal - Ends the wait: the promise then rejects with `signal.reason`.
   * @param parent - The place of the agent that dispatches, if that is a sub-agent itself.
   */
  take(signal: AbortSignal, parent: SubAgentPlace | undefined): Promise<SubAgentPlace> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const place = this.#placeFor(parent);
      if (place !== undefined) {
        resolve(place);
        return;
      }
      const leave = (): void => {
        this.#line.delete(waiting);
        signal.removeEventListener('abort', onAbort);
      };
      const onAbort = (): void => {
        leave();
        reject(signal.reason as Error);
      };
      const waiting: Waiting = {
        parent,
        resolve: (given) => {
          leave();
          resolve(given);
        },
      };
      signal.addEventListener('abort', onAbort);
      this.#line.add(waiting);
    });
  }

  /** Gives a place back: to the next in line who may have it. */
  giveBack({ lender }: SubAgentPlace): void {
    if (lender === undefined) this.#free += 1;
    else lender.isLent = false;
    // What an agent lends is for its own sub-agents.
    for (const waiting of this.#line) {
      if (lender !== undefined && waiting.parent !== lender) continue;
      const place = this.#placeFor(waiting.parent);
      if (place === undefined) return;
      waiting.resolve(place);
      return;
    }
  }

  #placeFor(parent: SubAgentPlace | undefined): SubAgentPlace | undefined {
    if (parent !== undefined && !parent.isLent) {
      parent.isLent = true;
      return new SubAgentPlace(parent);
    }
    if (this.#free === 0) return undefined;
    this.#free -= 1;
    return new SubAgentPlace(undefined);
  }
}
