/** Preflight in whole turns: inputs that are too large by themselves. */
import { describe, expect, it } from 'vitest';
import { createTranscript, textOf, userMessage } from 'turnloop';
import { createContextPolicy, preflight } from 'turnloop/context';
import { repeat, runScripted, toolCall } from 'turnloop/testing';
import { brokenRules } from '../properties/protocol-rules.ts';
import { layersOf, longHistory, readTool, runWith, sessionModel, transcriptOf, windowFor } from './sessions.ts';

const INPUT = userMessage('Please read this: '.concat('one more line of it. '.repeat(400)), { id: 'input' });

/** A window of whose input budget the input takes this share, where an eighth is kept for the reply. */
function windowOf(share: number): number {
  return Math.round(windowFor([INPUT], share) / (7 / 8));
}

describe('a turn whose input is above 60 % of the input budget', () => {
  it('C11 ends context_overflow before anything is sent, with the figures, and no recovery runs', async () => {
    const window = windowOf(0.63);
    const llm = sessionModel({ steps: [] }, { capabilities: { contextWindow: window } });

    const outcome = await runWith(createContextPolicy(), { llm, transcript: transcriptOf(longHistory()), input: [INPUT] });

    expect(outcome.result).toMatchObject({ stopReason: 'context_overflow', stoppedBy: 'preflight', steps: 0 });
    expect(outcome.result.stopMessage).toMatch(new RegExp(`takes about \\d+ tokens.*${window} tokens, ${Math.floor(window / 8)} are kept.*60 %`));
    expect(llm.callCount).toBe(0);
    expect(layersOf(outcome)).toStrictEqual([]);
  });

  it('C11 goes on below it, whatever the history takes', async () => {
    const llm = sessionModel({ steps: ['ok'], summaries: [repeat('Goal: go on.')] }, { capabilities: { contextWindow: windowOf(0.57) } });

    const { result } = await runWith(createContextPolicy(), { llm, transcript: transcriptOf(longHistory()), input: [INPUT] });

    expect(result.stopReason).toBe('end_turn');
    expect(textOf(llm.stepRequests()[0]?.messages.at(-1))).toBe(textOf(INPUT));
  });

  it('C11 is let through where the window is not known, and by an option', async () => {
    const options = { input: [INPUT], replies: ['ok'] };

    expect((await runScripted({ ...options, hooks: [preflight()] })).result.stopReason).toBe('end_turn');
    expect((await runScripted({ ...options, hooks: [preflight({ window: windowOf(0.9), maxShare: 1 })] })).result.stopReason).toBe('end_turn');
    expect((await runScripted({ ...options, replies: [], hooks: [preflight({ window: windowOf(0.3), maxShare: 0.2 })] })).result.stopReason).toBe('context_overflow');
    const policy = createContextPolicy({ preflight: false, window: windowOf(0.7) });
    expect((await runWith(policy, { ...options, replies: ['ok'] })).result.stopReason).toBe('end_turn');
  });

  it('C11 looks at the input alone, and at the first step alone', async () => {
    const { result } = await runScripted({ history: [INPUT, INPUT], input: 'short', replies: ['ok'], hooks: [preflight({ window: windowOf(0.55) })] });
    expect(result.stopReason).toBe('end_turn');

    // The first reply shows that the input takes more than was thought: it has been sent, and the turn goes on.
    const policy = createContextPolicy({ window: windowOf(0.55) });
    const usage = { inputTokens: Math.round(windowOf(0.55) * 0.8) };
    const llm = sessionModel({ steps: [{ content: [toolCall('read')], usage }, 'ok'] });
    expect((await runWith(policy, { llm, tools: [readTool()], input: [INPUT] })).result.stopReason).toBe('end_turn');
  });

  it('C11 CP12 leaves a session that goes on: the next turn is not too large for what the one before was', async () => {
    const transcript = createTranscript();
    const window = windowOf(1.4);
    const options = { transcript, input: [INPUT] };
    const refused = await runWith(createContextPolicy(), { ...options, llm: sessionModel({ steps: [] }, { capabilities: { contextWindow: window } }) });
    const llm = sessionModel({ steps: ['fine'], summaries: [repeat('Goal: something long.')] }, { capabilities: { contextWindow: window } });

    const next = await runWith(createContextPolicy(), { llm, transcript, input: 'Then something else.' });

    expect(refused.result.stopReason).toBe('context_overflow');
    expect(next.result).toMatchObject({ stopReason: 'end_turn', text: 'fine' });
    const sent = llm.stepRequests()[0]?.messages ?? [];
    expect(windowFor(sent, 1)).toBeLessThan(window);
    expect(textOf(sent.at(-1))).toBe('Then something else.');
    expect(brokenRules(sent)).toStrictEqual([]);
  });

  it.each<readonly [string, object, RegExp]>([
    ['a share over 1', { maxShare: 2 }, /maxShare.*2/],
    ['a window of nothing', { window: 0 }, /window.*0/],
    ['a reserve over the window', { window: 1_000, outputReserve: 2_000 }, /outputReserve.*2000.*window.*1000/],
    ['an estimator that is none', { estimator: {} }, /estimator.*estimateText/],
    ['an option that does not exist', { share: 0.5 }, /no option `share`/],
  ])('refuses %s', (_name, options, message) => {
    expect(() => preflight(options)).toThrow(TypeError);
    expect(() => preflight(options)).toThrow(message);
  });
});
