/** Media: images and documents as this protocol's blocks. Media types count whatever their case. */
import type { JsonObject } from '../../core/json.ts';
import type { MediaPart } from '../../core/message.ts';
import { isAccepted, mediaFromUrl } from '../shared/media.ts';
import { cleanText, isBlank } from '../shared/wire-text.ts';

/** Images that are taken inline, by their name here. */
const IMAGE_TYPES: ReadonlyMap<string, string> = new Map([
  ['image/png', 'image/png'],
  ['image/jpeg', 'image/jpeg'],
  ['image/jpg', 'image/jpeg'],
  ['image/gif', 'image/gif'],
  ['image/webp', 'image/webp'],
]);

/**
 * A block for media; undefined for what cannot be sent: audio, video, other images, and addresses other than of the web.
 *
 * @param accepted - `capabilities.mediaTypes`: undefined where it is not known, and then the server decides.
 */
export function toMediaBlock(part: MediaPart, accepted: readonly string[] | undefined): JsonObject | undefined {
  if (part.url === undefined) return isAccepted(part, accepted) ? inlineBlock(part.mediaType.toLowerCase(), part.data) : undefined;
  if (/^data:/i.test(part.url)) return inlineUrlBlock(part.url, part.mediaType, accepted);
  if (!/^https?:\/\//i.test(part.url) || !isAccepted(part, accepted)) return undefined;
  const mediaType = part.mediaType.toLowerCase();
  const source = { type: 'url', url: cleanText(part.url) };
  if (IMAGE_TYPES.has(mediaType) || mediaType === 'image/*') return { type: 'image', source };
  return mediaType === 'application/pdf' ? { type: 'document', source } : undefined;
}

function inlineUrlBlock(url: string, mediaType: string, accepted: readonly string[] | undefined): JsonObject | undefined {
  const inline = mediaFromUrl(url, mediaType);
  return inline.data === undefined ? undefined : toMediaBlock(inline, accepted);
}

function inlineBlock(mediaType: string, data: string): JsonObject | undefined {
  if (data === '') return undefined;
  const imageType = IMAGE_TYPES.get(mediaType);
  if (imageType !== undefined) return { type: 'image', source: { type: 'base64', media_type: imageType, data } };
  if (mediaType === 'application/pdf') return { type: 'document', source: { type: 'base64', media_type: mediaType, data } };
  return /^text\//.test(mediaType) ? textBlock(data) : undefined;
}

/** A document of plain text, which the protocol takes as text. */
function textBlock(data: string): JsonObject | undefined {
  const text = cleanText(decodeText(data));
  return isBlank(text) ? undefined : { type: 'document', source: { type: 'text', media_type: 'text/plain', data: text } };
}

function decodeText(data: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(data), (character) => character.charCodeAt(0)));
  } catch {
    // No base64: there is no text in it, and a note takes its place.
    return '';
  }
}
