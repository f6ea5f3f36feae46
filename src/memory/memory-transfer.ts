/**
 * Memory transfer: entries as JSON, out of a store and into one. For whoever writes a store.
 *
 * An import is lenient with entries and strict with the whole: what is no export is refused, an entry that is none is counted.
 */
import { isRecord } from '../core/json.ts';
import { toEntry } from './check-entry.ts';
import { byOldest } from './filter-entries.ts';
import { type MemoryEntry, MemoryError, type MemoryExport } from './memory-store.ts';

/** The one version there is. */
const VERSION = 1;

/** What an import holds. */
export interface ImportedMemories {
  /** What is an entry, in the order in which it stood there. */
  readonly entries: readonly MemoryEntry[];
  /** How much is none. */
  readonly invalid: number;
}

/** Entries as an export: oldest first, of the same time by id, whatever their order. */
export function toMemoryExport(entries: readonly MemoryEntry[]): MemoryExport {
  return { format: 'turnloop.memory', version: VERSION, entries: [...entries].sort(byOldest) };
}

/**
 * What an export holds.
 *
 * @throws MemoryError `invalid_export`, `unsupported_version`.
 */
export function readMemoryExport(data: unknown): ImportedMemories {
  if (!isRecord(data) || data['format'] !== 'turnloop.memory' || !Array.isArray(data['entries'])) {
    throw new MemoryError(
      'invalid_export',
      "This is no export of memories, which has the format 'turnloop.memory' and a list of entries. Nothing was imported. For example: import(JSON.parse(text)).",
    );
  }
  if (data['version'] !== VERSION) {
    const version = typeof data['version'] === 'number' ? String(data['version']) : 'unknown';
    throw new MemoryError(
      'unsupported_version',
      `This export of memories has version ${version}; this version of turnloop reads version ${VERSION}. Nothing was imported.`,
    );
  }
  const read = data['entries'].map(toEntry);
  const entries = read.filter((entry) => entry !== undefined);
  return { entries, invalid: read.length - entries.length };
}

/** Equal for entries that say the same of the same owner: one of them is enough. */
function duplicateKey({ scope, scopeId, kind, text }: MemoryEntry): string {
  return JSON.stringify([scope, scopeId, kind, text]);
}

/**
 * Those of an import that are no duplicates: neither of what the store had before nor, by their id, of each other. Equal
 * texts within one export stay, so that it gives back what was exported.
 *
 * @param had - What the store has.
 */
export function newMemories(entries: readonly MemoryEntry[], had: readonly MemoryEntry[]): readonly MemoryEntry[] {
  const ids = new Set(had.map(({ id }) => id));
  const said = new Set(had.map(duplicateKey));
  return entries.filter((entry) => {
    if (ids.has(entry.id) || said.has(duplicateKey(entry))) return false;
    ids.add(entry.id);
    return true;
  });
}
