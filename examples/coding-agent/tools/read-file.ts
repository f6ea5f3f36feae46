/** The tool `read_file`: the text of a file. */
import { ToolAccesses, defineTool, type AnyTool } from 'turnloop';
import { z } from 'zod';
import type { Workspace } from '../workspace.ts';
import { cutMiddle, MAX_RESULT_LENGTH } from './cut-middle.ts';

export function readFile(workspace: Workspace): AnyTool {
  return defineTool({
    name: 'read_file',
    description: 'Reads a text file.',
    input: z.object({ path: z.string().describe('The file, from the root of the workspace.') }),
    readOnly: true,
    accesses: ({ path }) => ToolAccesses.readFile(workspace.nameOf(path), workspace.pathOptions),
    describe: ({ path }) => `read ${path}`,
    execute: async ({ path }) => {
      const text = await workspace.readText(path);
      if (text === '') return '(empty file)';
      return { content: cutMiddle(text, MAX_RESULT_LENGTH), truncated: text.length > MAX_RESULT_LENGTH };
    },
  });
}
