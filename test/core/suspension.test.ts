/**
 * Suspension (A20), as a black box: calls wait for a decision, the turn ends `suspended`, and another process goes on with
 * it from nothing but the events, read back from JSON.
 */
import { describe, expect, it } from 'vitest';
import {
  closeOpenTurn,
  createTranscript,
  type Hook,
  type HookCall,
  type JsonValue,
  type PendingCall,
  type ReplyToolCall,
  suspend,
  ToolAccesses,
  type ToolCallDecision,
  toUsage,
} from 'turnloop';
import {
  checkTranscript,
  echoTool,
  gatedTool,
  hangingTool,
  recordingTool,
  runScripted,
  type RunScriptedOptions,
  type ScriptedOutcome,
  startScripted,
  type TestTool,
  toolCall,
} from 'turnloop/testing';
import { conversation, outline, resultLines, resultTexts, secondProcess, throughJson } from './support.ts';

/** Asks a person about every call of these tools; of all tools, if none is named. */
function approval(...names: readonly string[]): Hook {
  const asks = ({ name }: HookCall): boolean => names.length === 0 || names.includes(name);
  return { name: 'approval', authorizeToolCall: (_context, call) => (asks(call) ? { action: 'suspend', reason: 'Please confirm.' } : undefined) };
}

/** A turn whose calls are suspended by a hook. */
function suspended(calls: readonly ReplyToolCall[], options: RunScriptedOptions): Promise<ScriptedOutcome> {
  return runScripted({ replies: [{ content: calls, usage: { inputTokens: 10 } }], hooks: [approval()], ...options });
}

/** Another process goes on with a suspended turn. */
function resumed(before: ScriptedOutcome, decisions: readonly ToolCallDecision[], options: RunScriptedOptions): Promise<ScriptedOutcome> {
  return runScripted({
    ...secondProcess(before.transcript.events),
    replies: [{ content: 'done', usage: { inputTokens: 1 } }],
    resume: { decisions },
    ...options,
  });
}

function mover(): TestTool {
  return recordingTool({
    name: 'move',
    accesses: ({ path }) => ToolAccesses.writeFile(String(path)),
    describe: ({ path }) => `Move ${String(path)}`,
    execute: ({ path }) => `moved ${String(path)}`,
  });
}

/** A tool that suspends once with this state, and then tells what it was resumed with. */
function asking(state: JsonValue, pending: readonly PendingCall[] = []): TestTool {
  return recordingTool({
    name: 'ask',
    execute: (_input, { resumed: back }) => (back === undefined ? suspend({ state, pending }) : JSON.stringify(back)),
  });
}

