/** New memory: what a host gives to be remembered, and the entry that it becomes. */
import type { Runtime } from '../core/runtime.ts';
import { assertEntry } from './check-entry.ts';
import type { MemoryEntry } from './memory-store.ts';

/** Something to remember. */
export interface NewMemory extends Pick<MemoryEntry, 'scope' | 'scopeId' | 'text' | 'pinned' | 'source'> {
  /** @defaultValue `'fact'` */
  readonly kind?: MemoryEntry['kind'] | undefined;
  /** How much it matters, from 0 to 1. @defaultValue 0.5 */
  readonly importance?: number | undefined;
  /** When it was learned, in milliseconds since the epoch. @defaultValue now */
  readonly createdAt?: number | undefined;
}

const DEFAULT_IMPORTANCE = 0.5;

/** The entry of something to remember. @throws TypeError if it is none. */
export function toNewEntry(memory: NewMemory, runtime: Runtime): MemoryEntry {
  const { kind = 'fact', importance = DEFAULT_IMPORTANCE, createdAt = runtime.now(), ...rest } = memory;
  const entry = { ...rest, id: runtime.createId('message').replace('message', 'memory'), kind, importance, createdAt };
  assertEntry(entry);
  return entry;
}
