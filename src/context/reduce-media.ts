/**
 * Reduce media: what to do when a request is too large, or the provider does not take an image, audio or file in it.
 *
 * Two recoveries: first all but the newest media go out, then all. What goes out is decided once per turn, when a request
 * failed, and by what a provider sees of a medium: its type and its content.
 *
 * 1. Equal messages in, equal messages out: whether a medium is shown never depends on what comes later. So the newest
 *    that were kept stay, and each later step begins with the request before.
 * 2. A medium that went out stays out, also when a later tool returns it again; one with other content is shown.
 * 3. Nothing is mutated. A message without such media is the same object, a changed one the same on every step: adapters
 *    keep the wire form of a message by its identity.
 *
 * Pairing holds by construction: messages are never left out, and each medium becomes one text.
 *
 * What went out is recorded as a compaction, before the request is sent again: a later turn would be refused once more,
 * and its own new media would go out with the old ones.
 */
import type { Recovery, RecoveryContext } from '../core/hooks.ts';
import type { LLMErrorKind } from '../core/errors.ts';
import type { LLMRequest } from '../core/llm.ts';
import type { MediaPart, Message, MessagePart } from '../core/message.ts';
import { assertOptions } from '../core/assert.ts';
import { editsBetween, isCompactable } from './layer.ts';
import { noteMedia } from './media-notes.ts';
import { createTokenEstimator } from './token-estimator.ts';

/** Enough to compare a picture with the one before. */
const DEFAULT_KEEP_NEWEST = 2;

const OPTIONS: Readonly<Record<keyof ReduceMediaOptions, true>> = { keepNewest: true, note: true, lasting: true };

/** Options of {@link reduceMedia}. */
export interface ReduceMediaOptions {
  /** How many media parts the first recovery keeps, counted from the newest; a whole number. @defaultValue 2 */
  readonly keepNewest?: number | undefined;
  /**
   * What the model reads in place of a medium. Must depend on the part alone: the text is part of what providers cache.
   *
   * @defaultValue `[image/png left out: the request was refused with it.]`
   */
  readonly note?: ((part: MediaPart) => string) | undefined;
  /**
   * Whether what went out stays out in later turns: it is then recorded as a `compaction`, which changes the history and
   * leaves the events. With `false` it holds for the turn, and the next one is refused first.
   *
   * @defaultValue true
   */
  readonly lasting?: boolean | undefined;
}

/**
 * Recoveries from `request_too_large` and `media_rejected`, in the order in which they are to be tried.
 *
 * - `reduceMedia.older`, for requests that are too large: replaces all media but the newest by a note.
 * - `reduceMedia.all`, if that was not enough: replaces all. A rejected medium comes here at once: which one it was is
 *   not known, and the newest is the likeliest.
 *
 * They hold for the media there were when the request failed: later ones are shown.
 *
 * @throws TypeError for an option that does not exist or makes no sense.
 *
 * @example
 * ```ts
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, recoveries: [strictHistory(), ...reduceMedia()] });
 * ```
 */
export function reduceMedia(options: ReduceMediaOptions = {}): readonly [older: Recovery, all: Recovery] {
  assertOptions(options, OPTIONS, { taker: 'reduceMedia', example: 'recoveries: [...reduceMedia({ keepNewest: 2 })]' });
  const { keepNewest = DEFAULT_KEEP_NEWEST, note = defaultNote, lasting = true } = options;
  if (!Number.isSafeInteger(keepNewest) || keepNewest < 0) {
    throw new TypeError(
      `reduceMedia: \`keepNewest\` must be a whole number of at least 0, not ${String(keepNewest)}. ` +
        'For example: recoveries: [...reduceMedia({ keepNewest: 2 })].',
    );
  }
  assertType('note', options.note, { type: 'function', example: 'note: ({ mediaType }) => `[${mediaType} left out.]`' });
  assertType('lasting', options.lasting, { type: 'boolean', example: 'lasting: false' });
  return [
    createRecovery({ name: 'reduceMedia.older', kinds: ['request_too_large'], keepNewest, note, lasting }),
    createRecovery({
      name: 'reduceMedia.all',
      kinds: ['request_too_large', 'media_rejected'],
      keepNewest: 0,
      note,
      lasting,
    }),
  ];
}

function assertType(name: string, value: unknown, { type, example }: { readonly type: string; readonly example: string }): void {
  if (value === undefined || typeof value === type) return;
  const shown = value === null ? 'null' : `a value of type ${typeof value}`;
  throw new TypeError(`reduceMedia: \`${name}\` must be a ${type}, not ${shown}. For example: recoveries: [...reduceMedia({ ${example} })].`);
}

