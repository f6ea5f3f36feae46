/**
 * A20 nested in sub-agents: a call of a sub-agent waits for a person, the whole tree suspends, and another process goes on with
 * it from nothing but the caller's events.
 */
import { describe, expect, it } from 'vitest';
import { addUsage, closeOpenTurn, createTranscript, type JsonValue, NO_USAGE, type RecordedEvent, ToolAccesses, type ToolCallDecision, toUsage } from 'turnloop';
import { dispatchAgent, type DispatchAgentOptions } from 'turnloop/agent';
import { approval } from 'turnloop/policies';
import { gatedTool, recordingTool, type Reply, runScripted, type RunScriptedOptions, type ScriptedOutcome, type TestTool, toolCall } from 'turnloop/testing';
import { resultLines, resultTexts, secondProcess, throughJson } from '../core/support.ts';
import { dispatchCall, taskLLM } from './sub-agent-support.ts';

/** What everybody says, by the prompt they were given; each reply costs one more token than the one before. */
type Tasks = Readonly<Record<string, readonly Reply[]>>;

interface Process {
  readonly outcome: ScriptedOutcome;
  readonly removed: TestTool;
  /** Tokens that models told of in this process. */
  readonly spent: number;
}

/** One process: the caller's turn `start` and all below it, from the beginning or from recorded events. */
async function play(
  tasks: Tasks,
  { events, decisions = [], prefix = 'b', options = {}, turn = {} }: {
    readonly events?: readonly RecordedEvent[];
    readonly decisions?: readonly ToolCallDecision[];
    readonly prefix?: string;
    readonly options?: DispatchAgentOptions;
    readonly turn?: RunScriptedOptions;
  } = {},
): Promise<Process> {
  const removed = recordingTool({
    name: 'rm',
    accesses: ({ path }) => ToolAccesses.writeFile(String(path)),
    describe: ({ path }) => `Remove ${String(path)}`,
    execute: ({ path }) => `removed ${String(path)}`,
  });
  let spent = 0;
  const llm = taskLLM((prompt) => tasks[prompt]!, {
    usage: () => {
      spent += 1;
      return { inputTokens: 1 };
    },
  });
  const hooks = [approval({ rules: [{ tool: 'rm', decision: 'ask' }, { decision: 'allow' }] })];
  const dispatch = dispatchAgent({
    hooks,
    types: { remover: { description: 'Removes.', tools: [removed, ...(options.tools ?? [])] } },
    maxDepth: 2,
    accesses: () => [],
    ...options,
  });
  const outcome = await runScripted({
    input: 'start',
    llm,
    hooks,
    tools: [dispatch, removed],
    ...(events !== undefined && { ...secondProcess(events, prefix), resume: { decisions }, input: undefined }),
    ...turn,
  });
  return { outcome, removed, spent };
}

const remover = (prompt: string): Reply => dispatchCall(prompt, { type: 'remover' });
const rm = (path: string): ReturnType<typeof toolCall> => toolCall('rm', { path });
const allow = (toolCallId: string): ToolCallDecision => ({ toolCallId, action: 'allow' });

const ONE: Tasks = { start: [remover('clean'), 'all done'], clean: [rm('a'), 'cleaned'] };
const TWO: Tasks = {
  start: [[dispatchCall('left', { type: 'remover' }), dispatchCall('right', { type: 'remover' })], 'all done'],
  left: [[rm('l1'), rm('l2')], 'left done'],
  right: [dispatchCall('deep', { type: 'remover' }), 'right done'],
  deep: [rm('d'), 'deep done'],
};

