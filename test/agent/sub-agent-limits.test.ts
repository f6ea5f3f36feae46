/**
 * The limits of sub-agents (E13): places, depth, deadlines; and their end by an abort, which reaches every depth and leaves
 * nothing behind.
 */
import { describe, expect, it } from 'vitest';
import { decorateLLM, type LLM, ToolAccesses, userCancel } from 'turnloop';
import { dispatchAgent, type DispatchAgentOptions } from 'turnloop/agent';
import {
  delayed,
  echoTool,
  gatedTool,
  hanging,
  hangingTool,
  runScripted,
  scriptedLLM,
  slowTool,
  startScripted,
  stubborn,
  toolCall,
  toolContext,
  watchedController,
} from 'turnloop/testing';
import { resultLines, resultTexts, watchRejections } from '../core/support.ts';
import { dispatchCall, promptOf, taskLLM } from './sub-agent-support.ts';

const calls = (count: number): readonly ReturnType<typeof dispatchCall>[] => Array.from({ length: count }, (_, index) => dispatchCall(`task ${index + 1}`));

describe('the places of sub-agents', () => {
  it('E13 SB2 are 4, given in the order of the calls', async () => {
    const gate = gatedTool({ readOnly: true });
    const llm = taskLLM(() => [toolCall('gate'), 'ok']);
    const turn = startScripted({ replies: [calls(6), 'done'], tools: [dispatchAgent({ llm, tools: [gate] })] });
    const started = (): readonly string[] => llm.requests.map(promptOf);

    await turn.runtime.flush();
    expect(started()).toStrictEqual(['task 1', 'task 2', 'task 3', 'task 4']);
    gate.finish('', gate.waiting[2]);
    await turn.runtime.flush();
    expect(started().slice(4)).toStrictEqual(['task 3', 'task 5']);
    gate.open();
    const { recorded } = await turn.finish();

    expect(gate.maxRunning).toBe(4);
    expect(resultTexts(recorded)).toStrictEqual(Array(6).fill('ok'));
  });

  it('E13 are shared by all turns of the tool', async () => {
    const gate = gatedTool({ readOnly: true });
    const tools = [dispatchAgent({ llm: taskLLM(() => [toolCall('gate'), 'ok']), tools: [gate], maxParallel: 2 })];
    const first = startScripted({ replies: [calls(2), 'done'], tools });
    const second = startScripted({ replies: [calls(2), 'done'], tools });

    await first.runtime.flush();
    expect(gate.runningCount).toBe(2);
    gate.open();
    await first.finish();
    await second.finish();

    expect([gate.runCount, gate.maxRunning]).toStrictEqual([4, 2]);
  });

  it('E13 are not waited for by sub-agents of those who hold them', async () => {
    const llm = taskLLM((prompt) => (prompt.startsWith('task') ? [[dispatchCall(`a of ${prompt}`), dispatchCall(`b of ${prompt}`)], 'ok'] : [delayed('deep', 10)]));
    const atWork = busyCount(llm);

    const { recorded } = await runScripted({ replies: [calls(3), 'done'], tools: [dispatchAgent({ llm: atWork.llm, maxDepth: 2, maxParallel: 1 })] });

    expect(resultTexts(recorded)).toStrictEqual(['ok', 'ok', 'ok']);
    expect(llm.callCount).toBe(12);
    expect(atWork.most).toBe(1);
  });

  it('SB2 an aborted wait ends at once, says that nothing was started, and holds up nobody', async () => {
    const gate = gatedTool({ readOnly: true });
    const llm = taskLLM(() => [toolCall('gate'), 'ok']);
    const turn = startScripted({ replies: [calls(3), 'done'], tools: [dispatchAgent({ llm, tools: [gate], maxParallel: 1 })] });
    await turn.runtime.flush();

    expect(turn.control.cancelToolCall('call_2')).toBe(true);
    await turn.runtime.flush();
    gate.open();
    const { recorded, result } = await turn.finish();

    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'ok', 'ok'],
      ['call_2', 'error', expect.stringContaining('The user cancelled before this sub-agent started: it was not run.') as string],
      ['call_3', 'ok', 'ok'],
    ]);
    expect(result.stopReason).toBe('end_turn');
  });

  it('BR-016 a wait leaves no listener on the signal of its call, however it ends', async () => {
    const gate = gatedTool({ readOnly: true });
    const dispatch = dispatchAgent({ llm: taskLLM(() => [toolCall('gate'), 'ok']), tools: [gate], maxParallel: 1 });
    const [served, aborted] = [watchedController(), watchedController()];
    const first = dispatch.execute({ prompt: 'first' }, toolContext());
    const second = dispatch.execute({ prompt: 'second' }, toolContext({ signal: served.signal }));
    const third = dispatch.execute({ prompt: 'third' }, toolContext({ signal: aborted.signal }));
    expect([served.listenerCount, aborted.listenerCount]).toStrictEqual([1, 1]);

    aborted.abort();
    gate.open();
    await Promise.all([first, second, third]);

    expect([served.listenerCount, aborted.listenerCount]).toStrictEqual([0, 0]);
  });

  it('SB2 an abort tells what is done, what had started and what had not', async () => {
    const gate = gatedTool({ readOnly: true });
    const llm = taskLLM(() => [toolCall('gate'), 'ok']);
    const turn = startScripted({ replies: [calls(4), 'done'], tools: [dispatchAgent({ llm, tools: [gate], maxParallel: 2 })] });
    await turn.runtime.flush();
    gate.finish();
    await turn.runtime.flush();

    turn.control.abort();
    const { recorded } = await turn.finish();

    expect(resultTexts(recorded)).toStrictEqual([
      'ok',
      'The turn was aborted while this call was running: its effects may have happened in part.',
      'The turn was aborted while this call was running: its effects may have happened in part.',
      'The sub-agent was not started: the call was stopped while it waited for others to end.',
    ]);
  });
});

