/**
 * Guardrails: judges of what goes to a model, of what it says and of what it wants to do. One that trips ends the turn.
 *
 * - G1 The input is judged beside the request, not before it; the reply is handed on only when everybody has passed it.
 * - G2 Whoever trips first ends the request: the turn ends `stopped`, named, nothing of the reply is recorded, no tool runs.
 * - G3 Fail-closed: a guardrail that throws, or gives something that is no verdict, has tripped. What was not judged is not
 *   kept either, if the request fails meanwhile.
 * - G4 Whoever is not needed any more is aborted: the request by a guardrail, the guardrails by each other, all by the turn.
 */
import { attemptChat } from '../core/attempt-chat.ts';
import { changeLLMError, LLMError, messageOf, toLLMError } from '../core/errors.ts';
import { isThenable } from '../core/event-dispatcher.ts';
import { type JsonValue, parseJson } from '../core/json.ts';
import { decorateLLM, type LLM, type LLMDelta, type LLMRequest, type LLMResponse, type ReplyPart, type ReplyToolCall } from '../core/llm.ts';
import type { Message, UserMessage, UserMessageOrigin } from '../core/message.ts';
import { addUsage, NO_USAGE, type Usage } from '../core/usage.ts';
import { assertGuardrails, type GuardedCall, type Guardrail, type GuardrailContext, type GuardrailOptions } from './guardrails-options.ts';
import { openTrial, type Trial } from './guardrails-trial.ts';

/**
 * Makes a model with guardrails: on what people say, on what it answers, on the tools it calls. A tripped one ends the turn
 * `stopped`, with its name as `stoppedBy` and its reason as `stopMessage`; of the reply nothing is recorded but its price,
 * and none of its tools runs.
 *
 * Input that tripped stays in the history, and is judged again with the next input: undo the message, or it trips again.
 *
 * Put it around everything else, around `deferTools().wrap` above all: then the tool that is really called is judged.
 * Emits the notice `guardrail.tripped` `{guardrail, on, reason}`.
 *
 * @param llm - The model.
 * @param guardrails - Who judges what.
 * @returns A model that also rejects with {@link index.LLMError | LLMError} `refused`, code `guardrail`.
 * @throws TypeError without a model, and for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const llm = withGuardrails(withRetry(anthropic({ model: 'claude-sonnet-4-5' })), {
 *   output: [{ name: 'noSecrets', check: ({ text }) => (text.includes(secret) ? 'The answer holds a secret.' : undefined) }],
 * });
 * ```
 */
export function withGuardrails(llm: LLM, guardrails: GuardrailOptions): LLM {
  assertGuardrails(llm, guardrails);
  return decorateLLM(llm, (request) => new GuardedRequest(llm, guardrails, request).send());
}

/** A guardrail that tripped. */
class Trip {
  readonly guardrail: string;
  readonly on: 'input' | 'output' | 'toolCalls';
  readonly reason: string;

  constructor(guardrail: string, on: Trip['on'], reason: string) {
    this.guardrail = guardrail;
    this.on = on;
    this.reason = reason;
  }
}

/** One request with its judges. */
class GuardedRequest {
  readonly #llm: LLM;
  readonly #options: GuardrailOptions;
  readonly #request: LLMRequest;
  readonly #trial: Trial;
  readonly #context: GuardrailContext;
  /** Tokens that guardrails spent. */
  #spent: Usage = NO_USAGE;
  #inputPassed = false;
  #held: LLMDelta[] = [];

