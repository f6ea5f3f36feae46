/**
 * Summary kept: which messages of a summarised part stay beside the summary, and how much of them.
 *
 * - What is protected stays as it is: the first task, the newest message of a person, what is pinned, memory.
 * - Of a person's other messages the newest stay, within a budget; the oldest of those that stay is cut to what is left.
 * - Everything else goes: reminders too, since whoever wrote them writes them again.
 */
import { textOf, type Message, type UserMessage } from '../core/message.ts';
import { isFromUser, isSummary, protectedMessages } from './layer.ts';
import { truncateToTokens } from './truncate-text.ts';

/** How much of a person's messages may stay. */
export interface KeptBudget {
  /** Tokens for messages that are not protected; 0 keeps none. */
  readonly userMessageTokens: number;
  /** Tokens of a message. */
  readonly estimateMessage: (message: Message) => number;
  /** Tokens of a text. */
  readonly estimateText: (text: string) => number;
  /** Gives an id to a message that is cut. */
  readonly createId: () => string;
}

/** Less than this of a message says nothing. */
const LEAST_TOKENS = 20;

/**
 * What becomes of each message of a part that is summarised.
 *
 * @param messages - The whole history.
 * @param end - Where the part that is summarised ends.
 * @returns What each message that does not stay as it is becomes: nothing, or a shorter one.
 */
export function keptBeside(messages: readonly Message[], end: number, budget: KeptBudget): ReadonlyMap<Message, readonly Message[]> {
  const isProtected = protectedMessages(messages);
  // A summary goes wherever it stands: there is to be one.
  const summaries = messages.filter((message) => isSummary(message) && !isProtected.has(message));
  const changes = new Map<Message, readonly Message[]>(summaries.map((message) => [message, []]));
  let left = budget.userMessageTokens;
  for (const message of messages.slice(0, end).toReversed()) {
    if (isProtected.has(message) || isSummary(message)) continue;
    const tokens = isFromUser(message) ? budget.estimateMessage(message) : Infinity;
    if (tokens <= left) {
      left -= tokens;
      continue;
    }
    const shorter = isFromUser(message) ? shorten(message, left, budget) : undefined;
    if (isFromUser(message)) left = 0;
    changes.set(message, shorter === undefined ? [] : [shorter]);
  }
  return changes;
}

/** The message's text, cut to what is left; undefined if that is too little. */
function shorten(message: UserMessage, tokens: number, budget: KeptBudget): UserMessage | undefined {
  if (tokens < LEAST_TOKENS) return undefined;
  const whole = textOf(message);
  const text = truncateToTokens(whole, tokens, budget.estimateText);
  if (text === undefined || text.trim() === '') return undefined;
  return { ...message, id: budget.createId(), content: [{ type: 'text', text }] };
}
