/**
 * Hooks that answer with nonsense, fail in their own way, or see a call that others have changed: a guard is never
 * bypassed, and a hook's slip is a notice, not the end of the turn.
 */
import { describe, expect, it } from 'vitest';
import { type AuthorizeDecision, type Hook, type HookCall, textOf, ToolAccesses, type ToolUpdate } from 'turnloop';
import { echoTool, failingTool, recordingTool, runScripted, startScripted, toolCall } from 'turnloop/testing';
import { outline, resultLines, resultTexts, watchRejections } from './support.ts';

/** What only a caller without types can pass. */
function untyped(value: unknown): never {
  return value as never;
}

const CALL_ECHO = [toolCall('echo', { text: 'raw' }), 'done'];
const cyclic: { self?: unknown } = {};
cyclic.self = cyclic;
const NOT_JSON: readonly [string, unknown][] = [['a bigint', { text: 1n }], ['a cycle', cyclic], ['nothing', undefined], ['a symbol', Symbol('x')]];

describe('an edit', () => {
  it('is what the hooks behind it judge: arguments, description and accesses', async () => {
    const remove = recordingTool({
      name: 'remove',
      accesses: ({ path }) => ToolAccesses.write(String(path)),
      describe: ({ path }) => `remove ${String(path)}`,
    });
    const seen: Partial<HookCall>[] = [];
    const hooks: Hook[] = [
      { name: 'sandbox', authorizeToolCall: () => ({ action: 'edit', input: { path: 'sandbox' } }) },
      {
        name: 'judge',
        authorizeToolCall: (_context, { input, description, accesses }) => {
          seen.push({ input, description, accesses });
        },
      },
    ];

    await runScripted({ replies: [toolCall('remove', { path: 'etc' }), 'done'], tools: [remove], hooks });

    expect(seen).toStrictEqual([
      { input: { path: 'sandbox' }, description: 'remove sandbox', accesses: ToolAccesses.write('sandbox') },
    ]);
  });

  it('whose arguments are still being checked when the turn is aborted leaves a closed call', async () => {
    const isEdited = (input: unknown): boolean => JSON.stringify(input).includes('edited');
    const echo = echoTool({ parseInput: (input) => (isEdited(input) ? new Promise(() => undefined) : { text: 'raw' }) });
    const hooks: Hook[] = [{ name: 'edit', authorizeToolCall: () => ({ action: 'edit', input: { text: 'edited' } }) }];
    const turn = startScripted({ replies: CALL_ECHO, tools: [echo], hooks });
    await turn.runtime.flush();

    turn.control.abort();
    const { recorded, result } = await turn.finish();

    expect([result.stopReason, echo.runCount]).toStrictEqual(['aborted', 0]);
    expect(outline(recorded).slice(-3)).toStrictEqual(['tool.result call_1', 'step.end', 'turn.end']);
  });

  it.each(NOT_JSON)('to %s is no edit: the call fails', async (_what, input) => {
    const edit: AuthorizeDecision = { action: 'edit', input: untyped(input) };

    const hooks: Hook[] = [{ name: 'edit', authorizeToolCall: () => edit }];
    const { recorded, result } = await runScripted({ replies: CALL_ECHO, tools: [echoTool()], hooks });

    expect(resultLines(recorded)).toMatchObject([['call_1', 'error', expect.stringContaining('are not JSON')]]);
    expect(result.stopReason).toBe('end_turn');
  });
});

describe('a rewrite', () => {
  it.each(NOT_JSON)('to %s is no rewrite: the call fails', async (_what, input) => {
    const rewrite = { action: 'rewrite', input: untyped(input) } as const;

    const hooks: Hook[] = [{ name: 'rewrite', prepareToolCall: () => rewrite }];
    const { recorded, result } = await runScripted({ replies: CALL_ECHO, tools: [echoTool()], hooks });

    expect(resultLines(recorded)).toMatchObject([['call_1', 'error', expect.stringContaining('are not JSON')]]);
    expect(result.stopReason).toBe('end_turn');
  });
});

describe('an answer', () => {
  it('that cannot be read fails its call, not the turn', async () => {
    const answer = {
      action: 'answer',
      result: untyped({
        get content() {
          throw new Error('boom');
        },
      }),
    } as const;

    const hooks: Hook[] = [{ name: 'answer', authorizeToolCall: (_context, call) => (call.toolCallId === 'call_1' ? answer : undefined) }];
    const replies = [[toolCall('echo'), toolCall('echo', { text: 'fine' })], 'done'];
    const { recorded, result } = await runScripted({ replies, tools: [echoTool()], hooks });

    expect(resultLines(recorded)).toMatchObject([['call_1', 'error', expect.any(String)], ['call_2', 'ok', 'fine']]);
    expect(result.stopReason).toBe('end_turn');
  });
});

