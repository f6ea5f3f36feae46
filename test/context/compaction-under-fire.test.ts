/**
 * Compaction under fire: aborts, bad summaries, failing models and changed histories while the policy works, in whole
 * turns. Whatever happens, nothing is lost, and the turn goes on or ends with its reason.
 */
import { describe, expect, it } from 'vitest';
import { createTranscript, decorateLLM, type LLM, LLMError, type Message, type RecordedEvent, textOf, userCancel, userMessage } from 'turnloop';
import { createContextPolicy } from 'turnloop/context';
import { cutStream, delayed, hanging, repeat, type Reply, startScripted, stubborn, toolCall, watchedController } from 'turnloop/testing';
import { brokenRules } from '../properties/protocol-rules.ts';
import { layersOf, longHistory, noticesOf, readTool, runWith, sessionModel, summariesOf, TASK, transcriptOf, windowFor } from './sessions.ts';

const SUMMARY = 'Goal: mend the tests. Settled: files 1 to 30 are fine.';
const HISTORY = longHistory();
const USAGE = { inputTokens: 500, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 7, thinkingTokens: 0 };

/** A policy under which the history has to be summarised. */
function duePolicy(): ReturnType<typeof createContextPolicy> {
  return createContextPolicy({ clear: false, fold: false, window: windowFor(HISTORY, 0.95) });
}

/** A history that a next prompt works on. */
async function expectToGoOn(transcript: ReturnType<typeof transcriptOf>): Promise<void> {
  const llm = sessionModel({ steps: ['fine'], summaries: [repeat(SUMMARY)] });
  // A turn that lost its recorder has no end.
  const outcome = await runWith(duePolicy(), { llm, transcript, input: 'And now?', check: false });
  expect(outcome.result).toMatchObject({ stopReason: 'end_turn', text: 'fine' });
  expect(brokenRules(transcript.buildMessages())).toStrictEqual([]);
}

describe('an abort', () => {
  it('BR-085 A in the middle of the summary’s stream ends the turn at once, with the history as it was', async () => {
    const transcript = transcriptOf(HISTORY);
    const controller = watchedController();
    const llm = sessionModel({ steps: ['ok'], summaries: [{ content: SUMMARY, chunk: 6, deltaDelayMs: 10 }] });
    const turn = startScripted({ llm, hooks: duePolicy().hooks, transcript, signal: controller.signal });

    await turn.runtime.advance(35);
    const startedAt = turn.runtime.now();
    controller.abort(userCancel());
    const { result } = await turn.finish();

    expect(result.stopReason).toBe('aborted');
    expect(turn.runtime.now() - startedAt).toBeLessThan(100);
    expect(transcript.buildMessages().slice(0, -1)).toStrictEqual(HISTORY);
    expect(layersOf(turn)).toStrictEqual([]);
    expect(turn.runtime.pendingTimers).toBe(0);
    expect(controller.listenerCount).toBe(0);
    await expectToGoOn(transcript);
  });

  it('BR-085 B in the same tick in which the summary ends leaves the old history, and the cost of the summary on record', async () => {
    const transcript = transcriptOf(HISTORY);
    const controller = watchedController();
    const summary: Reply = () => {
      controller.abort();
      return { content: SUMMARY, usage: USAGE, ignoresAbort: true };
    };
    const llm = sessionModel({ steps: ['ok'], summaries: [summary] });
    // A model that does not hear of the abort answers all the same.
    const deaf = decorateLLM(llm, (request) => llm.chat({ ...request, signal: new AbortController().signal }));

    const turn = startScripted({ llm, decorate: () => deaf, hooks: duePolicy().hooks, transcript, signal: controller.signal });
    const { result } = await turn.finish();

    expect(result.stopReason).toBe('aborted');
    expect(layersOf(turn)).toStrictEqual([]);
    expect(turn.recorded.find(({ type }) => type === 'usage')).toMatchObject({ purpose: 'compaction', usage: USAGE });
    expect(result.usage).toStrictEqual(USAGE);
    expect(transcript.buildMessages().slice(0, -1)).toStrictEqual(HISTORY);
    await expectToGoOn(transcript);
  });

  it.each([
    ['is written', true],
    ['is lost', false],
  ])('BR-085 C while the record of it is written leaves the whole new history or the whole old one, if it %s', async (_name, isKept) => {
    const transcript = transcriptOf(HISTORY);
    const controller = watchedController();
    const record = (event: RecordedEvent): Promise<void> | undefined => {
      if (event.type !== 'compaction') return undefined;
      controller.abort();
      return isKept ? Promise.resolve() : Promise.reject(new Error('disk full'));
    };
    const llm = sessionModel({ steps: ['ok'], summaries: [SUMMARY] });

    const turn = startScripted({ llm, hooks: duePolicy().hooks, transcript, record, signal: controller.signal });
    const { result } = await turn.finish();

    expect(result.stopReason).toBe(isKept ? 'aborted' : 'fatal_error');
    const history = transcript.buildMessages();
    expect(summariesOf(history)).toHaveLength(isKept ? 1 : 0);
    if (!isKept) expect(history.slice(0, -1)).toStrictEqual(HISTORY);
    expect(textOf(history[0])).toBe(TASK);
    expect(textOf(history.at(-1))).toBe('hi');
    await expectToGoOn(createTranscript(transcript.events));
  });

  it('CP7 while it waits to ask again sends no further request', async () => {
    const transcript = transcriptOf(HISTORY);
    const controller = watchedController();
    const llm = sessionModel({ steps: ['ok'], summaries: [repeat(new LLMError({ kind: 'overloaded', message: 'Overloaded.', retryAfterMs: 20_000 }))] });
    const turn = startScripted({ llm, hooks: duePolicy().hooks, transcript, signal: controller.signal });

    await turn.runtime.advance(10_000);
    controller.abort();
    const { result } = await turn.finish();

    expect(result.stopReason).toBe('aborted');
    expect(llm.callCount).toBe(1);
    expect(turn.runtime.pendingTimers).toBe(0);
    expect(controller.listenerCount).toBe(0);
  });

  it('ends the turn within its grace, if the summariser hangs and hears nothing', async () => {
    const controller = watchedController();
    const llm = sessionModel({ steps: ['ok'], summaries: [stubborn(hanging())] });
    const turn = startScripted({ llm, hooks: duePolicy().hooks, transcript: transcriptOf(HISTORY), signal: controller.signal });

    await turn.runtime.advance(50);
    controller.abort();
    const { result } = await turn.finish();

    expect(result.stopReason).toBe('aborted');
    expect(turn.runtime.now()).toBeLessThanOrEqual(50 + 2_000);
  });
});

