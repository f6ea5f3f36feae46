/** Scenario: an agent that remembers from one session to the next, in a store that fails, hangs and is slow. */
import { createAgent } from 'turnloop/agent';
import { createMemory, hashEmbedder, inProcessMemoryStore } from 'turnloop/memory';
import { inProcessSessionStore } from 'turnloop/sessions';
import { virtualRuntime } from 'turnloop/testing';
import type { Scenario } from 'turnloop/testing/simulation';
import { plannedLLM } from './planned-llm.ts';
import { assertAll, assertOnce, type Effect, plannedTools, plannedTurns } from './planned-tools.ts';
import { useSession } from './use-session.ts';

export const memoryScenario: Scenario = {
  name: 'memory',
  build: async (world) => {
    const turns = plannedTurns(world, { turns: 3, steps: 2, calls: 2 });
    const extracts = world.chance(0.5);
    const embeds = world.chance(0.5);
    const effects: Effect[] = [];
    const store = inProcessSessionStore();
    const memories = inProcessMemoryStore();
    const runtime = virtualRuntime({ idPrefix: 'before_' });
    await createMemory({ store: memories, runtime }).add({ text: 'The user pays with a card.', scope: 'user', scopeId: 'u' });
    return {
      live: async (life) => {
        const llm = life.llm(plannedLLM(turns));
        const memory = createMemory({
          store: life.memory(memories),
          ...(extracts && { llm: life.llm(plannedLLM([], 'extractor')) }),
          ...(embeds && { embedder: hashEmbedder() }),
          runtime: life.runtime,
        });
        const agent = createAgent({ llm, tools: plannedTools(life, effects), memory, sessions: life.sessions(store), runtime: life.runtime });
        await useSession(life, agent, { prompts: turns.map(({ prompt }) => prompt), decide: (toolCallId) => ({ toolCallId, action: 'allow' }) });
      },
      outcome: () => effects.map(({ tool }) => tool).sort(),
      check: ({ fired, isAborted }) => {
        assertOnce(effects);
        if (fired.every(({ boundary }) => boundary === 'memory') && !isAborted) assertAll(effects, turns);
      },
    };
  },
};
