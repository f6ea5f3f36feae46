/**
 * Reply reader: chunks of a stream, or one whole body, to a reply.
 *
 * Reads every dialect alike, by what is there: unknown fields and odd chunks are passed over, an error anywhere is
 * thrown, and only choice 0 counts. Nothing here waits or parses; work per chunk does not grow with the reply.
 */
import { LLMError, type PartialReplyPart } from '../../core/errors.ts';
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import type { LLMResponse, ReplyPart, ReplyToolCall } from '../../core/llm.ts';
import type { MediaPart } from '../../core/message.ts';
import { NO_USAGE } from '../../core/usage.ts';
import { isErrorBody } from '../shared/error-body.ts';
import { word } from '../shared/json-values.ts';
import { emptyReply, incompleteReply, namelessCall } from '../shared/reply-errors.ts';
import type { ReplyOutlet, ReplyReader } from '../shared/reply-reader.ts';
import { isBlank } from '../shared/wire-text.ts';
import { failureOf, toStopReason } from './finish-reason.ts';
import { readMediaPart } from './media.ts';
import { createServerResults } from './server-results.ts';
import { addDetails, findThinkingField, type PartialThinking, readDetailsText, type ThinkingField, toThinkingPart } from './thinking.ts';
import { createToolCallReader, type PartialCall } from './tool-call-reader.ts';
import { findUsage, readUsage } from './usage.ts';

/** What a reader needs to know of its request. */
export interface ReplyReaderOptions extends ReplyOutlet {
  /** For messages. */
  readonly provider: string;
  /** The model that was asked. */
  readonly model: string;
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
}

/** Reads one reply of Chat Completions. */
export interface ChatReplyReader extends ReplyReader {
  /** The field in which this reply showed its thinking. */
  readonly thinkingField: ThinkingField | undefined;
}

interface PartialText {
  readonly type: 'text';
  text: string;
  /** Kept up to date, since looking at the whole of a text in pieces means to join them. */
  isBlank: boolean;
}

type Item = PartialText | PartialThinking | { readonly type: 'call'; readonly call: PartialCall } | { readonly type: 'media'; readonly part: MediaPart };

