/**
 * Item ids: which ids of items go back to a server.
 *
 * OpenAI refuses an id that has not its type's prefix, or more than 64 characters; some of its gateways give such ids,
 * and would refuse them.
 */

const PREFIXES = {
  message: 'msg_',
  reasoning: 'rs_',
  function_call: 'fc_',
  custom_tool_call: 'ctc_',
} as const;

/** A type of item whose ids are looked at. */
export type IdentifiedType = keyof typeof PREFIXES;

const LEGAL = /^[a-zA-Z0-9_-]{1,64}$/;

/** The id if a server takes it back; undefined for any other value. */
export function toItemId(id: unknown, type: IdentifiedType): string | undefined {
  return typeof id === 'string' && LEGAL.test(id) && id.startsWith(PREFIXES[type]) ? id : undefined;
}
