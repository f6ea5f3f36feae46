/**
 * Recorded answers, read from a folder and replayed through an adapter over HTTP.
 *
 * The right reading is `expected.json`; test/fixtures/streams/README.md says what its members mean.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { isLLMError, type LLM, type LLMDelta, type LLMResponse, totalTokens, type Usage, userMessage } from 'turnloop';
import { anthropic } from 'turnloop/providers/anthropic';
import { google } from 'turnloop/providers/google';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { openAIResponses } from 'turnloop/providers/openai-responses';
import { answer, type ReplayServer } from './replay-server.ts';

export interface StreamCase {
  /** `PROTOCOL/CASE` */
  readonly name: string;
  readonly protocol: string;
  readonly isStreamed: boolean;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly model: string;
  readonly bytes: Uint8Array;
  readonly expected: Expected;
}

interface ExpectedCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly argumentsParsed?: unknown;
}

interface ExpectedError {
  readonly status?: number;
  readonly message?: string | null;
  readonly kind?: string | null;
  readonly retryable?: boolean | null;
  readonly retryAfterMs?: number | null;
  readonly retryAfterHintMs?: number;
  readonly acceptRetryAfterMs?: readonly (number | null)[];
  readonly acceptKinds?: readonly string[];
}

interface ExpectedBlock {
  readonly type: string;
}

interface Expected {
  readonly outcome: 'complete' | 'error' | 'cut' | 'lenient';
  readonly text?: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly ExpectedCall[];
  readonly finishReason?: string | null;
  readonly usage?: Readonly<Record<string, unknown>> | null;
  readonly refusal?: string;
  /** Responses: the raw thinking, where `reasoning` is its summary. */
  readonly rawReasoning?: string;
  /** Anthropic: the signatures of its thinking. */
  readonly signatures?: readonly string[];
  /** Anthropic: its blocks. */
  readonly blocks?: readonly ExpectedBlock[];
  /** Responses: its output. */
  readonly items?: readonly ExpectedBlock[];
  readonly legacyFunctionCall?: { readonly name: string; readonly arguments: string };
  readonly error?: ExpectedError;
  readonly streamError?: ExpectedError;
  readonly alternative?: Partial<Expected>;
}

/** How the bytes are cut into pieces. */
export type Chunking = 'whole' | 'bytes' | 'cuts';
export const CHUNKINGS: readonly Chunking[] = ['whole', 'bytes', 'cuts'];

/** What an adapter made of an answer. */
type Reading = { readonly deltas: readonly LLMDelta[] } & (
  | { readonly response: LLMResponse; readonly error?: undefined }
  | { readonly error: unknown; readonly response?: undefined }
);

/** Protocols that there is an adapter for. */
const ADAPTERS: ReadonlyMap<string, (baseUrl: string, streamCase: StreamCase) => LLM> = new Map([
  [
    'chat-completions',
    (baseUrl: string, { model, isStreamed }: StreamCase) => openAIChat({ model, baseUrl, apiKey: 'sk-stream-case-key', stream: isStreamed }),
  ],
  [
    'responses',
    (baseUrl: string, { model, isStreamed }: StreamCase) => openAIResponses({ model, baseUrl, apiKey: 'sk-stream-case-key', stream: isStreamed }),
  ],
  ['anthropic', (baseUrl: string, { model, isStreamed }: StreamCase) => anthropic({ model, baseUrl, apiKey: 'sk-stream-case-key', stream: isStreamed })],
  ['google', (baseUrl: string, { model, isStreamed }: StreamCase) => google({ model, baseUrl, apiKey: 'sk-stream-case-key', stream: isStreamed })],
]);

/** Blocks of Anthropic, items of Responses and parts of Gemini that are parts of their own with us; any other is a provider part. */
const BLOCK_TYPES: ReadonlyMap<string, string> = new Map([
  ['text', 'text'],
  ['message', 'text'],
  ['thinking', 'thinking'],
  ['redacted_thinking', 'thinking'],
  ['reasoning', 'thinking'],
  ['tool_use', 'tool_call'],
  ['function_call', 'tool_call'],
  ['custom_tool_call', 'tool_call'],
  ['inlineData', 'media'],
]);

