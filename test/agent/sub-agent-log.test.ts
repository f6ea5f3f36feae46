/**
 * Sub-agents whose events are durable (E13, law 9): the process dies after any event of any depth, and another one goes on
 * with all that was begun. Nothing that finished runs again, and every token that was recorded is counted once.
 */
import { describe, expect, it } from 'vitest';
import { createTranscript, type Hook, type PendingCall, type RecordedEvent, toUsage } from 'turnloop';
import { dispatchAgent, type DispatchAgentOptions, type SubAgentLog } from 'turnloop/agent';
import { approval } from 'turnloop/policies';
import { checkTranscript, recordingTool, type Reply, runScripted, type ScriptedOutcome, startScripted, type ScriptedTurn, toolCall, toolContext, virtualRuntime, watchedController } from 'turnloop/testing';
import { resultLines, resultTexts } from '../core/support.ts';
import { Disk, dispatchCall, type Files, ROOT, taskLLM } from './sub-agent-support.ts';

type Tasks = Readonly<Record<string, readonly Reply[]>>;

/** What tools did to the world: it outlives processes. */
type World = string[];

interface Process {
  readonly disk: Disk;
  readonly turn: ScriptedTurn;
  /** The name that each reply of this process was given, as a model of its own. */
  readonly replies: readonly string[];
}

interface ProcessOptions {
  readonly name: string;
  readonly disk?: Disk;
  readonly world?: World;
  readonly options?: DispatchAgentOptions;
}

/** Starts or resumes the turn `start` on a disk; every reply costs one token of a model of its own. */
function startProcess(tasks: Tasks, { name, disk = new Disk(), world = [], options = {} }: ProcessOptions): Process {
  const replies: string[] = [];
  const llm = taskLLM((prompt) =>
    tasks[prompt]!.map((reply) => () => {
      const modelId = `${name}${replies.length + 1}`;
      replies.push(modelId);
      const content = reply as Exclude<Reply, Error>;
      return typeof content === 'string' || Array.isArray(content) || (typeof content === 'object' && 'type' in content)
        ? { content: typeof content === 'string' ? content : [content].flat(), usage: { inputTokens: 1 }, modelId }
        : content;
    }),
  );
  const write = recordingTool({ name: 'write', accesses: [], execute: ({ path }) => (world.push(String(path)), `wrote ${String(path)}`) });
  const read = recordingTool({ name: 'read', readOnly: true, execute: ({ path }) => `read ${String(path)}` });
  const hooks = [approval({ rules: [{ tool: 'write', matches: ({ input }) => JSON.stringify(input).includes('ask'), decision: 'ask' }, { decision: 'allow' }] })];
  const dispatch = dispatchAgent({
    hooks,
    tools: [read],
    types: { writer: { description: 'Writes.', tools: [read, write] } },
    maxDepth: 2,
    accesses: () => [],
    openLog: disk.openLog,
    ...options,
  });
  const stored = disk.files.get(ROOT) ?? [];
  const transcript = createTranscript(stored);
  const open = transcript.openTurn();
  const pending: readonly PendingCall[] = open?.step?.calls.flatMap((call) => call.suspended?.pending ?? []) ?? [];
  const turn = startScripted({
    input: 'start',
    llm,
    hooks,
    tools: [dispatch, read],
    runtime: virtualRuntime({ idPrefix: name }),
    transcript,
    record: disk.record,
    check: false,
    ...(open !== undefined && { resume: { decisions: pending.map(({ toolCallId }) => ({ toolCallId, action: 'allow' as const })) } }),
  });
  return { disk, turn, replies };
}

/** Runs processes until the turn has ended, approving whatever waits. */
async function finish(tasks: Tasks, first: ProcessOptions): Promise<{ readonly outcome: ScriptedOutcome; readonly files: Files; readonly processes: readonly Process[] }> {
  const processes: Process[] = [];
  let options = first;
  for (;;) {
    const process = startProcess(tasks, options);
    processes.push(process);
    const outcome = await process.turn.finish();
    const { files } = process.disk;
    if (outcome.result.stopReason !== 'suspended') return { outcome, files, processes };
    options = { ...options, name: `${options.name}x`, disk: new Disk(files) };
  }
}

const call = (prompt: string): ReturnType<typeof dispatchCall> => dispatchCall(prompt, { type: 'writer' });
const write = (path: string): ReturnType<typeof toolCall> => toolCall('write', { path });

