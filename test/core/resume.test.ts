/**
 * Resume after a crash (A19), as a black box: the process dies right after an event became durable, another one goes on
 * from the events alone. What finished is never done again; what may have happened is never done twice.
 */
import { describe, expect, it } from 'vitest';
import { createEventDispatcher, type Hook, type RecordedEvent, runTurn, type ToolReplay, toUsage } from 'turnloop';
import { checkTranscript, crashingRecorder, echoTool, type EventMoment, recordingTool, runScripted, scriptedLLM, startScripted, type TestTool, toolCall } from 'turnloop/testing';
import { conversation, crash, outline, resultLines, resultTexts, resumeFrom, secondProcess, stepLimit } from './support.ts';

function isCallEvent(type: RecordedEvent['type'], toolCallId: string): EventMoment {
  return (event) => event.type === type && 'toolCallId' in event && event.toolCallId === toolCallId;
}

function pay(replay: ToolReplay): TestTool {
  return recordingTool({ name: 'pay', replay, execute: () => 'paid' });
}

const TWO_CALLS = {
  replies: [{ content: [toolCall('echo', { text: 'a' }), toolCall('echo', { text: 'b' })], usage: { inputTokens: 10 } }],
};
const ANSWER = [{ content: 'done', usage: { inputTokens: 1 } }];

