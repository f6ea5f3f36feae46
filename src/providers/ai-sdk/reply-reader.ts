/**
 * Reply reader: the parts of an AI SDK model's stream, or its whole result, to a reply.
 *
 * Unknown parts are passed over, an error part is thrown, and what follows the finish part does not count. Nothing here
 * waits, and work per part does not grow with the reply.
 */
import type { LLMError, PartialReplyPart } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import type { LLMDelta, LLMResponse } from '../../core/llm.ts';
import type { MediaPart } from '../../core/message.ts';
import { NO_USAGE, type Usage } from '../../core/usage.ts';
import { word } from '../shared/json-values.ts';
import { isBlank } from '../shared/wire-text.ts';
import { readFile } from './file-parts.ts';
import { type FinishReason, isCut, readFinishReason, toStopReason } from './finish-reason.ts';
import { mergeMetadata } from './provider-data.ts';
import { approvalError, callError, emptyError, failedError, incompleteError, noContentError } from './reply-errors.ts';
import { isSubstance, type PartialText, type ReplyItem, type ReplySource, toPartialParts, toReplyParts } from './reply-items.ts';
import { createToolCallReader } from './tool-call-reader.ts';
import { readUsage } from './usage.ts';

/** What a reader needs to know of its request, and where its findings go. */
export interface ReplyReaderOptions {
  /** `LLM.provider`. */
  readonly provider: string;
  /** The SDK's name of the provider. */
  readonly sdkProvider: string;
  /** The model that was asked. */
  readonly model: string;
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
  /** Gets the fragments. */
  readonly onDelta: (delta: LLMDelta) => void;
  /** Gets what the model says it did not heed of the request. */
  readonly onWarnings: (warnings: readonly unknown[]) => void;
  /** Makes the error of what an error part holds. */
  readonly toError: (thrown: unknown) => LLMError;
}

/** Reads one reply. */
export interface ReplyReader {
  /** Reads a part of a stream. @throws {@link index.LLMError | LLMError} for an error that is reported in it. */
  readPart(part: unknown): void;
  /** Reads a result that was not streamed. @throws as `readPart` does. */
  readResult(result: unknown): void;
  /** True once the model said that its reply is over: nothing that follows counts. */
  readonly isFinished: boolean;
  /** Grows with whatever the model said, and once with its finish. */
  readonly progress: number;
  /** The whole reply. @throws {@link index.LLMError | LLMError} if it is no whole reply. */
  finish(): LLMResponse;
  /** What may be kept of a reply that was cut off. */
  partial(): readonly PartialReplyPart[];
  /** Tokens as far as the model told; undefined if it did not. */
  readonly usage: Usage | undefined;
}

type Part = Readonly<Record<string, unknown>>;

/** A custom part that is none of the reply: it tells early what the metadata and the finish tell anyway. */
const MESSAGE_START = 'anthropic.message_start';

/** Texts of a whole result. */
const KINDS: ReadonlyMap<unknown, PartialText['type']> = new Map<unknown, PartialText['type']>([
  ['text', 'text'],
  ['reasoning', 'thinking'],
]);

