/**
 * Refusals: failures that the same request, said in another way, does not have.
 *
 * Recognised by what servers write, seen at OpenAI, Azure, Copilot, LM Studio, vLLM and llama.cpp.
 */
import type { LLMError } from '../../core/errors.ts';

/** Code of the error for an answer that leaves out the response before it. */
export const IGNORED_RESPONSE = 'previous_response_ignored';

/** A model that does not think, or a server that knows no encrypted thinking. */
const ENCRYPTION_REFUSED =
  /encrypted content is not supported|(?:unknown|unsupported|unrecognized|unexpected|invalid|not supported).{0,40}\binclude\b|\binclude\b.{0,40}(?:unknown|unsupported|unrecognized|unexpected|invalid|not (?:supported|permitted|allowed))/i;

/** What a server says to items that it gave itself, when they come back. */
const OWN_ITEMS_REFUSED = [
  // Another account's, another deployment's, or of a key that was changed since.
  /encrypted[ _]content/i,
  /\bitems? (?:with id )?['"`][\w-]+['"`].{0,40}not found/i,
  /not persisted/i,
  /provided without its required/i,
  /duplicate item/i,
  /item ids? (?:does|do) not belong/i,
  /\binput\[\d+\]['"`.[\]]{1,3}(?:id|summary|content|encrypted_content|status|type)\b/i,
  /\bitem\b.{0,20}\bis not an array|cannot determine type of 'item'/i,
];

/** The response that a request goes on from is not there, or not what it was. */
export function isResponseLost({ kind, code, message }: LLMError): boolean {
  return code === IGNORED_RESPONSE || kind === 'invalid_history' || /previous[_ ]response/i.test(`${code} ${message}`);
}

/** The server does not give thinking in encrypted form. */
export function isEncryptionRefused({ kind, message }: LLMError): boolean {
  return kind === 'invalid_request' && ENCRYPTION_REFUSED.test(message);
}

/** The server does not take back what it gave: thinking, or items of its own tools. */
export function isOwnItemRefused({ status, code, message }: LLMError): boolean {
  // In a stream it comes without a status.
  if (status !== undefined && status >= 500) return false;
  return OWN_ITEMS_REFUSED.some((pattern) => pattern.test(`${code} ${message}`));
}
