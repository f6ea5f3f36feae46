import { readFile, writeFile } from 'node:fs/promises';
import { ToolAccesses } from 'turnloop';
import { defineTool } from 'turnloop/zod';
import * as z from 'zod';

export const appendLine = defineTool({
  name: 'append_line',
  description: 'Appends a line to a text file.',
  input: z.object({ path: z.string(), line: z.string() }),
  // Calls on other files may run at the same time, calls on this one wait.
  accesses: ({ path }) => ToolAccesses.writeFile(path),
  // After a crash in the middle nobody knows whether the line is there: do not run it again.
  replay: 'never',
  timeoutMs: 5_000,
  describe: ({ path }) => `append a line to ${path}`,
  execute: async ({ path, line }, { signal, progress }) => {
    progress({ kind: 'status', text: `reading ${path}` });
    const text = await readFile(path, { encoding: 'utf8', signal });
    await writeFile(path, `${text}${line}\n`, { signal });
    return { content: 'Done.', display: `+ ${line}` };
  },
});
