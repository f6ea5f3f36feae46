/** Options: what the command line says. */
import { parseArgs } from 'node:util';

export const HELP = `A small coding agent: it lists, reads, searches and edits the files of a folder, and runs commands there.

  npm start                          shows what it can do, on a copy of a sample workspace
  npm start -- "read README.md"      does one thing
  npm start -- --chat                a conversation: one question a line
  npm start -- --resume "and now?"   goes on with the last conversation, also one that was cut off
  npm start -- --list                which conversations there are

  --dir FOLDER   the folder to work on (default: the current one)
  --resume [ID]  goes on with a session, by default the last one; without a question as a chat
  --fork ID      begins a new session with the turns of that one
  --list         lists the sessions of the folder, the newest first
  --json         prints one event per line as JSON, and nothing else (npm prints a banner first: npm start -s -- --json …)
  --model NAME   the model to ask of the server (default: $OPENAI_MODEL)
  --chat         asks for questions until the input ends
  --help         prints this

With OPENAI_API_KEY it asks OpenAI, or the server at OPENAI_BASE_URL. Without, it runs a very small model of its own.
Sessions, and what is remembered from one to the next, are in FOLDER/.turnloop, which git does not see. Rules for the
agent are read from AGENTS.md or CLAUDE.md in FOLDER; the very small model has neither memory nor rules nor sub-agents.
Ctrl-C stops a turn, twice quits. The exit code is 0 if the model came to an end by itself, 130 after Ctrl-C, else 1.
`;

export interface Options {
  /** What to do; undefined for the demo, or a chat. */
  readonly question: string | undefined;
  readonly folder: string;
  readonly model: string | undefined;
  /** Id of a session to go on with, or `newest`. */
  readonly resume: string | undefined;
  /** Id of a session whose turns a new one begins with. */
  readonly fork: string | undefined;
  readonly isList: boolean;
  readonly isChat: boolean;
  readonly isJson: boolean;
  readonly isHelp: boolean;
}

/** @throws Error that says what is wrong with the command line. */
export function parseOptions(argv: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: argv.map((word, index) => (word === '--resume' && !isSessionId(argv[index + 1]) ? '--resume=newest' : word)),
    allowPositionals: true,
    options: {
      dir: { type: 'string' },
      json: { type: 'boolean', default: false },
      model: { type: 'string' },
      resume: { type: 'string' },
      fork: { type: 'string' },
      list: { type: 'boolean', default: false },
      chat: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const question = positionals.join(' ').trim() || undefined;
  const { dir: folder = '.', model, resume, fork, list: isList, json: isJson, help: isHelp } = values;
  if (resume !== undefined && fork !== undefined) throw new Error('--resume and --fork exclude each other: one goes on with a session, the other leaves it as it is.');
  const isChat = values.chat || (question === undefined && (resume ?? fork) !== undefined);
  if (values.dir !== undefined && question === undefined && !isChat && !isList && !isHelp) {
    throw new Error('--dir needs a question, or --chat: without one a demo runs, on a folder of its own.');
  }
  return { question, folder, model, resume, fork, isList, isChat, isJson, isHelp };
}

/** Ids of sessions begin alike, so that a question behind `--resume` is not taken for one. */
function isSessionId(word: string | undefined): boolean {
  return word?.startsWith('session_') === true;
}
