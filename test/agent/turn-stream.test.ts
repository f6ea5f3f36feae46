/** The events of a turn in the hands of readers and listeners: late, slow, twice, never, failing; and what is left of a turn. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import type { AgentTurnEvent, Turn } from 'turnloop/agent';
import { echoTool, gatedTool, recordingTool, repeat, thinking, toolCall } from 'turnloop/testing';
import { watchRejections } from '../core/support.ts';
import { codeOf, said, startAgent, types } from './support/session-kit.ts';

/** All events of a turn from now on. */
async function read(turn: Turn): Promise<readonly AgentTurnEvent[]> {
  const events: AgentTurnEvent[] = [];
  for await (const event of turn) events.push(event);
  return events;
}

const RECORDED = ['turn.begin', 'message', 'step.begin', 'usage', 'tool.call', 'tool.start', 'tool.finished', 'tool.result', 'step.end', 'step.begin', 'usage', 'content.part', 'step.end', 'turn.end'];
const REPLIES = [toolCall('echo', { text: 'a' }), 'Done.'];

describe('the events of a turn', () => {
  it('E14 come to who iterates at once, live ones among them, and end with the turn', async () => {
    const { session } = await startAgent([[thinking('Hm.'), toolCall('echo')], 'Done.'], { tools: [echoTool()] });
    const events = await read(session.run('Hello.'));

    expect(types(events)).toStrictEqual([...RECORDED.slice(0, 4), 'content.part', ...RECORDED.slice(4)]);
    expect(events.flatMap((event) => ('text' in event ? [event.text] : []))).toStrictEqual(['Hm.', 'Done.']);
  });

  it('E14 come to who begins late: recorded ones from the first, live ones from then on', async () => {
    const gate = gatedTool();
    const { session } = await startAgent(['', toolCall('gate'), 'Done.'].slice(1), { tools: [gate] });
    const turn = session.run('a');
    await gate.started();
    const late = read(turn);
    gate.finish();

    const events = await late;
    expect(types(events)).toStrictEqual(RECORDED);
    expect(events.filter(({ type }) => type === 'tool.call.delta')).toStrictEqual([]);
    expect(events.filter(({ type }) => type === 'text.delta')).toHaveLength(1);
  });

  it('E14 come to who begins when the turn is over, again and again', async () => {
    const { session } = await startAgent(REPLIES, { tools: [echoTool()] });
    const turn = session.run('a');
    await turn.result;
    expect(types(await read(turn))).toStrictEqual(RECORDED);
    expect(await read(turn)).toStrictEqual(await read(turn));
  });

  it('E14 come to each of several readers whole, one that leaves early included in nothing else', async () => {
    const { session } = await startAgent(REPLIES, { tools: [echoTool()] });
    const turn = session.run('a');
    const [one, two] = [read(turn), read(turn)];
    for await (const event of turn) if (event.type === 'step.begin') break;

    expect(types(await one)).toStrictEqual(RECORDED);
    expect(await two).toStrictEqual(await one);
    expect(await turn.result).toMatchObject({ stopReason: 'end_turn', text: 'Done.' });
  });

  it('E14 are asked for ahead by readers that call next several times, and each is given once', async () => {
    const { session } = await startAgent(REPLIES, { tools: [echoTool()] });
    const iterator = session.run('a')[Symbol.asyncIterator]();
    const asked = Array.from({ length: 40 }, () => iterator.next());
    const given = await Promise.all(asked);
    const events = given.flatMap(({ done, value }) => (done === true ? [] : [value]));

    expect(types(events)).toStrictEqual(RECORDED);
    expect(given.at(-1)).toStrictEqual({ done: true, value: undefined });
    expect(await iterator.next()).toStrictEqual({ done: true, value: undefined });
  });

  it('E14 end for a reader that leaves while it waits', async () => {
    const gate = gatedTool();
    const { session } = await startAgent([toolCall('gate'), 'ok'], { tools: [gate] });
    const turn = session.run('a');
    await gate.started();
    const iterator = turn[Symbol.asyncIterator]();
    let next = await iterator.next();
    while (next.done !== true && next.value.type !== 'tool.start') next = await iterator.next();
    const waiting = iterator.next();
    await iterator.return?.();

    expect(await waiting).toStrictEqual({ done: true, value: undefined });
    gate.finish();
    expect(await turn.result).toMatchObject({ text: 'ok' });
  });

  it('law-7 E14 do not wait for a slow reader, who still gets them all', async () => {
    const { session } = await startAgent([{ content: 'x'.repeat(5_000), chunk: 1 }]);
    const turn = session.run('a');
    const iterator = turn[Symbol.asyncIterator]();
    await iterator.next();
    await turn.result;
    expect(session.status).toBe('idle');

    let text = '';
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) if (next.value.type === 'text.delta') text += next.value.text;
    expect(text).toHaveLength(5_000);
  });

  it('E14 need nobody who reads', async () => {
    const rejections = watchRejections();
    const { session, runtime } = await startAgent(REPLIES, { tools: [echoTool()] });
    session.run('a');
    await session.idle();
    await runtime.flush();
    rejections.stop();
    expect([said(session).at(-1), rejections.reasons]).toStrictEqual(['assistant: Done.', []]);
  });

  it('E14 leave the session free as soon as the iteration is over, or the result is there', async () => {
    const { session } = await startAgent([repeat('ok')]);
    await read(session.run('a'));
    await read(session.run('b'));
    await session.run('c').result;
    expect(await codeOf(() => session.run('d').result)).toMatchObject({ stopReason: 'end_turn' });
  });

  it('law-13 misuse rejects the result and the iteration with the same TypeError, and leaves the session usable', async () => {
    const rejections = watchRejections();
    const { session, runtime } = await startAgent(['ok']);
    const turn = session.run('a', { signal: 'no signal' as never });

    await expect(read(turn)).rejects.toThrow(TypeError);
    await expect(turn.result).rejects.toThrow(/"signal"/);
    await expect(read(turn)).rejects.toThrow(/"signal"/);
    // Nobody has to look.
    session.run('a', { signal: 'no signal' as never });
    await session.idle();
    await runtime.flush();
    rejections.stop();
    expect(rejections.reasons).toStrictEqual([]);
    expect(await session.events()).toStrictEqual([]);
    expect(await session.run('b').result).toMatchObject({ text: 'ok' });
  });
});

