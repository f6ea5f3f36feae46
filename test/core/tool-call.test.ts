/**
 * Tool calls, as a black box: every call of a reply is recorded once and gets exactly one result, whatever the model
 * wrote and whatever the tool does.
 */
import { describe, expect, it } from 'vitest';
import { type JsonValue, type RecordedEvent, type ToolResultPart, textOf, toUsage } from 'turnloop';
import {
  echoTool,
  failingTool,
  gatedTool,
  recordingTool,
  type Reply,
  runScripted,
  startScripted,
  type TestTool,
  toolCall,
  toolCallsOf,
} from 'turnloop/testing';
import { outputBudget, outline, resultLines, resultTexts } from './support.ts';

const IMAGE: ToolResultPart = { type: 'media', mediaType: 'image/png', data: 'aGk=' };
const AUDIO: ToolResultPart = { type: 'media', mediaType: 'audio/mpeg', url: 'https://example.test/a.mp3' };

/** A tool that hands back whatever it is told to, wrong shapes too. */
function returning(value: unknown, name = 'odd'): TestTool {
  return recordingTool({ name, execute: () => value as string });
}

/** The records of tools: starts and results, without those of the reply. */
function toolOutline(events: readonly RecordedEvent[]): readonly string[] {
  return outline(events).filter((line) => line.startsWith('tool.'));
}

describe('a call that succeeds', () => {
  it('TC1 runs once, and has one tool.call and one tool.result', async () => {
    const echo = echoTool();

    const { recorded, recording } = await runScripted({ replies: [toolCall('echo', { text: 'a' }), 'done'], tools: [echo] });

    expect(echo.runCount).toBe(1);
    expect(toolOutline(recorded)).toStrictEqual([
      'tool.call call_1',
      'tool.start call_1',
      'tool.finished call_1',
      'tool.result call_1',
    ]);
    expect(recording.of('tool.result')[0]!.result).toStrictEqual({ content: [{ type: 'text', text: 'a' }] });
  });

  it('TC2 keeps a note of the tool in the recorded result', async () => {
    const { recording } = await runScripted({
      replies: [toolCall('odd'), 'done'],
      tools: [returning({ content: 'out', note: 'read the rest with page 2' })],
    });

    expect(recording.of('tool.result')[0]!.result).toStrictEqual({
      content: [{ type: 'text', text: 'out' }],
      note: 'read the rest with page 2',
    });
  });

  it.each([[null], [42], [{ text: 'no' }], ['']])('TC3 removes the malformed note %j and stays a success', async (note) => {
    const { recording } = await runScripted({ replies: [toolCall('odd'), 'done'], tools: [returning({ content: 'out', note })] });

    expect(recording.of('tool.result')[0]!.result).toStrictEqual({ content: [{ type: 'text', text: 'out' }] });
  });

  it('keeps what is for people beside what is for the model', async () => {
    const display = { html: '<b>full</b>' };

    const { recording, llm } = await runScripted({
      replies: [toolCall('odd'), 'done'],
      tools: [returning({ content: 'short', display, truncated: true })],
    });

    expect(recording.of('tool.result')[0]!.result).toStrictEqual({
      content: [{ type: 'text', text: 'short' }],
      display,
      truncated: true,
    });
    expect(JSON.stringify(llm.requests[1]!.messages)).not.toContain('full');
  });

  it('TC6 hands the turn, the call and the arguments to the tool', async () => {
    const tool = recordingTool();

    const { recording } = await runScripted({ replies: [toolCall('record', '{ "n": 1 }'), 'done'], tools: [tool] });

    const [run] = tool.runs;
    expect(run!.input).toStrictEqual({ n: 1 });
    expect(run!.context).toMatchObject({
      turnId: 'turn_1',
      step: 1,
      toolCallId: recording.of('tool.call')[0]!.toolCallId,
      inputText: '{ "n": 1 }',
    });
  });

  it('TC19 turns progress of the tool into tool.progress events with its id', async () => {
    const tool = recordingTool({
      execute: (_input, context) => {
        context.progress({ kind: 'stdout', text: 'line 1\n' });
        context.progress({ kind: 'progress', percent: 50 });
        return 'done';
      },
    });

    const { recording } = await runScripted({ replies: [toolCall('record'), 'done'], tools: [tool] });

    expect(recording.of('tool.progress').map(({ toolCallId, update }) => [toolCallId, update])).toStrictEqual([
      ['call_1', { kind: 'stdout', text: 'line 1\n' }],
      ['call_1', { kind: 'progress', percent: 50 }],
    ]);
  });

  it('has helpers that can be taken apart', async () => {
    const usage = toUsage({ inputTokens: 7 });
    const tool = recordingTool({
      execute: async (_input, { progress, recordUsage, forward }) => {
        progress({ kind: 'status', text: 'on my way' });
        await recordUsage(usage, 'child-model');
        forward({ type: 'notice', turnId: 'child', at: 0 });
        return 'done';
      },
    });

    const { recording, recorded, result } = await runScripted({
      replies: [toolCall('record'), { content: 'done', usage: {} }],
      llmOptions: { usage: {} },
      tools: [tool],
    });

    expect(resultTexts(recorded)).toStrictEqual(['done']);
    expect(recording.of('tool.progress')).toHaveLength(1);
    expect(recording.of('notice')).toMatchObject([{ turnId: 'child', agentPath: ['call_1'] }]);
    expect(result.usage).toStrictEqual(usage);
  });

  it('A17 drops progress that comes after the call has ended', async () => {
    const tool = recordingTool();

    const { recording } = await runScripted({
      replies: [toolCall('record'), () => (tool.runs[0]!.context.progress({ kind: 'status', text: 'late' }), 'done')],
      tools: [tool],
    });

    expect(tool.runCount).toBe(1);
    expect(recording.of('tool.progress')).toStrictEqual([]);
  });
});

