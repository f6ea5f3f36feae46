/** What the tests of sub-agents have in common. */
import { type LLMRequest, type ReplyToolCall, textOf } from 'turnloop';
import type { DispatchAgentInput } from 'turnloop/agent';
import { type Reply, scriptedLLM, type ScriptedLLM, type ScriptedLLMOptions, toolCall } from 'turnloop/testing';

/** A call that dispatches a sub-agent. */
export function dispatchCall(prompt: string, { type, description }: Omit<DispatchAgentInput, 'prompt'> = {}): ReplyToolCall {
  return toolCall('dispatch_agent', { prompt, ...(type !== undefined && { type }), ...(description !== undefined && { description }) });
}

/** What a model was first told. */
export function promptOf({ messages }: LLMRequest): string {
  return textOf(messages[0]!.content.filter((part) => part.type === 'text'));
}

/** A model that many agents share: each plays the replies of its own prompt, one for each step, in whatever process it is. */
export function taskLLM(repliesOf: (prompt: string) => readonly Reply[], options: ScriptedLLMOptions = {}): ScriptedLLM {
  return scriptedLLM((request) => {
    const step = request.messages.filter(({ role }) => role === 'assistant').length;
    const reply = repliesOf(promptOf(request))[step];
    if (reply === undefined) throw new Error(`"${promptOf(request)}" has no reply for step ${step + 1}.`);
    return reply;
  }, options);
}