/** Kinds as the cases name them, in our words. */
const KINDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['model_not_found', ['not_found']],
  ['server_error', ['server', 'overloaded']],
  ['invalid_response', ['malformed_response']],
  ['protocol', ['malformed_response', 'network']],
]);

/** Every case under a folder, in alphabetical order. */
export function loadStreamCases(directory: string): readonly StreamCase[] {
  const suffix = '.meta.json';
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(suffix))
    .map((file) => loadCase(directory, file.slice(0, -suffix.length).replaceAll(path.sep, '/')))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function loadCase(directory: string, name: string): StreamCase {
  const base = path.join(directory, name);
  const meta = readJson(`${base}.meta.json`);
  const body = existsSync(`${base}.sse`) ? `${base}.sse` : `${base}.json`;
  return {
    name,
    protocol: typeof meta['protocol'] === 'string' ? meta['protocol'] : path.dirname(name),
    isStreamed: body.endsWith('.sse'),
    status: Number(meta['status'] ?? 200),
    headers: (meta['headers'] ?? {}) as Record<string, string>,
    model: typeof meta['requestModel'] === 'string' ? meta['requestModel'] : 'model',
    bytes: readFileSync(body),
    expected: readJson(`${base}.expected.json`) as unknown as Expected,
  };
}

function readJson(file: string): Record<string, unknown> {
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
}

/** Whether there is an adapter that can read the case. */
export function isReadable({ protocol }: StreamCase): boolean {
  return ADAPTERS.has(protocol);
}

/** Replays a case. @returns What differs from the right reading; empty if nothing does. */
export async function checkStreamCase(streamCase: StreamCase, chunking: Chunking, server: ReplayServer): Promise<readonly string[]> {
  const llm = ADAPTERS.get(streamCase.protocol)?.(server.baseUrl, streamCase);
  if (llm === undefined) return [`no adapter for ${streamCase.protocol}`];
  server.respond(answer(cut(streamCase.bytes, chunking), streamCase.status, { ...streamCase.headers }));
  const reading = await read(llm);
  const differences = compare(reading, streamCase.expected);
  const { alternative } = streamCase.expected;
  if (differences.length === 0 || alternative === undefined) return differences;
  return compare(reading, { ...streamCase.expected, ...alternative }).length === 0 ? [] : differences;
}

async function read(llm: LLM): Promise<Reading> {
  const deltas: LLMDelta[] = [];
  try {
    const response = await llm.chat({
      systemPrompt: '',
      messages: [userMessage('Hello')],
      tools: [],
      signal: new AbortController().signal,
      onDelta: (delta) => deltas.push(delta),
    });
    return { deltas, response };
  } catch (error) {
    return { deltas, error };
  }
}

/** Pieces of a body: whole, one byte each, or cut within characters and line ends. */
export function cut(bytes: Uint8Array, chunking: Chunking): readonly Uint8Array[] {
  if (chunking === 'whole') return [bytes];
  const pieces: Uint8Array[] = [];
  let start = 0;
  for (let at = 1; at < bytes.length; at += 1) {
    const [before = 0, after = 0] = [bytes[at - 1], bytes[at]];
    const isInCharacter = (after & 0xc0) === 0x80;
    const isInLineEnd = (before === 13 || before === 10) && (after === 13 || after === 10);
    if (chunking === 'cuts' && !isInCharacter && !isInLineEnd) continue;
    pieces.push(bytes.subarray(start, at));
    start = at;
  }
  pieces.push(bytes.subarray(start));
  return pieces;
}

function compare(reading: Reading, expected: Expected): readonly string[] {
  switch (expected.outcome) {
    case 'complete':
      return compareComplete(reading, expected);
    case 'lenient':
      return reading.error === undefined || !isLLMError(reading.error) ? compareComplete(reading, expected) : comparePartial(reading, expected);
    case 'cut':
      return [...compareKind(reading, ['network'], true), ...comparePartial(reading, expected)];
    case 'error':
      return compareError(reading, expected);
  }
}

