/**
 * Attempt gate: how a decorator holds back the attempts that decorators inside of it would start.
 *
 * A circuit breaker stands around retries and limits, and may open while a request waits in one of them. It must not be
 * sent then, and only who sends it knows when that is. A budget may stand around them too, and must not set anything aside
 * for a request that waits.
 *
 * 1. It is asked in the same breath in which the request is sent: nothing can happen in between.
 * 2. It travels with the request under a symbol, so that decorators in between, which copy requests, pass it on.
 * 3. Tolls are taken behind all gates, and given back as soon as the request has to wait for anything: so nobody who holds
 *    one waits, and whoever waits for one gets it.
 */
import type { LLMRequest } from '../core/llm.ts';

/**
 * Undefined if an attempt may be sent now; else when to ask again. Rejects if it is not to be sent at all. Throws or
 * rejects with `signal.reason` if the request is aborted before it may be sent.
 */
export type AttemptGate = () => Promise<void> | undefined;

const GATE: unique symbol = Symbol.for('turnloop.attemptGate');

/** What a request takes from others while it is under way, as its share of a budget. */
export interface AttemptToll {
  /** Undefined if it has it, or could take it now; else when to ask again. Rejects if it is not to have it at all. */
  take(): Promise<void> | undefined;
  /** Gives it back; nothing if it has none. */
  giveBack(): void;
}

const TOLL: unique symbol = Symbol.for('turnloop.attemptToll');

interface GatedRequest extends LLMRequest {
  readonly [GATE]?: AttemptGate | undefined;
  readonly [TOLL]?: AttemptToll | undefined;
}

/** The request, with a gate in front of each of its attempts: behind that of a decorator further out. */
export function gateAttempts(request: GatedRequest, gate: AttemptGate): LLMRequest {
  const outer = request[GATE];
  const gated: GatedRequest = { ...request, [GATE]: outer === undefined ? gate : () => outer() ?? gate() };
  return gated;
}

/** The request, with a toll on each of its attempts: beside that of a decorator further out. */
export function tollAttempts(request: GatedRequest, toll: AttemptToll): LLMRequest {
  const outer = request[TOLL];
  const tolled: GatedRequest = { ...request, [TOLL]: outer === undefined ? toll : both(outer, toll) };
  return tolled;
}

/** Two tolls: while one has to be waited for, the other is not held. */
function both(outer: AttemptToll, inner: AttemptToll): AttemptToll {
  return {
    take: () => {
      const forOuter = outer.take();
      if (forOuter !== undefined) {
        inner.giveBack();
        return forOuter;
      }
      const forInner = inner.take();
      if (forInner !== undefined) outer.giveBack();
      return forInner;
    },
    giveBack: () => {
      outer.giveBack();
      inner.giveBack();
    },
  };
}

/**
 * Asks the gate, if there is one, and takes the toll. Whoever is about to send does so until it is undefined:
 * `for (let held = heldBack(request); held !== undefined; held = heldBack(request)) await held;`
 */
export function heldBack(request: GatedRequest): Promise<void> | undefined {
  return heldByGate(request) ?? takeToll(request);
}

/** Asks the gate alone: whoever has something that others wait for gives it back while it is held. */
export function heldByGate(request: GatedRequest): Promise<void> | undefined {
  let isOpen = false;
  try {
    const held = request[GATE]?.();
    isOpen = held === undefined;
    return held;
  } finally {
    if (!isOpen) request[TOLL]?.giveBack();
  }
}

/** Takes the toll alone, behind the gate: whoever has a place keeps it meanwhile, since nobody who has a toll waits for one. */
export function takeToll(request: GatedRequest): Promise<void> | undefined {
  return request[TOLL]?.take();
}

/** Says that the request waits from now on, until whoever waits asks {@link heldBack}. */
export function pauseAttempt(request: GatedRequest): void {
  request[TOLL]?.giveBack();
}
