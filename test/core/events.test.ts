/** Events, as a black box: listeners are harmless, and what they see comes in a fixed order with documented fields. */
import { describe, expect, it } from 'vitest';
import {
  createEventDispatcher,
  createTranscript,
  type DispatchEvent,
  isRecordedEvent,
  type LoopEvent,
  runTurn,
} from 'turnloop';
import {
  echoTool,
  faultyListener,
  type LoopEventOf,
  recordingTool,
  runScripted,
  scriptedLLM,
  toolCall,
  virtualRuntime,
} from 'turnloop/testing';
import { resultLines, watchRejections } from './support.ts';

/** A turn with two parallel tools, one of which tells its progress, and an answer. */
const SCENE = {
  replies: [[toolCall('echo', { text: 'a' }), toolCall('work')], 'done'],
  llmOptions: { streams: false },
};

function sceneTools() {
  const work = recordingTool({
    name: 'work',
    readOnly: true,
    execute: (_input, context) => {
      context.progress({ kind: 'status', text: 'half' });
      return 'worked';
    },
  });
  return [echoTool({ readOnly: true }), work];
}

describe('a listener', () => {
  it('EV1 that throws at once does not affect the turn', async () => {
    const healthy = await runScripted({ ...SCENE, tools: sceneTools() });

    const { result, recorded, listenerErrors } = await runScripted({ ...SCENE, tools: sceneTools(), listener: faultyListener('throws') });

    expect(result).toStrictEqual(healthy.result);
    expect(recorded).toStrictEqual(healthy.recorded);
    expect(listenerErrors).toHaveLength(healthy.events.length);
  });

  it('EV2 that returns a rejected promise does not affect it, and leaves no unhandled rejection', async () => {
    const rejections = watchRejections();

    const { result, runtime, listenerErrors, events } = await runScripted({
      ...SCENE,
      tools: sceneTools(),
      listener: faultyListener('rejects'),
    });
    await runtime.flush();
    rejections.stop();

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done' });
    expect(listenerErrors).toHaveLength(events.length);
    expect(rejections.reasons).toStrictEqual([]);
  });

  it.each(['throws', 'rejects', 'hangs'] as const)('EV3 that always %s does not affect several steps with tools', async (mode) => {
    const replies = [toolCall('echo', { text: 'a' }), [toolCall('echo', { text: 'b' }), toolCall('work')], 'done'];

    const { result, recorded } = await runScripted({ replies, tools: sceneTools(), listener: faultyListener(mode) });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 3, text: 'done' });
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'ok', 'a'],
      ['call_2', 'ok', 'b'],
      ['call_3', 'ok', 'worked'],
    ]);
  });

  it('EV3 that fails reports nowhere when nobody asked for its errors', async () => {
    const dispatch = createEventDispatcher({ emit: faultyListener('throws') });
    const event: LoopEvent = { type: 'notice', name: 'x', data: null, turnId: 't', at: 0 };

    expect(() => dispatch(event)).not.toThrow();
  });

  it('survives a diagnostics callback that fails too', async () => {
    const dispatch = createEventDispatcher({
      emit: faultyListener('throws'),
      onListenerError: () => {
        throw new Error('nobody left to tell');
      },
    });

    expect(() => dispatch({ type: 'notice', name: 'x', data: null, turnId: 't', at: 0 })).not.toThrow();
  });
});

describe('a host', () => {
  it('EV4 fans out through its one emitter', async () => {
    const target = new EventTarget();
    const seen: string[][] = [[], []];
    for (const list of seen) target.addEventListener('turn', (event) => list.push((event as CustomEvent<LoopEvent>).detail.type));

    const { recording } = await runScripted({
      ...SCENE,
      tools: sceneTools(),
      listener: (event) => target.dispatchEvent(new CustomEvent('turn', { detail: event })),
    });

    expect(seen).toStrictEqual([recording.types(), recording.types()]);
  });

  it('EV5 keeps a bad branch of its fan-out from starving the others, with a dispatcher for each', async () => {
    const seen: LoopEvent[] = [];
    const branches = [faultyListener('throws'), faultyListener('rejects'), (event: LoopEvent) => seen.push(event)].map(
      (emit): DispatchEvent => createEventDispatcher({ emit }),
    );

    const { events } = await runScripted({
      ...SCENE,
      tools: sceneTools(),
      listener: (event) => {
        for (const branch of branches) void branch(event);
      },
    });

    expect(seen).toStrictEqual(events);
  });

  it('EV9 may take any function for its emitter', async () => {
    const transcript = createTranscript();
    const runtime = virtualRuntime();
    const seen: string[] = [];

    const result = await runtime.settle(
      runTurn({
        llm: scriptedLLM(['Hello']),
        input: 'hi',
        buildMessages: transcript.buildMessages,
        dispatchEvent: (event: LoopEvent) => {
          seen.push(event.type);
          if (isRecordedEvent(event)) transcript.record(event);
        },
        runtime,
      }),
    );

    expect(result.text).toBe('Hello');
    expect(seen).toStrictEqual([
      'turn.begin',
      'message',
      'step.begin',
      'text.delta',
      'usage',
      'content.part',
      'step.end',
      'turn.end',
    ]);
  });

  it('sees a recorded event live only once it is durable', async () => {
    const log: string[] = [];
    const dispatch = createEventDispatcher({
      record: async (event) => {
        await Promise.resolve();
        log.push(`durable ${event.type}`);
      },
      emit: (event) => void log.push(`live ${event.type}`),
    });

    await dispatch({ type: 'turn.begin', version: 1, inputCount: 0, turnId: 't', at: 0 });

    expect(log).toStrictEqual(['durable turn.begin', 'live turn.begin']);
  });

  it('sees nothing live of an event that could not be recorded', async () => {
    const log: string[] = [];
    const dispatch = createEventDispatcher({
      record: () => Promise.reject(new Error('disk full')),
      emit: (event) => void log.push(event.type),
    });

    await expect(dispatch({ type: 'turn.begin', version: 1, inputCount: 0, turnId: 't', at: 0 })).rejects.toThrow('disk full');
    expect(log).toStrictEqual([]);
  });

  it('sees the events of a sub-agent live, and records none of them', async () => {
    const recorded: LoopEvent[] = [];
    const live: LoopEvent[] = [];
    const dispatch = createEventDispatcher({ record: (event) => void recorded.push(event), emit: (event) => void live.push(event) });
    const child: LoopEvent = { type: 'turn.begin', version: 1, inputCount: 0, turnId: 'child', at: 0, agentPath: ['call_1'] };

    await dispatch(child);

    expect([live, recorded]).toStrictEqual([[child], []]);
  });
});