function compareComplete({ response, error, deltas }: Reading, expected: Expected): readonly string[] {
  if (response === undefined) return [`failed: ${String(error)}`];
  const { content, rawStopReason, stopReason, usage } = response;
  const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const thinking = content.map((part) => (part.type === 'thinking' ? part.text : '')).join('');
  const calls = content.filter((part) => part.type === 'tool_call');
  const legacy = expected.legacyFunctionCall;
  const expectedCalls = legacy === undefined ? (expected.toolCalls ?? []) : [{ ...legacy, id: '' }];
  return [
    ...differ('text', text, expected.refusal ?? expected.text),
    ...compareThinking(thinking, expected),
    ...differ('calls', calls.map((call) => [call.providerId ?? '', call.name, parsed(call.inputText)]), expectedCalls.map((call) => [call.id, call.name, parsed(call.arguments)])),
    ...differ('finish reason', rawStopReason ?? '', finishReason(expected)),
    ...(stopReason === 'unknown' ? ['stop reason: unknown'] : []),
    ...(expected.refusal !== undefined ? differ('stop reason', stopReason, 'filtered') : []),
    ...compareUsage(usage, expected.usage),
    ...compareBlocks(content, expected),
    ...compareDeltas(deltas, { text, thinking, calls: calls.map((call) => call.inputText) }),
  ];
}

/** Of Responses it is `incomplete: why`, and the why alone is as good. */
function finishReason({ finishReason: reason }: Expected): string {
  return (reason ?? '').replace(/^incomplete[ :]+/, '');
}

/** Servers without a summary show the raw thinking; between two summaries there may be a break. */
function compareThinking(thinking: string, { reasoning, rawReasoning }: Expected): readonly string[] {
  const wanted = reasoning === '' && rawReasoning !== undefined ? rawReasoning : (reasoning ?? '');
  return differ('thinking', thinking.replaceAll(/\s/g, ''), wanted.replaceAll(/\s/g, ''));
}

/** What stood where, and with which signature. */
function compareBlocks(content: LLMResponse['content'], { blocks, items, signatures }: Expected): readonly string[] {
  const wanted = (blocks ?? items)?.map(({ type }) => BLOCK_TYPES.get(type) ?? 'provider');
  if (wanted === undefined) return [];
  const got: readonly string[] = content.map(({ type }) => type);
  const signed = content.map((part) => (part.type === 'thinking' ? part.signature : undefined)).filter((signature) => signature !== undefined);
  // A text with citations comes in pieces.
  return [
    ...differ('blocks', withoutRepeats(got), withoutRepeats(wanted)),
    ...(signatures === undefined ? [] : differ('signatures', signed, signatures.filter((signature) => signature !== ''))),
  ];
}

function withoutRepeats(types: readonly string[]): readonly string[] {
  return types.filter((type, at) => type !== 'text' || types[at - 1] !== 'text');
}

function compareDeltas(deltas: readonly LLMDelta[], whole: { text: string; thinking: string; calls: readonly string[] }): readonly string[] {
  let [text, thinking] = ['', ''];
  const calls: string[] = [];
  for (const delta of deltas) {
    if (delta.type === 'text') text += delta.text;
    else if (delta.type === 'thinking') thinking += delta.text;
    else calls[delta.callIndex] = (calls[delta.callIndex] ?? '') + delta.inputText;
  }
  return differ('deltas', { text, thinking, calls }, whole);
}

function compareUsage(usage: Usage, expected: Expected['usage']): readonly string[] {
  if (expected === undefined || expected === null) return differ('usage', totalTokens(usage), 0);
  const prompt = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  const wanted = toExpectedUsage(expected);
  return [
    ...differ('prompt tokens', prompt, wanted.prompt),
    ...differ('cached tokens', usage.cacheReadTokens, wanted.cached),
    ...differ('total tokens', totalTokens(usage), wanted.total),
    ...(wanted.thought === 0 ? [] : differ('thinking tokens', usage.thinkingTokens, wanted.thought)),
  ];
}

interface ExpectedUsage {
  readonly prompt: unknown;
  readonly cached: number;
  readonly total: unknown;
  readonly thought: number;
}

type RawUsage = NonNullable<Expected['usage']>;

function toExpectedUsage(raw: RawUsage): ExpectedUsage {
  if ('prompt_tokens' in raw) return chatUsage(raw);
  if ('promptTokenCount' in raw) return geminiUsage(raw);
  return 'input_tokens_details' in raw ? responsesUsage(raw) : messagesUsage(raw);
}

