/**
 * Retry: asks a model again after a failure that may pass.
 *
 * Owns when a request is repeated and after which delay. It wraps the request alone, never a step: no tool runs twice
 * because of it. What a failed attempt streamed is taken back by the loop (`step.retrying`), which `onAttemptFailed`
 * tells of the failure.
 *
 * 1. `onAttemptFailed` is awaited once before each further attempt, and never for the last failure: that is only thrown.
 * 2. With the signal aborted no attempt starts, and a running wait ends at once, without a timer or a listener left.
 * 3. Time and randomness come from the request's runtime.
 * 4. While a decorator further out holds attempts back, as an open circuit breaker does, none starts.
 */
import { type LLMError, toLLMError } from '../core/errors.ts';
import { attemptChat } from '../core/attempt-chat.ts';
import { decorateLLM, isDecoratedBy, type LLM, type LLMRequest, type LLMResponse } from '../core/llm.ts';
import { sleep, systemRuntime } from '../core/runtime.ts';
import { assertLLM, assertOptions } from '../core/assert.ts';
import { heldBack } from './attempt-gate.ts';
import { verdictOn } from './verdict.ts';

/** Nine waits, three minutes in all at most: long enough for an overloaded provider, short enough for a person. */
const DEFAULT_MAX_ATTEMPTS = 10;
const DEFAULT_BASE_DELAY_MS = 500;
const DEFAULT_MAX_DELAY_MS = 32_000;
const DEFAULT_MAX_RETRY_AFTER_MS = 60_000;
/** Spreads clients that failed together. Upwards only: the delay is a promise to the provider. */
const JITTER = 0.25;
/** Largest exponent for which a power of two is finite: a delay of 0 must stay 0 and not become `0 * Infinity`. */
const MAX_EXPONENT = 1_023;

const ARGUMENT = { taker: 'withRetry', example: "withRetry(openAIChat({ model: 'gpt-5-mini' }), { maxAttempts: 5 })" };
const SHOULD_RETRY = { taker: 'withRetry: `shouldRetry`', example: 'withRetry(llm, { shouldRetry: ({ error }) => error.retryable })' };
const OPTIONS: Readonly<Record<keyof RetryOptions, true>> = {
  maxAttempts: true,
  baseDelayMs: true,
  maxDelayMs: true,
  maxRetryAfterMs: true,
  mode: true,
  shouldRetry: true,
};

/** A failed attempt, as `shouldRetry` sees it. */
export interface RetryCandidate {
  /** Why it failed. */
  readonly error: LLMError;
  /** The attempt that failed, 1-based. */
  readonly attempt: number;
  /** Whether anyone had seen a fragment of it: that is taken back if the request is made again. */
  readonly started: boolean;
}

/** How long to wait between attempts. */
export interface RetryDelayOptions {
  /** Wait after the first failure, in milliseconds; doubles with each further one. @defaultValue 500 */
  readonly baseDelayMs?: number | undefined;
  /** Longest wait before jitter, in milliseconds; up to 25 % are added. @defaultValue 32,000 */
  readonly maxDelayMs?: number | undefined;
}

/** Options of {@link withRetry}. */
export interface RetryOptions extends RetryDelayOptions {
  /** Attempts in all, the first included; `Infinity` for no limit. @defaultValue 10, about two to three minutes of waiting */
  readonly maxAttempts?: number | undefined;
  /**
   * Longest wait a server may ask for, in milliseconds; a longer one is cut to it. `Infinity` waits for as long as the
   * server says. @defaultValue 60,000, so that a server that asks for a month does not hang the turn
   */
  readonly maxRetryAfterMs?: number | undefined;
  /**
   * `always` also retries an attempt that had begun to stream: the loop retracts what it showed. `beforeFirstDelta` never
   * does, for hosts that cannot take text back. @defaultValue `'always'`
   */
  readonly mode?: 'always' | 'beforeFirstDelta' | undefined;
  /**
   * Overrides which failures are retried: `true` retries, `false` does not, `undefined` leaves it to `error.retryable`
   * (`rate_limit`, `overloaded`, `server`, `network`, `timeout` and `malformed_response`, unless the adapter says otherwise).
   * Asked once per failure; not asked when there is no attempt left, the signal is aborted, or the mode forbids it. It has
   * to answer at once. A throw, or any other answer (a promise, which would count as true), ends the request with an error of
   * kind `unknown` that has the throw, or a `TypeError`, as its cause, and tells what the failed attempt cost.
   *
   * @defaultValue leaves all to `error.retryable`
   */
  readonly shouldRetry?: ((failed: RetryCandidate) => boolean | undefined) | undefined;
}

/**
 * Makes a model that asks again after a passing failure: rate limits, overload, server and network failures, stalled
 * streams, answers that were not the protocol's.
 *
 * Waits 500 ms, then 1 s, 2 s … up to 32 s, plus up to 25 %; where the server says how long to wait, exactly that, at
 * most 60 s. Each further attempt is a `step.retrying` event. Put it around the adapter and inside of fallbacks and
 * circuit breakers, which then see a failure only once it is final.
 *
 * @param llm - The model to ask.
 * @param options - Attempts, delays, and what to retry.
 * @returns A model that rejects with what the last attempt threw, or with `signal.reason` if aborted while waiting.
 * @throws TypeError without a model, and for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const llm = withRetry(openAIChat({ model: 'gpt-5-mini', apiKey: process.env.OPENAI_API_KEY }), { maxAttempts: 5 });
 * ```
 */
