/**
 * History writer: a history as the text that a request has of it, each message written once.
 *
 * 1. What was written of a message is kept with the message: messages are immutable and keep their identity.
 * 2. A history that goes on from an earlier one starts with that one's text; only what is new is written.
 * 3. The id of a call depends on the calls before it, so a longer history never changes what an earlier one said.
 */
import type { AssistantMessage, Message, ToolCallPart, ToolMessage, UserMessage } from '../../core/message.ts';
import { chooseWireId, type IdRules } from './wire-ids.ts';
import { cleanText } from './wire-text.ts';

/** How a protocol writes messages. */
export interface HistoryFormat<Written, Sink extends HistorySink<Written>> {
  /** Which ids of calls its servers take. */
  readonly idRules: IdRules;
  /** A user message; undefined for one that says nothing. */
  user(message: UserMessage): Written | undefined;
  /** An assistant message; undefined for one with nothing to send. @param wireIds - The ids of its calls, in order. */
  assistant(message: AssistantMessage, wireIds: readonly string[]): Written | undefined;
  /**
   * A tool message.
   *
   * @param wireId - The id of its call.
   * @param call - Its call; undefined if the history does not hold it.
   */
  tool(message: ToolMessage, wireId: string, call: ToolCallPart | undefined): Written;
  /** Makes a place for a history. */
  createSink(): Sink;
}

/** Where what was written of a history is put together. */
export interface HistorySink<Written> {
  /** Adds the next message of the history; undefined for one with nothing to send. */
  add(message: Message, written: Written | undefined): void;
}

/** A history, written. */
export interface WrittenHistory<Written, Sink> {
  /** Every message that comes again in later requests. */
  readonly sink: Sink;
  /** The user messages after them, which belong to this request alone. */
  readonly tail: readonly Written[];
}

/** Writes histories for one adapter. */
export interface HistoryWriter<Written, Sink> {
  /** Writes what is new of a history. */
  write(messages: readonly Message[]): WrittenHistory<Written, Sink>;
}

/** A history as far as it was written. */
interface Progress<Sink> {
  readonly messages: Message[];
  readonly sink: Sink;
  readonly takenIds: Set<string>;
  /** Calls by our ids. */
  readonly calls: Map<string, WrittenCall>;
}

interface WrittenCall {
  readonly call: ToolCallPart;
  readonly wireId: string;
}

interface CachedMessage<Written> {
  /** The ids it was written with. */
  readonly key: string;
  readonly written: Written | undefined;
}

/** Makes a writer. */
export function createHistoryWriter<Written, Sink extends HistorySink<Written>>(
  format: HistoryFormat<Written, Sink>,
): HistoryWriter<Written, Sink> {
  /** By the first message, which a conversation keeps. */
  const histories = new WeakMap<Message, Progress<Sink>>();
  const cache = new WeakMap<Message, CachedMessage<Written>>();

  function write(messages: readonly Message[]): WrittenHistory<Written, Sink> {
    const [first] = messages;
    if (first === undefined) return { sink: format.createSink(), tail: [] };
    const stableCount = countStable(messages);
    const known = histories.get(first);
    const progress = known !== undefined && isPrefix(known.messages, messages, stableCount) ? known : start();
    histories.set(first, progress);
    for (const message of messages.slice(progress.messages.length, stableCount)) {
      progress.messages.push(message);
      progress.sink.add(message, writeMessage(message, progress));
    }
    const tail = messages.slice(stableCount).map((message) => writeMessage(message, progress));
    return { sink: progress.sink, tail: tail.filter((written) => written !== undefined) };
  }

  function start(): Progress<Sink> {
    return { messages: [], sink: format.createSink(), takenIds: new Set(), calls: new Map() };
  }

  function writeMessage(message: Message, { takenIds, calls }: Progress<Sink>): Written | undefined {
    switch (message.role) {
      case 'user':
        return cached(message, '', () => format.user(message));
      case 'assistant': {
        const ids: string[] = [];
        for (const part of message.content) {
          if (part.type !== 'tool_call') continue;
          const id = chooseWireId(part, takenIds, format.idRules);
          calls.set(part.id, { call: part, wireId: id });
          ids.push(id);
        }
        return cached(message, ids.join(' '), () => format.assistant(message, ids));
      }
      case 'tool': {
        const { call, wireId } = calls.get(message.toolCallId) ?? { call: undefined, wireId: cleanText(message.toolCallId) };
        return cached(message, wireId, () => format.tool(message, wireId, call));
      }
    }
  }

  function cached(message: Message, key: string, make: () => Written | undefined): Written | undefined {
    const known = cache.get(message);
    if (known?.key === key) return known.written;
    const written = make();
    cache.set(message, { key, written });
    return written;
  }

  return { write };
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
  if (prefix.length > count) return false;
  for (let at = 0; at < prefix.length; at += 1) if (prefix[at] !== messages[at]) return false;
  return true;
}
