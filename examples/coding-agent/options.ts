/** Options: what the command line says. */
import { parseArgs } from 'node:util';

export const HELP = `A small coding agent: it lists, reads, searches and edits the files of a folder, and runs commands there.

  npm start                          shows what it can do, on a copy of a sample workspace
  npm start -- "read README.md"      does one thing
  npm start -- --chat                a conversation: one question a line

  --dir FOLDER   the folder to work on (default: the current one)
  --json         prints one event per line as JSON, and nothing else (npm prints a banner first: npm start -s -- --json …)
  --model NAME   the model to ask of the server (default: $OPENAI_MODEL)
  --chat         asks for questions until the input ends
  --help         prints this

With OPENAI_API_KEY it asks OpenAI, or the server at OPENAI_BASE_URL. Without, it runs a very small model of its own.
Ctrl-C stops a turn, twice quits. The exit code is 0 if the model came to an end by itself, 130 after Ctrl-C, else 1.
`;

export interface Options {
  /** What to do; undefined for the demo, or a chat. */
  readonly question: string | undefined;
  readonly folder: string;
  readonly model: string | undefined;
  readonly isChat: boolean;
  readonly isJson: boolean;
  readonly isHelp: boolean;
}

/** @throws Error that says what is wrong with the command line. */
export function parseOptions(argv: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      dir: { type: 'string' },
      json: { type: 'boolean', default: false },
      model: { type: 'string' },
      chat: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const question = positionals.join(' ').trim() || undefined;
  if (values.dir !== undefined && question === undefined && !values.chat && !values.help) {
    throw new Error('--dir needs a question, or --chat: without one a demo runs, on a folder of its own.');
  }
  return {
    question,
    folder: values.dir ?? '.',
    model: values.model,
    isChat: values.chat,
    isJson: values.json,
    isHelp: values.help,
  };
}
