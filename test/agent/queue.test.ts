/** The queue of a session: what waits behind a turn, what starts it, what holds it, and what survives a crash. */
import { describe, expect, it } from 'vitest';
import { LLMError, textOf, userMessage } from 'turnloop';
import { createBudget, suspendAll } from './support/policies.ts';
import { delayed, echoTool, gatedTool, hanging, hangingTool, recordingTool, repeat, toolCall } from 'turnloop/testing';
import { crashingStore } from './support/crashing-store.ts';
import { codeOf, hasSettled, lastRequest, queued, reopen, said, startAgent, types } from './support/session-kit.ts';

describe('a session with a turn that runs', () => {
  it('TD19 PQ1 refuses another input, and says what to do instead', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), 'ok'], { tools: [gate] });
    const turn = session.run('a');
    await gate.started();

    expect(() => session.run('b')).toThrow(/turn\.steer\(message\).*session\.followUp\(input\)/);
    expect(await codeOf(() => session.run('b'))).toBe('turn_running');
    expect(await codeOf(() => session.resume())).toBe('turn_running');
    expect(await codeOf(() => session.undo())).toBe('turn_running');
    expect(await codeOf(() => session.compact())).toBe('turn_running');
    expect(await codeOf(() => session.hold())).toBe('turn_running');
    gate.finish();
    expect(await turn.result).toMatchObject({ stopReason: 'end_turn' });
    expect(said(session)).toStrictEqual(['user: a', 'assistant: gate()', 'tool call_1: done', 'assistant: ok']);
  });

  it('A8 PQ1 gives each queued input a turn of its own, first in first out, and none of them overlap', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), '1', '2', '3'], { tools: [gate] });
    const heard: string[] = [];
    session.subscribe(({ type }) => heard.push(type));
    session.run('a');
    await gate.started();
    const second = await session.followUp('b');
    const third = await session.followUp(userMessage('c', { id: 'mine' }));

    expect(queued(session)).toStrictEqual(['b', 'c']);
    expect(third.message.id).toBe('mine');
    gate.finish();
    await session.idle();

    expect(said(session)).toStrictEqual([
      'user: a', 'assistant: gate()', 'tool call_1: done', 'assistant: 1', 'user: b', 'assistant: 2', 'user: c', 'assistant: 3',
    ]);
    expect(queued(session)).toStrictEqual([]);
    const [one, two] = [await second.turn, await third.turn];
    expect(one?.turnId).not.toBe(two?.turnId);
    expect((await two?.result)?.text).toBe('3');
    const begins = heard.filter((type) => type === 'turn.begin' || type === 'turn.end');
    expect(begins).toStrictEqual(['turn.begin', 'turn.end', 'turn.begin', 'turn.end', 'turn.begin', 'turn.end']);
  });

  it('A8 PQ1 starts an input at once if it is idle, and tells that it was queued before any event of its turn', async () => {
    const { session } = await startAgent(['ok']);
    const heard: string[] = [];
    session.subscribe(({ type }) => heard.push(type));

    const { turn } = await session.followUp('a');

    expect((await (await turn)?.result)?.text).toBe('ok');
    expect(heard.slice(0, 2)).toStrictEqual(['input.queued', 'turn.begin']);
  });

  it("A8 gives all that waits to one turn with `followUps: 'all'`", async () => {
    const gate = gatedTool();
    const { session, llm } = await startAgent([toolCall('gate'), '1', '2'], { tools: [gate], followUps: 'all' });
    session.run('a');
    await gate.started();
    const inputs = [await session.followUp('b'), await session.followUp('c')];
    gate.finish();
    await session.idle();

    expect(lastRequest(llm).slice(-2)).toStrictEqual(['user: b', 'user: c']);
    expect(session.turns).toBe(2);
    const [one, two] = await Promise.all(inputs.map(({ turn }) => turn));
    expect(one).toBe(two);
  });

  it('PQ4 A8 TD19 steers what is queued into the running turn, in order, and delivers it once', async () => {
    const gate = gatedTool();
    const { session, llm } = await startAgent([toolCall('gate'), 'ok'], { tools: [gate] });
    const turn = session.run('a');
    await gate.started();
    const { turn: ofItsOwn } = await session.followUp('b');
    await session.followUp('c');

    const steered = session.steerQueued();
    expect(queued(session)).toStrictEqual([]);
    gate.finish();

    expect(await steered).toBe(2);
    await turn.result;
    await session.idle();
    expect(lastRequest(llm)).toStrictEqual(['user: a', 'assistant: gate()', 'tool call_1: done', 'user: b', 'user: c']);
    expect(session.turns).toBe(1);
    expect(await ofItsOwn).toBeUndefined();
  });

  it('PQ4 BR-032 keeps queued what a turn did not take, exactly once', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), 'ok'], { tools: [gate] });
    const turn = session.run('a');
    await gate.started();
    await session.followUp('b');
    const steered = session.steerQueued();
    turn.abort();

    const { undelivered, stopReason } = await turn.result;
    expect([stopReason, await steered, undelivered]).toStrictEqual(['aborted', 0, undefined]);
    expect(queued(session)).toStrictEqual(['b']);
    session.runQueued();
    await session.idle();
    expect(said(session).filter((line) => line === 'user: b')).toHaveLength(1);
  });

  it('PQ4 keeps what could not be steered in at its place in the queue', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), repeat('ok')], { tools: [gate] });
    const turn = session.run('a');
    await gate.started();
    await session.followUp('b');
    const steered = session.steerQueued();
    await session.followUp('c');
    turn.abort();
    await turn.result;
    await steered;

    expect(queued(session)).toStrictEqual(['b', 'c']);
    session.runQueued();
    await session.idle();
    expect(said(session).filter((line) => line.startsWith('user')).slice(-2)).toStrictEqual(['user: b', 'user: c']);
  });

  it('PQ4 steers nothing if no turn runs', async () => {
    const { session } = await startAgent(['ok']);
    expect(await session.steerQueued()).toBe(0);
  });

  it('BR-032 hands back what was steered by hand and not delivered, and nothing that is queued', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), repeat('ok')], { tools: [gate] });
    const turn = session.run('a');
    await gate.started();
    const outcome = turn.steer('by hand');
    await session.followUp('queued');
    void session.steerQueued();
    turn.abort();

    const { undelivered } = await turn.result;
    expect(await outcome).toBe('undelivered');
    expect(undelivered?.map(({ content }) => content)).toStrictEqual([[{ type: 'text', text: 'by hand' }]]);
  });
});

