/**
 * Turn view: a session read back turn by turn. One pure reducer, used while the events arrive and after a reload alike.
 *
 * - V1 For every turn that has ended, the events that were watched and the recorded ones alone give the same view, but for
 *   what stands under `live`.
 * - V2 Work per event does not grow with the turns or the steps before it, nor with the length of a text: what an event
 *   does not change is shared with the view before. Beginning a step copies references to the steps of its turn.
 * - V3 Views are never changed. An event that is unknown, was seen before, or belongs to nothing that is shown gives the
 *   same view again.
 * - V4 A beginning that nobody saw is made up: whoever starts to watch late, or is forwarded only some events of a
 *   sub-agent, sees what comes from then on.
 */
import type { CompactionEvent, LoopEvent, MessageEvent, StepBeginEvent, TurnBeginEvent, TurnEndEvent, TurnInterruptedEvent, TurnResumeEvent, TurnSuspendEvent, UsageEvent } from '../core/events.ts';
import { addUsage, NO_USAGE } from '../core/usage.ts';
import type { SessionEvent } from '../sessions/session-store.ts';
import { changeCall, closeStep, hasCall, isWhole, openStep, reduceStep, resumeStep, seenRunning, type ShownStepEvent, spendOnStep, suspendStep } from './turn-view-step.ts';
import type { CompactionView, StepView, TurnsView, TurnView } from './turn-view-types.ts';

const EMPTY: TurnsView = Object.freeze({ ended: Object.freeze([]), open: Object.freeze([]), compactions: Object.freeze([]) });

/** The view of a session without events. */
export function emptyTurnsView(): TurnsView {
  return EMPTY;
}

/**
 * The view after one more event, recorded or live, of the session itself or of its sub-agents. Pure: the view before is
 * left as it is, and shares what has not changed with the new one.
 *
 * What streams is taken back by `step.retrying` and replaced by what is recorded of it. Events of sub-agents are shown
 * below the call that runs them, under `live`, since the session's record does not have them.
 *
 * @param view - The view before.
 * @param event - The event; of an unknown type, or of a turn that has ended, it changes nothing.
 *
 * @example
 * ```ts
 * let view = turnsView(transcript.events);
 * const dispatchEvent = createEventDispatcher({
 *   record: transcript.record,
 *   emit: (event) => {
 *     view = reduceTurnsView(view, event);
 *   },
 * });
 * ```
 */
export function reduceTurnsView(view: TurnsView, event: LoopEvent | SessionEvent): TurnsView {
  // They are about the session, and show up in a turn by what comes of them.
  if (event.type === 'input.queued' || event.type === 'input.removed' || event.type === 'handoff') return view;
  const isOwnBegin = event.type === 'turn.begin' && pathOf(event).length === 0;
  return reduceAt(isOwnBegin ? abandonOthers(view, event) : view, event, 0);
}

/** The view of a session's events, oldest first. */
export function turnsView(events: Iterable<LoopEvent | SessionEvent>): TurnsView {
  let view = EMPTY;
  for (const event of events) view = reduceTurnsView(view, event);
  return view;
}

/** All turns of a view: those that are over, oldest first, then those that are open. */
export function turnsOf({ ended, open }: TurnsView): readonly TurnView[] {
  return open.length === 0 ? ended : [...ended, ...open];
}

/** All steps of a turn, oldest first. */
export function stepsOf({ steps, step }: TurnView): readonly StepView[] {
  return step === undefined ? steps : [...steps, step];
}

const NO_PATH: readonly string[] = [];

function pathOf(event: LoopEvent): readonly string[] {
  return ('agentPath' in event ? event.agentPath : undefined) ?? NO_PATH;
}

