/** What a host that drives turns stands on: how ends are told apart, whose failure it was, steering, and what a record holds. */
import { describe, expect, it } from 'vitest';
import {
  closeOpenTurn,
  createEventDispatcher,
  createTranscript,
  createTurnControl,
  LLMError,
  type LoopEvent,
  runTurn,
  type RunTurnOptions,
  userCancel,
} from 'turnloop';
import { openAIChat } from 'turnloop/providers/openai-chat';
import { withRetry } from 'turnloop/policies';
import {
  echoTool,
  failingRecorder,
  gatedTool,
  hangingTool,
  recordEvents,
  runScripted,
  startScripted,
  stalled,
  toolCall,
  virtualRuntime,
} from 'turnloop/testing';
import { conversation, resultLines, throughJson } from '../core/support.ts';
import { delta, events, type FakeAnswer, fakeServer, finish } from '../providers/fake-server.ts';

/** Runs a turn of the chat adapter on a server that gives these answers. */
async function serverTurn(answers: readonly FakeAnswer[], options: Partial<RunTurnOptions> & { readonly retried?: boolean } = {}) {
  const { retried = false, ...rest } = options;
  const runtime = virtualRuntime();
  const transcript = createTranscript();
  const recording = recordEvents();
  const model = openAIChat({ model: 'test-model', apiKey: 'sk-test', baseUrl: 'https://api.example.com/v1', fetch: fakeServer(...answers).fetch });
  const result = await runtime.settle(
    runTurn({
      llm: retried ? withRetry(model, { maxAttempts: 3 }) : model,
      input: 'hi',
      buildMessages: transcript.buildMessages,
      dispatchEvent: createEventDispatcher({
        record: (event) => {
          transcript.record(event);
          recording.record(event);
        },
        emit: recording.emit,
      }),
      runtime,
      ...rest,
    }),
  );
  return { result, recording, transcript };
}

const CALL: FakeAnswer = {
  body: events([delta({ tool_calls: [{ index: 0, id: 'c1', function: { name: 'echo', arguments: '{"text":"a"}' } }] }), finish('tool_calls')]),
};

function overloaded(requestId?: string): FakeAnswer {
  return { status: 503, body: '{"error":{"message":"overloaded"}}', ...(requestId !== undefined && { headers: { 'x-request-id': requestId } }) };
}

describe('how an aborted turn is told', () => {
  it.each([
    ['a person who cancels', userCancel(), 'The user cancelled.', 'The user cancelled this call on purpose.'],
    ['a person who says why', userCancel('Wrong branch.'), 'Wrong branch.', 'The user cancelled this call on purpose.'],
    ['a program', new Error('server shuts down'), 'server shuts down', 'The turn was aborted while this call was running'],
    ['a program that says a word', 'shutdown', 'shutdown', 'The turn was aborted while this call was running'],
  ])('TD5 names %s in the result and in the events', async (_who, reason, stopMessage, told) => {
    const turn = startScripted({ replies: [toolCall('hang')], tools: [hangingTool({ name: 'hang' })] });
    await turn.runtime.flush();
    turn.control.abort(reason);
    const { result, recording, recorded } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'aborted', stopMessage });
    expect(recording.of('turn.end')).toMatchObject([{ stopReason: 'aborted', stopMessage }]);
    expect(resultLines(recorded)[0]?.[2]).toContain(told);
  });

  it('TD5 tells a deadline from both', async () => {
    const { result, recording, recorded } = await runScripted({ replies: [toolCall('hang')], tools: [hangingTool({ name: 'hang' })], deadlineMs: 1000 });

    expect(result.stopReason).toBe('deadline');
    expect(recording.of('turn.interrupted')).toMatchObject([{ stopReason: 'deadline', activeStep: 1 }]);
    expect(resultLines(recorded)[0]?.[2]).toContain("The turn's time limit was reached");
  });

  it('TD5 reminds the model of a person’s cancel, and of no other abort, behind a reply that was cut off', async () => {
    const after = async (reason: unknown): Promise<readonly string[]> => {
      const turn = startScripted({ replies: [stalled({ content: 'Once upon a time', chunk: 4 }, 2)] });
      await turn.runtime.flush();
      turn.control.abort(reason);
      await turn.finish();
      return conversation(turn.transcript.buildMessages());
    };

    expect(await after(userCancel())).toStrictEqual(['user: hi', 'assistant: Once upo', expect.stringContaining('interrupted the reply above on purpose')]);
    expect(await after(new Error('shutdown'))).toStrictEqual(['user: hi', 'assistant: Once upo']);
  });
});

