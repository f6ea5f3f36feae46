/**
 * Reply items: what a reply is made of while it comes, and the parts that become of it.
 *
 * A signature belongs to the part it came on: text with one is never joined with text that came without, since Google
 * wants each signature back in its place.
 */
import type { PartialReplyPart } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import type { ReplyPart } from '../../core/llm.ts';
import type { MediaPart, TextPart, ThinkingPart } from '../../core/message.ts';
import { type PartialCall, toReplyCall } from './call-reader.ts';

/** Text as far as it has come. */
export interface PartialText {
  readonly type: 'text';
  text: string;
  /** Kept up to date, since looking at the whole of a text in pieces means to join them. */
  isBlank: boolean;
  readonly signature: string | undefined;
}

/** Thinking as far as it has come. */
export interface PartialThinking {
  readonly type: 'thinking';
  text: string;
  signature: string | undefined;
}

/** A piece of a reply. */
export type ReplyItem =
  | PartialText
  | PartialThinking
  | { readonly type: 'call'; readonly call: PartialCall }
  | { readonly type: 'media'; readonly part: MediaPart }
  | { readonly type: 'provider'; readonly data: JsonObject; readonly isSubstance: boolean };

/** What parts are made for. */
export interface ItemContext {
  readonly provider: string;
  /** The model that was asked. */
  readonly model: string;
  readonly toolName: (wireName: string) => string;
}

/** Whether an item is more than thinking and white space. */
export function isSubstance(item: ReplyItem): boolean {
  if (item.type === 'provider') return item.isSubstance;
  return item.type === 'text' ? !item.isBlank : item.type !== 'thinking';
}

/** The part of a whole reply. */
export function toReplyPart(item: ReplyItem, context: ItemContext): ReplyPart {
  return item.type === 'call' ? toReplyCall(item.call, context.model, context.toolName) : toPart(item, context);
}

/** What may be kept of a reply that was cut off: text as far as it came, thinking where something followed it; no calls. */
export function toPartial(items: readonly ReplyItem[], context: ItemContext): readonly PartialReplyPart[] {
  const parts: PartialReplyPart[] = [];
  for (const [at, item] of items.entries()) {
    if (item.type === 'call' || (item.type === 'text' && item.isBlank)) continue;
    if (item.type === 'thinking' && at === items.length - 1) continue;
    parts.push(toPart(item, context));
  }
  return parts;
}

function toPart(item: Exclude<ReplyItem, { readonly type: 'call' }>, { provider, model }: ItemContext): PartialReplyPart {
  switch (item.type) {
    case 'text':
      return toTextPart(item, model);
    case 'thinking':
      return toThinkingPart(item, model);
    case 'media':
      return item.part;
    case 'provider':
      return { type: 'provider', provider, data: item.data };
  }
}

function toTextPart({ text, signature }: PartialText, model: string): TextPart {
  return { type: 'text', text, ...(signature !== undefined && { providerData: { model, thoughtSignature: signature } }) };
}

function toThinkingPart({ text, signature }: PartialThinking, model: string): ThinkingPart {
  if (signature === undefined) return { type: 'thinking', text, providerData: { model } };
  return { type: 'thinking', text, signature, providerData: { model, thoughtSignature: signature } };
}
