/**
 * Fake model: an LLM with a real window. Counts each request with a real tokenizer, refuses what is over in its vendor's
 * words, answers the rest as the world says, and reports true usage. The same model writes summaries.
 *
 * Which refusals count: a request is too long if its input and the output it must leave room for exceed the window. The
 * refusal was *foreseeable* if the policy could have known: the sum is over what the model declares, or over 95 % of what it
 * was refused before with (an estimate is allowed to be 5 % off). Else it was *provoked*: by a model that says nothing of its
 * window, or takes less than it says.
 */
import type { LLM, LLMRequest, LLMResponse, ReplyPart } from 'turnloop';
import { createRefusingVendor, type RefusingVendor } from './refusals.ts';
import type { RequestChecks } from './request-checks.ts';
import type { TokenCounter } from './token-counter.ts';
import { type ModelPlan, OUTPUT, turnOf, type World } from './world.ts';

const SYSTEM_PROMPT = [
  'You are a coding agent in a repository that belongs to the user. Work step by step: look before you change something, change as little as the task needs, and run the tests afterwards.',
  'Use read_file, grep and list_dir to find your way. They change nothing, so call several of them at once where that saves time. Use edit_file for small changes and write_file for new files. Use bash for everything else, and never for what another tool does.',
  'Follow the conventions of the code around a change: its names, its error handling, its way to write tests. Add no dependency without asking. Write no comments that repeat the code.',
  'When a command fails, read its output before you try again. Do not repeat a call that failed with the same arguments. If you are stuck after three attempts, say what you tried and what you need.',
  'Answer in the language in which the user writes. At the end of a task say in a few sentences what you changed, in which files, and what you ran to check it. Name files as path:line.',
].join('\n\n');

/** A refusal may be within this of one before without being foreseeable: 5 % of error are granted to estimates. */
const KNOWN_SHARE = 0.95;
/**
 * What the adapter would send is held against the rules of its protocol in the first requests, every so many requests, and
 * after a change of the past, but then not at each of a row.
 */
const CHECKED_FIRST = 5;
const CHECKED_EVERY = 40;
const CHECKED_APART = 8;

/** What happened at the model so far. */
export interface ModelFigures {
  /** Requests of steps that were answered. */
  steps: number;
  stepInput: number;
  stepOutput: number;
  reusedInput: number;
  /** Tokens that steps added to an unchanged past, and how many did: what no policy can reuse. */
  grownInput: number;
  grownSteps: number;
  /** Of answered step requests but the first: what `reusedInput` is a share of. */
  followingInput: number;
  largestInput: number;
  summaries: number;
  summaryInput: number;
  summaryOutput: number;
  provoked: number;
  foreseeable: number;
  /** Refused requests of summaries, among the two above. */
  summariesRefused: number;
  /** Refusals, in words. */
  readonly refusals: string[];
}

export interface ModelContext {
  readonly world: World;
  readonly counter: TokenCounter;
  readonly checks: RequestChecks;
}

export interface FakeModels {
  /** The model of a turn, 1-based. */
  of(turn: number): LLM;
  readonly figures: ModelFigures;
}

