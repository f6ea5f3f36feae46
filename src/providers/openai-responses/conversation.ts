/**
 * Conversation: what of a history a request holds: all of it, or what came after a response that the server still has.
 *
 * Also owns what a server proved not to take back: thinking and items of its own tools in messages that it refused.
 */
import type { LLMResponse } from '../../core/llm.ts';
import type { AssistantMessage, Message } from '../../core/message.ts';
import { createHistoryWriter, type HistoryWriter } from '../shared/history-writer.ts';
import { createHeldResponses } from './held-responses.ts';
import { type InputItems, inputHistory } from './input-history.ts';
import type { OpenAIResponsesConfig } from './options.ts';
import { hasUnanswered } from './provider-items.ts';
import { type ReplyTarget, writeReply } from './reply-items.ts';

/** A history as a request holds it. */
export interface WrittenConversation {
  /** JSON of the input's items, separated by commas. */
  readonly input: string;
  /** The response that the input goes on from; undefined if it is whole. */
  readonly previousResponseId: string | undefined;
  /** Notes that the server has answered, and keeps what it was asked with. */
  readonly keep: (response: LLMResponse) => void;
  /** Notes that the server did not have the response that the input goes on from. */
  readonly lose: () => void;
}

/** Writes the histories of one adapter. */
export interface ConversationWriter {
  /** Writes what is new of a history. @param isWhole - Whether the server is to be told all of it. */
  write(messages: readonly Message[], isWhole: boolean): WrittenConversation;
  /** Leaves what only the server reads out of these messages from now on. @returns Whether there is anything to leave out. */
  leaveOutOwn(messages: readonly Message[]): boolean;
}

/** Characters of the histories that are remembered. */
const MAX_HELD_LENGTH = 32 * 1024 * 1024;
// A server may keep nothing, or not for this conversation: each time costs a request.
const MAX_LOST_IN_ROW = 2;
const MAX_LOST_WITHOUT_SUCCESS = 4;

/** Makes a writer. */
export function createConversationWriter(config: OpenAIResponsesConfig): ConversationWriter {
  const { provider, model, keepsThinking, options } = config;
  const held = createHeldResponses(MAX_HELD_LENGTH);
  const plain = new WeakSet<Message>();
  let history = createHistory();
  let isIncremental = config.isIncremental;
  /** How often the server did not have the latest response of a conversation, one time after the other. */
  const lostInRow = new WeakMap<InputItems, number>();
  /** How often it had none, counted as long as it never had one. */
  let lostSoFar: number | undefined = 0;

  function createHistory(): HistoryWriter<string, InputItems> {
    return createHistoryWriter(inputHistory({ mediaTypes: options.capabilities?.mediaTypes, replyTarget }));
  }

  function replyTarget(message: AssistantMessage): ReplyTarget {
    return { provider, model, keepsThinking, keepsOwn: !plain.has(message) };
  }

  function lostOf(items: InputItems): number {
    return lostInRow.get(items) ?? 0;
  }

  /** The items of a reply as they are going to be written when it comes back. */
  function writeAnswer({ content, modelId, responseId }: LLMResponse): string {
    const calls = content.filter((part) => part.type === 'tool_call');
    const message: AssistantMessage = {
      role: 'assistant',
      id: '',
      content: content.map((part) => (part.type === 'tool_call' ? { ...part, id: '' } : part)),
      source: { provider, modelId: modelId ?? model, responseId },
    };
    return writeReply(message, calls.map(({ providerId }) => providerId ?? ''), replyTarget(message)) ?? '';
  }

  return {
    write(messages, isWhole) {
      const { sink: items, tail } = history.write(messages);
      const count = items.texts.length;
      const from = isIncremental && !isWhole ? held.find(messages, items) : undefined;
      const news = from === undefined ? '' : items.render(from.start, tail);
      const previous = news === '' ? undefined : from;
      return {
        input: previous === undefined ? items.render(0, tail) : news,
        previousResponseId: previous?.responseId,
        keep(response) {
          if (previous !== undefined) {
            lostInRow.delete(items);
            lostSoFar = undefined;
          }
          const { responseId, content } = response;
          // What was for one request only is not in the next history, but it is in what the server keeps.
          const isKept = isIncremental && tail.length === 0 && !hasUnanswered(content, provider);
          if (!isKept || responseId === undefined || lostOf(items) >= MAX_LOST_IN_ROW) return;
          held.keep({ responseId, items, count, reply: writeAnswer(response), lostBefore: lostSoFar ?? 0 });
        },
        lose() {
          const lost = previous === undefined ? undefined : held.lose(previous.responseId);
          if (lost === undefined) return;
          lostInRow.set(items, lostOf(items) + 1);
          // Several that were lost together were lost once.
          if (lostSoFar === lost.lostBefore) lostSoFar += 1;
          if (lostSoFar === MAX_LOST_WITHOUT_SUCCESS) isIncremental = false;
        },
      };
    },
    leaveOutOwn(messages) {
      const refused = messages.filter((message) => hasOwn(message) && !plain.has(message));
      for (const message of refused) plain.add(message);
      // What was written of them is written anew.
      if (refused.length > 0) history = createHistory();
      return refused.length > 0;
    },
  };

  function hasOwn(message: Message): boolean {
    if (message.role !== 'assistant' || message.source?.provider !== provider) return false;
    return message.content.some(({ type }) => type === 'thinking' || type === 'provider');
  }
}
