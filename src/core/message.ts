/**
 * Messages: what a conversation is made of, for every protocol alike.
 *
 * Everything here is plain, immutable JSON. Adapters cache the wire form of a message by its identity, so a
 * message is never changed once it was handed out.
 */
import { isRecord, type JsonValue } from './json.ts';

/** Text, as a person or a model wrote it. */
export interface TextPart {
  /** Tells this shape from the others. */
  readonly type: 'text';
  /** The text. */
  readonly text: string;
  /** What the provider attached to this part (a signature, citations): sent back to the same provider unchanged. */
  readonly providerData?: JsonValue | undefined;
}

/** A model's thinking. */
export interface ThinkingPart {
  /** Tells this shape from the others. */
  readonly type: 'thinking';
  /** Readable thinking; empty where the provider keeps it to itself. */
  readonly text: string;
  /** The provider's signature over this block. Without it most providers refuse the block in a later request. */
  readonly signature?: string | undefined;
  /** Encrypted thinking, opaque to us; sent back unchanged. */
  readonly redactedData?: string | undefined;
  /** What the provider attached to this part: sent back to the same provider unchanged. */
  readonly providerData?: JsonValue | undefined;
}

/** An image, audio or file; either inline or by address. */
export type MediaPart = InlineMediaPart | LinkedMediaPart;

/** Media whose bytes travel in the message. */
export interface InlineMediaPart {
  /** Tells this shape from the others. */
  readonly type: 'media';
  /** MIME type, such as `image/png`. */
  readonly mediaType: string;
  /** The bytes in base64, without a `data:` prefix. */
  readonly data: string;
  /** Never set: the bytes are inline. */
  readonly url?: undefined;
}

/** Media that the provider fetches itself. */
export interface LinkedMediaPart {
  /** Tells this shape from the others. */
  readonly type: 'media';
  /** MIME type, such as `image/png`. */
  readonly mediaType: string;
  /** Address the provider can reach. */
  readonly url: string;
  /** Never set: the provider fetches the bytes. */
  readonly data?: undefined;
}

/** A model's request to run a tool. */
export interface ToolCallPart {
  /** Tells this shape from the others. */
  readonly type: 'tool_call';
  /** Our id: made by the runtime at the call's first delta, unique in the transcript. */
  readonly id: string;
  /** The tool's name as the model wrote it: untrusted, it need not exist. */
  readonly name: string;
  /** The arguments byte for byte as the model wrote them; possibly empty, malformed or cut off. */
  readonly inputText: string;
  /** `inputText` parsed, after rewriting by hooks; absent where it was not an object. */
  readonly input?: unknown;
  /** What the provider called this call; absent where it gave no id. Not necessarily unique. */
  readonly providerId?: string | undefined;
  /** What the provider attached to this call (a thought signature): sent back to the same provider unchanged. */
  readonly providerData?: JsonValue | undefined;
}

/** A block that only one provider understands: sent back to it unchanged, left out for others. */
export interface ProviderPart {
  /** Tells this shape from the others. */
  readonly type: 'provider';
  /** The `LLM.provider` it came from. */
  readonly provider: string;
  /** The block as it came. */
  readonly data: JsonValue;
}

/** Any piece of any message. */
export type MessagePart = TextPart | ThinkingPart | MediaPart | ToolCallPart | ProviderPart;

/** What a user message may hold. */
export type UserPart = TextPart | MediaPart;

/** What an assistant message may hold, in one ordered list. */
export type AssistantPart = TextPart | ThinkingPart | MediaPart | ToolCallPart | ProviderPart;

/** What a tool result may hold. */
export type ToolResultPart = TextPart | MediaPart;

/**
 * Why a user message is there: `user` a person wrote it; `steering` a person wrote it into a running turn;
 * `memory`, `summary` and `reminder` were built by policies; `host` by the application. Never sent to a provider.
 */
export type UserMessageOrigin = 'user' | 'steering' | 'memory' | 'summary' | 'reminder' | 'host';

/** A message to the model. */
export interface UserMessage {
  /** Whose message it is. */
  readonly role: 'user';
  /** Unique in the transcript. Empty until the message is recorded: the loop then gives it one from its runtime. */
  readonly id: string;
  /** Parts in reading order. */
  readonly content: readonly UserPart[];
  /** Why the message is there. */
  readonly origin: UserMessageOrigin;
  /** Keeps the message out of every compaction. */
  readonly pinned?: boolean | undefined;
  /** Built for one request and never recorded; stands only at the head or the tail of the history. */
  readonly transient?: boolean | undefined;
}

/** Which model wrote an assistant message: tells an adapter whether signatures may go back. */
export interface MessageSource {
  /** The `LLM.provider` that answered. */
  readonly provider: string;
  /** The model that answered. */
  readonly modelId: string;
  /** The provider's id of the response. */
  readonly responseId?: string | undefined;
}

