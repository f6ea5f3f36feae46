/** Hooks, as a black box: where each is called, what it is told, what its answer changes, and what its failure does. */
import { describe, expect, it } from 'vitest';
import {
  type AuthorizeDecision,
  type Hook,
  type HookCall,
  type HookContext,
  type HookSibling,
  type PrepareDecision,
  sleep,
  textOf,
  ToolAccesses,
  toUsage,
  userMessage,
} from 'turnloop';
import { echoTool, failingTool, gatedTool, recordingTool, repeat, runScripted, startScripted, toolCall } from 'turnloop/testing';
import { conversation, outputBudget, resultLines, resultTexts } from './support.ts';

const BOOM = new Error('boom');

/** A prepare hook that decides the same about every call. */
function preparing(decision: PrepareDecision): Hook {
  return { name: 'prepare', prepareToolCall: () => decision };
}

/** An authorise hook that decides the same about every call. */
function authorizing(decision: AuthorizeDecision): Hook {
  return { name: 'authorize', authorizeToolCall: () => decision };
}

describe('beforeStep', () => {
  it('HK1 changes nothing when it returns undefined', async () => {
    const replies = [toolCall('echo', { text: 'a' }), 'done'];

    const without = await runScripted({ replies, tools: [echoTool()] });
    const withHook = await runScripted({ replies, tools: [echoTool()], hooks: [{ name: 'idle', beforeStep: () => undefined }] });

    expect(withHook.result).toStrictEqual(without.result);
    expect(withHook.events).toStrictEqual(without.events);
    expect(withHook.llm.requests[0]!.messages).toStrictEqual(without.llm.requests[0]!.messages);
  });

  it('HK2 ends the turn before a request when it blocks, and opens no step', async () => {
    const { result, llm, recording } = await runScripted({
      hooks: [{ name: 'curfew', beforeStep: () => ({ block: { reason: 'It is too late.' } }) }],
    });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'curfew', stopMessage: 'It is too late.', steps: 0 });
    expect(llm.callCount).toBe(0);
    expect(recording.of('step.begin')).toStrictEqual([]);
    expect(recording.of('turn.end')).toMatchObject([{ stopReason: 'stopped', stoppedBy: 'curfew', stopMessage: 'It is too late.' }]);
  });

  it('HK2 may name another stop reason for its block', async () => {
    const { result } = await runScripted({
      hooks: [{ name: 'money', beforeStep: () => ({ block: { stopReason: 'max_budget', reason: 'Spent.' } }) }],
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', stoppedBy: 'money' });
  });

  it.each([
    ['throws', () => { throw BOOM; }],
    ['rejects', () => Promise.reject(BOOM)],
  ])('HK3 ends the turn fatal_error with its error when it %s', async (_how, beforeStep) => {
    const { result, llm, recording } = await runScripted({ hooks: [{ name: 'broken', beforeStep }] });

    expect(result).toMatchObject({
      stopReason: 'fatal_error',
      error: { code: 'hook_failed', message: 'Hook "broken" failed in beforeStep: boom', cause: BOOM },
    });
    expect(llm.callCount).toBe(0);
    expect(recording.of('notice').map((event) => event.name)).toStrictEqual(['hook.failed']);
  });

  it('HK4 is told the turn, the step, the signal and the model', async () => {
    const seen: HookContext[] = [];

    const { llm } = await runScripted({
      replies: [{ content: [toolCall('echo')], usage: { inputTokens: 5 } }, 'done'],
      tools: [echoTool()],
      hooks: [{ name: 'watch', beforeStep: (context) => void seen.push(context) }],
    });

    expect(seen.map(({ turnId, step }) => [turnId, step])).toStrictEqual([
      ['turn_1', 1],
      ['turn_1', 2],
    ]);
    expect(seen.every((context) => context.llm === llm && context.signal instanceof AbortSignal)).toBe(true);
  });

  it('is told the input as it is recorded, and the tools that the first request will have', async () => {
    const seen: { readonly input: readonly string[]; readonly tools: readonly string[] }[] = [];
    const watching: Hook = {
      name: 'watching',
      beforeStep: ({ input, tools }) => {
        seen.push({ input: input.map(({ id, content }) => `${id} ${textOf(content)}`), tools: tools.map(({ name }) => name) });
      },
    };

    await runScripted({
      input: [userMessage('first', { id: 'm1' }), userMessage('second', { id: 'm2' })],
      replies: [toolCall('echo'), 'done'],
      tools: async () => [echoTool()],
      hooks: [watching],
    });

    const each = { input: ['m1 first', 'm2 second'], tools: ['echo'] };
    expect(seen).toStrictEqual([each, each]);
  });

  it('sees the history of the next request, and what it records is in it', async () => {
    const edits = [{ from: 'message_1', to: 'message_1', messages: [userMessage('short', { id: 'summary', origin: 'summary' })] }];
    const seen: string[][] = [];
    const compact: Hook = {
      name: 'compact',
      beforeStep: async (context) => {
        seen.push([...conversation(await context.messages())]);
        await context.record({ type: 'compaction', layer: 'summary', edits, tokensBefore: 9, tokensAfter: 1 });
      },
    };

    const { llm, recorded } = await runScripted({ replies: ['ok'], input: 'a very long question', hooks: [compact] });

    expect(seen).toStrictEqual([['user: a very long question']]);
    expect(conversation(llm.requests[0]!.messages)).toStrictEqual(['user: short']);
    expect(recorded.map((event) => event.type).slice(0, 4)).toStrictEqual(['turn.begin', 'message', 'compaction', 'step.begin']);
  });

  it('adds the tokens that it records to those of the turn', async () => {
    const usage = toUsage({ inputTokens: 100, outputTokens: 20 });

    const { result } = await runScripted({
      replies: [{ content: 'ok', usage: { inputTokens: 1 } }],
      hooks: [
        {
          name: 'summariser',
          beforeStep: (context) => context.record({ type: 'usage', modelId: 'small', purpose: 'compaction', usage }),
        },
      ],
    });

    expect(result.usage).toStrictEqual(toUsage({ inputTokens: 101, outputTokens: 20 }));
  });
});

