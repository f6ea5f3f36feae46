/** Memory stores: each call of them fails, hangs or is slow. */
import type { MemoryStore } from '../../memory/memory-store.ts';
import type { Life } from './life.ts';

/** A memory store of one life. */
export function simulatedMemory(life: Life, store: MemoryStore): MemoryStore {
  return new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...given: readonly unknown[]) => callOf(life, name, () => Reflect.apply(member, target, given));
    },
  });
}

function callOf(life: Life, name: string | symbol, call: () => unknown): Promise<unknown> {
  return life.pass('memory', undefined, ({ fault }) => {
    life.world.tell('memory', String(name));
    if (fault === 'error') throw new Error('simulated: the memory store fails');
    return fault === 'stall' ? life.deaf() : call();
  });
}
