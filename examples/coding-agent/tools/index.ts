/** The agent's tools, by the names and arguments that the embedded model was trained on. */
import type { AnyTool } from 'turnloop';
import type { Workspace } from '../workspace.ts';
import { editFile } from './edit-file.ts';
import { listFiles } from './list-files.ts';
import { readFile } from './read-file.ts';
import { runCommand } from './run-command.ts';
import { search } from './search.ts';

export function createTools(workspace: Workspace): readonly AnyTool[] {
  return [listFiles(workspace), readFile(workspace), search(workspace), editFile(workspace), runCommand(workspace)];
}
