/** Circuit breaker snapshot: what of a breaker outlives its process, and whether what is brought back is that. */
import type { ErrorSummary } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';

/** A breaker that can be brought back: plain JSON. A probe under way is not in it: whoever restores it probes anew. */
export interface CircuitBreakerSnapshot {
  /** Failures in a row so far. */
  readonly failures: number;
  /** Until when no request is sent, in milliseconds since the epoch; absent while closed. */
  readonly openUntil?: number | undefined;
  /** The last failure that counted. */
  readonly lastError?: ErrorSummary | undefined;
}

/** @throws TypeError if it is neither undefined nor a snapshot of a breaker. */
export function assertSnapshot(value: unknown): void {
  if (value === undefined || (isRecord(value) && isSnapshot(value))) return;
  throw new TypeError(
    'createCircuitBreaker: `snapshot` is not one of a circuit breaker, which has `failures`, and perhaps `openUntil` and `lastError`. ' +
      'For example: createCircuitBreaker({ snapshot: breaker.snapshot() }).',
  );
}

function isSnapshot({ failures, openUntil, lastError }: Record<string, unknown>): boolean {
  if (!Number.isSafeInteger(failures) || Number(failures) < 0) return false;
  if (openUntil !== undefined && !Number.isFinite(openUntil)) return false;
  if (lastError === undefined) return true;
  return isRecord(lastError) && ['name', 'kind', 'message'].every((member) => typeof lastError[member] === 'string');
}
