/**
 * Reply items: an assistant message as the items that it was, in their order.
 *
 * - Thinking goes back with what it led to: what is followed by nothing stays out.
 * - Items carry the ids that the server gave them only in a message that is all there, thinking included. A server that
 *   knows the items refuses a part of them: reasoning without what followed it, a call without its reasoning. Without
 *   ids they are new to it, and taken.
 * - Another provider's thinking and provider parts stay out.
 */
import type { JsonObject } from '../../core/json.ts';
import type { AssistantMessage, MediaPart, MessageSource, TextPart, ToolCallPart } from '../../core/message.ts';
import { inputText } from '../shared/call-input.ts';
import { mediaNote } from '../shared/media.ts';
import { isJsonObject, ownData, type OwnTarget } from '../shared/own-data.ts';
import { toWireName } from '../shared/tool-names.ts';
import { cleanText, isBlank } from '../shared/wire-text.ts';
import { toItemId } from './item-ids.ts';
import { isFreeText } from './message-items.ts';
import { returnedItems } from './provider-items.ts';
import { joinReasoning, type ReasoningDraft, toReasoningDraft, toReasoningItem } from './reasoning.ts';

/** What a reply is written for. */
export interface ReplyTarget extends OwnTarget {
  /** Whether what only this server reads goes back: thinking, and items of its own tools. */
  readonly keepsOwn: boolean;
  /** Whether thinking does. */
  readonly keepsThinking: boolean;
}

interface MessageDraft {
  readonly kind: 'message';
  readonly id: string | undefined;
  readonly phase: string | undefined;
  readonly texts: readonly string[];
}

interface CallDraft {
  readonly kind: 'call';
  readonly id: string | undefined;
  readonly item: JsonObject;
}

interface ProviderDraft {
  readonly kind: 'provider';
  readonly item: JsonObject;
}

type Draft = ReasoningDraft | MessageDraft | CallDraft | ProviderDraft;

/** JSON of the items, separated by commas; undefined for a message with nothing to send. @param wireIds - The ids of its calls, in order. */
export function writeReply(message: AssistantMessage, wireIds: readonly string[], target: ReplyTarget): string | undefined {
  const { drafts, isWhole } = draftItems(message, wireIds, target);
  const kept = drafts.slice(0, drafts.findLastIndex(({ kind }) => kind !== 'reasoning') + 1);
  if (kept.length === 0) return undefined;
  const withIds = isWhole && kept.length === drafts.length && kept.some(({ kind }) => kind === 'reasoning') && haveIds(kept);
  const items = withIds ? kept.map(toItem) : joinMessages(kept).map(toAnonymousItem);
  return items.map((item) => JSON.stringify(item)).join(',');
}

interface DraftedReply {
  readonly drafts: readonly Draft[];
  /** Whether nothing of what the server gave was left out. */
  readonly isWhole: boolean;
}

function draftItems(message: AssistantMessage, wireIds: readonly string[], target: ReplyTarget): DraftedReply {
  const { content, source, status } = message;
  const returned = target.keepsOwn ? returnedItems(content, target.provider) : new Set();
  const drafts: Draft[] = [];
  let isWhole = source?.provider === target.provider && status !== 'interrupted';
  let callCount = 0;
  for (const part of content) {
    const draft = toDraft(part);
    if (draft === undefined) isWhole = false;
    else add(drafts, draft);
  }
  return { drafts, isWhole };

  function toDraft(part: AssistantMessage['content'][number]): Draft | undefined {
    switch (part.type) {
      case 'thinking':
        return target.keepsOwn && target.keepsThinking ? toReasoningDraft(part, source, target) : undefined;
      case 'text':
      case 'media':
        return toMessageDraft(part, source, target);
      case 'tool_call': {
        const callId = wireIds[callCount] ?? part.id;
        callCount += 1;
        return toCallDraft(part, callId, ownData(part, source, target) ?? {});
      }
      case 'provider':
        return returned.has(part) && isJsonObject(part.data) ? { kind: 'provider', item: part.data } : undefined;
    }
  }
}

