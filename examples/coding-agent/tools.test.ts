/**
 * The tools on real files and real processes: what the model gets to read, what they touch, and that nothing of a
 * command lives on. Each is run as the loop would, without a loop.
 */
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { accessesConflict, type AnyTool, type ToolAccess } from 'turnloop';
import { toolContext } from 'turnloop/testing';
import { describe, expect, it } from 'vitest';
import { makeFolder, waitUntil } from './test-support.ts';
import { cutMiddle } from './tools/cut-middle.ts';
import { createTools } from './tools/index.ts';
import { runCommand } from './tools/run-command.ts';
import { openWorkspace } from './workspace.ts';

const FILES = {
  'README.md': '# demo\n\nSome text.\n',
  'src/index.ts': "export const VERSION = '1.0.0';\n",
  'src/core/loop.ts': "import { VERSION } from '../index.ts';\n\n  console.log(VERSION);\n",
};

function toolsOf(folder: string): Map<string, AnyTool> {
  return new Map(createTools(openWorkspace(folder)).map((tool) => [tool.name, tool]));
}

/** Runs a tool of a folder. */
async function run(folder: string, name: string, input: Readonly<Record<string, string>>): Promise<unknown> {
  return toolsOf(folder).get(name)?.execute(input, toolContext());
}

function accessesOf(folder: string, name: string, input: Readonly<Record<string, string>>): readonly ToolAccess[] {
  return toolsOf(folder).get(name)?.accesses?.(input) ?? [];
}

describe('list_files and read_file', () => {
  it('give one name a line, and the text of a file', async () => {
    const folder = makeFolder({ ...FILES, 'empty.txt': '' });

    expect(await run(folder, 'list_files', { path: '.' })).toBe('README.md\nempty.txt\nsrc/');
    expect(await run(folder, 'read_file', { path: 'README.md' })).toStrictEqual({ content: FILES['README.md'], truncated: false });
    expect(await run(folder, 'read_file', { path: 'empty.txt' })).toBe('(empty file)');
  });

  it('cuts long files in the middle and says so', async () => {
    const folder = makeFolder({ 'long.txt': `begin${'x'.repeat(50_000)}end` });

    const result = await run(folder, 'read_file', { path: 'long.txt' });

    expect(result).toStrictEqual({
      content: `begin${'x'.repeat(14_995)}\n[... 30008 characters omitted ...]\n${'x'.repeat(4_997)}end`,
      truncated: true,
    });
    expect(cutMiddle('short', 5)).toBe('short');
  });
});

describe('search', () => {
  it('gives place and text of each match, in the order of the files', async () => {
    const folder = makeFolder({ ...FILES, 'src/nul.bin': 'VERSION\0', 'node_modules/a.js': 'VERSION' });

    expect(await run(folder, 'search', { pattern: 'VERSION', path: '.' })).toBe(
      "src/core/loop.ts:1: import { VERSION } from '../index.ts';\nsrc/core/loop.ts:3: console.log(VERSION);\nsrc/index.ts:1: export const VERSION = '1.0.0';",
    );
    expect(await run(folder, 'search', { pattern: 'VERSION', path: 'src/index.ts' })).toBe("src/index.ts:1: export const VERSION = '1.0.0';");
    expect(await run(folder, 'search', { pattern: '.*', path: '.' })).toBe('No matches');
  });

  it('shows the piece of a long line that holds the match', async () => {
    const folder = makeFolder({ 'a.js': `${'a'.repeat(500)}needle${'b'.repeat(500)}` });

    expect(await run(folder, 'search', { pattern: 'needle', path: '.' })).toBe(`a.js:1: ${'a'.repeat(32)}needle${'b'.repeat(32)}`);
  });

  it('stops at a hundred matches, and when told to', async () => {
    const folder = makeFolder({ 'a.txt': 'x\n'.repeat(150) });
    const aborted = toolContext({ signal: AbortSignal.abort(new Error('stop')) });

    const result = await run(folder, 'search', { pattern: 'x', path: '.' });

    expect(result).toStrictEqual({
      content: [...Array.from({ length: 100 }, (_, index) => `a.txt:${index + 1}: x`), '[... more matches omitted ...]'].join('\n'),
      truncated: true,
    });
    await expect(toolsOf(folder).get('search')?.execute({ pattern: 'x', path: '.' }, aborted)).rejects.toThrow('stop');
  });

  it('tells how far it is', async () => {
    const folder = makeFolder(Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`${index}.txt`, 'x'])));
    const context = toolContext();

    await toolsOf(folder).get('search')?.execute({ pattern: 'y', path: '.' }, context);

    expect(context.updates).toStrictEqual([{ kind: 'status', text: '16 files searched' }]);
  });
});

describe('edit_file', () => {
  it('replaces a text and shows people the change', async () => {
    const folder = makeFolder(FILES);

    const result = await run(folder, 'edit_file', { path: 'src/index.ts', old_text: "'1.0.0'", new_text: "'$&'" });

    expect(result).toStrictEqual({ content: 'Edited src/index.ts', display: "- '1.0.0'\n+ '$&'" });
    expect(readFileSync(join(folder, 'src/index.ts'), 'utf8')).toBe("export const VERSION = '$&';\n");
  });

  it('changes nothing when the text is missing or not the only one', async () => {
    const folder = makeFolder(FILES);

    await expect(run(folder, 'edit_file', { path: 'README.md', old_text: 'foo', new_text: 'bar' })).rejects.toThrow(
      'old_text not found in README.md',
    );
    await expect(run(folder, 'edit_file', { path: 'src/core/loop.ts', old_text: 'VERSION', new_text: 'X' })).rejects.toThrow(
      'old_text is 2 times in src/core/loop.ts: give more of the text around it',
    );
    await expect(run(folder, 'edit_file', { path: '../out.txt', old_text: 'a', new_text: 'b' })).rejects.toThrow('outside the workspace');
    expect(readFileSync(join(folder, 'src/core/loop.ts'), 'utf8')).toBe(FILES['src/core/loop.ts']);
  });

  it('keeps a byte order mark and Windows line ends', async () => {
    const folder = makeFolder({ 'a.txt': '\uFEFFone\r\ntwo\r\n' });

    await run(folder, 'edit_file', { path: 'a.txt', old_text: 'two', new_text: 'three' });

    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('\uFEFFone\r\nthree\r\n');
  });
});

