/** The matchers for vitest, and the helpers that they and other runners share: on turns of the loop, of agents and of sessions. */
import { describe, expect, it } from 'vitest';
import { createTranscript, type RecordedEvent } from 'turnloop';
import { createAgent } from 'turnloop/agent';
import { checkTranscript, delayed, echoTool, failingTool, finishTurn, gatedTool, runScripted, scriptedLLM, toolCall, toolCallsOf, virtualRuntime } from 'turnloop/testing';
import { matchers } from 'turnloop/testing/vitest';

expect.extend(matchers);

const CALL = toolCall('echo', { text: 'hello', list: [1] });

function agentOf(...replies: Parameters<typeof scriptedLLM>[0] & readonly unknown[]) {
  const runtime = virtualRuntime();
  const llm = scriptedLLM(replies);
  return { runtime, llm, agent: createAgent({ llm, runtime, tools: [echoTool(), failingTool()], approval: { rules: [{ tool: 'echo', decision: 'allow' }] } }) };
}

/** What an assertion that fails says. */
function saying(assert: () => void): string {
  try {
    assert();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('It passed.');
}

describe('F8 toHaveCalledTool', () => {
  it('takes what runScripted gives, a transcript, a list of events, a finished turn, and the events of a session', async () => {
    const scripted = await runScripted({ tools: [echoTool()], replies: [CALL, 'done'] });
    const { agent, runtime } = agentOf(CALL, 'done', CALL, 'done');
    const session = await agent.openSession();
    await session.followUp('first');

    const finished = await finishTurn(session.turn ?? session.run('hi'), runtime);

    for (const record of [scripted, scripted.transcript, scripted.recorded, scripted.recording, finished, finished.events, await session.events()]) {
      expect(record).toHaveCalledTool('echo');
      expect(record).toHaveCalledTool('echo', { text: 'hello', list: [1] });
      expect(record).toHaveCalledTool('echo', expect.objectContaining({ text: expect.stringMatching(/^hel/) as string }));
      expect(record).not.toHaveCalledTool('echo', { text: 'hello' });
      expect(record).not.toHaveCalledTool('echo', {});
      expect(record).not.toHaveCalledTool('ech');
    }
    await session.close();
  });

  it('says what was called instead, and what came of it', async () => {
    const outcome = await runScripted({ tools: [echoTool(), failingTool()], replies: [[CALL, toolCall('fail', {}), toolCall('none', '[1')], 'done'] });

    const message = saying(() => expect(outcome).toHaveCalledTool('echo', { text: 'bye' }));
    expect(message).toMatch(/^expected the turn to have called echo with .*"bye"[^;]*; the calls were:\n/s);
    expect(message).toContain('  echo {"text":"hello","list":[1]} → "hello"\n  fail {} → error: "the tool failed"\n  none (arguments that are no JSON object) → error: "');
    expect(saying(() => expect([]).toHaveCalledTool('echo'))).toBe('expected the turn to have called echo; no tool was called');
    expect(saying(() => expect(outcome).not.toHaveCalledTool('fail'))).toMatch(/^expected the turn not to have called fail; the calls were:/);
  });

  it('counts a call that was denied or waits, and knows its arguments as a decision left them', async () => {
    const tools = [echoTool()];
    const hooks = [{ name: 'ask', authorizeToolCall: () => ({ action: 'suspend' }) as const }];
    const waiting = await runScripted({ tools, hooks, replies: [CALL] });
    expect(waiting).toHaveCalledTool('echo');
    expect(saying(() => expect(waiting).not.toHaveCalledTool('echo'))).toMatch(/→ no result yet$/);

    const [{ toolCallId } = { toolCallId: '' }] = waiting.result.pending ?? [];
    const { transcript, runtime } = waiting;
    const edited = await runScripted({ tools, transcript, runtime, resume: { decisions: [{ toolCallId, action: 'edit', input: { text: 'edited' } }] }, replies: ['done'] });
    expect(edited.transcript).toHaveCalledTool('echo', { text: 'edited' });
  });

  it('does not count calls of sub-agents, which are live only', () => {
    const event = { type: 'tool.call', turnId: 't', at: 0, step: 1, stepId: 's', toolCallId: 'c', name: 'echo', inputText: '{}', input: {}, index: 0, count: 1, agentPath: ['call_1'] } as const;

    expect([event as RecordedEvent]).not.toHaveCalledTool('echo');
  });
});

describe('F8 toEndWith', () => {
  it('takes a result, what has one, and a record, of which the last turn counts', async () => {
    const { agent, runtime } = agentOf('one', toolCall('fail', {}));
    const session = await agent.openSession();
    const first = await finishTurn(session.run('hi'), runtime);
    for (const received of [first, first.result, first.events, await session.events()]) expect(received).toEndWith('end_turn');

    const second = await finishTurn(session.run('again'), runtime);
    for (const received of [second, second.result, second.events, await session.events()]) {
      expect(received).toEndWith('suspended');
      expect(received).not.toEndWith('end_turn');
    }
  });

  it('says how it ended instead, and what failed', async () => {
    const outcome = await runScripted({ replies: [] });

    expect(saying(() => expect(outcome).toEndWith('end_turn'))).toMatch(/^expected the turn to end with "end_turn"; it ended with "fatal_error", .*scriptedLLM ran out of replies/);
    expect(saying(() => expect(outcome).not.toEndWith('fatal_error'))).toMatch(/^expected the turn not to end with "fatal_error"; it ended with "fatal_error"/);
    expect(saying(() => expect(outcome.recorded.slice(0, 2)).toEndWith('end_turn'))).toMatch(/; it has not ended$/);
  });

  it.each(['not ', ''])('refuses a reason that there is not, %snegated', (negation) => {
    const assertion = negation === '' ? expect([]) : expect([]).not;

    expect(() => assertion.toEndWith('done' as never)).toThrow(/toEndWith takes a stop reason, such as 'end_turn', not "done"/);
  });
});

describe('F8 toFollowLaws', () => {
  it('names what a record breaks, and looks at a result beside it', async () => {
    const outcome = await runScripted({ tools: [echoTool()], replies: [CALL, 'done'] });
    expect(outcome).toFollowLaws();
    expect(outcome.transcript).toFollowLaws();

    const lost = outcome.recorded.filter(({ type }) => type !== 'tool.result');
    expect(lost).not.toFollowLaws();
    expect(saying(() => expect(lost).toFollowLaws())).toMatch(/^expected the record to follow the laws of the loop; it breaks \d+:\n {2}law 1, recorded event \d+: /);
    expect({ events: outcome.events, result: { ...outcome.result, steps: 9 } }).not.toFollowLaws();
    expect({ events: outcome.events.slice(0, 3), result: outcome.result }).not.toFollowLaws();
    expect(saying(() => expect(outcome).not.toFollowLaws())).toMatch(/not to follow .* it breaks none$/);
  });

  it('takes the events of a session, which are more than those of its turns', async () => {
    const { agent, runtime } = agentOf('one', 'two');
    const session = await agent.openSession();
    const queued = await session.followUp('hi');
    await runtime.settle(session.idle());
    await finishTurn(session.run('more'), runtime);
    const events = await session.events();

    expect(queued).toBeDefined();
    expect(events.some(({ type }) => type === 'input.queued')).toBe(true);
    expect(events).toFollowLaws();
    expect(checkTranscript(events)).toStrictEqual([]);
  });

  it('does not judge a turn by what came after its resume', async () => {
    const { agent, runtime } = agentOf(toolCall('fail', {}), 'done');
    const session = await agent.openSession();
    await finishTurn(session.run('hi'), runtime);
    const resumed = await finishTurn(session.resume({ decisions: session.pending().map(({ toolCallId }) => ({ toolCallId, action: 'deny' })) }), runtime);

    const message = /got what a turn recorded from its resume on.*`await session\.events\(\)`/;
    expect(() => expect(resumed).toFollowLaws()).toThrow(message);
    expect(() => expect(resumed).toHaveCalledTool('fail')).toThrow(message);
    expect(() => expect(resumed).not.toHaveCalledTool('fail')).toThrow(message);
    expect(() => toolCallsOf(resumed)).toThrow(message);
    expect({ events: await session.events(), result: resumed.result }).toFollowLaws();
  });
});

describe('F8 a matcher', () => {
  it('throws for what it cannot judge, negated too', async () => {
    const { agent } = agentOf('one', 'two');
    const session = await agent.openSession();
    const turn = agent.run('hi');
    const { result } = await runScripted({ replies: ['done'] });

    for (const [received, message] of [
      [result, /got the result of a turn, which does not have its events\. It takes what finishTurn or runScripted gave/],
      [turn, /got a turn, which may be running: give it `await finishTurn\(turn, runtime\)`/],
      [session, /got a session\. It takes .*`await session\.events\(\)`/],
      [[1], /got a list of something else than events/],
      [turn.result, /got a promise that was not awaited/],
      [undefined, /got a value of type undefined/],
    ] as const) {
      expect(() => expect(received).toHaveCalledTool('echo')).toThrow(message);
      expect(() => expect(received).not.toHaveCalledTool('echo')).toThrow(message);
      expect(() => expect(received).toFollowLaws()).toThrow(message);
      if (received !== result) expect(() => expect(received).not.toEndWith('aborted')).toThrow(message);
    }
    await turn.result;
    for (const name of [undefined, '', 5, /re/]) {
      expect(() => expect([]).not.toHaveCalledTool(name as string)).toThrow(/takes the name of a tool, such as 'weather', not/);
    }
  });

  it('works with any runner that gives it equality and a way to show values', () => {
    const context = { isNot: false, equals: Object.is, utils: { stringify: String } };

    expect(matchers.toEndWith.call(context, { stopReason: 'aborted' }, 'aborted').pass).toBe(true);
    expect(matchers.toHaveCalledTool.call(context, createTranscript(), 'echo', 1).message()).toBe('expected the turn to have called echo with 1; no tool was called');
  });
});

describe('F3 finishTurn', () => {
  it('drives the clock of an agent to the end of its turn, and gives its events', async () => {
    const { agent, runtime, llm } = agentOf(delayed(CALL, 60_000), delayed('done', 60_000));

    const { result, events } = await finishTurn(agent.run('hi'), runtime);

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done', agent: 'agent' });
    expect([events[0]?.type, events.at(-1)?.type]).toStrictEqual(['turn.begin', 'turn.end']);
    expect(runtime.now()).toBeGreaterThanOrEqual(120_000);
    expect(runtime.pendingTimers).toBe(0);
    llm.assertDone();
  });

  it('gives the recorded events from the first, also of a turn that has ended', async () => {
    const { agent, runtime } = agentOf(CALL, 'done');
    const turn = agent.run('hi');
    await turn.result;

    const { events } = await finishTurn(turn, runtime);

    expect(toolCallsOf(events)).toStrictEqual([{ toolCallId: 'call_1', name: 'echo', input: { text: 'hello', list: [1] }, output: 'hello', isError: false }]);
    expect(events).toFollowLaws();
  });

  it('fails at once for a turn that cannot end, and rejects for misuse', async () => {
    const runtime = virtualRuntime();
    const gate = gatedTool({ readOnly: true });
    const agent = createAgent({ llm: scriptedLLM([toolCall('gate', {})]), runtime, tools: [gate] });
    const turn = agent.run('hi');
    await expect(finishTurn(turn, runtime)).rejects.toThrow(/cannot settle: nothing can run.*What waits for a file or a socket.*inProcessSessionStore\(\)/s);
    turn.abort();
    expect(await finishTurn(turn, runtime)).toEndWith('aborted');

    const misused = { result: Promise.reject(new TypeError('two tools of one name')), [Symbol.asyncIterator]: () => agentOf('x').agent.run('hi')[Symbol.asyncIterator]() };
    await expect(finishTurn(misused, runtime)).rejects.toThrow(TypeError);
  });
});
