/**
 * Agent seat: one agent's place in a session. Its model, tools and hooks.
 *
 * - The list of tools is the same array from step to step, as long as the host's is.
 * - The system prompt is made once in a turn.
 */
import type { Hook } from '../core/hooks.ts';
import { isRecord } from '../core/json.ts';
import type { LLM } from '../core/llm.ts';
import type { AnyTool } from '../core/tool.ts';
import { toolSet } from '../core/tool-input.ts';
import type { StepInfo } from '../core/turn-options.ts';
import { approval } from '../policies/approval.ts';
import { continuePaused } from '../policies/continue-paused.ts';
import { loopGuard } from '../policies/loop-guard.ts';
import type { PromptInfo } from './agent-options.ts';
import type { AgentParts } from './agent-parts.ts';
import { withGuardrails } from './guardrails.ts';
import { assembleSystemPrompt, withSystemPrompt, type SystemPromptParts } from './system-prompt.ts';

/** What a turn tells the agents that take part in it. */
export interface SeatTurn extends PromptInfo {
  /** Body of a skill for this turn. */
  readonly skill: string | undefined;
}

export class AgentSeat {
  /** The agent as it was made. */
  readonly own: AgentParts;
  /** The agent as it is in this session. */
  readonly parts: AgentParts;
  /** Steps that it had in the turn, in this process. */
  steps = 0;
  /** The agent's own hooks, in order. */
  readonly hooks: readonly Hook[];
  readonly #addTools: () => readonly AnyTool[];
  #tools: { readonly given: readonly AnyTool[]; readonly all: readonly AnyTool[] } | undefined;
  #turn: SeatTurn | undefined;
  #llm: Promise<LLM> | undefined;

  /** @param addTools - Gives the tools that the session adds to the agent's; asked when there is a turn. */
  constructor({ own, parts }: Pick<AgentSeat, 'own' | 'parts'>, addTools: () => readonly AnyTool[]) {
    this.own = own;
    this.parts = parts;
    this.#addTools = addTools;
    const { options } = parts;
    const { request } = options;
    this.hooks = [
      // The turn's own are those of the agent that the session was opened with.
      ...(parts === own || request === undefined ? [] : [{ name: 'agent.request', beforeStep: () => request }]),
      ...(options.hooks ?? []),
      ...(options.approval === undefined ? [] : [approval(options.approval)]),
      ...(options.loopGuard === false ? [] : [loopGuard(options.loopGuard ?? {})]),
      ...(options.continuePaused === false ? [] : [continuePaused(options.continuePaused ?? {})]),
      ...(parts.answer?.hooks ?? []),
    ];
  }

  beginTurn(turn: SeatTurn): void {
    this.#turn = turn;
    this.#llm = undefined;
    this.steps = 0;
  }

  /** Lets go of what the turn was given. */
  endTurn(): void {
    this.#turn = undefined;
    this.#llm = undefined;
  }

  /** The model, with the turn's prompt. */
  llm(): Promise<LLM> {
    this.#llm ??= this.#prompted();
    return this.#llm;
  }

  async #prompted(): Promise<LLM> {
    const { options, llm } = this.parts;
    const { systemPrompt } = options;
    const turn = this.#turn;
    if (turn === undefined) return llm;
    const { sessionId, turnId, host, skill } = turn;
    const { guardrails } = options;
    const guarded = guardrails === undefined ? llm : withGuardrails(llm, { host, ...guardrails });
    if (systemPrompt === undefined && skill === undefined) return guarded;
    const given: unknown = typeof systemPrompt === 'function' ? await systemPrompt({ sessionId, turnId, host }) : systemPrompt;
    return withSystemPrompt(guarded, assembleSystemPrompt({ ...sectionsOf(given ?? llm.systemPrompt), ...(skill !== undefined && { skill }) }));
  }

  /** @throws TypeError for tools that make no sense together, as far as they are known before there is a turn. */
  assertTools(): void {
    const { tools = [] } = this.parts.options;
    toolSet([...(typeof tools === 'function' ? [] : tools), ...this.parts.tools, ...this.#addTools()]);
  }

  /** The tools of a step. */
  async tools(info: StepInfo): Promise<readonly AnyTool[]> {
    const { tools = [] } = this.parts.options;
    const given = typeof tools === 'function' ? await tools(info) : tools;
    assertList(given);
    if (this.#tools?.given !== given) this.#tools = { given, all: [...given, ...this.parts.tools, ...this.#addTools()] };
    return this.#tools.all;
  }
}

function assertList(tools: unknown): void {
  if (!Array.isArray(tools)) throw new TypeError('createAgent: `tools` must give a list of tools. For example: createAgent({ llm, tools: () => [search] }).');
}

function sectionsOf(given: unknown): SystemPromptParts {
  if (typeof given === 'string') return { base: given };
  if (isRecord(given)) return given;
  throw new TypeError('`systemPrompt` must give a text or sections. For example: createAgent({ llm, systemPrompt: () => "Be brief." }).');
}