/** Two sub-agents at once, one with another below it; both write, one asks, and one writes after that. */
const FAMILY: Tasks = {
  start: [[call('left'), call('right')], 'all done'],
  left: [[write('l1'), toolCall('read', { path: 'x' })], write('l2'), 'left done'],
  right: [call('deep'), write('r'), 'right done'],
  deep: [write('d-ask'), write('d2'), 'deep done'],
};

describe('a turn whose process dies', () => {
  it('E13 law 9 goes on in another process, at every event of every depth', { timeout: 60_000 }, async () => {
    const whole = await finish(FAMILY, { name: 'a' });
    expect(resultTexts(whole.outcome.transcript.events)).toStrictEqual(['left done', 'right done']);
    const total = whole.processes.reduce((sum, { disk }) => sum + disk.count, 0);
    expect(total).toBeGreaterThan(60);
    let resumed = 0;

    for (let crashAfter = 1; crashAfter < whole.processes[0]!.disk.count; crashAfter += 1) {
      const world: World = [];
      const disk = new Disk(new Map(), crashAfter);
      const dead = startProcess(FAMILY, { name: 'a', disk, world });
      await dead.turn.runtime.settle(disk.crashed);
      const { outcome, files, processes } = await finish(FAMILY, { name: 'b', disk: new Disk(disk.files), world });
      resumed += 1;

      expect(outcome.result, `crash after event ${crashAfter}`).toMatchObject({ stopReason: 'end_turn', text: 'all done' });
      expectWorld(world, files);
      expectUsage(files, outcome, [dead, ...processes]);
      for (const [file, events] of files) expect(checkTranscript(events, { complete: true }), `${file} after ${crashAfter}`).toStrictEqual([]);
      expect(processes.flatMap((process) => [...process.disk.open])).toStrictEqual([]);
    }
    expect(resumed).toBeGreaterThan(40);
  });

  it('E13 law 9 dies twice, the second time after the decisions: they are carried out once', { timeout: 60_000 }, async () => {
    const first = startProcess(FAMILY, { name: 'a' });
    await first.turn.finish();
    const second = await finish(FAMILY, { name: 'b', disk: new Disk(first.disk.files) });

    for (let crashAfter = 1; crashAfter < second.processes[0]!.disk.count; crashAfter += 1) {
      const world: World = ['l1', 'l2'];
      const disk = new Disk(first.disk.files, crashAfter);
      const dead = startProcess(FAMILY, { name: 'b', disk, world });
      await dead.turn.runtime.settle(disk.crashed);
      const { outcome, files, processes } = await finish(FAMILY, { name: 'c', disk: new Disk(disk.files), world });

      expect(outcome.result, `crash after event ${crashAfter}`).toMatchObject({ stopReason: 'end_turn', text: 'all done' });
      expectWorld(world, files);
      expectUsage(files, outcome, [first, dead, ...processes]);
      for (const [file, events] of files) expect(checkTranscript(events, { complete: true }), `${file} after ${crashAfter}`).toStrictEqual([]);
    }
  });

  it('E13 law 9 does not take a decision about one question for the answer to the next', async () => {
    const asks = (name: string): Hook => ({ name, authorizeToolCall: (_context, { name: tool }) => (tool === 'write' ? { action: 'suspend' } : undefined) });
    const tasks: Tasks = { start: [call('one'), 'done'], one: [write('a'), 'found'] };
    const options = { hooks: [asks('first'), asks('second')] };
    const world: World = [];
    const first = startProcess(tasks, { name: 'a', options, world });
    await first.turn.finish();
    // The first hook's question is answered; the second asks, and the process dies before the caller has suspended.
    const whole = startProcess(tasks, { name: 'b', options, world, disk: new Disk(first.disk.files) });
    await whole.turn.finish();
    const root = whole.disk.files.get(ROOT)!;
    expect(root.at(-1)!.type).toBe('turn.suspend');
    const third = startProcess(tasks, { name: 'c', options, world, disk: new Disk(new Map([...whole.disk.files, [ROOT, root.slice(0, -1)]])) });
    const { result } = await third.turn.finish();

    expect(result).toMatchObject({ stopReason: 'suspended', pending: [{ name: 'write' }] });
    expect(world).toStrictEqual([]);
    const last = await finish(tasks, { name: 'd', options, world, disk: new Disk(third.disk.files) });
    expect(last.outcome.result.stopReason).toBe('end_turn');
    expect(world).toStrictEqual(['a']);
  });

  it('E13 SA5 is resumed by the id of the call, and the prompt is not said twice', async () => {
    const disk = new Disk(new Map(), 12);
    const dead = startProcess(FAMILY, { name: 'a', disk });
    await dead.turn.runtime.settle(disk.crashed);
    const { files } = await finish(FAMILY, { name: 'b', disk: new Disk(disk.files) });

    for (const [, events] of files) expect(events.filter(({ type }) => type === 'message')).toHaveLength(1);
    for (const [, events] of files) expect(events.filter(({ type }) => type === 'turn.begin')).toHaveLength(1);
  });

  it('E13 gives the result of a child that had ended without asking a model', async () => {
    const tasks: Tasks = { start: [call('one'), 'done'], one: ['found'] };
    const before = await finish(tasks, { name: 'a' });
    // The process died when the child's end was durable and its result was not.
    const root = before.files.get(ROOT)!;
    const cut = root.slice(0, root.findIndex(({ type }) => type === 'tool.finished'));
    const { outcome, processes } = await finish(tasks, { name: 'b', disk: new Disk(new Map([...before.files, [ROOT, cut]])) });

    expect(resultLines(outcome.recorded)).toStrictEqual([['call_a1', 'ok', 'found']]);
    expect(processes[0]!.replies).toStrictEqual(['b1']);
    expect(outcome.result.usage).toStrictEqual(toUsage({ inputTokens: 3 }));
  });

  it.each([
    ['that had failed', 'The sub-agent did not finish (fatal_error, unknown: broken). It left no text.'],
    ['that was at its limit', expect.stringContaining('half') as string],
  ])('E13 gives the result of a child %s as it was', async (what, text) => {
    const failing = what.includes('failed');
    const one: readonly Reply[] = failing ? [() => Promise.reject(new Error('broken'))] : [['half', toolCall('read')]];
    const tasks: Tasks = { start: [dispatchCall('one'), 'done'], one };
    const options = { maxSteps: 1 };
    const before = await finish(tasks, { name: 'a', options });
    const root = before.files.get(ROOT)!;
    const cut = root.slice(0, root.findIndex(({ type }) => type === 'tool.finished'));
    const { outcome } = await finish(tasks, { name: 'b', disk: new Disk(new Map([...before.files, [ROOT, cut]])), options });

    expect(resultTexts(before.outcome.recorded)).toStrictEqual([text]);
    expect(outcome.recorded.filter(({ type }) => type === 'tool.result')).toMatchObject(
      before.outcome.recorded.filter(({ type }) => type === 'tool.result').map((event) => ('result' in event ? { result: event.result } : {})),
    );
  });
});

