/**
 * The context policy in whole turns: when which layer runs, and what a turn and its record make of it. What goes wrong
 * while it works is in `compaction-under-fire.test.ts`.
 */
import { describe, expect, it } from 'vitest';
import { createTranscript, LLMError, type Message, textOf, userMessage } from 'turnloop';
import { createContextPolicy, foldOldTexts, type LayerResult, summarizeHistory, type SummarizeHistoryOptions, trimHistory, type TrimLayer } from 'turnloop/context';
import { delayed, repeat, type ScriptedOutcome, scriptedLLM, startScripted, toolCall, virtualRuntime } from 'turnloop/testing';
import { brokenRules } from '../properties/protocol-rules.ts';
import {
  layersOf,
  longHistory,
  noticesOf,
  readTool,
  runWith,
  sessionModel,
  summariesOf,
  TASK,
  transcriptOf,
  windowFor,
} from './sessions.ts';

const SUMMARY = 'Goal: mend the tests. Settled: files 1 to 30 are fine.';
const HISTORY = longHistory();
const SIZE = windowFor(HISTORY, 1);
/** Only the layer that asks a model. */
const SUMMARY_ONLY = { clear: false, fold: false } as const;

describe('when a history is summarised', () => {
  it('CP1 D5 from 85 % of the window on, and not before', async () => {
    const at = async (share: number): Promise<readonly string[]> => {
      const policy = createContextPolicy({ ...SUMMARY_ONLY, window: windowFor(HISTORY, share) });
      const llm = sessionModel({ steps: ['ok'], summaries: [SUMMARY] });
      return layersOf(await runWith(policy, { llm, transcript: transcriptOf(HISTORY) }));
    };

    expect(await at(0.83)).toStrictEqual([]);
    expect(await at(0.87)).toStrictEqual(['summary']);
  });

  it('CP1 D5 earlier, if the room for the reply and a tenth of it is touched', async () => {
    const window = windowFor(HISTORY, 0.7);
    const layers = async (outputReserve: number): Promise<readonly string[]> => {
      const policy = createContextPolicy({ ...SUMMARY_ONLY, window, outputReserve });
      const llm = sessionModel({ steps: ['ok'], summaries: [SUMMARY] });
      return layersOf(await runWith(policy, { llm, transcript: transcriptOf(HISTORY) }));
    };

    // 30 % of the window are free: 25 % and a tenth fit in, 28 % and a tenth do not.
    expect(await layers(Math.round(window * 0.25))).toStrictEqual([]);
    expect(await layers(Math.round(window * 0.28))).toStrictEqual(['summary']);
  });

  it('CP1 never by a share, if the window is not known', async () => {
    const llm = sessionModel({ steps: ['ok'] });

    const outcome = await runWith(createContextPolicy(), { llm, transcript: transcriptOf(longHistory({ exchanges: 300 })) });

    expect(outcome.result.stopReason).toBe('end_turn');
    expect(layersOf(outcome)).toStrictEqual([]);
  });

  it('BR-160 not at a fifth of a window that the model could fill with output alone', async () => {
    const llm = sessionModel({ steps: ['ok'] }, { capabilities: { contextWindow: 32_768, maxOutputTokens: 32_768 } });
    const history = longHistory({ exchanges: 40, characters: 400 });

    const outcome = await runWith(createContextPolicy(), { llm, transcript: transcriptOf(history) });

    expect(layersOf(outcome)).toStrictEqual([]);
  });

  it('BR-160 not below half of the window, however long replies may be', async () => {
    const window = windowFor(HISTORY, 0.48);
    const llm = sessionModel({ steps: ['ok'] }, { capabilities: { contextWindow: window, maxOutputTokens: window } });

    const outcome = await runWith(createContextPolicy(), { llm, transcript: transcriptOf(HISTORY) });

    expect(layersOf(outcome)).toStrictEqual([]);
  });

  it('BR-134 B by what the estimate says before the request is sent, whatever a provider that cuts it would report', async () => {
    const window = windowFor(HISTORY, 1.5);
    const llm = sessionModel({ steps: ['ok'], summaries: [repeat(SUMMARY)] }, { capabilities: { contextWindow: window }, usage: { inputTokens: Math.round(window / 2) } });

    const outcome = await runWith(createContextPolicy(SUMMARY_ONLY), { llm, transcript: transcriptOf(HISTORY) });

    expect(layersOf(outcome)).toStrictEqual(['summary']);
    expect(llm.stepRequests()[0]?.messages.length).toBeLessThan(HISTORY.length);
  });

  it('BR-134 B and learns nothing from the count of a server that threw a part of the request away', async () => {
    const window = windowFor(HISTORY, 1.5);
    const policy = createContextPolicy({ clear: false, fold: false, summarize: false, trim: false, window });
    const llm = sessionModel({ steps: [{ content: 'ok', usage: { inputTokens: Math.round(window / 2) } }] });

    await runWith(policy, { llm, transcript: transcriptOf(HISTORY) });

    expect(policy.estimator.factorOf(llm)).toBe(1);
  });

  it('learns from counts: under the name the model is asked by, or under its own if it is another provider that answered', async () => {
    const usage = { inputTokens: windowFor(HISTORY, 1) * 2 };
    const learned = async (source: object): Promise<readonly boolean[]> => {
      const policy = createContextPolicy();
      const llm = sessionModel({ steps: [{ content: 'ok', usage, ...source }] }, { provider: 'one', modelId: 'model' });
      await runWith(policy, { llm, transcript: transcriptOf(HISTORY) });
      return [policy.estimator.factorOf(llm), policy.estimator.factorOf({ provider: 'other', modelId: 'theirs' })].map((factor) => factor > 1.2);
    };

    expect(await learned({ modelId: 'model-2025-08-07' })).toStrictEqual([true, false]);
    expect(await learned({ provider: 'other', modelId: 'theirs' })).toStrictEqual([false, true]);
  });

  it.each(['declared', 'given'])('BR-134 A before the request after a reply that told more tokens than the window has, be it %s', async (way) => {
    const window = windowFor(HISTORY, 0.5);
    const policy = createContextPolicy({ ...SUMMARY_ONLY, ...(way === 'given' && { window }) });
    const capabilities = way === 'given' ? undefined : { contextWindow: window };
    const transcript = transcriptOf(HISTORY);
    const usage = { inputTokens: Math.round(window * 1.2), outputTokens: 5 };

    const first = await runWith(policy, { llm: sessionModel({ steps: [{ content: 'ok', usage }] }, { capabilities }), transcript });
    const second = await runWith(policy, { llm: sessionModel({ steps: ['ok'], summaries: [SUMMARY] }, { capabilities }), transcript });

    expect(layersOf(first)).toStrictEqual([]);
    expect(layersOf(second)).toStrictEqual(['summary']);
  });

  it('CX7 by the last count and an estimate of what came since; a step that tells no count does not reset it', async () => {
    const window = windowFor(HISTORY, 0.4);
    const policy = createContextPolicy({ ...SUMMARY_ONLY, window });
    // Counted is more than was estimated, though less than is due: two results of a tenth of the window each make it due.
    const counted = { inputTokens: Math.round(window * 0.7), outputTokens: 5 };
    const tools = [readTool(window * 0.1 * 4)];
    const llm = sessionModel({
      steps: [
        { content: [toolCall('read')], usage: counted },
        { content: [toolCall('read')], usage: {} },
        'ok',
      ],
      summaries: [SUMMARY],
    });

    const outcome = await runWith(policy, { llm, tools, transcript: transcriptOf(HISTORY) });

    expect(layersOf(outcome)).toStrictEqual(['summary']);
    const steps = outcome.recorded.filter(({ type }) => type === 'step.begin' || type === 'compaction').map(({ type }) => type);
    expect(steps).toStrictEqual(['step.begin', 'step.begin', 'compaction', 'step.begin']);
  });

  it('BR-013 B not again by a count from before a compaction', async () => {
    const window = windowFor(HISTORY, 0.5);
    const policy = createContextPolicy({ ...SUMMARY_ONLY, window });
    const usage = { inputTokens: Math.round(window * 3), outputTokens: 5 };
    const llm = sessionModel({
      steps: [{ content: [toolCall('read')], usage }, [toolCall('read')], [toolCall('read')], 'ok'],
      summaries: [SUMMARY],
    });

    const outcome = await runWith(policy, { llm, tools: [readTool()], transcript: transcriptOf(HISTORY) });

    expect(layersOf(outcome)).toStrictEqual(['summary']);
    expect(outcome.result).toMatchObject({ stopReason: 'end_turn', steps: 4 });
  });

  it('BR-013 A at most once a step, if what stays is over the threshold by itself', async () => {
    const history = [...longHistory({ exchanges: 3 }), userMessage('word '.repeat(3_000), { id: 'long' })];
    const window = Math.round(windowFor(history.slice(-1), 1.02));
    const policy = createContextPolicy({ window, preflight: false });
    const llm = sessionModel({ steps: [...Array.from({ length: 11 }, () => [toolCall('read')]), 'ok'], summaries: [repeat(SUMMARY)] });

    const outcome = await runWith(policy, { llm, tools: [readTool(10)], transcript: transcriptOf(history), input: [] });

    expect(outcome.result.stopReason).toBe('end_turn');
    expect(llm.summaryRequests().length).toBeLessThanOrEqual(2);
    expect(layersOf(outcome).length).toBeLessThan(12);
  });

  it('BR-013 D9 not for what a few steps add, if what is pinned takes most of the window', async () => {
    const pinned = userMessage('word '.repeat(8_000), { id: 'pinned', origin: 'host', pinned: true });
    const history = [...longHistory({ exchanges: 1 }), pinned];
    const policy = createContextPolicy({ window: windowFor(history, 0.84) });
    const llm = sessionModel({ steps: [...Array.from({ length: 25 }, () => [toolCall('read')]), 'ok'], summaries: [repeat('Short.')] });

    const outcome = await runWith(policy, { llm, tools: [readTool()], transcript: transcriptOf(history) });

    expect(outcome.result.stopReason).toBe('end_turn');
    expect(llm.summaryRequests().length).toBeLessThanOrEqual(1);
    expect(layersOf(outcome).length).toBeLessThanOrEqual(6);
  });

  it('D8 not in a turn that was aborted while a layer of the host’s own wrote it', async () => {
    const controller = new AbortController();
    const policy = createContextPolicy({
      ...SUMMARY_ONLY,
      window: windowFor(HISTORY, 0.9),
      summarize: (messages, options) => {
        controller.abort();
        return summarizeHistory(messages, { ...options, signal: undefined, llm: scriptedLLM(['Goal: go on.']) });
      },
    });

    const outcome = await runWith(policy, { llm: sessionModel({ steps: ['ok'] }), transcript: transcriptOf(HISTORY), signal: controller.signal });

    expect(outcome.result.stopReason).toBe('aborted');
    expect(layersOf(outcome)).toStrictEqual([]);
  });
});

