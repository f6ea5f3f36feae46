/** The tools keep what the loop expects of tools: on real files, and with real processes that are aborted. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { toolConformance, type ToolConformanceOptions } from 'turnloop/testing/conformance';
import { describe, it } from 'vitest';
import { makeFolder } from './test-support.ts';
import { createTools } from './tools/index.ts';
import { openWorkspace } from './workspace.ts';

const FILES = { 'a.txt': 'hello\n', 'src/b.ts': 'export const x = 1;\n' };

const SECRETS = 'they have none';
const SOON = 'it reads a few small files';

const OPTIONS: Readonly<Record<string, ToolConformanceOptions>> = {
  read_file: {
    inputs: { good: [{ path: 'a.txt' }, { path: 'src/b.ts' }], bad: [{ input: { path: 1 }, field: 'path' }], failing: [{ path: 'none' }, { path: '../a' }] },
    skip: { secrets: SECRETS, abort: SOON },
  },
  list_files: {
    inputs: { good: [{ path: '.' }, { path: 'src' }], bad: [{ input: { path: 1 }, field: 'path' }], failing: [{ path: 'none' }, { path: '..' }] },
    skip: { secrets: SECRETS, abort: SOON },
  },
  search: {
    inputs: { good: [{ pattern: 'hello', path: '.' }, { pattern: 'none', path: '.' }], bad: [{ input: { pattern: '', path: '.' }, field: 'pattern' }], failing: [{ pattern: 'x', path: 'none' }] },
    skip: { secrets: SECRETS, abort: SOON },
  },
  edit_file: {
    inputs: {
      good: [{ path: 'a.txt', old_text: 'hello', new_text: 'bye' }, { path: 'src/b.ts', old_text: '1', new_text: '2' }],
      bad: [{ input: { path: 'a.txt', old_text: '', new_text: '' }, field: 'old_text' }],
      failing: [{ path: 'a.txt', old_text: 'none', new_text: '' }],
    },
    skip: { secrets: SECRETS, abort: SOON },
  },
  run_command: {
    inputs: {
      good: [{ command: 'echo hello' }],
      bad: [{ input: { command: '' }, field: 'command' }],
      failing: [{ command: 'exit 3' }],
      long: [{ command: 'sleep 1000' }, { command: 'while true; do echo on and on; sleep 0.01; done' }],
    },
    skip: { secrets: SECRETS },
  },
};

/** Every file of a folder, with its text. */
function contentOf(folder: string): Readonly<Record<string, string>> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => statSync(join(folder, name)).isFile());
  return Object.fromEntries(files.sort().map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}

describe.each(Object.entries(OPTIONS))('%s', (name, options) => {
  const createTool = () => {
    const folder = makeFolder(FILES);
    const tool = createTools(openWorkspace(folder)).find((each) => each.name === name)!;
    return { tool, state: () => contentOf(folder) };
  };

  for (const { name: title, run } of toolConformance(createTool, options)) it(title, run);
});