describe('a turn with a call that a hook suspends', () => {
  it('A20 ends suspended, with what is pending as JSON enough to show it', async () => {
    const move = mover();

    const { result } = await suspended([toolCall('move', { path: 'a.txt' })], { tools: [move] });

    expect(move.runCount).toBe(0);
    expect(result).toMatchObject({ stopReason: 'suspended', steps: 1, usage: toUsage({ inputTokens: 10 }) });
    expect(result.pending).toStrictEqual([
      {
        toolCallId: 'call_1',
        name: 'move',
        input: { path: 'a.txt' },
        description: 'Move a.txt',
        reason: 'Please confirm.',
        step: 1,
        agentPath: [],
      },
    ]);
  });

  it('A20 records turn.suspend last, and neither step.end nor turn.end nor a result', async () => {
    const { recorded, recording, result } = await suspended([toolCall('move', { path: 'a' })], { tools: [mover()] });

    expect(outline(recorded)).toStrictEqual(['turn.begin', 'message', 'step.begin', 'usage', 'tool.call call_1', 'turn.suspend']);
    expect(recorded.at(-1)).toMatchObject({ calls: [{ toolCallId: 'call_1', pending: result.pending }] });
    expect(recording.of('turn.interrupted')).toStrictEqual([]);
  });

  it('A20 is an open turn of plain JSON, with a history that is valid meanwhile', async () => {
    const { transcript, result } = await suspended([toolCall('move', { path: 'a' })], { tools: [mover()] });

    const open = transcript.openTurn()!;

    expect(open).toMatchObject({ suspended: true, steps: 1, step: { calls: [{ suspended: { pending: result.pending } }] } });
    expect(throughJson(open)).toStrictEqual(open);
    expect(transcript.buildMessages().map((message) => message.role)).toStrictEqual(['user', 'assistant', 'tool']);
  });

  it('finishes what does not conflict with the call, and keeps what does and stands behind it unstarted', async () => {
    const move = mover();
    const calls = ['a', 'b', 'a', 'c'].map((path) => toolCall('move', { path }));

    const { result, recorded } = await suspended(calls, {
      tools: [move],
      hooks: [
        {
          name: 'first',
          authorizeToolCall: (_context, { toolCallId }) => (toolCallId === 'call_1' ? { action: 'suspend' } : undefined),
        },
      ],
    });

    expect(move.inputs).toStrictEqual([{ path: 'b' }, { path: 'c' }]);
    expect(result.pending!.map(({ toolCallId }) => toolCallId)).toStrictEqual(['call_1']);
    expect(outline(recorded).filter((line) => /finished|result/.test(line))).toStrictEqual([
      'tool.finished call_2',
      'tool.finished call_4',
    ]);
  });

  it('records the results of calls before it', async () => {
    const { recorded } = await suspended([toolCall('echo', { text: 'a' }), toolCall('move', { path: 'b' })], {
      tools: [echoTool({ readOnly: true }), mover()],
      hooks: [approval('move')],
    });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'ok', 'a']]);
  });

  it('waits for calls that run', async () => {
    const gate = gatedTool({ accesses: [] });
    const turn = startScripted({
      replies: [[toolCall('move', { path: 'a' }), toolCall('gate')]],
      tools: [mover(), gate],
      hooks: [approval('move')],
    });
    await turn.runtime.flush();
    expect(turn.recorded.map((event) => event.type)).not.toContain('turn.suspend');

    gate.finish('late');
    const { result, recorded } = await turn.finish();

    expect(result.stopReason).toBe('suspended');
    expect(outline(recorded).slice(-2)).toStrictEqual(['tool.finished call_2', 'turn.suspend']);
  });

  it('gives its share of the parallel limit to others', async () => {
    const move = mover();

    const { result } = await suspended([toolCall('move', { path: 'a' }), toolCall('move', { path: 'b' })], {
      tools: [move],
      maxParallelTools: 1,
      hooks: [
        {
          name: 'first',
          authorizeToolCall: (_context, { toolCallId }) => (toolCallId === 'call_1' ? { action: 'suspend' } : undefined),
        },
      ],
    });

    expect(result.stopReason).toBe('suspended');
    expect(move.inputs).toStrictEqual([{ path: 'b' }]);
  });

  it('ends aborted, with every call closed, when it is aborted before all else is done', async () => {
    const turn = startScripted({
      replies: [[toolCall('move', { path: 'a' }), toolCall('hang')]],
      tools: [mover(), hangingTool({ accesses: [] })],
      hooks: [approval('move')],
    });
    await turn.runtime.flush();

    turn.control.abort();
    const { result, recorded } = await turn.finish();

    expect(result.stopReason).toBe('aborted');
    expect(resultLines(recorded).map(([id, outcome]) => [id, outcome])).toStrictEqual([
      ['call_1', 'error'],
      ['call_2', 'error'],
    ]);
  });
});