describe('afterStep', () => {
  it('HK5 runs after step.end and is told usage, stop reason and results', async () => {
    const seen: unknown[] = [];

    const { recorded } = await runScripted({
      replies: [{ content: [toolCall('echo', { text: 'a' })], usage: { outputTokens: 3 } }, 'done'],
      tools: [echoTool()],
      hooks: [
        {
          name: 'watch',
          afterStep: async (context, step) => {
            if (context.step !== 1) return;
            seen.push(step);
            await context.record({ type: 'usage', modelId: 'mark', purpose: 'other', usage: toUsage({}) });
          },
        },
      ],
    });

    expect(seen).toMatchObject([
      {
        stopReason: 'tool_use',
        usage: toUsage({ outputTokens: 3 }),
        message: { role: 'assistant', id: 'step_1' },
        results: [{ toolCallId: 'call_1', name: 'echo', input: { text: 'a' }, result: { content: [{ type: 'text', text: 'a' }] } }],
      },
    ]);
    const mark = recorded.findIndex((event) => event.type === 'usage' && event.modelId === 'mark');
    expect(recorded[mark - 1]!.type).toBe('step.end');
  });

  it('HK6 is reported when it fails, and the turn completes', async () => {
    const { result, recording } = await runScripted({
      replies: ['ok'],
      hooks: [{ name: 'broken', afterStep: () => { throw BOOM; } }],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'ok' });
    expect(recording.of('notice')).toMatchObject([
      { name: 'hook.failed', data: { hook: 'broken', point: 'afterStep', message: 'boom' } },
    ]);
  });

  it('V2 wins over tool calls and over a continuation', async () => {
    const asked: string[] = [];

    const { result, llm } = await runScripted({
      replies: [toolCall('echo'), 'never'],
      tools: [echoTool()],
      hooks: [
        { name: 'guard', afterStep: () => ({ reason: 'Enough.' }) },
        { name: 'eager', shouldContinueAfterStop: () => (asked.push('asked'), true) },
      ],
    });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'guard', stopMessage: 'Enough.', steps: 1 });
    expect(llm.callCount).toBe(1);
    expect(asked).toStrictEqual([]);
  });
});

