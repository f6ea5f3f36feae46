/**
 * Field path: how a place in a request or an answer is written, in rules and in what a miss says.
 *
 * `metadata.user_id`, `messages[0].content`, `["a name"]` where a name is no word, `?name` for a parameter of the address.
 * In a rule `[*]` is any place of a list, `*` any member, `**` any depth: `**.email`, or all there is below `metadata.**`.
 */

/** The path of a list's item. */
export function itemPath(path: string, index: number): string {
  return `${path}[${index}]`;
}

/** The path of an object's field. */
export function fieldPath(path: string, name: string): string {
  if (!WORD.test(name) || /^\d/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
}

const WORD = /^[\p{L}_$-][\p{L}\p{N}_$-]*$/u;
/** A step of a path in a rule. */
const STEP = /\.?(?:\*\*|\*|[\p{L}_$-][\p{L}\p{N}_$-]*)|\[(?:\*|\d+|"(?:[^"\\]|\\.)*")\]/uy;
/** What steps match: any member, and any place of a list. A first name has no dot before it, also behind `**`. */
const MEMBER = '(?:(?:^|\\.)[\\p{L}\\p{N}_$-]+|\\["(?:[^"\\\\]|\\\\.)*"\\])';
const ITEM = '\\[\\d+\\]';

/**
 * What a path of a rule matches.
 *
 * @param option - Where the rule stands, for messages.
 * @throws TypeError for what is no path: it would hide nothing, and nobody would know.
 */
export function pathPattern(path: string, option: string): RegExp {
  if (/^\?./u.test(path)) return new RegExp(`^${path.split('*').map(literal).join('.*')}$`, 'u');
  let pattern = '';
  for (let at = 0; at < path.length; at = STEP.lastIndex) {
    STEP.lastIndex = at;
    const step = STEP.exec(path)?.[0] ?? '';
    // A dot stands before each step but the first, and before no bracket.
    if (!(at === 0 ? /^[^.]/ : /^[.[]/).test(step)) throw refusal(path, path.slice(at), option);
    pattern += stepPattern(step);
  }
  // The root of another language of paths.
  if (/^\$(?:$|[.[])/.test(path)) throw refusal(path, path, option);
  return new RegExp(`^${pattern}$`, 'u');
}

function stepPattern(step: string): string {
  const name = step.replace(/^\./, '');
  if (name === '**') return `(?:${MEMBER}|${ITEM})*`;
  if (name === '*') return MEMBER;
  if (name === '[*]') return ITEM;
  return name.startsWith('[') ? literal(name) : `(?:^|\\.)${literal(name)}`;
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

function refusal(path: string, rest: string, option: string): TypeError {
  return new TypeError(
    `createCassette: ${JSON.stringify(path)} in \`${option}\` is no path: it cannot be read from ${JSON.stringify(rest)} on. ` +
      'Write metadata.user_id, messages[0].content, tools[*].name, **.email, ?name, and ["a name"] for a member whose name is no word.',
  );
}
