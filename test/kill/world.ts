/**
 * World: what the tools of the kill test do, in files that outlive processes.
 *
 * `runs.jsonl` has each time that a tool began, `appended.jsonl` what `append` did, `service.jsonl` what a service did that
 * does a thing once for each key, `replies.jsonl` each reply that the model gave.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineTool, ToolAccesses, type AnyTool, type ToolContext } from 'turnloop';

/** A tool began to run. */
export interface WorldRun {
  /** Number of the process, 0-based. */
  readonly process: number;
  readonly tool: string;
  readonly label: string;
  readonly toolCallId: string;
}

/** Something was done for good. */
export interface WorldEffect {
  readonly label: string;
  /** Where it was done for a key. */
  readonly key?: string;
}

/** The model gave a reply. */
export interface WorldReply {
  readonly process: number;
  /** Labels of the calls that this request was the first to have the results of, and whose outcome was told to be unknown. */
  readonly unknown: readonly string[];
}

const FILES = { runs: 'runs.jsonl', appended: 'appended.jsonl', service: 'service.jsonl', replies: 'replies.jsonl' } as const;

/** The world, as files in a folder. */
export class World {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  get runs(): readonly WorldRun[] {
    return this.#read('runs') as readonly WorldRun[];
  }

  get appended(): readonly WorldEffect[] {
    return this.#read('appended') as readonly WorldEffect[];
  }

  get service(): readonly WorldEffect[] {
    return this.#read('service') as readonly WorldEffect[];
  }

  get replies(): readonly WorldReply[] {
    return this.#read('replies') as readonly WorldReply[];
  }

  add(file: keyof typeof FILES, entry: object): void {
    appendFileSync(join(this.#folder, FILES[file]), `${JSON.stringify(entry)}\n`);
  }

  #read(file: keyof typeof FILES): readonly unknown[] {
    const path = join(this.#folder, FILES[file]);
    if (!existsSync(path)) return [];
    return readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line): unknown => JSON.parse(line));
  }
}

/** What the tools that talk to the session's host ask of it. */
export interface ToolHost {
  queue(id: string, steer: boolean): Promise<void>;
  steer(id: string): void;
}

export interface WorldToolsOptions {
  readonly world: World;
  readonly process: number;
  readonly pause: () => Promise<void>;
  readonly host: ToolHost;
}

interface LabelInput {
  readonly label: string;
  readonly resource?: string;
  readonly steer?: boolean;
}

/** Tools that write, for the session and its sub-agents alike; and tools that talk to the host. */
export function worldTools({ world, process, pause, host }: WorldToolsOptions): { readonly writing: readonly AnyTool[]; readonly hosting: readonly AnyTool[] } {
  const input = { type: 'object', properties: { label: { type: 'string' } }, required: ['label'] };
  const make = (name: string, options: Pick<AnyTool, 'replay' | 'readOnly'>, work: (input: LabelInput, context: ToolContext) => Promise<void> | void): AnyTool =>
    defineTool({
      name,
      description: `Does ${name}.`,
      input,
      ...options,
      accesses: ({ resource, label }) => ToolAccesses.write(String(resource ?? label)),
      execute: async (given, context) => {
        const { label, ...rest } = given as unknown as LabelInput;
        world.add('runs', { process, tool: name, label, toolCallId: context.toolCallId } satisfies WorldRun);
        await pause();
        await work({ label, ...rest }, context);
        await pause();
        return `${name} ${label}: done`;
      },
    });

  return {
    writing: [
      make('append', { replay: 'never' }, ({ label }) => {
        world.add('appended', { label } satisfies WorldEffect);
      }),
      make('put', { replay: 'idempotent' }, ({ label }, { idempotencyKey: key }) => {
        if (world.service.every((effect) => effect.key !== key)) world.add('service', { label, key } satisfies WorldEffect);
      }),
      make('probe', { readOnly: true }, () => undefined),
    ],
    hosting: [
      make('queue', { replay: 'idempotent' }, ({ label, steer = false }) => host.queue(label, steer)),
      make('steer', { replay: 'safe' }, ({ label }) => {
        host.steer(label);
      }),
    ],
  };
}