/** A session has one turn at a time: one that is still open was given up without a word. */
function abandonOthers(view: TurnsView, { turnId }: TurnBeginEvent): TurnsView {
  const others = view.open.filter((turn) => turn.turnId !== turnId);
  if (others.length === 0) return view;
  const given = others.map((turn): TurnView => ({ ...closeTurn(turn), state: 'abandoned' }));
  return { ...view, ended: [...view.ended, ...given], open: view.open.filter((turn) => turn.turnId === turnId) };
}

/** @param depth - How many calls of the event's `agentPath` lead to this view. */
function reduceAt(view: TurnsView, event: LoopEvent, depth: number): TurnsView {
  const toolCallId = pathOf(event)[depth];
  if (toolCallId !== undefined) return reduceBelow(view, event, { toolCallId, depth });
  const index = view.open.findIndex((turn) => turn.turnId === event.turnId);
  const known = view.open[index];
  const turn = known ?? madeUp(view, event);
  if (turn === undefined) return event.type === 'compaction' ? { ...view, compactions: [...view.compactions, compactionView(event)] } : view;
  const changed = reduceTurn(turn, event);
  if (changed === known) return view;
  if (changed.state === 'ended') return { ...view, ended: [...view.ended, changed], open: view.open.filter((one) => one !== known) };
  return { ...view, open: known === undefined ? [...view.open, changed] : view.open.with(index, changed) };
}

/** An event of a sub-agent: it goes to the call that runs it. */
function reduceBelow(view: TurnsView, event: LoopEvent, { toolCallId, depth }: { readonly toolCallId: string; readonly depth: number }): TurnsView {
  const index = view.open.findIndex(({ step }) => step !== undefined && hasCall(step, toolCallId));
  const turn = view.open[index];
  if (turn?.step === undefined) return view;
  const step = changeCall(turn.step, toolCallId, (call) => {
    const before = call.live?.agents ?? EMPTY;
    const agents = reduceAt(before, event, depth + 1);
    return agents === before ? call : { ...seenRunning(call), live: { ...call.live, agents } };
  });
  return step === turn.step ? view : { ...view, open: view.open.with(index, { ...turn, step }) };
}

/** A turn that the event is the first to tell of; undefined if it tells of none that is open. */
function madeUp(view: TurnsView, event: LoopEvent): TurnView | undefined {
  if (!('step' in event && 'stepId' in event) && !OPENING.has(event.type)) return undefined;
  if (view.ended.some((turn) => turn.turnId === event.turnId)) return undefined;
  return { turnId: event.turnId, state: 'running', input: [], steps: [], usage: NO_USAGE, compactions: [], pending: [] };
}

const OPENING: ReadonlySet<string> = new Set<LoopEvent['type']>(['turn.begin', 'message', 'turn.suspend', 'turn.resume']);

function reduceTurn(turn: TurnView, event: LoopEvent): TurnView {
  switch (event.type) {
    case 'turn.begin':
      return begin(turn, event);
    case 'message':
      return addMessage(turn, event);
    case 'step.begin':
      return beginStep(turn, event);
    case 'usage':
      return spend(turn, event);
    case 'compaction':
      return { ...turn, compactions: [...turn.compactions, { ...compactionView(event), afterStep: turn.step?.step ?? 0 }] };
    case 'turn.suspend':
      return suspend(turn, event);
    case 'turn.resume':
      return resume(turn, event);
    case 'turn.end':
      return end(turn, event);
    case 'turn.interrupted':
      return interrupt(turn, event);
    case 'notice':
      return turn;
    case 'content.part':
    case 'tool.call':
    case 'tool.start':
    case 'tool.finished':
    case 'tool.result':
    case 'tool.progress':
    case 'step.end':
    case 'step.retrying':
    case 'text.delta':
    case 'thinking.delta':
    case 'tool.call.delta':
      return inStep(turn, event);
    default:
      // An event of a later version.
      event satisfies never;
      return turn;
  }
}

function begin(turn: TurnView, { at, metadata }: TurnBeginEvent): TurnView {
  if (turn.startedAt !== undefined) return turn;
  return { ...turn, startedAt: at, ...(metadata !== undefined && { metadata }) };
}