/** What a model reads in place of a medium. */
function defaultNote(part: MediaPart): string {
  return `[${part.mediaType} left out: the request was refused with it.]`;
}

interface MediaRecoveryOptions {
  readonly name: string;
  readonly kinds: readonly LLMErrorKind[];
  readonly keepNewest: number;
  readonly note: (part: MediaPart) => string;
  readonly lasting: boolean;
}

function createRecovery(options: MediaRecoveryOptions): Recovery {
  const { name, kinds, keepNewest, note, lasting } = options;
  return {
    name,
    kinds,
    apply: async (request, context) => {
      const decided = decisionOf(context);
      if (context.error === undefined) return decided?.applyTo(request);
      // A second failure has nothing new to decide: what was to go out did.
      if (decided !== undefined) return undefined;

      const decision = new Decision(olderMedia(request.messages, keepNewest), note);
      const reduced = decision.applyTo(request);
      if (reduced === undefined) return undefined;
      context.state.set(DECISION, decision);
      if (lasting) await recordChanges(name, decision, context);
      return reduced;
    },
  };
}

const DECISION = 'decision';

function decisionOf(context: RecoveryContext): Decision | undefined {
  const decision = context.state.get(DECISION);
  return decision instanceof Decision ? decision : undefined;
}

/** What goes out for the rest of a turn, and the messages changed so far. */
class Decision {
  readonly #out: MediaSet;
  readonly #note: (part: MediaPart) => string;
  readonly #changed = new WeakMap<Message, Message>();

  constructor(out: MediaSet, note: (part: MediaPart) => string) {
    this.#out = out;
    this.#note = note;
  }

  /** The request with the changed messages; undefined if none changes. */
  applyTo(request: LLMRequest): LLMRequest | undefined {
    const messages = request.messages.map((message) => this.change(message));
    const isChanged = messages.some((message, index) => message !== request.messages[index]);
    return isChanged ? { ...request, messages } : undefined;
  }

  /** The message with notes for the media that are out; itself if it has none of them. */
  change(message: Message): Message {
    const known = this.#changed.get(message);
    if (known !== undefined) return known;
    const changed = noteMedia(message, (part) => (this.#out.has(part) ? this.#note(part) : undefined));
    this.#changed.set(message, changed);
    return changed;
  }
}

/**
 * Records what went out: each changed message takes the place of its old form. Works on the history as it is recorded:
 * recoveries before this one may have merged messages of the request. Left alone are messages that were built for one
 * request, and pinned ones, which no compaction touches.
 */
async function recordChanges(layer: string, decision: Decision, context: RecoveryContext): Promise<void> {
  const before = await context.messages();
  const after = before.map((message) => (isCompactable(message) ? decision.change(message) : message));
  const edits = editsBetween(before, after);
  if (edits.length === 0) return;
  const estimator = createTokenEstimator();
  await context.record({
    type: 'compaction',
    layer,
    edits,
    tokensBefore: estimator.estimateMessages(before),
    tokensAfter: estimator.estimateMessages(after),
  });
}

/** All media of the messages but the newest `keepNewest` parts and what is the same as they are. */
function olderMedia(messages: readonly Message[], keepNewest: number): MediaSet {
  const parts: readonly MessagePart[] = messages.flatMap((message): readonly MessagePart[] => message.content);
  const media = parts.filter((part) => part.type === 'media');
  const kept = new MediaSet(media.slice(Math.max(0, media.length - keepNewest)));
  return new MediaSet(media.filter((part) => !kept.has(part)));
}

/** Media by what a provider sees of them: type and content. Contents are looked up as they are, never joined or copied. */
class MediaSet {
  readonly #contentsByType = new Map<string, Set<string>>();

  constructor(parts: readonly MediaPart[]) {
    for (const part of parts) {
      const contents = this.#contentsByType.get(part.mediaType);
      if (contents === undefined) this.#contentsByType.set(part.mediaType, new Set([contentOf(part)]));
      else contents.add(contentOf(part));
    }
  }

  has(part: MediaPart): boolean {
    return this.#contentsByType.get(part.mediaType)?.has(contentOf(part)) === true;
  }
}

/** Base64 or an address: no text is both. */
function contentOf(part: MediaPart): string {
  return part.data ?? part.url;
}
