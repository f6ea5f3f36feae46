// `runScripted` runs a whole turn of the real loop in virtual time, hands back everything around it, and fails when the
// transcript breaks a law. `startScripted` leaves the clock to the test.
import { assistantMessage, createTranscript, LLMError, suspend, textOf, userMessage, type LoopEvent, type RecordedEvent } from 'turnloop';
import {
  abortAt,
  checkTranscript,
  crashingRecorder,
  cutStream,
  delayed,
  echoTool,
  failingRecorder,
  failingTool,
  faultyListener,
  gatedTool,
  hanging,
  hangingRecorder,
  hangingTool,
  recordingTool,
  runScripted,
  scriptedLLM,
  slowTool,
  startScripted,
  stubborn,
  toolCall,
  virtualRuntime,
  watchedController,
  type ReplyFunction,
} from 'turnloop/testing';
import { describe, expect, it } from 'vitest';

describe('runScripted', () => {
  it('runs a turn with tools and hands back everything around it', async () => {
    const echo = echoTool();

    const { result, llm, recording, recorded, transcript, runtime } = await runScripted({
      replies: [['thinking about it', toolCall('echo', { text: 'hi' })], 'done'],
      tools: [echo],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'done' });
    expect(echo.inputs).toStrictEqual([{ text: 'hi' }]);
    expect(llm.requests.map((request) => request.messages.length)).toStrictEqual([1, 3]);
    expect(recorded).toStrictEqual(transcript.events);
    expect(recorded.map((event) => event.type)).toStrictEqual([
      'turn.begin',
      'message',
      'step.begin',
      'usage',
      'content.part',
      'tool.call',
      'tool.start',
      'tool.finished',
      'tool.result',
      'step.end',
      'step.begin',
      'usage',
      'content.part',
      'step.end',
      'turn.end',
    ]);
    expect(recording.of('text.delta').map(({ text }) => text)).toStrictEqual(['thinking about it', 'done']);
    expect([runtime.now(), runtime.pendingTimers]).toStrictEqual([0, 0]);
    llm.assertDone();
  });

  it('leaves the same transcript each time', async () => {
    const run = async () =>
      runScripted({
        replies: [[toolCall('slow'), toolCall('echo')], 'done'],
        tools: [slowTool(50, { readOnly: true }), echoTool({ readOnly: true })],
      });

    const [first, second] = [await run(), await run()];

    expect(JSON.stringify(second.recorded)).toBe(JSON.stringify(first.recorded));
    expect(JSON.stringify(second.events)).toBe(JSON.stringify(first.events));
  });

  it('starts from the input it is given, or from hi', async () => {
    const given = await runScripted({ replies: ['a'], input: [userMessage('one'), userMessage('two')] });
    const none = await runScripted({ replies: ['a'] });

    expect(given.llm.requests[0]?.messages.map((message) => message.content)).toStrictEqual([
      [{ type: 'text', text: 'one' }],
      [{ type: 'text', text: 'two' }],
    ]);
    expect(none.llm.requests[0]?.messages[0]?.content).toStrictEqual([{ type: 'text', text: 'hi' }]);
  });

  it('puts a history before the messages of the transcript', async () => {
    const history = [userMessage('before', { id: 'm0' }), assistantMessage('yes', { id: 'm1' })];

    const { llm } = await runScripted({ replies: ['a'], history });

    expect(llm.requests[0]?.messages.map((message) => textOf(message))).toStrictEqual(['before', 'yes', 'hi']);
  });

  it('waits for delays in virtual time', async () => {
    const { result, runtime } = await runScripted({
      replies: [delayed(toolCall('slow'), 60_000), 'done'],
      tools: [slowTool(3_600_000)],
    });

    expect(result.stopReason).toBe('end_turn');
    expect(runtime.now()).toBe(3_660_000);
  });

  it('ends a turn whose script is over with an error that says so', async () => {
    const { result, llm } = await runScripted({ replies: [toolCall('echo')], tools: [echoTool()] });

    expect(result.stopReason).toBe('fatal_error');
    expect(result.error?.message).toContain('ran out of replies: there were 1, and this is request 2');
    expect(() => llm.assertDone()).toThrow('1 of 2 requests found no reply');
  });

  it('takes a decorator for the model', async () => {
    const { result } = await runScripted({
      replies: ['first', 'second'],
      decorate: (llm) => ({ ...llm, provider: 'p', modelId: 'other', systemPrompt: 'x', chat: (request) => llm.chat(request) }),
    });

    expect(result.message?.source).toStrictEqual({ provider: 'p', modelId: 'other' });
  });

  it('goes on in a transcript, with a model and a clock made before', async () => {
    const llm = scriptedLLM(['one', 'two']);
    const first = await runScripted({ llm });

    const second = await runScripted({ llm, transcript: first.transcript, runtime: first.runtime, input: 'more' });

    expect(llm.requests[1]?.messages).toHaveLength(3);
    expect(second.recorded).toHaveLength(second.transcript.events.length - first.recorded.length);
    expect(second.result.text).toBe('two');
  });

  it('gives new ids in a transcript that has some, the same each time', async () => {
    const twice = async (): Promise<readonly RecordedEvent[]> => {
      const first = await runScripted({ replies: [toolCall('echo'), 'one'], tools: [echoTool()] });
      const { transcript } = await runScripted({ replies: [toolCall('echo'), 'two'], tools: [echoTool()], transcript: first.transcript });
      return transcript.events;
    };

    const events = await twice();

    expect(checkTranscript(events, { complete: true })).toStrictEqual([]);
    expect(events.flatMap((event) => (event.type === 'tool.call' ? [event.toolCallId] : []))).toStrictEqual(['call_1', 'call_14_1']);
    expect(await twice()).toStrictEqual(events);
  });

  it('goes on with a suspended turn', async () => {
    const ask = recordingTool({
      name: 'ask',
      execute: (_input, { resumed }) =>
        resumed === undefined ? suspend({ state: { asked: true } }) : JSON.stringify(resumed.state),
    });
    const first = await runScripted({ replies: [toolCall('ask'), 'done'], tools: [ask] });
    const decisions = [{ toolCallId: 'call_1', action: 'allow' } as const];

    const { llm, transcript, runtime } = first;
    const second = await runScripted({ llm, transcript, runtime, tools: [ask], resume: { decisions } });

    expect(first.result.stopReason).toBe('suspended');
    expect(second.result).toMatchObject({ stopReason: 'end_turn', steps: 2 });
    expect(second.recording.of('tool.result')[0]?.result.content).toStrictEqual([{ type: 'text', text: '{"asked":true}' }]);
  });

  it('says so when there is no turn to go on with', async () => {
    await expect(runScripted({ resume: {} })).rejects.toThrow('no turn to resume');
  });

  it('says so when the turn cannot end', async () => {
    const stuck = runScripted({ replies: [hanging()] });

    await expect(stuck).rejects.toThrow('cannot settle');
    await expect(stuck).rejects.toThrow('look for a tool, a hook or a model that hangs');
  });

  it('hands on misuse', async () => {
    await expect(runScripted({ tools: [echoTool(), echoTool()] })).rejects.toThrow(TypeError);
  });

  it('fails when the transcript breaks a law, unless told not to look', async () => {
    const transcript = createTranscript([{ type: 'turn.end', turnId: 'x', at: 0, stopReason: 'end_turn', steps: 0 }]);
    const same = createTranscript(transcript.events);

    await expect(runScripted({ replies: ['a'], transcript })).rejects.toThrow('law 3, event 0: turn.end comes before any turn.begin');
    await expect(runScripted({ replies: ['a'], transcript: same, check: false })).resolves.toBeDefined();
  });
});

