/**
 * Token history: the tokens of a request before calibration, each message counted once.
 *
 * - H1 A message, a tool and a system prompt are read when they are first seen, and never again as long as they live.
 * - H2 A list that goes on where the last one stopped costs a comparison of references and what is new in it.
 * - H3 What was counted before changes no result, not by a bit: sums are always taken in the order of the list.
 */
import type { ToolDefinition } from '../core/llm.ts';
import type { Message } from '../core/message.ts';
import { type MediaTokens, messageTokens, toolTokens } from './token-message.ts';
import { addTextTokens, noTokens, TOKEN_CLASSES, type TokenCounts } from './token-text.ts';

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
const SIZE = TOKEN_CLASSES.length;

/** Counts requests. */
export class RequestCounter {
  readonly #mediaTokens: MediaTokens;
  readonly #ofMessages = new WeakMap<Message, TokenCounts>();
  readonly #ofTools = new WeakMap<ToolDefinition, TokenCounts>();
  readonly #ofPrompts = new Map<string, TokenCounts>();
  /** The messages of the last list, and the sums up to each of them. */
  #last: Message[] = [];
  #sums: number[] = [];

  constructor(mediaTokens: MediaTokens) {
    this.#mediaTokens = mediaTokens;
  }

  /** Tokens of a message. The counts are kept: read them only. */
  ofMessage(message: Message): TokenCounts {
    let counts = this.#ofMessages.get(message);
    if (counts === undefined) this.#ofMessages.set(message, (counts = messageTokens(message, this.#mediaTokens)));
    return counts;
  }

  /**
   * Tokens of a request, in an array of the caller's own.
   *
   * @param length - With that many of its messages only. @defaultValue all
   */
  ofRequest({ systemPrompt, tools, messages }: EstimatedRequest, length: number = messages.length): TokenCounts {
    const counts = this.#ofHistory(messages, length);
    addCounts(this.#ofPrompt(systemPrompt), counts);
    for (const tool of tools) addCounts(this.#ofTool(tool), counts);
    return counts;
  }

  #ofTool(tool: ToolDefinition): TokenCounts {
    let counts = this.#ofTools.get(tool);
    if (counts === undefined) this.#ofTools.set(tool, (counts = toolTokens(tool, this.#mediaTokens)));
    return counts;
  }

  #ofPrompt(text: string): TokenCounts {
    let counts = this.#ofPrompts.get(text);
    if (counts === undefined) {
      counts = noTokens();
      addTextTokens(text, counts);
      const oldest = this.#ofPrompts.keys().next();
      if (this.#ofPrompts.size >= KNOWN_PROMPTS && oldest.done !== true) this.#ofPrompts.delete(oldest.value);
      this.#ofPrompts.set(text, counts);
    }
    return counts;
  }

  #ofHistory(messages: readonly Message[], length: number): TokenCounts {
    let common = 0;
    while (common < messages.length && common < this.#last.length && messages[common] === this.#last[common]) common += 1;
    if (common < messages.length) this.#replaceTail(common, messages);
    const counts = noTokens();
    if (length > 0) counts.forEach((_, kind) => (counts[kind] = this.#sums[(length - 1) * SIZE + kind] ?? 0));
    return counts;
  }

  /** Keeps the first messages of the last list, and takes the rest from another. */
  #replaceTail(common: number, messages: readonly Message[]): void {
    this.#last.length = common;
    this.#sums.length = common * SIZE;
    for (let index = common; index < messages.length; index += 1) {
      const message = messages[index];
      if (message === undefined) continue;
      const counts = this.ofMessage(message);
      this.#last.push(message);
      for (let kind = 0; kind < SIZE; kind += 1) this.#sums.push((this.#sums[(index - 1) * SIZE + kind] ?? 0) + (counts[kind] ?? 0));
    }
  }
}

function addCounts(source: TokenCounts, target: TokenCounts): void {
  for (let kind = 0; kind < SIZE; kind += 1) target[kind] = (target[kind] ?? 0) + (source[kind] ?? 0);
}