describe('a resume with decisions', () => {
  it.each<[string, ToolCallDecision, string, readonly unknown[]]>([
    ['allow', { toolCallId: 'call_1', action: 'allow' }, 'moved a', [{ path: 'a' }]],
    ['deny', { toolCallId: 'call_1', action: 'deny', reason: 'Leave it there.' }, 'Leave it there.', []],
    ['edit', { toolCallId: 'call_1', action: 'edit', input: { path: 'z' } }, 'moved z', [{ path: 'z' }]],
    ['answer', { toolCallId: 'call_1', action: 'answer', result: 'moved by hand' }, 'moved by hand', []],
  ])('A20 carries out %s, and the turn goes on', async (_what, decision, text, inputs) => {
    const move = mover();
    const before = await suspended([toolCall('move', { path: 'a' })], { tools: [mover()] });

    const { result, transcript, recorded } = await resumed(before, [decision], { tools: [move], hooks: [approval()] });

    expect(move.inputs).toStrictEqual(inputs);
    expect(resultTexts(recorded)).toStrictEqual([text]);
    expect(result).toMatchObject({ turnId: 'turn_1', stopReason: 'end_turn', steps: 2, text: 'done', usage: toUsage({ inputTokens: 11 }) });
    expect(checkTranscript(transcript.events, { complete: true, result })).toStrictEqual([]);
  });

  it('A20 records turn.resume first, then finishes the step under its own id', async () => {
    const decisions = [{ toolCallId: 'call_1', action: 'allow' }] as const;
    const before = await suspended([toolCall('move', { path: 'a' })], { tools: [mover()] });

    const { recorded } = await resumed(before, decisions, { tools: [mover()] });

    expect(outline(recorded)).toStrictEqual([
      'turn.resume',
      'tool.start call_1',
      'tool.finished call_1',
      'tool.result call_1',
      'step.end',
      'step.begin',
      'usage',
      'content.part',
      'step.end',
      'turn.end',
    ]);
    expect(recorded[0]).toMatchObject({ type: 'turn.resume', decisions, turnId: 'turn_1', at: 1_000_000 });
    expect(recorded[4]).toMatchObject({ step: 1, stepId: 'step_1', stopReason: 'tool_use', usage: toUsage({ inputTokens: 10 }) });
  });

  it('A20 records the final arguments of an edited call when it starts', async () => {
    const before = await suspended([toolCall('move', { path: 'a' })], { tools: [mover()] });

    const { recording } = await resumed(before, [{ toolCallId: 'call_1', action: 'edit', input: { path: 'z' } }], { tools: [mover()] });

    expect(recording.of('tool.start')).toMatchObject([{ toolCallId: 'call_1', input: { path: 'z' } }]);
  });

  it('A20 validates edited arguments', async () => {
    const echo = echoTool();
    const before = await suspended([toolCall('echo', { text: 'a' })], { tools: [echo] });

    const { recorded } = await resumed(before, [{ toolCallId: 'call_1', action: 'edit', input: { text: 7 } }], { tools: [echo] });

    expect(echo.runCount).toBe(0);
    expect(resultTexts(recorded)[0]).toContain('"text" must be string, not number');
  });

  it('A20 asks the hook that suspended about edited arguments: it may refuse them, and does not suspend them again', async () => {
    const guard: Hook = {
      name: 'approval',
      authorizeToolCall: (_context, { input }) =>
        JSON.stringify(input).includes('secret') ? { action: 'deny', reason: 'Never there.' } : { action: 'suspend' },
    };
    const before = await suspended([toolCall('move', { path: 'a' })], { tools: [mover()], hooks: [guard] });
    const decide = (path: string): Promise<ScriptedOutcome> =>
      resumed(before, [{ toolCallId: 'call_1', action: 'edit', input: { path } }], { tools: [mover()], hooks: [guard] });

    expect(resultTexts((await decide('z')).recorded)).toStrictEqual(['moved z']);
    expect(resultTexts((await decide('secret')).recorded)[0]).toContain('Never there.');
  });

  it('A20 sends the model all results in provider order', async () => {
    const calls = ['a', 'b', 'c'].map((path) => toolCall('move', { path }));
    const before = await suspended(calls, { tools: [mover()], hooks: [approval('nothing'), secondOnly()] });

    const { llm } = await resumed(before, [{ toolCallId: 'call_2', action: 'deny', reason: 'no' }], { tools: [mover()] });

    expect(conversation(llm.requests[0]!.messages).slice(2)).toStrictEqual([
      'tool call_1: moved a',
      'tool call_2: Error: the tool call failed.\nno',
      'tool call_3: moved c',
    ]);
  });

  it('A20 leaves a call without a decision pending, and the turn suspended', async () => {
    const move = mover();
    const before = await suspended([toolCall('move', { path: 'a' }), toolCall('move', { path: 'b' })], { tools: [move] });

    const second = await resumed(before, [{ toolCallId: 'call_2', action: 'allow' }], { tools: [move], hooks: [approval()], replies: [] });
    const third = await runScripted({
      ...secondProcess(second.transcript.events, 'c'),
      replies: ['done'],
      tools: [move],
      resume: { decisions: [{ toolCallId: 'call_1', action: 'allow' }] },
    });

    expect(second.result).toMatchObject({ stopReason: 'suspended', pending: [{ toolCallId: 'call_1' }] });
    expect(move.inputs).toStrictEqual([{ path: 'b' }, { path: 'a' }]);
    expect(third.result).toMatchObject({ stopReason: 'end_turn', steps: 2 });
    expect(resultLines(third.recorded)).toStrictEqual([
      ['call_1', 'ok', 'moved a'],
      ['call_2', 'ok', 'moved b'],
    ]);
  });

  it('A20 runs what waited behind the call, after asking its hooks again', async () => {
    const asked: string[] = [];
    const move = mover();
    const hook = (): Hook => ({
      name: 'first',
      authorizeToolCall: (_context, { toolCallId }) => {
        asked.push(toolCallId);
        return toolCallId === 'call_1' ? { action: 'suspend' } : undefined;
      },
    });
    const calls = [toolCall('move', { path: 'a' }), toolCall('move', { path: 'a' })];
    const before = await suspended(calls, { tools: [move], hooks: [hook()] });
    asked.length = 0;

    const { recorded } = await resumed(before, [{ toolCallId: 'call_1', action: 'allow' }], { tools: [move], hooks: [hook()] });

    expect(asked).toStrictEqual(['call_2']);
    expect(move.runs.map((run) => run.toolCallId)).toStrictEqual(['call_1', 'call_2']);
    expect(resultLines(recorded)).toHaveLength(2);
  });

  it('A20 gives a call whose tool is gone the result of an unknown tool', async () => {
    const before = await suspended([toolCall('move', { path: 'a' })], { tools: [mover()] });

    const { recorded, result } = await resumed(before, [{ toolCallId: 'call_1', action: 'allow' }], { tools: [echoTool()] });

    expect(resultTexts(recorded)[0]).toContain('There is no tool named "move", so nothing was run.');
    expect(result.stopReason).toBe('end_turn');
  });

  it('A20 reports a decision that speaks of no pending call', async () => {
    const before = await suspended([toolCall('move', { path: 'a' })], { tools: [mover()] });

    const { recording, result } = await resumed(before, [{ toolCallId: 'nope', action: 'allow' }], { tools: [mover()], hooks: [approval()] });

    expect(recording.of('notice')).toMatchObject([{ name: 'decision.unmatched', data: { toolCallId: 'nope' } }]);
    expect(result).toMatchObject({ stopReason: 'suspended', pending: [{ toolCallId: 'call_1' }] });
  });

  it('A20 does not run a call again that had finished before the suspension', async () => {
    const move = mover();
    const calls = [toolCall('move', { path: 'a' }), toolCall('move', { path: 'b' })];
    const before = await suspended(calls, { tools: [move], hooks: [firstOnly()] });

    await resumed(before, [{ toolCallId: 'call_1', action: 'deny' }], { tools: [move] });

    expect(move.inputs).toStrictEqual([{ path: 'b' }]);
  });

  it('A20 restarts the deadline', async () => {
    const before = await suspended([toolCall('hang')], { tools: [hangingTool()], deadlineMs: 100 });

    const { result, runtime } = await resumed(before, [{ toolCallId: 'call_1', action: 'allow' }], { tools: [hangingTool()], deadlineMs: 100 });

    expect(result.stopReason).toBe('deadline');
    expect(runtime.now()).toBe(1_000_100);
  });
});

