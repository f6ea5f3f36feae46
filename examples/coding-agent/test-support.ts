/** What the tests of this example share: temporary folders, and a context for tools that run without a turn. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemRuntime, type ToolContext, type ToolUpdate } from 'turnloop';
import { onTestFinished } from 'vitest';
import { copySampleWorkspace } from './demo/sample.ts';

/** Makes a folder with these files; it goes away after the test. */
export function makeFolder(files: Readonly<Record<string, string | Uint8Array>> = {}): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'coding-agent-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

/** Makes a copy of the sample workspace; it goes away after the test. */
export function makeSample(): string {
  const folder = copySampleWorkspace();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface RecordingContext extends ToolContext {
  readonly updates: ToolUpdate[];
}

/** A context that keeps the progress it is told. */
export function createContext(signal: AbortSignal = new AbortController().signal): RecordingContext {
  const updates: ToolUpdate[] = [];
  return {
    turnId: 'turn_1',
    step: 1,
    toolCallId: 'call_1',
    idempotencyKey: 'call_1',
    inputText: '',
    signal,
    updates,
    progress: (update) => void updates.push(update),
    llm: { provider: 'none', modelId: 'none', systemPrompt: '', chat: () => Promise.reject(new Error('no model here')) },
    host: undefined,
    runtime: systemRuntime,
    forward: () => undefined,
    recordUsage: () => Promise.resolve(),
  };
}

/** Waits until something holds: for what other processes do, of which there is no event. */
export async function waitUntil(holds: () => boolean, limitMs = 10_000): Promise<void> {
  const end = Date.now() + limitMs;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`did not happen within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
