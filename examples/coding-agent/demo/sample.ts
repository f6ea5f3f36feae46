/** The sample workspace: what the demo and the tests work on. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SAMPLE = fileURLToPath(new URL('workspace', import.meta.url));

/** Copies the sample workspace into a folder that goes away with the process. */
export function copySampleWorkspace(): string {
  const folder = mkdtempSync(join(tmpdir(), 'turnloop-demo-'));
  cpSync(SAMPLE, folder, { recursive: true });
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