describe('what a summary leaves', () => {
  it('CP5 D5 the task, the newest message, one summary that says what it is, and the newest exchanges as they were', async () => {
    const policy = createContextPolicy({ ...SUMMARY_ONLY, window: windowFor(HISTORY, 0.9) });
    const llm = sessionModel({ steps: ['ok'], summaries: [SUMMARY] });

    const { transcript } = await runWith(policy, { llm, transcript: transcriptOf(HISTORY), input: 'Go on.' });

    const sent = llm.stepRequests()[0]?.messages ?? [];
    expect(textOf(sent[0])).toBe(TASK);
    expect(summariesOf(sent)).toHaveLength(1);
    expect(summariesOf(sent)[0]).toMatch(/background, not an instruction/);
    expect(summariesOf(sent)[0]).toContain(SUMMARY);
    expect(textOf(sent.at(-1))).toBe('Go on.');
    expect(sent.slice(2, -1)).toStrictEqual(HISTORY.slice(-(sent.length - 3)));
    expect(sent.slice(2, -1).length).toBeGreaterThan(2);
    expect(brokenRules(sent)).toStrictEqual([]);
    expect(transcript.findings()).toStrictEqual([]);
  });

  it('D5 leaves the request at 40 % of the window at most', async () => {
    const window = windowFor(HISTORY, 0.95);
    const llm = sessionModel({ steps: ['ok'], summaries: [SUMMARY] });

    const outcome = await runWith(createContextPolicy({ ...SUMMARY_ONLY, window }), { llm, transcript: transcriptOf(HISTORY) });

    const [data] = noticesOf(outcome, 'context.compacted') as readonly { readonly tokensAfter: number }[];
    expect(data?.tokensAfter).toBeLessThanOrEqual(window * 0.4);
    expect(windowFor(llm.stepRequests()[0]?.messages ?? [], 1)).toBeLessThanOrEqual(window * 0.4);
  });

  it('D7 leaves the events as they were: the record has every message and the compaction', async () => {
    const transcript = transcriptOf(HISTORY);
    const before = structuredClone(transcript.events);
    const llm = sessionModel({ steps: ['ok'], summaries: [SUMMARY] });

    await runWith(createContextPolicy({ window: windowFor(HISTORY, 0.9) }), { llm, transcript });

    expect(transcript.events.slice(0, before.length)).toStrictEqual(before);
    const reloaded = createTranscript(JSON.parse(JSON.stringify(transcript.events)) as typeof before);
    expect(reloaded.buildMessages()).toStrictEqual(transcript.buildMessages());
  });

  it('records what the summary cost before the compaction, and tells it', async () => {
    const usage = { inputTokens: 900, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 50, thinkingTokens: 0 };
    const llm = sessionModel({ steps: ['ok'], summaries: [{ content: SUMMARY, usage, modelId: 'small' }] });
    const window = windowFor(HISTORY, 0.9);

    const outcome = await runWith(createContextPolicy({ ...SUMMARY_ONLY, window }), { llm, transcript: transcriptOf(HISTORY) });

    const kinds = outcome.recorded.map((event) => (event.type === 'usage' ? event.purpose : event.type));
    expect(kinds.slice(2, 5)).toStrictEqual(['compaction', 'compaction', 'step.begin']);
    expect(outcome.recorded[2]).toMatchObject({ type: 'usage', purpose: 'compaction', modelId: 'small', usage });
    expect(noticesOf(outcome, 'context.compacted')).toStrictEqual([
      { layer: 'summary', tokensBefore: expect.any(Number) as number, tokensAfter: expect.any(Number) as number, window, usage },
    ]);
    expect(outcome.result.usage).toStrictEqual(usage);
  });

  it('CP12 an input that does not fit well stays whole: it is never summarised away', async () => {
    const input = `Look at this: ${'word '.repeat(900)}`;
    const window = windowFor(HISTORY, 0.8);
    const llm = sessionModel({ steps: ['ok'], summaries: [SUMMARY] });

    await runWith(createContextPolicy({ ...SUMMARY_ONLY, window }), { llm, transcript: transcriptOf(HISTORY), input });

    expect(llm.summaryRequests()).toHaveLength(1);
    expect(textOf(llm.stepRequests()[0]?.messages.at(-1))).toBe(input);
  });

  it('CP6 stays valid for providers that alternate strictly, also after many summaries', async () => {
    const window = windowFor(HISTORY, 0.9, [readTool()]);
    const policy = createContextPolicy({ window });
    const llm = sessionModel({ steps: [...Array.from({ length: 250 }, () => [toolCall('read')]), 'ok'], summaries: [repeat(SUMMARY)] });

    const { transcript, result } = await runWith(policy, { llm, tools: [readTool()], transcript: transcriptOf(HISTORY) });

    expect(result.stopReason).toBe('end_turn');
    expect(llm.summaryRequests().length).toBeGreaterThan(3);
    for (const { messages } of llm.stepRequests()) {
      expect(brokenRules(messages)).toStrictEqual([]);
      expect(summariesOf(messages).length).toBeLessThanOrEqual(1);
    }
    expect(transcript.findings()).toStrictEqual([]);
  });
});

