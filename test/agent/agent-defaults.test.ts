/** What createAgent does without being asked (A2, C1, C6, D2, E), how each of it is replaced or switched off, and what it refuses. */
import { describe, expect, it } from 'vitest';
import { createTranscript, decorateLLM, type LLM, LLMError } from 'turnloop';
import { createAgent, type AgentOptions } from 'turnloop/agent';
import { createContextPolicy } from 'turnloop/context';
import { createBudget, withRetry, withTimeouts } from 'turnloop/policies';
import { echoTool, hanging, recordingTool, repeat, scriptedLLM, stalled, toolCall, virtualRuntime } from 'turnloop/testing';
import { lastRequest, scriptedAgent, startAgent, story } from './support/session-kit.ts';

const busy = new LLMError({ kind: 'overloaded', message: 'busy', retryable: true });
/** A model that calls a tool for ever, with other arguments each time. */
const endless = (_: unknown, index: number): ReturnType<typeof toolCall> => toolCall('echo', { text: `${index}` });

describe('createAgent without options', () => {
  it('A2 ends a turn after 25 steps', async () => {
    const { session, llm } = await startAgent(endless, { tools: [echoTool()] });
    expect(await session.run('a').result).toMatchObject({ stopReason: 'max_steps', steps: 25, stoppedBy: 'maxSteps' });
    expect(llm.callCount).toBe(25);
  });

  it('C1 asks again after a passing failure, up to ten times in all', async () => {
    const { session, runtime, llm } = await startAgent([busy, busy, 'ok']);
    expect(await runtime.settle(session.run('a').result)).toMatchObject({ stopReason: 'end_turn', text: 'ok' });
    expect(llm.callCount).toBe(3);

    const bad = await startAgent([repeat(busy)]);
    expect(await bad.runtime.settle(bad.session.run('a').result)).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'overloaded' } });
    expect(bad.llm.callCount).toBe(10);
  });

  it('B8 gives up on a model that says nothing, or goes silent, and asks again', async () => {
    const { session, runtime, llm } = await startAgent([hanging(), stalled('half an answer', 4), 'ok']);
    expect(await runtime.settle(session.run('a').result)).toMatchObject({ text: 'ok' });
    expect(llm.callCount).toBe(3);
    expect(runtime.pendingTimers).toBe(0);
  });

  it('C6 refuses a call that is made again and again, and ends the turn at the twelfth', async () => {
    const echo = echoTool();
    const { session } = await startAgent([repeat(toolCall('echo', { text: 'same' }))], { tools: [echo] });
    expect(await session.run('a').result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'loopGuard', steps: 12 });
    expect(echo.runCount).toBeLessThan(12);
  });

  it('D2 shortens a long result for the model, and keeps it whole for people', async () => {
    const { session } = await startAgent([toolCall('record'), 'ok'], { tools: [recordingTool({ execute: () => 'x'.repeat(20_000) })] });
    await session.run('a').result;
    expect(story(session)[2]!.length).toBeLessThan(8_500);
    const finished = (await session.events()).find((event) => event.type === 'tool.finished');
    expect(JSON.stringify(finished?.result.display)).toContain('x'.repeat(20_000));
  });

  it('D6 D5 makes a history fit that is too long, instead of failing', async () => {
    const overflow = new LLMError({ kind: 'context_overflow', message: 'too long' });
    const long = 'word '.repeat(4_000);
    const { session } = await startAgent([long, long, long, overflow, repeat('short')]);
    for (const input of ['a', 'b', 'c']) await session.run(`${input} ${long}`).result;
    expect(await session.run('d').result).toMatchObject({ stopReason: 'end_turn', text: 'short' });
  });

  it('law-2 sends a strict history once to a server that found the history broken', async () => {
    const broken = new LLMError({ kind: 'invalid_history', message: 'tool_use ids' });
    const { session, llm } = await startAgent([{ content: 'One.', stopReason: 'paused' }, 'Two.', broken, 'ok'], {
      hooks: [{ name: 'on', shouldContinueAfterStop: (_, { stopReason }) => stopReason === 'paused' }],
    });
    await session.run('a').result;
    expect(await session.run('b').result).toMatchObject({ text: 'ok' });
    expect(lastRequest(llm)).toStrictEqual(['user: a', 'assistant: One.Two.', 'user: b']);
  });
});

