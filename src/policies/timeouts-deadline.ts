/**
 * Deadline: tells once when a request has waited for too long.
 *
 * - One timer for silence, whatever arrives: a sign of life notes the time, and the timer looks at it when it fires. One
 *   more for the whole, where that is limited.
 * - Time is what timers say; the clock only tells how long ago the last sign of life was. Set back, it makes the silence
 *   after that sign count anew, once: nothing waits for the clock to catch up.
 */
import type { Runtime } from '../core/runtime.ts';

/** What a request waits for. */
export type DeadlinePhase = 'first_token' | 'between_tokens' | 'total';

/** How long it may, in milliseconds. */
export type DeadlineLimits = Readonly<Record<DeadlinePhase, number>>;

/** What a deadline needs. */
interface DeadlineOptions {
  readonly runtime: Runtime;
  readonly limits: DeadlineLimits;
  /** Called when a limit is reached. */
  readonly onTimeout: (phase: DeadlinePhase) => void;
}

/** Watches one request. */
interface Deadline {
  /** A fragment came. */
  touch(): void;
  /** Nothing is expected for now; the total goes on. */
  pause(): void;
  /** Another attempt starts in `delayMs` milliseconds, and waits for its first fragment. */
  restart(delayMs: number): void;
  /** Nothing is expected any more. */
  end(): void;
}

/** Starts to wait for the first fragment. */
export function startDeadline({ runtime, limits, onTimeout }: DeadlineOptions): Deadline {
  let phase: 'first_token' | 'between_tokens' = 'first_token';
  /** When the last fragment came, if one has since the timer was set. */
  let touchedAt: number | undefined;
  let isOver = false;
  let cancelSilence = (): void => undefined;
  let cancelTotal = (): void => undefined;

  const end = (): void => {
    isOver = true;
    cancelSilence();
    cancelTotal();
  };
  const timeOut = (which: DeadlinePhase): void => {
    end();
    onTimeout(which);
  };
  const waitFor = (delayMs: number): void => {
    cancelSilence();
    touchedAt = undefined;
    if (isOver || delayMs === Infinity) return;
    cancelSilence = runtime.setTimer(delayMs, () => {
      // It came while the timer ran: whatever the clock shows by now, it is no older than that, and not of the future.
      const silentMs = touchedAt === undefined ? Infinity : Math.min(delayMs, Math.max(0, runtime.now() - touchedAt));
      if (silentMs < limits[phase]) waitFor(limits[phase] - silentMs);
      else timeOut(phase);
    });
  };

  // Set first: of two limits that end at once it is the one that is told of.
  if (limits.total !== Infinity) {
    cancelTotal = runtime.setTimer(limits.total, () => {
      timeOut('total');
    });
  }
  waitFor(limits.first_token);

  return {
    touch() {
      if (phase === 'between_tokens') {
        touchedAt = runtime.now();
        return;
      }
      // The only delta that needs a timer: the limit between fragments may end before the one that runs.
      phase = 'between_tokens';
      waitFor(limits.between_tokens);
    },
    pause() {
      waitFor(Infinity);
    },
    restart(delayMs) {
      phase = 'first_token';
      waitFor(delayMs + limits.first_token);
    },
    end,
  };
}
