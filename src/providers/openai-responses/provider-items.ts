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

/** The items of a reply that go back, each as it came: calls for the client with their outputs, or not at all. */
export function returnedItems(content: readonly (AssistantPart | ReplyPart)[], provider: string): ReadonlySet<ProviderPart> {
  const items = content.filter((part) => part.type === 'provider').filter((part) => part.provider === provider && isItem(part.data));
  const halves = items.map(({ data }) => halfOf(data));
  const keys = new Set(halves.map((half) => half?.key));
  return new Set(items.filter((_item, at) => halves[at] === undefined || keys.has(halves[at].otherKey)));
}

/** Whether a reply holds something that the client has to answer, and nobody will. */
export function hasUnanswered(content: readonly ReplyPart[], provider: string): boolean {
  const returned = returnedItems(content, provider);
  return content.some((part) => part.type === 'provider' && isItem(part.data) && !returned.has(part));
}

function isItem(data: unknown): boolean {
  return isRecord(data) && typeof data['type'] === 'string' && ITEM_TYPE.test(data['type']) && !NOT_OPAQUE.has(data['type']);
}

/** One of the two that belong together: a call that the client answers, and its output. */
interface Half {
  readonly key: string;
  readonly otherKey: string;
}

/** Undefined for an item that stands alone. */
function halfOf(data: unknown): Half | undefined {
  if (!isRecord(data)) return undefined;
  const { type, execution, call_id: callId } = data;
  const key = (of: unknown): string => `${String(of)} ${String(callId)}`;
  if (type === 'mcp_approval_request') return { key: key(type), otherKey: key('mcp_approval_response') };
  if (type === 'tool_search_call') return execution === 'client' ? { key: key(type), otherKey: key('tool_search_output') } : undefined;
  if (type === 'tool_search_output') return execution === 'client' ? { key: key(type), otherKey: key('tool_search_call') } : undefined;
  if (CLIENT_CALLS.has(type)) return { key: key(type), otherKey: key(`${String(type)}_output`) };
  const call = String(type).replace(/_output$/, '');
  return CLIENT_CALLS.has(call) ? { key: key(type), otherKey: key(call) } : undefined;
}
