/** Reply errors: what is wrong with a reply that came, but is none. */
import { LLMError } from '../../core/errors.ts';
import { emptyReply, incompleteReply } from '../shared/reply-errors.ts';
import type { FinishReason } from './finish-reason.ts';
import type { PartialCall } from './tool-call-reader.ts';

/** The stream ended and the reply did not, as far as anyone can tell. */
export function incompleteError(provider: string, reason: FinishReason | undefined): LLMError {
  const how = reason === undefined ? 'before the reply was complete' : 'without a finish reason, so the reply may be incomplete';
  return incompleteReply(provider, how);
}

/** Google's word for a call that it could not read itself. */
const MALFORMED_CALL = 'MALFORMED_FUNCTION_CALL';

/** The reply ended in a failure. */
export function failedError(provider: string, { raw = 'error' }: FinishReason): LLMError {
  const kind = raw === MALFORMED_CALL ? 'malformed_response' : 'server';
  return new LLMError({ kind, code: raw, message: `${provider} ended the reply with "${raw}".` });
}

/** The reply says nothing. */
export function emptyError(provider: string, { raw, unified }: FinishReason): LLMError {
  return emptyReply(provider, `finish reason: ${raw ?? unified}`);
}

/** Nobody can be asked: the loop knows approvals of its own calls only. */
export function approvalError(provider: string): LLMError {
  const message = `${provider} asks for the approval of a tool that it runs itself, which nobody is asked for here; set the tool up so that it needs none.`;
  return new LLMError({ kind: 'invalid_request', code: 'approval_required', message });
}

/** What was given is no result of a model. */
export function noContentError(provider: string): LLMError {
  const message = `${provider} gave a result that has no content; is it a language model of the AI SDK?`;
  return new LLMError({ kind: 'malformed_response', message });
}

/** What is wrong with a call; undefined if it is whole, or was cut with its reply. */
export function callError(provider: string, { name, isWhole }: PartialCall, isCutShort: boolean): LLMError | undefined {
  const code = name === '' ? 'nameless_call' : !isWhole && !isCutShort ? 'unfinished_call' : undefined;
  if (code === undefined) return undefined;
  const what = code === 'nameless_call' ? "a tool call without the tool's name" : 'the beginning of a tool call, but not the call';
  return new LLMError({ kind: 'malformed_response', code, message: `${provider} sent ${what}.` });
}
