/**
 * Trim history: layer 5, the last one. Brings a history down to a number of tokens, by whatever may go.
 *
 * - First what is long is cut short, then whole exchanges go, oldest first: pairs never split (L2).
 * - The first task, the newest message of a person, pinned messages, memory and summaries stay. Only the first task may
 *   be cut short, when nothing else is left to give.
 * - What the model has not answered yet goes last, and only if a person spoke since: before, it is made as small as it
 *   gets, down to ids and names.
 * - One message tells the model that older ones were left out: the same however often a history is trimmed.
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import type { MediaPart, Message, UserMessage } from '../core/message.ts';
import { shortenInput } from './fold-input.ts';
import { foldMessage } from './fold-old-texts.ts';
import { assertEstimator, assertHistory } from './assert-context.ts';
import { isCompactable, isSummary, protectedMessages, recentStart, resultOf, taskTest, unchanged, type LayerResult } from './layer.ts';
import { noteMedia } from './media-notes.ts';
import { createTokenEstimator, type TokenEstimator } from './token-estimator.ts';
import { truncateText, type TextBudget } from './truncate-text.ts';

/** What a long text of an old message comes to. */
const OLD_TEXT = textBudget(1_000);
/** What long texts that may not go come to, one after the other until it fits. */
const SMALLER = [8_192, 4_096, 2_048, 1_024, 512, 256].map(textBudget);
/** What those of the newest exchange come to when nothing else is left to give: the last has no room for a mark. */
const SMALLEST = [128, 64, 24].map(textBudget);
/** Shares of the target: more is too much for the newest exchange, or for the first task, while others go for it. */
const NEWEST_SHARE = 0.5;
const TASK_SHARE = 0.25;

/** More of a media type is not a media type: it is a tool's word. */
const MAX_NAME = 64;

const MARKER = '[Older messages were left out here, to fit the context window.]';

const ARGUMENT = { taker: 'trimHistory', example: 'trimHistory(messages, { targetTokens: 16_000 })' };
const OPTIONS: Readonly<Record<keyof TrimHistoryOptions, true>> = { targetTokens: true, estimator: true };

/** Options of {@link trimHistory}. */
export interface TrimHistoryOptions {
  /**
   * What the messages may cost, prompt and tools not counted, in tokens as `estimator.estimateMessage` counts them, before
   * calibration: what a model's window leaves for messages, divided by `estimator.factorOf(llm)`. At least 0.
   */
  readonly targetTokens: number;
  /** Counts tokens. @defaultValue a new one */
  readonly estimator?: TokenEstimator | undefined;
}

/**
 * Trims a history to a number of tokens. Pure; asks no model.
 *
 * If the target is out of reach, the result is the least there is: `tokensAfter` is then above `targetTokens`.
 *
 * @param messages - The history, oldest first; not changed.
 * @throws TypeError for messages that are none, and for an option that is missing, does not exist or makes no sense.
 *
 * @example
 * ```ts
 * const { edits, tokensAfter } = trimHistory(messages, { targetTokens: 16_000 });
 * ```
 */
export function trimHistory(messages: readonly Message[], options: TrimHistoryOptions): LayerResult {
  assertHistory(messages, ARGUMENT);
  assertOptions(options, OPTIONS, ARGUMENT);
  assertEstimator(options.estimator, ARGUMENT);
  const { targetTokens, estimator = createTokenEstimator() } = options;
  if (targetTokens === undefined) throw new TypeError(`trimHistory needs \`targetTokens\`. For example: ${ARGUMENT.example}.`);
  assertNumbers(options, { targetTokens: { least: 0 } }, ARGUMENT);
  const trim = new Trim(messages, estimator);
  if (trim.tokens <= targetTokens) return unchanged(messages, estimator);
  trim.run(targetTokens);
  return resultOf(messages, trim.changes, { estimator });
}

/** True for the message that says that older ones were left out. A summary of the messages behind it may take its place. */
function isTrimMarker(message: Message): boolean {
  const [only] = message.content;
  return message.role === 'user' && message.origin === 'reminder' && only?.type === 'text' && only.text === MARKER;
}

/** Neighbouring messages that go together: a reply with its results, or any other message alone. */
type Unit = readonly Message[];

class Trim {
  readonly #messages: readonly Message[];
  readonly #estimator: TokenEstimator;
  readonly #protected: ReadonlySet<Message>;
  /** Where what the model has to answer next begins: the newest exchange, if its results are not answered yet. */
  readonly #newest: number;
  readonly changes = new Map<Message, readonly Message[]>();
  tokens: number;
  #hasMarker: boolean;

  constructor(messages: readonly Message[], estimator: TokenEstimator) {
    this.#messages = messages;
    this.#estimator = estimator;
    this.#protected = protectedMessages(messages);
    this.#newest = newestExchange(messages);
    this.tokens = estimator.estimateMessages(messages);
    this.#hasMarker = messages.some(isTrimMarker);
  }

