/** Failures of models, hooks, recorders and the host's own functions, as a black box: each ends the turn as a result. */
import { describe, expect, it } from 'vitest';
import {
  attemptChat,
  decorateLLM,
  isLLMError,
  isTurnloopError,
  type LLM,
  LLMError,
  type LLMErrorKind,
  summarizeError,
  toUsage,
  TurnloopError,
  userMessage,
} from 'turnloop';
import {
  abortAt,
  cutStream,
  echoTool,
  failingRecorder,
  gatedTool,
  hangingTool,
  recordingTool,
  runScripted,
  startScripted,
  thinking,
  toolCall,
} from 'turnloop/testing';
import { conversation, resultTexts, stepLimit } from './support.ts';

function failure(kind: LLMErrorKind, more: Partial<ConstructorParameters<typeof LLMError>[0]> = {}): LLMError {
  return new LLMError({ kind, message: `It was ${kind}.`, ...more });
}

/** Tries a request again as often as it takes, up to `maxAttempts`, as a retry policy would. */
function retrying(llm: LLM, maxAttempts: number): LLM {
  return decorateLLM(llm, async (request) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await attemptChat(llm, request);
      } catch (error) {
        if (attempt === maxAttempts || !isLLMError(error)) throw error;
        await request.onAttemptFailed?.({ error, delayMs: 10, maxAttempts });
      }
    }
  });
}

function abortLike(): Error {
  const error = new Error('This operation was aborted');
  error.name = 'AbortError';
  return error;
}

