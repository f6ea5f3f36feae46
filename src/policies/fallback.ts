/**
 * Fallback: asks another model when one fails.
 *
 * Owns which failures move a request on, and that whatever a model costs or says is known as its own.
 *
 * 1. `onAttemptFailed` is awaited once before each further model, and never for the last failure: that is only thrown.
 * 2. Each failure names the model that failed, each reply the one that gave it.
 * 3. With the signal aborted no further model is asked.
 */
import { assertLLM, assertOptions } from '../core/assert.ts';
import { changeLLMError, isLLMError, toLLMError, type LLMError, type LLMErrorKind } from '../core/errors.ts';
import { attemptChat } from '../core/attempt-chat.ts';
import type { LLM, LLMCapabilities, LLMRequest, LLMResponse } from '../core/llm.ts';
import { heldBack } from './attempt-gate.ts';
import { assertKinds, PASSING_KINDS } from './error-kinds.ts';
import { isRetrying, markRetrying } from './retry.ts';
import { verdictOn } from './verdict.ts';

const ARGUMENT = { taker: 'withFallback', example: "withFallback([openAIChat({ model: 'gpt-5' }), anthropic({ model: 'claude-sonnet-4-5' })])" };
const ON = { taker: 'withFallback: `on`', example: "withFallback(llms, { on: (error) => (error.kind === 'quota' ? true : undefined) })" };
const OPTIONS: Readonly<Record<keyof FallbackOptions, true>> = { on: true, mode: true };

/** Options of {@link withFallback}. */
export interface FallbackOptions {
  /**
   * Which failures move on to the next model: a list of kinds, or a function for which `undefined` means the default. What
   * a circuit breaker ends moves on with any list. The function has to answer at once: a throw, or any other answer (a
   * promise, which would count as true), ends the request with an error of kind `unknown` that has the throw, or a
   * `TypeError`, as its cause, and tells what the failed model cost.
   *
   * @defaultValue the passing kinds: `rate_limit`, `overloaded`, `server`, `network`, `timeout`, `malformed_response`;
   * and what a circuit breaker refuses, but not what a budget does
   */
  readonly on?: readonly LLMErrorKind[] | ((error: LLMError) => boolean | undefined) | undefined;
  /**
   * `always` also moves on from a reply that had begun to stream: the loop retracts what it showed. `beforeFirstDelta`
   * never does, for hosts that cannot take text back.
   *
   * @defaultValue `'always'`
   */
  readonly mode?: 'always' | 'beforeFirstDelta' | undefined;
}

/**
 * Makes a model of several: the first is asked, and when it fails the next, in order, for each request anew. Put each
 * model's own `withRetry` and `withCircuitBreaker` (mode `fail`) inside: then a failure is final when it moves on.
 *
 * - Name, provider and system prompt are the first's, and so are the media types: adapters write a note for media that
 *   their model does not take. Of windows and output limits the smallest known of all counts, since a history that has
 *   to fit any of them must fit the smallest.
 * - A model with a system prompt of its own is sent that, unless the request's is not the first model's own.
 * - Tokens count under the model that spent them, also those of its failed attempts, and a reply names who gave it.
 * - What is kept of a reply that broke off is kept under the name of the model that wrote it, signatures included.
 *
 * Notice: `fallback.moved` `{from, to, kind}`, where `from` and `to` are `{provider, modelId}`.
 *
 * @param llms - At least one, in the order in which they are asked.
 * @param options - Which failures move on.
 * @returns A model that rejects with what the last one asked has thrown.
 * @throws TypeError without models, and for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const llm = withFallback([withRetry(anthropic({ model: 'claude-sonnet-4-5' })), withRetry(openAIChat({ model: 'gpt-5' }))]);
 * ```
 */
export function withFallback(llms: readonly LLM[], options: FallbackOptions = {}): LLM {
  const [first, ...others] = assertLLMs(llms);
  assertOptions(options, OPTIONS, ARGUMENT);
  assertMode(options.mode);
  const movesOn = moveRule(options.on);

  const fallback: LLM = {
    get provider() {
      return first.provider;
    },
    get modelId() {
      return first.modelId;
    },
    get systemPrompt() {
      return first.systemPrompt;
    },
    get capabilities() {
      return smallest(first, others);
    },
    chat: async (request) => {
      const { signal } = request;
      const left = [...others];
      for (let current = first; ; ) {
        for (let held = heldBack(request); held !== undefined; held = heldBack(request)) await held;
        signal.throwIfAborted();
        const { response, thrown, started } = await ask(current, { request, first });
        if (response !== undefined) return response;

        const next = left.shift();
        if (next === undefined || signal.aborted || (started && options.mode === 'beforeFirstDelta')) throw thrown;
        const error = signed(thrown, current);
        if (!movesOn(error)) throw thrown;
        await request.onAttemptFailed?.({ error, nextModelId: next.modelId });
        signal.throwIfAborted();
        request.scope?.notify({ name: 'fallback.moved', data: { from: nameOf(current), to: nameOf(next), kind: error.kind } });
        current = next;
      }
    },
  };
  if (llms.some(isRetrying)) markRetrying(fallback);
  return fallback;
}

