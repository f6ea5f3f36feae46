/**
 * A small coding agent on real files: `npm start -- --help`.
 *
 * This file only puts the pieces together: `conversation.ts` is how an application runs turns, `tools/` how it lends
 * the model a hand, `view.ts` how it shows what happens, `interrupts.ts` how it stops.
 */
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { LoopEvent, TurnResult } from 'turnloop';
import { createConversation, type Conversation } from './conversation.ts';
import { DEMO_CONVERSATIONS } from './demo/requests.ts';
import { copySampleWorkspace } from './demo/sample.ts';
import { createInterrupts, INTERRUPTED_EXIT_CODE, type Interrupts } from './interrupts.ts';
import { createJsonView } from './json-view.ts';
import { chooseModel } from './model.ts';
import { HELP, parseOptions, type Options } from './options.ts';
import { createTools } from './tools/index.ts';
import { createTerminalView } from './view.ts';
import { openWorkspace } from './workspace.ts';

async function main(argv: readonly string[]): Promise<number> {
  const options = parseOptions(argv);
  if (options.isHelp) {
    process.stdout.write(HELP);
    return 0;
  }
  const { llm, notice } = chooseModel(process.env, options.model);
  tell(`${notice}\n`);
  const show = createView(options);
  const interrupts = listenForInterrupts();
  const open = (folder: string): Conversation => createConversation({ llm, tools: createTools(openWorkspace(folder)), show });
  const ask = async (conversation: Conversation, question: string): Promise<number> =>
    exitCodeOf(await interrupts.guard((control) => conversation.ask(question, control)));

  if (options.question === undefined && !options.isChat) return runDemo(open, ask);
  const conversation = open(options.folder);
  const exitCode = options.question === undefined ? 0 : await ask(conversation, options.question);
  return options.isChat ? chat((question) => ask(conversation, question), interrupts) : exitCode;
}

/** One conversation after the other, each with its own memory, all on the same files. */
async function runDemo(open: (folder: string) => Conversation, ask: (conversation: Conversation, question: string) => Promise<number>): Promise<number> {
  const folder = copySampleWorkspace();
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  tell(`Working on a copy of a sample workspace, in ${folder}.\n\n`);
  for (const questions of DEMO_CONVERSATIONS) {
    const conversation = open(folder);
    for (const question of questions) {
      const exitCode = await ask(conversation, question);
      if (exitCode !== 0) return exitCode;
    }
  }
  return 0;
}

/** A line of input is a question, until the input ends. */
async function chat(ask: (question: string) => Promise<number>, interrupts: Interrupts): Promise<number> {
  const input = createInterface({ input: process.stdin, output: process.stderr, prompt: '> ' });
  let isOpen = true as boolean;
  let exitCode = 0;
  input.on('close', () => (isOpen = false));
  // While it reads, the terminal sends Ctrl-C as a key, not as a signal.
  input.on('SIGINT', () => interrupts.press());
  input.prompt();
  for await (const line of input) {
    if (line.trim() !== '') exitCode = await ask(line.trim());
    if (isOpen) input.prompt();
  }
  if (process.stdin.isTTY) tell('\n'); // Ctrl-D leaves the cursor behind the prompt.
  return exitCode;
}

function createView({ isJson, isChat }: Options): (event: LoopEvent) => void {
  const { stdout, stdin, env } = process;
  const write = (text: string): void => void stdout.write(text);
  if (isJson) return createJsonView(write);
  return createTerminalView({
    write,
    colors: stdout.isTTY && !env['NO_COLOR'] && env['TERM'] !== 'dumb',
    width: stdout.columns,
    // Whoever types a question sees it already.
    showInput: !(isChat && stdin.isTTY),
  });
}

function listenForInterrupts(): Interrupts {
  const interrupts = createInterrupts({ say: tell, quit: (exitCode) => process.exit(exitCode) });
  process.on('SIGINT', () => interrupts.press());
  // By `exit`, so that a running command is killed and the demo's folder removed.
  process.on('SIGTERM', () => process.exit(143));
  process.on('SIGHUP', () => process.exit(129));
  // Whoever read our output is gone (`| head`).
  process.stdout.on('error', () => process.exit(1));
  return interrupts;
}

function exitCodeOf({ stopReason }: TurnResult): number {
  if (stopReason === 'end_turn') return 0;
  return stopReason === 'aborted' ? INTERRUPTED_EXIT_CODE : 1;
}

/** Words for people never go to stdout: with `--json` it holds events only. */
function tell(text: string): void {
  process.stderr.write(text);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  tell(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
