/** Manual compaction: a host that summarises a session between turns. */
import { describe, expect, it } from 'vitest';
import { createTranscript, LLMError, type Message, type RecordedEvent, type Transcript, type UsagePurpose, userMessage } from 'turnloop';
import { type CompactOptions, createContextPolicy, type LayerResult } from 'turnloop/context';
import { checkTranscript, hanging, type Reply, scriptedLLM, startScripted, virtualRuntime } from 'turnloop/testing';
import { brokenRules } from '../properties/protocol-rules.ts';
import { longHistory, readTool, runWith, sessionModel, summariesOf, transcriptOf } from './sessions.ts';

const HISTORY = longHistory();
const SUMMARY = 'Goal: mend the tests.';
const USAGE = { inputTokens: 500, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 7, thinkingTokens: 0 };

function compact(transcript: Transcript, reply: Reply = { content: SUMMARY, usage: USAGE }, options: object = {}) {
  const llm = scriptedLLM([reply]);
  return createContextPolicy().compact({ transcript, llm, runtime: virtualRuntime({ idPrefix: 'now' }), ...options });
}

/** What the host tells the model in each request. */
let clock = 0;

describe('policy.compact', () => {
  it('summarises a session below every threshold, records it by the laws, and tells what it did', async () => {
    const transcript = transcriptOf(HISTORY);
    const before = structuredClone(transcript.events);

    const report = await compact(transcript);

    expect(report.usage).toStrictEqual(USAGE);
    expect(report.tokensAfter).toBeLessThan(report.tokensBefore);
    expect(summariesOf(transcript.buildMessages())).toHaveLength(1);
    expect(brokenRules(transcript.buildMessages())).toStrictEqual([]);
    expect(transcript.events.slice(0, before.length)).toStrictEqual(before);
    expect(transcript.events.slice(before.length).map(({ type }) => type)).toStrictEqual(['usage', 'compaction']);
    expect(checkTranscript(transcript.events, { complete: true })).toStrictEqual([]);
    expect(transcript.openTurn()).toBeUndefined();
    expect(transcript.findings()).toStrictEqual([]);
  });

  it('writes each event before the transcript takes it, and asks for what the host wants kept', async () => {
    const written: RecordedEvent[] = [];
    const transcript = transcriptOf(HISTORY);
    const size = transcript.events.length;
    const llm = scriptedLLM([SUMMARY]);

    await createContextPolicy().compact({
      transcript,
      llm,
      runtime: virtualRuntime({ idPrefix: 'now' }),
      tools: [readTool()],
      focus: 'the names of the failing tests',
      record: (event) => {
        expect(transcript.events).not.toContain(event);
        written.push(event);
      },
    });

    expect(transcript.events.slice(size)).toStrictEqual(written);
    expect(JSON.stringify(llm.requests[0]?.messages)).toContain('the names of the failing tests');
  });

  it('leaves a session that turns go on with', async () => {
    const transcript = transcriptOf(HISTORY);
    await compact(transcript);

    const { result } = await runWith(createContextPolicy(), { llm: sessionModel({ steps: ['ok'] }), transcript });

    expect(result.stopReason).toBe('end_turn');
  });

  it('CP2 refuses while a turn is open', async () => {
    const turn = startScripted({ replies: [hanging()], transcript: transcriptOf(HISTORY) });
    await turn.runtime.flush();

    await expect(compact(turn.transcript)).rejects.toMatchObject({ code: 'turn_open' });

    turn.control.abort();
    await turn.finish();
  });

  it('CP2 refuses an empty history, and one with nothing to summarise', async () => {
    await expect(compact(createTranscript())).rejects.toMatchObject({ code: 'empty_history' });
    await expect(compact(transcriptOf(longHistory({ exchanges: 2 })))).rejects.toMatchObject({ code: 'nothing_to_compact' });
  });

  it('BR-101 a summary that fails changes nothing; what it cost is on record', async () => {
    const transcript = transcriptOf(HISTORY);
    const messages = transcript.buildMessages();

    const failing = compact(transcript, new LLMError({ kind: 'auth', message: 'No.', usage: USAGE }));

    await expect(failing).rejects.toMatchObject({ code: 'summary_failed' });
    expect(transcript.buildMessages()).toStrictEqual(messages);
    expect(transcript.events.slice(-2).map(({ type }) => type)).toStrictEqual(['turn.end', 'usage']);
    expect(checkTranscript(transcript.events, { complete: true })).toStrictEqual([]);
  });

  it('CP10 D8 does nothing, if a turn came meanwhile', async () => {
    const transcript = transcriptOf(HISTORY);
    const said = userMessage('And now?', { id: 'said' });
    const begin: Reply = () => {
      transcript.record({ type: 'turn.begin', turnId: 'turn_x', at: 0, version: 1, inputCount: 1 });
      transcript.record({ type: 'message', turnId: 'turn_x', at: 0, message: said });
      transcript.record({ type: 'turn.end', turnId: 'turn_x', at: 0, stopReason: 'stopped', steps: 0 });
      return { content: SUMMARY, usage: {} };
    };

    await expect(compact(transcript, begin)).rejects.toMatchObject({ code: 'history_changed' });
    expect(transcript.buildMessages()).toStrictEqual([...HISTORY, said]);
  });

  it.each<readonly [string, (messages: readonly Message[]) => readonly Message[]]>([
    ['in a list of its own', (messages) => [...messages]],
    ['of messages that are copies', (messages) => structuredClone(messages)],
    ['with the time behind it', (messages) => [...messages, userMessage(`It is ${(clock += 1)}.`, { transient: true })]],
  ])('CP10 works where the history is built anew each time, %s', async (_name, build) => {
    const own = transcriptOf(HISTORY);

    const report = await compact({ ...own, buildMessages: () => build(own.buildMessages()) });

    expect(report.tokensAfter).toBeLessThan(report.tokensBefore);
    expect(summariesOf(own.buildMessages())).toHaveLength(1);
  });

  it('refuses what a summary of the host’s own may not do', async () => {
    const transcript = transcriptOf(HISTORY);
    const takesTask = (messages: readonly Message[]): Promise<LayerResult> =>
      Promise.resolve({ edits: [{ from: 'task', to: 'reply_1', messages: [] }], messages, tokensBefore: 0, tokensAfter: 0 });

    const compaction = createContextPolicy({ summarize: takesTask }).compact({ transcript, llm: scriptedLLM([]) });

    await expect(compaction).rejects.toMatchObject({ code: 'summary_failed' });
    expect(transcript.buildMessages()).toStrictEqual(HISTORY);
  });

  it('CP10 leaves a turn that began meanwhile, and is still open, as it is', async () => {
    const transcript = transcriptOf(HISTORY);
    const begin: Reply = () => {
      transcript.record({ type: 'turn.begin', turnId: 'turn_x', at: 0, version: 1, inputCount: 1 });
      return { content: SUMMARY, usage: USAGE };
    };

    await expect(compact(transcript, begin)).rejects.toMatchObject({ code: 'history_changed' });

    expect(transcript.openTurn()).toMatchObject({ turnId: 'turn_x', steps: 0, missingInput: 1 });
    expect(transcript.events.at(-1)).toMatchObject({ type: 'usage', purpose: 'compaction', usage: USAGE });
  });

  it('law-3 what it records may stand between turns, and nothing else may', async () => {
    const transcript = transcriptOf(HISTORY);
    await compact(transcript);
    const [usage, compaction] = transcript.events.slice(-2);
    const events = transcript.events.slice(0, -2);
    const check = (...more: readonly (RecordedEvent | undefined)[]): number => checkTranscript([...events, ...more.filter((event) => event !== undefined)], { complete: true }).length;

    expect(check(usage, compaction)).toBe(0);
    const spentOn = (purpose: UsagePurpose): number => check(usage === undefined ? undefined : ({ ...usage, purpose } as RecordedEvent));
    expect(spentOn('other')).toBe(0);
    expect(spentOn('step')).toBeGreaterThan(0);
    expect(check({ type: 'message', turnId: 'now', at: 0, message: userMessage('hi', { id: 'hi' }) })).toBeGreaterThan(0);
    expect(check({ type: 'turn.begin', turnId: 'next', at: 0, version: 1, inputCount: 0 }, compaction, { type: 'turn.end', turnId: 'next', at: 0, stopReason: 'end_turn', steps: 0 })).toBeGreaterThan(0);
  });

  it('BR-085 an abort ends it at once, with the history as it was', async () => {
    const transcript = transcriptOf(HISTORY);
    const events = transcript.events.length;
    const controller = new AbortController();
    const compacting = compact(transcript, hanging(), { signal: controller.signal });

    controller.abort(new Error('enough'));

    await expect(compacting).rejects.toThrow('enough');
    expect(transcript.events).toHaveLength(events);
  });

  it('law-9 a process that dies in the middle of it leaves no turn open, and the whole history or the new one', async () => {
    const transcript = transcriptOf(HISTORY);
    const before = transcript.events.length;
    await compact(transcript);

    for (let length = before; length <= transcript.events.length; length += 1) {
      const loaded = createTranscript(JSON.parse(JSON.stringify(transcript.events.slice(0, length))) as RecordedEvent[]);
      expect(loaded.openTurn()).toBeUndefined();
      expect(summariesOf(loaded.buildMessages())).toHaveLength(length === transcript.events.length ? 1 : 0);
      expect(checkTranscript(loaded.events, { complete: true })).toStrictEqual([]);
      expect((await runWith(createContextPolicy(), { llm: sessionModel({ steps: ['ok'] }), transcript: loaded })).result.stopReason).toBe('end_turn');
    }
  });

  it.each(['usage', 'compaction'])('leaves the history as it was, if the %s cannot be written', async (type) => {
    const transcript = transcriptOf(HISTORY);
    const record = (event: RecordedEvent): Promise<void> => (event.type === type ? Promise.reject(new Error('disk full')) : Promise.resolve());

    await expect(compact(transcript, undefined, { record })).rejects.toThrow('disk full');

    expect(transcript.buildMessages()).toStrictEqual(HISTORY);
    expect(transcript.openTurn()).toBeUndefined();
    await expect(compact(transcript)).resolves.toMatchObject({ usage: USAGE });
  });

  it('CP10 is refused while the session is being compacted, and works again after it', async () => {
    const transcript = transcriptOf(HISTORY);
    const record = (): Promise<void> => Promise.resolve();

    const [first, second] = await Promise.allSettled([compact(transcript, undefined, { record }), compact(transcript, undefined, { record })]);

    expect(first.status).toBe('fulfilled');
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'history_changed' } });
    expect(summariesOf(transcript.buildMessages())).toHaveLength(1);
    await expect(compact(transcript)).rejects.toMatchObject({ code: 'nothing_to_compact' });
  });

  it('CP10 does not report a success that another writer of the session made void meanwhile', async () => {
    const transcript = transcriptOf(HISTORY);
    const other = { type: 'compaction', turnId: 'other', at: 0, layer: 'other', tokensBefore: 2, tokensAfter: 1 } as const;
    const record = (event: RecordedEvent): void => {
      if (event.type !== 'compaction') return;
      const edits = event.edits.map(({ from }) => ({ from, to: from, messages: [] }));
      transcript.record({ ...other, edits });
    };

    await expect(compact(transcript, undefined, { record })).rejects.toMatchObject({ code: 'history_changed' });
  });

  it('BR-101 keeps what was noted, if the summariser fails half way through', async () => {
    const transcript = transcriptOf(longHistory({ exchanges: 120 }));
    const replies = ['Notes 1.', 'Notes 2.', new LLMError({ kind: 'auth', message: 'No.' })];
    const summarizer = scriptedLLM(replies, { capabilities: { contextWindow: 4_000, maxOutputTokens: 200 } });

    await createContextPolicy({ summarizer }).compact({ transcript, llm: scriptedLLM([]), runtime: virtualRuntime({ idPrefix: 'now' }) });

    expect(summariesOf(transcript.buildMessages())).toMatchObject([expect.stringContaining('Notes 2.')]);
    expect(transcript.buildMessages().length).toBeGreaterThan(60);
    expect(brokenRules(transcript.buildMessages())).toStrictEqual([]);
  });

  it.each<readonly [string, object | undefined, RegExp]>([
    ['no options', undefined, /options are not an object/],
    ['no transcript', { transcript: undefined }, /transcript.*buildMessages/],
    ['no model', { llm: undefined }, /LLM/],
    ['an option that does not exist', { focuss: 'x' }, /focuss/],
    ['a focus that is no text', { focus: 5 }, /focus.*string/],
    ['a recorder that is no function', { record: 'file' }, /record.*function/],
    ['a runtime that is none', { runtime: {} }, /runtime.*now/],
    ['a signal that is none', { signal: {} }, /signal.*throwIfAborted/],
    ['tools that are no list', { tools: 5 }, /tools.*list/],
    ['a tool that is none', { tools: [{}] }, /execute/],
  ])('refuses %s', async (_name, options, message) => {
    const transcript = transcriptOf(HISTORY);
    const given = options === undefined ? undefined : { transcript, llm: scriptedLLM([]), ...options };

    const compacting = createContextPolicy().compact(given as unknown as CompactOptions);

    await expect(compacting).rejects.toThrow(TypeError);
    await expect(compacting).rejects.toThrow(message);
  });
});
