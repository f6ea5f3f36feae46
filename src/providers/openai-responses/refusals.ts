/**
 * Refusals: failures that the same request, said in another way, does not have.
 *
 * Recognised by what servers write, seen at OpenAI, Azure, Copilot, LM Studio, vLLM and llama.cpp.
 */
import type { LLMError } from '../../core/errors.ts';

/** Code of the error for an answer that leaves out the response before it. */
export const IGNORED_RESPONSE = 'previous_response_ignored';

/** A model that does not think, or a server that does not know what it was asked to include. */
const ENCRYPTION_REFUSED =
  /encrypted (?:reasoning |thinking )?content is not supported|(?:unknown|unsupported|unexpected|invalid|not support).{0,80}\breasoning\.encrypted_content|\breasoning\.encrypted_content.{0,80}(?:unknown|unsupported|unexpected|invalid|not (?:a |an )?(?:supported|permitted|allowed|valid))/i;

/** The field `include`, not the word, and not a tool's field of that name. */
const INCLUDE_FIELD =
  /['"`]include(?:\[\d+\])?['"`]|(?:^|[:(\n]\s*|\bbody\.)include(?:\[\d+\]|\.\d+)?:|\b(?:parameter|field|argument|property|key|option)s?:? include\b|\binclude (?:parameter|field|argument|option)\b/i;
const FIELD_REFUSED = /unknown|unsupported|unrecogni[sz]ed|unexpected|invalid|not support|not (?:permitted|allowed|recogni[sz]ed|available)|should be/i;
const ABOUT_TOOLS = /\b(?:tool|function|schema)s?\b/i;

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

/** The response that a request goes on from is not there. */
export function isResponseLost({ code, message }: LLMError): boolean {
  return code === IGNORED_RESPONSE || /previous[_ ]response/i.test(`${code} ${message}`);
}

/**
 * What a server says of a history may be about what it should have kept, unless the history that it is told whole has the
 * same fault: outputs without their calls.
 */
export function mayBeResponseLost(error: LLMError): boolean {
  return error.kind === 'invalid_history' || isResponseLost(error);
}

/** The server does not give thinking in encrypted form. */
export function isEncryptionRefused({ kind, message }: LLMError): boolean {
  if (kind !== 'invalid_request') return false;
  return ENCRYPTION_REFUSED.test(message) || (INCLUDE_FIELD.test(message) && FIELD_REFUSED.test(message) && !ABOUT_TOOLS.test(message));
}

/** The server does not take back what it gave: thinking, or items of its own tools. */
export function isOwnItemRefused({ status, code, message }: LLMError): boolean {
  // In a stream it comes without a status.
  if (status !== undefined && status >= 500) return false;
  return OWN_ITEMS_REFUSED.some((pattern) => pattern.test(`${code} ${message}`));
}
