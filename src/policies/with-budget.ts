/**
 * With budget: keeps the books of a budget around a model. Refuses a request that does not fit, counts one that was sent.
 *
 * - WB1 A request is refused before it is sent, never after: what was sent is counted, however it ended.
 * - WB2 What a provider told is what counts. Where it told nothing, the estimate does: a reply without a count, a request
 *   that was cut off. Never both.
 * - WB3 A request that stands under the same budget twice is counted once.
 * - WB4 Each attempt that something further inside makes is counted, and has to fit, like the first.
 * - WB5 The budget sets something aside only for a request that is really under way: it is taken in the same breath in which
 *   the request is sent, and given back while it waits inside. So whoever waits for the budget waits for models alone.
 */
import { assertLLM } from '../core/assert.ts';
import { attemptChat } from '../core/attempt-chat.ts';
import { changeLLMError, isLLMError, LLMError, toLLMError } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import { decorateLLM, type FailedAttempt, type LLM, type LLMRequest, type LLMResponse, type ReplyPart } from '../core/llm.ts';
import { NO_USAGE, totalTokens, type Usage } from '../core/usage.ts';
import { budgetParts, DEFAULT_OUTPUT_RESERVE, type Budget, type BudgetParts } from './budget.ts';
import type { Amount, Reservation } from './budget-ledger.ts';
import { type AttemptToll, heldBack, tollAttempts } from './attempt-gate.ts';
import { countedBy, isCountedBy, isReplyOf, sentFailure, toldUsage } from './counting.ts';
import { highestInputCost, outputCost, type Prices } from './prices.ts';

const ARGUMENT = { taker: 'withBudget', example: "withBudget(openAIChat({ model: 'gpt-5-mini' }), createBudget({ maxTokens: 500_000 }))" };

/**
 * Makes a model whose requests are paid for out of a budget.
 *
 * A request is refused before it is sent if its prompt, by the estimate, does not fit into what is left: `LLMError` of kind
 * `refused`, code `max_budget`, which ends the turn `max_budget`. So a budget is exceeded by the output of one request at
 * most, also where several turns share it: the replies of requests under way are set aside (`outputReserve`), and a
 * request that would fit without them waits until they have ended. This holds as far as the estimates do: each request that
 * is under way at the end may cost what its prompt was under-estimated by on top.
 *
 * What counts is what the provider tells, with replies and with failures. Where it tells nothing, the estimate counts: for a
 * reply without a count, and for a request that was cut off after it had begun to stream, was aborted, or timed out. A request
 * that a server refused counts nothing.
 *
 * With `maxCost` the prompt is estimated at the dearest rate it may have (nothing of it read from a cache). A model without a
 * price is refused with code `no_price`, which ends the turn `fatal_error`, unless `unpriced` is `'free'`. A reply of a
 * model without a price costs what the model that was asked costs: servers answer with names of their own.
 *
 * Put it around the adapter, inside of `withRetry` and `withFallback`: then each attempt is checked, and each model pays its
 * own price. Outside of them it still counts and checks each attempt that they tell of, but estimates a fallback's as the
 * first model's. Share it in one order of decorators, and do not ask another model under the same budget from within a
 * request: that one would wait for its own outer request.
 *
 * Notices: `budget.spent {modelId, requestTokens, tokens, cost?, remainingTokens?, remainingCost?}` after each request that
 * cost something, `budget.refused {modelId, estimatedTokens, message, tokens, cost?, remainingTokens?, remainingCost?}`, and
 * `budget.waiting {modelId, estimatedTokens, underWay}` when a request waits for others.
 *
 * @param llm - The model to ask.
 * @param budget - From {@link createBudget}; may be shared by any number of models, turns and agents.
 * @throws TypeError without a model or a budget.
 *
 * @example
 * ```ts
 * const budget = createBudget({ maxTokens: 500_000 });
 * const llm = withRetry(withBudget(openAIChat({ model: 'gpt-5-mini' }), budget));
 * ```
 */
export function withBudget(llm: LLM, budget: Budget): LLM {
  assertLLM(llm, ARGUMENT);
  const parts = budgetParts(budget, 'withBudget');
  return decorateLLM(llm, async (request) => {
    if (isCountedBy(request, parts.ledger)) return llm.chat(request);
    return new PaidRequest(parts, llm, request).send();
  });
}