describe('a turn whose process dies, with sub-agents in memory', () => {
  /** The process dies when a tool of the child has run. */
  async function crashed(tasks: Tasks, world: World): Promise<ScriptedOutcome> {
    const options = { openLog: undefined };
    const whole = startProcess(tasks, { name: 'a', world, options });
    await whole.turn.finish();
    const root = whole.disk.files.get(ROOT)!;
    const cut = root.slice(0, root.findIndex(({ type }) => type === 'tool.finished'));
    return startProcess(tasks, { name: 'b', disk: new Disk(new Map([[ROOT, cut]])), world, options }).turn.finish();
  }

  it('E13 tells the model that the outcome is unknown of one that may write, and does not run it again', async () => {
    const world: World = [];
    const outcome = await crashed({ start: [call('one'), 'done'], one: [write('a'), 'found'] }, world);

    expect(resultTexts(outcome.recorded)[0]).toContain('it is not known whether it took effect');
    expect(world).toStrictEqual(['a']);
    expect(outcome.result.usage).toStrictEqual(toUsage({ inputTokens: 4 }));
  });

  it('E13 runs one that only reads again, and counts both', async () => {
    const tasks: Tasks = { start: [dispatchCall('one'), 'done'], one: [toolCall('read'), 'found'] };
    const whole = await runReadOnly(tasks, undefined);
    const events = whole.transcript.events;
    const cut = events.slice(0, events.findIndex(({ type }) => type === 'tool.finished'));
    const outcome = await runReadOnly(tasks, cut);

    expect(resultTexts(outcome.recorded)).toStrictEqual(['found']);
    expect(outcome.result.usage).toStrictEqual(toUsage({ inputTokens: 6 }));
  });

  function runReadOnly(tasks: Tasks, events: readonly RecordedEvent[] | undefined): Promise<ScriptedOutcome> {
    const llm = taskLLM((prompt) => tasks[prompt]!, { usage: { inputTokens: 1 } });
    const dispatch = dispatchAgent({ tools: [recordingTool({ name: 'read', readOnly: true })] });
    return runScripted({
      llm,
      tools: [dispatch],
      input: 'start',
      ...(events !== undefined && { transcript: createTranscript(events), resume: {}, input: undefined }),
    });
  }
});