describe('the depth of sub-agents', () => {
  it('BR-041 is 1: sub-agents do not have the tool', async () => {
    const llm = taskLLM(() => ['ok']);
    await runScripted({ replies: [dispatchCall('x'), 'done'], tools: [dispatchAgent({ llm })] });

    expect(llm.requests[0]!.tools).toStrictEqual([]);
  });

  it('BR-041 ends where it is told: the deepest do not have the tool', async () => {
    const same = (): [ReturnType<typeof dispatchCall>, string] => [dispatchCall('same'), 'ok'];
    const llm = scriptedLLM((request) => (request.messages.length > 1 || request.tools.length === 0 ? 'ok' : same()[0]));

    const { result } = await runScripted({ llm, tools: [dispatchAgent({ maxDepth: 2 })] });

    expect(llm.requests.map(({ tools }) => tools.length)).toStrictEqual([1, 1, 0, 1, 1]);
    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'ok' });
  });

  it('BR-041 a call of the absent tool is told that it does not exist', async () => {
    const llm = taskLLM(() => [dispatchCall('deeper'), 'I did it myself.']);
    const { recorded, recording } = await runScripted({ replies: [dispatchCall('x'), 'done'], tools: [dispatchAgent({ llm })] });

    expect(JSON.stringify(recording.of('tool.finished')[0])).toContain('There is no tool named');
    expect(resultTexts(recorded)).toStrictEqual(['I did it myself.']);
  });

  it('E13 is seen in the path of events', async () => {
    const llm = taskLLM((prompt) => (prompt === 'outer' ? [dispatchCall('inner'), 'ok'] : ['ok']));
    const { recording } = await runScripted({ replies: [dispatchCall('outer'), 'done'], tools: [dispatchAgent({ llm, maxDepth: 2 })] });

    expect(recording.of('turn.end').map((event) => ('agentPath' in event ? event.agentPath : []))).toStrictEqual([['call_1', 'call_2'], ['call_1'], []]);
  });
});

describe('what calls may overlap', () => {
  /** How many sub-agents work at once, when a reply dispatches two and calls a tool. */
  async function mostAtWork(options: DispatchAgentOptions, type?: string): Promise<number> {
    const work = busyCount(taskLLM(() => [delayed('ok', 10)]));
    const replies = [['a', 'b'].map((prompt) => dispatchCall(prompt, type === undefined ? {} : { type })), 'done'];
    await runScripted({ replies, tools: [dispatchAgent({ llm: work.llm, ...options })] });
    return work.most;
  }
  const writing = { coder: { description: 'Writes.', tools: [echoTool()] } };

  it('E13 sub-agents that only read run beside each other', async () => {
    expect(await mostAtWork({ tools: [echoTool({ readOnly: true })] })).toBe(2);
    expect(await mostAtWork({ types: writing })).toBe(2);
  });

  it('E13 sub-agents that may write do not, unless the host says so', async () => {
    expect(await mostAtWork({ types: writing }, 'coder')).toBe(1);
    expect(await mostAtWork({ types: writing, accesses: () => ToolAccesses.none() }, 'coder')).toBe(2);
  });

  it('E13 sub-agents that may dispatch others that write do not', async () => {
    expect(await mostAtWork({ types: writing, maxDepth: 2 })).toBe(1);
  });

  it('E13 sub-agents that only read run beside reads, and not beside writes', async () => {
    const read = slowTool(10, { name: 'read', readOnly: true });
    const write = slowTool(10, { name: 'write' });
    const llm = taskLLM(() => [delayed('ok', 5)]);

    const { recording } = await runScripted({
      replies: [[dispatchCall('x'), toolCall('read'), toolCall('write')], 'done'],
      tools: [read, write, dispatchAgent({ llm })],
    });

    expect([read.runs[0]!.startedAt, write.runs[0]!.startedAt]).toStrictEqual([0, 10]);
    expect(recording.of('tool.finished').filter((event) => !('agentPath' in event)).map(({ at }) => at)).toStrictEqual([5, 10, 20]);
  });

  it('E13 the tool is readOnly, and may be repeated, if every sub-agent only reads', () => {
    const openLog: DispatchAgentOptions['openLog'] = async () => Promise.reject(new Error('never'));

    expect(dispatchAgent()).toMatchObject({ readOnly: true });
    expect(dispatchAgent({ types: writing })).toMatchObject({ readOnly: false });
    expect(dispatchAgent({ types: writing }).replay).toBeUndefined();
    expect(dispatchAgent({ types: writing, openLog }).replay).toBe('idempotent');
  });
});

