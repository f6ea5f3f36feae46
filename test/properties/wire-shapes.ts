/**
 * Wire shapes: a neutral history as an adapter would send it, for each of the three protocols, cut down to what their
 * rules are about. Written by hand and by the protocols' documentation alone, so that it shares no mistake with `src`.
 */
import type { AssistantMessage, AssistantPart, Message, UserMessage } from 'turnloop';

/** A message of Chat Completions. */
export type ChatMessage =
  | { readonly role: 'user'; readonly texts: readonly string[]; readonly media: number }
  | { readonly role: 'assistant'; readonly texts: readonly string[]; readonly callIds: readonly string[] }
  | { readonly role: 'tool'; readonly callId: string; readonly texts: readonly string[] };

/** An item of Responses. */
export type ResponsesItem =
  | { readonly type: 'message'; readonly role: 'user' | 'assistant'; readonly texts: readonly string[]; readonly media: number }
  | { readonly type: 'reasoning' }
  | { readonly type: 'function_call'; readonly callId: string }
  | { readonly type: 'function_call_output'; readonly callId: string; readonly texts: readonly string[] };

/** A block of an Anthropic message. */
export type AnthropicBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking' | 'image' }
  | { readonly type: 'tool_use'; readonly id: string }
  | { readonly type: 'tool_result'; readonly id: string; readonly texts: readonly string[]; readonly media: number };

/** A message of the Anthropic protocol. */
export interface AnthropicMessage {
  readonly role: 'user' | 'assistant';
  readonly blocks: readonly AnthropicBlock[];
}

/**
 * The id under which each call goes out: the provider's where it is legal and new in the history, else a form of ours.
 * Calls that share an id of ours share the one on the wire.
 */
class WireIds {
  readonly #byCall = new Map<string, string>();
  readonly #used = new Set<string>();

  add(messages: readonly Message[]): this {
    for (const message of messages) {
      for (const part of message.role === 'assistant' ? message.content : []) {
        if (part.type !== 'tool_call' || this.#byCall.has(part.id)) continue;
        const { id, providerId } = part;
        const wish = providerId !== undefined && /^[\w-]{1,64}$/.test(providerId) && !this.#used.has(providerId) ? providerId : `ours_${id}`;
        this.#byCall.set(id, wish);
        this.#used.add(wish);
      }
    }
    return this;
  }

  of(toolCallId: string): string {
    return this.#byCall.get(toolCallId) ?? `unknown_${toolCallId}`;
  }
}

function textsOf(message: Message): readonly string[] {
  return message.content.flatMap((part) => (part.type === 'text' && !isBlankWithData(part) ? [part.text] : []));
}

/** Blank texts are kept only for what a provider attached to them; other providers' adapters leave them out. */
function isBlankWithData(part: AssistantPart): boolean {
  return part.type === 'text' && part.providerData !== undefined && part.text.trim() === '';
}

function mediaOf(message: Message): number {
  return message.content.filter((part) => part.type === 'media').length;
}

function callIdsOf(message: AssistantMessage, ids: WireIds): readonly string[] {
  return message.content.flatMap((part) => (part.type === 'tool_call' ? [ids.of(part.id)] : []));
}

/** Chat Completions. A reply of which nothing can be said in this protocol is left out: thinking, another provider's. */
export function toChat(messages: readonly Message[]): readonly ChatMessage[] {
  const ids = new WireIds().add(messages);
  return messages.flatMap((message): readonly ChatMessage[] => {
    const texts = textsOf(message);
    if (message.role === 'user') return [{ role: 'user', texts, media: mediaOf(message) }];
    if (message.role === 'tool') return [{ role: 'tool', callId: ids.of(message.toolCallId), texts }];
    const callIds = callIdsOf(message, ids);
    return texts.length + callIds.length === 0 ? [] : [{ role: 'assistant', texts, callIds }];
  });
}

/** Responses. Reasoning that nothing of its reply follows is left out: the protocol refuses it. */
export function toResponses(messages: readonly Message[]): readonly ResponsesItem[] {
  const ids = new WireIds().add(messages);
  return messages.flatMap((message): readonly ResponsesItem[] => {
    if (message.role === 'user') return [userItem(message)];
    if (message.role === 'tool') {
      return [{ type: 'function_call_output', callId: ids.of(message.toolCallId), texts: textsOf(message) }];
    }
    const items = message.content.flatMap((part): readonly ResponsesItem[] => {
      if (part.type === 'text') return isBlankWithData(part) ? [] : [{ type: 'message', role: 'assistant', texts: [part.text], media: 0 }];
      if (part.type === 'tool_call') return [{ type: 'function_call', callId: ids.of(part.id) }];
      return part.type === 'thinking' ? [{ type: 'reasoning' }] : [];
    });
    while (items.at(-1)?.type === 'reasoning') items.pop();
    return items;
  });
}

function userItem(message: UserMessage): ResponsesItem {
  return { type: 'message', role: 'user', texts: textsOf(message), media: mediaOf(message) };
}

/** Anthropic: neighbours of one role are one message; thinking goes back only if it is signed, and never last. */
export function toAnthropic(messages: readonly Message[]): readonly AnthropicMessage[] {
  const ids = new WireIds().add(messages);
  const merged: { role: 'user' | 'assistant'; blocks: AnthropicBlock[] }[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const blocks = [...blocksOf(message, ids)];
    while (role === 'assistant' && blocks.at(-1)?.type === 'thinking') blocks.pop();
    if (role === 'assistant' && blocks.length === 0) continue;
    const last = merged.at(-1);
    if (last?.role === role) last.blocks.push(...blocks);
    else merged.push({ role, blocks });
  }
  return merged;
}

function blocksOf(message: Message, ids: WireIds): readonly AnthropicBlock[] {
  if (message.role === 'tool') {
    return [{ type: 'tool_result', id: ids.of(message.toolCallId), texts: textsOf(message), media: mediaOf(message) }];
  }
  return message.content.flatMap((part: AssistantPart): readonly AnthropicBlock[] => {
    if (part.type === 'text') return isBlankWithData(part) ? [] : [{ type: 'text', text: part.text }];
    if (part.type === 'tool_call') return [{ type: 'tool_use', id: ids.of(part.id) }];
    if (part.type === 'thinking') return part.signature !== undefined || part.redactedData !== undefined ? [{ type: 'thinking' }] : [];
    return part.type === 'media' && message.role === 'user' ? [{ type: 'image' }] : [];
  });
}