/** A reply of a model. */
export interface AssistantMessage {
  /** Whose message it is. */
  readonly role: 'assistant';
  /** Unique in the transcript; the `stepId` of the step that produced it. */
  readonly id: string;
  /** Parts in the order in which the model wrote them, tool calls included. */
  readonly content: readonly AssistantPart[];
  /** Which model wrote it; absent for messages a host made up. */
  readonly source?: MessageSource | undefined;
  /** Set when the reply was cut off and only a part of it was kept. */
  readonly status?: 'interrupted' | undefined;
}

/** The result of one tool call, as the model is to read it. */
export interface ToolMessage {
  /** Whose message it is. */
  readonly role: 'tool';
  /** Unique in the transcript. */
  readonly id: string;
  /** The `id` of the call this answers. */
  readonly toolCallId: string;
  /** Name of the tool, as the call had it. */
  readonly name: string;
  /** Never empty; an error's text starts with a line that says so. */
  readonly content: readonly ToolResultPart[];
  /** True for a failure. */
  readonly isError?: boolean | undefined;
}

/** One entry of a history. */
export type Message = UserMessage | AssistantMessage | ToolMessage;

/** Options of {@link userMessage}. */
export interface UserMessageOptions {
  /** @defaultValue empty: the loop gives one when it records the message */
  readonly id?: string | undefined;
  /** @defaultValue `'user'` */
  readonly origin?: UserMessageOrigin | undefined;
  /** Keeps the message out of every compaction. @defaultValue false */
  readonly pinned?: boolean | undefined;
  /** For one request only, never recorded. @defaultValue false */
  readonly transient?: boolean | undefined;
}

/**
 * Makes a user message.
 *
 * @param content - Text, or parts in reading order.
 */
export function userMessage(content: string | readonly UserPart[], options: UserMessageOptions = {}): UserMessage {
  return {
    role: 'user',
    id: options.id ?? '',
    content: toParts(content),
    origin: options.origin ?? 'user',
    ...(options.pinned === true && { pinned: true }),
    ...(options.transient === true && { transient: true }),
  };
}

/** Options of {@link assistantMessage}. */
export interface AssistantMessageOptions {
  /** @defaultValue empty */
  readonly id?: string | undefined;
  /** Which model wrote it; without it no adapter sends signatures or provider parts back. */
  readonly source?: MessageSource | undefined;
  /** Marks a reply that was cut off. */
  readonly status?: 'interrupted' | undefined;
}

/**
 * Makes an assistant message, for histories that a host or a test builds by hand.
 *
 * @param content - Text, or parts in the order in which the model wrote them.
 */
export function assistantMessage(
  content: string | readonly AssistantPart[],
  options: AssistantMessageOptions = {},
): AssistantMessage {
  return {
    role: 'assistant',
    id: options.id ?? '',
    content: toParts(content),
    ...(options.source !== undefined && { source: options.source }),
    ...(options.status !== undefined && { status: options.status }),
  };
}

/** Options of {@link toolMessage}. */
export interface ToolMessageOptions {
  /** The `id` of the call this answers. */
  readonly toolCallId: string;
  /** Name of the tool, as the call had it. */
  readonly name: string;
  /** @defaultValue empty */
  readonly id?: string | undefined;
  /** True for a failure. @defaultValue false */
  readonly isError?: boolean | undefined;
}

/**
 * Makes the message that answers a tool call, for histories that a host or a test builds by hand.
 *
 * @param content - Text, or parts in reading order.
 */
export function toolMessage(content: string | readonly ToolResultPart[], options: ToolMessageOptions): ToolMessage {
  return {
    role: 'tool',
    id: options.id ?? '',
    toolCallId: options.toolCallId,
    name: options.name,
    content: toParts(content),
    ...(options.isError === true && { isError: true }),
  };
}

/** Text of a message or of a list of parts: its text parts joined, thinking and all else left out. */
export function textOf(source: Message | readonly MessagePart[] | undefined): string {
  if (source === undefined) return '';
  const parts: readonly MessagePart[] = 'role' in source ? source.content : source;
  let text = '';
  for (const part of parts) if (part.type === 'text') text += part.text;
  return text;
}

/** True for a part that a user message or a tool result may hold, whatever a caller without types gave. */
export function isTextOrMedia(value: unknown): value is TextPart | MediaPart {
  if (!isRecord(value)) return false;
  if (value['type'] === 'text') return typeof value['text'] === 'string';
  if (value['type'] !== 'media' || typeof value['mediaType'] !== 'string') return false;
  return typeof value['data'] === 'string' || typeof value['url'] === 'string';
}

/** True for a user message, whatever a caller without types gave. */
export function isUserMessage(value: unknown): value is UserMessage {
  return isRecord(value) && value['role'] === 'user' && Array.isArray(value['content']) && value['content'].every(isTextOrMedia);
}

/** The parts of a content that may be given as bare text. */
function toParts<Part>(content: string | readonly Part[]): readonly (Part | TextPart)[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}