describe('each default', () => {
  it('A2 `maxSteps` is another number, or none for 0', async () => {
    const few = await startAgent(endless, { tools: [echoTool()], maxSteps: 3 });
    expect(await few.session.run('a').result).toMatchObject({ stopReason: 'max_steps', steps: 3 });
    const many = await startAgent((_, index) => (index < 40 ? endless(_, index) : 'done'), { tools: [echoTool()], maxSteps: 0 });
    expect(await many.session.run('a').result).toMatchObject({ stopReason: 'end_turn', steps: 41 });
  });

  it('A2 `stopWhen` stands beside the limit of steps', async () => {
    const { session } = await startAgent(endless, { tools: [echoTool()], stopWhen: ({ steps }) => (steps >= 2 ? { stopReason: 'max_steps', name: 'mine' } : undefined) });
    expect(await session.run('a').result).toMatchObject({ stoppedBy: 'mine', steps: 2 });
  });

  it('C1 `retry` has its options, or is off', async () => {
    const some = await startAgent([repeat(busy)], { retry: { maxAttempts: 3 } });
    await some.runtime.settle(some.session.run('a').result);
    expect(some.llm.callCount).toBe(3);
    const none = await startAgent([repeat(busy)], { retry: false });
    await none.runtime.settle(none.session.run('a').result);
    expect(none.llm.callCount).toBe(1);
  });

  it('B8 `timeouts` has its options, or is off', async () => {
    const short = await startAgent([hanging(), 'ok'], { timeouts: { firstTokenMs: 100 }, retry: { baseDelayMs: 1 } });
    await short.runtime.settle(short.session.run('a').result);
    expect(short.runtime.now()).toBeLessThan(1_000);
    const none = await startAgent([hanging()], { timeouts: false });
    const turn = none.session.run('a');
    await none.runtime.advance(10_000_000);
    expect([none.session.status, none.runtime.pendingTimers]).toStrictEqual(['running', 0]);
    turn.abort();
    await turn.result;
  });

  it('C6 `loopGuard` has its options, or is off', async () => {
    const early = await startAgent([repeat(toolCall('echo'))], { tools: [echoTool()], loopGuard: { stopAt: 4, remindAt: [2] } });
    expect(await early.session.run('a').result).toMatchObject({ stoppedBy: 'loopGuard', steps: 4 });
    const none = await startAgent([repeat(toolCall('echo'))], { tools: [echoTool()], loopGuard: false });
    expect(await none.session.run('a').result).toMatchObject({ stopReason: 'max_steps', steps: 25 });
  });

  it('D `context` has its options, is a policy of the host, or is off', async () => {
    const long = recordingTool({ execute: () => 'x'.repeat(20_000) });
    const run = async (context: AgentOptions['context']): Promise<number> => {
      const { session } = await startAgent([toolCall('record'), 'ok'], { tools: [long], context });
      await session.run('a').result;
      return story(session)[2]!.length;
    };
    expect(await run(false)).toBeGreaterThan(20_000);
    expect(await run({ truncate: false })).toBeGreaterThan(20_000);
    expect(await run(createContextPolicy())).toBeLessThan(8_500);
    const { session } = await startAgent(['ok'], { context: false });
    await session.run('a').result;
    await expect(session.compact()).rejects.toThrow(/`context` is false/);
  });

  it('C4 `budget` is one for all that the agent spends', async () => {
    const budget = createBudget({ maxTokens: 1_000 });
    const agentOf = (): ReturnType<typeof scriptedAgent> => scriptedAgent([repeat({ content: 'ok', usage: { inputTokens: 400, outputTokens: 10 } })], { budget });
    const stops: string[] = [];
    for (let index = 0; index < 4; index += 1) stops.push((await (await agentOf().agent.openSession()).run('a').result).stopReason);
    expect(stops).toStrictEqual(['end_turn', 'end_turn', 'max_budget', 'max_budget']);
  });

  it('A6 A16 `deadlineMs`, `graceMs`, `maxParallelTools` and `request` reach the turn, and a turn has its own deadline', async () => {
    const { session, runtime, llm } = await startAgent([hanging(), hanging()], { deadlineMs: 500, request: { maxOutputTokens: 77 } });
    expect(await runtime.settle(session.run('a').result)).toMatchObject({ stopReason: 'deadline' });
    expect(runtime.now()).toBe(500);
    await runtime.settle(session.run('b', { deadlineMs: 100 }).result);
    expect(runtime.now()).toBe(600);
    expect(llm.requests[0]?.maxOutputTokens).toBe(77);
  });
});