describe('a call of a sub-agent that waits for a decision', () => {
  it('A20 nested in sub-agents: suspends the whole tree, with what is pending and the way to it', async () => {
    const { outcome, removed } = await play(ONE);

    expect(outcome.result).toMatchObject({ stopReason: 'suspended', steps: 1 });
    expect(outcome.result.pending).toStrictEqual([
      { toolCallId: 'call_2', name: 'rm', input: { path: 'a' }, description: 'Remove a', step: 1, agentPath: ['call_1'] },
    ]);
    expect(removed.runCount).toBe(0);
    expect(outcome.recording.of('turn.suspend').map((event) => ('agentPath' in event ? event.agentPath : []))).toStrictEqual([['call_1'], []]);
    expect(outcome.runtime.pendingTimers).toBe(0);
  });

  it('A20 nested in sub-agents: goes on in another process, from JSON', async () => {
    const before = await play(ONE);
    const { outcome, removed, spent } = await play(ONE, { events: before.outcome.transcript.events, decisions: [allow('call_2')] });

    expect(removed.inputs).toStrictEqual([{ path: 'a' }]);
    expect(resultTexts(outcome.recorded)).toStrictEqual(['cleaned']);
    expect(outcome.result).toMatchObject({ stopReason: 'end_turn', text: 'all done', usage: toUsage({ inputTokens: before.spent + spent }) });
    expect(outcome.result.usage.inputTokens).toBe(4);
  });

  it.each<[string, ToolCallDecision, readonly unknown[], string]>([
    ['deny', { toolCallId: 'call_2', action: 'deny', reason: 'Keep it.' }, [], 'Keep it.'],
    ['edit', { toolCallId: 'call_2', action: 'edit', input: { path: 'z' } }, [{ path: 'z' }], 'removed z'],
    ['answer', { toolCallId: 'call_2', action: 'answer', result: 'by hand' }, [], 'by hand'],
  ])('A20 nested in sub-agents: carries out %s', async (_what, decision, inputs, text) => {
    const before = await play(ONE);
    const { outcome, removed } = await play(ONE, { events: before.outcome.transcript.events, decisions: [decision] });

    expect(removed.inputs).toStrictEqual(inputs);
    expect(JSON.stringify(outcome.recording.of('tool.finished')[0]!.result)).toContain(text);
    expect(outcome.result.stopReason).toBe('end_turn');
  });

  it('A20 nested in sub-agents: decisions reach the right child of several, two deep, also when they come one by one', async () => {
    const first = await play(TWO);
    expect(first.outcome.result.pending!.map(({ input, agentPath }) => [input, agentPath.length])).toStrictEqual([
      [{ path: 'l1' }, 1],
      [{ path: 'l2' }, 1],
      [{ path: 'd' }, 2],
    ]);
    const idOf = (path: string): string => first.outcome.result.pending!.find(({ input }) => (input as { path: string }).path === path)!.toolCallId;

    const second = await play(TWO, { events: first.outcome.transcript.events, decisions: [allow(idOf('l2'))], prefix: 'b' });
    expect(second.removed.inputs).toStrictEqual([{ path: 'l2' }]);
    expect(second.outcome.result.pending!.map(({ toolCallId }) => toolCallId)).toStrictEqual([idOf('l1'), idOf('d')]);
    expect(second.spent).toBe(0);

    const third = await play(TWO, { events: second.outcome.transcript.events, decisions: [allow(idOf('d'))], prefix: 'c' });
    expect(third.removed.inputs).toStrictEqual([{ path: 'd' }]);
    expect(third.outcome.result.pending!.map(({ toolCallId }) => toolCallId)).toStrictEqual([idOf('l1')]);

    const last = await play(TWO, { events: third.outcome.transcript.events, decisions: [{ toolCallId: idOf('l1'), action: 'deny' }], prefix: 'd' });
    expect(resultTexts(last.outcome.recorded)).toStrictEqual(['left done', 'right done']);
    expect(last.outcome.result.stopReason).toBe('end_turn');
    const spent = [first, second, third, last].reduce((sum, process) => sum + process.spent, 0);
    expect(last.outcome.result.usage).toStrictEqual(toUsage({ inputTokens: spent }));
    expect(last.outcome.transcript.events.filter(({ type }) => type === 'usage').map((event) => ('usage' in event ? event.usage : NO_USAGE)).reduce(addUsage)).toStrictEqual(
      last.outcome.result.usage,
    );
  });

  it('A20 nested in sub-agents: suspends again for a later call', async () => {
    const tasks: Tasks = { start: [remover('clean'), 'done'], clean: [rm('a'), rm('b'), 'cleaned'] };
    const first = await play(tasks);
    const second = await play(tasks, { events: first.outcome.transcript.events, decisions: [allow('call_2')] });
    const [pending] = second.outcome.result.pending!;
    const third = await play(tasks, { events: second.outcome.transcript.events, decisions: [allow(pending!.toolCallId)], prefix: 'c' });

    expect(pending).toMatchObject({ input: { path: 'b' }, step: 2 });
    expect([second.removed.inputs, third.removed.inputs]).toStrictEqual([[{ path: 'a' }], [{ path: 'b' }]]);
    expect(third.outcome.result).toMatchObject({ stopReason: 'end_turn', usage: { inputTokens: 5 } });
  });

  it('A20 nested in sub-agents: does not keep the tools beside it from ending, and does not run them again', async () => {
    const gate = gatedTool({ readOnly: true });
    gate.open('read');
    const tasks: Tasks = { start: [remover('clean'), 'done'], clean: [[rm('a'), toolCall('gate')], 'cleaned'] };
    const options = { tools: [Object.assign(gate, { accesses: () => [] })] };
    const before = await play(tasks, { options });
    const { outcome } = await play(tasks, { events: before.outcome.transcript.events, decisions: [allow('call_2')], options });

    expect(gate.runCount).toBe(1);
    expect(resultTexts(outcome.recorded)).toStrictEqual(['cleaned']);
  });

  it('A20 nested in sub-agents: a decision about the dispatch itself ends the sub-agent', async () => {
    const before = await play(ONE);
    const events = before.outcome.transcript.events;
    const denied = await play(ONE, { events, decisions: [{ toolCallId: 'call_1', action: 'deny', reason: 'Forget it.' }] });
    const answered = await play(ONE, { events, decisions: [{ toolCallId: 'call_1', action: 'answer', result: 'I cleaned.' }] });

    expect(resultLines(denied.outcome.recorded)).toStrictEqual([['call_1', 'error', 'Forget it.']]);
    expect(resultLines(answered.outcome.recorded)).toStrictEqual([['call_1', 'ok', 'I cleaned.']]);
    expect(denied.outcome.recording.of('turn.end').map(({ stopReason }) => stopReason)).toStrictEqual(['aborted', 'end_turn']);
    expect([denied.removed.runCount, answered.removed.runCount]).toStrictEqual([0, 0]);
  });

  it('A20 nested in sub-agents: an allowance of the dispatch itself decides nothing', async () => {
    const before = await play(ONE);
    const { outcome } = await play(ONE, { events: before.outcome.transcript.events, decisions: [allow('call_1')] });

    expect(outcome.recording.of('notice')).toMatchObject([{ name: 'decision.unmatched', data: { toolCallId: 'call_1' } }]);
    expect(outcome.result).toMatchObject({ stopReason: 'suspended', pending: [{ toolCallId: 'call_2' }] });
  });

  it('A20 nested in sub-agents: may be given up with the turn', async () => {
    const { outcome } = await play(ONE);
    const transcript = createTranscript(throughJson(outcome.transcript.events));

    await closeOpenTurn(transcript);

    expect(resultTexts(transcript.events)[0]).toContain('given up');
    expect(transcript.openTurn()).toBeUndefined();
  });

  it('A20 nested in sub-agents: gives its place to others while it waits', async () => {
    const first = await play(ONE, { options: { maxParallel: 1 } });
    expect(first.outcome.result.stopReason).toBe('suspended');
    const tasks: Tasks = { start: [[dispatchCall('clean', { type: 'remover' }), dispatchCall('look')], 'done'], clean: [rm('a'), 'cleaned'], look: ['seen'] };
    const { outcome } = await play(tasks, { options: { maxParallel: 1 } });

    expect(resultLines(outcome.recorded)).toStrictEqual([]);
    expect(outcome.recording.of('tool.finished')).toMatchObject([{ toolCallId: 'call_2', result: { content: [{ text: 'seen' }] } }]);
  });
});

