/**
 * Builders: the argument of a model and of a tool, whole, for tests that call them without a turn.
 */
import type { LLMRequest } from '../core/llm.ts';
import { userMessage } from '../core/message.ts';
import type { ChildEvent, ToolContext, ToolUpdate } from '../core/tool.ts';
import type { Usage } from '../core/usage.ts';
import { scriptedLLM } from './scripted-llm.ts';
import { virtualRuntime } from './virtual-runtime.ts';

/**
 * A request to a model: one message `hi`, no tools, a signal that never aborts.
 *
 * @param parts - What is to be different.
 */
export function llmRequest(parts: Partial<LLMRequest> = {}): LLMRequest {
  const { signal } = new AbortController();
  return { systemPrompt: '', messages: [userMessage('hi', { id: 'message_1' })], tools: [], signal, ...parts };
}

/** Tokens that a tool reported. */
export interface ReportedUsage {
  /** Tokens spent. */
  readonly usage: Usage;
  /** The model that they were spent on. */
  readonly modelId: string;
}

/** A tool's context that keeps what the tool says through it. Made by {@link toolContext}. */
export interface TestToolContext extends ToolContext {
  /** What was handed to `progress`, in order. */
  readonly updates: readonly ToolUpdate[];
  /** What was handed to `forward`, in order. */
  readonly forwarded: readonly ChildEvent[];
  /** What was handed to `recordUsage`, in order. */
  readonly usages: readonly ReportedUsage[];
}

/**
 * The context of a call: call 1 of step 1, a virtual runtime, a signal that never aborts.
 *
 * @param parts - What is to be different. `progress`, `forward` and `recordUsage` of your own keep nothing.
 */
export function toolContext(parts: Partial<ToolContext> = {}): TestToolContext {
  const updates: ToolUpdate[] = [];
  const forwarded: ChildEvent[] = [];
  const usages: ReportedUsage[] = [];
  return {
    turnId: 'turn_1',
    step: 1,
    toolCallId: 'call_1',
    idempotencyKey: `${parts.turnId ?? 'turn_1'}.${parts.toolCallId ?? 'call_1'}`,
    inputText: '{}',
    signal: new AbortController().signal,
    progress: (update) => {
      updates.push(update);
    },
    llm: scriptedLLM([]),
    host: undefined,
    runtime: virtualRuntime(),
    forward: (event) => {
      forwarded.push(event);
    },
    recordUsage: async (usage, modelId) => {
      usages.push({ usage, modelId });
    },
    ...parts,
    updates,
    forwarded,
    usages,
  };
}
