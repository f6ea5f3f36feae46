/** The tool `search`: the lines of a folder's files that hold a text. */
import { ToolAccesses, defineTool, type AnyTool } from 'turnloop';
import { z } from 'zod';
import type { Workspace } from '../workspace.ts';

/** More lines than this say "ask more precisely". */
const MAX_MATCHES = 100;
/** Long lines (minified code, data) are cut: the place is what counts. */
const MAX_LINE_LENGTH = 70;
/** Files read at the same time: enough to keep a disk busy. */
const BATCH_SIZE = 16;

export function search(workspace: Workspace): AnyTool {
  return defineTool({
    name: 'search',
    description: `Searches the files of a folder for a text (not a pattern), case-sensitively. Gives one line "PATH:LINE: TEXT" for each match, at most ${MAX_MATCHES}, or "No matches".`,
    input: z.object({
      pattern: z.string().min(1).describe('The text to search for.'),
      path: z.string().describe('A folder or a file, from the root of the workspace; "." for everything.'),
    }),
    readOnly: true,
    accesses: ({ path }) => ToolAccesses.readTree(workspace.nameOf(path), workspace.pathOptions),
    describe: ({ pattern, path }) => `search for ${pattern} in ${path}`,
    execute: async ({ pattern, path }, context) => {
      const matches: string[] = [];
      let fileCount = 0;
      for await (const batch of inBatches(workspace.files(path), BATCH_SIZE)) {
        context.signal.throwIfAborted();
        const found = await Promise.all(batch.map((file) => searchFile(workspace, file, pattern)));
        matches.push(...found.flat());
        if (matches.length > MAX_MATCHES) break;
        fileCount += batch.length;
        if (batch.length === BATCH_SIZE) context.progress({ kind: 'status', text: `${fileCount} files searched` });
      }
      if (matches.length === 0) return 'No matches';
      if (matches.length <= MAX_MATCHES) return matches.join('\n');
      const shown = [...matches.slice(0, MAX_MATCHES), '[... more matches omitted ...]'];
      return { content: shown.join('\n'), truncated: true };
    },
  });
}

async function searchFile(workspace: Workspace, file: string, pattern: string): Promise<readonly string[]> {
  let text: string;
  try {
    text = await workspace.readText(file);
  } catch {
    return []; // Binary, too large, unreadable or gone by now: nothing to find there.
  }
  if (!text.includes(pattern)) return [];
  return text.split('\n').flatMap((line, index) => (line.includes(pattern) ? [`${file}:${index + 1}: ${excerptOf(line, pattern)}`] : []));
}

/** A line, or of a long one the piece that holds the match. */
function excerptOf(line: string, pattern: string): string {
  const text = line.trim();
  if (text.length <= MAX_LINE_LENGTH) return text;
  const centred = text.indexOf(pattern) - (MAX_LINE_LENGTH - pattern.length) / 2;
  const start = Math.max(0, Math.min(Math.floor(centred), text.length - MAX_LINE_LENGTH));
  return text.slice(start, start + MAX_LINE_LENGTH);
}

async function* inBatches<Item>(items: AsyncIterable<Item>, size: number): AsyncGenerator<readonly Item[]> {
  let batch: Item[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
