/**
 * A resume under adverse conditions: hooks that edit and suspend, services that are down, processes that die between two
 * steps, and two people who go on with the same turn.
 */
import { describe, expect, it } from 'vitest';
import { createTranscript, type Hook, type HookRecord, type RecordedEvent, suspend, type SuspendOptions, type ToolCallDecision } from 'turnloop';
import { checkTranscript, echoTool, type EventMoment, recordingTool, runScripted, type RunScriptedOptions, startScripted, toolCall } from 'turnloop/testing';
import { conversation, crash, outline, resultLines, resultTexts, resumeFrom, secondProcess, stepLimit } from './support.ts';

const ALLOW: ToolCallDecision = { toolCallId: 'call_1', action: 'allow' };
const ASK: Hook = { name: 'ask', authorizeToolCall: () => ({ action: 'suspend' }) };
const never = <Value>(): Promise<Value> => new Promise(() => undefined);

/** A turn whose one call waits for a person. */
async function suspended(): Promise<readonly RecordedEvent[]> {
  const { recorded } = await runScripted({ replies: [toolCall('echo', { text: 'hi' })], tools: [echoTool()], hooks: [ASK] });
  return recorded;
}

describe('a decision', () => {
  it('lets the call run with the edited arguments that the person saw', async () => {
    const remove = recordingTool({ name: 'remove', describe: ({ path }) => `remove ${String(path)}` });
    const sandbox: Hook = { name: 'sandbox', authorizeToolCall: () => ({ action: 'edit', input: { path: '/sandbox/x' } }) };
    const options = { tools: [remove], hooks: [sandbox, ASK] };
    const first = await runScripted({ ...options, replies: [toolCall('remove', { path: '/etc' })] });

    await resumeFrom(first.recorded, { ...options, replies: ['done'], resume: { decisions: [ALLOW] } });

    expect(first.result.pending).toMatchObject([{ input: { path: '/sandbox/x' }, description: 'remove /sandbox/x' }]);
    expect(remove.inputs).toStrictEqual([{ path: '/sandbox/x' }]);
  });

  it('answers for the hook that suspended, not for those behind it', async () => {
    const echo = echoTool();
    const policy: Hook = { name: 'policy', authorizeToolCall: () => ({ action: 'deny', reason: 'never on Fridays' }) };
    const first = await runScripted({ replies: [toolCall('echo')], tools: [echo], hooks: [ASK, policy] });

    const second = await resumeFrom(first.recorded, {
      replies: ['done'],
      tools: [echo],
      hooks: [ASK, policy],
      resume: { decisions: [ALLOW] },
    });

    expect(echo.runCount).toBe(0);
    expect(resultTexts(second.recorded)).toStrictEqual(['never on Fridays']);
  });

  it('reaches the second of two hooks that suspend under one name', async () => {
    const echo = echoTool();
    const options = { tools: [echo], hooks: [ASK, ASK] };
    const first = await runScripted({ ...options, replies: [toolCall('echo', { text: 'twice asked' })] });

    const second = await resumeFrom(first.recorded, { ...options, resume: { decisions: [ALLOW] } });
    const third = await runScripted({
      ...options,
      ...secondProcess(second.transcript.events, 'c'),
      replies: ['done'],
      resume: { decisions: [ALLOW] },
    });

    expect([second.result.stopReason, third.result.stopReason]).toStrictEqual(['suspended', 'end_turn']);
    expect(echo.inputs).toStrictEqual([{ text: 'twice asked' }]);
  });

  it('about a call that waits behind the suspended one is reported as meant for nobody', async () => {
    const hooks: Hook[] = [
      { name: 'ask', authorizeToolCall: (_context, call) => (call.toolCallId === 'call_1' ? { action: 'suspend' } : undefined) },
    ];
    const options = { tools: [echoTool()], hooks };
    const first = await runScripted({ ...options, replies: [[toolCall('echo'), toolCall('echo')]] });
    const deny: ToolCallDecision = { toolCallId: 'call_2', action: 'deny' };

    const second = await resumeFrom(first.recorded, { ...options, replies: ['done'], resume: { decisions: [ALLOW, deny] } });

    expect(second.recording.of('notice')).toMatchObject([{ name: 'decision.unmatched', data: { toolCallId: 'call_2' } }]);
  });

  it('about a call below one that suspended without a state finds its way', async () => {
    const pending = [{ toolCallId: 'child', name: 'x', input: {}, step: 1, agentPath: [] }];
    const agent = recordingTool({
      name: 'agent',
      execute: (_input, { resumed }) =>
        resumed === undefined ? suspend({ pending } as unknown as SuspendOptions) : JSON.stringify(resumed),
    });
    const first = await runScripted({ replies: [toolCall('agent')], tools: [agent] });
    const decisions: ToolCallDecision[] = [{ toolCallId: 'child', action: 'allow' }];

    const second = await resumeFrom(first.recorded, { replies: ['done'], tools: [agent], resume: { decisions } });

    expect(resultTexts(second.recorded)).toStrictEqual([JSON.stringify({ state: null, decisions })]);
  });

  it('is refused where it contradicts another about the same call', async () => {
    const turn = createTranscript(await suspended()).openTurn();
    const deny: ToolCallDecision = { toolCallId: 'call_1', action: 'deny' };

    const contradicted = runScripted({ tools: [echoTool()], resume: { ...(turn && { turn }), decisions: [ALLOW, deny] } });

    await expect(contradicted).rejects.toThrow(TypeError);
    await expect(contradicted).rejects.toThrow('two decisions about call "call_1"');
  });
});