describe('startScripted', () => {
  it('leaves the test room between start and finish', async () => {
    const gate = gatedTool();
    const turn = startScripted({ replies: [toolCall('gate'), 'done'], tools: [gate] });
    await gate.started();

    const before = turn.recorded.at(-1)?.type;
    gate.finish('through');
    const { result } = await turn.finish();

    expect(before).toBe('tool.start');
    expect(result.stopReason).toBe('end_turn');
    expect(turn.recording.of('tool.result')[0]?.result.content).toStrictEqual([{ type: 'text', text: 'through' }]);
  });

  it('gives the handle of the turn', async () => {
    const hang = hangingTool();
    const turn = startScripted({ replies: [toolCall('hang'), 'done'], tools: [hang] });
    await turn.runtime.flush();

    turn.control.abort('enough');
    const { result } = await turn.finish();

    expect(result.stopReason).toBe('aborted');
    expect(hang.runs[0]?.state).toBe('aborted');
  });
});

describe('faults in a real turn', () => {
  const work = () => ({
    replies: [[toolCall('echo', { text: 'a' }), toolCall('fail')], 'done'],
    tools: [echoTool(), failingTool()],
  });

  it.each(['throws', 'rejects', 'hangs'] as const)('leaves the same transcript when the listener %s', async (mode) => {
    const quiet = await runScripted(work());

    const faulty = await runScripted({ ...work(), listener: faultyListener(mode) });

    expect(faulty.recorded).toStrictEqual(quiet.recorded);
    expect(faulty.listenerErrors).toHaveLength(mode === 'hangs' ? 0 : faulty.events.length);
  });

  it('keeps the laws when aborted at any event', async () => {
    const { events } = await runScripted(work());

    for (let at = 1; at <= events.length; at += 1) {
      const controller = watchedController();
      const { result, runtime } = await runScripted({
        ...work(),
        signal: controller.signal,
        listener: abortAt(controller, at),
      });
      expect(['aborted', 'end_turn']).toContain(result.stopReason);
      expect([controller.listenerCount, runtime.pendingTimers]).toStrictEqual([0, 0]);
    }
  });

  it('ends the turn when the recorder fails, at any event', async () => {
    const { recorded } = await runScripted(work());

    for (let at = 1; at <= recorded.length; at += 1) {
      const record = failingRecorder({ at });
      const { result, transcript } = await runScripted({ ...work(), record });
      expect(result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'recorder_failed' } });
      expect(transcript.events).toStrictEqual(recorded.slice(0, at - 1));
      expect(record.seenCount).toBe(at);
    }
  });

  it('settles an aborted turn whose recorder hangs within its grace', async () => {
    const controller = new AbortController();
    const turn = startScripted({ ...work(), signal: controller.signal, record: hangingRecorder({ at: 4 }) });
    await turn.runtime.flush();

    controller.abort();
    const { result } = await turn.finish();

    expect(result.stopReason).toBe('aborted');
    expect(turn.runtime.now()).toBe(2000);
  });

  it('resumes a crashed turn from what was durable, at any event', async () => {
    const replies: ReplyFunction = ({ messages }) => (messages.some(({ role }) => role === 'tool') ? 'done' : work().replies[0]!);
    const { recorded } = await runScripted({ ...work(), replies });

    for (let at = 1; at < recorded.length; at += 1) {
      const record = crashingRecorder({ at });
      const dead = startScripted({ ...work(), replies, record });
      await dead.runtime.settle(record.crashed);

      const { result } = await runScripted({
        ...work(),
        replies,
        transcript: createTranscript(record.events),
        runtime: virtualRuntime({ idPrefix: 'b' }),
        input: 'hi',
        resume: {},
      });

      expect(record.events).toStrictEqual(recorded.slice(0, at));
      expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'done' });
    }
  });

  it('keeps what had arrived of a stream that broke off', async () => {
    const { result, recording } = await runScripted({
      replies: [cutStream('half a sentence', { deltaCount: 2, partial: true })],
      llmOptions: { chunk: 4 },
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'network' }, text: 'half a s' });
    expect(recording.of('text.delta').map(({ text }) => text)).toStrictEqual(['half', ' a s']);
  });

  it('takes back nothing from a model that ignores the abort', async () => {
    const controller = new AbortController();
    const late: LoopEvent[] = [];
    const turn = startScripted({
      replies: [stubborn({ content: 'abc', chunk: 1, deltaDelayMs: 1000 })],
      signal: controller.signal,
      listener: (event) => late.push(event),
    });
    await turn.runtime.advance(1500);
    controller.abort();
    await turn.finish();
    const seen = late.length;

    await turn.runtime.runUntilIdle();

    expect(late).toHaveLength(seen);
  });

  it('counts what a failed request cost', async () => {
    const usage = { inputTokens: 7, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 1, thinkingTokens: 0 };
    const error = new LLMError({ kind: 'server', message: 'gone', usage });

    const { result } = await runScripted({ replies: [error] });

    expect(result.usage).toStrictEqual(usage);
  });
});