describe('a call that cannot run', () => {
  it('TC4 is closed as not executed when the reply itself reaches the budget', async () => {
    const echo = echoTool();

    const { result, llm, recorded } = await runScripted({
      replies: [{ content: [toolCall('echo'), toolCall('echo')], usage: { outputTokens: 100 } }],
      tools: [echo],
      stopWhen: outputBudget(100),
    });

    expect(echo.runCount).toBe(0);
    expect(llm.callCount).toBe(1);
    expect(result).toMatchObject({ stopReason: 'max_budget', stoppedBy: 'outputBudget', steps: 1 });
    const text = 'This call was not executed: the turn\'s limit "outputBudget" was reached by the reply that made it.';
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'error', text],
      ['call_2', 'error', text],
    ]);
  });

  it('TC7 is recorded with its arguments, told which tools exist, and the turn goes on', async () => {
    const { result, recording, recorded } = await runScripted({
      replies: [toolCall('ehco', { text: 'a' }), 'done'],
      tools: [echoTool(), echoTool({ name: 'list_files' })],
    });

    expect(recording.of('tool.call')[0]).toMatchObject({ name: 'ehco', inputText: '{"text":"a"}' });
    expect(resultLines(recorded)).toStrictEqual([
      [
        'call_1',
        'error',
        'There is no tool named "ehco", so nothing was run. Did you mean "echo"? The tools are: echo, list_files.',
      ],
    ]);
    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done' });
  });

  it.each([
    ['readFile', ' Did you mean "read_file"?'],
    ['wrote_file', ' Did you mean "write_file"?'],
    ['search_the_web', ''],
    ['', ''],
  ])('A12 is told the close names only: %j', async (name, hint) => {
    const tools = ['read_file', 'write_file', 'grep'].map((known) => echoTool({ name: known }));

    const { recorded } = await runScripted({ replies: [toolCall(name), 'done'], tools });

    expect(resultTexts(recorded)).toStrictEqual([
      `There is no tool named "${name}", so nothing was run.${hint} The tools are: read_file, write_file, grep.`,
    ]);
  });

  it('A12 is told that there are no tools', async () => {
    const { recorded } = await runScripted({ replies: [toolCall('echo'), 'done'] });

    expect(resultTexts(recorded)).toStrictEqual(['There is no tool named "echo": no tools are available. Answer without one.']);
  });

  it('A12 has its arguments in the record, as every call whose text is an object', async () => {
    const calls = (reply: Reply): Promise<readonly (JsonValue | undefined)[]> =>
      runScripted({ replies: [reply, 'done'] }).then((outcome) => toolCallsOf(outcome).map(({ input }) => input));

    expect(await calls([toolCall('gone', { a: 1 }), toolCall('gone', '{"a":'), toolCall('gone', '[1]')])).toStrictEqual([{ a: 1 }, undefined, undefined]);
    expect(await calls({ content: [toolCall('gone', { a: 1 })], stopReason: 'max_tokens' })).toStrictEqual([{ a: 1 }]);
    const { llm } = await runScripted({ replies: [toolCall('gone', { a: 1 }), 'done'] });
    expect(llm.requests[1]?.messages[1]?.content).toMatchObject([{ type: 'tool_call', inputText: '{"a":1}', input: { a: 1 } }]);
  });

  it('A12 lets the host word a call of an unknown tool', async () => {
    const { recorded } = await runScripted({
      replies: [toolCall('mcp__db__query'), 'done'],
      hooks: [
        {
          name: 'servers',
          prepareToolCall: (_context, call) =>
            call.tool === undefined ? { action: 'block', reason: `The server of ${call.name} is disconnected.` } : undefined,
        },
      ],
    });

    expect(resultTexts(recorded)).toStrictEqual(['The server of mcp__db__query is disconnected.']);
  });

  it('TC8 is not executed with arguments that do not fit the schema', async () => {
    const tool = recordingTool({
      inputSchema: { type: 'object', properties: { path: { type: 'string' }, limit: { type: 'integer' } }, required: ['path'] },
    });

    const { recorded } = await runScripted({ replies: [toolCall('record', { limit: '5' }), 'done'], tools: [tool] });

    expect(tool.runCount).toBe(0);
    expect(resultLines(recorded)).toStrictEqual([
      [
        'call_1',
        'error',
        'Invalid arguments for "record": "path" is missing; "limit" must be integer, not string. Nothing was run. ' +
          'The form is { path: string, limit?: integer }.',
      ],
    ]);
  });

  it('TC9 is not executed with broken JSON, also when every field is optional', async () => {
    const tool = recordingTool({ inputSchema: { type: 'object', properties: { path: { type: 'string' } } } });

    const { recorded, recording } = await runScripted({ replies: [toolCall('record', '{}{'), 'done'], tools: [tool] });

    expect(tool.runCount).toBe(0);
    expect(recording.of('tool.call')[0]).toMatchObject({ inputText: '{}{' });
    expect(recording.of('tool.call')[0]).not.toHaveProperty('input');
    expect(resultLines(recorded)).toStrictEqual([
      [
        'call_1',
        'error',
        'The arguments of "record" are not valid JSON: the text should end at position 2, near "{}{". Nothing was run. ' +
          'Send one JSON object of the form { path?: string }. The arguments were: {}{',
      ],
    ]);
  });

  it('TC10 does not have a trailing comma repaired', async () => {
    const echo = echoTool();

    const { recorded } = await runScripted({ replies: [toolCall('echo', '{"text": "a",}'), 'done'], tools: [echo] });

    expect(echo.runCount).toBe(0);
    expect(resultTexts(recorded)[0]).toContain('a property name in double quotes was expected at position 13');
  });
});

