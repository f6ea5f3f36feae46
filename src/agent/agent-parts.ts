/** Agent parts: what stands behind an agent, for sessions and for other agents. */
import type { LLM } from '../core/llm.ts';
import { withBudget } from '../policies/with-budget.ts';
import { isRetrying, withRetry } from '../policies/retry.ts';
import { withTimeouts } from '../policies/timeouts.ts';
import type { Agent } from './agent.ts';
import type { AgentOptions } from './agent-options.ts';

/** What stands behind an agent. */
export interface AgentParts {
  readonly name: string;
  readonly options: AgentOptions<unknown>;
  /** The model with everything around it that the options ask for. */
  readonly llm: LLM;
}

const parts = new WeakMap<Agent<unknown>, AgentParts>();

/** Notes what stands behind an agent. */
export function rememberParts(agent: Agent<unknown>, own: AgentParts): void {
  parts.set(agent, own);
}

/** What stands behind an agent. @throws TypeError for one that `createAgent` did not make. */
export function partsOf(agent: Agent<unknown>): AgentParts {
  const own = parts.get(agent);
  if (own === undefined) throw new TypeError('`handoffs` holds something that createAgent did not make. For example: createAgent({ llm, handoffs: [billing] }).');
  return own;
}

/** The model as an agent asks it: limited in time, within the budget, and again after a passing failure. */
export function policedLLM({ llm, retry, timeouts, budget }: AgentOptions<unknown>): LLM {
  // Whoever put a retry around it has chosen: times that run over all its attempts would end it early.
  const isOwn = isRetrying(llm);
  const isTimed = timeouts !== false && (timeouts !== undefined || !isOwn);
  const timed = isTimed ? withTimeouts(llm, timeouts ?? {}) : llm;
  const budgeted = budget === undefined ? timed : withBudget(timed, budget);
  const isRetried = retry !== false && (retry !== undefined || !isOwn);
  return isRetried ? withRetry(budgeted, retry ?? {}) : budgeted;
}
