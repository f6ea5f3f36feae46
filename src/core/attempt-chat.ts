/**
 * Attempt: one try of a request, as decorators and the loop make it.
 *
 * - Fragments that come after the attempt has settled go nowhere: they must never mix with the next one's.
 * - What comes back is checked here, where each decorator sees it: an adapter may be anybody's, and a reply that is none is
 *   a failure like others, to be retried or answered by another model.
 */
import { LLMError } from './errors.ts';
import { isRecord, toJson } from './json.ts';
import type { LLM, LLMDelta, LLMRequest, LLMResponse, ReplyPart } from './llm.ts';
import { isTextOrMedia } from './message.ts';
import { isStepStopReason, STEP_STOP_REASONS } from './stop-reason.ts';
import { toUsage } from './usage.ts';

/**
 * Sends one attempt of a request, with an `onDelta` that goes dead when the attempt settles: a late fragment of a
 * failed attempt must never mix with the next one. A synchronous throw of the model becomes a rejection.
 *
 * @throws What the model throws, and {@link index.LLMError | LLMError} `malformed_response` for a reply that is none: an
 * empty one has the code `empty`.
 */
export async function attemptChat(llm: LLM, request: LLMRequest): Promise<LLMResponse> {
  const { onDelta } = request;
  if (onDelta === undefined) return checkResponse(await llm.chat(request));
  let open = true;
  const deliver = (delta: LLMDelta): void => {
    if (open) onDelta(delta);
  };
  try {
    return checkResponse(await llm.chat({ ...request, onDelta: deliver }));
  } finally {
    open = false;
  }
}

/** Replies that were found whole: each decorator hands the same one on. */
const checked = new WeakSet<LLMResponse>();

/** Checks what a model handed back. @throws {@link index.LLMError | LLMError} `malformed_response` naming what is wrong */
function checkResponse(response: LLMResponse): LLMResponse {
  if (isRecord(response) && checked.has(response)) return response;
  const problem = responseProblem(response);
  if (problem !== undefined) throw malformed(problem, response);
  const mayBeEmpty = response.stopReason === 'filtered' || response.stopReason === 'max_tokens';
  if (mayBeEmpty || response.content.some(isSubstance)) {
    checked.add(response);
    return response;
  }
  throw new LLMError({
    kind: 'malformed_response',
    code: 'empty',
    message: `The model's reply is empty: no text, no call, no media (it ended with ${response.rawStopReason ?? response.stopReason}).`,
    usage: response.usage,
  });
}

/** What is wrong with a reply. The types promise that nothing is; an adapter without types may not keep it. */
function responseProblem(response: unknown): string | undefined {
  if (!isRecord(response) || !Array.isArray(response['content'])) return 'it has no "content" list';
  const { stopReason } = response;
  if (!isStepStopReason(stopReason)) return `its "stopReason" is ${shown(stopReason)}; it is one of ${STEP_STOP_REASONS.join(', ')}`;
  for (const [index, part] of response['content'].entries()) {
    const problem = partProblem(part);
    if (problem !== undefined) return `content[${index}] ${problem}`;
  }
  return undefined;
}

function partProblem(part: unknown): string | undefined {
  if (!isRecord(part)) return 'is not a part such as { type: "text", text }';
  if (part['providerData'] !== undefined && toJson(part['providerData']) === undefined) return 'has providerData that is not JSON';
  switch (part['type']) {
    case 'text':
    case 'thinking':
      return typeof part['text'] === 'string' ? undefined : 'has no text';
    case 'tool_call':
      if (typeof part['name'] !== 'string') return 'is a tool call without a name';
      if (part['providerId'] !== undefined && typeof part['providerId'] !== 'string') return 'is a tool call whose providerId is not a string';
      return typeof part['inputText'] === 'string' ? undefined : 'is a tool call whose inputText is not a string';
    case 'media':
      return isTextOrMedia(part) ? undefined : 'is media without mediaType, or without data or url';
    case 'provider':
      if (typeof part['provider'] !== 'string') return 'is a provider part without "provider"';
      return toJson(part['data']) === undefined ? 'is a provider part whose data is not JSON' : undefined;
    default:
      return `has the unknown type ${shown(part['type'])}`;
  }
}

function isSubstance(part: ReplyPart): boolean {
  return part.type === 'text' ? part.text.trim() !== '' : part.type !== 'thinking';
}

function malformed(what: string, response: unknown): LLMError {
  const usage = isRecord(response) && isRecord(response['usage']) ? toUsage(response['usage']) : undefined;
  return new LLMError({
    kind: 'malformed_response',
    message: `What LLM.chat returned is not a reply: ${what}. It began: ${shown(response).slice(0, 200)}`,
    ...(usage !== undefined && { usage }),
  });
}

function shown(value: unknown): string {
  try {
    const text: string | undefined = JSON.stringify(value);
    return text ?? String(value);
  } catch {
    return String(value);
  }
}
