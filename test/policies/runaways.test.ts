/** Models that run away, each in its own way: all of them are stopped, as early as promised, and no other model is. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Hook, type JsonObject, LLMError, type RecordedEvent } from 'turnloop';
import { approval, loopGuard, maxSteps, planFirst, withRetry } from 'turnloop/policies';
import { echoTool, failingTool, recordingTool, type Reply, repeat, runScripted, type ScriptedOutcome, type TestTool, toolCall } from 'turnloop/testing';
import { resultLines } from '../core/support.ts';

/** Says the n-th of these each time, and begins again behind the last. */
function inTurns(...replies: readonly Reply[]): (request: unknown, index: number) => Reply {
  return (_request, index) => replies[index % replies.length] ?? 'done';
}

interface Runaway {
  readonly model: (request: unknown, index: number) => Reply;
  readonly tools?: readonly TestTool[];
  readonly hooks?: readonly Hook[];
  readonly most?: number;
}

/** A model that never ends by itself, under a guard; it is given up after 100 steps. */
function runAway({ model, tools = [echoTool()], hooks = [loopGuard()], most = 100 }: Runaway): Promise<ScriptedOutcome> {
  return runScripted({ replies: model, tools, hooks, stopWhen: [maxSteps(most)] });
}

function countReminders(events: readonly RecordedEvent[]): number {
  return events.filter((event) => event.type === 'tool.result' && event.result.note?.includes('[loop guard]') === true).length;
}

const say = (text: string): ReturnType<typeof toolCall> => toolCall('echo', { text });

