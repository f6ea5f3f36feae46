/** File parts: media as the AI SDK's prompt has it, and back. The versions of its specification differ in this most. */
import { isRecord } from '../../core/json.ts';
import type { MediaPart } from '../../core/message.ts';
import { isAccepted, mediaFromUrl, plainType, toBase64 } from '../shared/media.ts';
import type { SpecificationVersion, SupportedUrls } from './model.ts';
import type { PromptPart } from './prompt-types.ts';

/** What files are written for. */
export interface FileTarget {
  readonly version: SpecificationVersion;
  /** `capabilities.mediaTypes`. */
  readonly mediaTypes: readonly string[] | undefined;
  /** What the model's server fetches itself. */
  readonly supportedUrls: SupportedUrls;
}

/** A file with its type as providers know it. */
type File = { readonly mediaType: string } & ({ readonly data: string; readonly url?: undefined } | { readonly url: URL; readonly data?: undefined });

/** A file of a message; undefined for media that the model cannot be sent. */
export function toFilePart(part: MediaPart, target: FileTarget): PromptPart | undefined {
  const file = toFile(part, target);
  if (file === undefined) return undefined;
  const { mediaType } = file;
  return { type: 'file', mediaType, data: target.version === 'v4' ? tagged(file) : (file.url ?? file.data) };
}

/** A file within a tool's result; undefined for media that the model cannot be sent. */
export function toResultFile(part: MediaPart, target: FileTarget): PromptPart | undefined {
  const file = toFile(part, target);
  if (file === undefined) return undefined;
  const { mediaType } = file;
  if (target.version === 'v4') return { type: 'file', mediaType, data: tagged(file) };
  const isV2 = target.version === 'v2';
  // The oldest version has no addresses here.
  if (file.url !== undefined) return isV2 ? undefined : urlPart(file.url.href, mediaType);
  return { type: isV2 ? 'media' : isImage(mediaType) ? 'image-data' : 'file-data', data: file.data, mediaType };
}

function urlPart(url: string, mediaType: string): PromptPart {
  return isImage(mediaType) ? { type: 'image-url', url } : { type: 'file-url', url, mediaType };
}

function isImage(mediaType: string): boolean {
  return mediaType.startsWith('image/');
}

function tagged(file: File): object {
  return file.url === undefined ? { type: 'data', data: file.data } : { type: 'url', url: file.url };
}

function toFile(given: MediaPart, { mediaTypes, supportedUrls }: FileTarget): File | undefined {
  const part = given.url === undefined ? given : mediaFromUrl(given.url, given.mediaType);
  if (!isAccepted(part, mediaTypes)) return undefined;
  const { data, url } = part;
  const mediaType = plainType(part.mediaType);
  // Of a file without bytes the whole request would be refused.
  if (url === undefined) return data === '' ? undefined : { mediaType, data };
  return URL.canParse(url) && isSupported(url, mediaType, supportedUrls) ? { mediaType, url: new URL(url) } : undefined;
}

function isSupported(url: string, mediaType: string, supported: SupportedUrls): boolean {
  return Object.entries(supported).some(([type, patterns]) => matchesType(mediaType, type.toLowerCase()) && patterns.some((pattern) => matches(pattern, url)));
}

function matchesType(mediaType: string, type: string): boolean {
  const prefix = type === '*' ? '' : type.replace(/\*.*$/, '');
  return prefix === type ? mediaType === type : mediaType.startsWith(prefix);
}

function matches(pattern: RegExp, url: string): boolean {
  pattern.lastIndex = 0;
  return pattern.test(url);
}

/** A file of a reply as media; undefined if there are no bytes and no address in it. */
export function readFile({ mediaType, data }: Readonly<Record<string, unknown>>): MediaPart | undefined {
  const type = typeof mediaType === 'string' ? mediaType : 'application/octet-stream';
  const isTagged = isRecord(data) && (data['type'] === 'data' || data['type'] === 'url');
  const content: unknown = isTagged ? data[data['type'] === 'data' ? 'data' : 'url'] : data;
  if (content instanceof Uint8Array) return { type: 'media', mediaType: type, data: toBase64(content) };
  if (content instanceof URL) return mediaFromUrl(content.href, type);
  if (typeof content !== 'string' || content === '') return undefined;
  return isTagged && data['type'] === 'url' ? mediaFromUrl(content, type) : { type: 'media', mediaType: type, data: content };
}
