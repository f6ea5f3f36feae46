/**
 * Message wire: one message of a history as this protocol writes it.
 *
 * Text is cleaned, blank text left out, and nothing is repaired: calls and results are paired by whoever built the
 * history.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import type {
  AssistantMessage,
  AssistantPart,
  MediaPart,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolMessage,
  UserMessage,
} from '../../core/message.ts';
import { inputText } from '../shared/call-input.ts';
import { isAudio, mediaNote } from '../shared/media.ts';
import { MEDIA_FOLLOWS, NO_OUTPUT, outputTitle } from '../shared/model-texts.ts';
import { ownData } from '../shared/own-data.ts';
import { cleanText, isBlank } from '../shared/wire-text.ts';
import { calledName } from './chat-tools.ts';
import { extraFields } from './extra-fields.ts';
import { toMediaContent } from './media.ts';
import type { ChatDialect } from './options.ts';
import { isContentThinking, type ThinkingEcho, thinkingFields } from './thinking.ts';

/** What messages are written for. */
export interface WireTarget extends ThinkingEcho {
  /** `capabilities.mediaTypes`. */
  readonly mediaTypes: readonly string[] | undefined;
  readonly dialect: ChatDialect;
}

/** A message as this protocol has it, and what of it the protocol only takes from a user. */
export interface WrittenMessage {
  /** JSON of the message. */
  readonly json: string;
  /** JSON of content parts for the user message after the results, joined by commas; empty for none. */
  readonly media: string;
}

/** JSON of the system prompt's message. */
export function writeSystem(systemPrompt: string): string {
  return JSON.stringify({ role: 'system', content: cleanText(systemPrompt) });
}

/** A user message; undefined for one that says nothing. */
export function writeUser(message: UserMessage, { mediaTypes }: WireTarget): WrittenMessage | undefined {
  const content = toContent(message.content, mediaTypes);
  return content === undefined ? undefined : plain({ role: 'user', content });
}

/**
 * An assistant message; undefined for one with nothing to send.
 *
 * @param wireIds - The ids of its calls, in order.
 */
export function writeAssistant(message: AssistantMessage, wireIds: readonly string[], target: WireTarget): WrittenMessage | undefined {
  const { source } = message;
  const thinking = target.thinkingHistory !== 'drop' ? message.content.filter((part) => part.type === 'thinking') : [];
  const calls = message.content.filter((part) => part.type === 'tool_call');
  const content = assistantContent(message, thinking, target);
  const fields = thinkingFields(thinking, source, target);
  const hasThinking = Object.values(fields).some((value) => value !== '');
  if (content === null && calls.length === 0 && !hasThinking) return undefined;
  return plain({
    role: 'assistant',
    content,
    ...cleanFields(fields),
    ...(calls.length > 0 && { tool_calls: calls.map(toWireCall) }),
  });

  function toWireCall(call: ToolCallPart, at: number): JsonObject {
    return {
      id: wireIds[at] ?? call.id,
      type: 'function',
      function: { name: calledName(call.name, target.dialect), arguments: inputText(call.inputText) },
      ...extraFields(ownData(call, source, target) ?? {}),
    };
  }
}

/** A tool message. @param wireId - The id of its call. */
export function writeTool(message: ToolMessage, wireId: string, { mediaTypes }: WireTarget): WrittenMessage {
  const texts: string[] = [];
  const media: JsonObject[] = [];
  for (const part of message.content) {
    const written = part.type === 'text' ? undefined : toResultMedia(part, mediaTypes);
    if (written !== undefined) media.push(written);
    else texts.push(part.type === 'text' ? cleanText(part.text) : mediaNote(part));
  }
  const text = texts.filter((each) => !isBlank(each)).join('\n');
  const content = text !== '' ? text : media.length > 0 ? MEDIA_FOLLOWS : NO_OUTPUT;
  const title = { type: 'text', text: outputTitle(message.name) };
  return {
    json: JSON.stringify({ role: 'tool', tool_call_id: wireId, content }),
    media: media.length === 0 ? '' : [title, ...media].map((part) => JSON.stringify(part)).join(','),
  };
}

/** Audio counts as an answer to nothing when a user seems to say it: of a tool's media, images and files only. */
function toResultMedia(part: MediaPart, mediaTypes: readonly string[] | undefined): JsonObject | undefined {
  return isAudio(part) ? undefined : toMediaContent(part, mediaTypes);
}

function toContent(parts: readonly (TextPart | MediaPart)[], mediaTypes: readonly string[] | undefined): JsonValue | undefined {
  const written: JsonObject[] = [];
  for (const part of parts) {
    if (part.type === 'media') written.push(toMediaContent(part, mediaTypes) ?? textContent(mediaNote(part)));
    else if (!isBlank(cleanText(part.text))) written.push(textContent(cleanText(part.text)));
  }
  if (written.length === 0) return undefined;
  const texts = written.map((part) => part['text']);
  // Plain text as a string: not every server takes it as a list.
  return texts.every((text) => typeof text === 'string') ? texts.join('\n\n') : written;
}

function assistantContent(
  { content, source }: AssistantMessage,
  thinking: readonly ThinkingPart[],
  target: WireTarget,
): JsonValue {
  if (thinking.some((part) => isContentThinking(part, source, target))) return typedContent();
  let text = '';
  for (const part of content) text += assistantText(part);
  return isBlank(text) ? null : text;

  /** Mistral's way: thinking stands in the content, in its place. */
  function typedContent(): JsonObject[] {
    const parts: JsonObject[] = [];
    for (const part of content) {
      const partText = assistantText(part);
      if (part.type === 'thinking' && isContentThinking(part, source, target)) {
        parts.push({ type: 'thinking', thinking: [textContent(cleanText(part.text))] });
      } else if (!isBlank(partText)) {
        parts.push(textContent(partText));
      }
    }
    return parts;
  }
}

function assistantText(part: AssistantPart): string {
  if (part.type === 'text') return cleanText(part.text);
  return part.type === 'media' ? mediaNote(part) : '';
}

function plain(message: JsonObject): WrittenMessage {
  return { json: JSON.stringify(message), media: '' };
}

function textContent(text: string): JsonObject {
  return { type: 'text', text };
}

function cleanFields(fields: Record<string, JsonValue>): Record<string, JsonValue> {
  const entries = Object.entries(fields);
  return Object.fromEntries(entries.map(([key, value]) => [key, typeof value === 'string' ? cleanText(value) : value]));
}
