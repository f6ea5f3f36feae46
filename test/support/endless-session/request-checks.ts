/**
 * Request checks: what must hold of every request of a session, whatever a policy did to the history. Each broken rule is
 * kept with the turn and step in which it was broken first.
 */
import { textOf, type LLMRequest, type Message } from 'turnloop';
import type { World } from './world.ts';

export type Rule = 'first-task' | 'newest-message' | 'pairs' | 'one-summary' | 'markers' | 'protocol' | 'findings';

export interface RuleBreaks {
  /** How often. */
  readonly count: number;
  /** The first time, in words. */
  readonly first: string;
}

export interface RequestChecks {
  /** Checks the request of a step. */
  check(request: LLMRequest, turn: number, step: number): void;
  /** Notes what another check found. */
  note(rule: Rule, what: string): void;
  readonly broken: ReadonlyMap<Rule, RuleBreaks>;
}

export function createRequestChecks(world: World): RequestChecks {
  const broken = new Map<Rule, RuleBreaks>();
  const firstTask = world.task(1);

  function note(rule: Rule, what: string): void {
    const known = broken.get(rule);
    broken.set(rule, { count: (known?.count ?? 0) + 1, first: known?.first ?? what });
  }

  return {
    broken,
    note,
    check({ messages }, turn, step) {
      const where = `turn ${turn}, step ${step}`;
      if (!messages.some((message) => isUserText(message, firstTask))) note('first-task', where);
      if (!messages.some((message) => isUserText(message, world.task(turn)))) note('newest-message', where);
      const pairs = brokenPairs(messages);
      if (pairs !== undefined) note('pairs', `${where}: ${pairs}`);
      const summaries = messages.filter((message) => message.role === 'user' && message.origin === 'summary').length;
      if (summaries > 1) note('one-summary', `${where}: ${summaries}`);
      const stacked = messages.find((message, index) => isMarker(message) && isMarker(messages[index - 1]));
      if (stacked !== undefined) note('markers', `${where}: ${textOf(stacked).slice(0, 80)}`);
    },
  };
}

function isUserText(message: Message, text: string): boolean {
  return message.role === 'user' && message.origin === 'user' && textOf(message) === text;
}

/** A message that a policy put in the place of others, to say that they are gone. */
function isMarker(message: Message | undefined): boolean {
  return message?.role === 'user' && (message.origin === 'reminder' || message.origin === 'host');
}

/** A call without its result right behind it, or a result without its call. */
function brokenPairs(messages: readonly Message[]): string | undefined {
  let due: readonly string[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === 'tool') {
      if (due[0] !== message.toolCallId) return `message ${index} answers ${message.toolCallId}, due is ${String(due[0])}`;
      due = due.slice(1);
      continue;
    }
    if (due.length > 0) return `message ${index} comes before the result of ${String(due[0])}`;
    if (message.role === 'assistant') due = message.content.flatMap((part) => (part.type === 'tool_call' ? [part.id] : []));
  }
  return due.length === 0 ? undefined : `the history ends without the result of ${String(due[0])}`;
}
