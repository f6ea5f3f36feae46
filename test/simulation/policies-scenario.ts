/** Scenario: models that fail by themselves, behind retries, fallbacks, a circuit breaker, a rate limit, timeouts and a budget. */
import { attemptChat, decorateLLM, type LLM, LLMError } from 'turnloop';
import { createAgent } from 'turnloop/agent';
import { createBudget, createCircuitBreaker, createRateLimit, withCircuitBreaker, withFallback, withRateLimit, withTimeouts } from 'turnloop/policies';
import { inProcessSessionStore } from 'turnloop/sessions';
import type { Scenario, SimulatedLife, SimulatedWorld } from 'turnloop/testing/simulation';
import { plannedLLM, type PlannedTurn } from './planned-llm.ts';
import { assertOnce, type Effect, plannedTools, plannedTurns } from './planned-tools.ts';
import { useSession } from './use-session.ts';

export const policiesScenario: Scenario = {
  name: 'policies',
  build: (world) => {
    const turns = plannedTurns(world, { turns: 3, steps: 3, calls: 2 });
    const plan = planOf(world);
    const effects: Effect[] = [];
    const store = inProcessSessionStore();
    return {
      live: async (life) => {
        const agent = createAgent({
          llm: modelOf(life, { turns, plan }),
          tools: plannedTools(life, effects),
          maxSteps: plan.maxSteps,
          ...(plan.maxTokens > 0 && { budget: createBudget({ maxTokens: plan.maxTokens, outputReserve: 10 }) }),
          ...(plan.isGuarded && { guardrails: { input: [{ name: 'polite', check: () => undefined }] } }),
          sessions: life.sessions(store),
          runtime: life.runtime,
        });
        await useSession(life, agent, { prompts: turns.map(({ prompt }) => prompt), decide: (toolCallId) => ({ toolCallId, action: 'allow' }) });
      },
      outcome: () => effects.map(({ tool }) => tool).sort(),
      check: () => assertOnce(effects),
    };
  },
};

interface PolicyPlan {
  readonly failsEvery: number;
  readonly kind: 'server' | 'rate_limit' | 'network' | 'auth';
  readonly policies: readonly string[];
  readonly maxSteps: number;
  readonly maxTokens: number;
  readonly isGuarded: boolean;
}

function planOf(world: SimulatedWorld): PolicyPlan {
  return {
    failsEvery: world.pick([0, 2, 3, 5]),
    kind: world.pick(['server', 'rate_limit', 'network', 'auth']),
    policies: ['fallback', 'breaker', 'rate limit', 'timeouts'].filter(() => world.chance(0.5)),
    maxSteps: world.pick([0, 2, 25]),
    maxTokens: world.pick([0, 0, 60, 200]),
    isGuarded: world.chance(0.3),
  };
}

function modelOf(life: SimulatedLife, { turns, plan }: { readonly turns: readonly PlannedTurn[]; readonly plan: PolicyPlan }): LLM {
  const one = life.llm(failing(plannedLLM(turns, 'one'), plan));
  const { policies } = plan;
  let llm: LLM = one;
  if (policies.includes('timeouts')) llm = withTimeouts(llm);
  if (policies.includes('rate limit')) llm = withRateLimit(llm, createRateLimit({ requestsPerMinute: 20 }));
  if (policies.includes('breaker')) llm = withCircuitBreaker(llm, createCircuitBreaker());
  if (policies.includes('fallback')) llm = withFallback([llm, life.llm(plannedLLM(turns, 'two'))]);
  return llm;
}

/** Fails at every n-th request. */
function failing(llm: LLM, { failsEvery, kind }: PolicyPlan): LLM {
  let requests = 0;
  return decorateLLM(llm, async (request) => {
    requests += 1;
    if (failsEvery > 0 && requests % failsEvery === 0) throw new LLMError({ kind, message: `planned: ${kind}`, ...(kind === 'rate_limit' && { retryAfterMs: 500 }) });
    return attemptChat(llm, request);
  });
}
