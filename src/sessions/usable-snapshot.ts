/** Usable snapshot: whether one holds for a log. One that was kept and does not is dropped and told of: the log says all it said. */
import { isTurnloopError, messageOf } from '../core/errors.ts';
import { shownId } from './store-errors.ts';
import { checkSnapshot } from './session-codec.ts';
import type { SessionRepair, SessionSnapshot } from './session-store.ts';

/**
 * The snapshot, if it can be used.
 *
 * @param kept - What was kept; undefined if there is none.
 * @param log - The session, and how many events its log has.
 * @throws {@link sessions.SessionError | SessionError} `unsupported_version` for one of a newer release.
 */
export function usableSnapshot(
  kept: unknown,
  log: { readonly sessionId: string; readonly events: number },
): { readonly snapshot?: SessionSnapshot; readonly repairs: readonly SessionRepair[] } {
  if (kept === undefined) return { repairs: [] };
  try {
    const snapshot = checkSnapshot(kept, log.sessionId);
    if (snapshot.events > log.events) throw new Error(`it covers ${snapshot.events} events, and the log has ${log.events}`);
    return { snapshot, repairs: [] };
  } catch (error) {
    if (isTurnloopError(error)) throw error;
    return { repairs: [{ kind: 'snapshot_dropped', message: `The snapshot was not used, and the whole log was read: ${messageOf(error)}.` }] };
  }
}

/**
 * Refuses what could not be used later, before it is kept.
 *
 * @throws {@link sessions.SessionError | SessionError} `unsupported_version` for one of a newer release.
 * @throws TypeError for what is no snapshot of the session.
 */
export function assertSnapshot(snapshot: unknown, sessionId: string): void {
  try {
    checkSnapshot(snapshot, sessionId);
  } catch (error) {
    if (isTurnloopError(error)) throw error;
    throw new TypeError(`saveSnapshot takes a snapshot of session ${shownId(sessionId)}: ${messageOf(error)}.`, { cause: error });
  }
}
