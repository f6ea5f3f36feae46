/** Interrupts: what Ctrl-C does. Once it stops the running turn cleanly; twice, or while nothing runs, it quits. */
import { userCancel } from 'turnloop';
import type { Turn } from 'turnloop/agent';

/** What shells say of a program that Ctrl-C ended: 128 + the number of SIGINT. */
export const INTERRUPTED_EXIT_CODE = 130;

export interface InterruptsOptions {
  /** Tells the person something. */
  readonly say: (text: string) => void;
  /** Ends the process. */
  readonly quit: (exitCode: number) => void;
}

export interface Interrupts {
  /** Ctrl-C was pressed. */
  press(): void;
  /** Waits for the end of a turn, which Ctrl-C stops until then. */
  guard(turn: Pick<Turn, 'abort' | 'result'>): Turn['result'];
}

export function createInterrupts({ say, quit }: InterruptsOptions): Interrupts {
  /** The running turn, until it is told to stop. */
  let running: Pick<Turn, 'abort'> | undefined;
  return {
    press() {
      if (running === undefined) {
        quit(INTERRUPTED_EXIT_CODE);
        return;
      }
      running.abort(userCancel());
      running = undefined;
      say('\nStopping. Ctrl-C again quits at once.\n');
    },
    async guard(turn) {
      running = turn;
      try {
        return await turn.result;
      } finally {
        running = undefined;
      }
    },
  };
}