describe('a summary that is no good', () => {
  const server = new LLMError({ kind: 'server', message: 'Internal error.', retryable: false, usage: USAGE });

  it.each<readonly [string, readonly Reply[], RegExp, number]>([
    ['fails', [server], /Internal error/, 1],
    ['is stopped by a filter', [{ content: 'Goal', stopReason: 'filtered' }], /filter/, 1],
    ['is refused by a filter', [new LLMError({ kind: 'content_filter', message: 'No.' })], /filter/, 1],
    ['is empty', Array<Reply>(3).fill({ content: [] }), /no text/, 3],
    ['is thinking alone', Array<Reply>(3).fill({ content: [{ type: 'thinking', text: 'Let me see.' }] }), /no text/, 3],
    ['calls tools', Array<Reply>(3).fill([toolCall('read')]), /called tools/, 3],
    ['is truncated', Array<Reply>(3).fill({ content: 'Goal: to', stopReason: 'max_tokens' }), /truncated/, 3],
    ['is longer than what it replaces', Array<Reply>(3).fill('word '.repeat(20_000)), /longer than what it replaces/, 3],
    ['overflows itself', Array<Reply>(3).fill(new LLMError({ kind: 'context_overflow', message: 'Too long.' })), /too large/, 3],
  ])('CP2 CP7 BR-101 D5 that %s gives way to layer 5: nothing is lost from the record, and the turn goes on', async (_name, summaries, reason, count) => {
    const transcript = transcriptOf(HISTORY);
    const before = structuredClone(transcript.events);
    const llm = sessionModel({ steps: ['ok'], summaries });

    const outcome = await runWith(duePolicy(), { llm, transcript });

    expect(outcome.result.stopReason).toBe('end_turn');
    expect(llm.summaryRequests()).toHaveLength(count);
    expect(layersOf(outcome)).toStrictEqual(['trim']);
    expect(noticesOf(outcome, 'context.summary_failed')).toMatchObject([{ reason: expect.stringMatching(reason) as string, failures: 1, paused: false }]);
    expect(transcript.events.slice(0, before.length)).toStrictEqual(before);
    const sent = llm.stepRequests()[0]?.messages ?? [];
    expect([textOf(sent[0]), textOf(sent.at(-1))]).toStrictEqual([TASK, 'hi']);
    expect(brokenRules(sent)).toStrictEqual([]);
    expect(transcript.findings()).toStrictEqual([]);
  });

  it('BR-101 changes nothing, if there is no layer 5 either: the provider’s refusal then ends the turn', async () => {
    const transcript = transcriptOf(HISTORY);
    const overflow = new LLMError({ kind: 'context_overflow', message: 'Too long.' });
    const llm = sessionModel({ steps: [overflow], summaries: [repeat(overflow)] });
    const policy = createContextPolicy({ clear: false, fold: false, trim: false, window: windowFor(HISTORY, 0.95) });

    const outcome = await runWith(policy, { llm, transcript });

    expect(outcome.result).toMatchObject({ stopReason: 'context_overflow', error: { kind: 'context_overflow' } });
    expect(llm.summaryRequests()).toHaveLength(3);
    expect(transcript.buildMessages().slice(0, -1)).toStrictEqual(HISTORY);
  });

  it('CP7 is asked for again after a passing failure, with a wait, and each failure’s tokens are on record', async () => {
    const llm = sessionModel({
      steps: ['ok'],
      summaries: [
        new LLMError({ kind: 'server', message: 'Busy.', usage: USAGE }),
        cutStream(SUMMARY, { deltaCount: 1 }),
        { content: SUMMARY, usage: USAGE },
      ],
    });

    const outcome = await runWith(duePolicy(), { llm, transcript: transcriptOf(HISTORY) });

    expect(layersOf(outcome)).toStrictEqual(['summary']);
    expect(outcome.runtime.now()).toBe(3_000);
    const spent = outcome.recorded.filter((event) => event.type === 'usage' && event.purpose === 'compaction');
    expect(spent).toHaveLength(2);
    expect(noticesOf(outcome, 'context.compacted')).toMatchObject([{ usage: { inputTokens: 1_000, outputTokens: 14 } }]);
  });

  it('CP7 is not asked for again by the policy, if the model retries by itself', async () => {
    const busy = new LLMError({ kind: 'server', message: 'Busy.', usage: USAGE });
    let calls = 0;
    const summarizer: LLM = {
      provider: 'p',
      modelId: 'retrying',
      systemPrompt: '',
      chat: async ({ onAttemptFailed }) => {
        calls += 1;
        await onAttemptFailed?.({ error: busy });
        throw busy;
      },
    };
    const policy = createContextPolicy({ window: windowFor(HISTORY, 0.95), clear: false, fold: false, summarizer });

    const outcome = await runWith(policy, { llm: sessionModel({ steps: ['ok'] }), transcript: transcriptOf(HISTORY) });

    expect(calls).toBe(1);
    expect(layersOf(outcome)).toStrictEqual(['trim']);
    expect(outcome.recorded.filter((event) => event.type === 'usage' && event.modelId === 'retrying')).toHaveLength(2);
  });

  it('D7 is not tried for a while after three failures in a row', async () => {
    const window = windowFor(HISTORY, 0.95, [readTool()]);
    const policy = createContextPolicy({ window, clear: false, fold: false });
    const llm = sessionModel({ steps: [...Array.from({ length: 260 }, () => [toolCall('read')]), 'ok'], summaries: [repeat(server)] });

    const outcome = await runWith(policy, { llm, tools: [readTool()], transcript: transcriptOf(HISTORY) });

    expect(outcome.result.stopReason).toBe('end_turn');
    const tries = outcome.events.flatMap((event) => {
      if (event.type === 'compaction') return ['trim'];
      return event.type === 'notice' && event.name === 'context.summary_failed' ? ['failed'] : [];
    });
    expect(tries.slice(0, 10)).toStrictEqual(['failed', 'trim', 'failed', 'trim', 'failed', 'trim', 'trim', 'trim', 'failed', 'trim']);
  });

  it('D7 stays paused through turns that end before their reply', async () => {
    const policy = createContextPolicy({ window: windowFor(HISTORY, 0.95), clear: false, fold: false, trim: false });
    const transcript = transcriptOf(HISTORY);
    const summaries = [repeat(server)];
    const failures = async (reply: Reply): Promise<number> => {
      const outcome = await runWith(policy, { llm: sessionModel({ steps: [reply], summaries }), transcript, input: 'Go on.' });
      return noticesOf(outcome, 'context.summary_failed').length;
    };
    const before = [await failures('ok'), await failures('ok'), await failures('ok')];

    const overloaded = new LLMError({ kind: 'overloaded', message: 'Try again later.' });
    const during: number[] = [];
    for (let turn = 1; turn <= 6; turn += 1) during.push(await failures(overloaded));

    expect(before).toStrictEqual([1, 1, 1]);
    expect(during).toStrictEqual([0, 0, 1, 0, 0, 1]);
  });
});

