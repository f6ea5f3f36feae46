/** JSON values: the few ways in which all readers look at what came out of a server's JSON. */

/** No protocol nests deeper, tool arguments aside; functions that call themselves for each level can take more. */
const MAX_DEPTH = 500;

/** The parsed text; undefined if it is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Whether a value nests so deep that looking into it could end in a stack overflow. @param text - The JSON it came out of. */
export function isTooDeep(value: unknown, text: string): boolean {
  // A level takes two characters at least, so most texts need no look.
  if (text.length < 2 * MAX_DEPTH) return false;
  let level = [value].filter(isObject);
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth += 1) {
    level = level.flatMap((each) => Object.values(each).filter(isObject));
  }
  return level.length > 0;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** A text that is not empty; undefined for anything else. */
export function word(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A count of tokens, whole; 0 for what is none. */
export function tokenCount(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.round(value) : 0;
}
