/**
 * Sub-agent run: one sub-agent from its prompt, or from where it was, to the result of the call that dispatched it.
 *
 * - R1 Its transcript is its own: it sees the prompt and nothing of the caller's conversation; the caller's model sees the
 *   result and nothing else. Nothing of it is kept when the call is over.
 * - R2 Tokens are recorded with the caller before they are recorded here, event by event: whatever stops it, and however often
 *   it is gone on with, each is counted there once.
 * - R3 Its signal is the call's: an abort of the caller, a cancel of the call and their reasons reach it as they are.
 */
import { closeOpenTurn, runTurn } from '../core/run-turn.ts';
import { createEventDispatcher } from '../core/event-dispatcher.ts';
import type { DispatchEvent, LoopEvent } from '../core/events.ts';
import type { Hook } from '../core/hooks.ts';
import { decorateLLM, type LLM } from '../core/llm.ts';
import { textOf, userMessage, type Message } from '../core/message.ts';
import { suspend, type AnyTool, type ToolContext, type ToolReturn } from '../core/tool.ts';
import { maxSteps } from '../policies/max-steps.ts';
import type { DispatchAgentInput, DispatchSettings, SubAgentKind } from './dispatch-agent-options.ts';
import { openRecord, type SubAgentRecord } from './sub-agent-record.ts';
import { endOfTurn, subAgentResult } from './sub-agent-result.ts';

/** A sub-agent to run. */
export interface SubAgentTask {
  readonly settings: DispatchSettings;
  readonly kind: SubAgentKind;
  /** Its tools: those of its kind, and the way to sub-agents of its own where it has one. */
  readonly tools: readonly AnyTool[];
  /** How long it may take to settle once it is aborted, in milliseconds. */
  readonly graceMs: number;
  readonly input: DispatchAgentInput;
  /** The call that dispatched it. */
  readonly context: ToolContext;
}

/** Runs a sub-agent. @throws The signal's reason if it was aborted; `TurnloopError` if its record cannot be read */
export async function runSubAgent(task: SubAgentTask): Promise<ToolReturn> {
  const record = await openRecord(task.context, task.settings.openLog);
  try {
    return await goOn(task, record);
  } finally {
    await record.close();
  }
}

async function goOn(task: SubAgentTask, record: SubAgentRecord): Promise<ToolReturn> {
  const { settings, kind, tools, graceMs, input, context } = task;
  const { transcript, open, ended, decisions } = record;
  const { maxResultCharacters } = settings;
  if (ended !== undefined) return subAgentResult(ended, maxResultCharacters);
  const dispatchEvent = dispatcherOf(task, record);
  const own = decisions.find(({ toolCallId }) => toolCallId === context.toolCallId);
  if (own?.action === 'deny' || own?.action === 'answer') {
    await closeOpenTurn(transcript, { dispatchEvent, runtime: context.runtime });
    return own.action === 'answer' ? own.result : { content: own.reason ?? 'The user stopped this sub-agent.', isError: true };
  }
  const { hooks = [], stopWhen = [], recoveries, request, deadlineMs, minAnswerCharacters } = settings;
  const result = await runTurn({
    llm: modelOf(kind, context),
    buildMessages: transcript.buildMessages,
    dispatchEvent,
    // A turn that is gone on with takes only what it had not recorded of it.
    input: input.prompt,
    tools,
    hooks: [...hooks, askForAnswer(minAnswerCharacters)],
    stopWhen: [maxSteps(kind.maxSteps), ...(typeof stopWhen === 'function' ? [stopWhen] : stopWhen)],
    recoveries,
    request,
    signal: context.signal,
    deadlineMs,
    graceMs,
    runtime: context.runtime,
    host: context.host,
    ...(open !== undefined && { resume: { turn: open, decisions } }),
  });
  if (result.stopReason === 'suspended') return suspend({ pending: result.pending ?? [], state: record.state() });
  // The loop knows in which words an aborted call ends.
  if (result.stopReason === 'aborted') context.signal.throwIfAborted();
  return subAgentResult(endOfTurn(result), maxResultCharacters);
}

/** The model of a sub-agent, told what its kind is told. */
function modelOf({ llm, systemPrompt }: SubAgentKind, context: ToolContext): LLM {
  const model = llm ?? context.llm;
  if (systemPrompt === undefined) return model;
  return Object.defineProperty(decorateLLM(model, (request) => model.chat(request)), 'systemPrompt', { value: systemPrompt });
}

const TOOL_EVENTS: ReadonlySet<string> = new Set<LoopEvent['type']>([
  'tool.call',
  'tool.start',
  'tool.progress',
  'tool.finished',
  'tool.result',
  'usage',
  'notice',
]);

/** The way of a sub-agent's events: into its record, and live to the caller. */
function dispatcherOf({ settings, context }: SubAgentTask, record: SubAgentRecord): DispatchEvent {
  return createEventDispatcher({
    record: (event) => {
      if (event.type !== 'usage') return record.write(event);
      return context.recordUsage(event.usage, event.modelId).then(() => record.write(event));
    },
    emit: (event) => {
      if (settings.forward === 'all' || TOOL_EVENTS.has(event.type)) context.forward(event);
    },
  });
}

const ASK_FOR_ANSWER =
  'Your last message is all that whoever gave you this task will see. Write your whole answer now: what you found and what you ' +
  'did. If your last message was the whole answer, repeat it.';

/** Asks once about an answer that is too short to be one. */
function askForAnswer(minCharacters: number): Hook {
  return {
    name: 'subAgent.askForAnswer',
    shouldContinueAfterStop: async (context, { stopReason, limit }) => {
      if (stopReason !== 'end_turn' || limit) return undefined;
      const history = await context.messages();
      if (lastText(history).trim().length >= minCharacters) return undefined;
      const hasAsked = history.some((message) => message.role === 'user' && textOf(message) === ASK_FOR_ANSWER);
      return hasAsked ? undefined : userMessage(ASK_FOR_ANSWER, { origin: 'reminder' });
    },
  };
}

/** Text of the last reply, if nothing stands behind it; a reply without any is not in the history. */
function lastText(history: readonly Message[]): string {
  const last = history.at(-1);
  return last?.role === 'assistant' ? textOf(last) : '';
}
