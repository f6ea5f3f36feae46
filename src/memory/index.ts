/**
 * Memory: what an agent remembers from one conversation to the next. Needs nothing but `turnloop`.
 *
 * @module
 */
export {
  type FoundMemory,
  type MemoryAddition,
  type MemoryChange,
  type MemoryEntry,
  MemoryError,
  type MemoryErrorCode,
  type MemoryExport,
  type MemoryFilter,
  type MemoryImportCounts,
  type MemoryKind,
  type MemoryListing,
  type MemoryOwner,
  type MemoryQuery,
  type MemoryScope,
  type MemorySource,
  type MemoryStore,
  type MemoryVector,
} from './memory-store.ts';
