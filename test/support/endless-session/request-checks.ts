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
      const remark = world.remark(turn);
      const newest = remark !== undefined && step > remark.step ? remark.text : world.task(turn);
      if (!messages.some((message) => isUserText(message, newest))) note('newest-message', where);
      const pairs = brokenPairs(messages);
      if (pairs !== undefined) note('pairs', `${where}: ${pairs}`);
      const summaries = messages.filter((message) => message.role === 'user' && message.origin === 'summary').length;
      if (summaries > 1) note('one-summary', `${where}: ${summaries}`);
      const markers = messages.filter(isMarker).map(textOf);
      if (new Set(markers).size < markers.length) note('markers', `${where}: ${markers.length} messages say that something is missing`);
      const stacked = messages.find(isStacked);
      if (stacked !== undefined) note('markers', `${where}: ${stacked.id} says ${textOf(stacked).match(MARK)!.join(' and ')}`);
    },
  };
}

function isUserText(message: Message, text: string): boolean {
  return message.role === 'user' && (message.origin === 'user' || message.origin === 'steering') && textOf(message) === text;
}

/** A message that a policy put in the place of others, to say that they are gone. */
function isMarker(message: Message): boolean {
  return message.role === 'user' && (message.origin === 'reminder' || message.origin === 'host');
}

const MARK = /\[[^\]\n]*\d+ (?:characters|tokens)[^\]\n]*\]/g;
const unstacked = new WeakSet<Message>();

/** A text that says more than once that something of it is missing. */
function isStacked(message: Message): boolean {
  if (unstacked.has(message)) return false;
  const isFound = message.content.some((part) => part.type === 'text' && (part.text.match(MARK)?.length ?? 0) > 1);
  if (!isFound) unstacked.add(message);
  return isFound;
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