/**
 * Where the attempt of a request is. `waiting`: nothing of it was sent, or everything that was is counted. `sent`: it has
 * what it needs of the budget, and is under way.
 */
type AttemptState = 'waiting' | 'sent';

/** One request, and all attempts of it. */
class PaidRequest implements AttemptToll {
  readonly #parts: BudgetParts;
  readonly #llm: LLM;
  readonly #request: LLMRequest;
  readonly #reservation: Reservation;
  /** What the attempt under way has streamed. */
  #streamed = '';
  #state: AttemptState = 'waiting';
  #isOver = false;

  constructor(parts: BudgetParts, llm: LLM, request: LLMRequest) {
    parts.ledger.wasAsked = true;
    this.#parts = parts;
    this.#llm = llm;
    this.#request = request;
    this.#reservation = this.#estimate();
  }

  async send(): Promise<LLMResponse> {
    const paid = this.#paidFor();
    try {
      for (let held = heldBack(paid); held !== undefined; held = heldBack(paid)) await held;
      const response = await attemptChat(this.#llm, paid);
      this.#countReply(response);
      return response;
    } catch (thrown) {
      this.#countFailure(toLLMError(thrown));
      throw thrown;
    } finally {
      this.#isOver = true;
      this.#parts.ledger.release(this.#reservation);
    }
  }

  /** The request as it goes on inwards. */
  #paidFor(): LLMRequest {
    const { onDelta } = this.#request;
    const watched: LLMRequest = {
      ...this.#request,
      // Also where nobody listens, as for summaries: what was streamed is what an attempt that is cut off has cost.
      onDelta: (delta) => {
        this.#state = 'sent';
        this.#streamed += delta.type === 'tool_call' ? delta.inputText : delta.text;
        onDelta?.(delta);
      },
      onAttemptFailed: (failed) => {
        const again = this.#again(failed);
        // Whoever does not wait for it leaves no unhandled rejection.
        again.catch(() => undefined);
        return again;
      },
    };
    return countedBy(tollAttempts(watched, this), this.#parts.ledger);
  }

  /** By WB5: asked by whoever is about to send the request. */
  take(): Promise<void> | undefined {
    // Timeouts inside have given up on whoever asks.
    if (this.#isOver) return Promise.reject(new LLMError({ kind: 'refused', message: 'The attempt was not sent: its request is over.' }));
    const reserved = this.#parts.ledger.reserve(this.#reservation);
    if (reserved === undefined) this.#state = 'sent';
    return reserved?.then(
      () => {
        if (this.#isOver) this.giveBack();
      },
      (error: unknown) => {
        throw isLLMError(error) ? this.#told(error) : error;
      },
    );
  }

  giveBack(): void {
    this.#state = 'waiting';
    this.#parts.ledger.release(this.#reservation);
  }

  /** An attempt inside failed, and another is to follow: it has to fit as well. */
  async #again(failed: FailedAttempt): Promise<void> {
    const { ledger } = this.#parts;
    const { error } = failed;
    this.#countFailure(error);
    this.giveBack();
    const refused = ledger.refusalOf(this.#reservation);
    // Then no attempt follows, and nobody is told of one: what the failed one cost goes out with the refusal.
    if (refused !== undefined) {
      const { usage, provider, modelId } = error;
      throw this.#told(changeLLMError(refused, { usage, provider, modelId, cause: error }));
    }
    await this.#request.onAttemptFailed?.(failed);
  }

  #estimate(): Reservation {
    const { ledger, estimator, outputReserve } = this.#parts;
    const { modelId, capabilities } = this.#llm;
    const { prices, maxCost = Infinity, unpriced } = ledger.limits;
    const price = prices?.get(modelId);
    if (price === undefined && maxCost !== Infinity && unpriced !== 'free') throw noPrice(modelId, maxCost);

    const tokens = Math.ceil(estimator.estimateRequest(this.#request, this.#llm));
    const withOutput = (outputTokens: number): Amount => ({
      tokens: tokens + outputTokens,
      cost: price === undefined ? 0 : highestInputCost(tokens, price) + outputCost(outputTokens, price),
    });
    const longest = Math.min(this.#request.maxOutputTokens ?? Infinity, capabilities?.maxOutputTokens ?? Infinity);
    return {
      modelId,
      input: withOutput(0),
      most: withOutput(outputReserve ?? (longest === Infinity ? DEFAULT_OUTPUT_RESERVE : longest)),
      soFar: () => withOutput(this.#estimatedUsage().outputTokens),
      signal: this.#request.signal,
      onWait: (underWay) => {
        this.#notify('budget.waiting', { modelId, estimatedTokens: tokens, underWay });
      },
    };
  }

  #countReply(response: LLMResponse): void {
    const { ledger, estimator } = this.#parts;
    const told = toldUsage(response);
    if (told === undefined) {
      this.#streamed = writtenText(response.content);
      this.#book(this.#llm.modelId, this.#estimatedUsage(), true);
      return;
    }
    const { inputTokens, cacheReadTokens, cacheWriteTokens } = told;
    if (isReplyOf(response, this.#llm)) {
      estimator.observe(this.#request, this.#llm, inputTokens + cacheReadTokens + cacheWriteTokens);
    }
    this.#book(payingModel(response, this.#llm, ledger.limits.prices), told, false);
  }

  #countFailure(thrown: LLMError): void {
    const error = sentFailure(thrown);
    // Refusals of an attempt after the first also come with what the one before has cost, which is counted by then.
    if (this.#state === 'waiting' && (error === undefined || error !== thrown)) return;
    const told = toldUsage(thrown);
    const modelId = thrown.modelId ?? this.#llm.modelId;
    if (told !== undefined) this.#book(modelId, told, false);
    else if (this.#wasWorkedOn(error)) this.#book(modelId, this.#estimatedUsage(), true);
    this.#state = 'waiting';
    this.#streamed = '';
  }

  /** Whether a provider that told nothing has probably read the prompt all the same. */
  #wasWorkedOn(error: LLMError | undefined): boolean {
    if (this.#state === 'waiting') return false;
    if (this.#streamed !== '') return true;
    if (error === undefined) return false;
    return this.#request.signal.aborted || error.kind === 'timeout' || error.code === 'empty';
  }

  #estimatedUsage(): Usage {
    const outputTokens = this.#streamed === '' ? 0 : Math.ceil(this.#parts.estimator.estimateText(this.#streamed));
    return { ...NO_USAGE, inputTokens: this.#reservation.input.tokens, outputTokens };
  }

  #book(modelId: string, usage: Usage, isEstimate: boolean): void {
    const { ledger } = this.#parts;
    if (isEstimate) ledger.bookEstimate(modelId, usage);
    else ledger.book(modelId, usage);
    this.#state = 'waiting';
    this.#notify('budget.spent', { modelId, requestTokens: totalTokens(usage), ...this.#figures() });
  }

  /** Tells of a refusal on its way out. */
  #told(refused: LLMError): LLMError {
    const { modelId, input } = this.#reservation;
    this.#notify('budget.refused', { modelId, estimatedTokens: input.tokens, message: refused.message, ...this.#figures() });
    return refused;
  }

  /** How the budget stands, for notices. */
  #figures(): JsonObject {
    const { spending, left } = this.#parts.ledger;
    return {
      tokens: spending.tokens,
      ...(spending.cost !== undefined && { cost: spending.cost }),
      ...(left.tokens !== Infinity && { remainingTokens: left.tokens }),
      ...(left.cost !== Infinity && { remainingCost: left.cost }),
    };
  }

  #notify(name: string, data: JsonObject): void {
    this.#request.scope?.notify({ name, data });
  }
}

/** What a model wrote, to estimate it by. */
function writtenText(content: readonly ReplyPart[]): string {
  return content.map((part) => ('text' in part ? part.text : part.type === 'tool_call' ? part.inputText : '')).join('');
}

/** The name under which a reply is paid. */
function payingModel(response: LLMResponse, llm: LLM, prices: Prices | undefined): string {
  const { modelId = llm.modelId, provider } = response;
  // A decorator chose among several models: what the one that was asked costs says nothing about it.
  if (prices === undefined || provider !== undefined || prices.get(modelId) !== undefined) return modelId;
  return prices.get(llm.modelId) === undefined ? modelId : llm.modelId;
}

function noPrice(modelId: string, maxCost: number): LLMError {
  return new LLMError({
    kind: 'refused',
    code: 'no_price',
    message:
      `The request to ${JSON.stringify(modelId)} was not sent: the model has no price, so a maxCost of ${maxCost} cannot be kept. ` +
      "Add it to `prices`, or let such models count as free: createBudget({ maxCost, prices, unpriced: 'free' }).",
  });
}
