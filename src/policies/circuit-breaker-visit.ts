/**
 * Circuit breaker visit: one request on its way through a breaker. Holds its permit, waits in its name, and says what
 * happens in notices.
 */
import type { JsonValue } from '../core/json.ts';
import type { LLMError } from '../core/errors.ts';
import type { LLMRequest } from '../core/llm.ts';
import { systemRuntime, type Runtime } from '../core/runtime.ts';
import type { BreakerState, Permit } from './circuit-breaker-state.ts';

/** The breaker, and what requests do while it is open. */
export interface VisitedBreaker {
  readonly state: BreakerState;
  readonly mode: 'wait' | 'fail';
}

/** A request and its permit. */
export class Visit {
  readonly #breaker: VisitedBreaker;
  readonly #request: LLMRequest;
  /** Time of the request. */
  readonly runtime: Runtime;
  #permit: Permit | undefined;

  constructor(breaker: VisitedBreaker, request: LLMRequest) {
    this.#breaker = breaker;
    this.#request = request;
    this.runtime = request.scope?.runtime ?? systemRuntime;
  }

  /** True if what comes of the request decides for all. */
  get isProbe(): boolean {
    return this.#permit?.isProbe === true && this.#breaker.state.isValid(this.#permit);
  }

  /** How long the breaker stays open, in milliseconds. */
  get remainingMs(): number {
    return this.#breaker.state.remainingMs(this.runtime.now());
  }

  /** Undefined once an attempt may be sent; else when to ask again. @throws `signal.reason` once it is aborted. */
  gate(): Promise<void> | undefined {
    const { state } = this.#breaker;
    if (state.isValid(this.#permit)) return undefined;
    this.#request.signal.throwIfAborted();
    const permit = state.admit(this.runtime.now());
    if (permit === undefined) return this.#wait();
    this.#take(permit);
    return undefined;
  }

  /** The provider replied. */
  succeeded(): void {
    const { state } = this.#breaker;
    const { failures } = state;
    if (state.succeed(this.#permit)) this.#notify('closed', { failures });
  }

  /** The provider failed in a way that counts. */
  failed(error: LLMError): void {
    const { state } = this.#breaker;
    if (!state.fail(this.#permit, error, this.runtime.now())) return;
    this.#notify('opened', { failures: state.failures, kind: error.kind, remainingMs: this.remainingMs });
  }

  /** The request is over: a probe that came to nothing goes to the next in line. */
  end(): void {
    this.#request.signal.removeEventListener('abort', this.#release);
    this.#release();
  }

  readonly #release = (): void => {
    this.#breaker.state.release(this.#permit);
  };

  async #wait(): Promise<void> {
    const { state, mode } = this.#breaker;
    const { signal } = this.#request;
    if (mode === 'fail') throw state.refusal(this.runtime.now());
    this.#notify('waiting', { remainingMs: this.remainingMs });
    const permit = await state.wait({ runtime: this.runtime, signal });
    if (permit === undefined) return;
    this.#take(permit);
  }

  #take(permit: Permit): void {
    this.#permit = permit;
    if (!permit.isProbe) return;
    // At once, and not when the model settles: it may not heed the signal, and others wait.
    this.#request.signal.addEventListener('abort', this.#release, { once: true });
    this.#notify('probing', { failures: this.#breaker.state.failures });
    // Whoever hears of it may abort; and the abort may have come between being given the probe and hearing of it.
    if (!this.#request.signal.aborted) return;
    this.#release();
    this.#request.signal.throwIfAborted();
  }

  #notify(what: 'opened' | 'waiting' | 'probing' | 'closed', data: JsonValue): void {
    this.#request.scope?.notify({ name: `circuitBreaker.${what}`, data });
  }
}