/** What tools of the server found is no part of the prompt here, and input all the same. */
function geminiUsage(raw: RawUsage): ExpectedUsage {
  return {
    prompt: count(raw, 'promptTokenCount') + count(raw, 'toolUsePromptTokenCount'),
    cached: count(raw, 'cachedContentTokenCount'),
    total: raw['totalTokenCount'],
    thought: count(raw, 'thoughtsTokenCount'),
  };
}

function chatUsage(raw: RawUsage): ExpectedUsage {
  return {
    prompt: raw['prompt_tokens'],
    cached: count(raw, 'prompt_tokens_details', 'cached_tokens') || count(raw, 'prompt_cache_hit_tokens') || count(raw, 'cached_tokens'),
    total: raw['total_tokens'],
    thought: count(raw, 'completion_tokens_details', 'reasoning_tokens'),
  };
}

function responsesUsage(raw: RawUsage): ExpectedUsage {
  return {
    prompt: raw['input_tokens'],
    cached: count(raw, 'input_tokens_details', 'cached_tokens'),
    total: raw['total_tokens'],
    thought: count(raw, 'output_tokens_details', 'reasoning_tokens'),
  };
}

/** What was cached is no part of the input here. */
function messagesUsage(raw: RawUsage): ExpectedUsage {
  const cached = count(raw, 'cache_read_input_tokens');
  const prompt = count(raw, 'input_tokens') + cached + count(raw, 'cache_creation_input_tokens');
  return { prompt, cached, total: prompt + count(raw, 'output_tokens'), thought: count(raw, 'output_tokens_details', 'thinking_tokens') };
}

function count(raw: RawUsage, ...path: readonly string[]): number {
  let value: unknown = raw;
  for (const key of path) value = (value as Record<string, unknown> | null | undefined)?.[key];
  return typeof value === 'number' ? value : 0;
}

function compareError(reading: Reading, expected: Expected): readonly string[] {
  const { error: body, streamError } = expected;
  const facts = body ?? streamError ?? {};
  const kinds = [facts.kind, ...(facts.acceptKinds ?? [])].flatMap((kind) => (typeof kind === 'string' ? (KINDS.get(kind) ?? [kind]) : []));
  const differences = [...compareKind(reading, kinds, facts.retryable ?? undefined)];
  if (!isLLMError(reading.error)) return differences;
  const { message, status, retryAfterMs } = reading.error;
  if (typeof facts.message === 'string' && !message.includes(facts.message.slice(0, 400))) differences.push(`message: ${message}`);
  if (body?.status !== undefined && body.status >= 400) differences.push(...differ('status', status, body.status));
  const delays = [facts.retryAfterMs ?? undefined, facts.retryAfterHintMs, ...(facts.acceptRetryAfterMs ?? []).map((delay) => delay ?? undefined)];
  if (!delays.includes(retryAfterMs)) differences.push(`retryAfterMs: ${retryAfterMs}`);
  return [...differences, ...comparePartial(reading, expected)];
}

function compareKind({ error }: Reading, kinds: readonly string[], retryable: boolean | undefined): string[] {
  if (!isLLMError(error)) return [error === undefined ? 'read as complete' : `not an LLMError: ${JSON.stringify(error)}`];
  const differences = kinds.length === 0 || kinds.includes(error.kind) ? [] : [`kind: ${error.kind} (${error.message})`];
  if (retryable !== undefined && error.retryable !== retryable) differences.push(`retryable: ${error.retryable}`);
  return differences;
}

/** Text that came before a failure is with the error and was streamed, once. */
function comparePartial({ error, deltas }: Reading, expected: Expected): readonly string[] {
  const text = expected.text ?? '';
  const streamed = deltas.map((delta) => (delta.type === 'text' ? delta.text : '')).join('');
  const thought = deltas.map((delta) => (delta.type === 'thinking' ? delta.text : '')).join('');
  const kept = ((isLLMError(error) ? error.partial : undefined) ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');
  return [...differ('streamed text', streamed, text), ...differ('kept text', kept, text), ...compareThinking(thought, expected)];
}

function differ(what: string, actual: unknown, expected: unknown): string[] {
  const [ours, theirs] = [JSON.stringify(actual), JSON.stringify(expected)];
  return ours === theirs ? [] : [`${what}: ${ours?.slice(0, 300)} instead of ${theirs?.slice(0, 300)}`];
}

function parsed(text: string): unknown {
  if (text === '') return {};
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
