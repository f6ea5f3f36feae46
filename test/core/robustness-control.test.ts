/**
 * The control of a turn at awkward moments: while the model is still writing a call, while a person or a hook is being
 * asked, while something is being recorded, and in the very microtasks of a suspension.
 */
import { describe, expect, it } from 'vitest';
import { createTurnControl, type Hook, suspend, type TurnControl, userCancel, userMessage } from 'turnloop';
import {
  checkTranscript,
  echoTool,
  gatedTool,
  hangingTool,
  recordingTool,
  runScripted,
  type RunScriptedOptions,
  type ScriptedTurn,
  startScripted,
  toolCall,
} from 'turnloop/testing';
import { conversation, outline, resultLines, resultTexts } from './support.ts';

const never = <Value>(): Promise<Value> => new Promise(() => undefined);
const dialog: Hook = { name: 'dialog', authorizeToolCall: (_context, call) => (call.name === 'echo' ? never() : undefined) };

describe('while a hook is being asked about a call', () => {
  it('a cancel closes the call, and what the hook says later is swallowed', async () => {
    const echo = echoTool();
    const turn = startScripted({ replies: [toolCall('echo'), 'done'], tools: [echo], hooks: [dialog] });
    await turn.runtime.flush();

    const cancelled = turn.control.cancelToolCall('call_1');
    const { recorded, result } = await turn.finish();

    expect([cancelled, result.stopReason, echo.runCount]).toStrictEqual([true, 'end_turn', 0]);
    expect(resultTexts(recorded)).toMatchObject([expect.stringContaining('cancelled this call on purpose')]);
  });

  it('steering that skips closes the call', async () => {
    const echo = echoTool();
    const turn = startScripted({ replies: [toolCall('echo'), 'done'], tools: [echo], hooks: [dialog] });
    await turn.runtime.flush();

    const steered = turn.control.steer('never mind', { skipPendingCalls: true });
    const { recorded, result } = await turn.finish();

    expect([await steered, result.stopReason, echo.runCount]).toStrictEqual(['delivered', 'end_turn', 0]);
    expect(resultTexts(recorded)).toMatchObject([expect.stringContaining('Skipped: the user sent a new message')]);
  });

  it('a tool that ends the turn closes the call', async () => {
    const finish = recordingTool({ name: 'finish', accesses: [], execute: () => ({ content: 'ok', stopTurn: true }) });

    const { recorded, result } = await runScripted({
      replies: [[toolCall('finish'), toolCall('echo')]],
      tools: [finish, echoTool()],
      hooks: [dialog],
    });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'finish' });
    expect(resultLines(recorded)[1]?.slice(0, 2)).toStrictEqual(['call_2', 'error']);
  });
});

describe('while the start of a call is being recorded', () => {
  it('a cancel keeps the tool from running', async () => {
    const echo = echoTool();
    const control = createTurnControl();
    const answers: boolean[] = [];
    const turn = startScripted({
      replies: [toolCall('echo'), 'done'],
      tools: [echo],
      control,
      record: (event) => {
        if (event.type === 'tool.start') answers.push(control.cancelToolCall(event.toolCallId));
        return Promise.resolve();
      },
    });

    const { result } = await turn.finish();

    expect([answers, echo.runCount, result.stopReason]).toStrictEqual([[true], 0, 'end_turn']);
    expect(checkTranscript(turn.transcript.events, { complete: true, result })).toStrictEqual([]);
  });

  it('a cancel counts however long the recorder takes', async () => {
    const hang = hangingTool({ ignoresAbort: true });
    const turn: ScriptedTurn = startScripted({
      replies: [toolCall('hang'), 'done'],
      tools: [hang],
      graceMs: 100,
      record: (event) => (event.type === 'tool.start' ? new Promise((resolve) => turn.runtime.setTimer(500, resolve)) : undefined),
    });
    await turn.runtime.advance(10);

    const cancelled = turn.control.cancelToolCall('call_1');
    const { result } = await turn.finish();

    expect([cancelled, hang.runCount, result.stopReason]).toStrictEqual([true, 0, 'end_turn']);
  });
});

