/** Reply items: the pieces of a reply as they build up, and the parts that they become. */
import type { PartialReplyPart } from '../../core/errors.ts';
import type { ReplyPart } from '../../core/llm.ts';
import type { MediaPart, ProviderPart, TextPart, ThinkingPart } from '../../core/message.ts';
import type { OwnTarget } from '../shared/own-data.ts';
import { MEDIA_DATA, type Metadata, thinkingSeals, toProviderData, toProviderPart } from './provider-data.ts';
import type { PartialCall } from './tool-call-reader.ts';

/** A text or thinking as far as it has come. */
export interface PartialText {
  readonly type: 'text' | 'thinking';
  text: string;
  /** Kept up to date, since looking at the whole of a text in pieces means to join them. */
  isBlank: boolean;
  isOver: boolean;
  metadata: Metadata | undefined;
}

/** A file of the reply. */
export interface ReadMedia {
  readonly type: 'media';
  readonly part: MediaPart;
  readonly metadata: Metadata | undefined;
}

/** A part of the stream that only its provider understands. */
export interface ReadBlock {
  readonly type: 'provider';
  readonly block: Readonly<Record<string, unknown>>;
}

/** A piece of a reply. */
export type ReplyItem = PartialText | PartialCall | ReadMedia | ReadBlock;

/** Whom a reply is from. */
export interface ReplySource extends OwnTarget {
  /** The model that really answered, where it said so. */
  readonly answeredAs: string | undefined;
  /** The tool's own name for the one that it has on the wire. */
  readonly toolName: (wireName: string) => string;
}

/** Whether an item makes a reply one that says something. */
export function isSubstance(item: ReplyItem): boolean {
  if (item.type === 'text') return !item.isBlank;
  return item.type !== 'thinking' && (item.type !== 'provider' || item.block['type'] !== 'source');
}

/** Parts of a whole reply. */
export function toReplyParts(item: ReplyItem, source: ReplySource): readonly ReplyPart[] {
  if (item.type !== 'call') return toParts(item, source);
  const { id, name, inputText, metadata } = item;
  return [
    {
      type: 'tool_call',
      name: source.toolName(name),
      inputText,
      ...(id !== '' && { providerId: id }),
      ...(metadata !== undefined && { providerData: toProviderData(metadata, source.model) }),
    },
  ];
}

/** Parts of a reply that was cut off: text as far as it came, thinking that was over, whole media and blocks; no calls. */
export function toPartialParts(item: ReplyItem, source: ReplySource): readonly PartialReplyPart[] {
  if (item.type === 'call' || (item.type === 'thinking' && !item.isOver)) return [];
  if (item.type !== 'text') return toParts(item, source);
  return item.isBlank ? [] : [{ type: 'text', text: item.text }];
}

type KeptPart = TextPart | ThinkingPart | MediaPart | ProviderPart;

function toParts(item: Exclude<ReplyItem, PartialCall>, source: ReplySource): readonly KeptPart[] {
  switch (item.type) {
    case 'text': {
      const { text, metadata } = item;
      if (metadata === undefined) return text === '' ? [] : [{ type: 'text', text }];
      return [{ type: 'text', text, providerData: toProviderData(metadata, source.model) }];
    }
    case 'thinking': {
      const { text, metadata } = item;
      if (text === '' && metadata === undefined) return [];
      return [{ type: 'thinking', text, ...thinkingSeals(metadata), providerData: toProviderData(metadata, source.model) }];
    }
    case 'media': {
      const { part, metadata } = item;
      // Without it nothing says that media of an answer under another name is this model's.
      const needsData = metadata !== undefined || (source.answeredAs ?? source.model) !== source.model;
      return needsData ? [part, ...blockPart({ type: MEDIA_DATA, providerMetadata: metadata }, source)] : [part];
    }
    case 'provider':
      return blockPart(item.block, source);
  }
}

function blockPart(block: ReadBlock['block'], source: ReplySource): readonly ProviderPart[] {
  const part = toProviderPart(block, source);
  return part === undefined ? [] : [part];
}
