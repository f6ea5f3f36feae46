/** Media: what all protocols need to know of it. Media types count whatever their case. */
import type { MediaPart } from '../../core/message.ts';

/**
 * Whether a model takes media of this type.
 *
 * @param accepted - `capabilities.mediaTypes`: undefined where it is not known, and then the server decides.
 */
export function isAccepted({ mediaType }: MediaPart, accepted: readonly string[] | undefined): boolean {
  const given = mediaType.toLowerCase();
  return accepted === undefined || accepted.some((type) => matchesType(given, type.toLowerCase()));
}

/** Whether media is to be heard. */
export function isAudio({ mediaType }: MediaPart): boolean {
  return /^audio\//i.test(mediaType);
}

/** What stands in the place of media that cannot be sent. A model reads it. */
export function mediaNote({ mediaType }: MediaPart): string {
  return `[${mediaType} left out: this model cannot be sent it]`;
}

/** Inline media as a `data:` address. */
export function dataUrl({ mediaType, data }: MediaPart): string {
  return `data:${mediaType.toLowerCase()};base64,${data ?? ''}`;
}

/** Media at an address, or within it if it is a `data:` one. @param mediaType - Of what is at an address. */
export function mediaFromUrl(url: string, mediaType: string): MediaPart {
  const inline = /^data:([^;,]+);base64,/i.exec(url);
  if (inline === null) return { type: 'media', mediaType, url };
  return { type: 'media', mediaType: inline[1]?.toLowerCase() ?? mediaType, data: url.slice(inline[0].length) };
}

function matchesType(mediaType: string, accepted: string): boolean {
  return accepted.endsWith('/') ? mediaType.startsWith(accepted) : mediaType === accepted;
}
