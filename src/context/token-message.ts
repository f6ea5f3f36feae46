/**
 * Token message: what of a request costs tokens, and how much before calibration: system prompt, tools with their schemas,
 * each part of each message, and what frames them.
 *
 * - M1 The bytes of media are never counted as text: not in media parts, nor as a `data:` address or as base64 in the JSON of
 *   a call or of a provider's block. Text that a tool gave back is sent as text, and counts as text whatever is in it.
 * - M2 Arguments that are no object count as the empty one that is sent for them.
 * - M3 Signatures and what providers attach to parts are left out: most do not charge for them.
 */
import { isRecord, type JsonValue } from '../core/json.ts';
import type { ToolDefinition } from '../core/llm.ts';
import type { Message, MessagePart } from '../core/message.ts';
import { addTextTokens, MARKS, MEDIA, noTokens, type TokenCounts } from './token-text.ts';

/** What a medium costs, by its MIME type. */
export type MediaTokens = (mediaType: string) => number;

/** Role and separators, about the same with every provider. */
const MESSAGE_TOKENS = 4;
/** Its id, and the names of its members. */
const CALL_TOKENS = 6;
const TOOL_TOKENS = 6;

/** Tokens of a message. */
export function messageTokens(message: Message, mediaTokens: MediaTokens): TokenCounts {
  const counts = noTokens();
  add(counts, MARKS, MESSAGE_TOKENS);
  for (const part of message.content) addPartTokens(part, mediaTokens, counts);
  return counts;
}

/** Tokens of a tool as it is offered. */
export function toolTokens({ name, description, inputSchema }: ToolDefinition, mediaTokens: MediaTokens): TokenCounts {
  const counts = noTokens();
  add(counts, MARKS, TOOL_TOKENS);
  addTextTokens(name, counts);
  addTextTokens(description, counts);
  addJsonTokens(inputSchema, mediaTokens, counts);
  return counts;
}

function addPartTokens(part: MessagePart, mediaTokens: MediaTokens, counts: TokenCounts): void {
  switch (part.type) {
    case 'text':
      addTextTokens(part.text, counts);
      return;
    case 'thinking':
      addTextTokens(part.text, counts);
      if (part.redactedData !== undefined) addOpaqueTokens(part.redactedData, mediaTokens, counts);
      return;
    case 'media':
      add(counts, MEDIA, mediaTokens(part.mediaType));
      return;
    case 'tool_call':
      add(counts, MARKS, CALL_TOKENS);
      addTextTokens(part.name, counts);
      addJsonTextTokens(isObjectText(part.inputText) ? part.inputText : NO_ARGUMENTS, mediaTokens, counts);
      return;
    case 'provider':
      addJsonTokens(part.data, mediaTokens, counts);
  }
}

/** What adapters send for arguments that a model wrote broken; the result of the call quotes them. */
const NO_ARGUMENTS = '{}';

function isObjectText(text: string): boolean {
  try {
    return isRecord(JSON.parse(text));
  } catch {
    return false;
  }
}

const DATA_ADDRESS = /data:([\w.+-]+\/[\w.+-]+)(?:;[\w.+-]+=[\w.+-]+)*;base64,[A-Za-z0-9+/_=-]*/g;

/** Adds JSON that is sent as text, but for what it holds of media. */
function addJsonTextTokens(text: string, mediaTokens: MediaTokens, counts: TokenCounts): void {
  const withoutMedia = text.includes(';base64,')
    ? text.replaceAll(DATA_ADDRESS, (_address, mediaType: string) => {
        add(counts, MEDIA, mediaTokens(mediaType));
        return '';
      })
    : text;
  addTextTokens(withoutMedia, counts);
}

/** Shorter than this, base64 counts as the text it may be: an id, a hash. */
const OPAQUE_LENGTH = 256;
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** Adds a value as its JSON, but for base64 in it. What cannot be written adds nothing: no provider could be sent it. */
function addJsonTokens(value: JsonValue, mediaTokens: MediaTokens, counts: TokenCounts): void {
  // Written without its base64, so that megabytes are not copied to be left out.
  const replacer = function (this: unknown, _key: string, child: unknown): unknown {
    if (typeof child !== 'string' || child.length < OPAQUE_LENGTH || !BASE64.test(child)) return child;
    const mediaType = isRecord(this) ? mediaTypeIn(this) : undefined;
    if (mediaType === undefined) addOpaqueTokens(child, mediaTokens, counts);
    else add(counts, MEDIA, mediaTokens(mediaType));
    return '';
  };
  let text: string | undefined;
  try {
    text = JSON.stringify(value, replacer);
  } catch {
    return;
  }
  if (text !== undefined) addJsonTextTokens(text, mediaTokens, counts);
}

/** Members in which providers say of what type the base64 beside them is. */
const TYPE_MEMBERS = ['media_type', 'mimeType', 'mime_type', 'mediaType'] as const;

function mediaTypeIn(object: Readonly<Record<string, unknown>>): string | undefined {
  return TYPE_MEMBERS.map((name) => object[name]).find((type) => typeof type === 'string');
}

const OPAQUE_CHARACTERS = 5;

/** Adds what nobody can read: encrypted thinking as its length tells, and never more than a medium. */
function addOpaqueTokens(data: string, mediaTokens: MediaTokens, counts: TokenCounts): void {
  add(counts, MEDIA, Math.min(data.length / OPAQUE_CHARACTERS, mediaTokens('application/octet-stream')));
}

function add(counts: TokenCounts, kind: number, tokens: number): void {
  counts[kind] = (counts[kind] ?? 0) + tokens;
}