export function withRetry(llm: LLM, options: RetryOptions = {}): LLM {
  assertLLM(llm, ARGUMENT);
  assertOptions(options, OPTIONS, ARGUMENT);
  const maxAttempts = options.maxAttempts ?? DEFAULT_MAX_ATTEMPTS;
  if (maxAttempts !== Infinity) assertWhole('maxAttempts', maxAttempts, 1);
  assertDelay('baseDelayMs', options.baseDelayMs ?? 0);
  assertDelay('maxDelayMs', options.maxDelayMs ?? 0);
  const maxRetryAfterMs = options.maxRetryAfterMs ?? DEFAULT_MAX_RETRY_AFTER_MS;
  if (maxRetryAfterMs !== Infinity) assertDelay('maxRetryAfterMs', maxRetryAfterMs);

  assertMode(options.mode);
  if (options.shouldRetry !== undefined && typeof options.shouldRetry !== 'function') {
    throw new TypeError(`${SHOULD_RETRY.taker} must be a function. For example: ${SHOULD_RETRY.example}.`);
  }

  const isWorthRetrying = (failed: RetryCandidate, signal: AbortSignal): boolean => {
    if (signal.aborted || failed.attempt >= maxAttempts) return false;
    if (failed.started && options.mode === 'beforeFirstDelta') return false;
    return verdictOn(failed.error, () => options.shouldRetry?.(failed), SHOULD_RETRY) ?? failed.error.retryable;
  };

  const retrying = decorateLLM(llm, async (request) => {
    const runtime = request.scope?.runtime ?? systemRuntime;
    const { signal } = request;
    for (let attempt = 1; ; attempt += 1) {
      for (let held = heldBack(request); held !== undefined; held = heldBack(request)) await held;
      const { response, thrown, started } = await tryOnce(llm, request);
      if (response !== undefined) return response;

      const error = toLLMError(thrown);
      // As it was thrown: the loop knows better than we what an abort or a foreign error means.
      if (!isWorthRetrying({ error, attempt, started }, signal)) throw thrown;

      const asked = serverDelayMs(error, maxRetryAfterMs);
      const delayMs = asked ?? retryDelayMs(attempt, runtime.random(), options);
      await request.onAttemptFailed?.({ error, delayMs, ...(maxAttempts !== Infinity && { maxAttempts }) });
      await sleep(delayMs, { runtime, signal });
    }
  });
  retryingLLMs.add(retrying);
  return retrying;
}

const retryingLLMs = new WeakSet<LLM>();

/** Whether a model asks again by itself: two retries around each other would multiply their attempts. */
export function isRetrying(llm: LLM): boolean {
  return isDecoratedBy(llm, (one) => retryingLLMs.has(one));
}

/** Notes that a model asks again by itself, through those that it was made of. */
export function markRetrying(llm: LLM): void {
  retryingLLMs.add(llm);
}

/**
 * How long {@link withRetry} waits after a failed attempt when the server does not say, in whole milliseconds.
 *
 * @param attempt - The attempt that failed, 1-based.
 * @param random - At least 0 and below 1: how much of the jitter is added.
 * @param options - Where the delays start and end.
 */
export function retryDelayMs(attempt: number, random: number, options: RetryDelayOptions = {}): number {
  const base = options.baseDelayMs ?? DEFAULT_BASE_DELAY_MS;
  const doubled = base * 2 ** Math.min(attempt - 1, MAX_EXPONENT);
  const capped = Math.min(doubled, options.maxDelayMs ?? DEFAULT_MAX_DELAY_MS);
  return Math.round(capped * (1 + JITTER * random));
}

/** What the server asked for, at most `maxMs`; undefined for nothing usable. 0 is: it would make ten requests at once. */
export function serverDelayMs(error: LLMError, maxMs: number): number | undefined {
  const asked = error.retryAfterMs;
  if (asked === undefined || Number.isNaN(asked) || asked <= 0) return undefined;
  return Math.min(asked, maxMs);
}

/** What came of one attempt: a response, or what was thrown and whether anything had been streamed before. */
interface Attempt {
  readonly response?: LLMResponse;
  readonly thrown?: unknown;
  readonly started: boolean;
}

async function tryOnce(llm: LLM, request: LLMRequest): Promise<Attempt> {
  const { onDelta } = request;
  let started = false;
  // Without a listener nobody has seen anything, and an adapter need not stream for our sake.
  const observed =
    onDelta === undefined
      ? request
      : {
          ...request,
          onDelta: (delta: Parameters<typeof onDelta>[0]): void => {
            started = true;
            onDelta(delta);
          },
        };
  try {
    return { response: await attemptChat(llm, observed), started };
  } catch (thrown) {
    return { thrown, started };
  }
}

function assertWhole(name: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw new TypeError(
    `withRetry: \`${name}\` must be a whole number of at least ${least}, not ${value}. For example: withRetry(llm, { ${name}: 5 }).`,
  );
}

function assertDelay(name: string, value: number): void {
  if (Number.isFinite(value) && value >= 0) return;
  throw new TypeError(
    `withRetry: \`${name}\` must be a number of milliseconds of at least 0, not ${value}. For example: withRetry(llm, { ${name}: 1000 }).`,
  );
}

function assertMode(mode: unknown): void {
  if (mode === undefined || mode === 'always' || mode === 'beforeFirstDelta') return;
  throw new TypeError("withRetry: `mode` must be 'always' or 'beforeFirstDelta'. For example: withRetry(llm, { mode: 'beforeFirstDelta' }).");
}