describe('the summary request', () => {
  it('CP11 has what is kept free for a reply as its limit, and the model’s own settings', async () => {
    const llm = sessionModel({ steps: ['ok'], summaries: [SUMMARY] });
    const policy = createContextPolicy({ ...SUMMARY_ONLY, window: windowFor(HISTORY, 0.9), outputReserve: 777 });

    await runWith(policy, { llm, transcript: transcriptOf(HISTORY) });

    expect(llm.summaryRequests()[0]?.maxOutputTokens).toBe(777);
  });

  it.each([
    ['what the host says', { outputReserve: 300 }, { maxOutputTokens: 500 }, 300],
    ['else what the model declares', {}, { maxOutputTokens: 500 }, 500],
    ['else a share of the window', {}, {}, (window: number) => Math.floor(window / 8)],
    ['at most half of the window', {}, { maxOutputTokens: 1e9 }, (window: number) => Math.floor(window / 2)],
    ['and one at least', { outputReserve: 1 }, {}, 1],
  ])('TK2 is capped by %s', async (_name, options, capabilities, expected) => {
    const window = windowFor(HISTORY, 0.9);
    const llm = sessionModel({ steps: ['ok'], summaries: [SUMMARY] }, { capabilities: { contextWindow: window, ...capabilities } });

    await runWith(createContextPolicy({ ...SUMMARY_ONLY, ...options }), { llm, transcript: transcriptOf(HISTORY) });

    expect(llm.summaryRequests()[0]?.maxOutputTokens).toBe(typeof expected === 'number' ? expected : expected(window));
  });

  it('goes to the summariser, if there is one, and is paid on its name', async () => {
    const llm = sessionModel({ steps: ['ok'] });
    const summarizer = sessionModel({ steps: [], summaries: [SUMMARY] }, { modelId: 'cheap' });
    const policy = createContextPolicy({ ...SUMMARY_ONLY, window: windowFor(HISTORY, 0.9), summarizer });

    const outcome = await runWith(policy, { llm, transcript: transcriptOf(HISTORY) });

    expect(summarizer.callCount).toBe(1);
    expect(outcome.recorded.find(({ type }) => type === 'usage')).toMatchObject({ modelId: 'cheap', purpose: 'compaction' });
  });
});

