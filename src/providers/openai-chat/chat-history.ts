/**
 * Chat history: a history as the inside of the request's `messages` array.
 *
 * What of a tool's output the protocol only takes from a user waits for the end of the tool messages, and follows them
 * as one user message.
 */
import type { Message } from '../../core/message.ts';
import type { HistoryFormat, HistorySink } from '../shared/history-writer.ts';
import type { IdRules } from '../shared/wire-ids.ts';
import { joinJson } from '../shared/wire-text.ts';
import { type WireTarget, writeAssistant, writeTool, writeUser, type WrittenMessage } from './message-wire.ts';

/** The `messages` of one conversation. */
export interface ChatMessages extends HistorySink<WrittenMessage> {
  /** JSON of the messages, separated by commas. @param before - JSON of what stands before them; empty for nothing. */
  render(before: string, tail: readonly WrittenMessage[]): string;
}

/** What a history is written for. */
export interface ChatHistoryOptions {
  /** Asked at each message that is written for the first time. */
  readonly target: () => WireTarget;
  readonly idRules: IdRules;
  /** Whether a user's message may follow a tool's directly. */
  readonly userMayFollowTool: boolean;
}

// A model reads it.
const BRIDGE = JSON.stringify({ role: 'assistant', content: 'I have the results.' });

/** How this protocol writes histories. */
export function chatHistory({ target, idRules, userMayFollowTool }: ChatHistoryOptions): HistoryFormat<WrittenMessage, ChatMessages> {
  return {
    idRules,
    user: (message) => writeUser(message, target()),
    assistant: (message, wireIds) => writeAssistant(message, wireIds, target()),
    tool: (message, wireId) => writeTool(message, wireId, target()),
    createSink: () => createSink(userMayFollowTool ? '' : BRIDGE),
  };
}

/** @param bridge - JSON of what stands between a tool's message and a user's; empty for nothing. */
function createSink(bridge: string): ChatMessages {
  let text = '';
  let media = '';
  let isAfterTool = false;

  /** What has to stand before a message that comes next. */
  function between(role: Message['role']): string {
    if (!isAfterTool || role === 'tool') return '';
    const isUser = role === 'user' || media !== '';
    return joinJson(isUser ? bridge : '', mediaMessage(media));
  }

  return {
    add({ role }, written) {
      if (written === undefined) return;
      text = joinJson(joinJson(text, between(role)), written.json);
      media = role === 'tool' ? joinJson(media, written.media) : '';
      isAfterTool = role === 'tool';
    },
    render(before, tail) {
      const next = tail.length > 0 || media !== '' ? between('user') : '';
      return [text, next, ...tail.map(({ json }) => json)].reduce(joinJson, before);
    },
  };
}

function mediaMessage(contents: string): string {
  return contents === '' ? '' : `{"role":"user","content":[${contents}]}`;
}
