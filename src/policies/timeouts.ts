/**
 * Timeouts: ends a request whose model sends nothing, stops sending, or takes too long.
 *
 * Owns when a request has waited long enough, for models without timers of their own.
 *
 * 1. No timer per delta: a delta notes the time, and the timer that runs looks at it when it fires.
 * 2. A request settles when its time is up, whether or not the model heeds the signal, and whatever becomes of the clock.
 *    What comes later is swallowed.
 * 3. Once it has settled there is no timer and no listener, and no delta comes through.
 */
import { assertLLM, assertNumbers, assertOptions } from '../core/assert.ts';
import { isLLMError, LLMError, type LLMErrorOptions } from '../core/errors.ts';
import { attemptChat } from '../core/attempt-chat.ts';
import { decorateLLM, type LLM, type LLMRequest, type LLMResponse } from '../core/llm.ts';
import { systemRuntime } from '../core/runtime.ts';
import { startDeadline, type DeadlineLimits, type DeadlinePhase } from './timeouts-deadline.ts';

/** Below the 300 s after which Node's `fetch` gives up by itself. */
const DEFAULT_FIRST_TOKEN_MS = 290_000;
const DEFAULT_BETWEEN_TOKENS_MS = 60_000;

const ARGUMENT = { taker: 'withTimeouts', example: 'withTimeouts(myLLM, { firstTokenMs: 120_000, betweenTokensMs: 30_000 })' };
const OPTIONS: Readonly<Record<keyof TimeoutOptions, true>> = { firstTokenMs: true, betweenTokensMs: true, totalMs: true };
const LIMIT_MS = { least: 1, orInfinity: true };

const TIMED_OUT: Readonly<Record<DeadlinePhase, string>> = {
  first_token: 'sent no token',
  between_tokens: 'went silent in the middle of its answer, and stayed so',
  total: 'did not finish its answer',
};

/** Options of {@link withTimeouts}: limits in milliseconds, at least 1; `Infinity` for none. */
export interface TimeoutOptions {
  /**
   * From the request to the first fragment of the reply; with a model that does not stream, to the whole reply.
   *
   * @defaultValue 290,000: below the 300 s after which Node's `fetch` gives up by itself
   */
  readonly firstTokenMs?: number | undefined;
  /** From one fragment to the next, or to the end of the reply. @defaultValue 60,000 */
  readonly betweenTokensMs?: number | undefined;
  /** For the whole request, also the attempts of a retry inside. @defaultValue `Infinity`: long replies are no failure */
  readonly totalMs?: number | undefined;
}

/**
 * Makes a model whose requests end when it is silent for too long, for models without timers of their own: those of your
 * own, the AI SDK's. Adapters of turnloop have the first two limits as an option; where both are given the shorter wins.
 *
 * A request out of time is aborted and fails with an error of kind `timeout`, which is retried: code `first_token_timeout`,
 * `between_tokens_timeout` or `total_timeout`. What the model reports when it is aborted, tokens and finished parts, is
 * kept if it comes at once.
 *
 * Put it directly around the model. Around `withRetry` the times of each attempt are counted anew, and the waits between
 * attempts do not count, except for `totalMs`.
 *
 * @param llm - The model to ask.
 * @param options - The limits.
 * @throws TypeError without a model, and for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const llm = withRetry(withTimeouts(myLLM, { firstTokenMs: 120_000 }));
 * ```
 */
export function withTimeouts(llm: LLM, options: TimeoutOptions = {}): LLM {
  assertLLM(llm, ARGUMENT);
  assertOptions(options, OPTIONS, ARGUMENT);
  assertNumbers(options, { firstTokenMs: LIMIT_MS, betweenTokensMs: LIMIT_MS, totalMs: LIMIT_MS }, ARGUMENT);
  const limits: DeadlineLimits = {
    first_token: options.firstTokenMs ?? DEFAULT_FIRST_TOKEN_MS,
    between_tokens: options.betweenTokensMs ?? DEFAULT_BETWEEN_TOKENS_MS,
    total: options.totalMs ?? Infinity,
  };
  return decorateLLM(llm, (request) => chatWithin(limits, llm, request));
}

function chatWithin(limits: DeadlineLimits, llm: LLM, request: LLMRequest): Promise<LLMResponse> {
  const runtime = request.scope?.runtime ?? systemRuntime;
  const { signal, onDelta } = request;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const controller = new AbortController();
    let timedOut: DeadlinePhase | undefined;
    let isOpen = true;
    let cancelFarewell = (): void => undefined;

    const finish = (): void => {
      isOpen = false;
      deadline.end();
      cancelFarewell();
      signal.removeEventListener('abort', onAbort);
    };
    const failTimedOut = (phase: DeadlinePhase, lastWords: Partial<LLMErrorOptions> = {}): void => {
      finish();
      const code = `${phase}_timeout`;
      const message = `${llm.provider} ${llm.modelId} ${TIMED_OUT[phase]} within ${limits[phase]} ms.`;
      reject(new LLMError({ kind: 'timeout', code, message, ...lastWords }));
    };
    const onAbort = (): void => {
      deadline.end();
      controller.abort(signal.reason);
    };
    const onTimeout = (phase: DeadlinePhase): void => {
      timedOut = phase;
      // Set before the model is told: what it answers at once still counts, and cancels it.
      cancelFarewell = runtime.setTimer(0, () => {
        failTimedOut(phase);
      });
      controller.abort(new LLMError({ kind: 'timeout', code: `${phase}_timeout`, message: 'The request took too long.' }));
    };

    const deadline = startDeadline({ runtime, limits, onTimeout });
    signal.addEventListener('abort', onAbort, { once: true });
    attemptChat(llm, {
      ...request,
      signal: controller.signal,
      onDelta: (delta) => {
        if (!isOpen || timedOut !== undefined) return;
        deadline.touch();
        onDelta?.(delta);
      },
      onAttemptFailed: async (failed) => {
        if (!isOpen || timedOut !== undefined) throw controller.signal.reason;
        deadline.pause();
        await request.onAttemptFailed?.(failed);
        deadline.restart(failed.delayMs ?? 0);
      },
    }).then(
      (response) => {
        if (!isOpen) return;
        if (timedOut !== undefined) {
          failTimedOut(timedOut, { usage: response.usage });
          return;
        }
        finish();
        resolve(response);
      },
      (thrown: unknown) => {
        if (!isOpen) return;
        if (timedOut !== undefined) {
          failTimedOut(timedOut, lastWordsOf(thrown));
          return;
        }
        finish();
        reject(thrown);
      },
    );
  });
}

/** What a model told when it was aborted that a timeout is to tell too. */
function lastWordsOf(thrown: unknown): Partial<LLMErrorOptions> {
  if (!isLLMError(thrown)) return {};
  const { usage, partial, requestId, provider, modelId } = thrown;
  return { usage, partial, requestId, provider, modelId, cause: thrown };
}