describe('a runaway model', () => {
  it('BR-011 ends at the limit of steps without a guard, with every call answered', async () => {
    const tool = echoTool();
    const { result, llm, recorded } = await runAway({ model: inTurns(say('a')), tools: [tool], hooks: [], most: 5 });

    expect(result).toMatchObject({ stopReason: 'max_steps', steps: 5 });
    expect(llm.callCount).toBe(5);
    expect(resultLines(recorded)).toHaveLength(5);
  });

  it('BR-011 C6 that repeats a call is stopped: 12 requests, 11 runs, 9 reminders', async () => {
    const tool = echoTool();
    const { result, llm, recorded } = await runAway({ model: inTurns(say('a')), tools: [tool] });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'loopGuard', steps: 12 });
    expect([llm.callCount, tool.runCount, countReminders(recorded)]).toStrictEqual([12, 11, 9]);
  });

  it('BR-011 C6 that changes only the order of keys is stopped as early', async () => {
    const tool = echoTool();
    const { result, llm } = await runAway({
      model: inTurns(toolCall('echo', '{"path":"a","range":{"from":1,"to":2}}'), toolCall('echo', '{ "range": {"to":2,"from":1}, "path":"a" }')),
      tools: [tool],
    });

    expect(result).toMatchObject({ stoppedBy: 'loopGuard', steps: 12 });
    expect([llm.callCount, tool.runCount]).toStrictEqual([12, 11]);
  });

  it('BR-011 C6 is stopped as early as the host says', async () => {
    const tool = echoTool();
    const { result } = await runAway({ model: inTurns(toolCall('echo', '{"a":1,"b":2}'), toolCall('echo', '{"b":2,"a":1}')), tools: [tool], hooks: [loopGuard({ stopAt: 4 })] });

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'loopGuard' });
    expect(tool.runCount).toBe(3);
  });

  it.each([
    [2, 23],
    [3, 34],
  ])('C6 that goes round %s calls with equal results is stopped after 11 rounds, at step %s', async (length, steps) => {
    const tool = echoTool();
    const { result } = await runAway({ model: inTurns(...Array.from({ length }, (_, index) => say(String(index)))), tools: [tool] });

    expect(result).toMatchObject({
      stopReason: 'stopped',
      stoppedBy: 'loopGuard',
      steps,
      stopMessage: `The model went round the same ${length} calls 12 times, with the same results each time; the last was of "echo".`,
    });
    expect(tool.runCount).toBe(11 * length);
  });

  it('C6 that alternates two calls of two tools, which fail, is stopped', async () => {
    const { result } = await runAway({ model: inTurns(say('a'), toolCall('fail')), tools: [echoTool(), failingTool()] });

    expect(result).toMatchObject({ stoppedBy: 'loopGuard', steps: 23 });
  });

  it('C6 that makes the same two or three calls in each step is stopped', async () => {
    const { result } = await runAway({ model: inTurns([say('a'), say('b'), say('c')]) });

    expect(result).toMatchObject({ stoppedBy: 'loopGuard', steps: 12 });
  });

  it.each<readonly [string, (index: number) => JsonObject, string]>([
    ['with the same arguments', () => ({ path: 'a' }), 'Refused and not run'],
    ['with other arguments each time', (index) => ({ path: `file ${index}` }), 'no tool named "raed"'],
  ])('C6 that always asks for an unknown tool is stopped: %s', async (_what, input, last) => {
    const { result, recorded } = await runAway({ model: (_request, index) => toolCall('raed', input(index)) });

    expect(result).toMatchObject({ stoppedBy: 'loopGuard', steps: 12 });
    expect(resultLines(recorded).slice(0, -1).every(([, outcome, text]) => outcome === 'error' && text.includes('no tool named "raed"'))).toBe(true);
    expect(resultLines(recorded).at(-1)?.[2]).toContain(last);
    expect(countReminders(recorded)).toBe(9);
  });

  it('TD8 DG7 C6 that makes a call which is rejected each time is stopped when it is made the 12th time', async () => {
    const tool = echoTool();
    const { result, recorded } = await runAway({ model: inTurns(toolCall('echo', { text: 5 })), tools: [tool] });

    expect(result).toMatchObject({ stoppedBy: 'loopGuard', steps: 12 });
    expect(resultLines(recorded).at(-1)?.[2]).toContain('"text" must be string');
    expect(tool.runCount).toBe(0);
  });

  it('TD8 C6 that writes the same malformed arguments is stopped', async () => {
    const { result } = await runAway({ model: inTurns(toolCall('echo', '{"text": "a')) });

    expect(result).toMatchObject({ stoppedBy: 'loopGuard', steps: 12 });
  });

  it('TD8 that writes other malformed arguments each time is left to the limit of steps', async () => {
    const { result } = await runAway({ model: (_request, index) => toolCall('echo', `{"text": "${index}`), most: 30 });

    expect(result).toMatchObject({ stopReason: 'max_steps', steps: 30 });
  });

  it.each([2, 50])('DG3 C6 that makes the same call %s times in each step is stopped, and the tool runs once a step', async (times) => {
    const tool = echoTool();
    const { result, recorded } = await runAway({ model: inTurns(Array.from({ length: times }, () => toolCall('echo', { text: 'a' }))), tools: [tool] });

    expect(result).toMatchObject({ stoppedBy: 'loopGuard', steps: 12 });
    expect(tool.runCount).toBe(11);
    expect(resultLines(recorded)).toHaveLength(12 * times);
  });

  it('C6 is stopped also when each of its requests needs a second attempt', async () => {
    const tool = echoTool();
    const failing = new LLMError({ kind: 'overloaded', message: 'Overloaded.' });
    const { result, llm } = await runScripted({ replies: inTurns(failing, say('a')), decorate: (model) => withRetry(model), tools: [tool], hooks: [loopGuard()] });

    expect(result).toMatchObject({ stoppedBy: 'loopGuard', steps: 12 });
    expect([llm.callCount, tool.runCount]).toStrictEqual([24, 11]);
  });

  it('C6 that insists on what may not run is stopped, and nothing runs', async () => {
    const tool = echoTool();
    const denied = await runAway({ model: inTurns(say('a')), tools: [tool], hooks: [loopGuard(), approval({ rules: [{ decision: 'deny' }] })] });
    const unplanned = await runAway({ model: inTurns(say('a')), tools: [tool], hooks: [planFirst({ isConfirmed: () => false }), loopGuard()] });

    expect([denied, unplanned].map(({ result }) => [result.stoppedBy, result.steps])).toStrictEqual([['loopGuard', 12], ['loopGuard', 12]]);
    expect(tool.runCount).toBe(0);
  });

  it('C6 is stopped while what it says beside the call changes', async () => {
    const { result } = await runAway({ model: (_request, index) => [`Attempt ${index}.`, toolCall('echo', { text: 'a' })] });

    expect(result).toMatchObject({ stoppedBy: 'loopGuard', steps: 12 });
  });

  it('can be talked to in the next turn, where it counts from nothing', async () => {
    const hooks = [loopGuard()];
    const first = await runScripted({ replies: [repeat(say('a'))], tools: [echoTool()], hooks });
    const { result } = await runScripted({ replies: [say('a'), 'done'], tools: [echoTool()], hooks, transcript: first.transcript, input: 'Again.' });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2 });
  });
});