export function createFakeModels({ world, counter, checks }: ModelContext): FakeModels {
  const figures: ModelFigures = {
    steps: 0,
    stepInput: 0,
    stepOutput: 0,
    reusedInput: 0,
    grownInput: 0,
    grownSteps: 0,
    followingInput: 0,
    largestInput: 0,
    summaries: 0,
    summaryInput: 0,
    summaryOutput: 0,
    provoked: 0,
    foreseeable: 0,
    summariesRefused: 0,
    refusals: [],
  };
  const models = new Map<ModelPlan, LLM>();
  let before: { readonly request: LLMRequest; readonly input: number } | undefined;
  let checkedAt = -Infinity;
  let turnNow = 1;

  function createModel(plan: ModelPlan): LLM {
    const vendor = createRefusingVendor(plan.vendor, plan.modelId);
    let smallestRefused = Infinity;
    const model: LLM = {
      provider: vendor.provider,
      modelId: plan.modelId,
      systemPrompt: SYSTEM_PROMPT,
      capabilities: plan.capabilities,
      chat,
    };
    return model;

    async function chat(request: LLMRequest): Promise<LLMResponse> {
      const input = counter.request(request, model);
      const output = request.maxOutputTokens ?? OUTPUT;
      const window = plan.windowIn(turnNow);
      if (input + output > window) throw await refuse(request, { input, output, window });
      return isSummary(request) ? summarise(input) : answer(request, input);
    }

    async function refuse(request: LLMRequest, excess: Parameters<RefusingVendor['refuse']>[1]): Promise<unknown> {
      const total = excess.input + excess.output;
      const declared = plan.capabilities?.contextWindow ?? Infinity;
      const isForeseeable = total > declared || total > smallestRefused * KNOWN_SHARE;
      smallestRefused = Math.min(smallestRefused, total);
      figures[isForeseeable ? 'foreseeable' : 'provoked'] += 1;
      if (isSummary(request)) figures.summariesRefused += 1;
      figures.refusals.push(
        `${isForeseeable ? 'FORESEEABLE' : 'provoked'} turn ${turnNow} step ${String(request.scope?.step)} ${isSummary(request) ? 'summary ' : ''}${plan.modelId}: ${excess.input} + ${excess.output} > ${excess.window}, declared ${declared}`,
      );
      const error = await vendor.refuse(request, excess);
      if (error.kind !== 'context_overflow') throw new Error(`The refusal was read as ${error.kind}: ${error.message}`);
      return error;
    }

    function summarise(input: number): LLMResponse {
      figures.summaries += 1;
      const content: readonly ReplyPart[] = [{ type: 'text', text: world.summary(figures.summaries) }];
      const output = counter.reply(content);
      figures.summaryInput += input;
      figures.summaryOutput += output;
      return { content, stopReason: 'end_turn', usage: { inputTokens: input, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: output, thinkingTokens: 0 } };
    }

    async function answer(request: LLMRequest, input: number): Promise<LLMResponse> {
      const turn = turnOf(request.scope?.turnId ?? '');
      const step = request.scope?.step ?? 0;
      checks.check(request, turn, step);
      const reused = before === undefined ? 0 : counter.commonPrefix(before.request, request, model);
      const isChanged = before !== undefined && reused < before.input;
      const sinceCheck = figures.steps - checkedAt;
      if (figures.steps < CHECKED_FIRST || sinceCheck >= CHECKED_EVERY || (isChanged && sinceCheck >= CHECKED_APART)) {
        for (const rule of await vendor.brokenRules(request)) checks.note('protocol', `turn ${turn}, step ${step}: ${rule}`);
        checkedAt = figures.steps;
      }
      if (before !== undefined) figures.followingInput += input;
      if (before !== undefined && !isChanged) {
        figures.grownInput += input - reused;
        figures.grownSteps += 1;
      }
      figures.reusedInput += reused;
      before = { request, input };
      const content = world.reply(turn, step);
      const output = counter.reply(content);
      figures.steps += 1;
      figures.stepInput += input;
      figures.stepOutput += output;
      figures.largestInput = Math.max(figures.largestInput, input);
      const stopReason = content.some((part) => part.type === 'tool_call') ? 'tool_use' : 'end_turn';
      return { content, stopReason, usage: { inputTokens: input - reused, cacheReadTokens: reused, cacheWriteTokens: 0, outputTokens: output, thinkingTokens: 0 } };
    }
  }

  return {
    figures,
    of(turn) {
      turnNow = turn;
      const plan = world.model(turn);
      const known = models.get(plan) ?? createModel(plan);
      models.set(plan, known);
      return known;
    },
  };
}

/** A request that may not call tools: steps of the session always may. */
function isSummary({ tools, toolChoice }: LLMRequest): boolean {
  return tools.length === 0 || toolChoice === 'none';
}
