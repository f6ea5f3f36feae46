/** A fault: one thing that an adapter does wrong, told by what it changes of the scripted one. */
import { type LLM, LLMError, type LLMDelta, type LLMRequest, type LLMResponse, type ReplyPart, toLLMError } from 'turnloop';
import type { LLMConformanceCaseId, LLMScene, LLMUnderTest } from 'turnloop/testing/conformance';
import { scriptedOnScene, type WireWriter } from './llm-conformance-scripted.ts';

type Chat = LLM['chat'];

/** What is wrong, and what finds it. */
export interface FaultDefinition {
  /** Cases that have to fail. */
  readonly caughtBy: readonly LLMConformanceCaseId[];
  /** What the first of them has to say. */
  readonly saying: RegExp;
  /** Another LLM. */
  readonly llm?: (llm: LLM, scene: LLMScene) => LLM;
  /** Another `chat`. */
  readonly chat?: (chat: Chat, scene: LLMScene) => Chat;
  /** What of a reply is different. */
  readonly reply?: (response: LLMResponse) => Partial<LLMResponse>;
  /** Another content. */
  readonly parts?: (content: readonly ReplyPart[]) => readonly ReplyPart[];
  /** Another fragment. */
  readonly delta?: (delta: LLMDelta) => LLMDelta;
  /** What is thrown instead; a reply is given. */
  readonly error?: (error: LLMError, scene: LLMScene) => unknown;
  /** Another way to write requests. */
  readonly wire?: WireWriter;
}

/** The scripted adapter with a fault, on a scene. */
export function faultyOnScene(fault: FaultDefinition, scene: LLMScene): LLMUnderTest {
  const good = scriptedOnScene(scene, fault.wire);
  const chat = withFaults(good.llm.chat, fault, scene);
  const llm = { ...good.llm, chat: fault.chat?.(chat, scene) ?? chat };
  return { ...good, llm: fault.llm?.(llm, scene) ?? llm };
}

function withFaults(chat: Chat, fault: FaultDefinition, scene: LLMScene): Chat {
  const { reply, parts, delta: change, error } = fault;
  if ((reply ?? parts ?? change ?? error) === undefined) return chat;
  return async (request) => {
    const { onDelta } = request;
    try {
      const response = await chat({ ...request, onDelta: onDelta && ((delta) => onDelta(change?.(delta) ?? delta)) });
      return { ...response, content: parts?.(response.content) ?? response.content, ...reply?.(response) };
    } catch (thrown) {
      const instead = request.signal.aborted ? thrown : (error?.(toLLMError(thrown), scene) ?? thrown);
      if (isResponse(instead)) return instead;
      throw instead;
    }
  };
}

function isResponse(value: unknown): value is LLMResponse {
  return typeof value === 'object' && value !== null && 'content' in value;
}

/** The error, with something else in it. */
export function errorWith(error: LLMError, options: Partial<LLMError>): LLMError {
  const { kind, message, retryable, retryAfterMs, partial, code, usage } = error;
  return new LLMError({ kind, message, retryable, retryAfterMs, partial, code, usage, ...options });
}

/** The content, with other calls. */
export function mapCalls(content: readonly ReplyPart[], change: (call: Extract<ReplyPart, { type: 'tool_call' }>) => object): readonly ReplyPart[] {
  return content.map((part) => (part.type === 'tool_call' ? (change(part) as ReplyPart) : part));
}

/** A reply that nobody meant. */
export function emptyReply(text = ''): LLMResponse {
  return {
    content: text === '' ? [] : [{ type: 'text', text }],
    stopReason: 'end_turn',
    usage: { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, thinkingTokens: 0 },
  };
}

/** A fragment listener that changes what it passes on. */
export function relay({ onDelta }: LLMRequest, change: (delta: LLMDelta & { type: 'tool_call' }) => LLMDelta): (delta: LLMDelta) => void {
  return (delta) => onDelta?.(delta.type === 'tool_call' ? change(delta) : delta);
}

/** A promise to reject from elsewhere. */
export function withReject<Value>(): { readonly promise: Promise<Value>; readonly reject: (reason: unknown) => void } {
  let reject = (_reason: unknown): void => {};
  const promise = new Promise<Value>((_resolve, rejectIt) => (reject = rejectIt));
  return { promise, reject };
}
