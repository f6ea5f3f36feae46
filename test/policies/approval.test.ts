/** approval in full turns: rules, questions to a person, what is remembered, and what a suspension or an abort does to it. */
import { describe, expect, it } from 'vitest';
import { createTranscript, type Hook, type HookCall, ToolAccesses, userMessage } from 'turnloop';
import {
  approval,
  type ApprovalAnswer,
  type ApprovalEntry,
  type ApprovalOptions,
  type ApprovalQuestion,
  callKey,
  createApprovalMemory,
  loopGuard,
} from 'turnloop/policies';
import { echoTool, recordingTool, runScripted, startScripted, type TestTool, toolCall } from 'turnloop/testing';
import { crash, resultLines, resumeFrom, throughJson, watchRejections } from '../core/support.ts';

function bash(): TestTool {
  return recordingTool({
    name: 'bash',
    inputSchema: { type: 'object', properties: { command: { type: 'string' } } },
    accesses: ToolAccesses.none(),
    describe: ({ command }) => `Run ${String(command)}`,
    execute: ({ command }) => `ran ${String(command)}`,
  });
}

function run(command: string): ReturnType<typeof toolCall> {
  return toolCall('bash', { command });
}

/** Answers questions in order, and keeps them. */
function person(...answers: readonly ApprovalAnswer[]) {
  const questions: ApprovalQuestion[] = [];
  const left = [...answers];
  const ask = (question: ApprovalQuestion): ApprovalAnswer => {
    questions.push(question);
    return left.shift() ?? { action: 'deny', reason: 'No more answers.' };
  };
  return { ask, questions };
}

const commandOf = ({ input }: HookCall): string => (input as { readonly command: string }).command;

describe('approval by rule', () => {
  it('C7 lets the first rule that matches decide', async () => {
    const tool = bash();
    const { recorded } = await runScripted({
      replies: [[run('rm -rf /'), run('ls'), run('rm a')], 'done'],
      tools: [tool],
      hooks: [
        approval({
          rules: [
            { tool: 'bash', matches: (call) => commandOf(call).startsWith('rm -rf'), decision: 'deny', reason: 'Never all of it.' },
            { tool: ['bash', 'sh'], decision: 'allow' },
            { decision: 'deny' },
          ],
        }),
      ],
    });

    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', 'Never all of it.'],
      ['call_2', 'ok', 'ran ls'],
      ['call_3', 'ok', 'ran rm a'],
    ]);
  });

  it('C7 without a rule allows tools that only read, and asks about all others', async () => {
    const { ask, questions } = person({ action: 'deny' });
    const { recorded } = await runScripted({
      replies: [[toolCall('read'), run('ls')], 'done'],
      tools: [recordingTool({ name: 'read', readOnly: true }), bash()],
      hooks: [approval({ ask })],
    });

    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'ok', 'done'],
      ['call_2', 'error', 'The user denied this call: it was not run.'],
    ]);
    expect(questions.map(({ call }) => call.name)).toStrictEqual(['bash']);
  });

  it('C7 takes the name of a tool whole', async () => {
    const { recorded } = await runScripted({
      replies: [run('ls'), 'done'],
      tools: [bash()],
      hooks: [approval({ rules: [{ tool: ['bash_safe', 'ba'], decision: 'allow' }, { decision: 'deny', reason: 'No.' }] })],
    });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'No.']]);
  });

  it('C7 may ask about a tool that only reads', async () => {
    const { ask, questions } = person({ action: 'allow' });
    await runScripted({
      replies: [toolCall('read'), 'done'],
      tools: [recordingTool({ name: 'read', readOnly: true })],
      hooks: [approval({ ask, rules: [{ decision: 'ask', reason: 'Everything is asked.' }] })],
    });

    expect(questions.map(({ reason }) => reason)).toStrictEqual(['Everything is asked.']);
  });

  it('C7 awaits a rule that has to look something up', async () => {
    const { recorded } = await runScripted({
      replies: [[run('a'), run('b')], 'done'],
      tools: [bash()],
      hooks: [approval({ rules: [{ matches: async (call) => commandOf(call) === 'a', decision: 'allow' }, { decision: 'deny', reason: 'No.' }] })],
    });

    expect(resultLines(recorded).map(([, outcome]) => outcome)).toStrictEqual(['ok', 'error']);
  });

  it.each<readonly [string, () => boolean]>([
    ['throws', () => { throw new Error('no list'); }],
    ['gives something that is no boolean', () => 'yes' as unknown as boolean],
    ['gives nothing', () => undefined as unknown as boolean],
  ])('C7 denies a call when a rule %s, even where the next would allow it', async (_what, matches) => {
    const tool = bash();
    const { recorded, recording, result } = await runScripted({
      replies: [run('ls'), 'done'],
      tools: [tool],
      hooks: [approval({ rules: [{ matches, decision: 'deny' }, { decision: 'allow' }] })],
    });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', expect.stringContaining('denied: hook "approval" failed')]]);
    expect(recording.of('notice')).toMatchObject([{ name: 'hook.failed', data: { hook: 'approval', point: 'authorizeToolCall' } }]);
    expect(tool.runCount).toBe(0);
    expect(result.stopReason).toBe('end_turn');
  });

  it('C7 looks at the arguments as they would run, after hooks have rewritten them', async () => {
    const rewrite: Hook = { name: 'rewrite', prepareToolCall: () => ({ action: 'rewrite', input: { command: 'sudo ls' } }) };
    const { recorded } = await runScripted({
      replies: [run('ls'), 'done'],
      tools: [bash()],
      hooks: [rewrite, approval({ rules: [{ matches: (call) => commandOf(call).startsWith('sudo'), decision: 'deny', reason: 'No sudo.' }, { decision: 'allow' }] })],
    });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'No sudo.']]);
  });

  it('leaves an unknown tool to the loop', async () => {
    const { ask, questions } = person();
    const { recorded } = await runScripted({ replies: [toolCall('bsah'), 'done'], tools: [bash()], hooks: [approval({ ask })] });

    expect(resultLines(recorded)[0]?.[2]).toContain('There is no tool named "bsah"');
    expect(questions).toStrictEqual([]);
  });
});

