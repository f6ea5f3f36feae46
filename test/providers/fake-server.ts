/** A server without a network: a `fetch` that answers as told, and the adapter on it. */
import type { LLM, LLMDelta, LLMRequest, LLMResponse, Message, Runtime } from 'turnloop';
import { isLLMError, type LLMError, userMessage } from 'turnloop';
import { openAIChat, type OpenAIChatOptions } from 'turnloop/providers/openai-chat';
import { type Chunking, CHUNKINGS, cut } from '../support/stream-cases.ts';

/** A request's body, as far as tests look into it. */
export interface SentBody {
  readonly messages: readonly Record<string, unknown>[];
  readonly [field: string]: unknown;
}

/** What a request looked like. */
export interface SentRequest {
  readonly url: string;
  readonly headers: Headers;
  readonly text: string;
  readonly body: SentBody;
}

export interface FakeServer {
  readonly fetch: typeof globalThis.fetch;
  readonly sent: readonly SentRequest[];
  /** How often a body was cancelled. */
  readonly cancelled: () => number;
}

export interface FakeAnswer {
  readonly body?: string | Uint8Array;
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly chunking?: Chunking;
  /** Whether the body stays open after its last piece. */
  readonly open?: boolean;
  /** What reading fails with after the last piece. */
  readonly failure?: unknown;
}

/** Answers each request with the next answer; the last one stays. */
export function fakeServer(...answers: readonly FakeAnswer[]): FakeServer {
  const sent: SentRequest[] = [];
  let cancelled = 0;
  const fetch = async (url: unknown, init?: RequestInit): Promise<Response> => {
    const answer = answers[Math.min(sent.length, answers.length - 1)] ?? {};
    const text = init?.body as string;
    const body = JSON.parse(text) as SentBody;
    sent.push({ url: (url as URL).href, headers: new Headers(init?.headers), text, body });
    return new Response(toStream(answer, () => (cancelled += 1)), { status: answer.status ?? 200, headers: answer.headers ?? {} });
  };
  return { fetch, sent, cancelled: () => cancelled };
}

function toStream({ body = '', chunking = 'whole', open, failure }: FakeAnswer, onCancel: () => void): ReadableStream<Uint8Array> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const pieces = bytes.length === 0 ? [] : [...cut(bytes, chunking)];
  let next = 0;
  return new ReadableStream({
    pull(controller) {
      const piece = pieces[next];
      next += 1;
      if (piece !== undefined) controller.enqueue(piece);
      else if (failure !== undefined) controller.error(failure);
      else if (open !== true) controller.close();
      else return new Promise(() => {});
      return undefined;
    },
    cancel: onCancel,
  });
}

/** How a {@link slowServer} answers. */
export interface SlowAnswer {
  /** The clock on which it is slow. */
  readonly runtime: Runtime;
  readonly everyMs: number;
  /** The first comes at once, each further one `everyMs` after the one before; then the body is at its end. */
  readonly pieces: Iterable<string>;
}

/** Answers each request piece by piece. */
export function slowServer({ runtime, everyMs, pieces }: SlowAnswer): { readonly fetch: typeof globalThis.fetch } {
  const body = (): ReadableStream<Uint8Array> => {
    const rest = pieces[Symbol.iterator]();
    let isFirst = true;
    let isCancelled = false;
    return new ReadableStream({
      async pull(controller) {
        if (!isFirst) await new Promise<void>((resolve) => void runtime.setTimer(everyMs, resolve));
        isFirst = false;
        if (isCancelled) return;
        const { done, value } = rest.next();
        if (done === true) controller.close();
        else controller.enqueue(new TextEncoder().encode(value));
      },
      cancel: () => void (isCancelled = true),
    });
  };
  return { fetch: async () => new Response(body()) };
}

/** Events as a body; `[DONE]` follows unless `end` says otherwise. */
export function events(list: readonly unknown[], end = 'data: [DONE]\n\n'): string {
  return list.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') + end;
}

/** A chunk with this delta. */
export function delta(content: unknown, finishReason?: string | null): unknown {
  return { choices: [{ index: 0, delta: content, ...(finishReason !== undefined && { finish_reason: finishReason }) }] };
}

/** A chunk with these tool-call fragments. */
export function callDelta(...fragments: readonly unknown[]): unknown {
  return delta({ tool_calls: fragments });
}

/** Chunk that ends a reply. */
export function finish(reason: string): unknown {
  return delta({}, reason);
}

/** The adapter on a fake server. */
export function chatOn(server: { readonly fetch: typeof globalThis.fetch }, options: Partial<OpenAIChatOptions> = {}): LLM {
  return openAIChat({ model: 'test-model', apiKey: 'sk-test', baseUrl: 'https://api.example.com/v1', fetch: server.fetch, ...options });
}

/** A request with these messages. */
export function request(messages: readonly Message[] = [userMessage('Hello')], more: Partial<LLMRequest> = {}): LLMRequest {
  return { systemPrompt: '', messages, tools: [], signal: new AbortController().signal, ...more };
}

export interface ReadReply {
  readonly response: LLMResponse;
  readonly deltas: readonly LLMDelta[];
}

/** Reads a body in each chunking; the readings must not differ. */
export async function readBody(body: string | Uint8Array, options: Partial<OpenAIChatOptions> = {}): Promise<ReadReply> {
  const readings: ReadReply[] = [];
  for (const chunking of CHUNKINGS) {
    const deltas: LLMDelta[] = [];
    const llm = chatOn(fakeServer({ body, chunking }), options);
    const { timing: _timing, ...response } = await llm.chat(request(undefined, { onDelta: (each) => deltas.push(each) }));
    readings.push({ response, deltas });
  }
  const [first] = readings;
  for (const reading of readings) {
    if (JSON.stringify(reading) !== JSON.stringify(first)) throw new Error(`chunkings differ: ${JSON.stringify(readings)}`);
  }
  return first!;
}

/** The error that a chat rejects with. */
export async function errorOf(chat: Promise<unknown>): Promise<LLMError> {
  const thrown: unknown = await chat.then(
    () => new Error('the chat succeeded'),
    (error: unknown) => error,
  );
  if (!isLLMError(thrown)) throw thrown;
  return thrown;
}

/** The error that a body is read as, in each chunking. */
export async function errorOfBody(body: string | Uint8Array, more: FakeAnswer = {}): Promise<LLMError> {
  let last: LLMError | undefined;
  for (const chunking of CHUNKINGS) {
    const error = await errorOf(chatOn(fakeServer({ body, chunking, ...more })).chat(request()));
    if (last !== undefined && JSON.stringify(error) !== JSON.stringify(last)) throw new Error(`chunkings differ: ${error.message}`);
    last = error;
  }
  return last!;
}