describe('the events of a turn', () => {
  it('EV6 come in a fixed order for two parallel tools and an answer', async () => {
    const { recording } = await runScripted({ ...SCENE, tools: sceneTools() });

    const milestones = ['step.begin', 'tool.call', 'tool.progress', 'tool.result', 'step.end'];
    expect(recording.types().filter((type) => milestones.includes(type))).toStrictEqual([
      'step.begin',
      'tool.call',
      'tool.call',
      'tool.progress',
      'tool.result',
      'tool.result',
      'step.end',
      'step.begin',
      'step.end',
    ]);
  });

  it('EV7 carry what is documented of a call and its result', async () => {
    const { recording } = await runScripted({
      replies: [['Let me see.', toolCall('echo', { text: 'a' }, { providerId: 'toolu_1', providerData: { signature: 'x' } })], 'done'],
      tools: [echoTool({ describe: () => 'Say a' })],
    });

    const stamp = { step: 1, stepId: 'step_1', turnId: 'turn_1', at: 0 };
    expect(recording.of('tool.call')).toStrictEqual([
      {
        type: 'tool.call',
        ...stamp,
        index: 1,
        count: 2,
        toolCallId: 'call_1',
        name: 'echo',
        inputText: '{"text":"a"}',
        input: { text: 'a' },
        providerId: 'toolu_1',
        providerData: { signature: 'x' },
        description: 'Say a',
      },
    ] satisfies LoopEventOf<'tool.call'>[]);
    const result = { content: [{ type: 'text', text: 'a' }] } as const;
    expect(recording.of('tool.start')).toStrictEqual([{ type: 'tool.start', ...stamp, toolCallId: 'call_1' }]);
    expect(recording.of('tool.finished')).toStrictEqual([{ type: 'tool.finished', ...stamp, toolCallId: 'call_1', result }]);
    expect(recording.of('tool.result')).toStrictEqual([
      { type: 'tool.result', ...stamp, toolCallId: 'call_1', name: 'echo', result },
    ] satisfies LoopEventOf<'tool.result'>[]);
  });

  it('EV8 carry the provider\'s id of the response on step.end', async () => {
    const { recording } = await runScripted({
      replies: [{ content: 'ok', responseId: 'resp-7', modelId: 'model-2026', usage: { outputTokens: 1 }, timing: { totalMs: 12 } }],
    });

    expect(recording.of('step.end')).toStrictEqual([
      {
        type: 'step.end',
        step: 1,
        stepId: 'step_1',
        stopReason: 'end_turn',
        responseId: 'resp-7',
        modelId: 'model-2026',
        usage: { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 1, thinkingTokens: 0 },
        timing: { totalMs: 12 },
        turnId: 'turn_1',
        at: 0,
      },
    ]);
  });

  it('are plain JSON, all of them', async () => {
    const { events } = await runScripted({ ...SCENE, tools: sceneTools(), metadata: { session: 's' } });

    expect(JSON.parse(JSON.stringify(events))).toStrictEqual(events);
  });

  it('are told apart by lane', async () => {
    const { events, recorded } = await runScripted({ replies: [toolCall('work'), 'done'], tools: sceneTools() });

    expect(events.filter(isRecordedEvent)).toStrictEqual(recorded);
    expect(new Set(events.filter((event) => !isRecordedEvent(event)).map((event) => event.type))).toStrictEqual(
      new Set(['tool.call.delta', 'text.delta', 'tool.progress']),
    );
  });
});