describe('a suspended sub-agent whose state is not its own', () => {
  /** The caller's events, with another state in the suspended call. */
  function withState(events: readonly RecordedEvent[], change: (state: Record<string, JsonValue>) => JsonValue): readonly RecordedEvent[] {
    return throughJson(events).map((event) =>
      event.type === 'turn.suspend' ? { ...event, calls: event.calls.map((call) => ({ ...call, state: change(call.state as Record<string, JsonValue>) })) } : event,
    );
  }

  it.each<[string, (state: Record<string, JsonValue>) => JsonValue]>([
    ['null', () => null],
    ["another tool's", () => ({ page: 3 })],
    ['of a later version', (state) => ({ ...state, version: 99 })],
    ['without events', ({ events: _events, ...state }) => state],
    ['with events that are none', (state) => ({ ...state, events: [null] })],
    ['with events that begin no turn', (state) => ({ ...state, events: [1, 'x', {}] })],
    ['with no events at all', (state) => ({ ...state, events: [] })],
    ['with events of a later format', (state) => ({ ...state, events: [{ type: 'turn.begin', turnId: 't', at: 0, version: 99, inputCount: 0 }] })],
  ])('A20 nested in sub-agents: gives an error result: %s', async (_what, change) => {
    const before = await play(ONE);
    const { outcome, removed } = await play(ONE, { events: withState(before.outcome.transcript.events, change), decisions: [allow('call_2')] });

    expect(resultLines(outcome.recorded)).toStrictEqual([['call_1', 'error', expect.stringContaining('its record was left as it is') as string]]);
    expect(outcome.result).toMatchObject({ stopReason: 'end_turn', text: 'all done' });
    expect(removed.runCount).toBe(0);
  });

  it('E13 gives an error result if its type is gone', async () => {
    const before = await play(ONE);
    const { outcome } = await play(ONE, {
      events: before.outcome.transcript.events,
      decisions: [allow('call_2')],
      options: { types: { other: { description: 'Something else.' } } },
    });

    expect(resultTexts(outcome.recorded)[0]).toContain('"type" is one of "other"');
    expect(outcome.result.stopReason).toBe('end_turn');
  });
});
