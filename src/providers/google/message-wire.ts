/**
 * Message wire: one message of a history as the parts that Gemini takes.
 *
 * - Text is cleaned, blank text left out but for one that carries a signature, and nothing is repaired.
 * - A signature stands on the part it came on, and goes back to the same provider and model only. Gemini 3 wants one on
 *   the first call of each reply: a call that it did not make gets the word that Google has for that.
 */
import type { JsonObject } from '../../core/json.ts';
import type {
  AssistantMessage,
  AssistantPart,
  MediaPart,
  ProviderPart,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolMessage,
  UserMessage,
} from '../../core/message.ts';
import { inputJson } from '../shared/call-input.ts';
import { mediaNote } from '../shared/media.ts';
import { MEDIA_FOLLOWS, NO_OUTPUT, outputTitle } from '../shared/model-texts.ts';
import { isJsonObject, ownData, type OwnTarget } from '../shared/own-data.ts';
import { IDENTIFIER_NAMES, toWireName } from '../shared/tool-names.ts';
import { cleanText, isBlank } from '../shared/wire-text.ts';
import { toMediaBlock } from './media.ts';
import { isPartData, signatureOfMedia } from './provider-parts.ts';
import { FOREIGN_SIGNATURE } from './thinking.ts';

/** What messages are written for. */
export interface WireTarget extends OwnTarget {
  /** `capabilities.mediaTypes`. */
  readonly mediaTypes: readonly string[] | undefined;
  /** Whether thinking goes back at all. */
  readonly keepsThinking: boolean;
  /** Whether the first call of each reply has to have a signature. */
  readonly needsSignatures: boolean;
  /** Whether calls and results have ids. */
  readonly sendsIds: boolean;
}

/** A message, as far as it has been written. */
export interface WrittenMessage {
  readonly role: 'user' | 'model';
  /** JSON of each part. */
  readonly blocks: readonly string[];
  /** JSON of parts that follow all results of a reply. */
  readonly media: readonly string[];
}

/** A user message; undefined for one that says nothing. */
export function writeUser({ content }: UserMessage, { mediaTypes }: WireTarget): WrittenMessage | undefined {
  return written('user', content.flatMap((part) => (part.type === 'text' ? textBlocks(part) : [mediaBlock(part, mediaTypes)])));
}

/** A reply; undefined for one with nothing to send. @param wireIds - The ids of its calls, in order. */
export function writeAssistant(message: AssistantMessage, wireIds: readonly string[], target: WireTarget): WrittenMessage | undefined {
  const { content, source, status } = message;
  const blocks: string[] = [];
  let calls = 0;
  for (const [at, part] of content.entries()) {
    switch (part.type) {
      case 'text':
        blocks.push(...textBlocks(part, target.keepsThinking ? ownSignature(part) : undefined));
        break;
      case 'thinking':
        if (target.keepsThinking) blocks.push(...thinkingBlocks(part));
        break;
      case 'media':
        blocks.push(source?.provider === target.provider ? mediaBlock(part, target.mediaTypes, mediaSignature(content[at + 1])) : noteBlock(part));
        break;
      case 'tool_call':
        blocks.push(callBlock(part, calls, wireIds[calls]));
        calls += 1;
        break;
      case 'provider':
        // What a reply that was cut off holds of a server's tool may be half of it.
        if (isOwnBlock(part) && status !== 'interrupted') blocks.push(JSON.stringify(part.data));
        break;
    }
  }
  return written('model', blocks);

  function ownSignature(part: TextPart | ThinkingPart | ToolCallPart): string | undefined {
    const signature = ownData(part, source, target)?.['thoughtSignature'];
    return typeof signature === 'string' ? signature : undefined;
  }

  function mediaSignature(next: AssistantPart | undefined): string | undefined {
    return next?.type === 'provider' && next.provider === target.provider ? signatureOfMedia(next.data, target.model) : undefined;
  }

  function thinkingBlocks(part: ThinkingPart): readonly string[] {
    if (ownData(part, source, target) === undefined) return [];
    const signature = ownSignature(part);
    const text = cleanText(part.text);
    return isBlank(text) && signature === undefined ? [] : [block({ text, thought: true }, signature)];
  }

  function callBlock(call: ToolCallPart, index: number, wireId: string | undefined): string {
    const id = target.sendsIds && wireId !== undefined ? `"id":${JSON.stringify(wireId)},` : '';
    const signature = ownSignature(call) ?? (target.needsSignatures && index === 0 ? FOREIGN_SIGNATURE : undefined);
    const tail = signature === undefined ? '' : `,"thoughtSignature":${JSON.stringify(signature)}`;
    return `{"functionCall":{${id}"name":${JSON.stringify(wireName(call.name))},"args":${inputJson(call.inputText)}}${tail}}`;
  }

  function isOwnBlock({ provider, data }: ProviderPart): boolean {
    return provider === target.provider && isJsonObject(data) && isPartData(data);
  }
}

/** A result. @param wireId - The id of its call. */
export function writeTool(message: ToolMessage, wireId: string, { mediaTypes, sendsIds }: WireTarget): WrittenMessage {
  const texts: string[] = [];
  const media: string[] = [];
  for (const part of message.content) {
    const sent = part.type === 'text' ? undefined : toMediaBlock(part, mediaTypes);
    if (sent !== undefined) media.push(JSON.stringify(sent));
    else texts.push(part.type === 'text' ? cleanText(part.text) : mediaNote(part));
  }
  const text = texts.filter((each) => !isBlank(each)).join('\n');
  const output = text !== '' ? text : media.length > 0 ? MEDIA_FOLLOWS : NO_OUTPUT;
  const response: JsonObject = message.isError === true ? { error: output } : { output };
  const title = JSON.stringify({ text: outputTitle(message.name) });
  return {
    role: 'user',
    blocks: [JSON.stringify({ functionResponse: { ...(sendsIds && { id: wireId }), name: wireName(message.name), response } })],
    media: media.length === 0 ? [] : [title, ...media],
  };
}

function written(role: WrittenMessage['role'], blocks: readonly string[]): WrittenMessage | undefined {
  return blocks.length === 0 ? undefined : { role, blocks, media: [] };
}

function textBlocks(part: TextPart, signature?: string): readonly string[] {
  const text = cleanText(part.text);
  return isBlank(text) && signature === undefined ? [] : [block({ text }, signature)];
}

function mediaBlock(part: MediaPart, mediaTypes: readonly string[] | undefined, signature?: string): string {
  const sent = toMediaBlock(part, mediaTypes);
  return sent === undefined ? noteBlock(part) : block(sent, signature);
}

function noteBlock(part: MediaPart): string {
  return block({ text: mediaNote(part) });
}

function block(fields: JsonObject, signature?: string): string {
  return JSON.stringify(signature === undefined ? fields : { ...fields, thoughtSignature: signature });
}

function wireName(name: string): string {
  return toWireName(name, IDENTIFIER_NAMES);
}
