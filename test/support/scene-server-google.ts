/** Scenes in Gemini's `streamGenerateContent`. Calls come whole, at their end. */
import type { LLMErrorKind, StepStopReason, Usage } from 'turnloop';
import type { LLMSceneFailure, LLMScenePart, LLMSentCall, LLMSentResult } from 'turnloop/testing/conformance';
import { checkGenerateContentRequest } from './gemini-rules.ts';
import { sse, type SceneProtocol, type SpokenStep } from './scene-server.ts';

/** How a strict Gemini server plays scenes. */
export const geminiProtocol: SceneProtocol = {
  headers: { 'content-type': 'text/event-stream' },
  createWriter: () => write,
  refuse(failure) {
    // A prompt that a filter refuses is answered, and the answer says so.
    if (failure.kind === 'content_filter') return { status: 200, body: JSON.stringify({ promptFeedback: { blockReason: 'SAFETY', blockReasonMessage: failure.message } }) };
    return { status: ERRORS[failure.kind]?.code ?? 400, body: JSON.stringify(toError(failure)) };
  },
  read,
  replied: ({ stopReason }) => ({ responseId: ID, modelId: MODEL, rawStopReason: finishReason(stopReason) }),
  check: (body) => checkGenerateContentRequest(body),
};

const ID = 'response-1';
const MODEL = 'test-model-2025';

function write(step: SpokenStep): string {
  switch (step.type) {
    case 'start':
    case 'part.begin':
      return '';
    case 'part.delta':
      return step.part.type === 'tool_call' ? '' : response([{ text: step.text, ...(step.part.type === 'thinking' && { thought: true }) }]);
    case 'part.end':
      return end(step.part);
    case 'finish':
      return response([], { finishReason: finishReason(step.stopReason) }, { usageMetadata: toUsage(step.usage) });
    case 'fail':
      return sse(toError(step.failure));
  }
}

function response(parts: readonly object[], candidate: object = {}, more: object = {}): string {
  const content = parts.length === 0 ? {} : { content: { role: 'model', parts } };
  return sse({ candidates: [{ ...content, index: 0, ...candidate }], modelVersion: MODEL, responseId: ID, ...more });
}

function end(part: LLMScenePart): string {
  if (part.type === 'thinking') return part.signature === undefined ? '' : response([{ text: '', thought: true, thoughtSignature: part.signature }]);
  if (part.type === 'text') return '';
  const { providerId: id, name, inputText } = part;
  return response([{ functionCall: { id, name, ...(inputText !== '' && { args: JSON.parse(inputText) as unknown }) } }]);
}

const FINISH_REASONS: Readonly<Partial<Record<StepStopReason, string>>> = {
  end_turn: 'STOP',
  tool_use: 'STOP',
  max_tokens: 'MAX_TOKENS',
  filtered: 'SAFETY',
};

function finishReason(stopReason: StepStopReason): string {
  return FINISH_REASONS[stopReason] ?? 'OTHER';
}

function toUsage({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, thinkingTokens }: Usage): object {
  const prompt = inputTokens + cacheReadTokens + cacheWriteTokens;
  return {
    promptTokenCount: prompt,
    cachedContentTokenCount: cacheReadTokens,
    candidatesTokenCount: outputTokens - thinkingTokens,
    thoughtsTokenCount: thinkingTokens,
    totalTokenCount: prompt + outputTokens,
  };
}

interface GeminiError {
  readonly code: number;
  readonly status: string;
  /** What only the wording tells. */
  readonly wording?: string;
}

const INVALID: GeminiError = { code: 400, status: 'INVALID_ARGUMENT' };

const ERRORS: Readonly<Partial<Record<LLMErrorKind, GeminiError>>> = {
  rate_limit: { code: 429, status: 'RESOURCE_EXHAUSTED' },
  overloaded: { code: 503, status: 'UNAVAILABLE' },
  server: { code: 500, status: 'INTERNAL' },
  auth: { code: 401, status: 'UNAUTHENTICATED' },
  permission: { code: 403, status: 'PERMISSION_DENIED' },
  not_found: { code: 404, status: 'NOT_FOUND' },
  invalid_request: INVALID,
  invalid_history: { ...INVALID, wording: 'Please ensure that function call turn comes immediately after a user turn.' },
  context_overflow: { ...INVALID, wording: 'The input token count (9) exceeds the maximum number of tokens allowed (8).' },
  request_too_large: { ...INVALID, wording: 'Request payload size exceeds the limit: 20971520 bytes.' },
  media_rejected: { ...INVALID, wording: 'Unable to process input image.' },
};

function toError({ kind, message, retryAfterMs }: LLMSceneFailure): object {
  const { code, status, wording } = ERRORS[kind] ?? INVALID;
  const details = retryAfterMs === undefined ? {} : { details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retryAfterMs / 1000}s` }] };
  return { error: { code, message: wording === undefined ? message : `${message} ${wording}`, status, ...details } };
}

interface Content {
  readonly parts: readonly {
    readonly functionCall?: { readonly id?: string; readonly name: string; readonly args: unknown };
    readonly functionResponse?: { readonly id?: string; readonly response: { readonly output?: string; readonly error?: string } };
  }[];
}

/** Calls and results need no ids here: the n-th result is that of the n-th call. */
function read(body: unknown): { readonly calls: readonly LLMSentCall[]; readonly results: readonly LLMSentResult[] } {
  const parts = (body as { readonly contents: readonly Content[] }).contents.flatMap((content) => content.parts);
  const calls = parts.flatMap(({ functionCall: call }) => call ?? []);
  const results = parts.flatMap(({ functionResponse: result }) => result ?? []);
  return {
    calls: calls.map(({ id, name, args }, at) => ({ id: id ?? String(at), name, inputText: JSON.stringify(args) })),
    results: results.map(({ id, response: { output, error } }, at) => ({ id: id ?? String(at), text: output ?? error ?? '' })),
  };
}
