/**
 * Reply reader: chunks of a stream, or one whole body, to a reply.
 *
 * Each chunk is a whole response with what is new: unknown fields are passed over, an error anywhere is thrown, and only
 * candidate 0 counts. The protocol has no end mark: a reply is over when a reason for its end came. Nothing here waits or
 * parses; work per chunk does not grow with the reply.
 */
import { LLMError } from '../../core/errors.ts';
import { isRecord, type JsonObject } from '../../core/json.ts';
import type { LLMResponse } from '../../core/llm.ts';
import { isCompleteReply } from '../../core/stop-reason.ts';
import { NO_USAGE } from '../../core/usage.ts';
import { isErrorBody } from '../shared/error-body.ts';
import { word } from '../shared/json-values.ts';
import { emptyReply, incompleteReply } from '../shared/reply-errors.ts';
import type { ReplyOutlet, ReplyReader } from '../shared/reply-reader.ts';
import { isBlank } from '../shared/wire-text.ts';
import { createCallReader } from './call-reader.ts';
import { fieldOf } from './fields.ts';
import { failureOf, isUnspecified, toStopReason } from './finish-reason.ts';
import { isServerCall, mediaSignatureData } from './provider-parts.ts';
import { isSubstance, type ItemContext, type ReplyItem, toPartial, toReplyPart } from './reply-items.ts';
import { findUsage, readUsage } from './usage.ts';

/** What a reader needs to know of its request. */
export type ReplyReaderOptions = ReplyOutlet & ItemContext;

/** What stands beside the parts, and tells of tools that the server ran. */
const METADATA = ['groundingMetadata', 'urlContextMetadata', 'citationMetadata'] as const;

