/** The tool `list_files`: what is in a folder. */
import { ToolAccesses, defineTool, type AnyTool } from 'turnloop';
import { z } from 'zod';
import type { Workspace } from '../workspace.ts';
import { cutMiddle, MAX_RESULT_LENGTH } from './cut-middle.ts';

export function listFiles(workspace: Workspace): AnyTool {
  return defineTool({
    name: 'list_files',
    description: 'Lists the files of a folder, one name per line; names of folders end with "/". The root is ".".',
    input: z.object({ path: z.string().describe('The folder, from the root of the workspace.') }),
    readOnly: true,
    accesses: ({ path }) => ToolAccesses.readTree(workspace.nameOf(path), workspace.pathOptions),
    describe: ({ path }) => `list ${path}`,
    execute: async ({ path }) => {
      const names = await workspace.list(path);
      return names.length === 0 ? '(no files)' : cutMiddle(names.join('\n'), MAX_RESULT_LENGTH);
    },
  });
}