describe('a queued input', () => {
  it('PQ3 V4 is taken back without a trace in the conversation, and only once', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), 'ok'], { tools: [gate] });
    session.run('a');
    await gate.started();
    const input = await session.followUp('b');

    expect(await input.cancel()).toBe(true);
    expect(await input.cancel()).toBe(false);
    expect(await input.turn).toBeUndefined();
    gate.finish();
    await session.idle();

    expect(said(session)).not.toContain('user: b');
    expect(types(await session.events())).toContain('input.removed');
    expect(session.turns).toBe(1);
  });

  it('PQ3 is taken back once when that is asked twice at once', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), 'ok'], { tools: [gate] });
    session.run('a');
    await gate.started();
    const input = await session.followUp('b');

    expect(await Promise.all([input.cancel(), input.cancel()])).toStrictEqual([true, false]);
    expect(types(await session.events()).filter((type) => type === 'input.removed')).toHaveLength(1);
    gate.finish();
    await session.idle();
  });

  it('PQ3 of the same id as one that is being taken back is queued in its place', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), 'ok', 'ok'], { tools: [gate] });
    session.run('a');
    await gate.started();
    const input = await session.followUp(userMessage('old', { id: 'm' }));

    const [isBack, next] = await Promise.all([input.cancel(), session.followUp(userMessage('new', { id: 'm' }))]);
    expect([isBack, queued(session)]).toStrictEqual([true, ['new']]);
    gate.finish();
    expect((await (await next.turn)!.result).stopReason).toBe('end_turn');
    expect(said(session)).toContain('user: new');
  });

  it('PQ3 cannot be taken back once its turn has it', async () => {
    const { session } = await startAgent([delayed('ok', 10)]);
    const input = await session.followUp('a');
    await input.turn;

    expect(await input.cancel()).toBe(false);
  });

  it('PQ3 stays queued if it could not be recorded that it is taken back', async () => {
    const gate = gatedTool();
    const store = crashingStore({ at: ({ type }) => type === 'input.removed', mode: 'fails' });
    const { session } = await startAgent([toolCall('gate'), 'ok', 'ok'], { tools: [gate], sessions: store });
    session.run('a');
    await gate.started();
    const input = await session.followUp('b');

    expect(await codeOf(() => input.cancel())).toBe('store_failed');
    expect(queued(session)).toStrictEqual(['b']);
    expect(await input.cancel()).toBe(true);
    gate.finish();
    await session.idle();
  });

  it('PQ5 is not queued if it could not be recorded', async () => {
    const store = crashingStore({ at: ({ type }) => type === 'input.queued', mode: 'fails' });
    const { session } = await startAgent(['ok'], { sessions: store });

    expect(await codeOf(() => session.followUp('a'))).toBe('store_failed');
    expect([session.status, queued(session)]).toStrictEqual(['idle', []]);
    await session.followUp('b');
    await session.idle();
    expect(said(session)).toStrictEqual(['user: b', 'assistant: ok']);
  });

  it('A8 of an id that is queued already is not queued again', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), 'ok', 'ok'], { tools: [gate] });
    session.run('a');
    await gate.started();
    const input = userMessage('b', { id: 'mine' });
    const first = await session.followUp(input);

    expect(await session.followUp(input)).toBe(first);
    gate.finish();
    await session.idle();
    expect(said(session).filter((line) => line === 'user: b')).toHaveLength(1);
    expect(await first.turn).toBeDefined();
  });

  it('A8 that the host gives to a turn by itself waits no more', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), repeat('ok')], { tools: [gate] });
    const turn = session.run('a');
    await gate.started();
    const { message } = await session.followUp('b');
    turn.abort();
    await turn.result;

    await session.run(message).result;
    await session.idle();
    expect(queued(session)).toStrictEqual([]);
    expect(said(session).filter((line) => line === 'user: b')).toHaveLength(1);
  });

  it('PQ5 V4 whose turn is aborted before it begins is still queued', async () => {
    const store = crashingStore();
    const { session, runtime } = await startAgent([repeat('ok')], { sessions: store });
    const input = await session.followUp('a');
    const turn = await input.turn;
    turn?.abort();
    await turn?.result;
    await runtime.flush();

    const later = await reopen(await store.survivor(), ['ok']);
    expect(queued(session)).toStrictEqual(queued(later.session));
    expect(said(session)).toStrictEqual(said(later.session));
  });

  it('PQ5 whose turn could not be begun is still queued, and its turn tells of the failure', async () => {
    const store = crashingStore({ at: ({ type }) => type === 'turn.begin', mode: 'fails' });
    const { session } = await startAgent([repeat('ok')], { sessions: store });
    const input = await session.followUp('a');

    expect(await (await input.turn)?.result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'store_failed' } });
    expect([session.status, queued(session)]).toStrictEqual(['idle', ['a']]);
    await session.runQueued()?.result;
    expect([said(session), queued(session)]).toStrictEqual([['user: a', 'assistant: ok'], []]);
  });

  it('PQ5 whose turn ended by misuse is still queued', async () => {
    const broken = { ...echoTool(), name: 'twice' };
    let tools = [broken, broken];
    const { session } = await startAgent(['ok'], { tools: () => tools });
    const input = await session.followUp('a');
    const turn = await input.turn;
    const outcome = await turn?.result.then(({ stopReason }) => stopReason, () => 'rejected');
    expect(['rejected', 'fatal_error']).toContain(outcome);

    tools = [];
    const isRecorded = types(await session.events()).includes('message');
    expect(queued(session)).toStrictEqual(isRecorded ? [] : ['a']);
  });

  it('PQ1 must be a text or a user message', async () => {
    const { session } = await startAgent(['ok']);
    await expect(session.followUp(42 as never)).rejects.toThrow(/session\.followUp\('And then\?'\)/);
    await expect(session.followUp([] as never)).rejects.toThrow(TypeError);
  });
});