describe('a tool that suspends', () => {
  it('A20 ends the turn suspended with its call pending, and its state recorded', async () => {
    const { result, recorded } = await runScripted({ replies: [toolCall('ask', { q: 1 })], tools: [asking({ page: 3 })] });

    expect(result).toMatchObject({
      stopReason: 'suspended',
      pending: [{ toolCallId: 'call_1', name: 'ask', input: { q: 1 }, step: 1, agentPath: [] }],
    });
    expect(recorded.at(-1)).toMatchObject({ type: 'turn.suspend', calls: [{ toolCallId: 'call_1', state: { page: 3 } }] });
  });

  it.each(['safe', 'idempotent', 'never'] as const)('A20 runs again with its state and the decisions, whatever its replay: %s', async (replay) => {
    const ask = Object.assign(asking({ page: 3 }), { replay });
    const before = await runScripted({ replies: [toolCall('ask')], tools: [ask] });
    const decision = { toolCallId: 'call_1', action: 'answer', result: 'yes' } as const;

    const { recorded, result } = await resumed(before, [decision], { tools: [ask] });

    expect(ask.runCount).toBe(2);
    expect(JSON.parse(resultTexts(recorded)[0]!)).toStrictEqual({ state: { page: 3 }, decisions: [decision] });
    expect(result.stopReason).toBe('end_turn');
  });

  it('A20 names the way to calls of a sub-agent, and is given the decisions about them', async () => {
    const below: PendingCall = { toolCallId: 'child_call', name: 'rm', input: {}, step: 4, agentPath: ['inner'] };
    const ask = asking('child state', [below]);
    const before = await runScripted({ replies: [toolCall('ask')], tools: [ask] });
    const decision = { toolCallId: 'child_call', action: 'allow' } as const;

    const { recorded } = await resumed(before, [decision], { tools: [ask] });

    expect(before.result.pending).toStrictEqual([{ ...below, agentPath: ['call_1', 'inner'] }]);
    expect(JSON.parse(resultTexts(recorded)[0]!)).toStrictEqual({ state: 'child state', decisions: [decision] });
  });

  it('A20 may suspend again', async () => {
    const twice = recordingTool({
      name: 'twice',
      execute: (_input, { resumed: back }) => (back?.state === 2 ? 'at last' : suspend({ state: back === undefined ? 1 : 2 })),
    });
    const allow = [{ toolCallId: 'call_1', action: 'allow' }] as const;
    const first = await runScripted({ replies: [toolCall('twice')], tools: [twice] });

    const second = await resumed(first, allow, { tools: [twice], replies: [] });
    const third = await runScripted({ ...secondProcess(second.transcript.events, 'c'), replies: ['done'], tools: [twice], resume: { decisions: allow } });

    expect(second.result.stopReason).toBe('suspended');
    expect(resultTexts(third.recorded)).toStrictEqual(['at last']);
  });
});

