/**
 * LLM: a model behind our interface. Types and the two helpers that decorators need; no logic of the loop.
 *
 * - An adapter makes a provider's API an `LLM`; a decorator makes an `LLM` of an `LLM`.
 * - A reply's calls carry no id of ours: the loop gives each one at its first delta.
 */
import type { JsonSchema, JsonValue } from './json.ts';
import type { MediaPart, Message, ProviderPart, TextPart, ThinkingPart, ToolCallPart } from './message.ts';
import type { LLMError } from './errors.ts';
import type { Runtime } from './runtime.ts';
import type { StepStopReason } from './stop-reason.ts';
import type { Usage } from './usage.ts';

/** What a model can take and how much; each left out where it is not known. */
export interface LLMCapabilities {
  /** Tokens of prompt and output together. */
  readonly contextWindow?: number | undefined;
  /** Most tokens of a prompt, where that is limited apart from the window. */
  readonly maxInputTokens?: number | undefined;
  /** Most tokens of one reply. */
  readonly maxOutputTokens?: number | undefined;
  /** MIME types, or prefixes ending in `/`, that the model takes in user messages; empty for none. */
  readonly mediaTypes?: readonly string[] | undefined;
  /** Whether the model takes `responseSchema`, also beside tools. */
  readonly structuredOutput?: boolean | undefined;
}

/** A tool as a model gets to know it. Every {@link index.Tool | Tool} is one. */
export interface ToolDefinition {
  /** Unique in the list. */
  readonly name: string;
  /** What it does and when to use it, for the model. */
  readonly description: string;
  /** JSON Schema of the arguments, an object. */
  readonly inputSchema: JsonSchema;
  /**
   * Not offered to the model: requests leave it out. It can be called all the same, by a reply that names it.
   *
   * @defaultValue false
   */
  readonly deferred?: boolean | undefined;
}

/** Which tools a reply may call: `required` at least one, `none` none, or the one named. */
export type ToolChoice = 'auto' | 'none' | 'required' | NamedToolChoice;

/** The one tool that a reply has to call. */
export interface NamedToolChoice {
  /** Name of the tool. */
  readonly name: string;
}

/**
 * A fragment of a reply as it arrives. Fragments of one call come in order; fragments concatenate to the whole.
 */
export type LLMDelta =
  | {
      /** Tells this shape from the others. */
      readonly type: 'text';
      /** The text. */
      readonly text: string;
    }
  | {
      /** Tells this shape from the others. */
      readonly type: 'thinking';
      /** The text. */
      readonly text: string;
    }
  | {
      /** Tells this shape from the others. */
      readonly type: 'tool_call';
      /** Which call of the reply, 0-based, in the order in which the calls stand in the reply's content. */
      readonly callIndex: number;
      /** The tool's name; given with the first fragment of the call. */
      readonly name?: string | undefined;
      /** The provider's id; given with the first fragment of the call, where it has one. */
      readonly providerId?: string | undefined;
      /** A piece of the argument text; may be empty. */
      readonly inputText: string;
    };

/** A tool call of a reply: the loop adds the id. */
export type ReplyToolCall = Omit<ToolCallPart, 'id' | 'input'>;

/** A piece of a reply. */
export type ReplyPart = TextPart | ThinkingPart | MediaPart | ProviderPart | ReplyToolCall;

/** A message from a policy to whoever watches; live only. */
export interface Notice {
  /** Which policy speaks and what happened, such as `retry` or `hook.failed`. */
  readonly name: string;
  /** Plain JSON. */
  readonly data: JsonValue;
}

/** How a decorator gets time, ids and a voice. */
export interface LLMScope {
  /** The turn the request belongs to. */
  readonly turnId: string;
  /** The step, 1-based. */
  readonly step: number;
  /** Id of the step. */
  readonly stepId: string;
  /** Clock, timers, ids and randomness. */
  readonly runtime: Runtime;
  /** Emits a live `notice` event. */
  notify(notice: Notice): void;
}

/** What is known of an attempt that failed and is about to be made again. */
export interface FailedAttempt {
  /** Why it failed. */
  readonly error: LLMError;
  /** How long until the next attempt, in milliseconds. */
  readonly delayMs?: number | undefined;
  /** How many attempts there may be in all, where that is fixed. */
  readonly maxAttempts?: number | undefined;
  /** The model that is asked next, where that is another. */
  readonly nextModelId?: string | undefined;
}

