/** A tool that passes every case: it saves notes, some of them slowly. And the world that it saves them in. */
import { sleep, type Tool, ToolAccesses, type ToolContext } from 'turnloop';
import type { ToolConformanceOptions, ToolUnderTest } from 'turnloop/testing/conformance';

export interface NoteInput {
  readonly title: string;
  readonly lines?: number | undefined;
  readonly pauseMs?: number | undefined;
}

export type NoteTool = Tool<NoteInput>;

/** What a tool can reach. */
export class World {
  /** What was saved, by key of the call. */
  readonly notes = new Map<string, string>();
  readonly apiKey = SECRET;
}

export const SECRET = 'sk-notes-SECRET-41d2';

/** What the cases run it with. */
export const NOTE_OPTIONS: ToolConformanceOptions = {
  inputs: {
    good: [{ title: 'groceries' }, { title: 'letters', lines: 3 }],
    bad: [
      { input: { title: 7 }, field: 'title' },
      { input: { title: '' }, field: 'title' },
      { input: { title: 'a', lines: 'many' }, field: 'lines' },
    ],
    failing: [{ title: 'locked' }],
    long: [{ title: 'novel', pauseMs: 3_600_000 }],
  },
  secrets: [SECRET],
};

/** What a call does. */
async function saveNote(world: World, { title, lines = 1, pauseMs = 1 }: NoteInput, context: ToolContext): Promise<{ readonly content: string; readonly display: { readonly title: string } }> {
  const { signal, runtime, progress, idempotencyKey } = context;
  signal.throwIfAborted();
  progress({ kind: 'progress', percent: 0, text: title });
  await sleep(pauseMs, { runtime, signal });
  if (title === 'locked') throw new Error('The note "locked" is locked: choose another title.');
  progress({ kind: 'progress', percent: 100, text: title });
  world.notes.set(idempotencyKey, title);
  return { content: `Saved ${title}, ${lines} lines.`, display: { title } };
}

function readNote(input: unknown): NoteInput {
  const { title, lines, pauseMs } = input as Record<string, unknown>;
  if (typeof title !== 'string' || title === '') throw new Error('title: must be a text that is not empty');
  if (lines !== undefined && typeof lines !== 'number') throw new Error('lines: must be a number');
  return { title, lines, pauseMs: pauseMs as number | undefined };
}

function noteTool(world: World): NoteTool {
  return {
    name: 'save_note',
    description: 'Saves a note.',
    inputSchema: {
      type: 'object',
      properties: { title: { type: 'string' }, lines: { type: 'integer' }, pauseMs: { type: 'integer' } },
      required: ['title'],
    },
    replay: 'idempotent',
    parseInput: readNote,
    accesses: ({ title }) => ToolAccesses.write(`note:${title}`),
    describe: ({ title }) => `Saves the note ${title}.`,
    execute: (input, context) => saveNote(world, input, context),
  };
}

/** The tool in a world of its own. @param change - What is to be different. */
export function notes(change: (tool: NoteTool, world: World) => Partial<NoteTool> = () => ({})): () => ToolUnderTest {
  return () => {
    const world = new World();
    const tool = noteTool(world);
    return { tool: { ...tool, ...change(tool, world) }, state: () => [...world.notes.values()] };
  };
}
