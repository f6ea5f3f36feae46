/**
 * Message wire: one message of a history as this protocol's blocks.
 *
 * - Text is cleaned, blank text left out, and nothing is repaired: calls and results are paired by whoever built the
 *   history. Blocks that came from this provider go back as they came, but for what is only in answers.
 * - No reply ends with thinking, or with white space: the end of a request may not, and what was sent once is sent so
 *   again.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { AssistantMessage, AssistantPart, MediaPart, TextPart, ToolMessage, UserMessage } from '../../core/message.ts';
import { inputJson } from '../shared/call-input.ts';
import { mediaNote } from '../shared/media.ts';
import { NO_OUTPUT } from '../shared/model-texts.ts';
import { isJsonObject, ownData, type OwnTarget } from '../shared/own-data.ts';
import { toWireName } from '../shared/tool-names.ts';
import { cleanText, isBlank } from '../shared/wire-text.ts';
import { toMediaBlock } from './media.ts';
import { type Container, containerOf } from './container.ts';
import { type ThinkingHistory, toThinkingBlock } from './thinking-block.ts';

/** What messages are written for. */
export interface WireTarget extends OwnTarget {
  /** `capabilities.mediaTypes`. */
  readonly mediaTypes: readonly string[] | undefined;
  /** What of the thinking goes back. */
  readonly thinkingHistory: ThinkingHistory;
}

/** A block of a reply. */
export interface ReplyBlock {
  readonly json: string;
  /** `server_call`: of a tool that the provider runs, `server_result`: what it gave. */
  readonly kind: 'text' | 'thinking' | 'call' | 'server_call' | 'server_result' | 'other';
  /** Of the call that the provider runs, or ran. */
  readonly serverId?: string | undefined;
}

/** A message, written. */
export type WrittenMessage =
  | { readonly role: 'user'; readonly blocks: readonly string[] }
  | { readonly role: 'assistant'; readonly blocks: readonly ReplyBlock[]; readonly container?: Container | undefined };

/** A user message; undefined for one that says nothing. */
export function writeUser(message: UserMessage, { mediaTypes }: WireTarget): WrittenMessage | undefined {
  const blocks = toContent(message.content, mediaTypes).map((block) => JSON.stringify(block));
  return blocks.length === 0 ? undefined : { role: 'user', blocks };
}

/** A tool message, as a block of a user turn. @param wireId - The id of its call. */
export function writeTool(message: ToolMessage, wireId: string, { mediaTypes }: WireTarget): WrittenMessage {
  const written = toContent(message.content, mediaTypes);
  const content = written.length === 0 ? [textBlock(NO_OUTPUT)] : written;
  // The flag goes with text alone; the text of a failure says what it is.
  const isError = message.isError === true && content.every(({ type }) => type === 'text');
  return { role: 'user', blocks: [JSON.stringify({ type: 'tool_result', tool_use_id: wireId, content, ...(isError && { is_error: true }) })] };
}

/**
 * An assistant message; undefined for one with nothing to send.
 *
 * @param wireIds - The ids of its calls, in order.
 */
export function writeAssistant(message: AssistantMessage, wireIds: readonly string[], target: WireTarget): WrittenMessage | undefined {
  const blocks: ReplyBlock[] = [];
  let callCount = 0;
  for (const part of message.content) {
    const block = part.type === 'tool_call' ? callBlock(part, wireIds[callCount] ?? part.id) : toReplyBlock(part);
    if (part.type === 'tool_call') callCount += 1;
    if (block !== undefined) blocks.push(block);
  }
  // A reply that was cut off is never gone on with: what it had begun on the server stays without an end.
  const whole = withLegalEnd(message.status === 'interrupted' ? withoutOpenCalls(blocks) : blocks);
  return whole.length === 0 ? undefined : { role: 'assistant', blocks: whole, container: containerOf(message, target) };

  function toReplyBlock(part: Exclude<AssistantPart, { type: 'tool_call' }>): ReplyBlock | undefined {
    switch (part.type) {
      case 'text':
        return replyText(part);
      case 'media':
        return { kind: 'text', json: JSON.stringify(textBlock(mediaNote(part))) };
      case 'thinking': {
        const block = toThinkingBlock(part, message.source, target);
        return block === undefined ? undefined : { kind: 'thinking', json: JSON.stringify(block) };
      }
      case 'provider':
        return part.provider === target.provider ? serverBlock(part.data) : undefined;
    }
  }

  function replyText(part: TextPart): ReplyBlock | undefined {
    const text = cleanText(part.text);
    if (isBlank(text)) return undefined;
    return { kind: 'text', json: JSON.stringify({ ...extraOf(part), ...textBlock(text) }) };
  }

  function callBlock(part: Extract<AssistantPart, { type: 'tool_call' }>, id: string): ReplyBlock {
    const head = JSON.stringify({ ...extraOf(part), type: 'tool_use', id, name: toWireName(part.name) });
    return { kind: 'call', json: `${head.slice(0, -1)},"input":${inputJson(part.inputText)}}` };
  }

  /** The fields of a block that are its provider's own: citations, who called. */
  function extraOf(part: TextPart | Extract<AssistantPart, { type: 'tool_call' }>): JsonObject {
    const extra = ownData(part, message.source, target)?.['extra'];
    return isJsonObject(extra) ? withSentCitations(extra) : {};
  }
}

