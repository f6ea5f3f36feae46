/**
 * A model that looks at the end of the history alone: a prompt begins a chain of calls, each result says where in the chain it
 * stands. So it goes on where it was also behind a summary, or with what is old cleared.
 */
import { type LLM, type LLMRequest, type LLMResponse, textOf, toUsage } from 'turnloop';

/** A chain of steps for a prompt `Prompt N`. */
export interface Chain {
  /** Steps with a call each, by prompt. */
  readonly lengths: readonly number[];
  /** Name of the tool. */
  readonly tool: string;
}

/** Makes the model. What it is asked without a prompt of the chain it answers with a note. */
export function chainLLM({ lengths, tool }: Chain, options: { readonly modelId?: string; readonly contextWindow?: number } = {}): LLM {
  const { modelId = 'chain', contextWindow } = options;
  return {
    provider: 'simulated',
    modelId,
    systemPrompt: 'You are simulated.',
    ...(contextWindow !== undefined && { capabilities: { contextWindow } }),
    chat: async (request) => {
      const text = endOf(request);
      const [, prompt, step] = /^Prompt (\d+)(?: step (\d+))?/.exec(text) ?? [];
      const next = Number(step ?? 0) + 1;
      const usage = toUsage({ inputTokens: 4 * request.messages.length, outputTokens: 3 });
      const isOver = prompt === undefined || next > (lengths[Number(prompt)] ?? 0);
      return isOver ? said('That is all.', usage, request) : called(tool, { chain: `Prompt ${prompt} step ${next}` }, usage);
    },
  };
}

/** The chain's last words: of the last message that has any of it. */
function endOf({ messages }: LLMRequest): string {
  for (const message of messages.toReversed()) {
    if (message.role === 'assistant') continue;
    const text = textOf(message);
    if (text.startsWith('Prompt ')) return text;
  }
  return '';
}

function said(text: string, usage: LLMResponse['usage'], { onDelta }: LLMRequest): LLMResponse {
  onDelta?.({ type: 'text', text });
  return { content: [{ type: 'text', text }], stopReason: 'end_turn', usage };
}

function called(name: string, input: object, usage: LLMResponse['usage']): LLMResponse {
  return { content: [{ type: 'tool_call', name, inputText: JSON.stringify(input) }], stopReason: 'tool_use', usage };
}
