/** Models of the AI SDK without a provider: they stream the parts they are told to and keep what they were asked. */
import type { LLM, LLMDelta, LLMRequest, LLMResponse } from 'turnloop';
import { aiSdk, type AiSdkModel, type AiSdkOptions, type SupportedUrls } from 'turnloop/providers/ai-sdk';
import { errorOf, request } from './fake-server.ts';

export type Version = AiSdkModel['specificationVersion'];

/** A part of a stream, of whatever specification. */
export type StreamPart = { readonly type: string; readonly [field: string]: unknown };

/** A message of a prompt, as far as tests look into it. */
export interface SentMessage {
  readonly role: string;
  readonly content: unknown;
}

/** What a model was asked. */
export interface SentCall {
  readonly prompt: readonly SentMessage[];
  readonly abortSignal: AbortSignal;
  readonly [option: string]: unknown;
}

export interface FakeModelOptions {
  readonly version?: Version;
  readonly provider?: string;
  readonly modelId?: string;
  readonly supportedUrls?: SupportedUrls | PromiseLike<SupportedUrls>;
  /** Whether the stream stays open after its last part. */
  readonly open?: boolean;
  /** What the stream fails with after its last part. */
  readonly failure?: unknown;
  /** What asking fails with. */
  readonly thrown?: unknown;
  /** Whether the model never answers at all. */
  readonly silent?: boolean;
}

export interface FakeModel extends AiSdkModel {
  readonly calls: readonly SentCall[];
  /** How often a stream was cancelled. */
  readonly cancelled: () => number;
}

/** A model that answers each request with these parts, or with the result of the same content if it is not to stream. */
export function fakeModel(parts: readonly unknown[] = [], options: FakeModelOptions = {}): FakeModel {
  const { version = 'v3', provider = 'fake.chat', modelId = 'fake-model', thrown, silent } = options;
  const calls: SentCall[] = [];
  let cancelled = 0;

  function take(callOptions: object): void {
    calls.push(callOptions as SentCall);
    if (thrown !== undefined) throw thrown;
  }

  return {
    specificationVersion: version,
    provider,
    modelId,
    supportedUrls: options.supportedUrls ?? {},
    doStream(callOptions) {
      take(callOptions);
      if (silent === true) return new Promise(() => {});
      return Promise.resolve({ stream: toStream(parts, options, () => (cancelled += 1)) });
    },
    doGenerate(callOptions) {
      take(callOptions);
      return silent === true ? new Promise(() => {}) : Promise.resolve(parts[0] as object);
    },
    calls,
    cancelled: () => cancelled,
  };
}

function toStream(parts: readonly unknown[], { open, failure }: FakeModelOptions, onCancel: () => void): ReadableStream<unknown> {
  let next = 0;
  return new ReadableStream<unknown>(
    {
      pull(controller) {
        if (next < parts.length) controller.enqueue(parts[next]);
        else if (failure !== undefined) controller.error(failure);
        else if (open !== true) controller.close();
        else return new Promise(() => {});
        next += 1;
        return undefined;
      },
      cancel: onCancel,
    },
    { highWaterMark: 0 },
  );
}

const DETAILED_USAGE = {
  inputTokens: { total: 10, noCache: 7, cacheRead: 2, cacheWrite: 1 },
  outputTokens: { total: 5, text: 2, reasoning: 3 },
};

/** The part that ends a reply. @param unified - The SDK's word. @param raw - The provider's; the same word if left out. */
export function finish(unified = 'stop', raw: string | undefined = unified, more: object = {}): StreamPart {
  return { type: 'finish', finishReason: { unified, raw }, usage: DETAILED_USAGE, ...more };
}

/** The parts of a text. */
export function text(delta: string, id = '0'): readonly StreamPart[] {
  return [
    { type: 'text-start', id },
    { type: 'text-delta', id, delta },
    { type: 'text-end', id },
  ];
}

/** The parts of a call whose arguments arrive in pieces. */
export function call(toolName: string, pieces: readonly string[], more: object = {}): readonly StreamPart[] {
  const id = `id_${toolName}`;
  return [
    { type: 'tool-input-start', id, toolName },
    ...pieces.map((delta) => ({ type: 'tool-input-delta', id, delta })),
    { type: 'tool-input-end', id },
    { type: 'tool-call', toolCallId: id, toolName, input: pieces.join(''), ...more },
  ];
}

/** A reply that says `ok`. */
export const OK: readonly StreamPart[] = [...text('ok'), finish()];

/** An answer with its deltas. */
export interface ReadReply {
  readonly response: LLMResponse;
  readonly deltas: readonly LLMDelta[];
}

/** Reads a stream of parts. */
export async function read(parts: readonly unknown[], options: FakeModelOptions & { readonly llm?: AiSdkOptions } = {}): Promise<ReadReply> {
  const deltas: LLMDelta[] = [];
  const llm = aiSdk(fakeModel(parts, options), options.llm);
  const { timing: _timing, ...response } = await llm.chat(request(undefined, { onDelta: (delta) => deltas.push(delta) }));
  return { response, deltas };
}

/** The error that a stream of parts, or a model that fails, is read as. */
export function errorOfParts(parts: readonly unknown[], options: FakeModelOptions & { readonly llm?: AiSdkOptions } = {}): ReturnType<typeof errorOf> {
  return errorOf(aiSdk(fakeModel(parts, options), options.llm).chat(request()));
}

/** What a model is asked for a request. */
export async function callFor(
  { messages, ...more }: Partial<LLMRequest>,
  { llm, ...options }: FakeModelOptions & { readonly llm?: AiSdkOptions } = {},
): Promise<SentCall> {
  const model = fakeModel(OK, options);
  await aiSdk(model, llm).chat(request(messages, more));
  return model.calls[0]!;
}

/** An adapter on a model that says `ok`, with the model. */
export function okModel(options: FakeModelOptions = {}, llmOptions: AiSdkOptions = {}): { readonly model: FakeModel; readonly llm: LLM } {
  const model = fakeModel(OK, options);
  return { model, llm: aiSdk(model, llmOptions) };
}