describe('prepareToolCall', () => {
  it('HK7 sees all calls of the reply', async () => {
    const seen: (readonly HookSibling[])[] = [];

    await runScripted({
      replies: [[toolCall('echo', { text: 'a' }), toolCall('nope')], 'done'],
      tools: [echoTool()],
      hooks: [{ name: 'watch', prepareToolCall: (_context, call) => void seen.push(call.siblings) }],
    });

    const siblings = [
      { toolCallId: 'call_1', name: 'echo', inputText: '{"text":"a"}' },
      { toolCallId: 'call_2', name: 'nope', inputText: '{}' },
    ];
    expect(seen).toStrictEqual([siblings, siblings]);
  });

  it('is asked one call after the other, in provider order, before anything of the reply is recorded', async () => {
    const log: string[] = [];

    await runScripted({
      replies: [[toolCall('echo'), toolCall('echo')], 'done'],
      tools: [echoTool()],
      hooks: [
        {
          name: 'slow',
          prepareToolCall: async ({ runtime }, { toolCallId }) => {
            log.push(`begin ${toolCallId}`);
            await sleep(10, { runtime });
            log.push(`end ${toolCallId}`);
          },
        },
      ],
      listener: (event) => event.type === 'tool.call' && log.push(event.type),
    });

    expect(log).toStrictEqual(['begin call_1', 'end call_1', 'begin call_2', 'end call_2', 'tool.call', 'tool.call']);
  });

  it('HK8 makes a blocked call an error result with the reason', async () => {
    const echo = echoTool();

    const { recorded } = await runScripted({
      replies: [toolCall('echo'), 'done'],
      tools: [echo],
      hooks: [preparing({ action: 'block', reason: 'Not on Sundays.' })],
    });

    expect(echo.runCount).toBe(0);
    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'Not on Sundays.']]);
  });

  it('HK9 has rewritten arguments reach the tool and the recorded call', async () => {
    const echo = echoTool();

    const { recording } = await runScripted({
      replies: [toolCall('echo', { text: 'a' }), 'done'],
      tools: [echo],
      hooks: [preparing({ action: 'rewrite', input: { text: 'b' } })],
    });

    expect(echo.inputs).toStrictEqual([{ text: 'b' }]);
    expect(recording.of('tool.call')[0]).toMatchObject({ inputText: '{"text":"a"}', input: { text: 'b' } });
    expect(recording.of('tool.start')[0]).not.toHaveProperty('input');
  });

  it('HK10 has rewritten arguments validated again', async () => {
    const echo = echoTool();

    const { recorded } = await runScripted({
      replies: [toolCall('echo', { text: 'a' }), 'done'],
      tools: [echo],
      hooks: [preparing({ action: 'rewrite', input: { text: 7 } })],
    });

    expect(echo.runCount).toBe(0);
    expect(resultTexts(recorded)[0]).toContain('Invalid arguments for "echo": "text" must be string, not number');
  });

  it('HK11 makes its failure an error result, and the turn goes on', async () => {
    const echo = echoTool();

    const { result, recorded, recording } = await runScripted({
      replies: [toolCall('echo'), 'done'],
      tools: [echo],
      hooks: [{ name: 'broken', prepareToolCall: () => { throw BOOM; } }],
    });

    expect(echo.runCount).toBe(0);
    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'The call was not run: hook "broken" failed: boom']]);
    expect(recording.of('notice')).toMatchObject([{ data: { point: 'prepareToolCall' } }]);
    expect(result.stopReason).toBe('end_turn');
  });

  it('HK16 may answer a call instead, with a success or with an error', async () => {
    const echo = echoTool();
    const answers: readonly PrepareDecision[] = [
      { action: 'answer', result: 'from the cache' },
      { action: 'answer', result: { content: 'no such file', isError: true } },
    ];
    const left = [...answers];

    const { recorded } = await runScripted({
      replies: [[toolCall('echo'), toolCall('echo')], 'done'],
      tools: [echo],
      hooks: [{ name: 'cache', prepareToolCall: () => left.shift() }],
    });

    expect(echo.runCount).toBe(0);
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'ok', 'from the cache'],
      ['call_2', 'error', 'no such file'],
    ]);
  });

  it('DG1 gives a call the finalised result of an earlier one that it names as its equal', async () => {
    const echo = echoTool();

    const { recorded, recording } = await runScripted({
      replies: [[toolCall('echo', { text: 'a' }), toolCall('echo', { text: 'a' })], 'done'],
      tools: [echo],
      hooks: [
        {
          name: 'once',
          prepareToolCall: (_context, { toolCallId, siblings }) =>
            toolCallId === siblings[0]!.toolCallId ? undefined : { action: 'same_as', toolCallId: siblings[0]!.toolCallId },
          finalizeToolResult: (_context, _call, result) => `final ${textOf(result.content)}`,
        },
      ],
    });

    expect(echo.runCount).toBe(1);
    expect(recording.of('tool.call')[1]).toMatchObject({ sameAs: 'call_1' });
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'ok', 'final a'],
      ['call_2', 'ok', 'final a'],
    ]);
  });

  it('refuses an equal that does not stand before the call', async () => {
    const { recorded } = await runScripted({
      replies: [toolCall('echo'), 'done'],
      tools: [echoTool()],
      hooks: [preparing({ action: 'same_as', toolCallId: 'call_1' })],
    });

    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', 'This call was not executed: a hook named a call as its equal that does not stand before it.'],
    ]);
  });
});