describe('approval by a person', () => {
  it('C7 shows what the call would do, and what an answer would hold for', async () => {
    const { ask, questions } = person({ action: 'allow' });
    await runScripted({ replies: [run('ls'), 'done'], tools: [bash()], hooks: [approval({ ask, rules: [{ decision: 'ask', reason: 'It writes.' }] })] });

    expect(questions).toMatchObject([
      { key: '"bash" {"command":"ls"}', reason: 'It writes.', call: { name: 'bash', description: 'Run ls', input: { command: 'ls' }, accesses: [] } },
    ]);
  });

  it('C7 runs a call with the arguments that a person made of it', async () => {
    const tool = bash();
    const { ask } = person({ action: 'edit', input: { command: 'ls -l' } });
    const { recorded } = await runScripted({ replies: [run('ls'), 'done'], tools: [tool], hooks: [approval({ ask })] });

    expect(tool.inputs).toStrictEqual([{ command: 'ls -l' }]);
    expect(recorded.find((event) => event.type === 'tool.start')).toMatchObject({ input: { command: 'ls -l' } });
  });

  it('C7 refuses edited arguments that the tool does not take, or that a rule denies', async () => {
    const tool = bash();
    const { ask } = person({ action: 'edit', input: { command: 1 } }, { action: 'edit', input: { command: 'sudo ls' } });
    const { recorded } = await runScripted({
      replies: [run('a'), run('b'), 'done'],
      tools: [tool],
      hooks: [approval({ ask, rules: [{ matches: ({ input }) => JSON.stringify(input).includes('sudo'), decision: 'deny', reason: 'No sudo.' }] })],
    });

    expect(resultLines(recorded).map(([, , text]) => text)).toStrictEqual([expect.stringContaining('"command" must be string'), 'No sudo.']);
    expect(tool.runCount).toBe(0);
  });

  it.each<readonly [string, (call: HookCall) => boolean]>([
    ['says', ({ description = '' }) => description.includes('sudo')],
    ['touches', ({ accesses }) => JSON.stringify(accesses).includes('root')],
    ['is given', ({ input }) => JSON.stringify(input).includes('sudo')],
  ])('C7 holds a rule that looks at what a call %s against the edited call, not the one before', async (_what, matches) => {
    const tool = recordingTool({
      name: 'bash',
      accesses: ({ command }) => ToolAccesses.write(String(command).startsWith('sudo') ? 'root' : 'home'),
      describe: ({ command }) => `Run ${String(command)}`,
    });
    const { ask } = person({ action: 'edit', input: { command: 'sudo ls' } });
    const { recorded } = await runScripted({
      replies: [run('ls'), 'done'],
      tools: [tool],
      hooks: [approval({ ask, rules: [{ matches, decision: 'deny', reason: 'No sudo.' }] })],
    });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'No sudo.']]);
    expect(tool.runCount).toBe(0);
  });

  it('C7 shows a rule the edited arguments as a copy: what it does to them changes no call', async () => {
    const tool = bash();
    const { ask } = person({ action: 'edit', input: { command: 'ls -l' } });
    const spoil = (call: HookCall): boolean => {
      if (commandOf(call) === 'ls -l') (call.input as { command: string }).command = 'rm a';
      return false;
    };
    await runScripted({ replies: [run('ls'), 'done'], tools: [tool], hooks: [approval({ ask, rules: [{ matches: spoil, decision: 'deny' }] })] });

    expect(tool.inputs).toStrictEqual([{ command: 'ls -l' }]);
  });

  it.each<readonly [string, Partial<TestTool>]>([
    ['do', { describe: ({ command }: { readonly command?: unknown }) => { if (command === 'b') throw new Error('no words'); return 'ok'; } }],
    ['touch', { accesses: ({ command }: { readonly command?: unknown }) => { if (command === 'b') throw new Error('no words'); return ToolAccesses.none(); } }],
  ])('C7 denies an edited call of which the tool cannot say what it would %s', async (_what, says) => {
    const tool = recordingTool({ name: 'bash' });
    const { ask } = person({ action: 'edit', input: { command: 'b' } });
    const { recorded } = await runScripted({ replies: [run('a'), 'done'], tools: [{ ...tool, ...says }], hooks: [approval({ ask })] });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'The edited call was not run: the tool could not say what it does: no words']]);
    expect(tool.runCount).toBe(0);
  });

  it('C7 gives the model a person’s reason', async () => {
    const { ask } = person({ action: 'deny', reason: 'Use the test database.' });
    const { recorded } = await runScripted({ replies: [run('a'), 'done'], tools: [bash()], hooks: [approval({ ask })] });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'Use the test database.']]);
  });

  it.each<readonly [string, ApprovalOptions['ask']]>([
    ['throws', () => { throw new Error('no window'); }],
    ['rejects', () => Promise.reject(new Error('no window'))],
    ['gives nothing', () => undefined as unknown as ApprovalAnswer],
    ['gives a word', () => 'allow' as unknown as ApprovalAnswer],
    ['gives an answer that does not exist', () => ({ action: 'yes' }) as unknown as ApprovalAnswer],
  ])('C7 denies a call when the question %s', async (_what, ask) => {
    const tool = bash();
    const { recorded } = await runScripted({ replies: [run('ls'), 'done'], tools: [tool], hooks: [approval({ ask })] });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', expect.stringContaining('denied: hook "approval" failed')]]);
    expect(tool.runCount).toBe(0);
  });

  it('C7 asks about calls that differ at the same time, and lets no call wait for the answer about another', async () => {
    const open = new Map<string, (answer: ApprovalAnswer) => void>();
    const tool = bash();
    const turn = startScripted({
      replies: [[run('a'), run('b')], 'done'],
      tools: [tool],
      hooks: [approval({ ask: ({ call }) => new Promise((resolve) => open.set(commandOf(call), resolve)) })],
    });
    await turn.runtime.flush();
    expect([...open.keys()]).toStrictEqual(['a', 'b']);

    open.get('b')?.({ action: 'allow' });
    await turn.runtime.flush();
    expect(tool.inputs).toStrictEqual([{ command: 'b' }]);

    open.get('a')?.({ action: 'deny' });
    const { recorded } = await turn.finish();
    expect(resultLines(recorded).map(([, outcome]) => outcome)).toStrictEqual(['error', 'ok']);
  });

  it('C7 asks once about equal calls of a step, and all of them get the answer', async () => {
    const { ask, questions } = person({ action: 'edit', input: { command: 'c' } });
    const tool = bash();
    await runScripted({ replies: [[run('a'), run('a')], 'done'], tools: [tool], hooks: [approval({ ask: async (question) => ask(question) })] });

    expect(questions).toHaveLength(1);
    expect(tool.inputs).toStrictEqual([{ command: 'c' }, { command: 'c' }]);
  });

  it('C7 asks about each of different calls whose answers would be remembered alike', async () => {
    const { ask, questions } = person({ action: 'allow' }, { action: 'deny' });
    const tool = bash();
    await runScripted({
      replies: [[run('ls'), run('rm a')], 'done'],
      tools: [tool],
      hooks: [approval({ ask: async (question) => ask(question), keyOf: (call) => call.name })],
    });

    expect(questions).toHaveLength(2);
    expect(tool.inputs).toStrictEqual([{ command: 'ls' }]);
  });

  it('C7 asks again about an equal call of a later step', async () => {
    const { ask, questions } = person({ action: 'allow' }, { action: 'deny' });
    const tool = bash();
    await runScripted({ replies: [run('a'), run('a'), 'done'], tools: [tool], hooks: [approval({ ask })] });

    expect(questions).toHaveLength(2);
    expect(tool.runCount).toBe(1);
  });

  it('C7 gives up a question when the turn is aborted, whatever comes of it', async () => {
    const rejections = watchRejections();
    let fail: (error: unknown) => void = () => undefined;
    let signal: AbortSignal | undefined;
    const memory = createApprovalMemory();
    const turn = startScripted({
      replies: [run('a')],
      tools: [bash()],
      hooks: [approval({ memory, ask: (_question, context) => ((signal = context.signal), new Promise((_resolve, reject) => (fail = reject))) })],
    });
    await turn.runtime.flush();

    turn.control.abort('enough');
    const { result, recorded } = await turn.finish();
    fail(signal?.reason);
    await turn.runtime.flush();
    rejections.stop();

    expect(result.stopReason).toBe('aborted');
    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', expect.stringContaining('it was not run')]]);
    expect(rejections.reasons).toStrictEqual([]);
    expect(turn.runtime.pendingTimers).toBe(0);
  });

  it.each(['a cancel', 'steering'])('C7 asks anew about an equal call of a later step when the question was closed by %s, and ignores its answer', async (how) => {
    const answers: ((answer: ApprovalAnswer) => void)[] = [];
    const memory = createApprovalMemory();
    const tool = bash();
    const hooks = [approval({ memory, ask: () => new Promise((resolve) => answers.push(resolve)) })];
    const turn = startScripted({ replies: [run('a'), run('a'), 'done'], tools: [tool], hooks });
    await turn.runtime.flush();

    if (how === 'a cancel') turn.control.cancelToolCall('call_1');
    else void turn.control.steer(userMessage('Wait.'), { skipPendingCalls: true });
    await turn.runtime.flush();
    expect(answers).toHaveLength(2);
    answers[0]?.({ action: 'allow', remember: true });
    await turn.runtime.flush();
    expect([tool.runCount, memory.entries()]).toStrictEqual([0, []]);

    answers[1]?.({ action: 'deny', reason: 'No.' });
    const { recorded, result } = await turn.finish();
    expect(resultLines(recorded)[1]).toStrictEqual(['call_2', 'error', 'No.']);
    expect(result.stopReason).toBe('end_turn');
  });

  it('C7 keeps a question open as long as one of the equal calls waits for it', async () => {
    const answers: ((answer: ApprovalAnswer) => void)[] = [];
    const memory = createApprovalMemory();
    const tool = bash();
    const hooks = [approval({ memory, ask: () => new Promise((resolve) => answers.push(resolve)) })];
    const turn = startScripted({ replies: [[run('a'), run('a')], 'done'], tools: [tool], hooks });
    await turn.runtime.flush();

    turn.control.cancelToolCall('call_1');
    await turn.runtime.flush();
    answers[0]?.({ action: 'allow', remember: true });
    const { recorded } = await turn.finish();

    expect(answers).toHaveLength(1);
    expect(resultLines(recorded).map(([, outcome]) => outcome)).toStrictEqual(['error', 'ok']);
    expect(memory.entries()).toHaveLength(1);
  });

  it.each(['a cancel', 'an abort'])('C7 asks nobody about a call that %s ended while a rule was looking it up', async (how) => {
    let found: (isMatch: boolean) => void = () => undefined;
    const { ask, questions } = person({ action: 'allow' });
    const turn = startScripted({
      replies: [run('a'), 'done'],
      tools: [bash()],
      hooks: [approval({ ask, rules: [{ matches: () => new Promise((resolve) => (found = resolve)), decision: 'deny' }] })],
    });
    await turn.runtime.flush();

    if (how === 'a cancel') turn.control.cancelToolCall('call_1');
    else turn.control.abort('enough');
    await turn.finish();
    found(false);
    await turn.runtime.flush();

    expect(questions).toStrictEqual([]);
  });

  it.each(['allow', 'deny'] as const)('C7 does not remember the answer %s that comes after the turn was aborted', async (action) => {
    let answer: (answer: ApprovalAnswer) => void = () => undefined;
    const memory = createApprovalMemory();
    const turn = startScripted({ replies: [run('a')], tools: [bash()], hooks: [approval({ memory, ask: () => new Promise((resolve) => (answer = resolve)) })] });
    await turn.runtime.flush();

    turn.control.abort('enough');
    await turn.finish();
    answer({ action, remember: true });
    await turn.runtime.flush();

    expect(memory.entries()).toStrictEqual([]);
  });

  it('C7 lets no turn wait for what another asked', async () => {
    const asked: string[] = [];
    const hooks = [approval({ ask: (_question, context) => (asked.push(context.turnId), asked.length === 1 ? new Promise(() => undefined) : { action: 'allow' }) })];
    const stuck = startScripted({ replies: [run('a')], tools: [bash()], hooks, turnId: 'first' });
    await stuck.runtime.flush();

    const { result } = await runScripted({ replies: [run('a'), 'done'], tools: [bash()], hooks, turnId: 'second' });
    stuck.control.abort('enough');
    await stuck.finish();

    expect(result.stopReason).toBe('end_turn');
    expect(asked).toStrictEqual(['first', 'second']);
  });
});

