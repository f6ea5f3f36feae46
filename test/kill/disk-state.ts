/** Disk state: what of a session is on the disk when its process is dead, read without the store. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** What stands on the disk. */
export interface DiskState {
  /** Ids of calls that have finished, of the session and its sub-agents. */
  readonly finished: ReadonlySet<string>;
  /** Ids of calls of `append` that have begun and not finished: nobody knows whether they took effect. */
  readonly unknown: ReadonlySet<string>;
  /** Events whose line is whole. */
  readonly events: number;
  /** Whether the session has a snapshot. */
  readonly hasSnapshot: boolean;
  /** Names of files that are there while a session is open, and not when it is closed. */
  readonly leftOvers: readonly string[];
}

interface Line {
  readonly type?: string;
  readonly toolCallId?: string;
  readonly name?: string;
}

/** Reads what is there. @throws Error if a file is corrupt: a line that is no JSON, a snapshot that is none */
export function readDisk(store: string): DiskState {
  const finished = new Set<string>();
  const started = new Set<string>();
  const never = new Set<string>();
  let events = 0;
  let hasSnapshot = false;
  const leftOvers: string[] = [];
  for (const path of filesOfSessions(store)) {
    const name = basename(path);
    if (name === 'snapshot.json') {
      JSON.parse(readFileSync(path, 'utf8'));
      hasSnapshot = true;
    } else if (name === 'log.jsonl') {
      const lines = readLines(path);
      events += lines.length - 1;
      for (const { type, toolCallId = '', name: tool } of lines) {
        if (type === 'tool.call' && tool === 'append') never.add(toolCallId);
        if (type === 'tool.start') started.add(toolCallId);
        if (type === 'tool.finished') finished.add(toolCallId);
      }
    } else if (name !== 'lock.free') {
      leftOvers.push(name);
    }
  }
  return { finished, unknown: new Set([...started].filter((id) => never.has(id) && !finished.has(id))), events, hasSnapshot, leftOvers };
}

/** The lines of a log; one without a line break at its end was never confirmed, and is none. */
function readLines(path: string): readonly Line[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  lines.pop();
  return lines.map((line) => JSON.parse(line) as Line);
}

/** A session or sub-agent that was being made when its process died is none yet; the store removes what there is of it in time. */
function filesOfSessions(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return [path];
    return entry.name.startsWith('.tmp-') ? [] : filesOfSessions(path);
  });
}