describe('authorizeToolCall', () => {
  it('HK12 sees all calls of the reply and what the call resolved to', async () => {
    const seen: HookCall[] = [];
    const tool = recordingTool({
      accesses: ({ path }) => ToolAccesses.writeFile(String(path)),
      describe: ({ path }) => `Write ${String(path)}`,
    });

    await runScripted({
      replies: [[toolCall('record', { path: 'a.txt' }), toolCall('record', { path: 'b.txt' })], 'done'],
      tools: [tool],
      hooks: [{ name: 'watch', authorizeToolCall: (_context, call) => void seen.push(call) }],
    });

    expect(seen.map(({ input, description, accesses }) => ({ input, description, accesses }))).toStrictEqual([
      { input: { path: 'a.txt' }, description: 'Write a.txt', accesses: ToolAccesses.writeFile('a.txt') },
      { input: { path: 'b.txt' }, description: 'Write b.txt', accesses: ToolAccesses.writeFile('b.txt') },
    ]);
    expect(seen[0]!.siblings.map(({ toolCallId }) => toolCallId)).toStrictEqual(['call_1', 'call_2']);
  });

  it('HK13 sees the description that lands on the recorded call, made from the final arguments', async () => {
    const tool = recordingTool({ describe: ({ path }) => `Write ${String(path)}` });

    const { recording } = await runScripted({
      replies: [toolCall('record', { path: 'a.txt' }), 'done'],
      tools: [tool],
      hooks: [preparing({ action: 'rewrite', input: { path: 'b.txt' } })],
    });

    expect(recording.of('tool.call')[0]).toMatchObject({ description: 'Write b.txt', input: { path: 'b.txt' } });
  });

  it.each([
    ['describe', { describe: () => { throw BOOM; } }],
    ['accesses', { accesses: () => { throw BOOM; } }],
  ])('HK14 is not asked about a call whose %s fails: that is an error result', async (_member, members) => {
    const asked: string[] = [];
    const tool = recordingTool(members);

    const { recorded } = await runScripted({
      replies: [toolCall('record'), 'done'],
      tools: [tool],
      hooks: [{ name: 'ask', authorizeToolCall: (_context, call) => void asked.push(call.toolCallId) }],
    });

    expect(tool.runCount).toBe(0);
    expect(asked).toStrictEqual([]);
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', 'The call was not run: the tool could not say what it does: boom'],
    ]);
  });

  it('denies with a reason, edits, answers, and allows', async () => {
    const echo = echoTool();
    const decisions: Record<string, AuthorizeDecision> = {
      call_1: { action: 'deny', reason: 'Not this one.' },
      call_2: { action: 'edit', input: { text: 'edited' } },
      call_3: { action: 'answer', result: 'answered' },
      call_4: { action: 'allow' },
    };

    const { recorded, recording } = await runScripted({
      replies: [Array.from({ length: 4 }, () => toolCall('echo', { text: 'a' })), 'done'],
      tools: [echo],
      hooks: [{ name: 'ask', authorizeToolCall: (_context, { toolCallId }) => decisions[toolCallId] }],
    });

    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', 'Not this one.'],
      ['call_2', 'ok', 'edited'],
      ['call_3', 'ok', 'answered'],
      ['call_4', 'ok', 'a'],
    ]);
    expect(recording.of('tool.start').map(({ toolCallId, input }) => [toolCallId, input])).toStrictEqual([
      ['call_2', { text: 'edited' }],
      ['call_4', undefined],
    ]);
  });

  it('denies when it fails, and says so in a notice', async () => {
    const echo = echoTool();

    const { recorded, recording } = await runScripted({
      replies: [toolCall('echo'), 'done'],
      tools: [echo],
      hooks: [{ name: 'broken', authorizeToolCall: () => Promise.reject(BOOM) }],
    });

    expect(echo.runCount).toBe(0);
    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'The call was denied: hook "broken" failed: boom']]);
    expect(recording.of('notice')).toMatchObject([{ data: { hook: 'broken', point: 'authorizeToolCall' } }]);
  });

  it('has edited arguments validated, and scheduled by what they touch', async () => {
    const gate = gatedTool({ accesses: ({ path }) => ToolAccesses.writeFile(String(path)) });
    const turn = startScripted({
      replies: [[toolCall('gate', { path: 'a' }), toolCall('gate', { path: 'b' })], 'done'],
      tools: [gate],
      hooks: [
        {
          name: 'edit',
          authorizeToolCall: (_context, { toolCallId }) =>
            toolCallId === 'call_2' ? { action: 'edit', input: { path: 'a' } } : undefined,
        },
      ],
    });
    await turn.runtime.flush();

    expect(gate.waiting).toStrictEqual(['call_1']);
    gate.open();
    await turn.finish();
    expect(gate.inputs).toStrictEqual([{ path: 'a' }, { path: 'a' }]);
  });

  it('is asked about all calls at once, and lets each start once its own answer is there', async () => {
    const gate = gatedTool({ accesses: [] });
    const answers = new Map<string, () => void>();
    const ask: Hook = {
      name: 'ask',
      authorizeToolCall: (_context, { toolCallId }) =>
        new Promise((resolve) => answers.set(toolCallId, () => resolve({ action: 'allow' }))),
    };
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate')], 'done'], tools: [gate], hooks: [ask] });
    await turn.runtime.flush();
    expect([...answers.keys()]).toStrictEqual(['call_1', 'call_2']);

    answers.get('call_2')!();
    await turn.runtime.flush();

    expect(gate.waiting).toStrictEqual(['call_2']);
    answers.get('call_1')!();
    gate.open();
    await turn.finish();
  });

  it('decides by the first hook that does not allow', async () => {
    const { recorded } = await runScripted({
      replies: [toolCall('echo'), 'done'],
      tools: [echoTool()],
      hooks: [authorizing({ action: 'allow' }), authorizing({ action: 'deny', reason: 'second' }), authorizing({ action: 'deny', reason: 'third' })],
    });

    expect(resultTexts(recorded)).toStrictEqual(['second']);
  });
});