describe('approval that is remembered', () => {
  it('C7 does not ask again after an answer for always, in any turn of the same hook', async () => {
    const { ask, questions } = person({ action: 'allow', remember: true }, { action: 'deny', remember: true });
    const hooks = [approval({ ask })];
    const tool = bash();
    const replies = [run('ls'), run('rm a'), run('ls'), run('rm a'), 'done'];
    const first = await runScripted({ replies, tools: [tool], hooks });
    const second = await runScripted({ replies, tools: [tool], hooks });

    expect(questions.map(({ call }) => commandOf(call))).toStrictEqual(['ls', 'rm a']);
    expect(tool.inputs).toStrictEqual(Array(4).fill({ command: 'ls' }));
    expect([first, second].flatMap(({ recorded }) => resultLines(recorded).map(([, outcome]) => outcome))).toStrictEqual(
      ['ok', 'error', 'ok', 'error', 'ok', 'error', 'ok', 'error'],
    );
    expect(resultLines(second.recorded)[1]?.[2]).toContain('never to run');
  });

  it('C7 remembers the very call: "always" said to one command allows no other', async () => {
    const { ask, questions } = person({ action: 'allow', remember: true });
    const tool = bash();
    await runScripted({ replies: [run('rm build'), run('rm /'), 'done'], tools: [tool], hooks: [approval({ ask })] });

    expect(questions).toHaveLength(2);
    expect(tool.inputs).toStrictEqual([{ command: 'rm build' }]);
  });

  it('C7 remembers as widely as the host says', async () => {
    const { ask, questions } = person({ action: 'allow', remember: true });
    const tool = bash();
    await runScripted({ replies: [run('a'), run('b'), 'done'], tools: [tool], hooks: [approval({ ask, keyOf: ({ name }) => name })] });

    expect(questions.map(({ key }) => key)).toStrictEqual(['bash']);
    expect(tool.runCount).toBe(2);
  });

  it('C7 denies what a rule denies, whatever is remembered', async () => {
    const memory = createApprovalMemory([{ key: callKey({ name: 'bash', input: { command: 'rm a' } }), decision: 'allow' }]);
    const tool = bash();
    await runScripted({ replies: [run('rm a'), 'done'], tools: [tool], hooks: [approval({ memory, rules: [{ tool: 'bash', decision: 'deny' }] })] });

    expect(tool.runCount).toBe(0);
  });

  it('C7 goes on in another process with what was written down', async () => {
    const memory = createApprovalMemory();
    const { ask } = person({ action: 'allow', remember: true });
    await runScripted({ replies: [run('ls'), 'done'], tools: [bash()], hooks: [approval({ ask, memory })] });

    const next = person();
    const tool = bash();
    const entries = throughJson<readonly ApprovalEntry[]>(memory.entries());
    await runScripted({ replies: [run('ls'), 'done'], tools: [tool], hooks: [approval({ ask: next.ask, memory: createApprovalMemory(entries) })] });

    expect(entries).toStrictEqual([{ key: '"bash" {"command":"ls"}', decision: 'allow' }]);
    expect(next.questions).toStrictEqual([]);
    expect(tool.runCount).toBe(1);
  });

  it('C7 takes a store of the host’s own, which may take its time', async () => {
    const kept = new Map<string, string>();
    const memory = {
      get: async (key: string) => kept.get(key) as 'allow' | undefined,
      set: async (key: string, decision: string) => void kept.set(key, decision),
    };
    const { ask, questions } = person({ action: 'allow', remember: true });
    const tool = bash();
    await runScripted({ replies: [run('a'), run('a'), 'done'], tools: [tool], hooks: [approval({ ask, memory })] });

    expect(questions).toHaveLength(1);
    expect(tool.runCount).toBe(2);
  });

  it('C7 asks when a store gives a decision that does not exist', async () => {
    const { ask, questions } = person({ action: 'deny' });
    const memory = { get: () => 'ALLOW' as 'allow', set: () => undefined };
    await runScripted({ replies: [run('a'), 'done'], tools: [bash()], hooks: [approval({ ask, memory })] });

    expect(questions).toHaveLength(1);
  });

  it('C7 denies a call when the store cannot be read', async () => {
    const { ask, questions } = person({ action: 'allow' });
    const memory = { get: () => Promise.reject(new Error('no disk')), set: () => undefined };
    const tool = bash();
    await runScripted({ replies: [run('a'), 'done'], tools: [tool], hooks: [approval({ ask, memory })] });

    expect(questions).toStrictEqual([]);
    expect(tool.runCount).toBe(0);
  });

  it.each(['allow', 'deny'] as const)('C7 lets the answer %s stand for this call when it cannot be kept, and says so', async (action) => {
    const { ask } = person({ action, remember: true });
    const memory = { get: () => undefined, set: () => Promise.reject(new Error('disk full')) };
    const tool = bash();
    const { recording } = await runScripted({ replies: [run('a'), 'done'], tools: [tool], hooks: [approval({ ask, memory })] });

    expect(tool.runCount).toBe(action === 'allow' ? 1 : 0);
    expect(recording.of('notice')).toMatchObject([
      { name: 'approval.notRemembered', data: { tool: 'bash', toolCallId: 'call_1', message: 'disk full' } },
    ]);
  });

  it('C7 does not take a key of a call for anything but data', async () => {
    const memory = createApprovalMemory();
    const { ask, questions } = person({ action: 'allow', remember: true });
    const hooks = [approval({ ask, memory, keyOf: () => '__proto__' })];
    await runScripted({ replies: [run('a'), run('b'), 'done'], tools: [bash()], hooks });

    expect(questions).toHaveLength(1);
    expect(memory.get('toString')).toBeUndefined();
  });

  it('forgets a decision, and keeps the newest at the end', () => {
    const memory = createApprovalMemory([{ key: 'a', decision: 'allow' }, { key: 'b', decision: 'deny' }]);
    memory.set('a', 'deny');

    expect(memory.entries()).toStrictEqual([{ key: 'b', decision: 'deny' }, { key: 'a', decision: 'deny' }]);
    expect([memory.forget('b'), memory.forget('b'), memory.get('b')]).toStrictEqual([true, false, undefined]);
  });
});

