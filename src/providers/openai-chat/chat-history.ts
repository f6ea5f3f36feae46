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

/** How this protocol writes histories. @param target - Asked at each message that is written for the first time. */
export function chatHistory(target: () => WireTarget, idRules: IdRules): HistoryFormat<WrittenMessage, ChatMessages> {
  return {
    idRules,
    user: (message) => writeUser(message, target()),
    assistant: (message, wireIds) => writeAssistant(message, wireIds, target()),
    tool: (message, wireId) => writeTool(message, wireId, target()),
    createSink,
  };
}

function createSink(): ChatMessages {
  let text = '';
  let media = '';
  return {
    add({ role }: Message, written) {
      if (role !== 'tool') {
        text = joinJson(text, mediaMessage(media));
        media = '';
      }
      if (written === undefined) return;
      text = joinJson(text, written.json);
      media = joinJson(media, written.media);
    },
    render(before, tail) {
      const rest = [mediaMessage(media), ...tail.map(({ json }) => json)];
      return rest.reduce(joinJson, joinJson(before, text));
    },
  };
}

function mediaMessage(contents: string): string {
  return contents === '' ? '' : `{"role":"user","content":[${contents}]}`;
}
