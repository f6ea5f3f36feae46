/** Ctrl-C stops the running turn as a person's cancel; twice, or while nothing runs, it quits. */
import { isUserCancel, NO_USAGE } from 'turnloop';
import type { AgentTurnResult } from 'turnloop/agent';
import { describe, expect, it } from 'vitest';
import { createInterrupts, type Interrupts } from './interrupts.ts';

const OVER: AgentTurnResult = { turnId: 't', agent: 'coder', stopReason: 'end_turn', steps: 1, usage: NO_USAGE, usageByModel: [], text: '' };

function create(): { interrupts: Interrupts; log: string[] } {
  const log: string[] = [];
  return { interrupts: createInterrupts({ say: (text) => void log.push(text.trim()), quit: (code) => void log.push(`quit ${code}`) }), log };
}

/** A turn that ends when it is told to. */
function hangingTurn(): { turn: Parameters<Interrupts['guard']>[0]; aborts: unknown[]; end: () => void } {
  const aborts: unknown[] = [];
  let end = (): void => {};
  const result = new Promise<AgentTurnResult>((resolve) => (end = () => resolve(OVER)));
  return { turn: { result, abort: (reason) => void aborts.push(reason) }, aborts, end: () => end() };
}

describe('createInterrupts', () => {
  it('stops a running turn at the first press, quits at the second', async () => {
    const { interrupts, log } = create();
    const { turn, aborts, end } = hangingTurn();

    const result = interrupts.guard(turn);
    interrupts.press();
    const afterOne = [...log];
    interrupts.press();
    end();

    expect(aborts.map(isUserCancel)).toStrictEqual([true]);
    expect(afterOne).toStrictEqual(['Stopping. Ctrl-C again quits at once.']);
    expect(log.slice(1)).toStrictEqual(['quit 130']);
    expect(await result).toBe(OVER);
  });

  it('quits while nothing runs, before a turn and after it', async () => {
    const { interrupts, log } = create();

    interrupts.press();
    const { turn, end } = hangingTurn();
    end();
    await interrupts.guard(turn);
    interrupts.press();

    expect(log).toStrictEqual(['quit 130', 'quit 130']);
  });

  it('asks anew for each turn', async () => {
    const { interrupts, log } = create();

    for (let count = 0; count < 2; count++) {
      const { turn, end } = hangingTurn();
      const result = interrupts.guard(turn);
      interrupts.press();
      end();
      await result;
    }

    expect(log).toStrictEqual(['Stopping. Ctrl-C again quits at once.', 'Stopping. Ctrl-C again quits at once.']);
  });
});