/** A turn that ends in one way, while an input waits behind it. */
const HOLDS = {
  'an abort': { replies: [hanging()], act: (turn: { abort(): void }) => turn.abort(), stopReason: 'aborted' },
  'a stop': { replies: [delayed(toolCall('echo'), 10), 'ok'], act: (turn: { stop(): void }) => turn.stop(), stopReason: 'stopped' },
  'a failure': { replies: [delayed(new LLMError({ kind: 'auth', message: 'no' }), 10)], stopReason: 'fatal_error' },
  'a suspension': { replies: [delayed(toolCall('echo'), 10)], options: { hooks: [suspendAll()] }, stopReason: 'suspended' },
  'a deadline': { replies: [hanging()], options: { deadlineMs: 50 }, stopReason: 'deadline' },
  'a budget that is spent': { replies: [delayed({ content: [toolCall('echo')], usage: { outputTokens: 1_000_000 } }, 10)], options: { budget: createBudget(100_000) }, stopReason: 'max_budget' },
  'a hook that stops the turn (V2)': {
    replies: [delayed(toolCall('echo'), 10), 'ok'],
    options: { hooks: [{ name: 'stopper', afterStep: () => ({ reason: 'enough' }) }] },
    stopReason: 'stopped',
  },
  'a tool that stops the turn (V2)': { replies: [delayed(toolCall('last'), 10), 'ok'], stopReason: 'stopped' },
} as const;

