/** Undo and forks (E12, CX8): what is taken back, what stays, where it stops, and what later processes and forks see of it. */
import { describe, expect, it } from 'vitest';
import { userMessage, type UserMessage } from 'turnloop';
import { delayed, echoTool, gatedTool, hanging, repeat, toolCall, checkTranscript } from 'turnloop/testing';
import { turnEvents } from './support/crashing-store.ts';
import { suspendAll } from './support/policies.ts';
import { codeOf, hasSettled, lastRequest, queued, reopen, said, startAgent, type Started, types } from './support/session-kit.ts';

/** A session with these inputs, each answered with its number. */
async function talked(...inputs: readonly (string | UserMessage)[]): Promise<Started> {
  let count = 0;
  const started = await startAgent(() => `${(count += 1)}`);
  for (const input of inputs) await started.session.run(input).result;
  return started;
}

/** A session whose history begins with a summary. */
async function summarised(): Promise<Started> {
  const long = 'word '.repeat(6_000);
  const started = await startAgent(({ tools }) => (tools.length === 0 ? `Summary. ${long.slice(0, 40)}` : long), { tools: [echoTool()], llmOptions: { capabilities: { contextWindow: 200_000 } } });
  for (const input of ['a', 'b', 'c', 'd']) await started.session.run(`${input} ${long}`).result;
  await started.session.compact();
  return started;
}

describe('undo', () => {
  it('E12 CX8 takes back the newest message of a person with everything that came of it', async () => {
    const { session, llm } = await talked('a', 'b');

    const report = await session.undo();

    expect(report).toStrictEqual({ undone: 1, message: { ...userMessage('b'), id: '' } });
    expect(said(session)).toStrictEqual(['user: a', 'assistant: 1']);
    await session.run('c').result;
    expect(lastRequest(llm)).toStrictEqual(['user: a', 'assistant: 1', 'user: c']);
  });

  it('E12 takes back several, and up to a message by its id', async () => {
    const inputs = ['a', 'b', 'c', 'd'].map((text) => userMessage(text, { id: `m-${text}` }));
    const { session } = await talked(...inputs);

    expect(await session.undo({ prompts: 2 })).toMatchObject({ undone: 2, message: { content: [{ type: 'text', text: 'c' }] } });
    expect(await session.undo({ messageId: 'm-a' })).toMatchObject({ undone: 2 });
    expect(said(session)).toStrictEqual([]);
  });

  it('E12 CX8 counts only what a person asked, takes steering and reminders with it, and keeps what the host put in', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), 'ok', '2'], { tools: [gate] });
    const turn = session.run([userMessage('a'), userMessage('ticket 42', { origin: 'host' })]);
    await gate.started();
    void turn.steer('faster');
    gate.finish();
    await turn.result;
    await session.run('b').result;

    expect(await session.undo({ prompts: 2 })).toMatchObject({ undone: 2 });
    expect(said(session)).toStrictEqual(['user: ticket 42']);
  });

  it('E12 CX8 stops at the beginning and says so', async () => {
    const { session } = await talked('a');
    expect(await session.undo({ prompts: 5 })).toMatchObject({ undone: 1, stoppedAt: 'beginning' });
    expect(await session.undo()).toStrictEqual({ undone: 0, stoppedAt: 'beginning' });
    expect(types(await session.events()).filter((type) => type === 'compaction')).toHaveLength(1);
  });

  it('E12 CX8 stops at a summary and says so', async () => {
    const { session } = await summarised();
    const isSummary = (message: { role: string; origin?: string | undefined }): boolean => message.role === 'user' && message.origin === 'summary';
    const before = session.messages();
    expect(before.some(isSummary)).toBe(true);
    const behind = before.slice(before.findIndex(isSummary)).filter((message) => message.role === 'user' && message.origin === 'user').length;

    const report = await session.undo({ prompts: 99 });

    expect(report).toMatchObject({ undone: behind, stoppedAt: 'summary' });
    expect(session.messages().some(isSummary)).toBe(true);
  });

  it('E12 refuses a message that is not there, or not one of a person, and changes nothing', async () => {
    const { session } = await talked('a', userMessage('h', { id: 'host-1', origin: 'host' }));
    const before = await session.events();

    expect(await codeOf(() => session.undo({ messageId: 'nope' }))).toBe('not_in_session');
    expect(await codeOf(() => session.undo({ messageId: 'host-1' }))).toBe('not_in_session');
    expect(await session.events()).toStrictEqual(before);
  });

  it('E12 refuses misuse, naming the option and an example', async () => {
    const { session } = await talked('a');
    await expect(session.undo({ prompts: 0 })).rejects.toThrow(/session\.undo: `prompts`.*session\.undo\(\{ prompts: 1 \}\)/);
    await expect(session.undo({ count: 1 } as never)).rejects.toThrow(TypeError);
  });

  it('E12 is told to listeners, and leaves a record that keeps the laws, also when the message is written anew', async () => {
    const { session } = await talked('a', 'b');
    const heard: string[] = [];
    session.subscribe(({ type }) => heard.push(type));

    const { message } = await session.undo();
    await session.run(message!).result;

    expect(heard[0]).toBe('compaction');
    expect(checkTranscript(turnEvents(await session.events()))).toStrictEqual([]);
    expect(said(session)).toStrictEqual(['user: a', 'assistant: 1', 'user: b', 'assistant: 3']);
  });

  it('E12 E11 lasts: another process does not see what was taken back', async () => {
    const { session, store } = await talked('a', 'b');
    await session.undo();
    await session.close();

    const later = await reopen(store, ['3']);
    expect(said(later.session)).toStrictEqual(['user: a', 'assistant: 1']);
    await later.session.run('c').result;
    expect(lastRequest(later.llm)).toStrictEqual(['user: a', 'assistant: 1', 'user: c']);
  });

  it('E12 takes a turn back that was interrupted, with the reminder behind it', async () => {
    const { session, runtime } = await startAgent(['1', { content: 'half', hangs: true }]);
    await session.run('a').result;
    const turn = session.run('b');
    await runtime.flush();
    turn.abort();
    await turn.result;
    await session.undo();

    expect(said(session)).toStrictEqual(['user: a', 'assistant: 1']);
  });

  it('E12 is refused while a turn runs or waits, and refuses a turn while it is under way', async () => {
    const { session } = await startAgent(['1', toolCall('echo')], { tools: [echoTool()], hooks: [suspendAll()] });
    await session.run('a').result;
    const undone = session.undo();
    expect(session.status).toBe('running');
    expect(await codeOf(() => session.run('b'))).toBe('turn_running');
    await undone;
    await session.run('c').result;
    expect(session.status).toBe('suspended');
    expect(await codeOf(() => session.undo())).toBe('turn_open');
  });
});

