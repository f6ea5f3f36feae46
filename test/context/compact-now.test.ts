/** Manual compaction: a host that summarises a session between turns. */
import { describe, expect, it } from 'vitest';
import { createTranscript, LLMError, type RecordedEvent, type Transcript } from 'turnloop';
import { createContextPolicy } from 'turnloop/context';
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
    expect(transcript.events.slice(before.length).map(({ type }) => type)).toStrictEqual(['turn.begin', 'usage', 'compaction', 'turn.end']);
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
    expect(transcript.events.slice(-3).map(({ type }) => type)).toStrictEqual(['turn.begin', 'usage', 'turn.end']);
    expect(checkTranscript(transcript.events, { complete: true })).toStrictEqual([]);
  });

  it('CP10 D8 does nothing, if a turn began meanwhile', async () => {
    const transcript = transcriptOf(HISTORY);
    const begin: Reply = () => {
      transcript.record({ type: 'turn.begin', turnId: 'turn_x', at: 0, version: 1, inputCount: 0 });
      transcript.record({ type: 'turn.end', turnId: 'turn_x', at: 0, stopReason: 'stopped', steps: 0 });
      return { content: SUMMARY, usage: {} };
    };

    await expect(compact(transcript, begin)).rejects.toMatchObject({ code: 'history_changed' });
    expect(transcript.buildMessages()).toStrictEqual(HISTORY);
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
});