describe('a log that fails', () => {
  const log = (faults: Partial<SubAgentLog>): DispatchAgentOptions => ({
    openLog: async () => ({ load: async () => [], record: async () => undefined, close: async () => undefined, ...faults }),
  });
  const run = (options: DispatchAgentOptions): Promise<ScriptedOutcome> =>
    runScripted({ replies: [dispatchCall('one'), 'done'], tools: [dispatchAgent({ llm: taskLLM(() => ['found']), ...options })] });

  it.each<[string, DispatchAgentOptions, string]>([
    ['cannot be opened', { openLog: () => Promise.reject(new Error('locked')) }, 'its log cannot be opened: locked'],
    ['cannot be opened, told at once', { openLog: () => { throw new Error('locked'); } }, 'its log cannot be opened: locked'],
    ['cannot be read', log({ load: () => Promise.reject(new Error('EIO')) }), 'it cannot be read: EIO'],
    ['has events that are none', log({ load: async () => [null as unknown as RecordedEvent] }), 'it cannot be read: events[0] is not a whole event'],
    ['cannot be written', log({ record: () => Promise.reject(new Error('disk full')) }), 'recorder_failed: The recorder failed: disk full'],
  ])('E13 that %s gives an error result, and the caller goes on', async (_what, options, text) => {
    const { recorded, result } = await run(options);

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', expect.stringContaining(text) as string]]);
    expect(result.text).toBe('done');
  });

  it('E13 that cannot be closed changes nothing', async () => {
    const { recorded } = await run(log({ close: () => Promise.reject(new Error('no')) }));

    expect(resultTexts(recorded)).toStrictEqual(['found']);
  });

  it('BR-016 leaves no listener on the signal of its call', async () => {
    const controller = watchedController();
    const context = toolContext({ signal: controller.signal, llm: taskLLM(() => ['found']) });

    expect(await dispatchAgent(log({})).execute({ prompt: 'one' }, context)).toMatchObject({ content: 'found' });
    expect(controller.listenerCount).toBe(0);
  });

  it('E13 that never opens is waited for no longer than until an abort, and closed if it opens after all', async () => {
    let open: (log: SubAgentLog) => void = () => undefined;
    let closed = 0;
    const opening = new Promise<SubAgentLog>((resolve) => {
      open = resolve;
    });
    const turn = startScripted({ replies: [dispatchCall('one')], tools: [dispatchAgent({ llm: taskLLM(() => ['found']), openLog: () => opening })] });
    await turn.runtime.flush();

    turn.control.abort();
    const { result, runtime } = await turn.finish();
    open({ load: async () => [], record: async () => undefined, close: async () => void (closed += 1) });
    await runtime.runUntilIdle();

    expect(result.stopReason).toBe('aborted');
    expect([runtime.now(), closed]).toStrictEqual([0, 1]);
  });

  it('E13 is closed once for each time it is opened, also when the sub-agent suspends', async () => {
    const { processes, outcome } = await finish(FAMILY, { name: 'a' });

    expect(outcome.result.stopReason).toBe('end_turn');
    expect(processes).toHaveLength(2);
    for (const { disk } of processes) expect([...disk.open]).toStrictEqual([]);
  });
});

/** Nothing was written twice; what was not written was told to be of unknown outcome. */
function expectWorld(world: World, files: Files): void {
  expect(new Set(world).size).toBe(world.length);
  const unknown = [...files.values()].flat().filter((event) => event.type === 'tool.result' && JSON.stringify(event.result).includes('not known whether'));
  expect([...world].sort().length).toBeGreaterThanOrEqual(5 - unknown.length);
}

/** The turn's usage is that of its replies: each once, and at most those missing that were on their way when the process died. */
function expectUsage(files: Files, { result }: ScriptedOutcome, processes: readonly Process[]): void {
  const spentBy = (file: string): readonly string[] => (files.get(file) ?? []).flatMap((event) => (event.type === 'usage' ? [event.modelId] : []));
  const counted = spentBy(ROOT);
  expect(new Set(counted).size).toBe(counted.length);
  expect(result.usage.inputTokens).toBe(counted.length);
  // What a sub-agent has recorded, its caller has.
  for (const [file] of files) for (const modelId of spentBy(file)) expect(counted).toContain(modelId);
  for (const { disk, replies, turn } of processes) {
    const missing = replies.filter((modelId) => !counted.includes(modelId));
    expect(missing.length).toBeLessThanOrEqual(disk.count > 0 && turn !== processes.at(-1)?.turn ? 2 : 0);
  }
}
