/**
 * Records that are not as a turn left them: events that a store hands out twice, parts of another turn, versions that are
 * none; and events that come when a turn is over.
 */
import { describe, expect, it } from 'vitest';
import { createTranscript, type Hook, type HookContext, isRecordedEvent, type LoopEvent, type RecordedEvent, suspend, toUsage } from 'turnloop';
import { echoTool, recordingTool, runScripted, type RunScriptedOptions, startScripted, toolCall, virtualRuntime } from 'turnloop/testing';
import { conversation, throughJson } from './support.ts';

/** The record of a turn with a reply of three parts, two of them calls. */
async function recordOfTwoCalls(): Promise<readonly RecordedEvent[]> {
  const replies = [['let me see', toolCall('echo', { text: 'a' }), toolCall('echo', { text: 'b' })], 'done'];
  const { recorded } = await runScripted({ replies, tools: [echoTool()] });
  return throughJson(recorded);
}

describe('an event that a store hands out twice', () => {
  it('changes neither the history nor the open turn, whichever it is', async () => {
    const events = await recordOfTwoCalls();

    for (const [index, event] of events.entries()) {
      if (event.type === 'turn.begin' || event.type === 'message' || event.type === 'usage') continue;
      for (let end = index + 1; end <= events.length; end += 1) {
        const once = createTranscript(events.slice(0, end));
        const twice = createTranscript([...events.slice(0, index + 1), ...events.slice(index, end)]);

        expect([event.type, conversation(twice.buildMessages())]).toStrictEqual([event.type, conversation(once.buildMessages())]);
        expect(twice.openTurn()?.step?.calls).toStrictEqual(once.openTurn()?.step?.calls);
      }
    }
  });

  it('does not make a reply whole that lacks a part', async () => {
    const events = await recordOfTwoCalls();
    const second = events.findIndex((event) => event.type === 'tool.call');

    const transcript = createTranscript([...events.slice(0, second + 1), ...events.slice(second, second + 1)]);

    expect(conversation(transcript.buildMessages())).toStrictEqual(['user: hi']);
    expect(transcript.openTurn()?.step).toMatchObject({ calls: [] });
  });
});

describe('two turns that run at once on one transcript', () => {
  it('do not mix: no message holds parts of both, and the history stays valid', async () => {
    const { transcript, runtime } = { transcript: createTranscript(), runtime: virtualRuntime() };
    const turnOf = (name: string, delayMs: number): RunScriptedOptions => ({
      transcript,
      runtime,
      input: name,
      replies: [{ content: [`${name} calls`, toolCall('echo', { text: name })], delayMs }, { content: `${name} is done`, delayMs }],
      tools: [echoTool()],
      check: false,
    });

    const both = [startScripted(turnOf('one', 10)), startScripted(turnOf('two', 15))];
    const results = await Promise.all(both.map((turn) => turn.finish()));

    expect(results.map(({ result }) => result.stopReason)).toStrictEqual(['end_turn', 'end_turn']);
    expect(transcript.findings().map(({ kind }) => kind)).toContain('part_misplaced');
    for (const line of conversation(transcript.buildMessages())) expect(line).not.toMatch(/one.*two|two.*one/);
    expect(createTranscript(throughJson(transcript.events)).buildMessages()).toStrictEqual(transcript.buildMessages());
  });
});

describe('a live transcript', () => {
  it('gives at every event the history that a reload of its events gives', async () => {
    const transcript = createTranscript();
    const waits = recordingTool({ name: 'waits', execute: (_input, { resumed }) => (resumed === undefined ? suspend({ state: 1 }) : 'on') });
    const differences: string[] = [];
    const listener = (event: LoopEvent): void => {
      if (!isRecordedEvent(event)) return;
      const reloaded = createTranscript(throughJson(transcript.events)).buildMessages();
      if (JSON.stringify(reloaded) !== JSON.stringify(transcript.buildMessages())) differences.push(event.type);
    };

    const options = { transcript, runtime: virtualRuntime(), tools: [waits, echoTool()], listener };
    await runScripted({ ...options, replies: [[toolCall('echo'), toolCall('waits')]] });
    await runScripted({ ...options, replies: ['done'], resume: { decisions: [{ toolCallId: 'call_2', action: 'allow' }] } });

    expect(differences).toStrictEqual([]);
    expect(transcript.events.at(-1)).toMatchObject({ type: 'turn.end', stopReason: 'end_turn' });
  });
});

