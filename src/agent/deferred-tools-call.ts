/**
 * Deferred tools, translation: a model calls them through `call_tool`; the loop and its record know them by their names.
 *
 * - Coming in, a `call_tool` whose arguments name a deferred tool becomes a call of that tool. Anything else stays a
 *   `call_tool`, which answers with what is wrong: nothing is repaired.
 * - Going out, a call of a deferred tool becomes a `call_tool` again. What a message becomes depends on it alone and is
 *   kept with it, so that equal prefixes stay equal, and the same objects.
 */
import { isRecord, parseJson } from '../core/json.ts';
import type { LLMDelta, LLMRequest, ReplyPart, ReplyToolCall, ToolChoice } from '../core/llm.ts';
import type { AssistantMessage, Message, ToolCallPart } from '../core/message.ts';

/** The one tool through which deferred tools are called. */
export const CALL_TOOL = 'call_tool';

/** The arguments of a `call_tool`, or what is wrong with them. */
export type CallToolInput = { readonly name: string; readonly input: Record<string, unknown> } | { readonly problem: string };

/** Reads the arguments of a `call_tool`. Arguments that are left out are none. */
export function readCallToolInput(value: unknown): CallToolInput {
  if (!isRecord(value)) return { problem: 'they must be an object' };
  const { name, input = {}, ...others } = value;
  if (typeof name !== 'string') return { problem: '"name" must be the name of a tool' };
  const [other] = Object.keys(others);
  if (other !== undefined) return { problem: `there is nothing but "name" and "input", so ${JSON.stringify(other)} belongs into "input"` };
  if (!isRecord(input)) return { problem: `"input" must be an object with the arguments of the tool, not ${Array.isArray(input) ? 'a list' : typeof input}` };
  return { name, input };
}

/** A part of a reply, with a call of a deferred tool under its own name. */
export function toOwnCall(part: ReplyPart, names: ReadonlySet<string>): ReplyPart {
  if (part.type !== 'tool_call' || part.name !== CALL_TOOL) return part;
  const json = parseJson(part.inputText);
  const read = json.ok ? readCallToolInput(json.value) : undefined;
  if (read === undefined || 'problem' in read || !names.has(read.name)) return part;
  return { ...part, name: read.name, inputText: JSON.stringify(read.input) };
}

/** Translates what goes out. */
export interface OutgoingTranslator {
  /** The request as a model is to see it. */
  (request: LLMRequest): LLMRequest;
}

/** Makes the translator of requests. */
export function createOutgoingTranslator(names: ReadonlySet<string>): OutgoingTranslator {
  const known = new WeakMap<Message, Message>();
  const translate = (message: Message): Message => {
    if (message.role === 'user') return message;
    if (message.role === 'tool') return names.has(message.name) ? remember(message, () => ({ ...message, name: CALL_TOOL })) : message;
    return remember(message, () => toCallTools(message, names));
  };
  const remember = (message: Message, make: () => Message): Message => {
    const before = known.get(message);
    if (before !== undefined) return before;
    const made = make();
    known.set(message, made);
    return made;
  };
  return (request) => {
    const { toolChoice } = request;
    const messages = request.messages.map(translate);
    const isSame = messages.every((message, index) => message === request.messages[index]);
    return {
      ...request,
      ...(!isSame && { messages }),
      ...(isDeferred(toolChoice, names) && { toolChoice: { name: CALL_TOOL } }),
    };
  };
}

function isDeferred(choice: ToolChoice | undefined, names: ReadonlySet<string>): boolean {
  return typeof choice === 'object' && names.has(choice.name);
}

function toCallTools(message: AssistantMessage, names: ReadonlySet<string>): AssistantMessage {
  const isTheirs = (part: AssistantMessage['content'][number]): part is ToolCallPart => part.type === 'tool_call' && names.has(part.name);
  if (!message.content.some(isTheirs)) return message;
  return { ...message, content: message.content.map((part) => (isTheirs(part) ? toCallTool(part) : part)) };
}

function toCallTool(part: ToolCallPart): ToolCallPart {
  const { input: _input, ...rest } = part;
  const json = parseJson(part.inputText);
  // What was no object was never run: its result quotes the text.
  const given = json.ok && isRecord(json.value) ? { text: part.inputText, input: json.value } : { text: '{}', input: {} };
  return {
    ...rest,
    name: CALL_TOOL,
    inputText: `{"name":${JSON.stringify(part.name)},"input":${given.text}}`,
    input: { name: part.name, input: given.input },
  };
}

/** Fragments of a reply on their way to the loop. */
export interface HeldCalls {
  /** Takes a fragment; those of a `call_tool` wait until it is known which tool it calls. */
  readonly onDelta: (delta: LLMDelta) => void;
  /** Hands out what waits: each call in one piece, as it is recorded. */
  release(content: readonly ReplyPart[]): void;
}

/** Holds back the fragments of `call_tool` calls: what they are fragments of is not what is recorded. */
export function holdCalls(onDelta: (delta: LLMDelta) => void): HeldCalls {
  const held = new Set<number>();
  return {
    onDelta: (delta) => {
      if (delta.type !== 'tool_call') onDelta(delta);
      else if (delta.name === CALL_TOOL || held.has(delta.callIndex)) held.add(delta.callIndex);
      else onDelta(delta);
    },
    release: (content) => {
      const calls = content.filter((part): part is ReplyToolCall => part.type === 'tool_call');
      for (const [callIndex, { name, providerId, inputText }] of calls.entries()) {
        if (!held.has(callIndex)) continue;
        onDelta({ type: 'tool_call', callIndex, name, ...(providerId !== undefined && { providerId }), inputText });
      }
    },
  };
}
