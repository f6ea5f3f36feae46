/**
 * Loop guard: a model that makes the same calls again and again is told so, then stopped.
 *
 * - Calls are known by what the model wrote, never by what hooks make of it; the order of keys says nothing.
 * - A call counts once, when its step is over, however it ended: rejected, denied and failed ones too.
 * - What is kept for a turn does not grow with it, and no two turns share it.
 */
import type { Hook, HookContext } from '../core/hooks.ts';
import { callKey, writtenCallKey, writtenInput, type WrittenCall } from './call-key.ts';
import { pastSteps } from './loop-guard-history.ts';
import { LOOP_GUARD, resolveLoopGuard, type LoopGuardOptions } from './loop-guard-options.ts';
import { contentOf, refusalText, reminderText, shownContent, stopText, withReminder } from './loop-guard-texts.ts';
import { mayRepeat, mostRepeated, RepeatCounter, type CountedCall, type Repeat } from './repeat-counter.ts';

/**
 * Hook that ends runaways. The same call again, step after step, is reminded of it at 3, 5 and 8 times; the 12th is
 * refused, and the turn ends `stopped` by `loopGuard`. So does a cycle of up to three calls that comes round again with
 * equal arguments and equal results. The same call twice in one step runs once: the second gets the result of the first.
 *
 * Equal are calls of one tool with equal JSON, whatever the order of keys; a text that is no JSON equals only itself; calls
 * of a tool that does not exist are equal whatever their arguments, since the answer is. Any other call in between begins
 * the count anew. A reminder is a `note` of the result: the model reads it behind the content, people do not see it, and
 * neither a failure nor a success is changed by it.
 *
 * Put it first: hooks that shorten results keep the note, and what they make of equal results need not be equal. One hook
 * serves many turns and agents at once, and each turn counts for itself. A turn that is resumed counts on from its
 * messages; what a compaction took out of them is not counted.
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
  const { stopAt, maxCycle, levelOf, isIgnored } = resolveLoopGuard(options);
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
        planned.call.content = result && shownContent(result.content);
        counter.push(planned.call);
      }
    }
    return { counter, plan: undefined };
  }

  /** What each call of a step is to the guard; undefined for those that it does not see. */
  function planStep(context: HookContext, calls: readonly WrittenStepCall[], counter: RepeatCounter): StepPlan {
    const plan = new Map<string, StepCall | undefined>();
    const byKey = new Map<string, StepCall>();
    for (const written of calls) {
      const input = writtenInput(written);
      if (isIgnored(context, { name: written.name, input })) {
        plan.set(written.toolCallId, undefined);
        continue;
      }
      const isKnown = context.tools.some(({ name }) => name === written.name);
      const key = isKnown ? writtenCallKey(written, input) : callKey({ name: written.name });
      let planned = byKey.get(key);
      if (planned === undefined) {
        const call: CountedCall = { key, content: undefined };
        planned = { toolCallId: written.toolCallId, call, repeats: counter.push(call) };
        byKey.set(key, planned);
      }
      plan.set(written.toolCallId, planned);
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
      const repeat = mostRepeated(planned.repeats);
      return repeat === undefined || repeat.count < stopAt ? undefined : { action: 'block', reason: refusalText(repeat) };
    },
    finalizeToolResult: async (context, call, result) => {
      const planned = (await planOf(context, call.siblings)).get(call.toolCallId);
      if (planned === undefined) return undefined;
      const isFirst = planned.toolCallId === call.toolCallId;
      const content = contentOf(result);
      if (isFirst) planned.call.content = content;
      const repeat = mostRepeated(planned.repeats.filter(({ period, before }) => mayRepeat(period, before.content, content)));
      const level = repeat && levelOf(repeat.count);
      if (repeat === undefined || level === undefined) return undefined;
      const { period, count } = repeat;
      if (isFirst) {
        context.notify({ name: `${LOOP_GUARD}.reminder`, data: { tool: call.name, toolCallId: call.toolCallId, count, period, level } });
      }
      return withReminder(result, reminderText(level, repeat, stopAt));
    },
    afterStep: async (context, { results }) => {
      if (results.length === 0) return undefined;
      const plan = await planOf(context, results);
      const counts = await countsOf(context, results);
      counts.plan = undefined;
      let stop: { readonly name: string; readonly toolCallId: string; readonly repeat: Repeat } | undefined;
      for (const { toolCallId, name, result } of results) {
        const planned = plan.get(toolCallId);
        if (planned?.toolCallId !== toolCallId) continue;
        // In a step that is gone on with, a call may have been finished before this process looked.
        planned.call.content ??= contentOf(result);
        const repeat = mostRepeated(counts.counter.push(planned.call));
        if (repeat !== undefined && repeat.count >= stopAt) stop ??= { name, toolCallId, repeat };
      }
      if (stop === undefined) return undefined;
      const { name, toolCallId, repeat } = stop;
      const { count, period } = repeat;
      context.notify({ name: `${LOOP_GUARD}.stopped`, data: { tool: name, toolCallId, count, period } });
      return { reason: stopText(name, repeat) };
    },
  };
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

interface StepCall {
  /** Id of the first of the equal calls. */
  readonly toolCallId: string;
  readonly call: CountedCall;
  /** The cycles that it goes on with, if the calls of this step give what they gave before. */
  readonly repeats: readonly Repeat[];
}
