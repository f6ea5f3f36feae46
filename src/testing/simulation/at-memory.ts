/** Memory stores: each call of them fails, hangs or is slow. */
import type { MemoryStore } from '../../memory/memory-store.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** A memory store of one process. */
export function simulatedMemory(process: SimulatedProcess, store: MemoryStore): MemoryStore {
  return new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...given: readonly unknown[]) => callOf(process, name, () => Reflect.apply(member, target, given));
    },
  });
}

function callOf(process: SimulatedProcess, name: string | symbol, call: () => unknown): Promise<unknown> {
  return process.pass('memory', undefined, ({ fault }) => {
    process.world.tell('memory', String(name));
    if (fault === 'error') throw new Error('simulated: the memory store fails');
    return fault === 'stall' ? process.deaf() : call();
  });
}
