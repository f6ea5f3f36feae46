/** Reply errors: what is wrong with a reply that came, but is none. The same words and codes whoever answered. */
import { LLMError } from '../../core/errors.ts';

/** The answer ended and the reply did not, as far as anyone can tell. */
export function incompleteReply(provider: string, how = 'before the reply was complete'): LLMError {
  return new LLMError({ kind: 'network', code: 'stream_incomplete', message: `${provider} ended its answer ${how}.` });
}

/** The reply says nothing. @param end - Why it ended, in the server's words. */
export function emptyReply(provider: string, end: string): LLMError {
  return new LLMError({ kind: 'malformed_response', code: 'empty', message: `${provider} sent an empty reply (${end}).` });
}

/** A call came without a name. @param what - What came. */
export function namelessCall(provider: string, what = 'a tool call'): LLMError {
  return new LLMError({ kind: 'malformed_response', code: 'nameless_call', message: `${provider} sent ${what} without the tool's name.` });
}
