/**
 * A model whose reply is a function of the history alone, as plans say it: whoever asks again, also in a later life, gets the same.
 */
import { type LLM, type LLMRequest, type LLMResponse, type Message, textOf, type ReplyPart } from 'turnloop';

/** A call that the model is to make. */
export interface PlannedCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** What the model does in a turn: calls, step by step, then it is done. */
export interface PlannedTurn {
  readonly prompt: string;
  readonly steps: readonly (readonly PlannedCall[])[];
}

/** Makes the model of some turns. Streams word by word, and thinks before it calls. */
export function plannedLLM(turns: readonly PlannedTurn[], modelId = 'planned'): LLM {
  return { provider: 'simulated', modelId, systemPrompt: 'You are simulated.', chat: async (request) => stream(reply(turns, request.messages), request) };
}

function reply(turns: readonly PlannedTurn[], messages: readonly Message[]): LLMResponse {
  const start = messages.findLastIndex((message) => message.role === 'user' && turns.some(({ prompt }) => textOf(message) === prompt));
  const said = start === -1 ? '' : textOf(messages[start]);
  const turn = turns.find(({ prompt }) => prompt === said);
  const step = messages.slice(start + 1).filter(({ role }) => role === 'assistant').length;
  const calls = turn?.steps[step] ?? [];
  const usage = { inputTokens: 10 + messages.length, outputTokens: 5 + calls.length, cacheReadTokens: 0, cacheWriteTokens: 0, thinkingTokens: 0 };
  if (calls.length === 0) return { content: [{ type: 'text', text: `Done with ${said}` }], stopReason: 'end_turn', usage };
  const content = calls.map(({ tool, input }): ReplyPart => ({ type: 'tool_call', name: tool, inputText: JSON.stringify(input) }));
  return { content: [{ type: 'text', text: 'I will see.' }, ...content], stopReason: 'tool_use', usage };
}

function stream(response: LLMResponse, { onDelta }: LLMRequest): LLMResponse {
  let callIndex = 0;
  for (const part of response.content) {
    if (part.type === 'text') for (const text of part.text.split(/(?<= )/)) onDelta?.({ type: 'text', text });
    if (part.type !== 'tool_call') continue;
    onDelta?.({ type: 'tool_call', callIndex, name: part.name, inputText: part.inputText });
    callIndex += 1;
  }
  return response;
}