describe('an event that is not whole', () => {
  it.each<[number, object]>([
    [1, { type: 'message' }],
    [1, { type: 'usage' }],
    [1, { type: 'turn.suspend' }],
    [1, { type: 'compaction' }],
  ])('is named by its place: events[%i], %j', async (index, event) => {
    const [begin] = await recordOfTwoCalls();
    const events = [begin, { turnId: 't', at: 0, ...event }] as readonly RecordedEvent[];

    expect(() => createTranscript(events)).toThrow(
      expect.objectContaining({ code: 'broken_event', message: expect.stringContaining(`events[${index}]`) as string }),
    );
  });
});

describe('a version that is none', () => {
  it.each([null, undefined, '1', 0, -1, 1.5, NaN, 2])('%s is refused', (version) => {
    const begin = { type: 'turn.begin', turnId: 't', at: 0, version, inputCount: 0 } as unknown as RecordedEvent;

    expect(() => createTranscript([begin])).toThrow(expect.objectContaining({ code: 'unsupported_version' }));
  });
});

describe('behind the end of a turn', () => {
  const USAGE = toUsage({ inputTokens: 1 });
  const slowEnd = (type: RecordedEvent['type'], onWriting: () => void): RunScriptedOptions['record'] => async (event) => {
    if (event.type !== type) return;
    onWriting();
    for (let tick = 0; tick < 20; tick += 1) await Promise.resolve();
  };

  it.each<[RecordedEvent['type'], string]>([
    ['turn.end', 'done'],
    ['turn.suspend', 'waits'],
  ])('nothing that a hook did not wait for is recorded while %s is being written', async (type, reply) => {
    let context: HookContext | undefined;
    const failures: unknown[] = [];
    const keep: Hook = {
      name: 'keep',
      beforeStep: (given) => {
        context = given;
      },
    };
    const onWriting = (): void => {
      context?.record({ type: 'compaction', layer: 'x', edits: [], tokensBefore: 1, tokensAfter: 1 }).catch((error: unknown) => failures.push(error));
      context?.record({ type: 'usage', modelId: 'm', purpose: 'other', usage: USAGE }).catch((error: unknown) => failures.push(error));
    };
    const waits = recordingTool({ name: 'waits', execute: () => suspend({ state: 1 }) });

    const { recorded, result } = await runScripted({
      replies: [reply === 'waits' ? toolCall('waits') : reply],
      tools: [waits],
      hooks: [keep],
      record: slowEnd(type, onWriting),
    });

    expect(recorded.at(-1)?.type).toBe(type);
    expect(failures).toMatchObject([{ code: 'turn_over' }]);
    expect(recorded.filter((event) => event.type === 'usage')).toHaveLength(1);
    expect(result.usage.inputTokens).toBe(recorded.flatMap((event) => (event.type === 'usage' ? [event.usage.inputTokens] : []))[0]);
  });

  it('nothing that a tool reports late is recorded while turn.end is being written', async () => {
    let report = (): Promise<void> => Promise.resolve();
    const agent = recordingTool({
      name: 'agent',
      timeoutMs: 5,
      execute: (_input, { recordUsage }) => {
        report = () => recordUsage(USAGE, 'child');
        return new Promise(() => undefined);
      },
    });

    const turn = startScripted({
      replies: [toolCall('agent'), 'done'],
      tools: [agent],
      record: slowEnd('turn.end', () => void report()),
    });
    const { recorded, result } = await turn.finish();

    expect([result.stopReason, recorded.at(-1)?.type]).toStrictEqual(['end_turn', 'turn.end']);
    expect(recorded.some((event) => event.type === 'usage' && event.purpose === 'child')).toBe(false);
  });

  it('nothing is recorded that a listener of turn.end sets off', async () => {
    let report = (): Promise<void> => Promise.resolve();
    const execute = (_input: unknown, { recordUsage }: { recordUsage(usage: typeof USAGE, modelId: string): Promise<void> }): string => {
      report = () => recordUsage(USAGE, 'child');
      return 'done';
    };

    const { transcript } = await runScripted({
      replies: [toolCall('agent'), 'done'],
      tools: [recordingTool({ name: 'agent', execute })],
      listener: (event) => {
        if (event.type === 'turn.end') void report();
      },
    });

    expect(transcript.events.at(-1)?.type).toBe('turn.end');
  });
});
