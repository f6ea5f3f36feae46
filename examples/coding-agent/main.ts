/**
 * A small coding agent on real files: `npm start -- --help`.
 *
 * This file only puts the pieces together: `agent.ts` is what the agent is made of, `sessions.ts` which conversation is
 * gone on with, `tools/` how it lends the model a hand, `view.ts` how it shows what happens, `interrupts.ts` how it stops.
 */
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Agent, AgentTurnResult, Session, SessionListener } from 'turnloop/agent';
import { createCodingAgent } from './agent.ts';
import { DEMO_CONVERSATIONS } from './demo/requests.ts';
import { copySampleWorkspace } from './demo/sample.ts';
import { createInterrupts, INTERRUPTED_EXIT_CODE, type Interrupts } from './interrupts.ts';
import { createJsonView } from './json-view.ts';
import { chooseModel } from './model.ts';
import { HELP, parseOptions, type Options } from './options.ts';
import { listSessions, openSession } from './sessions.ts';
import { createTerminalView } from './view.ts';
import { openWorkspace } from './workspace.ts';

/** Runs a turn of a session to its end, and gives the exit code. Without a question, the turn that was cut off. */
type Run = (session: Session, question?: string) => Promise<number>;

async function main(argv: readonly string[]): Promise<number> {
  const options = parseOptions(argv);
  if (options.isHelp) {
    process.stdout.write(HELP);
    return 0;
  }
  const model = chooseModel(process.env, options.model);
  const agentOn = (folder: string): Agent => createCodingAgent(model, openWorkspace(folder), ({ message }) => tell(`${message}\n`));
  if (options.isList) {
    const lines = await listSessions(agentOn(options.folder).sessions, process.stdout.columns ?? 120);
    process.stdout.write(lines.map((line) => `${line}\n`).join(''));
    return 0;
  }
  tell(`${model.notice}\n`);
  const show = createView(options);
  const interrupts = listenForInterrupts();
  const run: Run = async (session, question) => {
    const end = session.subscribe(show);
    try {
      return exitCodeOf(await interrupts.guard(question === undefined ? session.resume() : session.run(question, { denyPending: true })));
    } finally {
      end();
    }
  };
  return options.question === undefined && !options.isChat ? runDemo(agentOn, run) : converse(agentOn(options.folder), options, { run, interrupts });
}

/** One conversation after the other, all on the same files. */
async function runDemo(agentOn: (folder: string) => Agent, run: Run): Promise<number> {
  const folder = copySampleWorkspace();
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  tell(`Working on a copy of a sample workspace, in ${folder}.\n\n`);
  const agent = agentOn(folder);
  for (const questions of DEMO_CONVERSATIONS) {
    const session = await agent.openSession();
    for (const question of questions) {
      const exitCode = await run(session, question);
      if (exitCode !== 0) return exitCode;
    }
    await session.close();
  }
  return 0;
}

/** The conversation that the command line asks for. */
async function converse(agent: Agent, options: Options, { run, interrupts }: { readonly run: Run; readonly interrupts: Interrupts }): Promise<number> {
  const { question, isChat } = options;
  const session = await openSession(agent, options);
  tell(`Session: ${session.sessionId}\n`);
  for (const { message } of session.repairs) tell(`${message}\n`);
  try {
    let exitCode = session.openTurn() === undefined ? 0 : await run(session);
    if (question !== undefined && exitCode !== INTERRUPTED_EXIT_CODE) exitCode = await run(session, question);
    return isChat ? await chat((line) => run(session, line), interrupts) : exitCode;
  } finally {
    await session.close();
  }
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

function createView({ isJson, isChat }: Options): SessionListener {
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

function exitCodeOf({ stopReason }: AgentTurnResult): number {
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