describe('approval by suspension', () => {
  it('C7 ends the turn suspended when nobody can be asked, and goes on with the decision', async () => {
    const tool = bash();
    const hooks = [approval({ rules: [{ tool: 'bash', decision: 'ask', reason: 'It may write.' }] })];
    const first = await runScripted({ replies: [run('ls')], tools: [tool], hooks });
    const [pending] = first.result.pending ?? [];

    expect(first.result.stopReason).toBe('suspended');
    expect(pending).toMatchObject({ toolCallId: 'call_1', name: 'bash', input: { command: 'ls' }, description: 'Run ls', reason: 'It may write.' });

    const second = await runScripted({
      replies: ['done'],
      tools: [tool],
      hooks,
      transcript: createTranscript(throughJson(first.transcript.events)),
      resume: { decisions: [{ toolCallId: 'call_1', action: 'edit', input: { command: 'ls -l' } }] },
    });

    expect(second.result.stopReason).toBe('end_turn');
    expect(tool.inputs).toStrictEqual([{ command: 'ls -l' }]);
  });

  it.each<readonly [string, (call: HookCall) => boolean]>([
    ['says', ({ description = '' }) => description.includes('rm')],
    ['is given', (call) => commandOf(call).includes('rm')],
  ])('C7 holds an edit that a resume decides against a rule about what the call %s', async (_what, matches) => {
    const tool = bash();
    const hooks = [approval({ rules: [{ matches, decision: 'deny', reason: 'Never rm.' }] })];
    const first = await runScripted({ replies: [run('ls')], tools: [tool], hooks });

    const { recorded, result } = await runScripted({
      replies: ['done'],
      tools: [tool],
      hooks,
      transcript: createTranscript(throughJson(first.transcript.events)),
      resume: { decisions: [{ toolCallId: 'call_1', action: 'edit', input: { command: 'rm -rf /' } }] },
    });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'Never rm.']]);
    expect(result.stopReason).toBe('end_turn');
    expect(tool.runCount).toBe(0);
  });

  it('C7 remembers an "always" that the host sets before it resumes', async () => {
    const memory = createApprovalMemory();
    const tool = bash();
    const hooks = [approval({ memory })];
    const first = await runScripted({ replies: [run('ls')], tools: [tool], hooks });
    for (const pending of first.result.pending ?? []) memory.set(callKey(pending), 'allow');

    const { result } = await runScripted({
      replies: [run('ls'), 'done'],
      tools: [tool],
      hooks,
      transcript: createTranscript(throughJson(first.transcript.events)),
      resume: { decisions: [{ toolCallId: 'call_1', action: 'allow' }] },
    });

    expect(result.stopReason).toBe('end_turn');
    expect(tool.runCount).toBe(2);
  });

  it('C7 suspends when the person who is asked says so', async () => {
    const { ask } = person({ action: 'suspend', reason: 'Ask Ann.' });
    const { result } = await runScripted({ replies: [run('ls')], tools: [bash()], hooks: [approval({ ask })] });

    expect(result).toMatchObject({ stopReason: 'suspended', pending: [{ reason: 'Ask Ann.' }] });
  });

  it('C7 finishes what is allowed before the turn is suspended', async () => {
    const { recording, result } = await runScripted({
      replies: [[run('a'), toolCall('echo', { text: 'b' })]],
      tools: [bash(), echoTool({ readOnly: true })],
      hooks: [approval()],
    });

    expect(recording.of('tool.finished')).toMatchObject([{ toolCallId: 'call_2' }]);
    expect(result.pending).toHaveLength(1);
  });

  it('A19 asks again about a call that never started when the process died', async () => {
    const tool = bash();
    const first = person({ action: 'allow' });
    const events = await crash('tool.call', { replies: [run('ls')], tools: [tool], hooks: [approval({ ask: first.ask })] });
    const second = person({ action: 'deny', reason: 'Not any more.' });

    const { recorded } = await resumeFrom(events, { replies: ['done'], tools: [tool], hooks: [approval({ ask: second.ask })] });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'Not any more.']]);
    expect(tool.runCount).toBe(0);
  });

  it('is asked once for equal calls of a step when the loop guard runs them once, and both wait for the decision', async () => {
    const tool = bash();
    const hooks = [loopGuard(), approval()];
    const first = await runScripted({ replies: [[run('ls'), run('ls')]], tools: [tool], hooks });
    expect(first.result.pending).toHaveLength(1);

    const { recorded } = await runScripted({
      replies: ['done'],
      tools: [tool],
      hooks,
      transcript: createTranscript(throughJson(first.transcript.events)),
      resume: { decisions: [{ toolCallId: 'call_1', action: 'allow' }] },
    });

    expect(resultLines(recorded).map(([, outcome, text]) => [outcome, text])).toStrictEqual([['ok', 'ran ls'], ['ok', 'ran ls']]);
    expect(tool.runCount).toBe(1);
  });
});

