/** createEmitter as a black box, alone and as the `emit` of a dispatcher. */
import { describe, expect, it, vi } from 'vitest';
import {
  createEventDispatcher,
  createTranscript,
  type ForwardedEvent,
  type LoopEvent,
  runTurn,
  type TextDeltaEvent,
  type TurnEndEvent,
  userMessage,
} from 'turnloop';
import { createEmitter } from 'turnloop/emitter';
import { echoTool, scriptedLLM, toolCall, virtualRuntime } from 'turnloop/testing';

const { flush } = virtualRuntime();

function textDelta(text: string): TextDeltaEvent {
  return { type: 'text.delta', turnId: 'turn_1', at: 0, step: 1, stepId: 'step_1', attempt: 1, text };
}

const turnEnd: TurnEndEvent = { type: 'turn.end', turnId: 'turn_1', at: 1, stopReason: 'end_turn', steps: 1 };

describe('createEmitter', () => {
  it('G2 hands each event to the listeners of its type, in the order in which they were added', () => {
    const emitter = createEmitter();
    const seen: string[] = [];
    emitter.on('text.delta', ({ text }) => seen.push(`first ${text}`));
    emitter.on('text.delta', ({ text }) => seen.push(`second ${text}`));
    emitter.on('turn.end', ({ stopReason }) => seen.push(stopReason));

    emitter.emit(textDelta('Hi'));
    emitter.emit(turnEnd);

    expect(seen).toStrictEqual(['first Hi', 'second Hi', 'end_turn']);
  });

  it("G2 hands every event to the listeners of 'event', after those of its type", () => {
    const emitter = createEmitter();
    const seen: string[] = [];
    emitter.on('event', ({ type }) => seen.push(`any ${type}`));
    emitter.on('text.delta', () => seen.push('typed'));

    emitter.emit(textDelta('Hi'));
    emitter.emit(turnEnd);

    expect(seen).toStrictEqual(['typed', 'any text.delta', 'any turn.end']);
  });

  it('EV4 fans the events of a dispatcher out to any number of listeners', async () => {
    const emitter = createEmitter();
    const branches: LoopEvent[][] = [[], []];
    for (const branch of branches) emitter.on('event', (event) => branch.push(event));
    const recorded: LoopEvent[] = [];

    const dispatchEvent = createEventDispatcher({ record: (event) => void recorded.push(event), emit: emitter.emit });
    dispatchEvent(textDelta('Hi'));
    await dispatchEvent(turnEnd);

    expect(branches).toStrictEqual([
      [textDelta('Hi'), turnEnd],
      [textDelta('Hi'), turnEnd],
    ]);
    expect(recorded).toStrictEqual([turnEnd]);
  });

  it('EV5 BR-080 never throws and starves nobody when a branch throws or rejects on every event', async () => {
    const failures: [unknown, LoopEvent][] = [];
    const emitter = createEmitter({ onListenerError: (error, event) => failures.push([error, event]) });
    const thrown = new Error('A throws.');
    const rejected = new Error('B rejects.');
    const seen: LoopEvent[] = [];
    emitter.on('text.delta', () => {
      throw thrown;
    });
    emitter.on('event', () => Promise.reject(rejected));
    emitter.on('text.delta', (event) => seen.push(event));
    emitter.on('event', (event) => seen.push(event));

    emitter.emit(textDelta('Hi'));
    emitter.emit(turnEnd);
    await flush();

    expect(seen).toStrictEqual([textDelta('Hi'), textDelta('Hi'), turnEnd]);
    expect(failures).toStrictEqual([
      [thrown, textDelta('Hi')],
      [rejected, textDelta('Hi')],
      [rejected, turnEnd],
    ]);
  });

  it('EV3 BR-080 lets a turn end as it would, with every event seen by the listener that works', async () => {
    const onListenerError = vi.fn();
    const emitter = createEmitter({ onListenerError });
    const seen: string[] = [];
    emitter.on('event', () => {
      throw new Error('A throws.');
    });
    emitter.on('event', () => Promise.reject(new Error('B rejects.')));
    emitter.on('event', ({ type }) => seen.push(type));
    const transcript = createTranscript();
    const runtime = virtualRuntime();

    const result = await runtime.settle(
      runTurn({
        llm: scriptedLLM([toolCall('echo', { text: 'hi' }), 'ok']),
        input: [userMessage('Hello')],
        tools: [echoTool()],
        buildMessages: transcript.buildMessages,
        dispatchEvent: createEventDispatcher({ record: transcript.record, emit: emitter.emit }),
        runtime,
      }),
    );

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'ok' });
    expect(seen.filter((type) => type === 'turn.begin' || type === 'turn.end')).toStrictEqual(['turn.begin', 'turn.end']);
    expect(seen).toContain('tool.result');
    expect(onListenerError).toHaveBeenCalledTimes(2 * seen.length);
  });

  it('EV2 leaves no unhandled rejection, with nobody to tell', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    const emitter = createEmitter();
    emitter.on('turn.end', () => Promise.reject(new Error('Nobody is told.')));

    emitter.emit(turnEnd);
    await flush();
    await flush();

    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it('BR-080 survives an onListenerError that throws', () => {
    const emitter = createEmitter({
      onListenerError: () => {
        throw new Error('Cannot tell.');
      },
    });
    const after = vi.fn();
    emitter.on('turn.end', () => {
      throw new Error('Broken.');
    });
    emitter.on('turn.end', after);

    emitter.emit(turnEnd);

    expect(after).toHaveBeenCalledTimes(1);
  });

  it('G2 hands out events of sub-agents with their agentPath', () => {
    const emitter = createEmitter();
    const forwarded: ForwardedEvent = { ...turnEnd, turnId: 'turn_2', agentPath: ['call_1'] };
    const seen: unknown[] = [];
    emitter.on('turn.end', (event) => seen.push('agentPath' in event ? event.agentPath : undefined));

    emitter.emit(forwarded);
    emitter.emit(turnEnd);

    expect(seen).toStrictEqual([['call_1'], undefined]);
  });

  it('does not call a listener that was removed, not even for the event being handed out', () => {
    const emitter = createEmitter();
    const seen: string[] = [];
    emitter.on('turn.end', () => {
      seen.push('first');
      removeSecond();
    });
    const removeSecond = emitter.on('turn.end', () => seen.push('second'));
    emitter.on('turn.end', () => seen.push('third'));

    emitter.emit(turnEnd);
    removeSecond();
    emitter.emit(turnEnd);

    expect(seen).toStrictEqual(['first', 'third', 'first', 'third']);
  });

  it('removes only the one of two equal listeners', () => {
    const emitter = createEmitter();
    const listener = vi.fn();
    const remove = emitter.on('turn.end', listener);
    emitter.on('turn.end', listener);

    remove();
    emitter.emit(turnEnd);

    expect(listener).toHaveBeenCalledTimes(1);
  });

  it('calls a once listener for the next event only, also when it emits that event itself', () => {
    const emitter = createEmitter();
    const seen: string[] = [];
    emitter.once('turn.end', () => {
      seen.push('once');
      emitter.emit(turnEnd);
    });
    const remove = emitter.once('text.delta', () => seen.push('never'));
    remove();

    emitter.emit(turnEnd);
    emitter.emit(textDelta('Hi'));

    expect(seen).toStrictEqual(['once']);
  });

  it('takes events of a host beside those of turns', () => {
    const emitter = createEmitter<LoopEvent | { readonly type: 'app.saved'; readonly file: string }>();
    const seen: string[] = [];
    emitter.on('app.saved', ({ file }) => seen.push(file));

    emitter.emit({ type: 'app.saved', file: 'a.txt' });
    emitter.emit(turnEnd);

    expect(seen).toStrictEqual(['a.txt']);
  });
});
