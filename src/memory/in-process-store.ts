/** In-process store: memory that lasts as long as the process. For tests, and for hosts that export it themselves. */
import { indexedStore } from './indexed-store.ts';
import { MemoryIndex } from './memory-index.ts';
import type { MemoryStore } from './memory-store.ts';

/**
 * Makes a store that keeps entries in the process and nowhere else.
 *
 * @example
 * ```ts
 * const memory = createMemory({ store: inProcessMemoryStore() });
 * ```
 */
export function inProcessMemoryStore(): MemoryStore {
  const index = new MemoryIndex();
  return indexedStore({
    read: async () => index,
    write: async (plan) => {
      const operations = plan(index);
      for (const operation of operations) index.apply(operation);
      return operations.length;
    },
    close: async () => undefined,
  });
}
