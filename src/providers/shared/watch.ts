/**
 * Watch: what may end a request before its answer does, the caller's signal and the time limits.
 *
 * - One timer at a time, whatever arrives: activity notes the time, and the timer looks at it when it fires.
 * - The first interruption stands. An abort is never mistaken for an end of the answer or for a network failure.
 * - After `end` nothing is left: no timer, no listener.
 */
import { LLMError } from '../../core/errors.ts';
import type { Runtime } from '../../core/runtime.ts';

/** What a request waits for when its time is up. */
export type WaitPhase = 'api_key' | 'connect' | 'first_token' | 'between_tokens' | 'rest';

/** What a watch needs. */
export interface WatchOptions {
  /** The caller's signal. */
  readonly signal: AbortSignal;
  /** Clock and timers. */
  readonly runtime: Runtime;
  /** Where the request goes, for messages: origin only. */
  readonly origin: string;
  /** Called once, at the first interruption: lets go of the connection. */
  readonly release: () => void;
}

/** Guards one request. */
export interface Watch {
  /** Why the request is over before its time; undefined as long as it is not. */
  interruption(): LLMError | undefined;
  /** Waits for a promise, or rejects with the interruption. A value that comes too late goes to `dispose`. */
  wait<Value>(promise: Promise<Value>, dispose?: (late: Value) => void): Promise<Value>;
  /** Starts a time limit in place of the one before. @param sinceMs - When it began. @defaultValue now */
  limit(phase: WaitPhase, limitMs: number, sinceMs?: number): void;
  /** Starts the time limit anew. */
  touch(): void;
  /** Ends the watch. */
  end(): void;
}

/** The code of the error of a phase that took too long. */
export function timeoutCode(phase: WaitPhase): string {
  return `${phase}_timeout`;
}

/** The error of a request whose signal was aborted. */
function abortedError(): LLMError {
  return new LLMError({ kind: 'aborted', message: 'The request was aborted.' });
}

const TIMED_OUT: Readonly<Record<WaitPhase, string>> = {
  api_key: 'was not asked: the `apiKey` function gave no key',
  connect: 'did not answer',
  first_token: 'sent no token',
  between_tokens: 'went silent in the middle of its answer, and stayed so',
  rest: 'did not finish its answer',
};

/** Starts watching. An aborted signal interrupts at once. */
export function createWatch({ signal, runtime, origin, release }: WatchOptions): Watch {
  let interruption: LLMError | undefined;
  let rejectWait: ((reason: LLMError) => void) | undefined;
  let cancelTimer: (() => void) | undefined;
  let phase: WaitPhase = 'connect';
  let limitMs = Infinity;
  let since = 0;

  function interrupt(error: LLMError): void {
    if (interruption !== undefined) return;
    interruption = error;
    release();
    rejectWait?.(error);
  }

  function onAbort(): void {
    interrupt(abortedError());
  }

  function onTimer(): void {
    const left = since + limitMs - runtime.now();
    if (left > 0) {
      cancelTimer = runtime.setTimer(left, onTimer);
      return;
    }
    const message = `${origin} ${TIMED_OUT[phase]} within ${limitMs} ms.`;
    interrupt(new LLMError({ kind: 'timeout', code: timeoutCode(phase), message }));
  }

  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();

  return {
    interruption: () => interruption,
    wait(promise, dispose) {
      return new Promise((resolve, reject) => {
        promise.then((value) => {
          if (interruption === undefined) resolve(value);
          else dispose?.(value);
        }, reject);
        rejectWait = reject;
        if (interruption !== undefined) reject(interruption);
      });
    },
    limit(nextPhase, nextLimitMs, sinceMs = runtime.now()) {
      cancelTimer?.();
      phase = nextPhase;
      limitMs = nextLimitMs;
      since = sinceMs;
      cancelTimer = runtime.setTimer(Math.max(0, since + limitMs - runtime.now()), onTimer);
    },
    touch() {
      since = runtime.now();
    },
    end() {
      cancelTimer?.();
      signal.removeEventListener('abort', onAbort);
    },
  };
}