describe('before the calls of a reply are there', () => {
  const TWO = [toolCall('echo', { text: 'a' }), toolCall('echo', { text: 'b' })];

  it('a cancel of a call that the model is still writing counts', async () => {
    const echo = echoTool();
    const turn = startScripted({ replies: [{ content: TWO, deltaDelayMs: 100 }, 'done'], tools: [echo] });
    await turn.runtime.advance(150);

    const [delta] = turn.recording.of('tool.call.delta');
    const cancelled = turn.control.cancelToolCall(delta?.toolCallId ?? '');
    const { recorded } = await turn.finish();

    expect([cancelled, echo.inputs]).toStrictEqual([true, [{ text: 'b' }]]);
    expect(resultLines(recorded).map(([, outcome]) => outcome)).toStrictEqual(['error', 'ok']);
  });

  it('a cancel of a call that is recorded while later ones are being recorded counts', async () => {
    const echo = echoTool();
    const control = createTurnControl();
    const answers: boolean[] = [];
    const listener: RunScriptedOptions['listener'] = (event) => {
      if (event.type === 'tool.call' && event.index === 0) answers.push(control.cancelToolCall(event.toolCallId));
    };

    await runScripted({ replies: [TWO, 'done'], tools: [echo], control, listener });

    expect([answers, echo.inputs]).toStrictEqual([[true], [{ text: 'b' }]]);
  });

  it.each<[string, string, Hook[]]>([
    ['the model is still writing them', 'tool.call.delta', []],
    ['they are being recorded', 'tool.call', []],
    ['they are being prepared', 'notice', [{ name: 'p', prepareToolCall: (context) => { context.notify({ name: 'here', data: {} }); } }]],
  ])('steering that skips closes them all while %s', async (_when, type, hooks) => {
    const echo = echoTool();
    const control = createTurnControl();
    const steered: Promise<string>[] = [];
    const listener: RunScriptedOptions['listener'] = (event) => {
      if (event.type === type && steered.length === 0) steered.push(control.steer('stop that', { skipPendingCalls: true }));
    };

    const { recorded } = await runScripted({ replies: [TWO, 'done'], tools: [echo], control, listener, hooks });

    expect([echo.runCount, await Promise.all(steered)]).toStrictEqual([0, ['delivered']]);
    expect(resultTexts(recorded)).toMatchObject([expect.stringContaining('Skipped'), expect.stringContaining('Skipped')]);
  });

  it('neither reaches into the next step', async () => {
    const echo = echoTool();
    const control = createTurnControl();
    const listener: RunScriptedOptions['listener'] = (event) => {
      if (event.type === 'tool.call.delta' && event.step === 1) control.cancelToolCall(event.toolCallId);
    };

    await runScripted({ replies: [toolCall('echo', { text: '1' }), toolCall('echo', { text: '2' }), 'done'], tools: [echo], control, listener });

    expect(echo.inputs).toStrictEqual([{ text: '2' }]);
  });
});

describe('steering', () => {
  it('takes a text', async () => {
    const gate = gatedTool();
    const turn = startScripted({ replies: [toolCall('gate'), 'done'], tools: [gate] });
    await gate.started();

    const steered = turn.control.steer('Use tabs.');
    gate.finish();
    const { transcript } = await turn.finish();

    expect(await steered).toBe('delivered');
    expect(conversation(transcript.buildMessages())).toContain('user: Use tabs.');
  });

  it('that is no message is refused with what it takes', () => {
    const control = createTurnControl();

    expect(() => control.steer({ text: 'Use tabs.' } as unknown as string)).toThrow(new TypeError('steer takes a text or a user message: control.steer("Use tabs.").'));
  });

  it('that arrives while beforeStep is at work is in the next request', async () => {
    const control = createTurnControl();
    const compact: Hook = {
      name: 'compact',
      beforeStep: ({ step, runtime }) => {
        if (step !== 2) return undefined;
        runtime.setTimer(5, () => void control.steer('meanwhile'));
        return new Promise((resolve) => runtime.setTimer(10, () => resolve(undefined)));
      },
    };

    const { llm } = await runScripted({ replies: [toolCall('echo'), 'done'], tools: [echoTool()], hooks: [compact], control });

    expect(llm.requests[1]?.messages.at(-1)).toMatchObject({ role: 'user', content: [{ text: 'meanwhile' }] });
    expect(llm.callCount).toBe(2);
  });

  it('that arrives while a hook decides whether to go on opens another step', async () => {
    const control = createTurnControl();
    const steered: Promise<string>[] = [];
    const verify: Hook = {
      name: 'verify',
      shouldContinueAfterStop: ({ runtime }) => {
        if (steered.length > 0) return false;
        return new Promise((resolve) =>
          runtime.setTimer(10, () => {
            steered.push(control.steer(userMessage('one more thing')));
            resolve(false);
          }),
        );
      },
    };

    const { result } = await runScripted({ replies: ['first', 'second'], hooks: [verify], control });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'second' });
    expect(await Promise.all(steered)).toStrictEqual(['delivered']);
  });
});

