/** Scenario: agents that hand the conversation to each other, with tools of their own, in one session. */
import { type AnyTool } from 'turnloop';
import { type Agent, createAgent } from 'turnloop/agent';
import { inProcessSessionStore } from 'turnloop/sessions';
import type { Scenario, SimulatedLife, SimulatedWorld } from 'turnloop/testing/simulation';
import { plannedLLM, type PlannedTurn } from './planned-llm.ts';
import { assertAll, assertOnce, type Effect, plannedTools, plannedTurns } from './planned-tools.ts';
import { useSession } from './use-session.ts';

export const handoffScenario: Scenario = {
  name: 'handoffs',
  build: (world) => {
    const turns = withHandoffs(world, plannedTurns(world, { turns: 3, steps: 3, calls: 2 }));
    const store = inProcessSessionStore();
    const effects: Effect[] = [];
    return {
      live: async (life) => {
        const tools = plannedTools(life, effects);
        const [front] = agentsOf(life, { turns, tools, sessions: life.sessions(store) });
        await useSession(life, front, { prompts: turns.map(({ prompt }) => prompt), decide: (toolCallId) => ({ toolCallId, action: 'allow' }) });
      },
      outcome: () => effects.map(({ tool }) => tool).sort(),
      check: ({ fired, isAborted }) => {
        assertOnce(effects);
        const planned = turns.map((turn) => ({ ...turn, steps: turn.steps.map((calls) => calls.filter(({ tool }) => !tool.startsWith('transfer_to_'))) }));
        if (fired.length === 0 && !isAborted) assertAll(effects, planned);
      },
    };
  },
};

interface Cast {
  readonly turns: readonly PlannedTurn[];
  readonly tools: readonly AnyTool[];
  readonly sessions: ReturnType<SimulatedLife['sessions']>;
}

function agentsOf(life: SimulatedLife, { turns, tools, sessions }: Cast): readonly [Agent, Agent] {
  const agentOf = (name: string, other: () => Agent): Agent =>
    createAgent({ name, llm: life.llm(plannedLLM(turns, name)), systemPrompt: `You are ${name}.`, tools, handoffs: () => [other()], sessions, runtime: life.runtime });
  const front: Agent = agentOf('front', () => back);
  const back: Agent = agentOf('back', () => front);
  return [front, back];
}

/** Lets some steps end by a handoff to whoever does not have the conversation then. */
function withHandoffs(world: SimulatedWorld, turns: readonly PlannedTurn[]): readonly PlannedTurn[] {
  let other = 'back';
  return turns.map((turn) => ({
    ...turn,
    steps: turn.steps.map((calls) => {
      if (!world.chance(0.4)) return calls;
      const handoff = { tool: `transfer_to_${other}`, input: { reason: 'It is yours.' } };
      other = other === 'back' ? 'front' : 'back';
      return [...calls, handoff];
    }),
  }));
}
