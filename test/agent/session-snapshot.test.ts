/** Snapshots (E10, E11): when one is taken, what it has and never has, and that a session begun from it is the same. */
import { describe, expect, it } from 'vitest';
import { type JsonValue, textOf } from 'turnloop';
import { createContextPolicy } from 'turnloop/context';
import { SESSION_VERSION, type SessionStore } from 'turnloop/sessions';
import { anthropic } from 'turnloop/providers/anthropic';
import { createAgent } from 'turnloop/agent';
import { echoTool, gatedTool, repeat, toolCall, virtualRuntime } from 'turnloop/testing';
import { crashingStore } from './support/crashing-store.ts';
import { suspendAll } from './support/policies.ts';
import { queued, reopen, said, startAgent } from './support/session-kit.ts';

describe('a snapshot', () => {
  it('E10 is taken when the session is closed, if something happened since the last', async () => {
    const store = crashingStore();
    const { session, agent } = await startAgent([repeat('ok')], { sessions: store });
    await session.run('a').result;
    expect(store.snapshots).toHaveLength(0);
    await session.close();
    expect(store.snapshots).toHaveLength(1);
    await (await agent.openSession({ resumeSessionId: 's' })).close();
    expect(store.snapshots).toHaveLength(1);
  });

  it('E10 says what the events came to, between turns', async () => {
    const store = crashingStore();
    const { session } = await startAgent([toolCall('echo', { text: 'x' }), 'Done.'], { sessions: store, tools: [echoTool()], llmOptions: { usage: { inputTokens: 7 } } });
    await session.run('a').result;
    session.hold();
    await session.followUp('later');
    await session.close();

    expect(store.snapshots[0]).toMatchObject({
      version: SESSION_VERSION,
      sessionId: 's',
      events: store.appended.length,
      turns: 1,
      steps: 2,
      usage: { inputTokens: 14, outputTokens: 0 },
      queue: [{ content: [{ type: 'text', text: 'later' }] }],
    });
    expect(store.snapshots[0]?.transcript.messages).toStrictEqual(session.messages());
  });

  it('E10 is taken now and then between turns, as rarely as the history is long, and never while a turn is open', async () => {
    const store = crashingStore();
    const { session } = await startAgent([repeat('ok')], { sessions: store });
    for (let index = 0; index < 300; index += 1) await session.run('a').result;
    await session.idle();

    // Each costs as much as the history has messages: in all it stays linear.
    const costs = store.snapshots.map(({ transcript }) => transcript.messages.length);
    expect(costs.length).toBeGreaterThan(3);
    expect(costs.reduce((sum, cost) => sum + cost, 0)).toBeLessThan(store.appended.length);
    for (const { events } of store.snapshots) expect(store.appended[events - 1]?.type).toBe('turn.end');
  });

  it('E10 is not taken of a turn that waits, whose events say it all', async () => {
    const store = crashingStore();
    const { session } = await startAgent(['1', toolCall('echo')], { sessions: store, tools: [echoTool()], hooks: [suspendAll()] });
    await session.run('a').result;
    await session.run('b').result;
    await session.close();
    expect(store.snapshots).toHaveLength(0);
    const later = await reopen(await store.survivor());
    expect([later.session.status, later.session.pending().length]).toStrictEqual(['suspended', 1]);
  });

  it('E10 waits for an input that is on its way into the log', async () => {
    const gate = gatedTool();
    const store = crashingStore();
    const { session } = await startAgent([toolCall('gate'), repeat('ok')], { sessions: store, tools: [gate] });
    session.run('a');
    await gate.started();
    const queueing = session.followUp('b');
    await session.close();
    await queueing;

    expect(store.snapshots[0]?.events).toBe(store.appended.length);
    expect(queued((await reopen(await store.survivor())).session)).toStrictEqual(['b']);
  });

  it('E10 covers what is in the log, also when an input is on its way into a slow one as a turn ends, or the session is closed', async () => {
    const store = crashingStore();
    const slow = slowInputs(store);
    const gate = gatedTool();
    const { session, runtime } = await startAgent(({ messages }) => (textOf(messages.at(-1)) === 'last' ? toolCall('gate') : 'ok'), { sessions: slow.store, tools: [gate] });
    for (let index = 0; index < 14; index += 1) await session.run('a').result;
    const before = store.snapshots.length;
    const turn = session.run('last');
    await gate.started();
    const queueing = session.followUp('b');
    gate.finish();
    await turn.result;
    expect(store.snapshots).toHaveLength(before);

    const closing = session.close();
    await runtime.flush();
    expect(store.snapshots).toHaveLength(before);
    slow.goOn();
    await queueing;
    await closing;
    expect(store.snapshots.at(-1)).toMatchObject({ events: store.appended.length, queue: [{ content: [{ text: 'b' }] }] });
  });

  it('E10 B12 law-12 has no key in it, and neither has the log', async () => {
    const apiKey = 'sk-ant-1234567890-secret';
    const store = crashingStore();
    const llm = anthropic({
      model: 'claude-sonnet-4-5',
      apiKey,
      fetch: () => Promise.resolve(new Response(JSON.stringify({ type: 'error', error: { type: 'authentication_error', message: `bad key ${apiKey}` } }), { status: 401 })),
    });
    const session = await createAgent({ llm, sessions: store, runtime: virtualRuntime(), retry: false }).openSession();
    await session.run('a').result;
    await session.close();

    expect(store.snapshots).toHaveLength(1);
    expect(JSON.stringify([store.snapshots, store.appended, await store.list()])).not.toContain('secret');
  });

  it('E10 keeps what the host has learned, and gives it back before anything runs', async () => {
    const store = crashingStore();
    const kept: JsonValue[] = [];
    const learned = (value: JsonValue) => ({ mine: { snapshot: (): JsonValue => value, restore: (state: JsonValue): void => void kept.push(state) } });
    const { session } = await startAgent(['ok'], { sessions: store, learned: learned({ circuit: 'open', failures: 3 }) });
    await session.run('a').result;
    await session.close();
    expect(kept).toStrictEqual([]);

    await reopen(await store.survivor(), [], { learned: learned(null) });
    expect(kept).toStrictEqual([{ circuit: 'open', failures: 3 }]);
  });

  it('E10 reports what the host could not give, and closes all the same', async () => {
    const problems: string[] = [];
    const { session, store } = await startAgent(['ok'], {
      onProblem: ({ message }) => problems.push(message),
      learned: {
        mine: {
          snapshot: () => {
            throw new Error('not now');
          },
          restore: () => undefined,
        },
      },
    });
    await session.run('a').result;
    await session.close();
    expect(problems).toStrictEqual(['not now']);
    expect(said((await reopen(store)).session)).toStrictEqual(['user: a', 'assistant: ok']);
  });

  it('E10 D1 keeps how the session counts tokens, but not for a policy that is the host\'s', async () => {
    const usage = { inputTokens: 900 };
    const state = async (context: Parameters<typeof startAgent>[1]): Promise<unknown> => {
      const store = crashingStore();
      const { session } = await startAgent([repeat('ok')], { sessions: store, llmOptions: { usage }, ...context });
      for (const input of ['a', 'b', 'c']) await session.run(input).result;
      await session.close();
      // It counts as it did from its first turn on.
      const problems: Error[] = [];
      const later = await reopen(await store.survivor(), [repeat('ok')], { llmOptions: { usage }, ...context, onProblem: (problem) => problems.push(problem) });
      await later.session.run('d').result;
      expect(problems).toStrictEqual([]);
      return store.snapshots[0]?.state;
    };
    expect(await state({})).toHaveProperty(['turnloop.estimator']);
    expect(await state({ context: createContextPolicy() })).toStrictEqual({});
    expect(await state({ context: false })).toStrictEqual({});
  });

  it('E10 with an estimator that cannot be read is used without it', async () => {
    const store = crashingStore();
    const { session } = await startAgent([repeat('ok')], { sessions: store });
    await session.run('a').result;
    await session.close();
    const survivor = await store.survivor();
    const log = await survivor.open('s');
    await log.load();
    await log.saveSnapshot({ ...store.snapshots[0]!, state: { 'turnloop.estimator': { version: 'x', samples: [1] } } });
    await log.close();

    const problems: string[] = [];
    const later = await reopen(survivor, ['ok'], { onProblem: ({ message }) => problems.push(message) });
    expect(await later.session.run('b').result).toMatchObject({ text: 'ok' });
    expect(problems).toHaveLength(1);
  });
});

/** A store that has written an input at once, and says so only when it is told to. */
function slowInputs(inner: SessionStore): { readonly store: SessionStore; goOn(): void } {
  let goOn = (): void => undefined;
  const gone = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const store: SessionStore = {
    ...inner,
    create: async (session) => {
      const log = await inner.create(session);
      return {
        header: log.header,
        load: () => log.load(),
        append: async (events) => {
          await log.append(events);
          if (events.some(({ type }) => type === 'input.queued')) await gone;
        },
        saveSnapshot: (snapshot) => log.saveSnapshot(snapshot),
        child: (id) => log.child(id),
        close: () => log.close(),
      };
    },
  };
  return { store, goOn };
}
