/** The Gemini adapter on a server without a network, and the shapes of Gemini's answers. */
import type { LLM, LLMDelta, LLMError, LLMResponse } from 'turnloop';
import { google, type GoogleOptions } from 'turnloop/providers/google';
import { CHUNKINGS } from '../support/stream-cases.ts';
import { errorOf, events, type FakeAnswer, fakeServer, request, type SentRequest } from './fake-server.ts';

/** A part of a content, as tests look into it. */
export type WirePart = Readonly<Record<string, unknown>>;

/** A body, as far as tests look into it. */
export interface GeminiBody {
  readonly contents: readonly { readonly role: string; readonly parts: readonly WirePart[] }[];
  readonly tools?: readonly Readonly<Record<string, unknown>>[];
  readonly toolConfig?: Readonly<Record<string, unknown>>;
  readonly generationConfig?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** A response with these parts, and a reason for its end if there is one. */
export function chunk(parts: readonly unknown[], finishReason?: string, more: object = {}): object {
  const content = parts.length === 0 ? {} : { content: { role: 'model', parts } };
  return { candidates: [{ ...content, index: 0, ...(finishReason !== undefined && { finishReason }) }], ...more };
}

/** Responses as the body of a stream. */
export function stream(...chunks: readonly unknown[]): string {
  return events(chunks, '');
}

/** An answer that is just fine. */
export const OK: FakeAnswer = { body: stream(chunk([{ text: 'ok' }], 'STOP')) };

/** The adapter on a fake server. */
export function geminiOn(server: { readonly fetch: typeof globalThis.fetch }, options: Partial<GoogleOptions> = {}): LLM {
  return google({ model: 'gemini-2.5-flash', apiKey: 'key-test', fetch: server.fetch, ...options });
}

/** What a request said. */
export function bodyOf(sent: SentRequest | undefined): GeminiBody {
  return sent?.body as unknown as GeminiBody;
}

export interface ReadReply {
  readonly response: LLMResponse;
  readonly deltas: readonly LLMDelta[];
}

/** Reads a body in each chunking; the readings must not differ. */
export async function readGemini(body: string | Uint8Array, options: Partial<GoogleOptions> = {}): Promise<ReadReply> {
  const readings: ReadReply[] = [];
  for (const chunking of CHUNKINGS) {
    const deltas: LLMDelta[] = [];
    const { timing: _timing, ...response } = await geminiOn(fakeServer({ body, chunking }), options).chat(request(undefined, { onDelta: (each) => deltas.push(each) }));
    readings.push({ response, deltas });
  }
  const [first] = readings;
  for (const reading of readings) {
    if (JSON.stringify(reading) !== JSON.stringify(first)) throw new Error(`chunkings differ: ${JSON.stringify(readings)}`);
  }
  return first!;
}

/** The error that a body is read as, in each chunking. */
export async function errorOfGemini(body: string, more: FakeAnswer = {}): Promise<LLMError> {
  let last: LLMError | undefined;
  for (const chunking of CHUNKINGS) {
    const error = await errorOf(geminiOn(fakeServer({ body, chunking, ...more })).chat(request()));
    if (last !== undefined && JSON.stringify(error) !== JSON.stringify(last)) throw new Error(`chunkings differ: ${error.message}`);
    last = error;
  }
  return last!;
}
