/** Media: images, audio, video and files as Gemini's parts, and back. Media types count whatever their case. */
import type { JsonObject } from '../../core/json.ts';
import type { MediaPart } from '../../core/message.ts';
import { isAccepted, mediaFromUrl } from '../shared/media.ts';

/** What Gemini's models take. Of anything else the whole request would be refused. */
const GEMINI_TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/heic', 'image/heif', 'audio/', 'video/', 'application/pdf', 'text/'];

/** Types by the end of an address, for those that name none. */
const TYPES_BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['webp', 'image/webp'],
  ['heic', 'image/heic'],
  ['heif', 'image/heif'],
  ['mp3', 'audio/mp3'],
  ['wav', 'audio/wav'],
  ['aac', 'audio/aac'],
  ['ogg', 'audio/ogg'],
  ['flac', 'audio/flac'],
  ['mp4', 'video/mp4'],
  ['mpeg', 'video/mpeg'],
  ['mov', 'video/mov'],
  ['webm', 'video/webm'],
  ['pdf', 'application/pdf'],
  ['txt', 'text/plain'],
  ['md', 'text/markdown'],
  ['html', 'text/html'],
  ['csv', 'text/csv'],
]);

/**
 * A part for media; undefined for what cannot be sent.
 *
 * @param accepted - `capabilities.mediaTypes`: undefined for all that Gemini takes.
 */
export function toMediaBlock(given: MediaPart, accepted: readonly string[] | undefined): JsonObject | undefined {
  const part = given.url === undefined ? given : mediaFromUrl(given.url, typeOf(given.mediaType, given.url));
  if (!isAccepted(part, accepted ?? GEMINI_TYPES)) return undefined;
  const mimeType = part.mediaType.toLowerCase();
  if (part.url === undefined) return { inlineData: { mimeType, data: part.data } };
  // Of a video on YouTube, say, nobody knows the type but the server.
  return { fileData: { ...(!isVague(mimeType) && { mimeType }), fileUri: part.url } };
}

/** The type as given, or by the end of the address where that says too little. */
function typeOf(mediaType: string, url: string): string {
  if (!isVague(mediaType)) return mediaType;
  const extension = /\.([a-z0-9]+)(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase();
  return TYPES_BY_EXTENSION.get(extension ?? '') ?? mediaType;
}

function isVague(mediaType: string): boolean {
  return mediaType === '' || mediaType.endsWith('/*') || mediaType === 'application/octet-stream';
}
