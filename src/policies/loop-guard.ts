/**
 * Loop guard: a model that makes the same calls again and again is told so, then stopped.
 *
 * - Calls are known by what the model wrote, never by what hooks make of it; the order of keys says nothing.
 * - A call counts once, when its step is over, however it ended: rejected, denied and failed ones too.
 * - What is kept for a turn does not grow with it, and no two turns share it.
 */
import type { Hook, HookContext } from '../core/hooks.ts';
import { writtenCallKey, writtenInput, type WrittenCall } from './call-key.ts';
import { pastSteps } from './loop-guard-history.ts';
import { LOOP_GUARD, resolveLoopGuard, type LoopGuardOptions } from './loop-guard-options.ts';
import { count, outcomeOf, pastOutcome, recordedOutcome, refusalOf, repeatOf, StepBuilder, type StepCall } from './loop-guard-step.ts';
import { refusalText, reminderText, stopText, withReminder } from './loop-guard-texts.ts';
import { mostRepeated, REFUSED, RepeatCounter, type Repeat } from './repeat-counter.ts';

/**
 * Hook that ends runaways. The same call again, step after step, is reminded of it at 3, 5 and 8 times; the 12th is
 * refused, and the turn ends `stopped` by `loopGuard`. So does a cycle of up to three calls that comes round again with
 * equal arguments and equal results. The same call twice in one step runs once: the second gets the result of the first,
 * also if another call between them writes what both read. A tool that is to run each time is named in `ignore`.
 *
 * Equal are calls of one tool with equal JSON, whatever the order of keys; a text that is no JSON equals only itself; calls
 * of a tool that does not exist are equal whatever their arguments, as long as they fail with equal words. Any other call in
 * between begins the count anew. A reminder is a `note` of the result: the model reads it behind the content, people do not
 * see it, and neither a failure nor a success is changed by it.
 *
 * The same call in a row runs at most 11 times. So does a call of a cycle, unless others stand before it in the step that
 * would be refused it: what they give is not known then, so it runs, and the turn ends behind the step if the cycle is
 * complete. Nothing is refused on a guess: whatever is refused ends the turn.
 *
 * Put it first: hooks that shorten results keep the note. Results are compared as they are recorded, so what such hooks make
 * of equal results should be equal: a store that names each text anew hides a cycle. One hook serves many turns and agents
 * at once, and each turn counts for itself. A turn that is resumed counts on from its messages; what a compaction took out
 * of them is not counted, and where a hook shortens results the first round of a cycle may miss its reminder.
 *
 * Notices: `loopGuard.reminder` `{tool, toolCallId, count, period, level}` (level 1, 2 or 3), `loopGuard.stopped` `{tool,
 * toolCallId, count, period}`, `loopGuard.ignoreFailed` `{tool, message}`.
 *
 * @param options - When to remind and to stop, and what is let through.
 * @throws TypeError for an option that does not exist, makes no sense or contradicts another.
 *
 * @example
 * ```ts
 * await runTurn({ llm, tools, dispatchEvent, buildMessages, hooks: [loopGuard({ ignore: ['get_status'] })] });
 * ```
 */
