// Test tools do the one thing they are named for, keep every run, and let any member be set.
import { NO_USAGE, replayOf, ToolAccesses } from 'turnloop';
import {
  echoTool,
  failingTool,
  gatedTool,
  hangingTool,
  recordingTool,
  slowTool,
  toolContext,
  virtualRuntime,
  watchedController,
  type TestTool,
} from 'turnloop/testing';
import { describe, expect, it } from 'vitest';

describe('recordingTool', () => {
  it('keeps every run with its input, context, times and end', async () => {
    const runtime = virtualRuntime();
    const tool = slowTool(20);
    const context = toolContext({ runtime });

    const run = tool.execute({ x: 1 }, context);
    const during = tool.runs.map(({ state, endedAt }) => [state, endedAt]);
    await runtime.settle(Promise.resolve(run));

    expect(during).toStrictEqual([['running', undefined]]);
    expect(tool.runs).toStrictEqual([
      { toolCallId: 'call_1', input: { x: 1 }, context, startedAt: 0, endedAt: 20, state: 'returned' },
    ]);
    expect(tool.inputs).toStrictEqual([{ x: 1 }]);
  });

  it('counts runs, those under way, and the most at once', async () => {
    const runtime = virtualRuntime();
    const tool = slowTool((input) => Number(input['ms']));
    const context = toolContext({ runtime });

    void tool.execute({ ms: 10 }, context);
    void tool.execute({ ms: 30 }, context);
    await runtime.advance(10);
    void tool.execute({ ms: 5 }, context);

    expect([tool.runCount, tool.runningCount, tool.maxRunning]).toStrictEqual([3, 2, 2]);
  });

  it('returns at once where the tool does', () => {
    const tool = recordingTool({ execute: () => 'now' });

    expect(tool.execute({}, toolContext())).toBe('now');
    expect(tool.runs[0]?.state).toBe('returned');
  });

  it('is done by default and called record', () => {
    expect(recordingTool().name).toBe('record');
    expect(recordingTool().execute({}, toolContext())).toBe('done');
  });

  it.each<[string, (options: Parameters<typeof echoTool>[0]) => TestTool]>([
    ['echoTool', echoTool],
    ['failingTool', failingTool],
    ['hangingTool', hangingTool],
    ['slowTool', (options) => slowTool(1, options)],
    ['gatedTool', gatedTool],
    ['recordingTool', recordingTool],
  ])('lets every member of %s be set', (_name, create) => {
    const accesses = ToolAccesses.read('db');
    const parseInput = (): Record<string, unknown> => ({});
    const inputSchema = { type: 'object', required: ['x'] };

    const tool = create({
      name: 'n',
      description: 'd',
      inputSchema,
      parseInput,
      accesses,
      readOnly: true,
      replay: 'idempotent',
      timeoutMs: 5,
      describe: () => 'does it',
    });

    expect(tool).toMatchObject({ name: 'n', description: 'd', inputSchema, parseInput, readOnly: true, timeoutMs: 5 });
    expect(tool.accesses?.({})).toBe(accesses);
    expect(tool.describe?.({})).toBe('does it');
    expect(replayOf(tool)).toBe('idempotent');
  });

  it('computes accesses from the input where they are a function', () => {
    const tool = recordingTool({ accesses: (input) => ToolAccesses.readFile(String(input['path'])) });

    expect(tool.accesses?.({ path: '/a' })).toStrictEqual(ToolAccesses.readFile('/a'));
  });
});

describe('echoTool', () => {
  it('returns its text, else its arguments as JSON', () => {
    const tool = echoTool();

    expect(tool.execute({ text: 'hi' }, toolContext())).toBe('hi');
    expect(tool.execute({ x: [1] }, toolContext())).toBe('{"x":[1]}');
  });
});

describe('failingTool', () => {
  it('rejects by default', async () => {
    const tool = failingTool();

    await expect(tool.execute({}, toolContext())).rejects.toThrow('the tool failed');
    expect(tool.runs[0]?.state).toBe('threw');
  });

  it('throws where told so, anything', () => {
    const tool = failingTool({ mode: 'throws', error: 'odd' });

    expect(() => tool.execute({}, toolContext())).toThrow('odd');
    expect([tool.runs[0]?.state, tool.runningCount]).toStrictEqual(['threw', 0]);
  });

  it('returns an error result where told so', () => {
    const tool = failingTool({ mode: 'returns', error: new Error('not found') });

    expect(tool.execute({}, toolContext())).toStrictEqual({ content: 'not found', isError: true });
  });
});

