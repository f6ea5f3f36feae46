/** Media: images, audio and files as this protocol's content parts, and back. Media types count whatever their case. */
import { isRecord, type JsonObject } from '../../core/json.ts';
import type { MediaPart } from '../../core/message.ts';
import { dataUrl, isAccepted, mediaFromUrl } from '../shared/media.ts';
import { cleanText } from '../shared/wire-text.ts';

/** Audio types by this protocol's names. */
const AUDIO_FORMATS: ReadonlyMap<string, string> = new Map([
  ['audio/wav', 'wav'],
  ['audio/x-wav', 'wav'],
  ['audio/wave', 'wav'],
  ['audio/mpeg', 'mp3'],
  ['audio/mp3', 'mp3'],
]);

/**
 * A content part for media; undefined for what cannot be sent.
 *
 * @param accepted - `capabilities.mediaTypes`: undefined where it is not known, and then the server decides.
 */
export function toMediaContent(part: MediaPart, accepted: readonly string[] | undefined): JsonObject | undefined {
  const mediaType = part.mediaType.toLowerCase();
  if (!isAccepted(part, accepted)) return undefined;
  if (mediaType.startsWith('image/')) return { type: 'image_url', image_url: { url: part.url === undefined ? dataUrl(part) : cleanText(part.url) } };
  if (part.data === undefined) return undefined;
  const format = AUDIO_FORMATS.get(mediaType);
  if (format !== undefined) return { type: 'input_audio', input_audio: { data: part.data, format } };
  if (mediaType !== 'application/pdf') return undefined;
  return { type: 'file', file: { filename: 'document.pdf', file_data: dataUrl(part) } };
}

/** An `image_url` part of a reply; undefined if it has no address. */
export function readMediaPart(part: Record<string, unknown>): MediaPart | undefined {
  const image = part['image_url'];
  const url = isRecord(image) ? image['url'] : image;
  if (typeof url !== 'string' || url === '') return undefined;
  return mediaFromUrl(url, 'image/*');
}
