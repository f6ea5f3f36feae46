/**
 * Wire ids: which id a tool call has in a request.
 *
 * A server accepts back what it gave, but another server may not: ids are sent as the provider gave them where they are
 * legal and still free, else as a form of our own id. The choice depends on the call and on those before it only, so
 * that a longer history never changes an earlier one.
 */
import type { ToolCallPart } from '../../core/message.ts';
import { shortHash } from './hash.ts';

/** What ids a server takes. */
export interface IdRules {
  /** The whole id matches it. */
  readonly legal: RegExp;
  /** Makes a legal id of any text; texts that differ should give ids that differ. */
  readonly derive: (text: string) => string;
}

/** Letters, digits, `_` and `-`, at most 40: what OpenAI takes, and Anthropic as well. */
export const COMMON_IDS: IdRules = {
  legal: /^[a-zA-Z0-9_-]{1,40}$/,
  derive: (text) => `call_${shortHash(text, 10)}`,
};

/** Exactly nine letters and digits: what Mistral takes. */
export const NINE_CHARACTER_IDS: IdRules = {
  legal: /^[a-zA-Z0-9]{9}$/,
  derive: (text) => shortHash(text, 9),
};

/**
 * Chooses the id of a call.
 *
 * @param taken - The ids of the calls before it. The chosen one is added.
 */
export function chooseWireId(call: ToolCallPart, taken: Set<string>, rules: IdRules): string {
  const id = candidates(call, rules).find((candidate) => !taken.has(candidate)) ?? deriveFree(call.id, taken, rules);
  taken.add(id);
  return id;
}

function candidates({ providerId, id }: ToolCallPart, rules: IdRules): readonly string[] {
  return [providerId, id].filter((candidate) => candidate !== undefined && rules.legal.test(candidate)) as string[];
}

function deriveFree(id: string, taken: ReadonlySet<string>, rules: IdRules): string {
  let derived = rules.derive(id);
  for (let again = 1; taken.has(derived); again += 1) derived = rules.derive(`${id} ${again}`);
  return derived;
}