describe('finalizeToolResult', () => {
  it('HK17 has its replacement recorded', async () => {
    const { recorded, recording } = await runScripted({
      replies: [toolCall('echo', { text: 'key=123' }), 'done'],
      tools: [echoTool()],
      hooks: [{ name: 'redact', finalizeToolResult: () => ({ content: 'key=…', display: 'a key' }) }],
    });

    const result = { content: [{ type: 'text', text: 'key=…' }], display: 'a key' };
    expect(recording.of('tool.finished').map((event) => event.result)).toStrictEqual([result]);
    expect(recording.of('tool.result').map((event) => event.result)).toStrictEqual([result]);
    expect(JSON.stringify(recorded.filter((event) => event.type !== 'tool.call'))).not.toContain('key=123');
  });

  it('HK18 withholds the raw output when it fails', async () => {
    const { recorded, recording } = await runScripted({
      replies: [toolCall('echo', { text: 'a' }), 'done'],
      tools: [recordingTool({ name: 'echo', execute: () => 'the secret' })],
      hooks: [{ name: 'redact', finalizeToolResult: () => Promise.reject(BOOM) }],
    });

    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', 'The call is over, but its result is withheld: hook "redact" failed to look at it.'],
    ]);
    expect(JSON.stringify(recording.events)).not.toContain('the secret');
  });

  it('HK19 looks at failures of tools', async () => {
    const { recorded } = await runScripted({
      replies: [toolCall('fail'), 'done'],
      tools: [failingTool({ error: new Error('at /home/me/x') })],
      hooks: [{ name: 'words', finalizeToolResult: (_context, _call, { isError }) => ({ content: 'failed somewhere', isError }) }],
    });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'failed somewhere']]);
  });

  it('HK20 looks at calls that were rejected before they ran', async () => {
    const seen: string[] = [];

    await runScripted({
      replies: [[toolCall('nope'), toolCall('echo', '{'), toolCall('echo', { text: 'blocked' })], 'done'],
      tools: [echoTool()],
      hooks: [
        {
          name: 'block',
          prepareToolCall: (_context, call) => (call.tool === undefined ? undefined : { action: 'block', reason: 'no' }),
          finalizeToolResult: (_context, call, result) => void seen.push(`${call.toolCallId} ${String(result.isError)}`),
        },
      ],
    });

    expect(seen).toStrictEqual(['call_1 true', 'call_2 true', 'call_3 true']);
  });

  it('sees what the hook before it made of the result', async () => {
    const adding = (name: string): Hook => ({
      name,
      finalizeToolResult: (_context, _call, result) => `${textOf(result.content)} ${name}`,
    });

    const { recorded } = await runScripted({
      replies: [toolCall('echo', { text: 'raw' }), 'done'],
      tools: [echoTool()],
      hooks: [adding('first'), adding('second')],
    });

    expect(resultTexts(recorded)).toStrictEqual(['raw first second']);
  });
});

