/** The endless session: a simulated coding session far longer than the model's window, to hold context policies against. */
import { createContextPolicy } from 'turnloop/context';
import { summariseAlways, tailTrim } from './naive-policies.ts';
import type { SessionPolicy } from './play-session.ts';

export { playSession, type SessionPolicy, type SessionReport } from './play-session.ts';
export type { Rule } from './request-checks.ts';
export { figuresOf, outputLine, table } from './report.ts';

/** Policies by name. Each call makes one anew. */
export const POLICIES: Readonly<Record<string, () => SessionPolicy>> = {
  turnloop: () => createContextPolicy(),
  'tail-trim': tailTrim,
  'summarise-always': summariseAlways,
};
