/** What a control, a recovery and a tool that will not let go may do, as a black box. */
import { describe, expect, it } from 'vitest';
import { createTranscript, defineTool, LLMError, ToolAccesses, type Hook, type Recovery } from 'turnloop';
import { echoTool, recordingTool, runScripted, scriptedLLM, startScripted, toolCall } from 'turnloop/testing';

describe('a tool that its time ran out for', () => {
  it('is waited for by a conflicting call of the next step', async () => {
    const log: string[] = [];
    const slow = recordingTool({
      name: 'slow',
      accesses: () => ToolAccesses.write('db'),
      timeoutMs: 10,
      execute: (_, { runtime }) =>
        new Promise((resolve) => {
          runtime.setTimer(100, () => {
            log.push('slow let go');
            resolve('late');
          });
        }),
    });
    const next = recordingTool({
      name: 'next',
      accesses: () => ToolAccesses.write('db'),
      execute: () => {
        log.push('next ran');
        return 'ok';
      },
    });

    const { result } = await runScripted({ replies: [toolCall('slow'), toolCall('next'), 'done'], tools: [slow, next] });

    expect(log).toStrictEqual(['slow let go', 'next ran']);
    expect(result.stopReason).toBe('end_turn');
  });
});

describe('cancelToolCall', () => {
  it('closes a call between two hooks, one of which never answers', async () => {
    const dialog: Hook = { name: 'dialog', authorizeToolCall: () => new Promise<never>(() => undefined) };
    const edit: Hook = {
      name: 'edit',
      authorizeToolCall: (_, { toolCallId }) => {
        queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => scene.control.cancelToolCall(toolCallId))));
        return { action: 'edit', input: { text: 'b' } };
      },
    };
    const scene = startScripted({ replies: [toolCall('echo', { text: 'a' }), 'done'], tools: [echoTool()], hooks: [edit, dialog] });

    const { result, recorded } = await scene.finish();

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done' });
    expect(recorded.filter((event) => event.type === 'tool.start')).toStrictEqual([]);
  });

  it('is false for a call that is over, and for one that never was', async () => {
    const answers: boolean[] = [];
    const afterStep: Hook = {
      name: 'late',
      afterStep: () => {
        answers.push(scene.control.cancelToolCall('call_1'), scene.control.cancelToolCall('nope'));
      },
    };
    const scene = startScripted({ replies: [toolCall('echo', { text: 'a' }), 'done'], tools: [echoTool()], hooks: [afterStep] });

    await scene.finish();

    expect(answers.slice(0, 2)).toStrictEqual([false, false]);
  });
});

it('an open turn is a copy each time, also behind a compaction', async () => {
  const { transcript } = await runScripted({ replies: [toolCall('echo', { text: 'a' }), 'done'], tools: [echoTool()] });
  const end = transcript.events.findIndex((event) => event.type === 'step.end');
  const open = createTranscript(transcript.events.slice(0, end + 1));
  open.record({ type: 'compaction', layer: 'test', edits: [], tokensBefore: 1, tokensAfter: 1, turnId: 'turn_1', at: 0 });

  const first = open.openTurn();
  Reflect.set(first?.step?.calls[0] ?? {}, 'name', 'changed');

  expect(open.openTurn()?.step?.calls[0]?.name).toBe('echo');
});

it.each([true, {}, [], 'again'])('a recovery that returns %j sends nothing, and the failure stands', async (garbage) => {
  const recovery = { name: 'garbage', kinds: ['server'], apply: () => garbage } as unknown as Recovery;
  const llm = scriptedLLM([new LLMError({ kind: 'server', message: 'down' })]);

  const { result, events } = await runScripted({ llm, recoveries: [recovery] });

  expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'server' } });
  expect(llm.callCount).toBe(1);
  expect(events).toContainEqual(expect.objectContaining({ type: 'notice', name: 'recovery.failed' }));
});

it.each(['1.7976931348623157e308', '1.2345678901234566e+25', '1e20', '0.1234567890123456789'])('the float %s is an argument like any other', async (n) => {
  const take = defineTool({ name: 'take', description: '', input: { type: 'object' }, execute: (input) => String(input['n']) });

  const { recorded } = await runScripted({ replies: [toolCall('take', `{"n":${n}}`), 'done'], tools: [take] });

  expect(recorded.find((event) => event.type === 'tool.result')?.result).toStrictEqual({ content: [{ type: 'text', text: String(Number(n)) }] });
});

it('an abort while a recovery changes the request sends nothing more', async () => {
  const recovery: Recovery = {
    name: 'slow',
    kinds: ['server'],
    apply: (request, { error, runtime }) =>
      error !== undefined
        ? { ...request, messages: [...request.messages] }
        : new Promise((resolve) => {
            runtime.setTimer(50, () => {
              resolve(request);
            });
          }),
  };
  const llm = scriptedLLM([new LLMError({ kind: 'server', message: 'down' }), toolCall('echo', { text: 'a' }), 'never asked for']);
  const scene = startScripted({ llm, tools: [echoTool()], recoveries: [recovery], graceMs: 0 });
  scene.runtime.setTimer(20, () => {
    scene.control.abort('enough');
  });

  const { result } = await scene.finish();

  expect(result).toMatchObject({ stopReason: 'aborted', stopMessage: 'enough' });
  expect(llm.callCount).toBe(2);
});