describe('a call that fails', () => {
  it.each(['throws', 'rejects', 'returns'] as const)('TC11 gets an error result with the message when the tool %s', async (mode) => {
    const { result, recorded } = await runScripted({
      replies: [toolCall('fail'), 'done'],
      tools: [failingTool({ mode, error: new Error('disk is full') })],
    });

    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', 'disk is full']]);
    expect(result.text).toBe('done');
  });

  it('TC12 is visible to listeners with the name of the tool, the call and the error', async () => {
    const { recording } = await runScripted({ replies: [toolCall('fail'), 'done'], tools: [failingTool()] });

    const [seen] = recording.of('tool.result');
    expect(seen).toMatchObject({ name: 'fail', toolCallId: 'call_1', result: { isError: true } });
    expect(textOf(seen!.result.content)).toBe('the tool failed');
  });

  it('TC13 gets an error result when the tool returns undefined, with the pair intact', async () => {
    const { recorded } = await runScripted({ replies: [toolCall('odd'), 'done'], tools: [returning(undefined)] });

    expect(resultLines(recorded)).toMatchObject([
      ['call_1', 'error', expect.stringMatching(/^Tool "odd" returned nothing\b.*its effects may have happened/)],
    ]);
  });

  it('TC14 gets an error result when the tool returns an object without content', async () => {
    const { recorded } = await runScripted({ replies: [toolCall('odd'), 'done'], tools: [returning({ rows: 3 })] });

    expect(resultLines(recorded)).toMatchObject([
      ['call_1', 'error', expect.stringMatching(/^Tool "odd" .*neither text, parts nor a result: \{"rows":3\}$/)],
    ]);
  });

  it('TC14 gets an error result with the message of an error that the tool returns instead of throwing it', async () => {
    const { recorded } = await runScripted({ replies: [toolCall('odd'), 'done'], tools: [returning(new RangeError('the card is blocked'))] });

    expect(resultLines(recorded)).toMatchObject([['call_1', 'error', 'the card is blocked']]);
  });

  it('TC15 leaves the other calls of the batch and all pairs intact', async () => {
    const { recorded } = await runScripted({
      replies: [[toolCall('echo', { text: 'a' }), toolCall('odd'), toolCall('echo', { text: 'b' })], 'done'],
      tools: [echoTool(), returning(42)],
    });

    expect(resultLines(recorded).map(([id, outcome]) => [id, outcome])).toStrictEqual([
      ['call_1', 'ok'],
      ['call_2', 'error'],
      ['call_3', 'ok'],
    ]);
  });

  it('TC16 gets an error result when the finaliser returns a wrong shape', async () => {
    const { recorded } = await runScripted({
      replies: [toolCall('echo', { text: 'a' }), 'done'],
      tools: [echoTool()],
      hooks: [{ name: 'redact', finalizeToolResult: () => 42 as unknown as string }],
    });

    expect(resultLines(recorded)).toMatchObject([
      ['call_1', 'error', expect.stringMatching(/^Hook "redact" .*neither text, parts nor a result: 42$/)],
    ]);
  });

  it('A17 is aborted and closed when the time limit of its tool is over', async () => {
    const tool = recordingTool({ timeoutMs: 50, execute: () => new Promise(() => undefined) });

    const { recorded, runtime } = await runScripted({ replies: [toolCall('record'), 'done'], tools: [tool] });

    expect(resultLines(recorded)).toMatchObject([
      ['call_1', 'error', expect.stringMatching(/its time limit of 50 ms \(timeout\).*its effects may have happened in part/)],
    ]);
    expect(tool.runs[0]!.context.signal.reason).toMatchObject({ code: 'tool_timeout' });
    expect(runtime.now()).toBe(50);
  });
});

