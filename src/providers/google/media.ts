/** Media: images, audio, video and files as Gemini's parts, and back. Media types count whatever their case. */
import type { JsonObject } from '../../core/json.ts';
import type { MediaPart } from '../../core/message.ts';
import { isAccepted, mediaFromUrl, plainType } from '../shared/media.ts';
import { cleanText } from '../shared/wire-text.ts';

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

/** Addresses that Google fetches: of the web, of its file store, and of its cloud storage. */
const FETCHED = /^(?:https?|gs):\/\//i;

/**
 * A part for media; undefined for what cannot be sent: other types, no bytes, and addresses that Google does not fetch.
 *
 * @param accepted - `capabilities.mediaTypes`: undefined for all that Gemini takes.
 */
export function toMediaBlock(given: MediaPart, accepted: readonly string[] | undefined): JsonObject | undefined {
  const part = given.url === undefined ? given : mediaFromUrl(given.url, typeOf(given.mediaType, given.url));
  if (!isAccepted(part, accepted ?? GEMINI_TYPES)) return undefined;
  const mimeType = plainType(part.mediaType);
  if (part.url === undefined) return part.data === '' ? undefined : { inlineData: { mimeType, data: part.data } };
  if (!FETCHED.test(part.url)) return undefined;
  // Of a video on YouTube, say, nobody knows the type but the server.
  return { fileData: { ...(!isVague(mimeType) && { mimeType }), fileUri: cleanText(part.url) } };
}

/** The type as given, or by the end of the address where that says too little. */
function typeOf(mediaType: string, url: string): string {
  if (!isVague(mediaType) || /^data:/i.test(url)) return mediaType;
  const extension = /\.([a-z0-9]+)(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase();
  return TYPES_BY_EXTENSION.get(extension ?? '') ?? mediaType;
}

function isVague(mediaType: string): boolean {
  return mediaType === '' || mediaType.endsWith('/*') || mediaType === 'application/octet-stream';
}
