/**
 * Answering model: which model really answers behind an `LLM`. A fallback bears the name of its first model, and what is
 * learned of the second must not be taken for the first's.
 *
 * Remembered by the `LLM` object, in memory: whoever makes a new one for each step asks under its own name.
 */
import type { LLM } from '../core/llm.ts';
import type { EstimatedModel } from './token-estimator.ts';

const answering = new WeakMap<LLM, EstimatedModel>();

/** The model that answered or refused last behind an `LLM`; itself where none else did. */
export function answeringModel(llm: LLM): EstimatedModel {
  return answering.get(llm) ?? llm;
}

/** Who answered or refused, as far as a reply or an error tells. */
export interface Answerer {
  readonly provider?: string | undefined;
  readonly modelId?: string | undefined;
}

/** Remembers who answered or refused, and names it: the `LLM` itself unless another provider's model stood behind it. */
export function noteAnswer(llm: LLM, { provider, modelId }: Answerer): EstimatedModel {
  // Of the same provider it is the same one: a model's full name is often longer than what it was asked by.
  const model = provider === undefined || modelId === undefined || provider === llm.provider ? llm : { provider, modelId };
  answering.set(llm, model);
  return model;
}