function addMessage(turn: TurnView, { message }: Pick<MessageEvent, 'message'>): TurnView {
  const { step } = turn;
  if (step === undefined) return { ...turn, input: [...turn.input, message] };
  return { ...turn, step: { ...step, messagesAfter: [...step.messagesAfter, message] } };
}

function beginStep(turn: TurnView, event: StepBeginEvent): TurnView {
  if (turn.step?.stepId === event.stepId) return turn;
  return { ...leaveStep(turn), step: openStep(event, event) };
}

/** Puts the newest step to the others. One of which no reply was recorded whole is asked again, and stands for nothing. */
function leaveStep(turn: TurnView): TurnView {
  const { step, ...rest } = turn;
  if (step === undefined) return turn;
  if (step.state === 'ended' || isWhole(step)) return { ...rest, steps: [...turn.steps, closeStep(step)] };
  const last = turn.steps.at(-1);
  if (last === undefined) return { ...rest, input: [...turn.input, ...step.messagesAfter] };
  return { ...rest, steps: turn.steps.with(-1, { ...last, messagesAfter: [...last.messagesAfter, ...step.messagesAfter] }) };
}

function inStep(turn: TurnView, event: ShownStepEvent): TurnView {
  if (turn.step?.stepId !== event.stepId) {
    // Of a step that is over, or that nobody saw begin.
    if (turn.step !== undefined && event.step < turn.step.step) return turn;
    return { ...leaveStep(turn), step: reduceStep(openStep(event), event) };
  }
  const step = reduceStep(turn.step, event);
  return step === turn.step ? turn : { ...turn, step };
}

function spend(turn: TurnView, { stepId, usage }: UsageEvent): TurnView {
  const { step } = turn;
  const isOfStep = step !== undefined && step.stepId === stepId;
  return { ...turn, usage: addUsage(turn.usage, usage), ...(isOfStep && { step: spendOnStep(step, usage) }) };
}

function suspend(turn: TurnView, { calls }: TurnSuspendEvent): TurnView {
  const { step } = turn;
  const pending = calls.flatMap((call) => call.pending);
  return { ...turn, state: 'suspended', pending, ...(step !== undefined && { step: suspendStep(step, calls) }) };
}

function resume(turn: TurnView, { decisions }: TurnResumeEvent): TurnView {
  const { live: _live, ...rest } = turn;
  if (turn.step === undefined) return { ...rest, state: 'running', pending: [] };
  const step = resumeStep(turn.step, new Set(decisions.map(({ toolCallId }) => toolCallId)));
  const pending = step.items.flatMap((item) => (item.type === 'tool_call' ? (item.pending ?? []) : []));
  return { ...rest, state: 'running', pending, step };
}

function interrupt(turn: TurnView, { stopReason, error }: TurnInterruptedEvent): TurnView {
  return { ...turn, live: { interrupted: { stopReason, ...(error !== undefined && { error }) } } };
}

function end(turn: TurnView, { at, stopReason, stoppedBy, stopMessage, error }: TurnEndEvent): TurnView {
  return {
    ...closeTurn(turn),
    state: 'ended',
    endedAt: at,
    stopReason,
    ...(stoppedBy !== undefined && { stoppedBy }),
    ...(stopMessage !== undefined && { stopMessage }),
    ...(error !== undefined && { error }),
  };
}

/** A turn without a newest step: all of them are over. */
function closeTurn(turn: TurnView): TurnView {
  const { step, live: _live, ...rest } = turn;
  return { ...rest, steps: step === undefined ? turn.steps : [...turn.steps, closeStep(step)], pending: [] };
}

function compactionView({ layer, at, tokensBefore, tokensAfter }: CompactionEvent): CompactionView {
  return { layer, at, tokensBefore, tokensAfter };
}
