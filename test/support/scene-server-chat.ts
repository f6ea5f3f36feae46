/** Scenes in Chat Completions. */
import type { LLMErrorKind, StepStopReason, Usage } from 'turnloop';
import type { LLMSceneCall, LLMSceneFailure, LLMScenePart, LLMSceneThinking, LLMSentCall, LLMSentResult } from 'turnloop/testing/conformance';
import { checkChatRequest } from './chat-rules.ts';
import { retryAfter, sse, type SceneProtocol, type SpokenStep } from './scene-server.ts';

/** How an OpenAI-like server, strict and with signed thinking, plays scenes. */
export const chatProtocol: SceneProtocol = {
  headers: { 'content-type': 'text/event-stream' },
  createWriter: () => write,
  refuse(failure) {
    return { status: ERRORS[failure.kind]?.status ?? 400, headers: retryAfter(failure), body: JSON.stringify(toError(failure)) };
  },
  read,
  replied: ({ stopReason }) => ({ responseId: ID, modelId: MODEL, rawStopReason: FINISH_REASONS[stopReason] }),
  check: checkChatRequest,
};

const ID = 'chatcmpl-1';
const MODEL = 'test-model-2025';

function write(step: SpokenStep): string {
  switch (step.type) {
    case 'start':
      return chunk({ role: 'assistant', content: '' });
    case 'part.begin':
      return step.part.type === 'tool_call' ? beginCall(step.part) : '';
    case 'part.delta':
      return fragment(step.part, step.text);
    case 'part.end':
      return step.part.type === 'thinking' ? sign(step.part) : '';
    case 'finish':
      return chunk({}, FINISH_REASONS[step.stopReason]) + sse({ id: ID, choices: [], usage: toUsage(step.usage) }) + sse('[DONE]');
    case 'fail':
      return sse(toError(step.failure));
  }
}

function chunk(delta: object, finishReason: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finishReason }];
  return sse({ id: ID, object: 'chat.completion.chunk', model: MODEL, choices });
}

function fragment(part: LLMScenePart, text: string): string {
  if (part.type === 'text') return chunk({ content: text });
  if (part.type === 'tool_call') return chunk({ tool_calls: [{ index: part.callIndex, function: { arguments: text } }] });
  return chunk(part.signature === undefined ? { reasoning_content: text } : { reasoning: text, reasoning_details: [detail(part, { text })] });
}

function beginCall({ callIndex, providerId, name }: LLMSceneCall): string {
  return chunk({ tool_calls: [{ index: callIndex, id: providerId, type: 'function', function: { name, arguments: '' } }] });
}

function sign(part: LLMSceneThinking): string {
  return part.signature === undefined ? '' : chunk({ reasoning_details: [detail(part, { signature: part.signature })] });
}

function detail({ index }: LLMScenePart, fields: object): object {
  return { type: 'reasoning.text', index, ...fields };
}

const FINISH_REASONS: Readonly<Partial<Record<StepStopReason, string>>> = {
  end_turn: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  filtered: 'content_filter',
};

function toUsage({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, thinkingTokens }: Usage): object {
  const prompt = inputTokens + cacheReadTokens + cacheWriteTokens;
  return {
    prompt_tokens: prompt,
    completion_tokens: outputTokens,
    total_tokens: prompt + outputTokens,
    prompt_tokens_details: { cached_tokens: cacheReadTokens, cache_write_tokens: cacheWriteTokens },
    completion_tokens_details: { reasoning_tokens: thinkingTokens },
  };
}

interface ChatError {
  readonly status: number;
  readonly type: string;
  readonly code?: string;
  /** What only the wording tells. */
  readonly wording?: string;
}

const INVALID: ChatError = { status: 400, type: 'invalid_request_error' };

const ERRORS: Readonly<Partial<Record<LLMErrorKind, ChatError>>> = {
  rate_limit: { status: 429, type: 'requests', code: 'rate_limit_exceeded' },
  overloaded: { status: 503, type: 'overloaded_error' },
  server: { status: 500, type: 'server_error' },
  auth: { status: 401, type: 'invalid_request_error', code: 'invalid_api_key' },
  permission: { status: 403, type: 'invalid_request_error' },
  not_found: { status: 404, type: 'invalid_request_error', code: 'model_not_found' },
  quota: { status: 429, type: 'insufficient_quota', code: 'insufficient_quota' },
  invalid_request: INVALID,
  invalid_history: { ...INVALID, wording: "An assistant message with 'tool_calls' must be followed by tool messages." },
  context_overflow: { ...INVALID, code: 'context_length_exceeded' },
  request_too_large: { status: 413, type: 'invalid_request_error' },
  media_rejected: { ...INVALID, code: 'invalid_image_format' },
  content_filter: { ...INVALID, code: 'content_filter' },
};

function toError({ kind, message }: LLMSceneFailure): object {
  const { type, code = null, wording } = ERRORS[kind] ?? INVALID;
  return { error: { message: wording === undefined ? message : `${message} ${wording}`, type, param: null, code } };
}

interface ChatMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string; readonly arguments: string } }[];
  readonly tool_call_id?: string;
}

function read(body: unknown): { readonly calls: readonly LLMSentCall[]; readonly results: readonly LLMSentResult[] } {
  const { messages } = body as { readonly messages: readonly ChatMessage[] };
  const calls = messages.flatMap((message) => message.tool_calls ?? []);
  return {
    calls: calls.map(({ id, function: { name, arguments: inputText } }) => ({ id, name, inputText })),
    results: messages.flatMap(({ role, content, tool_call_id: id = '' }) => (role === 'tool' ? [{ id, text: String(content) }] : [])),
  };
}