describe('hangingTool', () => {
  it('ends only when aborted, with the reason', async () => {
    const runtime = virtualRuntime();
    const controller = watchedController();
    const tool = hangingTool();
    const run = Promise.resolve(tool.execute({}, toolContext({ signal: controller.signal })));

    await expect(runtime.settle(run)).rejects.toThrow('cannot settle');
    controller.abort('enough');

    await expect(run).rejects.toBe('enough');
    expect([tool.runs[0]?.state, controller.listenerCount]).toStrictEqual(['aborted', 0]);
  });

  it('hangs on after an abort where told so', async () => {
    const runtime = virtualRuntime();
    const tool = hangingTool({ ignoresAbort: true });
    const run = Promise.resolve(tool.execute({}, toolContext({ signal: AbortSignal.abort() })));

    await expect(runtime.settle(run)).rejects.toThrow('cannot settle');
  });

  it('ends at once when aborted before', async () => {
    await expect(hangingTool().execute({}, toolContext({ signal: AbortSignal.abort('no') }))).rejects.toBe('no');
  });
});

describe('slowTool', () => {
  it('returns a result of choice after its time', async () => {
    const runtime = virtualRuntime();
    const tool = slowTool(100, { result: (input) => `after ${String(input['x'])}` });

    const result = await runtime.settle(Promise.resolve(tool.execute({ x: 1 }, toolContext({ runtime }))));

    expect([result, runtime.now()]).toStrictEqual(['after 1', 100]);
  });

  it('stops when aborted, unless told not to', async () => {
    const runtime = virtualRuntime();
    const controller = new AbortController();
    const context = toolContext({ runtime, signal: controller.signal });
    const stops = Promise.resolve(slowTool(100).execute({}, context)).catch((error: unknown) => error);
    const goesOn = Promise.resolve(slowTool(100, { ignoresAbort: true }).execute({}, context));

    controller.abort('enough');

    expect(await stops).toBe('enough');
    expect(await runtime.settle(goesOn)).toBe('done');
  });
});

describe('gatedTool', () => {
  it('tells when it has started and ends when it is told', async () => {
    const tool = gatedTool();
    const started = tool.started();
    const run = tool.execute({}, toolContext());
    await started;

    expect(tool.waiting).toStrictEqual(['call_1']);
    tool.finish('result');

    expect(await run).toBe('result');
    expect([tool.waiting, tool.runningCount]).toStrictEqual([[], 0]);
  });

  it('ends runs oldest first, or by the id of the call', async () => {
    const tool = gatedTool();
    const [a, b, c] = ['a', 'b', 'c'].map((toolCallId) => tool.execute({}, toolContext({ toolCallId })));

    await tool.started(3);
    tool.finish('second', 'b');
    tool.finish('first');
    tool.fail(new Error('third'));

    expect(await Promise.all([a, b])).toStrictEqual(['first', 'second']);
    await expect(c).rejects.toThrow('third');
  });

  it('lets everything through once open', async () => {
    const tool = gatedTool();
    const before = tool.execute({}, toolContext());

    tool.open('through');

    expect(await before).toBe('through');
    expect(tool.execute({}, toolContext())).toBe('through');
  });

  it('rejects with the reason when aborted, and lets go of the signal', async () => {
    const tool = gatedTool();
    const controller = watchedController();
    const run = tool.execute({}, toolContext({ signal: controller.signal }));

    controller.abort('enough');

    await expect(run).rejects.toBe('enough');
    expect([tool.waiting, controller.listenerCount]).toStrictEqual([[], 0]);
  });

  it('lets go of the signal when it finishes', async () => {
    const tool = gatedTool();
    const controller = watchedController();
    const run = tool.execute({}, toolContext({ signal: controller.signal }));

    tool.finish();
    await run;

    expect(controller.listenerCount).toBe(0);
  });

  it('waits on after an abort where told so', async () => {
    const tool = gatedTool({ ignoresAbort: true });
    const run = tool.execute({}, toolContext({ signal: AbortSignal.abort() }));

    tool.finish();

    expect(await run).toBe('done');
  });

  it('ends at once when aborted before', async () => {
    await expect(gatedTool().execute({}, toolContext({ signal: AbortSignal.abort('no') }))).rejects.toBe('no');
  });

  it('says so when no run waits', () => {
    expect(() => gatedTool().finish()).toThrow('no run does not wait at the gate of "gate"');
    expect(() => gatedTool({ name: 'g' }).finish('x', 'call_9')).toThrow('call_9 does not wait at the gate of "g"');
  });
});

describe('toolContext', () => {
  it('keeps what a tool says through it', async () => {
    const context = toolContext({ turnId: 't', host: 'h' });

    context.progress({ kind: 'status', text: 'half' });
    context.forward({ type: 'turn.begin', turnId: 'child', at: 0 });
    await context.recordUsage(NO_USAGE, 'm');

    expect(context.updates).toStrictEqual([{ kind: 'status', text: 'half' }]);
    expect(context.forwarded).toStrictEqual([{ type: 'turn.begin', turnId: 'child', at: 0 }]);
    expect(context.usages).toStrictEqual([{ usage: NO_USAGE, modelId: 'm' }]);
    expect([context.idempotencyKey, context.host]).toStrictEqual(['t.call_1', 'h']);
  });
});
