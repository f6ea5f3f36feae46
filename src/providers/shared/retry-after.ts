/** Retry-after: how long a server asks to wait, from its headers or, failing these, from the text of its error. */

const SECOND_MS = 1000;
const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', SECOND_MS],
  ['m', 60 * SECOND_MS],
  ['h', 3600 * SECOND_MS],
]);

/** "Please try again in 1m2.5s", "retry in 48.9s", "try again in 120ms". */
const TEXT_HINT = /(?:try again|retry) (?:in|after) ((?:[\d.]+ ?(?:ms|s|m|h)(?![a-z])[a-z]* ?)+|[\d.]+ ?seconds?)/i;
const DURATION_PART = /([\d.]+) ?(ms|s|m|h)/gi;

/**
 * Reads `retry-after-ms` and `retry-after`. Of the latter only whole seconds: a date needs a clock that agrees with the
 * server's.
 *
 * @returns Milliseconds; undefined if the headers do not tell.
 */
export function retryAfterFromHeaders(headers: Headers): number | undefined {
  const milliseconds = headers.get('retry-after-ms')?.trim();
  if (milliseconds !== undefined && /^\d+(\.\d+)?$/.test(milliseconds)) return Math.ceil(Number(milliseconds));
  const seconds = headers.get('retry-after')?.trim();
  if (seconds !== undefined && /^\d+$/.test(seconds)) return Number(seconds) * SECOND_MS;
  return undefined;
}

/**
 * Reads a delay out of the text of an error.
 *
 * @returns Milliseconds; undefined if the text does not tell.
 */
export function retryAfterFromText(text: string): number | undefined {
  const duration = TEXT_HINT.exec(text)?.[1];
  return duration === undefined ? undefined : parseDuration(duration);
}

/**
 * Reads a duration such as `48s`, `1m2.5s` or `120ms`.
 *
 * @returns Milliseconds, rounded up; undefined for anything else.
 */
export function parseDuration(text: string): number | undefined {
  let total: number | undefined;
  for (const [, amount, unit] of text.matchAll(DURATION_PART)) {
    const value = Number(amount) * (UNIT_MS.get(unit?.toLowerCase() ?? '') ?? NaN);
    if (Number.isFinite(value)) total = (total ?? 0) + value;
  }
  return total === undefined ? undefined : Math.ceil(total);
}
