/** Scenario: a long session with a small window: results are cleared, texts folded, the history summarised, and some requests are too long. */
import { type AnyTool, attemptChat, decorateLLM, type LLM, LLMError } from 'turnloop';
import { createAgent } from 'turnloop/agent';
import { createTokenEstimator } from 'turnloop/context';
import { inProcessSessionStore } from 'turnloop/sessions';
import type { Scenario, SimulatedLife } from 'turnloop/testing/simulation';
import { chainLLM } from './chain-llm.ts';
import { useSession } from './use-session.ts';

export const contextScenario: Scenario = {
  name: 'context',
  build: (world) => {
    const lengths = Array.from({ length: 2 + world.int(3) }, () => world.int(9));
    const contextWindow = 4_000 + world.int(3_000);
    const resultWords = world.pick([20, 200, 900]);
    const ran: string[] = [];
    const store = inProcessSessionStore();
    return {
      live: async (life) => {
        const llm = chainLLM({ lengths, tool: 'work' }, { contextWindow });
        const agent = createAgent({
          llm: life.llm(refusing(llm, contextWindow)),
          tools: [workTool(life, { ran, resultWords })],
          context: { outputReserve: 500, keepMessages: 4 },
          sessions: life.sessions(store),
          runtime: life.runtime,
        });
        await useSession(life, agent, { prompts: lengths.map((_, index) => `Prompt ${index}`), decide: (toolCallId) => ({ toolCallId, action: 'allow' }) });
      },
      outcome: () => [...ran].sort(),
      check: ({ fired, isAborted }) => {
        const planned = lengths.flatMap((length, prompt) => Array.from({ length }, (_, step) => `Prompt ${prompt} step ${step + 1}`));
        if (fired.length === 0 && !isAborted && JSON.stringify(ran) !== JSON.stringify(planned)) throw new Error(`the steps were ${ran.join(', ')}, and ${planned.join(', ')} were planned`);
      },
    };
  },
};

/** Refuses what is longer than its window, as servers do. */
function refusing(llm: LLM, window: number): LLM {
  const estimator = createTokenEstimator();
  return decorateLLM(llm, async (request) => {
    const tokens = estimator.estimateRequest(request, llm);
    if (tokens > window) throw new LLMError({ kind: 'context_overflow', message: `The request has ${tokens} tokens, and the window ${window}.` });
    return attemptChat(llm, request);
  });
}

function workTool(life: SimulatedLife, { ran, resultWords }: { readonly ran: string[]; readonly resultWords: number }): AnyTool {
  return life.tool({
    name: 'work',
    description: 'Works.',
    inputSchema: { type: 'object', properties: { chain: { type: 'string' } }, required: ['chain'] },
    replay: 'idempotent',
    execute: async (input) => {
      const { chain } = input as { readonly chain: string };
      if (!ran.includes(chain)) ran.push(chain);
      return `${chain}: ${'word '.repeat(resultWords)}`;
    },
  });
}
