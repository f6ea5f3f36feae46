/**
 * Shell: runs one command with everything it starts, and leaves nothing of it behind.
 *
 * - The command gets a process group of its own: a timeout, an abort, its own end and the end of this process all kill
 *   the whole group, so that no server or watcher lives on. (On Windows, which has no groups, only the shell itself.)
 * - Its environment is ours without the API key, which no command that a model wrote needs to see, and without what npm
 *   told us of our own start.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { ToolUpdate } from 'turnloop';

/** Output kept in characters; of more, the beginning and the end. */
const MAX_OUTPUT_LENGTH = 1_000_000;
/** What a command gets to clean up after a polite signal. */
const KILL_DELAY_MS = 500;
/** How long output may still come once the shell has ended; then whatever holds the pipes open is killed. */
const DRAIN_MS = 200;

const HAS_GROUPS = process.platform !== 'win32';

export interface ShellOptions {
  /** Where it runs. */
  readonly folder: string;
  /** Stops it. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Told of output as it comes. */
  readonly onOutput: (update: ToolUpdate) => void;
}

export interface ShellResult {
  readonly end: 'exited' | 'timed_out' | 'aborted';
  /** As shells count: 128 + the number of the signal that killed it. */
  readonly exitCode: number;
  /** Standard output and error as they came. */
  readonly output: string;
}

/** Runs a command. Rejects only if no shell can be started. */
export function runShell(command: string, options: ShellOptions): Promise<ShellResult> {
  const { folder, signal, timeoutMs, onOutput } = options;
  if (signal.aborted) return Promise.resolve({ end: 'aborted', exitCode: 0, output: '' });
  return new Promise((resolve, reject) => {
    const child = spawn(command, {
      shell: true,
      cwd: folder,
      env: environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: HAS_GROUPS,
    });
    const output = createOutput();
    let end: ShellResult['end'] = 'exited';
    const timers: NodeJS.Timeout[] = [];

    for (const kind of ['stdout', 'stderr'] as const) {
      child[kind].setEncoding('utf8').on('data', (text: string) => {
        output.add(text);
        onOutput({ kind, text });
      });
    }

    const stop = (why: ShellResult['end']): void => {
      if (end !== 'exited') return;
      end = why;
      kill(child, 'SIGTERM');
      timers.push(setTimeout(killNow, KILL_DELAY_MS));
    };
    const onAbort = (): void => stop('aborted');
    const killNow = (): void => kill(child, 'SIGKILL');

    timers.push(setTimeout(() => stop('timed_out'), timeoutMs));
    signal.addEventListener('abort', onAbort);
    process.on('exit', killNow);
    const release = (): void => {
      for (const timer of timers) clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      process.off('exit', killNow);
    };

    child.on('exit', () => timers.push(setTimeout(killNow, DRAIN_MS)));
    child.on('close', (code, killedBy) => {
      release();
      killNow(); // What it left in the background without holding the pipes.
      resolve({ end, exitCode: code ?? 128 + (killedBy === null ? 0 : constants.signals[killedBy]), output: output.text() });
    });
    child.on('error', (error) => {
      release();
      reject(error);
    });
  });
}

function environment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => name !== 'OPENAI_API_KEY' && !name.startsWith('npm_'));
  // Plain output: neither a model nor our view wants colours or pagers.
  return { ...Object.fromEntries(own), NO_COLOR: '1', TERM: 'dumb', PAGER: 'cat', GIT_PAGER: 'cat' };
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    if (HAS_GROUPS) process.kill(-child.pid, signal);
    else child.kill(signal);
  } catch {
    // The group is gone already.
  }
}

/** Gathers output within bounds: a command may print for minutes. */
function createOutput(): { add(text: string): void; text(): string } {
  const half = MAX_OUTPUT_LENGTH / 2;
  let head = '';
  let tail = '';
  let omitted = 0;
  return {
    add(text) {
      const room = half - head.length;
      head += text.slice(0, room);
      tail += text.slice(Math.max(0, room));
      // Cut only now and then: cutting for each chunk would copy the whole tail each time.
      if (tail.length <= 2 * half) return;
      omitted += tail.length - half;
      tail = tail.slice(-half);
    },
    text: () => (omitted === 0 ? head + tail : `${head}\n[... ${omitted} characters omitted ...]\n${tail}`),
  };
}
