/**
 * Reply reader: the events of a stream, or one whole body, to a reply.
 *
 * What this protocol's events must hold is insisted on; events that are not known are passed over. The response's last
 * event is the end of the reply: without it a reply was cut off.
 */
import { LLMError } from '../../core/errors.ts';
import { isRecord, type JsonValue } from '../../core/json.ts';
import type { LLMResponse } from '../../core/llm.ts';
import { NO_USAGE, type Usage } from '../../core/usage.ts';
import { isErrorBody } from '../shared/error-body.ts';
import { word } from '../shared/json-values.ts';
import { emptyReply, incompleteReply, namelessCall } from '../shared/reply-errors.ts';
import type { ReplyOutlet, ReplyReader } from '../shared/reply-reader.ts';
import { type Fragment, FRAGMENTS } from './fragments.ts';
import { createItemReader } from './item-reader.ts';
import { isSubstance, type PartContext, toPartialParts, toReplyParts } from './output-items.ts';
import { IGNORED_RESPONSE } from './refusals.ts';
import { toStopReason } from './stop-reason.ts';
import { readUsage } from './usage.ts';
import type { WireEvent } from './wire-event.ts';

/** What a reader needs to know of its request. */
export interface ReplyReaderOptions extends ReplyOutlet, PartContext {
  /** The response that the request went on from; undefined for none. */
  readonly previousResponseId: string | undefined;
}

/** Reads one reply of Responses. */
export interface ResponseReader extends ReplyReader {
  /** Whether the response is complete, and the server did not say that it keeps none. */
  readonly isHeld: boolean;
}

