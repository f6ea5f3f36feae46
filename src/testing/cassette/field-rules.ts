/**
 * Field rules: which parts of a request or an answer are hidden, or not compared.
 *
 * A rule is a path, whose value is masked, or a function that is shown every text. A path (`field-path.ts`) leads on into
 * a text that holds JSON, as arguments of calls do; a function gets such a text whole. The address itself, which only
 * functions see, is `url`.
 */
import { messageOf } from '../../core/errors.ts';
import { isRecord } from '../../core/json.ts';
import { fieldPath, itemPath, pathPattern } from './field-path.ts';

/** Stands in the place of what is hidden. On replay it matches anything. */
export const MASK = '[redacted]';

/** A path whose value is masked, or a function that is given every text with its path and answers with another one. */
export type FieldRule = string | ((text: string, path: string) => string);

/** Rules, ready for use. */
export interface FieldRules {
  /** A value with the rules applied; the value itself where they change nothing. @throws TypeError what a function of the user threw */
  readonly apply: ApplyRules;
  /** Whether any rule is a path: text that should be JSON and is not has none. */
  readonly hasPaths: boolean;
}

/** Applies rules to a value. */
export type ApplyRules = (value: unknown, path?: string) => unknown;

/**
 * Reads rules.
 *
 * @param option - Its name, for messages.
 * @throws TypeError for what is no rule.
 */
export function compileRules(rules: readonly FieldRule[], option: string): FieldRules {
  const patterns: RegExp[] = [];
  const functions: ((text: string, path: string) => string)[] = [];
  for (const rule of rules as readonly unknown[]) {
    if (typeof rule === 'string' && rule !== '') patterns.push(pathPattern(rule, option));
    else if (typeof rule === 'function') functions.push(rule as (text: string, path: string) => string);
    else throw new TypeError(`createCassette: \`${option}\` holds paths and functions, not ${rule === '' ? 'an empty text' : typeof rule}. For example: ${option}: ['metadata.user_id'].`);
  }

  function changeText(text: string, path: string): string {
    let changed = text;
    for (const change of functions) {
      const answer: unknown = asked(() => change(changed, path), path);
      if (typeof answer !== 'string') throw new TypeError(`createCassette: a function of \`${option}\` must return a text, not ${typeof answer}. For example: ${option}: [(text) => text.replaceAll('Jane', 'NAME')].`);
      changed = answer;
    }
    return changed;
  }

  function asked(ask: () => unknown, path: string): unknown {
    try {
      return ask();
    } catch (cause) {
      throw new TypeError(`createCassette: a function of \`${option}\` failed at \`${path}\`: ${messageOf(cause)}`, { cause });
    }
  }

  /** A text, or what its JSON is without what is hidden. */
  function applyToText(text: string, path: string): string {
    const changed = changeText(text, path);
    const inner = patterns.length > 0 && /^\s*[[{]/.test(changed) ? parseLoosely(changed) : undefined;
    const applied = inner === undefined ? inner : apply(inner, path, true);
    return applied === inner ? changed : JSON.stringify(applied);
  }

  /** @param isInner - Within a text, which functions have seen as a whole. */
  function apply(value: unknown, path = '', isInner = false): unknown {
    if (patterns.some((pattern) => pattern.test(path))) return MASK;
    if (typeof value === 'string') return isInner ? value : applyToText(value, path);
    if (Array.isArray(value)) {
      const items = value.map((item, index) => apply(item, itemPath(path, index), isInner));
      return items.some((item, index) => item !== value[index]) ? items : value;
    }
    if (!isRecord(value)) return value;
    const fields = Object.entries(value).map(([name, field]) => [name, apply(field, fieldPath(path, name), isInner)] as const);
    return fields.some(([name, field]) => field !== value[name]) ? Object.fromEntries(fields) : value;
  }

  const isIdle = patterns.length + functions.length === 0;
  return { apply: isIdle ? (value) => value : (value, path) => apply(value, path), hasPaths: patterns.length > 0 };
}

/** An object or a list; undefined for anything else. */
export function parseLoosely(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