describe('a resume after a crash', () => {
  it('A19 ends as the turn would have, wherever it died', async () => {
    const whole = await runScripted({ replies: [...TWO_CALLS.replies, ...ANSWER], tools: [echoTool({ replay: 'idempotent' })] });

    for (let at = 1; at < whole.recorded.length; at += 1) {
      const events = await crash(at, { replies: [...TWO_CALLS.replies, ...ANSWER], tools: [echoTool({ replay: 'idempotent' })] });
      const asked = events.some((event) => event.type === 'tool.call' && event.index === 1);
      const answered = events.some((event) => event.type === 'content.part');

      const { result, transcript } = await resumeFrom(events, {
        replies: answered ? [] : asked ? ANSWER : [...TWO_CALLS.replies, ...ANSWER],
        tools: [echoTool({ replay: 'idempotent' })],
        ...(at === 1 && { input: 'hi' }),
      });

      expect([at, result.stopReason, result.steps, result.text]).toStrictEqual([at, 'end_turn', 2, 'done']);
      expect(resultTexts(transcript.events)).toStrictEqual(['a', 'b']);
      expect(conversation(transcript.buildMessages()).map((line) => line.replace(/call_b?/, 'call_'))).toStrictEqual(
        conversation(whole.transcript.buildMessages()),
      );
    }
  });

  it('A19 runs a call that had no tool.start', async () => {
    const echo = echoTool();
    const events = await crash(isCallEvent('tool.call', 'call_2'), { ...TWO_CALLS, tools: [echoTool()] });

    const { recorded, result } = await resumeFrom(events, { replies: ANSWER, tools: [echo] });

    expect(echo.inputs).toStrictEqual([{ text: 'a' }, { text: 'b' }]);
    expect(outline(recorded).slice(0, 7)).toStrictEqual([
      'turn.resume',
      'tool.start call_1',
      'tool.finished call_1',
      'tool.result call_1',
      'tool.start call_2',
      'tool.finished call_2',
      'tool.result call_2',
    ]);
    expect(result).toMatchObject({ steps: 2, usage: toUsage({ inputTokens: 11 }) });
  });

  it('A19 does not run a never call that had started, and says that its outcome is unknown', async () => {
    const again = pay('never');
    const events = await crash('tool.start', { replies: [toolCall('pay')], tools: [pay('never')] });

    const { recorded } = await resumeFrom(events, { replies: ANSWER, tools: [again] });

    expect(again.runCount).toBe(0);
    expect(resultLines(recorded)).toStrictEqual([
      [
        'call_1',
        'error',
        'The process stopped while this call was running, and it is not known whether it took effect. It was not run again: ' +
          'find out what happened before you repeat it.',
      ],
    ]);
  });

  it('A19 runs an idempotent call that had started again, with the same key', async () => {
    const undisturbed = pay('idempotent');
    const again = pay('idempotent');
    await runScripted({ replies: [toolCall('pay'), 'done'], tools: [undisturbed] });
    const events = await crash('tool.start', { replies: [toolCall('pay')], tools: [pay('idempotent')] });

    const { recorded } = await resumeFrom(events, { replies: ANSWER, tools: [again] });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'ok', 'paid']]);
    expect(again.runs[0]!.context.idempotencyKey).toBe(undisturbed.runs[0]!.context.idempotencyKey);
  });

  it('A19 runs a safe call again, which has no tool.start', async () => {
    const look = echoTool({ readOnly: true });
    const events = await crash('tool.call', { replies: [toolCall('echo', { text: 'a' })], tools: [echoTool({ readOnly: true })] });

    const { recorded } = await resumeFrom(events, { replies: ANSWER, tools: [look] });

    expect(look.runCount).toBe(1);
    expect(outline(recorded).slice(0, 3)).toStrictEqual(['turn.resume', 'tool.finished call_1', 'tool.result call_1']);
  });

  it('A19 never runs a finished call again, nor finalises it twice', async () => {
    const echo = echoTool();
    const finalised: string[] = [];
    const events = await crash(isCallEvent('tool.finished', 'call_1'), { ...TWO_CALLS, tools: [echoTool()] });

    const { recorded } = await resumeFrom(events, {
      replies: ANSWER,
      tools: [echo],
      hooks: [{ name: 'watch', finalizeToolResult: (_context, call) => void finalised.push(call.toolCallId) }],
    });

    expect(echo.inputs).toStrictEqual([{ text: 'b' }]);
    expect(finalised).toStrictEqual(['call_2']);
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'ok', 'a'],
      ['call_2', 'ok', 'b'],
    ]);
  });

  it('A19 gives a call the result that its equal had before the crash', async () => {
    const hooks: readonly Hook[] = [
      {
        name: 'once',
        prepareToolCall: (_context, { toolCallId }) => (toolCallId === 'call_2' ? { action: 'same_as', toolCallId: 'call_1' } : undefined),
      },
    ];
    const echo = echoTool();
    const events = await crash(isCallEvent('tool.finished', 'call_1'), { ...TWO_CALLS, tools: [echoTool()], hooks });

    const { recorded } = await resumeFrom(events, { replies: ANSWER, tools: [echo], hooks });

    expect(echo.runCount).toBe(0);
    expect(resultTexts(recorded)).toStrictEqual(['a', 'a']);
  });

  it('A19 asks authorise hooks about calls that had not started, and not about one that had', async () => {
    const asked: string[] = [];
    const events = await crash(isCallEvent('tool.start', 'call_1'), { ...TWO_CALLS, tools: [echoTool({ replay: 'idempotent' })] });

    await resumeFrom(events, {
      replies: ANSWER,
      tools: [echoTool({ replay: 'idempotent' })],
      hooks: [{ name: 'ask', authorizeToolCall: (_context, call) => void asked.push(call.toolCallId) }],
    });

    expect(asked).toStrictEqual(['call_2']);
  });

  it('A19 asks the step again, under its own number, when its reply was not recorded whole', async () => {
    const replies = [[toolCall('echo', { text: 'a' }), toolCall('echo', { text: 'b' })], 'done'];
    const echo = echoTool();
    const events = await crash(isCallEvent('tool.call', 'call_1'), { replies, tools: [echo] });

    const { result, recording, transcript } = await resumeFrom(events, { replies, tools: [echo] });

    expect(result).toMatchObject({ steps: 2, stopReason: 'end_turn' });
    expect(recording.of('step.begin').map(({ step, stepId }) => [step, stepId])).toStrictEqual([
      [1, 'step_b1'],
      [2, 'step_b2'],
    ]);
    expect(transcript.findings()).toStrictEqual([{ kind: 'void_reply_dropped', messageId: 'step_1' }]);
    expect(echo.runCount).toBe(2);
  });

  it('A19 records the input that was lost, once', async () => {
    const events = await crash('turn.begin', { replies: ['ok'], input: 'Hello' });

    const { transcript } = await resumeFrom(events, { replies: ['ok'], input: 'Hello' });

    expect(conversation(transcript.buildMessages())).toStrictEqual(['user: Hello', 'assistant: ok']);
  });

  it('A19 ignores an input that was recorded already', async () => {
    const events = await crash('step.begin', { replies: ['ok'], input: 'Hello' });

    const { transcript } = await resumeFrom(events, { replies: ['ok'], input: 'Hello' });

    expect(conversation(transcript.buildMessages())).toStrictEqual(['user: Hello', 'assistant: ok']);
  });

  it('A19 goes on with counters and limits: steps, usage and the stop conditions', async () => {
    const events = await crash('step.end', { replies: TWO_CALLS.replies, tools: [echoTool()] });

    const { result, llm } = await resumeFrom(events, { replies: ['never'], tools: [echoTool()], stopWhen: stepLimit(1) });

    expect(result).toMatchObject({ stopReason: 'max_steps', steps: 1, usage: toUsage({ inputTokens: 10 }) });
    expect(llm.callCount).toBe(0);
  });

  it('A19 only closes the turn when the last reply had ended it', async () => {
    const events = await crash('step.end', { replies: ['done'] });

    const { result, recorded, llm } = await resumeFrom(events, { replies: [] });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 1, text: 'done' });
    expect(outline(recorded)).toStrictEqual(['turn.resume', 'turn.end']);
    expect(llm.callCount).toBe(0);
  });

  it('A19 asks a prepare hook again that had held a call', async () => {
    let allowed = false;
    const echo = echoTool();
    const hooks = [
      {
        name: 'gate',
        prepareToolCall: () => (allowed ? undefined : ({ action: 'block', reason: 'closed' } as const)),
      },
    ];
    const events = await crash('tool.call', { replies: [toolCall('echo', { text: 'a' })], tools: [echo], hooks });
    allowed = true;

    const { recorded } = await resumeFrom(events, { replies: ANSWER, tools: [echo], hooks });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'ok', 'a']]);
  });

  it('A19 ends a turn that died while it was ending, with the reason it had', async () => {
    const controller = new AbortController();
    const events = await crash('content.part', {
      replies: [{ content: 'half an answer', chunk: 4, hangs: true, deltaCount: 1 }],
      signal: controller.signal,
      listener: (event) => event.type === 'text.delta' && (controller.abort(), true),
    });

    const { result, llm } = await resumeFrom(events, { replies: [] });

    expect(result).toMatchObject({ stopReason: 'aborted', text: 'half' });
    expect(llm.callCount).toBe(0);
  });

  it('A19 may die and be resumed again and again', async () => {
    const options = { replies: TWO_CALLS.replies, tools: [echoTool({ replay: 'idempotent' })] };
    let events = await crash(isCallEvent('tool.call', 'call_2'), options);
    for (const [round, at] of (['tool.start', 'tool.finished', 'tool.result'] as const).entries()) {
      const second = secondProcess(events, `r${round}`);
      const recorder = crashingRecorder({ at });
      const turn = startScripted({ ...second, resume: {}, tools: options.tools, record: recorder });
      await turn.runtime.settle(recorder.crashed);
      events = [...events, ...recorder.events];
    }

    const { result, transcript } = await runScripted({ ...secondProcess(events, 'z'), resume: {}, replies: ANSWER, tools: options.tools });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2 });
    expect(resultLines(transcript.events)).toHaveLength(2);
    expect(checkTranscript(transcript.events, { complete: true, result })).toStrictEqual([]);
  });

  it('A19 counts the continuations of before', async () => {
    const asked: number[] = [];
    const hooks = [
      {
        name: 'twice',
        shouldContinueAfterStop: (_context: unknown, stop: { readonly continuations: number }) => {
          asked.push(stop.continuations);
          return stop.continuations < 2;
        },
      },
    ];
    const events = await crash((event) => event.type === 'step.begin' && event.step === 2, { replies: ['a', 'b', 'c'], hooks });
    asked.length = 0;

    const { result } = await resumeFrom(events, { replies: ['b', 'c'], hooks });

    expect(asked).toStrictEqual([1, 2]);
    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 3, text: 'c' });
  });

  it('keeps the metadata of the turn', async () => {
    const events = await crash('step.begin', { replies: ['ok'], metadata: { session: 's' } });

    const { recorded } = await resumeFrom(events, { replies: ['ok'] });

    expect(recorded.every((event) => event.metadata?.['session'] === 's')).toBe(true);
  });
});

