/**
 * Recoveries, as a black box: what is tried when a request fails for good, in order, once a step, forward only, and for
 * the rest of the turn once it has worked.
 */
import { describe, expect, it } from 'vitest';
import { LLMError, type LLMErrorKind, type LLMRequest, type Recovery, toUsage, userMessage } from 'turnloop';
import { abortAt, cutStream, echoTool, runScripted, scriptedLLM, type ScriptedLLM, toolCall } from 'turnloop/testing';
import { conversation } from './support.ts';

function failure(kind: LLMErrorKind): LLMError {
  return new LLMError({ kind, message: `${kind}!` });
}

/** A recovery that puts its name into the system prompt, so that requests show what was applied to them. */
function marking(name: string, kinds: readonly LLMErrorKind[] = ['request_too_large']): Recovery {
  return { name, kinds, apply: (request) => ({ ...request, systemPrompt: `${request.systemPrompt}[${name}]` }) };
}

function prompts(llm: ScriptedLLM): readonly string[] {
  return llm.requests.map((request) => request.systemPrompt);
}

const TOO_LARGE = failure('request_too_large');

describe('a recovery', () => {
  it('is tried when a request fails with a kind it knows, and announced', async () => {
    const { result, llm, recording } = await runScripted({ replies: [TOO_LARGE, 'ok'], recoveries: [marking('smaller')] });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 1, text: 'ok' });
    expect(prompts(llm)).toStrictEqual(['', '[smaller]']);
    expect(recording.of('step.retrying')).toStrictEqual([
      {
        type: 'step.retrying',
        step: 1,
        stepId: 'step_1',
        attempt: 1,
        modelId: 'scripted-model',
        error: { name: 'LLMError', kind: 'request_too_large', message: 'request_too_large!' },
        recovery: 'smaller',
        turnId: 'turn_1',
        at: 0,
      },
    ]);
  });

  it('is not tried for a kind it does not know', async () => {
    const { result, llm } = await runScripted({ replies: [failure('auth')], recoveries: [marking('smaller')] });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'auth' } });
    expect(llm.callCount).toBe(1);
  });

  it('is not tried after an abort', async () => {
    const controller = new AbortController();

    const { result, llm } = await runScripted({
      replies: [cutStream('par', { deltaCount: 1, error: TOO_LARGE })],
      recoveries: [marking('smaller')],
      signal: controller.signal,
      listener: abortAt(controller, 'text.delta'),
    });

    expect(result.stopReason).toBe('aborted');
    expect(llm.callCount).toBe(1);
  });

  it('is tried in the order of the list, each after the other has failed', async () => {
    const { result, llm } = await runScripted({
      replies: [TOO_LARGE, TOO_LARGE, 'ok'],
      recoveries: [marking('first'), marking('other', ['auth']), marking('second')],
    });

    expect(result.text).toBe('ok');
    expect(prompts(llm)).toStrictEqual(['', '[first]', '[first][second]']);
  });

  it('is tried again in a later step, if it leaves nothing to change before the request is sent', async () => {
    // As one does that records what it changed: the history is different from then on.
    const once: Recovery = {
      name: 'recorded',
      kinds: ['context_overflow'],
      apply: (request, { error }) => (error === undefined ? undefined : { ...request, systemPrompt: `${request.systemPrompt}[recorded]` }),
    };
    const overflow = failure('context_overflow');

    const { result, llm } = await runScripted({
      replies: [overflow, toolCall('echo'), overflow, 'ok'],
      tools: [echoTool()],
      recoveries: [once],
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', steps: 2, text: 'ok' });
    expect(prompts(llm)).toStrictEqual(['', '[recorded]', '', '[recorded]']);
  });

  it('is tried once a step, so that the turn ends when none is left', async () => {
    const { result, llm, recording } = await runScripted({
      replies: [TOO_LARGE, TOO_LARGE],
      recoveries: [marking('only')],
    });

    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'request_too_large' }, steps: 1 });
    expect(llm.callCount).toBe(2);
    expect(recording.of('turn.interrupted')).toHaveLength(1);
  });

  it('is not gone back to: a failure of an earlier kind only finds later ones', async () => {
    const { llm, result } = await runScripted({
      replies: [failure('media_rejected'), TOO_LARGE],
      recoveries: [marking('degrade', ['request_too_large']), marking('strip', ['media_rejected'])],
    });

    expect(prompts(llm)).toStrictEqual(['', '[strip]']);
    expect(result).toMatchObject({ stopReason: 'fatal_error', error: { kind: 'request_too_large' } });
  });

  it('is passed over when it has nothing to change', async () => {
    const idle: Recovery = { name: 'idle', kinds: ['request_too_large'], apply: () => undefined };

    const { llm, result } = await runScripted({ replies: [TOO_LARGE, 'ok'], recoveries: [idle, marking('second')] });

    expect(prompts(llm)).toStrictEqual(['', '[second]']);
    expect(result.text).toBe('ok');
  });

  it('is applied before sending to each later request of the turn once it has worked', async () => {
    const { llm } = await runScripted({
      replies: [TOO_LARGE, toolCall('echo'), toolCall('echo'), 'done'],
      tools: [echoTool()],
      recoveries: [marking('smaller')],
    });

    expect(prompts(llm)).toStrictEqual(['', '[smaller]', '[smaller]', '[smaller]']);
  });

  it('is told the error when it is tried, and none when it is applied again', async () => {
    const seen: unknown[] = [];
    const watching: Recovery = {
      name: 'watch',
      kinds: ['request_too_large'],
      apply: (request, { error, step, state }) => {
        seen.push([step, error?.kind, state.get('runs') ?? 0]);
        state.set('runs', Number(state.get('runs') ?? 0) + 1);
        return { ...request };
      },
    };

    await runScripted({ replies: [TOO_LARGE, toolCall('echo'), 'done'], tools: [echoTool()], recoveries: [watching] });

    expect(seen).toStrictEqual([
      [1, 'request_too_large', 0],
      [2, undefined, 1],
    ]);
  });

  it('is not tried again when it works for the turn already and does not help any more', async () => {
    const { llm, result } = await runScripted({
      replies: [TOO_LARGE, TOO_LARGE, toolCall('echo'), TOO_LARGE, 'done'],
      tools: [echoTool()],
      recoveries: [marking('first'), marking('second')],
    });

    expect(prompts(llm)).toStrictEqual(['', '[first]', '[first][second]', '[first][second]']);
    expect(result).toMatchObject({ stopReason: 'fatal_error', steps: 2 });
  });

  it('stands aside when it, or a later one against the same failure, works for the turn already', async () => {
    const { llm, result } = await runScripted({
      replies: [TOO_LARGE, toolCall('echo'), TOO_LARGE, 'done'],
      tools: [echoTool()],
      recoveries: [marking('first'), marking('second')],
    });

    expect(prompts(llm)).toStrictEqual(['', '[first]', '[first]', '[first][second]']);
    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'done' });
  });

  it('keeps steps and counters going: it never restarts the turn', async () => {
    const { result, recording } = await runScripted({
      replies: [
        { content: [toolCall('echo')], usage: { inputTokens: 1 } },
        new LLMError({ kind: 'request_too_large', message: 'x', usage: toUsage({ inputTokens: 10 }) }),
        { content: 'done', usage: { inputTokens: 100 } },
      ],
      tools: [echoTool()],
      recoveries: [marking('smaller')],
    });

    expect(result).toMatchObject({ steps: 2, usage: toUsage({ inputTokens: 111 }) });
    expect(recording.of('step.begin').map(({ step }) => step)).toStrictEqual([1, 2]);
    expect(recording.of('usage').map(({ purpose }) => purpose)).toStrictEqual(['step', 'attempt', 'step']);
  });

  it('may record a compaction, and send the history that comes of it', async () => {
    const summary = userMessage('short', { id: 's', origin: 'summary' });
    const compact: Recovery = {
      name: 'compact',
      kinds: ['context_overflow'],
      apply: async (request, { record, messages }): Promise<LLMRequest> => {
        const edits = [{ from: 'message_1', to: 'message_1', messages: [summary] }];
        await record({ type: 'compaction', layer: 'emergency', edits, tokensBefore: 9, tokensAfter: 1 });
        return { ...request, messages: await messages() };
      },
    };

    const { llm, transcript, result } = await runScripted({
      replies: [failure('context_overflow'), 'ok'],
      input: 'a very long question',
      recoveries: [compact],
    });

    expect(conversation(llm.requests[1]!.messages)).toStrictEqual(['user: short']);
    expect(conversation(transcript.buildMessages())).toStrictEqual(['user: short', 'assistant: ok']);
    expect(result.stopReason).toBe('end_turn');
  });

  it('leaves the turn context_overflow when it does not help', async () => {
    const { result } = await runScripted({
      replies: [failure('context_overflow'), failure('context_overflow')],
      recoveries: [marking('compact', ['context_overflow'])],
    });

    expect(result).toMatchObject({ stopReason: 'context_overflow', error: { kind: 'context_overflow' } });
  });

  it('V1 is a retry that recovers a failed step, and its attempts count on', async () => {
    const { recording, result } = await runScripted({
      replies: [cutStream('half', { deltaCount: 1, error: TOO_LARGE }), 'whole'],
      recoveries: [marking('again')],
    });

    expect(recording.of('text.delta').map(({ attempt, text }) => [attempt, text])).toStrictEqual([
      [1, 'half'],
      [2, 'whole'],
    ]);
    expect(result.text).toBe('whole');
  });

  it('V1 that fails itself ends the turn with the original error, and is reported', async () => {
    const broken: Recovery = {
      name: 'broken',
      kinds: ['request_too_large'],
      apply: () => {
        throw new Error('boom');
      },
    };

    const { result, recording, llm } = await runScripted({ replies: [TOO_LARGE], recoveries: [broken] });

    expect(result).toMatchObject({ stopReason: 'fatal_error' });
    expect(result.error).toBe(TOO_LARGE);
    expect(recording.of('notice')).toMatchObject([{ name: 'recovery.failed', data: { recovery: 'broken' } }]);
    expect(llm.callCount).toBe(1);
  });

  it('is not remembered in another turn', async () => {
    const recoveries = [marking('smaller')];
    await runScripted({ replies: [TOO_LARGE, 'ok'], recoveries });
    const llm = scriptedLLM(['ok']);

    await runScripted({ llm, recoveries });

    expect(prompts(llm)).toStrictEqual(['']);
  });
});