/** Makes a reader for one reply. */
export function createReplyReader(options: ReplyReaderOptions): ResponseReader {
  const { provider, toolName, onDelta, toError, previousResponseId } = options;
  let responseId: string | undefined;
  let modelId: string | undefined;
  /** Of a response that ended: `completed`, or another word that stands for an end. */
  let status: string | undefined;
  let incompleteReason: string | undefined;
  /** The latest that says anything. */
  let usage: Usage | undefined;
  let isStored = true;
  let progress = 0;
  const reader = createItemReader({
    toolName,
    onDelta,
    onProgress: () => {
      progress += 1;
    },
  });

  function readEvent(event: unknown, name: string): void {
    const type = (isRecord(event) ? word(event['type']) : undefined) ?? name;
    const fragment = FRAGMENTS.get(type);
    // Nearly all events are fragments, and none of them is an error.
    if (fragment !== undefined && isRecord(event)) {
      fragment.read(reader, event, textOf(event, fragment));
      return;
    }
    if (isErrorBody(event)) throw errorOf(event);
    if (!isRecord(event)) return;
    switch (type) {
      case 'response.output_text.annotation.added':
        // It came out of JSON.
        reader.addAnnotation(event, recordOf(event, 'annotation') as JsonValue);
        return;
      case 'response.output_item.added':
        reader.open(event, itemOf(event));
        return;
      case 'response.output_item.done':
        reader.close(event, itemOf(event));
        return;
      case 'response.created':
      case 'response.queued':
      case 'response.in_progress':
        readHead(recordOf(event, 'response'));
        return;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        readEnd(recordOf(event, 'response'), type.slice('response.'.length));
        return;
      // Its text comes in events of their own. That a part begins is no sign of it.
      case 'response.content_part.added':
      case 'response.reasoning_summary_part.added':
        return;
      default:
        // What a server's own tool is doing.
        if (event['output_index'] !== undefined || event['item_id'] !== undefined) progress += 1;
    }
  }

  function readBody(body: unknown): boolean {
    if (isErrorBody(body)) throw errorOf(body);
    if (!isRecord(body) || !(body['object'] === 'response' || Array.isArray(body['output']))) return false;
    readEnd(body, 'completed');
    return true;
  }

  /** The error that a server tells of in the place of a reply; what it cost may stand beside it. */
  function errorOf(body: unknown): LLMError {
    if (isRecord(body)) noteUsage(body['usage']);
    return toError(body);
  }

  function noteUsage(raw: unknown): void {
    const told = readUsage(raw);
    if (told.inputTokens + told.cacheReadTokens + told.cacheWriteTokens + told.outputTokens > 0) usage = told;
  }

  /** What a response says of itself from its beginning. */
  function readHead(response: WireEvent): void {
    const { id, model, store, previous_response_id: previous } = response;
    responseId = word(id) ?? responseId;
    modelId = word(model) ?? modelId;
    noteUsage(response['usage']);
    if (store === false) isStored = false;
    if (previousResponseId !== undefined && previous === null) {
      const message = `${provider} left out the response that the request went on from.`;
      throw new LLMError({ kind: 'invalid_request', code: IGNORED_RESPONSE, message });
    }
  }

  /** @param ending - How the response ended, if it does not say so itself. */
  function readEnd(response: WireEvent, ending: string): void {
    readHead(response);
    const { error, incomplete_details: details, output } = response;
    const ended = word(response['status']) ?? ending;
    const hasError = isRecord(error) ? Object.keys(error).length > 0 : word(error) !== undefined;
    if (ended === 'failed' || hasError) {
      throw toError({ error: hasError ? error : { code: 'server_error', message: 'the response failed, and it is not said why' } });
    }
    if (ended !== 'completed' && ended !== 'incomplete') throw unfinishedError(ended);
    reader.settle(output);
    progress += 1;
    status = ended;
    if (ended === 'incomplete') incompleteReason = (isRecord(details) ? word(details['reason']) : undefined) ?? ended;
  }

  function unfinishedError(ended: string): LLMError {
    const isWaiting = ended === 'queued' || ended === 'in_progress';
    const why = isWaiting ? 'it is made in the background, which needs `stream: true`' : `it was ${ended}`;
    return new LLMError({
      kind: isWaiting ? 'invalid_request' : 'server',
      code: `response_${ended}`,
      message: `${provider} did not finish the response: ${why}.`,
    });
  }

  function malformed(type: unknown, what: string): LLMError {
    return new LLMError({ kind: 'malformed_response', message: `${provider} sent an event ${what}: ${JSON.stringify(String(type))}.` });
  }

  function textOf(event: WireEvent, { field, mayBeObject }: Fragment): string {
    const text = event[field];
    if (typeof text === 'string') return text;
    if (mayBeObject && typeof text === 'object' && text !== null) return JSON.stringify(text);
    throw malformed(event['type'], `without the text \`${field}\``);
  }

  function recordOf(event: WireEvent, field: string): WireEvent {
    const record = event[field];
    if (!isRecord(record)) throw malformed(event['type'], `without the object \`${field}\``);
    return record;
  }

  function itemOf(event: WireEvent): WireEvent {
    const item = recordOf(event, 'item');
    if (word(item['type']) === undefined) throw malformed(event['type'], 'whose item has no type');
    return item;
  }

  function finish(sawEnd: boolean): LLMResponse {
    const { items } = reader;
    // An end mark of another protocol is an end if nothing is left open.
    const isEnded = status !== undefined || (sawEnd && items.length > 0 && reader.isAllDone);
    if (!isEnded) throw incompleteReply(provider);
    if (reader.hasNameless) throw namelessCall(provider);
    const hasCalls = items.some(({ kind }) => kind === 'call');
    const stopReason = toStopReason({ incompleteReason, hasCalls, isRefused: reader.isRefused });
    const mayBeEmpty = stopReason === 'filtered' || stopReason === 'max_tokens';
    if (!mayBeEmpty && !items.some(isSubstance)) throw emptyReply(provider, incompleteReason ?? status ?? 'no status');
    const rawStopReason = incompleteReason ?? status;
    return {
      content: toReplyParts(items, options),
      stopReason,
      ...(rawStopReason !== undefined && { rawStopReason }),
      usage: usage ?? NO_USAGE,
      ...(responseId !== undefined && { responseId }),
      ...(modelId !== undefined && { modelId }),
    };
  }

  return {
    readEvent,
    readBody,
    finish,
    get isFinished() {
      return status !== undefined;
    },
    get isEnded() {
      return status !== undefined;
    },
    get progress() {
      return progress;
    },
    get isSilent() {
      return reader.isSilent;
    },
    get isHeld() {
      return status === 'completed' && isStored;
    },
    get usage() {
      return usage;
    },
    partial: () => toPartialParts(reader.items, options),
  };
}