/** Citations as requests have them: the file that one is from is only in answers. */
function withSentCitations(extra: JsonObject): JsonObject {
  const { citations } = extra;
  if (!Array.isArray(citations)) return extra;
  const sent = (citations as readonly JsonValue[]).map((citation) => {
    if (!isJsonObject(citation)) return citation;
    const { file_id: _file, ...rest } = citation;
    return rest;
  });
  return { ...extra, citations: sent };
}

/** Blocks that may be the end of a request: without thinking, and without white space behind the last text. */
export function withLegalEnd(blocks: readonly ReplyBlock[]): readonly ReplyBlock[] {
  const kept = withoutThinkingEnd(blocks);
  const last = kept.at(-1);
  return last?.kind === 'text' ? [...kept.slice(0, -1), { ...last, json: trimmedText(last.json) }] : kept;
}

/** Blocks without the thinking that nothing follows. */
export function withoutThinkingEnd(blocks: readonly ReplyBlock[]): readonly ReplyBlock[] {
  const end = blocks.findLastIndex(({ kind }) => kind !== 'thinking') + 1;
  return end === blocks.length ? blocks : blocks.slice(0, end);
}

/** JSON of a text block without white space at the end of its text, which stands last. */
function trimmedText(json: string): string {
  if (!/(?:\s|\\[nrt])"\}$/.test(json.slice(-4))) return json;
  // It was written here.
  const block = JSON.parse(json) as JsonValue;
  return isJsonObject(block) && typeof block['text'] === 'string' ? JSON.stringify({ ...block, text: block['text'].trimEnd() }) : json;
}

/** Blocks without the calls of the provider's tools that gave nothing among them. */
export function withoutOpenCalls(blocks: readonly ReplyBlock[]): readonly ReplyBlock[] {
  if (!blocks.some(({ kind }) => kind === 'server_call')) return blocks;
  const ended = new Set(blocks.map(({ kind, serverId }) => (kind === 'server_result' ? serverId : undefined)));
  return blocks.filter(({ kind, serverId }) => kind !== 'server_call' || ended.has(serverId));
}

/** A block of the provider's own, unchanged; undefined for what is no block. */
function serverBlock(data: JsonValue): ReplyBlock | undefined {
  if (!isJsonObject(data)) return undefined;
  const { type, id, tool_use_id: resultOf } = data;
  if (typeof type !== 'string') return undefined;
  const json = JSON.stringify(data);
  if (type.endsWith('tool_use') && typeof id === 'string') return { kind: 'server_call', json, serverId: id };
  if (typeof resultOf === 'string') return { kind: 'server_result', json, serverId: resultOf };
  return { kind: 'other', json };
}

function toContent(parts: readonly (TextPart | MediaPart)[], mediaTypes: readonly string[] | undefined): readonly JsonObject[] {
  const blocks: JsonObject[] = [];
  for (const part of parts) {
    if (part.type === 'media') blocks.push(toMediaBlock(part, mediaTypes) ?? textBlock(mediaNote(part)));
    else if (!isBlank(cleanText(part.text))) blocks.push(textBlock(cleanText(part.text)));
  }
  return blocks;
}

function textBlock(text: string): JsonObject {
  return { type: 'text', text };
}
