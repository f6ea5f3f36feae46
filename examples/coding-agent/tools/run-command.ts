/** The tool `run_command`: a shell command in the workspace, its output shown as it comes. */
import { stripVTControlCharacters } from 'node:util';
import { ToolAccesses, defineTool, type AnyTool } from 'turnloop';
import { z } from 'zod';
import type { Workspace } from '../workspace.ts';
import { runShell, type ShellResult } from './shell.ts';
import { cutMiddle, MAX_RESULT_LENGTH } from './cut-middle.ts';

/** Long enough for most test suites; a command that waits for something ends all the same. */
const TIMEOUT_MS = 120_000;

export interface RunCommandOptions {
  /** @defaultValue 120,000 */
  readonly timeoutMs?: number | undefined;
}

export function runCommand(workspace: Workspace, { timeoutMs = TIMEOUT_MS }: RunCommandOptions = {}): AnyTool {
  return defineTool({
    name: 'run_command',
    description: `Runs a shell command in the root of the workspace, without input, for at most ${timeoutMs / 1000} seconds. Gives what it printed.`,
    input: z.object({ command: z.string().min(1) }),
    // Nobody knows what a command touches: it runs alone. (Also the default.)
    accesses: () => ToolAccesses.all(),
    describe: ({ command }) => `run ${command}`,
    execute: async ({ command }, context) => {
      const result = await runShell(command, {
        folder: workspace.root,
        signal: context.signal,
        timeoutMs,
        onOutput: (update) => context.progress(update),
      });
      const output = stripVTControlCharacters(result.output).trim();
      const failure = failureOf(result, timeoutMs);
      const text = failure === undefined ? output || '(no output)' : [failure, output].join('\n').trim();
      const truncated = text.length > MAX_RESULT_LENGTH;
      return {
        content: cutMiddle(text, MAX_RESULT_LENGTH),
        isError: failure !== undefined,
        // People get to see all of it.
        ...(truncated && { truncated, display: text }),
      };
    },
  });
}

function failureOf({ end, exitCode }: ShellResult, timeoutMs: number): string | undefined {
  switch (end) {
    case 'exited':
      return exitCode === 0 ? undefined : `Error: command failed with exit code ${exitCode}`;
    case 'timed_out':
      return `Error: timed out after ${timeoutMs / 1000} s`;
    case 'aborted':
      return 'Error: command was stopped';
  }
}