describe('fork', () => {
  it('E12 begins with the turns up to one, and changes nothing of the session it came from', async () => {
    const { session, agent, store } = await talked('a', 'b', 'c');
    const turns = (await session.events()).flatMap((event) => (event.type === 'turn.begin' ? [event.turnId] : []));
    const before = await store.read('s');

    const fork = await agent.openSession({ fork: { sessionId: 's', afterTurn: turns[1] }, metadata: { title: 'other way' } });

    expect(fork.header).toMatchObject({ forkedFrom: { sessionId: 's', turnId: turns[1] }, metadata: { title: 'other way' } });
    expect(said(fork)).toStrictEqual(['user: a', 'assistant: 1', 'user: b', 'assistant: 2']);
    expect(fork.turns).toBe(2);
    await fork.run('x').result;
    await session.run('y').result;
    expect((await store.read('s')).events.slice(0, before.events.length)).toStrictEqual(before.events);
    expect(said(session).at(-2)).toBe('user: y');
    expect(said(fork).at(-2)).toBe('user: x');
  });

  it('E12 takes the last turn that is over by default, while the session is at work', async () => {
    const gate = gatedTool();
    const { session, agent } = await startAgent(['1', toolCall('gate'), '2', '3'], { tools: [gate] });
    await session.run('a').result;
    session.run('b');
    await gate.started();

    const fork = await agent.openSession({ fork: { sessionId: 's' } });

    expect([said(fork), fork.status]).toStrictEqual([['user: a', 'assistant: 1'], 'idle']);
    gate.finish();
    await session.idle();
  });

  it('E12 A20 leaves out a turn that waits, with its queue', async () => {
    const { session, agent } = await startAgent(['1', toolCall('echo'), '2'], { tools: [echoTool()], hooks: [suspendAll()] });
    await session.run('a').result;
    await session.run('b').result;
    await session.followUp('later');

    const fork = await agent.openSession({ fork: { sessionId: 's' } });

    expect([fork.status, said(fork), queued(fork)]).toStrictEqual(['idle', ['user: a', 'assistant: 1'], []]);
    expect(await fork.run('c').result).toMatchObject({ stopReason: 'end_turn', text: '2' });
    expect([session.status, queued(session)]).toStrictEqual(['suspended', ['later']]);
  });

  it('E12 A8 leaves out what is queued, which is said in the session that has it', async () => {
    const { session, agent } = await startAgent(['1']);
    await session.run('a').result;
    session.hold();
    await session.followUp('later');
    const fork = await agent.openSession({ fork: { sessionId: 's' } });
    expect([queued(fork), queued(session)]).toStrictEqual([[], ['later']]);
  });

  it('E12 of a session whose first turn waits is empty', async () => {
    const { session, agent } = await startAgent([toolCall('echo')], { tools: [echoTool()], hooks: [suspendAll()] });
    await session.run('a').result;

    const fork = await agent.openSession({ fork: { sessionId: 's' } });
    expect([fork.turns, said(fork), fork.header.forkedFrom]).toStrictEqual([0, [], { sessionId: 's' }]);
  });

  it('E12 has an undo that came behind its last turn, and not one that came later', async () => {
    const { session, agent } = await talked('a', 'b');
    await session.undo();
    const undone = await agent.openSession({ fork: { sessionId: 's' }, sessionId: 'f1' });
    expect(said(undone)).toStrictEqual(['user: a', 'assistant: 1']);

    await session.run('c').result;
    await session.undo({ prompts: 2 });
    const turns = (await session.events()).flatMap((event) => (event.type === 'turn.end' ? [event.turnId] : []));
    const early = await agent.openSession({ fork: { sessionId: 's', afterTurn: turns[0] }, sessionId: 'f2' });
    expect(said(early)).toStrictEqual(['user: a', 'assistant: 1']);
    const middle = await agent.openSession({ fork: { sessionId: 's', afterTurn: turns[1] }, sessionId: 'f3' });
    expect(said(middle)).toStrictEqual(['user: a', 'assistant: 1']);
  });

  it('E12 refuses a turn that is not there or not over, and a session that is not there', async () => {
    const { agent, store } = await talked('a');
    expect(await codeOf(() => agent.openSession({ fork: { sessionId: 's', afterTurn: 'nope' } }))).toBe('not_in_session');
    expect(await codeOf(() => agent.openSession({ fork: { sessionId: 'nope' } }))).toBe('session_not_found');
    await expect(agent.openSession({ resumeSessionId: 's', fork: { sessionId: 's' } })).rejects.toThrow(/a fork is a new session/);
    await expect(agent.openSession({ fork: { session: 's' } as never })).rejects.toThrow(TypeError);
    expect(await store.list()).toHaveLength(1);
  });

  it('E12 can be forked again, resumed, and deleted apart from its origin', async () => {
    const { agent, store, session } = await talked('a');
    const one = await agent.openSession({ fork: { sessionId: 's' }, sessionId: 'one' });
    await one.run('b').result;
    const two = await agent.openSession({ fork: { sessionId: 'one' }, sessionId: 'two' });
    expect(said(two)).toStrictEqual(['user: a', 'assistant: 1', 'user: b', 'assistant: 2']);
    await session.close();
    await store.delete('s');
    await one.close();
    expect(said((await reopen(store, [], { open: { resumeSessionId: 'one' } })).session)).toStrictEqual(said(two));
  });
});

