/**
 * Which calls of a batch may overlap, as a black box: tools that wait at a gate show what has started. Calls name what they
 * touch in their arguments, such as `{ "readFile": "a.txt" }`.
 */
import { describe, expect, it } from 'vitest';
import { type PathOptions, type ReplyToolCall, type ToolAccess, ToolAccesses } from 'turnloop';
import { type GatedTool, gatedTool, startScripted, type ScriptedTurn, type TestToolInput, toolCall } from 'turnloop/testing';
import { resultLines } from './support.ts';

type Touch = Partial<Record<Exclude<keyof typeof ToolAccesses, 'none' | 'all' | 'readAll'>, string>> | 'all';

/** Starts a batch of calls that touch these things, and lets everything start that may. */
async function startBatch(
  touches: readonly Touch[],
  options: { readonly paths?: PathOptions; readonly maxParallelTools?: number; readonly readOnly?: boolean } = {},
): Promise<{ readonly gate: GatedTool; readonly turn: ScriptedTurn }> {
  const accesses = (input: TestToolInput): readonly ToolAccess[] => accessesOf(input, options.paths);
  const gate = gatedTool({ accesses });
  const { maxParallelTools } = options;
  const calls = touches.map((touch): ReplyToolCall => toolCall('gate', touch === 'all' ? { all: true } : { ...touch }));
  const turn = startScripted({ replies: [calls, 'done'], tools: [gate], ...(maxParallelTools !== undefined && { maxParallelTools }) });
  await turn.runtime.flush();
  return { gate, turn };
}

function accessesOf(input: TestToolInput, paths: PathOptions | undefined): readonly ToolAccess[] {
  return Object.entries(input).flatMap(([name, value]) => {
    if (name === 'all') return ToolAccesses.all();
    return ToolAccesses[name as 'readFile'](String(value), paths);
  });
}

