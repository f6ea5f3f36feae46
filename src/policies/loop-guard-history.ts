/**
 * Loop guard history: the calls that a turn has made already, out of its messages, for a turn that is gone on with.
 *
 * - Never reaches into a turn before: neither over more replies than the turn has steps, nor, where some of them are
 *   missing, behind what a person said.
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
  const over = own === -1 ? messages : messages.slice(0, own);
  const past: (readonly ToolCallPart[])[] = [];
  const results = new Map<string, ToolMessage>();
  for (const message of over.slice(beginOf(over, steps))) {
    if (message.role === 'tool') results.set(message.toolCallId, message);
    if (message.role === 'assistant') past.push(callsOf(message));
  }
  return { steps: past, results };
}

/** Where the first reply of the turn stands, or of what is left of it. */
function beginOf(messages: readonly Message[], steps: number): number {
  const replies = messages.flatMap((message, index) => (message.role === 'assistant' ? [index] : []));
  const first = replies.at(-steps) ?? 0;
  // Hooks go on with a turn by messages that may look like a person's: as long as all its replies are there, they are
  // counted. That they are is seen by the input, which stands before the first.
  if (messages[first - 1]?.role === 'user') return first;
  const said = messages.findLastIndex((message) => message.role === 'user' && message.origin === 'user');
  return Math.max(first, said + 1);
}

function callsOf(message: AssistantMessage): readonly ToolCallPart[] {
  return message.content.filter((part) => part.type === 'tool_call');
}
