/**
 * Guardrails, trial: work that goes on until the first reason to end it.
 *
 * - The first reason wins; from then on nobody waits, and everybody who listens to the signal stops.
 * - Once it is closed, neither a listener nor an unhandled rejection is left.
 */

/** Work side by side, until something ends it. Made by {@link openTrial}. */
export interface Trial {
  /** Aborts when the trial ends or is closed. */
  readonly signal: AbortSignal;
  /** True once it has ended. */
  readonly hasEnded: boolean;
  /** Ends it: whoever waits gets this thrown. Only the first end counts. */
  end(reason: unknown): void;
  /** Waits for work, but not beyond the end; what comes of it later is swallowed. */
  wait<Value>(work: Promise<Value>): Promise<Value>;
  /** Lets go of everything. */
  close(): void;
}

/** Opens a trial that also ends, with its reason, when the signal aborts. */
export function openTrial(outer: AbortSignal): Trial {
  const controller = new AbortController();
  let hasEnded = false;
  let reject: (reason: unknown) => void = () => undefined;
  const ended = new Promise<never>((_resolve, onEnd) => {
    reject = onEnd;
  });
  ended.catch(() => undefined);
  const end = (reason: unknown): void => {
    if (hasEnded) return;
    hasEnded = true;
    reject(reason);
    controller.abort(reason);
  };
  const onAbort = (): void => {
    end(outer.reason);
  };
  if (outer.aborted) onAbort();
  else outer.addEventListener('abort', onAbort, { once: true });
  return {
    signal: controller.signal,
    get hasEnded() {
      return hasEnded;
    },
    end,
    wait: (work) => Promise.race([ended, work]),
    close: () => {
      outer.removeEventListener('abort', onAbort);
      controller.abort();
    },
  };
}
