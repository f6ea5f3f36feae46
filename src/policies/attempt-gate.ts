/**
 * Attempt gate: how a decorator holds back the attempts that decorators inside of it would start.
 *
 * A circuit breaker stands around retries and limits, and may open while a request waits in one of them. It must not be
 * sent then, and only who sends it knows when that is.
 *
 * 1. It is asked in the same breath in which the request is sent: nothing can happen in between.
 * 2. It travels with the request under a symbol, so that decorators in between, which copy requests, pass it on.
 */
import type { LLMRequest } from '../core/llm.ts';

/**
 * Undefined if an attempt may be sent now; else when to ask again. Rejects if it is not to be sent at all. Throws or
 * rejects with `signal.reason` if the request is aborted before it may be sent.
 */
export type AttemptGate = () => Promise<void> | undefined;

const GATE: unique symbol = Symbol.for('turnloop.attemptGate');

interface GatedRequest extends LLMRequest {
  readonly [GATE]?: AttemptGate | undefined;
}

/** The request, with a gate in front of each of its attempts: behind that of a decorator further out. */
export function gateAttempts(request: GatedRequest, gate: AttemptGate): LLMRequest {
  const outer = request[GATE];
  const gated: GatedRequest = { ...request, [GATE]: outer === undefined ? gate : () => outer() ?? gate() };
  return gated;
}

/**
 * Asks the gate, if there is one. Whoever is about to send does so until it is undefined:
 * `for (let held = heldBack(request); held !== undefined; held = heldBack(request)) await held;`
 */
export function heldBack(request: GatedRequest): Promise<void> | undefined {
  return request[GATE]?.();
}