describe('several calls in one reply', () => {
  it('TC5 are skipped behind a tool that ends the turn', async () => {
    const echo = echoTool();
    const stop = returning({ content: 'bye', stopTurn: true }, 'stop');

    const { result, recorded, recording } = await runScripted({
      replies: [[toolCall('stop'), toolCall('echo', { text: 'a' })]],
      tools: [stop, echo],
    });

    expect(echo.runCount).toBe(0);
    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'stop', steps: 1 });
    expect(recording.of('tool.result')[0]!.result).toStrictEqual({ content: [{ type: 'text', text: 'bye' }] });
    expect(resultLines(recorded)[1]).toStrictEqual([
      'call_2',
      'error',
      'Skipped: the tool "stop" ended the turn before this call started, so it was not run.',
    ]);
  });

  it('A14 finish if they run already when a tool before them ends the turn', async () => {
    const gate = gatedTool({ accesses: [] });
    const stop = gatedTool({ name: 'stop', accesses: [] });
    const turn = startScripted({ replies: [[toolCall('stop'), toolCall('gate')]], tools: [gate, stop] });
    await turn.runtime.flush();

    stop.finish({ content: 'bye', stopTurn: true });
    await turn.runtime.flush();
    gate.finish('still counts');
    const { result, recorded } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'stopped', stoppedBy: 'stop' });
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'ok', 'bye'],
      ['call_2', 'ok', 'still counts'],
    ]);
  });

  it('A14 are not stopped by a stop tool that failed', async () => {
    const stop = returning({ content: 'could not', stopTurn: true, isError: true }, 'stop');
    const echo = echoTool();

    const { result } = await runScripted({ replies: [[toolCall('stop'), toolCall('echo')], 'done'], tools: [stop, echo] });

    expect(echo.runCount).toBe(1);
    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2 });
  });

  it('TC20 are recorded in provider order, calls before results', async () => {
    const { recorded } = await runScripted({
      replies: [['first', toolCall('echo', { text: 'a' }), 'second', toolCall('echo', { text: 'b' })], 'done'],
      tools: [echoTool({ readOnly: true })],
    });

    expect(outline(recorded).slice(4, 12).filter((line) => !line.startsWith('tool.finished'))).toStrictEqual([
      'content.part',
      'tool.call call_1',
      'content.part',
      'tool.call call_2',
      'tool.result call_1',
      'tool.result call_2',
    ]);
  });

  it('TC21 overlap where they do not conflict, and results keep provider order when they end reversed', async () => {
    const gate = gatedTool({ accesses: [] });
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate')], 'done'], tools: [gate] });
    await turn.runtime.flush();
    expect(gate.waiting).toStrictEqual(['call_1', 'call_2']);

    gate.finish('second', 'call_2');
    await turn.runtime.flush();
    gate.finish('first', 'call_1');
    const { recorded } = await turn.finish();

    expect(toolOutline(recorded)).toStrictEqual([
      'tool.call call_1',
      'tool.call call_2',
      'tool.start call_1',
      'tool.start call_2',
      'tool.finished call_2',
      'tool.finished call_1',
      'tool.result call_1',
      'tool.result call_2',
    ]);
  });

  it('TC22 run one after another when their tools declare nothing', async () => {
    const gate = gatedTool();
    const turn = startScripted({ replies: [[toolCall('gate'), toolCall('gate')], 'done'], tools: [gate] });
    await turn.runtime.flush();
    expect(gate.waiting).toStrictEqual(['call_1']);

    gate.open();
    await turn.finish();

    expect(gate.runCount).toBe(2);
    expect(gate.maxRunning).toBe(1);
  });

  it('TC23 are scheduled by the arguments that the prepare hook wrote', async () => {
    const gate = gatedTool({ accesses: ({ path }) => [{ mode: 'write', place: [String(path)], below: false }] });
    const turn = startScripted({
      replies: [[toolCall('gate', { path: 'a' }), toolCall('gate', { path: 'a' })], 'done'],
      tools: [gate],
      hooks: [
        {
          name: 'move',
          prepareToolCall: (_context, { toolCallId }) =>
            toolCallId === 'call_2' ? { action: 'rewrite', input: { path: 'b' } } : undefined,
        },
      ],
    });
    await turn.runtime.flush();

    expect(gate.inputs).toStrictEqual([{ path: 'a' }, { path: 'b' }]);
    gate.open();
    await turn.finish();
  });

  it('TC24 start although an earlier one waits on a conflict', async () => {
    const gate = gatedTool({ accesses: ({ path }) => [{ mode: 'write', place: [String(path)], below: false }] });
    const calls = ['a', 'a', 'b'].map((path) => toolCall('gate', { path }));
    const turn = startScripted({ replies: [calls, 'done'], tools: [gate] });
    await turn.runtime.flush();

    expect(gate.waiting).toStrictEqual(['call_1', 'call_3']);
    gate.open();
    await turn.finish();
    expect(gate.runs.map((run) => run.toolCallId)).toStrictEqual(['call_1', 'call_3', 'call_2']);
  });

  it('TC30 each get exactly one result when some are fine, unknown, invalid or throwing', async () => {
    const { recorded } = await runScripted({
      replies: [[toolCall('echo', { text: 'a' }), toolCall('nope'), toolCall('echo', '{"text"'), toolCall('fail')], 'done'],
      tools: [echoTool(), failingTool()],
    });

    expect(resultLines(recorded).map(([id, outcome]) => [id, outcome])).toStrictEqual([
      ['call_1', 'ok'],
      ['call_2', 'error'],
      ['call_3', 'error'],
      ['call_4', 'error'],
    ]);
  });

  it('A15 have ids of their own when the provider gave them the same one', async () => {
    const calls = ['a', 'b'].map((text) => toolCall('echo', { text }, { providerId: 'functions.echo:0' }));

    const { recording, recorded } = await runScripted({ replies: [calls, 'done'], tools: [echoTool()] });

    expect(recording.of('tool.call').map(({ toolCallId, providerId }) => [toolCallId, providerId])).toStrictEqual([
      ['call_1', 'functions.echo:0'],
      ['call_2', 'functions.echo:0'],
    ]);
    expect(resultLines(recorded)).toStrictEqual([
      ['call_1', 'ok', 'a'],
      ['call_2', 'ok', 'b'],
    ]);
  });
});

