/**
 * Approval rules: what is allowed, denied or asked without a person.
 *
 * - The first rule that matches decides. Where none does, tools that only read are allowed and all others asked about.
 * - A rule that cannot tell whether it matches fails, and a failure denies the call: it is never taken for "no match".
 */
import type { HookCall } from '../core/hooks.ts';
import { isRecord } from '../core/json.ts';

/** What a rule decides: run it, refuse it, or ask. */
export type ApprovalRuling = 'allow' | 'deny' | 'ask';

/** A rule of {@link approval}. */
export interface ApprovalRule {
  /** The tools it is about, by name. @defaultValue all */
  readonly tool?: string | readonly string[] | undefined;
  /**
   * Whether it is about this call, asked after `tool`. What it throws denies the call, as does anything but a boolean.
   *
   * @defaultValue about each call of the tool
   */
  matches?(call: HookCall): boolean | Promise<boolean>;
  /** What it decides. */
  readonly decision: ApprovalRuling;
  /** Why, in words: read by the model after `deny`, by the person after `ask`. @defaultValue a general sentence */
  readonly reason?: string | undefined;
}

/** What the rules say of a call. */
export interface Ruling {
  readonly decision: ApprovalRuling;
  readonly reason: string | undefined;
}

/** What the rules say of a call. Rejects with what a rule throws. */
export async function ruleOn(rules: readonly ApprovalRule[], call: HookCall): Promise<Ruling> {
  for (const rule of rules) {
    if (rule.tool !== undefined && !namesOf(rule.tool).includes(call.name)) continue;
    const isMatch: unknown = rule.matches === undefined ? true : await rule.matches(call);
    if (typeof isMatch !== 'boolean') throw new TypeError('a rule’s `matches` must give true or false');
    if (isMatch) return { decision: rule.decision, reason: rule.reason };
  }
  return { decision: call.tool?.readOnly === true ? 'allow' : 'ask', reason: undefined };
}

function namesOf(tool: string | readonly string[]): readonly string[] {
  return typeof tool === 'string' ? [tool] : tool;
}

const FIELDS = ['tool', 'matches', 'decision', 'reason'];
const DECISIONS: readonly unknown[] = ['allow', 'deny', 'ask'];

/**
 * Refuses rules that would not do what they say.
 *
 * @throws TypeError naming the rule and what is wrong.
 */
export function assertRules(rules: unknown, example: string): void {
  if (!Array.isArray(rules)) throw new TypeError(`approval: \`rules\` must be a list. For example: ${example}.`);
  rules.forEach((rule: unknown, index) => {
    const problem = problemOf(rule);
    if (problem !== undefined) throw new TypeError(`approval: \`rules[${index}]\` ${problem}. For example: ${example}.`);
  });
}

function problemOf(rule: unknown): string | undefined {
  if (!isRecord(rule)) return 'is not an object';
  const unknown = Object.keys(rule).find((field) => !FIELDS.includes(field));
  // A misspelt condition would make the rule match everything.
  if (unknown !== undefined) return `has no \`${unknown}\`: a rule has ${FIELDS.join(', ')}`;
  const { tool, matches, decision, reason } = rule;
  if (!DECISIONS.includes(decision)) return `must decide 'allow', 'deny' or 'ask', not ${JSON.stringify(decision) ?? 'nothing'}`;
  const isName = (name: unknown): boolean => typeof name === 'string' && name !== '';
  if (tool !== undefined && !isName(tool) && !(Array.isArray(tool) && tool.length > 0 && tool.every(isName))) {
    return 'has a `tool` that is neither a name nor a list of names';
  }
  if (matches !== undefined && typeof matches !== 'function') return 'has a `matches` that is no function';
  return reason === undefined || typeof reason === 'string' ? undefined : 'has a `reason` that is no text';
}
