/** Assert: refuses what callers without types hand to a policy, before it fails somewhere else in other words. */
import { isRecord } from '../core/json.ts';

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

function nameOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  const isShort = value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean';
  return isShort ? String(value) : `a value of type ${typeof value}`;
}
