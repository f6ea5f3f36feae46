/**
 * Circuit breaker state: whether requests may be sent to a provider, and who waits until they may.
 *
 * Pure of models: it is told what came of requests and says who may send. A request needs a *permit* to be sent. Closed,
 * all share one; open, there is none; half open, one request has one, the probe.
 *
 * 1. Only who holds the permit that is valid now changes anything: what comes of an earlier time is old news.
 * 2. Whoever waits gets the probe, goes on when it succeeds, or is refused when it fails: nobody is forgotten.
 * 3. Who leaves the line leaves no timer and no listener behind.
 */
import { LLMError, summarizeError, type ErrorSummary } from '../core/errors.ts';
import type { Runtime } from '../core/runtime.ts';
import type { CircuitBreakerSnapshot } from './circuit-breaker-snapshot.ts';

/** The right to send requests; which one it is says what it is worth. */
export interface Permit {
  /** Whether the one request sent with it decides how it goes on. */
  readonly isProbe: boolean;
}

/** What a breaker needs to know. */
export interface BreakerSettings {
  /** Failures in a row until it opens. */
  readonly failures: number;
  /** How long it stays open, in milliseconds. */
  readonly openMs: number;
}

/** Where a request waits, and what ends the wait. */
interface Waiting {
  readonly runtime: Runtime;
  readonly signal: AbortSignal;
}

interface Waiter {
  /** @param permit - The probe; undefined if the breaker closed. */
  goOn(permit: Permit | undefined): void;
  refuse(reason: unknown): void;
}

/** The machine behind a breaker. */
export class BreakerState {
  readonly #settings: BreakerSettings;
  #failures: number;
  #openUntil: number | undefined;
  #lastError: ErrorSummary | undefined;
  /** The one that is valid now; undefined while open. */
  #permit: Permit | undefined;
  /** In the order in which they came. */
  readonly #line = new Set<Waiter>();

  constructor(settings: BreakerSettings, snapshot: CircuitBreakerSnapshot = { failures: 0 }) {
    this.#settings = settings;
    this.#failures = snapshot.failures;
    this.#openUntil = snapshot.openUntil;
    this.#lastError = snapshot.lastError;
    this.#permit = snapshot.openUntil === undefined ? { isProbe: false } : undefined;
  }

  get name(): 'closed' | 'open' | 'half_open' {
    if (this.#openUntil === undefined) return 'closed';
    return this.#permit === undefined ? 'open' : 'half_open';
  }

  get failures(): number {
    return this.#failures;
  }

  get openUntil(): number | undefined {
    return this.#openUntil;
  }

  snapshot(): CircuitBreakerSnapshot {
    const openUntil = this.#openUntil;
    const lastError = this.#lastError;
    return { failures: this.#failures, ...(openUntil !== undefined && { openUntil }), ...(lastError !== undefined && { lastError }) };
  }

  /** How long it stays open, in milliseconds; 0 if it is not. */
  remainingMs(now: number): number {
    if (this.#openUntil === undefined) return 0;
    const left = this.#openUntil - now;
    if (left <= this.#settings.openMs) return Math.max(0, left);
    // The clock was set back, or it is another one: never longer than from now on.
    this.#openUntil = now + this.#settings.openMs;
    return this.#settings.openMs;
  }

  /** True if who holds it may send. */
  isValid(permit: Permit | undefined): boolean {
    return permit !== undefined && permit === this.#permit;
  }

  /** A permit, if there is one to be had now: the probe for the first to ask once the open time is over. */
  admit(now: number): Permit | undefined {
    if (this.#openUntil === undefined) return this.#permit;
    if (this.#permit !== undefined || this.remainingMs(now) > 0) return undefined;
    this.#permit = { isProbe: true };
    return this.#permit;
  }

  /**
   * Waits in line. Resolves to a probe if it falls to this one, or to undefined once the breaker has closed. Rejects with
   * {@link refusal} if a probe fails, and with `signal.reason`.
   */
  wait({ runtime, signal }: Waiting): Promise<Permit | undefined> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      let cancelTimer = (): void => undefined;
      const leave = (): void => {
        this.#line.delete(waiter);
        cancelTimer();
        signal.removeEventListener('abort', onAbort);
      };
      const waiter: Waiter = {
        goOn: (permit) => {
          leave();
          resolve(permit);
        },
        refuse: (reason) => {
          leave();
          reject(reason);
        },
      };
      const onAbort = (): void => {
        waiter.refuse(signal.reason);
      };
      const startTimer = (): void => {
        cancelTimer = runtime.setTimer(this.remainingMs(runtime.now()), onTime);
      };
      const onTime = (): void => {
        const permit = this.admit(runtime.now());
        if (permit !== undefined) waiter.goOn(permit);
        // Timers may fire early, and clocks be set back. With a probe under way its outcome ends the wait.
        else if (this.name === 'open') startTimer();
      };
      this.#line.add(waiter);
      signal.addEventListener('abort', onAbort, { once: true });
      if (this.name === 'open') startTimer();
    });
  }

  /** The provider replied. @returns True if that closed the breaker. */
  succeed(permit: Permit | undefined): boolean {
    if (permit === undefined || !this.isValid(permit)) return false;
    this.#failures = 0;
    if (!permit.isProbe) return false;
    this.#openUntil = undefined;
    this.#permit = { isProbe: false };
    for (const waiter of [...this.#line]) waiter.goOn(undefined);
    return true;
  }

  /** The provider failed in a way that counts. @returns True if that opened the breaker. */
  fail(permit: Permit | undefined, error: LLMError, now: number): boolean {
    if (permit === undefined || !this.isValid(permit)) return false;
    this.#failures += 1;
    this.#lastError = summarizeError(error);
    if (!permit.isProbe && this.#failures < this.#settings.failures) return false;
    this.#openUntil = now + this.#settings.openMs;
    this.#permit = undefined;
    for (const waiter of [...this.#line]) waiter.refuse(this.refusal(now, error));
    return true;
  }

  /** What came says nothing about the provider: a probe goes to the next in line, or to the next that comes. */
  release(permit: Permit | undefined): void {
    if (permit?.isProbe !== true || !this.isValid(permit)) return;
    const [next] = this.#line;
    this.#permit = next === undefined ? undefined : { isProbe: true };
    next?.goOn(this.#permit);
  }

  /** What a request ends with that is not sent. It cost nothing, so it tells of no tokens: those are the cause's. */
  refusal(now: number, cause?: LLMError): LLMError {
    const remainingMs = this.remainingMs(now);
    const last = this.#lastError;
    const times = this.#failures === 1 ? 'once' : `${this.#failures} times in a row`;
    const why = last === undefined ? '' : `, the last time with "${last.kind}: ${last.message}"`;
    const next = remainingMs > 0 ? `It is asked again in ${Math.ceil(remainingMs / 1_000)} s at the earliest.` : 'A probe is under way.';
    return new LLMError({
      kind: 'refused',
      code: 'circuit_open',
      stopReason: 'circuit_breaker',
      retryable: false,
      message: `The request was not sent: the circuit breaker is open, since the provider failed ${times}${why}. ${next}`,
      ...(remainingMs > 0 && { retryAfterMs: remainingMs }),
      ...(cause !== undefined && { cause }),
    });
  }
}
