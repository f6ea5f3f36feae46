/**
 * Reply reader: the events of a stream, or one whole body, to a reply.
 *
 * - A fragment belongs to the block with its index; without one to the latest block. One that does not fit its block, or
 *   has none, begins a block of its own kind: compatible servers leave out starts.
 * - Parts stand in the order in which their blocks began.
 * - Unknown events are passed over, an error anywhere is thrown. Nothing here waits; work per event does not grow with
 *   the reply.
 */
import type { PartialReplyPart } from '../../core/errors.ts';
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import type { LLMResponse, ReplyPart } from '../../core/llm.ts';
import { NO_USAGE } from '../../core/usage.ts';
import { isErrorBody } from '../shared/error-body.ts';
import { word } from '../shared/json-values.ts';
import { emptyReply, incompleteReply, namelessCall } from '../shared/reply-errors.ts';
import type { ReplyOutlet, ReplyReader } from '../shared/reply-reader.ts';
import { isBlank } from '../shared/wire-text.ts';
import { containerData, keepContainer } from './container.ts';
import { addServerDelta, type CallBlock, openBlock, type PartContext, type ReplyBlock, type TextBlock, type ThinkingBlock, toPart } from './reply-block.ts';
import { toStopReason } from './stop-reason.ts';
import { laterUsage, type RawUsage, readUsage } from './usage.ts';

/** What a reader needs to know of its request. */
export interface ReplyReaderOptions extends ReplyOutlet, PartContext {}

type Fields = Readonly<Record<string, unknown>>;

