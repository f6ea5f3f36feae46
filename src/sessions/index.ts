/**
 * Session stores: a log of events for each session, with snapshots, that a crash of the process leaves whole.
 *
 * @module
 */
export { fileSessionStore, type FileSessionStoreOptions } from './file-session-store.ts';
export type { FileInfo, FileSystem, FolderEntry, OpenFile } from './file-system.ts';
export { inProcessSessionStore, type InProcessSessionStoreOptions } from './in-process-store.ts';
export { nodeFileSystem } from './node-file-system.ts';
export {
  type HandoffEvent,
  type InputQueuedEvent,
  type InputRemovedEvent,
  type NewSession,
  SESSION_VERSION,
  type SessionContent,
  SessionError,
  type SessionErrorCode,
  type SessionEvent,
  type SessionFork,
  type SessionHeader,
  type SessionLog,
  type SessionRepair,
  type SessionSnapshot,
  type SessionStore,
  type SessionSummary,
  type StoredSession,
} from './session-store.ts';