export function loopGuard(options: LoopGuardOptions = {}): Hook {
  const guard = resolveLoopGuard(options);
  const { stopAt, maxCycle, levelOf, isIgnored } = guard;
  /** By what a turn has of its own: with the turn its counts are gone. */
  const turns = new WeakMap<AbortSignal, Promise<TurnCounts>>();

  /** Counts of a turn; one that is gone on with begins with what its messages tell. */
  function countsOf(context: HookContext, running: readonly WrittenStepCall[]): Promise<TurnCounts> {
    const known = turns.get(context.signal);
    if (known !== undefined) return known;
    const counts = begin(context, running);
    turns.set(context.signal, counts);
    counts.catch(() => turns.delete(context.signal));
    return counts;
  }

  async function begin(context: HookContext, running: readonly WrittenStepCall[]): Promise<TurnCounts> {
    const counter = new RepeatCounter(maxCycle);
    if (context.step === 1) return { counter, plan: undefined };
    const ids = running.map(({ toolCallId }) => toolCallId);
    const { steps, results } = pastSteps(await context.messages(), { steps: context.step - 1, running: ids });
    for (const calls of steps) {
      const written = calls.map(({ id, name, inputText }) => ({ toolCallId: id, name, inputText }));
      for (const [toolCallId, planned] of planStep(context, written, counter.fork())) {
        if (planned?.toolCallId !== toolCallId) continue;
        const result = results.get(toolCallId);
        planned.call.outcome = result && pastOutcome(result, planned, guard);
        count(planned, counter);
      }
    }
    return { counter, plan: undefined };
  }

  /** What each call of a step is to the guard; undefined for those that it does not see. */
  function planStep(context: HookContext, calls: readonly WrittenStepCall[], counter: RepeatCounter): StepPlan {
    const plan = new Map<string, StepCall | undefined>();
    const step = new StepBuilder(counter);
    for (const written of calls) {
      const { toolCallId, name } = written;
      const input = writtenInput(written);
      const isKnown = context.tools.some((tool) => tool.name === name);
      const next = { toolCallId, key: writtenCallKey(written, input), missingTool: isKnown ? undefined : name };
      plan.set(toolCallId, isIgnored(context, { name, input }) ? undefined : step.add(next));
    }
    return plan;
  }

  async function planOf(context: HookContext, calls: readonly WrittenStepCall[]): Promise<StepPlan> {
    const counts = await countsOf(context, calls);
    counts.plan ??= planStep(context, calls, counts.counter.fork());
    return counts.plan;
  }

  return {
    name: LOOP_GUARD,
    prepareToolCall: async (context, call) => {
      const planned = (await planOf(context, call.siblings)).get(call.toolCallId);
      if (planned === undefined) return undefined;
      // What does not exist is answered at once, each for itself: there is nothing to save.
      if (planned.toolCallId !== call.toolCallId) return call.tool && { action: 'same_as', toolCallId: planned.toolCallId };
      const repeat = refusalOf(planned, stopAt);
      if (repeat === undefined) return undefined;
      planned.call.outcome = REFUSED;
      return { action: 'block', reason: refusalText(repeat) };
    },
    finalizeToolResult: async (context, call, result) => {
      const planned = (await planOf(context, call.siblings)).get(call.toolCallId);
      if (planned === undefined || planned.call.outcome === REFUSED) return undefined;
      const isFirst = planned.toolCallId === call.toolCallId;
      const seen = outcomeOf(result);
      if (isFirst) planned.call.seen = seen;
      const repeat = repeatOf(planned, seen);
      const level = repeat && levelOf(repeat.count);
      if (repeat === undefined || level === undefined) return undefined;
      const text = reminderText(level, repeat, stopAt);
      if (isFirst) planned.reminder = text;
      if (isFirst && planned.alike === undefined) tell(context, 'reminder', { tool: call.name, toolCallId: call.toolCallId, repeat, level });
      return withReminder(result, text);
    },
    afterStep: async (context, { results }) => {
      if (results.length === 0) return undefined;
      const plan = await planOf(context, results);
      const counts = await countsOf(context, results);
      counts.plan = undefined;
      let stop: Told | undefined;
      for (const { toolCallId, name, result } of results) {
        const planned = plan.get(toolCallId);
        if (planned?.toolCallId !== toolCallId) continue;
        planned.call.outcome ??= recordedOutcome(result, planned, guard);
        const repeat = mostRepeated(count(planned, counts.counter));
        if (repeat !== undefined && repeat.count >= stopAt) stop ??= { tool: name, toolCallId, repeat };
      }
      if (stop === undefined) return undefined;
      tell(context, 'stopped', stop);
      return { reason: stopText(stop.tool, stop.repeat) };
    },
  };
}

/** What a notice is about. */
interface Told {
  readonly tool: string;
  readonly toolCallId: string;
  readonly repeat: Repeat;
  readonly level?: number;
}

function tell(context: HookContext, what: string, { tool, toolCallId, repeat, level }: Told): void {
  const { count: times, period } = repeat;
  const data = { tool, toolCallId, count: times, period, ...(level !== undefined && { level }) };
  context.notify({ name: `${LOOP_GUARD}.${what}`, data });
}

/** A call of a step, as the model wrote it. */
interface WrittenStepCall extends WrittenCall {
  readonly toolCallId: string;
}

/** What a turn has counted. */
interface TurnCounts {
  /** Over the steps that are over. */
  readonly counter: RepeatCounter;
  /** The step that runs; undefined until the first of its calls is seen. */
  plan: StepPlan | undefined;
}

/** The calls of a step, by their ids: equal ones share what is known of the first of them. */
type StepPlan = ReadonlyMap<string, StepCall | undefined>;
