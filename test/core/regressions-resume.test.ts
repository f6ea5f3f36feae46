/**
 * A resume keeps to what the record says: a limit that was met stays met, one that was not met stays away, and whoever
 * comes too late is told so.
 */
import { describe, expect, it } from 'vitest';
import { createTranscript, type Hook, textOf, toUsage } from 'turnloop';
import { crashingRecorder, echoTool, type EventMoment, runScripted, type RunScriptedOptions, startScripted, toolCall } from 'turnloop/testing';
import { conversation, crash, outputBudget, resultLines, resumeFrom, secondProcess, stepLimit } from './support.ts';

const COSTLY = { usage: { outputTokens: 10 } };

describe('a limit that a reply met', () => {
  it.each<[string, EventMoment]>([
    ['the last call is recorded', (event) => event.type === 'tool.call' && event.toolCallId === 'call_2'],
    ['the first call is closed', 'tool.finished'],
    ['the first call has its result', 'tool.result'],
  ])('keeps its calls closed where the process dies after %s', async (_when, at) => {
    const echo = echoTool();
    const options = { tools: [echo], stopWhen: outputBudget(10) };
    const replies = [{ ...COSTLY, content: [toolCall('echo'), toolCall('echo')] }];
    const whole = await runScripted({ ...options, replies });
    const events = await crash(at, { ...options, replies });

    const { result, llm, transcript } = await resumeFrom(events, { ...options, replies: ['more'] });

    expect(result).toMatchObject({ stopReason: 'max_budget', stoppedBy: 'outputBudget' });
    expect(resultLines(transcript.events)).toStrictEqual(resultLines(whole.recorded));
    expect([echo.runCount, llm.callCount]).toStrictEqual([0, 0]);
  });

  it('ends the turn where the process dies behind the step of a reply without calls', async () => {
    const options = { stopWhen: outputBudget(10) };
    const events = await crash('step.end', { ...options, replies: [{ ...COSTLY, content: 'the answer' }] });

    const { result, llm } = await resumeFrom(events, { ...options, replies: ['more'] });

    expect(result).toMatchObject({ stopReason: 'max_budget', stoppedBy: 'outputBudget', text: 'the answer' });
    expect(llm.callCount).toBe(0);
  });

  it('is what hooks are asked about where the process dies behind the step', async () => {
    const asked: unknown[] = [];
    const ask: Hook = {
      name: 'ask',
      shouldContinueAfterStop: (_context, { stopReason, limit }) => {
        asked.push([stopReason, limit]);
        return undefined;
      },
    };
    const options = { stopWhen: outputBudget(10), hooks: [ask] };
    const events = await crash('step.end', { ...options, replies: [{ ...COSTLY, content: 'the answer' }] });
    const before = asked.splice(0);

    await resumeFrom(events, options);

    expect([before, asked]).toStrictEqual([[], [['max_budget', true]]]);
  });
});

describe('a limit that a reply did not meet', () => {
  it('does not close a call that a person allowed, whatever was spent since', async () => {
    const echo = echoTool();
    const judge: Hook = {
      name: 'judge',
      authorizeToolCall: async ({ record }) => {
        await record({ type: 'usage', modelId: 'judge', purpose: 'other', usage: toUsage({ outputTokens: 5 }) });
        return { action: 'suspend' };
      },
    };
    const options = { tools: [echo], hooks: [judge], stopWhen: outputBudget(11) };
    const first = await runScripted({ ...options, replies: [{ ...COSTLY, content: [toolCall('echo', { text: 'allowed' })] }] });

    const decisions = [{ toolCallId: 'call_1', action: 'allow' }] as const;
    const second = await resumeFrom(first.recorded, { ...options, resume: { decisions } });

    expect(first.result.stopReason).toBe('suspended');
    expect(resultLines(second.recorded)).toStrictEqual([['call_1', 'ok', 'allowed']]);
    expect([second.result.stopReason, echo.runCount]).toStrictEqual(['max_budget', 1]);
  });
});

describe('the last step after a limit', () => {
  it('is granted once, also where steering was delivered in front of it', async () => {
    const sumUp: Hook = { name: 'sum-up', shouldContinueAfterStop: (_context, { limit }) => limit };
    const options = { tools: [echoTool()], hooks: [sumUp], stopWhen: stepLimit(1) };
    const isSteering: EventMoment = (event) => event.type === 'message' && textOf(event.message) === 'briefly';
    const recorder = crashingRecorder({ at: isSteering });
    const turn = startScripted({
      ...options,
      replies: [toolCall('echo', { text: 'a' })],
      record: recorder,
      listener: (event) => {
        if (event.type === 'message' && event.afterLimit !== undefined) void turn.control.steer('briefly');
      },
    });
    await turn.runtime.settle(recorder.crashed);

    const { result, llm, transcript } = await resumeFrom(recorder.events, { ...options, replies: ['in short: a', 'again'] });

    expect(result).toMatchObject({ stopReason: 'max_steps', stoppedBy: 'stepLimit', steps: 2, text: 'in short: a' });
    expect(llm.requests).toMatchObject([{ toolChoice: 'none' }]);
    expect(conversation(transcript.buildMessages()).filter((line) => line.startsWith('user'))).toHaveLength(3);
  });
});

describe('a resume that cannot be recorded', () => {
  async function twice(record?: RunScriptedOptions['record']) {
    const ask: Hook = { name: 'ask', authorizeToolCall: () => ({ action: 'suspend' }) };
    const options = { tools: [echoTool()], hooks: [ask], check: false };
    const first = await runScripted({ ...options, replies: [toolCall('echo')] });
    const scene = { ...options, ...secondProcess(first.recorded) };
    const turn = scene.transcript.openTurn();
    const resume = turn === undefined ? {} : { turn };
    if (record === undefined) await runScripted({ ...scene, resume });
    return runScripted({ ...scene, ...(record && { record }), resume });
  }

  it('says that the turn has gone on in between', async () => {
    const { result } = await twice();

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'stale_resume' } });
    expect(JSON.parse(JSON.stringify(result.error))).toHaveProperty('kind', 'stale_resume');
  });

  it('says that the store failed where that is what happened', async () => {
    const { result } = await twice(() => Promise.reject(new Error('disk full')));

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'recorder_failed' } });
    expect(result.error?.message).toContain('disk full');
  });
});

it('a turn whose last reply was empty has no text after a crash behind its step either', async () => {
  const replies = [['Hello.', toolCall('echo', { text: 'a' })], { content: [], stopReason: 'max_tokens' as const }];
  const { transcript, result } = await runScripted({ replies, tools: [echoTool()] });
  const end = transcript.events.findLastIndex((event) => event.type === 'step.end');

  const again = await runScripted({
    transcript: createTranscript(transcript.events.slice(0, end + 1)),
    resume: {},
    tools: [echoTool()],
  });

  expect([result.stopReason, result.text]).toStrictEqual(['max_tokens', '']);
  expect([again.result.stopReason, again.result.text]).toStrictEqual(['max_tokens', '']);
});