describe('misuse of approval', () => {
  it.each<readonly [string, unknown, string]>([
    ['a name that does not exist', { rule: [] }, 'no option `rule`'],
    ['no object', 'ask', 'not an object'],
    ['rules that are no list', { rules: { decision: 'allow' } }, '`rules` must be a list'],
    ['a rule that decides nothing', { rules: [{ tool: 'a' }] }, "`rules[0]` must decide 'allow', 'deny' or 'ask', not nothing"],
    ['a rule that decides otherwise', { rules: [{ decision: 'allow' }, { decision: 'yes' }] }, '`rules[1]` must decide'],
    ['a misspelt condition', { rules: [{ tools: 'a', decision: 'allow' }] }, '`rules[0]` has no `tools`'],
    ['a rule about no tool', { rules: [{ tool: [], decision: 'allow' }] }, '`tool` that is neither'],
    ['a rule about a pattern', { rules: [{ tool: /a/, decision: 'allow' }] }, '`tool` that is neither'],
    ['a condition that is none', { rules: [{ matches: 'a', decision: 'allow' }] }, '`matches` that is no function'],
    ['a reason that is no text', { rules: [{ decision: 'deny', reason: 1 }] }, '`reason` that is no text'],
    ['a rule that is none', { rules: [null] }, '`rules[0]` is not an object'],
    ['a question that is an answer', { ask: true }, '`ask` must be a function'],
    ['a key', { keyOf: 'name' }, '`keyOf` must be a function'],
    ['a memory that cannot remember', { memory: { get: () => undefined } }, '`memory` must have get and set'],
    ['a memory that is none', { memory: null }, '`memory` must have get and set'],
  ])('is refused by name: %s', (_what, options, message) => {
    const make = (): Hook => approval(options as ApprovalOptions);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
  });

  it.each<readonly [string, () => unknown]>([
    ['no text', () => undefined],
    ['a promise of a text', async () => 'key'],
    ['a promise that fails', async () => Promise.reject(new Error('no key'))],
  ])('denies a call whose key is %s', async (_what, keyOf) => {
    const rejections = watchRejections();
    const tool = bash();
    const { ask } = person({ action: 'allow' });
    const { recording } = await runScripted({ replies: [run('a'), 'done'], tools: [tool], hooks: [approval({ ask, keyOf: keyOf as () => string })] });
    await new Promise((resolve) => setImmediate(resolve));
    rejections.stop();

    expect(tool.runCount).toBe(0);
    expect(recording.of('notice')).toMatchObject([{ name: 'hook.failed', data: { hook: 'approval', message: expect.stringContaining('`keyOf`') as string } }]);
    expect(rejections.reasons).toStrictEqual([]);
  });

  it.each<readonly [string, unknown]>([
    ['no list', { key: 'a', decision: 'allow' }],
    ['a decision that does not exist', [{ key: 'a', decision: 'ask' }]],
    ['a key that is no text', [{ key: 1, decision: 'allow' }]],
    ['an entry that is none', [null]],
    ['an entry that is a key', ['bash']],
    ['a list with a hole', Array(1)],
  ])('createApprovalMemory refuses %s, and shows a correct call', (_what, entries) => {
    const make = (): unknown => createApprovalMemory(entries as readonly ApprovalEntry[]);

    expect(make).toThrow(TypeError);
    expect(make).toThrow('For example: createApprovalMemory([{ key:');
  });

  it('createApprovalMemory names the entry that is none', () => {
    const entries = [{ key: 'a', decision: 'allow' }, null] as unknown as readonly ApprovalEntry[];

    expect(() => createApprovalMemory(entries)).toThrow('entry 1 must have a `key`');
  });
});
