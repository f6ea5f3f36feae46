/** Tool specs: the tools of the session, how they introduce themselves to a model, and how much they return. */
import type { JsonSchema } from 'turnloop';
import type { TextKind } from './texts.ts';

export type ToolName = 'read_file' | 'grep' | 'list_dir' | 'bash' | 'edit_file' | 'write_file';

export interface ToolSpec {
  readonly name: ToolName;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly readOnly?: boolean;
  /** Log-normal, in bytes, and what the text is. */
  readonly size: { readonly median: number; readonly sigma: number; readonly kinds: readonly TextKind[] };
}

const PATH = { type: 'string', description: 'Path, relative to the root of the repository.' };

export const TOOL_SPECS: readonly ToolSpec[] = [
  {
    name: 'read_file',
    description: 'Reads a file of the repository and returns its text. Prefer it to cat. Large files are cut in the middle.',
    inputSchema: { type: 'object', properties: { path: PATH, from_line: { type: 'integer' }, to_line: { type: 'integer' } }, required: ['path'] },
    readOnly: true,
    size: { median: 3_600, sigma: 1.9, kinds: ['code', 'code', 'code', 'json', 'english', 'chinese'] },
  },
  {
    name: 'grep',
    description: 'Searches files for a regular expression and returns the matching lines with path and line number.',
    inputSchema: { type: 'object', properties: { pattern: { type: 'string' }, path: PATH, ignore_case: { type: 'boolean' } }, required: ['pattern'] },
    readOnly: true,
    size: { median: 1_300, sigma: 1.5, kinds: ['code', 'log'] },
  },
  {
    name: 'list_dir',
    description: 'Lists what a folder holds, one entry a line, folders with a slash at the end.',
    inputSchema: { type: 'object', properties: { path: PATH }, required: ['path'] },
    readOnly: true,
    size: { median: 500, sigma: 1, kinds: ['code', 'json'] },
  },
  {
    name: 'bash',
    description: 'Runs a command in a shell and returns what it prints, both streams in one. Commands end after two minutes; long output is cut in the middle.',
    inputSchema: { type: 'object', properties: { command: { type: 'string' }, timeout_ms: { type: 'integer' } }, required: ['command'] },
    size: { median: 2_200, sigma: 2.4, kinds: ['log', 'log', 'json', 'english'] },
  },
  {
    name: 'edit_file',
    description: 'Replaces a piece of a file. The old text must stand in the file exactly once, white space included.',
    inputSchema: { type: 'object', properties: { path: PATH, old_text: { type: 'string' }, new_text: { type: 'string' } }, required: ['path', 'old_text', 'new_text'] },
    size: { median: 160, sigma: 0.5, kinds: ['code'] },
  },
  {
    name: 'write_file',
    description: 'Writes a file, and makes its folders. What was there is replaced.',
    inputSchema: { type: 'object', properties: { path: PATH, text: { type: 'string' } }, required: ['path', 'text'] },
    size: { median: 130, sigma: 0.3, kinds: ['english'] },
  },
];