/** The same for ends that start what waits. */
const PUMPS = {
  'the end of a turn': { replies: [delayed('ok', 10)], stopReason: 'end_turn' },
  'a step limit': { replies: [delayed(toolCall('echo'), 10)], options: { maxSteps: 1 }, stopReason: 'max_steps' },
  'a reply that was cut by the limit': { replies: [delayed({ content: 'ok', stopReason: 'max_tokens' }, 10)], stopReason: 'max_tokens' },
  'a filtered reply': { replies: [delayed({ content: 'ok', stopReason: 'filtered' }, 10)], stopReason: 'filtered' },
} as const;

describe('the queue behind a turn', () => {
  it.each(Object.entries(HOLDS))('A9 V2 is held by %s, until it is asked for', async (_, { replies, stopReason, ...how }) => {
    const tools = [echoTool(), recordingTool({ name: 'last', execute: () => ({ content: 'done', stopTurn: true }) })];
    const { session, runtime, store } = await startAgent([...replies, repeat('later')], { tools, retry: false, ...('options' in how && how.options) });
    const turn = session.run('a');
    await runtime.flush();
    await session.followUp('b');
    if ('act' in how) how.act(turn);

    const result = await runtime.settle(turn.result);
    await runtime.runUntilIdle();
    expect(result.stopReason).toBe(stopReason);
    expect([session.turn, queued(session), session.turns]).toStrictEqual([undefined, ['b'], 1]);

    // It is still there in another process.
    await session.close();
    const later = await reopen(store, [repeat('later')]);
    expect(queued(later.session)).toStrictEqual(['b']);
    if (stopReason === 'suspended') {
      expect(await codeOf(() => later.session.runQueued())).toBe('turn_open');
      return;
    }
    expect(await later.session.runQueued()?.result).toMatchObject({ text: 'later' });
    expect(queued(later.session)).toStrictEqual([]);
  });

  it.each(Object.entries(PUMPS))('A8 is started by %s', async (_, { replies, stopReason, ...how }) => {
    const { session, runtime } = await startAgent([...replies, repeat('later')], { tools: [echoTool()], ...('options' in how && how.options) });
    const turn = session.run('a');
    await runtime.flush();
    await session.followUp('b');

    expect((await runtime.settle(turn.result)).stopReason).toBe(stopReason);
    await runtime.settle(session.idle());
    expect(session.turns).toBe(2);
    expect(said(session).slice(-2)).toStrictEqual(['user: b', 'assistant: later']);
  });

  it('A9 that was held stays so through an undo, a compaction and a hold', async () => {
    const { session, runtime } = await startAgent([delayed('ok', 10), hanging(), repeat('later')]);
    await runtime.settle(session.run('first').result);
    const turn = session.run('a');
    await runtime.flush();
    await session.followUp('b');
    turn.abort();
    await turn.result;

    await session.undo();
    session.hold()();
    await session.compact().catch(() => undefined);
    await runtime.flush();
    expect([session.status, queued(session)]).toStrictEqual(['idle', ['b']]);
  });

  it('A8 that was held goes on behind the next turn, and with the next input', async () => {
    const { session, runtime } = await startAgent(({ messages }) => (textOf(messages.at(-1)) === 'a' ? hanging() : 'ok'));
    for (const input of ['b', 'c']) {
      const turn = session.run('a');
      await runtime.flush();
      await session.followUp(input);
      turn.abort();
      await turn.result;
      expect(queued(session)).toStrictEqual([input]);
      if (input === 'b') await session.run('next').result;
      else await session.followUp('next');
      await session.idle();
      expect(queued(session)).toStrictEqual([]);
    }
    expect(said(session).filter((line) => line.startsWith('user') && line !== 'user: a')).toStrictEqual([
      'user: next', 'user: b', 'user: c', 'user: next',
    ]);
  });

  it('A8 waits behind a suspended turn, and goes on once that has ended', async () => {
    const { session } = await startAgent([toolCall('echo'), '1', '2'], { tools: [echoTool()], hooks: [suspendAll()] });
    await session.run('a').result;
    await session.followUp('b');
    expect([session.status, queued(session)]).toStrictEqual(['suspended', ['b']]);

    await session.resume({ decisions: session.pending().map(({ toolCallId }) => ({ toolCallId, action: 'allow' as const })) }).result;
    await session.idle();
    expect(said(session).slice(-3)).toStrictEqual(['assistant: 1', 'user: b', 'assistant: 2']);
  });
});

