/**
 * Sessions over random scripts: what a session is in memory is what its log says, with and without a snapshot; the record keeps
 * the laws whatever is done; every input is said exactly once.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Hook, textOf, type ToolCallDecision } from 'turnloop';
import { type Agent, createAgent, type Session } from 'turnloop/agent';
import { inProcessSessionStore, type SessionStore } from 'turnloop/sessions';
import { checkTranscript, echoTool, scriptedLLM, toolCall, virtualRuntime, type VirtualRuntime } from 'turnloop/testing';
import { crashingStore, type CrashingStore, turnEvents } from './support/crashing-store.ts';

/** What a person or a host does with a session. What makes no sense at the moment is left out. */
type Act =
  | { readonly type: 'run'; readonly says: Says; readonly denyPending: boolean }
  | { readonly type: 'followUp'; readonly says: Says; readonly cancel: boolean; readonly steer: boolean }
  | { readonly type: 'resume'; readonly decisions: readonly ToolCallDecision['action'][] }
  | { readonly type: 'undo'; readonly prompts: number }
  | { readonly type: 'abort' | 'runQueued' | 'reopen' | 'wait' };

/** What an input makes the model do: the words stand in the input. */
type Says = 'answer' | 'call' | 'ask' | 'both' | 'transfer' | 'fail';

const says = fc.constantFrom<Says>('answer', 'call', 'ask', 'both', 'transfer', 'fail');
const action = fc.constantFrom<ToolCallDecision['action']>('allow', 'deny', 'edit', 'answer');
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ type: fc.constant('run' as const), says, denyPending: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('followUp' as const), says, cancel: fc.boolean(), steer: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('resume' as const), decisions: fc.array(action, { maxLength: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('undo' as const), prompts: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constantFrom('abort' as const, 'runQueued' as const, 'reopen' as const, 'wait' as const) }) },
);

const asks: Hook = { name: 'ask', authorizeToolCall: (_, { name }) => (name === 'ask' ? { action: 'suspend' } : undefined) };

function agentOn(sessions: SessionStore, runtime: VirtualRuntime): Agent {
  const llm = scriptedLLM(({ messages }) => {
    const last = messages.findLast(({ role }) => role === 'user');
    const isAnswered = messages.at(-1)?.role === 'tool';
    const word = textOf(last).split(' ')[0];
    if (isAnswered) return 'Done.';
    if (word === 'call') return [toolCall('echo', { text: 'c' }), toolCall('echo', { text: 'd' })];
    if (word === 'ask') return toolCall('ask', { text: 'a' });
    if (word === 'both') return [toolCall('ask', { text: 'a' }), toolCall('echo', { text: 'b' }), toolCall('ask', { text: 'c' })];
    if (word === 'transfer') return [toolCall('transfer_to_other'), toolCall('echo', { text: 'e' })];
    if (word === 'fail') return new Error('out of order');
    return { content: 'An answer.', delayMs: 5 };
  });
  const tools = [echoTool({ replay: 'idempotent' }), echoTool({ name: 'ask', replay: 'idempotent' })];
  const common = { llm, runtime, tools, hooks: [asks], retry: false, timeouts: false, loopGuard: false } as const;
  const other: Agent = createAgent({ ...common, name: 'other', handoffs: () => [agent] });
  const agent: Agent = createAgent({ ...common, sessions, handoffs: () => [other] });
  return agent;
}

/** All that a session says of itself. */
function stateOf(session: Session): object {
  const { usage, turns, agent, status } = session;
  return { usage, turns, agent, status, messages: session.messages(), open: session.openTurn(), queue: session.queue.map(({ message }) => message), pending: session.pending() };
}

/** The session as another process finds it. */
async function found(store: CrashingStore, use: 'snapshot' | 'log'): Promise<object> {
  let kept = await store.survivor();
  if (use === 'log') {
    const { events } = await kept.read('s');
    kept = inProcessSessionStore();
    await (await kept.create({ sessionId: 's', createdAt: 0, events })).close();
  }
  const session = await agentOn(kept, virtualRuntime({ idPrefix: 'x' })).openSession({ resumeSessionId: 's' });
  expect(session.repairs).toStrictEqual([]);
  return stateOf(session);
}

/** What a script has done. */
interface Played {
  readonly session: Session;
  readonly store: CrashingStore;
  /** Inputs that the session took, without those taken back. */
  readonly given: readonly string[];
}

