/**
 * Protocol rules: what the three protocols refuse in a history. Each checker returns the rules that are broken, in words.
 */
import type { Message, MessagePart } from 'turnloop';
import { toAnthropic, type AnthropicBlock, type AnthropicMessage, toChat, type ChatMessage, toResponses, type ResponsesItem } from './wire-shapes.ts';

/** What a history is held against. */
export interface RuleOptions {
  /** Ids of calls are unique, and a user's message comes first: not so in just any list of messages. @defaultValue true */
  readonly wellFormed?: boolean;
}

/** Every rule of every protocol that a history breaks; empty for a valid one. */
export function brokenRules(messages: readonly Message[], options: RuleOptions = {}): readonly string[] {
  const { wellFormed = true } = options;
  const label = (protocol: string) => (rule: string) => `${protocol}: ${rule}`;
  const chat = toChat(messages);
  const items = toResponses(messages);
  const anthropic = toAnthropic(messages);
  return [
    ...neutralRules(messages).map(label('neutral')),
    ...chatRules(chat).map(label('chat')),
    ...responsesRules(items, wellFormed).map(label('responses')),
    ...anthropicRules(anthropic).map(label('anthropic')),
    ...(wellFormed ? [...uniqueRules(callIds(chat)), ...firstRules(anthropic)].map(label('all')) : []),
  ];
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** What holds before any adapter has a say. */
function neutralRules(messages: readonly Message[]): readonly string[] {
  const broken: string[] = [];
  messages.forEach((message, index) => {
    const parts: readonly MessagePart[] = message.content;
    if (parts.length === 0) broken.push(`message ${index} is empty`);
    if (parts.every((part) => part.type === 'thinking' && isBlank(part.text) && part.signature === undefined && part.redactedData === undefined)) {
      broken.push(`message ${index} says nothing`);
    }
    if (parts.some((part) => part.type === 'text' && isBlank(part.text) && part.providerData === undefined)) {
      broken.push(`message ${index} has a blank text`);
    }
  });
  return broken;
}

/** Chat Completions: a message with calls is followed by exactly one tool message for each; none stands elsewhere. */
function chatRules(messages: readonly ChatMessage[]): readonly string[] {
  const broken: string[] = [];
  let due: string[] = [];
  messages.forEach((message, index) => {
    if (message.role === 'tool') {
      if (!due.includes(message.callId)) broken.push(`tool message ${index} answers no call before it`);
      due = without(due, message.callId);
      if (message.texts.every(isBlank)) broken.push(`tool message ${index} has no text`);
      return;
    }
    if (due.length > 0) broken.push(`message ${index} comes while calls have no answer: ${due.join()}`);
    if (message.texts.some(isBlank)) broken.push(`message ${index} has a blank text`);
    due = message.role === 'assistant' ? [...message.callIds] : [];
    if (message.role === 'user' && message.texts.length + message.media === 0) broken.push(`message ${index} is empty`);
  });
  if (due.length > 0) broken.push(`the history ends with calls that have no answer: ${due.join()}`);
  return broken;
}

/** Responses: each call has one output behind it, before the next user message; nothing is empty; no reasoning alone. */
function responsesRules(items: readonly ResponsesItem[], wellFormed: boolean): readonly string[] {
  const broken: string[] = [];
  let due: string[] = [];
  items.forEach((item, index) => {
    switch (item.type) {
      case 'function_call':
        due.push(item.callId);
        return;
      case 'function_call_output':
        if (!due.includes(item.callId)) broken.push(`output ${index} answers no call before it`);
        due = without(due, item.callId);
        if (item.texts.every(isBlank)) broken.push(`output ${index} is empty`);
        return;
      case 'reasoning': {
        const next = items[index + 1];
        if (next === undefined || next.type === 'function_call_output' || (next.type === 'message' && next.role === 'user')) {
          broken.push(`reasoning ${index} stands without what it led to`);
        }
        return;
      }
      case 'message':
        if (item.role === 'user' && due.length > 0) broken.push(`message ${index} comes while calls have no output: ${due.join()}`);
        if (item.texts.some(isBlank) || item.texts.length + item.media === 0) broken.push(`message ${index} is empty`);
    }
  });
  if (due.length > 0) broken.push(`the input ends with calls that have no output: ${due.join()}`);
  if (wellFormed) broken.push(...uniqueRules(items.flatMap((item) => (item.type === 'function_call' ? [item.callId] : []))));
  return broken;
}

/** Anthropic: roles alternate; the message behind one with calls begins with exactly their results. */
function anthropicRules(messages: readonly AnthropicMessage[]): readonly string[] {
  const broken: string[] = [];
  messages.forEach((message, index) => {
    const before = messages[index - 1];
    if (before?.role === message.role) broken.push(`messages ${index - 1} and ${index} are both ${message.role}`);
    if (message.blocks.length === 0) broken.push(`message ${index} is empty`);
    if (message.blocks.some((block) => block.type === 'text' && isBlank(block.text))) broken.push(`message ${index} has a blank text`);
    if (message.role === 'assistant' && message.blocks.at(-1)?.type === 'thinking') broken.push(`message ${index} ends with thinking`);
    const calls = idsOf(before?.role === 'assistant' ? before.blocks : [], 'tool_use');
    const results = idsOf(message.blocks, 'tool_result');
    const first = idsOf(message.blocks.slice(0, results.length), 'tool_result');
    if (message.role === 'assistant') return;
    if (first.length !== results.length) broken.push(`message ${index} has results that do not come first`);
    if ([...calls].sort().join() !== [...results].sort().join()) broken.push(`message ${index} answers [${results.join()}], not [${calls.join()}]`);
    for (const block of message.blocks) {
      if (block.type === 'tool_result' && (block.texts.some(isBlank) || block.texts.length + block.media === 0)) {
        broken.push(`a result of message ${index} is empty or has a blank text`);
      }
    }
  });
  const last = messages.at(-1);
  if (last?.role === 'assistant' && idsOf(last.blocks, 'tool_use').length > 0) broken.push('the history ends with calls that have no result');
  return broken;
}

function firstRules(messages: readonly AnthropicMessage[]): readonly string[] {
  return messages[0]?.role === 'assistant' ? ['the first message is not the user’s'] : [];
}

function uniqueRules(ids: readonly string[]): readonly string[] {
  return new Set(ids).size === ids.length ? [] : [`call ids are not unique: ${ids.join()}`];
}

function callIds(messages: readonly ChatMessage[]): readonly string[] {
  return messages.flatMap((message) => (message.role === 'assistant' ? message.callIds : []));
}

function idsOf(blocks: readonly AnthropicBlock[], type: 'tool_use' | 'tool_result'): readonly string[] {
  return blocks.flatMap((block) => (block.type === type && 'id' in block ? [block.id] : []));
}

function without(ids: readonly string[], id: string): string[] {
  const index = ids.indexOf(id);
  return index === -1 ? [...ids] : [...ids.slice(0, index), ...ids.slice(index + 1)];
}