  constructor(llm: LLM, options: GuardrailOptions, request: LLMRequest) {
    const { messages, scope, signal } = request;
    this.#llm = llm;
    this.#options = options;
    this.#request = request;
    this.#trial = openTrial(signal);
    this.#context = {
      signal: this.#trial.signal,
      llm: this.#metered(),
      host: options.host,
      messages,
      ...(scope !== undefined && { turnId: scope.turnId, step: scope.step }),
    };
  }

  async send(): Promise<LLMResponse> {
    let response: LLMResponse | undefined;
    try {
      const input = this.#judgeInput();
      // A guardrail that trips at once spares the request.
      if (this.#trial.hasEnded) await this.#trial.wait(input);
      response = await this.#trial.wait(attemptChat(this.#llm, this.#toSend()));
      await this.#trial.wait(Promise.all([input, this.#judgeReply(response.content)]));
      return this.#pass(response);
    } catch (thrown) {
      throw this.#failure(thrown, response?.usage);
    } finally {
      this.#trial.close();
    }
  }

  /** The model as guardrails ask it: what they spend counts. */
  #metered(): LLM {
    const llm = this.#llm;
    return decorateLLM(llm, async (request) => {
      try {
        const response = await attemptChat(llm, request);
        this.#spent = addUsage(this.#spent, response.usage);
        return response;
      } catch (thrown) {
        this.#spent = addUsage(this.#spent, toLLMError(thrown).usage ?? NO_USAGE);
        throw thrown;
      }
    });
  }

  #toSend(): LLMRequest {
    const { onAttemptFailed } = this.#request;
    const request = { ...this.#request, signal: this.#trial.signal };
    if (this.#options.holdDeltas !== true || request.onDelta === undefined) return request;
    return {
      ...request,
      onDelta: (delta) => {
        this.#held.push(delta);
      },
      onAttemptFailed: (attempt) => {
        this.#held = [];
        return onAttemptFailed?.(attempt);
      },
    };
  }

  async #judgeInput(): Promise<void> {
    const input = newInput(this.#request.messages);
    const guardrails = this.#options.input ?? [];
    if (input.length > 0 && guardrails.length > 0) await this.#judge('input', guardrails, input);
    this.#inputPassed = !this.#trial.hasEnded;
  }

  async #judgeReply(content: readonly ReplyPart[]): Promise<void> {
    const { output, toolCalls } = this.#options;
    const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('');
    const calls = content.filter((part): part is ReplyToolCall => part.type === 'tool_call');
    await Promise.all([
      text.trim() === '' ? undefined : this.#judge('output', output, { text, content }),
      ...calls.map((call) => this.#judge('toolCalls', toolCalls, toGuardedCall(call))),
    ]);
  }

  /** Asks all at once. Never rejects: one that trips ends the trial. */
  async #judge<Judged>(on: Trip['on'], guardrails: readonly Guardrail<Judged>[] = [], judged: Judged): Promise<void> {
    await Promise.all(guardrails.map((guardrail) => this.#ask(on, guardrail, judged)));
  }

  async #ask<Judged>(on: Trip['on'], guardrail: Guardrail<Judged>, judged: Judged): Promise<void> {
    let reason: string;
    try {
      const given: unknown = guardrail.check(judged, this.#context);
      const verdict: unknown = isThenable(given) ? await Promise.resolve<unknown>(given) : given;
      if (verdict === undefined) return;
      reason = typeof verdict === 'string' && verdict !== '' ? verdict : NO_VERDICT;
    } catch (error) {
      reason = `The guardrail failed: ${messageOf(error)}`;
    }
    this.#trial.end(new Trip(guardrail.name, on, reason));
  }

  #pass(response: LLMResponse): LLMResponse {
    for (const delta of this.#held) this.#request.onDelta?.(delta);
    return this.#spent === NO_USAGE ? response : { ...response, usage: addUsage(response.usage, this.#spent) };
  }

  /** What is thrown: a refusal, or what the request failed with, without what nobody has judged. */
  #failure(thrown: unknown, replyUsage: Usage | undefined): unknown {
    if (thrown instanceof Trip) return this.#refusal(thrown, replyUsage);
    const isJudged = this.#inputPassed && this.#options.holdDeltas !== true;
    // Of a reply that was whole when it was given up nothing is left but its price.
    if (isJudged && replyUsage === undefined && this.#spent === NO_USAGE) return thrown;
    const error = toLLMError(thrown);
    return changeLLMError(error, { ...(!isJudged && { partial: [] }), ...this.#cost(error.usage ?? replyUsage) });
  }

  #refusal({ guardrail, on, reason }: Trip, replyUsage: Usage | undefined): LLMError {
    this.#request.scope?.notify({ name: 'guardrail.tripped', data: { guardrail, on, reason } });
    return new LLMError({
      kind: 'refused',
      code: 'guardrail',
      message: reason,
      retryable: false,
      stopReason: 'stopped',
      stoppedBy: guardrail,
      partial: [],
      ...this.#cost(replyUsage),
    });
  }

  /** What a request that came to nothing cost, as far as it is known. */
  #cost(usage: Usage | undefined): { readonly usage?: Usage } {
    if (usage === undefined && this.#spent === NO_USAGE) return {};
    return { usage: addUsage(usage ?? NO_USAGE, this.#spent) };
  }
}

const NO_VERDICT = 'The guardrail gave neither nothing nor a text, so it counts as tripped.';

/** Whose messages are input: the others were built by policies. */
const INPUT_ORIGINS: ReadonlySet<UserMessageOrigin> = new Set<UserMessageOrigin>(['user', 'steering', 'host']);

/** What people and the host said since the model's last reply. */
function newInput(messages: readonly Message[]): readonly UserMessage[] {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1);
  return since.filter((message): message is UserMessage => message.role === 'user' && INPUT_ORIGINS.has(message.origin));
}

function toGuardedCall({ name, inputText }: ReplyToolCall): GuardedCall {
  const json = parseJson(inputText.trim() === '' ? '{}' : inputText);
  // What JSON.parse gives is JSON.
  return { name, inputText, input: json.ok ? (json.value as JsonValue) : undefined };
}
