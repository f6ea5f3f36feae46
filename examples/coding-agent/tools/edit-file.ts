/** The tool `edit_file`: replaces a piece of text in a file. */
import { ToolAccesses, defineTool, type AnyTool } from 'turnloop';
import { z } from 'zod';
import type { Workspace } from '../workspace.ts';

export function editFile(workspace: Workspace): AnyTool {
  return defineTool({
    name: 'edit_file',
    description: 'Replaces a text in a file. The text must be in the file exactly once: give as much around it as that takes.',
    input: z.object({
      path: z.string().describe('The file, from the root of the workspace.'),
      old_text: z.string().min(1).describe('The text to replace, exactly as it stands in the file.'),
      new_text: z.string().describe('What to put there.'),
    }),
    // Two edits of one file run one after the other, whatever they call it; of different files at the same time.
    accesses: ({ path }) => ToolAccesses.writeFile(workspace.nameOf(path), workspace.pathOptions),
    describe: ({ path }) => `edit ${path}`,
    execute: async ({ path, old_text: oldText, new_text: newText }) => {
      const text = await workspace.readText(path);
      const start = text.indexOf(oldText);
      if (start < 0) throw new Error(`old_text not found in ${path}`);
      const count = text.split(oldText).length - 1;
      if (count > 1) throw new Error(`old_text is ${count} times in ${path}: give more of the text around it`);
      await workspace.writeText(path, text.slice(0, start) + newText + text.slice(start + oldText.length));
      return { content: `Edited ${path}`, display: [...marked('-', oldText), ...marked('+', newText)].join('\n') };
    },
  });
}

function marked(mark: string, text: string): readonly string[] {
  return text.split('\n').map((line) => `${mark} ${line}`);
}