describe('a resume that cannot begin', () => {
  it.each<[string, string, Partial<RunScriptedOptions>]>([
    ['the tools', 'setup_failed', { tools: () => Promise.reject(new Error('server down')) }],
    ['the model', 'setup_failed', { decorate: () => () => Promise.reject(new Error('no key')) }],
    ['the history', 'history_failed', { buildMessages: () => Promise.reject(new Error('no disk')) }],
  ])('leaves the turn as it was where %s cannot be had', async (_what, code, broken) => {
    const echo = echoTool();
    const { transcript, runtime } = secondProcess(await suspended());
    const before = transcript.events.length;

    const options = { transcript, runtime, tools: [echo], resume: { decisions: [ALLOW] } };
    const failed = await runScripted({ ...options, ...broken, check: false });
    const count = transcript.events.length;
    const again = await runScripted({ ...options, replies: ['done'] });

    expect(failed.result).toMatchObject({ stopReason: 'fatal_error', error: { code } });
    expect(count).toBe(before);
    expect([again.result.stopReason, echo.inputs]).toStrictEqual(['end_turn', [{ text: 'hi' }]]);
  });

  it('leaves the turn as it was where it is aborted while the tools are asked for', async () => {
    const { transcript, runtime } = secondProcess(await suspended());
    const turn = startScripted({ transcript, runtime, tools: () => never(), resume: { decisions: [ALLOW] }, check: false });
    await runtime.flush();

    turn.control.abort();
    const { result } = await turn.finish();

    expect(result.stopReason).toBe('aborted');
    expect([turn.recorded, transcript.openTurn()?.suspended]).toStrictEqual([[], true]);
  });

  it('closes the calls whose arguments are still being checked when it is aborted', async () => {
    const { transcript, runtime } = secondProcess(await suspended());
    const slow = echoTool({ parseInput: () => never() });
    const turn = startScripted({ transcript, runtime, tools: [slow], resume: { decisions: [ALLOW] } });
    await runtime.flush();

    turn.control.abort();
    await turn.finish();

    expect(outline(turn.recorded)).toStrictEqual(['turn.resume', 'tool.finished call_1', 'tool.result call_1', 'step.end', 'turn.end']);
    expect(slow.runCount).toBe(0);
  });

  it('runs what a person allowed, and ends where a stop condition throws', async () => {
    const stopWhen = Object.assign(
      () => {
        throw new Error('no prices');
      },
      { afterReply: true },
    );

    const options = { tools: [echoTool()], stopWhen, resume: { decisions: [ALLOW] } };
    const { recorded, result } = await resumeFrom(await suspended(), options);

    expect(outline(recorded)).toStrictEqual(['turn.resume', 'tool.start call_1', 'tool.finished call_1', 'tool.result call_1', 'step.end', 'turn.end']);
    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'hook_failed' } });
  });
});

