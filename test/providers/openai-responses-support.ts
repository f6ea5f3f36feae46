/** The Responses adapter on a fake server, and the events that such a server sends. */
import type { AssistantMessage, AssistantPart, LLM, LLMDelta, LLMError, LLMRequest, LLMResponse, Message } from 'turnloop';
import { assistantMessage } from 'turnloop';
import { openAIResponses, type OpenAIResponsesOptions } from 'turnloop/providers/openai-responses';
import { CHUNKINGS } from '../support/stream-cases.ts';
import { errorOf, type FakeAnswer, type FakeServer, fakeServer, request, type SentRequest } from './fake-server.ts';

export const MODEL = 'gpt-5-test';
/** Where replies of the adapter under test come from. */
export const SOURCE = { provider: 'openai', modelId: MODEL };

/** An item of a request or a response. */
export type Item = Readonly<Record<string, unknown>>;

/** The adapter on a fake server. */
export function responsesOn(server: { readonly fetch: typeof globalThis.fetch }, options: Partial<OpenAIResponsesOptions> = {}): LLM {
  return openAIResponses({ model: MODEL, apiKey: 'sk-test', baseUrl: 'https://api.example.com/v1', fetch: server.fetch, ...options });
}

/** The input of a request. */
export function inputOf({ body }: SentRequest): readonly Item[] {
  return body['input'] as readonly Item[];
}

/** Events as a body, each with its name. */
export function named(list: readonly Item[]): string {
  return list.map((event) => `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

export function reasoning(number: number, more: Item = {}): Item {
  return { type: 'reasoning', id: `rs_${number}`, summary: [], encrypted_content: `E${number}`, ...more };
}

export function said(number: number, text: string, more: Item = {}): Item {
  return { type: 'message', id: `msg_${number}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text, annotations: [] }], ...more };
}

export function called(number: number, name = 'f', input = '{"a":1}', more: Item = {}): Item {
  return { type: 'function_call', id: `fc_${number}`, call_id: `call_${number}`, name, arguments: input, status: 'completed', ...more };
}

export interface ResponseFacts {
  readonly [field: string]: unknown;
}

const USAGE = { input_tokens: 5, output_tokens: 3, total_tokens: 8 };

/** A response as it is when it is complete. */
export function responseOf(output: readonly Item[], facts: ResponseFacts = {}): Item {
  return { id: 'resp_1', object: 'response', status: 'completed', model: MODEL, output, usage: USAGE, ...facts };
}

/** The events of items, each whole at its end, without fragments. */
export function itemEvents(output: readonly Item[]): readonly Item[] {
  return output.flatMap((item, at) => [
    { type: 'response.output_item.added', output_index: at, item: { ...item, ...(item['arguments'] !== undefined && { arguments: '' }), content: [], summary: [] } },
    { type: 'response.output_item.done', output_index: at, item },
  ]);
}

export function created(facts: ResponseFacts = {}): Item {
  return { type: 'response.created', response: responseOf([], { status: 'in_progress', usage: null, ...facts }) };
}

export function completed(output: readonly Item[] = [], facts: ResponseFacts = {}): Item {
  return { type: 'response.completed', response: responseOf(output, facts) };
}

/** A whole reply of these items. */
export function reply(output: readonly Item[], facts: ResponseFacts = {}): string {
  return named([created(facts), ...itemEvents(output), completed(output, facts)]);
}

/** A stream of these events, between the two that every stream has. */
export function streamOf(...list: readonly Item[]): string {
  return named([created(), ...list, completed()]);
}

export const OK: FakeAnswer = { body: reply([said(9, 'ok')], { id: 'resp_9' }) };

export interface Reading {
  readonly response: LLMResponse;
  readonly deltas: readonly LLMDelta[];
}

/** Reads a body in each chunking; the readings must not differ. */
export async function readReply(body: string, options: Partial<OpenAIResponsesOptions> = {}): Promise<Reading> {
  const readings: Reading[] = [];
  for (const chunking of CHUNKINGS) {
    const deltas: LLMDelta[] = [];
    const llm = responsesOn(fakeServer({ body, chunking }), options);
    const { timing: _timing, ...response } = await llm.chat(request(undefined, { onDelta: (delta) => deltas.push(delta) }));
    readings.push({ response, deltas });
  }
  const [first] = readings;
  for (const reading of readings) if (JSON.stringify(reading) !== JSON.stringify(first)) throw new Error(`chunkings differ: ${JSON.stringify(readings)}`);
  return first!;
}

/** The error that a body is read as, in each chunking. */
export async function errorOfReply(body: string, more: FakeAnswer = {}): Promise<LLMError> {
  let last: LLMError | undefined;
  for (const chunking of CHUNKINGS) {
    const error = await errorOf(responsesOn(fakeServer({ body, chunking, ...more })).chat(request()));
    if (last !== undefined && JSON.stringify(error) !== JSON.stringify(last)) throw new Error(`chunkings differ: ${error.message}`);
    last = error;
  }
  return last!;
}

/** Sends a history. */
export async function send(messages: readonly Message[], more: Partial<LLMRequest> = {}, options: Partial<OpenAIResponsesOptions> = {}): Promise<SentRequest> {
  const fake = fakeServer(OK);
  await responsesOn(fake, options).chat(request(messages, more));
  return fake.sent[0]!;
}

/** A reply as the loop records it, after a save and a load: its calls have ids of ours. */
export function stored({ content, modelId, responseId }: LLMResponse, provider = 'openai'): AssistantMessage {
  const parts = content.map((part, at): AssistantPart => (part.type === 'tool_call' ? { ...part, id: `own_${responseId}_${at}` } : part));
  return JSON.parse(JSON.stringify(assistantMessage(parts, { source: { provider, modelId: modelId ?? MODEL, responseId } }))) as AssistantMessage;
}

/** What the adapter sends next for a body that it read first. */
export async function sentBack(body: string, after: (message: AssistantMessage) => readonly Message[], options: Partial<OpenAIResponsesOptions> = {}): Promise<FakeServer> {
  const fake = fakeServer({ body }, OK);
  const llm = responsesOn(fake, options);
  await llm.chat(request(after(stored(await llm.chat(request())))));
  return fake;
}
