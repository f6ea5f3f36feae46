/** Scenario: an agent that dispatches sub-agents, which dispatch others, with calls that a person decides about and a shared budget. */
import { createAgent } from 'turnloop/agent';
import { createBudget } from 'turnloop/policies';
import { inProcessSessionStore } from 'turnloop/sessions';
import type { Scenario, SimulatedWorld } from 'turnloop/testing/simulation';
import { plannedLLM, type PlannedCall, type PlannedTurn } from './planned-llm.ts';
import { assertAll, assertOnce, type Effect, plannedTools, plannedTurns } from './planned-tools.ts';
import { useSession } from './use-session.ts';

const MAX_DEPTH = 2;

export const subAgentScenario: Scenario = {
  name: 'sub-agents',
  build: (world) => {
    const tasks: PlannedTurn[] = [];
    const turns = plannedTurns(world, { turns: 2, steps: 2, calls: 2 }).map((turn) => dispatching(world, turn, { tasks, depth: 0 }));
    const needsApproval = world.chance(0.4);
    const hasBudget = world.chance(0.2);
    const maxTokens = 200 + world.int(400);
    const effects: Effect[] = [];
    const store = inProcessSessionStore();
    return {
      live: async (life) => {
        const tools = plannedTools(life, effects);
        const agent = createAgent({
          llm: life.llm(plannedLLM(turns)),
          tools,
          subAgents: { types: { worker: { description: 'Works.', llm: life.llm(plannedLLM(tasks, 'worker')), tools } }, maxDepth: MAX_DEPTH, maxParallel: 3 },
          ...(needsApproval && { approval: { rules: [{ tool: 'pay', decision: 'ask' }, { decision: 'allow' }] } }),
          ...(hasBudget && { budget: createBudget({ maxTokens, outputReserve: 10 }) }),
          sessions: life.sessions(store),
          runtime: life.runtime,
        });
        await useSession(life, agent, { prompts: turns.map(({ prompt }) => prompt), decide: (toolCallId) => ({ toolCallId, action: 'allow' }) });
      },
      outcome: () => effects.map(({ tool }) => tool).sort(),
      check: ({ fired, isAborted }) => {
        assertOnce(effects);
        if (fired.length === 0 && !isAborted && !hasBudget) assertAll(effects, [...turns, ...tasks].map(withoutDispatches));
      },
    };
  },
};

interface Dispatching {
  readonly tasks: PlannedTurn[];
  readonly depth: number;
}

/** Has some calls of a turn dispatched instead, each with a task of its own. */
function dispatching(world: SimulatedWorld, turn: PlannedTurn, { tasks, depth }: Dispatching): PlannedTurn {
  const dispatch = (call: PlannedCall): PlannedCall => {
    if (depth === MAX_DEPTH || !world.chance(depth === 0 ? 0.4 : 0.15)) return call;
    const prompt = `Task ${tasks.length}`;
    const task: PlannedTurn = { prompt, steps: [[call], ...(world.chance(0.5) ? [[{ tool: 'look', input: { at: 'a', number: 9 } }]] : [])] };
    const place = tasks.push(task) - 1;
    tasks[place] = dispatching(world, task, { tasks, depth: depth + 1 });
    return { tool: 'dispatch_agent', input: { type: 'worker', prompt } };
  };
  return { ...turn, steps: turn.steps.map((calls) => calls.map(dispatch)) };
}

function withoutDispatches(turn: PlannedTurn): PlannedTurn {
  return { ...turn, steps: turn.steps.map((calls) => calls.filter(({ tool }) => tool !== 'dispatch_agent')) };
}
