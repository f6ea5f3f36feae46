/**
 * Limit media: what a provider would refuse, or what would be too much together, does not stay in the history.
 *
 * - A medium that is too large, or of a type that the model does not take, becomes a note as it enters: a result before it
 *   is recorded, a person's message before the first request with it.
 * - If all media together are too large, the oldest go, down to well below the limit: one change of the past, and then
 *   none for a while.
 * - Messages stay, so pairs are whole (L2).
 * - Nothing new, nothing done (L4): a change that the record did not take is not recorded again in the turn.
 */
import { assertNumbers, assertOptions } from '../core/assert.ts';
import type { Hook, HookContext } from '../core/hooks.ts';
import type { LLM } from '../core/llm.ts';
import type { Message, MessagePart, ToolResultPart } from '../core/message.ts';
import { assertEstimator } from './assert-context.ts';
import { editsBetween, isCompactable, recentStart } from './layer.ts';
import { mediaNote, mediaOf, refusalOf, tooMuch, type MediaLimits, type MediaReason, type PlacedMedium } from './media-limits.ts';
import { noteMedia } from './media-notes.ts';
import { createTokenEstimator, type TokenEstimator } from './token-estimator.ts';

const DEFAULT_MAX_ITEM = 5_000_000;
const DEFAULT_MAX_TOTAL = 20_000_000;

const ARGUMENT = { taker: 'limitMedia', example: 'hooks: [limitMedia({ maxItemCharacters: 5_000_000, maxTotalCharacters: 20_000_000 })]' };
const OPTIONS: Readonly<Record<keyof LimitMediaOptions, true>> = {
  maxItemCharacters: true,
  maxTotalCharacters: true,
  keepTotalCharacters: true,
  mediaTypes: true,
  estimator: true,
};

/** Options of {@link limitMedia}. Sizes are characters of base64, which is what travels: four for three bytes. */
export interface LimitMediaOptions {
  /** Most characters of base64 of one medium. @defaultValue 5,000,000: what the strictest large provider takes of an image */
  readonly maxItemCharacters?: number | undefined;
  /**
   * Most characters of base64 of all media of a request. @defaultValue 20,000,000: large providers take bodies of that and
   * more, and the texts need room too
   */
  readonly maxTotalCharacters?: number | undefined;
  /**
   * What of older media stays when the total is too large, the newest first. Less than the total, so that the past does
   * not change with each new image. Media that the model has not answered yet may fill the total.
   *
   * @defaultValue half of `maxTotalCharacters`
   */
  readonly keepTotalCharacters?: number | undefined;
  /**
   * MIME types that the model takes, or prefixes ending in `/`; empty for none.
   *
   * @defaultValue what `llm.capabilities.mediaTypes` says; where it says nothing, any type
   */
  readonly mediaTypes?: readonly string[] | undefined;
  /** Counts tokens, for the record. @defaultValue a new one */
  readonly estimator?: TokenEstimator | undefined;
}

/**
 * Hook that keeps media out of the history that would make each later request fail: too large alone, of a type that the
 * model does not take, too large together. The model reads a note in their place.
 *
 * Results are changed before they are recorded. What a person sent, and the total, are looked at before each request, and
 * a change is recorded as a `compaction` of the layer `limitMedia`. Left alone are media by address, whose size is not
 * known, pinned messages, and messages built for one request.
 *
 * Notice: `limitMedia.replaced` `{size, type, total}`, how many media went out for which reason.
 *
 * @throws TypeError for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, hooks: [limitMedia()], recoveries: [...reduceMedia()] });
 * ```
 */
export function limitMedia(options: LimitMediaOptions = {}): Hook {
  const limits = toLimits(options);
  const { estimator = createTokenEstimator() } = options;
  /** By turn: how many media a message had when a change of it was recorded. One that still has them was not changed. */
  const recorded = new WeakMap<AbortSignal, Map<string, number>>();
  /** What was found in messages: most have no media, and a history is looked at before each step. */
  const known = new WeakMap<Message, readonly PlacedMedium[]>();
  const mediaIn = (message: Message): readonly PlacedMedium[] => {
    const media = known.get(message) ?? mediaOf(message.content);
    known.set(message, media);
    return media;
  };
  return {
    name: 'limitMedia',
    finalizeToolResult: (context, _call, result) => {
      const out = new Outgoing<undefined>(limits);
      for (const { part, index } of mediaOf(result.content)) out.add(undefined, index, refusalOf(part, limits, context.llm));
      if (out.isEmpty) return undefined;
      notify(context, out);
      return { ...result, content: result.content.map((part, index) => notePart(part, out.noteFor(undefined, part, index))) };
    },
    beforeStep: async (context) => {
      const before = await context.messages();
      const done = recorded.get(context.signal) ?? new Map<string, number>();
      recorded.set(context.signal, done);
      const isOpen = (message: Message): boolean => isCompactable(message) && done.get(message.id) !== mediaIn(message).length;
      const out = findTooMuch(before, { limits, llm: context.llm, mediaIn, isOpen });
      if (out.isEmpty) return;

      const after = before.map((message) => noteMedia(message, (part, index) => out.noteFor(message, part, index)));
      const edits = editsBetween(before, after);
      before.forEach((message, index) => {
        if (message !== after[index]) done.set(message.id, mediaIn(message).length);
      });
      const [tokensBefore, tokensAfter] = [estimator.estimateMessages(before), estimator.estimateMessages(after)];
      await context.record({ type: 'compaction', layer: 'limitMedia', edits, tokensBefore, tokensAfter });
      notify(context, out);
    },
  };
}

