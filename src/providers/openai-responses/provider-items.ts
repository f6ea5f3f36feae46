/**
 * Provider items: items of the server's own tools, which come and go as they are.
 *
 * An item that only the client could answer stands in a history without an answer: nobody here knows how to run it. A
 * server refuses such a history, so the item stays out of it.
 */
import { isRecord } from '../../core/json.ts';
import type { AssistantPart, ProviderPart } from '../../core/message.ts';
import type { ReplyPart } from '../../core/llm.ts';

/** What is written in another way, and what is no item at all: another adapter's of the same provider. */
const NOT_OPAQUE: ReadonlySet<unknown> = new Set(['message', 'reasoning', 'function_call', 'custom_tool_call', 'item_reference']);
const ITEM_TYPE = /^[a-z]+(?:_[a-z]+)*$/;

/** Calls that a client has to answer, each with an output of the type `…_output`. */
const CLIENT_CALLS: ReadonlySet<unknown> = new Set(['local_shell_call', 'shell_call', 'apply_patch_call', 'computer_call']);

/** The items of a reply that go back, each as it came. */
export function returnedItems(content: readonly (AssistantPart | ReplyPart)[], provider: string): ReadonlySet<ProviderPart> {
  const items = content.filter((part) => part.type === 'provider').filter((part) => part.provider === provider && isItem(part));
  const answered = new Set(items.map(({ data }) => answeredCall(data)));
  return new Set(items.filter(({ data }) => !isUnanswered(data, answered)));
}

/** Whether a reply holds something that the client has to answer, and nobody will. */
export function hasUnanswered(content: readonly ReplyPart[], provider: string): boolean {
  const returned = returnedItems(content, provider);
  return content.some((part) => part.type === 'provider' && isItem(part) && !returned.has(part));
}

function isItem({ data }: ProviderPart): boolean {
  return isRecord(data) && typeof data['type'] === 'string' && ITEM_TYPE.test(data['type']) && !NOT_OPAQUE.has(data['type']);
}

function isUnanswered(data: unknown, answered: ReadonlySet<string>): boolean {
  if (!isRecord(data)) return false;
  const { type, execution } = data;
  const isForClient = CLIENT_CALLS.has(type) || (type === 'tool_search_call' && execution === 'client') || type === 'mcp_approval_request';
  return isForClient && !answered.has(callKey(String(type), data['call_id']));
}

/** The call that an output answers, as {@link callKey} names it. */
function answeredCall(data: unknown): string {
  if (!isRecord(data)) return '';
  const type = String(data['type']);
  return callKey(type === 'tool_search_output' ? 'tool_search_call' : type.replace(/_output$/, ''), data['call_id']);
}

function callKey(type: string, callId: unknown): string {
  return `${type} ${String(callId)}`;
}