describe('a listener of a session', () => {
  it.each(['throws', 'rejects'])('law-7 that %s at every event changes nothing, and is told of', async (mode) => {
    const scene = async (listens: boolean): Promise<unknown> => {
      const problems: Error[] = [];
      const { session } = await startAgent([...REPLIES, 'More.'], { tools: [echoTool()], onProblem: (problem) => problems.push(problem) });
      if (listens) {
        session.subscribe(() => {
          if (mode === 'throws') throw new Error('bad listener');
          return Promise.reject(new Error('bad listener'));
        });
      }
      await session.run('a').result;
      await session.followUp('b');
      await session.idle();
      await session.undo();
      if (listens) expect(problems.length).toBeGreaterThan(10);
      return session.events();
    };

    const rejections = watchRejections();
    expect(await scene(true)).toStrictEqual(await scene(false));
    rejections.stop();
    expect(rejections.reasons).toStrictEqual([]);
  });

  it('law-7 that fails where even the one who is told fails changes nothing', async () => {
    const { session } = await startAgent(['ok'], {
      onProblem: () => {
        throw new Error('nobody is left');
      },
    });
    session.subscribe(() => {
      throw new Error('bad');
    });
    expect(await session.run('a').result).toMatchObject({ text: 'ok' });
  });

  it('E14 hears every turn until it is taken away, as often as it was put in, also from within', async () => {
    const { session } = await startAgent([repeat('ok')]);
    const heard: string[] = [];
    const listener = ({ type }: { readonly type: string }): void => void heard.push(type);
    const [first, second] = [session.subscribe(listener), session.subscribe(listener)];
    const once = session.subscribe(() => once());
    await session.run('a').result;
    expect(heard.filter((type) => type === 'turn.end')).toHaveLength(2);
    first();
    first();
    await session.run('b').result;
    expect(heard.filter((type) => type === 'turn.end')).toHaveLength(3);
    second();
    await session.run('c').result;
    expect(heard.filter((type) => type === 'turn.end')).toHaveLength(3);
  });

  it('E14 may act on the session from within: queue an input, steer, abort', async () => {
    const { session } = await startAgent([toolCall('echo'), repeat('ok')] , { tools: [echoTool()] });
    session.subscribe((event) => {
      if (event.type !== 'tool.finished') return;
      void session.followUp('next');
      session.turn?.abort('enough');
    });
    expect(await session.run('a').result).toMatchObject({ stopReason: 'aborted', stopMessage: 'enough' });
    await session.idle();
    expect(session.queue.map(({ message }) => message.content)).toStrictEqual([[{ type: 'text', text: 'next' }]]);
  });
});

describe('what is left of a turn that is over', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const cleared = async (refs: readonly WeakRef<object>[]): Promise<number> => {
    for (let round = 0; round < 10; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      collect();
    }
    return refs.filter((ref) => ref.deref() === undefined).length;
  };

  it('BR-131 law-4 is its history alone: no turn, no host value, no event', async () => {
    const refs: WeakRef<object>[] = [];
    const { session } = await startAgent(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'ok' : toolCall('record')), {
      tools: [recordingToolWithoutRuns()],
      llmOptions: { keepRequests: false },
      context: false,
      loopGuard: false,
    });
    for (let index = 0; index < 20; index += 1) {
      await (async () => {
        const host = { index };
        const controller = new AbortController();
        const turn = session.run('a', { host, signal: controller.signal });
        refs.push(new WeakRef(host), new WeakRef(turn), new WeakRef(controller.signal));
        for await (const event of turn) if (event.type === 'tool.finished') refs.push(new WeakRef(event));
        await turn.result;
      })();
    }
    expect(await cleared(refs)).toBe(refs.length);
    expect(session.turns).toBe(20);
  });

  it('BR-131 is nothing once its session is closed', async () => {
    const refs: WeakRef<object>[] = [];
    const { agent } = await startAgent(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'ok' : toolCall('record')), {
      tools: [recordingToolWithoutRuns()],
      llmOptions: { keepRequests: false },
    });
    for (let index = 0; index < 20; index += 1) {
      await (async () => {
        const sessionId = `session-${index}`;
        const session = await agent.openSession({ sessionId });
        await session.run('a', { host: {} }).result;
        refs.push(new WeakRef(session));
        await session.close();
        await agent.sessions.delete(sessionId);
      })();
    }
    expect(await cleared(refs)).toBe(refs.length);
  });
});

/** A tool that remembers nothing. */
function recordingToolWithoutRuns(): ReturnType<typeof recordingTool> {
  return { ...recordingTool(), execute: () => 'x'.repeat(100) };
}