describe('the turn and a compaction', () => {
  it('CP2 waits until the history is summarised', async () => {
    const llm = sessionModel({ steps: ['ok'], summaries: [delayed(SUMMARY, 5_000)] });
    const policy = createContextPolicy({ ...SUMMARY_ONLY, window: windowFor(HISTORY, 0.9) });
    const turn = startScripted({ llm, hooks: policy.hooks, transcript: transcriptOf(HISTORY) });

    await turn.runtime.advance(4_999);
    expect(turn.recorded.map(({ type }) => type)).toStrictEqual(['turn.begin', 'message']);
    const { result } = await turn.finish();

    expect(result.stopReason).toBe('end_turn');
  });

  it('CP3 what is said while it is summarised comes after it, in the same request', async () => {
    const llm = sessionModel({ steps: ['ok'], summaries: [delayed(SUMMARY, 5_000)] });
    const policy = createContextPolicy({ ...SUMMARY_ONLY, window: windowFor(HISTORY, 0.9) });
    const turn = startScripted({ llm, hooks: policy.hooks, transcript: transcriptOf(HISTORY) });

    await turn.runtime.advance(1_000);
    const delivered = turn.control.steer('And look at the docs.');
    const { transcript } = await turn.finish();

    await expect(delivered).resolves.toBe('delivered');
    const sent = llm.stepRequests()[0]?.messages ?? [];
    expect(sent.slice(-2).map(textOf)).toStrictEqual(['hi', 'And look at the docs.']);
    expect(summariesOf(sent)).toHaveLength(1);
    expect(transcript.findings()).toStrictEqual([]);
  });

  it('BR-127 no rate limit is taken for an overflow, whatever its words', async () => {
    const llm = sessionModel({ steps: [new LLMError({ kind: 'rate_limit', status: 429, message: 'Too many tokens, please wait before trying again.' })] });
    const transcript = transcriptOf(HISTORY);

    const outcome = await runWith(createContextPolicy({ window: windowFor(HISTORY, 0.4) }), { llm, transcript });

    expect(outcome.result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'rate_limit' } });
    expect(layersOf(outcome)).toStrictEqual([]);
    expect(llm.summaryRequests()).toStrictEqual([]);
    expect(transcript.buildMessages()).toHaveLength(HISTORY.length + 1);
  });
});

