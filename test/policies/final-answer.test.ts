/** finalAnswer as a black box: turns that reach a limit, and what their last step is. */
import { describe, expect, it } from 'vitest';
import { textOf } from 'turnloop';
import { createBudget, finalAnswer, type FinalAnswerOptions, maxBudget, maxSteps, withBudget } from 'turnloop/policies';
import { recordingTool, repeat, runScripted, toolCall } from 'turnloop/testing';

const usage = { inputTokens: 100, outputTokens: 10 };
const call = { content: [toolCall('look')], usage };
const answer = { content: 'What I know.', usage };

describe('finalAnswer', () => {
  it('C9 gives a turn at its limit one more step without tools, and its answer', async () => {
    const tool = recordingTool({ name: 'look' });
    const { result, llm, transcript } = await runScripted({
      replies: [call, call, answer],
      tools: [tool],
      stopWhen: [maxSteps(2)],
      hooks: [finalAnswer()],
    });

    expect(result).toMatchObject({ stopReason: 'max_steps', stoppedBy: 'maxSteps', steps: 3, text: 'What I know.' });
    expect(tool.runs).toHaveLength(2);
    const last = llm.requests.at(-1);
    expect(last?.toolChoice).toBe('none');
    expect(last?.tools).toBe(llm.requests[0]?.tools);
    expect(textOf(last?.messages.at(-1))).toContain('Answer now with what you know');
    expect(transcript.buildMessages().filter((message) => message.role === 'user')).toMatchObject([{ origin: 'user' }, { origin: 'reminder' }]);
    llm.assertDone();
  });

  it('C9 says what it was told to say', async () => {
    const { llm } = await runScripted({
      replies: [call, answer],
      tools: [recordingTool({ name: 'look' })],
      stopWhen: [maxSteps(1)],
      hooks: [finalAnswer({ message: 'Antworte jetzt.' })],
    });

    expect(textOf(llm.requests.at(-1)?.messages.at(-1))).toBe('Antworte jetzt.');
  });

  it('C9 closes the calls of a model that goes on all the same, and ends the turn', async () => {
    const tool = recordingTool({ name: 'look' });
    const { result, llm } = await runScripted({
      replies: [repeat(call)],
      tools: [tool],
      stopWhen: [maxSteps(1)],
      hooks: [finalAnswer()],
    });

    expect(result).toMatchObject({ stopReason: 'max_steps', steps: 2 });
    expect(llm.callCount).toBe(2);
    expect(tool.runs).toHaveLength(1);
  });

  it('C9 leaves a turn alone whose budget is spent', async () => {
    const { result, llm } = await runScripted({
      replies: [call, answer],
      tools: [recordingTool({ name: 'look' })],
      stopWhen: [maxBudget({ maxTokens: 100 })],
      hooks: [finalAnswer()],
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', steps: 1 });
    expect(llm.callCount).toBe(1);
  });

  it('C9 C4 answers after a budget if asked to, out of what a larger one has left', async () => {
    const budget = createBudget({ maxTokens: 1000 });
    const { result } = await runScripted({
      replies: [call, answer],
      tools: [recordingTool({ name: 'look' })],
      decorate: (llm) => withBudget(llm, budget),
      stopWhen: [maxBudget({ maxTokens: 100 })],
      hooks: [finalAnswer({ on: ['max_budget'] })],
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', stoppedBy: 'maxBudget', steps: 2, text: 'What I know.' });
    expect(budget.spent.tokens).toBe(220);
  });

  it('C9 C4 ends without an answer where the budget itself refuses it', async () => {
    const budget = createBudget({ maxTokens: 110 });
    const { result, llm } = await runScripted({
      replies: [call],
      tools: [recordingTool({ name: 'look' })],
      decorate: (inner) => withBudget(inner, budget),
      stopWhen: [maxBudget(budget)],
      hooks: [finalAnswer({ on: ['max_budget'] })],
    });

    expect(result).toMatchObject({ stopReason: 'max_budget', error: { kind: 'refused', code: 'max_budget' } });
    expect(llm.callCount).toBe(1);
  });

  it('C9 does nothing for a turn that ends by itself', async () => {
    const { result, llm } = await runScripted({ replies: [answer], stopWhen: [maxSteps(5)], hooks: [finalAnswer()] });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 1 });
    expect(llm.callCount).toBe(1);
  });

  it('C9 leaves a turn alone that ended by itself with a reason that conditions give as well', async () => {
    const { result, llm } = await runScripted({ replies: [answer], hooks: [finalAnswer({ on: ['end_turn'] })] });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 1 });
    expect(llm.callCount).toBe(1);
  });

  it('C9 serves many turns at once', async () => {
    const hooks = [finalAnswer()];
    const turn = () =>
      runScripted({ replies: [call, answer], tools: [recordingTool({ name: 'look' })], stopWhen: [maxSteps(1)], hooks });

    const turns = await Promise.all([turn(), turn(), turn()]);

    expect(turns.map(({ result }) => result.text)).toStrictEqual(['What I know.', 'What I know.', 'What I know.']);
  });

  it.each<[string, unknown, string]>([
    ['an empty message', { message: ' ' }, '`message` must be a text'],
    ['no reasons', { on: [] }, '`on` must be a list of stop reasons'],
    ['a reason that does not exist', { on: ['max_step'] }, '`on` must be a list of stop reasons'],
    ['a reason after which no turn goes on', { on: ['max_steps', 'fatal_error'] }, 'as after \'fatal_error\' it cannot'],
    ['a reason that no condition can give', { on: ['suspended'] }, '`on` must be a list of stop reasons'],
    ['an option that does not exist', { text: 'x' }, 'finalAnswer has no option `text`'],
    ['what is no object', 'now', 'the options are not an object'],
  ])('refuses %s, and shows a correct call', (_what, options, message) => {
    const make = (): unknown => finalAnswer(options as FinalAnswerOptions);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
    expect(make).toThrow('finalAnswer({');
  });
});
