/**
 * Loop guard history: the calls that a turn has made already, out of its messages, for a turn that is gone on with.
 *
 * - Never reaches into a turn before: neither behind what a person said, nor over more replies than the turn has steps.
 * - What a compaction took out of the history is not there to be counted: counts may begin later, never earlier.
 */
import type { AssistantMessage, Message, ToolCallPart, ToolMessage } from '../core/message.ts';

/** The calls of a step that is over, with what they gave. */
export interface PastStep {
  /** In provider order. */
  readonly calls: readonly ToolCallPart[];
  /** By the id of the call. */
  readonly results: ReadonlyMap<string, ToolMessage>;
}

/** Where to look. */
export interface PastRange {
  /** Steps that came before, at most. */
  readonly steps: number;
  /** Ids of calls of the step that runs: it is not over. */
  readonly running: readonly string[];
}

/** The steps of a turn that are over, oldest first. */
export function pastSteps(messages: readonly Message[], { steps, running }: PastRange): readonly PastStep[] {
  const now = new Set(running);
  const isRunning = (message: Message): boolean => message.role === 'assistant' && callsOf(message).some(({ id }) => now.has(id));
  const own = messages.findLastIndex(isRunning);
  const past: PastStep[] = [];
  let results = new Map<string, ToolMessage>();
  for (let index = (own === -1 ? messages.length : own) - 1, replies = 0; index >= 0 && replies < steps; index -= 1) {
    const message = messages[index];
    if (message === undefined || (message.role === 'user' && message.origin === 'user')) break;
    if (message.role === 'tool') results.set(message.toolCallId, message);
    if (message.role !== 'assistant') continue;
    replies += 1;
    past.push({ calls: callsOf(message), results });
    results = new Map();
  }
  return past.reverse();
}

function callsOf(message: AssistantMessage): readonly ToolCallPart[] {
  return message.content.filter((part) => part.type === 'tool_call');
}
