/** Assert context: what several makers of this room refuse in the same words. */
import { isRecord } from '../core/json.ts';

/** What is asserted, and about whose argument. */
interface Argument {
  /** Who takes it, such as `preflight`. */
  readonly taker: string;
  /** A correct call. */
  readonly example: string;
}

const ESTIMATOR = ['estimateText', 'estimateMessage', 'estimateMessages', 'estimateRequest', 'factorOf', 'observe', 'observeOverflow', 'windowOf'] as const;

/** @throws TypeError if it is given and not an estimator, naming what it lacks. */
export function assertEstimator(
  value: unknown,
  { taker, example = `${taker}({ estimator: createTokenEstimator() })` }: Pick<Argument, 'taker'> & Partial<Argument>,
): void {
  if (value !== undefined) assertMembers(value, ESTIMATOR, { option: 'estimator', taker, example });
}

/** @throws TypeError if it is not a list of messages. */
export function assertHistory(value: unknown, { taker, example }: Argument): void {
  if (!Array.isArray(value)) throw new TypeError(`${taker} needs a list of messages, not ${nameOf(value)}. For example: ${example}.`);
  const wrong = value.findIndex((message) => !isMessage(message));
  if (wrong === -1) return;
  throw new TypeError(
    `${taker}: \`messages[${wrong}]\` is not a message, which has a role and a list of parts, but ${nameOf(value[wrong])}. For example: ${example}.`,
  );
}

/** True for something with a role and a list of parts. */
export function isMessage(value: unknown): boolean {
  return isRecord(value) && typeof value['role'] === 'string' && Array.isArray(value['content']);
}

function nameOf(value: unknown): string {
  return value === null || value === undefined ? String(value) : `a value of type ${typeof value}`;
}

/** @throws TypeError if a value lacks one of its functions. */
export function assertMembers(value: unknown, members: readonly string[], { option, taker, example }: Argument & { readonly option: string }): void {
  const missing = isRecord(value) ? members.find((name) => typeof value[name] !== 'function') : members[0];
  if (missing === undefined) return;
  throw new TypeError(`${taker}: \`${option}\` has no function \`${missing}\`. For example: ${example}.`);
}

/** @throws TypeError if nothing is left of the window. */
export function assertReserve(
  { window, outputReserve }: { readonly window?: number | undefined; readonly outputReserve?: number | undefined },
  { taker }: Pick<Argument, 'taker'>,
): void {
  if (window === undefined || outputReserve === undefined || outputReserve < window) return;
  throw new TypeError(
    `${taker}: \`outputReserve\` (${outputReserve}) leaves nothing of the \`window\` (${window}): it must be less. ` +
      `For example: ${taker}({ window: 32_768, outputReserve: 4_096 }).`,
  );
}

/** @throws TypeError if it is not a runtime, naming what it lacks. */
export function assertRuntime(value: unknown, { taker }: Pick<Argument, 'taker'>): void {
  const example = `${taker}({ …, runtime: systemRuntime })`;
  assertMembers(value, ['now', 'setTimer', 'createId', 'random'], { option: 'runtime', taker, example });
}

/** @throws TypeError if a value that is given is not of a type. */
export function assertType(value: unknown, { option, type, taker, example }: Argument & { readonly option: string; readonly type: 'string' | 'function' }): void {
  if (value === undefined || typeof value === type) return;
  throw new TypeError(`${taker}: \`${option}\` must be a ${type}, not a value of type ${typeof value}. For example: ${example}.`);
}

/** What a layer gives, if it is that. @throws TypeError if it is something else: layers may be a host's own. */
export function checkedResult<Result extends { readonly edits: readonly unknown[]; readonly messages: readonly unknown[] }>(
  name: string,
  result: Result,
): Result {
  const given: unknown = result;
  // Nobody waits for it: its failure would be nobody's.
  if (given instanceof Promise) given.catch(() => undefined);
  if (isRecord(given) && Array.isArray(given['edits']) && Array.isArray(given['messages'])) return result;
  throw new TypeError(
    `createContextPolicy: \`${name}\` gave no result with lists of edits and of messages. ` +
      `For example: ${name}: (messages) => ({ edits: [], messages, tokensBefore: 0, tokensAfter: 0 }).`,
  );
}
