/**
 * Replies: what a scripted model answers, in words that read like the conversation.
 *
 * Every form comes down to a {@link ScriptedReply}. How it is streamed is `reply-stream.ts`'s business, when it is
 * played `scripted-llm.ts`'s.
 */
import { LLMError } from '../core/errors.ts';
import { assertNumbers, assertOptions } from '../core/assert.ts';
import { isRecord, type JsonObject, type JsonValue } from '../core/json.ts';
import type { LLMDelta, LLMRequest, LLMTiming, ReplyPart, ReplyToolCall } from '../core/llm.ts';
import type { ThinkingPart } from '../core/message.ts';
import type { StepStopReason } from '../core/stop-reason.ts';
import type { Usage } from '../core/usage.ts';

/**
 * One reply of a scripted model: text, a part, a list of both, an error to throw, a whole {@link ScriptedReply}, or a
 * function of the request that gives one of these.
 */
export type Reply = string | ReplyPart | ReplyContent | Error | ScriptedReply | ReplyFunction;

/** Parts of a reply in order; bare text stands for a text part, and the empty text for none. */
export type ReplyContent = readonly (string | ReplyPart)[];

/**
 * Makes a reply of the request.
 *
 * @param request - What the model was asked.
 * @param callIndex - How many requests the model had before, 0-based.
 */
export type ReplyFunction = (request: LLMRequest, callIndex: number) => Reply | Promise<Reply>;

/** Sizes of the fragments of a part, in characters: one for all, or each in turn, the last for the rest. */
export type ChunkSize = number | readonly number[];

/** A reply with everything that can be said about it. */
export interface ScriptedReply {
  /** What the model says: text, or parts in order. */
  readonly content: string | ReplyContent;
  /** @defaultValue `tool_use` if there is a call, else `end_turn` */
  readonly stopReason?: StepStopReason | undefined;
  /** The provider's own word for it. */
  readonly rawStopReason?: string | undefined;
  /** Tokens spent; counters left out are 0. @defaultValue what the model's `usage` option says */
  readonly usage?: Partial<Usage> | undefined;
  /** The provider's id of the response. */
  readonly responseId?: string | undefined;
  /** The model that really answered. */
  readonly modelId?: string | undefined;
  /** The provider that really answered. */
  readonly provider?: string | undefined;
  /** Where the time went. */
  readonly timing?: LLMTiming | undefined;
  /** How the parts are cut into fragments. @defaultValue the model's `chunk` option */
  readonly chunk?: ChunkSize | undefined;
  /** The fragments themselves, where they are to differ from what `chunk` would give. */
  readonly deltas?: readonly LLMDelta[] | undefined;
  /** Waits before the first fragment, in milliseconds of the runtime. */
  readonly delayMs?: number | undefined;
  /** Waits before each fragment, in milliseconds of the runtime. */
  readonly deltaDelayMs?: number | undefined;
  /** How many fragments are streamed before the reply ends, fails or hangs. @defaultValue all */
  readonly deltaCount?: number | undefined;
  /** Thrown after the fragments, instead of a response. */
  readonly error?: unknown;
  /** Never ends after the fragments, until it is aborted. */
  readonly hangs?: boolean | undefined;
  /** Goes on as if nothing was when the signal aborts: a badly behaved model. */
  readonly ignoresAbort?: boolean | undefined;
}

/** A reply that is given again and again. Made by {@link repeat}. */
export interface RepeatedReply {
  /** Tells it from a reply. */
  readonly kind: 'repeat';
  /** The reply. */
  readonly reply: Reply;
  /** How often it is given; `Infinity` for ever. */
  readonly times: number;
}

/** Options of {@link toolCall}. */
export interface ToolCallOptions {
  /** What the provider calls the call. @defaultValue none */
  readonly providerId?: string | undefined;
  /** What the provider attached to the call. */
  readonly providerData?: JsonValue | undefined;
}

/**
 * A call in a reply.
 *
 * @param name - Name of the tool; it need not exist.
 * @param input - The arguments, or their text as the model wrote it, which may be no JSON at all. @defaultValue `{}`
 */
export function toolCall(name: string, input: JsonObject | string = {}, options: ToolCallOptions = {}): ReplyToolCall {
  return {
    type: 'tool_call',
    name,
    inputText: typeof input === 'string' ? input : JSON.stringify(input),
    ...(options.providerId !== undefined && { providerId: options.providerId }),
    ...(options.providerData !== undefined && { providerData: options.providerData }),
  };
}

/** Thinking in a reply. */
export function thinking(text: string, options: Omit<ThinkingPart, 'type' | 'text'> = {}): ThinkingPart {
  return { type: 'thinking', text, ...options };
}

/**
 * Gives a reply again and again: for endless models, or for "fails three times".
 *
 * @param times - How often. @defaultValue for ever
 * @throws TypeError for a number that is not whole.
 */
export function repeat(reply: Reply, times: number = Infinity): RepeatedReply {
  assertNumbers({ times }, { times: { least: 0, orInfinity: true, whole: true } }, { taker: 'repeat', example: "repeat('busy', 3)" });
  return { kind: 'repeat', reply, times };
}

/** A reply that begins only after a delay, in milliseconds of the runtime. */
export function delayed(reply: Reply, delayMs: number): ReplyFunction {
  return changed(reply, { delayMs });
}

