/**
 * Calls of tools that keep no promise: what they return, throw, declare, change later or never let go of. Whatever it is,
 * the call has its result and the others go on.
 */
import { describe, expect, it } from 'vitest';
import {
  type AnyTool,
  createTranscript,
  type PendingCall,
  suspend,
  type ToolAccess,
  ToolAccesses,
  type ToolResultPart,
  type ToolReturn,
} from 'turnloop';
import {
  echoTool,
  hangingTool,
  recordingTool,
  runScripted,
  startScripted,
  type TestToolInput,
  toolCall,
} from 'turnloop/testing';
import { outline, resultLines, resultTexts, throughJson } from './support.ts';

/** What only a caller without types can pass. */
function untyped(value: unknown): never {
  return value as never;
}

/** Runs one call of a tool beside one of `echo`: the results of both, and why the turn ended. */
async function callBeside(tool: AnyTool, hooks: Parameters<typeof runScripted>[0] = {}) {
  const replies = [[toolCall(tool.name, { path: 'a' }), toolCall('echo', { text: 'fine' })], 'done'];
  const { recorded, result } = await runScripted({ ...hooks, replies, tools: [tool, echoTool()] });
  return { lines: resultLines(recorded), stopReason: result.stopReason };
}

describe('what a call touches', () => {
  it.each<[string, (input: TestToolInput) => readonly ToolAccess[]]>([
    ['a promise', untyped(() => Promise.resolve([]))],
    ['nothing', untyped(() => undefined)],
    ['entries without a place', untyped(() => [{ mode: 'write' }])],
    [
      'an exception',
      () => {
        throw new Error('bad path');
      },
    ],
  ])('may come as %s: the call fails, the others run', async (_what, accesses) => {
    const tool = recordingTool({ name: 'odd', accesses });

    const { lines, stopReason } = await callBeside(tool);

    expect([tool.runCount, stopReason]).toStrictEqual([0, 'end_turn']);
    expect(lines).toMatchObject([['call_1', 'error', expect.stringContaining('could not say what it does')], ['call_2', 'ok', 'fine']]);
  });

  it('may not be known for edited arguments: the call fails, the others run', async () => {
    const accesses = ({ path }: TestToolInput): readonly ToolAccess[] => {
      if (path === '/edited') throw new Error('bad path');
      return ToolAccesses.none();
    };
    const tool = recordingTool({ name: 'odd', accesses });
    const hooks = [{ name: 'edit', authorizeToolCall: () => ({ action: 'edit', input: { path: '/edited' } }) as const }];

    const { recorded, result } = await runScripted({ replies: [[toolCall('odd'), toolCall('odd')], 'done'], tools: [tool], hooks });

    expect([tool.runCount, result.stopReason]).toStrictEqual([0, 'end_turn']);
    expect(resultTexts(recorded)).toStrictEqual(['The call failed: bad path', 'The call failed: bad path']);
  });

  it('does not matter to a text about the call that is no text: the call fails', async () => {
    const tool = recordingTool({ name: 'odd', describe: untyped(() => Promise.resolve('later')) });

    const { lines } = await callBeside(tool);

    expect(lines).toMatchObject([['call_1', 'error', expect.stringContaining('describe() did not return a text')], ['call_2', 'ok', 'fine']]);
  });
});

