/** Agent parts: what stands behind an agent, for sessions and for other agents. */
import type { LLM } from '../core/llm.ts';
import type { AnyTool } from '../core/tool.ts';
import type { Budget } from '../policies/budget.ts';
import { withBudget } from '../policies/with-budget.ts';
import { isRetrying, withRetry } from '../policies/retry.ts';
import { withThinkTags } from '../policies/think-tags.ts';
import { withTimeouts } from '../policies/timeouts.ts';
import type { Agent } from './agent.ts';
import type { AgentOptions } from './agent-options.ts';
import { deferTools } from './deferred-tools.ts';
import { structuredOutput, type StructuredOutput } from './structured-output.ts';

/** What stands behind an agent. */
export interface AgentParts {
  readonly name: string;
  readonly options: AgentOptions;
  /** The model with what limits it and what asks again around it: sub-agents have it too. */
  readonly policed: LLM;
  /** The same as the agent's own turns ask it. */
  readonly llm: LLM;
  /** What makes its answer a value of a schema; undefined for text. */
  readonly answer: StructuredOutput<unknown> | undefined;
  /** Tools that belong to the agent whatever its `tools` are. */
  readonly tools: readonly AnyTool[];
  /** What may be spent: its own budget, and those of agents that it stands in for. */
  readonly budgets: readonly Budget[];
}

const parts = new WeakMap<Agent, AgentParts>();

/** Notes what stands behind an agent. */
export function rememberParts(agent: Agent, own: AgentParts): void {
  parts.set(agent, own);
}

/** What stands behind an agent. @throws TypeError for one that `createAgent` did not make. */
export function partsOf(agent: Agent): AgentParts {
  const own = parts.get(agent);
  if (own === undefined) throw new TypeError('`handoffs` holds something that createAgent did not make. For example: createAgent({ llm, handoffs: [billing] }).');
  return own;
}

/** Puts an agent together. */
export function agentParts(name: string, options: AgentOptions, budgets: readonly Budget[] = options.budget === undefined ? [] : [options.budget]): AgentParts {
  const policed = policedLLM(options, budgets);
  const deferred = options.deferredTools === undefined ? undefined : deferTools(options.deferredTools);
  const answer = options.output === undefined ? undefined : structuredOutput(options.output);
  const tools = [...(deferred?.tools ?? []), ...(answer?.toolsFor(policed) ?? [])];
  return { name, options, policed, llm: deferred?.wrap(policed) ?? policed, answer, tools, budgets };
}

/**
 * An agent as it takes over in a session that another one opened: what that one may spend and its hooks hold on, and so do its
 * approval and guardrails where the new one has none. Else a model would get rid of them by a handoff.
 */
export function takingOver(own: AgentParts, opener: AgentParts): AgentParts {
  if (own === opener) return own;
  const { hooks = [], approval = opener.options.approval, guardrails = opener.options.guardrails } = own.options;
  const { hooks: kept = [] } = opener.options;
  const options = { ...own.options, hooks: [...kept, ...hooks.filter((hook) => !kept.includes(hook))], approval, guardrails };
  return agentParts(own.name, options, [...new Set([...opener.budgets, ...own.budgets])]);
}

/** The model as an agent asks it: limited in time, within the budget, and again after a passing failure. */
export function policedLLM({ llm: given, retry, timeouts, thinkTags }: AgentOptions, budgets: readonly Budget[]): LLM {
  const llm = thinkTags === false ? given : withThinkTags(given, thinkTags ?? {});
  // Whoever put a retry around it has chosen: times that run over all its attempts would end it early.
  const isOwn = isRetrying(llm);
  const isTimed = timeouts !== false && (timeouts !== undefined || !isOwn);
  const timed = isTimed ? withTimeouts(llm, timeouts ?? {}) : llm;
  const budgeted = budgets.reduce((inner, budget) => withBudget(inner, budget), timed);
  const isRetried = retry !== false && (retry !== undefined || !isOwn);
  return isRetried ? withRetry(budgeted, retry ?? {}) : budgeted;
}