describe('a resume behind the end of a step', () => {
  it('ends the turn that a tool had stopped', async () => {
    const finish = recordingTool({ name: 'finish', execute: () => ({ content: 'ok', stopTurn: true }) });
    const events = await crash('step.end', { replies: [toolCall('finish')], tools: [finish] });

    const { result, llm } = await resumeFrom(events, { replies: ['more'], tools: [finish] });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'finish', steps: 1 });
    expect([llm.callCount, finish.runCount]).toStrictEqual([0, 1]);
  });

  it('asks afterStep, which may not have been asked before the crash', async () => {
    const steps: unknown[] = [];
    const enough: Hook = {
      name: 'enough',
      afterStep: ({ step }, { stopReason, results }) => {
        steps.push([step, stopReason, results.map(({ name, input }) => [name, input])]);
        return { reason: 'that will do' };
      },
    };
    const events = await crash('step.end', { replies: [toolCall('echo', { text: 'a' })], tools: [echoTool()] });

    const { result, llm } = await resumeFrom(events, { replies: ['more'], tools: [echoTool()], hooks: [enough] });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'enough', stopMessage: 'that will do' });
    expect([steps, llm.callCount]).toStrictEqual([[[1, 'tool_use', [['echo', { text: 'a' }]]]], 0]);
  });

  it('asks the model no more where only a compaction followed its last reply', async () => {
    const compaction: HookRecord = { type: 'compaction', layer: 'x', edits: [], tokensBefore: 1, tokensAfter: 1 };
    const compact: Hook = { name: 'compact', afterStep: (context) => context.record(compaction) };
    const events = await crash('compaction', { replies: ['the answer'], hooks: [compact] });

    const { result, llm } = await resumeFrom(events, { replies: ['asked again'] });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'the answer', steps: 1 });
    expect(llm.callCount).toBe(0);
  });

  it('grants the last step after a limit once, with one message', async () => {
    const sumUp: Hook = { name: 'sum-up', shouldContinueAfterStop: (_context, { limit }) => limit };
    const options = { tools: [echoTool({ replay: 'idempotent' })], hooks: [sumUp], stopWhen: stepLimit(1) };
    const isGrant: EventMoment = (event) => event.type === 'message' && event.afterLimit !== undefined;
    const events = await crash(isGrant, { ...options, replies: [toolCall('echo', { text: 'a' })] });

    const { result, transcript } = await resumeFrom(events, { ...options, replies: ['in short: a'] });

    expect(result).toMatchObject({ stopReason: 'max_steps', text: 'in short: a', steps: 2 });
    expect(conversation(transcript.buildMessages()).filter((line) => line.startsWith('user'))).toHaveLength(2);
  });
});

describe('a resume of what had started', () => {
  it('says that the outcome is unknown where the tool is gone too', async () => {
    const isStart: EventMoment = (event) => event.type === 'tool.start';
    const events = await crash(isStart, { replies: [toolCall('echo')], tools: [echoTool()] });

    const { recorded } = await resumeFrom(events, { replies: ['done'], tools: [] });

    const [line] = resultLines(recorded);
    expect(line?.slice(0, 2)).toStrictEqual(['call_1', 'error']);
    expect(line?.[2]).toContain('not known whether it took effect');
    expect(line?.[2]).not.toContain('nothing was run');
  });
});

describe('an open turn', () => {
  it('is resumed once: a second resume from the same state runs nothing', async () => {
    const echo = echoTool();
    const { transcript, runtime } = secondProcess(await suspended());
    const turn = transcript.openTurn();
    const resume = { ...(turn && { turn }), decisions: [ALLOW] };
    const options = { transcript, runtime, tools: [echo], check: false };

    const first = await runScripted({ ...options, replies: ['done'], resume });
    const count = transcript.events.length;
    const second = await runScripted({ ...options, replies: ['done'], resume });

    expect(first.result.stopReason).toBe('end_turn');
    expect(second.result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'stale_resume' } });
    expect([echo.runCount, transcript.events.length]).toStrictEqual([1, count]);
    expect(checkTranscript(transcript.events, { complete: true })).toStrictEqual([]);
  });

  it('goes on once where two resume it at the same time', async () => {
    const echo = echoTool();
    const { transcript, runtime } = secondProcess(await suspended());
    const turn = transcript.openTurn();
    const options = { transcript, runtime, tools: [echo], resume: { ...(turn && { turn }), decisions: [ALLOW] }, check: false };

    const both = [startScripted({ ...options, replies: ['done'] }), startScripted({ ...options, replies: ['done'] })];
    const [one, other] = await Promise.all(both.map((started) => started.finish()));

    expect([one?.result.stopReason, other?.result.stopReason].sort()).toStrictEqual(['end_turn', 'fatal_error']);
    expect(echo.runCount).toBe(1);
    expect(checkTranscript(transcript.events, { complete: true })).toStrictEqual([]);
  });

  it('that was resumed and suspended again takes no decision meant for the time before', async () => {
    const echo = echoTool();
    const { transcript, runtime } = secondProcess(await suspended());
    const stale = transcript.openTurn();
    const options = { transcript, runtime, tools: [echo], check: false };
    await runScripted({ ...options, resume: {} });

    const late = await runScripted({ ...options, resume: { ...(stale && { turn: stale }), decisions: [ALLOW] } });

    expect(late.result.error).toMatchObject({ code: 'stale_resume' });
    expect([echo.runCount, transcript.openTurn()?.suspended]).toStrictEqual([0, true]);
  });
});
