/**
 * Item reader: puts the items of one response together, and tells of each fragment that can go live.
 *
 * - `item-directory.ts` says which item an event is about, `item-order.ts` where the items stand in the end.
 * - A call begins when its name is known: calls count in that order, live and in the reply.
 * - Nothing that a server gave is left out, and nothing is taken twice that it gave as one.
 */
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import type { LLMDelta } from '../../core/llm.ts';
import { word } from '../shared/json-values.ts';
import { createItemDirectory } from './item-directory.ts';
import { type IdentifiedType, toItemId } from './item-ids.ts';
import { pairItems, textOfWire, toldTypes, wholeInput } from './item-match.ts';
import { orderItems } from './item-order.ts';
import {
  appendText,
  indexOfPiece,
  missingInput,
  missingText,
  type PartialCall,
  type PartialItem,
  type PartialMessage,
  recordsOf,
  textAt,
} from './output-items.ts';
import { BETWEEN_SUMMARIES, type PartialReasoning } from './reasoning.ts';
import type { InputKind, TextKind, ThinkingKind, WireEvent } from './wire-event.ts';

/** What a reader tells of. */
export interface ItemReaderOptions {
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
  readonly onDelta: ((delta: LLMDelta) => void) | undefined;
  /** The model said something. */
  readonly onProgress: () => void;
}

/** Reads the items of one response. */
export interface ItemReader {
  /** The items so far, in order, put together anew each time; calls without a name are not among them. */
  readonly items: readonly PartialItem[];
  /** Whether every item that began has ended. */
  readonly isAllDone: boolean;
  /** Whether the latest item is under way and says nothing: thinking that is not shown, or a tool that the server runs. */
  readonly isSilent: boolean;
  /** True if a call came without its tool's name. */
  readonly hasNameless: boolean;
  /** True if the model refused. */
  readonly isRefused: boolean;
  /** Opens the item of an event. */
  open(event: WireEvent, wire: WireEvent): void;
  /** Closes the item of an event, which holds all of it. */
  close(event: WireEvent, wire: WireEvent): void;
  /** Adds to a message, or fills in what is missing of it. */
  addText(event: WireEvent, text: string, kind: TextKind): void;
  addAnnotation(event: WireEvent, annotation: JsonValue): void;
  /** Adds to reasoning: to its summary, or to the thinking itself. */
  addThinking(event: WireEvent, text: string, kind: ThinkingKind): void;
  /** Adds to a call's input. */
  addInput(event: WireEvent, text: string, kind: InputKind): void;
  /** Reads the whole list of items that stands at the end of a response. */
  settle(output: unknown): void;
}

interface TextPiece {
  readonly text: string;
  readonly isRefusal: boolean;
}

interface ThinkingPiece {
  readonly text: string;
  readonly isRaw: boolean;
}

