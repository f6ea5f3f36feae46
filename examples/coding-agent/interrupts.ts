/** Interrupts: what Ctrl-C does. Once it stops the running turn cleanly; twice, or while nothing runs, it quits. */
import { createTurnControl, userCancel, type TurnControl } from 'turnloop';

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
  /** Runs a turn that Ctrl-C stops: give it the control. */
  guard<Result>(runTurn: (control: TurnControl) => Promise<Result>): Promise<Result>;
}

export function createInterrupts({ say, quit }: InterruptsOptions): Interrupts {
  /** The running turn, until it is told to stop. */
  let running: TurnControl | undefined;
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
    async guard(runTurn) {
      const control = createTurnControl();
      running = control;
      try {
        return await runTurn(control);
      } finally {
        running = undefined;
      }
    },
  };
}
