/** Scenes in Anthropic Messages. */
import type { LLMErrorKind, StepStopReason, Usage } from 'turnloop';
import type { LLMSceneFailure, LLMScenePart, LLMSceneRequest, LLMSentCall, LLMSentResult } from 'turnloop/testing/conformance';
import { checkMessagesRequest } from './anthropic-rules.ts';
import { isObjectText } from './rule-check.ts';
import { retryAfter, sse, type SceneProtocol, type SpokenStep } from './scene-server.ts';

/** How a strict Messages server plays scenes. */
export const anthropicProtocol: SceneProtocol = {
  headers: { 'content-type': 'text/event-stream' },
  createWriter: () => write,
  refuse(failure) {
    return { status: ERRORS[failure.kind]?.status ?? 400, headers: retryAfter(failure), body: JSON.stringify(toError(failure)) };
  },
  read,
  replied: ({ stopReason }) => ({ responseId: 'msg_1', modelId: MODEL, rawStopReason: STOP_REASONS[stopReason] }),
  check: checkMessagesRequest,
};

const MODEL = 'test-model-2025';

function write(step: SpokenStep): string {
  switch (step.type) {
    case 'start':
      return event({ type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant', model: MODEL, content: [], stop_reason: null, usage: null } });
    case 'part.begin':
      return event({ type: 'content_block_start', index: step.part.index, content_block: beginning(step.part) });
    case 'part.delta':
      return event({ type: 'content_block_delta', index: step.part.index, delta: fragment(step.part, step.text) });
    case 'part.end':
      return sign(step.part) + event({ type: 'content_block_stop', index: step.part.index });
    case 'finish':
      return event({ type: 'message_delta', delta: { stop_reason: STOP_REASONS[step.stopReason] }, usage: toUsage(step.usage) }) + event({ type: 'message_stop' });
    case 'fail':
      return event(toError(step.failure));
  }
}

function event(data: Readonly<Record<string, unknown>> & { readonly type: string }): string {
  return sse(data, data.type);
}

function beginning(part: LLMScenePart): object {
  if (part.type === 'text') return { type: 'text', text: '' };
  if (part.type === 'thinking') return { type: 'thinking', thinking: '', signature: '' };
  return { type: 'tool_use', id: part.providerId, name: part.name, input: {} };
}

function fragment({ type }: LLMScenePart, text: string): object {
  if (type === 'text') return { type: 'text_delta', text };
  return type === 'thinking' ? { type: 'thinking_delta', thinking: text } : { type: 'input_json_delta', partial_json: text };
}

function sign(part: LLMScenePart): string {
  if (part.type !== 'thinking' || part.signature === undefined) return '';
  return event({ type: 'content_block_delta', index: part.index, delta: { type: 'signature_delta', signature: part.signature } });
}

const STOP_REASONS: Readonly<Partial<Record<StepStopReason, string>>> = {
  end_turn: 'end_turn',
  tool_use: 'tool_use',
  max_tokens: 'max_tokens',
  stop_sequence: 'stop_sequence',
  filtered: 'refusal',
  paused: 'pause_turn',
};

function toUsage({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, thinkingTokens }: Usage): object {
  return {
    input_tokens: inputTokens,
    cache_read_input_tokens: cacheReadTokens,
    cache_creation_input_tokens: cacheWriteTokens,
    output_tokens: outputTokens,
    output_tokens_details: { thinking_tokens: thinkingTokens },
  };
}

interface MessagesError {
  readonly status: number;
  readonly type: string;
  /** What only the wording tells. */
  readonly wording?: string;
}

const INVALID: MessagesError = { status: 400, type: 'invalid_request_error' };

const ERRORS: Readonly<Partial<Record<LLMErrorKind, MessagesError>>> = {
  rate_limit: { status: 429, type: 'rate_limit_error' },
  overloaded: { status: 529, type: 'overloaded_error' },
  server: { status: 500, type: 'api_error' },
  auth: { status: 401, type: 'authentication_error' },
  permission: { status: 403, type: 'permission_error' },
  not_found: { status: 404, type: 'not_found_error' },
  quota: { status: 402, type: 'billing_error' },
  invalid_request: INVALID,
  invalid_history: { ...INVALID, wording: 'messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.' },
  context_overflow: { ...INVALID, wording: 'prompt is too long: 2 tokens > 1 maximum' },
  request_too_large: { status: 413, type: 'request_too_large' },
  media_rejected: { ...INVALID, wording: 'Could not process image' },
};

function toError({ kind, message }: LLMSceneFailure): { readonly type: string; readonly error: object } {
  const { type, wording } = ERRORS[kind] ?? INVALID;
  return { type: 'error', error: { type, message: wording === undefined ? message : `${message} ${wording}` } };
}

interface Block {
  readonly type: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
  readonly tool_use_id?: string;
  readonly content?: readonly { readonly text?: string }[];
}

function read(body: unknown): { readonly calls: readonly LLMSentCall[]; readonly results: readonly LLMSentResult[] } {
  const { messages } = body as { readonly messages: readonly { readonly content: readonly Block[] }[] };
  const blocks = messages.flatMap(({ content }) => content);
  return {
    calls: blocks.flatMap(({ type, id = '', name = '', input }) => (type === 'tool_use' ? [{ id, name, inputText: JSON.stringify(input) }] : [])),
    results: blocks.flatMap(({ type, tool_use_id: id = '', content = [] }) => (type === 'tool_result' ? [{ id, text: content.map(({ text }) => text ?? '').join('') }] : [])),
  };
}

/** A body without the marks of what is to be cached. */
export function withoutCacheMarks(body: string): string {
  return body.replaceAll(/,"cache_control":\{"type":"ephemeral"(?:,"ttl":"\w+")?\}/g, '');
}

/** A request whose calls have their arguments as they stand in the body: there they are a value, and no text. */
export function withRawInputs(request: LLMSceneRequest): LLMSceneRequest {
  return { ...request, calls: request.calls?.map((call) => ({ ...call, inputText: rawInput(request.body, call.id) })) };
}

function rawInput(body: string, id: string): string {
  const name = '"input":';
  const start = body.indexOf(name, body.indexOf(`"type":"tool_use","id":${JSON.stringify(id)}`)) + name.length;
  for (let end = body.indexOf('}', start); end !== -1; end = body.indexOf('}', end + 1)) {
    const text = body.slice(start, end + 1);
    if (isObjectText(text)) return text;
  }
  throw new Error(`the input of call ${id} is no object`);
}