  run(target: number): void {
    const old = this.#messages.slice(0, this.#newest).filter((message) => this.#mayGo(message));
    const newest = this.#messages.slice(this.#newest).filter((message) => this.#mayGo(message));
    const task = this.#task();
    const fits = (): boolean => this.tokens <= target;
    this.#shorten(old, OLD_TEXT);
    this.#shortenUntil(newest, SMALLER, () => fits() || this.#costOf(newest) <= target * NEWEST_SHARE);
    this.#shortenUntil(task, SMALLER, () => fits() || this.#costOf(task) <= target * TASK_SHARE);
    this.#dropOldest(this.#messages.slice(0, this.#newest), fits);
    this.#shortenUntil(newest, SMALLER, fits);
    this.#shortenUntil(task, SMALLER, fits);
    this.#shortenUntil(newest, SMALLEST, fits);
    if (this.#messages.slice(this.#newest).some(taskTest(this.#messages))) this.#dropOldest(this.#messages, fits);
  }

  #shortenUntil(messages: readonly Message[], budgets: readonly TextBudget[], isEnough: () => boolean): void {
    for (const budget of budgets) {
      if (isEnough()) return;
      this.#shorten(messages, budget);
    }
  }

  /** Cuts long texts short, and puts notes in place of media. Each time from the whole, so that a mark counts all. */
  #shorten(messages: readonly Message[], budget: TextBudget): void {
    for (const message of messages) {
      if (this.#current(message) !== undefined) this.#replace(message, shorten(noteMedia(message, leftOut), budget));
    }
  }

  /** The first task, alone in a list; nothing if it is also the newest message of a person, or protected for more reasons. */
  #task(): readonly Message[] {
    const tasks = this.#messages.filter((message) => this.#protected.has(message) && isTask(message));
    const [first] = tasks;
    return first === undefined || tasks.length < 2 ? [] : [first];
  }

  #replace(message: Message, by: Message): void {
    const saved = this.#estimator.estimateMessage(this.#current(message) ?? message) - this.#estimator.estimateMessage(by);
    if (saved <= 0) return;
    this.changes.set(message, [by]);
    this.tokens -= saved;
  }

  /** Leaves whole units of these messages out, oldest first. */
  #dropOldest(messages: readonly Message[], isEnough: () => boolean): void {
    if (isEnough()) return;
    const isLeft = (message: Message): boolean => this.#mayGo(message) && this.changes.get(message)?.length !== 0;
    const units = unitsOf(messages).filter((unit) => unit.every(isLeft));
    const first = units[0]?.[0];
    if (first === undefined) return;
    const marker = this.#hasMarker ? undefined : markerFor(first);
    const cost = marker === undefined ? 0 : this.#estimator.estimateMessage(marker);
    // Leaving out must give more than saying so takes.
    if (this.#costOf(units.flat()) <= cost) return;
    this.#hasMarker = true;
    this.tokens += cost;
    for (const unit of units) {
      if (isEnough()) break;
      this.tokens -= this.#costOf(unit);
      for (const message of unit) this.changes.set(message, message === first && marker !== undefined ? [marker] : []);
    }
  }

  #mayGo(message: Message): boolean {
    return !this.#protected.has(message) && !isSummary(message) && !isTrimMarker(message);
  }

  /** What a message is as things stand; undefined if it was left out. */
  #current(message: Message): Message | undefined {
    const becomes = this.changes.get(message);
    return becomes === undefined ? message : becomes[0];
  }

  #costOf(messages: readonly Message[]): number {
    return messages.reduce((sum, message) => {
      const current = this.#current(message);
      return current === undefined ? sum : sum + this.#estimator.estimateMessage(current);
    }, 0);
  }
}

/** The message with whatever is long in it within the budget. */
function shorten(message: Message, budget: TextBudget): Message {
  if (message.role !== 'assistant') return foldMessage(message, budget);
  const content = message.content.map((part) =>
    part.type === 'tool_call' ? shortenInput(part, budget.maxCharacters, (text) => truncateText(text, budget)) : part,
  );
  return foldMessage({ ...message, content }, budget);
}

function newestExchange(messages: readonly Message[]): number {
  const start = recentStart(messages, 0);
  const isOpen = messages.slice(start).some(({ role }) => role === 'tool');
  const isLast = messages.slice(start + 1).every((message) => message.role === 'user' && message.transient === true);
  return isOpen || isLast ? start : messages.length;
}

function unitsOf(messages: readonly Message[]): readonly Unit[] {
  const units: Message[][] = [];
  for (const message of messages) {
    const last = units.at(-1);
    if (message.role === 'tool' && last !== undefined) last.push(message);
    else units.push([message]);
  }
  return units;
}

/** A message that is protected because it is the first or the newest of its kind, and for no other reason. */
function isTask(message: Message): boolean {
  return isCompactable(message) && message.role === 'user' && message.origin !== 'memory';
}

/** Its id is that of what it stands for, since ids of messages are unique. */
function markerFor(message: Message): UserMessage {
  return { role: 'user', id: `trimmed_${message.id}`, origin: 'reminder', content: [{ type: 'text', text: MARKER }] };
}

function leftOut(part: MediaPart): string {
  return `[${part.mediaType.slice(0, MAX_NAME)} left out to fit the context window.]`;
}

function textBudget(maxCharacters: number): TextBudget {
  const share = Math.floor(maxCharacters * 0.4);
  return { maxCharacters, headCharacters: share, tailCharacters: share };
}