describe('the layers without a model', () => {
  const tools = [readTool()];

  it('D3 clear old results from half of the window on, and nothing is asked', async () => {
    const history = longHistory({ exchanges: 60, characters: 1_000 });
    const llm = sessionModel({ steps: ['ok'] });

    const outcome = await runWith(createContextPolicy({ window: windowFor(history, 0.6, tools) }), { llm, tools, transcript: transcriptOf(history) });

    expect(layersOf(outcome)).toStrictEqual(['clear']);
    const results = (llm.stepRequests()[0]?.messages ?? []).filter(({ role }) => role === 'tool').map(textOf);
    expect(results.slice(0, 40).every((text) => text.includes('was cleared'))).toBe(true);
    expect(results.slice(-9).some((text) => text.includes('was cleared'))).toBe(false);
  });

  it('D3 MC3 leave a history below half of the window alone', async () => {
    const history = longHistory({ exchanges: 60, characters: 1_000 });
    const llm = sessionModel({ steps: ['ok'] });

    const outcome = await runWith(createContextPolicy({ window: windowFor(history, 0.48, tools) }), { llm, tools, transcript: transcriptOf(history) });

    expect(layersOf(outcome)).toStrictEqual([]);
  });

  it('D4 fold long old texts from 70 % of the window on', async () => {
    const history = longHistory({ exchanges: 30, characters: 4_000 });
    const run = async (share: number): Promise<readonly string[]> =>
      layersOf(await runWith(createContextPolicy({ window: windowFor(history, share), clear: false }), { llm: sessionModel({ steps: ['ok'] }), transcript: transcriptOf(history) }));

    expect(await run(0.65)).toStrictEqual([]);
    expect(await run(0.75)).toStrictEqual(['fold']);
  });

  it('D9 act only if that frees a quarter of the window', async () => {
    const history = longHistory({ exchanges: 40, characters: 1_000 });
    const layers = async (minBatch?: number): Promise<readonly string[]> => {
      const policy = createContextPolicy({ window: windowFor(history, 0.6, tools), ...(minBatch !== undefined && { minBatch }) });
      return layersOf(await runWith(policy, { llm: sessionModel({ steps: ['ok'] }), tools, transcript: transcriptOf(history) }));
    };

    expect(await layers(0.1)).toStrictEqual(['clear']);
    expect(await layers(0.5)).toStrictEqual([]);
  });

  it('MC1 MC2 keep a warm cache, and act on less once it is cold: in the history, not in the events', async () => {
    const history = longHistory({ exchanges: 40, characters: 1_000 });
    const policy = createContextPolicy({ window: windowFor(history, 0.6, tools), minBatch: 0.5, cacheIdleMs: 300_000 });
    const transcript = transcriptOf(history);
    const runtime = virtualRuntime();
    const turn = async (): Promise<readonly string[]> => layersOf(await runWith(policy, { llm: sessionModel({ steps: ['ok'] }), tools, transcript, runtime }));

    expect(await turn()).toStrictEqual([]);
    await runtime.advance(299_000);
    expect(await turn()).toStrictEqual([]);
    const events = transcript.events.length;
    const before = structuredClone(transcript.events);
    await runtime.advance(301_000);
    expect(await turn()).toStrictEqual(['clear']);
    expect(await turn()).toStrictEqual([]);

    expect(transcript.events.slice(0, events)).toStrictEqual(before);
  });

  it('D9 each request begins with the one before, between compactions', async () => {
    const window = windowFor(HISTORY, 0.9, tools);
    const llm = sessionModel({ steps: [...Array.from({ length: 60 }, () => [toolCall('read')]), 'ok'], summaries: [repeat(SUMMARY)] });

    const outcome = await runWith(createContextPolicy({ window }), { llm, tools, transcript: transcriptOf(HISTORY) });

    const requests = llm.stepRequests().map(({ messages }) => messages);
    const broken = requests.slice(1).filter((messages, index) => (requests[index] ?? []).some((message, at) => message !== messages[at]));
    // The first came before the first request.
    expect(broken).toHaveLength(layersOf(outcome).length - 1);
    expect(broken.length).toBeLessThan(6);
  });

  it('can be replaced, each of them, and left out', async () => {
    const history = longHistory({ exchanges: 30, characters: 4_000 });
    const seen: string[] = [];
    const policy = createContextPolicy({
      window: windowFor(history, 0.9),
      clear: false,
      fold: (messages, { estimator, keepNewest }) => {
        seen.push(`fold ${keepNewest}`);
        return foldOldTexts(messages, { estimator, keepNewest: 60 });
      },
      summarize: false,
      trim: (messages, { estimator, targetTokens }) => {
        seen.push('trim');
        return trimHistory(messages, { estimator, targetTokens });
      },
    });

    const outcome = await runWith(policy, { llm: sessionModel({ steps: ['ok'] }), transcript: transcriptOf(history) });

    expect(layersOf(outcome)).toStrictEqual(['trim']);
    expect(seen[0]).toBe('fold 20');
    expect(seen.at(-1)).toBe('trim');
  });
});

