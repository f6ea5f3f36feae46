/** Input history: a history as the inside of the request's `input` list, whole or from a message on. */
import type { AssistantMessage } from '../../core/message.ts';
import type { HistoryFormat, HistorySink } from '../shared/history-writer.ts';
import type { IdRules } from '../shared/wire-ids.ts';
import { COMMON_IDS } from '../shared/wire-ids.ts';
import { joinJson } from '../shared/wire-text.ts';
import { writeResult, writeUser } from './message-items.ts';
import { writeReply } from './reply-items.ts';
import type { ReplyTarget } from './reply-items.ts';

/** The input of one conversation. */
export interface InputItems extends HistorySink<string> {
  /** JSON of each message's items, separated by commas; empty for a message that says nothing. */
  readonly texts: readonly string[];
  /** How many characters they have together. */
  readonly length: number;
  /** JSON of the items, separated by commas. @param start - Index of the first message; 0 for all, which costs nothing. */
  render(start: number, tail: readonly string[]): string;
}

/** What a history is written for. */
export interface InputTarget {
  /** `capabilities.mediaTypes`. */
  readonly mediaTypes: readonly string[] | undefined;
  /** Asked at each message that is written for the first time. */
  readonly replyTarget: (message: AssistantMessage) => ReplyTarget;
}

/** Ids of calls as this protocol takes them: longer ones than others do. */
const CALL_IDS: IdRules = { ...COMMON_IDS, legal: /^[a-zA-Z0-9_-]{1,64}$/ };

/** How this protocol writes histories. */
export function inputHistory({ mediaTypes, replyTarget }: InputTarget): HistoryFormat<string, InputItems> {
  return {
    idRules: CALL_IDS,
    user: (message) => writeUser(message, mediaTypes),
    assistant: (message, wireIds) => writeReply(message, wireIds, replyTarget(message)),
    tool: (message, callId, call) => writeResult({ message, callId, call }, mediaTypes),
    createSink,
  };
}

function createSink(): InputItems {
  const texts: string[] = [];
  let whole = '';
  return {
    texts,
    get length() {
      return whole.length;
    },
    add(_message, written = '') {
      texts.push(written);
      whole = joinJson(whole, written);
    },
    render(start, tail) {
      const stable = start === 0 ? whole : texts.slice(start).reduce(joinJson, '');
      return tail.reduce(joinJson, stable);
    },
  };
}
