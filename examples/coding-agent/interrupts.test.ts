/** Ctrl-C stops the running turn as a person's cancel; twice, or while nothing runs, it quits. */
import { isUserCancel, type TurnControl } from 'turnloop';
import { describe, expect, it } from 'vitest';
import { createInterrupts, type Interrupts } from './interrupts.ts';

function create(): { interrupts: Interrupts; log: string[] } {
  const log: string[] = [];
  return { interrupts: createInterrupts({ say: (text) => void log.push(text.trim()), quit: (code) => void log.push(`quit ${code}`) }), log };
}

/** A turn that ends when it is told to. */
function hangingTurn(): { run: (control: TurnControl) => Promise<string>; aborts: unknown[]; end: () => void } {
  const aborts: unknown[] = [];
  let end = (): void => {};
  const ended = new Promise<string>((resolve) => (end = () => resolve('over')));
  const run = (control: TurnControl): Promise<string> => {
    control.abort = (reason) => void aborts.push(reason);
    return ended;
  };
  return { run, aborts, end: () => end() };
}

describe('createInterrupts', () => {
  it('stops a running turn at the first press, quits at the second', async () => {
    const { interrupts, log } = create();
    const turn = hangingTurn();

    const result = interrupts.guard(turn.run);
    interrupts.press();
    const afterOne = [...log];
    interrupts.press();
    turn.end();

    expect(turn.aborts.map(isUserCancel)).toStrictEqual([true]);
    expect(afterOne).toStrictEqual(['Stopping. Ctrl-C again quits at once.']);
    expect(log.slice(1)).toStrictEqual(['quit 130']);
    expect(await result).toBe('over');
  });

  it('quits while nothing runs, before a turn and after it', async () => {
    const { interrupts, log } = create();

    interrupts.press();
    await interrupts.guard(() => Promise.resolve());
    interrupts.press();

    expect(log).toStrictEqual(['quit 130', 'quit 130']);
  });

  it('asks anew for each turn', async () => {
    const { interrupts, log } = create();

    for (let count = 0; count < 2; count++) {
      const turn = hangingTurn();
      const result = interrupts.guard(turn.run);
      interrupts.press();
      turn.end();
      await result;
    }

    expect(log).toStrictEqual(['Stopping. Ctrl-C again quits at once.', 'Stopping. Ctrl-C again quits at once.']);
  });
});
