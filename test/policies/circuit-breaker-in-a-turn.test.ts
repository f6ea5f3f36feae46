/** withCircuitBreaker inside a turn, as a black box: how turns end, and what listeners and the transcript see of a pause. */
import { describe, expect, it } from 'vitest';
import { createEventDispatcher, createTranscript, type LLM, runTurn, type TurnResult, userMessage } from 'turnloop';
import { createCircuitBreaker, withCircuitBreaker } from 'turnloop/policies';
import { cutStream, type LoopEventOf, recordEvents, repeat, type Script, scriptedLLM, virtualRuntime } from 'turnloop/testing';
import { failure } from './decorated.ts';
import { runScripted } from './run-scripted.ts';

const OPEN_MS = 60_000;

/** Several turns at once on one model. */
async function runTurns(llm: LLM, count: number) {
  const runtime = virtualRuntime();
  const listener = recordEvents();
  const turns = Array.from({ length: count }, (): Promise<TurnResult> => {
    const transcript = createTranscript();
    return runTurn({
      llm,
      input: [userMessage('Hello')],
      buildMessages: () => transcript.buildMessages(),
      dispatchEvent: createEventDispatcher({ record: transcript.record, emit: listener.emit }),
      runtime,
    });
  });
  const results = await runtime.settle(Promise.all(turns));
  return { results, runtime, listener };
}

function namesOf(notices: readonly LoopEventOf<'notice'>[]): readonly string[] {
  return notices.map(({ name }) => name);
}

describe('withCircuitBreaker in a turn', () => {
  it('C2 pauses the turn, shows the pause, and goes on with the answer of the probe', async () => {
    const { result, listener, transcript, runtime } = await runScripted({
      replies: [cutStream('Hello w', { deltaCount: 1 }), 'Hello world'],
      decorate: (llm) => withCircuitBreaker(llm, createCircuitBreaker({ failures: 1 })),
    });

    expect(result).toMatchObject({ stopReason: 'end_turn', text: 'Hello world', steps: 1 });
    expect(listener.of('step.retrying')).toMatchObject([{ attempt: 1, delayMs: OPEN_MS, error: { kind: 'network' } }]);
    expect(listener.of('text.delta').map(({ attempt }) => attempt)).toStrictEqual([1, 2]);
    expect(namesOf(listener.of('notice'))).toStrictEqual([
      'circuitBreaker.opened',
      'circuitBreaker.waiting',
      'circuitBreaker.probing',
      'circuitBreaker.closed',
    ]);
    expect(transcript.buildMessages().filter(({ role }) => role === 'assistant')).toHaveLength(1);
    expect(runtime.now()).toBe(OPEN_MS);
  });

  it('C2 ends circuit_breaker with the error of the provider when the probe fails', async () => {
    const { result, llm } = await runScripted({
      replies: [failure('server'), failure('overloaded', { message: 'Overloaded.' })],
      decorate: (inner) => withCircuitBreaker(inner, createCircuitBreaker({ failures: 1 })),
    });

    expect(result).toMatchObject({ stopReason: 'circuit_breaker', error: { kind: 'overloaded', message: 'Overloaded.' } });
    expect(llm.callCount).toBe(2);
  });

  it('C2 ends at once in mode fail, with the error of the provider', async () => {
    const { result, runtime } = await runScripted({
      replies: [failure('overloaded')],
      decorate: (llm) => withCircuitBreaker(llm, createCircuitBreaker({ failures: 1, mode: 'fail' })),
    });

    expect(result).toMatchObject({ stopReason: 'circuit_breaker', error: { kind: 'overloaded' } });
    expect(runtime.now()).toBe(0);
  });

  it('C2 opens over turns: four end with their failure, the fifth and what comes then end with the breaker', async () => {
    const breaker = createCircuitBreaker({ mode: 'fail' });
    const llm = scriptedLLM([repeat(failure('server'), 5)]);

    const { results } = await runTurns(withCircuitBreaker(llm, breaker), 5);
    const { results: later } = await runTurns(withCircuitBreaker(llm, breaker), 2);

    expect(results.map(({ stopReason }) => stopReason)).toStrictEqual([...Array<string>(4).fill('fatal_error'), 'circuit_breaker']);
    expect(later.map(({ stopReason, error }) => [stopReason, error?.message.includes('server: server.')])).toStrictEqual([
      ['circuit_breaker', true],
      ['circuit_breaker', true],
    ]);
  });

  it.each<[string, Script, string]>([
    ['all go on when it succeeds', [repeat('back', 3)], 'end_turn'],
    ['all end when it fails', [failure('server')], 'circuit_breaker'],
  ])('C2 sends one probe for three turns: %s', async (_what, replies, stopReason) => {
    const llm = scriptedLLM(replies);
    const breaker = createCircuitBreaker({ snapshot: { failures: 5, openUntil: OPEN_MS } });

    const { results, listener, runtime } = await runTurns(withCircuitBreaker(llm, breaker), 3);

    expect(results.map((result) => result.stopReason)).toStrictEqual([stopReason, stopReason, stopReason]);
    expect(namesOf(listener.of('notice')).filter((name) => name === 'circuitBreaker.probing')).toHaveLength(1);
    llm.assertDone();
    expect(runtime.pendingTimers).toBe(0);
  });

  it('C2 counts the tokens of a failed probe once, whoever waited for it', async () => {
    const usage = { inputTokens: 7, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 1, thinkingTokens: 0 };
    const breaker = createCircuitBreaker({ snapshot: { failures: 5, openUntil: OPEN_MS } });

    const { results } = await runTurns(withCircuitBreaker(scriptedLLM([failure('server', { usage })]), breaker), 2);

    expect(results.map((result) => result.usage.inputTokens)).toStrictEqual([7, 0]);
  });

  it('C2 RT3 ends aborted at once during a pause', async () => {
    const controller = new AbortController();
    const { result, llm, runtime } = await runScripted({
      replies: [failure('server'), 'never'],
      decorate: (inner) => withCircuitBreaker(inner, createCircuitBreaker({ failures: 1 })),
      options: {
        signal: controller.signal,
        dispatchEvent: (event) => {
          if (event.type === 'notice' && event.name === 'circuitBreaker.waiting') controller.abort();
        },
      },
    });

    expect(result.stopReason).toBe('aborted');
    expect([llm.callCount, runtime.now(), runtime.pendingTimers]).toStrictEqual([1, 0, 0]);
  });

  it('C2 ends at its deadline during a pause', async () => {
    const { result, runtime } = await runScripted({
      replies: [failure('server'), 'never'],
      decorate: (inner) => withCircuitBreaker(inner, createCircuitBreaker({ failures: 1 })),
      options: { deadlineMs: 10_000 },
    });

    expect(result.stopReason).toBe('deadline');
    expect([runtime.now(), runtime.pendingTimers]).toStrictEqual([10_000, 0]);
  });
});