/** Adds an item; what belongs to the one before it becomes a part of that. */
function add(drafts: Draft[], draft: Draft): void {
  const last = drafts.at(-1);
  const joined = last === undefined ? undefined : joinItems(last, draft);
  if (joined === undefined) drafts.push(draft);
  else drafts.splice(-1, 1, joined);
}

function joinItems(last: Draft, draft: Draft): Draft | undefined {
  if (last.kind === 'reasoning' && draft.kind === 'reasoning') return joinReasoning(last, draft);
  if (last.kind !== 'message' || draft.kind !== 'message') return undefined;
  return last.id === draft.id && last.phase === draft.phase ? { ...last, texts: [...last.texts, ...draft.texts] } : undefined;
}

/** Without ids, texts that follow one another are one message, unless they are of different phases. */
function joinMessages(drafts: readonly Draft[]): readonly Draft[] {
  const joined: Draft[] = [];
  for (const draft of drafts) add(joined, draft.kind === 'message' ? { ...draft, id: undefined } : draft);
  return joined;
}

function toMessageDraft(part: TextPart | MediaPart, source: MessageSource | undefined, { provider }: OwnTarget): MessageDraft | undefined {
  const text = part.type === 'text' ? cleanText(part.text) : mediaNote(part);
  if (isBlank(text)) return undefined;
  const data = part.type === 'text' && source?.provider === provider && isJsonObject(part.providerData) ? part.providerData : {};
  const { phase } = data;
  return {
    kind: 'message',
    id: toItemId(data['id'], 'message'),
    phase: phase === 'commentary' || phase === 'final_answer' ? phase : undefined,
    texts: [text],
  };
}

function toCallDraft(call: ToolCallPart, callId: string, { id, namespace, caller }: JsonObject): CallDraft {
  const rest = {
    name: toWireName(call.name),
    ...(typeof namespace === 'string' && { namespace }),
    ...(isJsonObject(caller) && { caller }),
  };
  if (isFreeText(call)) {
    const item = { type: 'custom_tool_call', call_id: callId, input: cleanText(call.inputText), ...rest };
    return { kind: 'call', id: toItemId(id, 'custom_tool_call'), item };
  }
  const item = { type: 'function_call', call_id: callId, arguments: inputText(call.inputText), ...rest };
  return { kind: 'call', id: toItemId(id, 'function_call'), item };
}

/** Whether each has an id, and none that of another. */
function haveIds(drafts: readonly Draft[]): boolean {
  const ids = drafts.map((draft) => (draft.kind === 'provider' ? draft.item['id'] : draft.id)).filter((id) => id !== undefined);
  return drafts.every((draft) => draft.kind === 'provider' || draft.id !== undefined) && new Set(ids).size === ids.length;
}

/** The item as the server knows it. */
function toItem(draft: Draft): JsonObject {
  switch (draft.kind) {
    case 'reasoning':
      return toReasoningItem(draft, true);
    case 'message':
      return {
        type: 'message',
        ...(draft.id !== undefined && { id: draft.id }),
        role: 'assistant',
        status: 'completed',
        content: draft.texts.map((text) => ({ type: 'output_text', text, annotations: [] })),
        ...(draft.phase !== undefined && { phase: draft.phase }),
      };
    case 'call':
      return { ...draft.item, ...(draft.id !== undefined && { id: draft.id }) };
    case 'provider':
      return draft.item;
  }
}

/** The item as one that the server never saw; items of its own tools stay as they are, and so does what led to them. */
function toAnonymousItem(draft: Draft, at: number, drafts: readonly Draft[]): JsonObject {
  switch (draft.kind) {
    case 'reasoning':
      return toReasoningItem(draft, drafts.slice(at + 1).find(({ kind }) => kind !== 'reasoning')?.kind === 'provider');
    case 'message':
      return {
        type: 'message',
        role: 'assistant',
        content: draft.texts.join(''),
        ...(draft.phase !== undefined && { phase: draft.phase }),
      };
    case 'call':
      return draft.item;
    case 'provider':
      return draft.item;
  }
}
