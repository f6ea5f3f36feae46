/** Assert messages: a request that would say nothing is not sent. */
import { LLMError } from '../../core/errors.ts';

/**
 * Makes sure that a history says something.
 *
 * @param json - JSON of what is sent of it; empty for nothing.
 * @throws {@link index.LLMError | LLMError} of kind `invalid_request`, code `empty_history`: servers refuse such a request
 * in words of their own, and would for ever.
 */
export function assertMessages(json: string, provider: string): void {
  if (json !== '') return;
  throw new LLMError({
    kind: 'invalid_request',
    code: 'empty_history',
    message: `${provider}: there is nothing to send, as the history has no message with more than white space: give a user message with text or media, such as userMessage('Hello').`,
  });
}
