/**
 * The end of a turn by its signal, its control or its deadline, at every moment: it settles in its grace, every call keeps
 * its pair, what was spent is counted, and nothing stays behind.
 */
import { describe, expect, it } from 'vitest';
import { createTurnControl, decorateLLM, LLMError, textOf, toUsage, userCancel, userMessage } from 'turnloop';
import {
  abortAt,
  delayed,
  echoTool,
  gatedTool,
  hanging,
  hangingRecorder,
  hangingTool,
  recordingTool,
  runScripted,
  type RunScriptedOptions,
  type ScriptedOutcome,
  slowTool,
  stalled,
  startScripted,
  stubborn,
  thinking,
  toolCall,
  watchedController,
} from 'turnloop/testing';
import { conversation, outline, resultLines, resultTexts, secondProcess, watchRejections } from './support.ts';

const ABORTED = 'The turn was aborted while this call was running: its effects may have happened in part.';
const NOT_RUN = 'The turn was aborted before this call started: it was not run.';

/** Runs a turn, and aborts it once everything has started that can. */
async function abortWhileBusy(options: RunScriptedOptions, reason?: unknown): Promise<ScriptedOutcome> {
  const turn = startScripted(options);
  await turn.runtime.flush();
  turn.control.abort(reason);
  return turn.finish();
}

describe('an abort before or between steps', () => {
  it('AB1 makes no request and records nothing when the signal was aborted before', async () => {
    const { result, llm, events, recorded } = await runScripted({ signal: AbortSignal.abort() });

    expect(result).toMatchObject({ stopReason: 'aborted', steps: 0, text: '' });
    expect(llm.callCount).toBe(0);
    expect(recorded).toStrictEqual([]);
    expect(events).toStrictEqual([{ type: 'turn.interrupted', stopReason: 'aborted', turnId: 'turn_1', at: 0 }]);
  });

  it('AB1 does the same for a control that was aborted before', async () => {
    const control = createTurnControl();
    control.abort(userCancel());

    const { result, llm, recorded } = await runScripted({ control });

    expect(result).toMatchObject({ stopReason: 'aborted', steps: 0, stopMessage: 'The user cancelled.' });
    expect(llm.callCount).toBe(0);
    expect(recorded).toStrictEqual([]);
  });

  it('AB4 opens no step when it comes inside beforeStep', async () => {
    const controller = new AbortController();

    const { result, llm, recording } = await runScripted({
      signal: controller.signal,
      hooks: [{ name: 'abort', beforeStep: () => controller.abort() }],
    });

    expect(result).toMatchObject({ stopReason: 'aborted', steps: 0 });
    expect(llm.callCount).toBe(0);
    expect(recording.types()).toStrictEqual(['turn.begin', 'message', 'turn.interrupted', 'turn.end']);
  });

  it('A6 opens no other step when it comes at a step.end', async () => {
    const controller = new AbortController();

    const { result, llm } = await runScripted({
      replies: [toolCall('echo', { text: 'a' }), 'never'],
      tools: [echoTool()],
      signal: controller.signal,
      listener: abortAt(controller, 'step.end'),
    });

    expect(result).toMatchObject({ stopReason: 'aborted', steps: 1 });
    expect(llm.callCount).toBe(1);
  });
});