/** Makes a reader for one response. */
export function createItemReader({ toolName, onDelta, onProgress }: ItemReaderOptions): ItemReader {
  const directory = createItemDirectory();
  const { begun } = directory;
  /** The items of the list at the end of the response. */
  let final: readonly PartialItem[] = [];
  let callCount = 0;
  let isRefused = false;

  /** The item that a fragment belongs to; a stream that begins in the middle has not opened it. */
  function itemOf(event: WireEvent, type: string): PartialItem {
    const id = event['item_id'];
    return directory.find(event, type, id) ?? directory.begin(event, type, id);
  }

  function close(item: PartialItem, wire: WireEvent, isFirst: boolean): void {
    readHead(item, wire, isFirst);
    switch (item.kind) {
      case 'message':
        readContent(item, wire['content']);
        break;
      case 'reasoning':
        readReasoning(item, wire);
        break;
      case 'call':
        if (item.callId === '') item.callId = word(wire['id']) ?? '';
        appendInput(item, missingInput(item, wholeInput(wire)));
        break;
      case 'other':
        onProgress();
    }
    item.isDone = true;
  }

  /** @param isFirst - Whether this is the first that the server says of it; an id that changes later is worth nothing. */
  function readHead(item: PartialItem, wire: WireEvent, isFirst: boolean): void {
    if (item.kind === 'other') {
      // It came out of JSON.
      item.data = wire as JsonObject;
      return;
    }
    const id = toItemId(wire['id'], item.type satisfies IdentifiedType);
    item.itemId = isFirst || id === item.itemId ? id : undefined;
    if (item.kind === 'message') item.phase = word(wire['phase']) ?? item.phase;
    else if (item.kind === 'call') readCallHead(item, wire);
  }

  function readCallHead(call: PartialCall, wire: WireEvent): void {
    const { namespace, caller } = wire;
    call.callId = word(wire['call_id']) ?? call.callId;
    call.extra = {
      ...call.extra,
      ...(typeof namespace === 'string' && { namespace }),
      // It came out of JSON.
      ...(isRecord(caller) && { caller: caller as JsonObject }),
    };
    const name = word(wire['name']);
    if (name === undefined || call.callIndex >= 0) return;
    call.name = name;
    call.callIndex = callCount;
    callCount += 1;
    onProgress();
    const providerId = call.callId === '' ? undefined : call.callId;
    onDelta?.({ type: 'tool_call', callIndex: call.callIndex, name: toolName(name), providerId, inputText: call.inputText });
  }

  function readContent(message: PartialMessage, content: unknown): void {
    const pieces = recordsOf(content).filter(({ text, refusal }) => typeof (text ?? refusal) === 'string');
    for (const [place, { text, refusal, annotations }] of pieces.entries()) {
      const index = indexOfPiece(message.texts, place);
      fillText(message, index, { text: String(text ?? refusal), isRefusal: text === undefined });
      // They came out of JSON.
      if (Array.isArray(annotations) && annotations.length > 0) textAt(message, index).annotations = annotations as JsonValue[];
    }
  }

  function readReasoning(reasoning: PartialReasoning, wire: WireEvent): void {
    fillPieces(reasoning, wire['summary'], false);
    fillPieces(reasoning, wire['content'], true);
    reasoning.encrypted = word(wire['encrypted_content']) ?? reasoning.encrypted;
  }

  function fillPieces(reasoning: PartialReasoning, list: unknown, isRaw: boolean): void {
    const came = isRaw ? reasoning.raw : reasoning.summaries;
    for (const [place, { text }] of recordsOf(list).entries()) {
      if (typeof text === 'string') fillThinking(reasoning, indexOfPiece(came, place), { text, isRaw });
    }
  }

  function fillText(message: PartialMessage, index: number, { text, isRefusal }: TextPiece): void {
    appendToMessage(message, index, { text: missingText(textAt(message, index).text, text), isRefusal });
  }

  function appendToMessage(message: PartialMessage, index: number, { text, isRefusal }: TextPiece): void {
    isRefused ||= isRefusal;
    if (text === '') return;
    appendText(textAt(message, index), text);
    onProgress();
    onDelta?.({ type: 'text', text });
  }

  function fillThinking(reasoning: PartialReasoning, index: number, { text, isRaw }: ThinkingPiece): void {
    const came = (isRaw ? reasoning.raw : reasoning.summaries).get(index) ?? '';
    appendToReasoning(reasoning, index, { text: missingText(came, text), isRaw });
  }

  function appendToReasoning(reasoning: PartialReasoning, index: number, { text, isRaw }: ThinkingPiece): void {
    if (text === '') return;
    const pieces = isRaw ? reasoning.raw : reasoning.summaries;
    const came = pieces.get(index);
    const isNextSummary = !isRaw && came === undefined && pieces.size > 0;
    pieces.set(index, (came ?? '') + text);
    reasoning.shows ??= isRaw ? 'raw' : 'summary';
    onProgress();
    if (isRaw === (reasoning.shows === 'raw')) onDelta?.({ type: 'thinking', text: isNextSummary ? BETWEEN_SUMMARIES + text : text });
  }

  function appendInput(call: PartialCall, text: string): void {
    if (text === '') return;
    call.inputText += text;
    onProgress();
    if (call.callIndex >= 0) onDelta?.({ type: 'tool_call', callIndex: call.callIndex, inputText: text });
  }

  return {
    get items() {
      return orderItems(directory, final);
    },
    get isAllDone() {
      return begun.every(({ item }) => item.isDone);
    },
    get isSilent() {
      const last = begun.at(-1)?.item;
      return last !== undefined && !last.isDone && (last.kind === 'other' || (last.kind === 'reasoning' && last.shows === undefined));
    },
    get hasNameless() {
      return begun.some(({ item }) => item.kind === 'call' && item.callIndex < 0);
    },
    get isRefused() {
      return isRefused;
    },
    open(event, wire) {
      const { id, type } = wire;
      const again = directory.findAnnounced(event, wire);
      readHead(again ?? directory.begin(event, String(type), id), wire, again === undefined);
    },
    close(event, wire) {
      const { id, type } = wire;
      const known = directory.findWhole(event, wire);
      if (known?.isDone !== true) close(known ?? directory.begin(event, String(type), id), wire, known === undefined);
    },
    addText(event, text, { isWhole, isRefusal }) {
      const item = itemOf(event, 'message');
      if (item.kind !== 'message' || item.isDone) return;
      (isWhole ? fillText : appendToMessage)(item, indexOf(event['content_index']), { text, isRefusal });
    },
    addAnnotation(event, annotation) {
      const item = itemOf(event, 'message');
      if (item.kind === 'message' && !item.isDone) textAt(item, indexOf(event['content_index'])).annotations.push(annotation);
    },
    addThinking(event, text, { isWhole, isRaw }) {
      const item = itemOf(event, 'reasoning');
      if (item.kind !== 'reasoning' || item.isDone) return;
      const index = indexOf(event[isRaw ? 'content_index' : 'summary_index']);
      (isWhole ? fillThinking : appendToReasoning)(item, index, { text, isRaw });
    },
    addInput(event, text, { isWhole, type }) {
      const item = itemOf(event, type);
      if (item.kind !== 'call' || item.isDone) return;
      appendInput(item, isWhole ? missingInput(item, text) : text);
    },
    settle(output) {
      const wires = recordsOf(output);
      const known = pairItems(wires, begun);
      const told = toldTypes(wires, begun);
      final = wires.flatMap((wire, at) => {
        const item = known[at];
        // What came in fragments is not to come twice.
        if (item === undefined && told.has(wire['type']) && textOfWire(wire) !== '') return [];
        const settled = item ?? directory.begin({}, String(wire['type']), wire['id']);
        if (!settled.isDone) close(settled, wire, item === undefined);
        else if (settled.kind === 'call' && settled.inputText === '') appendInput(settled, wholeInput(wire));
        return [settled];
      });
    },
  };
}

function indexOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