describe('media in a result', () => {
  it('TC25 is kept as it is in the record and in the live event', async () => {
    const content: readonly ToolResultPart[] = [{ type: 'text', text: 'a chart' }, IMAGE, { type: 'text', text: 'below' }];

    const { recorded, recording, llm } = await runScripted({ replies: [toolCall('odd'), 'done'], tools: [returning(content)] });

    expect(recording.of('tool.result')[0]!.result).toStrictEqual({ content });
    expect(recorded.find((event) => event.type === 'tool.finished')).toMatchObject({ result: { content } });
    expect(llm.requests[1]!.messages.at(-1)!.content).toStrictEqual(content);
  });

  it.each([
    ['TC26 of a result that holds text and an image in a blank text', [{ type: 'text', text: ' ' }, IMAGE]],
    ['TC27 of several images', [IMAGE, IMAGE]],
    ['TC28 of audio alone', [AUDIO]],
    ['TC29 of a single image', [IMAGE]],
  ] as const)('gets a text companion first, and is kept: %s', async (_name, content) => {
    const { recording, llm } = await runScripted({ replies: [toolCall('odd'), 'done'], tools: [returning(content)] });

    expect(recording.of('tool.result')[0]!.result).toStrictEqual({ content });
    expect(llm.requests[1]!.messages.at(-1)!.content).toStrictEqual([
      { type: 'text', text: '(The tool returned the media below.)' },
      ...content.filter((part) => part.type === 'media'),
    ]);
  });
});

