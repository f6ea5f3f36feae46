/**
 * Fold old texts: layer 3. Long old texts become their first and last characters, without a model.
 *
 * - What a provider verifies never changes: thinking that is signed, encrypted or carries data of the provider, and parts
 *   that only the provider understands. What a provider attached to a text or a call stays with it.
 * - Arguments stay a JSON object with the keys they had.
 * - Messages stay, each with all its parts: pairs are whole (L2).
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import type { AssistantPart, Message } from '../core/message.ts';
import { foldInput } from './fold-input.ts';
import { assertEstimator, assertHistory } from './assert-context.ts';
import { isSummary, protectedMessages, recentStart, resultOf, type LayerResult } from './layer.ts';
import { createTokenEstimator, type TokenEstimator } from './token-estimator.ts';
import { toTextBudget, truncateParts, truncateText, type TextBudget } from './truncate-text.ts';

const DEFAULT_KEEP_NEWEST = 20;
/** About 500 tokens: what is longer is output or a file. */
const DEFAULT_BUDGET: TextBudget = { maxCharacters: 2_000, headCharacters: 600, tailCharacters: 600 };
const LEAST_CHARACTERS = 200;

const ARGUMENT = { taker: 'foldOldTexts', example: 'foldOldTexts(messages, { maxCharacters: 2000, headCharacters: 600, tailCharacters: 600 })' };
const OPTIONS: Readonly<Record<keyof FoldOldTextsOptions, true>> = {
  estimator: true,
  keepNewest: true,
  maxCharacters: true,
  headCharacters: true,
  tailCharacters: true,
  minGain: true,
};

/** Options of {@link foldOldTexts}. */
export interface FoldOldTextsOptions {
  /** Counts tokens. @defaultValue a new one */
  readonly estimator?: TokenEstimator | undefined;
  /**
   * How many of the newest messages are left alone, a whole number of at least 0. The exchange they begin in stays whole,
   * and what the model has not answered yet always stays.
   *
   * @defaultValue 20
   */
  readonly keepNewest?: number | undefined;
  /** Texts up to this many characters are left alone; at least 200. @defaultValue 2,000: about 500 tokens */
  readonly maxCharacters?: number | undefined;
  /** Characters kept of the beginning. @defaultValue 600, less where `maxCharacters` is less than 2,000 */
  readonly headCharacters?: number | undefined;
  /** Characters kept of the end. @defaultValue 600, less where `maxCharacters` is less than 2,000 */
  readonly tailCharacters?: number | undefined;
  /** Fewer tokens than this are not worth a change of the past: nothing is done then. @defaultValue 1 */
  readonly minGain?: number | undefined;
}

/**
 * Folds what is long in old messages to its beginning and its end, with a line between that says how much is missing:
 * texts of replies and of users, unsigned thinking, results, and strings in the arguments of calls. The first task, the
 * newest message of a person, pinned messages, memory and summaries stay as they are. Pure; asks no model.
 *
 * @param messages - The history, oldest first; not changed.
 * @throws TypeError for messages that are none, and for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const { edits, tokensBefore, tokensAfter } = foldOldTexts(messages, { keepNewest: 20 });
 * ```
 */
export function foldOldTexts(messages: readonly Message[], options: FoldOldTextsOptions = {}): LayerResult {
  assertHistory(messages, ARGUMENT);
  assertOptions(options, OPTIONS, ARGUMENT);
  assertEstimator(options.estimator, ARGUMENT);
  assertNumbers(options, { keepNewest: { least: 0, whole: true }, minGain: { least: 0 } }, ARGUMENT);
  const budget = toTextBudget(options, DEFAULT_BUDGET, { ...ARGUMENT, least: LEAST_CHARACTERS });
  const { estimator = createTokenEstimator(), keepNewest = DEFAULT_KEEP_NEWEST, minGain } = options;
  const isProtected = protectedMessages(messages);
  const changes = new Map<Message, readonly Message[]>();
  for (const message of messages.slice(0, recentStart(messages, keepNewest))) {
    if (isProtected.has(message) || isSummary(message)) continue;
    const folded = foldMessage(message, budget);
    if (estimator.estimateMessage(folded) < estimator.estimateMessage(message)) changes.set(message, [folded]);
  }
  return resultOf(messages, changes, { estimator, ...(minGain !== undefined && { minGain }) });
}

/** The message with each long text within the budget; itself if none is long. */
export function foldMessage(message: Message, budget: TextBudget): Message {
  switch (message.role) {
    case 'user': {
      const content = truncateParts(message.content, budget);
      return content === message.content ? message : { ...message, content };
    }
    case 'tool': {
      const content = truncateParts(message.content, budget);
      return content === message.content ? message : { ...message, content };
    }
    case 'assistant': {
      const content = message.content.map((part) => foldPart(part, budget));
      return content.every((part, index) => part === message.content[index]) ? message : { ...message, content };
    }
  }
}

function foldPart(part: AssistantPart, budget: TextBudget): AssistantPart {
  switch (part.type) {
    case 'text':
      return withText(part, truncateText(part.text, budget));
    case 'thinking':
      return isSealed(part) ? part : withText(part, truncateText(part.text, budget));
    case 'tool_call':
      if (part.inputText.length <= budget.maxCharacters) return part;
      return foldInput(part, (value) => truncateText(value, budget));
    case 'media':
    case 'provider':
      return part;
  }
}

function withText<Part extends { readonly text: string }>(part: Part, text: string): Part {
  return text === part.text ? part : { ...part, text };
}

/** Thinking that its provider verifies, or may. */
function isSealed({ signature, redactedData, providerData }: Extract<AssistantPart, { type: 'thinking' }>): boolean {
  return signature !== undefined || redactedData !== undefined || providerData !== undefined;
}