describe('the deadline of a sub-agent', () => {
  it('SA2 E13 ends it with what it had, and never as a cancel by the user', async () => {
    const hang = hangingTool({ readOnly: true });
    const llm = taskLLM(() => [['Half of it.', toolCall('hang')]]);

    const { recorded, recording, runtime } = await runScripted({
      replies: [dispatchCall('x'), 'done'],
      tools: [dispatchAgent({ llm, tools: [hang], deadlineMs: 5_000 })],
    });

    expect(recorded.find((event) => event.type === 'tool.result')).toMatchObject({
      result: { content: [{ text: 'Half of it.' }], note: expect.stringContaining('(deadline: its time limit was reached)') as string },
    });
    expect(JSON.stringify(recording.of('tool.finished')[0])).toContain("The turn's time limit was reached");
    expect(JSON.stringify(recorded)).not.toContain('user cancel');
    expect(runtime.now()).toBe(5_000);
  });

  it('SB2 counts running time only, not the wait for a place', async () => {
    const llm = taskLLM(() => [delayed('ok', 60)]);
    const { recorded, runtime } = await runScripted({
      replies: [calls(3), 'done'],
      tools: [dispatchAgent({ llm, deadlineMs: 100, maxParallel: 1 })],
    });

    expect(resultTexts(recorded)).toStrictEqual(['ok', 'ok', 'ok']);
    expect(runtime.now()).toBe(180);
  });

  it('E13 is 10 minutes', async () => {
    const { recorded, runtime } = await runScripted({ replies: [dispatchCall('x'), 'done'], tools: [dispatchAgent({ llm: taskLLM(() => [hanging()]) })] });

    expect(resultLines(recorded)[0]![2]).toContain('deadline');
    expect(runtime.now()).toBe(600_000);
  });

  it('E13 of the caller ends its sub-agents, and is not worded as a cancel either', async () => {
    const hang = hangingTool({ readOnly: true });
    const { recording, result } = await runScripted({
      replies: [dispatchCall('x')],
      tools: [dispatchAgent({ llm: taskLLM(() => [toolCall('hang')]), tools: [hang] })],
      deadlineMs: 1_000,
    });

    expect(result.stopReason).toBe('deadline');
    expect(recording.of('turn.end').map(({ stopReason }) => stopReason)).toStrictEqual(['aborted', 'deadline']);
    expect(JSON.stringify(recording.events)).not.toContain('The user cancelled');
  });
});

