/**
 * Learn window: what a refusal teaches of a model's window, and for how long replies may be.
 *
 * - A window that the refusal names counts. Else all that was asked for, the reply included, was too much.
 * - Bounded: at less than half of what the window is said to be, or than any window has, something else was too much, and
 *   nothing is learned.
 * - Learned for the model that refused, be it behind a fallback: the next request is measured for that one.
 */
import { isLLMError } from '../core/errors.ts';
import type { LLM, LLMRequest } from '../core/llm.ts';
import { answeringModel, noteAnswer } from './answering-model.ts';
import { contextWindow, declaredTokens, windowTokens, type WindowKnowledge } from './context-window.ts';
import { overflowFigures } from './overflow-figures.ts';
import type { TokenEstimator } from './token-estimator.ts';

/** A refusal tells that it was too much, not by how much; and it is known as an estimate. */
const SHARE_OF_REFUSED = 0.95;
/** Below this share of the window as it is said to be, no refusal is believed to tell of it. */
const BELIEVED_SHARE = 0.5;

/** Where nothing is said of the window, no refusal makes it smaller than any that is in use. */
const LEAST_WINDOW = 2_048;

/** What was refused. */
export interface RefusedRequest {
  readonly request: LLMRequest;
  /** The model as it was asked, decorators included. */
  readonly llm: LLM;
  readonly error: unknown;
}

/** What is known of the window, and what learns. */
export type WindowLearner = WindowKnowledge & { readonly estimator: TokenEstimator };

/** Learns the window from a refusal. */
export function learnWindow(refused: RefusedRequest, learner: WindowLearner): void {
  const { request, llm, error } = refused;
  if (!isLLMError(error)) return;
  noteAnswer(llm, error);
  const { window: named, tokens } = overflowFigures(error.message);
  const window = named ?? inferredWindow(refused, learner, tokens);
  if (window === undefined) return;
  learner.estimator.observeOverflow(request, answeringModel(llm), { window, tokens });
}

/** The window that a refusal without words of it tells of; undefined if it tells of none. */
function inferredWindow({ request, llm }: RefusedRequest, learner: WindowLearner, tokens: number | undefined): number | undefined {
  const { estimator, outputReserve } = learner;
  const input = tokens ?? estimator.estimateRequest(request, answeringModel(llm));
  // What is said of a fallback is said of its first model, not of the one that refused.
  const said = answeringModel(llm) === llm ? (learner.window ?? declaredTokens(llm)) : undefined;
  const isInputAlone = learner.window === undefined && llm.capabilities?.maxInputTokens !== undefined;
  const output = request.maxOutputTokens ?? contextWindow(llm, { window: said ?? input, outputReserve })?.outputTokens ?? 0;
  const most = Math.floor((isInputAlone ? input : input + output) * SHARE_OF_REFUSED);
  if (most < (said === undefined ? LEAST_WINDOW : said * BELIEVED_SHARE)) return undefined;
  return Math.max(1, Math.min(most, windowTokens(llm, learner) ?? most));
}
