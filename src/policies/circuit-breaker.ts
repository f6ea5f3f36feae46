/**
 * Circuit breaker: stops asking a provider that keeps failing, for all turns that share it, and finds out with one
 * request whether it is back.
 *
 * Owns what a request does about the breaker: wait, probe, or end. Who may send when is in `circuit-breaker-state.ts`.
 *
 * 1. No request is sent while the breaker is open, not even one that was let in before and waits inside: for its next
 *    attempt, or for its place.
 * 2. A wait ends at once when its signal aborts, and a probe that is aborted goes to the next in line at once, whether
 *    or not the model heeds the signal.
 * 3. A request waits at most once because of a failure of its own: a provider that flaps holds no turn for ever.
 * 4. A request that stands under the same breaker twice is counted and held back once, by the outer one.
 */
import { assertLLM, assertNumbers, assertOptions } from '../core/assert.ts';
import { changeLLMError, toLLMError, type LLMErrorKind } from '../core/errors.ts';
import { attemptChat } from '../core/attempt-chat.ts';
import { decorateLLM, type LLM } from '../core/llm.ts';
import { sleep } from '../core/runtime.ts';
import { gateAttempts, heldBack } from './attempt-gate.ts';
import { assertSnapshot, type CircuitBreakerSnapshot } from './circuit-breaker-snapshot.ts';
import { BreakerState } from './circuit-breaker-state.ts';
import { Visit, type VisitedBreaker } from './circuit-breaker-visit.ts';
import { countedBy, isCountedBy } from './counting.ts';
import { assertKinds, PASSING_KINDS } from './error-kinds.ts';
import { serverDelayMs } from './retry.ts';

/** After retries that is some fifteen minutes of failures of one turn, or one minute of five turns. */
const DEFAULT_FAILURES = 5;
const DEFAULT_OPEN_MS = 60_000;

const BREAKER = { taker: 'createCircuitBreaker', example: "createCircuitBreaker({ failures: 5, openMs: 60_000, mode: 'wait' })" };
const ARGUMENT = { taker: 'withCircuitBreaker', example: "withCircuitBreaker(openAIChat({ model: 'gpt-5-mini' }), createCircuitBreaker())" };
const OPTIONS: Readonly<Record<keyof CircuitBreakerOptions, true>> = {
  failures: true,
  openMs: true,
  mode: true,
  kinds: true,
  snapshot: true,
};

/** Options of {@link createCircuitBreaker}. */
export interface CircuitBreakerOptions {
  /** Failures in a row that open it, a whole number of at least 1. A reply begins the count anew. @defaultValue 5 */
  readonly failures?: number | undefined;
  /** How long it stays open, in milliseconds, at least 1. @defaultValue 60,000 */
  readonly openMs?: number | undefined;
  /**
   * What happens to requests meanwhile. `wait`: they pause until the provider is back; if it is not, they end.
   * `fail`: they end at once, so that a fallback around the breaker takes over.
   *
   * @defaultValue `'wait'`
   */
  readonly mode?: 'wait' | 'fail' | undefined;
  /**
   * Kinds of failures that count. All others say that the provider answers, or nothing about it: they neither count
   * nor begin the count anew, and a probe that ends so goes to the next in line. `refused` and `aborted` cannot count:
   * no provider failed.
   *
   * @defaultValue the passing ones: `rate_limit`, `overloaded`, `server`, `network`, `timeout`, `malformed_response`
   */
  readonly kinds?: readonly LLMErrorKind[] | undefined;
  /** Where an earlier breaker was; see {@link CircuitBreaker.snapshot}. @defaultValue closed, no failures */
  readonly snapshot?: CircuitBreakerSnapshot | undefined;
}

/** What is known of a provider's health; shared by all models and turns that ask it. Made by {@link createCircuitBreaker}. */
export interface CircuitBreaker {
  /**
   * `closed`: requests are sent. `open`: none is. `half_open`: the probe is under way. Changes with requests, not with
   * the clock: it is `open` until one comes after the open time.
   */
  readonly state: 'closed' | 'open' | 'half_open';
  /** Failures in a row so far. */
  readonly failures: number;
  /** Until when no request is sent, in milliseconds since the epoch; undefined while closed. */
  readonly openUntil: number | undefined;
  /** Plain JSON that brings it back in another process: `createCircuitBreaker({ snapshot })`. */
  snapshot(): CircuitBreakerSnapshot;
}

/** What stands behind a breaker; not to be reached from outside. */
interface Internals extends VisitedBreaker {
  readonly kinds: ReadonlySet<LLMErrorKind>;
  readonly openMs: number;
}

const internals = new WeakMap<CircuitBreaker, Internals>();

/**
 * Makes a breaker to share among models of one provider, agents and turns.
 *
 * @param options - When it opens, for how long, and what requests do meanwhile.
 * @throws TypeError for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const breaker = createCircuitBreaker({ openMs: 30_000 });
 * const large = withCircuitBreaker(withRetry(openAIChat({ model: 'gpt-5' })), breaker);
 * const small = withCircuitBreaker(withRetry(openAIChat({ model: 'gpt-5-mini' })), breaker);
 * ```
 */