describe('an abort during a request', () => {
  it('AB2 ends the turn aborted after one request', async () => {
    const { result, llm, recording } = await abortWhileBusy({ replies: [delayed('late', 100)] });

    expect(result).toMatchObject({ stopReason: 'aborted', steps: 1 });
    expect(llm.callCount).toBe(1);
    expect(recording.of('turn.interrupted')).toMatchObject([{ stopReason: 'aborted', activeStep: 1 }]);
  });

  it('V7 keeps the partial text of a person\'s cancel, and one reminder', async () => {
    const controller = new AbortController();

    const { result, transcript } = await runScripted({
      replies: [stalled({ content: 'The answer is 42', chunk: 7 }, 2)],
      signal: controller.signal,
      listener: abortAt(controller, (event) => event.type === 'text.delta' && event.text === 'wer is ', userCancel()),
    });

    expect(result).toMatchObject({ stopReason: 'aborted', text: 'The answer is ', message: { status: 'interrupted' } });
    expect(result.message!.content).toStrictEqual([{ type: 'text', text: 'The answer is ' }]);
    expect(conversation(transcript.buildMessages())).toStrictEqual([
      'user: hi',
      'assistant: The answer is ',
      'user: The user interrupted the reply above on purpose. Do not resume it unless asked.',
    ]);
    expect(transcript.buildMessages().at(-1)).toMatchObject({ origin: 'reminder' });
  });

  it('V7 keeps the partial text of a programmatic abort without a reminder', async () => {
    const controller = new AbortController();

    const { transcript } = await runScripted({
      replies: [stalled({ content: 'The answer is 42', chunk: 7 }, 2)],
      signal: controller.signal,
      listener: abortAt(controller, 'text.delta'),
    });

    expect(conversation(transcript.buildMessages())).toStrictEqual(['user: hi', 'assistant: The ans']);
  });

  it('V7 keeps no blank partial, and adds no reminder to it', async () => {
    const controller = new AbortController();

    const { result, transcript } = await runScripted({
      replies: [stalled({ content: '  \n and more', chunk: 4 }, 1)],
      signal: controller.signal,
      listener: abortAt(controller, 'text.delta', userCancel()),
    });

    expect(conversation(transcript.buildMessages())).toStrictEqual(['user: hi']);
    expect(result).not.toHaveProperty('message');
  });

  it('V7 does not stack reminders when one turn after the other is cancelled', async () => {
    const first = await cancelled(['one two']);
    const second = await cancelled(['three four'], first);

    expect(conversation(second.transcript.buildMessages()).filter((line) => line.includes('on purpose'))).toHaveLength(2);
    expect(conversation(second.transcript.buildMessages())).toHaveLength(6);

    async function cancelled(words: readonly [string], before?: Awaited<ReturnType<typeof runScripted>>) {
      const controller = new AbortController();
      return runScripted({
        replies: [stalled({ content: words[0], chunk: 4 }, 1)],
        signal: controller.signal,
        listener: abortAt(controller, 'text.delta', userCancel()),
        ...(before !== undefined && { transcript: before.transcript, runtime: before.runtime }),
      });
    }
  });

  it('A7 keeps the parts an adapter says were finished, and drops thinking without a signature', async () => {
    const controller = new AbortController();
    const partial = [
      thinking('signed', { signature: 'sig' }),
      thinking('not signed'),
      { type: 'text', text: 'so far' },
    ] as const;

    const { result } = await runScripted({
      decorate: (llm) =>
        decorateLLM(llm, () => {
          controller.abort();
          throw new LLMError({ kind: 'aborted', message: 'aborted', partial });
        }),
      signal: controller.signal,
    });

    expect(result).toMatchObject({ stopReason: 'aborted', text: 'so far', message: { status: 'interrupted' } });
    expect(result.message!.content).toStrictEqual([partial[0], partial[2]]);
  });

  it('settles within the grace although the model does not listen', async () => {
    const controller = new AbortController();

    const { result, runtime } = await runScripted({
      replies: [stubborn(hanging())],
      signal: controller.signal,
      graceMs: 400,
      listener: abortAt(controller, 'step.begin'),
    });

    expect(result.stopReason).toBe('aborted');
    expect(runtime.now()).toBeLessThanOrEqual(400);
  });
});