/** Makes a reader for one reply. */
export function createReplyReader({ provider, model, toolName, onDelta, toError }: ReplyReaderOptions): ChatReplyReader {
  const items: Item[] = [];
  let thinkingField: ThinkingField | undefined;
  let finishReason: string | undefined;
  let rawUsage: unknown;
  let responseId: string | undefined;
  let modelId: string | undefined;
  let latestThinking: PartialThinking | undefined;
  let isRefused = false;
  let progress = 0;
  const serverResults = createServerResults();
  const calls = createToolCallReader({
    toolName,
    onDelta,
    onCall: (call) => items.push({ type: 'call', call }),
    onProgress: () => {
      progress += 1;
    },
  });

  function readEvent(chunk: unknown): void {
    throwError(chunk);
    if (!isRecord(chunk)) return;
    const choice = readHead(chunk);
    if (choice === undefined) return;
    const { delta, message } = choice;
    if (isRecord(delta)) readMessage(delta, false);
    // Some servers answer a request for a stream with one event that holds a whole message.
    else if (isRecord(message) && items.length === 0) readMessage(message, true);
  }

  function readBody(body: unknown): boolean {
    throwError(body);
    if (!isRecord(body) || !Array.isArray(body['choices'])) return false;
    const choice = readHead(body);
    if (choice !== undefined && isRecord(choice['message'])) readMessage(choice['message'], true);
    return true;
  }

  /** Reads what stands around the message. @returns Choice 0, if there is one. */
  function readHead(chunk: Record<string, unknown>): Record<string, unknown> | undefined {
    responseId ??= word(chunk['id']);
    modelId ??= word(chunk['model']);
    readServerResults(chunk);
    const choice = firstChoice(chunk['choices']);
    rawUsage = findUsage(chunk, choice) ?? rawUsage;
    if (choice === undefined) return undefined;
    if (isErrorBody(choice)) throw toError(choice);
    const reason = word(choice['finish_reason']);
    if (reason === undefined) return choice;
    if (finishReason === undefined) progress += 1;
    finishReason = reason;
    return choice;
  }

  function readServerResults(holder: Record<string, unknown>): void {
    if (serverResults.read(holder)) progress += 1;
  }

  function readMessage(message: Record<string, unknown>, isWhole: boolean): void {
    readThinking(message, isWhole);
    readServerResults(message);
    const { content, refusal, tool_calls: toolCalls, function_call: call, images } = message;
    if (typeof content === 'string') addText(content);
    else if (Array.isArray(content)) readParts(content);
    if (typeof refusal === 'string' && refusal !== '') addRefusal(refusal);
    if (Array.isArray(images)) readParts(images);
    if (toolCalls !== undefined && toolCalls !== null) calls.read(toolCalls, isWhole);
    else if (isRecord(call)) calls.read([{ index: 0, function: call }], isWhole);
    readExtra(message);
  }

  function readThinking(message: Record<string, unknown>, isWhole: boolean): void {
    const field = findThinkingField(message);
    if (field !== undefined) addThinking(message[field] as string, field);
    const details = message['reasoning_details'];
    if (!Array.isArray(details) || details.length === 0) return;
    const text = field === undefined ? readDetailsText(details) : '';
    if (text !== '') addThinking(text, undefined);
    if (addDetails(thinkingForData(), details, isWhole)) progress += 1;
  }

  function readParts(parts: readonly unknown[]): void {
    for (const part of parts) {
      if (typeof part === 'string') addText(part);
      if (!isRecord(part)) continue;
      const { type, text, thinking, refusal } = part;
      if (type === 'thinking') addThinking(typeof thinking === 'string' ? thinking : innerText(thinking), 'content');
      else if (type === 'refusal' && typeof refusal === 'string') addRefusal(refusal);
      else if ((type === 'text' || type === 'output_text') && typeof text === 'string') addText(text);
      else if (type === 'image_url') addMedia(readMediaPart(part));
    }
  }

  function addText(text: string): void {
    if (text === '') return;
    progress += 1;
    const last = items.at(-1);
    if (last?.type === 'text') {
      last.text += text;
      last.isBlank &&= isBlank(text);
    } else {
      items.push({ type: 'text', text, isBlank: isBlank(text) });
    }
    onDelta?.({ type: 'text', text });
  }

  function addRefusal(text: string): void {
    isRefused = true;
    addText(text);
  }

  function addThinking(text: string, field: ThinkingField | undefined): void {
    if (text === '') return;
    progress += 1;
    thinkingField ??= field;
    const last = items.at(-1);
    if (last?.type === 'thinking') {
      last.text += text;
      last.field ??= field;
    } else {
      openThinking(text, field);
    }
    onDelta?.({ type: 'thinking', text });
  }

  function addMedia(part: MediaPart | undefined): void {
    if (part === undefined) return;
    progress += 1;
    items.push({ type: 'media', part });
  }

  /** What Gemini attaches to a message, to be sent back with it. */
  function readExtra({ extra_content: content, thought_signature: signature }: Record<string, unknown>): void {
    if (isPresent(content)) keepExtra('extra_content', content);
    if (isPresent(signature)) keepExtra('thought_signature', signature);
  }

  function keepExtra(field: string, value: unknown): void {
    const thinking = thinkingForData();
    // It came out of JSON.
    thinking.extra = { ...thinking.extra, [field]: value as JsonValue };
  }

  /** Where what belongs to no text is kept: signatures may come when the thinking is over, or without any. */
  function thinkingForData(): PartialThinking {
    return latestThinking ?? openThinking('', undefined);
  }

  function openThinking(text: string, field: ThinkingField | undefined): PartialThinking {
    latestThinking = { type: 'thinking', text, field, details: [], extra: undefined };
    items.push(latestThinking);
    return latestThinking;
  }

  /** Throws the error that an answer reports, if it does; what it tells of tokens counts all the same. */
  function throwError(answer: unknown): void {
    if (!isErrorBody(answer)) return;
    if (isRecord(answer)) rawUsage = findUsage(answer, undefined) ?? rawUsage;
    throw toError(answer);
  }

  function finish(sawEnd: boolean): LLMResponse {
    if (!sawEnd && finishReason === undefined) throw incompleteReply(provider);
    const failure = failureOf(finishReason);
    if (failure !== undefined) {
      throw new LLMError({ kind: failure, code: finishReason, message: `${provider} ended the reply with "${finishReason}".` });
    }
    if (calls.hasNameless) {
      throw namelessCall(provider, 'the arguments of a tool call');
    }
    const resultsPart = serverResults.toPart(provider);
    const content = [...items.map((item) => toReplyPart(item, model, toolName)), ...(resultsPart === undefined ? [] : [resultsPart])];
    const stopReason = toStopReason({ finishReason, hasCalls: content.some((part) => part.type === 'tool_call'), isRefused });
    if (stopReason !== 'filtered' && stopReason !== 'max_tokens' && !items.some(isSubstance)) throw emptyReply(provider, `finish reason: ${finishReason ?? 'none'}`);
    return {
      content,
      stopReason,
      ...(finishReason !== undefined && { rawStopReason: finishReason }),
      usage: rawUsage === undefined ? NO_USAGE : readUsage(rawUsage),
      ...(responseId !== undefined && { responseId }),
      ...(modelId !== undefined && { modelId }),
    };
  }

  return {
    readEvent,
    readBody,
    finish,
    get isFinished() {
      return finishReason !== undefined;
    },
    // `[DONE]`, which is no event of the reply's.
    isEnded: false,
    get progress() {
      return progress;
    },
    get thinkingField() {
      return thinkingField;
    },
    get usage() {
      return rawUsage === undefined ? undefined : readUsage(rawUsage);
    },
    partial: () => toPartial(items, model),
  };
}

