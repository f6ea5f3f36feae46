/**
 * Media limits: which media are too much, and what stands in their place. A note depends on the medium and the limits
 * alone: it is part of what providers cache.
 */
import type { LLM } from '../core/llm.ts';
import type { MediaPart, MessagePart } from '../core/message.ts';

/** What media may be. Sizes are characters of base64. */
export interface MediaLimits {
  /** Of one medium. */
  readonly maxItem: number;
  /** Of all media of a history. */
  readonly maxTotal: number;
  /** What of older ones stays when they are more. */
  readonly keepTotal: number;
  /** The types that are taken; undefined for what the model says. */
  readonly mediaTypes: readonly string[] | undefined;
}

/** Why a medium goes out: too large alone, of a type that is not taken, too large together with others. */
export type MediaReason = 'size' | 'type' | 'total';

/** More of a media type is not a media type: it is a tool's word. */
const MAX_NAME = 64;

/** Why a medium may not enter, whatever else there is; undefined if it may. */
export function refusalOf(part: MediaPart, limits: MediaLimits, llm: LLM): MediaReason | undefined {
  const types = limits.mediaTypes ?? llm.capabilities?.mediaTypes;
  if (types !== undefined && !isTaken(part.mediaType, types)) return 'type';
  return sizeOf(part) > limits.maxItem ? 'size' : undefined;
}

function isTaken(mediaType: string, types: readonly string[]): boolean {
  const [name = ''] = mediaType.toLowerCase().split(';');
  return types.some((type) => (type.endsWith('/') ? name.startsWith(type.toLowerCase()) : name.trim() === type.toLowerCase()));
}

/** What travels of a medium: its base64. One by address does not travel with the request. */
function sizeOf(part: MediaPart): number {
  return part.data?.length ?? 0;
}

/** A medium, and where it stands: one part object may stand in several places. */
export interface PlacedMedium {
  /** The part. */
  readonly part: MediaPart;
  /** Its index in the content. */
  readonly index: number;
}

/** All media of a message's or a result's content, in its order. */
export function mediaOf(content: readonly MessagePart[]): readonly PlacedMedium[] {
  return content.flatMap((part, index) => (part.type === 'media' ? [{ part, index }] : []));
}

/** What the model reads in place of a medium. */
export function mediaNote(part: MediaPart, reason: MediaReason, { maxItem }: MediaLimits): string {
  const name = part.mediaType.slice(0, MAX_NAME);
  switch (reason) {
    case 'size':
      return `[${name} left out: ${inMegabytes(sizeOf(part))} of base64 are more than the ${inMegabytes(maxItem)} that are taken.]`;
    case 'type':
      return `[${name} left out: the model does not take media of this type.]`;
    case 'total':
      return `[${name} left out: newer media take the room there is.]`;
  }
}

/** Cut to two digits, so that a limit and what is just above it may read the same, and no rounding crosses a limit. */
function inMegabytes(size: number): string {
  return `${Math.floor(size / 10_000) / 100} MB`;
}

/** A medium of the history, as the total counts it. */
export interface CountedMedium {
  /** The part. */
  readonly part: MediaPart;
  /** Whether it may go out. */
  readonly mayGo: boolean;
  /** Whether the model has not answered it yet: it goes last. */
  readonly isNew: boolean;
}

/**
 * The media that go out so that the rest is within the limit: none as long as all are; else the oldest, until those that
 * were answered are down to `keepTotal`.
 *
 * @param media - Oldest first.
 */
export function tooMuch<Medium extends CountedMedium>(media: readonly Medium[], limits: MediaLimits): readonly Medium[] {
  const sum = (list: readonly CountedMedium[]): number => list.reduce((total, { part }) => total + sizeOf(part), 0);
  if (sum(media) <= limits.maxTotal) return [];
  let kept = sum(media.filter(({ mayGo }) => !mayGo));
  const out: Medium[] = [];
  for (const medium of media.filter(({ mayGo }) => mayGo).reverse()) {
    const { part, isNew } = medium;
    const next = kept + sizeOf(part);
    // The first that does not fit takes all older ones along; what has no size gains nothing.
    if (out.length === 0 && next <= (isNew ? limits.maxTotal : limits.keepTotal)) kept = next;
    else if (sizeOf(part) > 0) out.push(medium);
  }
  return out;
}