describe('an abort during tools', () => {
  it('AB3 keeps the usage of earlier steps and of the step that it hit', async () => {
    const controller = new AbortController();
    const usage = { inputTokens: 10, outputTokens: 1 };

    const { result } = await runScripted({
      replies: [{ content: [toolCall('echo')], usage }, { content: [toolCall('hang')], usage }],
      tools: [echoTool(), hangingTool()],
      signal: controller.signal,
      listener: abortAt(controller, (event) => event.type === 'tool.start' && event.step === 2),
    });

    expect(result).toMatchObject({ stopReason: 'aborted', steps: 2, usage: toUsage({ inputTokens: 20, outputTokens: 2 }) });
  });

  it('AB5 runs no tool when it comes inside prepareToolCall', async () => {
    const controller = new AbortController();
    const echo = echoTool();

    const { result, recorded } = await runScripted({
      replies: [[toolCall('echo'), toolCall('echo')]],
      tools: [echo],
      signal: controller.signal,
      hooks: [{ name: 'abort', prepareToolCall: () => controller.abort() }],
    });

    expect(echo.runCount).toBe(0);
    expect(result.stopReason).toBe('aborted');
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', NOT_RUN],
      ['call_2', 'error', NOT_RUN],
    ]);
  });

  it('A6 runs no tool when it comes while the start is recorded', async () => {
    const controller = new AbortController();
    const echo = echoTool();

    const { recorded } = await runScripted({
      replies: [toolCall('echo')],
      tools: [echo],
      signal: controller.signal,
      listener: abortAt(controller, 'tool.start'),
    });

    expect(echo.runCount).toBe(0);
    expect(resultTexts(recorded)).toStrictEqual([NOT_RUN]);
  });

  it('AB6 settles although a tool never ends, with one interruption event', async () => {
    const { result, recording, recorded, runtime } = await abortWhileBusy({
      replies: [toolCall('hang')],
      tools: [hangingTool({ ignoresAbort: true })],
    });

    expect(result).toMatchObject({ stopReason: 'aborted', steps: 1 });
    expect(recording.of('turn.interrupted')).toStrictEqual([
      { type: 'turn.interrupted', stopReason: 'aborted', activeStep: 1, turnId: 'turn_1', at: runtime.now() },
    ]);
    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', ABORTED]]);
    expect(runtime.now()).toBeLessThanOrEqual(2000);
  });

  it('AB7 does not start a call that waits on a conflict, and closes it in its place', async () => {
    const hang = hangingTool();

    const { recorded } = await abortWhileBusy({ replies: [[toolCall('hang'), toolCall('hang')]], tools: [hang] });

    expect(hang.runCount).toBe(1);
    expect(outline(recorded).filter((line) => /^(tool.result|step.end|turn.end)/.test(line))).toStrictEqual([
      'tool.result call_1',
      'tool.result call_2',
      'step.end',
      'turn.end',
    ]);
    expect(resultTexts(recorded)).toStrictEqual([ABORTED, NOT_RUN]);
  });

  it('AB8 tells the model that a person\'s cancel was deliberate', async () => {
    const options = { replies: [toolCall('hang')], tools: [hangingTool()] };

    const { recorded, result } = await abortWhileBusy(options, userCancel('Pressed Ctrl-C.'));

    expect(resultTexts(recorded)).toStrictEqual([
      'The user cancelled this call on purpose. That is not a fault: do not repeat it unless the user asks, and wait for the user.',
    ]);
    expect(result).toMatchObject({ stopReason: 'aborted', stopMessage: 'Pressed Ctrl-C.' });
  });

  it('AB9 closes three running calls with three results', async () => {
    const turn = startScripted({
      replies: [[toolCall('hang'), toolCall('hang'), toolCall('hang')]],
      tools: [hangingTool({ accesses: [] })],
    });
    await turn.runtime.flush();

    turn.control.abort();
    const { recorded, recording } = await turn.finish();

    expect(recording.of('tool.call')).toHaveLength(3);
    expect(recording.of('tool.start')).toHaveLength(3);
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', ABORTED],
      ['call_2', 'error', ABORTED],
      ['call_3', 'error', ABORTED],
    ]);
  });

  it('keeps a result that came before it, and records the step\'s end', async () => {
    const turn = startScripted({
      replies: [[toolCall('slow'), toolCall('hang')]],
      tools: [slowTool(10, { accesses: [], result: 'real' }), hangingTool({ accesses: [] })],
    });
    await turn.runtime.advance(50);

    turn.control.abort();
    const { recorded } = await turn.finish();

    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'ok', 'real'],
      ['call_2', 'error', ABORTED],
    ]);
    expect(recorded.map((event) => event.type).slice(-2)).toStrictEqual(['step.end', 'turn.end']);
  });

  it('swallows what a tool returns when the grace is over', async () => {
    const late = slowTool(5000, { ignoresAbort: true, result: 'too late' });

    const { recorded, runtime, events } = await abortWhileBusy({ replies: [toolCall('slow')], tools: [late] });
    const seen = events.length;
    await runtime.runUntilIdle();

    expect(late.runs[0]!.state).toBe('returned');
    expect(events).toHaveLength(seen);
    expect(JSON.stringify(recorded)).not.toContain('too late');
  });
});