/** One request to a model. */
export interface LLMRequest {
  /** The system prompt; empty for none. Adapters send this one, not their own. */
  readonly systemPrompt: string;
  /** The history, oldest first. Messages are immutable and keep their identity from step to step. */
  readonly messages: readonly Message[];
  /** The tools offered; the same array as long as nothing changed. */
  readonly tools: readonly ToolDefinition[];
  /** Ends the request: `chat` then rejects soon, and lets go of its connection. */
  readonly signal: AbortSignal;
  /** @defaultValue `'auto'` */
  readonly toolChoice?: ToolChoice | undefined;
  /** Asks for JSON of this schema as the answer. */
  readonly responseSchema?: JsonSchema | undefined;
  /** Most tokens of the reply. */
  readonly maxOutputTokens?: number | undefined;
  /** Called for each fragment, synchronously and in order; must not be called after `chat` has settled. Never throws. */
  readonly onDelta?: ((delta: LLMDelta) => void) | undefined;
  /** Awaited once by whoever starts another attempt, before it: what the failed one streamed is taken back. */
  readonly onAttemptFailed?: ((attempt: FailedAttempt) => Promise<void> | void) | undefined;
  /** Time, ids and a voice; absent when a host calls `chat` itself. */
  readonly scope?: LLMScope | undefined;
}

/** Where the time of a request went, in milliseconds; each left out where it was not measured. */
export interface LLMTiming {
  /** From the request's start to the first fragment. */
  readonly firstDeltaMs?: number | undefined;
  /** From the request's start to the end of the reply. */
  readonly totalMs?: number | undefined;
}

/** A whole reply. */
export interface LLMResponse {
  /** Parts in the order in which the model wrote them, calls included. */
  readonly content: readonly ReplyPart[];
  /** Why the reply ended. */
  readonly stopReason: StepStopReason;
  /** The provider's own word for it. */
  readonly rawStopReason?: string | undefined;
  /** Tokens spent. */
  readonly usage: Usage;
  /** The provider's id of the response. */
  readonly responseId?: string | undefined;
  /** The model that really answered. @defaultValue `LLM.modelId` */
  readonly modelId?: string | undefined;
  /** The provider that really answered, where a decorator chose among several. @defaultValue `LLM.provider` */
  readonly provider?: string | undefined;
  /** Where the time went. */
  readonly timing?: LLMTiming | undefined;
}

/** A model. The only source of its name, its abilities and the system prompt. */
export interface LLM {
  /** The company or server API, such as `openai`; what a provider part or a signature belongs to. */
  readonly provider: string;
  /** The provider's name of the model. */
  readonly modelId: string;
  /** What the model is told before the conversation; empty for nothing. */
  readonly systemPrompt: string;
  /** What the model can take, as far as it is known. */
  readonly capabilities?: LLMCapabilities | undefined;
  /**
   * Asks the model for its next reply.
   *
   * @returns The whole reply, once it has ended. An adapter that cannot stream just returns it.
   * @throws {@link index.LLMError | LLMError}; anything else thrown counts as kind `unknown`. When `request.signal` is
   * aborted the promise rejects soon, with whatever.
   */
  chat(request: LLMRequest): Promise<LLMResponse>;
}

/**
 * Makes an `LLM` of an `LLM`: the metadata is the inner one's, asked each time; `chat` is yours.
 *
 * @param llm - The model to delegate to.
 * @param chat - Sends the request on, changes it, retries it, or refuses it.
 */
export function decorateLLM(llm: LLM, chat: LLM['chat']): LLM {
  const decorated: LLM = {
    get provider() {
      return llm.provider;
    },
    get modelId() {
      return llm.modelId;
    },
    get systemPrompt() {
      return llm.systemPrompt;
    },
    get capabilities() {
      return llm.capabilities;
    },
    chat,
  };
  innerOf.set(decorated, llm);
  return decorated;
}

/** What each decorated model was made of. */
const innerOf = new WeakMap<LLM, LLM>();

/**
 * Whether a model, or one that it was made of by {@link decorateLLM}, is one that is looked for: so that nothing is put around
 * it twice.
 */
export function isDecoratedBy(llm: LLM, isSought: (one: LLM) => boolean): boolean {
  for (let one: LLM | undefined = llm; one !== undefined; one = innerOf.get(one)) if (isSought(one)) return true;
  return false;
}
