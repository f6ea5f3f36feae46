/** planFirst in full turns: what is refused, what may run, and what a resume makes of it. */
import { describe, expect, it } from 'vitest';
import { createTranscript, type Hook } from 'turnloop';
import { approval, loopGuard, planFirst, type PlanFirstOptions } from 'turnloop/policies';
import { echoTool, recordingTool, repeat, runScripted, toolCall } from 'turnloop/testing';
import { crash, resultLines, resumeFrom } from '../core/support.ts';

const REFUSAL = expect.stringContaining('the plan is not confirmed yet') as string;
const read = (): ReturnType<typeof recordingTool> => recordingTool({ name: 'read', readOnly: true, execute: () => 'text' });
const write = (): ReturnType<typeof recordingTool> => recordingTool({ name: 'write', execute: () => 'written' });

describe('planFirst', () => {
  it('C8 refuses tools that are not read-only until the host confirms the plan', async () => {
    const plan = { confirmed: false };
    const tools = [read(), write()];
    const hooks = [planFirst({ isConfirmed: () => plan.confirmed })];
    const transcript = createTranscript();
    const explored = await runScripted({ replies: [[toolCall('read'), toolCall('write', { a: 1 })], 'My plan.'], tools, hooks, transcript });

    expect(resultLines(explored.recorded)).toStrictEqual([
      ['call_1', 'ok', 'text'],
      ['call_2', 'error', REFUSAL],
    ]);
    expect(explored.result).toMatchObject({ stopReason: 'end_turn', text: 'My plan.' });

    plan.confirmed = true;
    const done = await runScripted({ replies: [toolCall('write', { a: 1 }), 'Done.'], tools, hooks, transcript, input: 'Do it.' });

    expect(resultLines(done.recorded).map(([, outcome, text]) => [outcome, text])).toStrictEqual([['ok', 'written']]);
    expect(tools[1]?.runCount).toBe(1);
  });

  it('C8 asks at each call, so that a confirmation counts from the next call on', async () => {
    const answers = [false, true, false];
    const tool = write();
    const { recorded } = await runScripted({
      replies: [[toolCall('write', { a: 1 }), toolCall('write', { a: 2 })], toolCall('write', { a: 3 }), 'done'],
      tools: [tool],
      hooks: [planFirst({ isConfirmed: async () => answers.shift() ?? true })],
    });

    expect(resultLines(recorded).map(([, outcome]) => outcome)).toStrictEqual(['error', 'ok', 'error']);
    expect(tool.inputs).toStrictEqual([{ a: 2 }]);
  });

  it('C8 tells a listener what was refused', async () => {
    const { recording } = await runScripted({ replies: [toolCall('write'), 'plan'], tools: [write()], hooks: [planFirst({ isConfirmed: () => false })] });

    expect(recording.of('notice')).toMatchObject([{ name: 'planFirst.refused', data: { tool: 'write', toolCallId: 'call_1' } }]);
  });

  it('C8 gives the host the turn it asks about', async () => {
    const host = { plan: 'none' };
    const seen: unknown[] = [];
    await runScripted({
      replies: [toolCall('write'), 'plan'],
      tools: [write()],
      host,
      hooks: [planFirst({ isConfirmed: (context) => (seen.push(context.host, context.step), false) })],
    });

    expect(seen).toStrictEqual([host, 1]);
  });

  it('lets the tools run that may', async () => {
    const todo = recordingTool({ name: 'todo' });
    const { recorded } = await runScripted({
      replies: [[toolCall('todo'), toolCall('write')], 'plan'],
      tools: [todo, write()],
      hooks: [planFirst({ isConfirmed: () => false, allow: ['todo'] })],
    });

    expect(resultLines(recorded).map(([, outcome]) => outcome)).toStrictEqual(['ok', 'error']);
    expect(todo.runCount).toBe(1);
  });

  it('says what the host wants said', async () => {
    const { recorded } = await runScripted({
      replies: [toolCall('write'), 'plan'],
      tools: [write()],
      hooks: [planFirst({ isConfirmed: () => false, reason: 'Show the plan with show_plan.' })],
    });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'Show the plan with show_plan.']]);
  });

  it.each<readonly [string, PlanFirstOptions['isConfirmed']]>([
    ['fails', () => Promise.reject(new Error('no store'))],
    ['throws', () => { throw new Error('no store'); }],
    ['gives something that is no yes', () => 'no' as unknown as boolean],
  ])('C8 runs nothing when the question %s', async (_what, isConfirmed) => {
    const tool = write();
    const { recorded } = await runScripted({ replies: [toolCall('write'), 'plan'], tools: [tool], hooks: [planFirst({ isConfirmed })] });

    expect(resultLines(recorded).map(([, outcome]) => outcome)).toStrictEqual(['error']);
    expect(tool.runCount).toBe(0);
  });

  it('leaves an unknown tool to the loop, which names those that exist', async () => {
    const { recorded } = await runScripted({ replies: [toolCall('wirte'), 'plan'], tools: [write()], hooks: [planFirst({ isConfirmed: () => false })] });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', expect.stringContaining('There is no tool named "wirte"')]]);
  });

  it.each(['before', 'behind'])('asks nobody to approve what it refuses, with approval %s it', async (where) => {
    const asked: string[] = [];
    const ask: Hook = approval({ ask: ({ call }) => (asked.push(call.name), { action: 'allow' }) });
    const plan = planFirst({ isConfirmed: () => false });
    await runScripted({ replies: [toolCall('write'), 'plan'], tools: [write()], hooks: where === 'before' ? [ask, plan] : [plan, ask] });

    expect(asked).toStrictEqual([]);
  });

  it('leaves a model that insists to the loop guard', async () => {
    const tool = write();
    const { result } = await runScripted({ replies: [repeat(toolCall('write'))], tools: [tool], hooks: [loopGuard(), planFirst({ isConfirmed: () => false })] });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'loopGuard', steps: 12 });
    expect(tool.runCount).toBe(0);
  });

  it('A19 is asked again about a refused call when the process died before its result', async () => {
    const plan = { confirmed: false };
    const options = { tools: [echoTool()], hooks: [planFirst({ isConfirmed: () => plan.confirmed })] };
    const events = await crash('tool.call', { replies: [toolCall('echo', { text: 'a' })], ...options });
    plan.confirmed = true;

    const { recorded } = await resumeFrom(events, { replies: ['done'], ...options });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'ok', 'a']]);
  });
});

describe('misuse of planFirst', () => {
  it.each<readonly [string, unknown, string]>([
    ['no question', {}, 'needs `isConfirmed`'],
    ['a question that is an answer', { isConfirmed: true }, 'needs `isConfirmed`'],
    ['no options', undefined, 'not an object'],
    ['a name that does not exist', { isConfirmed: () => true, allowed: [] }, 'no option `allowed`'],
    ['one name', { isConfirmed: () => true, allow: 'todo' }, '`allow`'],
    ['an empty reason', { isConfirmed: () => true, reason: '' }, '`reason`'],
  ])('is refused by name: %s', (_what, options, message) => {
    const make = (): Hook => planFirst(options as PlanFirstOptions);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
  });
});