describe('how a failed turn is told', () => {
  it('TD9 ends the turn with the provider’s error, in the result and in the events', async () => {
    const { result, recording } = await serverTurn([{ status: 400, body: '{"error":{"message":"no such field: foo","code":"unknown_parameter"}}' }]);

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'invalid_request', status: 400 } });
    const error = { name: 'LLMError', kind: 'invalid_request', message: expect.stringContaining('no such field: foo') as string };
    expect(recording.of('turn.interrupted')).toMatchObject([{ stopReason: 'fatal_error', activeStep: 1, error }]);
    expect(recording.of('turn.end')).toMatchObject([{ stopReason: 'fatal_error', error }]);
  });

  it('TD9 says how the provider ended a reply that is empty', async () => {
    const { result, recording } = await serverTurn([{ body: events([delta({ content: '' }), finish('stop')]) }]);

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'malformed_response', code: 'empty' } });
    expect(recording.of('turn.end')[0]?.error?.message).toContain('finish reason: stop');
  });

  it('TD9 says so of any model', async () => {
    const { recording } = await runScripted({ replies: [{ content: [], stopReason: 'unknown', rawStopReason: 'model_context_window_exceeded' }] });

    expect(recording.of('turn.end')[0]?.error?.message).toContain('it ended with model_context_window_exceeded');
  });

  it('TD10 ends the turn filtered when the reply was, with what there is of it', async () => {
    const { result, recording } = await serverTurn([{ body: events([delta({ content: 'I can' }), finish('content_filter')]) }]);

    expect(result).toMatchObject({ stopReason: 'filtered', text: 'I can' });
    expect(result.error).toBeUndefined();
    expect(recording.of('turn.end')).toMatchObject([{ stopReason: 'filtered' }]);
    expect(recording.of('step.end')).toMatchObject([{ stopReason: 'filtered', rawStopReason: 'content_filter' }]);
  });

  it('TD10 ends the turn filtered when there is nothing of the reply, and asks for it once', async () => {
    const { result, recording } = await serverTurn([{ body: events([delta({ content: '' }), finish('content_filter')]) }], { retried: true });

    expect(result).toMatchObject({ stopReason: 'filtered', text: '' });
    expect(recording.of('step.retrying')).toStrictEqual([]);
  });
});

describe('whose request it was', () => {
  it('TD18 gives the id of the last attempt that failed', async () => {
    const { result } = await serverTurn([overloaded('req-1'), overloaded('req-2'), overloaded('req-3')], { retried: true });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'overloaded', requestId: 'req-3' } });
  });

  it('TD18 gives no id when the last attempt had none', async () => {
    const { result } = await serverTurn([overloaded('req-1'), overloaded('req-2'), overloaded()], { retried: true });

    expect(result.error).toMatchObject({ kind: 'overloaded', requestId: undefined });
  });

  it('TD18 gives no id of an earlier step', async () => {
    const { result } = await serverTurn([{ ...CALL, headers: { 'x-request-id': 'req-1' } }, overloaded()], { tools: [echoTool()] });

    expect(result).toMatchObject({ steps: 2, error: { kind: 'overloaded', requestId: undefined } });
  });

  it('TD18 gives no id of a failed attempt when the turn ended well', async () => {
    const { result } = await serverTurn([overloaded('req-1'), { body: events([delta({ content: 'ok' }), finish('stop')]) }], { retried: true });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'ok' });
    expect(result).not.toHaveProperty('error');
  });
});

describe('a turn that is busy', () => {
  it('TD19 takes what is steered in before its next request, in order', async () => {
    const gate = gatedTool();
    const turn = startScripted({ replies: [toolCall('gate'), 'done'], tools: [gate] });
    await turn.runtime.settle(gate.started());
    const steered = [turn.control.steer('and b'), turn.control.steer('and c')];
    await turn.runtime.flush();
    expect(turn.recording.of('message')).toHaveLength(1);

    gate.finish();
    const { llm, result } = await turn.finish();

    expect(await Promise.all(steered)).toStrictEqual(['delivered', 'delivered']);
    expect(conversation(llm.requests[1]!.messages)).toStrictEqual(['user: hi', 'assistant: gate()', 'tool call_1: done', 'user: and b', 'user: and c']);
    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2 });
  });

  it('TD19 refuses to be used for another prompt, and goes on as if nothing was', async () => {
    const control = createTurnControl();
    const gate = gatedTool();
    const turn = startScripted({ replies: [toolCall('gate'), 'done'], tools: [gate], control });
    await turn.runtime.settle(gate.started());

    const second = recordEvents();
    await expect(
      runTurn({ llm: turn.llm, input: 'another', control, buildMessages: () => [], dispatchEvent: second.emit }),
    ).rejects.toThrow('This turn control was given to a turn before');
    gate.finish();
    const { result } = await turn.finish();

    expect(second.events).toStrictEqual([]);
    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done' });
    expect(turn.llm.callCount).toBe(2);
  });
});