describe('a hold', () => {
  it('V4 keeps what is queued from starting, and is refused while a turn runs', async () => {
    const gate = gatedTool();
    const { session, runtime } = await startAgent(['1', toolCall('gate'), '2'], { tools: [gate] });
    const release = session.hold();
    const input = await session.followUp('a');
    await runtime.flush();
    expect([session.status, session.runQueued(), queued(session)]).toStrictEqual(['idle', undefined, ['a']]);

    release();
    expect((await (await input.turn)?.result)?.text).toBe('1');
    session.run('b');
    await gate.started();
    expect(await codeOf(() => session.hold())).toBe('turn_running');
    gate.finish();
    await session.idle();
  });

  it('V4 counts: the last of several lets go, and each only once', async () => {
    const { session, runtime } = await startAgent(['1']);
    const [one, two] = [session.hold(), session.hold()];
    await session.followUp('a');
    one();
    one();
    await runtime.flush();
    expect(queued(session)).toStrictEqual(['a']);
    two();
    await session.idle();
    expect(queued(session)).toStrictEqual([]);
  });

  it('V6 that is released when the session is closed starts nothing', async () => {
    const { session, llm, runtime } = await startAgent(['1']);
    const release = session.hold();
    const input = await session.followUp('a');
    await session.close();
    release();
    await runtime.flush();
    expect(llm.callCount).toBe(0);
    expect(await input.turn).toBeUndefined();
  });
});

