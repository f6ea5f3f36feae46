/** What tests of memory share: entries, folders that go away, and every store of ours that runs here. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createClient } from '@libsql/client';
import { afterEach } from 'vitest';
import { fileMemoryStore, inProcessMemoryStore, type MemoryEntry, type MemoryOwner, type MemoryStore } from 'turnloop/memory';
import { sqliteMemoryStore } from 'turnloop/memory/sqlite';

export const ADA: MemoryOwner = { scope: 'user', scopeId: 'ada' };
export const BOB: MemoryOwner = { scope: 'user', scopeId: 'bob' };
export const DAY_MS = 24 * 60 * 60 * 1_000;

const folders: string[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

/** A folder of its own, gone after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'memory-'));
  folders.push(folder);
  return folder;
}

/** An entry of Ada's; what is not given is the same each time. */
export function entryOf(parts: Partial<MemoryEntry> & Pick<MemoryEntry, 'id'>): MemoryEntry {
  return { kind: 'fact', ...ADA, text: `Note ${parts.id}.`, importance: 0.5, createdAt: 1_000, ...parts };
}

/** Adds entries without vectors. */
export async function addAll(store: MemoryStore, entries: readonly MemoryEntry[]): Promise<void> {
  await store.add(entries.map((entry) => ({ entry })));
}

export const STORES: readonly (readonly [name: string, create: () => Promise<MemoryStore>])[] = [
  ['in-process', async () => inProcessMemoryStore()],
  ['file', async () => fileMemoryStore(await temporaryFolder())],
  ['SQLite', async () => sqliteMemoryStore({ client: createClient({ url: ':memory:' }) })],
];
