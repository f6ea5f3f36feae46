/**
 * Many sub-agents (E13): 50 turns with 4 children each, every other child with two of its own. Tokens and budget add up, an abort
 * reaches all, events carry their way, and approvals of any depth suspend and resume their turn in another process.
 */
import { describe, expect, it } from 'vitest';
import { addUsage, createEventDispatcher, createTranscript, createTurnControl, decorateLLM, type LLM, type LoopEvent, NO_USAGE, runTurn, totalTokens, type TurnControl, type TurnResult, type Usage, userCancel } from 'turnloop';
import { dispatchAgent } from 'turnloop/agent';
import { approval, createBudget, withBudget } from 'turnloop/policies';
import { delayed, hangingTool, recordingTool, type Reply, toolCall, virtualRuntime, type VirtualRuntime } from 'turnloop/testing';
import { throughJson } from '../core/support.ts';
import { dispatchCall, taskLLM } from './sub-agent-support.ts';

const TURNS = 50;
const CHILDREN = 4;
/** Every other child has two of its own. */
const AGENTS_BELOW = CHILDREN + (CHILDREN / 2) * 2;

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);

/** What an agent says, by its prompt: `turn`, `turn.child` or `turn.child.grandchild`. Those without children do this work. */
function says(prompt: string, work: readonly Reply[]): readonly Reply[] {
  const path = prompt.split('.');
  if (path.length === 1) return [range(CHILDREN).map((child) => dispatchCall(`${prompt}.${child}`)), `${prompt} done`];
  const hasChildren = path.length === 2 && Number(path[1]) % 2 === 0;
  return hasChildren ? [range(2).map((child) => dispatchCall(`${prompt}.${child}`)), `${prompt} done`] : [...work, delayed(`${prompt} done`, 1 + (prompt.length % 3))];
}

interface Crowd {
  readonly runtime: VirtualRuntime;
  readonly results: readonly Promise<TurnResult>[];
  readonly controls: readonly TurnControl[];
  readonly events: readonly (readonly LoopEvent[])[];
  readonly transcripts: readonly ReturnType<typeof createTranscript>[];
}

/** Starts, or goes on with, 50 turns that share one tool. */
function startCrowd(llm: LLM, dispatch: ReturnType<typeof dispatchAgent>, before?: Crowd, allow: readonly string[] = []): Crowd {
  const runtime = virtualRuntime(before === undefined ? {} : { idPrefix: 'b' });
  const hooks = [approval({ rules: [{ tool: 'write', decision: 'ask' }, { decision: 'allow' }] })];
  const transcripts = range(TURNS).map((turn) => createTranscript(before === undefined ? [] : throughJson(before.transcripts[turn]!.events)));
  const controls = range(TURNS).map(() => createTurnControl());
  const events: LoopEvent[][] = range(TURNS).map(() => []);
  const results = transcripts.map(async (transcript, turn) => {
    const open = transcript.openTurn();
    const ids = new Set(open?.step?.calls.flatMap((call) => call.suspended?.pending.map(({ toolCallId }) => toolCallId) ?? []));
    return runTurn({
      llm,
      buildMessages: transcript.buildMessages,
      dispatchEvent: createEventDispatcher({ record: transcript.record, emit: (event) => events[turn]!.push(event) }),
      tools: [dispatch],
      hooks,
      runtime,
      control: controls[turn]!,
      ...(open === undefined
        ? { input: String(turn) }
        : { resume: { turn: open, decisions: allow.filter((id) => ids.has(id)).map((toolCallId) => ({ toolCallId, action: 'allow' as const })) } }),
    });
  });
  return { runtime, results, controls, events, transcripts };
}

/** A model that says what was spent on it. */
function counted(llm: LLM): { readonly llm: LLM; readonly spent: Usage; readonly most: number } {
  let spent = NO_USAGE;
  let now = 0;
  let most = 0;
  return {
    llm: decorateLLM(llm, async (request) => {
      now += 1;
      most = Math.max(most, now);
      try {
        const response = await llm.chat(request);
        spent = addUsage(spent, response.usage);
        return response;
      } finally {
        now -= 1;
      }
    }),
    get spent() {
      return spent;
    },
    get most() {
      return most;
    },
  };
}

const sum = (results: readonly TurnResult[]): Usage => results.map(({ usage }) => usage).reduce(addUsage);

