/**
 * Message prompt: one message of a history as parts of the AI SDK's prompt.
 *
 * Text is cleaned, blank text left out, and nothing is repaired: calls and results are paired by whoever built the
 * history.
 */
import { isRecord } from '../../core/json.ts';
import type { AssistantMessage, AssistantPart, MediaPart, TextPart, ToolCallPart, ToolMessage, UserMessage } from '../../core/message.ts';
import { inputJson } from '../shared/call-input.ts';
import { mediaNote } from '../shared/media.ts';
import { MEDIA_FOLLOWS, NO_OUTPUT, outputTitle } from '../shared/model-texts.ts';
import type { OwnTarget } from '../shared/own-data.ts';
import { toWireName } from '../shared/tool-names.ts';
import type { IdRules } from '../shared/wire-ids.ts';
import { cleanText, isBlank } from '../shared/wire-text.ts';
import { type FileTarget, toFilePart, toResultFile } from './file-parts.ts';
import type { PromptPart, WrittenMessage } from './prompt-types.ts';
import { MEDIA_DATA, type OwnParts, ownParts, toOptions, toPromptPart } from './provider-data.ts';

/** What messages are written for. */
export interface PromptTarget extends OwnTarget, FileTarget {
  readonly idRules: IdRules;
  /** Whether thinking goes back at all. */
  readonly keepsThinking: boolean;
  /** Whether media of a tool's output may stand in its result. */
  readonly putsMediaInResults: boolean;
}

/** Content of a user message; empty for one that says nothing. */
export function writeUser({ content }: UserMessage, target: PromptTarget): readonly PromptPart[] {
  return content.flatMap((part) => toParts(part, target));
}

/** Content of an assistant message; empty for one with nothing to send. @param wireIds - The ids of its calls, in order. */
export function writeAssistant(message: AssistantMessage, wireIds: readonly string[], target: PromptTarget): readonly PromptPart[] {
  const own = ownParts(message, target);
  const parts: PromptPart[] = [];
  let calls = 0;
  for (const [at, part] of message.content.entries()) {
    if (part.type === 'tool_call') {
      parts.push(toCall(part, wireIds[calls] ?? part.id, own));
      calls += 1;
    } else {
      parts.push(...toAssistantParts(part, message.content[at + 1], { own, target }));
    }
  }
  // Thinking that led to nothing is refused by the providers that sign it.
  const end = parts.findLastIndex(({ type }) => type !== 'reasoning') + 1;
  return parts.slice(0, end);
}

interface AssistantWriting {
  readonly own: OwnParts;
  readonly target: PromptTarget;
}

function toAssistantParts(
  part: Exclude<AssistantPart, ToolCallPart>,
  next: AssistantPart | undefined,
  { own, target }: AssistantWriting,
): readonly PromptPart[] {
  switch (part.type) {
    case 'text': {
      const options = withOptions(own.optionsOf(part));
      const text = cleanText(part.text);
      // A blank text that a provider attached something to is an item of its protocol.
      return isBlank(text) && options.providerOptions === undefined ? [] : [{ type: 'text', text, ...options }];
    }
    case 'thinking': {
      if (!target.keepsThinking || !own.isOwn(part)) return [];
      const options = withOptions(own.optionsOf(part));
      const text = cleanText(part.text);
      return text === '' && options.providerOptions === undefined ? [] : [{ type: 'reasoning', text, ...options }];
    }
    case 'media': {
      const block = next?.type === 'provider' ? own.blockOf(next) : undefined;
      const data = block?.['type'] === MEDIA_DATA ? block : undefined;
      // Not every provider takes files of an assistant; one that made them does.
      const file = data !== undefined || own.isOwn(part) ? toFilePart(part, target) : undefined;
      if (file === undefined) return [{ type: 'text', text: mediaNote(part) }];
      return [{ ...file, ...withOptions(toOptions(data?.['providerMetadata'])) }];
    }
    case 'provider': {
      const block = own.blockOf(part);
      const written = block === undefined ? undefined : toPromptPart(block, target.version === 'v4');
      return written === undefined ? [] : [written];
    }
  }
}

function toCall(call: ToolCallPart, toolCallId: string, own: OwnParts): PromptPart {
  const input: unknown = JSON.parse(inputJson(call.inputText));
  return { type: 'tool-call', toolCallId, toolName: toWireName(call.name), input, ...withOptions(own.optionsOf(call)) };
}

/** A tool message. @param wireId - The id of its call. */
export function writeTool(message: ToolMessage, wireId: string, target: PromptTarget): WrittenMessage {
  const files: PromptPart[] = [];
  const content: PromptPart[] = [];
  // A result of mixed content cannot say that it is an error.
  const isMixed = target.putsMediaInResults && message.isError !== true;
  for (const part of message.content) {
    const file = part.type === 'media' ? (isMixed ? toResultFile : toFilePart)(part, target) : undefined;
    if (file !== undefined) (isMixed ? content : files).push(file);
    else content.push(...toText(part.type === 'media' ? mediaNote(part) : part.text));
  }
  const title = { type: 'text', text: outputTitle(message.name) };
  return {
    result: {
      type: 'tool-result',
      toolCallId: wireId,
      toolName: toWireName(message.name),
      output: toOutput(content, { isError: message.isError === true, hasFiles: files.length > 0 }),
    },
    media: files.length === 0 ? [] : [title, ...files],
  };
}

function toOutput(
  content: readonly PromptPart[],
  { isError, hasFiles }: { readonly isError: boolean; readonly hasFiles: boolean },
): { readonly type: string; readonly value: unknown } {
  const texts = content.map((part) => part['text']);
  if (content.length > 0 && !texts.every((text) => typeof text === 'string')) return { type: 'content', value: content };
  const value = content.length > 0 ? texts.join('\n') : hasFiles ? MEDIA_FOLLOWS : NO_OUTPUT;
  return { type: isError ? 'error-text' : 'text', value };
}

function toParts(part: TextPart | MediaPart, target: PromptTarget): readonly PromptPart[] {
  if (part.type === 'text') return toText(part.text);
  const file = toFilePart(part, target);
  return file === undefined ? toText(mediaNote(part)) : [file];
}

function toText(text: string): readonly PromptPart[] {
  const clean = cleanText(text);
  return isBlank(clean) ? [] : [{ type: 'text', text: clean }];
}

function withOptions(providerOptions: unknown): { readonly providerOptions?: unknown } {
  return isRecord(providerOptions) ? { providerOptions } : {};
}