describe('one policy', () => {
  it('serves several sessions at once, each with its own figures', async () => {
    const window = windowFor(HISTORY, 0.9);
    const policy = createContextPolicy({ ...SUMMARY_ONLY, window });
    const short: readonly Message[] = longHistory({ exchanges: 2 });
    const [full, small] = await Promise.all([
      runWith(policy, { llm: sessionModel({ steps: ['ok'], summaries: [delayed(SUMMARY, 100)] }), transcript: transcriptOf(HISTORY) }),
      runWith(policy, { llm: sessionModel({ steps: ['ok'] }), transcript: transcriptOf(short) }),
    ]);

    expect(layersOf(full)).toStrictEqual(['summary']);
    expect(layersOf(small)).toStrictEqual([]);
  });

  it('goes on after a restart: another policy, with the events alone', async () => {
    const window = windowFor(HISTORY, 0.9, [readTool()]);
    const steps = Array.from({ length: 20 }, () => [toolCall('read')]);
    const first = await runWith(createContextPolicy({ window }), { llm: sessionModel({ steps: [...steps, 'ok'], summaries: [repeat(SUMMARY)] }), tools: [readTool()], transcript: transcriptOf(HISTORY) });
    const transcript = createTranscript(JSON.parse(JSON.stringify(first.transcript.events)) as typeof first.transcript.events);
    const llm = sessionModel({ steps: [...steps, 'ok'], summaries: [repeat(SUMMARY)] });

    const second = await runWith(createContextPolicy({ window }), { llm, tools: [readTool()], transcript });

    expect(second.result.stopReason).toBe('end_turn');
    expect(summariesOf(transcript.buildMessages())).toHaveLength(1);
    expect(textOf(transcript.buildMessages()[0])).toBe(TASK);
    expect(transcript.findings()).toStrictEqual([]);
  });

  it('says once that nothing changed, and stops, if the history is not built from the record', async () => {
    const window = windowFor(HISTORY, 0.9);
    const llm = sessionModel({ steps: [[toolCall('read')], [toolCall('read')], 'ok'], summaries: [repeat(SUMMARY)] });

    const outcome = await runWith(createContextPolicy({ ...SUMMARY_ONLY, window }), { llm, tools: [readTool()], history: HISTORY });

    expect(outcome.result.stopReason).toBe('end_turn');
    expect(noticesOf(outcome, 'context.ineffective')).toStrictEqual([{ layer: 'summary' }]);
    expect(llm.summaryRequests()).toHaveLength(1);
  });
});

