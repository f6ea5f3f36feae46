/**
 * Turn view, one step: what an event of a step changes in what is shown of it.
 *
 * - Recorded parts stand first, in their order; behind them what has streamed and is not recorded yet. The part of a kind
 *   takes the place of the first streamed item of that kind, so that nothing is shown twice and nothing flickers.
 * - A reply that is not recorded whole when its step is over is void: the history does not have it either.
 * - Texts grow by concatenation, which engines do without copying what is there.
 */
import type {
  ContentPartEvent,
  LoopEvent,
  StepBeginEvent,
  StepEndEvent,
  StepEvent,
  StepRetryingEvent,
  SuspendedCall,
  TextDeltaEvent,
  ThinkingDeltaEvent,
  ToolCallDeltaEvent,
  ToolCallEvent,
  ToolFinishedEvent,
  ToolProgressEvent,
  ToolResultEvent,
} from '../core/events.ts';
import { addUsage, NO_USAGE, type Usage } from '../core/usage.ts';
import type { ToolUpdate } from '../core/tool.ts';
import type { ProgressView, StepItem, StepView, ToolCallItem } from './turn-view-types.ts';

/** Events that belong to a step and change what is shown of it. */
export type ShownStepEvent = Extract<
  LoopEvent,
  {
    readonly type:
      | 'content.part'
      | 'tool.call'
      | 'tool.start'
      | 'tool.finished'
      | 'tool.result'
      | 'tool.progress'
      | 'step.end'
      | 'step.retrying'
      | 'text.delta'
      | 'thinking.delta'
      | 'tool.call.delta';
  }
>;

/** A step that begins, or one whose beginning nobody saw. */
export function openStep({ step, stepId }: StepEvent, begin?: StepBeginEvent): StepView {
  return {
    step,
    stepId,
    state: 'asking',
    ...(begin !== undefined && { startedAt: begin.at }),
    items: [],
    usage: NO_USAGE,
    messagesAfter: [],
  };
}

/** The step after one of its events. */
export function reduceStep(step: StepView, event: ShownStepEvent): StepView {
  switch (event.type) {
    case 'text.delta':
    case 'thinking.delta':
      return addText(step, event);
    case 'tool.call.delta':
      return addCallText(step, event);
    case 'step.retrying':
      return retry(step, event);
    case 'content.part':
      return addPart(step, event, partItem(event));
    case 'tool.call':
      return addPart(step, event, callItem(event));
    case 'tool.start': {
      const { at, input, toolCallId } = event;
      return changeCall(step, toolCallId, (call) => ({ ...call, state: 'running', startedAt: at, ...(input !== undefined && { input }) }));
    }
    case 'tool.progress':
      return changeCall(step, event.toolCallId, (call) => addProgress(call, event));
    case 'tool.finished':
      return changeCall(step, event.toolCallId, (call) => ({ ...finish(call, event), finishedAt: event.at }));
    case 'tool.result':
      // What `tool.finished` told stands: a store may leave the body to it.
      return changeCall(step, event.toolCallId, (call) => (call.result === undefined ? finish(call, event) : call));
    case 'step.end':
      return endStep(step, event);
    default:
      event satisfies never;
      return step;
  }
}

/** The step with tokens added. */
export function spendOnStep(step: StepView, usage: Usage): StepView {
  return { ...step, usage: addUsage(step.usage, usage) };
}

/** True if every part of the reply is recorded. */
export function isWhole({ reply }: StepView): boolean {
  return reply !== undefined && reply.received === reply.count;
}

/** A step whose turn is over, or gone on with elsewhere: nothing of it streams any more, and a reply that is not whole is void. */
export function closeStep(step: StepView): StepView {
  if (step.state === 'ended') return step;
  const { reply: _reply, ...rest } = step;
  return isWhole(step) ? { ...step, items: step.items.filter(isRecorded), state: 'interrupted' } : { ...rest, items: [], state: 'interrupted' };
}

/** The step with one of its calls changed; itself if it has no such call. */
export function changeCall(step: StepView, toolCallId: string, change: (call: ToolCallItem) => ToolCallItem): StepView {
  const index = indexOfCall(step, toolCallId);
  const call = step.items[index];
  if (call?.type !== 'tool_call') return step;
  const changed = change(call);
  return changed === call ? step : { ...step, items: step.items.with(index, changed) };
}

/** True if it is a call of the step. */
export function hasCall(step: StepView, toolCallId: string): boolean {
  return indexOfCall(step, toolCallId) !== -1;
}

/** A call that does something, as progress and sub-agents show: tools that change nothing have no recorded start. */
export function seenRunning(call: ToolCallItem): ToolCallItem {
  return call.state === 'waiting' ? { ...call, state: 'running' } : call;
}

/** The step of a turn that waits for decisions about these calls. */
export function suspendStep(step: StepView, suspended: readonly SuspendedCall[]): StepView {
  const byId = new Map(suspended.map((call) => [call.toolCallId, call]));
  return changeOpenCalls(step, (call) => {
    const pending = byId.get(call.toolCallId)?.pending;
    return pending === undefined ? call : { ...call, state: 'pending-approval', pending };
  });
}

