/** Steering and stopping a running turn (A8, A9), as a black box: every message ends as delivered or undelivered, once. */
import { describe, expect, it } from 'vitest';
import { createTurnControl, LLMError, textOf, userMessage } from 'turnloop';
import { delayed, echoTool, gatedTool, recordingTool, runScripted, startScripted, toolCall } from 'turnloop/testing';
import { conversation, outline, resultLines, resultTexts, stepLimit } from './support.ts';

describe('steer', () => {
  it('A8 puts a message behind the results when it comes while tools run', async () => {
    const gate = gatedTool({ accesses: [] });
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate')], 'done'], tools: [gate] });
    await turn.runtime.flush();

    const outcome = turn.control.steer(userMessage('S'));
    await turn.runtime.flush();
    gate.open();
    const { llm, recording } = await turn.finish();

    expect(await outcome).toBe('delivered');
    expect(conversation(llm.requests[1]!.messages)).toStrictEqual([
      'user: hi',
      'assistant: gate() gate()',
      'tool call_1: done',
      'tool call_2: done',
      'user: S',
    ]);
    expect(recording.of('message').at(-1)!.message).toStrictEqual(userMessage('S', { id: 'message_2', origin: 'steering' }));
  });

  it('A8 opens another step when it waits at the end of the turn', async () => {
    const turn = startScripted({ replies: [delayed('first answer', 100), 'second answer'] });
    await turn.runtime.flush();

    const outcome = turn.control.steer(userMessage('one more thing'));
    const { result, llm } = await turn.finish();

    expect(await outcome).toBe('delivered');
    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'second answer' });
    expect(conversation(llm.requests[1]!.messages)).toStrictEqual(['user: hi', 'assistant: first answer', 'user: one more thing']);
  });

  it('A8 delivers what was steered before the turn started, behind its input', async () => {
    const control = createTurnControl();
    const outcome = control.steer(userMessage('and quickly'));

    const { llm } = await runScripted({ replies: ['ok'], control });

    expect(await outcome).toBe('delivered');
    expect(conversation(llm.requests[0]!.messages)).toStrictEqual(['user: hi', 'user: and quickly']);
  });

  it('A8 takes text for a message', async () => {
    const control = createTurnControl();
    const outcome = control.steer('and quickly');

    const { recording } = await runScripted({ replies: ['ok'], control });

    expect(await outcome).toBe('delivered');
    expect(recording.of('message')[1]!.message).toStrictEqual(userMessage('and quickly', { id: 'message_2', origin: 'steering' }));
  });

  it('A8 delivers several messages in order, all before the next request', async () => {
    const control = createTurnControl();
    const outcomes = ['one', 'two', 'three'].map((text) => control.steer(userMessage(text)));

    const { llm } = await runScripted({ replies: ['ok'], control, input: [] });

    expect(await Promise.all(outcomes)).toStrictEqual(['delivered', 'delivered', 'delivered']);
    expect(conversation(llm.requests[0]!.messages)).toStrictEqual(['user: one', 'user: two', 'user: three']);
  });

  it('A8 skips the calls that have not started, when it is asked to', async () => {
    const gate = gatedTool();
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate'), toolCall('gate')], 'done'], tools: [gate] });
    await turn.runtime.flush();

    const outcome = turn.control.steer(userMessage('stop that'), { skipPendingCalls: true });
    gate.finish('finished anyway');
    const { result, recorded, llm } = await turn.finish();

    const skipped = 'Skipped: the user sent a new message before this call started, so it was not run.';
    expect(await outcome).toBe('delivered');
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'ok', 'finished anyway'],
      ['call_2', 'error', skipped],
      ['call_3', 'error', skipped],
    ]);
    expect(conversation(llm.requests[1]!.messages).at(-1)).toBe('user: stop that');
    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2 });
  });

  it('A8 lets the batch end first by default', async () => {
    const gate = gatedTool();
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate')], 'done'], tools: [gate] });
    await turn.runtime.flush();

    void turn.control.steer(userMessage('meanwhile'));
    gate.open();
    const { recorded } = await turn.finish();

    expect(resultTexts(recorded)).toStrictEqual(['done', 'done']);
  });

  it('A8 comes back undelivered when the turn is aborted, in its promise and in the result', async () => {
    const gate = gatedTool();
    const turn = startScripted({ replies: [toolCall('gate')], tools: [gate] });
    await turn.runtime.flush();

    const outcome = turn.control.steer(userMessage('lost?'));
    turn.control.abort();
    const { result, transcript } = await turn.finish();

    expect(await outcome).toBe('undelivered');
    expect(result.undelivered).toStrictEqual([userMessage('lost?')]);
    expect(conversation(transcript.buildMessages())).not.toContain('user: lost?');
  });

  it('A8 comes back undelivered when the request fails for good', async () => {
    const turn = startScripted({ replies: [delayed(new LLMError({ kind: 'auth', message: 'no' }), 10)] });
    await turn.runtime.flush();

    const outcome = turn.control.steer(userMessage('S'));
    const { result } = await turn.finish();

    expect(await outcome).toBe('undelivered');
    expect(result).toMatchObject({ stopReason: 'fatal_error', undelivered: [{ content: [{ text: 'S' }] }] });
  });

  it('A8 is undelivered at once after the end of the turn', async () => {
    const { control, result } = await runScripted({ replies: ['ok'] });

    expect(await control.steer(userMessage('too late'))).toBe('undelivered');
    expect(result).not.toHaveProperty('undelivered');
  });

  it('A8 does not go past a limit: what waits comes back undelivered', async () => {
    const gate = gatedTool();
    const turn = startScripted({ replies: [toolCall('gate')], tools: [gate], stopWhen: stepLimit(1) });
    await turn.runtime.flush();

    const outcome = turn.control.steer(userMessage('S'));
    gate.finish();
    const { result } = await turn.finish();

    expect(await outcome).toBe('undelivered');
    expect(result).toMatchObject({ stopReason: 'max_steps', steps: 1 });
    expect(result.undelivered!.map((message) => textOf(message))).toStrictEqual(['S']);
  });

  it('A8 does not go on after a filtered reply', async () => {
    const turn = startScripted({ replies: [delayed({ content: 'no', stopReason: 'filtered' }, 10)] });
    await turn.runtime.flush();

    const outcome = turn.control.steer(userMessage('S'));
    const { result } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'filtered', steps: 1 });
    expect(await outcome).toBe('undelivered');
  });

  it('A8 keeps the message that could not be recorded, as undelivered', async () => {
    const control = createTurnControl();
    const outcome = control.steer(userMessage('S'));

    const { result } = await runScripted({
      control,
      record: (event) => {
        if (event.type === 'message' && event.message.origin === 'steering') throw new Error('disk full');
      },
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', undelivered: [{ content: [{ text: 'S' }] }] });
    expect(await outcome).toBe('undelivered');
  });
});

