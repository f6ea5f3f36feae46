/**
 * Deadline: tells once when a request has waited for too long. One timer at a time, whatever arrives: a sign of life
 * notes the time, and the timer looks at it when it fires.
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
  const startedAt = runtime.now();
  let phase: 'first_token' | 'between_tokens' = 'first_token';
  let since = startedAt;
  let isOver = false;
  let cancelTimer = (): void => undefined;

  const endsAt = (): number => Math.min(since + limits[phase], startedAt + limits.total);
  const startTimer = (): void => {
    cancelTimer();
    if (isOver) return;
    cancelTimer = runtime.setTimer(Math.max(0, endsAt() - runtime.now()), onTimer);
  };
  function onTimer(): void {
    if (runtime.now() < endsAt()) {
      startTimer();
      return;
    }
    onTimeout(startedAt + limits.total <= since + limits[phase] ? 'total' : phase);
  }
  startTimer();

  return {
    touch() {
      since = runtime.now();
      if (phase === 'between_tokens') return;
      // The only delta that needs a timer: the limit between fragments may end before the one that runs.
      phase = 'between_tokens';
      startTimer();
    },
    pause() {
      since = Infinity;
      startTimer();
    },
    restart(delayMs) {
      phase = 'first_token';
      since = runtime.now() + delayMs;
      startTimer();
    },
    end() {
      isOver = true;
      cancelTimer();
    },
  };
}
