/**
 * Field rules: which parts of a request or an answer are hidden, or not compared.
 *
 * A rule is a path, whose value is masked, or a function that is shown every text. A path is written as it is shown in
 * the message of a miss: `metadata.user_id`, `messages[0].content`; `[*]` is any place of a list, `*` any name, `**.` any
 * depth. A parameter of the address is `?name`; the address itself, which only functions see, is `url`.
 */
import { isRecord } from '../../core/json.ts';

/** Stands in the place of what is hidden. On replay it matches anything. */
export const MASK = '[redacted]';

/** A path whose value is masked, or a function that is given every text with its path and answers with another one. */
export type FieldRule = string | ((text: string, path: string) => string);

/** A value with the rules applied; the value itself where they change nothing. */
export type ApplyRules = (value: unknown, path?: string) => unknown;

const WILDCARDS: ReadonlyMap<string, string> = new Map([
  ['**.', '(?:.*\\.)?'],
  ['[*]', '\\[\\d+\\]'],
  ['*', '[^.[\\]]+'],
]);

/**
 * Makes one function of rules.
 *
 * @param option - Its name, for messages.
 * @throws TypeError for what is no rule.
 */
export function compileRules(rules: readonly FieldRule[], option: string): ApplyRules {
  const patterns: RegExp[] = [];
  const functions: ((text: string, path: string) => string)[] = [];
  for (const rule of rules as readonly unknown[]) {
    if (typeof rule === 'string' && rule !== '') patterns.push(pathPattern(rule));
    else if (typeof rule === 'function') functions.push(rule as (text: string, path: string) => string);
    else throw new TypeError(`createCassette: \`${option}\` holds paths and functions, not ${rule === '' ? 'an empty text' : typeof rule}. For example: ${option}: ['metadata.user_id'].`);
  }

  function changeText(text: string, path: string): string {
    let changed = text;
    for (const change of functions) {
      const answer: unknown = change(changed, path);
      if (typeof answer !== 'string') throw new TypeError(`createCassette: a function of \`${option}\` must return a text, not ${typeof answer}. For example: ${option}: [(text) => text.replaceAll('Jane', 'NAME')].`);
      changed = answer;
    }
    return changed;
  }

  function apply(value: unknown, path = ''): unknown {
    if (patterns.some((pattern) => pattern.test(path))) return MASK;
    if (typeof value === 'string') return changeText(value, path);
    if (Array.isArray(value)) {
      const items = value.map((item, index) => apply(item, itemPath(path, index)));
      return items.some((item, index) => item !== value[index]) ? items : value;
    }
    if (!isRecord(value)) return value;
    const fields = Object.entries(value).map(([name, field]) => [name, apply(field, fieldPath(path, name))] as const);
    return fields.some(([name, field]) => field !== value[name]) ? Object.fromEntries(fields) : value;
  }

  return patterns.length + functions.length === 0 ? (value) => value : apply;
}

/** The path of a list's item. */
export function itemPath(path: string, index: number): string {
  return `${path}[${index}]`;
}

/** The path of an object's field. */
export function fieldPath(path: string, name: string): string {
  if (!/^[\w$-]+$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
}

function pathPattern(path: string): RegExp {
  const parts = path.split(/(\*\*\.|\[\*\]|\*)/);
  return new RegExp(`^${parts.map((part) => WILDCARDS.get(part) ?? part.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')).join('')}$`);
}
