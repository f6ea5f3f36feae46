/** Law 9 for sessions: the process dies behind any event of a session, and the session that is opened again ends as it would have. */
import { describe, expect, it } from 'vitest';
import type { Hook, ToolCallDecision } from 'turnloop';
import { type AgentOptions, createAgent, type Session } from 'turnloop/agent';
import type { SessionStore } from 'turnloop/sessions';
import { checkTranscript, recordingTool, type Reply, scriptedLLM, type TestTool, toolCall, virtualRuntime } from 'turnloop/testing';
import { crashingStore, turnEvents } from './support/crashing-store.ts';
import { queued, story, types } from './support/session-kit.ts';

/** What is done with a session, whatever has happened of it before. */
interface Scenario {
  /** Replies by how many replies the history has: the same in each process. */
  readonly replies: readonly Reply[];
  readonly options?: Partial<AgentOptions>;
  /** Inputs, each given once: by `run` while none waits, else by `followUp`. */
  readonly inputs: readonly string[];
  /** Whether the inputs behind the first are queued while it runs. */
  readonly queues?: boolean;
  /** Takes back the last message, once all inputs are answered. */
  readonly undoes?: boolean;
}

/** One process of a session. */
interface Played {
  readonly session: Session;
  /** Runs of the tools, by call. */
  readonly runs: readonly string[];
}

/** A model that answers by how long the conversation is. */
function modelOf(replies: readonly Reply[], assistantsBefore: number = 0): ReturnType<typeof scriptedLLM> {
  return scriptedLLM(({ messages }) => {
    const index = messages.filter(({ role }) => role === 'assistant').length - assistantsBefore;
    return replies[index] ?? 'No more.';
  });
}

function decide(session: Session): readonly ToolCallDecision[] {
  return session.pending().map(({ toolCallId, input }) => ({ toolCallId, action: 'edit' as const, input: { ...(input as object), by: 'a person' } }));
}

/** Opens the session, and does whatever is left to do. */
async function play(scenario: Scenario, sessions: SessionStore, idPrefix = ''): Promise<Played> {
  const runtime = virtualRuntime({ idPrefix });
  const tools: TestTool[] = (['safe', 'idempotent'] as const).map((replay) =>
    recordingTool({ name: replay, replay, execute: (input) => `${replay} ${JSON.stringify(input)}` }),
  );
  const billing = createAgent({ name: 'billing', llm: modelOf(scenario.replies), runtime, tools });
  const agent = createAgent({ llm: modelOf(scenario.replies), runtime, sessions, tools, handoffs: [billing], loopGuard: false, ...scenario.options });
  const session = await agent.openSession({ sessionId: 's', resumeSessionId: 's' });

  const goOn = async (): Promise<void> => {
    await session.idle();
    while (session.openTurn() !== undefined) {
      await session.resume({ decisions: decide(session) }).result;
      await session.idle();
    }
    session.runQueued();
    await session.idle();
  };
  await goOn();
  while (session.openTurn() !== undefined || session.queue.length > 0) await goOn();
  const isKnown = async (input: string): Promise<boolean> =>
    (await session.events()).some((event) => (event.type === 'message' || event.type === 'input.queued') && JSON.stringify(event.message.content).includes(`"${input}"`));
  for (const [index, input] of scenario.inputs.entries()) {
    if (await isKnown(input)) continue;
    if (scenario.queues === true && index === 0) {
      // Once it is sure to be kept.
      for await (const { type } of session.run(input)) if (type === 'message') break;
      for (const next of scenario.inputs.slice(1)) await session.followUp(next);
      await goOn();
    } else {
      await session.run(input).result;
    }
    while (session.openTurn() !== undefined || session.queue.length > 0) await goOn();
  }
  if (scenario.undoes === true && !types(await session.events()).includes('compaction')) await session.undo();
  return { session, runs: tools.flatMap(({ runs }) => runs.map(({ toolCallId }) => toolCallId)) };
}

