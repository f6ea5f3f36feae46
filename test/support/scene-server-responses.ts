/** Scenes in Responses. */
import type { LLMErrorKind, Usage } from 'turnloop';
import type { LLMSceneFailure, LLMScenePart, LLMSentCall, LLMSentResult } from 'turnloop/testing/conformance';
import { checkResponsesRequest } from './responses-rules.ts';
import type { Wire } from './rule-check.ts';
import { retryAfter, sse, type SceneProtocol, type SpokenStep } from './scene-server.ts';

/** How a strict OpenAI server plays scenes; what signs thinking is its encrypted content. */
export const responsesProtocol: SceneProtocol = {
  headers: { 'content-type': 'text/event-stream; charset=utf-8' },
  createWriter,
  refuse(failure) {
    return { status: ERRORS[failure.kind]?.status ?? 400, headers: retryAfter(failure), body: JSON.stringify({ error: toError(failure) }) };
  },
  read,
  replied: ({ stopReason }) => ({ responseId: ID, modelId: MODEL, rawStopReason: INCOMPLETE[stopReason] ?? 'completed' }),
  check: (body) => checkResponsesRequest(body),
};

const ID = 'resp_1';
const MODEL = 'test-model-2025';

function createWriter(): (step: SpokenStep) => string {
  const output: Wire[] = [];

  function response(status: string, more: Wire = {}): Wire {
    return { id: ID, object: 'response', status, model: MODEL, error: null, incomplete_details: null, output, ...more };
  }

  return (step) => {
    switch (step.type) {
      case 'start':
        return event('response.created', { response: { ...response('in_progress'), output: [] } });
      case 'part.begin':
        return event('response.output_item.added', { output_index: step.part.index, item: toItem(step.part, false) });
      case 'part.delta':
        return event(`response.${DELTAS[step.part.type]}.delta`, { output_index: step.part.index, item_id: itemId(step.part), delta: step.text });
      case 'part.end': {
        const item = toItem(step.part, true);
        output.push(item);
        return event('response.output_item.done', { output_index: step.part.index, item });
      }
      case 'finish': {
        const reason = INCOMPLETE[step.stopReason];
        const usage = toUsage(step.usage);
        if (reason === undefined) return event('response.completed', { response: response('completed', { usage }) });
        return event('response.incomplete', { response: response('incomplete', { usage, incomplete_details: { reason } }) });
      }
      case 'fail':
        return event('error', toError(step.failure)) + event('response.failed', { response: response('failed', { error: toError(step.failure) }) });
    }
  };
}

function event(type: string, data: Wire): string {
  return sse({ type, ...data }, type);
}

const DELTAS = { text: 'output_text', thinking: 'reasoning_summary_text', tool_call: 'function_call_arguments' } as const;
const INCOMPLETE: Readonly<Record<string, string | undefined>> = { max_tokens: 'max_output_tokens', filtered: 'content_filter' };

function itemId({ type, index }: LLMScenePart): string {
  return `${{ text: 'msg', thinking: 'rs', tool_call: 'fc' }[type]}_${index}`;
}

function toItem(part: LLMScenePart, isDone: boolean): Wire {
  const id = itemId(part);
  const status = isDone ? 'completed' : 'in_progress';
  switch (part.type) {
    case 'text':
      return { type: 'message', id, status, role: 'assistant', content: isDone ? [{ type: 'output_text', text: part.text, annotations: [] }] : [] };
    case 'thinking':
      return {
        type: 'reasoning',
        id,
        summary: isDone && part.text !== '' ? [{ type: 'summary_text', text: part.text }] : [],
        ...(isDone && part.signature !== undefined && { encrypted_content: part.signature }),
      };
    case 'tool_call':
      return { type: 'function_call', id, status, call_id: part.providerId, name: part.name, arguments: isDone ? part.inputText : '' };
  }
}

function toUsage({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, thinkingTokens }: Usage): Wire {
  const input = inputTokens + cacheReadTokens + cacheWriteTokens;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheReadTokens, cache_write_tokens: cacheWriteTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: thinkingTokens },
    total_tokens: input + outputTokens,
  };
}

interface ResponsesError {
  readonly status: number;
  readonly type: string;
  readonly code?: string;
  /** What only the wording tells. */
  readonly wording?: string;
}

const INVALID: ResponsesError = { status: 400, type: 'invalid_request_error' };

const ERRORS: Readonly<Partial<Record<LLMErrorKind, ResponsesError>>> = {
  rate_limit: { status: 429, type: 'tokens', code: 'rate_limit_exceeded' },
  overloaded: { status: 503, type: 'overloaded_error' },
  server: { status: 500, type: 'server_error', code: 'server_error' },
  auth: { status: 401, type: 'invalid_request_error', code: 'invalid_api_key' },
  permission: { status: 403, type: 'permission_error' },
  not_found: { status: 404, type: 'invalid_request_error', code: 'model_not_found' },
  quota: { status: 429, type: 'insufficient_quota', code: 'insufficient_quota' },
  invalid_request: INVALID,
  invalid_history: { ...INVALID, wording: 'No tool output found for function call call_1.' },
  context_overflow: { ...INVALID, code: 'context_length_exceeded' },
  request_too_large: { status: 413, type: 'invalid_request_error', code: 'image_too_large' },
  media_rejected: { ...INVALID, code: 'invalid_image_format' },
  content_filter: { ...INVALID, code: 'content_policy_violation' },
};

function toError({ kind, message }: LLMSceneFailure): Wire {
  const { type, code = null, wording } = ERRORS[kind] ?? INVALID;
  return { message: wording === undefined ? message : `${message} ${wording}`, type, param: null, code };
}

function read(body: unknown): { readonly calls: readonly LLMSentCall[]; readonly results: readonly LLMSentResult[] } {
  const { input } = body as { readonly input: readonly Wire[] };
  const ofType = (type: string): readonly Wire[] => input.filter((item) => item['type'] === type);
  return {
    calls: ofType('function_call').map((item) => ({ id: String(item['call_id']), name: String(item['name']), inputText: String(item['arguments']) })),
    results: ofType('function_call_output').map((item) => ({ id: String(item['call_id']), text: String(item['output']) })),
  };
}