describe('calls of one batch', () => {
  it('SC1 start together when two read one path', async () => {
    const { gate, turn } = await startBatch([{ readFile: 'a.txt' }, { readFile: 'a.txt' }]);

    expect(gate.waiting).toStrictEqual(['call_1', 'call_2']);
    gate.open();
    await turn.finish();
  });

  it.each([
    ['SC2 a write behind a read', { readFile: 'a.txt' }, { writeFile: 'a.txt' }],
    ['SC2 a read behind a write', { writeFile: 'a.txt' }, { readFile: 'a.txt' }],
    ['SC3 a write behind a write', { writeFile: 'a.txt' }, { writeFile: 'a.txt' }],
    ['a resource like a path', { write: 'db:users' }, { read: 'db:users' }],
  ])('wait for each other: %s', async (_name, first, second) => {
    const { gate, turn } = await startBatch([first, second]);
    expect(gate.waiting).toStrictEqual(['call_1']);

    gate.finish();
    await turn.runtime.flush();

    expect(gate.waiting).toStrictEqual(['call_2']);
    gate.finish();
    await turn.finish();
  });

  it.each([
    ['SC4 slashes of both kinds', 'src/a.txt', 'src\\a.txt', {}],
    ['SC4 a dot', 'src/a.txt', './src/./a.txt', {}],
    ['SC4 two dots', 'src/a.txt', 'src/lib/../a.txt', {}],
    ['SC4 doubled slashes', 'src/a.txt', 'src//a.txt', {}],
    ['SC4 case, with the option', 'src/A.txt', 'SRC/a.txt', { ignoreCase: true }],
    ['SC4 a relative path, with a root', '/home/me/a.txt', 'a.txt', { root: '/home/me' }],
  ])('take paths for the same that differ by %s', async (_name, first, second, paths) => {
    const { gate, turn } = await startBatch([{ writeFile: first }, { writeFile: second }], { paths });

    expect(gate.waiting).toStrictEqual(['call_1']);
    gate.open();
    await turn.finish();
  });

  it('SC4 take paths that differ by case for different ones without the option', async () => {
    const { gate, turn } = await startBatch([{ writeFile: 'a.txt' }, { writeFile: 'A.txt' }]);

    expect(gate.waiting).toStrictEqual(['call_1', 'call_2']);
    gate.open();
    await turn.finish();
  });

  it('SC5 do not block each other on different paths', async () => {
    const { gate, turn } = await startBatch([{ writeFile: 'a.txt' }, { writeFile: 'b.txt' }, { writeFile: 'a.txt.bak' }]);

    expect(gate.waiting).toStrictEqual(['call_1', 'call_2', 'call_3']);
    gate.open();
    await turn.finish();
  });

  it('SC6 wait for a tree that covers them, and not for one beside them', async () => {
    const { gate, turn } = await startBatch([
      { writeTree: 'src/core' },
      { readFile: 'src/core/deep/a.ts' },
      { readFile: 'src/core' },
      { readFile: 'src/core-old/a.ts' },
      { readFile: 'src/a.ts' },
    ]);

    expect(gate.waiting).toStrictEqual(['call_1', 'call_4', 'call_5']);
    gate.open();
    await turn.finish();
  });

  it('SC6 make a tree wait for what it covers', async () => {
    const { gate, turn } = await startBatch([{ writeFile: 'src/core/a.ts' }, { readTree: 'src' }, { readTree: 'test' }]);

    expect(gate.waiting).toStrictEqual(['call_1', 'call_3']);
    gate.open();
    await turn.finish();
  });

  it('SC7 start when one before them fails, whose failure is its own alone', async () => {
    const { gate, turn } = await startBatch([{ writeFile: 'a.txt' }, { writeFile: 'a.txt' }]);

    gate.fail(new Error('no space left'));
    await turn.runtime.flush();
    expect(gate.waiting).toStrictEqual(['call_2']);
    gate.finish('written');
    const { recorded } = await turn.finish();

    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', 'no space left'],
      ['call_2', 'ok', 'written'],
    ]);
  });

  it('SC8 start although one before them is queued, if they do not touch what it touches', async () => {
    const { gate, turn } = await startBatch([{ writeFile: 'a.txt' }, { writeFile: 'a.txt' }, { writeFile: 'b.txt' }]);

    expect(gate.waiting).toStrictEqual(['call_1', 'call_3']);
    gate.open();
    await turn.finish();
  });

  it('SC9 do not overtake a queued one that they conflict with', async () => {
    const { gate, turn } = await startBatch([{ readFile: 'a.txt' }, { writeFile: 'a.txt' }, { readFile: 'a.txt' }]);
    expect(gate.waiting).toStrictEqual(['call_1']);

    gate.finish();
    await turn.runtime.flush();
    expect(gate.waiting).toStrictEqual(['call_2']);
    gate.open();
    await turn.finish();

    expect(gate.runs.map((run) => run.toolCallId)).toStrictEqual(['call_1', 'call_2', 'call_3']);
  });

  it('SC10 run alone if they touch everything', async () => {
    const { gate, turn } = await startBatch([{ readFile: 'a.txt' }, 'all', { readFile: 'a.txt' }]);
    expect(gate.waiting).toStrictEqual(['call_1']);

    gate.finish();
    await turn.runtime.flush();
    expect(gate.waiting).toStrictEqual(['call_2']);
    gate.finish();
    await turn.runtime.flush();

    expect(gate.waiting).toStrictEqual(['call_3']);
    gate.finish();
    await turn.finish();
  });

  it('SC11 hand over their results in the order of the calls', async () => {
    const { gate, turn } = await startBatch([{ readFile: 'a' }, { readFile: 'b' }, { readFile: 'c' }]);

    for (const id of ['call_3', 'call_1', 'call_2']) {
      gate.finish(id, id);
      await turn.runtime.flush();
    }
    const { recorded } = await turn.finish();

    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'ok', 'call_1'],
      ['call_2', 'ok', 'call_2'],
      ['call_3', 'ok', 'call_3'],
    ]);
  });

  it('A16 run at most eight at once, or as many as the option says', async () => {
    const touches = Array.from({ length: 10 }, (_, index): Touch => ({ readFile: `${index}` }));

    const byDefault = await startBatch(touches);
    const withOption = await startBatch(touches, { maxParallelTools: 3 });

    expect(byDefault.gate.waiting).toHaveLength(8);
    expect(withOption.gate.waiting).toStrictEqual(['call_1', 'call_2', 'call_3']);
    for (const { gate, turn } of [byDefault, withOption]) {
      gate.open();
      await turn.finish();
    }
    expect([byDefault.gate.maxRunning, withOption.gate.maxRunning]).toStrictEqual([8, 3]);
  });

  it('A16 take no share of the limit when they are cancelled while they wait for it', async () => {
    const { gate, turn } = await startBatch([{ readFile: 'a' }, { readFile: 'b' }, { readFile: 'c' }], { maxParallelTools: 1 });

    turn.control.cancelToolCall('call_2');
    gate.finish();
    await turn.runtime.flush();

    expect(gate.waiting).toStrictEqual(['call_3']);
    gate.finish();
    await turn.finish();
  });

  it('A16 overlap with reads and wait for writes if their tool is read-only and declares nothing', async () => {
    const look = gatedTool({ name: 'look', readOnly: true });
    const write = gatedTool({ name: 'write', accesses: ToolAccesses.writeFile('a.txt') });
    const turn = startScripted({
      replies: [[toolCall('look'), toolCall('look'), toolCall('write')], 'done'],
      tools: [look, write],
    });
    await turn.runtime.flush();

    expect([look.waiting, write.waiting]).toStrictEqual([['call_1', 'call_2'], []]);
    look.open();
    write.open();
    await turn.finish();
  });
});