describe('a model that works', () => {
  it('C6 may poll with a tool that opted out, as long as it takes', async () => {
    let left = 40;
    const poll = recordingTool({ name: 'status', execute: () => ((left -= 1) > 0 ? 'running' : 'done') });
    const { result, recorded } = await runAway({
      model: () => (left > 0 ? toolCall('status') : 'Ready.'),
      tools: [poll],
      hooks: [loopGuard({ ignore: ['status'] })],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'Ready.', steps: 41 });
    expect(countReminders(recorded)).toBe(0);
  });

  it('C6 may go round the same calls while their results change', async () => {
    let count = 0;
    const test = recordingTool({ name: 'test', execute: () => `${(count += 1)} failures` });
    const { result, recorded } = await runAway({ model: inTurns(toolCall('test'), say('next')), tools: [test, echoTool()], most: 60 });

    expect(result).toMatchObject({ stopReason: 'max_steps', steps: 60 });
    expect(countReminders(recorded)).toBe(0);
  });

  it('BR-011 may use one tool with other arguments each time', async () => {
    const { result, recorded } = await runAway({ model: (_request, index) => say(`file ${index}`) });

    expect(result).toMatchObject({ stopReason: 'max_steps', steps: 100 });
    expect(countReminders(recorded)).toBe(0);
  });

  it('C6 is never reminded while no call follows on itself nor on a round of up to three', async () => {
    const arbitraryStep = fc.array(fc.record({ tool: fc.constantFrom('read', 'write', 'search'), extra: fc.dictionary(fc.string(), fc.string()) }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(fc.array(arbitraryStep, { minLength: 1, maxLength: 20 }), async (session) => {
        let count = 0;
        const replies = session.map((step) =>
          step.map(({ tool, extra }) => toolCall(tool, { extra, count: (count += 1) })),
        );
        const tools = ['read', 'write', 'search'].map((name) => recordingTool({ name }));
        const { result, recorded } = await runScripted({ replies: [...replies, 'done'], tools, hooks: [loopGuard()] });

        expect(result.stopReason).toBe('end_turn');
        expect(countReminders(recorded)).toBe(0);
        expect(tools.reduce((sum, tool) => sum + tool.runCount, 0)).toBe(session.flat().length);
      }),
      { numRuns: 50 },
    );
  });
});

describe('whatever calls a model makes', () => {
  interface Made {
    readonly text: string;
    readonly gives: string;
  }

  /** How often the last of these calls has come round, by walking back over all of them: the law the guard keeps. */
  function roundsOf(made: readonly Made[]): number {
    const at = (index: number): Made | undefined => made[index];
    const follows = (index: number, period: number): boolean => {
      const [before, call] = [at(index - period), at(index)];
      return before !== undefined && call !== undefined && before.text === call.text && (period === 1 || before.gives === call.gives);
    };
    return Math.max(
      1,
      ...[1, 2, 3].map((period) => {
        let first = made.length - 1;
        while (follows(first, period)) first -= 1;
        // The whole stretch in which this cycle holds begins one round before the first call that follows on one.
        const start = Math.max(0, first - period + 1);
        return made.filter((_, index) => index >= start && (made.length - 1 - index) % period === 0).length;
      }),
    );
  }

  it('C6 the count is how often the call has come round, and nothing runs at the limit', async () => {
    const made = fc.record({ text: fc.constantFrom('a', 'b', 'c'), gives: fc.constantFrom('x', 'x', 'x', 'y') });
    const rounds = fc.tuple(fc.array(made, { minLength: 1, maxLength: 4 }), fc.integer({ min: 1, max: 8 })).map(([round, times]) => Array.from({ length: times }, () => round).flat());
    await fc.assert(
      fc.asyncProperty(fc.array(rounds, { minLength: 1, maxLength: 4 }), async (parts) => {
        const calls = parts.flat();
        let next = 0;
        const tool = recordingTool({ name: 'echo', execute: () => calls[next++]?.gives ?? '' });
        const { recording, result } = await runScripted({
          replies: [...calls.map(({ text }) => toolCall('echo', { text })), 'done'],
          tools: [tool],
          hooks: [loopGuard({ remindAt: [2], stopAt: 6 })],
        });

        const counts = calls.map((_, index) => roundsOf(calls.slice(0, index + 1)));
        const told = new Map(recording.of('notice').map(({ data }) => [(data as { toolCallId: string }).toolCallId, (data as { count: number }).count]));
        // A call is refused before what it would give is known: taken for the same, it may be refused where it is not.
        for (const index of Array.from({ length: tool.runCount }, (_, run) => run)) expect(told.get(`call_${index + 1}`) ?? 1).toBe(counts[index]);
        expect(Math.max(...counts.slice(0, tool.runCount))).toBeLessThan(6);
        if (result.stopReason === 'end_turn') expect(tool.runCount).toBeLessThanOrEqual(calls.length);
        else expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'loopGuard', steps: tool.runCount + 1 });
      }),
      { numRuns: 100 },
    );
  });
});