describe('closeOpenTurn', () => {
  it('A20 gives up a suspended turn: its calls are not executed, and it ends aborted', async () => {
    const { transcript, runtime } = await suspended([toolCall('move', { path: 'a' }), toolCall('move', { path: 'b' })], {
      tools: [mover()],
      hooks: [firstOnly()],
    });

    await closeOpenTurn(transcript, { runtime });

    expect(resultLines(transcript.events)).toStrictEqual([
      ['call_1', 'error', 'This call was not executed: the turn was given up.'],
      ['call_2', 'ok', 'moved b'],
    ]);
    expect(transcript.events.at(-1)).toMatchObject({ type: 'turn.end', stopReason: 'aborted', steps: 1 });
    expect(transcript.openTurn()).toBeUndefined();
    expect(checkTranscript(transcript.events, { complete: true })).toStrictEqual([]);
  });

  it('leaves a conversation that goes on', async () => {
    const before = await suspended([toolCall('move', { path: 'a' })], { tools: [mover()] });
    const { transcript, runtime } = secondProcess(before.transcript.events);
    await closeOpenTurn(transcript, { runtime });

    const { llm } = await runScripted({ transcript, runtime, replies: ['ok'], input: 'something else' });

    expect(conversation(llm.requests[0]!.messages)).toStrictEqual([
      'user: hi',
      'assistant: move()',
      'tool call_1: Error: the tool call failed.\nThis call was not executed: the turn was given up.',
      'user: something else',
    ]);
  });

  it('says of a call that had started that its effects may have happened', async () => {
    const { recorded, runtime } = await runScripted({ replies: [toolCall('echo'), 'done'], tools: [echoTool()] });
    const transcript = createTranscript(recorded.slice(0, recorded.findIndex((event) => event.type === 'tool.finished')));

    await closeOpenTurn(transcript, { runtime });

    expect(resultTexts(transcript.events)).toStrictEqual([
      'The turn was given up while this call was running: its effects may have happened.',
    ]);
  });

  it('sends the closing events to the host that asks for them', async () => {
    const { transcript, runtime } = await suspended([toolCall('move', { path: 'a' })], { tools: [mover()] });
    const seen: string[] = [];

    await closeOpenTurn(transcript, {
      runtime,
      dispatchEvent: (event) => {
        seen.push(event.type);
      },
    });

    expect(seen).toStrictEqual(['tool.finished', 'tool.result', 'turn.end']);
  });

  it('does nothing when no turn is open', async () => {
    const { transcript } = await runScripted({ replies: ['ok'] });
    const count = transcript.events.length;

    await closeOpenTurn(transcript);

    expect(transcript.events).toHaveLength(count);
  });
});

function firstOnly(): Hook {
  return only('call_1');
}

function secondOnly(): Hook {
  return only('call_2');
}

function only(id: string): Hook {
  return { name: id, authorizeToolCall: (_context, { toolCallId }) => (toolCallId === id ? { action: 'suspend' } : undefined) };
}