describe('what a tool hands back', () => {
  const boom = (): never => {
    throw new Error('boom');
  };
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;

  it.each<[string, ToolReturn]>([
    ['a result whose content cannot be read', untyped({ get content() { return boom(); } })],
    ['an object whose kind cannot be read', untyped({ get kind() { return boom(); } })],
    ['a revoked proxy', untyped(revoked.proxy)],
    ['a suspension with pending calls that are none', suspend({ state: 1, pending: untyped(null) })],
    ['a suspension with a pending call without a path', suspend({ state: 1, pending: untyped([{ toolCallId: 'x' }]) })],
    ['a suspension whose state is no JSON', suspend({ state: untyped(cyclic) })],
    ['a part that is none', untyped([{ type: 'text' }])],
  ])('may be %s: the call fails, the others run', async (_what, returned) => {
    const { lines, stopReason } = await callBeside(recordingTool({ name: 'odd', execute: () => returned }));

    expect(lines).toMatchObject([['call_1', 'error', expect.any(String)], ['call_2', 'ok', 'fine']]);
    expect(stopReason).toBe('end_turn');
  });

  it.each<[string, unknown, string]>([
    ['a message that is an object', Object.assign(new Error(), { message: { code: 5 } }), '{"code":5}'],
    ['a message that cannot be read', Object.defineProperty(new Error('x'), 'message', { get: boom }), 'cannot be shown'],
    ['no prototype', Object.create(null), 'not an error'],
  ])('may be an exception with %s: the record can still be read', async (_what, thrown, text) => {
    const throwing = (): never => {
      throw thrown;
    };

    const tools = [recordingTool({ name: 'odd', execute: throwing })];
    const { recorded, result } = await runScripted({ replies: [toolCall('odd'), 'done'], tools });

    expect(resultTexts(recorded)).toMatchObject([expect.stringContaining(text)]);
    expect(createTranscript(throughJson(recorded)).buildMessages()).toHaveLength(4);
    expect(result.stopReason).toBe('end_turn');
  });

  it('keeps only what parts are known to have', async () => {
    const part: ToolResultPart = untyped({ type: 'text', text: 'x', size: 1n });

    const { recorded } = await runScripted({
      replies: [toolCall('odd'), 'done'],
      tools: [recordingTool({ name: 'odd', execute: () => [part] })],
    });

    expect(recorded.find((event) => event.type === 'tool.finished')).toMatchObject({ result: { content: [{ type: 'text', text: 'x' }] } });
    expect(() => JSON.stringify(recorded)).not.toThrow();
  });

  it('does not change in the record when the tool goes on writing to it', async () => {
    const log: ToolResultPart[] = [];
    const execute = (): ToolReturn => {
      log.push({ type: 'text', text: `line ${log.length + 1}` });
      return log;
    };

    const replies = [toolCall('log'), toolCall('log'), 'done'];
    const { recorded } = await runScripted({ replies, tools: [recordingTool({ name: 'log', execute })] });

    expect(log).toHaveLength(2);
    expect(resultTexts(recorded)[0]).toBe('line 1');
  });
});

describe('the arguments of a call', () => {
  it('do not change in the record when the tool changes them', async () => {
    const execute = (input: TestToolInput): string => {
      const own: Record<string, unknown> = input;
      own['path'] = '/elsewhere';
      delete own['body'];
      return 'written';
    };

    const replies = [toolCall('write', { path: 'a', body: 'b' }), 'done'];
    const { recorded, llm } = await runScripted({ replies, tools: [recordingTool({ name: 'write', execute })] });

    const input = { path: 'a', body: 'b' };
    expect(recorded.find((event) => event.type === 'tool.call')).toMatchObject({ input });
    expect(llm.requests[1]?.messages[1]?.content).toMatchObject([{ type: 'tool_call', input }]);
  });

  it('are not what a hook makes of the object it was shown', async () => {
    const echo = echoTool();
    const replies = [toolCall('echo', { text: 'as asked' }), 'done'];
    const hooks = [
      {
        name: 'scribbler',
        authorizeToolCall: (_context: unknown, call: { readonly input: unknown }) => {
          Object.assign(call.input as object, { text: 'scribbled' });
        },
      },
    ];

    await runScripted({ replies, tools: [echo], hooks });

    expect(echo.inputs).toStrictEqual([{ text: 'as asked' }]);
  });

  it.each<[string, (ok: (value: unknown) => void, fail: (error: Error) => void) => void, string]>([
    ['takes', (ok) => { ok({ text: 'checked' }); }, 'checked'],
    ['refuses', (_ok, fail) => { fail(new Error('too short')); }, 'too short'],
  ])('are awaited where the library that %s them has promises of its own', async (_what, then, text) => {
    const echo = echoTool({ parseInput: untyped(() => ({ then })) });

    const { recorded } = await runScripted({ replies: [toolCall('echo', { text: 'raw' }), 'done'], tools: [echo] });

    expect(resultTexts(recorded)).toMatchObject([expect.stringContaining(text)]);
    expect(echo.inputs.every((input) => input['text'] === 'checked')).toBe(true);
  });
});

describe('a list of tools', () => {
  it('that grows while the turn runs is offered and found', async () => {
    const tools: AnyTool[] = [];
    const execute = (): string => {
      tools.push(echoTool());
      return 'loaded';
    };
    tools.push(recordingTool({ name: 'load', execute }));

    const replies = [toolCall('load'), toolCall('echo', { text: 'new here' }), 'done'];
    const { recorded, llm } = await runScripted({ replies, tools: () => tools });

    expect(llm.requests.map((request) => request.tools.map(({ name }) => name))).toStrictEqual([['load'], ['load', 'echo'], ['load', 'echo']]);
    expect(resultTexts(recorded)).toStrictEqual(['loaded', 'new here']);
  });

  it('that has grown a second tool of one name is refused by the next turn', async () => {
    const tools = [echoTool()];
    await runScripted({ replies: ['done'], tools });

    tools.push(echoTool());

    await expect(runScripted({ replies: ['done'], tools })).rejects.toThrow('Two tools are named "echo"');
  });
});