describe('a hook that returns null', () => {
  it.each<Exclude<keyof Hook, 'name' | 'finalizeProgress'>>([
    'beforeStep',
    'prepareToolCall',
    'authorizeToolCall',
    'finalizeToolResult',
    'afterStep',
    'shouldContinueAfterStop',
  ])('has nothing to say at %s', async (point) => {
    const hooks: Hook[] = [untyped({ name: 'nothing', [point]: () => null })];

    const { recorded, recording, result } = await runScripted({ replies: CALL_ECHO, tools: [echoTool()], hooks });

    expect([result.stopReason, result.text]).toStrictEqual(['end_turn', 'done']);
    expect([resultTexts(recorded), recording.of('notice')]).toStrictEqual([['raw'], []]);
  });
});

describe('shouldContinueAfterStop', () => {
  it('that returns no message lets the turn end, and says so in a notice', async () => {
    const hooks: Hook[] = [untyped({ name: 'odd', shouldContinueAfterStop: () => ({ role: 'user', content: 'go on' }) })];

    const { recording, result } = await runScripted({ replies: ['a'], hooks });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'a', steps: 1 });
    expect(recording.of('notice')).toMatchObject([{ name: 'hook.failed', data: { hook: 'odd', point: 'shouldContinueAfterStop' } }]);
  });
});

describe('beforeStep', () => {
  it('leaves alone what it sets to undefined', async () => {
    const hooks: Hook[] = [
      { name: 'first', beforeStep: () => ({ toolChoice: 'none' }) },
      { name: 'second', beforeStep: () => ({ toolChoice: undefined, maxOutputTokens: undefined }) },
    ];

    const { llm } = await runScripted({ replies: ['a'], hooks, request: { maxOutputTokens: 100 } });

    expect(llm.requests).toMatchObject([{ toolChoice: 'none', maxOutputTokens: 100 }]);
  });
});

describe('finalizeToolResult', () => {
  it('replaces only the content by the text it returns: a failure stays one', async () => {
    const redact: Hook = {
      name: 'redact',
      finalizeToolResult: (_context, _call, { content }) => textOf(content).replace('sk-123', '***'),
    };

    const tools = [failingTool({ error: new Error('refused: sk-123') })];
    const { recorded, llm } = await runScripted({ replies: [toolCall('fail'), 'done'], tools, hooks: [redact] });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'refused: ***']]);
    expect(JSON.stringify(llm.requests.map(({ messages }) => messages))).not.toContain('sk-123');
  });

  it('keeps the note, the display and the end of the turn with the text it returns', async () => {
    const shout: Hook = { name: 'shout', finalizeToolResult: (_context, _call, { content }) => textOf(content).toUpperCase() };
    const execute = () => ({ content: 'bye', note: 'for you', display: 'for them', stopTurn: true });

    const { recorded, result } = await runScripted({
      replies: [toolCall('leave')],
      tools: [recordingTool({ name: 'leave', execute })],
      hooks: [shout],
    });

    const whole = { content: [{ type: 'text', text: 'BYE' }], note: 'for you', display: 'for them' };
    expect(recorded.find((event) => event.type === 'tool.finished')).toMatchObject({ result: whole, stopTurn: true });
    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'leave' });
  });
});

describe('finalizeProgress', () => {
  it.each<[string, () => unknown]>([
    ['is asynchronous', () => Promise.resolve(null)],
    ['fails asynchronously', () => Promise.reject(new Error('late'))],
    ['returns no update', () => 'secret'],
  ])('that %s lets nothing through', async (_what, finalizeProgress) => {
    const rejections = watchRejections();
    const hooks: Hook[] = [untyped({ name: 'filter', finalizeProgress })];
    const update: ToolUpdate = { kind: 'stdout', text: 'secret' };
    const noisy = recordingTool({
      name: 'noisy',
      execute: (_input, { progress }) => {
        progress(update);
        return 'done';
      },
    });

    const { recording, runtime, result } = await runScripted({ replies: [toolCall('noisy'), 'done'], tools: [noisy], hooks });
    await runtime.flush();
    rejections.stop();

    expect(recording.of('tool.progress')).toStrictEqual([]);
    expect(recording.of('notice')).toMatchObject([{ name: 'hook.failed', data: { hook: 'filter', point: 'finalizeProgress' } }]);
    expect([result.stopReason, rejections.reasons]).toStrictEqual(['end_turn', []]);
  });
});

describe('a misspelt hook', () => {
  it('is refused before the turn begins', async () => {
    const hooks: Hook[] = [untyped({ name: 'guard', authoriseToolCall: () => ({ action: 'deny' }) })];

    const refused = runScripted({ replies: CALL_ECHO, tools: [echoTool()], hooks });

    await expect(refused).rejects.toThrow(TypeError);
    await expect(refused).rejects.toThrow('authorizeToolCall');
  });
});
