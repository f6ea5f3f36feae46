/**
 * Rate limit: how many requests and tokens a minute go out for whoever shares a key.
 *
 * Owns what a host sees of it, and what of a request counts; who may go when is `rate-limiter.ts`.
 */
import { assertLLM, assertNumbers, assertOptions } from '../core/assert.ts';
import { attemptChat } from '../core/attempt-chat.ts';
import { type LLMError, toLLMError } from '../core/errors.ts';
import { decorateLLM, type FailedAttempt, type LLM } from '../core/llm.ts';
import { assertMembers } from '../context/assert-context.ts';
import { heldBack, pauseAttempt } from './attempt-gate.ts';
import { countedBy, isCountedBy, sentFailure } from './counting.ts';
import { RateLimiter, type RateLimitEstimator, type Ticket } from './rate-limiter.ts';

const ARGUMENT = { taker: 'createRateLimit', example: 'createRateLimit({ requestsPerMinute: 60, tokensPerMinute: 200_000 })' };
const WITH_ARGUMENT = { taker: 'withRateLimit', example: "withRateLimit(openAIChat({ model: 'gpt-5-mini' }), createRateLimit({ requestsPerMinute: 60 }))" };
const OPTIONS: Readonly<Record<keyof RateLimitOptions, true>> = {
  requestsPerMinute: true,
  tokensPerMinute: true,
  maxRetryAfterMs: true,
  estimator: true,
};

/** Options of {@link createRateLimit}. */
export interface RateLimitOptions {
  /** Most requests that start in any 60 seconds, a whole number of at least 1; `Infinity` for any. @defaultValue no limit */
  readonly requestsPerMinute?: number | undefined;
  /**
   * Most tokens of the requests that start in any 60 seconds, prompts and replies together: a whole number of at least 1, or
   * `Infinity` for any. @defaultValue no limit
   */
  readonly tokensPerMinute?: number | undefined;
  /**
   * Longest pause a server may ask for, in milliseconds; a longer one is cut to it.
   *
   * @defaultValue 60,000, the same as that of `withRetry`
   */
  readonly maxRetryAfterMs?: number | undefined;
  /** Says what a prompt will have, and learns from what it had. @defaultValue an estimator of its own */
  readonly estimator?: RateLimitEstimator | undefined;
}

/**
 * A rate that models share, whoever uses them, in the order in which their requests came.
 *
 * Time is that of the requests (`request.scope.runtime`), which have to share a clock.
 */
export interface RateLimit {
  /** How many requests wait now. */
  readonly waiting: number;
}

const limiters = new WeakMap<RateLimit, RateLimiter>();

/**
 * Makes a rate limit to share among models, agents and turns on one key, for {@link withRateLimit}.
 *
 * Requests are counted in a window that slides: never are there more in any 60 seconds, and a burst may use them all at
 * once. A request counts from its start with the estimate of its prompt and about what the last replies had, and with its real
 * tokens as soon as they are known. So tokens go over by what is under-estimated, and no further. A request larger than
 * `tokensPerMinute` waits for a minute of its own.
 *
 * Without limits it only keeps the pauses that the server asks for.
 *
 * @param options - The limits of the key.
 * @throws TypeError for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const limit = createRateLimit({ requestsPerMinute: 60, tokensPerMinute: 200_000 });
 * const llm = withRetry(withRateLimit(openAIChat({ model: 'gpt-5-mini' }), limit));
 * ```
 */
export function createRateLimit(options: RateLimitOptions = {}): RateLimit {
  assertOptions(options, OPTIONS, ARGUMENT);
  if (options.estimator !== undefined) {
    assertMembers(options.estimator, ['estimateRequest', 'observe'], { option: 'estimator', taker: 'createRateLimit', example: 'createRateLimit({ tokensPerMinute: 200_000, estimator: createTokenEstimator() })' });
  }
  const perMinute = { least: 1, whole: true, orInfinity: true };
  assertNumbers(options, { requestsPerMinute: perMinute, tokensPerMinute: perMinute, maxRetryAfterMs: { least: 0, orInfinity: true } }, ARGUMENT);
  const limiter = new RateLimiter(options);
  const limit: RateLimit = {
    get waiting() {
      return limiter.waiting;
    },
  };
  limiters.set(limit, limiter);
  return limit;
}

/**
 * Makes a model whose requests keep to a rate.
 *
 * Put it directly around the adapter, inside of `withRetry`: then each attempt counts, and a failed one goes to the end of the
 * line. Outside of it each attempt that it tells of counts as well, and waits before the retry's own wait. Timeouts belong
 * inside, or they run while a request waits.
 *
 * A failure of kind `rate_limit` with a `retryAfterMs` pauses the whole limit for as long: others on the key would be refused too.
 * A request that something inside did not send (`refused`) counts nothing.
 *
 * Notice: `rateLimit.waiting {delayMs, ahead}` when a request has to wait, `delayMs` at least and behind `ahead` others.
 *
 * @param llm - The model to ask.
 * @param limit - From {@link createRateLimit}; may be shared by any number of models, turns and agents.
 * @returns A model that rejects with `signal.reason` if aborted while waiting.
 * @throws TypeError without a model or a limit.
 *
 * @example
 * ```ts
 * const limit = createRateLimit({ requestsPerMinute: 60 });
 * const agents = [withRateLimit(large, limit), withRateLimit(small, limit)];
 * ```
 */
export function withRateLimit(llm: LLM, limit: RateLimit): LLM {
  assertLLM(llm, WITH_ARGUMENT);
  const limiter = limiters.get(limit);
  if (limiter === undefined) throw new TypeError(`withRateLimit needs a limit from createRateLimit. For example: ${WITH_ARGUMENT.example}.`);
  return decorateLLM(llm, async (request) => {
    if (isCountedBy(request, limiter)) return llm.chat(request);
    // Once: two who give back what they were just given, each for the other, would go on for ever.
    pauseAttempt(request);
    const enter = (): Promise<Ticket> => limiter.enter(request, llm);
    let ticket: Ticket | undefined;
    /** Says once of each attempt how it ended. */
    const settle = (tell: (sent: Ticket) => void): void => {
      if (ticket !== undefined) tell(ticket);
      ticket = undefined;
    };
    const fail = (error: LLMError): void => {
      settle((sent) => {
        const failure = sentFailure(error);
        if (failure === undefined) limiter.unsent(sent);
        else limiter.failed(sent, failure);
      });
    };
    const waitAgain = async (failed: FailedAttempt): Promise<void> => {
      fail(failed.error);
      await request.onAttemptFailed?.(failed);
      ticket = await enter();
    };
    const onAttemptFailed = (failed: FailedAttempt): Promise<void> => {
      const again = waitAgain(failed);
      // Whoever does not wait for it leaves no unhandled rejection.
      again.catch(() => undefined);
      return again;
    };
    try {
      ticket = await enter();
      for (let held = heldBack(request); held !== undefined; held = heldBack(request)) {
        settle((unsent) => {
          limiter.unsent(unsent);
        });
        await held;
        ticket = await enter();
      }
      const response = await attemptChat(llm, countedBy({ ...request, onAttemptFailed }, limiter));
      settle((sent) => {
        limiter.answered(sent, response);
      });
      return response;
    } catch (thrown) {
      fail(toLLMError(thrown));
      throw thrown;
    }
  });
}