/** A reply that never comes. Ends only when the request is aborted. */
export function hanging(): ScriptedReply {
  return { content: [], hangs: true };
}

/**
 * A stream that goes silent: it never ends, until the request is aborted.
 *
 * @param deltaCount - How many fragments come before the silence.
 */
export function stalled(reply: Reply, deltaCount: number): ReplyFunction {
  return changed(reply, { deltaCount, hangs: true });
}

/** A reply of a model that does not listen to the signal: it streams, waits or hangs on after an abort. */
export function stubborn(reply: Reply): ReplyFunction {
  return changed(reply, { ignoresAbort: true });
}

/** Options of {@link cutStream}. */
export interface CutStreamOptions {
  /** How many fragments come before the cut. */
  readonly deltaCount: number;
  /** Whether the error tells what had arrived, as a good adapter's does. @defaultValue false */
  readonly partial?: boolean | undefined;
  /** What is thrown instead of an error of kind `network`. `partial` then has no effect. */
  readonly error?: unknown;
}

/** A stream that breaks off: some fragments, then an error. */
export function cutStream(reply: Reply, options: CutStreamOptions): ReplyFunction {
  const { deltaCount, partial = false } = options;
  return changed(reply, { deltaCount, error: options.error ?? new StreamCut(partial) });
}

/** Stands for a network error whose `partial` is known only once the reply has been streamed. */
export class StreamCut {
  /** Whether the error is to tell what had arrived. */
  readonly withPartial: boolean;

  constructor(withPartial: boolean) {
    this.withPartial = withPartial;
  }

  /** The error to throw, given what had arrived. */
  toError(partial: LLMError['partial']): LLMError {
    return new LLMError({
      kind: 'network',
      message: 'The stream broke off.',
      ...(this.withPartial && { partial }),
    });
  }
}

const REPLY_FORMS = "text, a part such as toolCall('weather', { city: 'Oslo' }), a list of both, an Error, { content: … }, or a function of the request";

const REPLY_FIELDS: Readonly<Record<keyof ScriptedReply, true>> = {
  content: true,
  stopReason: true,
  rawStopReason: true,
  usage: true,
  responseId: true,
  modelId: true,
  provider: true,
  timing: true,
  chunk: true,
  deltas: true,
  delayMs: true,
  deltaDelayMs: true,
  deltaCount: true,
  error: true,
  hangs: true,
  ignoresAbort: true,
};

/**
 * Refuses what is no reply, before it fails in other words in the middle of a turn.
 *
 * @param place - Where it stands, for the message.
 * @throws TypeError saying what it is, and what a reply is.
 */
export function assertReply(reply: unknown, place: string): asserts reply is Reply {
  if (typeof reply === 'string' || typeof reply === 'function' || reply instanceof Error || isPart(reply)) return;
  if (Array.isArray(reply)) return assertContent(reply, place);
  if (!isRecord(reply)) throw new TypeError(`scriptedLLM: ${place} is ${String(reply)}, which is no reply. A reply is ${REPLY_FORMS}.`);
  assertOptions(reply, REPLY_FIELDS, { taker: `scriptedLLM: ${place}`, example: "{ content: 'done', delayMs: 100 }" });
  const { content } = reply;
  if (typeof content === 'string') return;
  if (!Array.isArray(content)) throw new TypeError(`scriptedLLM: ${place} has no \`content\`. A reply is ${REPLY_FORMS}.`);
  assertContent(content, `${place}.content`);
}

function assertContent(content: readonly unknown[], place: string): void {
  const at = content.findIndex((piece) => typeof piece !== 'string' && !isPart(piece));
  if (at !== -1) throw new TypeError(`scriptedLLM: ${place}[${at}] is neither text nor a part such as toolCall('weather', { city: 'Oslo' }).`);
}

function isPart(value: unknown): boolean {
  return isRecord(value) && typeof value['type'] === 'string';
}

/** Brings a reply of any form down to a {@link ScriptedReply}. Rejects with what a function throws. */
export async function resolveReply(reply: Reply, request: LLMRequest, callIndex: number): Promise<ScriptedReply> {
  let current = reply;
  while (typeof current === 'function') {
    current = await current(request, callIndex);
    assertReply(current, 'what a function of the script gave');
  }
  if (typeof current === 'string') return { content: current };
  if (current instanceof Error) return { content: [], error: current };
  if (isContent(current)) return { content: current };
  return 'type' in current ? { content: [current] } : current;
}

/** The parts of a reply's content. */
export function partsOf(content: string | ReplyContent): readonly ReplyPart[] {
  const pieces = typeof content === 'string' ? [content] : content;
  return pieces
    .filter((piece) => piece !== '')
    .map((piece) => (typeof piece === 'string' ? { type: 'text', text: piece } : piece));
}

function changed(reply: Reply, changes: Partial<ScriptedReply>): ReplyFunction {
  return async (request, callIndex) => ({ ...(await resolveReply(reply, request, callIndex)), ...changes });
}

// `Array.isArray` does not narrow read-only arrays.
function isContent(reply: ReplyPart | ReplyContent | ScriptedReply): reply is ReplyContent {
  return Array.isArray(reply);
}
