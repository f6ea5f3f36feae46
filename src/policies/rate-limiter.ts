/**
 * Rate limiter: who may send a request when, for all who share a limit.
 *
 * - RL1 In no minute do more requests start than the limit. Whenever one starts, the tokens of those that started in the
 *   minute before, as far as they are known, and its own estimate come to the limit at most; a request larger than the limit
 *   starts when they come to nothing.
 * - RL2 First come, first served; whoever is aborted while waiting holds up nobody.
 * - RL3 While the server wants a pause, nobody starts.
 * - RL4 One timer at most, that of the first in line; none while nobody waits.
 */
import type { LLMError } from '../core/errors.ts';
import type { LLM, LLMRequest, LLMResponse } from '../core/llm.ts';
import { systemRuntime, type Runtime } from '../core/runtime.ts';
import { totalTokens } from '../core/usage.ts';
import { createTokenEstimator, type TokenEstimator } from '../context/token-estimator.ts';
import { isReplyOf, toldUsage } from './counting.ts';
import { SlidingWindow, type WindowEntry } from './sliding-window.ts';
import { WaitingLine } from './waiting-line.ts';

/** As `withRetry` has it. */
const DEFAULT_MAX_RETRY_AFTER_MS = 60_000;
/** Shorter waits are nothing that a person sees. */
const NOTICEABLE_MS = 100;
/** How much what a reply had counts for what the next one is expected to have. */
const OUTPUT_WEIGHT = 0.2;

/** What a rate limit asks of an estimator. Every {@link context.TokenEstimator | TokenEstimator} has it. */
export type RateLimitEstimator = Pick<TokenEstimator, 'estimateRequest' | 'observe'>;

/** What may be said of the rate. */
export interface Rates {
  readonly requestsPerMinute?: number | undefined;
  readonly tokensPerMinute?: number | undefined;
  readonly maxRetryAfterMs?: number | undefined;
  readonly estimator?: RateLimitEstimator | undefined;
}

/** Whoever wants to send a request. */
interface Applicant {
  readonly request: LLMRequest;
  readonly llm: LLM;
  readonly runtime: Runtime;
  /** What the request will have, by the estimate. */
  readonly tokens: number;
}

/** A request that was let go, and what it took of the minute. */
export interface Ticket extends Applicant {
  readonly requestEntry: WindowEntry;
  readonly tokenEntry: WindowEntry;
}

/** The gate for all who share a limit. */
export class RateLimiter {
  readonly #requests: SlidingWindow;
  readonly #tokens: SlidingWindow;
  readonly #maxPauseMs: number;
  readonly #estimator: RateLimitEstimator;
  readonly #line = new WaitingLine<Applicant, Ticket>(() => {
    this.#serve();
  });
  /** What the last replies had, on average. */
  #expectedOutput = 0;
  #pausedUntil = -Infinity;
  #cancelTimer = (): void => undefined;

  constructor(rates: Rates) {
    this.#requests = new SlidingWindow(rates.requestsPerMinute ?? Infinity);
    this.#tokens = new SlidingWindow(rates.tokensPerMinute ?? Infinity);
    this.#maxPauseMs = rates.maxRetryAfterMs ?? DEFAULT_MAX_RETRY_AFTER_MS;
    this.#estimator = rates.estimator ?? createTokenEstimator();
  }

  /** How many wait. */
  get waiting(): number {
    return this.#line.size;
  }

  /** Waits until a request may start. Rejects with `signal.reason` if it is aborted before. */
  enter(request: LLMRequest, llm: LLM): Promise<Ticket> {
    const runtime = request.scope?.runtime ?? systemRuntime;
    const tokens = Math.ceil(this.#estimator.estimateRequest(request, llm) + this.#expectedOutput);
    const ahead = this.#line.size;
    const ticket = this.#line.join({ request, llm, runtime, tokens }, request.signal);
    this.#serve();
    const { first } = this.#line;
    // Whoever joined is the last: a line that is not empty ends with it.
    if (first !== undefined && !request.signal.aborted) {
      const delayMs = this.#delayFor(first, runtime.now());
      if (delayMs >= NOTICEABLE_MS || ahead > 0) request.scope?.notify({ name: 'rateLimit.waiting', data: { delayMs, ahead } });
    }
    return ticket;
  }

  /** A request was answered: what it had is known. */
  answered({ request, llm, tokenEntry }: Ticket, response: LLMResponse): void {
    const usage = toldUsage(response);
    // A server that does not count told nothing: the estimate stands.
    if (usage !== undefined) {
      this.#tokens.correct(tokenEntry, totalTokens(usage));
      this.#expectedOutput += OUTPUT_WEIGHT * (usage.outputTokens - this.#expectedOutput);
      if (isReplyOf(response, llm)) this.#estimator.observe(request, llm, totalTokens(usage) - usage.outputTokens);
    }
    this.#serve();
  }

  /** A request was not sent after all. */
  unsent({ requestEntry, tokenEntry }: Ticket): void {
    this.#requests.correct(requestEntry, 0);
    this.#tokens.correct(tokenEntry, 0);
    this.#serve();
  }

  /** A request failed. */
  failed(ticket: Ticket, error: LLMError): void {
    const { kind, retryAfterMs = 0 } = error;
    const { tokenEntry, runtime } = ticket;
    const usage = toldUsage(error);
    if (usage !== undefined) this.#tokens.correct(tokenEntry, totalTokens(usage));
    if (kind === 'rate_limit' && retryAfterMs > 0) {
      this.#pausedUntil = Math.max(this.#pausedUntil, runtime.now() + Math.min(retryAfterMs, this.#maxPauseMs));
    }
    this.#serve();
  }

  /** Lets everybody go whose turn it is, and has itself called when the next one's comes. */
  #serve(): void {
    this.#cancelTimer();
    for (let { first } = this.#line; first !== undefined; { first } = this.#line) {
      const now = first.runtime.now();
      const delayMs = this.#delayFor(first, now);
      if (delayMs > 0) {
        this.#cancelTimer = first.runtime.setTimer(delayMs, () => {
          this.#serve();
        });
        return;
      }
      const { tokens } = first;
      this.#line.letFirstGo({ ...first, requestEntry: this.#requests.take(1, now), tokenEntry: this.#tokens.take(tokens, now) });
    }
  }

  /** How long until a request may start, if nothing else did. */
  #delayFor({ tokens }: Applicant, now: number): number {
    // A system clock may be set back: a pause is no longer for that.
    this.#pausedUntil = Math.min(this.#pausedUntil, now + this.#maxPauseMs);
    return Math.max(0, this.#pausedUntil - now, this.#requests.delayFor(1, now), this.#tokens.delayFor(tokens, now));
  }
}
