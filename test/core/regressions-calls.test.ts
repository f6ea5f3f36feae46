/**
 * Calls are run once, ended when a person says so, and judged by every hook there is; what is recorded of them is what
 * they ran with.
 */
import { describe, expect, it } from 'vitest';
import { type AnyTool, type Hook, type LoopEvent, type RecordedEvent, type ToolReturn } from 'turnloop';
import { echoTool, recordingTool, runScripted, startScripted, type TestToolInput, toolCall } from 'turnloop/testing';
import { resultLines } from './support.ts';

/** A tool whose result is a query as database libraries make them: each `then` sends it once more. It is never answered. */
function queryTool(timeoutMs?: number): { readonly sent: () => number; readonly tool: AnyTool } {
  let sent = 0;
  const query = {
    then: () => {
      sent += 1;
    },
  };
  const execute = (): Promise<ToolReturn> => query as unknown as Promise<ToolReturn>;
  const tool = { name: 'insert', description: '', inputSchema: { type: 'object' }, execute, ...(timeoutMs !== undefined && { timeoutMs }) };
  return { sent: () => sent, tool };
}

/** The arguments in the record: of the call, and of its start where they were edited. */
function recordedInputs(events: readonly RecordedEvent[]): readonly unknown[] {
  return events.flatMap((event) => (event.type === 'tool.call' || event.type === 'tool.start' ? [event.input] : []));
}

describe('a query that is sent by each "then"', () => {
  it('is sent once where its time runs out', async () => {
    const { sent, tool } = queryTool(10);

    const { recorded } = await runScripted({ replies: [[toolCall('insert'), toolCall('echo')], 'done'], tools: [tool, echoTool()] });

    expect(resultLines(recorded)).toMatchObject([['call_1', 'error', expect.stringContaining('timeout')], ['call_2', 'ok', '{}']]);
    expect(sent()).toBe(1);
  });

  it('is sent once where the turn is aborted', async () => {
    const { sent, tool } = queryTool();
    const turn = startScripted({ replies: [toolCall('insert')], tools: [tool] });
    await turn.runtime.flush();

    turn.control.abort();
    const { result } = await turn.finish();
    await turn.runtime.runUntilIdle();

    expect([result.stopReason, sent()]).toStrictEqual(['aborted', 1]);
  });
});

describe('a call that shares the result of another', () => {
  type IsMoment = (event: LoopEvent) => boolean;

  it.each<[string, IsMoment]>([
    ['streamed', (event) => event.type === 'tool.call.delta' && event.toolCallId === 'call_2'],
    ['recorded', (event) => event.type === 'tool.call' && event.toolCallId === 'call_2'],
  ])('does so no more where it is cancelled when it is %s, and is looked at once', async (_when, isMoment) => {
    const looks: string[] = [];
    const once: Hook = {
      name: 'once',
      prepareToolCall: (_context, { toolCallId }) => (toolCallId === 'call_2' ? { action: 'same_as', toolCallId: 'call_1' } : undefined),
      finalizeToolResult: (_context, { toolCallId }) => {
        looks.push(toolCallId);
      },
    };
    const cancelled: boolean[] = [];
    const turn = startScripted({
      replies: [[toolCall('echo', { text: 'a' }), toolCall('echo', { text: 'a' })], 'done'],
      tools: [echoTool()],
      hooks: [once],
      listener: (event) => {
        if (cancelled.length === 0 && isMoment(event)) cancelled.push(turn.control.cancelToolCall('call_2'));
      },
    });

    const { recorded } = await turn.finish();

    expect(cancelled).toStrictEqual([true]);
    expect(resultLines(recorded)).toMatchObject([['call_1', 'ok', 'a'], ['call_2', 'error', expect.stringContaining('cancelled')]]);
    expect(looks.sort()).toStrictEqual(['call_1', 'call_2']);
  });
});

describe('the recorded arguments of a call', () => {
  const change = (input: unknown, path: string): TestToolInput => Object.assign(input as TestToolInput, { path });

  it('stay as they were where the tool changes what its own check let through', async () => {
    const tool = recordingTool({
      name: 'read',
      parseInput: (input) => input as TestToolInput,
      execute: (input) => {
        change(input, '/changed');
        return 'ok';
      },
    });

    const { recorded } = await runScripted({ replies: [toolCall('read', { path: 'x' }), 'done'], tools: [tool] });

    expect(recordedInputs(recorded)).toStrictEqual([{ path: 'x' }, undefined]);
  });

  it('are those the model gave where a check fills in what is left out, in place', async () => {
    const tool = recordingTool({ name: 'read', parseInput: (input) => change(input, 'default') });

    const { recorded } = await runScripted({ replies: [toolCall('read', { lines: 3 }), 'done'], tools: [tool] });

    expect(recordedInputs(recorded)).toStrictEqual([{ lines: 3 }, undefined]);
    expect(tool.inputs).toStrictEqual([{ lines: 3, path: 'default' }]);
  });

  it.each(['prepareToolCall', 'authorizeToolCall', 'finalizeToolResult'] as const)(
    'are those it ran with where %s writes to what it was shown',
    async (member) => {
      const tool = recordingTool({ name: 'read' });
      const hook: Hook = {
        name: 'writes',
        [member]: (_context: unknown, call: { readonly input: unknown }) => {
          change(call.input, '/hook');
        },
      };

      const { recorded } = await runScripted({ replies: [toolCall('read', { path: 'x' }), 'done'], tools: [tool], hooks: [hook] });

      expect(recordedInputs(recorded)).toStrictEqual([{ path: 'x' }, undefined]);
      expect(tool.inputs).toStrictEqual([{ path: 'x' }]);
    },
  );
});

describe('a hook that takes itself out of the list', () => {
  it('leaves the hooks behind it their say', async () => {
    const echo = echoTool();
    const hooks: Hook[] = [];
    const once: Hook = {
      name: 'once',
      authorizeToolCall: () => {
        hooks.splice(hooks.indexOf(once), 1);
      },
    };
    hooks.push(once, { name: 'policy', authorizeToolCall: () => ({ action: 'deny', reason: 'read-only' }) });

    const { recorded } = await runScripted({ replies: [toolCall('echo'), 'done'], tools: [echo], hooks });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'read-only']]);
    expect(echo.runCount).toBe(0);
  });
});
