/** The Anthropic adapter on a fake server, and the events that such a server sends. */
import {
  assistantMessage,
  type AssistantPart,
  type JsonSchema,
  type JsonValue,
  type LLM,
  type LLMDelta,
  type LLMError,
  type LLMRequest,
  type LLMResponse,
  type Message,
  type ToolCallPart,
  type ToolDefinition,
  toolMessage,
} from 'turnloop';
import { anthropic, type AnthropicOptions } from 'turnloop/providers/anthropic';
import { CHUNKINGS } from '../support/stream-cases.ts';
import { errorOf, type FakeAnswer, type FakeServer, fakeServer, request, type SentRequest } from './fake-server.ts';

/** Where replies of the adapter under test come from. */
export const MODEL = 'claude-test-9';
export const SOURCE = { provider: 'anthropic', modelId: MODEL };

/** A content block of a request. */
export type WireBlock = Readonly<Record<string, JsonValue>>;

interface WireMessage {
  readonly role: string;
  readonly content: readonly WireBlock[];
}

/** The adapter on a fake server. */
export function messagesOn(server: { readonly fetch: typeof globalThis.fetch }, options: Partial<AnthropicOptions> = {}): LLM {
  return anthropic({ model: MODEL, apiKey: 'sk-ant-test', baseUrl: 'https://api.example.com/v1', fetch: server.fetch, ...options });
}

/** The messages of a request. */
export function messagesOf({ body }: SentRequest): readonly WireMessage[] {
  return body.messages as unknown as readonly WireMessage[];
}

/** Events as a body, each with its name. */
export function named(list: readonly unknown[]): string {
  return list.map((event) => `event: ${String((event as { type?: unknown } | null)?.type)}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}

export function messageStart(usage: unknown = { input_tokens: 5, output_tokens: 1 }): unknown {
  return { type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant', model: MODEL, content: [], stop_reason: null, usage } };
}

/** The start of a block, its deltas and its stop. */
export function block(index: number, start: object, ...deltas: readonly object[]): readonly unknown[] {
  return [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

export function textBlock(index: number, ...texts: readonly string[]): readonly unknown[] {
  return block(index, { type: 'text', text: '' }, ...texts.map((text) => ({ type: 'text_delta', text })));
}

export function thinkingBlock(index: number, text: string, ...signatures: readonly string[]): readonly unknown[] {
  const thinking = text === '' ? [] : [{ type: 'thinking_delta', thinking: text }];
  return block(index, { type: 'thinking', thinking: '', signature: '' }, ...thinking, ...signatures.map((signature) => ({ type: 'signature_delta', signature })));
}

export function callBlock(index: number, id: string, ...pieces: readonly string[]): readonly unknown[] {
  const deltas = pieces.map((piece) => ({ type: 'input_json_delta', partial_json: piece }));
  return block(index, { type: 'tool_use', id, name: 'f', input: {} }, ...deltas);
}

export function messageEnd(reason: string | null, usage: unknown = { output_tokens: 3 }): readonly unknown[] {
  return [{ type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage }, { type: 'message_stop' }];
}

/** A whole reply with these blocks. */
export function reply(blocks: readonly (readonly unknown[])[], reason = 'end_turn'): string {
  return named([messageStart(), ...blocks.flat(), ...messageEnd(reason)]);
}

export const OK: FakeAnswer = { body: reply([textBlock(0, 'ok')]) };

export interface Reading {
  readonly response: LLMResponse;
  readonly deltas: readonly LLMDelta[];
}

/** Reads a body in each chunking; the readings must not differ. */
export async function readReply(body: string | Uint8Array, options: Partial<AnthropicOptions> = {}): Promise<Reading> {
  const readings: Reading[] = [];
  for (const chunking of CHUNKINGS) {
    const deltas: LLMDelta[] = [];
    const llm = messagesOn(fakeServer({ body, chunking }), options);
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
    const error = await errorOf(messagesOn(fakeServer({ body, chunking, ...more })).chat(request()));
    if (last !== undefined && JSON.stringify(error) !== JSON.stringify(last)) throw new Error(`chunkings differ: ${error.message}`);
    last = error;
  }
  return last!;
}

/** Sends a history. */
export async function send(messages: readonly Message[], more: Partial<LLMRequest> = {}, options: Partial<AnthropicOptions> = {}): Promise<SentRequest> {
  const fake = fakeServer(OK);
  await messagesOn(fake, options).chat(request(messages, more));
  return fake.sent[0]!;
}

/** A reply as the loop records it, after a save and a load: its calls have ids of ours. */
function stored({ content }: LLMResponse): readonly AssistantPart[] {
  const parts = content.map((part, at): AssistantPart => (part.type === 'tool_call' ? { ...part, id: `own_${at}` } : part));
  return JSON.parse(JSON.stringify(parts)) as AssistantPart[];
}

/** What the adapter sends next for a body that it read first. */
export async function sentBack(body: string, after: (parts: readonly AssistantPart[]) => readonly Message[], options: Partial<AnthropicOptions> = {}): Promise<FakeServer> {
  const fake = fakeServer({ body }, OK);
  const llm = messagesOn(fake, options);
  await llm.chat(request(after(stored(await llm.chat(request())))));
  return fake;
}

export function call(id: string, more: Partial<ToolCallPart> = {}): ToolCallPart {
  return { type: 'tool_call', id, name: 'f', inputText: '{}', ...more };
}

export function result(id: string, text = `result of ${id}`): Message {
  return toolMessage(text, { toolCallId: id, name: 'f' });
}

/** A reply of the adapter under test. */
export function own(parts: readonly AssistantPart[]): Message {
  return assistantMessage(parts, { source: SOURCE });
}

export function tool(name: string, inputSchema: JsonSchema = { type: 'object', properties: {} }): ToolDefinition {
  return { name, description: `Does ${name}.`, inputSchema };
}

/** Roles and blocks of a request, without cache marks. */
export function wire(sent: SentRequest): readonly (readonly [string, readonly WireBlock[]])[] {
  return messagesOf(sent).map(({ role, content }) => [role, content.map(({ cache_control: _mark, ...each }) => each)] as const);
}
