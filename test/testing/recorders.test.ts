// Listeners and recorders keep what they see, and fail exactly at the event they are told to. They work as the two
// halves of a dispatcher, and as a plain dispatch function.
import { createEventDispatcher, type LoopEvent, type RecordedEvent } from 'turnloop';
import {
  abortAt,
  crashingRecorder,
  failingRecorder,
  faultyListener,
  hangingRecorder,
  recordEvents,
  virtualRuntime,
} from 'turnloop/testing';
import { describe, expect, it } from 'vitest';

const BEGIN: RecordedEvent = { type: 'turn.begin', turnId: 't', at: 0, version: 1, inputCount: 0 };
const STEP: RecordedEvent = { type: 'step.begin', turnId: 't', at: 1, step: 1, stepId: 's' };
const DELTA: LoopEvent = { type: 'text.delta', turnId: 't', at: 2, step: 1, stepId: 's', attempt: 1, text: 'a' };
const END: RecordedEvent = { type: 'turn.end', turnId: 't', at: 3, stopReason: 'end_turn', steps: 1 };
const CHILD: LoopEvent = { ...STEP, agentPath: ['call_1'] };

describe('recordEvents', () => {
  it('keeps what it is dispatched, recorded events also by themselves', () => {
    const recording = recordEvents();

    for (const event of [BEGIN, DELTA, CHILD, END]) void recording.dispatchEvent(event);

    expect(recording.events).toStrictEqual([BEGIN, DELTA, CHILD, END]);
    expect(recording.recorded).toStrictEqual([BEGIN, END]);
  });

  it('serves as both halves of a dispatcher without counting twice', async () => {
    const recording = recordEvents();
    const dispatchEvent = createEventDispatcher({ record: recording.record, emit: recording.emit });

    await dispatchEvent(BEGIN);
    dispatchEvent(DELTA);
    await dispatchEvent(END);

    expect(recording.types()).toStrictEqual(['turn.begin', 'text.delta', 'turn.end']);
    expect(recording.recorded).toStrictEqual([BEGIN, END]);
  });

  it('finds the events of a type, with that type', () => {
    const recording = recordEvents();
    for (const event of [BEGIN, DELTA, DELTA]) recording.emit(event);

    const texts: string[] = recording.of('text.delta').map((event) => event.text);

    expect(texts).toStrictEqual(['a', 'a']);
  });

  it('forgets what it saw', () => {
    const recording = recordEvents();
    void recording.dispatchEvent(BEGIN);

    recording.clear();

    expect([recording.events, recording.recorded]).toStrictEqual([[], []]);
  });
});

describe('faultyListener', () => {
  it('throws on every event', () => {
    const listener = faultyListener('throws');

    expect(() => listener(BEGIN)).toThrow('listener failed');
    expect(() => listener(END)).toThrow('listener failed');
    expect(listener.events).toStrictEqual([BEGIN, END]);
  });

  it('rejects at the n-th event alone', async () => {
    const listener = faultyListener('rejects', { at: 2, error: 'no' });

    const outcomes = [];
    for (const event of [BEGIN, STEP, END]) outcomes.push(await Promise.resolve(listener(event)).catch((error: unknown) => error));

    expect(outcomes).toStrictEqual([undefined, 'no', undefined]);
  });

  it('never comes back where it hangs', async () => {
    const runtime = virtualRuntime();
    const listener = faultyListener('hangs', { at: 'step.begin' });

    expect(listener(BEGIN)).toBeUndefined();
    await expect(runtime.settle(Promise.resolve(listener(STEP)))).rejects.toThrow('cannot settle');
  });
});

describe('abortAt', () => {
  it.each([
    ['the n-th event', 2],
    ['the first event of a type', 'step.begin'],
    ['the first event a function likes', (event: LoopEvent) => event.at === 1],
  ] as const)('aborts at %s, once', (_name, at) => {
    const reasons: unknown[] = [];
    const listener = abortAt({ abort: (reason) => reasons.push(reason) }, at, 'enough');

    for (const event of [BEGIN, STEP, STEP, END]) void listener(event);

    expect(reasons).toStrictEqual(['enough']);
    expect(listener.events).toHaveLength(4);
  });
});

describe('recorders that break', () => {
  it('fails from the n-th event on and keeps what came before', async () => {
    const kept: RecordedEvent[] = [];
    const recorder = failingRecorder({ at: 2, record: (event) => void kept.push(event) });

    void recorder(BEGIN);

    await expect(recorder(STEP)).rejects.toThrow('recorder failed');
    await expect(recorder(END)).rejects.toThrow('recorder failed');
    expect([recorder.events, kept, recorder.seenCount]).toStrictEqual([[BEGIN], [BEGIN], 3]);
  });

  it('fails once where told so, with an error of choice', () => {
    const recorder = failingRecorder({ at: 'step.begin', once: true, mode: 'throws', error: 'full' });

    void recorder(BEGIN);
    expect(() => recorder(STEP)).toThrow('full');
    void recorder(END);

    expect(recorder.events).toStrictEqual([BEGIN, END]);
  });

  it('hangs from the n-th event on', async () => {
    const runtime = virtualRuntime();
    const recorder = hangingRecorder({ at: 1 });

    await expect(runtime.settle(Promise.resolve(recorder(BEGIN)))).rejects.toThrow('cannot settle');
    await expect(runtime.settle(Promise.resolve(recorder(END)))).rejects.toThrow('cannot settle');
    expect(recorder.events).toStrictEqual([]);
  });

  it('crashes after the n-th event: that one is kept, and nothing comes back', async () => {
    const runtime = virtualRuntime();
    const recorder = crashingRecorder({ at: 2 });
    void recorder(BEGIN);

    const last = Promise.resolve(recorder(STEP));
    await runtime.settle(recorder.crashed);

    await expect(runtime.settle(last)).rejects.toThrow('cannot settle');
    await expect(runtime.settle(Promise.resolve(recorder(END)))).rejects.toThrow('cannot settle');
    expect(recorder.events).toStrictEqual([BEGIN, STEP]);
  });

  it('loses everything after the n-th event and says nothing', async () => {
    const recorder = crashingRecorder({ at: 1, mode: 'loses' });

    await recorder(BEGIN);
    await recorder(STEP);
    await recorder(END);

    expect([recorder.events, recorder.seenCount]).toStrictEqual([[BEGIN], 3]);
  });
});