describe('finalizeProgress', () => {
  it('rewrites, drops, or leaves progress, and drops it when it fails', async () => {
    const texts = ['keep', 'hide', 'change', 'fail'];
    const tool = recordingTool({
      execute: (_input, context) => {
        for (const text of texts) context.progress({ kind: 'status', text });
        return 'ok';
      },
    });

    const { recording } = await runScripted({
      replies: [toolCall('record'), 'done'],
      tools: [tool],
      hooks: [
        {
          name: 'filter',
          finalizeProgress: (_call, update) => {
            if (update.kind !== 'status' || update.text === 'keep') return undefined;
            if (update.text === 'fail') throw BOOM;
            return update.text === 'hide' ? null : { kind: 'status', text: 'changed' };
          },
        },
      ],
    });

    expect(recording.of('tool.progress').map((event) => event.update)).toStrictEqual([
      { kind: 'status', text: 'keep' },
      { kind: 'status', text: 'changed' },
    ]);
    expect(recording.of('notice')).toMatchObject([{ data: { point: 'finalizeProgress' } }]);
  });
});

describe('shouldContinueAfterStop', () => {
  it.each([
    ['HK21', false],
    ['HK23', undefined],
  ])('%s ends the turn with %s', async (_id, answer) => {
    const { result, llm } = await runScripted({
      replies: ['done'],
      hooks: [{ name: 'ask', shouldContinueAfterStop: () => answer }],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 1 });
    expect(llm.callCount).toBe(1);
  });

  it('HK22 opens another step with true, behind a fixed reminder', async () => {
    const { result, llm } = await runScripted({
      replies: ['not yet', 'done'],
      hooks: [{ name: 'ask', shouldContinueAfterStop: (_context, stop) => stop.continuations === 0 }],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'done' });
    expect(conversation(llm.requests[1]!.messages)).toStrictEqual([
      'user: hi',
      'assistant: not yet',
      'user: You stopped, but the task is not done. Go on.',
    ]);
  });

  it('HK22 opens another step with a message of its own', async () => {
    const { recording } = await runScripted({
      replies: ['not yet', 'done'],
      hooks: [
        {
          name: 'ask',
          shouldContinueAfterStop: (_context, stop) =>
            stop.continuations === 0 ? userMessage('Run the tests.', { origin: 'reminder' }) : undefined,
        },
      ],
    });

    expect(recording.of('message')[1]!.message).toStrictEqual(userMessage('Run the tests.', { id: 'message_2', origin: 'reminder' }));
  });

  it('HK24 is not asked between tool steps', async () => {
    const asked: string[] = [];

    await runScripted({
      replies: [repeat(toolCall('echo'), 3), 'done'],
      tools: [echoTool()],
      hooks: [{ name: 'ask', shouldContinueAfterStop: (_context, stop) => void asked.push(stop.stopReason) }],
    });

    expect(asked).toStrictEqual(['end_turn']);
  });

  it('V3 continues more than once, by several hooks', async () => {
    const once = (name: string, at: number): Hook => ({
      name,
      shouldContinueAfterStop: (_context, stop) => (stop.continuations === at ? userMessage(name) : undefined),
    });

    const { result, recording } = await runScripted({ replies: ['a', 'b', 'c'], hooks: [once('first', 0), once('second', 1)] });

    expect(result).toMatchObject({ steps: 3, text: 'c' });
    expect(recording.of('message').map((event) => textOf(event.message))).toStrictEqual(['hi', 'first', 'second']);
  });

  it('sends a paused reply back as it is, without a message', async () => {
    const { result, llm } = await runScripted({
      replies: [{ content: 'searching', stopReason: 'paused' }, 'found'],
      hooks: [{ name: 'continuePaused', shouldContinueAfterStop: (_context, stop) => stop.stopReason === 'paused' }],
    });

    expect(conversation(llm.requests[1]!.messages)).toStrictEqual(['user: hi', 'assistant: searching']);
    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2 });
  });

  it('is a notice and nothing else when it fails', async () => {
    const { result, recording } = await runScripted({
      replies: ['done'],
      hooks: [{ name: 'broken', shouldContinueAfterStop: () => { throw BOOM; } }],
    });

    expect(result.stopReason).toBe('end_turn');
    expect(recording.of('notice')).toMatchObject([{ data: { point: 'shouldContinueAfterStop' } }]);
  });

  it('is told that a limit ended the turn', async () => {
    const seen: unknown[] = [];

    await runScripted({
      replies: [{ content: [toolCall('echo')], usage: { outputTokens: 9 } }],
      tools: [echoTool()],
      stopWhen: outputBudget(9),
      hooks: [{ name: 'ask', shouldContinueAfterStop: (_context, stop) => void seen.push(stop) }],
    });

    expect(seen).toStrictEqual([{ stopReason: 'max_budget', limit: true, continuations: 0 }]);
  });
});

describe('notify', () => {
  it('gives a hook a voice in live events', async () => {
    const { recording, recorded } = await runScripted({
      replies: ['ok'],
      hooks: [{ name: 'talk', beforeStep: ({ notify }) => notify({ name: 'talk.hello', data: { n: 1 } }) }],
    });

    expect(recording.of('notice')).toStrictEqual([
      { type: 'notice', name: 'talk.hello', data: { n: 1 }, turnId: 'turn_1', at: 0 },
    ]);
    expect(recorded.map((event) => event.type)).not.toContain('notice');
  });
});
