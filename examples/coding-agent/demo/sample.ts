/** The sample workspace: what the demo and the tests work on. */
import { cpSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SAMPLE = fileURLToPath(new URL('workspace', import.meta.url));

/** Copies the sample workspace into a new temporary folder; whoever asks for it removes it. */
export function copySampleWorkspace(): string {
  const folder = mkdtempSync(join(tmpdir(), 'turnloop-demo-'));
  cpSync(SAMPLE, folder, { recursive: true });
  return folder;
}