describe('calls of a reply that is not whole', () => {
  it('TC31 are recorded and closed, not run, when the reply was paused', async () => {
    const echo = echoTool();

    const { result, recorded } = await runScripted({
      replies: [{ content: [toolCall('echo', { text: 'a' })], stopReason: 'paused' }],
      tools: [echo],
    });

    expect(echo.runCount).toBe(0);
    expect(result).toMatchObject({ stopReason: 'paused', steps: 1 });
    expect(toolOutline(recorded)).toStrictEqual(['tool.call call_1', 'tool.finished call_1', 'tool.result call_1']);
    expect(resultTexts(recorded)).toStrictEqual(['This call was not executed: the reply was paused before it was complete.']);
  });

  it('TC32 are recorded with their raw text and no parsed input when the text was cut', async () => {
    const { recording } = await runScripted({
      replies: [{ content: [toolCall('echo', '{"text":"hel')], stopReason: 'paused' }],
      tools: [echoTool()],
    });

    expect(recording.of('tool.call')).toStrictEqual([
      {
        type: 'tool.call',
        step: 1,
        stepId: 'step_1',
        index: 0,
        count: 1,
        reply: { source: { provider: 'scripted', modelId: 'scripted-model' }, stopReason: 'paused' },
        toolCallId: 'call_1',
        name: 'echo',
        inputText: '{"text":"hel',
        turnId: 'turn_1',
        at: 0,
      },
    ]);
  });

  it.each([
    ['TC33', 'unknown', 'This call was not executed: the reply ended for an unknown reason and may be incomplete.'],
    [
      'TC34',
      'max_tokens',
      'This call was not executed: the reply was cut off at the output limit (truncated), so the call may be incomplete. ' +
        'Make it again, in smaller pieces.',
    ],
  ] as const)('%s are closed when the reply ended %s', async (_id, stopReason, text) => {
    const echo = echoTool();

    const { result, recorded } = await runScripted({ replies: [{ content: [toolCall('echo')], stopReason }], tools: [echo] });

    expect(echo.runCount).toBe(0);
    expect(result).toMatchObject({ stopReason, steps: 1 });
    expect(resultLines(recorded)).toStrictEqual([['call_1', 'error', text]]);
  });

  it('TC35 have their results in provider order behind the calls', async () => {
    const { recorded } = await runScripted({
      replies: [{ content: [toolCall('echo'), toolCall('echo'), toolCall('echo')], stopReason: 'max_tokens' }],
      tools: [echoTool()],
    });

    expect(outline(recorded).filter((line) => /^tool\.(call|result)/.test(line))).toStrictEqual([
      'tool.call call_1',
      'tool.call call_2',
      'tool.call call_3',
      'tool.result call_1',
      'tool.result call_2',
      'tool.result call_3',
    ]);
  });

  it('TC36 get no results when there are none', async () => {
    const { recorded } = await runScripted({ replies: ['just text'], tools: [echoTool()] });

    expect(toolOutline(recorded)).toStrictEqual([]);
  });
});