describe('an open turn', () => {
  it('is left behind when a new turn begins after a crash', async () => {
    const events = await crash('tool.start', { replies: [toolCall('echo')], tools: [echoTool()] });
    const { transcript, runtime } = secondProcess(events);

    const { llm } = await runScripted({ transcript, runtime, replies: ['ok'], input: 'hello again', turnId: 'turn_2', check: false });

    expect(conversation(llm.requests[0]!.messages)).toStrictEqual([
      'user: hi',
      'assistant: echo()',
      'tool call_1: Error: the tool call failed.\nThe result of this call is not known: it was interrupted before a result was recorded.',
      'user: hello again',
    ]);
  });

  it('can be resumed with nothing but runTurn', async () => {
    const events = await crash('tool.call', { replies: [toolCall('echo', { text: 'a' })], tools: [echoTool()] });
    const { transcript, runtime } = secondProcess(events);

    const result = await runtime.settle(
      runTurn({
        llm: scriptedLLM(['by hand']),
        buildMessages: transcript.buildMessages,
        dispatchEvent: createEventDispatcher({ record: transcript.record }),
        tools: [echoTool()],
        resume: { turn: transcript.openTurn()! },
        runtime,
      }),
    );

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'by hand' });
    expect(resultTexts(transcript.events)).toStrictEqual(['a']);
  });
});