describe('an abort in hooks', () => {
  it.each(['beforeStep', 'prepareToolCall', 'authorizeToolCall', 'finalizeToolResult', 'afterStep', 'shouldContinueAfterStop'] as const)(
    'A6 settles within the grace although %s never comes back',
    async (point) => {
      const controller = new AbortController();
      const hang = (): Promise<never> => {
        controller.abort();
        return new Promise(() => undefined);
      };

      const { result, recording, runtime } = await runScripted({
        replies: [toolCall('echo', { text: 'a' }), 'done'],
        tools: [echoTool()],
        signal: controller.signal,
        hooks: [{ name: 'hang', [point]: hang }],
      });

      expect(result.stopReason).toBe('aborted');
      expect(recording.of('turn.interrupted')).toHaveLength(1);
      expect(runtime.now()).toBeLessThanOrEqual(2000);
    },
  );

  it('does not let an output through that a hanging finaliser never looked at', async () => {
    const controller = new AbortController();

    const { recorded, events } = await runScripted({
      replies: [toolCall('record')],
      tools: [recordingTool({ execute: () => 'raw output' })],
      signal: controller.signal,
      hooks: [{ name: 'redact', finalizeToolResult: () => (controller.abort(), new Promise<never>(() => undefined)) }],
    });

    expect(resultLines(recorded)).toHaveLength(1);
    expect(JSON.stringify(events)).not.toContain('raw output');
  });
});

describe('a deadline', () => {
  it('ends the turn deadline, and is not worded as a person\'s cancel', async () => {
    const { result, recorded, runtime } = await runScripted({
      replies: [toolCall('hang')],
      tools: [hangingTool()],
      deadlineMs: 300,
    });

    expect(result).toMatchObject({ stopReason: 'deadline', steps: 1 });
    expect(resultTexts(recorded)).toStrictEqual([
      "The turn's time limit was reached while this call was running: its effects may have happened in part.",
    ]);
    expect(runtime.now()).toBe(300);
  });

  it('cuts a request off too, and keeps its partial text', async () => {
    const { result } = await runScripted({ replies: [stalled({ content: 'half an answer', chunk: 4 }, 1)], deadlineMs: 300 });

    expect(result).toMatchObject({ stopReason: 'deadline', text: 'half' });
  });

  it('leaves no timer when the turn ends in time', async () => {
    const { result, runtime } = await runScripted({ replies: ['ok'], deadlineMs: 60_000 });

    expect(result.stopReason).toBe('end_turn');
    expect(runtime.pendingTimers).toBe(0);
  });
});

describe('cancelToolCall', () => {
  it('A10 cancels one call, and the others and the turn go on', async () => {
    const gate = gatedTool({ accesses: [] });
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate')], 'done'], tools: [gate] });
    await turn.runtime.flush();

    expect(turn.control.cancelToolCall('call_1')).toBe(true);
    await turn.runtime.flush();
    gate.finish('fine', 'call_2');
    const { result, recorded } = await turn.finish();

    expect(resultLines(recorded).map(([id, outcome, text]) => [id, outcome, text.slice(0, 42)])).toStrictEqual([
      ['call_1', 'error', 'The user cancelled this call on purpose. T'],
      ['call_2', 'ok', 'fine'],
    ]);
    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done' });
  });

  it('A10 cancels a call that waits, so that it never starts', async () => {
    const gate = gatedTool();
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate')], 'done'], tools: [gate] });
    await turn.runtime.flush();

    expect(turn.control.cancelToolCall('call_2')).toBe(true);
    gate.open();
    await turn.finish();

    expect(gate.runs.map((run) => run.toolCallId)).toStrictEqual(['call_1']);
  });

  it('A10 does not wait for a call that ignores its signal longer than the grace', async () => {
    const hang = hangingTool({ ignoresAbort: true });
    const turn = startScripted({ replies: [toolCall('hang'), 'done'], tools: [hang], graceMs: 100 });
    await turn.runtime.flush();

    turn.control.cancelToolCall('call_1');
    const { result, runtime } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done' });
    expect(hang.runs[0]!.context.signal.aborted).toBe(true);
    expect(runtime.now()).toBe(100);
  });

  it('says false for a call that is over or never was', async () => {
    const { control } = await runScripted({ replies: [toolCall('echo'), 'done'], tools: [echoTool()] });

    expect([control.cancelToolCall('call_1'), control.cancelToolCall('nope')]).toStrictEqual([false, false]);
  });

  it('V5 cancels all calls of a step without cancelling the turn', async () => {
    const turn = startScripted({
      replies: [[toolCall('hang'), toolCall('hang')], 'What now?'],
      tools: [hangingTool({ accesses: [] })],
    });
    await turn.runtime.flush();

    for (const id of ['call_1', 'call_2']) turn.control.cancelToolCall(id);
    const { result, recorded } = await turn.finish();

    expect(resultLines(recorded).map(([, outcome]) => outcome)).toStrictEqual(['error', 'error']);
    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'What now?' });
  });
});