describe('an abort', () => {
  it.each<[string, unknown, string]>([
    ['a text', 'because', 'because'],
    ['an error', new Error('the tab was closed'), 'the tab was closed'],
    ['a cancel', userCancel('Stop pressed.'), 'Stop pressed.'],
  ])('says why where the reason is %s', async (_what, reason, stopMessage) => {
    const turn = startScripted({ replies: [toolCall('hang')], tools: [hangingTool()] });
    await turn.runtime.flush();

    turn.control.abort(reason);
    const { recorded, result } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'aborted', stopMessage });
    expect(recorded.at(-1)).toMatchObject({ type: 'turn.end', stopMessage });
  });
});

describe('in the microtasks around a suspension', () => {
  const ask: Hook = {
    name: 'ask',
    authorizeToolCall: async (_context, call) => {
      await Promise.resolve();
      return call.name === 'asks' ? { action: 'suspend' } : undefined;
    },
  };
  const tools = () => [
    recordingTool({ name: 'asks', accesses: [] }),
    recordingTool({ name: 'waits', accesses: [], execute: () => suspend({ state: 1 }) }),
    echoTool({ accesses: [] }),
  ];
  const acts: [string, (control: TurnControl) => void][] = [
    ['an abort', (control) => { control.abort('now'); }],
    ['a cancel', (control) => { control.cancelToolCall('call_1'); }],
    ['steering that skips', (control) => void control.steer('now', { skipPendingCalls: true })],
  ];

  it.each(acts)('%s leaves a call suspended or closed, never both', async (_what, act) => {
    for (const suspending of ['asks', 'waits']) {
      for (let ticks = 0; ticks < 30; ticks += 1) {
        const control = createTurnControl();
        const later = (left: number): void => (left === 0 ? act(control) : queueMicrotask(() => later(left - 1)));
        const listener: RunScriptedOptions['listener'] = (event) => {
          if (event.type === 'tool.call' && event.index === 1) later(ticks);
        };

        const replies = [[toolCall(suspending), toolCall('echo', { text: 'x' })], 'done', 'done'];
        const { recorded, result } = await runScripted({ replies, tools: tools(), hooks: [ask], control, listener });

        const isPending = recorded.some((event) => event.type === 'turn.suspend');
        const ends = outline(recorded).filter((line) => line === 'tool.finished call_1').length;
        expect([ticks, suspending, isPending, ends]).toStrictEqual([ticks, suspending, result.stopReason === 'suspended', isPending ? 0 : 1]);
      }
    }
  });
});

describe('a call whose tool had run and then suspended', () => {
  const waits = (): ReturnType<typeof recordingTool> => recordingTool({ name: 'waits', accesses: [], execute: () => suspend({ state: 1 }) });

  it('is not said to have been left out when steering skips it', async () => {
    const gate = gatedTool({ accesses: [] });
    const turn = startScripted({ replies: [[toolCall('waits'), toolCall('gate')], 'done'], tools: [waits(), gate] });
    await gate.started();

    void turn.control.steer('stop that', { skipPendingCalls: true });
    gate.finish();
    const { recorded } = await turn.finish();

    expect(resultTexts(recorded)).toMatchObject([expect.stringContaining('had started'), 'done']);
    expect(resultTexts(recorded)[0]).not.toContain('was not run');
  });

  it('is not said to have been left out when a tool ends the turn', async () => {
    const gate = gatedTool({ accesses: [] });
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('waits')]], tools: [waits(), gate] });
    await gate.started();

    gate.finish({ content: 'enough', stopTurn: true });
    const { recorded, result } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'gate' });
    expect(resultTexts(recorded)).toMatchObject(['enough', expect.stringContaining('effects may have happened')]);
  });
});