async function play(script: readonly Act[], check: (session: Session, store: CrashingStore) => Promise<void>): Promise<Played> {
  const store = crashingStore();
  const runtime = virtualRuntime();
  const agent = agentOn(store, runtime);
  let session = await agent.openSession({ sessionId: 's' });
  const given: string[] = [];
  let count = 0;
  const input = (word: Says): string => `${word} ${(count += 1)}`;

  for (const step of script) {
    switch (step.type) {
      case 'run': {
        const isFree = session.status === 'idle' || (step.denyPending && session.status !== 'running');
        if (!isFree) break;
        const text = input(step.says);
        given.push(text);
        session.run(text, { denyPending: step.denyPending });
        await runtime.flush();
        break;
      }
      case 'followUp': {
        const text = input(step.says);
        given.push(text);
        const queued = await session.followUp(text);
        if (step.steer) void session.steerQueued();
        if (step.cancel && (await queued.cancel())) given.splice(given.indexOf(text), 1);
        break;
      }
      case 'resume': {
        if (session.status !== 'suspended') break;
        const decisions = session.pending().flatMap(({ toolCallId }, index): ToolCallDecision[] => {
          const chosen = step.decisions[index];
          if (chosen === undefined) return [];
          if (chosen === 'edit') return [{ toolCallId, action: chosen, input: { text: 'edited' } }];
          return [chosen === 'answer' ? { toolCallId, action: chosen, result: 'answered' } : { toolCallId, action: chosen }];
        });
        session.resume({ decisions });
        await runtime.flush();
        break;
      }
      case 'undo':
        if (session.status === 'idle') await session.undo({ prompts: step.prompts });
        break;
      case 'abort':
        session.turn?.abort();
        if (session.turn !== undefined) await runtime.settle(session.turn.result);
        break;
      case 'runQueued':
        if (session.status === 'idle') session.runQueued();
        await runtime.flush();
        break;
      case 'reopen':
        await runtime.settle(session.close());
        session = await agent.openSession({ resumeSessionId: 's' });
        break;
      case 'wait':
        await runtime.settle(session.idle());
    }
    await runtime.flush();
    if (session.turn === undefined) await check(session, store);
  }
  await runtime.settle(session.idle());
  return { session, store, given };
}

const scripts = fc.array(act, { minLength: 1, maxLength: 14 });

describe('a session', () => {
  it('E10 E11 BR-116 law-2 is in memory what its log says, and what a snapshot with the events behind it says', async () => {
    await fc.assert(
      fc.asyncProperty(scripts, async (script) => {
        await play(script, async (session, store) => {
          const now = plain(stateOf(session));
          expect(plain(await found(store, 'log'))).toStrictEqual(now);
          expect(plain(await found(store, 'snapshot'))).toStrictEqual(now);
        });
      }),
      { numRuns: 120 },
    );
  });

  it('law-1 law-2 law-3 law-9 keeps the laws in its record, and takes snapshots between turns only', async () => {
    await fc.assert(
      fc.asyncProperty(scripts, async (script) => {
        const { session, store } = await play(script, () => Promise.resolve());
        const events = await session.events();
        expect(checkTranscript(turnEvents(events))).toStrictEqual([]);
        for (const { events: covered } of store.snapshots) {
          const before = turnEvents(events.slice(0, covered));
          expect(['turn.end', 'compaction', undefined]).toContain(before.at(-1)?.type);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('A8 PQ1 BR-032 says every input exactly once, or has it queued still', async () => {
    await fc.assert(
      fc.asyncProperty(scripts, async (script) => {
        const { session, given } = await play(script, () => Promise.resolve());
        const events = await session.events();
        const saidTexts = events.flatMap((event) => (event.type === 'message' && event.message.origin !== 'reminder' ? [textOf(event.message)] : []));
        const queuedTexts = session.queue.map(({ message }) => textOf(message));
        expect([...saidTexts, ...queuedTexts].sort()).toStrictEqual([...given].sort());
        // Those that waited came in their order.
        const order = new Map(events.flatMap((event) => (event.type === 'input.queued' ? [event.message.id] : [])).map((id, index) => [id, index]));
        const places = session.queue.map(({ message }) => order.get(message.id) ?? -1);
        expect(places).toStrictEqual([...places].sort((left, right) => left - right));
      }),
      { numRuns: 150 },
    );
  });
});

function plain(value: object): unknown {
  return JSON.parse(JSON.stringify(value));
}