const suspendIdempotent: Hook = { name: 'ask', authorizeToolCall: (_, { name }) => (name === 'idempotent' ? { action: 'suspend' } : undefined) };

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'two turns with tools': {
    inputs: ['one', 'two'],
    replies: [[toolCall('safe', { n: 1 }), toolCall('idempotent', { n: 2 })], 'First.', toolCall('idempotent', { n: 3 }), 'Second.'],
  },
  'a turn that waits for a person': {
    inputs: ['one'],
    options: { hooks: [suspendIdempotent] },
    replies: [[toolCall('idempotent', { n: 1 }), toolCall('safe', { n: 2 })], 'Done.'],
  },
  'inputs that are queued': {
    inputs: ['one', 'two', 'three'],
    queues: true,
    replies: [toolCall('safe', { n: 1 }), 'First.', 'Second.', 'Third.'],
  },
  'a handoff': {
    inputs: ['one', 'two'],
    replies: [[toolCall('transfer_to_billing'), toolCall('idempotent', { n: 1 })], toolCall('safe', { n: 2 }), 'Paid.', 'Again.'],
  },
  'an undo': { inputs: ['one', 'two'], undoes: true, replies: ['First.', 'Second.'] },
};

describe.each(Object.entries(SCENARIOS))('a session with %s', (_, scenario) => {
  it('law-9 A19 E11 ends as it would have, behind whichever event its process died', async () => {
    const whole = crashingStore();
    const undisturbed = await play(scenario, whole);
    const count = whole.appended.length;
    expect(count).toBeGreaterThan(10);

    for (let at = 1; at <= count; at += 1) {
      const store = crashingStore({ at });
      void play(scenario, store);
      await store.crashed;
      const survivor = await store.survivor();
      const before = (await survivor.read('s')).events;
      const { session, runs } = await play(scenario, survivor, 'b');

      const where = `behind event ${at}, ${String(whole.appended[at - 1]?.type)}`;
      expect(story(session), where).toStrictEqual(story(undisturbed.session));
      expect([session.status, session.agent, queued(session), session.turns], where).toStrictEqual([
        'idle', undisturbed.session.agent, [], undisturbed.session.turns,
      ]);
      // What had finished did not run again, and the log only grew.
      const finished = before.flatMap((event) => (event.type === 'tool.finished' ? [event.toolCallId] : []));
      expect(runs.filter((id) => finished.includes(id)), where).toStrictEqual([]);
      const events = await session.events();
      expect(events.slice(0, before.length), where).toStrictEqual(before);
      expect(checkTranscript(turnEvents(events), { complete: true }), where).toStrictEqual([]);
    }
  });

  it('law-9 E11 the same for a process that dies while another crash is being gone on from', async () => {
    const undisturbed = await play(scenario, crashingStore());
    for (const [first, second] of [[3, 2], [5, 1], [6, 4], [8, 3], [10, 2]] as const) {
      const one = crashingStore({ at: first });
      void play(scenario, one);
      await one.crashed;
      const two = await one.survivor();
      const dying = dieAfter(two, second);
      void play(scenario, dying.store, 'b');
      await dying.crashed;
      const { session } = await play(scenario, await dying.survivor(), 'c');

      expect(story(session), `${first}, then ${second}`).toStrictEqual(story(undisturbed.session));
      expect(checkTranscript(turnEvents(await session.events()), { complete: true })).toStrictEqual([]);
    }
  });
});

/** A crashing store that begins with what another has. */
function dieAfter(kept: SessionStore, at: number): { readonly store: SessionStore; readonly crashed: Promise<void>; survivor(): Promise<SessionStore> } {
  const store = crashingStore({ at });
  const filled = (async () => {
    const { header, events } = await kept.read('s');
    await (await store.create({ sessionId: 's', createdAt: header.createdAt, events })).close();
  })();
  return {
    store: { ...store, open: async (id) => { await filled; return store.open(id); } },
    crashed: store.crashed,
    survivor: () => store.survivor(),
  };
}