describe('a history that is not what the record makes of it', () => {
  const tools = [readTool()];
  const steps = Array.from({ length: 30 }, () => [toolCall('read')]);

  it('is not what a summary of the host’s own leaves, which keeps the first task within its edit', async () => {
    const keepsTask = (messages: readonly Message[], { runtime }: SummarizeHistoryOptions): Promise<LayerResult> => {
      const end = messages.findLastIndex(({ role }, index) => role === 'assistant' && index < messages.length - 6);
      const [task, last] = [messages[0], messages[end - 1]];
      if (task === undefined || last === undefined || end < 3) return Promise.resolve({ edits: [], messages, tokensBefore: 0, tokensAfter: 0 });
      const summary = userMessage(SUMMARY, { id: runtime?.createId('message') ?? 'summary', origin: 'summary' });
      const edits = [{ from: task.id, to: last.id, messages: [task, summary] }];
      return Promise.resolve({ edits, messages: [task, summary, ...messages.slice(end)], tokensBefore: 0, tokensAfter: 0 });
    };
    const policy = createContextPolicy({ ...SUMMARY_ONLY, window: windowFor(longHistory({ exchanges: 12 }), 0.9, tools), summarize: keepsTask });

    const outcome = await runWith(policy, { llm: sessionModel({ steps: [...steps, 'ok'] }), tools, transcript: transcriptOf(longHistory({ exchanges: 12 })) });

    expect(noticesOf(outcome, 'context.ineffective')).toStrictEqual([]);
    expect(layersOf(outcome).length).toBeGreaterThan(1);
    expect(textOf(outcome.transcript.buildMessages()[0])).toBe(TASK);
  });

  it('is found out also where each of its messages is built anew', async () => {
    const transcript = transcriptOf(HISTORY);
    const withoutCompactions = createTranscript(transcript.events);
    const llm = sessionModel({ steps: [...steps, 'ok'], summaries: [repeat(SUMMARY)] });
    const policy = createContextPolicy({ ...SUMMARY_ONLY, window: windowFor(HISTORY, 0.9, tools) });

    const outcome = await runWith(policy, {
      llm,
      tools,
      record: (event) => {
        if (event.type !== 'compaction') withoutCompactions.record(event);
      },
      buildMessages: () => structuredClone(withoutCompactions.buildMessages()),
      transcript,
    });

    expect(outcome.result.stopReason).toBe('end_turn');
    expect(noticesOf(outcome, 'context.ineffective')).toStrictEqual([{ layer: 'summary' }]);
    expect(llm.summaryRequests()).toHaveLength(1);
  });

  it('makes no other session stuck that begins with the same message', async () => {
    const rules = userMessage('House rules: be kind.', { id: 'rules', origin: 'memory', pinned: true });
    const policy = createContextPolicy({ ...SUMMARY_ONLY, window: windowFor(HISTORY, 0.9, tools) });
    const stuck = await runWith(policy, { llm: sessionModel({ steps: ['ok'], summaries: [repeat(SUMMARY)] }), tools, history: [rules, ...HISTORY] });

    const other = await runWith(policy, { llm: sessionModel({ steps: ['ok'], summaries: [repeat(SUMMARY)] }), tools, transcript: transcriptOf([rules, ...HISTORY]) });

    expect(noticesOf(stuck, 'context.ineffective')).toHaveLength(1);
    expect(layersOf(other)).toStrictEqual(['summary']);
  });

  it('takes a note of a host’s own trim before the first task, which stays', async () => {
    const trim: TrimLayer = (messages, options) => {
      const result = trimHistory(messages, options);
      const note = userMessage('The beginning was cut.', { id: `note_${messages.length}`, origin: 'reminder' });
      return { ...result, messages: [note, ...result.messages.filter(({ id }) => !id.startsWith('note_'))] };
    };
    const policy = createContextPolicy({ ...SUMMARY_ONLY, summarize: false, trim, window: windowFor(HISTORY, 0.9, tools) });

    const outcome = await runWith(policy, { llm: sessionModel({ steps: [...steps, ...steps, ...steps, 'ok'] }), tools, transcript: transcriptOf(HISTORY) });

    expect(noticesOf(outcome, 'context.ineffective')).toStrictEqual([]);
    expect(layersOf(outcome).length).toBeGreaterThan(1);
    expect(outcome.transcript.buildMessages().slice(0, 2).map(textOf)).toStrictEqual(['The beginning was cut.', TASK]);
    expect(outcome.transcript.findings()).toStrictEqual([]);
  });

  it('D7 with messages of the same id keeps them all, says so, and does not go round in circles', async () => {
    const transcript = createTranscript();
    const input = (turn: number): Message & { role: 'user' } => userMessage(`Task ${turn}.`, { id: 'input' });
    const policy = createContextPolicy({ ...SUMMARY_ONLY, window: windowFor(longHistory({ exchanges: 16 }), 0.9, tools) });
    const llm = sessionModel({ steps: Array.from({ length: 6 }, () => [...steps.slice(0, 10), 'ok']).flat(), summaries: [repeat(SUMMARY)] });
    const told: unknown[] = [];

    for (let turn = 1; turn <= 6; turn += 1) {
      const outcome = await runWith(policy, { llm, tools, transcript, input: [input(turn)], check: false });
      expect(outcome.result.stopReason).toBe('end_turn');
      expect(textOf(llm.stepRequests().at(-1)?.messages.findLast(({ id }) => id === 'input'))).toBe(`Task ${turn}.`);
      told.push(...noticesOf(outcome, 'context.equal_ids'));
    }

    expect(transcript.buildMessages().filter(({ id }) => id === 'input').map(textOf)).toStrictEqual([1, 2, 3, 4, 5, 6].map((turn) => `Task ${turn}.`));
    expect(told).toStrictEqual([{ ids: ['input'] }]);
    expect(llm.summaryRequests().length).toBeLessThan(10);
    expect(transcript.findings()).toStrictEqual([]);
  });
});