/** The step of a turn that goes on: calls that were decided about, or that ran when the process stopped, have yet to run. */
export function resumeStep(step: StepView, decided: ReadonlySet<string>): StepView {
  return changeOpenCalls(isWhole(step) ? step : { ...step, items: step.items.filter(isRecorded) }, (call) => {
    const { pending, ...rest } = call;
    const isDecided = pending === undefined || [call, ...pending].some(({ toolCallId }) => decided.has(toolCallId));
    return isDecided ? { ...rest, state: 'waiting' } : call;
  });
}

function changeOpenCalls(step: StepView, change: (call: ToolCallItem) => ToolCallItem): StepView {
  const isOpen = (item: StepItem): item is ToolCallItem => item.type === 'tool_call' && item.result === undefined && isRecorded(item);
  return { ...step, items: step.items.map((item) => (isOpen(item) ? change(item) : item)) };
}

function indexOfCall({ items }: StepView, toolCallId: string): number {
  return items.findLastIndex((item) => item.type === 'tool_call' && item.toolCallId === toolCallId);
}

function isRecorded(item: StepItem): boolean {
  return item.streaming !== true;
}

function addText(step: StepView, { type, text }: TextDeltaEvent | ThinkingDeltaEvent): StepView {
  if (step.state !== 'asking') return step;
  const kind = type === 'text.delta' ? 'text' : 'thinking';
  const last = step.items.at(-1);
  const items =
    last?.type === kind && last.streaming === true
      ? step.items.with(-1, { ...last, text: last.text + text })
      : [...step.items, { type: kind, text, streaming: true } as const];
  return { ...step, items };
}

function addCallText(step: StepView, { toolCallId, name, inputText }: ToolCallDeltaEvent): StepView {
  if (step.state !== 'asking') return step;
  if (hasCall(step, toolCallId)) {
    return changeCall(step, toolCallId, (call) => (isRecorded(call) ? call : { ...call, inputText: call.inputText + inputText }));
  }
  const call: ToolCallItem = { type: 'tool_call', toolCallId, name: name ?? '', inputText, state: 'streaming', streaming: true };
  return { ...step, items: [...step.items, call] };
}

function retry(step: StepView, event: StepRetryingEvent): StepView {
  return { ...step, items: step.items.filter(isRecorded), live: { retries: [...(step.live?.retries ?? []), event] } };
}

function addPart(step: StepView, event: ContentPartEvent | ToolCallEvent, item: StepItem): StepView {
  const { index, count } = event;
  const received = step.reply?.received ?? 0;
  // A part that was handed out before; or one before it is lost, and the reply will never be whole.
  if (index !== received) return step;
  const isLast = received + 1 === count;
  const streamed = isLast ? [] : without(step.items.slice(received), item);
  const { source = step.reply?.source, interrupted = step.reply?.interrupted } = event.reply ?? {};
  return {
    ...step,
    state: isLast ? 'working' : 'asking',
    items: [...step.items.slice(0, received), item, ...streamed],
    reply: { received: received + 1, count, ...(source !== undefined && { source }), ...(interrupted !== undefined && { interrupted }) },
  };
}

/** What has streamed, without what is recorded now. */
function without(streamed: readonly StepItem[], recorded: StepItem): readonly StepItem[] {
  const index = streamed.findIndex((item) =>
    recorded.type === 'tool_call' ? item.type === 'tool_call' && item.toolCallId === recorded.toolCallId : item.type === recorded.type,
  );
  return index === -1 ? streamed : streamed.toSpliced(index, 1);
}

function partItem({ part }: ContentPartEvent): StepItem {
  return part.type === 'text' || part.type === 'thinking' ? { type: part.type, text: part.text } : { type: 'part', part };
}

function callItem({ toolCallId, name, inputText, input, description, sameAs }: ToolCallEvent): ToolCallItem {
  return {
    type: 'tool_call',
    toolCallId,
    name,
    inputText,
    ...(input !== undefined && { input }),
    ...(description !== undefined && { description }),
    ...(sameAs !== undefined && { sameAs }),
    state: 'waiting',
  };
}

function addProgress(call: ToolCallItem, { update }: ToolProgressEvent): ToolCallItem {
  if (call.result !== undefined) return call;
  const known = call.live?.progress ?? { output: '' };
  return { ...seenRunning(call), live: { ...call.live, progress: withUpdate(known, update) } };
}

function withUpdate(known: ProgressView, update: ToolUpdate): ProgressView {
  const isOutput = update.kind === 'stdout' || update.kind === 'stderr';
  return isOutput ? { ...known, output: known.output + update.text } : { ...known, update };
}

function finish(call: ToolCallItem, { result }: ToolFinishedEvent | ToolResultEvent): ToolCallItem {
  const { pending: _pending, live, ...rest } = call;
  const agents = live?.agents;
  return { ...rest, state: result.isError === true ? 'failed' : 'finished', result, ...(agents !== undefined && { live: { agents } }) };
}

function endStep(step: StepView, { at, modelId, stopReason, timing }: StepEndEvent): StepView {
  return {
    ...step,
    state: 'ended',
    endedAt: at,
    items: step.items.filter(isRecorded),
    modelId,
    stopReason,
    ...(timing !== undefined && { timing }),
  };
}