describe('a failure of the model', () => {
  it('ER1 ends the turn fatal_error with the error, the usage and the steps so far', async () => {
    const error = failure('auth', { message: 'No such key.' });

    const { result, recording } = await runScripted({
      replies: [{ content: [toolCall('echo')], usage: { inputTokens: 5 } }, error],
      tools: [echoTool()],
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', steps: 2, usage: toUsage({ inputTokens: 5 }) });
    expect(result.error).toBe(error);
    expect(recording.of('turn.interrupted')).toStrictEqual([
      {
        type: 'turn.interrupted',
        stopReason: 'fatal_error',
        activeStep: 2,
        error: { name: 'LLMError', kind: 'auth', message: 'No such key.' },
        turnId: 'turn_1',
        at: 0,
      },
    ]);
    expect(recording.of('turn.end')).toMatchObject([{ stopReason: 'fatal_error', error: { kind: 'auth' }, steps: 2 }]);
  });

  it('ER2 is announced with turn, step, attempt, model, kind and message, and nothing else', async () => {
    const error = failure('rate_limit', { status: 429, requestId: 'req-1', cause: { headers: { authorization: 'Bearer sk-123' } } });

    const { recording } = await runScripted({ replies: [error, 'ok'], decorate: (llm) => retrying(llm, 3) });

    expect(recording.of('step.retrying')).toStrictEqual([
      {
        type: 'step.retrying',
        step: 1,
        stepId: 'step_1',
        attempt: 1,
        maxAttempts: 3,
        modelId: 'scripted-model',
        error: { name: 'LLMError', kind: 'rate_limit', message: 'It was rate_limit.' },
        delayMs: 10,
        turnId: 'turn_1',
        at: 0,
      },
    ]);
    expect(JSON.stringify(recording.events)).not.toContain('sk-123');
  });

  it('ER7 makes exactly one interruption event, after retries too', async () => {
    const { recording } = await runScripted({
      replies: [failure('server'), failure('server')],
      decorate: (llm) => retrying(llm, 2),
    });

    expect(recording.of('step.retrying')).toHaveLength(1);
    expect(recording.of('turn.interrupted')).toHaveLength(1);
    expect(recording.types().slice(-2)).toStrictEqual(['turn.interrupted', 'turn.end']);
  });

  it('ER8 leaves its step without step.end', async () => {
    const { recorded } = await runScripted({ replies: [failure('server')] });

    expect(recorded.map((event) => event.type)).toStrictEqual(['turn.begin', 'message', 'step.begin', 'turn.end']);
  });

  it('counts the tokens of failed attempts, where the provider told', async () => {
    const spent = toUsage({ inputTokens: 100 });

    const { result, recording } = await runScripted({
      replies: [failure('server', { usage: spent }), { content: 'ok', usage: { inputTokens: 1 } }],
      decorate: (llm) => retrying(llm, 2),
    });

    expect(recording.of('usage').map(({ purpose, usage }) => [purpose, usage.inputTokens])).toStrictEqual([
      ['attempt', 100],
      ['step', 1],
    ]);
    expect(result.usage).toStrictEqual(toUsage({ inputTokens: 101 }));
  });

  it('counts the tokens of the last failure too', async () => {
    const { result } = await runScripted({ replies: [failure('server', { usage: toUsage({ inputTokens: 7 }) })] });

    expect(result).toMatchObject({ stopReason: 'fatal_error', usage: toUsage({ inputTokens: 7 }) });
  });

  it.each([
    ['context_overflow', failure('context_overflow')],
    ['circuit_breaker', failure('refused', { stopReason: 'circuit_breaker' })],
    ['max_budget', failure('refused', { stopReason: 'max_budget' })],
    ['fatal_error', failure('invalid_history')],
    ['fatal_error', failure('request_too_large')],
    ['fatal_error', failure('content_filter')],
  ])('ends the turn %s for %o', async (stopReason, error) => {
    const { result } = await runScripted({ replies: [error] });

    expect(result).toMatchObject({ stopReason, steps: 1 });
    expect(result.error).toBe(error);
  });

  it('is of kind unknown when anything else is thrown', async () => {
    const { result } = await runScripted({ replies: [new RangeError('odd')] });

    expect(result.error).toMatchObject({ name: 'LLMError', kind: 'unknown', retryable: false, message: 'odd', cause: new RangeError('odd') });
  });

  it.each([
    ['nothing', undefined],
    ['no content', { stopReason: 'end_turn', usage: toUsage({}) }],
    ['a call without a name', { content: [{ type: 'tool_call', inputText: '{}' }], stopReason: 'tool_use', usage: toUsage({}) }],
  ])('is a malformed response when chat returns %s', async (_what, response) => {
    const { result } = await runScripted({ decorate: (llm) => decorateLLM(llm, () => Promise.resolve(response as never)) });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'malformed_response', retryable: true } });
    expect(result.error!.message).toMatch(/^What LLM\.chat returned is not a reply: /);
  });

  it.each([
    ['no parts', []],
    ['blank text', [' \n']],
    ['thinking alone', [thinking('hmm')]],
  ])('is an empty reply, retryable, when it has %s', async (_what, content) => {
    const { result } = await runScripted({ replies: [{ content, usage: { inputTokens: 3 } }] });

    expect(result).toMatchObject({
      stopReason: 'fatal_error',
      error: { kind: 'malformed_response', code: 'empty', retryable: true },
      usage: toUsage({ inputTokens: 3 }),
    });
  });

  it('keeps the text that had arrived, as interrupted', async () => {
    const { result, transcript } = await runScripted({
      replies: [cutStream({ content: 'The answer is 42', chunk: 7 }, { deltaCount: 2 })],
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', text: 'The answer is ', error: { kind: 'network' } });
    expect(conversation(transcript.buildMessages())).toStrictEqual(['user: hi', 'assistant: The answer is ']);
    expect(transcript.buildMessages()[1]).toMatchObject({ status: 'interrupted' });
  });
});

describe('a limit', () => {
  it('ER4 has its interruption event come before turn.end', async () => {
    const { recording } = await runScripted({ replies: [toolCall('echo')], tools: [echoTool()], stopWhen: stepLimit(1) });

    expect(recording.events.slice(-2)).toMatchObject([
      { type: 'turn.interrupted', stopReason: 'max_steps' },
      { type: 'turn.end', stopReason: 'max_steps', stoppedBy: 'stepLimit', stopMessage: '1 steps', steps: 1 },
    ]);
    expect(recording.of('turn.interrupted')[0]).not.toHaveProperty('activeStep');
  });
});

describe('a failure of the host', () => {
  it('ER5 takes the same path when it is a hook\'s', async () => {
    const { result, recording } = await runScripted({
      hooks: [{ name: 'broken', beforeStep: () => Promise.reject(new Error('boom')) }],
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'hook_failed' } });
    expect(recording.events.slice(-2)).toMatchObject([
      { type: 'turn.interrupted', stopReason: 'fatal_error', error: { name: 'TurnloopError', kind: 'hook_failed' } },
      { type: 'turn.end', stopReason: 'fatal_error', error: { kind: 'hook_failed' } },
    ]);
  });

  it('is history_failed when buildMessages throws', async () => {
    const { result, llm } = await runScripted({
      buildMessages: () => {
        throw new Error('no disk');
      },
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'history_failed', message: 'buildMessages failed: no disk' } });
    expect(llm.callCount).toBe(0);
  });

  it('is setup_failed when tools or llm of a step cannot be had', async () => {
    const broken = (): Promise<never> => Promise.reject(new Error('server down'));

    const byTools = await runScripted({ tools: broken });
    const byModel = await runScripted({ decorate: () => broken });

    for (const { result } of [byTools, byModel]) {
      expect(result).toMatchObject({ stopReason: 'fatal_error', steps: 0, error: { code: 'setup_failed' } });
      expect(result.error!.message).toContain('server down');
    }
  });

  it('is setup_failed when a step is given two tools of one name', async () => {
    const { result } = await runScripted({ tools: () => [echoTool(), echoTool()] });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'setup_failed' } });
    expect(result.error!.message).toContain('Two tools are named "echo"');
  });

  it('ends the turn, stops the tools and claims nothing further when the recorder fails', async () => {
    const hang = hangingTool({ accesses: [] });

    const { result, recorded, recording } = await runScripted({
      replies: [[toolCall('hang'), toolCall('echo')]],
      tools: [hang, echoTool({ accesses: [] })],
      record: failingRecorder({ at: 'tool.finished', error: new Error('disk full') }),
    });

    expect(result).toMatchObject({
      stopReason: 'fatal_error',
      error: { code: 'recorder_failed', message: 'The recorder failed: disk full', cause: new Error('disk full') },
    });
    expect(hang.runs[0]!.state).toBe('aborted');
    expect(recorded.map((event) => event.type)).not.toContain('turn.end');
    expect(recording.of('turn.interrupted')).toHaveLength(1);
  });

  it('makes no request when the recorder fails before', async () => {
    const { result, llm } = await runScripted({ replies: ['never'], record: failingRecorder({ at: 'step.begin', mode: 'throws' }) });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'recorder_failed' } });
    expect(llm.callCount).toBe(0);
  });
});