describe('the queue of a process that died', () => {
  it('A8 E9 PQ1 is there again, in order, without what was taken back or delivered', async () => {
    const store = crashingStore({ at: ({ type }) => type === 'tool.finished' });
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), 'never'], { tools: [gate], sessions: store });
    session.run('a');
    await gate.started();
    await session.followUp('b');
    const taken = await session.followUp('c');
    await session.followUp('d');
    await taken.cancel();
    gate.finish();
    await store.crashed;

    const later = await reopen(await store.survivor(), ['1', '2', '3'], { tools: [gate] });
    expect([later.session.status, queued(later.session)]).toStrictEqual(['interrupted', ['b', 'd']]);
    expect(later.llm.callCount).toBe(0);
    await later.session.resume().result;
    await later.session.idle();
    expect(said(later.session)).toStrictEqual([
      'user: a', 'assistant: gate()', 'tool call_1: done', 'assistant: 1', 'user: b', 'assistant: 2', 'user: d', 'assistant: 3',
    ]);
  });

  it.each(['turn.begin', 'message', 'step.begin', 'turn.end'])('E9 A19 delivers a queued input once when it died at the %s of its turn', async (at) => {
    const store = crashingStore({ at: ({ type }) => type === at });
    const { session } = await startAgent(['ok'], { sessions: store });
    await session.followUp('a');
    await store.crashed;

    const later = await reopen(await store.survivor(), ['ok']);
    if (later.session.openTurn() !== undefined) await later.session.resume().result;
    await later.session.idle();
    expect(queued(later.session)).toStrictEqual([]);
    expect(said(later.session)).toStrictEqual(['user: a', 'assistant: ok']);
    expect(later.session.turns).toBe(1);
  });

  it('PQ4 BR-032 does not have again what was steered into a turn', async () => {
    const gate = gatedTool();
    const store = crashingStore({ at: (event) => event.type === 'message' && event.message.origin === 'steering' });
    const { session } = await startAgent([toolCall('gate'), 'never'], { tools: [gate], sessions: store });
    session.run('a');
    await gate.started();
    await session.followUp('b');
    void session.steerQueued();
    gate.finish();
    await store.crashed;

    const later = await reopen(await store.survivor(), ['ok'], { tools: [gate] });
    expect(queued(later.session)).toStrictEqual([]);
    await later.session.resume().result;
    expect(said(later.session).slice(-2)).toStrictEqual(['user: b', 'assistant: ok']);
  });

  it('PQ5 starts nothing by itself when the session is opened', async () => {
    const store = crashingStore({ at: ({ type }) => type === 'input.queued' });
    const { session } = await startAgent([], { sessions: store });
    void session.followUp('a');
    await store.crashed;

    const later = await reopen(await store.survivor(), ['ok']);
    await later.session.undo();
    expect(await hasSettled(later.runtime, later.session.idle())).toBe(true);
    expect([later.session.status, queued(later.session), later.llm.callCount]).toStrictEqual(['idle', ['a'], 0]);
  });
});

describe('the queue of a session that is closed', () => {
  it('V6 is not started any more, and is kept for the next time', async () => {
    const gate = gatedTool({ ignoresAbort: false });
    const { session, store } = await startAgent([toolCall('gate'), 'never'], { tools: [gate, hangingTool()] });
    session.run('a');
    await gate.started();
    const input = await session.followUp('b');
    const late = session.followUp('c');
    await session.close();

    expect(await input.turn).toBeUndefined();
    expect(await (await late).turn).toBeUndefined();
    expect(await codeOf(() => session.followUp('d'))).toBe('session_closed');
    expect(await input.cancel()).toBe(false);
    const later = await reopen(store);
    expect(queued(later.session)).toStrictEqual(['b', 'c']);
  });
});
