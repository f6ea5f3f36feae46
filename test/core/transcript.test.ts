/** The record of a turn and its fold: what is written when, and which history, open turn and findings come of it. */
import { describe, expect, it } from 'vitest';
import {
  createTranscript,
  type LLM,
  LLMError,
  NO_USAGE,
  type RecordedEvent,
  textOf,
  toUsage,
  TRANSCRIPT_VERSION,
  TurnloopError,
  userMessage,
} from 'turnloop';
import {
  abortAt,
  cutStream,
  delayed,
  echoTool,
  gatedTool,
  recordEvents,
  recordingTool,
  runScripted,
  startScripted,
  thinking,
  toolCall,
} from 'turnloop/testing';
import { conversation, outline, secondProcess, throughJson } from './support.ts';

const TWO_STEPS = { replies: [['Let me see.', toolCall('echo', { text: 'a' })], 'done'] };

async function twoSteps() {
  return runScripted({ ...TWO_STEPS, tools: [echoTool()] });
}

describe('the record of a turn', () => {
  it('TR1 has one begin and end for each step', async () => {
    const { recorded } = await twoSteps();

    const steps = recorded.flatMap((event) => (/^step\.(begin|end)$/.test(event.type) && 'step' in event ? [`${event.type} ${event.step!}`] : []));
    expect(steps).toStrictEqual(['step.begin 1', 'step.end 1', 'step.begin 2', 'step.end 2']);
  });

  it('TR2 has one step id on everything between them', async () => {
    const { recorded } = await twoSteps();

    const begin = recorded.findIndex((event) => event.type === 'step.begin');
    const end = recorded.findIndex((event) => event.type === 'step.end');
    const ids = recorded.slice(begin, end + 1).map((event) => ('stepId' in event ? event.stepId : 'none'));
    expect(ids).toStrictEqual(ids.map(() => 'step_1'));
    expect(recorded.slice(end + 1, -1).every((event) => 'stepId' in event && event.stepId === 'step_2')).toBe(true);
  });

  it('TR3 has each result name the call that it answers', async () => {
    const { recording, transcript } = await runScripted({
      replies: [[toolCall('echo', { text: 'a' }), toolCall('echo', { text: 'b' })], 'done'],
      tools: [echoTool()],
    });

    const ids = recording.of('tool.call').map((event) => event.toolCallId);
    expect(recording.of('tool.result').map((event) => event.toolCallId)).toStrictEqual(ids);
    const answered = transcript.buildMessages().flatMap((message) => (message.role === 'tool' ? [message.toolCallId] : []));
    expect(answered).toStrictEqual(ids);
  });

  it('TR4 has all counters on usage, and the stop reason on step.end', async () => {
    const usage = { inputTokens: 9, cacheReadTokens: 4, cacheWriteTokens: 3, outputTokens: 8, thinkingTokens: 6 };

    const { recording } = await runScripted({ replies: [{ content: 'ok', usage }] });

    expect(recording.of('usage')).toStrictEqual([
      { type: 'usage', modelId: 'scripted-model', purpose: 'step', step: 1, stepId: 'step_1', usage, turnId: 'turn_1', at: 0 },
    ]);
    expect(recording.of('step.end')).toMatchObject([{ stopReason: 'end_turn', usage }]);
  });

  it('TR5 has 0 for counters that the model left out or got wrong', async () => {
    const odd = { outputTokens: 5, cacheReadTokens: NaN, cacheWriteTokens: -3 };
    const decorate = (): LLM => ({
      provider: 'odd',
      modelId: 'odd',
      systemPrompt: '',
      chat: async () => ({ content: [{ type: 'text', text: 'ok' }], stopReason: 'end_turn', usage: odd as never }),
    });

    const { recording, result } = await runScripted({ decorate });

    const usage = { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 5, thinkingTokens: 0 };
    expect(recording.of('usage')[0]!.usage).toStrictEqual(usage);
    expect(result.usage).toStrictEqual(usage);
  });

  it('TR6 has no step.end for a step aborted in its request, but its begin and the partial text', async () => {
    const controller = new AbortController();

    const { recorded } = await runScripted({
      replies: [delayed({ content: 'The answer is 42', chunk: 7, deltaDelayMs: 10 }, 5)],
      signal: controller.signal,
      listener: abortAt(controller, 'text.delta'),
    });

    expect(outline(recorded)).toStrictEqual(['turn.begin', 'message', 'step.begin', 'content.part', 'turn.end']);
    expect(recorded[3]).toMatchObject({ part: { type: 'text', text: 'The ans' }, reply: { interrupted: 'aborted' } });
    expect(recorded[4]).toMatchObject({ stopReason: 'aborted', steps: 1 });
  });

  it('TR7 has step.begin written before the model is called', async () => {
    const log: string[] = [];

    await runScripted({
      replies: [() => (log.push('asked'), 'ok')],
      record: async (event) => {
        await Promise.resolve();
        if (event.type === 'step.begin') log.push('durable');
      },
    });

    expect(log).toStrictEqual(['durable', 'asked']);
  });

  it('TR8 has tool.call and tool.start written before the tool runs', async () => {
    const log: string[] = [];
    const tool = recordingTool({ execute: () => (log.push('runs'), 'ok') });

    await runScripted({
      replies: [toolCall('record'), 'done'],
      tools: [tool],
      record: async (event) => {
        await Promise.resolve();
        if (event.type.startsWith('tool.')) log.push(event.type);
      },
    });

    expect(log).toStrictEqual(['tool.call', 'tool.start', 'runs', 'tool.finished', 'tool.result']);
  });

  it('TR9 has one tool.call for each call of the provider', async () => {
    const calls = [toolCall('echo', { text: 'same' }), toolCall('echo', { text: 'same' }), toolCall('echo', { text: 'same' })];

    const { recording } = await runScripted({ replies: [calls, 'done'], tools: [echoTool()] });

    expect(recording.of('tool.call').map((event) => event.toolCallId)).toStrictEqual(['call_1', 'call_2', 'call_3']);
  });

  it('TR10 has the turn\'s own id of a call, and the provider\'s beside it, which goes back with the history', async () => {
    const call = toolCall('echo', { text: 'a' }, { providerId: 'functions.echo:0' });

    const { llm, recording } = await runScripted({ replies: [call, call, 'done'], tools: [echoTool()] });

    expect(recording.of('tool.call').map(({ toolCallId, providerId }) => [toolCallId, providerId])).toStrictEqual([
      ['call_1', 'functions.echo:0'],
      ['call_2', 'functions.echo:0'],
    ]);
    const sent = llm.requests[2]!.messages.flatMap((message) => (message.role === 'assistant' ? message.content : []));
    expect(sent).toMatchObject([
      { id: 'call_1', providerId: 'functions.echo:0' },
      { id: 'call_2', providerId: 'functions.echo:0' },
    ]);
  });

  it('has each result once and in order with a recorder that takes its time', async () => {
    const ids = ['call_1', 'call_2', 'call_3'];

    const { recorded } = await runScripted({
      replies: [ids.map(() => toolCall('echo', { text: 'a' })), 'done'],
      tools: [echoTool({ accesses: [] })],
      record: async () => {
        for (let tick = 0; tick < 5; tick += 1) await Promise.resolve();
      },
    });

    const results = outline(recorded).filter((line) => line.startsWith('tool.result'));
    expect(results).toStrictEqual(ids.map((id) => `tool.result ${id}`));
  });

  it('leaves out tool.start for an unedited call of a safe tool', async () => {
    const tools = [echoTool({ name: 'safe', readOnly: true }), echoTool({ name: 'also', replay: 'safe' }), echoTool({ name: 'never' })];

    const { recording } = await runScripted({
      replies: [[toolCall('safe'), toolCall('also'), toolCall('never'), toolCall('safe', { text: 'edit' })], 'done'],
      tools,
      hooks: [
        {
          name: 'edit',
          authorizeToolCall: (_context, { toolCallId }) =>
            toolCallId === 'call_4' ? { action: 'edit', input: { text: 'edited' } } : undefined,
        },
      ],
    });

    expect(recording.of('tool.start').map(({ toolCallId, input }) => [toolCallId, input])).toStrictEqual([
      ['call_3', undefined],
      ['call_4', { text: 'edited' }],
    ]);
  });

  it('has a finished result durable at once while an earlier call still runs', async () => {
    const gate = gatedTool({ accesses: [] });
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate')], 'done'], tools: [gate] });
    await turn.runtime.flush();

    gate.finish('second', 'call_2');
    await turn.runtime.flush();

    expect(outline(turn.recorded).slice(-1)).toStrictEqual(['tool.finished call_2']);
    const history = createTranscript(throughJson(turn.recorded)).buildMessages();
    expect(textOf(history.at(-1))).toBe('second');
    gate.open();
    await turn.finish();
  });
});

