/**
 * Layer: what the layers of the context policy share. A layer looks at a history and says which messages are to become
 * which others; it changes nothing itself and asks no model, but for the summary.
 *
 * - L1 A message that is protected stands in no edit: the first task, the newest message of a person, pinned messages,
 *   memory, messages built for one request.
 *   Two exceptions: the last layer may cut the first task short, and media that no request could be sent with go out.
 * - L2 A reply and the results of its calls are one exchange: an edit takes all of it or leaves its pairs whole.
 * - L3 Pure: equal history, equal edits.
 * - L4 Nothing new, nothing done: an edit never makes a history longer, and the result of a layer gives that layer
 *   nothing more to do.
 */
import type { CompactionEdit } from '../core/events.ts';
import type { Message, UserMessage } from '../core/message.ts';
import type { TokenEstimator } from './token-estimator.ts';

/** What a layer would make of a history. Without edits if there is nothing to gain. */
export interface LayerResult {
  /** For a `compaction` event, in the order of the history. */
  readonly edits: readonly CompactionEdit[];
  /** The history after the edits; the one given if there are none. Messages without an edit are the same objects. */
  readonly messages: readonly Message[];
  /** Tokens of the messages before: the sum of `estimator.estimateMessage`, without prompt and tools, not calibrated. */
  readonly tokensBefore: number;
  /** The same of the messages after; never more than before. */
  readonly tokensAfter: number;
}

/** The result of a layer that found nothing to do. */
export function unchanged(messages: readonly Message[], estimator: TokenEstimator): LayerResult {
  const tokens = estimator.estimateMessages(messages);
  return { edits: [], messages, tokensBefore: tokens, tokensAfter: tokens };
}

/**
 * The result of a layer that replaces messages; {@link unchanged} if that gains less than `minGain` tokens.
 *
 * @param changes - What each changed message becomes; an empty list leaves it out.
 */
export function resultOf(
  messages: readonly Message[],
  changes: ReadonlyMap<Message, readonly Message[]>,
  { estimator, minGain = 1 }: { readonly estimator: TokenEstimator; readonly minGain?: number },
): LayerResult {
  const tokensBefore = estimator.estimateMessages(messages);
  const after = messages.flatMap((message) => changes.get(message) ?? [message]);
  const tokensAfter = estimator.estimateMessages(after);
  if (tokensBefore - tokensAfter < Math.max(1, minGain)) return { edits: [], messages, tokensBefore, tokensAfter: tokensBefore };
  return { edits: editsOf(messages, changes), messages: after, tokensBefore, tokensAfter };
}

/** Edits of one message each; what is left out joins the edit before it, if that stands right before. */
function editsOf(messages: readonly Message[], changes: ReadonlyMap<Message, readonly Message[]>): readonly CompactionEdit[] {
  const edits: CompactionEdit[] = [];
  let isOpen = false;
  for (const message of messages) {
    const becomes = changes.get(message);
    const last = edits.at(-1);
    if (becomes?.length === 0 && isOpen && last !== undefined) edits[edits.length - 1] = { ...last, to: message.id };
    else if (becomes !== undefined) edits.push({ from: message.id, to: message.id, messages: becomes });
    isOpen = becomes !== undefined;
  }
  return edits;
}

/**
 * Index of the first message that counts as recent: the newest `count`, the exchange they begin in as a whole, and
 * always what the model has not answered yet, with the reply that asked for it.
 */
export function recentStart(messages: readonly Message[], count: number): number {
  const end = messages.findLastIndex((message) => !isTransient(message)) + 1;
  const lastReply = messages.findLastIndex((message) => message.role === 'assistant');
  let start = Math.max(0, Math.min(end - count, lastReply));
  while (start > 0 && messages[start]?.role === 'tool') start -= 1;
  return start;
}

function isTransient(message: Message): boolean {
  return message.role === 'user' && message.transient === true;
}

/** A history after the edits of a layer, as the fold of the transcript will have it. */
export function applyEdits(messages: readonly Message[], edits: readonly CompactionEdit[]): readonly Message[] {
  const byStart = new Map(edits.map((edit) => [edit.from, edit]));
  const result: Message[] = [];
  let until: string | undefined;
  for (const message of messages) {
    if (until === undefined) {
      const edit = byStart.get(message.id);
      if (edit === undefined) {
        result.push(message);
        continue;
      }
      result.push(...edit.messages);
      until = edit.to;
    }
    if (until === message.id) until = undefined;
  }
  return result;
}

/** Edits that put each changed message in the place of its old form. The lists are of equal length. */
export function editsBetween(before: readonly Message[], after: readonly Message[]): readonly CompactionEdit[] {
  return after.flatMap((message, index) =>
    message === before[index] ? [] : [{ from: message.id, to: message.id, messages: [message] }],
  );
}

/** True for what a person said: the task, and what was added to it while it ran. Nobody said what is built for one request. */
export function isFromUser(message: Message): message is UserMessage {
  return message.role === 'user' && (message.origin === 'user' || message.origin === 'steering') && !isTransient(message);
}

/** True for a message that the record has and may change; so it may have a note in place of a medium, even if protected. */
export function isCompactable(message: Message): boolean {
  return message.id !== '' && !(message.role === 'user' && (message.transient === true || message.pinned === true));
}

/** True for what stands for a part of the history that was summarised. */
export function isSummary(message: Message): message is UserMessage {
  return message.role === 'user' && message.origin === 'summary';
}

/** What tells tasks from other messages: a person gives them. Where no person spoke, the application did. */
export function taskTest(messages: readonly Message[]): (message: Message) => boolean {
  return messages.some(isFromUser) ? isFromUser : isFromHost;
}

/** Messages that no layer touches, by L1. */
export function protectedMessages(messages: readonly Message[]): ReadonlySet<Message> {
  const isTask = taskTest(messages);
  const first = messages.find(isTask);
  const newest = messages.findLast(isTask);
  return new Set(messages.filter((message) => message === first || message === newest || isUntouchable(message)));
}

function isFromHost(message: Message): boolean {
  return message.role === 'user' && message.origin === 'host' && !isTransient(message);
}

/** Pinned, memory, built for one request, or without an id that an edit could name. */
function isUntouchable(message: Message): boolean {
  if (message.id === '') return true;
  return message.role === 'user' && (message.pinned === true || message.transient === true || message.origin === 'memory');
}
