/**
 * Handoff: tools by which the model gives the conversation to another agent, and hooks that hold for one agent only.
 *
 * - A handoff takes effect with the next step: the step that asked for it ends under the agent that began it.
 * - It is recorded before the model hears of it: a resume finds the agent that has the conversation.
 */
import type { Hook } from '../core/hooks.ts';
import { defineTool, type AnyTool, type ToolContext } from '../core/tool.ts';

/** An agent that the conversation may go to. */
export interface HandoffTarget {
  readonly name: string;
  readonly description?: string | undefined;
}

/** Stands before the agent's name in that of the tool. */
const PREFIX = 'transfer_to_';

/** The tool that hands over to an agent. @param handOver - Records it; resolves once it is durable. */
export function handoffTool(target: HandoffTarget, handOver: (target: HandoffTarget, context: ToolContext) => Promise<void>): AnyTool {
  const { name, description } = target;
  return defineTool({
    // Adapters bring names into the form that their servers take, and keep two of them apart.
    name: PREFIX + name,
    description: `Hands the conversation over to the agent "${name}", which goes on in your place.${description === undefined ? '' : ` ${description}`}`,
    input: { type: 'object', properties: { reason: { type: 'string', description: 'Why, in one sentence.' } } },
    replay: 'idempotent',
    describe: () => `Hand the conversation over to ${name}.`,
    execute: async (_input, context) => {
      await handOver(target, context);
      return `The conversation is now with the agent "${name}".`;
    },
  });
}

/** When a hook of one of several agents is asked. */
export interface HookTimes {
  /** Whether the agent has the step that runs. */
  readonly hasStep: () => boolean;
  /** Whether the agent will have the step that is about to begin. */
  readonly hasNextStep: () => boolean;
}

/** A hook that is asked only about steps of its own agent. */
export function onlyFor(hook: Hook, { hasStep, hasNextStep }: HookTimes): Hook {
  return {
    name: hook.name,
    ...(hook.beforeStep !== undefined && { beforeStep: (context) => (hasNextStep() ? hook.beforeStep?.(context) : undefined) }),
    ...(hook.prepareToolCall !== undefined && {
      prepareToolCall: (context, call) => (hasStep() ? hook.prepareToolCall?.(context, call) : undefined),
    }),
    ...(hook.authorizeToolCall !== undefined && {
      authorizeToolCall: (context, call) => (hasStep() ? hook.authorizeToolCall?.(context, call) : undefined),
    }),
    ...(hook.finalizeToolResult !== undefined && {
      finalizeToolResult: (context, call, result) => (hasStep() ? hook.finalizeToolResult?.(context, call, result) : undefined),
    }),
    ...(hook.finalizeProgress !== undefined && {
      finalizeProgress: (call, update) => (hasStep() ? hook.finalizeProgress?.(call, update) : undefined),
    }),
    ...(hook.afterStep !== undefined && { afterStep: (context, step) => (hasStep() ? hook.afterStep?.(context, step) : undefined) }),
    ...(hook.shouldContinueAfterStop !== undefined && {
      shouldContinueAfterStop: (context, stop) => (hasStep() ? hook.shouldContinueAfterStop?.(context, stop) : undefined),
    }),
  };
}
