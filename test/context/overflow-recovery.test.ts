/** Overflow recovery in whole turns: a provider that refuses a request as larger than its window. */
import { describe, expect, it } from 'vitest';
import { LLMError, textOf, userMessage, type UserMessage } from 'turnloop';
import { createContextPolicy } from 'turnloop/context';
import { strictHistory, withFallback } from 'turnloop/policies';
import { repeat, scriptedLLM, toolCall } from 'turnloop/testing';
import { brokenRules } from '../properties/protocol-rules.ts';
import { layersOf, longHistory, noticesOf, readTool, runWith, sessionModel, TASK, transcriptOf, windowFor } from './sessions.ts';

const HISTORY = longHistory();
const OVERFLOW = new LLMError({ kind: 'context_overflow', message: 'maximum context length is exceeded' });
const TOO_LARGE = new LLMError({ kind: 'request_too_large', status: 413, message: 'Request Entity Too Large' });
const SIZE = windowFor(HISTORY, 1);

describe('a request that is refused as larger than the window', () => {
  it('CP9 D6 is sent again with half of it, recorded as one compaction, and no summary is asked for', async () => {
    const transcript = transcriptOf(HISTORY);
    const llm = sessionModel({ steps: [OVERFLOW, 'ok'] });

    const outcome = await runWith(createContextPolicy(), { llm, transcript });

    expect(outcome.result).toMatchObject({ stopReason: 'end_turn', text: 'ok', steps: 1 });
    expect(layersOf(outcome)).toStrictEqual(['overflow']);
    const [, again] = llm.stepRequests();
    const sent = again?.messages ?? [];
    expect(windowFor(sent, 1)).toBeLessThanOrEqual(SIZE / 2);
    expect(sent).toStrictEqual(transcript.buildMessages().slice(0, -1));
    expect([textOf(sent[0]), textOf(sent.at(-1))]).toStrictEqual([TASK, 'hi']);
    expect(brokenRules(sent)).toStrictEqual([]);
    expect(transcript.findings()).toStrictEqual([]);
    expect(noticesOf(outcome, 'context.overflow')).toMatchObject([{ reduced: true }]);
    expect(outcome.recording.events.find(({ type }) => type === 'step.retrying')).toMatchObject({ recovery: 'context.overflow' });
  });

  it('CP9 D6 teaches the window: the next request that large is summarised before it is sent', async () => {
    const policy = createContextPolicy({ clear: false, fold: false });
    await runWith(policy, { llm: sessionModel({ steps: [OVERFLOW, 'ok'] }), transcript: transcriptOf(HISTORY) });
    const llm = sessionModel({ steps: ['ok'], summaries: [repeat('Goal: go on.')] });

    const outcome = await runWith(policy, { llm, transcript: transcriptOf(HISTORY) });

    expect(layersOf(outcome)).toStrictEqual(['summary']);
  });

  it.each([
    ['OpenAI', (tokens: number, window: number) => `This model's maximum context length is ${window} tokens. However, you requested ${tokens + 90} tokens (${tokens} in the messages, 90 in the completion).`],
    ['Anthropic', (tokens: number, window: number) => `prompt is too long: ${tokens} tokens > ${window} maximum`],
    ['Anthropic, with the reply', (tokens: number, window: number) => `input length and \`max_tokens\` exceed context limit: ${tokens} + 90 > ${window}, decrease input length`],
    ['Gemini', (tokens: number, window: number) => `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${window}).`],
    ['llama.cpp', (tokens: number, window: number) => `request (${tokens} tokens) exceeds the available context size (${window} tokens), try increasing it`],
  ])('CP9 D6 is brought down to half of the window that the refusal of %s names, however far above it was', async (_name, words) => {
    const window = Math.round(SIZE / 5);
    const policy = createContextPolicy();
    const llm = sessionModel({ steps: [new LLMError({ kind: 'context_overflow', message: words(SIZE, window) }), 'ok'] });

    const outcome = await runWith(policy, { llm, transcript: transcriptOf(HISTORY) });

    expect(outcome.result.stopReason).toBe('end_turn');
    expect(policy.estimator.windowOf(llm)).toBe(window);
    expect(windowFor(llm.stepRequests()[1]?.messages ?? [], 1)).toBeLessThanOrEqual(window * 0.55);
  });

  it('CP9 a window that was seen beats one that is declared', async () => {
    const capabilities = { contextWindow: Math.round(SIZE * 1.5) };
    const policy = createContextPolicy({ clear: false, fold: false });
    const llm = sessionModel({ steps: [OVERFLOW, 'ok'] }, { capabilities });

    await runWith(policy, { llm, transcript: transcriptOf(HISTORY) });

    // The room for the reply was asked for too, which is an eighth of the window.
    expect(policy.estimator.windowOf(llm)).toBeLessThanOrEqual(SIZE * 1.2);
  });

  it('CP9 a window that was seen beats one that the host gave, if it is smaller', async () => {
    const policy = createContextPolicy({ clear: false, fold: false, window: Math.round(SIZE * 1.5) });
    await runWith(policy, { llm: sessionModel({ steps: [OVERFLOW, 'ok'] }), transcript: transcriptOf(HISTORY) });
    const llm = sessionModel({ steps: ['ok'], summaries: [repeat('Goal: go on.')] });

    const outcome = await runWith(policy, { llm, transcript: transcriptOf(HISTORY) });

    expect(layersOf(outcome)).toStrictEqual(['summary']);
    const fitting = createContextPolicy({ clear: false, fold: false, window: SIZE * 3 });
    for (const steps of [[{ content: 'ok', usage: { inputTokens: SIZE * 5 } }], ['ok']]) {
      expect(layersOf(await runWith(fitting, { llm: sessionModel({ steps }), transcript: transcriptOf(HISTORY) }))).toStrictEqual([]);
    }
  });

  it('CP9 teaches what was asked for in all, the reply included, where the provider names no window', async () => {
    const policy = createContextPolicy();
    const llm = sessionModel({ steps: [OVERFLOW, 'ok'] });

    await runWith(policy, { llm, transcript: transcriptOf(HISTORY), request: { maxOutputTokens: SIZE } });

    const window = policy.estimator.windowOf(llm) ?? 0;
    expect(window).toBeGreaterThan(SIZE * 1.7);
    expect(window).toBeLessThan(SIZE * 2);
  });

  it('CP9 a small request that is refused does not make a large declared window a small one, for any session', async () => {
    const policy = createContextPolicy();
    const capabilities = { contextWindow: SIZE * 3 };
    const llm = sessionModel({ steps: [OVERFLOW, 'ok', 'fine'] }, { capabilities });

    const refused = await runWith(policy, { llm, transcript: transcriptOf(longHistory({ exchanges: 4 })) });
    const next = await runWith(policy, { llm, transcript: transcriptOf(HISTORY) });

    expect(layersOf(refused)).toStrictEqual(['overflow']);
    expect(policy.estimator.windowOf(llm)).toBe(SIZE * 3);
    expect(next.result).toMatchObject({ stopReason: 'end_turn', text: 'fine' });
    expect(layersOf(next)).toStrictEqual([]);
  });

  it('CP9 a tiny request that is refused teaches nothing, where no window is declared or named', async () => {
    const policy = createContextPolicy();
    const llm = sessionModel({ steps: [OVERFLOW, 'ok'] });

    const outcome = await runWith(policy, { llm, transcript: transcriptOf(longHistory({ exchanges: 4 })) });

    expect(layersOf(outcome)).toStrictEqual(['overflow']);
    expect(policy.estimator.windowOf(llm)).toBeUndefined();
  });

  it('C11 a window that was only learned keeps no input from being sent, so that it can be unlearned', async () => {
    const policy = createContextPolicy();
    const input = 'word '.repeat(3_000);
    const overflow = new LLMError({ kind: 'context_overflow', message: 'maximum context length is 400 tokens' });
    await runWith(policy, { llm: sessionModel({ steps: [overflow] }), input: TASK });
    const size = windowFor([userMessage(input)], 1);
    const llm = sessionModel({ steps: [{ content: 'ok', usage: { inputTokens: size } }] });

    const outcome = await runWith(policy, { llm, input });

    expect(outcome.result).toMatchObject({ stopReason: 'end_turn', text: 'ok' });
    expect(policy.estimator.windowOf(llm)).toBe(size);
  });

  it('CP9 behind a fallback is learned for the model that refused alone, and the next request is measured for it', async () => {
    const policy = createContextPolicy({ clear: false, fold: false });
    const down = scriptedLLM([repeat(new LLMError({ kind: 'overloaded', message: 'Down.' }))], { provider: 'p1', modelId: 'one' });
    const second = sessionModel({ steps: [OVERFLOW, 'ok', 'ok'], summaries: [repeat('Goal: go on.')] }, { provider: 'p2', modelId: 'two' });
    const llm = withFallback([down, second]);

    await runWith(policy, { llm: second, decorate: () => llm, transcript: transcriptOf(HISTORY) });
    const next = await runWith(policy, { llm: second, decorate: () => llm, transcript: transcriptOf(HISTORY) });

    expect(policy.estimator.windowOf(second)).toBeGreaterThan(SIZE * 0.9);
    expect(policy.estimator.windowOf(down)).toBeUndefined();
    expect(layersOf(next)).toStrictEqual(['summary']);
  });

  it('leaves messages alone whose id another has too: an edit could hit the wrong one', async () => {
    const inputs = [1, 2, 3].map((index) => userMessage(`Input ${index}: ${'word '.repeat(50)}`, { id: 'input' }));
    const history = inputs.flatMap((message, index) => [message, ...longHistory({ exchanges: 40 }).slice(1 + index * 20, 21 + index * 20)]);
    const transcript = transcriptOf(history);
    const llm = sessionModel({ steps: [OVERFLOW, 'ok'] });

    const outcome = await runWith(createContextPolicy(), { llm, transcript, check: false });

    expect(outcome.result.stopReason).toBe('end_turn');
    expect(llm.stepRequests()[1]?.messages.filter(({ id }) => id === 'input')).toStrictEqual(inputs);
    expect(transcript.findings()).toStrictEqual([]);
  });

  it('CP9 BR-101 ends the turn context_overflow, if it is refused again', async () => {
    const llm = sessionModel({ steps: [OVERFLOW, OVERFLOW] });

    const outcome = await runWith(createContextPolicy(), { llm, transcript: transcriptOf(HISTORY) });

    expect(outcome.result).toMatchObject({ stopReason: 'context_overflow', error: { kind: 'context_overflow' } });
    expect(llm.stepRequests()).toHaveLength(2);
  });

  it('D6 helps again in a later step of the turn', async () => {
    const llm = sessionModel({ steps: [OVERFLOW, [toolCall('read')], OVERFLOW, 'ok'] });

    const outcome = await runWith(createContextPolicy({ summarize: false }), { llm, tools: [readTool(6_000)], transcript: transcriptOf(HISTORY) });

    expect(outcome.result.stopReason).toBe('end_turn');
    expect(layersOf(outcome).filter((layer) => layer === 'overflow')).toHaveLength(2);
  });

  it('CP9 ends the turn at once, if there is nothing to leave out', async () => {
    const llm = sessionModel({ steps: [OVERFLOW] });

    const outcome = await runWith(createContextPolicy(), { llm, input: TASK });

    expect(outcome.result.stopReason).toBe('context_overflow');
    expect(layersOf(outcome)).toStrictEqual([]);
    expect(noticesOf(outcome, 'context.overflow')).toMatchObject([{ reduced: false }]);
  });

  it('keeps what stands in the request and not in the record', async () => {
    const memory: UserMessage = { ...userMessage('Remember: tabs.', { id: 'memory' }), origin: 'memory', transient: true };
    const transcript = transcriptOf(HISTORY);
    const llm = sessionModel({ steps: [OVERFLOW, 'ok'] });

    await runWith(createContextPolicy(), { llm, transcript, buildMessages: () => [{ ...memory }, ...transcript.buildMessages()] });

    const [, again] = llm.stepRequests();
    expect(textOf(again?.messages[0])).toBe('Remember: tabs.');
    expect(textOf(again?.messages[1])).toBe(TASK);
    expect(again?.messages.length).toBeLessThan(HISTORY.length);
  });

  it('stands behind strictHistory, and both help in one step', async () => {
    const policy = createContextPolicy();
    const llm = sessionModel({ steps: [new LLMError({ kind: 'invalid_history', message: 'no' }), OVERFLOW, 'ok'] });
    const transcript = transcriptOf([userMessage(TASK, { id: 'task' }), ...HISTORY.slice(1)]);
    const buildMessages = (): ReturnType<typeof transcript.buildMessages> => {
      const messages = transcript.buildMessages();
      return [...HISTORY.slice(1, 3).map((message) => ({ ...message, id: `x_${message.id}` })), ...messages];
    };

    const outcome = await runWith({ hooks: policy.hooks, recoveries: [strictHistory(), ...policy.recoveries] }, { llm, transcript, buildMessages, check: false });

    expect(outcome.result.stopReason).toBe('end_turn');
    const last = llm.stepRequests().at(-1);
    expect(last?.messages[0]?.role).toBe('user');
    expect(brokenRules(last?.messages ?? [])).toStrictEqual([]);
  });
});

describe('a request that is refused for its bytes', () => {
  it('CP9 counts as an overflow if the estimate is near the window', async () => {
    const llm = sessionModel({ steps: [TOO_LARGE, 'ok'] });
    const policy = createContextPolicy({ window: Math.round(SIZE / 0.8), clear: false, fold: false });

    const outcome = await runWith(policy, { llm, transcript: transcriptOf(HISTORY) });

    expect(layersOf(outcome)).toStrictEqual(['overflow']);
  });

  it.each([
    ['is far from the window', { window: SIZE * 3 }],
    ['is of an unknown window', {}],
  ])('CP9 does not if it %s: its media go', async (_name, options) => {
    const picture = userMessage([{ type: 'media', mediaType: 'image/png', data: 'AAAA' }], { id: 'picture' });
    const llm = sessionModel({ steps: [TOO_LARGE, TOO_LARGE, 'ok'] });

    const outcome = await runWith(createContextPolicy(options), { llm, transcript: transcriptOf([...HISTORY, picture]) });

    expect(layersOf(outcome)).toStrictEqual(['reduceMedia.all']);
  });
});
