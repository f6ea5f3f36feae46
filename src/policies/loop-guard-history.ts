/**
 * Loop guard history: the calls that a turn has made already, out of its messages, for a turn that is gone on with.
 *
 * - Never reaches into a turn before: neither behind what a person said, nor over more replies than the turn has steps.
 * - What a compaction took out of the history is not there to be counted: counts may begin later, never earlier.
 */
import type { AssistantMessage, Message, ToolCallPart, ToolMessage } from '../core/message.ts';

/** What a turn has done so far. */
export interface PastSteps {
  /** The calls of each step, in provider order; oldest step first. */
  readonly steps: readonly (readonly ToolCallPart[])[];
  /** What they gave, by the id of the call. */
  readonly results: ReadonlyMap<string, ToolMessage>;
}

/** Where to look. */
export interface PastRange {
  /** Steps that came before, at most. */
  readonly steps: number;
  /** Ids of calls of the step that runs: it is not over. */
  readonly running: readonly string[];
}

/** The steps of a turn that are over. */
export function pastSteps(messages: readonly Message[], { steps, running }: PastRange): PastSteps {
  const now = new Set(running);
  const isRunning = (message: Message): boolean => message.role === 'assistant' && callsOf(message).some(({ id }) => now.has(id));
  const own = messages.findLastIndex(isRunning);
  const past: (readonly ToolCallPart[])[] = [];
  const results = new Map<string, ToolMessage>();
  for (const message of messages.slice(0, own === -1 ? messages.length : own).reverse()) {
    if (past.length === steps || (message.role === 'user' && message.origin === 'user')) break;
    if (message.role === 'tool') results.set(message.toolCallId, message);
    if (message.role === 'assistant') past.push(callsOf(message));
  }
  return { steps: past.reverse(), results };
}

function callsOf(message: AssistantMessage): readonly ToolCallPart[] {
  return message.content.filter((part) => part.type === 'tool_call');
}
