/** What llama.cpp answered with the same model: `oracle.json`, typed, and as requests of turnloop. */
import { readFileSync } from 'node:fs';
import { assistantMessage, toolMessage, userMessage, type JsonObject, type LLMRequest, type Message } from 'turnloop';

/** A conversation and what came of it. */
export interface OracleCase {
  readonly name: string;
  readonly tools: readonly string[];
  readonly messages: readonly OracleMessage[];
  readonly prompt: string;
  readonly prompt_tokens: readonly number[];
  readonly output_tokens: readonly number[];
  readonly text: string;
  readonly tool_calls: readonly { readonly name: string; readonly arguments: JsonObject }[];
  /** The five likeliest first tokens; in some cases only. */
  readonly first_step_top5_logits?: readonly { readonly id: number; readonly logit: number }[];
}

interface OracleMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string | null;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string; readonly arguments: string } }[];
  readonly tool_call_id?: string;
}

/** All recorded conversations. */
export const oracleCases: readonly OracleCase[] = readCases();

function readCases(): readonly OracleCase[] {
  const text = readFileSync(new URL('../oracle.json', import.meta.url), 'utf8');
  // The file is part of this folder and has this shape.
  return (JSON.parse(text) as { cases: readonly OracleCase[] }).cases;
}

/** The case of a name. */
export function oracleCase(name: string): OracleCase {
  const found = oracleCases.find((candidate) => candidate.name === name);
  if (found === undefined) throw new TypeError(`oracle.json has no case "${name}".`);
  return found;
}

/** A conversation as a request of turnloop. */
export function toRequest({ tools, messages }: OracleCase): Omit<LLMRequest, 'signal'> {
  return {
    systemPrompt: messages.find((message) => message.role === 'system')?.content ?? '',
    messages: messages.filter((message) => message.role !== 'system').map(toMessage),
    tools: tools.map((name) => ({ name, description: '', inputSchema: { type: 'object' } })),
  };
}

function toMessage({ role, content, tool_calls: calls = [], tool_call_id: toolCallId = '' }: OracleMessage): Message {
  const text = content ?? '';
  if (role === 'tool') return toolMessage(text, { toolCallId, name: '' });
  if (role !== 'assistant') return userMessage(text);
  return assistantMessage([
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
    ...calls.map((call) => ({ type: 'tool_call' as const, id: call.id, name: call.function.name, inputText: call.function.arguments })),
  ]);
}