/** Makes a reader for one reply. */
export function createReplyReader({ provider, model, toolName, onDelta, toError }: ReplyReaderOptions): ReplyReader {
  const context: ItemContext = { provider, model, toolName };
  const items: ReplyItem[] = [];
  const metadata = new Map<string, JsonObject>();
  let finishReason: string | undefined;
  let finishMessage: string | undefined;
  let rawUsage: unknown;
  let responseId: string | undefined;
  let modelId: string | undefined;
  let progress = 0;
  const calls = createCallReader({ toolName, onDelta, onCall: (call) => items.push({ type: 'call', call }) });

  function readEvent(chunk: unknown): void {
    if (isRecord(chunk)) rawUsage = findUsage(chunk) ?? rawUsage;
    if (isErrorBody(chunk)) throw toError(chunk);
    if (isRecord(chunk)) readResponse(chunk);
  }

  /** A body is one response, or, of a server that was not asked for events, a list of what they would have been. */
  function readBody(body: unknown): boolean {
    if (isErrorBody(body)) throw toError(body);
    const responses: readonly unknown[] = Array.isArray(body) ? body : [body];
    if (!responses.some((each) => isRecord(each) && isResponse(each))) return false;
    for (const response of responses) readEvent(response);
    return true;
  }

  function readResponse(response: Record<string, unknown>): void {
    responseId ??= word(fieldOf(response, 'responseId'));
    modelId ??= word(fieldOf(response, 'modelVersion'));
    const candidate = firstCandidate(response['candidates']);
    if (candidate !== undefined) readCandidate(candidate);
    const blocked = fieldOf(response, 'promptFeedback');
    if (isRecord(blocked)) throwIfBlocked(blocked);
  }

  function throwIfBlocked(feedback: Record<string, unknown>): void {
    const reason = word(fieldOf(feedback, 'blockReason'));
    if (reason === undefined || reason.toUpperCase() === 'BLOCKED_REASON_UNSPECIFIED') return;
    const said = word(fieldOf(feedback, 'blockReasonMessage'));
    const message = `the prompt was blocked (${reason})${said === undefined ? '' : `: ${said}`}`;
    throw toError({ error: { message, code: reason, type: 'content_filter' } });
  }

  function readCandidate(candidate: Record<string, unknown>): void {
    const { content } = candidate;
    const parts = isRecord(content) ? content['parts'] : undefined;
    if (Array.isArray(parts)) for (const part of parts as readonly unknown[]) if (isRecord(part)) readPart(part);
    for (const name of METADATA) {
      const value = fieldOf(candidate, name);
      // It came out of JSON. Each stands for all before it.
      if (isRecord(value) && Object.keys(value).length > 0) metadata.set(name, value as JsonObject);
    }
    readFinish(candidate);
  }

  function readFinish(candidate: Record<string, unknown>): void {
    const reason = word(fieldOf(candidate, 'finishReason'));
    if (reason === undefined) return;
    if (isUnspecified(reason) && finishReason !== undefined) return;
    if (!isFinished() && !isUnspecified(reason)) progress += 1;
    finishReason = reason;
    finishMessage = word(fieldOf(candidate, 'finishMessage')) ?? finishMessage;
  }

  function readPart(part: Record<string, unknown>): void {
    const signature = word(fieldOf(part, 'thoughtSignature'));
    const call = fieldOf(part, 'functionCall');
    const { text, thought } = part;
    if (call !== undefined) readCall(call, signature);
    else if (typeof text === 'string' && thought === true) addThinking(text, signature);
    else if (typeof text === 'string') addText(text, signature);
    else if (thought === true || !addMedia(fieldOf(part, 'inlineData'), signature)) addOther(part, signature);
  }

  function readCall(call: unknown, signature: string | undefined): void {
    progress += 1;
    calls.read(call, signature);
  }

  function addText(text: string, signature: string | undefined): void {
    if (text === '' && signature === undefined) return;
    progress += 1;
    const last = items.at(-1);
    if (last?.type === 'text' && last.signature === undefined && signature === undefined) {
      last.text += text;
      last.isBlank &&= isBlank(text);
    } else {
      items.push({ type: 'text', text, isBlank: isBlank(text), signature });
    }
    if (text !== '') onDelta?.({ type: 'text', text });
  }

  /** A summary comes in pieces, and its signature with one of them. */
  function addThinking(text: string, signature: string | undefined): void {
    if (text === '' && signature === undefined) return;
    progress += 1;
    const last = items.at(-1);
    if (last?.type === 'thinking' && last.signature === undefined) {
      last.text += text;
      last.signature = signature;
    } else {
      items.push({ type: 'thinking', text, signature });
    }
    if (text !== '') onDelta?.({ type: 'thinking', text });
  }

  /** @returns Whether it was media. */
  function addMedia(blob: unknown, signature: string | undefined): boolean {
    if (!isRecord(blob)) return false;
    const { data } = blob;
    const mediaType = word(fieldOf(blob, 'mimeType'));
    if (typeof data !== 'string' || data === '' || mediaType === undefined) return false;
    progress += 1;
    items.push({ type: 'media', part: { type: 'media', mediaType, data } });
    if (signature !== undefined) items.push({ type: 'provider', data: mediaSignatureData(signature, model), isSubstance: false });
    return true;
  }

  /** Parts of other kinds are kept as they came; a signature alone is that of a text that is empty. */
  function addOther(part: Record<string, unknown>, signature: string | undefined): void {
    const hasKind = Object.keys(part).some((key) => !SIDE_FIELDS.has(key));
    if (!hasKind) {
      addText('', signature);
      return;
    }
    progress += 1;
    // It came out of JSON.
    items.push({ type: 'provider', data: part as JsonObject, isSubstance: part['thought'] !== true });
  }

  function isFinished(): boolean {
    return finishReason !== undefined && !isUnspecified(finishReason);
  }

  /** Whether the server runs a tool of its own; a reason for the end may stand before what comes of it. */
  function isServerAtWork(): boolean {
    const last = items.at(-1);
    return last?.type === 'provider' && isServerCall(last.data);
  }

  function finish(sawEnd: boolean): LLMResponse {
    if (!sawEnd && !isFinished()) throw incompleteReply(provider);
    const failure = failureOf(finishReason);
    if (failure !== undefined) throw failedError(failure);
    const stopReason = toStopReason(finishReason, items.some((item) => item.type === 'call'));
    const fault = calls.fault();
    if (fault !== undefined && isCompleteReply(stopReason)) throw callError(fault);
    if (stopReason !== 'filtered' && stopReason !== 'max_tokens' && !items.some(isSubstance)) throw emptyReply(provider, `finish reason: ${finishReason ?? 'none'}`);
    return {
      content: [...items, ...metadataItems()].map((item) => toReplyPart(item, context)),
      stopReason,
      ...(finishReason !== undefined && { rawStopReason: finishReason }),
      usage: rawUsage === undefined ? NO_USAGE : readUsage(rawUsage),
      ...(responseId !== undefined && { responseId }),
      ...(modelId !== undefined && { modelId }),
    };
  }

  function metadataItems(): readonly ReplyItem[] {
    return metadata.size === 0 ? [] : [{ type: 'provider', data: Object.fromEntries(metadata), isSubstance: false }];
  }

  function failedError(failure: string): LLMError {
    const said = finishMessage === undefined ? '' : `: ${finishMessage}`;
    return toError({ error: { message: `the reply ended with ${failure}${said}`, code: failure } });
  }

  function callError(code: 'nameless_call' | 'unfinished_call'): LLMError {
    const what = code === 'nameless_call' ? 'the arguments of a tool call without the tool\'s name' : 'a tool call without its end';
    return new LLMError({ kind: 'malformed_response', code, message: `${provider} sent ${what}.` });
  }

  return {
    readEvent,
    readBody,
    finish,
    get isFinished() {
      return isFinished() && !isServerAtWork();
    },
    isEnded: false,
    get isSilent() {
      return isServerAtWork();
    },
    get progress() {
      return progress;
    },
    get usage() {
      return rawUsage === undefined ? undefined : readUsage(rawUsage);
    },
    partial: () => toPartial(items, context),
  };
}

/** Fields of a part that do not make it one. */
const SIDE_FIELDS: ReadonlySet<string> = new Set(['thought', 'thoughtSignature', 'thought_signature', 'text', 'partMetadata', 'videoMetadata', 'mediaResolution']);

function isResponse(body: Record<string, unknown>): boolean {
  return Array.isArray(body['candidates']) || isRecord(fieldOf(body, 'promptFeedback')) || isRecord(fieldOf(body, 'usageMetadata'));
}

function firstCandidate(candidates: unknown): Record<string, unknown> | undefined {
  if (!Array.isArray(candidates)) return undefined;
  const candidate = (candidates as readonly unknown[]).find((each) => isRecord(each) && (each['index'] ?? 0) === 0);
  return isRecord(candidate) ? candidate : undefined;
}