describe('the fold', () => {
  it('gives the history of several turns, and no open turn', async () => {
    const first = await twoSteps();
    const { transcript } = await runScripted({ transcript: first.transcript, runtime: first.runtime, replies: ['sure'], input: 'thanks' });

    expect(conversation(transcript.buildMessages())).toStrictEqual([
      'user: hi',
      'assistant: Let me see. echo()',
      'tool call_1: a',
      'assistant: done',
      'user: thanks',
      'assistant: sure',
    ]);
    expect(transcript.openTurn()).toBeUndefined();
    expect(transcript.findings()).toStrictEqual([]);
  });

  it('is the same for events read back from JSON', async () => {
    const { transcript } = await twoSteps();

    const again = createTranscript(throughJson(transcript.events));

    expect(again.buildMessages()).toStrictEqual(transcript.buildMessages());
    expect(again.events).toStrictEqual(transcript.events);
  });

  it('hands out the same messages, and the same list until an event changes it', async () => {
    const { transcript, llm } = await twoSteps();

    expect(transcript.buildMessages()).toBe(transcript.buildMessages());
    expect(llm.requests[1]!.messages.every((message, index) => message === transcript.buildMessages()[index])).toBe(true);
  });

  it('is a valid history after every single event, and never changes the events', async () => {
    const { recorded } = await runScripted({
      replies: [[thinking('hm'), toolCall('echo', { text: 'a' }), toolCall('nope')], 'done'],
      tools: [echoTool()],
    });
    const before = JSON.stringify(recorded);

    for (let length = 0; length <= recorded.length; length += 1) {
      const messages = createTranscript(recorded.slice(0, length)).buildMessages();
      messages.forEach((message, index) => {
        if (message.role !== 'assistant') return;
        const calls = message.content.flatMap((part) => (part.type === 'tool_call' ? [part.id] : []));
        const answers = messages.slice(index + 1, index + 1 + calls.length).map((one) => one.role === 'tool' && one.toolCallId);
        expect(answers).toStrictEqual(calls);
      });
    }
    expect(JSON.stringify(recorded)).toBe(before);
  });

  it('drops and reports a reply of which not all parts were recorded', async () => {
    const { recorded } = await twoSteps();
    const cut = recorded.slice(0, recorded.findIndex((event) => event.type === 'tool.call'));
    const end: RecordedEvent = { type: 'turn.end', stopReason: 'aborted', steps: 1, turnId: 'turn_1', at: 0 };

    const transcript = createTranscript([...cut, end]);

    expect(conversation(transcript.buildMessages())).toStrictEqual(['user: hi']);
    expect(transcript.findings()).toStrictEqual([{ kind: 'void_reply_dropped', messageId: 'step_1' }]);
  });

  it('closes a call whose result was lost, and reports it', async () => {
    const { recorded } = await twoSteps();
    const lost = recorded.filter((event) => event.type !== 'tool.finished' && event.type !== 'tool.result');

    const transcript = createTranscript(lost);

    expect(conversation(transcript.buildMessages())[2]).toContain('The result of this call is not known');
    expect(transcript.findings()).toStrictEqual([{ kind: 'result_synthesized', messageId: 'step_1', toolCallId: 'call_1' }]);
  });

  it('keeps an event of a type it does not know, and ignores it', async () => {
    const { recorded } = await twoSteps();
    const unknown = { type: 'citation.added', turnId: 'turn_1', at: 1 } as unknown as RecordedEvent;

    const transcript = createTranscript([...recorded.slice(0, 4), unknown, ...recorded.slice(4)]);

    expect(transcript.events[4]).toBe(unknown);
    expect(transcript.buildMessages()).toStrictEqual(createTranscript(recorded).buildMessages());
  });

  it('refuses a newer version with a typed error', () => {
    const begin: RecordedEvent = { type: 'turn.begin', version: TRANSCRIPT_VERSION + 1, inputCount: 0, turnId: 't', at: 0 };

    expect(() => createTranscript([begin])).toThrow(
      new TurnloopError('unsupported_version', 'The transcript has version 2; this turnloop reads up to 1. Update turnloop to read it.'),
    );
  });

  it('applies a compaction, and keeps the events it came from', async () => {
    const { recorded } = await twoSteps();
    const summary = userMessage('They said hi and I echoed a.', { id: 'summary_1', origin: 'summary' });
    const compaction: RecordedEvent = {
      type: 'compaction',
      layer: 'summary',
      edits: [{ from: 'message_1', to: 'result_call_1', messages: [summary] }],
      tokensBefore: 100,
      tokensAfter: 10,
      turnId: 'turn_1',
      at: 0,
    };

    const transcript = createTranscript([...recorded, compaction]);

    expect(conversation(transcript.buildMessages())).toStrictEqual(['user: They said hi and I echoed a.', 'assistant: done']);
    expect(transcript.events).toHaveLength(recorded.length + 1);
  });

  it('reports a compaction that names a message which is not there', async () => {
    const { recorded } = await twoSteps();
    const edits = [{ from: 'nope', to: 'nope', messages: [] }];
    const compaction: RecordedEvent = { type: 'compaction', layer: 'x', edits, tokensBefore: 1, tokensAfter: 1, turnId: 't', at: 0 };

    const transcript = createTranscript([...recorded, compaction]);

    expect(transcript.findings()).toStrictEqual([{ kind: 'edit_not_applied', messageId: 'nope' }]);
    expect(transcript.buildMessages()).toStrictEqual(createTranscript(recorded).buildMessages());
  });

  it('counts to an open turn what was spent in it, not what was spent beside it', async () => {
    const { recorded } = await twoSteps();
    const open = recorded.slice(0, -1);
    const spent = (turnId: string): RecordedEvent => ({ type: 'usage', turnId, at: 0, modelId: 'm', purpose: 'compaction', usage: toUsage({ inputTokens: 7 }) });

    const before = createTranscript(open).openTurn()!;
    const after = createTranscript([...open, spent(before.turnId), spent('beside')]).openTurn()!;

    expect(after.usage.inputTokens - before.usage.inputTokens).toBe(7);
  });

  it('folds what an open turn has spent and begun', async () => {
    const { recorded } = await runScripted({
      replies: [{ content: [toolCall('echo')], usage: { inputTokens: 3 } }, { content: 'ok', usage: { inputTokens: 4 } }],
      tools: [echoTool()],
      metadata: { session: 's' },
    });

    const open = createTranscript(recorded.slice(0, -1)).openTurn();

    expect(open).toMatchObject({
      turnId: 'turn_1',
      metadata: { session: 's' },
      steps: 2,
      continuations: 0,
      usage: toUsage({ inputTokens: 7 }),
      usageByModel: [{ modelId: 'scripted-model', usage: toUsage({ inputTokens: 7 }) }],
      missingInput: 0,
      suspended: false,
      step: { step: 2, stepId: 'step_2', ended: 'end_turn', calls: [] },
    });
    expect(throughJson(open!)).toStrictEqual(open);
  });

  it('has nothing to say of no events', () => {
    const transcript = createTranscript();

    expect([transcript.events, transcript.buildMessages(), transcript.openTurn(), transcript.findings()]).toStrictEqual([[], [], undefined, []]);
  });

  it('V8 leaves nothing of a failed attempt in the history once the retry is in', async () => {
    const { transcript } = await runScripted({
      replies: [cutStream('half', { deltaCount: 1 }), 'whole'],
      recoveries: [{ name: 'again', kinds: ['network'], apply: (request) => ({ ...request }) }],
    });

    expect(conversation(transcript.buildMessages())).toStrictEqual(['user: hi', 'assistant: whole']);
  });

  it('V8 keeps a partial reply that is not empty, and drops a blank one', async () => {
    const cut = (content: string) =>
      runScripted({ replies: [cutStream({ content, chunk: 4 }, { deltaCount: 1 })] }).then(({ transcript }) =>
        conversation(transcript.buildMessages()),
      );

    expect(await cut('half an answer')).toStrictEqual(['user: hi', 'assistant: half']);
    expect(await cut('    then text')).toStrictEqual(['user: hi']);
  });

  it('V8 keeps signed thinking of a partial reply even if it is empty, and drops thinking without a signature', async () => {
    const fail = (partial: LLMError['partial']) =>
      runScripted({ replies: [new LLMError({ kind: 'network', message: 'cut', partial })] }).then(({ transcript }) =>
        transcript.buildMessages().slice(1).map((message) => message.content),
      );

    expect(await fail([thinking('', { signature: 'sig' })])).toStrictEqual([[thinking('', { signature: 'sig' })]]);
    expect(await fail([thinking('hm, not signed')])).toStrictEqual([]);
  });

  it('CX7 counts a reply that reports no tokens as none, and keeps what was reported before', async () => {
    const { result, recording } = await runScripted({
      replies: [
        { content: [toolCall('echo')], usage: { inputTokens: 50 } },
        { content: [], stopReason: 'filtered', usage: {} },
      ],
      tools: [echoTool()],
    });

    expect(recording.of('step.end').map((event) => event.usage)).toStrictEqual([toUsage({ inputTokens: 50 }), NO_USAGE]);
    expect(result).toMatchObject({ stopReason: 'filtered', usage: toUsage({ inputTokens: 50 }) });
  });
});

describe('the transcript of a host', () => {
  it('goes on in another process from the events alone', async () => {
    const first = await twoSteps();

    const second = await runScripted({ ...secondProcess(first.recorded), replies: ['sure'], input: 'thanks' });

    expect(conversation(second.llm.requests[0]!.messages).slice(-2)).toStrictEqual(['assistant: done', 'user: thanks']);
    expect(second.transcript.events.slice(0, first.recorded.length)).toStrictEqual(first.recorded);
  });

  it('may be any list that a recorder keeps', async () => {
    const recording = recordEvents();

    const { transcript } = await runScripted({ ...TWO_STEPS, tools: [echoTool()], record: recording.record });

    expect(createTranscript(recording.recorded).buildMessages()).toStrictEqual(transcript.buildMessages());
  });
});