describe('run_command', { timeout: 20_000 }, () => {
  it('gives the output, and shows it as it comes', async () => {
    const folder = makeFolder(FILES);
    const context = toolContext();

    const result = await toolsOf(folder).get('run_command')?.execute({ command: 'cat README.md; sleep 0.1; echo oops >&2' }, context);

    expect(result).toStrictEqual({ content: '# demo\n\nSome text.\noops', isError: false });
    expect(context.updates).toStrictEqual([
      { kind: 'stdout', text: '# demo\n\nSome text.\n' },
      { kind: 'stderr', text: 'oops\n' },
    ]);
  });

  it('tells of a failure first, and of silence', async () => {
    const folder = makeFolder(FILES);

    expect(await run(folder, 'run_command', { command: 'echo broken; exit 3' })).toStrictEqual({
      content: 'Error: command failed with exit code 3\nbroken',
      isError: true,
    });
    expect(await run(folder, 'run_command', { command: 'kill -KILL $$' })).toStrictEqual({
      content: 'Error: command failed with exit code 137',
      isError: true,
    });
    expect(await run(folder, 'run_command', { command: 'true' })).toStrictEqual({ content: '(no output)', isError: false });
  });

  it('shows people all of an output that is cut for the model', async () => {
    const result = await run(makeFolder(), 'run_command', { command: 'head -c 30000 /dev/zero | tr "\\0" x' });

    expect(result).toStrictEqual({
      content: `${'x'.repeat(15_000)}\n[... 10000 characters omitted ...]\n${'x'.repeat(5_000)}`,
      isError: false,
      truncated: true,
      display: 'x'.repeat(30_000),
    });
  });

  it('keeps the API key to itself and gives no input', async () => {
    process.env['OPENAI_API_KEY'] = 'sk-secret';

    const result = await run(makeFolder(), 'run_command', { command: 'cat; echo "key: $OPENAI_API_KEY"' });

    delete process.env['OPENAI_API_KEY'];
    expect(result).toStrictEqual({ content: 'key:', isError: false });
  });

  it('kills the command and all it started when its time is over', async () => {
    const folder = makeFolder();
    const tool = runCommand(openWorkspace(folder), { timeoutMs: 300 });
    const command = 'echo started; sleep 600 & echo $! > pid; trap "" TERM; wait; sleep 600';

    const result = await tool.execute({ command }, toolContext());

    expect(result).toStrictEqual({ content: 'Error: timed out after 0.3 s\nstarted', isError: true });
    await waitUntil(() => !isRunning(folder));
  });

  it('kills the command and all it started when it is aborted', async () => {
    const folder = makeFolder();
    const controller = new AbortController();
    const context = toolContext({ signal: controller.signal });

    const result = runCommand(openWorkspace(folder)).execute({ command: 'sleep 600 & echo $! > pid; echo ready; wait' }, context);
    await waitUntil(() => context.updates.length > 0);
    controller.abort();

    expect(await result).toStrictEqual({ content: 'Error: command was stopped\nready', isError: true });
    await waitUntil(() => !isRunning(folder));
  });

  it('starts nothing when it is aborted already', async () => {
    const folder = makeFolder();

    const result = await runCommand(openWorkspace(folder)).execute({ command: 'touch started' }, toolContext({ signal: AbortSignal.abort() }));

    expect(result).toStrictEqual({ content: 'Error: command was stopped', isError: true });
    expect(existsSync(join(folder, 'started'))).toBe(false);
  });

  it('does not wait for what a command leaves in the background, and ends it', async () => {
    const folder = makeFolder();

    const result = await run(folder, 'run_command', { command: 'sleep 600 & echo $! > pid; echo done' });

    expect(result).toStrictEqual({ content: 'done', isError: false });
    await waitUntil(() => !isRunning(folder));
  });
});

describe('accesses', () => {
  it('let reads overlap, and keep edits of one file apart by whatever name', () => {
    const folder = makeFolder(FILES);
    symlinkSync('README.md', join(folder, 'link.md'));
    const read = accessesOf(folder, 'read_file', { path: 'README.md' });
    const searchAll = accessesOf(folder, 'search', { pattern: 'x', path: '.' });
    const edit = accessesOf(folder, 'edit_file', { path: './README.md' });
    const editLink = accessesOf(folder, 'edit_file', { path: 'link.md' });
    const editOther = accessesOf(folder, 'edit_file', { path: join(folder, 'src/index.ts') });
    const command = accessesOf(folder, 'run_command', { command: 'true' });

    expect(accessesConflict(read, searchAll)).toBe(false);
    expect(accessesConflict(edit, editOther)).toBe(false);
    expect(accessesConflict(read, edit)).toBe(true);
    expect(accessesConflict(edit, editLink)).toBe(true);
    expect(accessesConflict(searchAll, editOther)).toBe(true);
    expect(accessesConflict(command, read)).toBe(true);
  });
});

/** Whether the process whose id a command left in the file `pid` still runs. */
function isRunning(folder: string): boolean {
  const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // Dead, but nobody has asked for its exit code: who adopts it may never do so.
  return !isZombie(pid);
}

function isZombie(pid: number): boolean {
  try {
    return /^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