/** A request, and the model that it was made for. */
interface Asked {
  readonly request: LLMRequest;
  readonly first: LLM;
}

/** What came of one model: its reply, or what was thrown and whether anything had been streamed before. */
interface Answer {
  readonly response?: LLMResponse;
  readonly thrown?: unknown;
  readonly started: boolean;
}

async function ask(llm: LLM, { request, first }: Asked): Promise<Answer> {
  const { onDelta, onAttemptFailed, systemPrompt } = request;
  let started = false;
  const isOwnPrompt = llm === first || llm.systemPrompt === '' || systemPrompt !== first.systemPrompt;
  const own: LLMRequest = {
    ...request,
    systemPrompt: isOwnPrompt ? systemPrompt : llm.systemPrompt,
    // Left out where nobody listens: an adapter need not stream for our sake.
    ...(onDelta !== undefined && {
      onDelta: (delta) => {
        started = true;
        onDelta(delta);
      },
    }),
    ...(onAttemptFailed !== undefined && {
      onAttemptFailed: (failed) => onAttemptFailed({ ...failed, error: signed(failed.error, llm) }),
    }),
  };
  try {
    const response = await attemptChat(llm, own);
    const { provider = llm.provider, modelId = llm.modelId } = response;
    return { response: { ...response, provider, modelId }, started };
  } catch (thrown) {
    return { thrown: isLLMError(thrown) ? signed(thrown, llm) : thrown, started };
  }
}

/** The failure, with the names of the model that failed. Those that a fallback inside gave stand. */
function signed(failure: unknown, llm: LLM): LLMError {
  const error = toLLMError(failure);
  const { provider = llm.provider, modelId = llm.modelId } = error;
  return changeLLMError(error, { provider, modelId });
}

function nameOf({ provider, modelId }: LLM): { readonly provider: string; readonly modelId: string } {
  return { provider, modelId };
}

/** The first model's abilities, within what all models that are known have room for. */
function smallest(first: LLM, others: readonly LLM[]): LLMCapabilities | undefined {
  const known = [first, ...others].flatMap(({ capabilities }) => (capabilities === undefined ? [] : [capabilities]));
  if (known.length === 0) return undefined;
  const least = (of: 'contextWindow' | 'maxInputTokens' | 'maxOutputTokens'): LLMCapabilities => {
    const limits = known.flatMap((capabilities) => capabilities[of] ?? []);
    return limits.length === 0 ? {} : { [of]: Math.min(...limits) };
  };
  // What every one of them takes, or nothing.
  const structuredOutput = [first, ...others].every(({ capabilities }) => capabilities?.structuredOutput === true);
  const limits = { ...least('contextWindow'), ...least('maxInputTokens'), ...least('maxOutputTokens') };
  return { ...first.capabilities, ...limits, ...(first.capabilities?.structuredOutput !== undefined && { structuredOutput }) };
}

/** Whether a failure moves on. */
function moveRule(on: FallbackOptions['on'] = PASSING_KINDS): (error: LLMError) => boolean {
  if (typeof on === 'function') return (error) => verdictOn(error, () => on(error), ON) ?? isOneOf(PASSING_KINDS, error);
  assertKinds(on, { taker: 'withFallback: `on`', example: "withFallback(llms, { on: ['overloaded', 'quota'] })" });
  const kinds = [...on];
  return (error) => isOneOf(kinds, error);
}

function isOneOf(kinds: readonly LLMErrorKind[], error: LLMError): boolean {
  return error.stopReason === 'circuit_breaker' || kinds.includes(error.kind);
}

function assertLLMs(llms: readonly LLM[]): readonly [LLM, ...LLM[]] {
  const given: unknown = llms;
  const [first, ...others] = Array.isArray(given) ? llms : [];
  if (first === undefined) throw new TypeError(`withFallback needs a list of models, the first one first. For example: ${ARGUMENT.example}.`);
  for (const llm of [first, ...others]) assertLLM(llm, ARGUMENT);
  return [first, ...others];
}

function assertMode(mode: unknown): void {
  if (mode === undefined || mode === 'always' || mode === 'beforeFirstDelta') return;
  throw new TypeError("withFallback: `mode` must be 'always' or 'beforeFirstDelta'. For example: withFallback(llms, { mode: 'beforeFirstDelta' }).");
}