describe('an error named AbortError', () => {
  it('ER6 is an error when a model throws it and our signal is not aborted', async () => {
    const { result } = await runScripted({ replies: [abortLike()] });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'unknown', message: 'This operation was aborted' } });
  });

  it('ER6 is a failure when a tool throws it', async () => {
    const { result, recorded } = await runScripted({
      replies: [toolCall('record'), 'done'],
      tools: [recordingTool({ execute: () => Promise.reject(abortLike()) })],
    });

    expect(result.stopReason).toBe('end_turn');
    expect(resultTexts(recorded)).toStrictEqual(['This operation was aborted']);
  });

  it('ER6 is a failure when a hook throws it', async () => {
    const { result } = await runScripted({ hooks: [{ name: 'fetching', beforeStep: () => Promise.reject(abortLike()) }] });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { code: 'hook_failed' } });
  });

  it('ER6 is the abort when our signal is aborted', async () => {
    const controller = new AbortController();
    const gate = gatedTool({ ignoresAbort: true });
    const turn = startScripted({ replies: [toolCall('gate')], tools: [gate], signal: controller.signal });
    await turn.runtime.flush();

    controller.abort();
    gate.fail(abortLike());
    const { result, recorded } = await turn.finish();

    expect(result).toMatchObject({ stopReason: 'aborted' });
    expect(result).not.toHaveProperty('error');
    expect(resultTexts(recorded)[0]).toContain('The turn was aborted while this call was running');
  });

  it('ER6 is the abort when a hook throws it after our signal', async () => {
    const controller = new AbortController();

    const { result } = await runScripted({
      signal: controller.signal,
      hooks: [{ name: 'fetching', beforeStep: () => (controller.abort(), Promise.reject(abortLike())) }],
    });

    expect(result).toMatchObject({ stopReason: 'aborted' });
    expect(result).not.toHaveProperty('error');
  });

  it('ER6 is the abort when a model throws it after our signal', async () => {
    const controller = new AbortController();

    const { result } = await runScripted({
      replies: [abortLike()],
      signal: controller.signal,
      listener: abortAt(controller, 'step.begin'),
    });

    expect(result).toMatchObject({ stopReason: 'aborted' });
    expect(result).not.toHaveProperty('error');
  });
});

describe('errors of the library', () => {
  it('serialise to name, kind and message', () => {
    const error = failure('auth', { status: 401, requestId: 'r', cause: new Error('Authorization: Bearer sk-1') });

    expect(JSON.parse(JSON.stringify(error))).toStrictEqual({ name: 'LLMError', kind: 'auth', message: 'It was auth.' });
    expect(summarizeError(new TurnloopError('deadline', 'Too late.'))).toStrictEqual({
      name: 'TurnloopError',
      kind: 'deadline',
      message: 'Too late.',
    });
  });

  it('are recognised by a tag, across copies of the package', () => {
    const foreign = Object.assign(new Error('from another copy'), { isTurnloopError: true, kind: 'server', retryable: true });

    expect([isTurnloopError(foreign), isLLMError(foreign)]).toStrictEqual([true, true]);
    expect([isTurnloopError(new Error('plain')), isLLMError(new TurnloopError('abort', 'x'))]).toStrictEqual([false, false]);
    expect([isTurnloopError({ isTurnloopError: true }), isLLMError({ kind: 'server', retryable: true })]).toStrictEqual([false, false]);
  });

  it.each([
    ['rate_limit', true],
    ['overloaded', true],
    ['server', true],
    ['network', true],
    ['timeout', true],
    ['malformed_response', true],
    ['auth', false],
    ['quota', false],
    ['context_overflow', false],
    ['invalid_request', false],
    ['aborted', false],
    ['unknown', false],
  ] as const)('%s is retryable by default: %s', (kind, retryable) => {
    expect(failure(kind).retryable).toBe(retryable);
  });

  it('leave a conversation that goes on after a failed turn', async () => {
    const first = await runScripted({ replies: [failure('server')] });

    const { result, llm } = await runScripted({
      replies: ['ok'],
      transcript: first.transcript,
      runtime: first.runtime,
      input: userMessage('again'),
    });

    expect(result.stopReason).toBe('end_turn');
    expect(conversation(llm.requests[0]!.messages)).toStrictEqual(['user: hi', 'user: again']);
  });
});
