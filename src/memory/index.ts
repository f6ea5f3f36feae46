/**
 * Memory: what an agent remembers from one conversation to the next. Needs nothing but `turnloop`.
 *
 * @module
 */
export type { Embedder, EmbedOptions } from './embedder.ts';
export type { ExtractionOptions } from './extraction-options.ts';
export { fileMemoryStore, type FileMemoryStoreOptions } from './file-store.ts';
export { hashEmbedder } from './hash-embedder.ts';
export { inProcessMemoryStore } from './in-process-store.ts';
export { createMemory, type Memory, type MemorySessionOptions } from './memory.ts';
export type { ConversationSearch, MemoryOptions, PastConversation } from './memory-options.ts';
export type { MemorySearch } from './memory-search.ts';
export type { ExtractionReport, ExtractRequest, MemorySession, RecallOptions } from './memory-session.ts';
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
export { type ImportedMemories, newMemories, readMemoryExport, toMemoryExport } from './memory-transfer.ts';
export type { NewMemory } from './new-memory.ts';
export { type HalfLives, type RankedMemory, rankMemories, type RankOptions, type RankWeights } from './rank.ts';
export type { RecallInput } from './recall-tool.ts';