describe('after the end', () => {
  it('V4 a turn that was cancelled while it waited to start never starts', async () => {
    const control = createTurnControl();
    const steered = control.steer(userMessage('while waiting'));
    control.abort();

    const { result, llm } = await runScripted({ control });

    expect(result).toMatchObject({ stopReason: 'aborted', steps: 0, undelivered: [{ content: [{ text: 'while waiting' }] }] });
    expect(await steered).toBe('undelivered');
    expect(llm.callCount).toBe(0);
  });

  it('V6 an aborted turn settles what waits in it, and asks the model no more', async () => {
    const turn = startScripted({ replies: [toolCall('hang'), 'never'], tools: [hangingTool()] });
    await turn.runtime.flush();
    const steered = turn.control.steer(userMessage('and then?'));

    turn.control.abort();
    const { result, llm } = await turn.finish();

    expect(await steered).toBe('undelivered');
    expect(await turn.control.steer(userMessage('too late'))).toBe('undelivered');
    expect(result.undelivered!.map((message) => textOf(message))).toStrictEqual(['and then?']);
    expect(llm.callCount).toBe(1);
  });

  it('leaves no timer and no listener on the signal, however the turn ended', async () => {
    for (const at of ['step.begin', 'tool.start', 'step.end', 'turn.end'] as const) {
      const controller = watchedController();

      const { runtime } = await runScripted({
        replies: [toolCall('slow'), 'done'],
        tools: [slowTool(10)],
        signal: controller.signal,
        listener: abortAt(controller, at),
      });

      expect([at, controller.listenerCount, runtime.pendingTimers]).toStrictEqual([at, 0, 0]);
    }
  });

  it('records and emits nothing more, whatever foreign promises do', async () => {
    const rejections = watchRejections();
    let failLate = (_error: Error): void => undefined;
    const tool = recordingTool({ execute: () => new Promise((_resolve, reject) => { failLate = reject; }) });
    const { events, runtime } = await abortWhileBusy({ replies: [toolCall('record')], tools: [tool] });
    const seen = events.length;

    failLate(new Error('late'));
    tool.runs[0]!.context.progress({ kind: 'status', text: 'late' });
    await tool.runs[0]!.context.recordUsage(toUsage({ inputTokens: 1 }), 'late');
    await runtime.flush();
    rejections.stop();

    expect(events).toHaveLength(seen);
    expect(rejections.reasons).toStrictEqual([]);
  });

  it('settles although the recorder never comes back after an abort', async () => {
    const { result, runtime } = await abortWhileBusy({
      replies: [toolCall('hang')],
      tools: [hangingTool()],
      record: hangingRecorder({ at: 'tool.finished' }),
    });

    expect(result.stopReason).toBe('aborted');
    expect(runtime.now()).toBeLessThanOrEqual(2000);
  });

  it('lets the first abort win', async () => {
    const controller = new AbortController();
    const turn = startScripted({ replies: [toolCall('hang')], tools: [hangingTool()], signal: controller.signal });
    await turn.runtime.flush();

    turn.control.abort(userCancel('first'));
    controller.abort(new Error('second'));
    const { result } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'aborted', stopMessage: 'first' });
  });

  it('leaves a history that the next turn goes on from', async () => {
    const first = await abortWhileBusy({ replies: [[toolCall('hang'), toolCall('hang')]], tools: [hangingTool()] });

    const { llm } = await runScripted({ ...secondProcess(first.recorded), replies: ['ok'], input: 'again' });

    expect(conversation(llm.requests[0]!.messages)).toStrictEqual([
      'user: hi',
      'assistant: hang() hang()',
      `tool call_1: Error: the tool call failed.\n${ABORTED}`,
      `tool call_2: Error: the tool call failed.\n${NOT_RUN}`,
      'user: again',
    ]);
  });
});