export function createCircuitBreaker(options: CircuitBreakerOptions = {}): CircuitBreaker {
  assertOptions(options, OPTIONS, BREAKER);
  assertNumbers(options, { failures: { least: 1, whole: true }, openMs: { least: 1 } }, BREAKER);
  const { failures = DEFAULT_FAILURES, openMs = DEFAULT_OPEN_MS, mode = 'wait', kinds = PASSING_KINDS, snapshot } = options;
  assertMode(mode);
  assertCounted(kinds);
  assertSnapshot(snapshot);

  const state = new BreakerState({ failures, openMs }, snapshot);
  const breaker: CircuitBreaker = {
    get state() {
      return state.name;
    },
    get failures() {
      return state.failures;
    },
    get openUntil() {
      return state.openUntil;
    },
    snapshot: () => state.snapshot(),
  };
  internals.set(breaker, { state, mode, kinds: new Set(kinds), openMs });
  return breaker;
}

/**
 * Makes a model that is not asked while its provider keeps failing. Put it around `withRetry`: then it counts requests
 * that failed for good.
 *
 * Five failures in a row open the breaker for a minute. In mode `wait` the request that failed last, and each that comes
 * meanwhile, pauses; then one of them is sent as a probe, retries inside included, and the others wait for its outcome.
 * If it succeeds, all go on. If it fails, the breaker opens again and their turns end `circuit_breaker`: the probe's
 * with the provider's error, the others' with one of kind `refused` and code `circuit_open` that quotes it. In mode
 * `fail` requests end so at once. Neither is retryable; `retryAfterMs` says how long it stays open.
 *
 * - Requests under way when it opens go on. What comes of them changes nothing any more: only a probe closes it. One
 *   that fails then, or whose retry is held back, pauses like the others (or ends, in mode `fail`).
 * - A request pauses once for a failure of its own, and no shorter than the server asked, up to `openMs`. What it had
 *   streamed is taken back; hosts that cannot do that use mode `fail`.
 * - A probe that hangs holds up all who wait for it: put `withTimeouts` inside, unless the adapter has timeouts.
 * - What waits inside of it for a retry, a place of a limit or a rate is not sent either. A decorator of your own that
 *   waits before it sends should stand outside.
 * - The same breaker twice on one path counts once: the outermost decides, by what came of the whole request.
 *
 * Notices: `circuitBreaker.opened` `{failures, kind, remainingMs}`, `circuitBreaker.waiting` `{remainingMs}` (0 while a
 * probe is under way), `circuitBreaker.probing` `{failures}`, `circuitBreaker.closed` `{failures}`: how many it had been.
 *
 * @param llm - The model to ask.
 * @param breaker - Shared by all that ask the same provider. @defaultValue one of its own
 * @throws TypeError without a model, or for a breaker that `createCircuitBreaker` did not make.
 *
 * @example
 * ```ts
 * const llm = withCircuitBreaker(withRetry(openAIChat({ model: 'gpt-5-mini' })), createCircuitBreaker({ mode: 'fail' }));
 * ```
 */
export function withCircuitBreaker(llm: LLM, breaker: CircuitBreaker = createCircuitBreaker()): LLM {
  assertLLM(llm, ARGUMENT);
  const found = internals.get(breaker);
  if (found === undefined) throw new TypeError(`withCircuitBreaker needs a breaker that createCircuitBreaker made. For example: ${ARGUMENT.example}.`);
  const { state, mode, kinds, openMs } = found;

  return decorateLLM(llm, async (request) => {
    // It would wait for the probe that it holds itself.
    if (isCountedBy(request, state)) return llm.chat(request);
    const { signal } = request;
    const visit = new Visit(found, request);
    const gated = countedBy(gateAttempts(request, () => visit.gate()), state);
    try {
      for (let hasFailed = false; ; hasFailed = true) {
        for (let held = heldBack(gated); held !== undefined; held = heldBack(gated)) await held;
        try {
          const response = await attemptChat(llm, gated);
          // An aborted request counts as nothing, whatever comes of it.
          if (!signal.aborted) visit.succeeded();
          return response;
        } catch (thrown) {
          const error = toLLMError(thrown);
          if (signal.aborted || !kinds.has(error.kind)) throw thrown;

          const { isProbe } = visit;
          visit.failed(error);
          if (state.name === 'closed') throw thrown;
          const { remainingMs } = visit;
          if (mode === 'fail' || isProbe || hasFailed) {
            const retryAfterMs = Math.max(remainingMs, serverDelayMs(error, Infinity) ?? 0);
            throw changeLLMError(error, { stopReason: 'circuit_breaker', retryable: false, retryAfterMs });
          }
          // The breaker may have been open for a while, and the provider want more than what is left of it.
          const delayMs = Math.max(remainingMs, serverDelayMs(error, openMs) ?? 0);
          await request.onAttemptFailed?.({ error, delayMs });
          if (delayMs > remainingMs) await sleep(delayMs, { runtime: visit.runtime, signal });
        }
      }
    } finally {
      visit.end();
    }
  });
}

function assertMode(mode: unknown): void {
  if (mode === 'wait' || mode === 'fail') return;
  throw new TypeError("createCircuitBreaker: `mode` must be 'wait' or 'fail'. For example: createCircuitBreaker({ mode: 'fail' }).");
}

function assertCounted(kinds: readonly LLMErrorKind[]): void {
  const example = "createCircuitBreaker({ kinds: ['overloaded', 'server'] })";
  assertKinds(kinds, { taker: 'createCircuitBreaker: `kinds`', example });
  const never = kinds.find((kind) => kind === 'refused' || kind === 'aborted');
  if (never === undefined) return;
  throw new TypeError(`createCircuitBreaker: \`kinds\` has "${never}", which is no failure of a provider. For example: ${example}.`);
}
