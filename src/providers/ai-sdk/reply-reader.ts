/**
 * Reply reader: the parts of an AI SDK model's stream, or its whole result, to a reply.
 *
 * Unknown parts are passed over, an error part is thrown, and what follows the finish part does not count. Nothing here
 * waits, and work per part does not grow with the reply.
 */
import { LLMError, type PartialReplyPart } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import type { LLMDelta, LLMResponse, ReplyPart } from '../../core/llm.ts';
import type { MediaPart, ProviderPart, TextPart, ThinkingPart } from '../../core/message.ts';
import { NO_USAGE, type Usage } from '../../core/usage.ts';
import { word } from '../shared/json-values.ts';
import { isBlank } from '../shared/wire-text.ts';
import { readFile } from './file-parts.ts';
import { type FinishReason, isCut, readFinishReason, toStopReason } from './finish-reason.ts';
import { MEDIA_DATA, mergeMetadata, type Metadata, thinkingSeals, toProviderData, toProviderPart } from './provider-data.ts';
import { createToolCallReader, type PartialCall } from './tool-call-reader.ts';
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

interface PartialText {
  readonly type: 'text' | 'thinking';
  text: string;
  /** Kept up to date, since looking at the whole of a text in pieces means to join them. */
  isBlank: boolean;
  isOver: boolean;
  metadata: Metadata | undefined;
}

interface ReadMedia {
  readonly type: 'media';
  readonly part: MediaPart;
  readonly metadata: Metadata | undefined;
}

type Item = PartialText | PartialCall | ReadMedia | { readonly type: 'provider'; readonly block: Part };
type Part = Readonly<Record<string, unknown>>;

/** Texts of a whole result. */
const KINDS: ReadonlyMap<unknown, PartialText['type']> = new Map<unknown, PartialText['type']>([
  ['text', 'text'],
  ['reasoning', 'thinking'],
]);

/** Makes a reader for one reply. */
export function createReplyReader(options: ReplyReaderOptions): ReplyReader {
  const { provider, sdkProvider, model, onDelta, toError } = options;
  const items: Item[] = [];
  /** What is open, by its id. */
  const open = { text: new Map<unknown, PartialText>(), thinking: new Map<unknown, PartialText>() };
  let finishReason: FinishReason | undefined;
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
      case 'custom':
        return addBlock(part);
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
    if (!isRecord(result) || !Array.isArray(result['content'])) {
      const message = `${provider} gave a result that has no content; is it a language model of the AI SDK?`;
      throw new LLMError({ kind: 'malformed_response', message });
    }
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
    if (finishReason === undefined || isCut(finishReason)) throw incompleteError(provider, finishReason);
    if (finishReason.unified === 'error') throw failedError(provider, finishReason);
    const stopReason = toStopReason(finishReason, items.some(({ type }) => type === 'call'));
    const isCutShort = stopReason === 'filtered' || stopReason === 'max_tokens';
    for (const item of items) if (item.type === 'call') assertCall(item, isCutShort, provider);
    if (!isCutShort && !items.some(isSubstance)) throw emptyError(provider, finishReason);
    return {
      content: items.flatMap(toReplyParts),
      stopReason,
      rawStopReason: finishReason.raw ?? finishReason.unified,
      usage: usage ?? NO_USAGE,
      ...(responseId !== undefined && { responseId }),
      ...(modelId !== undefined && { modelId }),
    };
  }

  /** Text as far as it came, thinking that was over, whole media and blocks; no calls. */
  function partial(): readonly PartialReplyPart[] {
    return items.flatMap((item): readonly PartialReplyPart[] => {
      if (item.type === 'call' || (item.type === 'thinking' && !item.isOver)) return [];
      return item.type === 'text' ? (item.isBlank ? [] : [{ type: 'text', text: item.text }]) : toKeptParts(item);
    });
  }

  function toReplyParts(item: Item): readonly ReplyPart[] {
    if (item.type !== 'call') return toKeptParts(item);
    const { id, name, inputText, metadata } = item;
    return [
      {
        type: 'tool_call',
        name: options.toolName(name),
        inputText,
        ...(id !== '' && { providerId: id }),
        ...(metadata !== undefined && { providerData: toProviderData(metadata, model) }),
      },
    ];
  }

  function toKeptParts(item: Exclude<Item, PartialCall>): readonly (TextPart | ThinkingPart | MediaPart | ProviderPart)[] {
    switch (item.type) {
      case 'text': {
        const { text, metadata } = item;
        if (metadata === undefined) return text === '' ? [] : [{ type: 'text', text }];
        return [{ type: 'text', text, providerData: toProviderData(metadata, model) }];
      }
      case 'thinking': {
        const { text, metadata } = item;
        if (text === '' && metadata === undefined) return [];
        return [{ type: 'thinking', text, ...thinkingSeals(metadata), providerData: toProviderData(metadata, model) }];
      }
      case 'media': {
        const { part, metadata } = item;
        // Without it nothing says that media of an answer under another name is this model's.
        const needsData = metadata !== undefined || (modelId !== undefined && modelId !== model);
        return needsData ? [part, ...blockPart({ type: MEDIA_DATA, providerMetadata: metadata })] : [part];
      }
      case 'provider':
        return blockPart(item.block);
    }
  }

  function blockPart(block: Part): readonly ProviderPart[] {
    const part = toProviderPart(block, { provider, model });
    return part === undefined ? [] : [part];
  }

  return {
    readPart,
    readResult,
    finish,
    partial,
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

function isSubstance(item: Item): boolean {
  if (item.type === 'text') return !item.isBlank;
  return item.type !== 'thinking' && (item.type !== 'provider' || item.block['type'] !== 'source');
}

function assertCall({ name, isWhole }: PartialCall, isCutShort: boolean, provider: string): void {
  const fault = name === '' ? 'nameless_call' : !isWhole && !isCutShort ? 'unfinished_call' : undefined;
  if (fault === undefined) return;
  const what = fault === 'nameless_call' ? "a tool call without the tool's name" : 'the beginning of a tool call, but not the call';
  throw new LLMError({ kind: 'malformed_response', code: fault, message: `${provider} sent ${what}.` });
}

function incompleteError(provider: string, reason: FinishReason | undefined): LLMError {
  const how = reason === undefined ? 'before the reply was complete' : 'without a finish reason, so the reply may be incomplete';
  return new LLMError({ kind: 'network', code: 'stream_incomplete', message: `${provider} ended its answer ${how}.` });
}

/** Google's word for a call that it could not read itself. */
const MALFORMED_CALL = 'MALFORMED_FUNCTION_CALL';

function failedError(provider: string, { raw = 'error' }: FinishReason): LLMError {
  const kind = raw === MALFORMED_CALL ? 'malformed_response' : 'server';
  return new LLMError({ kind, code: raw, message: `${provider} ended the reply with "${raw}".` });
}

function emptyError(provider: string, { raw, unified }: FinishReason): LLMError {
  const message = `${provider} sent an empty reply (finish reason: ${raw ?? unified}).`;
  return new LLMError({ kind: 'malformed_response', code: 'empty', message });
}

function approvalError(provider: string): LLMError {
  const message = `${provider} asks for the approval of a tool that it runs itself, which nobody is asked for here; set the tool up so that it needs none.`;
  return new LLMError({ kind: 'invalid_request', code: 'approval_required', message });
}