describe('50 turns with 4 sub-agents each, some with their own', { timeout: 60_000 }, () => {
  it('E13 usage and budget add up to the token, and events carry their way', async () => {
    const budget = createBudget();
    const roots = counted(taskLLM((prompt) => says(prompt, []), { modelId: 'root' }));
    const children = counted(taskLLM((prompt) => says(prompt, []), { modelId: 'child' }));
    const dispatch = dispatchAgent({ llm: withBudget(children.llm, budget), maxDepth: 2 });
    const crowd = startCrowd(withBudget(roots.llm, budget), dispatch);

    const results = await crowd.runtime.settle(Promise.all(crowd.results));

    expect(results.map(({ text, stopReason }) => [text, stopReason])).toStrictEqual(range(TURNS).map((turn) => [`${turn} done`, 'end_turn']));
    expect(sum(results)).toStrictEqual(addUsage(roots.spent, children.spent));
    expect(budget.spent.tokens).toBe(totalTokens(sum(results)));
    expect(budget.spent.estimatedTokens).toBe(0);
    expect(sum(results.map((result) => ({ ...result, usage: result.usageByModel.find(({ modelId }) => modelId === 'child')!.usage })))).toStrictEqual(children.spent);
    expect(children.most).toBe(4);
    for (const events of crowd.events) {
      const paths = events.flatMap((event) => (event.type === 'turn.end' && 'agentPath' in event ? [event.agentPath] : []));
      const outer = paths.filter((path) => path.length === 1).map((path) => path[0]);
      expect(paths).toHaveLength(AGENTS_BELOW);
      expect(new Set(outer).size).toBe(CHILDREN);
      for (const path of paths) expect(outer).toContain(path[0]);
    }
    expect(crowd.runtime.pendingTimers).toBe(0);
  });

  it('E13 an abort reaches every child of its turn within the grace, and no request starts after it', async () => {
    const hang = hangingTool({ readOnly: true });
    const model = taskLLM((prompt) => says(prompt, [toolCall('hang')]));
    const dispatch = dispatchAgent({ llm: model, tools: [hang], maxDepth: 2, maxParallel: Infinity });
    const crowd = startCrowd(model, dispatch);
    await crowd.runtime.advance(50);
    expect(hang.runningCount).toBe(TURNS * (CHILDREN / 2 + (CHILDREN / 2) * 2));
    const requests = model.callCount;

    for (const control of crowd.controls) control.abort(userCancel());
    const results = await crowd.runtime.settle(Promise.all(crowd.results));

    expect(crowd.runtime.now()).toBeLessThanOrEqual(50 + 2_000);
    expect(new Set(results.map(({ stopReason }) => stopReason))).toStrictEqual(new Set(['aborted']));
    expect([hang.runningCount, model.callCount, crowd.runtime.pendingTimers]).toStrictEqual([0, requests, 0]);
    for (const events of crowd.events) {
      const ends = events.filter((event) => event.type === 'turn.end');
      expect(ends.map((event) => ('stopReason' in event ? event.stopReason : ''))).toStrictEqual(Array(AGENTS_BELOW + 1).fill('aborted'));
    }
  });

  it('E13 A20 nested in sub-agents: approvals suspend each turn and resume it in another process, from JSON', async () => {
    const write = recordingTool({ name: 'write', accesses: [] });
    const tell = (prompt: string): readonly Reply[] => says(prompt, [toolCall('write', { by: prompt })]);
    const types = { writer: { description: 'Writes.', tools: [write] } };
    const asWriter = (reply: Reply): Reply =>
      Array.isArray(reply) ? (reply as readonly ReturnType<typeof toolCall>[]).map((call) => dispatchCall((JSON.parse(call.inputText) as { prompt: string }).prompt, { type: 'writer' })) : reply;
    const model = counted(taskLLM((prompt) => tell(prompt).map(asWriter)));
    const make = (): ReturnType<typeof dispatchAgent> =>
      dispatchAgent({ types, maxDepth: 2, accesses: () => [], hooks: [approval({ rules: [{ tool: 'write', decision: 'ask' }, { decision: 'allow' }] })] });
    const first = startCrowd(model.llm, make());
    const suspended = await first.runtime.settle(Promise.all(first.results));
    const pending = suspended.flatMap((result) => result.pending ?? []);
    expect(new Set(suspended.map(({ stopReason }) => stopReason))).toStrictEqual(new Set(['suspended']));
    expect(pending).toHaveLength(TURNS * (CHILDREN / 2 + (CHILDREN / 2) * 2));
    expect(new Set(pending.map(({ agentPath }) => agentPath.length))).toStrictEqual(new Set([1, 2]));
    expect(write.runCount).toBe(0);

    // Every other decision comes later, to a third process.
    const ids = pending.map(({ toolCallId }) => toolCallId);
    const second = startCrowd(model.llm, make(), first, ids.filter((_, index) => index % 2 === 0));
    const half = await second.runtime.settle(Promise.all(second.results));
    expect(half.flatMap((result) => result.pending ?? [])).toHaveLength(pending.length / 2);
    const third = startCrowd(model.llm, make(), second, ids);
    const results = await third.runtime.settle(Promise.all(third.results));

    expect(results.map(({ text, stopReason }) => [text, stopReason])).toStrictEqual(range(TURNS).map((turn) => [`${turn} done`, 'end_turn']));
    expect(new Set(write.inputs.map(({ by }) => by)).size).toBe(pending.length);
    expect(write.runCount).toBe(pending.length);
    expect(sum(results)).toStrictEqual(model.spent);
  });
});
