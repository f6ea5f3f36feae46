/** Proves that tiny-llm does whole turns of turnloop: it asks for tools, gets their results, and answers from them. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  addUsage,
  createEventDispatcher,
  createTranscript,
  createTurnControl,
  defineTool,
  NO_USAGE,
  runTurn,
  type AnyTool,
  type LoopEvent,
  type RunTurnOptions,
  type TurnResult,
} from 'turnloop';
import { tinyLLM } from '../index.ts';

const files = {
  'README.md': '# turn-demo\n\nA small project.\n',
  'package.json': '{\n  "name": "turn-demo"\n}\n',
  'src/core/retry-policy.ts': 'export const BASE_DELAY = 250;\n\nexport const MAX_DELAY = BASE_DELAY * 32;\n',
};
const folder = mkdtempSync(join(tmpdir(), 'tiny-llm-'));
afterAll(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, 'src/core'), { recursive: true });
for (const [path, content] of Object.entries(files)) writeFileSync(join(folder, path), content);

const text = { type: 'string' };
/** Stands in for a tool that no test here calls: the model is surest of itself when all five are on offer, in this order. */
const unusedTool = (name: string): AnyTool =>
  defineTool({ name, description: '', input: { type: 'object' }, execute: () => `There is no ${name} here.` });

const tools = [
  unusedTool('list_files'),
  defineTool({
    name: 'read_file',
    description: 'Reads a text file.',
    input: { type: 'object', properties: { path: text }, required: ['path'] },
    readOnly: true,
    execute: ({ path }) => {
      try {
        return readFileSync(join(folder, String(path)), 'utf8');
      } catch {
        throw new Error(`ENOENT: no such file or directory, open '${String(path)}'`);
      }
    },
  }),
  defineTool({
    name: 'search',
    description: 'Finds a text.',
    input: { type: 'object', properties: { pattern: text, path: text }, required: ['pattern', 'path'] },
    readOnly: true,
    execute: ({ pattern, path }) => {
      const inFolder = Object.keys(files).filter((file) => file.startsWith(`${String(path)}/`));
      const lines = inFolder.flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n').map((line, index) => `${file}:${index + 1}: ${line}`));
      return lines.filter((line) => line.includes(String(pattern))).join('\n') || 'No matches';
    },
  }),
  unusedTool('edit_file'),
  unusedTool('run_command'),
];

/** Asks for one turn with a new model; gives its result and all that happened. */
async function ask(input: string, options: Partial<RunTurnOptions> = {}): Promise<{ result: TurnResult; events: readonly LoopEvent[] }> {
  const transcript = createTranscript();
  const events: LoopEvent[] = [];
  const dispatchEvent = createEventDispatcher({
    record: transcript.record,
    emit: (event) => {
      events.push(event);
      if (event.type === 'text.delta') options.control?.abort(new Error('enough'));
    },
  });
  const result = await runTurn({ llm: tinyLLM(), tools, buildMessages: transcript.buildMessages, dispatchEvent, input, ...options });
  return { result, events };
}

/** What was called in each step. */
function callsOf(events: readonly LoopEvent[]): readonly string[] {
  return events.flatMap((event) => (event.type === 'tool.call' ? [`${event.step}: ${event.name} ${event.inputText}`] : []));
}

describe('a turn', () => {
  it('reads two files at once and tells of both', async () => {
    const { result, events } = await ask('read README.md and package.json');

    expect(callsOf(events)).toStrictEqual(['1: read_file {"path": "README.md"}', '1: read_file {"path": "package.json"}']);
    expect(result.text).toBe('File 1 begins: # turn-demo\nFile 2 begins: {');
    expect(result.stopReason).toBe('end_turn');
  });

  it('reads the file that a search found', async () => {
    const { result, events } = await ask('search for BASE_DELAY in src and read the first file');

    expect(callsOf(events)).toStrictEqual([
      '1: search {"pattern": "BASE_DELAY", "path": "src"}',
      '2: read_file {"path": "src/core/retry-policy.ts"}',
    ]);
    expect(result.text).toBe('src/core/retry-policy.ts begins: export const BASE_DELAY = 250;');
  });

  it('says what went wrong', async () => {
    const { result } = await ask('read missing.txt');

    expect(result.text).toBe("That failed: Error: ENOENT: no such file or directory, open 'missing.txt'");
  });

  it('streams the text that it ends with, and adds up its usage', async () => {
    const { result, events } = await ask('read README.md');

    const deltas = events.flatMap((event) => (event.type === 'text.delta' ? [event.text] : []));
    expect(deltas.join('')).toBe(result.text);
    expect(deltas.length).toBeGreaterThan(20);
    const usages = events.flatMap((event) => (event.type === 'usage' ? [event.usage] : []));
    expect(usages.reduce(addUsage, NO_USAGE)).toStrictEqual(result.usage);
    expect(result.usage.cacheReadTokens).toBeGreaterThan(100);
  });

  it('ends at once when aborted in the middle of a reply, with what that cost', async () => {
    const control = createTurnControl();

    const { result, events } = await ask('hello', { control });

    expect(result.stopReason).toBe('aborted');
    expect(events.filter((event) => event.type === 'text.delta')).toHaveLength(1);
    expect(result.usage.outputTokens).toBe(1);
  });
});