/** Makes a reader for one reply. */
export function createReplyReader(options: ReplyReaderOptions): ReplyReader {
  const { provider, sdkProvider, onDelta, toError } = options;
  const items: ReplyItem[] = [];
  /** What is open, by its id. */
  const open = { text: new Map<unknown, PartialText>(), thinking: new Map<unknown, PartialText>() };
  let finishReason: FinishReason | undefined;
  let isStreamed = true;
  let usage: Usage | undefined;
  let responseId: string | undefined;
  let modelId: string | undefined;
  let progress = 0;
  const calls = createToolCallReader({ ...options, onCall: (call) => items.push(call) });

  function readPart(part: unknown): void {
    if (!isRecord(part) || finishReason !== undefined) return;
    switch (part['type']) {
      case 'text-start':
        return mergeInto(openText('text', part['id']), part);
      case 'text-delta':
        return addText('text', part);
      case 'text-end':
        return closeText('text', part);
      case 'reasoning-start':
        return mergeInto(openText('thinking', part['id']), part);
      case 'reasoning-delta':
        return addText('thinking', part);
      case 'reasoning-end':
        return closeText('thinking', part);
      case 'tool-input-start':
        progress += 1;
        return part['providerExecuted'] === true ? undefined : calls.start(part);
      case 'tool-input-delta':
        progress += 1;
        return calls.delta(part);
      case 'tool-call':
        progress += 1;
        return part['providerExecuted'] === true ? addBlock(part) : calls.whole(part);
      case 'file':
        return addMedia(part);
      case 'reasoning-file':
        return addBlock({ ...part, data: toTaggedData(readFile(part)) });
      case 'tool-result':
        // A preliminary one is followed by another in its place.
        return part['preliminary'] === true ? undefined : addBlock(part);
      case 'source':
        return addBlock(part);
      case 'custom':
        return part['kind'] === MESSAGE_START ? undefined : addBlock(part);
      case 'tool-approval-request':
        throw approvalError(provider);
      case 'stream-start':
        return readWarnings(part['warnings']);
      case 'response-metadata':
        return readMetadata(part);
      case 'error':
        throw toError(part['error']);
      case 'finish':
        return readFinish(part);
    }
  }

  function readResult(result: unknown): void {
    isStreamed = false;
    if (!isRecord(result) || !Array.isArray(result['content'])) throw noContentError(provider);
    readWarnings(result['warnings']);
    if (isRecord(result['response'])) readMetadata(result['response']);
    for (const [id, part] of (result['content'] as readonly unknown[]).entries()) {
      const kind = isRecord(part) ? KINDS.get(part['type']) : undefined;
      if (kind === undefined || !isRecord(part)) {
        readPart(part);
        continue;
      }
      addText(kind, { ...part, id, delta: part['text'] });
      closeText(kind, { id });
    }
    readFinish(result);
  }

  function openText(type: PartialText['type'], id: unknown): PartialText {
    const item: PartialText = { type, text: '', isBlank: true, isOver: false, metadata: undefined };
    items.push(item);
    open[type].set(id, item);
    return item;
  }

  function addText(type: PartialText['type'], part: Part): void {
    const { id, delta } = part;
    const item = open[type].get(id) ?? openText(type, id);
    mergeInto(item, part);
    if (typeof delta !== 'string' || delta === '') return;
    progress += 1;
    item.text += delta;
    item.isBlank &&= isBlank(delta);
    onDelta({ type, text: delta });
  }

  function closeText(type: PartialText['type'], part: Part): void {
    const item = open[type].get(part['id']);
    if (item === undefined) return;
    mergeInto(item, part);
    item.isOver = true;
    open[type].delete(part['id']);
  }

  function addMedia(part: Part): void {
    const media = readFile(part);
    if (media === undefined) return;
    progress += 1;
    items.push({ type: 'media', part: media, metadata: mergeMetadata(undefined, part['providerMetadata']) });
  }

  function addBlock(block: Part): void {
    progress += 1;
    items.push({ type: 'provider', block });
  }

  function readWarnings(warnings: unknown): void {
    if (Array.isArray(warnings) && warnings.length > 0) options.onWarnings(warnings);
  }

  function readMetadata(part: Part): void {
    responseId = word(part['id']) ?? responseId;
    modelId = word(part['modelId']) ?? modelId;
  }

  function readFinish(part: Part): void {
    progress += 1;
    finishReason = readFinishReason(part['finishReason']);
    usage = readUsage(part['usage'], sdkProvider, part['providerMetadata']);
  }

  function finish(): LLMResponse {
    if (finishReason === undefined || isCut(finishReason, isStreamed)) throw incompleteError(provider, finishReason);
    if (finishReason.unified === 'error') throw failedError(provider, finishReason);
    const stopReason = toStopReason(finishReason, items.some(({ type }) => type === 'call'));
    const isCutShort = stopReason === 'filtered' || stopReason === 'max_tokens';
    for (const item of items) {
      const error = item.type === 'call' ? callError(provider, item, isCutShort) : undefined;
      if (error !== undefined) throw error;
    }
    if (!isCutShort && !items.some(isSubstance)) throw emptyError(provider, finishReason);
    return {
      content: items.flatMap((item) => toReplyParts(item, source())),
      stopReason,
      rawStopReason: finishReason.raw ?? finishReason.unified,
      usage: usage ?? NO_USAGE,
      ...(responseId !== undefined && { responseId }),
      ...(modelId !== undefined && { modelId }),
    };
  }

  function source(): ReplySource {
    return { ...options, answeredAs: modelId };
  }

  return {
    readPart,
    readResult,
    finish,
    partial: () => items.flatMap((item) => toPartialParts(item, source())),
    get isFinished() {
      return finishReason !== undefined;
    },
    get progress() {
      return progress;
    },
    get usage() {
      return usage;
    },
  };
}

function mergeInto(item: PartialText, { providerMetadata }: Part): void {
  if (providerMetadata !== undefined) item.metadata = mergeMetadata(item.metadata, providerMetadata);
}

function toTaggedData(media: MediaPart | undefined): object | undefined {
  if (media === undefined) return undefined;
  return media.url === undefined ? { type: 'data', data: media.data } : { type: 'url', url: media.url };
}