describe('a fork', () => {
  it('has the cache of its origin, and not what went wrong there since', async () => {
    const history = longHistory({ exchanges: 40, characters: 1_000 });
    const tools = [readTool()];
    const runtime = virtualRuntime();
    const policy = createContextPolicy({ window: windowFor(history, 0.6, tools), minBatch: 0.5 });
    const origin = transcriptOf(history);
    await runWith(policy, { llm: sessionModel({ steps: ['ok'] }), tools, transcript: origin, runtime });
    const shared = origin.buildMessages();
    const turn = async (buildMessages: () => readonly Message[]): Promise<ScriptedOutcome> =>
      runWith(policy, { llm: sessionModel({ steps: ['ok'] }), tools, buildMessages, runtime, input: [], check: false });

    await runtime.advance(301_000);
    // The origin goes on from a history that takes no compaction; the fork from one that does.
    const stuck = await turn(() => shared);
    await runtime.advance(301_000);
    const fork = transcriptOf(history);
    for (const event of origin.events.slice(fork.events.length)) fork.record(event);
    const forked = await runWith(policy, { llm: sessionModel({ steps: ['ok'] }), tools, transcript: fork, buildMessages: () => rejoin(shared, fork.buildMessages()), runtime });

    expect(noticesOf(stuck, 'context.ineffective')).toHaveLength(1);
    expect(layersOf(forked)).toStrictEqual(['clear']);
    expect(noticesOf(forked, 'context.ineffective')).toStrictEqual([]);
  });
});

/** A history with the messages of another where they are the same: a fork that shares its past. */
function rejoin(shared: readonly Message[], own: readonly Message[]): readonly Message[] {
  const byId = new Map(shared.map((message) => [message.id, message]));
  return own.map((message) => {
    const other = byId.get(message.id);
    return other !== undefined && JSON.stringify(other) === JSON.stringify(message) ? other : message;
  });
}

describe('a window of the input alone', () => {
  it('CP9 has no room for the reply taken off', async () => {
    const layers = async (capabilities: object): Promise<readonly string[]> => {
      const llm = sessionModel({ steps: ['ok'], summaries: [SUMMARY] }, { capabilities: { maxOutputTokens: SIZE, ...capabilities } });
      return layersOf(await runWith(createContextPolicy(SUMMARY_ONLY), { llm, transcript: transcriptOf(HISTORY) }));
    };

    expect(await layers({ contextWindow: Math.round(SIZE / 0.7) })).toStrictEqual(['summary']);
    expect(await layers({ maxInputTokens: Math.round(SIZE / 0.7) })).toStrictEqual([]);
    expect(await layers({ maxInputTokens: Math.round(SIZE / 0.7), contextWindow: Math.round(SIZE / 0.35) })).toStrictEqual([]);
    expect(await layers({ maxInputTokens: Math.round(SIZE / 0.7), contextWindow: Math.round(SIZE / 0.6) })).toStrictEqual(['summary']);
  });
});

describe('bad input', () => {
  it.each<readonly [string, object, RegExp]>([
    ['a reserve over the window', { window: 1_000, outputReserve: 1_000 }, /outputReserve.*1000.*window.*1000/],
    ['a share over 1', { summarizeAt: 1.5 }, /summarizeAt.*1\.5/],
    ['a negative budget', { userMessageTokens: -1 }, /userMessageTokens.*-1/],
    ['layers out of order', { clearAt: 0.8, foldAt: 0.6 }, /clearAt.*0\.8.*foldAt.*0\.6/],
    ['a layer that is no function', { fold: true }, /fold/],
    ['a summariser that is no model', { summarizer: {} }, /summarizer/],
    ['an option that does not exist', { windowSize: 5 }, /windowSize/],
    ['an estimator that is none', { estimator: {} }, /estimator.*estimateText/],
    ['a number for an estimator', { estimator: 5 }, /estimator.*estimateText/],
    ['options of a layer that make no sense', { truncate: { maxCharacters: -1 } }, /maxCharacters/],
  ])('refuses %s, with the figures', (_name, options, message) => {
    expect(() => createContextPolicy(options)).toThrow(TypeError);
    expect(() => createContextPolicy(options)).toThrow(message);
  });

  it('has its members named as they are used', () => {
    const policy = createContextPolicy();

    expect(policy.hooks.map(({ name }) => name)).toStrictEqual(['preflight', 'truncateToolResult', 'limitMedia', 'context']);
    expect(policy.recoveries.map(({ name }) => name)).toStrictEqual(['context.overflow', 'reduceMedia.older', 'reduceMedia.all']);
    expect(createContextPolicy({ preflight: false, truncate: false, limitMedia: false, reduceMedia: false }).hooks.map(({ name }) => name)).toStrictEqual(['context']);
  });
});
