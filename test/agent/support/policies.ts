/** Policies in short, for tests of sessions. */
import type { Hook } from 'turnloop';
import { type Budget, createBudget as create } from 'turnloop/policies';

/** A hook that asks a person about every call. */
export function suspendAll(name = 'ask'): Hook {
  return { name, authorizeToolCall: () => ({ action: 'suspend' }) };
}

/** A budget of so many tokens. */
export function createBudget(tokens: number): Budget {
  return create({ maxTokens: tokens });
}
