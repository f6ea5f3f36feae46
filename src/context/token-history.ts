/**
 * Token history: the tokens of a request before calibration, each message counted once.
 *
 * - H1 A message, a tool and a system prompt are read when they are first seen, and never again as long as they live.
 * - H2 A list that goes on where a recent one stopped costs a comparison of references and what is new in it.
 * - H3 What was counted before changes no result, not by a bit: sums are exact, in any order.
 */
import type { ToolDefinition } from '../core/llm.ts';
import type { Message } from '../core/message.ts';
import { type MediaTokens, messageTokens, toolTokens } from './token-message.ts';
import { addCounts, inSteps, MessageSums } from './token-sums.ts';
import { addTextTokens, noTokens, type TokenCounts } from './token-text.ts';

/** What of a request costs tokens. Every {@link index.LLMRequest | LLMRequest} is one. */
export interface EstimatedRequest {
  /** The system prompt. */
  readonly systemPrompt: string;
  /** The tools offered. */
  readonly tools: readonly ToolDefinition[];
  /** The history, oldest first. */
  readonly messages: readonly Message[];
}

/** Enough for a host with some agents; more prompts are only counted again. */
const KNOWN_PROMPTS = 16;

/** Counts requests. */
export class RequestCounter {
  readonly #mediaTokens: MediaTokens;
  readonly #ofMessages = new WeakMap<Message, TokenCounts>();
  readonly #ofTools = new WeakMap<ToolDefinition, TokenCounts>();
  readonly #ofPrompts = new Map<string, TokenCounts>();
  readonly #sums = new MessageSums((message) => this.ofMessage(message));

  constructor(mediaTokens: MediaTokens) {
    this.#mediaTokens = mediaTokens;
  }

  /** Tokens of a message. The counts are kept: read them only. */
  ofMessage(message: Message): TokenCounts {
    let counts = this.#ofMessages.get(message);
    if (counts === undefined) this.#ofMessages.set(message, (counts = inSteps(messageTokens(message, this.#mediaTokens))));
    return counts;
  }

  /**
   * Tokens of a request, in an array of the caller's own.
   *
   * @param length - With that many of its messages only. @defaultValue all
   */
  ofRequest({ systemPrompt, tools, messages }: EstimatedRequest, length: number = messages.length): TokenCounts {
    const counts = this.#sums.of(messages, length);
    addCounts(this.#ofPrompt(systemPrompt), counts);
    for (const tool of tools) if (tool.deferred !== true) addCounts(this.#ofTool(tool), counts);
    return counts;
  }

  #ofTool(tool: ToolDefinition): TokenCounts {
    let counts = this.#ofTools.get(tool);
    if (counts === undefined) this.#ofTools.set(tool, (counts = inSteps(toolTokens(tool, this.#mediaTokens))));
    return counts;
  }

  #ofPrompt(text: string): TokenCounts {
    let counts = this.#ofPrompts.get(text);
    if (counts === undefined) {
      counts = noTokens();
      addTextTokens(text, counts);
      inSteps(counts);
      const oldest = this.#ofPrompts.keys().next();
      if (this.#ofPrompts.size >= KNOWN_PROMPTS && oldest.done !== true) this.#ofPrompts.delete(oldest.value);
      this.#ofPrompts.set(text, counts);
    }
    return counts;
  }
}
