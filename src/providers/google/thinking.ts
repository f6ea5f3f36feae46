/**
 * Thinking: how much a model is asked to think, in the words of its generation.
 *
 * Models before Gemini 3 take a budget of tokens, newer ones a level; none of the newer can be told not to think.
 */
import type { LLMError } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';

/** The options that thinking is asked for with. */
export interface ThinkingOptions {
  readonly model: string;
  readonly thinkingEffort?: string | undefined;
  readonly thinkingBudget?: number | undefined;
  readonly showThinking?: boolean | undefined;
}

/** What a model's thinking is like, and what is asked of it. */
export interface GeminiThinking {
  /** Whether the model wants a signature with the first call of each reply. */
  readonly needsSignatures: boolean;
  /** Whether the model may have structured answers beside tools, and the server's tools beside the host's. */
  readonly combinesTools: boolean;
  /** Whether the least thinking is asked for, which not every model takes. */
  readonly asksForLeast: boolean;
  /** `thinkingConfig`; undefined to say nothing. @param isMinimalRefused - Whether the least is known to be refused. */
  config(isMinimalRefused: boolean): JsonObject | undefined;
}

/**
 * The signature of a call that Gemini did not make, as its documentation names it: the Gemini API knows two such words,
 * Vertex AI only this one.
 */
export const FOREIGN_SIGNATURE = 'skip_thought_signature_validator';

const FIRST_WITH_LEVELS = 3;
/** The same budgets as behind Google's own OpenAI-compatible API. */
const BUDGETS: ReadonlyMap<string, number> = new Map([
  ['minimal', 1024],
  ['low', 1024],
  ['medium', 8192],
  ['high', 24_576],
]);
/** Gemini 2.5 Pro takes no less. */
const LEAST_PRO_BUDGET = 128;

/**
 * Checks how much thinking is asked for.
 *
 * @throws TypeError for an effort and a budget, or an effort that has no budget.
 */
export function resolveThinking(options: ThinkingOptions): GeminiThinking {
  const { model, thinkingEffort: effort, thinkingBudget: budget, showThinking } = options;
  const hasLevels = versionOf(model) >= FIRST_WITH_LEVELS;
  if (effort !== undefined && budget !== undefined) {
    throw new TypeError('google: `thinkingEffort` and `thinkingBudget` exclude one another. Give one of them.');
  }
  const isLeast = effort === 'off' || effort === 'minimal';
  const asksForLeast = hasLevels && isLeast && !isPro(model);
  const amount = effort === undefined || hasLevels ? budget : budgetOf(effort, model);
  const includeThoughts = effort === 'off' ? false : (showThinking ?? (effort !== undefined || budget !== undefined ? budget !== 0 : undefined));

  function levelOf(isMinimalRefused: boolean): string | undefined {
    if (effort === undefined || !hasLevels) return undefined;
    if (!isLeast) return effort.toUpperCase();
    return asksForLeast && !isMinimalRefused ? 'MINIMAL' : 'LOW';
  }

  return {
    needsSignatures: hasLevels,
    combinesTools: hasLevels,
    asksForLeast,
    config(isMinimalRefused) {
      const level = levelOf(isMinimalRefused);
      if (level === undefined && amount === undefined && includeThoughts === undefined) return undefined;
      return {
        ...(level !== undefined && { thinkingLevel: level }),
        ...(amount !== undefined && { thinkingBudget: amount }),
        ...(includeThoughts !== undefined && { includeThoughts }),
      };
    },
  };
}

/** Whether a model said that it takes no `MINIMAL`. */
export function refusesLeast({ kind, message }: LLMError): boolean {
  return kind === 'invalid_request' && /thinking[ _]?level/i.test(message) && /minimal/i.test(message);
}

/** Such as 2.5; aliases for the newest model are newer than all, and what is no Gemini is older than all. */
function versionOf(model: string): number {
  const version = /gemini-(\d+(?:\.\d+)?)/.exec(model)?.[1];
  if (version !== undefined) return Number(version);
  return /gemini-[a-z-]*latest/.test(model) ? Infinity : 0;
}

function isPro(model: string): boolean {
  return /-pro(?![a-z])/.test(model);
}

function budgetOf(effort: string, model: string): number {
  if (effort === 'off') return isPro(model) ? LEAST_PRO_BUDGET : 0;
  const budget = BUDGETS.get(effort);
  if (budget !== undefined) return budget;
  throw new TypeError(`google: \`thinkingEffort\` of ${model} must be off, ${[...BUDGETS.keys()].join(', ')}. Give \`thinkingBudget\` for another amount.`);
}
