/** Media: what all protocols need to know of it. Media types count whatever their case, and without parameters. */
import type { MediaPart } from '../../core/message.ts';
import { cleanText } from './wire-text.ts';

/**
 * Whether a model takes media of this type.
 *
 * @param accepted - `capabilities.mediaTypes`: undefined where it is not known, and then the server decides.
 */
export function isAccepted({ mediaType }: MediaPart, accepted: readonly string[] | undefined): boolean {
  const given = plainType(mediaType);
  return accepted === undefined || accepted.some((type) => matchesType(given, type.toLowerCase()));
}

/** Whether media is to be heard. */
export function isAudio({ mediaType }: MediaPart): boolean {
  return /^audio\//i.test(mediaType);
}

/** What stands in the place of media that cannot be sent. A model reads it. */
export function mediaNote({ mediaType }: MediaPart): string {
  return `[${cleanText(mediaType)} left out: this model cannot be sent it]`;
}

/** Inline media as a `data:` address. */
export function dataUrl({ mediaType, data }: MediaPart): string {
  return `data:${cleanText(mediaType).toLowerCase()};base64,${data ?? ''}`;
}

/** A media type as servers know it: in lower case, without parameters such as a charset, and by its usual name. */
export function plainType(mediaType: string): string {
  const type = cleanText(mediaType).replace(/;.*$/s, '').trim().toLowerCase();
  return type === 'image/jpg' ? 'image/jpeg' : type;
}

/**
 * Media at an address, or within it if it is a `data:` one; in one that is broken there is none, and it stays an address.
 *
 * @param mediaType - Of what is at an address, or in one that does not say.
 */
export function mediaFromUrl(url: string, mediaType: string): MediaPart {
  const header = /^data:([^,]*),/i.exec(url);
  const [type = '', ...parameters] = (header?.[1] ?? '').split(';');
  const data = header === null ? undefined : dataOf(url.slice(header[0].length), /^\s*base64\s*$/i.test(parameters.at(-1) ?? ''));
  return data === undefined ? { type: 'media', mediaType, url } : { type: 'media', mediaType: plainType(type) || mediaType || 'text/plain', data };
}

/** What stands in a `data:` address, in base64; undefined if its escapes are broken. */
function dataOf(content: string, isBase64: boolean): string | undefined {
  if (isBase64 && !content.includes('%')) return content;
  try {
    const text = decodeURIComponent(content);
    return isBase64 ? text : toBase64(new TextEncoder().encode(text));
  } catch {
    return undefined;
  }
}

// `fromCharCode` takes its characters as arguments, of which there may be some ten thousands.
const CHUNK_BYTES = 8192;

/** Bytes in base64. */
export function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK_BYTES));
  return btoa(binary);
}

function matchesType(mediaType: string, accepted: string): boolean {
  return accepted.endsWith('/') ? mediaType.startsWith(accepted) : mediaType === accepted;
}
