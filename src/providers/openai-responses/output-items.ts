/**
 * Output items: the items of a response as far as they have come, and the parts that they become.
 *
 * An item's fragments come in any number, and once more as a whole at its end: a whole only fills in what did not come
 * in fragments. Work per fragment does not grow with what came before it.
 */
import { LLMError } from '../../core/errors.ts';
import type { PartialReplyPart } from '../../core/errors.ts';
import { isRecord, type JsonObject, type JsonValue } from '../../core/json.ts';
import type { ReplyPart } from '../../core/llm.ts';
import type { TextPart } from '../../core/message.ts';
import { parseJson } from '../shared/json-values.ts';
import { isBlank } from '../shared/wire-text.ts';
import { type PartialReasoning, toThinkingPart } from './reasoning.ts';

/** One piece of a message's content. */
export interface PartialText {
  text: string;
  /** Kept up to date, since looking at the whole of a text in pieces means to join them. */
  isBlank: boolean;
  annotations: JsonValue[];
}

/** A message as far as it has come. */
export interface PartialMessage {
  readonly kind: 'message';
  readonly type: 'message';
  itemId: string | undefined;
  phase: string | undefined;
  /** By their index, which need not start at 0; in the order in which they began. */
  readonly texts: Map<number, PartialText>;
  isDone: boolean;
}

/** A call as far as it has come. */
export interface PartialCall {
  readonly kind: 'call';
  readonly type: 'function_call' | 'custom_tool_call';
  itemId: string | undefined;
  /** What its output names it by; empty until it comes. */
  callId: string;
  /** The tool's name on the wire; empty until it comes. */
  name: string;
  inputText: string;
  /** Position among the reply's calls; -1 until its name is known. */
  callIndex: number;
  /** What else goes back with it. */
  extra: JsonObject;
  isDone: boolean;
}

/** Any other item. */
export interface PartialOther {
  readonly kind: 'other';
  readonly type: string;
  data: JsonObject;
  isDone: boolean;
}

/** An item as far as it has come. */
export type PartialItem = PartialMessage | PartialReasoning | PartialCall | PartialOther;

/** What parts are made for. */
export interface PartContext {
  readonly provider: string;
  /** The model that was asked. */
  readonly model: string;
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
}

/** Makes an item of a type, of which nothing has come. */
export function openItem(type: string): PartialItem {
  switch (type) {
    case 'message':
      return { kind: 'message', type, itemId: undefined, phase: undefined, texts: new Map(), isDone: false };
    case 'reasoning':
      return { kind: 'reasoning', type, itemId: undefined, summaries: new Map(), raw: new Map(), shows: undefined, encrypted: undefined, isDone: false };
    case 'function_call':
    case 'custom_tool_call':
      return { kind: 'call', type, itemId: undefined, callId: '', name: '', inputText: '', callIndex: -1, extra: {}, isDone: false };
    default:
      return { kind: 'other', type, data: {}, isDone: false };
  }
}

/** The piece of a message at an index. */
export function textAt({ texts }: PartialMessage, index: number): PartialText {
  const known = texts.get(index);
  if (known !== undefined) return known;
  const opened: PartialText = { text: '', isBlank: true, annotations: [] };
  texts.set(index, opened);
  return opened;
}

/** The index of a whole's piece among those that came: the first is the first, whatever index it came under. */
export function indexOfPiece(came: ReadonlyMap<number, unknown>, place: number): number {
  const indexes = [...came.keys()];
  return indexes[place] ?? Math.max(place, ...indexes.map((index) => index + 1));
}

/** Adds to a text. */
export function appendText(to: PartialText, text: string): void {
  to.text += text;
  to.isBlank &&= isBlank(text);
}

/** What a whole text adds to what came of it; empty for nothing. */
export function missingText(came: string, whole: string): string {
  if (came === '') return whole;
  return whole.length > came.length && whole.startsWith(came) ? whole.slice(came.length) : '';
}

/**
 * What a call's whole input adds to what came of it.
 *
 * @throws {@link index.LLMError | LLMError} if the two say different things: nobody knows which one is meant.
 */
export function missingInput({ name, inputText }: PartialCall, whole: string): string {
  if (whole === '' || whole === inputText) return '';
  if (inputText === '') return whole;
  const [came, all] = [parseJson(inputText), parseJson(whole)];
  if (came !== undefined && JSON.stringify(came) === JSON.stringify(all)) return '';
  throw new LLMError({
    kind: 'malformed_response',
    code: 'input_mismatch',
    message: `The arguments of a call came in pieces that do not make up the whole that was sent after them. The call was of ${JSON.stringify(name)}.`,
  });
}

/** The parts of a reply. */
export function toReplyParts(items: readonly PartialItem[], context: PartContext): readonly ReplyPart[] {
  const keepsIds = items.some((item) => item.kind === 'reasoning' && item.encrypted !== undefined);
  return items.flatMap((item): readonly ReplyPart[] => {
    switch (item.kind) {
      case 'message':
        return toTextParts(item, keepsIds);
      case 'reasoning':
        return [toThinkingPart(item, context.model)];
      case 'call':
        return [toCallPart(item, context, keepsIds)];
      case 'other':
        return [{ type: 'provider', provider: context.provider, data: item.data }];
    }
  });
}

/** What may be kept of a reply that was cut off: text as far as it came, other items that had ended; no calls. */
export function toPartialParts(items: readonly PartialItem[], context: PartContext): readonly PartialReplyPart[] {
  return items.flatMap((item): readonly PartialReplyPart[] => {
    switch (item.kind) {
      case 'message':
        return toTextParts(item, false).filter(({ text }) => !isBlank(text));
      case 'reasoning':
        return item.isDone ? [toThinkingPart(item, context.model)] : [];
      case 'call':
        return [];
      case 'other':
        return item.isDone ? [{ type: 'provider', provider: context.provider, data: item.data }] : [];
    }
  });
}

/** Whether an item is something that a reply may consist of. */
export function isSubstance(item: PartialItem): boolean {
  if (item.kind === 'message') return [...item.texts.values()].some((each) => !each.isBlank);
  return item.kind !== 'reasoning';
}

function toTextParts({ itemId, phase, texts }: PartialMessage, keepsIds: boolean): readonly TextPart[] {
  const said = [...texts.values()].filter(({ text }) => text !== '');
  return said.map(({ text, annotations }) => {
    const providerData: JsonObject = {
      ...(keepsIds && itemId !== undefined && { id: itemId }),
      ...(phase !== undefined && { phase }),
      ...(annotations.length > 0 && { annotations }),
    };
    return { type: 'text', text, ...(Object.keys(providerData).length > 0 && { providerData }) };
  });
}

function toCallPart({ type, itemId, callId, name, inputText, extra }: PartialCall, { model, toolName }: PartContext, keepsIds: boolean): ReplyPart {
  const isPlain = type === 'function_call' && Object.keys(extra).length === 0 && !(keepsIds && itemId !== undefined);
  const providerData: JsonObject = { model, type, ...(keepsIds && itemId !== undefined && { id: itemId }), ...extra };
  return {
    type: 'tool_call',
    name: toolName(name),
    inputText,
    ...(callId !== '' && { providerId: callId }),
    ...(!isPlain && { providerData }),
  };
}

/** A list of JSON objects out of a server's JSON. */
export function recordsOf(value: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isRecord) : [];
}