/** Makes a reader for one reply. */
export function createReplyReader(options: ReplyReaderOptions): ReplyReader {
  const { provider, toolName, onDelta, toError } = options;
  const blocks: ReplyBlock[] = [];
  const byIndex = new Map<unknown, ReplyBlock>();
  let callCount = 0;
  let stopReason: string | undefined;
  let rawUsage: RawUsage | undefined;
  let responseId: string | undefined;
  let modelId: string | undefined;
  let container: JsonObject | undefined;
  let isEnded = false;
  let hasNameless = false;
  let progress = 0;

  function readEvent(event: unknown, name: string): void {
    const type = (isRecord(event) ? word(event['type']) : undefined) ?? name;
    // Nearly all events are these, and none of them is an error.
    if (type === 'content_block_delta' && isRecord(event)) {
      if (isRecord(event['delta'])) readDelta(event['delta'], event['index']);
      return;
    }
    if (isErrorBody(event)) {
      if (isRecord(event)) rawUsage = laterUsage(rawUsage, event['usage']);
      throw toError(event);
    }
    if (!isRecord(event)) return;
    switch (type) {
      case 'message_start':
        // How it ends is not known yet, whatever stands there.
        if (isRecord(event['message'])) readHead({ ...event['message'], stop_reason: undefined });
        return;
      case 'content_block_start':
        if (isRecord(event['content_block'])) start(event['content_block'], event['index']);
        return;
      case 'content_block_stop': {
        const block = blockAt(event['index']);
        if (block !== undefined) close(block);
        return;
      }
      case 'message_delta':
        readHead(event);
        if (isRecord(event['delta'])) readHead(event['delta']);
        return;
      case 'message_stop':
        isEnded = true;
        return;
      case 'message':
        // Some servers answer a request for a stream with one event that holds the whole message.
        if (blocks.length === 0) readMessage(event);
    }
  }

  function readBody(body: unknown): boolean {
    if (isErrorBody(body)) throw toError(body);
    if (!isRecord(body) || !Array.isArray(body['content'])) return false;
    readMessage(body);
    return true;
  }

  function readMessage(message: Fields): void {
    readHead(message);
    if (!Array.isArray(message['content'])) return;
    for (const raw of message['content'] as readonly unknown[]) {
      if (!isRecord(raw)) continue;
      close(start(raw, undefined, true));
    }
  }

  /** Reads what stands around the blocks. */
  function readHead({ id, model, usage, container: named, stop_reason: reason }: Fields): void {
    responseId ??= word(id);
    modelId ??= word(model);
    container = containerData(named) ?? container;
    rawUsage = laterUsage(rawUsage, usage);
    const given = word(reason);
    if (given === undefined) return;
    if (stopReason === undefined) progress += 1;
    stopReason = given;
  }

  function start(raw: Fields, index: unknown, isWhole = false): ReplyBlock {
    const block = openBlock(raw, callCount, isWhole);
    blocks.push(block);
    if (index !== undefined) byIndex.set(index, block);
    progress += block.kind === 'text' || block.kind === 'thinking' ? 0 : 1;
    if (block.kind === 'call') announce(block);
    else if (block.kind === 'text') emit('text', block.text);
    else if (block.kind === 'thinking') emit('thinking', block.text);
    return block;
  }

  function announce({ name, id, callIndex }: CallBlock): void {
    callCount += 1;
    if (name === undefined) hasNameless = true;
    else onDelta?.({ type: 'tool_call', callIndex, name: toolName(name), providerId: id, inputText: '' });
  }

  function readDelta(delta: Fields, index: unknown): void {
    const { type, text, thinking, signature, partial_json: input, citation } = delta;
    switch (type) {
      case 'text_delta':
        if (typeof text === 'string' && text !== '') addText(blockOf('text', index), text);
        return;
      case 'thinking_delta':
        if (typeof thinking === 'string' && thinking !== '') addThinking(blockOf('thinking', index), thinking);
        return;
      case 'signature_delta':
        if (typeof signature === 'string' && signature !== '') addSignature(blockOf('thinking', index), signature);
        return;
      case 'input_json_delta':
        if (typeof input === 'string' && input !== '') addInput(inputBlock(index), input);
        return;
      case 'citations_delta':
        // It came out of JSON.
        if (citation !== undefined) blockOf('text', index).citations.push(citation as JsonValue);
        return;
      default: {
        const block = blockAt(index);
        if (block?.kind !== 'server') return;
        progress += 1;
        addServerDelta(block, delta);
      }
    }
  }

  function blockAt(index: unknown): ReplyBlock | undefined {
    return index === undefined ? blocks.at(-1) : byIndex.get(index);
  }

  function blockOf(kind: 'text', index: unknown): TextBlock;
  function blockOf(kind: 'thinking', index: unknown): ThinkingBlock;
  function blockOf(kind: 'text' | 'thinking', index: unknown): TextBlock | ThinkingBlock {
    const known = blockAt(index);
    if (known?.kind === kind) return known;
    // A block of the kind that it was asked to be.
    return start({ type: kind }, index) as TextBlock | ThinkingBlock;
  }

  /** Whose input a fragment is: of the block with its index; without one of the latest call. */
  function inputBlock(index: unknown): ReplyBlock | undefined {
    const known = blockAt(index);
    if (known?.kind === 'call' || known?.kind === 'server') return known;
    return index === undefined ? blocks.findLast(({ kind }) => kind === 'call') : undefined;
  }

  function addText(block: TextBlock, text: string): void {
    block.text += text;
    block.isBlank &&= isBlank(text);
    emit('text', text);
  }

  function addThinking(block: ThinkingBlock, text: string): void {
    block.text += text;
    emit('thinking', text);
  }

  function addSignature(block: ThinkingBlock, signature: string): void {
    block.signature += signature;
    progress += 1;
  }

  function addInput(block: ReplyBlock | undefined, text: string): void {
    if (block?.kind !== 'call' && block?.kind !== 'server') {
      hasNameless = true;
      return;
    }
    block.inputText += text;
    progress += 1;
    if (block.kind === 'call' && block.name !== undefined) onDelta?.({ type: 'tool_call', callIndex: block.callIndex, inputText: text });
  }

  function emit(type: 'text' | 'thinking', text: string): void {
    if (text === '') return;
    progress += 1;
    onDelta?.({ type, text });
  }

  function close(block: ReplyBlock): void {
    if (block.isClosed) return;
    useStartInput(block);
    block.isClosed = true;
  }

  /** Some servers send arguments with the start of a call, and nothing after it. */
  function useStartInput(block: ReplyBlock): void {
    if (block.kind === 'call' && block.inputText === '' && block.startInput !== '') addInput(block, block.startInput);
  }

  function finish(sawEnd: boolean): LLMResponse {
    if (!sawEnd && stopReason === undefined) throw incompleteReply(provider);
    if (hasNameless) throw namelessCall(provider);
    for (const block of blocks) if (!block.isClosed) useStartInput(block);
    const content = partsOf(blocks);
    const reason = toStopReason(stopReason, content.some((part) => part.type === 'tool_call'));
    if (reason !== 'filtered' && reason !== 'max_tokens' && !blocks.some(isSubstance)) {
      throw emptyReply(provider, `stop reason: ${stopReason ?? 'none'}`);
    }
    return {
      content,
      stopReason: reason,
      ...(stopReason !== undefined && { rawStopReason: stopReason }),
      usage: rawUsage === undefined ? NO_USAGE : readUsage(rawUsage),
      ...(responseId !== undefined && { responseId }),
      ...(modelId !== undefined && { modelId }),
    };
  }

  /** Whether nothing is to be seen of what is being done: the model thinks unread, or the provider runs a tool. */
  function isSilent(): boolean {
    const last = blocks.at(-1);
    if (stopReason !== undefined || last === undefined) return false;
    return last.kind === 'server' || (last.kind === 'thinking' && last.text === '' && !last.isClosed);
  }

  /** Text as far as it came, thinking and blocks of the provider's that had ended; no calls. */
  function partial(): readonly PartialReplyPart[] {
    const kept = blocks.filter((block) => block.kind !== 'call' && (block.kind === 'text' ? !block.isBlank : block.isClosed));
    return partsOf(kept).filter((part) => part.type !== 'tool_call');
  }

  function partsOf(kept: readonly ReplyBlock[]): readonly ReplyPart[] {
    const parts = kept.map((block) => toPart(block, options)).filter((part) => part !== undefined);
    return container === undefined || parts.length === 0 ? parts : keepContainer(parts, container, options);
  }

  return {
    readEvent,
    readBody,
    finish,
    partial,
    get isFinished() {
      return stopReason !== undefined;
    },
    get isEnded() {
      return isEnded;
    },
    get progress() {
      return progress;
    },
    get isSilent() {
      return isSilent();
    },
    get usage() {
      return rawUsage === undefined ? undefined : readUsage(rawUsage);
    },
  };
}

/** Whether a block says or does something. */
function isSubstance(block: ReplyBlock): boolean {
  return block.kind === 'text' ? !block.isBlank : block.kind !== 'thinking';
}
