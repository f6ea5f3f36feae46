/**
 * Message items: messages of users and results of tools as input items.
 *
 * Text is cleaned, blank text left out, and nothing is repaired: calls and results are paired by whoever built the
 * history.
 */
import type { JsonObject, JsonValue } from '../../core/json.ts';
import type { MediaPart, TextPart, ToolCallPart, ToolMessage, UserMessage } from '../../core/message.ts';
import { mediaNote } from '../shared/media.ts';
import { NO_OUTPUT } from '../shared/model-texts.ts';
import { isJsonObject } from '../shared/own-data.ts';
import { cleanText, isBlank } from '../shared/wire-text.ts';
import { toMediaContent } from './media.ts';

/** A result that goes back. */
export interface ToolResult {
  readonly message: ToolMessage;
  /** The id of its call. */
  readonly callId: string;
  /** Its call; undefined if the history does not hold it. */
  readonly call: ToolCallPart | undefined;
}

/** JSON of a user message; undefined for one that says nothing. @param mediaTypes - `capabilities.mediaTypes`. */
export function writeUser(message: UserMessage, mediaTypes: readonly string[] | undefined): string | undefined {
  const content = toContent(message.content, mediaTypes, '\n\n');
  return content === undefined ? undefined : JSON.stringify({ role: 'user', content });
}

/** JSON of a tool's output. @param mediaTypes - `capabilities.mediaTypes`. */
export function writeResult({ message, callId, call }: ToolResult, mediaTypes: readonly string[] | undefined): string {
  const type = isFreeText(call) ? 'custom_tool_call_output' : 'function_call_output';
  return JSON.stringify({ type, call_id: callId, output: toContent(message.content, mediaTypes, '\n') ?? NO_OUTPUT });
}

/** Whether a call's input is free text: its tool was one of the server's `custom` tools. */
export function isFreeText(call: ToolCallPart | undefined): boolean {
  return isJsonObject(call?.providerData) && call.providerData['type'] === 'custom_tool_call';
}

/** Text alone as a text, which every server takes; undefined for nothing. */
function toContent(parts: readonly (TextPart | MediaPart)[], mediaTypes: readonly string[] | undefined, separator: string): JsonValue | undefined {
  const written: JsonObject[] = [];
  for (const part of parts) {
    if (part.type === 'media') written.push(toMediaContent(part, mediaTypes) ?? textContent(mediaNote(part)));
    else if (!isBlank(cleanText(part.text))) written.push(textContent(cleanText(part.text)));
  }
  if (written.length === 0) return undefined;
  const texts = written.map(({ text }) => text);
  return texts.every((text) => typeof text === 'string') ? texts.join(separator) : written;
}

function textContent(text: string): JsonObject {
  return { type: 'input_text', text };
}
