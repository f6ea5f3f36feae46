/**
 * Counting: what policies that count requests have in common.
 *
 * None may count a request twice, however often it stands around a model: one that goes on inwards carries who has counted
 * it, under a symbol that decorators copy with the rest.
 */
import { isLLMError, type LLMError } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import type { LLM, LLMRequest, LLMResponse } from '../core/llm.ts';
import { totalTokens, toUsage, type Usage } from '../core/usage.ts';

const COUNTED_BY: unique symbol = Symbol('counted by');

interface CountedRequest extends LLMRequest {
  readonly [COUNTED_BY]?: readonly object[];
}

/** True if a request came through this counter before. */
export function isCountedBy(request: CountedRequest, counter: object): boolean {
  return request[COUNTED_BY]?.includes(counter) === true;
}

/** The request, marked as counted. */
export function countedBy(request: CountedRequest, counter: object): LLMRequest {
  const counted: CountedRequest = { ...request, [COUNTED_BY]: [...(request[COUNTED_BY] ?? []), counter] };
  return counted;
}

/**
 * Tokens that a reply or a failure tells of; undefined if it tells of none, as replies of servers that do not count.
 *
 * @param outcome - Of any adapter, also of one without types.
 */
export function toldUsage(outcome: unknown): Usage | undefined {
  if (!isRecord(outcome) || !isRecord(outcome['usage'])) return undefined;
  const usage = toUsage(outcome['usage']);
  return totalTokens(usage) === 0 ? undefined : usage;
}

/**
 * What the attempt that was sent last ended with; undefined if none was. A refusal of another attempt has the failure of the
 * one before as its cause, where nobody was told of that.
 */
export function sentFailure(error: LLMError): LLMError | undefined {
  if (error.kind !== 'refused') return error;
  return isLLMError(error.cause) ? sentFailure(error.cause) : undefined;
}

/** True if the model that was asked has answered itself: what another counted says nothing about this one. */
export function isReplyOf({ provider, modelId }: LLMResponse, llm: LLM): boolean {
  if (provider === undefined) return true;
  return provider === llm.provider && (modelId ?? llm.modelId) === llm.modelId;
}
