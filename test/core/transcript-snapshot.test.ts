import { describe, expect, it } from 'vitest';
import { createTranscript, type TranscriptSnapshot } from 'turnloop';
import { echoTool, runScripted, scriptedLLM, toolCall } from 'turnloop/testing';

const scene = { tools: [echoTool()], replies: [toolCall('echo', { text: 'a' }), 'Done.'] };

describe('transcript snapshot', () => {
  it('E10 is what all events so far come to: what follows folds to the same history', async () => {
    const { transcript, runtime } = await runScripted({ ...scene, input: 'First.' });
    const snapshot = throughJson(transcript.snapshot());
    const covered = transcript.events.length;
    await runScripted({ ...scene, transcript, runtime, input: 'Second.' });

    const resumed = createTranscript(transcript.events.slice(covered), { snapshot });

    expect(resumed.buildMessages()).toEqual(transcript.buildMessages());
    expect(resumed.findings()).toEqual([]);
    expect(resumed.events).toEqual(transcript.events.slice(covered));
  });

  it('E10 there is none while a turn is open', async () => {
    const hooks = [{ name: 'ask', authorizeToolCall: () => ({ action: 'suspend' }) as const }];
    const { transcript } = await runScripted({ ...scene, hooks, input: 'First.', replies: [toolCall('echo', { text: 'a' })] });

    expect(transcript.openTurn()).toBeDefined();
    expect(transcript.snapshot()).toBeUndefined();
  });

  it('E10 BR-074 one of a newer version is refused, and one without messages too', () => {
    const newer: TranscriptSnapshot = { version: 99, messages: [] };
    expect(() => createTranscript([], { snapshot: newer })).toThrow(expect.objectContaining({ code: 'unsupported_version' }));
    const broken = { version: 1 } as unknown as TranscriptSnapshot;
    expect(() => createTranscript([], { snapshot: broken })).toThrow(expect.objectContaining({ code: 'broken_snapshot' }));
  });

  it('a transcript that keeps no events has the same history', async () => {
    const { transcript } = await runScripted({ ...scene, input: 'First.' });
    const light = createTranscript(transcript.events, { keepEvents: false });

    expect(light.events).toEqual([]);
    expect(light.buildMessages()).toEqual(transcript.buildMessages());
  });
});

describe('deferred tools', () => {
  it('E18 a deferred tool is left out of requests, and runs when a reply names it', async () => {
    const llm = scriptedLLM([toolCall('echo', { text: 'a' }), 'Done.']);
    const { result, recorded } = await runScripted({ llm, tools: [{ ...echoTool(), deferred: true }], input: 'Go.' });

    expect(llm.requests.map(({ tools }) => tools)).toEqual([[], []]);
    expect(recorded.find((event) => event.type === 'tool.result')?.result.isError).toBeUndefined();
    expect(result.stopReason).toBe('end_turn');
  });
});

function throughJson<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}
