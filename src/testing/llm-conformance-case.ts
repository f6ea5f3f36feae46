/** Case: what the files of cases are lists of. */
import type { Trial } from './llm-conformance-trial.ts';

/** A case, before it has an LLM to run on. */
export interface CaseDefinition {
  /** What an adapter does that passes, as a sentence. */
  readonly title: string;
  /** Throws what is wrong. */
  readonly run: (trial: Trial) => Promise<void>;
}

/** Cases by id. */
export type CaseList<Id extends string> = Readonly<Record<Id, CaseDefinition>>;
