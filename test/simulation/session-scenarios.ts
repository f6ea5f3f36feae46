/** Scenarios of sessions: turns with tools of every kind, calls that a person decides about, a queue; in a process and in files. */
import { userMessage } from 'turnloop';
import { createAgent, type Session } from 'turnloop/agent';
import { fileSessionStore, inProcessSessionStore, type SessionStore } from 'turnloop/sessions';
import type { Scenario, SimulatedLife, SimulatedWorld } from 'turnloop/testing/simulation';
import { MemoryDisk } from './memory-disk.ts';
import { plannedLLM } from './planned-llm.ts';
import { assertAll, assertOnce, type Effect, plannedTools, plannedTurns } from './planned-tools.ts';
import { useSession } from './use-session.ts';

/** A session in the process: whatever its store does, it does at once. */
export const sessionScenario: Scenario = sessionOf('session', () => {
  const store = inProcessSessionStore();
  return (life) => life.sessions(store);
});

/** A session in files, on a disk that fails and tears what it writes. */
export const filesScenario: Scenario = sessionOf('files', () => {
  const disk = new MemoryDisk();
  return (life) => {
    disk.buryOwners();
    return life.sessions(fileSessionStore('/sessions', { files: life.disk(disk), runtime: life.runtime }));
  };
});

function sessionOf(name: string, createStore: () => (life: SimulatedLife) => SessionStore): Scenario {
  return {
    name,
    build: (world) => {
      const turns = plannedTurns(world, { turns: 3, steps: 3, calls: 4 });
      const needsApproval = world.chance(0.4);
      const denies = world.chance(0.2);
      const meanwhile = plannedHost(world);
      const effects: Effect[] = [];
      const storeOf = createStore();
      return {
        live: async (life) => {
          const agent = createAgent({
            llm: life.llm(plannedLLM(turns)),
            tools: plannedTools(life, effects),
            ...(needsApproval && { approval: { rules: [{ tool: 'pay', decision: 'ask' }, { decision: 'allow' }] } }),
            sessions: storeOf(life),
            runtime: life.runtime,
          });
          await useSession(life, agent, { prompts: turns.map(({ prompt }) => prompt), decide: (toolCallId) => ({ toolCallId, action: denies ? 'deny' : 'allow' }), meanwhile: (session) => meanwhile(life, session) });
        },
        outcome: () => effects.map(({ tool }) => tool).sort(),
        check: ({ fired, isAborted }) => {
          assertOnce(effects);
          if (fired.length === 0 && !isAborted && !(needsApproval && denies)) assertAll(effects, turns);
        },
      };
    },
  };
}

type Meanwhile = (life: SimulatedLife, session: Session) => Promise<void>;

/** What the host does while a turn runs: nothing, or it queues a prompt, steers, or both. */
function plannedHost(world: SimulatedWorld): Meanwhile {
  const does = world.pick(['nothing', 'nothing', 'queues', 'steers', 'steers what is queued']);
  const after = world.int(20);
  return async (life, session) => {
    if (does === 'nothing') return;
    await life.pause(after);
    if (life.signal.aborted) return;
    if (does === 'steers') void session.turn?.steer(userMessage('By the way.'));
    else if (session.queue.length === 0) await session.followUp('Later.').catch(() => undefined);
    if (does === 'steers what is queued') await session.steerQueued().catch(() => undefined);
  };
}