describe('an abort of the caller', () => {
  it('BR-016 SA2 reaches every depth at once: all report it, no request starts after it, and nothing stays behind', async () => {
    const rejections = watchRejections();
    const controller = watchedController();
    const child = taskLLM((prompt) => (prompt === 'outer' ? [dispatchCall('inner'), 'never'] : [hanging(), 'never']));
    const turn = startScripted({
      replies: [dispatchCall('outer'), 'never'],
      tools: [dispatchAgent({ llm: child, maxDepth: 2 })],
      signal: controller.signal,
    });
    await turn.runtime.advance(30);
    expect(controller.listenerCount).toBe(1);

    controller.abort();
    const { result, recorded, recording, runtime, llm } = await turn.finish();
    await runtime.runUntilIdle();

    expect(recording.of('turn.end').map(({ stopReason, at }) => [stopReason, at])).toStrictEqual([['aborted', 30], ['aborted', 30], ['aborted', 30]]);
    expect(resultLines(recorded).map(([id, outcome]) => [id, outcome])).toStrictEqual([['call_1', 'error']]);
    expect(result.stopReason).toBe('aborted');
    expect([llm.callCount, child.callCount, child.runningCount]).toStrictEqual([1, 2, 0]);
    expect([controller.listenerCount, runtime.pendingTimers]).toStrictEqual([0, 0]);
    expect(rejections.reasons).toStrictEqual([]);
    rejections.stop();
  });

  it('BR-016 leaves no listener on the signal after a good end either', async () => {
    const controller = watchedController();
    const { runtime } = await runScripted({
      replies: [calls(6), 'done'],
      tools: [dispatchAgent({ llm: taskLLM(() => ['ok']), maxParallel: 2 })],
      signal: controller.signal,
    });

    expect([controller.listenerCount, runtime.pendingTimers]).toStrictEqual([0, 0]);
  });

  it('BR-016 ends within the grace of the caller although no model and no tool of any depth minds it, and what they spent counts', async () => {
    const stuck = hangingTool({ readOnly: true, ignoresAbort: true });
    const child = taskLLM((prompt) =>
      prompt === 'outer' ? [{ content: [dispatchCall('inner'), toolCall('hang')], usage: { inputTokens: 10 } }] : [stubborn({ content: 'late', usage: { inputTokens: 100 }, delayMs: 100 })],
    );
    const turn = startScripted({
      replies: [{ content: [dispatchCall('outer')], usage: { inputTokens: 1 } }],
      tools: [dispatchAgent({ llm: child, tools: [stuck], maxDepth: 2 })],
    });
    await turn.runtime.advance(30);

    turn.control.abort();
    const { result, runtime, recording } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'aborted', usage: { inputTokens: 111 } });
    expect(recording.of('turn.end')).toHaveLength(3);
    expect(runtime.now()).toBeLessThan(30 + 2_000);
  });

  it('SA2 by a person is worded as such inside the tools of a child', async () => {
    const hang = hangingTool({ readOnly: true });
    const turn = startScripted({
      replies: [dispatchCall('x')],
      tools: [dispatchAgent({ llm: taskLLM(() => [toolCall('hang')]), tools: [hang] })],
    });
    await turn.runtime.flush();

    turn.control.abort(userCancel());
    const { recording } = await turn.finish();

    const texts = recording.of('tool.finished').map(({ result }) => JSON.stringify(result.content));
    expect(texts).toHaveLength(2);
    for (const text of texts) expect(text).toContain('The user cancelled');
  });

  it('SA3 ends the children of that turn, and no others', async () => {
    const gate = gatedTool({ readOnly: true });
    const tools = [dispatchAgent({ llm: taskLLM(() => [toolCall('gate'), 'ok']), tools: [gate] })];
    const first = startScripted({ replies: [calls(2)], tools });
    const second = startScripted({ replies: [calls(1), 'done'], tools });
    await first.runtime.flush();

    first.control.abort(userCancel());
    const ended = await first.finish();
    gate.open();
    const other = await second.finish();

    expect(ended.recording.of('turn.end').map(({ stopReason }) => stopReason)).toStrictEqual(['aborted', 'aborted', 'aborted']);
    expect(resultTexts(other.recorded)).toStrictEqual(['ok']);
  });

  it('gives places back', async () => {
    const tools = [dispatchAgent({ llm: taskLLM((prompt) => (prompt === 'task 1' ? [hanging()] : ['ok'])), maxParallel: 1 })];
    const first = startScripted({ replies: [calls(1)], tools });
    await first.runtime.flush();
    first.control.abort();
    await first.finish();

    const { recorded } = await runScripted({ replies: [dispatchCall('task 2'), 'done'], tools });

    expect(resultTexts(recorded)).toStrictEqual(['ok']);
  });
});

describe('a cancel of one sub-agent', () => {
  it('BR-016 ends it, and neither the caller nor the others', async () => {
    const gate = gatedTool({ readOnly: true });
    const llm = taskLLM(() => [toolCall('gate'), 'ok']);
    const turn = startScripted({ replies: [calls(2), 'done'], tools: [dispatchAgent({ llm, tools: [gate] })] });
    await turn.runtime.flush();

    expect(turn.control.cancelToolCall('call_1')).toBe(true);
    await turn.runtime.flush();
    gate.open();
    const { recorded, recording, result, runtime } = await turn.finish();

    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', expect.stringContaining('The user cancelled this call on purpose.') as string],
      ['call_2', 'ok', 'ok'],
    ]);
    expect(recording.of('turn.end').map(({ stopReason }) => stopReason)).toStrictEqual(['aborted', 'end_turn', 'end_turn']);
    expect(result.stopReason).toBe('end_turn');
    expect(runtime.pendingTimers).toBe(0);
  });
});

/** A model that counts the requests that are under way at once. */
function busyCount(llm: LLM): { readonly llm: LLM; readonly most: number } {
  let now = 0;
  let most = 0;
  const counted = decorateLLM(llm, async (request) => {
    now += 1;
    most = Math.max(most, now);
    try {
      return await llm.chat(request);
    } finally {
      now -= 1;
    }
  });
  return {
    llm: counted,
    get most() {
      return most;
    },
  };
}