/** Which media go out and why, by the message they stand in and their index there. */
class Outgoing<Owner> {
  readonly #limits: MediaLimits;
  readonly #reasons = new Map<Owner, Map<number, MediaReason>>();

  constructor(limits: MediaLimits) {
    this.#limits = limits;
  }

  get isEmpty(): boolean {
    return this.#reasons.size === 0;
  }

  add(owner: Owner, index: number, reason: MediaReason | undefined): void {
    if (reason === undefined) return;
    const reasons = this.#reasons.get(owner) ?? new Map<number, MediaReason>();
    this.#reasons.set(owner, reasons.set(index, reason));
  }

  has(owner: Owner, index: number): boolean {
    return this.#reasons.get(owner)?.has(index) === true;
  }

  /** What stands in the place of a part; undefined if it stays. */
  noteFor(owner: Owner, part: MessagePart, index: number): string | undefined {
    const reason = this.#reasons.get(owner)?.get(index);
    return reason === undefined || part.type !== 'media' ? undefined : mediaNote(part, reason, this.#limits);
  }

  count(reason: MediaReason): number {
    return [...this.#reasons.values()].flatMap((reasons) => [...reasons.values()]).filter((one) => one === reason).length;
  }
}

interface HistoryLook {
  readonly limits: MediaLimits;
  readonly llm: LLM;
  readonly mediaIn: (message: Message) => readonly PlacedMedium[];
  /** Whether a compaction may change it. */
  readonly isOpen: (message: Message) => boolean;
}

/** The media of a history that go out. */
function findTooMuch(messages: readonly Message[], { limits, llm, mediaIn, isOpen }: HistoryLook): Outgoing<Message> {
  const out = new Outgoing<Message>(limits);
  const newFrom = recentStart(messages, 0);
  const counted = messages.flatMap((message, position) => {
    const media = mediaIn(message);
    if (media.length === 0) return [];
    const mayGo = isOpen(message);
    // What a model drew is not what it is asked to look at.
    if (mayGo && message.role !== 'assistant') for (const { part, index } of media) out.add(message, index, refusalOf(part, limits, llm));
    return media
      .filter(({ index }) => !out.has(message, index))
      .map(({ part, index }) => ({ message, part, index, mayGo, isNew: position >= newFrom }));
  });
  for (const { message, index } of tooMuch(counted, limits)) out.add(message, index, 'total');
  return out;
}

function notePart(part: ToolResultPart, text: string | undefined): ToolResultPart {
  return text === undefined ? part : { type: 'text', text };
}

function notify<Owner>(context: HookContext, out: Outgoing<Owner>): void {
  context.notify({ name: 'limitMedia.replaced', data: { size: out.count('size'), type: out.count('type'), total: out.count('total') } });
}

function toLimits(options: LimitMediaOptions): MediaLimits {
  assertOptions(options, OPTIONS, ARGUMENT);
  const size = { least: 0, orInfinity: true };
  assertNumbers(options, { maxItemCharacters: size, maxTotalCharacters: size, keepTotalCharacters: size }, ARGUMENT);
  assertTypes(options.mediaTypes);
  assertEstimator(options.estimator, ARGUMENT);
  const { maxItemCharacters: maxItem = DEFAULT_MAX_ITEM, maxTotalCharacters: maxTotal = DEFAULT_MAX_TOTAL, mediaTypes } = options;
  const { keepTotalCharacters: keepTotal = maxTotal / 2 } = options;
  if (keepTotal > maxTotal) {
    throw new TypeError(
      `limitMedia: \`keepTotalCharacters\` (${keepTotal}) must not be more than \`maxTotalCharacters\` (${maxTotal}). ` +
        `For example: ${ARGUMENT.example}.`,
    );
  }
  return { maxItem, maxTotal, keepTotal, mediaTypes };
}

function assertTypes(value: unknown): void {
  if (value === undefined || (Array.isArray(value) && value.every((type) => typeof type === 'string'))) return;
  throw new TypeError("limitMedia: `mediaTypes` must be a list of MIME types. For example: hooks: [limitMedia({ mediaTypes: ['image/png', 'audio/'] })].");
}