describe('a turn that dies in the middle of its calls', () => {
  const calls = [toolCall('echo', { text: 'a' }), toolCall('echo', { text: 'b' })];

  it.each(['tool.call', 'tool.start', 'tool.finished', 'tool.result'] as const)(
    'TD20 swallows no later message when the store fails at %s: what dangles is closed',
    async (at) => {
      const recorder = failingRecorder({ at: (event) => event.type === at });
      const first = await runScripted({ replies: [calls], tools: [echoTool()], record: recorder, check: false });
      expect(first.result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'recorder_failed' } });

      const transcript = createTranscript(throughJson(recorder.events));
      expect(transcript.openTurn()).toBeDefined();
      await closeOpenTurn(transcript);
      const { llm, result } = await runScripted({ replies: ['ok'], transcript, input: 'Are you there?' });

      const told = conversation(llm.requests[0]!.messages);
      expect(told.at(-1)).toBe('user: Are you there?');
      expect(told.filter((line) => line.startsWith('tool '))).toHaveLength(at === 'tool.call' ? 0 : 2);
      expect(result.stopReason).toBe('end_turn');
    },
  );

  it('TD20 swallows no later message when the turn is never closed either', async () => {
    const recorder = failingRecorder({ at: 'tool.finished' });
    await runScripted({ replies: [calls], tools: [echoTool()], record: recorder, check: false });

    const transcript = createTranscript(throughJson(recorder.events));
    const { llm } = await runScripted({ replies: ['ok'], transcript, input: 'Are you there?', check: false });

    expect(conversation(llm.requests[0]!.messages).map((line) => line.split(':')[0])).toStrictEqual(['user', 'assistant', 'tool call_1', 'tool call_2', 'user']);
  });
});

describe('what events hold', () => {
  const SYSTEM = 'You are a careful assistant.';
  const INPUT = 'Read the whole file, please.';

  async function longTurn(steps: number): Promise<readonly LoopEvent[]> {
    const { events: seen } = await runScripted({
      replies: [...Array.from({ length: steps }, (_, index) => toolCall('echo', { text: `line ${index}` })), 'done'],
      tools: [echoTool({ description: 'Says the text again.' })],
      llmOptions: { systemPrompt: SYSTEM, usage: { inputTokens: 10, outputTokens: 5 } },
      input: INPUT,
    });
    return seen;
  }

  const countOf = (seen: readonly LoopEvent[], text: string): number => JSON.stringify(seen).split(text).length - 1;

  it('TD21 no request, and nothing that stays the same: neither prompt nor tools, and no message twice', async () => {
    const seen = await longTurn(5);

    expect([countOf(seen, SYSTEM), countOf(seen, 'Says the text again.'), countOf(seen, INPUT)]).toStrictEqual([0, 0, 1]);
  });

  it('TD21 as much for a late step as for an early one', async () => {
    const seen = await longTurn(9);
    const sizes = Array.from({ length: 9 }, (_, index) => JSON.stringify(seen.filter((event) => 'step' in event && event.step === index + 1)).length);

    expect(new Set(sizes).size).toBe(1);
  });

  it('TD21 of an attempt that failed what failed, and no body', async () => {
    const { recording } = await runScripted({
      replies: [new LLMError({ kind: 'overloaded', message: 'Overloaded.' }), 'done'],
      decorate: (llm) => withRetry(llm),
      llmOptions: { systemPrompt: SYSTEM },
      input: INPUT,
    });

    expect(recording.of('step.retrying')).toStrictEqual([
      {
        type: 'step.retrying',
        turnId: 'turn_1',
        at: 0,
        step: 1,
        stepId: 'step_1',
        attempt: 1,
        maxAttempts: 10,
        modelId: 'scripted-model',
        error: { name: 'LLMError', kind: 'overloaded', message: 'Overloaded.' },
        delayMs: expect.any(Number) as number,
      },
    ]);
  });

  it('TD21 of a failed request its error, and not what was sent', async () => {
    const { recording, result } = await serverTurn([{ status: 400, body: '{"error":{"message":"bad"}}' }], { input: INPUT });

    expect(countOf(recording.events, INPUT)).toBe(1);
    expect(JSON.stringify(result.error)).not.toContain(INPUT);
  });
});
