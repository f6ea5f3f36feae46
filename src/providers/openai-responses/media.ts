/** Media: images, audio and files as this protocol's content parts. Media types count whatever their case. */
import type { JsonObject } from '../../core/json.ts';
import type { MediaPart } from '../../core/message.ts';
import { dataUrl, isAccepted } from '../shared/media.ts';
import { cleanText } from '../shared/wire-text.ts';

/** Images whose bytes the servers take, by what they call them. */
const IMAGE_TYPES: ReadonlyMap<string, string> = new Map([
  ['image/png', 'image/png'],
  ['image/jpeg', 'image/jpeg'],
  ['image/jpg', 'image/jpeg'],
  ['image/webp', 'image/webp'],
  ['image/gif', 'image/gif'],
]);

/** Names for files; by its ending the server knows what one is. */
const FILE_NAMES: ReadonlyMap<string, string> = new Map([
  ['application/pdf', 'document.pdf'],
  ['application/json', 'file.json'],
  ['application/xml', 'file.xml'],
  ['application/rtf', 'document.rtf'],
  ['application/msword', 'document.doc'],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'document.docx'],
  ['application/vnd.oasis.opendocument.text', 'document.odt'],
  ['application/vnd.ms-powerpoint', 'slides.ppt'],
  ['application/vnd.openxmlformats-officedocument.presentationml.presentation', 'slides.pptx'],
  ['application/vnd.ms-excel', 'table.xls'],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'table.xlsx'],
  ['text/csv', 'table.csv'],
  ['text/tab-separated-values', 'table.tsv'],
  ['text/html', 'file.html'],
  ['text/markdown', 'file.md'],
  ['text/xml', 'file.xml'],
  ['audio/mpeg', 'audio.mp3'],
  ['audio/mp3', 'audio.mp3'],
  ['audio/wav', 'audio.wav'],
  ['audio/x-wav', 'audio.wav'],
  ['audio/wave', 'audio.wav'],
]);

/** Files of these may be given by their address. */
const LINKED_FILE = /^(?:audio|text)\//;

/**
 * A content part for media; undefined for what cannot be sent.
 *
 * @param accepted - `capabilities.mediaTypes`: undefined where it is not known, and then the server decides.
 */
export function toMediaContent(part: MediaPart, accepted: readonly string[] | undefined): JsonObject | undefined {
  if (!isAccepted(part, accepted)) return undefined;
  // Without parameters such as a charset.
  const mediaType = part.mediaType.toLowerCase().replace(/\s*;.*$/s, '');
  return mediaType.startsWith('image/') ? toImage(part, mediaType) : toFile(part, mediaType);
}

function toImage(part: MediaPart, mediaType: string): JsonObject | undefined {
  const known = IMAGE_TYPES.get(mediaType);
  const url = part.url !== undefined ? cleanText(part.url) : (known === undefined ? undefined : dataUrl({ ...part, mediaType: known }));
  return url === undefined ? undefined : { type: 'input_image', image_url: url, detail: 'auto' };
}

function toFile(part: MediaPart, mediaType: string): JsonObject | undefined {
  const filename = FILE_NAMES.get(mediaType) ?? (mediaType.startsWith('text/') ? 'file.txt' : undefined);
  if (part.url !== undefined) {
    return filename !== undefined || LINKED_FILE.test(mediaType) ? { type: 'input_file', file_url: cleanText(part.url) } : undefined;
  }
  return filename === undefined ? undefined : { type: 'input_file', filename, file_data: dataUrl({ ...part, mediaType }) };
}