describe('close', () => {
  it('V6 E11 aborts a running turn, is idempotent, and leaves a session that another can open', async () => {
    const { session, runtime, store } = await startAgent([hanging()]);
    const turn = session.run('a');
    await runtime.flush();
    const [first, second] = [session.close(), session.close()];
    await Promise.all([first, second]);

    expect(await turn.result).toMatchObject({ stopReason: 'aborted', stopMessage: 'The session was closed.' });
    expect([session.status, session.turn]).toStrictEqual(['closed', undefined]);
    expect(await codeOf(() => session.run('b'))).toBe('session_closed');
    expect(await codeOf(() => session.undo())).toBe('session_closed');
    expect(await codeOf(() => session.resume())).toBe('session_closed');
    expect(await codeOf(() => session.hold())).toBe('session_closed');
    expect(await codeOf(() => session.steerQueued())).toBe('session_closed');
    const later = await reopen(store, ['ok']);
    expect(later.session.status).toBe('idle');
    expect(await later.session.run('b').result).toMatchObject({ text: 'ok' });
  });

  it('V6 waits for an undo that is under way, which is then durable', async () => {
    const { session, store } = await talked('a', 'b');
    const undone = session.undo();
    await session.close();
    expect(await undone).toMatchObject({ undone: 1 });
    expect(said((await reopen(store)).session)).toStrictEqual(['user: a', 'assistant: 1']);
  });

  it('V6 ends a compaction that is under way, and starts nothing behind it', async () => {
    const long = 'word '.repeat(6_000);
    const { session, runtime, store, llm } = await startAgent(({ tools }) => (tools.length === 0 ? hanging() : long), { tools: [echoTool()], llmOptions: { capabilities: { contextWindow: 200_000 } } });
    for (const input of ['a', 'b', 'c', 'd']) await session.run(`${input} ${long}`).result;
    const compacted = codeOf(() => session.compact());
    await runtime.flush();
    expect([llm.runningCount, session.status]).toStrictEqual([1, 'running']);
    await session.followUp('queued');

    expect(await hasSettled(runtime, session.close())).toBe(true);
    await compacted;
    expect(llm.runningCount).toBe(0);
    const later = await reopen(store);
    expect([queued(later.session), said(later.session)]).toStrictEqual([['queued'], said(session)]);
  });

  it('V6 settles inputs that are being queued: durable, and not started', async () => {
    const { session, store, llm } = await startAgent([repeat('ok')]);
    const queueing = session.followUp('a');
    await session.close();
    expect(await (await queueing).turn).toBeUndefined();
    expect(llm.callCount).toBe(0);
    expect(queued((await reopen(store)).session)).toStrictEqual(['a']);
  });

  it('A20 keeps a suspended turn for the next process', async () => {
    const { session, store, runtime } = await startAgent([delayed(toolCall('echo', { text: 'x' }), 5)], { tools: [echoTool()], hooks: [suspendAll()] });
    await runtime.settle(session.run('a').result);
    await session.close();
    const later = await reopen(store, ['ok'], { tools: [echoTool()], hooks: [suspendAll()] });
    expect([later.session.status, later.session.pending().length]).toStrictEqual(['suspended', 1]);
  });
});