describe('stop', () => {
  it('A9 finishes the step, then ends the turn stopped, and gives the queue back', async () => {
    const gate = gatedTool({ accesses: [] });
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate')], 'never'], tools: [gate] });
    await turn.runtime.flush();

    const outcome = turn.control.steer(userMessage('later'));
    turn.control.stop();
    gate.open('finished');
    const { result, recorded, llm } = await turn.finish();

    expect(resultTexts(recorded)).toStrictEqual(['finished', 'finished']);
    expect(outline(recorded).slice(-2)).toStrictEqual(['step.end', 'turn.end']);
    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'control', steps: 1 });
    expect(result.undelivered!.map((message) => textOf(message))).toStrictEqual(['later']);
    expect(await outcome).toBe('undelivered');
    expect(llm.callCount).toBe(1);
  });

  it('A9 lets a reply that is under way arrive', async () => {
    const turn = startScripted({ replies: [delayed('the whole answer', 100)] });
    await turn.runtime.flush();

    turn.control.stop();
    const { result } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'the whole answer' });
  });

  it('A9 before the start makes no request', async () => {
    const control = createTurnControl();
    control.stop();

    const { result, llm } = await runScripted({ control });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'control', steps: 0 });
    expect(llm.callCount).toBe(0);
  });

  it('A9 wins over a hook that would go on', async () => {
    const tool = recordingTool({ execute: () => (turn.control.stop(), 'ok') });
    const turn = startScripted({
      replies: [toolCall('record'), 'never'],
      tools: [tool, echoTool()],
      hooks: [{ name: 'eager', shouldContinueAfterStop: () => true }],
    });

    const { result } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'control', steps: 1 });
  });
});
