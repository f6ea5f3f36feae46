/** History: messages and tools for the requests of the cases. */
import { isRecord, parseJson } from '../../core/json.ts';
import type { LLM, LLMResponse, ToolDefinition } from '../../core/llm.ts';
import {
  assistantMessage,
  toolMessage,
  userMessage,
  type AssistantMessage,
  type Message,
  type MessageSource,
  type ToolCallPart,
} from '../../core/message.ts';

/** Tools to offer. */
export const TOOLS: readonly ToolDefinition[] = [
  {
    name: 'look_up',
    description: 'TOOL-DESCRIPTION.',
    inputSchema: { type: 'object', properties: { tool_property: { type: 'string' } }, required: ['tool_property'] },
  },
  { name: 'note', description: 'Takes a note.', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } },
];

/** A model of another provider. */
export const STRANGER: MessageSource = { provider: 'another-provider', modelId: 'another-model' };

/** A call of `look_up` in a history. */
export function historyCall(id: string, inputText: string, providerId?: string): ToolCallPart {
  return withInput({ type: 'tool_call', id, name: 'look_up', inputText, ...(providerId !== undefined && { providerId }) });
}

/** A call as the loop records it: with its arguments parsed where they are an object. */
function withInput(call: ToolCallPart): ToolCallPart {
  const json = parseJson(call.inputText);
  return json.ok && isRecord(json.value) ? { ...call, input: json.value } : call;
}

/** The result of such a call. */
export function resultOf(toolCallId: string, isError = false): Message {
  return toolMessage(`RESULT-OF-${toolCallId}`, { id: `message_${toolCallId}`, toolCallId, name: 'look_up', isError });
}

/** Two steps of another model: ids that are no good anywhere, that come twice, or that are not there. */
export const FOREIGN_STEPS: readonly Message[] = [
  userMessage('FIRST-QUESTION', { id: 'message_1' }),
  assistantMessage(
    [
      { type: 'text', text: 'FIRST-WORDS' },
      historyCall('call_a', '{"tool_property":"a"}', `functions.look_up:0/§ ${'long '.repeat(20)}`),
      historyCall('call_b', '{"tool_property":"b"}', 'SAME00001'),
      historyCall('call_c', '{ "tool_property": "c" }'),
    ],
    { id: 'step_1', source: STRANGER },
  ),
  resultOf('call_a'),
  resultOf('call_b', true),
  resultOf('call_c'),
  assistantMessage([historyCall('call_d', '{"tool_property":"d"}', 'SAME00001')], { id: 'step_2', source: STRANGER }),
  resultOf('call_d'),
];

/** A reply as it stands in the history of the next request: what the loop makes of it. */
export function asMessage({ content, modelId, provider }: LLMResponse, llm: LLM): AssistantMessage {
  let count = 0;
  const parts = content.map((part) => (part.type === 'tool_call' ? withInput({ ...part, id: `call_${(count += 1)}` }) : part));
  return assistantMessage(parts, { id: 'step_1', source: { provider: provider ?? llm.provider, modelId: modelId ?? llm.modelId } });
}