describe('a model that asks again by itself', () => {
  const failing = (): { readonly llm: LLM; readonly count: () => number } => {
    const scripted = scriptedLLM([repeat(busy)]);
    return { llm: scripted, count: () => scripted.callCount };
  };

  it.each([
    ['withRetry around it', (llm: LLM) => withRetry(llm, { maxAttempts: 3 })],
    ['withRetry below something else', (llm: LLM) => decorateLLM(withRetry(llm, { maxAttempts: 3 }), (request) => withRetry(llm, { maxAttempts: 3 }).chat(request))],
    ['withRetry around withTimeouts', (llm: LLM) => withRetry(withTimeouts(llm), { maxAttempts: 3 })],
  ])('C1 is taken as it is: its requests are not squared (%s)', async (_, wrap) => {
    const { llm, count } = failing();
    const runtime = virtualRuntime();
    const session = await createAgent({ llm: wrap(llm), runtime }).openSession();
    await runtime.settle(session.run('a').result);
    expect(count()).toBe(3);
  });

  it('B8 is not limited in time over all its attempts', async () => {
    const slow = withRetry(scriptedLLM([{ content: 'ok', delayMs: 400_000 }]));
    const runtime = virtualRuntime();
    const session = await createAgent({ llm: slow, runtime }).openSession();
    expect(await runtime.settle(session.run('a').result)).toMatchObject({ text: 'ok' });
  });

  it('C1 gets a second layer when it is asked for', async () => {
    const { llm, count } = failing();
    const runtime = virtualRuntime();
    const session = await createAgent({ llm: withRetry(llm, { maxAttempts: 2 }), retry: { maxAttempts: 2 }, runtime }).openSession();
    await runtime.settle(session.run('a').result);
    expect(count()).toBe(4);
  });
});

describe('two sessions of an agent', () => {
  it('C6 do not share what a loop guard or an estimator saw', async () => {
    const { agent } = await startAgent([repeat(toolCall('echo'))], { tools: [echoTool()] });
    for (const id of ['one', 'two']) {
      const session = await agent.openSession({ sessionId: id });
      expect(await session.run('a').result).toMatchObject({ stoppedBy: 'loopGuard', steps: 12 });
    }
  });

  it('run side by side without mixing', async () => {
    const { agent } = await startAgent(({ messages }) => (messages.length === 1 ? toolCall('echo', { text: JSON.stringify(messages[0]?.content) }) : 'ok'), { tools: [echoTool()] });
    const sessions = await Promise.all(['a', 'b', 'c'].map((sessionId) => agent.openSession({ sessionId })));
    await Promise.all(sessions.map((session) => session.run(session.sessionId).result));
    for (const session of sessions) {
      expect(story(session)[2]).toContain(`"text":"${session.sessionId}"`);
      const events = (await session.events()).filter((event) => 'turnId' in event);
      expect(new Set(events.map((event) => ('turnId' in event ? event.turnId : ''))).size).toBe(1);
      expect(createTranscript(events as never).buildMessages()).toStrictEqual(session.messages());
    }
  });
});

describe('createAgent', () => {
  const llm = scriptedLLM([]);
  it.each([
    ['no model', {}, /createAgent needs an LLM/],
    ['an option that does not exist', { llm, tool: [] }, /tool/],
    ['a name that is empty', { llm, name: '' }, /`name`/],
    ['tools that are none', { llm, tools: [{}] }, /tool/],
    ['two tools of one name', { llm, tools: [echoTool(), echoTool()] }, /echo/],
    ['a prompt of another type', { llm, systemPrompt: 7 }, /`systemPrompt`/],
    ['another word for followUps', { llm, followUps: 'some' }, /'one' or 'all'/],
    ['a store that is none', { llm, sessions: {} }, /fileSessionStore/],
    ['a deadline below 0', { llm, deadlineMs: -1 }, /`deadlineMs`/],
    ['half a tool at once', { llm, maxParallelTools: 0.5 }, /`maxParallelTools`/],
    ['a retry option that does not exist', { llm, retry: { attempts: 3 } }, /attempts/],
    ['a timeout option that does not exist', { llm, timeouts: { idle: 3 } }, /idle/],
  ])('law-13 refuses %s, with a correct example', (_, options, message) => {
    expect(() => createAgent(options as unknown as AgentOptions)).toThrow(message);
    expect(() => createAgent(options as unknown as AgentOptions)).toThrow(TypeError);
  });
});
