/** Assert: refuses what callers without types hand to a policy, before it fails somewhere else in other words. */
import { isRecord } from './json.ts';

/** What is asserted, and about whose argument. */
interface Argument {
  /** Who takes it, such as `withRetry`. */
  readonly taker: string;
  /** A correct call. */
  readonly example: string;
}

/** @throws TypeError if it is not a model. */
export function assertLLM(value: unknown, { taker, example }: Argument): void {
  if (isRecord(value) && typeof value['chat'] === 'function') return;
  throw new TypeError(`${taker} needs an LLM, which has a chat function, not ${nameOf(value)}. For example: ${example}.`);
}

/** @throws TypeError if it is not a tool. */
export function assertTool(value: unknown, { taker, example }: Argument): void {
  if (isRecord(value) && typeof value['execute'] === 'function') return;
  throw new TypeError(`${taker} needs a tool, which has an execute function, not ${nameOf(value)}. For example: ${example}.`);
}

/**
 * Options are an object, and hold nothing that would be ignored.
 *
 * @param known - Every option there is.
 * @throws TypeError naming what is wrong.
 */
export function assertOptions(value: unknown, known: Readonly<Record<string, true>>, { taker, example }: Argument): void {
  if (!isRecord(value)) throw new TypeError(`${taker}: the options are not an object, but ${nameOf(value)}. For example: ${example}.`);
  const unknown = Object.keys(value).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  throw new TypeError(`${taker} has no option \`${unknown}\`; it takes ${Object.keys(known).join(', ')}. For example: ${example}.`);
}

/** What a number has to be. */
interface NumberRange {
  /** The least it may be. */
  readonly least: number;
  /** The most it may be. @defaultValue any finite number */
  readonly most?: number | undefined;
  /** Whether `Infinity` says that there is no limit. @defaultValue false */
  readonly orInfinity?: boolean | undefined;
  /** @defaultValue false */
  readonly whole?: boolean | undefined;
}

/**
 * Numbers of an options object are in their range. One that is undefined stands for its default.
 *
 * @param ranges - By the name of the option.
 * @throws TypeError naming the option, its value and what it may be.
 */
export function assertNumbers<Options extends object>(
  options: Options,
  ranges: { readonly [Name in keyof Options]?: NumberRange },
  { taker, example }: Argument,
): void {
  for (const [name, range] of Object.entries<NumberRange | undefined>(ranges)) {
    const value: unknown = Reflect.get(options, name);
    if (value === undefined || range === undefined || isInRange(value, range)) continue;
    throw new TypeError(`${taker}: \`${name}\` must be ${rangeText(range)}, not ${nameOf(value)}. For example: ${example}.`);
  }
}

function isInRange(value: unknown, { least, most = Number.MAX_VALUE, orInfinity = false, whole = false }: NumberRange): boolean {
  if (typeof value !== 'number') return false;
  if (value === Infinity) return orInfinity;
  return value >= least && value <= most && (!whole || Number.isSafeInteger(value));
}

function rangeText({ least, most, orInfinity = false, whole = false }: NumberRange): string {
  const kind = whole ? 'a whole number' : 'a number';
  const range = most === undefined ? `of at least ${least}` : `from ${least} to ${most}`;
  return `${kind} ${range}${orInfinity ? ', or Infinity' : ''}`;
}

function nameOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  const isShort = value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean';
  return isShort ? String(value) : `a value of type ${typeof value}`;
}
