/**
 * Listeners: they throw, reject and hang, and at an event the host aborts, or the process dies.
 *
 * Law 3: behind the end of a turn no event of it comes.
 */
import { isCrash } from './fault.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { ListenedEvent } from './scenario.ts';

/** A listener of one process. */
export function simulatedListener(process: SimulatedProcess, listener: ((event: ListenedEvent) => unknown) | undefined): (event: ListenedEvent) => unknown {
  const over = new Set<string>();
  const check = (event: ListenedEvent): void => {
    if (event.turnId === undefined || event.type === 'notice') return;
    const turn = [...(event.agentPath ?? []), event.turnId].join('/');
    if (over.has(turn)) process.world.report(`${event.type} of turn ${turn} is told behind its end`, 3);
    if (event.type === 'turn.end') over.add(turn);
    else if (event.type === 'turn.resume') over.delete(turn);
  };
  return (event) => {
    if (process.isDead) return undefined;
    check(event);
    const { fault } = process.world.visit('listener');
    const at = process.world.visit('event').fault;
    if (at === 'abort') process.abort(`at ${event.type}`);
    else if (at !== undefined && isCrash(at)) {
      process.kill();
      return undefined;
    }
    // It does its work first: what a host does by its listeners is no fault.
    const returned = listener?.(event);
    if (fault === 'error') throw new Error('simulated: a listener throws');
    if (fault === 'reject') return Promise.reject(new Error('simulated: a listener rejects'));
    return fault === 'stall' ? process.deaf() : returned;
  };
}
