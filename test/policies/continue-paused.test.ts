/** continuePaused in full turns: what goes back, how often, and what a crash changes. */
import { describe, expect, it } from 'vitest';
import { createTurnControl, type Hook, type LoopEvent, type ReplyPart } from 'turnloop';
import { continuePaused, type ContinuePausedOptions, maxSteps } from 'turnloop/policies';
import { echoTool, repeat, type Reply, runScripted, type ScriptedReply, startScripted, toolCall } from 'turnloop/testing';
import { conversation, crash, resumeFrom, resultTexts } from '../core/support.ts';

const search: ReplyPart = { type: 'provider', provider: 'scripted', data: { type: 'server_tool_use', id: 'srvtoolu_1' } };

function paused(content: ScriptedReply['content'] = 'searching'): ScriptedReply {
  return { content, stopReason: 'paused', rawStopReason: 'pause_turn' };
}

describe('continuePaused', () => {
  it('B15 sends a paused reply back as it is, and the model goes on with it', async () => {
    const { result, llm, recording } = await runScripted({
      replies: [paused(['Let me search.', search]), 'Found.'],
      hooks: [continuePaused()],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'Found.' });
    expect(llm.requests[1]!.messages).toHaveLength(2);
    expect(llm.requests[1]!.messages.at(-1)).toMatchObject({
      role: 'assistant',
      content: [{ type: 'text', text: 'Let me search.' }, search],
    });
    expect(recording.of('message')).toHaveLength(1);
    expect(recording.of('notice')).toStrictEqual([]);
  });

  it('B15 keeps steering back until the reply is no longer paused: nothing comes between', async () => {
    const control = createTurnControl();
    let steered: Promise<unknown> | undefined;
    const { result, llm } = await runScripted({
      control,
      replies: [
        () => {
          steered = control.steer('also this');
          return paused(['a']);
        },
        paused(['b']),
        'c',
        'd',
      ],
      hooks: [continuePaused()],
    });

    expect(await steered).toBe('delivered');
    expect(conversation(llm.requests[2]!.messages)).toStrictEqual(['user: hi', 'assistant: a', 'assistant: b']);
    expect(conversation(llm.requests[3]!.messages).slice(3)).toStrictEqual(['assistant: c', 'user: also this']);
    expect(result.text).toBe('d');
  });

  it('B15 makes each further request begin with the one before', async () => {
    const { llm } = await runScripted({ replies: [paused('a'), paused('b'), 'c'], hooks: [continuePaused()] });

    expect(llm.requests[2]!.messages.slice(0, 2)).toStrictEqual(llm.requests[1]!.messages);
    expect(conversation(llm.requests[2]!.messages)).toStrictEqual(['user: hi', 'assistant: a', 'assistant: b']);
  });

  it.each(['end_turn', 'max_tokens', 'filtered', 'unknown'] as const)('leaves a turn alone that ends otherwise: %s', async (stopReason) => {
    const { result, llm } = await runScripted({ replies: [{ content: 'ok', stopReason }], hooks: [continuePaused()] });

    expect(result).toMatchObject({ stopReason, steps: 1 });
    expect(llm.callCount).toBe(1);
  });

  it('TC31 goes on when the paused reply had calls, which the model is told were not run', async () => {
    const { result, llm, recorded } = await runScripted({
      replies: [paused([toolCall('echo', { text: 'a' })]), toolCall('echo', { text: 'b' }), 'done'],
      tools: [echoTool()],
      hooks: [continuePaused()],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 3, text: 'done' });
    expect(conversation(llm.requests[1]!.messages).map((line) => line.split(':')[0])).toStrictEqual(['user', 'assistant', 'tool call_1']);
    expect(resultTexts(recorded)).toStrictEqual(['This call was not executed: the reply was paused before it was complete.', 'b']);
  });

  it('ends the turn as paused after ten pauses in a row, and says why', async () => {
    const { result, llm, recording } = await runScripted({ replies: [repeat(paused())], hooks: [continuePaused()] });

    expect(result).toMatchObject({ stopReason: 'paused', steps: 11 });
    expect(llm.callCount).toBe(11);
    expect(recording.of('notice')).toMatchObject([{ name: 'continuePaused.exhausted', data: { maxContinuations: 10 } }]);
  });

  it('counts anew after a reply that was not paused', async () => {
    const round = [paused(), paused(), toolCall('echo', { text: 'a' })];

    const { result } = await runScripted({
      replies: [...round, ...round, ...round, 'done'],
      tools: [echoTool()],
      hooks: [continuePaused({ maxContinuations: 2 })],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 10 });
  });

  it('keeps the bound behind a reply that was not paused', async () => {
    const { result } = await runScripted({
      replies: [paused(), toolCall('echo', { text: 'a' }), repeat(paused())],
      tools: [echoTool()],
      hooks: [continuePaused({ maxContinuations: 2 })],
    });

    expect(result).toMatchObject({ stopReason: 'paused', steps: 5 });
  });

  it('does not count what other hooks go on for', async () => {
    const ask: Hook = {
      name: 'ask',
      shouldContinueAfterStop: (_context, stop) => stop.stopReason === 'end_turn' && stop.continuations < 3,
    };

    const { result } = await runScripted({
      replies: ['a', 'b', 'c', paused(), 'done'],
      hooks: [ask, continuePaused({ maxContinuations: 1 })],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 5, text: 'done' });
  });

  it('counts for each of the turns that share it', async () => {
    const hooks = [continuePaused({ maxContinuations: 1 })];
    const replies: readonly Reply[] = [paused(), 'done'];
    const turns = [startScripted({ replies, hooks }), startScripted({ replies, hooks })];

    const outcomes = await Promise.all(turns.map((turn) => turn.finish()));
    const next = await runScripted({ replies, hooks });

    expect([...outcomes, next].map(({ result }) => result.stopReason)).toStrictEqual(['end_turn', 'end_turn', 'end_turn']);
  });

  it('respects the limits of the turn', async () => {
    const { result, llm } = await runScripted({ replies: [repeat(paused())], hooks: [continuePaused()], stopWhen: maxSteps(3) });

    expect(result).toMatchObject({ stopReason: 'max_steps', stoppedBy: 'maxSteps', steps: 3 });
    expect(llm.callCount).toBe(3);
  });

  it('takes no limit for a pause', async () => {
    const { result, llm } = await runScripted({
      replies: [paused()],
      hooks: [continuePaused()],
      stopWhen: ({ steps }) => (steps < 1 ? undefined : { stopReason: 'paused', name: 'odd' }),
    });

    expect(result).toMatchObject({ stopReason: 'paused', stoppedBy: 'odd' });
    expect(llm.callCount).toBe(1);
  });

  it('A4 leaves the bound to the loop with Infinity', async () => {
    const { result, recording } = await runScripted({ replies: [repeat(paused())], hooks: [continuePaused({ maxContinuations: Infinity })] });

    expect(result).toMatchObject({ stopReason: 'paused', steps: 101 });
    expect(recording.of('notice')).toMatchObject([{ name: 'continuations.exhausted' }]);
  });
});

