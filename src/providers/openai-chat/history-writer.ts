/**
 * History writer: a history as the inside of the request's `messages` array, written once.
 *
 * 1. The JSON of a message is kept with the message: messages are immutable and keep their identity.
 * 2. A request that goes on from an earlier one starts with that one's text; only what is new is written.
 * 3. The id of a call depends on the calls before it, so a longer history never changes what an earlier one said.
 */
import type { AssistantMessage, Message, ToolMessage } from '../../core/message.ts';
import { chooseWireId, type IdRules } from '../shared/wire-ids.ts';
import { type WireTarget, type WrittenResult, writeAssistant, writeTool, writeUser } from './message-wire.ts';

/** Writes histories for one adapter. */
export interface HistoryWriter {
  /** The messages as JSON, each with a comma before it. */
  write(messages: readonly Message[]): string;
}

/** A history as far as it was written. */
interface Written {
  readonly messages: Message[];
  text: string;
  /** Content parts that wait for the end of the tool messages they came with. */
  media: string[];
  readonly takenIds: Set<string>;
  /** Wire ids by our ids. */
  readonly wireIds: Map<string, string>;
}

interface CachedMessage {
  /** The ids it was written with. */
  readonly key: string;
  readonly result: WrittenResult | undefined;
}

/** Makes a writer. @param target - Asked at each message that is written for the first time. */
export function createHistoryWriter(target: () => WireTarget, idRules: IdRules): HistoryWriter {
  /** By the first message, which a conversation keeps. */
  const histories = new WeakMap<Message, Written>();
  const cache = new WeakMap<Message, CachedMessage>();

  function write(messages: readonly Message[]): string {
    const [first] = messages;
    if (first === undefined) return '';
    const stableCount = countStable(messages);
    const known = histories.get(first);
    const written = known !== undefined && isPrefix(known.messages, messages, stableCount) ? known : newHistory();
    histories.set(first, written);
    for (let at = written.messages.length; at < stableCount; at += 1) append(written, messages[at]);

    let text = written.text + userMessage(written.media);
    for (const message of messages.slice(stableCount)) text += comma(userJson(message));
    return text;
  }

  function append(written: Written, message: Message | undefined): void {
    if (message === undefined) return;
    written.messages.push(message);
    if (message.role === 'tool') {
      const { json, media } = toolResult(written, message);
      written.text += comma(json);
      if (media !== '') written.media.push(media);
      return;
    }
    written.text += userMessage(written.media);
    written.media = [];
    written.text += comma(message.role === 'user' ? userJson(message) : assistantJson(written, message));
  }

  function userJson(message: Message): string | undefined {
    if (message.role !== 'user') return undefined;
    return cached(message, '', () => asResult(writeUser(message, target())))?.json;
  }

  function assistantJson(written: Written, message: AssistantMessage): string | undefined {
    const ids: string[] = [];
    for (const part of message.content) {
      if (part.type !== 'tool_call') continue;
      const id = chooseWireId(part, written.takenIds, idRules);
      written.wireIds.set(part.id, id);
      ids.push(id);
    }
    return cached(message, ids.join(' '), () => asResult(writeAssistant(message, ids, target())))?.json;
  }

  function toolResult(written: Written, message: ToolMessage): WrittenResult {
    const id = written.wireIds.get(message.toolCallId) ?? message.toolCallId;
    const result = cached(message, id, () => writeTool(message, id, target()));
    // A tool message is never empty.
    return result ?? writeTool(message, id, target());
  }

  function cached(message: Message, key: string, make: () => WrittenResult | undefined): WrittenResult | undefined {
    const known = cache.get(message);
    if (known?.key === key) return known.result;
    const result = make();
    cache.set(message, { key, result });
    return result;
  }

  return { write };
}

function newHistory(): Written {
  return { messages: [], text: '', media: [], takenIds: new Set(), wireIds: new Map() };
}

/** How many messages come again in the next request: all but the transient ones at the tail. */
function countStable(messages: readonly Message[]): number {
  let count = messages.length;
  for (let message = messages[count - 1]; message?.role === 'user' && message.transient === true; message = messages[count - 1]) {
    count -= 1;
  }
  return count;
}

function isPrefix(prefix: readonly Message[], messages: readonly Message[], count: number): boolean {
  return prefix.length <= count && prefix.every((message, at) => message === messages[at]);
}

function userMessage(contents: readonly string[]): string {
  return contents.length === 0 ? '' : `,{"role":"user","content":[${contents.join(',')}]}`;
}

function asResult(json: string | undefined): WrittenResult | undefined {
  return json === undefined ? undefined : { json, media: '' };
}

function comma(json: string | undefined): string {
  return json === undefined ? '' : `,${json}`;
}