/** Text as far as it came, thinking where something followed it, and whole media; no calls. */
function toPartial(items: readonly Item[], model: string): readonly PartialReplyPart[] {
  const parts: PartialReplyPart[] = [];
  for (const [at, item] of items.entries()) {
    if (item.type === 'media') parts.push(item.part);
    else if (item.type === 'text' && !item.isBlank) parts.push({ type: 'text', text: item.text });
    else if (item.type === 'thinking' && at < items.length - 1) parts.push(toThinkingPart(item, model));
  }
  return parts;
}

function toReplyPart(item: Item, model: string, toolName: (wireName: string) => string): ReplyPart {
  switch (item.type) {
    case 'text':
      return { type: 'text', text: item.text };
    case 'thinking':
      return toThinkingPart(item, model);
    case 'media':
      return item.part;
    case 'call':
      return toReplyCall(item.call, model, toolName);
  }
}

function toReplyCall({ id, name, inputText, extra }: PartialCall, model: string, toolName: (wireName: string) => string): ReplyToolCall {
  const providerData: JsonObject | undefined = extra === undefined ? undefined : { model, ...extra };
  return {
    type: 'tool_call',
    name: toolName(name),
    inputText,
    ...(id !== '' && { providerId: id }),
    ...(providerData !== undefined && { providerData }),
  };
}

function isSubstance(item: Item): boolean {
  return item.type === 'text' ? !item.isBlank : item.type !== 'thinking';
}

function firstChoice(choices: unknown): Record<string, unknown> | undefined {
  if (!Array.isArray(choices)) return undefined;
  const choice = (choices as readonly unknown[]).find((each) => isRecord(each) && (each['index'] ?? 0) === 0);
  return isRecord(choice) ? choice : undefined;
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

/** Mistral's thinking is a list of text parts. */
function innerText(parts: unknown): string {
  if (!Array.isArray(parts)) return '';
  let text = '';
  for (const part of parts as readonly unknown[]) {
    if (isRecord(part) && typeof part['text'] === 'string') text += part['text'];
  }
  return text;
}