describe('a tool that does not let go', () => {
  const FILE = { accesses: ToolAccesses.write('file') };
  const slow = { ...FILE, name: 'slow', ignoresAbort: true };

  it('keeps its place after its time is over: what conflicts waits for the grace, what does not goes on', async () => {
    const [writer, reader] = [echoTool({ ...FILE, name: 'writer' }), echoTool({ accesses: [], name: 'reader' })];

    const { recorded, result, runtime } = await runScripted({
      replies: [[toolCall('slow'), toolCall('writer', { text: 'w' }), toolCall('reader', { text: 'r' })], 'done'],
      tools: [hangingTool({ ...slow, timeoutMs: 100 }), writer, reader],
      graceMs: 1000,
    });

    expect([reader.runs[0]?.startedAt, writer.runs[0]?.startedAt]).toStrictEqual([0, 1100]);
    expect(resultTexts(recorded).slice(1)).toStrictEqual(['w', 'r']);
    expect([result.stopReason, runtime.pendingTimers]).toStrictEqual(['end_turn', 0]);
  });

  it('lets the next one in as soon as it does', async () => {
    const writer = echoTool({ ...FILE, name: 'writer' });
    const late = recordingTool({
      ...FILE,
      name: 'late',
      timeoutMs: 100,
      execute: (_input, { runtime }) => new Promise((resolve) => runtime.setTimer(300, () => resolve('too late'))),
    });

    const { recorded } = await runScripted({ replies: [[toolCall('late'), toolCall('writer', { text: 'w' })], 'done'], tools: [late, writer] });

    expect(writer.runs[0]?.startedAt).toBe(300);
    expect(resultTexts(recorded)).toMatchObject([expect.stringContaining('time limit of 100 ms'), 'w']);
  });

  it('keeps its place after a person cancelled it alone', async () => {
    const [writer, reader] = [echoTool({ ...FILE, name: 'writer' }), echoTool({ accesses: [], name: 'reader' })];
    const turn = startScripted({
      replies: [[toolCall('slow'), toolCall('writer', { text: 'w' }), toolCall('reader', { text: 'r' })], 'done'],
      tools: [hangingTool(slow), writer, reader],
      graceMs: 1000,
    });
    await turn.runtime.advance(50);

    const cancelled = turn.control.cancelToolCall('call_1');
    const { recorded, result } = await turn.finish();

    expect([cancelled, reader.runs[0]?.startedAt, writer.runs[0]?.startedAt]).toStrictEqual([true, 0, 1050]);
    expect(resultTexts(recorded)).toMatchObject([expect.stringContaining('cancelled this call on purpose'), 'w', 'r']);
    expect(result.stopReason).toBe('end_turn');
  });

  it('does not hold up a turn in which nobody waits for it', async () => {
    const { recorded, runtime, result } = await runScripted({
      replies: [[toolCall('slow'), toolCall('reader', { text: 'r' })], 'done'],
      tools: [hangingTool({ ...slow, timeoutMs: 100 }), echoTool({ accesses: [], name: 'reader' })],
      graceMs: 60_000,
    });

    expect([result.stopReason, runtime.now(), runtime.pendingTimers]).toStrictEqual(['end_turn', 100, 0]);
    expect(outline(recorded).filter((line) => line.startsWith('tool.result'))).toHaveLength(2);
  });

  it('reports tokens in vain once the turn is over', async () => {
    const usage = { inputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, thinkingTokens: 0 };
    const agent = recordingTool({
      name: 'agent',
      timeoutMs: 100,
      execute: (_input, { runtime, recordUsage }) =>
        new Promise((resolve) => runtime.setTimer(300, () => resolve(recordUsage(usage, 'child').then(() => 'late')))),
    });

    const turn = await runScripted({ replies: [toolCall('agent'), 'done'], tools: [agent] });
    const counted = turn.result.usage.inputTokens;
    await turn.runtime.runUntilIdle();

    expect(turn.recorded.at(-1)?.type).toBe('turn.end');
    expect(turn.transcript.events.flatMap((event) => (event.type === 'usage' ? [event.usage.inputTokens] : [])).reduce((a, b) => a + b)).toBe(counted);
  });
});

describe('a call below a call that suspended', () => {
  it('is recorded with the path to it', async () => {
    const below: PendingCall = { toolCallId: 'child', name: 'x', input: {}, step: 3, agentPath: [] };

    const { result } = await runScripted({
      replies: [toolCall('agent')],
      tools: [recordingTool({ name: 'agent', execute: () => suspend({ state: 1, pending: [below] }) })],
    });

    expect(result.pending).toStrictEqual([{ ...below, agentPath: ['call_1'] }]);
  });
});
