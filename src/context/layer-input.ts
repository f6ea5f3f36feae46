/** Layer input: refuses what callers without types hand to a layer, before it fails somewhere else in other words. */
import { isRecord } from '../core/json.ts';

/** What is asserted, and about whose argument. */
interface Argument {
  /** Who takes it, such as `trimHistory`. */
  readonly taker: string;
  /** A correct call. */
  readonly example: string;
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

/** @throws TypeError if it is given and not an estimator. */
export function assertEstimator(value: unknown, { taker, example }: Argument): void {
  if (value === undefined || (isRecord(value) && typeof value['estimateMessage'] === 'function')) return;
  throw new TypeError(
    `${taker}: \`estimator\` must be a token estimator, such as \`createTokenEstimator()\`, not ${nameOf(value)}. For example: ${example}.`,
  );
}

function isMessage(value: unknown): boolean {
  return isRecord(value) && typeof value['role'] === 'string' && Array.isArray(value['content']);
}

function nameOf(value: unknown): string {
  return value === null || value === undefined ? String(value) : `a value of type ${typeof value}`;
}