describe('a history that changes meanwhile', () => {
  it('CP10 D8 throws the summary away, if what it covers is another', async () => {
    const transcript = transcriptOf(HISTORY);
    const change: Reply = () => {
      transcript.record({
        type: 'compaction',
        turnId: 'turn_1',
        at: 0,
        layer: 'other',
        edits: [{ from: 'reply_3', to: 'result_call_3', messages: [] }],
        tokensBefore: 2,
        tokensAfter: 1,
      });
      return SUMMARY;
    };
    const llm = sessionModel({ steps: ['ok'], summaries: [change] });

    const policy = createContextPolicy({ clear: false, fold: false, window: windowFor(HISTORY, 0.86) });
    const outcome = await runWith(policy, { llm, transcript, check: false });

    expect(outcome.result.stopReason).toBe('end_turn');
    expect(noticesOf(outcome, 'context.summary_discarded')).toHaveLength(1);
    expect(summariesOf(transcript.buildMessages())).toStrictEqual([]);
    expect(llm.stepRequests()[0]?.messages.slice(0, -1)).toStrictEqual(HISTORY.filter(({ id }) => !id.endsWith('_3')));
  });

  it('D7 D8 a summary that is thrown away counts as a failed one: layer 5 takes over, and after three in a row there is a pause', async () => {
    const transcript = transcriptOf(HISTORY);
    const tools = [readTool()];
    let changes = 0;
    // Somebody else changes the beginning of the history while each summary is written.
    const change: Reply = () => {
      changes += 1;
      const note = userMessage(`Note ${changes}.`, { id: `note_${changes}`, origin: 'memory' });
      const { id: first } = transcript.buildMessages()[0] ?? { id: '' };
      const edits = [{ from: first, to: first, messages: [note] }];
      transcript.record({ type: 'compaction', turnId: 'turn_1', at: 0, layer: 'other', edits, tokensBefore: 2, tokensAfter: 1 });
      return SUMMARY;
    };
    const llm = sessionModel({ steps: [...Array.from({ length: 200 }, () => [toolCall('read')]), 'ok'], summaries: [repeat(change)] });
    const policy = createContextPolicy({ clear: false, fold: false, window: windowFor(HISTORY, 0.95, tools) });

    const outcome = await runWith(policy, { llm, tools, transcript, check: false });

    const tries = outcome.events.flatMap((event) => {
      if (event.type === 'compaction' && event.layer === 'trim') return ['trim'];
      return event.type === 'notice' && event.name === 'context.summary_discarded' ? ['discarded'] : [];
    });
    expect(outcome.result.stopReason).toBe('end_turn');
    expect(tries.slice(0, 2)).toStrictEqual(['discarded', 'trim']);
    expect(noticesOf(outcome, 'context.summary_discarded').slice(0, 3)).toMatchObject([
      { failures: 1, paused: false },
      { failures: 2, paused: false },
      { failures: 3, paused: true },
    ]);
    expect(tries.join(' ')).toContain('discarded trim trim');
  });

  it.each(['at the head', 'at the tail'])('CP10 D8 a message built for each request %s, such as a clock, throws no summary away', async (place) => {
    const transcript = transcriptOf(HISTORY);
    let ticks = 0;
    const buildMessages = (): readonly Message[] => {
      ticks += 1;
      const clock = userMessage(`It is ${ticks}.`, { id: 'clock', origin: 'memory', transient: true });
      return place === 'at the head' ? [clock, ...transcript.buildMessages()] : [...transcript.buildMessages(), clock];
    };
    const llm = sessionModel({ steps: ['ok'], summaries: [repeat(SUMMARY)] });

    const outcome = await runWith(duePolicy(), { llm, transcript, buildMessages });

    expect(layersOf(outcome)).toStrictEqual(['summary']);
    expect(llm.summaryRequests()).toHaveLength(1);
  });

  it('CP10 D8 keeps what was added behind it', async () => {
    const transcript = transcriptOf(HISTORY);
    const add: Reply = () => {
      transcript.record({ type: 'message', turnId: 'turn_1', at: 0, message: userMessage('One more thing.', { id: 'more' }) });
      return SUMMARY;
    };
    const llm = sessionModel({ steps: ['ok'], summaries: [add] });

    const outcome = await runWith(duePolicy(), { llm, transcript, check: false });

    expect(layersOf(outcome)).toStrictEqual(['summary']);
    expect(llm.stepRequests()[0]?.messages.slice(-2).map(textOf)).toStrictEqual(['hi', 'One more thing.']);
    expect(transcript.findings()).toStrictEqual([]);
  });

  it('D8 counts a history that is built anew each time as the same, if it says the same', async () => {
    const transcript = transcriptOf(HISTORY);
    const llm = sessionModel({ steps: ['ok'], summaries: [delayed(SUMMARY, 5)] });

    const outcome = await runWith(duePolicy(), { llm, transcript, buildMessages: () => structuredClone(transcript.buildMessages()) });

    expect(layersOf(outcome)).toStrictEqual(['summary']);
  });
});