describe('continuePaused after a crash', () => {
  const options = (): { readonly hooks: readonly Hook[] } => ({ hooks: [continuePaused({ maxContinuations: 3 })] });

  it('A19 goes on with the pause that the process died behind', async () => {
    const events = await crash('step.end', { replies: [paused()], ...options() });

    const { result, llm } = await resumeFrom(events, { replies: ['done'], ...options() });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'done' });
    expect(conversation(llm.requests[0]!.messages)).toStrictEqual(['user: hi', 'assistant: searching']);
  });

  it.each([
    ['behind a paused reply', (event: LoopEvent) => event.type === 'step.end' && event.step === 3],
    ['before the reply', (event: LoopEvent) => event.type === 'step.begin' && event.step === 3],
  ])('A19 keeps the bound over the death of the process %s', async (_when, at) => {
    const events = await crash(at, { replies: [repeat(paused())], ...options() });

    const { result, recording } = await resumeFrom(events, { replies: [repeat(paused())], ...options() });

    expect(result).toMatchObject({ stopReason: 'paused', steps: 4 });
    expect(recording.of('notice')).toMatchObject([{ name: 'continuePaused.exhausted', data: { maxContinuations: 3 } }]);
  });

  it('A19 counts anew once a reply was not paused', async () => {
    const events = await crash((event) => event.type === 'step.begin' && event.step === 3, { replies: [repeat(paused())], ...options() });

    const { result } = await resumeFrom(events, {
      replies: [toolCall('echo', { text: 'a' }), paused(), paused(), paused(), 'done'],
      tools: [echoTool()],
      ...options(),
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 7 });
  });
});

describe('misuse of continuePaused', () => {
  it.each([0, -1, 1.5, Number.NaN, '3'])('is refused by name: %s continuations', (maxContinuations) => {
    const call = (): Hook => continuePaused({ maxContinuations: maxContinuations as number });

    expect(call).toThrow(TypeError);
    expect(call).toThrow('`maxContinuations`');
  });

  it('is refused by name: an option that does not exist', () => {
    expect(() => continuePaused({ max: 3 } as ContinuePausedOptions)).toThrow('no option `max`');
  });
});
